cdef enum:
    WORDS_AT_A_TIME = 1024
    NOT_KEPT = -2


@cython.final
cdef class WordVectors:
    """What gives a message its vector. Vectors of words are looked up in Python, once a word; as many are kept as there is
    room for.
    """

    cdef object _table
    cdef sp_vectors _vectors
    cdef Py_ssize_t _missing[WORDS_AT_A_TIME]
    cdef object error  # what Python raised as it looked up a word

    def __cinit__(self, table):
        cdef sp_vectors* v = &self._vectors
        self._table, v.d, v.secret = table, table.n_dimensions, SECRET
        v.sums, v.totals = <int32_t*> calloc(v.d, sizeof(int32_t)), <double*> calloc(v.d, sizeof(double))
        if v.sums == NULL or v.totals == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef sp_vectors* v = &self._vectors
        free(v.met)
        free(v.met_places.slots)
        free(v.hashes)
        free(v.codes)
        free(v.shifts)
        free(v.places.slots)
        free(v.sums)
        free(v.totals)

    cdef int _write(self, float* vector, bint may_look_up) noexcept nogil:
        """The vector of the message that was scanned; NOT_KEPT where words would have to be looked up that may not."""
        cdef sp_vectors* v = &self._vectors
        cdef Py_ssize_t begin = 0, n_missing
        while begin < v.n_met:
            n_missing = sp_add_kept(v, begin, min(begin + WORDS_AT_A_TIME, v.n_met), self._missing)
            if n_missing and not may_look_up:
                return NOT_KEPT
            if n_missing and self._look_up(n_missing) < 0:
                return -1
            begin += WORDS_AT_A_TIME
        sp_write_vector(v, vector)
        return 0

    cdef int _look_up(self, Py_ssize_t n) noexcept with gil:
        """Add and keep the vectors of the words that are missing; −1 if Python raised an error, which is noted."""
        cdef sp_vectors* v = &self._vectors
        cdef const sp_met_word* word
        cdef Py_ssize_t i
        cdef const int8_t[:, ::1] codes
        cdef const uint8_t[::1] shifts
        cdef list words = []
        try:
            for i in range(n):
                word = &v.met[self._missing[i]]
                words.append((<const char*> word.bytes)[: word.n].decode("utf-8", "surrogatepass"))
            codes, shifts = self._table.codes(words)
            for i in range(n):
                sp_add_vector(v, &codes[i, 0], shifts[i])
                if sp_keep_vector(v, v.met[self._missing[i]].hash, &codes[i, 0], shifts[i]) < 0:
                    raise MemoryError
        except BaseException as error:
            self.error = error
            return -1
        return 0
