cdef struct Steps:  # of a column
    Py_ssize_t n_iterations, n_buffered
    Py_ssize_t batch_size  # of the step that is being taken
    bint due


cdef struct Buffered:  # of an example that waits for a step of a column: coefficient · value
    uint64_t hash
    double value
    Py_ssize_t column


cdef struct BeforeLoop:  # what a loop over a matrix changes beside the weights
    Column column
    Steps steps
    Calibration calibration


cdef enum:
    TWO
    OVR
    CRAMMER_SINGER


@cython.final
cdef class PegasosLearner(Learner):
    """Pegasos steps, with a mini-batch buffer: see pure/pegasos.py."""

    cdef readonly WeightDict weights
    cdef double _l2, _t0, _intercept_scaling
    cdef Py_ssize_t _batch_size, _average_from
    cdef bint _project, _average_by_t
    cdef int _reduction
    cdef Steps* _steps
    cdef double* _numbers  # the memory of the margins and of the next three
    cdef double* _current  # the margins by the w of now
    cdef double* _probabilities  # of classes
    cdef double* _signs  # of the example in each column where it violates the margin, else 0
    cdef Py_ssize_t _width  # how many columns there is room for
    cdef BeforeLoop _before
    cdef Buffered* _buffered
    cdef Py_ssize_t _buffer_size, _buffer_capacity

    def __init__(
        self, double l2, Py_ssize_t batch_size, double t0, bint project, double intercept_scaling,
        Py_ssize_t average_from=0, bint average_by_t=False, Py_ssize_t max_features=0, str reduction="two",
    ):
        self.parameters = {
            "l2": l2, "batch_size": batch_size, "t0": t0, "project": bool(project),
            "intercept_scaling": intercept_scaling, "average_from": average_from, "average_by_t": bool(average_by_t),
            "max_features": max_features, "reduction": reduction,
        }
        self._l2, self._t0, self._intercept_scaling = l2, t0, intercept_scaling
        self._batch_size, self._project = batch_size, project
        self._average_from, self._average_by_t = average_from, average_by_t
        self._max_features = max_features
        self._reduction = pegasos.REDUCTIONS.index(reduction)
        self.has_class_columns = reduction != "two"
        self.weights = WeightDict(average_from > 0, 0 if self.has_class_columns else 1)
        self._guard = self.weights._guard
        if self._make_room(self.weights._width) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._steps)
        free(self._numbers)
        free(self._buffered)

    def __sizeof__(self):
        return object.__sizeof__(self) + self._buffer_size * sizeof(Buffered)  # the weights count for themselves

    @property
    def declaration(self):
        return pegasos.declared(self._batch_size, self._average_from > 0, pegasos.REDUCTIONS[self._reduction])

    def has_columns_in(self, state):
        declared = pegasos.declared(self._batch_size, self._average_from > 0, "ovr")
        return self.parameters["reduction"] != "two" or declared.is_complete(state)

    @property
    def n_iterations(self):
        wait_for(self._guard, self._guard)  # as a loop may bring a class
        return max([self._steps[c].n_iterations for c in range(self.weights.n_columns)], default=0)

    @property
    def n_buffered(self):
        wait_for(self._guard, self._guard)
        return max([self._steps[c].n_buffered for c in range(self.weights.n_columns)], default=0)

    @property
    def n_learned(self):
        """Those that the oldest column has met."""
        cdef Py_ssize_t c, most = 0
        wait_for(self._guard, self._guard)
        for c in range(self.weights.n_columns):
            most = max(most, self._steps[c].n_iterations * self._batch_size + self._steps[c].n_buffered)
        return most

    @property
    def intercept(self):
        return self._intercept_scaling * self.get_weights(np.array([weights.INTERCEPT]))[0]

    def items(self):
        keys, values = self.weights.items()
        return keys[keys != weights.INTERCEPT], self._expand_pair(values[keys != weights.INTERCEPT])

    def get_weights(self, keys):
        return self._expand_pair(self.weights.get_weights(keys))

    def contributions(self, Encoder encoder not None, x, Py_ssize_t number=0):
        cdef double sign = self._sign_of(&number)
        row = encoder.row(x, False)
        pairs = zip(row.keys, row.values, strict=True)
        return {key: sign * row.factor * value * self.weights.get(key, number) for key, value in pairs}

    def flush(self):
        cdef Py_ssize_t c
        wait_for(self._guard, self._guard)
        for c in range(self.weights.n_columns):
            self._steps[c].due = self._steps[c].n_buffered > 0
        check_status(self._step(NULL, 1.0))

    def get_state(self, bint lazy=False):
        state = self.weights.get_state(lazy) | read_places(calibration_places(&self._calibration, self.has_class_columns))
        state |= copied(view_of(self._steps, self.weights.n_columns, records.STEPS_OF_COLUMN), records.STEPS)
        buffered = view_of(self._buffered, self._buffer_size, records.BUFFERED)
        return state | {"buffer_keys": keys_of(buffered["hash"]), **copied(buffered, ("buffer_columns", "buffer_values"))}

    def set_state(self, state):
        self.weights.set_state(state)
        if self.parameters["reduction"] == "two":
            self._reduction, self.has_class_columns = (OVR, True) if self.has_columns_in(state) else (TWO, False)
        write_places(calibration_places(&self._calibration, self.has_class_columns), state)
        if self._make_room(self.weights._width) < 0 or self._reserve_buffer(len(state["buffer_keys"])) < 0:
            raise MemoryError
        self._buffer_size = len(state["buffer_keys"])
        steps = view_of(self._steps, self.weights.n_columns, records.STEPS_OF_COLUMN)
        buffered = view_of(self._buffered, self._buffer_size, records.BUFFERED)
        for known, names in (steps, records.STEPS), (buffered, ("buffer_columns", "buffer_values")):
            for name in names:
                known[name] = state[name]
        buffered["hash"] = state["buffer_keys"].view(np.uint64) * np.uint64(MULTIPLIER)

    cdef Learner _view(self):
        cdef PegasosLearner view = PegasosLearner.__new__(PegasosLearner)
        view.weights, view._intercept_scaling = self.weights._view(), self._intercept_scaling
        view._average_from = self._average_from
        if view._make_room(view.weights._width) < 0:
            raise MemoryError
        return view._as_view(self)

    cdef Py_ssize_t _n_columns(self) noexcept nogil:
        return self.weights.n_columns

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        cdef Py_ssize_t n = self.weights._table.n
        return n - self.weights._has(INTERCEPT_HASH) if self._intercept_scaling != 0.0 else n

    cdef Py_ssize_t _n_held(self) noexcept nogil:
        return self.weights._table.n + self._buffer_size

    cdef int _make_room(self, Py_ssize_t width) noexcept nogil:
        """For as many columns."""
        cdef void* steps = realloc(self._steps, width * sizeof(Steps))
        cdef void* numbers
        if steps == NULL:
            return -1
        self._steps = <Steps*> steps
        if self._width == 0:
            self._steps[0] = Steps(0, 0, 0, False)
        numbers = realloc(self._numbers, 4 * width * sizeof(double))
        if numbers == NULL:
            return -1
        self._numbers = self._margins = self._current = <double*> numbers
        self._probabilities, self._signs = self._numbers + 2 * width, self._numbers + 3 * width
        if self._average_from:  # or else what learns is what predicts
            self._current = self._numbers + width
            memmove(self._current, self._numbers + self._width, self._width * sizeof(double))  # where a class is added
        self._width = width
        return 0

    cdef int _add_column(self) noexcept nogil:
        cdef Py_ssize_t c = self.weights.n_columns
        if self.weights._make_room_for_column() < 0:
            return -1
        if self.weights._width > self._width and self._make_room(self.weights._width) < 0:
            return -1
        self.weights._add_column()
        self._steps[c] = Steps(0, 0, 0, False)
        if self._reduction == CRAMMER_SINGER and c:
            self._steps[c] = Steps(self._steps[0].n_iterations, self._steps[0].n_buffered, 0, False)
        return 0

    cdef int _grow(self, Row* e) noexcept nogil:
        cdef Py_ssize_t i, n = self._buffer_size, n_new = 0 if e == NULL else e.n
        cdef Buffered* buffered
        if (
            self._make_room(max(<Py_ssize_t> FEWEST_COLUMNS, self._width)) < 0
            or self._reserve_buffer(2 * n + FEWEST_COLUMNS * n_new) < 0
            or make_room(&self.weights._table, 2 * n + n_new) < 0
            or self.weights._mirror() < 0
        ):
            return NO_MEMORY
        buffered = self._buffered
        for i in range(n):
            buffered[n + i] = Buffered(buffered[i].hash, buffered[i].value, 1)
            buffered[i].value = -buffered[i].value
        self._buffer_size = 2 * n
        self._steps[1] = self._steps[0]
        halve_slope(&self._calibration)
        self._reduction, self.has_class_columns = OVR, True
        if e != NULL and self._intercept_scaling != 0.0:
            e.n -= 1  # `_find_margins`, which follows, adds the intercept again
        return 0

    # Scoring

    cdef int _begin_many(self, Encoder encoder, Py_ssize_t n_classes) except -1:
        """Where columns of a matrix come again and again, have the weights by column; not where a third class may come,
        as `_mirror` does not know these.
        """
        if self.has_class_columns or n_classes > 2 or self._batch_size > 1 or self._max_features:
            return 0
        if isinstance(encoder, Rows) and (<Rows> encoder)._is_dense():
            if self.weights._begin_by_column((<Rows> encoder)._most + 1) < 0:
                raise MemoryError
            self._before = BeforeLoop(self.weights._columns[0], self._steps[0], self._calibration)
            (<Rows> encoder)._by_column = True
            (<Rows> encoder)._in_place = self._intercept_scaling == 0.0
        return 0

    cdef int _end_many(self, bint failed) noexcept nogil:
        """The weights by column are ahead of the table, so a loop that met a wrong value is undone as a whole."""
        if self.weights._by_column == NULL:
            return 0
        if not failed:
            return self.weights._end_by_column()
        self.weights._undo_by_column()
        self.weights._columns[0], self._steps[0], self._calibration = self._before.column, self._before.steps, self._before.calibration
        return 0

    cdef int _find_margins(self, Row* e) noexcept nogil:
        cdef Py_ssize_t n = e.n
        if self._intercept_scaling != 0.0:
            e.hashes[n] = INTERCEPT_HASH if self.weights._by_column == NULL else self.weights._n_by_column  # there is room for it
            e.values[n] = self._intercept_scaling / e.factor
            e.n = n + 1
        if self.weights._by_column == NULL and self.weights._find(e) < 0:
            return NO_MEMORY
        if self.has_class_columns:
            self._score_columns(e)
        else:
            self._score(e)
        return 0

    cdef void _score(self, const Row* e) noexcept nogil:
        cdef const Column* its = self.weights._columns
        cdef double sums, v = self.weights._inner(e, 0) if self.weights._by_column == NULL else inner(self.weights._by_column, e)
        self._current[0] = self._margins[0] = its.scale * e.factor * v
        if its.sums_weight != 0.0:
            sums = self.weights._inner(e, 1) if self.weights._by_column == NULL else inner(self.weights._sums_by_column, e)
            self._margins[0] = (its.sums_scale / its.scale * self._current[0] - e.factor * sums) / its.sums_weight

    cdef void _score_columns(self, const Row* e) noexcept nogil:
        cdef Py_ssize_t c
        cdef const Column* its = self.weights._columns
        self.weights._add_up(e, 0, self._current)
        if self._average_from:
            self.weights._add_up(e, self.weights._width, self._margins)
        for c in range(self.weights.n_columns):
            self._current[c] *= its[c].scale * e.factor
            if self._average_from == 0:
                continue
            if its[c].sums_weight == 0.0:
                self._margins[c] = self._current[c]
            else:
                self._margins[c] *= -e.factor
                self._margins[c] += its[c].sums_scale / its[c].scale * self._current[c]
                self._margins[c] /= its[c].sums_weight

    # Learning

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        cdef Py_ssize_t c, number = <Py_ssize_t> y
        cdef double calibration_weight = min(weight, LARGEST_CALIBRATION_WEIGHT)
        cdef Steps* its
        cdef bint violates
        if self.has_class_columns and not 0 <= number <= self.weights.n_columns:
            return NO_CLASS
        if self.weights._by_column == NULL and self._reserve(e) < 0:
            return NO_MEMORY
        if self.has_class_columns and number == self.weights.n_columns:
            if self._add_column() < 0:
                return NO_MEMORY
            self._margins[number] = self._current[number] = 0.0
            self.weights._find(e)
        if self.has_class_columns:
            calibrate_class(&self._calibration, number, self._margins, self._margins, self.weights.n_columns, self._probabilities, calibration_weight)
            learn_confidence(&self._calibration, self._probabilities, self.weights.n_columns, number, calibration_weight)
        else:
            calibrate(&self._calibration, self._margins[0], probability, y, calibration_weight)
        violates = self._find_violations(number)
        for c in range(self.weights.n_columns):
            its = &self._steps[c]
            its.n_buffered += 1
            its.due = its.n_buffered == self._batch_size
            if self._signs[c] != 0.0 and self._batch_size > 1:
                self._buffer(e, c, self._signs[c] * weight)
        return self._step(e if violates and self._batch_size == 1 else NULL, weight)

    cdef bint _find_violations(self, Py_ssize_t y) noexcept nogil:
        """Where the example violates the margin, and whether it does so anywhere. One column takes y as −1 or 1."""
        cdef Py_ssize_t c, rival = -1
        cdef double sign
        cdef bint violates = False
        for c in range(self.weights.n_columns):
            self._signs[c] = 0.0
            if self._reduction == CRAMMER_SINGER:  # the example's class is to beat the best other one
                if c != y and (rival < 0 or self._current[c] > self._current[rival]):
                    rival = c
                continue
            sign = <double> y if not self.has_class_columns else 1.0 if c == y else -1.0
            if sign * self._current[c] < 1.0:
                self._signs[c], violates = sign, True
        if rival >= 0 and self._current[y] - self._current[rival] < 1.0:
            self._signs[y], self._signs[rival], violates = 1.0, -1.0, True
        return violates

    # Steps

    cdef int _step(self, Row* e, double weight) noexcept nogil:
        """One step of Pegasos on each column that is due (2007, figure 1), with e or, if it is NULL, with the buffer:

        t ← t + 1,   η = 1 / (λ t)               of which t0 steps count as already taken
        w ← (1 − ηλ) w + (η/k) Σ c y x           over those with y⟨w, x⟩ < 1
        w ← min(1, 1/(√λ ‖w‖)) w                 if asked for
        """
        cdef Py_ssize_t c
        for c in range(self.weights.n_columns):
            if self._steps[c].due:
                self._shrink(c)
        if e == NULL:
            if self._buffer_size and self._empty_buffer() < 0:
                return NO_MEMORY
        else:
            if self.weights._by_column == NULL and self.weights._make_records(e) < 0:
                return NO_MEMORY
            for c in range(self.weights.n_columns):
                if self._signs[c] != 0.0:
                    self.weights._add_example(c, e, self._signs[c] * weight, self._inverse_rate(c))
        if self._project:
            self._back_into_ball()
        for c in range(self.weights.n_columns if self._average_from else 0):
            if self._steps[c].due and self._average_from <= self._steps[c].n_iterations:
                self.weights._accumulate(c, <double> self._steps[c].n_iterations if self._average_by_t else 1.0)
        return 0

    cdef inline void _shrink(self, Py_ssize_t c) noexcept nogil:
        """t ← t + 1,   w_c ← (1 − ηλ) w_c"""
        cdef Steps* its = &self._steps[c]
        cdef double t
        its.batch_size, its.n_buffered = its.n_buffered, 0
        its.n_iterations += 1
        t = its.n_iterations + self._t0
        self.weights._scale(c, (t - 1.0) / t)

    cdef inline double _inverse_rate(self, Py_ssize_t c) noexcept nogil:
        """1/η, that is λ(t + t0)."""
        return self._l2 * (self._steps[c].n_iterations + self._t0)

    cdef inline void _back_into_ball(self) noexcept nogil:
        """Project each column that is due or, where all are one vector, all of them."""
        cdef Py_ssize_t c
        cdef bint is_joint = self._reduction == CRAMMER_SINGER
        cdef double ratio = 0.0
        cdef const Column* its
        for c in range(self.weights.n_columns):
            if not self._steps[c].due:
                continue
            its = &self.weights._columns[c]
            ratio = (ratio if is_joint else 0.0) + self._l2 * its.scale * its.scale * its.squares
            if ratio > 1.0 and not is_joint:
                self.weights._scale(c, 1.0 / sqrt(ratio))
        for c in range(self.weights.n_columns if is_joint and ratio > 1.0 else 0):
            self.weights._scale(c, 1.0 / sqrt(ratio))

    cdef int _reserve(self, const Row* e) noexcept nogil:
        """Have room for what learning an example may add, before anything changes."""
        cdef Py_ssize_t n_columns = self.weights.n_columns + 1 if self.has_class_columns else 1
        if self._batch_size == 1:
            return make_room_for(&self.weights._table, e)
        if self._reserve_buffer(self._buffer_size + n_columns * e.n) < 0:
            return -1
        return make_room(&self.weights._table, self._buffer_size + e.n)

    # The mini-batch buffer

    cdef int _reserve_buffer(self, Py_ssize_t n) noexcept nogil:
        return sp_reserve(&self._buffered, &self._buffer_capacity, n, sizeof(Buffered))

    cdef void _buffer(self, const Row* e, Py_ssize_t c, double coefficient) noexcept nogil:
        """Keep coefficient · x for the next step of a column; there is room for it."""
        cdef Py_ssize_t i
        for i in range(e.n):
            self._buffered[self._buffer_size + i] = Buffered(e.hashes[i], coefficient * e.factor * e.values[i], c)
        self._buffer_size += e.n

    cdef int _empty_buffer(self) noexcept nogil:
        """Add what it holds for the columns that are due, and keep the rest."""
        cdef Py_ssize_t i, n = 0
        cdef const Buffered* one
        cdef const Steps* its
        cdef Py_ssize_t position
        cdef double step
        for i in range(self._buffer_size):
            one = &self._buffered[i]
            its = &self._steps[one.column]
            if not its.due:
                self._buffered[n] = one[0]
                n += 1
            elif one.value != 0.0 or self.weights._has(one.hash):
                position = place_for(&self.weights._table, one.hash)
                if position < 0:
                    return NO_MEMORY
                step = 1.0 / (self._inverse_rate(one.column) * its.batch_size) * one.value
                self.weights._add_at(numbers_at(&self.weights._table, position), one.column, step / self.weights._columns[one.column].scale)
        self._buffer_size = n
        return 0
