cdef enum:
    BATCH = 1024     # n-grams hashed at a time
    FEWEST_POSITIONS = 16
    CROWDED = 32     # slots that are looked at in vain for an n-gram; chance makes it less than one


cdef inline uint32_t bits_of(uint32_t index, bint scattered) noexcept nogil:
    """What the place of an index is taken from: if scattered nobody who does not know the secret can choose neighbours."""
    return <uint32_t> (index * SECRET >> 32) if scattered else index


cdef inline uint32_t index_of(uint32_t h, uint32_t n_features, uint32_t mask) noexcept nogil:
    """The column of a hash; the mask is 0 where the number of columns is no power of two."""
    cdef uint32_t size = 0 - h if <int32_t> h < 0 else h
    return size & mask if mask or n_features == 1 else size % n_features


cdef class Bag(Encoder):
    """The n-grams of a text, counted by the column that they are hashed to."""

    cdef bint _alternate_sign, _binary
    cdef bint _by_words  # whether an n-gram is hashed by its words
    cdef uint32_t _n_features, _index_mask
    cdef const uint8_t* _source  # what the n-grams are ranges of
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

    def __cinit__(self):
        self._reserve_fewest_positions()

    def __dealloc__(self):
        free(self._indices)
        free(self._counts)
        free(self._positions)

    @cython.final
    cdef int _reserve_fewest_positions(self) except -1:
        if reserve(<void**> &self._positions, &self._positions_capacity, FEWEST_POSITIONS, sizeof(uint64_t)) < 0:
            raise MemoryError
        self._positions_mask = FEWEST_POSITIONS - 1
        memset(self._positions, 0, self._positions_capacity * sizeof(uint64_t))
        return 0

    @cython.final
    cdef int _count(self, const uint32_t* starts, const uint32_t* ends, Py_ssize_t n) noexcept nogil:
        """Hash ranges of _source and count their indices."""
        cdef uint32_t hashes[BATCH]
        cdef Py_ssize_t begin = 0, i, size
        while begin < n:
            size = min(n - begin, <Py_ssize_t> BATCH)
            if self._by_words:
                for i in range(size):
                    hashes[i] = sp_hash_words(self._source + starts[begin + i], ends[begin + i] - starts[begin + i])
            else:
                sp_hash(self._source, starts + begin, ends + begin, size, hashes)
            if self._count_hashes(hashes, size) < 0:
                return -1
            begin += size
        return 0

    @cython.final
    cdef int _count_hashes(self, const uint32_t* hashes, Py_ssize_t n) noexcept nogil:
        """Count the indices of at most BATCH hashes."""
        cdef Py_ssize_t i, n_steps = 0
        cdef uint32_t index, slot, position, tag, mask, n_distinct, alternate = self._alternate_sign
        cdef uint32_t n_features = self._n_features, index_mask = self._index_mask
        cdef uint32_t* indices
        cdef int32_t* counts
        cdef uint64_t* positions
        cdef uint64_t entry
        cdef bint scattered = self._scattered
        if self._reserve_positions(n) < 0:
            return -1
        if self._binary:
            self._mark(hashes, n)
            return 0
        indices, counts, positions, mask = self._indices, self._counts, self._positions, self._positions_mask
        n_distinct = self._n
        for i in range(n):
            index = index_of(hashes[i], n_features, index_mask)
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
        if n_steps > CROWDED * BATCH and not scattered:
            self._scatter()
        return 0

    @cython.final
    cdef void _mark(self, const uint32_t* hashes, Py_ssize_t n) noexcept nogil:
        """Take in the indices of hashes that are not there yet, where nobody asks how often they are."""
        cdef uint32_t* indices = self._indices
        cdef uint32_t* taken = <uint32_t*> self._positions
        cdef uint32_t mask = self._positions_mask, n_distinct = self._n, index, slot
        cdef uint32_t n_features = self._n_features, index_mask = self._index_mask
        cdef size_t n_steps = 0
        cdef Py_ssize_t i
        cdef bint scattered = self._scattered
        if index_mask and not scattered:
            n_distinct = sp_add_distinct(hashes, n, index_mask, taken, mask, indices, n_distinct, &n_steps)
            n = 0
        for i in range(n):
            index = index_of(hashes[i], n_features, index_mask)
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

    @cython.final
    cdef int _reserve_positions(self, Py_ssize_t more) noexcept nogil:
        """Room for `more` distinct indices, with at least two positions for each."""
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

    @cython.final
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

    @cython.final
    cdef void _scatter(self) noexcept nogil:
        self._clear_positions()
        self._scattered = True
        self._fill_positions()

    @cython.final
    cdef void _clear_positions(self) noexcept nogil:
        cdef size_t n = <size_t> self._positions_mask + 1
        memset(self._positions, 0, n * sizeof(uint32_t) if self._binary else n * sizeof(uint64_t))
