# N-grams of characters, and those that come ready-made.

cdef struct Text:
    const void* data
    Py_ssize_t length
    int kind  # bytes a character, 0 for ASCII
    int fold


cdef class CharacterNgrams(HashedNgrams):
    cdef bint _char, _char_wb, _ngrams
    cdef uint32_t* _offsets  # where each character begins
    cdef Py_ssize_t _offsets_capacity

    def __dealloc__(self):
        free(self._offsets)

    cdef int _scan_characters(self, const Text* text) noexcept nogil:
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

    cdef Py_ssize_t _write_characters(self, const Text* text) noexcept nogil:
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
