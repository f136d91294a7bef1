cdef struct Column:
    double scale, squares  # w = a·v, and ‖v‖²
    double sums_scale, sums_weight  # Σ c w = b·v − u, and Σ c


cdef enum:
    FEWEST_COLUMNS = 3  # that there is room for where there are several


cdef inline double inner(const double* weights, const Row* e) noexcept nogil:
    """The sum of weight · value over the columns of the example, or its hashes, which are columns then."""
    cdef Py_ssize_t i
    cdef double even = 0.0, odd = 0.0
    cdef const int32_t* columns = e.columns
    cdef const double* values = e.values
    if columns != NULL:
        for i in range(0, e.n - 1, 2):
            even += weights[columns[i]] * values[i]
            odd += weights[columns[i + 1]] * values[i + 1]
        if e.n & 1:
            even += weights[columns[e.n - 1]] * values[e.n - 1]
        return even + odd
    for i in range(0, e.n - 1, 2):
        even += weights[e.hashes[i]] * e.values[i]
        odd += weights[e.hashes[i + 1]] * e.values[i + 1]
    if e.n & 1:
        even += weights[e.hashes[e.n - 1]] * e.values[e.n - 1]
    return even + odd


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
    cdef double* _by_column
    cdef double* _sums_by_column
    cdef Py_ssize_t _n_by_column
    cdef char* _records_before  # of the table, and their number, for a loop that is to be undone
    cdef Py_ssize_t _n_before
    cdef Py_ssize_t* _positions  # where in the table each feature of the current example is
    cdef Py_ssize_t _positions_capacity
    cdef bint _is_view  # of other weights, in whose memory it looks, but for the line above
    cdef Guard _guard

    def __init__(self, bint average=False, Py_ssize_t n_columns=1):
        self._guard = Guard()
        self.average = average
        if self._widen(1 if n_columns == 1 else max(<Py_ssize_t> FEWEST_COLUMNS, n_columns)) < 0:
            raise MemoryError
        while self.n_columns < n_columns:
            self.add_column()

    def __dealloc__(self):
        free(self._positions)
        if not self._is_view:
            free_table(&self._table)
            free(self._columns)
            self._drop_by_column()

    def __len__(self):
        return self._table.n

    def __sizeof__(self):
        return object.__sizeof__(self) + table_size(&self._table)

    def __contains__(self, int64_t key):
        wait_for(self._guard, self._guard)
        return self._has(hash_key(key))

    def squared_norm(self, Py_ssize_t column=0):
        wait_for(self._guard, self._guard)
        return self._columns[column].scale * self._columns[column].scale * self._columns[column].squares

    def get(self, int64_t key, Py_ssize_t column=0):
        wait_for(self._guard, self._guard)
        return self._get(hash_key(key), column, True)

    def items(self):
        wait_for(self._guard, self._guard)
        keys = keys_of(self._records()["hash"])
        return keys, self.get_weights(keys)

    def get_weights(self, const int64_t[::1] keys):
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

    def add_column(self):
        wait_for(self._guard, self._guard)
        if self._make_room_for_column() < 0:
            raise MemoryError
        self._add_column()

    def get_state(self, bint lazy=False):
        wait_for(self._guard, self._guard)
        parts, shape = self._records_in_parts, (self._table.n, self.n_columns)
        numbers = {name: LazyColumn(shape, np.dtype(records.DOUBLE), parts) for name in self._records().dtype.names[1:]}
        names = records.WEIGHTS_COLUMN.names if self.average else records.WEIGHTS_COLUMN.names[:2]
        state = {
            **lazy_columns(self._table.n, {"keys": records.COUNT}, parts), **numbers, **copied(self._known_columns(), names)
        }
        return state if lazy else whole(state)

    def _records_in_parts(self, Py_ssize_t n):
        cdef Py_ssize_t begin
        n = max(n // max(self.n_columns, 1), 1)
        for begin in range(0, max(self._table.n, 1), n):
            some = self._records()[begin : begin + n]
            numbers = {name: some[name][:, : self.n_columns].copy() for name in some.dtype.names[1:]}
            yield {"keys": keys_of(some["hash"]), **numbers}

    def set_state(self, state):
        wait_for(self._guard, self._guard)
        self.n_columns = 0
        for _ in range(len(state["scale"])):
            self.add_column()
        columns = self._known_columns()
        for name in records.WEIGHTS_COLUMN.names if self.average else records.WEIGHTS_COLUMN.names[:2]:
            columns[name] = state[name]
        fill(&self._table, state["keys"])
        found = self._records()
        for name in found.dtype.names[1:]:
            found[name][:, : self.n_columns] = state[name]

    cdef _records(self):
        return records_of(&self._table, records.weights_dtype(self._width, self.average))

    cdef _known_columns(self):
        return view_of(self._columns, self.n_columns, records.WEIGHTS_COLUMN)

    cdef WeightDict _view(self):
        cdef WeightDict view = WeightDict.__new__(WeightDict)
        view._is_view, view._guard, view.average = True, self._guard, self.average
        view._table, view._columns = self._table, self._columns
        view.n_columns, view._width = self.n_columns, self._width
        return view

    cdef bint _has(self, uint64_t h) noexcept nogil:
        return find(&self._table, h) != 0

    cdef double _get(self, uint64_t h, Py_ssize_t c, bint predicting) noexcept nogil:
        cdef Column* its = &self._columns[c]
        cdef double* record = numbers_at(&self._table, find(&self._table, h))
        if predicting and its.sums_weight != 0.0:
            return (its.sums_scale * record[c] - record[self._width + c]) / its.sums_weight
        return its.scale * record[c]

    cdef int _widen(self, Py_ssize_t width) noexcept nogil:
        """Make room for `width` columns."""
        cdef Table* table = &self._table
        cdef Table wider = table[0]
        cdef Py_ssize_t i, n_behind = self._width if self.average else 0
        cdef Column* columns = <Column*> realloc(self._columns, width * sizeof(Column))
        if columns == NULL:
            return -1
        self._columns = columns
        wider.record_size = sizeof(uint64_t) + (2 if self.average else 1) * width * sizeof(double)
        if table.records == NULL:
            table.record_size, self._width = wider.record_size, width
            return make_for(table, 0)
        wider.records = <char*> sp_resize(NULL, 0, wider.room * wider.record_size)
        if wider.records == NULL:
            return -1
        for i in range(table.n + 1):
            memset(record_at(&wider, i), 0, wider.record_size)
            memcpy(record_at(&wider, i), record_at(table, i), sizeof(uint64_t) + self._width * sizeof(double))
            memcpy(numbers_at(&wider, i) + width, numbers_at(table, i) + self._width, n_behind * sizeof(double))
        sp_resize(table.records, table.room * table.record_size, 0)
        table[0], self._width = wider, width
        return 0

    cdef int _mirror(self) noexcept nogil:
        """Have a second column, that of now, and its opposite as the first; -1, and nothing done, without memory."""
        cdef Py_ssize_t i, j
        cdef double* numbers
        if self._width < FEWEST_COLUMNS and self._widen(FEWEST_COLUMNS) < 0:
            return -1
        for i in range(1, self._table.n + 1):
            for j in range(2 if self.average else 1):
                numbers = numbers_at(&self._table, i) + j * self._width
                numbers[1], numbers[0] = numbers[0], -numbers[0]
        self._columns[1] = self._columns[0]
        self.n_columns = 2
        return 0

    cdef int _make_room_for_column(self) noexcept nogil:
        return self._widen(self._width + max(self._width >> 2, 1)) if self.n_columns == self._width else 0

    cdef void _add_column(self) noexcept nogil:
        self._columns[self.n_columns] = Column(1.0, 0.0, 0.0, 0.0)
        self.n_columns += 1

    cdef int _add(self, uint64_t h, Py_ssize_t c, double step) noexcept nogil:
        cdef Py_ssize_t position = place_for(&self._table, h) if step != 0.0 else find(&self._table, h)
        if position > 0:
            self._add_at(numbers_at(&self._table, position), c, step)
        return min(position, 0)

    cdef inline void _add_at(self, double* record, Py_ssize_t c, double step) noexcept nogil:
        cdef double old = record[c], new = old + step
        record[c] = new
        self._columns[c].squares += (new - old) * (new + old)
        if self.average:
            record[self._width + c] += self._columns[c].sums_scale * step

    # The current example

    cdef int _find(self, const Row* e) noexcept nogil:
        """Where each feature of an example is; -1 if there is no memory."""
        if e.n > self._positions_capacity:
            if sp_reserve(&self._positions, &self._positions_capacity, e.n, sizeof(Py_ssize_t)) < 0:
                return -1
        find_records(&self._table, e, self._positions)
        return 0

    cdef inline double _inner(self, const Row* e, Py_ssize_t number) noexcept nogil:
        """The sum of number · value, for that number of each record."""
        cdef Table table = self._table
        cdef const Py_ssize_t* positions = self._positions
        cdef Py_ssize_t i
        cdef double even = 0.0, odd = 0.0  # two sums, since each addition waits for the one before
        for i in range(0, e.n - 1, 2):
            even += numbers_at(&table, positions[i])[number] * e.values[i]
            odd += numbers_at(&table, positions[i + 1])[number] * e.values[i + 1]
        if e.n & 1:
            even += numbers_at(&table, positions[e.n - 1])[number] * e.values[e.n - 1]
        return even + odd

    cdef void _add_up(self, const Row* e, Py_ssize_t first, double* sums) noexcept nogil:
        """The sums of value · number, for the numbers of each record from that one on."""
        cdef Py_ssize_t i, j, n_rows
        cdef const double* rows[4]
        memset(sums, 0, self.n_columns * sizeof(double))
        for i in range(0, e.n, 4):
            n_rows = min(e.n - i, 4)
            for j in range(n_rows):
                rows[j] = numbers_at(&self._table, self._positions[i + j]) + first
            sp_add_scaled(sums, rows, e.values + i, n_rows, self.n_columns)

    cdef int _make_records(self, const Row* e) noexcept nogil:
        """Have a record for each feature of the example that was found whose value is not 0."""
        cdef Py_ssize_t i
        for i in range(e.n):
            if self._positions[i] == 0 and e.values[i] != 0.0:
                self._positions[i] = place_for(&self._table, e.hashes[i])
                if self._positions[i] < 0:
                    return -1
        return 0

    cdef void _add_example(self, Py_ssize_t c, const Row* e, double coefficient, double divisor) noexcept nogil:
        """w_c ← w_c + coefficient / divisor · x, for features of the x that was found that have records."""
        cdef Column* its = &self._columns[c]
        cdef const Py_ssize_t* positions = self._positions
        cdef Py_ssize_t i, behind = self._width if self.average else 0
        cdef double squares = its.squares, b = its.sums_scale, old, new
        cdef double step = coefficient * e.factor / (divisor * its.scale)
        cdef double* record
        cdef double* by_column = self._by_column
        cdef double* sums_by_column = self._sums_by_column
        cdef const int32_t* columns = e.columns
        cdef Py_ssize_t column
        if by_column != NULL:
            for i in range(e.n):
                column = e.hashes[i] if columns == NULL else columns[i]
                old = by_column[column]
                new = old + step * e.values[i]
                by_column[column] = new
                squares += (new - old) * (new + old)
                if behind:
                    sums_by_column[column] += b * (step * e.values[i])
            its.squares = squares
            return
        for i in range(e.n):
            if positions[i] == 0:  # which has a value of 0
                continue
            record = numbers_at(&self._table, positions[i]) + c
            old = record[0]
            new = old + step * e.values[i]
            record[0] = new
            squares += (new - old) * (new + old)
            if behind:
                record[behind] += b * (step * e.values[i])
        its.squares = squares

    # The weights by column of a matrix

    cdef int _begin_by_column(self, Py_ssize_t n_columns) noexcept nogil:
        cdef Py_ssize_t i, column
        cdef int64_t key
        self._by_column = <double*> calloc(n_columns + 1, sizeof(double))
        self._sums_by_column = <double*> calloc(n_columns + 1 if self.average else 1, sizeof(double))
        self._records_before = <char*> malloc((self._table.n + 1) * self._table.record_size)
        if (
            self._by_column == NULL or self._sums_by_column == NULL or self._records_before == NULL
            or make_room(&self._table, n_columns + 1) < 0
        ):
            self._drop_by_column()  # without room for what is gathered in at the end
            return -1
        self._n_by_column, self._n_before = n_columns, self._table.n
        memcpy(self._records_before, self._table.records, (self._table.n + 1) * self._table.record_size)
        for i in range(1, self._table.n + 1):
            if self._stands_by_column(hash_at(&self._table, i)):
                key = <int64_t> (hash_at(&self._table, i) * INVERSE_MULTIPLIER)
                column = n_columns if key < 0 else key
                self._by_column[column] = numbers_at(&self._table, i)[0]
                if self.average:
                    self._sums_by_column[column] = numbers_at(&self._table, i)[1]
        return 0

    cdef void _drop_by_column(self) noexcept nogil:
        free(self._by_column)
        free(self._sums_by_column)
        free(self._records_before)
        self._by_column = self._sums_by_column = NULL
        self._records_before = NULL

    cdef void _undo_by_column(self) noexcept nogil:
        """Have the table as it was before the loop."""
        self._table.n = self._n_before
        memcpy(self._table.records, self._records_before, (self._n_before + 1) * self._table.record_size)
        index_records(&self._table)
        self._drop_by_column()

    cdef bint _stands_by_column(self, uint64_t h) noexcept nogil:
        return h == INTERCEPT_HASH or 0 <= <int64_t> (h * INVERSE_MULTIPLIER) < self._n_by_column

    cdef int _end_by_column(self) noexcept nogil:
        cdef Py_ssize_t column, position
        cdef uint64_t h
        cdef int status = 0
        for column in range(self._n_by_column + 1):
            h = hash_key(column) if column < self._n_by_column else INTERCEPT_HASH
            if self._by_column[column] == 0.0 and not self._has(h):
                continue
            position = place_for(&self._table, h)
            if position < 0:
                status = -1
                break
            numbers_at(&self._table, position)[0] = self._by_column[column]
            if self.average:
                numbers_at(&self._table, position)[1] = self._sums_by_column[column]
        self._drop_by_column()
        return status

    # All weights at once

    cdef inline void _scale(self, Py_ssize_t c, double factor) noexcept nogil:
        self._columns[c].scale *= factor
        if fabs(self._columns[c].scale) < (FOLD_AVERAGED_BELOW if self.average else FOLD_BELOW):
            self._fold(c)

    cdef void _fold(self, Py_ssize_t c) noexcept nogil:
        cdef Py_ssize_t i
        cdef Column* its = &self._columns[c]
        cdef double* record
        cdef double a = its.scale
        its.scale, its.squares = 1.0, 0.0
        if a == 0.0 and its.sums_weight == 0.0 and self._width == 1:
            clear(&self._table)
            if self._positions != NULL:
                memset(self._positions, 0, self._positions_capacity * sizeof(Py_ssize_t))
        if self._by_column != NULL:
            for i in range(self._n_by_column + 1):
                if self.average:
                    self._sums_by_column[i] -= its.sums_scale * self._by_column[i]
                self._by_column[i] *= a
                its.squares += self._by_column[i] * self._by_column[i]
        for i in range(1, self._table.n + 1):
            record = numbers_at(&self._table, i)
            if self.average:
                record[self._width + c] -= its.sums_scale * record[c]
            record[c] *= a
            if self._by_column == NULL or not self._stands_by_column(hash_at(&self._table, i)):
                its.squares += record[c] * record[c]
        its.sums_scale = 0.0

    cdef void _accumulate(self, Py_ssize_t c, double weight) noexcept nogil:
        self._columns[c].sums_scale += weight * self._columns[c].scale
        self._columns[c].sums_weight += weight
