# From tokens to n-grams: words, marks and runs are joined with one space between, and n-grams are ranges of that.
cdef const char* BEGIN = "<s>             "  # with room to be read as 16 bytes
cdef const char* END = "</s>            "

cdef enum:
    PADDING = 64     # bytes that may be read after the end of a buffer
    FIRST_OF_RUNS = 0xE0  # runs and Hangul begin with this byte or a later one
    LONGEST_RUN = 16  # characters, of one that counts as a whole and is a word to its neighbours


cdef class Ngrams(Bag):
    """The n-grams of the tokens of a text."""

    cdef Py_ssize_t _min_n, _max_n, _prefix_length
    cdef bint _boundaries
    cdef bint _any_language  # whether tokens may be runs
    cdef StringSet _stop_words

    # The text as lower-cased UTF-8, where its tokens lie in it, and these with one space between.
    cdef uint8_t* _buffer
    cdef Py_ssize_t _buffer_capacity
    cdef sp_edges _edges
    cdef uint8_t* _joined
    cdef Py_ssize_t _joined_capacity, _joined_length
    cdef uint32_t* _recent  # where in _joined the newest max_n tokens begin, the last of them at _newest
    cdef Py_ssize_t _n_tokens, _newest
    cdef Py_ssize_t _n_in_line  # tokens since the last run that is longer than words are
    cdef uint32_t _last_character  # of a run that is the last token, where it begins; 0 if it is none

    # N-grams waiting to be hashed, as ranges of `_source`.
    cdef uint32_t _range_starts[BATCH + 1]
    cdef uint32_t _range_ends[BATCH + 1]
    cdef Py_ssize_t _n_ranges

    def __dealloc__(self):
        free(self._buffer)
        free(self._joined)
        free(self._recent)

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
        cdef Py_ssize_t n_in_line = self._n_in_line
        cdef bint may_be_runs = self._any_language and not ascii
        cdef const uint8_t* token
        cdef uint8_t* joined
        cdef uint32_t n, begin, end = self._joined_length, prefix
        cdef Py_ssize_t n_characters
        cdef int kind
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
                if self._is_left_out(token, n, two_characters):
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
            n_tokens += 1
            if may_be_runs:
                kind = class_of(read_utf8(token)) if token[0] >= FIRST_OF_RUNS else WORD
                self._n_ranges = n_ranges
                if i == n_ends and self._last_character and max_n > 1 and self._add_range(self._last_character, end) < 0:
                    return -1
                n_characters = 0
                if kind == SYLLABLE or kind == CHARACTER:
                    n_characters = self._add_run(begin, end, kind == CHARACTER, n_tokens)
                    if n_characters < 0:
                        return -1
                if self._n_ranges + max_n >= BATCH and self._count_ranges() < 0:
                    return -1
                n_ranges = self._n_ranges
                if kind == CHARACTER:
                    if n_characters > LONGEST_RUN:
                        n_in_line = 0
                        end += 1
                        continue
                    prefix, least = 0, max(min_n, 2)
                else:
                    self._last_character = 0
            newest = newest + 1 if newest + 1 < max_n else 0
            recent[newest] = begin
            n_in_line += 1
            for size in range(least, min(max_n, n_in_line) + 1):
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
        self._n_in_line = n_in_line
        return self._count_ranges() if at_end else 0

    cdef inline bint _is_left_out(self, const uint8_t* token, Py_ssize_t n, bint two_characters) noexcept nogil:
        if two_characters and n <= utf8_length(token[0]):
            return True
        return self._stop_words is not None and self._stop_words._contains(token, n)

    cdef Py_ssize_t _add_run(self, uint32_t begin, uint32_t end, bint alone, Py_ssize_t n_tokens) noexcept nogil:
        """The n-grams of the characters of a run, or of a word of Hangul, which is not alone; how many characters it has."""
        cdef const uint8_t* joined = self._joined
        cdef Py_ssize_t n = 0, rest, prefix_length = self._prefix_length
        cdef uint32_t before = begin - 1, last = begin - 1, at = begin, after, first_end = 0, prefix_end = 0
        while at < end:
            after = end_of_character(joined, at, end)
            if self._add_range(at, after) < 0 or self._add_range(last, after) < 0:
                return -1
            if n > 0 and self._add_range(before, after) < 0:
                return -1
            before, last, at = last, at, after
            n += 1
            if n == 1:
                first_end = after
            if n == prefix_length:
                prefix_end = after
        if self._add_range(last, end + 1) < 0 or self._add_range(before, end + 1) < 0:
            return -1
        if not alone:
            return n
        self._last_character = last
        if self._boundaries and n_tokens == 2 and self._max_n > 1 and self._add_range(1, first_end) < 0:
            return -1
        if 1 < n <= LONGEST_RUN and self._add_range(begin - 1, end + 1) < 0:
            return -1
        if 0 < prefix_length < n:
            at, rest = begin, n
            while rest > prefix_length:
                at = end_of_character(joined, at, end)
                rest -= 1
            if self._add_range(begin - 1, prefix_end) < 0 or self._add_range(at, end + 1) < 0:
                return -1
        return n

    cdef inline int _add_range(self, uint32_t start, uint32_t end) noexcept nogil:
        self._range_starts[self._n_ranges] = start
        self._range_ends[self._n_ranges] = end
        self._n_ranges += 1
        return self._count_ranges() if self._n_ranges == BATCH else 0

    cdef int _count_ranges(self) noexcept nogil:
        cdef Py_ssize_t n = self._n_ranges
        self._n_ranges = 0
        return self._count(self._range_starts, self._range_ends, n)

