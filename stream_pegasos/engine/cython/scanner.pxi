# What a character is, for the characters up to U+FFFF, filled in as they are met: its lower case in the low 16 bits.
cdef uint32_t CHARACTERS[65536]
cdef uint32_t KNOWN = 1 << 31
cdef uint32_t IS_WORD = 1 << 30
cdef uint32_t IS_SPACE = 1 << 29
cdef uint32_t IS_DIGIT = 1 << 28


cdef inline uint32_t look_up(uint32_t c) noexcept nogil:
    cdef uint32_t found = CHARACTERS[c]
    if not found:
        found = KNOWN | Py_UNICODE_TOLOWER(c)
        if Py_UNICODE_ISALNUM(c) or c == c'_':
            found |= IS_WORD
        if Py_UNICODE_ISSPACE(c):
            found |= IS_SPACE
        if Py_UNICODE_ISDECIMAL(c):
            found |= IS_DIGIT
        CHARACTERS[c] = found
    return found


cdef inline uint32_t folded(uint32_t c, int fold) noexcept nogil:
    """A character in lower case, and every digit as 0, if asked for."""
    cdef uint32_t found
    if c < 0x10000:
        found = look_up(c)
        if found & IS_DIGIT and fold & SP_MASK_DIGITS:
            return c'0'
        return found & 0xFFFF if fold & SP_LOWER else c
    if fold & SP_MASK_DIGITS and Py_UNICODE_ISDECIMAL(c):
        return c'0'
    return Py_UNICODE_TOLOWER(c) if fold & SP_LOWER else c


cdef bint lowers_irregularly(text):
    """Whether str.lower does more than to exchange letters one by one: it looks around Σ, and makes two of İ."""
    return "\u03a3" in text or "\u0130" in text


cdef inline uint8_t* put_utf8(uint8_t* out, uint32_t c) noexcept nogil:
    """Write one character, a lone surrogate as any other, and give back the end."""
    if c < 0x80:
        out[0] = c
        return out + 1
    if c < 0x800:
        out[0] = 0xC0 | c >> 6
        out[1] = 0x80 | c & 0x3F
        return out + 2
    if c < 0x10000:
        out[0] = 0xE0 | c >> 12
        out[1] = 0x80 | c >> 6 & 0x3F
        out[2] = 0x80 | c & 0x3F
        return out + 3
    out[0] = 0xF0 | c >> 18
    out[1] = 0x80 | c >> 12 & 0x3F
    out[2] = 0x80 | c >> 6 & 0x3F
    out[3] = 0x80 | c & 0x3F
    return out + 4


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


cdef inline bint is_ascii_word(uint8_t c) noexcept nogil:
    return c'a' <= (c | 0x20) <= c'z' or c'0' <= c <= c'9' or c == c'_'


cdef inline uint32_t utf8_length(uint8_t first) noexcept nogil:
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


cdef const char* BEGIN = "<s>             "  # with room to be read as 16 bytes
cdef const char* END = "</s>            "


cdef inline uint32_t first_bytes(const uint8_t* token, uint32_t n, Py_ssize_t n_characters) noexcept nogil:
    """How many bytes of UTF-8 that many characters have; n if there are no more."""
    cdef uint32_t length = 0
    while n_characters > 0 and length < n:
        length += utf8_length(token[length])
        n_characters -= 1
    return length


cdef struct Text:
    const void* data
    Py_ssize_t length
    int kind  # bytes a character, 0 for ASCII
    int fold


cdef inline uint32_t bits_of(uint32_t index, bint scattered) noexcept nogil:
    """What the place of an index is taken from: if scattered nobody who does not know the secret can choose neighbours."""
    return <uint32_t> (index * SECRET >> 32) if scattered else index


cdef enum:
    PADDING = 64     # bytes that may be read after the end of a buffer
    BATCH = 1024     # n-grams hashed at a time
    FEWEST_POSITIONS = 16
    CROWDED = 32     # slots that are looked at in vain for an n-gram; chance makes it less than one
    MAX_BYTES = 0x7FFFFF00


