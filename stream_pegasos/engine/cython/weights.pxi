cdef struct Column:
    double scale, squares  # w = a·v, and ‖v‖²
    double sums_scale, sums_weight  # Σ c w = b·v − u, and Σ c


cdef enum:
    FEWEST_COLUMNS = 3  # that there is room for where there are several


cdef inline double inner(const double* weights, const Row* e) noexcept nogil:
    """The sum of weight · value, the hashes of the example being columns."""
    cdef Py_ssize_t i
    cdef double even = 0.0, odd = 0.0
    for i in range(0, e.n - 1, 2):
        even += weights[e.hashes[i]] * e.values[i]
        odd += weights[e.hashes[i + 1]] * e.values[i + 1]
    if e.n & 1:
        even += weights[e.hashes[e.n - 1]] * e.values[e.n - 1]
    return even + odd


cdef inline double term(const Word* number, Py_ssize_t word, const Row* e, Py_ssize_t i) noexcept nogil:
    """Weight · value of a feature, given that word of the entry at its slot; 0 if the entry is another's."""
    return sp_take(number.v, number[-word].hash == e.hashes[i]) * e.values[i]


@cython.final
cdef class WeightDict:
    """The record of a feature is v, a number a column, and behind it, for the average, u."""

    cdef Table _table
    cdef Column* _columns
    cdef readonly Py_ssize_t n_columns
    cdef Py_ssize_t _width  # how many columns there is room for
    cdef readonly bint average
    # During a loop over a matrix, v and u of the only column by column of the matrix, then those of the intercept; ahead
    # of the table.
    cdef double* _spread
    cdef double* _spread_sums
    cdef Py_ssize_t _n_spread
    cdef Py_ssize_t* _slots  # where in the table each feature of the current example is
    cdef Py_ssize_t _slots_capacity
    cdef bint _is_twin  # of other weights, in whose memory it looks, but for the line above
    cdef double* _nothing  # the record of a feature that is not there
    cdef Guard _guard

    def __init__(self, bint average=False, Py_ssize_t n_columns=1):
        self._guard = Guard()
        self.average = average
        if self._widen(1 if n_columns == 1 else max(<Py_ssize_t> FEWEST_COLUMNS, n_columns)) < 0:
            raise MemoryError
        while self.n_columns < n_columns:
            self.add_column()

    def __dealloc__(self):
        free(self._slots)
        if not self._is_twin:
            free_table(&self._table)
            free(self._columns)
            free(self._spread)
            free(self._spread_sums)
            free(self._nothing)

    def __len__(self):
        return self._table.n

    def __sizeof__(self):
        return object.__sizeof__(self) + size_of(&self._table)

    def __contains__(self, int64_t key):
        wait_for(self._guard, self._guard)
        return self._has(hash_key(key))

    def squared_norm(self, Py_ssize_t column=0):
        wait_for(self._guard, self._guard)
        return self._squared_norm(column)

    def get(self, int64_t key, Py_ssize_t column=0):
        wait_for(self._guard, self._guard)
        return self._get(hash_key(key), column, True)

    def items(self):
        wait_for(self._guard, self._guard)
        keys, _ = records_of(&self._table, 0)
        return keys, self.weights_of(keys)

    def weights_of(self, const int64_t[::1] keys):
        cdef Py_ssize_t i, c
        values = np.empty((keys.shape[0], self.n_columns))
        cdef double[:, ::1] out = values
        wait_for(self._guard, self._guard)
        for i in range(keys.shape[0]):
            for c in range(self.n_columns):
                out[i, c] = self._get(hash_key(keys[i]), c, True)
        return values

    def dot(self, row, Py_ssize_t column=0):
        return self._dot(row, column, False)

    def predict(self, row, Py_ssize_t column=0):
        return self._dot(row, column, True)

    def _dot(self, row, Py_ssize_t column, bint predicting):
        cdef double total = 0.0, x
        cdef int64_t key
        for key, x in zip(row.keys, row.values, strict=True):
            wait_for(self._guard, self._guard)
            total += self._get(hash_key(key), column, predicting) * x
        return row.factor * total

    def add(self, row, double factor, Py_ssize_t column=0):
        cdef double x
        cdef int64_t key
        for key, x in zip(row.keys, row.values, strict=True):
            wait_for(self._guard, self._guard)
            if self._add(hash_key(key), column, factor * row.factor * x / self._columns[column].scale) < 0:
                raise MemoryError

    def scale(self, double factor, Py_ssize_t column=0):
        wait_for(self._guard, self._guard)
        self._scale(column, factor)

    def accumulate(self, double weight, Py_ssize_t column=0):
        wait_for(self._guard, self._guard)
        self._accumulate(column, weight)

    def negate(self):
        wait_for(self._guard, self._guard)
        self._negate()

    def add_column(self):
        wait_for(self._guard, self._guard)
        if self._add_column() < 0:
            raise MemoryError

    def clear_column(self, Py_ssize_t column):
        cdef Py_ssize_t i
        cdef double* record
        wait_for(self._guard, self._guard)
        for i in range(n_places(&self._table, NULL)):
            record = record_at(&self._table, place(&self._table, NULL, i))
            record[column] = 0.0
            if self.average:
                record[self._width + column] = 0.0
        self._columns[column] = Column(1.0, 0.0, 0.0, 0.0)

    def get_state(self):
        wait_for(self._guard, self._guard)
        keys, numbers = records_of(&self._table, self._table.stride - 1)
        its = [self._columns[c] for c in range(self.n_columns)]
        state = {"keys": keys, "values": np.ascontiguousarray(numbers[: self.n_columns].T)}
        if self.average:
            state["sums"] = np.ascontiguousarray(numbers[self._width : self._width + self.n_columns].T)
        for name in OF_COLUMN if self.average else OF_COLUMN[:2]:
            state[name] = np.array([one[name] for one in its], np.float64)
        return state

    def set_state(self, state):
        cdef Py_ssize_t c
        wait_for(self._guard, self._guard)
        self.n_columns = 0
        for c in range(len(state["scale"])):
            self.add_column()
            self._columns[c].scale, self._columns[c].squares = state["scale"][c], state["squares"][c]
            if self.average:
                self._columns[c].sums_scale, self._columns[c].sums_weight = state["sums_scale"][c], state["sums_weight"][c]
        numbers = np.zeros((self._table.stride - 1, len(state["keys"])))
        numbers[: self.n_columns] = state["values"].T
        if self.average:
            numbers[self._width : self._width + self.n_columns] = state["sums"].T
        fill(&self._table, state["keys"], numbers)

    cdef WeightDict _twin(self):
        cdef WeightDict twin = WeightDict.__new__(WeightDict)
        twin._is_twin, twin._guard, twin.average = True, self._guard, self.average
        twin._table, twin._columns, twin._nothing = self._table, self._columns, self._nothing
        twin.n_columns, twin._width = self.n_columns, self._width
        return twin

    cdef bint _has(self, uint64_t h) noexcept nogil:
        return self._table.words[seek(&self._table, h)].hash == h

    cdef double _get(self, uint64_t h, Py_ssize_t c, bint predicting) noexcept nogil:
        cdef Py_ssize_t p = seek(&self._table, h)
        cdef Column* its = &self._columns[c]
        cdef double* record = record_at(&self._table, p)
        if self._table.words[p].hash != h:
            return 0.0
        if predicting and its.sums_weight != 0.0:
            return (its.sums_scale * record[c] - record[self._width + c]) / its.sums_weight
        return its.scale * record[c]

    cdef inline double _squared_norm(self, Py_ssize_t c) noexcept nogil:
        return self._columns[c].scale * self._columns[c].scale * self._columns[c].squares

    cdef int _widen(self, Py_ssize_t width) noexcept nogil:
        """Make room for `width` columns."""
        cdef Py_ssize_t i, stride = 1 + (2 * width if self.average else width)
        cdef Column* columns = <Column*> realloc(self._columns, width * sizeof(Column))
        cdef void* nothing = calloc(width, sizeof(double))
        cdef double* record
        if columns != NULL:
            self._columns = columns
        if columns == NULL or nothing == NULL:
            free(nothing)
            return -1
        free(self._nothing)
        self._nothing = <double*> nothing
        if self._table.words == NULL:
            self._width = width
            return make_for(&self._table, 0, stride)
        if rebuild(&self._table, self._table.n_homes, SPARE_SLOTS, stride) < 0:
            return -1
        for i in range(n_places(&self._table, NULL) if self.average else 0):  # u stands further behind
            record = record_at(&self._table, place(&self._table, NULL, i))
            memmove(record + width, record + self._width, self._width * sizeof(double))
            memset(record + self._width, 0, (width - self._width) * sizeof(double))
        self._width = width
        return 0

    cdef int _add_column(self) noexcept nogil:
        if self.n_columns == self._width and self._widen(self._width + max(self._width >> 2, 1)) < 0:
            return -1
        self._columns[self.n_columns] = Column(1.0, 0.0, 0.0, 0.0)
        self.n_columns += 1
        return 0

    cdef int _add(self, uint64_t h, Py_ssize_t c, double step) noexcept nogil:
        cdef Py_ssize_t p = seek(&self._table, h)
        if self._table.words[p].hash != h:
            if step == 0.0:
                return 0
            p = insert(&self._table, p, h)
            if p < 0:
                return -1
        self._add_at(record_at(&self._table, p), c, step)
        return 0

    cdef inline void _add_at(self, double* record, Py_ssize_t c, double step) noexcept nogil:
        cdef double old = record[c], new = old + step
        record[c] = new
        self._columns[c].squares += (new - old) * (new + old)
        if self.average:
            record[self._width + c] += self._columns[c].sums_scale * step

    # The current example

    cdef int _find(self, const Row* e) noexcept nogil:
        """Where each feature of an example is; -1 if there is no memory."""
        if e.n > self._slots_capacity:
            if sp_reserve(&self._slots, &self._slots_capacity, e.n, sizeof(Py_ssize_t)) < 0:
                return -1
        find_homes(&self._table, e, self._slots)
        find_entries(&self._table, e, self._slots)
        return 0

    cdef inline double _inner(self, const Row* e, Py_ssize_t word) noexcept nogil:
        cdef const Word* words = self._table.words + word
        cdef const Py_ssize_t* slots = self._slots
        cdef Py_ssize_t i
        cdef double even = 0.0, odd = 0.0  # two sums, since each addition waits for the one before
        for i in range(0, e.n - 1, 2):
            even += term(words + slots[i], word, e, i)
            odd += term(words + slots[i + 1], word, e, i + 1)
        if e.n & 1:
            even += term(words + slots[e.n - 1], word, e, e.n - 1)
        return even + odd

    cdef void _add_up(self, const Row* e, Py_ssize_t first, double* sums) noexcept nogil:
        """The sums of value · number, for the numbers of each record from that one on."""
        cdef Py_ssize_t i, j, n_rows
        cdef const double* rows[4]
        cdef const Word* entry
        memset(sums, 0, self.n_columns * sizeof(double))
        for i in range(0, e.n, 4):
            n_rows = min(e.n - i, 4)
            for j in range(n_rows):
                entry = &self._table.words[self._slots[i + j]]
                rows[j] = &entry[1 + first].v if entry.hash == e.hashes[i + j] else self._nothing
            sp_add_scaled(sums, rows, e.values + i, n_rows, self.n_columns)

    cdef int _add_example(self, const Row* e, double step) noexcept nogil:
        """w ← w + step · x, for the only column and the x that was found."""
        cdef Py_ssize_t i, n_new = 0
        cdef Py_ssize_t* slots = self._slots
        cdef double* spread = self._spread
        cdef double* spread_sums = self._spread_sums
        cdef Word* words = self._table.words
        cdef double squares = 0.0, b = self._columns.sums_scale, old, new
        cdef Word* entry
        if spread != NULL:
            for i in range(e.n):
                old = spread[e.hashes[i]]
                new = old + step * e.values[i]
                spread[e.hashes[i]] = new
                squares += (new - old) * (new + old)
                if self.average:
                    spread_sums[e.hashes[i]] += b * (step * e.values[i])
            self._columns.squares += squares
            return 0
        for i in range(e.n):
            entry = &words[slots[i]]
            if entry.hash == e.hashes[i]:
                old = entry[1].v
                new = old + step * e.values[i]
                entry[1].v = new
                squares += (new - old) * (new + old)
                if self.average:
                    entry[2].v += b * (step * e.values[i])
            else:
                slots[n_new] = i
                n_new += 1
        self._columns.squares += squares
        for i in range(n_new):  # last, since an insertion moves other entries
            if self._add(e.hashes[slots[i]], 0, step * e.values[slots[i]]) < 0:
                return -1
        return 0

    cdef int _make_entries(self, const Row* e) noexcept nogil:
        """Have an entry for each feature, and know where it is."""
        cdef Table* table = &self._table
        cdef Py_ssize_t i
        cdef bint moved = False
        for i in range(e.n):
            if moved or table.words[self._slots[i]].hash != e.hashes[i]:
                self._slots[i] = seek(table, e.hashes[i])
                if table.words[self._slots[i]].hash != e.hashes[i] and e.values[i] != 0.0:
                    if insert(table, self._slots[i], e.hashes[i]) < 0:
                        return -1
                    moved = True
        return self._find(e) if moved else 0

    cdef void _add_example_to(self, Py_ssize_t c, const Row* e, double step) noexcept nogil:
        """w_c ← w_c + step · x, for features of the x that was found that have entries."""
        cdef Column* its = &self._columns[c]
        cdef Word* words = self._table.words
        cdef const Py_ssize_t* slots = self._slots
        cdef Py_ssize_t i, behind = self._width if self.average else 0
        cdef double squares = its.squares, old, new
        cdef double* record
        step *= e.factor / its.scale
        for i in range(e.n):
            if words[slots[i]].hash == e.hashes[i]:
                record = &words[slots[i] + 1 + c].v
                old = record[0]
                new = old + step * e.values[i]
                record[0] = new
                squares += (new - old) * (new + old)
                if behind:
                    record[behind] += its.sums_scale * (step * e.values[i])
        its.squares = squares

    # The weights by column of a matrix

    cdef int _spread_out(self, Py_ssize_t n_columns) noexcept nogil:
        cdef Py_ssize_t i, p, column
        cdef int64_t key
        self._spread = <double*> calloc(n_columns + 1, sizeof(double))
        self._spread_sums = <double*> calloc(n_columns + 1 if self.average else 1, sizeof(double))
        if self._spread == NULL or self._spread_sums == NULL:
            self._drop_spread()
            return -1
        self._n_spread = n_columns
        for i in range(n_places(&self._table, NULL)):
            p = place(&self._table, NULL, i)
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
        return h != EMPTY and (h == INTERCEPT_HASH or 0 <= <int64_t> (h * INVERSE_MULTIPLIER) < self._n_spread)

    cdef int _gather_in(self) noexcept nogil:
        cdef Py_ssize_t column
        cdef uint64_t h
        cdef double* record
        cdef int status = 0
        for column in range(self._n_spread + 1):
            h = hash_key(column) if column < self._n_spread else INTERCEPT_HASH
            if self._spread[column] == 0.0 and not self._has(h):
                continue
            record = insert_record(&self._table, h)
            if record == NULL:
                status = -1
                break
            record[0] = self._spread[column]
            if self.average:
                record[1] = self._spread_sums[column]
        self._drop_spread()
        return status

    # All weights at once

    cdef inline void _scale(self, Py_ssize_t c, double factor) noexcept nogil:
        self._columns[c].scale *= factor
        if fabs(self._columns[c].scale) < (FOLD_AVERAGED_BELOW if self.average else FOLD_BELOW):
            self._fold(c)

    cdef void _fold(self, Py_ssize_t c) noexcept nogil:
        cdef Py_ssize_t i, p
        cdef Column* its = &self._columns[c]
        cdef double* record
        cdef Place* places
        cdef double a = its.scale
        its.scale, its.squares = 1.0, 0.0
        if a == 0.0 and its.sums_weight == 0.0 and self._width == 1:
            clear(&self._table)
        if self._spread != NULL:
            for p in range(self._n_spread + 1):
                if self.average:
                    self._spread_sums[p] -= its.sums_scale * self._spread[p]
                self._spread[p] *= a
                its.squares += self._spread[p] * self._spread[p]
        places = places_in_order(&self._table)
        for i in range(n_places(&self._table, places)):
            p = place(&self._table, places, i)
            if self._table.words[p].hash != EMPTY:
                record = record_at(&self._table, p)
                if self.average:
                    record[self._width + c] -= its.sums_scale * record[c]
                record[c] *= a
                if self._spread == NULL or not self._is_spread(self._table.words[p].hash):
                    its.squares += record[c] * record[c]
        free(places)
        its.sums_scale = 0.0

    cdef void _accumulate(self, Py_ssize_t c, double weight) noexcept nogil:
        self._columns[c].sums_scale += weight * self._columns[c].scale
        self._columns[c].sums_weight += weight

    cdef void _negate(self) noexcept nogil:
        cdef Py_ssize_t c, i, j
        cdef double* record
        for c in range(self.n_columns):
            self._columns[c].scale, self._columns[c].sums_scale = -self._columns[c].scale, -self._columns[c].sums_scale
        for i in range(n_places(&self._table, NULL) if self.average else 0):
            record = record_at(&self._table, place(&self._table, NULL, i)) + self._width
            for j in range(self.n_columns):
                record[j] = -record[j]


OF_COLUMN = ("scale", "squares", "sums_scale", "sums_weight")
