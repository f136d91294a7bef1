cdef enum:
    MAX_BYTES = 0x7FFFFF00
    FEW_MESSAGES = 8  # with as many new words as this less, it does not pay to scan twice
    SIZE_OF_EXAMPLE = 64  # that of a text without n-grams, beside characters

cdef Py_ssize_t N_CLASSES_KNOWN = 0  # characters whose classes are in the table


cdef inline Py_ssize_t known_classes(text):
    """Up to where a text may have characters."""
    cdef int kind = PyUnicode_KIND(text)
    return 0x100 if kind == 1 else 0x10000 if kind == 2 else SP_END_OF_TABLE


cdef bint needs_python(text):
    """Whether classes of its characters are not known yet, or letters are written in parts."""
    cdef int kind
    cdef const void* data
    cdef Py_ssize_t i
    cdef uint32_t c
    if PyUnicode_IS_ASCII(text):
        return False
    if N_CLASSES_KNOWN < known_classes(text):
        return True
    kind, data = PyUnicode_KIND(text), PyUnicode_DATA(text)
    if kind == 1:
        return False
    for i in range(PyUnicode_GET_LENGTH(text)):
        c = PyUnicode_READ(kind, data, i)
        if sp_class_table[c] & SP_PART if c < SP_END_OF_TABLE else 0x2F800 <= c < 0x2FA20:
            return True
    return False


cdef composed(text):
    """The text with its letters in one, and all of its characters known."""
    global N_CLASSES_KNOWN
    cdef Py_ssize_t begin = N_CLASSES_KNOWN, end = known_classes(text)
    cdef bytes found
    if begin < end:
        found = characters.character_classes(begin, end)
        memcpy(&sp_class_table[begin], PyBytes_AS_STRING(found), end - begin)
        N_CLASSES_KNOWN = max(N_CLASSES_KNOWN, end)
    return characters.composed(str.__str__(text))


@cython.final
cdef class Composed:
    """A text that needs nothing more of Python."""

    cdef object text


