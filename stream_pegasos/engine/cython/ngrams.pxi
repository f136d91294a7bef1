# From tokens to n-grams as scikit-learn hashes them: tokens are joined with one space between, and n-grams are ranges
# of that.
cdef const char* BEGIN = "<s>             "  # with room to be read as 16 bytes
cdef const char* END = "</s>            "

cdef enum:
    PADDING = 64     # bytes that may be read after the end of a buffer


cdef class Ngrams(Bag):
    """The n-grams of the tokens of a text."""

    cdef Py_ssize_t _min_n, _max_n, _prefix_length
    cdef bint _boundaries
    cdef StringSet _stop_words

    # The text as lower-cased UTF-8, where its tokens lie in it, and these with one space between.
    cdef uint8_t* _buffer
    cdef Py_ssize_t _buffer_capacity
    cdef sp_edges _edges
    cdef uint8_t* _joined
    cdef Py_ssize_t _joined_capacity, _joined_length
    cdef uint32_t* _recent  # where in _joined the newest max_n tokens begin, the last of them at _newest
    cdef Py_ssize_t _n_tokens, _newest

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
            newest = newest + 1 if newest + 1 < max_n else 0
            recent[newest] = begin
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

    cdef inline bint _is_left_out(self, const uint8_t* token, Py_ssize_t n, bint two_characters) noexcept nogil:
        if two_characters and n <= utf8_length(token[0]):
            return True
        return self._stop_words is not None and self._stop_words._contains(token, n)

    cdef inline int _add_range(self, uint32_t start, uint32_t end) noexcept nogil:
        self._range_starts[self._n_ranges] = start
        self._range_ends[self._n_ranges] = end
        self._n_ranges += 1
        return self._count_ranges() if self._n_ranges == BATCH else 0

    cdef int _count_ranges(self) noexcept nogil:
        cdef Py_ssize_t n = self._n_ranges
        self._n_ranges = 0
        return self._count(self._range_starts, self._range_ends, n)

