cdef enum:
    WORDS_AT_A_TIME = 1024
    MOST_NOTED = 1 << 15  # words that are looked up at once
    NOT_KEPT = -2


@cython.final
cdef class WordVectors:
    """What gives a message its vector. Vectors of words are looked up in Python, many at once, and kept as far as there is room
    for them.
    """

    cdef object _table
    cdef sp_vectors _vectors
    cdef Py_ssize_t _missing[WORDS_AT_A_TIME]
    cdef Py_ssize_t n_looked_up
    cdef object error  # what Python raised as it looked up words

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
        free(v.noted)
        free(v.sums)
        free(v.totals)

    cdef void _release(self) noexcept nogil:
        sp_release(&self._vectors.met, &self._vectors.met_capacity)
        sp_release(&self._vectors.met_places.slots, &self._vectors.met_places.capacity)
        sp_release(&self._vectors.noted, &self._vectors.noted_capacity)

    cdef tuple _kept(self):
        cdef sp_vectors* v = &self._vectors
        cdef int64_t[::1] hashes = np.empty(v.n, np.int64)
        cdef int8_t[:, ::1] codes = np.empty((v.n, v.d), np.int8)
        cdef uint8_t[::1] shifts = np.empty(v.n, np.uint8)
        if v.n:
            memcpy(&hashes[0], v.hashes, v.n * sizeof(int64_t))
            memcpy(&codes[0, 0], v.codes, v.n * v.d)
            memcpy(&shifts[0], v.shifts, v.n)
        return np.asarray(hashes), np.asarray(codes), np.asarray(shifts)

    cdef int _write(self, float* vector, bint may_look_up) noexcept nogil:
        """The vector of the message that was scanned; NOT_KEPT where words would have to be looked up that may not."""
        cdef sp_vectors* v = &self._vectors
        cdef Py_ssize_t begin = 0, end, i, place, n_missing
        while begin < v.n_met:
            end = min(begin + WORDS_AT_A_TIME, v.n_met)
            n_missing = sp_add_kept(v, begin, end, self._missing)
            begin = end
            if n_missing == 0:
                continue
            if not may_look_up:
                return NOT_KEPT
            if sp_note_words(v, self._missing, n_missing) < 0 or self._look_up() < 0:
                return -1
            for i in range(n_missing):
                place = sp_find_kept(v, v.met[self._missing[i]].hash)
                sp_add_vector(v, v.codes + place * v.d, v.shifts[place])
        sp_write_vector(v, vector)
        return 0

    cdef bint _note_missing(self) noexcept nogil:
        """Note those of the words of the message that was scanned that are to be looked up; False if there are enough."""
        cdef sp_vectors* v = &self._vectors
        cdef Py_ssize_t i
        for i in range(v.n_met):
            if v.n_noted_words == MOST_NOTED or sp_find_kept(v, v.met[i].hash) < 0 and sp_note_words(v, &i, 1) < 0:
                return False
        return True

    cdef int _look_up(self) noexcept with gil:
        """Keep the vectors of the words that are noted; −1 if Python raised an error, which is kept."""
        cdef sp_vectors* v = &self._vectors
        cdef Py_ssize_t i, begin = 0, end, n = v.n_noted_words
        cdef const int8_t[:, ::1] codes
        cdef const uint8_t[::1] shifts
        try:
            text = (<const char*> v.noted)[: v.n_noted].decode("utf-8", "surrogatepass")
            codes, shifts = self._table.codes(text.removesuffix(" ").split(" "))
            sp_make_room_for_words(v, n)
            self.n_looked_up += n
            for i in range(n):
                end = begin
                while v.noted[end] != 32:
                    end += 1
                if sp_keep_vector(v, sp_hash_word(v.noted + begin, end - begin), &codes[i, 0], shifts[i]) < 0:
                    raise MemoryError
                begin = end + 1
        except BaseException as error:
            self.error = error
            return -1
        finally:
            v.n_noted = v.n_noted_words = 0
        return 0