@cython.final
cdef class StringSet:
    """A set of strings, asked for by their UTF-8 bytes."""

    cdef uint32_t* _slots  # 1 + number of the member, 0 where empty
    cdef uint32_t _mask
    cdef list _encoded
    cdef const char** _bytes
    cdef Py_ssize_t* _lengths

    def __init__(self, members):
        cdef Py_ssize_t i, n
        cdef uint32_t slot
        self._encoded = [member.encode("utf-8", "surrogatepass") + b"\0" * 16 for member in members]
        n = len(self._encoded)
        self._mask = (1 << (2 * n + 1).bit_length()) - 1
        self._slots = <uint32_t*> malloc((self._mask + 1) * sizeof(uint32_t))
        self._bytes = <const char**> malloc((n + 1) * sizeof(char*))
        self._lengths = <Py_ssize_t*> malloc((n + 1) * sizeof(Py_ssize_t))
        if not self._slots or not self._bytes or not self._lengths:
            raise MemoryError
        memset(self._slots, 0, (self._mask + 1) * sizeof(uint32_t))
        for i in range(n):
            encoded = self._encoded[i]
            self._bytes[i] = PyBytes_AS_STRING(encoded)
            self._lengths[i] = PyBytes_GET_SIZE(encoded) - 16
            slot = sp_murmur3(<const uint8_t*> self._bytes[i], self._lengths[i]) & self._mask
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
            self._slots[slot] = i + 1

    def __dealloc__(self):
        free(self._slots)
        free(self._bytes)
        free(self._lengths)

    cdef bint _contains(self, const uint8_t* word, uint32_t n) noexcept nogil:
        cdef uint32_t slot = sp_murmur3(word, n) & self._mask, i
        while self._slots[slot]:
            i = self._slots[slot] - 1
            if self._lengths[i] == n and memcmp(self._bytes[i], word, n) == 0:
                return True
            slot = (slot + 1) & self._mask
        return False


