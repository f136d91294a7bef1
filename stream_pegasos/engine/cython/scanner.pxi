cdef inline void add_bits(uint64_t* words, Py_ssize_t at, uint64_t bits, Py_ssize_t n) noexcept nogil:
    """Set the bits from position `at` on as the lowest n of `bits` are."""
    bits &= ALL_BITS >> (64 - n)
    words[at >> 6] |= bits << (at & 63)
    if (at & 63) + n > 64:
        words[(at >> 6) + 1] |= bits >> (64 - (at & 63))


cdef void carry_classes(sp_classes* classes, Py_ssize_t block) noexcept nogil:
    """Move the classes of a block that is not whole yet to the front, and forget the others."""
    cdef Py_ssize_t i
    cdef uint64_t word = classes.word[block], space = classes.space[block], rest = classes.rest[block]
    for i in range(block + 1):
        classes.word[i] = classes.space[i] = classes.rest[i] = 0
    classes.word[0], classes.space[0], classes.rest[0] = word, space, rest


cdef const char* BEGIN = "<s>             "  # with room to be read as 16 bytes
cdef const char* END = "</s>            "


cdef struct Text:
    const void* data
    Py_ssize_t length
    int kind  # bytes a character, 0 for ASCII
    int fold


cdef enum:
    PADDING = 64     # bytes that may be read after the end of a buffer
    MAX_BYTES = 0x7FFFFF00


