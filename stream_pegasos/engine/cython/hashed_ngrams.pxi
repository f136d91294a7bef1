# N-grams by the hashes of their words, without joining these; see `words_32` in pure/scanner.py.

cdef enum:
    FIRST_OF_RUNS = 0xE0  # runs and Hangul begin with this byte or a later one
    LONGEST_RUN = 16  # characters, of one that counts as a whole and is a word to its neighbours

cdef uint64_t HASH_OF_NOTHING = sp_hash_word(<const uint8_t*> BEGIN, 0)
cdef uint64_t HASH_OF_BEGIN = sp_hash_word(<const uint8_t*> BEGIN, 3)
cdef uint64_t HASH_OF_END = sp_hash_word(<const uint8_t*> END, 4)


cdef inline uint64_t after_space(const uint8_t* word, Py_ssize_t n) noexcept nogil:
    """The hash of a space and a word."""
    return HASH_OF_NOTHING * SP_OF_NEXT + sp_hash_word(word, n)


cdef inline uint64_t before_space(uint64_t h) noexcept nogil:
    """The hash of an n-gram and a space, given that of the n-gram."""
    return h * SP_OF_NEXT + HASH_OF_NOTHING


cdef class HashedNgrams(Ngrams):
    cdef bint _any_language  # whether tokens may be runs
    cdef Py_ssize_t _n_in_line  # tokens since the last run that is longer than words are
    cdef uint64_t* _hashes_of_size  # of the newest n-grams, by their n less one
    cdef uint64_t _hash_of_last  # of the last character of a run that is the last token
    cdef bint _ends_in_run
    cdef uint32_t _hashes[BATCH]  # that wait to be counted
    cdef Py_ssize_t _n_hashes

    def __dealloc__(self):
        free(self._hashes_of_size)

    cdef int _hash_tokens(self, bint at_end, bint two_characters, bint ascii) noexcept nogil:
        """Count the n-grams that end with these tokens."""
        cdef const sp_edges* edges = &self._edges
        cdef Py_ssize_t i, last, size, n, n_characters, n_ends = edges.n_ends, n_hashes = self._n_hashes
        cdef Py_ssize_t min_n = self._min_n, max_n = self._max_n, least, prefix, n_tokens = self._n_tokens
        cdef Py_ssize_t n_in_line = self._n_in_line, room = BATCH - self._max_n - 1
        cdef bint may_be_runs = self._any_language and not ascii, filtered = two_characters or self._stop_words is not None
        cdef uint64_t* hashes_of_size = self._hashes_of_size
        cdef uint32_t* hashes = self._hashes
        cdef uint32_t* out
        cdef bint usual = min_n == 1 and max_n == 2 and self._prefix_length <= 8 and not filtered
        cdef const uint8_t* token
        cdef uint64_t h
        cdef int kind
        if n_tokens == 0:
            self._ends_in_run = False
        i, last = -1 if self._boundaries and n_tokens == 0 else 0, n_ends + (at_end and self._boundaries)
        while i < last:
            if usual and 0 <= i < n_ends and n_in_line > 0:
                out, size = hashes + n_hashes, min(n_ends - i, (room - n_hashes) // 3)
                n = sp_hash_pairs(
                    self._buffer, edges.starts + i, edges.ends + i, size, self._prefix_length,
                    FIRST_OF_RUNS if may_be_runs else 256, hashes_of_size, &out,
                )
                i, n_tokens, n_in_line, n_hashes = i + n, n_tokens + n, n_in_line + n, out - hashes
                self._ends_in_run = self._ends_in_run and n == 0
                if n == size and i < n_ends:
                    if self._count_hashes(hashes, n_hashes) < 0:
                        return -1
                    n_hashes = 0
                    continue
                if i == last:
                    break
            prefix, least = 0, min_n
            if i < 0:
                token, n, h, least = <const uint8_t*> BEGIN, 3, HASH_OF_BEGIN, max_n + 1
            elif i == n_ends:
                if n_tokens == 1:
                    break
                token, n, h, least = <const uint8_t*> END, 4, HASH_OF_END, max(min_n, <Py_ssize_t> 2)
            else:
                token, n = self._buffer + edges.starts[i], edges.ends[i] - edges.starts[i]
                if filtered and self._is_left_out(token, n, two_characters):
                    i += 1
                    continue
                h = sp_hash_word(token, n)
                if self._prefix_length:
                    # No longer than the token: it is hashed before it is known to be counted.
                    prefix = min(self._prefix_length, n) if ascii else first_bytes(token, n, self._prefix_length)
            n_tokens += 1
            if may_be_runs:
                self._n_hashes = n_hashes
                kind = class_of(read_utf8(token)) if token[0] >= FIRST_OF_RUNS else WORD
                if i == n_ends and self._ends_in_run and max_n > 1:
                    if self._add_hash(self._hash_of_last * SP_OF_NEXT + HASH_OF_END) < 0:
                        return -1
                if kind == SYLLABLE or kind == CHARACTER:
                    n_characters = self._hash_run(token, n, h, kind == CHARACTER, n_tokens)
                    if n_characters < 0 or self._n_hashes >= room and self._count_last() < 0:
                        return -1
                n_hashes = self._n_hashes
                self._ends_in_run = kind == CHARACTER
                if kind == CHARACTER:
                    if n_characters > LONGEST_RUN:
                        n_in_line = 0
                        i += 1
                        continue
                    prefix, least = 0, max(min_n, <Py_ssize_t> 2)
            n_in_line += 1
            for size in range(min(max_n, n_in_line), 1, -1):
                hashes_of_size[size - 1] = hashes_of_size[size - 2] * SP_OF_NEXT + h
            hashes_of_size[0] = h
            for size in range(least, min(max_n, n_in_line) + 1):
                hashes[n_hashes] = hashes_of_size[size - 1] >> 32
                n_hashes += 1
            hashes[n_hashes] = after_space(token, prefix) >> 32
            n_hashes += 0 < prefix < n
            if n_hashes >= room:
                if self._count_hashes(hashes, n_hashes) < 0:
                    return -1
                n_hashes = 0
            i += 1
        self._n_tokens, self._n_hashes, self._n_in_line = n_tokens, n_hashes, n_in_line
        return self._count_last() if at_end else 0

    cdef Py_ssize_t _hash_run(
        self, const uint8_t* run, Py_ssize_t n_bytes, uint64_t h, bint alone, Py_ssize_t n_tokens
    ) noexcept nogil:
        """The n-grams of the characters of a run, or of a word of Hangul, which is not alone; how many characters it has."""
        cdef Py_ssize_t n = 0, rest, prefix_length = self._prefix_length
        cdef uint32_t before = 0, last = 0, at = 0, after, prefix_end = 0
        cdef uint64_t of_last = 0, of_last_two = 0, of_last_three
        while at < n_bytes:
            after = end_of_character(run, at, n_bytes)
            of_last = sp_hash_word(run + at, after - at)
            if n == 0:
                of_last_two = after_space(run, after)
                if alone and self._boundaries and n_tokens == 2 and self._max_n > 1:
                    if self._add_hash(HASH_OF_BEGIN * SP_OF_NEXT + of_last) < 0:
                        return -1
            else:
                of_last_two = sp_hash_word(run + last, after - last)
                of_last_three = after_space(run, after) if n == 1 else sp_hash_word(run + before, after - before)
                if self._add_hash(of_last_three) < 0:
                    return -1
            if self._add_hash(of_last) < 0 or self._add_hash(of_last_two) < 0:
                return -1
            before, last, at = last, at, after
            n += 1
            if n == prefix_length:
                prefix_end = after
        if self._add_hash(before_space(of_last)) < 0 or self._add_hash(before_space(of_last_two)) < 0:
            return -1
        if not alone:
            return n
        self._hash_of_last = of_last
        if 1 < n <= LONGEST_RUN and self._add_hash(before_space(HASH_OF_NOTHING * SP_OF_NEXT + h)) < 0:
            return -1
        if 0 < prefix_length < n:
            at, rest = 0, n
            while rest > prefix_length:
                at = end_of_character(run, at, n_bytes)
                rest -= 1
            if self._add_hash(after_space(run, prefix_end)) < 0:
                return -1
            if self._add_hash(before_space(sp_hash_word(run + at, n_bytes - at))) < 0:
                return -1
        return n

    cdef inline int _add_hash(self, uint64_t h) noexcept nogil:
        self._hashes[self._n_hashes] = h >> 32
        self._n_hashes += 1
        return self._count_last() if self._n_hashes == BATCH else 0

    cdef int _count_last(self) noexcept nogil:
        cdef Py_ssize_t n = self._n_hashes
        self._n_hashes = 0
        return self._count_hashes(self._hashes, n)
