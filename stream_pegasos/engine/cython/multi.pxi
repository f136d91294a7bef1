cdef struct Column:
    double a, squares  # w = a·v, and ‖v‖²
    Py_ssize_t n_iterations, n_buffered


cdef enum:
    FEWEST_COLUMNS = 3


@cython.final
cdef class MultiLearner:
    """The entry of a feature has a row of weights, one a column, so that one search finds them all."""

    cdef readonly tuple arguments
    cdef double _l2, _t0, _intercept_scaling
    cdef Py_ssize_t _batch_size
    cdef bint _project, _joint
    cdef Table _table
    cdef Column* _columns
    cdef double* _numbers  # the memory of the next three
    cdef double* _margins  # of the example in hand, by column
    cdef double* _own_signs  # of its class, by column
    cdef double* _nothing  # the weights of a feature that is not there
    cdef readonly Py_ssize_t n_columns
    cdef Py_ssize_t _width  # how many columns there is room for
    cdef Calibration _calibration
    cdef uint64_t* _buffer_hashes
    cdef double* _buffer_values
    cdef Py_ssize_t* _buffer_columns
    cdef Py_ssize_t _buffer_size, _buffer_hashes_capacity, _buffer_values_capacity, _buffer_columns_capacity
    cdef Py_ssize_t* _slots  # where in the table each feature of the example in hand is
    cdef Py_ssize_t _slots_capacity
    cdef Guard _guard
    cdef Hand _hand

    def __init__(
        self, double l2, Py_ssize_t batch_size, double t0, bint project, double intercept_scaling, bint joint
    ):
        self.arguments = (l2, batch_size, t0, bool(project), intercept_scaling, bool(joint))
        self._guard, self._hand = Guard(), Hand()
        self._l2, self._t0, self._intercept_scaling = l2, t0, intercept_scaling
        self._batch_size, self._project, self._joint = batch_size, project, joint
        self._calibration.slope = 1.0
        if self._widen(FEWEST_COLUMNS) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._table.words)
        free(self._columns)
        free(self._numbers)
        free(self._buffer_hashes)
        free(self._buffer_values)
        free(self._buffer_columns)
        free(self._slots)

    @property
    def n_held(self):
        return self._n_held()

    def __sizeof__(self):
        return object.__sizeof__(self) + end(&self._table) * sizeof(Word) + self._buffer_size * 24

    @property
    def n_iterations(self):
        wait_for(self._guard, self._guard)
        return np.array([self._columns[c].n_iterations for c in range(self.n_columns)], np.int64)

    @property
    def slope(self):
        return self._calibration.slope

    def items(self):
        state = self.get_state()
        return state["keys"], state["values"] * state["scale"]

    def add_column(self):
        wait_for(self._guard, self._guard)
        if self._add_column() < 0:
            raise MemoryError

    def clear_column(self, Py_ssize_t column):
        cdef Py_ssize_t i, n = 0
        wait_for(self._guard, self._guard)
        self._columns[column].a = 0.0
        self._fold(column)
        self._columns[column].n_iterations = self._columns[column].n_buffered = 0
        for i in range(self._buffer_size):
            if self._buffer_columns[i] != column:
                self._keep(i, n)
                n += 1
        self._buffer_size = n

    def margins(self, Encoder encoder not None, x):
        cdef Py_ssize_t c
        load_one(encoder, self._guard, self._hand, x, False)
        if self._begin(&self._hand.example) < 0:
            raise MemoryError
        self._find_margins(&self._hand.example)
        result = np.empty(self.n_columns)
        cdef double[::1] out = result
        for c in range(self.n_columns):
            out[c] = self._margins[c]
        return result

    def learn(self, Encoder encoder not None, x, Py_ssize_t y, double weight, signs=None):
        cdef Example* e = &self._hand.example
        cdef const double[:, ::1] given
        cdef const double* own = NULL
        if signs is not None:
            given = signs
            own = &given[y, 0] if given.shape[1] else self._own_signs
        load_one(encoder, self._guard, self._hand, x, True)
        if self._begin(e) < 0:
            raise MemoryError
        self._find_margins(e)
        if self._learn(e, y, weight, own) < 0:
            raise MemoryError
        return encoder.is_crowded(self._n_held())

    def predict_learn_many(self, Encoder encoder not None, X, y=None, weights=None, signs=None):
        begin_loop(encoder._guard, self._guard)
        try:
            return self._predict_learn_many(encoder, X, y, weights, signs)
        finally:
            encoder._release()
            end_loop(encoder._guard, self._guard)

    cdef _predict_learn_many(self, Encoder encoder, X, y, weights, signs):
        cdef Py_ssize_t i, c, n, n_done, n_columns = self.n_columns
        cdef bint learning = y is not None, weighted = weights is not None, separate = signs is not None
        cdef const int64_t[::1] classes
        cdef const double[::1] example_weights
        cdef const double[:, ::1] given
        cdef const double* own = NULL
        cdef double[:, ::1] out_margins
        cdef double[::1] out_slopes
        cdef Example* e = &encoder._example
        cdef int status = 0
        if learning:
            classes = y
            if not separate and len(y):
                n_columns = max(n_columns, <Py_ssize_t> y.max() + 1)
        if weighted:
            example_weights = weights
        if separate:
            given = signs
        n = n_done = encoder._load_many(X, learning)
        margins, slopes = np.full((n, n_columns), -np.inf), np.empty(n)
        out_margins, out_slopes = margins, slopes
        with nogil:
            for i in range(n):
                if encoder._fetch(i) < 0 or self._begin(e) < 0:
                    status = -1
                    break
                self._find_margins(e)
                for c in range(self.n_columns):
                    out_margins[i, c] = self._margins[c]
                out_slopes[i] = self._calibration.slope
                if learning:
                    if separate:
                        own = &given[classes[i], 0] if given.shape[1] else self._own_signs
                    status = self._learn(e, classes[i], example_weights[i] if weighted else 1.0, own)
                    if status < 0:
                        break
                    if encoder._is_crowded(self._n_held()):
                        n_done = i + 1
                        break
        if status < 0:
            raise MemoryError
        return margins[:n_done], slopes[:n_done]

    def flush(self):
        cdef Py_ssize_t c
        wait_for(self._guard, self._guard)
        if self._joint:
            if self.n_columns and self._columns[0].n_buffered and self._joint_step() < 0:
                raise MemoryError
            return
        for c in range(self.n_columns):
            if self._columns[c].n_buffered and self._step(c) < 0:
                raise MemoryError

    def get_state(self):
        cdef Py_ssize_t j, c, i = 0, n = self.n_columns
        cdef Word* entry
        cdef Place* places
        wait_for(self._guard, self._guard)
        keys, values = np.empty(self._table.n, np.int64), np.empty((self._table.n, n), np.float64)
        cdef int64_t[::1] k = keys
        cdef double[:, ::1] v = values
        places = places_in_order(&self._table)
        for j in range(n_places(&self._table, places)):
            entry = &self._table.words[place(&self._table, places, j)]
            if entry.hash != EMPTY:
                k[i] = <int64_t> (entry.hash * INVERSE_MULTIPLIER)
                for c in range(n):
                    v[i, c] = entry[1 + c].v
                i += 1
        free(places)
        buffered = range(self._buffer_size)
        return {
            "keys": keys,
            "values": values,
            "scale": np.array([self._columns[c].a for c in range(n)], np.float64),
            "squares": np.array([self._columns[c].squares for c in range(n)], np.float64),
            "n_iterations": np.array([self._columns[c].n_iterations for c in range(n)], np.int64),
            "n_buffered": np.array([self._columns[c].n_buffered for c in range(n)], np.int64),
            "buffer_keys": np.array(
                [<int64_t> (self._buffer_hashes[i] * INVERSE_MULTIPLIER) for i in buffered], np.int64
            ),
            "buffer_columns": np.array([self._buffer_columns[i] for i in buffered], np.int64),
            "buffer_values": np.array([self._buffer_values[i] for i in buffered], np.float64),
            "slope": self._calibration.slope,
            "calibration_squares": self._calibration.squares,
        }

    def set_state(self, state):
        cdef Py_ssize_t i, p, c, n = len(state["scale"])
        wait_for(self._guard, self._guard)
        hashes = state["keys"].view(np.uint64) * np.uint64(MULTIPLIER)
        order = np.argsort(hashes, kind="stable")  # quick where they are in order, as in files
        cdef const uint64_t[::1] h = hashes[order]
        cdef const double[:, ::1] v = np.ascontiguousarray(state["values"][order])
        self.n_columns = 0
        for c in range(n):
            if self._add_column() < 0:
                raise MemoryError
            self._columns[c].a, self._columns[c].squares = state["scale"][c], state["squares"][c]
            self._columns[c].n_iterations = state["n_iterations"][c]
            self._columns[c].n_buffered = state["n_buffered"][c]
        if make_for(&self._table, h.shape[0], self._table.stride) < 0:
            raise MemoryError
        for i in range(h.shape[0]):
            p = insert(&self._table, seek(&self._table, h[i]), h[i])
            if p < 0:
                raise MemoryError
            for c in range(n):
                self._table.words[p + 1 + c].v = v[i, c]
        self._buffer_size = 0
        if self._reserve_buffer(len(state["buffer_keys"])) < 0:
            raise MemoryError
        for i in range(len(state["buffer_keys"])):
            self._buffer_hashes[i] = hash_key(state["buffer_keys"][i])
            self._buffer_values[i] = state["buffer_values"][i]
            self._buffer_columns[i] = state["buffer_columns"][i]
        self._buffer_size = len(state["buffer_keys"])
        self._calibration.slope, self._calibration.squares = state["slope"], state["calibration_squares"]

    cdef Py_ssize_t _n_held(self) noexcept nogil:
        return self._table.n + self._buffer_size

    cdef int _widen(self, Py_ssize_t width) noexcept nogil:
        """Make room for `width` columns."""
        cdef Column* columns = <Column*> realloc(self._columns, width * sizeof(Column))
        cdef double* numbers
        if columns == NULL:
            return -1
        self._columns = columns
        numbers = <double*> realloc(self._numbers, 3 * width * sizeof(double))
        if numbers == NULL:
            return -1
        memset(numbers + 2 * width, 0, width * sizeof(double))
        self._numbers, self._margins = numbers, numbers
        self._own_signs, self._nothing = numbers + width, numbers + 2 * width
        self._width = width
        if self._table.words == NULL:
            return make_for(&self._table, 0, 1 + width)
        return rebuild(&self._table, self._table.n_homes, SPARE_SLOTS, 1 + width)

    cdef int _add_column(self) noexcept nogil:
        cdef Column* column
        if self.n_columns == self._width and self._widen(self._width + max(self._width >> 2, 1)) < 0:
            return -1
        column = &self._columns[self.n_columns]
        column.a, column.squares, column.n_iterations, column.n_buffered = 1.0, 0.0, 0, 0
        if self._joint and self.n_columns:
            column.n_iterations, column.n_buffered = self._columns[0].n_iterations, self._columns[0].n_buffered
        self.n_columns += 1
        return 0

    cdef int _begin(self, Example* e) noexcept nogil:
        """Add the constant feature, and begin to look for the entries."""
        cdef Py_ssize_t n = e.n
        if self._intercept_scaling != 0.0:
            e.hashes[n] = INTERCEPT_HASH
            e.values[n] = self._intercept_scaling / e.factor
            e.n = n = n + 1
        if reserve(<void**> &self._slots, &self._slots_capacity, n, sizeof(Py_ssize_t)) < 0:
            return -1
        find_homes(&self._table, e, self._slots)
        return 0

    cdef void _find_margins(self, Example* e) noexcept nogil:
        cdef Py_ssize_t i, j, c, n = self.n_columns, n_rows
        cdef const double* rows[4]
        cdef const Word* entry
        memset(self._margins, 0, n * sizeof(double))
        find_entries(&self._table, e, self._slots)
        for i in range(0, e.n, 4):
            n_rows = min(e.n - i, 4)
            for j in range(n_rows):
                entry = &self._table.words[self._slots[i + j]]
                rows[j] = &entry[1].v if entry.hash == e.hashes[i + j] else self._nothing
            sp_add_scaled(self._margins, rows, e.values + i, n_rows, n)
        for c in range(n):
            self._margins[c] *= self._columns[c].a * e.factor

    cdef int _learn(self, Example* e, Py_ssize_t y, double weight, const double* signs) noexcept nogil:
        """Take in the example whose margins and slots have been found; without signs the columns are the classes."""
        cdef Py_ssize_t c, rival = -1
        if signs == NULL:
            if y == self.n_columns:
                if self._add_column() < 0:
                    return -1
                self._margins[y] = 0.0
                for c in range(e.n):  # wider entries are elsewhere
                    self._slots[c] = seek(&self._table, e.hashes[c])
            self._calibrate(y)
        if not self._joint:
            for c in range(self.n_columns):
                self._own_signs[c] = signs[c] if signs != NULL else 1.0 if c == y else -1.0
            return self._learn_separately(e, weight)
        for c in range(self.n_columns):
            if c != y and (rival < 0 or self._margins[c] > self._margins[rival]):
                rival = c
        if rival >= 0 and self._margins[y] - self._margins[rival] >= 1.0:
            rival = -1
        for c in range(self.n_columns):
            self._columns[c].n_buffered += 1
        if self._batch_size > 1:
            if rival >= 0:
                if self._buffer(e, y, weight) < 0 or self._buffer(e, rival, -weight) < 0:
                    return -1
            return self._joint_step() if self._columns[0].n_buffered == self._batch_size else 0
        if rival >= 0 and self._make_entries(e) < 0:
            return -1
        self._begin_joint_step()
        if rival >= 0:
            weight /= self._l2 * (self._columns[0].n_iterations + self._t0)
            self._add(e, y, weight)
            self._add(e, rival, -weight)
        self._end_joint_step()
        return 0

    cdef int _learn_separately(self, Example* e, double weight) noexcept nogil:
        cdef Py_ssize_t c
        cdef double sign
        cdef bint violated, ready = False
        for c in range(self.n_columns):
            sign = self._own_signs[c]
            if sign == 0.0:
                continue
            violated = sign * self._margins[c] < 1.0
            self._columns[c].n_buffered += 1
            if self._batch_size > 1:
                if violated and self._buffer(e, c, sign * weight) < 0:
                    return -1
                if self._columns[c].n_buffered == self._batch_size and self._step(c) < 0:
                    return -1
                continue
            if violated and not ready:
                if self._make_entries(e) < 0:
                    return -1
                ready = True
            self._begin_step(c)
            if violated:
                self._add(e, c, sign * weight / (self._l2 * (self._columns[c].n_iterations + self._t0)))
            self._end_step(c)
        return 0

    cdef int _make_entries(self, Example* e) noexcept nogil:
        """Have an entry for each feature, and know where it is."""
        cdef Py_ssize_t i
        cdef bint moved = False
        for i in range(e.n):
            if moved or self._table.words[self._slots[i]].hash != e.hashes[i]:
                self._slots[i] = seek(&self._table, e.hashes[i])
                if self._table.words[self._slots[i]].hash != e.hashes[i] and e.values[i] != 0.0:
                    if insert(&self._table, self._slots[i], e.hashes[i]) < 0:
                        return -1
                    moved = True
        if moved:
            for i in range(e.n):
                self._slots[i] = seek(&self._table, e.hashes[i])
        return 0

    cdef void _add(self, Example* e, Py_ssize_t c, double step) noexcept nogil:
        """w_c ← w_c + step · x"""
        cdef Py_ssize_t i
        cdef Word* entry
        step *= e.factor / self._columns[c].a
        for i in range(e.n):
            entry = &self._table.words[self._slots[i]]
            if entry.hash == e.hashes[i]:
                self._add_at(&entry[1 + c].v, c, step * e.values[i])

    cdef inline void _add_at(self, double* v, Py_ssize_t c, double step) noexcept nogil:
        cdef double old = v[0], new = old + step
        v[0] = new
        self._columns[c].squares += (new - old) * (new + old)

    cdef int _add_buffered(self, Py_ssize_t i, double factor) noexcept nogil:
        cdef Py_ssize_t c = self._buffer_columns[i], p = seek(&self._table, self._buffer_hashes[i])
        if self._table.words[p].hash != self._buffer_hashes[i]:
            if self._buffer_values[i] == 0.0:
                return 0
            p = insert(&self._table, p, self._buffer_hashes[i])
            if p < 0:
                return -1
        self._add_at(&self._table.words[p + 1 + c].v, c, factor * self._buffer_values[i] / self._columns[c].a)
        return 0

    cdef int _step(self, Py_ssize_t c) noexcept nogil:
        """The step of a column with what the buffer holds for it."""
        cdef Py_ssize_t i, n = 0, k = self._columns[c].n_buffered
        self._begin_step(c)
        for i in range(self._buffer_size):
            if self._buffer_columns[i] != c:
                self._keep(i, n)
                n += 1
            elif self._add_buffered(i, 1.0 / (self._l2 * (self._columns[c].n_iterations + self._t0) * k)) < 0:
                return -1
        self._buffer_size = n
        self._end_step(c)
        return 0

    cdef int _joint_step(self) noexcept nogil:
        cdef Py_ssize_t i, k = self._columns[0].n_buffered
        self._begin_joint_step()
        for i in range(self._buffer_size):
            if self._add_buffered(i, 1.0 / (self._l2 * (self._columns[0].n_iterations + self._t0) * k)) < 0:
                return -1
        self._buffer_size = 0
        self._end_joint_step()
        return 0

    cdef void _begin_step(self, Py_ssize_t c) noexcept nogil:
        cdef double n
        self._columns[c].n_buffered = 0
        self._columns[c].n_iterations += 1
        n = self._columns[c].n_iterations + self._t0
        self._scale(c, (n - 1.0) / n)

    cdef void _end_step(self, Py_ssize_t c) noexcept nogil:
        cdef double ratio = self._l2 * self._squared_norm(c)
        if self._project and ratio > 1.0:
            self._scale(c, 1.0 / sqrt(ratio))

    cdef void _begin_joint_step(self) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.n_columns):
            self._begin_step(c)

    cdef void _end_joint_step(self) noexcept nogil:
        cdef Py_ssize_t c
        cdef double ratio = 0.0
        for c in range(self.n_columns):
            ratio += self._l2 * self._squared_norm(c)
        if self._project and ratio > 1.0:
            for c in range(self.n_columns):
                self._scale(c, 1.0 / sqrt(ratio))

    cdef inline double _squared_norm(self, Py_ssize_t c) noexcept nogil:
        return self._columns[c].a * self._columns[c].a * self._columns[c].squares

    cdef inline void _scale(self, Py_ssize_t c, double factor) noexcept nogil:
        self._columns[c].a *= factor
        if fabs(self._columns[c].a) < FOLD_BELOW:
            self._fold(c)

    cdef void _fold(self, Py_ssize_t c) noexcept nogil:
        cdef Py_ssize_t i
        cdef Word* entry
        cdef Place* places = places_in_order(&self._table)
        cdef double a = self._columns[c].a, squares = 0.0
        for i in range(n_places(&self._table, places)):
            entry = &self._table.words[place(&self._table, places, i)]
            if entry.hash != EMPTY:
                entry[1 + c].v *= a
                squares += entry[1 + c].v * entry[1 + c].v
        free(places)
        self._columns[c].a, self._columns[c].squares = 1.0, squares

    cdef void _calibrate(self, Py_ssize_t y) noexcept nogil:
        """One step on the log loss of class y, whose probability is the softmax of slope · margins."""
        cdef Py_ssize_t c
        cdef double largest = self._margins[0], total = 0.0, expected = 0.0, term
        for c in range(self.n_columns):
            largest = max(largest, self._margins[c])
        for c in range(self.n_columns):
            term = exp(self._calibration.slope * (self._margins[c] - largest))
            total += term
            expected += term * self._margins[c]
        calibrate(&self._calibration, expected / total - self._margins[y])

    cdef int _reserve_buffer(self, Py_ssize_t n) noexcept nogil:
        if reserve(<void**> &self._buffer_hashes, &self._buffer_hashes_capacity, n, sizeof(uint64_t)) < 0:
            return -1
        if reserve(<void**> &self._buffer_values, &self._buffer_values_capacity, n, sizeof(double)) < 0:
            return -1
        return reserve(<void**> &self._buffer_columns, &self._buffer_columns_capacity, n, sizeof(Py_ssize_t))

    cdef int _buffer(self, Example* e, Py_ssize_t c, double coefficient) noexcept nogil:
        cdef Py_ssize_t i, n = self._buffer_size
        if self._reserve_buffer(n + e.n) < 0:
            return -1
        for i in range(e.n):
            self._buffer_hashes[n + i] = e.hashes[i]
            self._buffer_values[n + i] = coefficient * e.factor * e.values[i]
            self._buffer_columns[n + i] = c
        self._buffer_size = n + e.n
        return 0

    cdef void _keep(self, Py_ssize_t i, Py_ssize_t at) noexcept nogil:
        self._buffer_hashes[at] = self._buffer_hashes[i]
        self._buffer_values[at] = self._buffer_values[i]
        self._buffer_columns[at] = self._buffer_columns[i]