@cython.final
cdef class Scanner(Encoder):
    """Turns texts, or messages of as many as there are scanners, into examples: the distinct columns of their n-grams, and
    how often each is met.
    """

    cdef readonly tuple arguments
    cdef sp_scanner _scanner
    cdef list _further  # the scanners of the other fields of a message
    cdef bint _is_any_ready_made
    cdef readonly object vectors  # the table of word vectors
    cdef WordVectors _word_vectors
    cdef float* _vector  # of the example
    cdef list _stop_words  # keeps alive what their table points into
    cdef bint _l1, _l2
    cdef int _fold
    cdef double _length  # the norm that the counts are divided by

    cdef object _held  # keeps alive what _texts points into
    cdef sp_text* _texts
    cdef Py_ssize_t _texts_capacity
    cdef Py_ssize_t _n_texts, _n_fields  # the texts of all messages, and those of each
    cdef Block* _block  # in use
    cdef PrefetchedBlocks _ahead
    cdef Py_ssize_t _n_threads
    cdef Scanner _threaded  # the like of this one with another number of threads, once there was one
    cdef list _others  # scanners like this one, for helpers
    cdef object _last  # the text that the example is of: predicting and then learning scans it once
    cdef Py_ssize_t _n_last  # its features
    cdef dict _last_features
    cdef CurrentExample _spare

    def __init__(
        self, analyzer, token_pattern, lowercase, stop_words, ngram_range, n_features, alternate_sign, binary, norm,
        mask_digits=False, prefix_length=0, boundaries=False, hash_function="murmur3", letters=0.0, length=0.0, fields=(),
        vectors=None,
    ):
        cdef sp_scanner* s = &self._scanner
        texts = (analyzer, token_pattern, lowercase, stop_words, ngram_range)
        columns = (n_features, alternate_sign, binary, norm)
        others = (mask_digits, prefix_length, boundaries, hash_function, letters, length, fields, vectors)
        self.arguments = (*texts, *columns, *others)
        pattern = scanner.TOKEN_PATTERNS.index(token_pattern)
        s.of = {
            "word": SP_TOKENS, "char": SP_CHARACTERS, "char_wb": SP_CHARACTERS_IN_WORDS, "ngrams": SP_READY_MADE, "vector": SP_VECTOR,
        }[analyzer]
        s.two_characters, s.any_language = pattern == 0, s.of == SP_TOKENS and token_pattern == scanner.ANY_LANGUAGE
        s.kind_of_token = (SP_WORDS, SP_WORDS, SP_WORDS_AND_MARKS, SP_NONSPACE, SP_WORDS_AND_MARKS)[pattern]
        s.min_n, s.max_n = ngram_range
        s.by_words, s.prefix_length, s.boundaries = hash_function == "words", prefix_length, boundaries and s.max_n > 1
        s.joins = s.max_n > 1 or prefix_length > 0
        s.most_digits = scanner.MOST_DIGITS if s.of == SP_TOKENS and mask_digits == scanner.BOTH else 0
        s.bag.n_features, s.bag.index_mask = n_features, 0 if n_features & (n_features - 1) else n_features - 1
        s.bag.alternate_sign, s.bag.binary, s.bag.secret = alternate_sign, binary, <uint32_t> SECRET
        s.newest = <uint64_t*> malloc(s.max_n * sizeof(uint64_t))
        if s.newest == NULL or sp_reserve_table(&s.bag, SP_SMALLEST_TABLE) < 0:
            raise MemoryError
        self._set_stop_words(stop_words)
        self._fold = 0 if s.of == SP_READY_MADE else SP_LOWER * bool(lowercase) + SP_MASK_DIGITS * bool(mask_digits)
        self._l1, self._l2 = norm == "l1", norm == "l2"
        self._n_threads, self._others, self._ahead = 1, [], PrefetchedBlocks()
        self._further, self._n_fields, self._is_any_ready_made = [], 1 + len(fields), s.of == SP_READY_MADE
        self.vectors = vectors
        self._set_letters_and_length(letters, length)
        for name, arguments in fields:
            self._add_field(name.encode("utf-8", "surrogatepass") + b"\0" * SP_PADDING, Scanner(*arguments))
        tables = [field.vectors for field in (self, *self._further) if field.vectors is not None]
        if tables:
            self._set_vectors(tables[0])

    cdef int _set_letters_and_length(self, double letters, double length) except -1:
        cdef sp_scanner* s = &self._scanner
        cdef Py_ssize_t power
        s.letters, s.length, s.bag.weighted = letters, length, letters > 0.0 or length > 0.0
        if s.bag.weighted and (s.of != SP_TOKENS or not s.by_words):
            raise ValueError("letters and length are for words, and for their hash")
        for power in range(32):
            s.length_hashes[0][power], s.length_hashes[1][power] = scanner.hashes_of_length(power)
        return 0

    cdef int _set_vectors(self, table) except -1:
        cdef Scanner field
        self._word_vectors = WordVectors(table)
        self._vector = <float*> malloc(max(table.n_dimensions, 1) * sizeof(float))
        if self._vector == NULL:
            raise MemoryError
        for field in (self, *self._further):
            if field.vectors is not None:
                field._scanner.vectors = &self._word_vectors._vectors
        return 0

    cdef _add_field(self, bytes name, Scanner field):
        field._scanner.bag.field = sp_murmur3(<const uint8_t*> PyBytes_AS_STRING(name), len(name) - SP_PADDING)
        self._field(len(self._further))._scanner.next = &field._scanner
        self._scanner.bag.weighted |= field._scanner.bag.weighted
        self._further.append(field)
        self._is_any_ready_made |= field._is_any_ready_made

    cdef Scanner _field(self, Py_ssize_t i):
        return <Scanner> self._further[i - 1] if i else self

    cdef int _set_stop_words(self, words) except -1:
        cdef sp_scanner* s = &self._scanner
        cdef Py_ssize_t n
        self._stop_words = [word.encode("utf-8", "surrogatepass") + b"\0" * SP_PADDING for word in words]
        if words:
            s.stop_mask = (1 << (2 * len(words) + 1).bit_length()) - 1
            s.stop_words = <sp_word*> calloc(s.stop_mask + 1, sizeof(sp_word))
            if s.stop_words == NULL:
                raise MemoryError
        for word in self._stop_words:
            n = PyBytes_GET_SIZE(word) - SP_PADDING
            sp_place_of(s.stop_words, s.stop_mask, <const uint8_t*> PyBytes_AS_STRING(word), n)[0] = sp_word(
                <const uint8_t*> PyBytes_AS_STRING(word), n
            )
        return 0

    def __dealloc__(self):
        cdef sp_scanner* s = &self._scanner
        free(self._texts)
        free(self._vector)
        free(s.stop_words)
        free(s.bag.indices)
        free(s.bag.counts)
        free(s.bag.weights)
        free(s.bag.table)
        free(s.buffer)
        free(s.offsets)
        free(s.word)
        free(s.joined)
        free(s.newest)

    def transform_one(self, text):
        cdef Py_ssize_t i
        cdef CurrentExample current
        cdef Row* e
        cdef double length, value, positive = 0.0, negative = 0.0
        cdef dict features
        cdef object of_positive = None, of_negative = None, number
        wait_for(self._guard, self._guard)
        if text is self._last and self._last_features is not None:
            return self._last_features.copy()
        current, self._spare = self._spare or CurrentExample(), None  # its own, since another thread may come as the dict is made
        load_one(self, self._guard, current, text, False)
        e, length = &current.example, self._length
        features = __Pyx_PyDict_NewPresized(e.n)
        for i in range(e.n):  # nearly all values are those of a single count, which need one number alone
            value = e.values[i]
            if value > 0.0:
                if value != positive:
                    positive, of_positive = value, value / length
                number = of_positive
            else:
                if value != negative or of_negative is None:
                    negative, of_negative = value, value / length
                number = of_negative
            features[<int64_t> (e.hashes[i] * INVERSE_MULTIPLIER)] = number
        for i in range(e.n_dimensions):
            features[self._scanner.bag.n_features + i] = <double> e.vector[i]
        self._spare = current
        if text is self._last:  # and not one that another thread has brought meanwhile
            self._last_features = features.copy()
        return features

    def transform_many(self, texts):
        begin_loop(self._guard, self._guard)
        try:
            return self._transform_many(texts)
        finally:
            self._release()
            end_loop(self._guard, self._guard)

    cdef _transform_many(self, texts):
        cdef Py_ssize_t i, j, n, size, total = 0, capacity = 0
        cdef int status
        cdef int32_t[::1] out_indices
        cdef double[::1] out_data
        cdef int64_t[::1] out_indptr
        n = self._load_many(texts, False)
        indptr = np.zeros(n + 1, np.int64)
        indices, data = np.empty(0, np.int32), np.empty(0, np.float64)
        out_indptr, out_indices, out_data = indptr, indices, data
        for i in range(n):
            with nogil:
                status = self._encode(&self._texts[i * self._n_fields], True)
            if status < 0:
                self._raise_error()
                raise MemoryError
            size = self._example.n
            if total + size + self._example.n_dimensions > capacity:
                capacity = max(total + size + self._example.n_dimensions, 2 * capacity, 1024)
                indices = np.concatenate([indices[:total], np.empty(capacity - total, np.int32)])
                data = np.concatenate([data[:total], np.empty(capacity - total, np.float64)])
                out_indices, out_data = indices, data
            for j in range(size):
                out_indices[total + j] = self._scanner.bag.indices[j]
                out_data[total + j] = self._example.values[j] / self._length
            total += size
            for j in range(self._example.n_dimensions):
                out_indices[total + j] = self._scanner.bag.n_features + j
                out_data[total + j] = self._example.vector[j]
            total += self._example.n_dimensions
            out_indptr[i + 1] = total
        return indptr, indices[:total].copy(), data[:total].copy()

    def index(self, str ngram, Py_ssize_t field=0):
        cdef sp_scanner* s = &self._field(field)._scanner
        cdef bytes encoded = ngram.encode("utf-8", "surrogatepass")
        cdef uint32_t n = len(encoded), h
        encoded += b"\0" * SP_PADDING
        wait_for(self._guard, self._guard)  # a loop over fields lends the bag of one to the next
        h = (sp_hash_words if s.by_words else sp_murmur3)(<const uint8_t*> PyBytes_AS_STRING(encoded), n) ^ s.bag.field
        return sp_index_of(&self._scanner.bag, h), -1.0 if self._scanner.bag.alternate_sign and <int32_t> h < 0 else 1.0

    def kept_vectors(self):
        cdef Scanner each
        scanners = [each for leader in (self, self._threaded) if leader is not None for each in (leader, *(<Scanner> leader)._others)]
        wait_for(self._guard, self._guard)
        hashes, codes, shifts = map(np.concatenate, zip(*[each._word_vectors._kept() for each in scanners]))
        hashes, places = np.unique(hashes, return_index=True)
        return hashes, codes[places], shifts[places]

    cdef bint _needs_python(self, x):
        return self._scanner.any_language and isinstance(x, str) and needs_python(x)

    cdef int _load(self, x, bint learning) except -1:
        cdef Py_ssize_t i
        cdef int status
        if x is self._last and x is not None:
            self._example.n = self._n_last
            return 1
        if type(x) is CurrentExample:
            self._last, self._held, self._example = None, [x], (<CurrentExample> x).example
            return 1
        if self._n_fields > 1:
            for i in range(self._n_fields):
                if self._field(i)._needs_python(x[i]):
                    return 0
        elif self._needs_python(x):
            return 0
        if self._n_fields > 1 or self._is_any_ready_made:
            self._load_many((x,), learning)
        else:
            self._release()
            if sp_reserve(&self._texts, &self._texts_capacity, 2, sizeof(sp_text)) < 0:
                raise MemoryError
            self._held, self._texts[1].data, self._n_texts, self._block = self._set_text(self._texts, x, 0), NULL, 1, NULL
        status = self._encode(self._texts, False)
        if status == NOT_KEPT:
            return 0
        if status < 0:
            raise MemoryError
        if self._texts[0].length <= 65536 and type(x) is str:
            self._last, self._n_last = x, self._example.n
        return 1

    cdef _plain(self, x):
        cdef CurrentExample made
        cdef int status
        if self._word_vectors is not None:  # in a loop, since words may be looked up
            made = CurrentExample()
            begin_loop(self._guard, self._guard)
            try:
                self._load_many((x,), False)
                with nogil:
                    status = self._encode(self._texts, True)
                if status < 0:
                    self._raise_error()
                    raise MemoryError
                made.copy(&self._example)
            finally:
                self._release()
                end_loop(self._guard, self._guard)
            return made
        if self._n_fields > 1:
            return tuple([self._field(i)._plain_text(text) for i, text in enumerate(x)])
        return self._plain_text(x)

    cdef _plain_text(self, x):
        cdef Composed plain
        if not self._needs_python(x):
            return x
        plain = Composed()
        plain.text = composed(x)
        return plain

    cdef int _give_example(self, CurrentExample current) except -1:
        return current.copy(&self._example)  # the same text may come again

    cdef Py_ssize_t _load_many(self, X, bint learning, bint tentative=False) except -1:
        cdef Py_ssize_t i, n, n_messages, k = self._n_fields
        self._release()
        texts = tuple(X) if k == 1 else tuple(itertools.chain.from_iterable(X))
        if self._is_any_ready_made:
            texts = tuple([self._field(i % k)._readable(x) for i, x in enumerate(texts)])
        self._held = [texts]
        n = n_messages = len(texts)
        if k > 1:
            n_messages = n // k
            if n % k:
                raise ValueError(f"{n} texts are no messages of {k} fields")
        if sp_reserve(&self._texts, &self._texts_capacity, n + 1, sizeof(sp_text)) < 0:
            raise MemoryError
        self._texts[n].data, self._n_texts, self._block = NULL, n, NULL
        self._ahead._begin(n_messages)
        for i in range(n):
            x = texts[i]
            kept = (self._field(i % k) if k > 1 else self)._set_text(&self._texts[i], x, i // k)
            if kept is not x:
                self._held.append(kept)
        return n_messages

    cdef object _set_text(self, sp_text* text, x, Py_ssize_t number):
        """Point to a text, or to the numbers of a vector; what is to be kept alive meanwhile."""
        if self._scanner.of == SP_VECTOR:
            return self._set_vector(text, scanner.checked_vector(x, self.vectors.n_dimensions))
        if not isinstance(x, str) and type(x) is not Composed:
            scanner.checked_text(x)  # which raises
        text.fold = self._fold
        if type(x) is Composed:
            x = (<Composed> x).text
        elif self._needs_python(x):
            x = composed(x)
        if type(x) is not str:  # of whose methods none is to run
            x = PyUnicode_FromObject(x)
        if not PyUnicode_IS_ASCII(x) and self._fold & SP_LOWER and ("\u03a3" in x or "\u0130" in x):
            x = x.lower()  # which looks around Σ, and makes two characters of İ
            text.fold = self._fold & ~SP_LOWER
        text.data = PyUnicode_DATA(x)
        text.length = PyUnicode_GET_LENGTH(x)
        text.kind = 0 if PyUnicode_IS_ASCII(x) else PyUnicode_KIND(x)
        if text.length * (text.kind + 2) > MAX_BYTES:
            raise ValueError(f"text {number} has {text.length:,} characters, which may be more than 2 GiB; split it")
        return x

    cdef object _set_vector(self, sp_text* text, const float[::1] numbers):
        text.length, text.kind, text.fold = numbers.shape[0], 4, 0
        text.data = &numbers[0] if text.length else NULL
        return numbers.base

    cdef int _release(self) except -1:
        cdef Scanner other
        cdef sp_scanner* s = &self._scanner
        for other in self._others:
            other._release()
        if self._n_fields > 1:
            for other in self._further:
                other._release()
        self._ahead._release()
        Encoder._release(self)
        self._last = self._last_features = self._held = None
        sp_release(&self._texts, &self._texts_capacity)
        sp_release(&s.buffer, &s.buffer_capacity)
        sp_release(&s.joined, &s.joined_capacity)
        sp_release(&s.offsets, &s.offsets_capacity)
        sp_release(&s.word, &s.word_capacity)
        if self._word_vectors is not None:
            self._word_vectors._release()
        sp_release(&s.bag.table, &s.bag.table_capacity)
        if sp_reserve_table(&s.bag, SP_SMALLEST_TABLE) < 0:
            raise MemoryError
        return 0

    cdef object _readable(self, x):
        """A text, or n-grams that come ready-made, each behind its length, as one string."""
        return x if self._scanner.of != SP_READY_MADE else "".join([f"{len(ngram):x} {ngram}" for ngram in x])

    # Several threads: this scanner leads, each of the others serves a helper.

    def get_threaded(self, Py_ssize_t n):
        if n == self._n_threads:
            return self
        if self._threaded is None or self._threaded._n_threads != n:
            self._threaded = Scanner(*self.arguments)
            self._threaded._n_threads = n
        return self._threaded

    cdef bint _has_helpers(self):
        return self._n_helpers() > 0

    cdef Py_ssize_t _n_helpers(self):
        """How many are of use for the texts that are loaded."""
        cdef Py_ssize_t i, size = 0, most = min(self._n_threads, <Py_ssize_t> MOST_THREADS) - 1
        for i in range(self._n_texts if most else 0):
            size += self._texts[i].length
        return min(most, size // HELPER_SIZE)

    cdef list _helpers(self):
        cdef Py_ssize_t n = self._n_helpers()
        while len(self._others) < n:
            self._others.append(Scanner(*self.arguments))
        return self._others[:n]

    cdef int _start_helpers(self) except -1:
        cdef list others = self._helpers()
        if others:
            self._ahead._begin(self._n_texts // self._n_fields, len(others))
            self._ahead._start(self, others, [None] * len(others))
        return 0

    cdef void _end_helpers(self) noexcept nogil:
        self._ahead._end()

    cdef Row* _fetch(self, Py_ssize_t i) noexcept nogil:
        if self._block == NULL or i >= self._block.end:
            self._block = self._ahead._take(self)
            if self._block == NULL:
                return NULL
        return &self._block.rows[i - self._block.first]

    cdef Py_ssize_t _end_of_block(self, Py_ssize_t first) noexcept nogil:
        cdef Py_ssize_t i = first * self._n_fields, size = 0
        while i < self._n_texts and (size < BLOCK_SIZE or i % self._n_fields):
            size += self._texts[i].length * (self._texts[i].kind + 1) + SIZE_OF_EXAMPLE
            i += 1
        return i // self._n_fields

    cdef int _fill(self, Encoder leader, Block* block) noexcept nogil:
        cdef const sp_text* texts = (<Scanner> leader)._texts
        cdef Row* e
        cdef Py_ssize_t i, d = self._word_vectors._vectors.d if self._word_vectors is not None else 0
        if begin_block(block) < 0 or sp_reserve(
            &block.vectors, &block.vectors_capacity, (block.end - block.first) * d, sizeof(float)
        ) < 0:
            return -1
        if d and self._look_up_words(texts, block) < 0:
            return -1
        for i in range(block.first, block.end):
            e = &block.rows[i - block.first]
            if sp_scan(&self._scanner, &texts[i * self._n_fields]) < 0 or make_room_in(block, self._scanner.bag.n) < 0:
                return -1
            e.hashes, e.values = block.hashes + block.n, block.values + block.n
            e.vector = block.vectors + (i - block.first) * d
            if self._make_example(e, True) < 0:
                return -1
            block.n += e.n + 1
        end_block(block)
        return 0

    cdef int _look_up_words(self, const sp_text* texts, const Block* block) noexcept nogil:
        """All at once, where the block before had many new words: then it pays to scan texts twice."""
        cdef Py_ssize_t i, n = self._word_vectors.n_looked_up
        self._word_vectors.n_looked_up = 0
        if FEW_MESSAGES * n <= block.end - block.first:
            return 0
        for i in range(block.first, block.end):
            if sp_scan(&self._scanner, &texts[i * self._n_fields]) < 0:
                return -1
            sp_empty_bag(&self._scanner.bag)
            if not self._word_vectors._note_missing():
                break
        return self._word_vectors._look_up() if self._word_vectors._vectors.n_noted else 0

    cdef int _encode(self, const sp_text* text, bint may_look_up) noexcept nogil:
        """Make the example of a text; NOT_KEPT where it has words to be looked up that may not."""
        if sp_scan(&self._scanner, text) < 0 or self._reserve(self._scanner.bag.n) < 0:
            return -1
        self._example.vector = self._vector
        return self._make_example(&self._example, may_look_up)

    cdef int _make_example(self, Row* e, bint may_look_up) noexcept nogil:
        """Turn counts into an example, for which there is room, and leave the bag empty for the next text."""
        cdef sp_bag* bag = &self._scanner.bag
        cdef Py_ssize_t i, n = bag.n
        cdef double value, squares = n, sizes = n  # exact below 2⁵³, and without a limit
        cdef uint64_t* hashes = e.hashes
        cdef double* values = e.values
        cdef const uint32_t* indices = bag.indices
        if bag.binary and not bag.weighted:
            for i in range(n):
                hashes[i], values[i] = hash_key(indices[i]), 1.0
        else:
            squares = sizes = 0.0
            for i in range(n):
                value = (1.0 if bag.binary else <double> bag.counts[i]) * (bag.weights[i] if bag.weighted else 1.0)
                hashes[i], values[i] = hash_key(indices[i]), value
                squares += value * value
                sizes += fabs(value)
        self._length = sqrt(squares) if self._l2 else sizes if self._l1 else 1.0
        if self._length == 0.0:
            self._length = 1.0
        e.n, e.factor, e.n_dimensions, e.is_even = n, 1.0 / self._length, 0, bag.binary
        sp_empty_bag(bag)
        if self._word_vectors is None:
            return 0
        e.n_dimensions = self._word_vectors._vectors.d
        return self._word_vectors._write(e.vector, may_look_up)

    cdef int _raise_error(self) except -1:
        cdef Scanner each
        for each in (self, *self._others):
            if each._word_vectors is not None and each._word_vectors.error is not None:
                error, each._word_vectors.error = each._word_vectors.error, None
                raise error
        return 0
