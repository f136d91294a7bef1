cdef enum:
    MAX_BYTES = 0x7FFFFF00
    SIZE_OF_EXAMPLE = 64  # that of a text without n-grams, beside characters


@cython.final
cdef class Scanner(CharacterNgrams):
    cdef readonly tuple arguments
    cdef bint _l1, _l2, _two_characters, _plain_words
    cdef int _kind_of_token, _fold
    cdef sp_classes _ascii_classes  # of which none is ever in `rest`
    cdef sp_classes _classes  # all zero between texts

    cdef object _held  # keeps alive what _texts points into
    cdef Text* _texts
    cdef Py_ssize_t _texts_capacity
    cdef Py_ssize_t _n_texts
    cdef Block* _block  # in use
    cdef PrefetchedBlocks _ahead
    cdef Py_ssize_t _n_threads
    cdef Scanner _threaded  # the like of this one with another number of threads, once there was one
    cdef list _others  # scanners like this one, for helpers
    cdef object _last  # the text that the example is of: predicting and then learning scans it once
    cdef dict _last_features
    cdef CurrentExample _spare

    def __init__(
        self, analyzer, token_pattern, lowercase, stop_words, ngram_range, n_features, alternate_sign, binary, norm,
        mask_digits=False, prefix_length=0, boundaries=False, hash_function="murmur3",
    ):
        texts = (analyzer, token_pattern, lowercase, stop_words, ngram_range)
        columns = (n_features, alternate_sign, binary, norm)
        self.arguments = (*texts, *columns, mask_digits, prefix_length, boundaries, hash_function)
        self._by_words = hash_function == "words"
        pattern = scanner.TOKEN_PATTERNS.index(token_pattern)
        self._two_characters = pattern == 0
        self._kind_of_token = (SP_WORDS, SP_WORDS, SP_WORDS_AND_MARKS, SP_NONSPACE, SP_WORDS_AND_MARKS)[pattern]
        self._any_language = analyzer == "word" and token_pattern == scanner.ANY_LANGUAGE
        self._char, self._char_wb, self._ngrams = analyzer == "char", analyzer == "char_wb", analyzer == "ngrams"
        self._fold = 0 if self._ngrams else SP_LOWER * bool(lowercase) + SP_MASK_DIGITS * bool(mask_digits)
        self._prefix_length, self._boundaries = prefix_length, boundaries
        self._stop_words = StringSet(stop_words) if stop_words else None
        self._min_n, self._max_n = ngram_range
        self._plain_words = (
            self._max_n == 1 and self._stop_words is None and prefix_length == 0 and not self._any_language
            and not self._by_words
        )
        self._n_features = n_features
        self._index_mask = n_features - 1 if n_features & (n_features - 1) == 0 else 0
        self._alternate_sign, self._binary = alternate_sign, binary
        self._l1, self._l2 = norm == "l1", norm == "l2"
        self._recent = <uint32_t*> malloc(self._max_n * sizeof(uint32_t))
        self._hashes_of_size = <uint64_t*> malloc(self._max_n * sizeof(uint64_t))
        if self._recent == NULL or self._hashes_of_size == NULL:
            raise MemoryError
        self._n_threads, self._others, self._ahead = 1, [], PrefetchedBlocks()

    def __dealloc__(self):
        free(self._texts)

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
        cdef Py_ssize_t i, j, n, total = 0, capacity = 0
        cdef int32_t[::1] out_indices
        cdef double[::1] out_data
        cdef int64_t[::1] out_indptr
        n = self._load_many(texts, False)
        indptr = np.zeros(n + 1, np.int64)
        indices, data = np.empty(0, np.int32), np.empty(0, np.float64)
        out_indptr, out_indices, out_data = indptr, indices, data
        for i in range(n):
            with nogil:
                if self._encode(&self._texts[i]) < 0:
                    with gil:
                        raise MemoryError
            if total + self._n > capacity:
                capacity = max(total + self._n, 2 * capacity, 1024)
                indices = np.concatenate([indices[:total], np.empty(capacity - total, np.int32)])
                data = np.concatenate([data[:total], np.empty(capacity - total, np.float64)])
                out_indices, out_data = indices, data
            for j in range(self._n):
                out_indices[total + j] = self._indices[j]
                out_data[total + j] = self._example.values[j] / self._length
            total += self._n
            out_indptr[i + 1] = total
        return indptr, indices[:total].copy(), data[:total].copy()

    def index(self, str ngram):
        cdef bytes encoded = ngram.encode("utf-8", "surrogatepass")
        cdef uint32_t n = len(encoded), h
        encoded += b"\0" * PADDING
        h = (sp_hash_words if self._by_words else sp_murmur3)(<const uint8_t*> PyBytes_AS_STRING(encoded), n)
        return index_of(h, self._n_features, self._index_mask), -1.0 if self._alternate_sign and <int32_t> h < 0 else 1.0

    cdef int _load(self, x, bint learning) except -1:
        if x is self._last and x is not None:
            self._example.n = self._n
            return 1
        if self._any_language and isinstance(x, str) and needs_python(x):
            return 0
        self._load_many((x,), learning)
        if self._encode(self._texts) < 0:
            raise MemoryError
        if self._texts[0].length <= 65536 and type(x) is str:
            self._last = x
        return 1

    cdef _plain(self, x):
        cdef Composed plain = Composed()
        plain.text = composed(x)
        return plain

    cdef int _give_example(self, CurrentExample current) except -1:
        return current.copy(&self._example)  # the same text may come again

    cdef Py_ssize_t _load_many(self, X, bint learning, bint tentative=False) except -1:
        cdef Py_ssize_t i, n
        cdef Text* text
        self._release()
        if self._ngrams:
            self._held = [self._separated(ngrams) for ngrams in X]
            texts = self._held
        else:
            texts = tuple(X)
            self._held = [texts]
        n = len(texts)
        if reserve(<void**> &self._texts, &self._texts_capacity, n + 1, sizeof(Text)) < 0:
            raise MemoryError
        self._texts[n].data, self._n_texts, self._block = NULL, n, NULL
        self._ahead._begin(n)
        for i in range(n):
            x = texts[i]
            if not isinstance(x, str) and type(x) is not Composed:
                scanner.checked_text(x)  # which raises
            text = &self._texts[i]
            text.fold = self._fold
            if type(x) is Composed:
                x = (<Composed> x).text
            elif self._any_language and isinstance(x, str) and needs_python(x):
                x = composed(x)
                self._held.append(x)
            if type(x) is not str:  # of whose methods none is to run
                x = PyUnicode_FromObject(x)
                self._held.append(x)
            if not PyUnicode_IS_ASCII(x) and self._fold & SP_LOWER and lowers_irregularly(x):
                x = x.lower()
                self._held.append(x)
                text.fold = self._fold & ~SP_LOWER
            text.data = PyUnicode_DATA(x)
            text.length = PyUnicode_GET_LENGTH(x)
            text.kind = 0 if PyUnicode_IS_ASCII(x) else PyUnicode_KIND(x)
            if text.length * (text.kind + 2) > MAX_BYTES:
                raise ValueError(f"text {i} has {text.length:,} characters, which may be more than 2 GiB; split it")
        return n

    cdef int _release(self) except -1:
        cdef Scanner other
        for other in self._others:
            other._release()
        self._ahead._release()
        Encoder._release(self)
        self._last = self._last_features = self._held = None
        release(<void**> &self._buffer, &self._buffer_capacity)
        release(<void**> &self._joined, &self._joined_capacity)
        release(<void**> &self._offsets, &self._offsets_capacity)
        release(<void**> &self._texts, &self._texts_capacity)
        if self._positions_capacity > MOST_KEPT:
            release(<void**> &self._positions, &self._positions_capacity)
            self._reserve_fewest_positions()
        return 0

    cdef str _separated(self, ngrams):
        """N-grams that come ready-made, each behind its length, as one string."""
        return "".join([f"{len(ngram):x} {ngram}" for ngram in ngrams])

    # Several threads: this scanner leads, each of the others serves a helper.

    def with_threads(self, Py_ssize_t n):
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
            self._ahead._begin(self._n_texts, len(others))
            self._ahead._start(self, others, [None] * len(others))
        return 0

    cdef void _end_helpers(self) noexcept nogil:
        self._ahead._end()

    # Scanning: from characters to distinct indices and counts, and to the example.

    cdef Row* _fetch(self, Py_ssize_t i) noexcept nogil:
        if self._block == NULL or i >= self._block.end:
            self._block = self._ahead._take(self)
            if self._block == NULL:
                return NULL
        return &self._block.rows[i - self._block.first]

    cdef const Row* _following(self, Py_ssize_t i) noexcept nogil:
        if self._block == NULL or i + 1 >= self._block.end:
            return NULL
        return &self._block.rows[i + 1 - self._block.first]

    cdef Py_ssize_t _end_of_block(self, Py_ssize_t first) noexcept nogil:
        cdef Py_ssize_t i = first, size = 0
        while i < self._n_texts and size < BLOCK_SIZE:
            size += self._texts[i].length * (self._texts[i].kind + 1) + SIZE_OF_EXAMPLE
            i += 1
        return i

    cdef int _fill(self, Encoder leader, Block* block) noexcept nogil:
        cdef const Text* texts = (<Scanner> leader)._texts
        cdef Row* e
        cdef Py_ssize_t i
        if begin_block(block) < 0:
            return -1
        for i in range(block.first, block.end):
            e = &block.rows[i - block.first]
            if self._scan(&texts[i]) < 0 or make_room_in(block, self._n) < 0:
                return -1
            e.hashes, e.values = block.hashes + block.n, block.values + block.n
            self._make_example(e)
            block.n += e.n + 1
        end_block(block)
        return 0

    cdef int _encode(self, const Text* text) noexcept nogil:
        """Make the example of a text."""
        if self._scan(text) < 0 or self._reserve(self._n) < 0:
            return -1
        self._make_example(&self._example)
        return 0

    cdef int _scan(self, const Text* text) noexcept nogil:
        """Count the n-grams of a text by index."""
        SP_PREFETCH(text[1].data)  # one past the last text stands a text of no characters
        SP_PREFETCH(<const char*> text[1].data + 64)
        self._reset()
        if text.length == 0:
            pass
        elif self._ngrams or self._char or self._char_wb:
            if self._scan_characters(text) < 0:
                return -1
        elif text.kind and self._any_language:
            if self._scan_any_language(text) < 0:
                return -1
        elif text.kind:
            if self._scan_unicode(text) < 0:
                return -1
        elif self._scan_ascii(text) < 0:
            return -1
        return 0

    cdef void _reset(self) noexcept nogil:
        self._n = 0
        self._n_ranges = self._n_hashes = 0
        self._joined_length = 0
        self._n_tokens = self._newest = self._n_in_line = 0
        self._edges.n_starts = self._edges.n_ends = 0
        self._edges.in_token = self._edges.after_mark = self._edges.after_word = 0

    cdef int _scan_ascii(self, const Text* text) noexcept nogil:
        cdef const uint8_t* data = <const uint8_t*> text.data
        cdef Py_ssize_t begin = 0, n
        cdef int kind = SP_LONG_WORDS if self._two_characters else self._kind_of_token
        cdef bint more
        if reserve(<void**> &self._buffer, &self._buffer_capacity, text.length + PADDING, 1) < 0:
            return -1
        while begin < text.length:
            n = min(<Py_ssize_t> SP_SEGMENT, text.length - begin)
            sp_classify(data + begin, self._buffer + begin, n, text.fold, &self._ascii_classes)
            more = begin + n < text.length and is_ascii_word(data[begin + n])
            sp_find_edges(&self._ascii_classes, begin, n, kind, more, &self._edges)
            begin += n
            if self._take_tokens(begin == text.length, begin, False, True) < 0:
                return -1
        return 0

    cdef int _scan_unicode(self, const Text* text) noexcept nogil:
        cdef Py_ssize_t i = 0, begin = 0, n, run
        cdef uint32_t c, found
        cdef uint8_t* out
        cdef uint8_t* end
        if reserve(<void**> &self._buffer, &self._buffer_capacity, text.length * (text.kind + 1) + PADDING, 1) < 0:
            return -1
        out = self._buffer
        while i < text.length:
            while i < text.length and out - self._buffer - begin < SP_SEGMENT:
                run = self._write_ascii(text, i, out, out - self._buffer - begin)
                if run:
                    i += run
                    out += run
                    continue
                c = PyUnicode_READ(text.kind, text.data, i)
                i += 1
                if c < 0x10000:
                    found = look_up(c)
                else:
                    found = IS_WORD if Py_UNICODE_ISALNUM(c) else IS_SPACE if Py_UNICODE_ISSPACE(c) else 0
                c = folded(c, text.fold)
                n = out - self._buffer - begin
                end = put_utf8(out, c)
                if found & IS_WORD:
                    add_bits(self._classes.word, n, ALL_BITS, end - out)
                elif found & IS_SPACE:
                    add_bits(self._classes.space, n, ALL_BITS, end - out)
                elif end - out > 1:
                    add_bits(self._classes.rest, n + 1, ALL_BITS, end - out - 1)
                out = end
            begin = self._find_tokens(begin, out - self._buffer, i == text.length)
            if begin < 0:
                return -1
        return 0

    cdef int _scan_any_language(self, const Text* text) noexcept nogil:
        """The same of words, marks and runs, as `segments` finds them: a space more is written where a run begins or ends."""
        cdef Py_ssize_t i = 0, begin = 0, n, run
        cdef uint32_t c
        cdef int kind, before = SPACE
        cdef bint joins = False, goes_on
        cdef uint8_t* out
        cdef uint8_t* end
        if reserve(<void**> &self._buffer, &self._buffer_capacity, text.length * (text.kind + 2) + PADDING, 1) < 0:
            return -1
        out = self._buffer
        while i < text.length:
            while i < text.length and out - self._buffer - begin < SP_SEGMENT:
                n = out - self._buffer - begin
                c = PyUnicode_READ(text.kind, text.data, i)
                if c < 0x80:
                    kind = class_of(c)
                    if kind == WORD and (before == CHARACTER or before == SYLLABLE):
                        add_bits(self._classes.space, n, 1, 1)
                        out[0] = c' '
                        out += 1
                        n += 1
                    joins = False
                    run = self._write_ascii(text, i, out, n)
                    if run:
                        i += run
                        out += run
                        before = class_of(PyUnicode_READ(text.kind, text.data, i - 1))
                        continue
                kind = class_of(c)
                i += 1
                if kind == IGNORED or kind == JOINER or kind == BREAK:
                    joins |= kind == JOINER and before == MARK
                    if kind == BREAK and before == CHARACTER:
                        add_bits(self._classes.space, n, 1, 1)
                        out[0] = c' '
                        out += 1
                        before = SPACE
                    continue
                if (kind == EXTEND or kind == STACKER) and before != SPACE:
                    end = put_utf8(out, folded(c, text.fold))
                    goes_on = before == MARK or before == REGIONAL
                    add_bits(self._classes.rest if goes_on else self._classes.word, n, ALL_BITS, end - out)
                    out = end
                    if before == REGIONAL:
                        before = MARK
                    continue
                if kind == WORD or kind == SYLLABLE or kind == CHARACTER:
                    if kind != before and (before == WORD or before == SYLLABLE or before == CHARACTER):
                        add_bits(self._classes.space, n, 1, 1)
                        out[0] = c' '
                        out += 1
                        n += 1
                    end = put_utf8(out, folded(c, text.fold))
                    add_bits(self._classes.word, n, ALL_BITS, end - out)
                elif kind == SPACE:
                    end = put_utf8(out, c)
                    add_bits(self._classes.space, n, ALL_BITS, end - out)
                else:
                    end = put_utf8(out, folded(c, text.fold))
                    goes_on = (joins and kind == MARK and c >= 0x80) or (kind == REGIONAL and before == REGIONAL)
                    if goes_on:
                        add_bits(self._classes.rest, n, ALL_BITS, end - out)
                    elif end - out > 1:
                        add_bits(self._classes.rest, n + 1, ALL_BITS, end - out - 1)
                    if goes_on or kind == EXTEND or kind == STACKER:
                        kind = MARK
                out = end
                before = kind
                joins = False
            begin = self._find_tokens(begin, out - self._buffer, i == text.length)
            if begin < 0:
                return -1
        return 0

    cdef Py_ssize_t _write_ascii(self, const Text* text, Py_ssize_t i, uint8_t* out, Py_ssize_t n) noexcept nogil:
        """ASCII inside other text goes through the fast classifier, up to a block at a time; how much it was, if any."""
        cdef uint8_t ascii[64]
        cdef sp_classes block
        cdef Py_ssize_t run = 0
        cdef uint32_t c
        while run < 64 and i + run < text.length:
            c = PyUnicode_READ(text.kind, text.data, i + run)
            if c >= 0x80:
                break
            ascii[run] = c
            run += 1
        if run <= 3:
            return 0
        sp_classify(ascii, out, 64, text.fold, &block)
        add_bits(self._classes.word, n, block.word[0], run)
        add_bits(self._classes.space, n, block.space[0], run)
        return run

    cdef Py_ssize_t _find_tokens(self, Py_ssize_t begin, Py_ssize_t end, bint at_end) noexcept nogil:
        """Take the tokens of whole blocks; where what is left over begins, which opens the next segment."""
        cdef Py_ssize_t n = end - begin, whole
        while n >= 64 or (n > 0 and at_end):
            whole = min(n & ~63 if n >= 64 else n, <Py_ssize_t> SP_SEGMENT)
            sp_find_edges(&self._classes, begin, whole, self._kind_of_token, False, &self._edges)
            carry_classes(&self._classes, (whole + 63) >> 6)
            begin += whole
            n -= whole
        return -1 if self._take_tokens(at_end, begin, self._two_characters, False) < 0 else begin

    cdef int _take_tokens(self, bint at_end, uint32_t end, bint two_characters, bint ascii) noexcept nogil:
        """Count the tokens whose two edges are known (and two characters, if asked for); keep one that is still open for the
        next segment.
        """
        cdef sp_edges* edges = &self._edges
        if at_end and (edges.in_token or edges.after_mark):
            edges.ends[edges.n_ends] = end
            edges.n_ends += 1
            edges.in_token = edges.after_mark = 0
        if self._plain_words and not two_characters:
            self._source = self._buffer
            if self._count(edges.starts, edges.ends, edges.n_ends) < 0:
                return -1
        elif self._by_words:
            if self._hash_tokens(at_end, two_characters, ascii) < 0:
                return -1
        elif self._join_tokens(at_end, two_characters, ascii) < 0:
            return -1
        if edges.n_starts > edges.n_ends:
            edges.starts[0] = edges.starts[edges.n_starts - 1]
        edges.n_starts -= edges.n_ends
        edges.n_ends = 0
        return 0

    cdef void _make_example(self, Row* e) noexcept nogil:
        """Turn counts into an example, for which there is room, and leave the tables empty for the next text."""
        cdef Py_ssize_t i, n = self._n
        cdef double count, squares = 0.0, sizes = 0.0
        for i in range(n):
            e.hashes[i] = hash_key(self._indices[i])
        if self._binary:
            for i in range(n):
                e.values[i] = 1.0
            squares = sizes = n
        else:
            for i in range(n):
                count = e.values[i] = self._counts[i]
                squares += count * count
                sizes += fabs(count)
            if n:
                memset(self._counts, 0, n * sizeof(int32_t))
        self._clear_positions()
        self._positions_mask, self._scattered = FEWEST_POSITIONS - 1, False
        self._length = sqrt(squares) if self._l2 else sizes if self._l1 else 1.0
        if self._length == 0.0:
            self._length = 1.0
        e.n, e.factor = n, 1.0 / self._length