@cython.final
cdef class Scanner(Bag):
    cdef readonly tuple arguments
    cdef bint _l1, _l2, _two_characters, _plain_words, _boundaries
    cdef int _kind_of_token, _fold
    cdef bint _char, _char_wb, _ngrams
    cdef Py_ssize_t _min_n, _max_n, _prefix_length
    cdef StringSet _stop_words

    # The text as lower-cased UTF-8, and, for n-grams, its tokens with one space between.
    cdef uint8_t* _buffer
    cdef Py_ssize_t _buffer_capacity
    cdef uint8_t* _joined
    cdef Py_ssize_t _joined_capacity, _joined_length
    cdef uint32_t* _recent  # where in _joined the newest max_n tokens begin, the last of them at _newest
    cdef Py_ssize_t _n_tokens, _newest
    cdef uint32_t* _offsets  # where each character begins
    cdef Py_ssize_t _offsets_capacity
    cdef sp_classes _ascii_classes  # of which none is ever in `rest`
    cdef sp_classes _classes  # all zero between texts
    cdef sp_edges _edges

    # N-grams waiting to be hashed, as ranges of `_source`.
    cdef uint32_t _range_starts[BATCH + 1]
    cdef uint32_t _range_ends[BATCH + 1]
    cdef Py_ssize_t _n_ranges

    cdef object _held  # keeps alive what _texts points into
    cdef Text* _texts
    cdef Py_ssize_t _texts_capacity
    cdef object _last  # the text that the example is of: predicting and then learning scans it once
    cdef dict _last_features

    def __init__(
        self, analyzer, token_pattern, lowercase, stop_words, ngram_range, n_features, alternate_sign, binary, norm,
        mask_digits=False, prefix_length=0, boundaries=False,
    ):
        texts = (analyzer, token_pattern, lowercase, stop_words, ngram_range)
        columns = (n_features, alternate_sign, binary, norm)
        self.arguments = (*texts, *columns, mask_digits, prefix_length, boundaries)
        pattern = scanner.TOKEN_PATTERNS.index(token_pattern)
        self._two_characters = pattern == 0
        self._kind_of_token = (SP_WORDS, SP_WORDS, SP_WORDS_AND_MARKS, SP_NONSPACE)[pattern]
        self._char, self._char_wb, self._ngrams = analyzer == "char", analyzer == "char_wb", analyzer == "ngrams"
        self._fold = 0 if self._ngrams else SP_LOWER * bool(lowercase) + SP_MASK_DIGITS * bool(mask_digits)
        self._prefix_length, self._boundaries = prefix_length, boundaries
        self._stop_words = StringSet(stop_words) if stop_words else None
        self._min_n, self._max_n = ngram_range
        self._plain_words = self._max_n == 1 and self._stop_words is None and prefix_length == 0
        self._n_features = n_features
        self._index_mask = n_features - 1 if n_features & (n_features - 1) == 0 else 0
        self._alternate_sign, self._binary = alternate_sign, binary
        self._l1, self._l2 = norm == "l1", norm == "l2"
        self._recent = <uint32_t*> malloc(self._max_n * sizeof(uint32_t))
        if self._recent == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._buffer)
        free(self._joined)
        free(self._recent)
        free(self._offsets)
        free(self._texts)

    def transform_one(self, text):
        cdef Py_ssize_t i
        cdef Hand hand = Hand()
        cdef Row* e = &hand.example
        cdef double length
        wait_for(self._guard, self._guard)
        if text is self._last and self._last_features is not None:
            return self._last_features.copy()
        self._load(text, False)
        hand.copy(&self._example)
        length = self._length
        features = {<int64_t> (e.hashes[i] * INVERSE_MULTIPLIER): e.values[i] / length for i in range(e.n)}
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
                if self._fetch(i) < 0:
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
        encoded += b"\0" * 16
        h = sp_murmur3(<const uint8_t*> PyBytes_AS_STRING(encoded), n)
        return index_of(h, self._n_features, self._index_mask), -1.0 if self._alternate_sign and <int32_t> h < 0 else 1.0

    cdef int _load(self, x, bint learning) except -1:
        if x is self._last and x is not None:
            self._example.n = self._n
            return 1
        self._load_many((x,), learning)
        if self._fetch(0) < 0:
            raise MemoryError
        if self._texts[0].length <= 65536 and type(x) is str:
            self._last = x
        return 1

    cdef int _hand_over(self, Hand hand) except -1:
        return hand.copy(&self._example)  # the same text may come again

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
        self._texts[n].data = NULL
        for i in range(n):
            x = texts[i]
            if not isinstance(x, str):
                scanner.checked_text(x)  # which raises
            text = &self._texts[i]
            text.fold = self._fold
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
            if text.length * (text.kind + 1) > MAX_BYTES:
                raise ValueError(f"text {i} has {text.length:,} characters, which may be more than 2 GiB; split it")
        return n

    cdef int _release(self) except -1:
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

    # Scanning: from characters to distinct indices and counts, and to the example.

    cdef int _fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Text* text = &self._texts[i]
        SP_PREFETCH(text[1].data)  # one past the last text stands a text of no characters
        SP_PREFETCH(<const char*> text[1].data + 64)
        self._reset()
        if text.length == 0:
            pass
        elif self._ngrams or self._char or self._char_wb:
            if self._scan_characters(text) < 0:
                return -1
        elif text.kind:
            if self._scan_unicode(text) < 0:
                return -1
        elif self._scan_ascii(text) < 0:
            return -1
        return self._make_example()

    cdef void _reset(self) noexcept nogil:
        self._n = 0
        self._n_ranges = 0
        self._joined_length = 0
        self._n_tokens = self._newest = 0
        self._edges.n_starts = self._edges.n_ends = 0
        self._edges.in_token = self._edges.after_mark = self._edges.after_word = 0

    cdef int _scan_ascii(self, Text* text) noexcept nogil:
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

    cdef int _scan_unicode(self, Text* text) noexcept nogil:
        cdef Py_ssize_t i = 0, begin = 0, n, whole
        cdef uint32_t c, found
        cdef uint8_t* out
        cdef uint8_t* end
        cdef uint8_t ascii[64]
        cdef sp_classes block
        cdef Py_ssize_t run
        if reserve(<void**> &self._buffer, &self._buffer_capacity, text.length * (text.kind + 1) + PADDING, 1) < 0:
            return -1
        out = self._buffer
        while i < text.length:
            while i < text.length and out - self._buffer - begin < SP_SEGMENT:
                # ASCII inside other text goes through the fast classifier, up to a block at a time.
                run = 0
                while run < 64 and i + run < text.length:
                    c = PyUnicode_READ(text.kind, text.data, i + run)
                    if c >= 0x80:
                        break
                    ascii[run] = c
                    run += 1
                if run > 3:
                    sp_classify(ascii, out, 64, text.fold, &block)
                    n = out - self._buffer - begin
                    add_bits(self._classes.word, n, block.word[0], run)
                    add_bits(self._classes.space, n, block.space[0], run)
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
            # Whole blocks now; what is left over opens the next segment.
            n = out - self._buffer - begin
            while n >= 64 or (n > 0 and i == text.length):
                whole = min(n & ~63 if n >= 64 else n, <Py_ssize_t> SP_SEGMENT)
                sp_find_edges(&self._classes, begin, whole, self._kind_of_token, False, &self._edges)
                carry_classes(&self._classes, (whole + 63) >> 6)
                begin += whole
                n -= whole
            if self._take_tokens(i == text.length, begin, self._two_characters, False) < 0:
                return -1
        return 0

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
        elif self._join_tokens(at_end, two_characters, ascii) < 0:
            return -1
        if edges.n_starts > edges.n_ends:
            edges.starts[0] = edges.starts[edges.n_starts - 1]
        edges.n_starts -= edges.n_ends
        edges.n_ends = 0
        return 0

    cdef int _join_tokens(self, bint at_end, bint two_characters, bint ascii) noexcept nogil:
        """Append the tokens to those of before, a space between, and their n-grams to the ranges."""
        cdef const sp_edges* edges = &self._edges
        cdef const uint8_t* buffer = self._buffer
        cdef Py_ssize_t i, size, n_ends = edges.n_ends, prefix_length = self._prefix_length
        cdef Py_ssize_t n_ranges = self._n_ranges, n_tokens = self._n_tokens, newest = self._newest
        cdef Py_ssize_t min_n = self._min_n, max_n = self._max_n, least, first
        cdef uint32_t* recent = self._recent
        cdef uint32_t* starts = self._range_starts
        cdef uint32_t* ends = self._range_ends
        cdef const uint8_t* token
        cdef uint8_t* joined
        cdef uint32_t n, begin, end = self._joined_length, prefix
        # Every token comes with a space, and so takes at most twice its own length.
        n = end + (2 * (edges.ends[n_ends - 1] - edges.starts[0]) if n_ends else 0) + PADDING
        if reserve(<void**> &self._joined, &self._joined_capacity, n, 1) < 0:
            return -1
        self._source = joined = self._joined
        if end == 0:
            joined[0] = c' '
            end = 1
        for i in range(-1 if self._boundaries and n_tokens == 0 else 0, n_ends + (at_end and self._boundaries)):
            prefix, least = 0, min_n
            if i < 0:
                token, n, least = <const uint8_t*> BEGIN, 3, max_n + 1
            elif i == n_ends:
                if n_tokens == 1:
                    break
                token, n, least = <const uint8_t*> END, 4, max(min_n, 2)
            else:
                token, n = buffer + edges.starts[i], edges.ends[i] - edges.starts[i]
                if two_characters and n <= utf8_length(token[0]):
                    continue
                if self._stop_words is not None and self._stop_words._contains(token, n):
                    continue
                if prefix_length:
                    prefix = prefix_length if ascii else first_bytes(token, n, prefix_length)
            begin = end
            end += n
            # Behind both buffers is room for 16 bytes to be copied where fewer are meant.
            if n <= 16:
                memcpy(joined + begin, token, 16)
            else:
                memcpy(joined + begin, token, n)
            joined[end] = c' '
            newest = newest + 1 if newest + 1 < max_n else 0
            recent[newest] = begin
            n_tokens += 1
            for size in range(least, min(max_n, n_tokens) + 1):
                first = newest - size + 1
                starts[n_ranges] = recent[first if first >= 0 else first + max_n]
                ends[n_ranges] = end
                n_ranges += 1
            # A prefix stands behind the space before the token, to tell it from one.
            starts[n_ranges], ends[n_ranges] = begin - 1, begin + prefix
            n_ranges += 0 < prefix < n
            end += 1
            if n_ranges + max_n >= BATCH:
                self._n_ranges = n_ranges
                if self._count_ranges() < 0:
                    return -1
                n_ranges = 0
        self._joined_length, self._n_tokens, self._newest, self._n_ranges = end, n_tokens, newest, n_ranges
        return self._count_ranges() if at_end else 0

    cdef inline int _add_range(self, uint32_t start, uint32_t end) noexcept nogil:
        self._range_starts[self._n_ranges] = start
        self._range_ends[self._n_ranges] = end
        self._n_ranges += 1
        return self._count_ranges() if self._n_ranges == BATCH else 0

    cdef int _count_ranges(self) noexcept nogil:
        cdef Py_ssize_t n = self._n_ranges
        self._n_ranges = 0
        return self._count(self._range_starts, self._range_ends, n)

    cdef int _scan_characters(self, Text* text) noexcept nogil:
        """N-grams of characters, or n-grams that come ready-made, by the place where each character begins."""
        cdef Py_ssize_t n = self._write_characters(text), i, j, size, end
        if n < 0:
            return -1
        self._source = self._buffer
        if self._ngrams:
            i = 0
            while i < n:
                size = 0
                while self._buffer[self._offsets[i]] != c' ':
                    size = 16 * size + hex_digit(self._buffer[self._offsets[i]])
                    i += 1
                i += 1
                if self._add_range(self._offsets[i], self._offsets[i + size]) < 0:
                    return -1
                i += size
        elif self._char:
            for size in range(self._min_n, min(self._max_n, n) + 1):
                for i in range(n - size + 1):
                    if self._add_range(self._offsets[i], self._offsets[i + size]) < 0:
                        return -1
        else:
            i = 0
            while i < n:  # each word stands between two spaces of its own
                end = i + 1
                while self._buffer[self._offsets[end]] != c' ':
                    end += 1
                end += 1
                for size in range(self._min_n, self._max_n + 1):
                    if size >= end - i:
                        if self._add_range(self._offsets[i], self._offsets[end]) < 0:
                            return -1
                        break
                    for j in range(i, end - size + 1):
                        if self._add_range(self._offsets[j], self._offsets[j + size]) < 0:
                            return -1
                i = end
        return self._count_ranges()

    cdef Py_ssize_t _write_characters(self, Text* text) noexcept nogil:
        """Write the text, its white space as the analyzer wants it, with the offset of each character and of the end."""
        cdef int kind = max(text.kind, 1)
        cdef Py_ssize_t i, n = 0, room = 2 * text.length + 2 if self._char_wb else text.length + 1
        cdef uint32_t c
        cdef bint space, after_space = True
        cdef uint8_t* out
        if reserve(<void**> &self._buffer, &self._buffer_capacity, room * (kind + 1) + PADDING, 1) < 0:
            return -1
        if reserve(<void**> &self._offsets, &self._offsets_capacity, room + 1, sizeof(uint32_t)) < 0:
            return -1
        out = self._buffer
        for i in range(text.length):
            c = PyUnicode_READ(kind, text.data, i)
            space = Py_UNICODE_ISSPACE(c)
            if self._char_wb:
                if space != after_space:  # a word begins or ends here
                    self._offsets[n] = out - self._buffer
                    n += 1
                    out = put_utf8(out, c' ')
                after_space = space
                if space:
                    continue
            elif self._char and space:
                if i and Py_UNICODE_ISSPACE(PyUnicode_READ(kind, text.data, i - 1)):
                    continue
                if i + 1 < text.length and Py_UNICODE_ISSPACE(PyUnicode_READ(kind, text.data, i + 1)):
                    c = c' '
            self._offsets[n] = out - self._buffer
            n += 1
            out = put_utf8(out, folded(c, text.fold))
        if self._char_wb and not after_space:
            self._offsets[n] = out - self._buffer
            n += 1
            out = put_utf8(out, c' ')
        self._offsets[n] = out - self._buffer
        return n

    cdef int _make_example(self) noexcept nogil:
        """Turn counts into the example, and leave the tables empty for the next text."""
        cdef Row* e = &self._example
        cdef Py_ssize_t i, n = self._n
        cdef double count, squares = 0.0, sizes = 0.0
        if self._reserve(n) < 0:
            return -1
        for i in range(n):
            count = 1.0 if self._binary else self._counts[i]
            squares += count * count
            sizes += fabs(count)
            e.hashes[i] = hash_key(self._indices[i])
            e.values[i] = count
        if n:
            memset(self._counts, 0, n * sizeof(int32_t))
        self._clear_positions()
        self._positions_mask, self._scattered = FEWEST_POSITIONS - 1, False
        self._length = sqrt(squares) if self._l2 else sizes if self._l1 else 1.0
        if self._length == 0.0:
            self._length = 1.0
        e.n, e.factor = n, 1.0 / self._length
        return 0



