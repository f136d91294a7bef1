@cython.final
cdef class WeightDict:
    """w = a·v, with an entry of hash and v a feature and, for the average, u."""

    cdef Table _table
    cdef double _a, _squares
    cdef readonly bint average
    cdef double _b, _total
    # During a loop over a matrix, v and u by column, then those of the intercept; ahead of the table.
    cdef double* _spread
    cdef double* _spread_sums
    cdef Py_ssize_t _n_columns
    cdef Guard _guard

    def __init__(self, bint average=False):
        self._guard = Guard()
        self._a = 1.0
        self.average = average
        if make_for(&self._table, 0, 3 if average else 2) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._table.words)
        free(self._spread)
        free(self._spread_sums)

    def __len__(self):
        return self._table.n

    def __sizeof__(self):
        return object.__sizeof__(self) + end(&self._table) * sizeof(Word)

    def __contains__(self, int64_t key):
        wait_for(self._guard, self._guard)
        return self._has(hash_key(key))

    @property
    def squared_norm(self):
        wait_for(self._guard, self._guard)
        return self._a * self._a * self._squares

    def get(self, int64_t key):
        wait_for(self._guard, self._guard)
        return self._get(hash_key(key), self._total != 0.0)

    def items(self):
        state = self.get_state()
        if self._total == 0.0:
            return state["keys"], state["scale"] * state["values"]
        return state["keys"], (state["sums_scale"] * state["values"] - state["sums"]) / state["sums_weight"]

    def dot(self, row):
        return self._dot(row, False)

    def predict(self, row):
        return self._dot(row, True)

    def _dot(self, row, bint predicting):
        cdef double total = 0.0, x
        cdef int64_t key
        for key, x in zip(row.keys, row.values, strict=True):
            wait_for(self._guard, self._guard)
            total += self._get(hash_key(key), predicting and self._total != 0.0) * x
        return row.factor * total

    def add(self, row, double factor):
        cdef double x
        cdef int64_t key
        for key, x in zip(row.keys, row.values, strict=True):
            wait_for(self._guard, self._guard)
            if self._add(hash_key(key), factor * row.factor * x / self._a) < 0:
                raise MemoryError

    def scale(self, double factor):
        wait_for(self._guard, self._guard)
        self._scale(factor)

    def accumulate(self, double weight):
        wait_for(self._guard, self._guard)
        self._accumulate(weight)

    def negate(self):
        wait_for(self._guard, self._guard)
        self._negate()

    cdef bint _has(self, uint64_t h) noexcept nogil:
        return self._table.words[seek(&self._table, h)].hash == h

    cdef double _get(self, uint64_t h, bint averaged) noexcept nogil:
        cdef Word* entry = &self._table.words[seek(&self._table, h)]
        if entry.hash != h:
            return 0.0
        return (self._b * entry[1].v - entry[2].v) / self._total if averaged else self._a * entry[1].v

    def get_state(self):
        wait_for(self._guard, self._guard)
        keys, values = np.empty(self._table.n, np.int64), np.empty(self._table.n, np.float64)
        sums = np.empty(self._table.n if self.average else 0, np.float64)
        cdef int64_t[::1] k = keys
        cdef double[::1] v = values, u = sums
        cdef Py_ssize_t j, p, i = 0
        cdef Place* places = places_in_order(&self._table)
        for j in range(n_places(&self._table, places)):
            p = place(&self._table, places, j)
            if self._table.words[p].hash != EMPTY:
                k[i] = <int64_t> (self._table.words[p].hash * INVERSE_MULTIPLIER)
                v[i] = self._table.words[p + 1].v
                if self.average:
                    u[i] = self._table.words[p + 2].v
                i += 1
        free(places)
        state = {"keys": keys, "values": values, "scale": self._a, "squares": self._squares}
        if self.average:
            state["sums"], state["sums_scale"], state["sums_weight"] = sums, self._b, self._total
        return state

    def set_state(self, state):
        wait_for(self._guard, self._guard)
        hashes = state["keys"].view(np.uint64) * np.uint64(MULTIPLIER)
        order = np.argsort(hashes, kind="stable")  # quick where they are in order, as in files
        cdef const uint64_t[::1] h = hashes[order]
        cdef const double[::1] v = np.ascontiguousarray(state["values"][order])
        cdef const double[::1] u = np.ascontiguousarray(state["sums"][order]) if self.average else v
        cdef Py_ssize_t i, p
        if make_for(&self._table, h.shape[0], self._table.stride) < 0:
            raise MemoryError
        for i in range(h.shape[0]):
            p = insert(&self._table, seek(&self._table, h[i]), h[i])
            if p < 0:
                raise MemoryError
            self._table.words[p + 1].v = v[i]
            if self.average:
                self._table.words[p + 2].v = u[i]
        self._a, self._squares = state["scale"], state["squares"]
        if self.average:
            self._b, self._total = state["sums_scale"], state["sums_weight"]

    cdef int _add(self, uint64_t h, double step) noexcept nogil:
        cdef Py_ssize_t p = seek(&self._table, h)
        cdef double old, new
        if self._table.words[p].hash != h:
            if step == 0.0:
                return 0
            p = insert(&self._table, p, h)
            if p < 0:
                return -1
        old = self._table.words[p + 1].v
        new = old + step
        self._table.words[p + 1].v = new
        self._squares += (new - old) * (new + old)
        if self.average:
            self._table.words[p + 2].v += self._b * step
        return 0

    cdef int _spread_out(self, Py_ssize_t n_columns) noexcept nogil:
        cdef Py_ssize_t slot, p, column
        cdef int64_t key
        self._spread = <double*> calloc(n_columns + 1, sizeof(double))
        self._spread_sums = <double*> calloc(n_columns + 1 if self.average else 1, sizeof(double))
        if self._spread == NULL or self._spread_sums == NULL:
            self._drop_spread()
            return -1
        self._n_columns = n_columns
        for slot in range(self._table.n_slots):
            p = slot * self._table.stride
            if self._is_spread(self._table.words[p].hash):
                key = <int64_t> (self._table.words[p].hash * INVERSE_MULTIPLIER)
                column = n_columns if key < 0 else key
                self._spread[column] = self._table.words[p + 1].v
                if self.average:
                    self._spread_sums[column] = self._table.words[p + 2].v
        return 0

    cdef void _drop_spread(self) noexcept nogil:
        free(self._spread)
        free(self._spread_sums)
        self._spread = self._spread_sums = NULL

    cdef bint _is_spread(self, uint64_t h) noexcept nogil:
        return h != EMPTY and (h == INTERCEPT_HASH or 0 <= <int64_t> (h * INVERSE_MULTIPLIER) < self._n_columns)

    cdef int _gather_in(self) noexcept nogil:
        cdef Py_ssize_t column, p
        cdef uint64_t h
        cdef int status = 0
        for column in range(self._n_columns + 1):
            h = hash_key(column) if column < self._n_columns else INTERCEPT_HASH
            p = seek(&self._table, h)
            if self._table.words[p].hash != h:
                if self._spread[column] == 0.0:
                    continue
                p = insert(&self._table, p, h)
                if p < 0:
                    status = -1
                    break
            self._table.words[p + 1].v = self._spread[column]
            if self.average:
                self._table.words[p + 2].v = self._spread_sums[column]
        self._drop_spread()
        return status

    cdef void _scale(self, double factor) noexcept nogil:
        self._a *= factor
        if fabs(self._a) < (FOLD_AVERAGED_BELOW if self.average else FOLD_BELOW):
            self._fold()

    cdef void _fold(self) noexcept nogil:
        cdef Py_ssize_t i, p
        cdef Word* entry
        cdef Place* places
        cdef double a = self._a
        self._a, self._squares = 1.0, 0.0
        if a == 0.0 and self._total == 0.0:
            make_empty(self._table.words, self._table.n_slots, self._table.stride)
            self._table.n = 0
        if self._spread != NULL:
            for p in range(self._n_columns + 1):
                if self.average:
                    self._spread_sums[p] -= self._b * self._spread[p]
                self._spread[p] *= a
                self._squares += self._spread[p] * self._spread[p]
        places = places_in_order(&self._table)
        for i in range(n_places(&self._table, places)):
            entry = &self._table.words[place(&self._table, places, i)]
            if entry.hash != EMPTY:
                if self.average:
                    entry[2].v -= self._b * entry[1].v
                entry[1].v *= a
                if self._spread == NULL or not self._is_spread(entry.hash):
                    self._squares += entry[1].v * entry[1].v
        free(places)
        self._b = 0.0

    cdef void _accumulate(self, double weight) noexcept nogil:
        self._b += weight * self._a
        self._total += weight

    cdef void _negate(self) noexcept nogil:
        cdef Py_ssize_t slot, p
        self._a, self._b = -self._a, -self._b
        if self.average:
            for slot in range(self._table.n_slots):
                p = slot * self._table.stride
                self._table.words[p + 2].v = -self._table.words[p + 2].v