@cython.final
cdef class Scanner(Encoder):
    cdef readonly tuple arguments
    cdef bint _alternate_sign, _binary, _l1, _l2, _two_characters, _plain_words, _boundaries
    cdef int _kind_of_token, _fold
    cdef bint _char, _char_wb, _ngrams
    cdef Py_ssize_t _min_n, _max_n, _prefix_length
    cdef uint32_t _n_features, _index_mask  # the mask is 0 where n_features is no power of two
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

    # N-grams waiting to be hashed, as ranges of _source.
    cdef const uint8_t* _source
    cdef uint32_t _range_starts[BATCH + 1]
    cdef uint32_t _range_ends[BATCH + 1]
    cdef Py_ssize_t _n_ranges

    # The distinct indices of this text, with their counts, and a table from index to position among them.
    cdef uint32_t* _indices
    cdef Py_ssize_t _indices_capacity
    cdef int32_t* _counts
    cdef Py_ssize_t _counts_capacity
    cdef Py_ssize_t _n
    cdef double _length  # the norm that the counts are divided by
    cdef uint64_t* _positions  # (index + 1) << 32 | position, 0 where empty; if binary 32 bits with index + 1 alone
    cdef uint32_t _positions_mask  # of the part in use, as small as the text allows; all is empty between texts
    cdef Py_ssize_t _positions_capacity
    cdef bint _scattered  # whether the words of this text were chosen to crowd there

    cdef object _held  # keeps alive what _texts points into
    cdef Text* _texts
    cdef Py_ssize_t _texts_capacity
    cdef object _last  # the text that the example is of: predicting and then learning scans it once
    cdef dict _last_features

    def __cinit__(self):
        self._reserve_fewest_positions()

    def __init__(
        self,
        analyzer,
        token_pattern,
        lowercase,
        stop_words,
        ngram_range,
        n_features,
        alternate_sign,
        binary,
        norm,
        mask_digits=False,
        prefix_length=0,
        boundaries=False,
    ):
        self.arguments = (
            analyzer,
            token_pattern,
            lowercase,
            stop_words,
            ngram_range,
            n_features,
            alternate_sign,
            binary,
            norm,
            mask_digits,
            prefix_length,
            boundaries,
        )
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
        free(self._indices)
        free(self._counts)
        free(self._positions)
        free(self._texts)

    def transform_one(self, text):
        cdef Py_ssize_t i
        cdef Hand hand = Hand()
        cdef Example* e = &hand.example
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
        return self._index(h), -1.0 if self._alternate_sign and <int32_t> h < 0 else 1.0

    cdef inline uint32_t _index(self, uint32_t h) noexcept nogil:
        cdef uint32_t size = 0 - h if <int32_t> h < 0 else h
        return size & self._index_mask if self._index_mask or self._n_features == 1 else size % self._n_features

    # Loading: check the texts and remember where their characters are.

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

    cdef int _reserve_fewest_positions(self) except -1:
        if reserve(<void**> &self._positions, &self._positions_capacity, FEWEST_POSITIONS, sizeof(uint64_t)) < 0:
            raise MemoryError
        self._positions_mask = FEWEST_POSITIONS - 1
        memset(self._positions, 0, self._positions_capacity * sizeof(uint64_t))
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

    cdef int _count(self, const uint32_t* starts, const uint32_t* ends, Py_ssize_t n) noexcept nogil:
        """Hash ranges of _source and count their indices."""
        cdef uint32_t hashes[BATCH]
        cdef Py_ssize_t begin = 0, i, size
        cdef uint32_t index, slot, position, tag, mask, n_distinct, alternate = self._alternate_sign
        cdef uint32_t* indices
        cdef int32_t* counts
        cdef uint64_t* positions
        cdef uint64_t entry
        cdef Py_ssize_t n_steps
        cdef bint scattered
        while begin < n:
            size = min(n - begin, <Py_ssize_t> BATCH)
            sp_hash(self._source, starts + begin, ends + begin, size, hashes)
            if self._reserve_positions(size) < 0:
                return -1
            if self._binary:
                self._mark(hashes, size)
                begin += size
                continue
            indices, counts, positions, mask = self._indices, self._counts, self._positions, self._positions_mask
            n_distinct, scattered, n_steps = self._n, self._scattered, 0
            for i in range(size):
                index = self._index(hashes[i])
                tag = index + 1
                slot = bits_of(index, scattered) & mask
                entry = positions[slot]
                while (entry != 0) & (entry >> 32 != tag):
                    n_steps += 1
                    slot = (slot + 1) & mask
                    entry = positions[slot]
                # Whether the index is new is hard to predict, so nothing branches on it.
                position = <uint32_t> entry | (n_distinct & (0 - <uint32_t> (entry == 0)))
                positions[slot] = <uint64_t> tag << 32 | position
                indices[position] = index
                counts[position] += 1 - 2 * <int32_t> (alternate & (hashes[i] >> 31))
                n_distinct += entry == 0
            self._n = n_distinct
            begin += size
            if n_steps > CROWDED * BATCH and not scattered:
                self._scatter()
        return 0

    cdef void _mark(self, const uint32_t* hashes, Py_ssize_t n) noexcept nogil:
        """Take in the indices of hashes that are not there yet, where nobody asks how often they are."""
        cdef uint32_t* indices = self._indices
        cdef uint32_t* taken = <uint32_t*> self._positions
        cdef uint32_t mask = self._positions_mask, n_distinct = self._n, index, slot
        cdef Py_ssize_t n_steps = 0, i
        cdef bint scattered = self._scattered
        for i in range(n):
            index = self._index(hashes[i])
            slot = bits_of(index, scattered) & mask
            # While neither empty nor this index: a product, since which of the two it is is hard to predict.
            while <uint64_t> taken[slot] * (taken[slot] ^ (index + 1)):
                n_steps += 1
                slot = (slot + 1) & mask
            indices[n_distinct] = index
            n_distinct += taken[slot] == 0
            taken[slot] = index + 1
        self._n = n_distinct
        if n_steps > CROWDED * BATCH and not scattered:
            self._scatter()

    cdef int _reserve_positions(self, Py_ssize_t more) noexcept nogil:
        """Room for `more` distinct indices, with at least four positions for each."""
        cdef Py_ssize_t needed = self._n + more + 1, size = self._positions_mask + 1, before
        if needed > self._counts_capacity:
            before = self._counts_capacity
            if (
                reserve(<void**> &self._indices, &self._indices_capacity, needed, sizeof(uint32_t)) < 0
                or reserve(<void**> &self._counts, &self._counts_capacity, needed, sizeof(int32_t)) < 0
            ):
                return -1
            memset(self._counts + before, 0, (self._counts_capacity - before) * sizeof(int32_t))
        if needed * 4 > size:
            self._clear_positions()
            while size < needed * 4:
                size *= 2
            before = self._positions_capacity
            if reserve(<void**> &self._positions, &self._positions_capacity, size, sizeof(uint64_t)) < 0:
                return -1
            memset(self._positions + before, 0, (self._positions_capacity - before) * sizeof(uint64_t))
            self._positions_mask = <uint32_t> (size - 1)
            self._fill_positions()
        return 0

    cdef void _fill_positions(self) noexcept nogil:
        cdef Py_ssize_t i
        cdef uint32_t slot
        for i in range(self._n):
            slot = bits_of(self._indices[i], self._scattered) & self._positions_mask
            if self._binary:
                while (<uint32_t*> self._positions)[slot]:
                    slot = (slot + 1) & self._positions_mask
                (<uint32_t*> self._positions)[slot] = self._indices[i] + 1
                continue
            while self._positions[slot]:
                slot = (slot + 1) & self._positions_mask
            self._positions[slot] = <uint64_t> (self._indices[i] + 1) << 32 | <uint64_t> i

    cdef void _scatter(self) noexcept nogil:
        self._clear_positions()
        self._scattered = True
        self._fill_positions()

    cdef void _clear_positions(self) noexcept nogil:
        cdef size_t n = <size_t> self._positions_mask + 1
        memset(self._positions, 0, n * sizeof(uint32_t) if self._binary else n * sizeof(uint64_t))

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
        cdef Example* e = &self._example
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


cdef inline Py_ssize_t hex_digit(uint8_t c) noexcept nogil:
    return c - c'0' if c <= c'9' else c - c'a' + 10
