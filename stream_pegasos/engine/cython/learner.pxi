cdef inline double logistic(double z) noexcept nogil:
    return 1.0 / (1.0 + exp(-min(max(z, -34.0), 34.0)))


def signs_of(y, dict signs):
    """The value in `signs` of each label of a list, or None if one is not there."""
    cdef Py_ssize_t i, n = len(y)
    cdef list labels = y
    cdef PyObject* label
    cdef PyObject* before = NULL
    cdef double sign = 0.0
    result = np.empty(n)
    cdef double[::1] out = result
    for i in range(n):
        label = PyList_GET_ITEM(labels, i)
        if label != before:
            found = signs.get(<object> label)
            if found is None:
                return None
            sign, before = found, label
        out[i] = sign
    return result


cdef struct Calibration:
    double slope, squares


cdef double probability_of(const Calibration* calibration, double margin) noexcept nogil:
    cdef double p = logistic(calibration.slope * margin)
    return max(p, 0.5 + 1.1102230246251565e-16) if margin > 0.0 else p


cdef void calibrate(Calibration* calibration, double gradient) noexcept nogil:
    cdef double slope
    gradient = min(max(calibration.slope * gradient, -LARGEST_GRADIENT), LARGEST_GRADIENT)
    if fabs(gradient) >= SMALLEST_GRADIENT:
        calibration.squares = CALIBRATION_MEMORY * calibration.squares + gradient * gradient
        slope = calibration.slope * (1.0 - CALIBRATION_RATE * gradient / sqrt(calibration.squares))
        calibration.slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)


cdef inline double inner(const double* weights, const Example* e) noexcept nogil:
    """The sum of weight · value, the hashes of the example being columns."""
    cdef Py_ssize_t i
    cdef double even = 0.0, odd = 0.0
    for i in range(0, e.n - 1, 2):
        even += weights[e.hashes[i]] * e.values[i]
        odd += weights[e.hashes[i + 1]] * e.values[i + 1]
    if e.n & 1:
        even += weights[e.hashes[e.n - 1]] * e.values[e.n - 1]
    return even + odd


cdef inline double term(const Word* number, Py_ssize_t word, const Example* e, Py_ssize_t i) noexcept nogil:
    """Weight · value of a feature, given that word of the entry at its slot; 0 if the entry is another's."""
    return sp_take(number.v, number[-word].hash == e.hashes[i]) * e.values[i]


@cython.final
cdef class Learner:
    cdef readonly tuple arguments
    cdef readonly WeightDict weights
    cdef readonly Py_ssize_t n_iterations
    cdef readonly Py_ssize_t n_buffered
    cdef double _l2, _t0, _intercept_scaling
    cdef Py_ssize_t _batch_size, _average_from, _max_features
    cdef bint _project, _average_by_t, _only_violations
    cdef object _initializer
    cdef double _initial_scale
    cdef Calibration _calibration
    cdef Py_ssize_t _n_violations
    cdef uint64_t* _buffer_hashes
    cdef double* _buffer_values
    cdef Py_ssize_t _buffer_size, _buffer_hashes_capacity, _buffer_values_capacity
    cdef Hand _hand
    cdef Py_ssize_t* _slots  # where in the table each feature of the example in hand is
    cdef Py_ssize_t _slots_capacity

    def __init__(
        self,
        double l2,
        Py_ssize_t batch_size,
        double t0,
        bint project,
        double intercept_scaling,
        Py_ssize_t average_from=0,
        bint average_by_t=False,
        bint only_violations=False,
        initializer=None,
        Py_ssize_t max_features=0,
    ):
        self.arguments = (
            l2,
            batch_size,
            t0,
            bool(project),
            intercept_scaling,
            average_from,
            bool(average_by_t),
            bool(only_violations),
            initializer,
            max_features,
        )
        self.weights = WeightDict(average_from > 0)
        self._hand = Hand()
        self._l2, self._t0, self._intercept_scaling = l2, t0, intercept_scaling
        self._batch_size, self._project = batch_size, project
        self._average_from, self._average_by_t = average_from, average_by_t
        self._only_violations = only_violations
        self._initializer, self._initial_scale, self._max_features = initializer, 1.0, max_features
        self._calibration.slope = 1.0

    def __dealloc__(self):
        free(self._buffer_hashes)
        free(self._buffer_values)
        free(self._slots)

    def __len__(self):
        return self._n_features()

    @property
    def n_held(self):
        return self._n_held()

    def weights_of(self, keys):
        return np.array([self.weights.get(key) for key in keys.tolist()], np.float64)

    def __sizeof__(self):
        return object.__sizeof__(self) + self._buffer_size * 16  # the weights count for themselves

    def margin(self, Encoder encoder not None, x):
        cdef Example* e = &self._hand.example
        load_one(encoder, self.weights._guard, self._hand, x, False)
        if self._begin(e) < 0:
            raise MemoryError
        return self._predict(e, self._margin(e))

    def probability(self, double margin):
        return probability_of(&self._calibration, margin)

    def learn(self, Encoder encoder not None, x, double y, double weight):
        cdef Example* e = &self._hand.example
        cdef double margin, predicted
        if self._initializer is not None:  # Python runs in the middle of the step, which only loops are prepared for
            self.predict_learn_many(encoder, [x], np.array([y]), np.array([weight]))
            return encoder.is_crowded(self._n_held())
        load_one(encoder, self.weights._guard, self._hand, x, True)
        if self._begin(e) < 0:
            raise MemoryError
        margin = self._margin(e)
        predicted = self._predict(e, margin)
        if self._learn(e, margin, predicted, probability_of(&self._calibration, predicted), y, weight) < 0:
            raise MemoryError
        return encoder.is_crowded(self._n_held())

    def predict_learn_many(self, Encoder encoder not None, X, y=None, weights=None):
        begin_loop(encoder._guard, self.weights._guard)
        try:
            return self._predict_learn_many(encoder, X, y, weights)
        finally:
            encoder._release()
            end_loop(encoder._guard, self.weights._guard)

    cdef _predict_learn_many(self, Encoder encoder, X, y, weights):
        cdef Py_ssize_t i, n, n_done
        cdef bint learning = y is not None, weighted = weights is not None
        cdef bint initializing = learning and self._initializer is not None
        cdef const double[::1] labels, example_weights
        cdef double[::1] out_margins, out_probabilities
        cdef double margin
        cdef Example* e = &encoder._example
        cdef int status = 0
        if learning:
            labels = y
        if weighted:
            example_weights = weights
        n = n_done = encoder._load_many(X, learning)
        margins, probabilities = np.empty(n), np.empty(n)
        out_margins, out_probabilities = margins, probabilities
        if self._is_plain() and isinstance(encoder, Rows) and (<Rows> encoder)._is_dense():
            if self.weights._spread_out((<Rows> encoder)._most + 1) < 0:
                raise MemoryError
            (<Rows> encoder)._spread = True
            (<Rows> encoder)._in_place = self._intercept_scaling == 0.0
        with nogil:
            for i in range(n):
                if encoder._fetch(i) < 0 or self._begin(e) < 0:
                    status = -1
                    break
                margin = self._margin(e)
                out_margins[i] = self._predict(e, margin)
                out_probabilities[i] = probability_of(&self._calibration, out_margins[i])
                if initializing:
                    with gil:
                        margin = self._initialize(encoder)
                if learning:
                    status = self._learn(
                        e,
                        margin,
                        out_margins[i],
                        out_probabilities[i],
                        labels[i],
                        example_weights[i] if weighted else 1.0,
                    )
                    if status < 0:
                        break
                    if 0 < self._max_features < self._n_features() or encoder._is_crowded(self._n_held()):
                        n_done = i + 1
                        break
            if self.weights._spread != NULL and self.weights._gather_in() < 0:
                status = -1
        if status < 0:
            raise MemoryError
        return margins[:n_done], probabilities[:n_done]

    def flush(self):
        wait_for(self.weights._guard, self.weights._guard)
        if self.n_buffered and self._step() < 0:
            raise MemoryError

    def negate(self):
        cdef Py_ssize_t i
        wait_for(self.weights._guard, self.weights._guard)
        self.weights._negate()
        self._initial_scale = -self._initial_scale
        for i in range(self._buffer_size):
            self._buffer_values[i] = -self._buffer_values[i]

    def get_state(self):
        cdef Py_ssize_t i
        wait_for(self.weights._guard, self.weights._guard)
        keys = [<int64_t> (self._buffer_hashes[i] * INVERSE_MULTIPLIER) for i in range(self._buffer_size)]
        state = {
            **self.weights.get_state(),
            "slope": self._calibration.slope,
            "calibration_squares": self._calibration.squares,
            "n_iterations": self.n_iterations,
            "n_buffered": self.n_buffered,
            "buffer_keys": np.array(keys, np.int64),
            "buffer_values": np.array([self._buffer_values[i] for i in range(self._buffer_size)], np.float64),
        }
        if self._only_violations:
            state["n_violations"] = self._n_violations
        if self._initializer is not None:
            state["initial_scale"] = self._initial_scale
        return state

    def set_state(self, state):
        cdef int64_t key
        cdef double value
        wait_for(self.weights._guard, self.weights._guard)
        self.weights.set_state(state)
        self._calibration.slope, self._calibration.squares = state["slope"], state["calibration_squares"]
        self.n_iterations, self.n_buffered = state["n_iterations"], state["n_buffered"]
        self._buffer_size = 0
        if self._reserve_buffer(len(state["buffer_keys"])) < 0:
            raise MemoryError
        for key, value in zip(state["buffer_keys"].tolist(), state["buffer_values"].tolist(), strict=True):
            self._buffer_hashes[self._buffer_size] = hash_key(key)
            self._buffer_values[self._buffer_size] = value
            self._buffer_size += 1
        self._n_violations = state.get("n_violations", 0)
        self._initial_scale = state.get("initial_scale", 1.0)

    cdef bint _is_plain(self):
        """Whether a loop can do with the weights by column."""
        return self._batch_size == 1 and self._initializer is None and self._max_features == 0

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        cdef Py_ssize_t n = self.weights._table.n
        return n - self.weights._has(INTERCEPT_HASH) if self._intercept_scaling != 0.0 else n

    cdef Py_ssize_t _n_held(self) noexcept nogil:
        return self.weights._table.n + self._buffer_size

    cdef double _initialize(self, Encoder encoder) except? -1.0:
        """Give new features of the example in hand their first weights; its margin with them."""
        cdef Example* e = &encoder._example
        cdef Py_ssize_t i
        cdef int64_t key
        cdef double value
        cdef dict first = {}  # all drawn before any is taken in, as drawing may fail
        for i in range(e.n if self._initial_scale != 0.0 else 0):
            if e.values[i] != 0.0 and e.hashes[i] != INTERCEPT_HASH and not self.weights._has(e.hashes[i]):
                key = <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER)
                if key not in first:
                    first[key] = self._initializer(encoder.name(key))
        for key, value in first.items():
            if self.weights._add(hash_key(key), self._initial_scale * value / self.weights._a) < 0:
                raise MemoryError
        if first and (self._project or self.n_iterations == 0):
            self._back_into_ball()
        find_homes(&self.weights._table, e, self._slots)
        return self._margin(e)

    cdef int _begin(self, Example* e) noexcept nogil:
        """Add the constant feature, and begin to look for the entries."""
        cdef Py_ssize_t n = e.n
        if self._intercept_scaling != 0.0:
            e.hashes[n] = INTERCEPT_HASH if self.weights._spread == NULL else self.weights._n_columns  # there is room for it
            e.values[n] = self._intercept_scaling / e.factor
            e.n = n = n + 1
        if self.weights._spread != NULL:
            return 0
        if n > self._slots_capacity:
            if reserve(<void**> &self._slots, &self._slots_capacity, n, sizeof(Py_ssize_t)) < 0:
                return -1
        find_homes(&self.weights._table, e, self._slots)
        return 0

    cdef double _margin(self, Example* e) noexcept nogil:
        """⟨w, x⟩ with the w of now."""
        if self.weights._spread != NULL:
            return self.weights._a * e.factor * inner(self.weights._spread, e)
        find_entries(&self.weights._table, e, self._slots)
        return self.weights._a * e.factor * self._inner(e, 1)

    cdef double _predict(self, Example* e, double margin) noexcept nogil:
        """⟨w, x⟩ with the weights that predict, given that with the w of now."""
        cdef double sums
        if self.weights._total == 0.0:
            return margin
        sums = self._inner(e, 2) if self.weights._spread == NULL else inner(self.weights._spread_sums, e)
        return (self.weights._b / self.weights._a * margin - e.factor * sums) / self.weights._total

    cdef inline double _inner(self, Example* e, Py_ssize_t word) noexcept nogil:
        cdef const Word* words = self.weights._table.words + word
        cdef const Py_ssize_t* slots = self._slots
        cdef Py_ssize_t i
        cdef double even = 0.0, odd = 0.0  # two sums, since each addition waits for the one before
        for i in range(0, e.n - 1, 2):
            even += term(words + slots[i], word, e, i)
            odd += term(words + slots[i + 1], word, e, i + 1)
        if e.n & 1:
            even += term(words + slots[e.n - 1], word, e, e.n - 1)
        return even + odd

    cdef int _learn(
        self, Example* e, double margin, double predicted, double probability, double y, double weight
    ) noexcept nogil:
        cdef Py_ssize_t i
        cdef double coefficient = weight * y * e.factor
        cdef bint violated = y * margin < 1.0
        calibrate(&self._calibration, -y * predicted * (1.0 - probability if y > 0.0 else probability))
        self.n_buffered += 1
        if self._batch_size == 1:  # straight from the example, whose entries are found already
            self.n_buffered = 0
            if self._only_violations and not violated:
                return 0
            return self._take_step(e if violated else NULL, coefficient, 1)
        if violated:
            self._n_violations += 1
            if self._reserve_buffer(self._buffer_size + e.n) < 0:
                return -1
            for i in range(e.n):
                self._buffer_hashes[self._buffer_size + i] = e.hashes[i]
                self._buffer_values[self._buffer_size + i] = coefficient * e.values[i]
            self._buffer_size += e.n
        return self._step() if self.n_buffered == self._batch_size else 0

    cdef int _step(self) noexcept nogil:
        """The step with what the buffer holds."""
        cdef Example e
        cdef Py_ssize_t k = self.n_buffered
        cdef bint idle = self._only_violations and self._n_violations == 0
        e.hashes, e.values, e.n, e.factor = self._buffer_hashes, self._buffer_values, self._buffer_size, 1.0
        self.n_buffered = self._buffer_size = self._n_violations = 0
        if idle:
            return 0
        if self._begin_step(&e) < 0:
            return -1
        return self._take_step(&e, 1.0, k)

    cdef int _begin_step(self, Example* e) noexcept nogil:
        cdef Py_ssize_t i
        if reserve(<void**> &self._slots, &self._slots_capacity, e.n, sizeof(Py_ssize_t)) < 0:
            return -1
        for i in range(e.n):
            self._slots[i] = seek(&self.weights._table, e.hashes[i])
        return 0

    cdef int _take_step(self, Example* e, double coefficient, Py_ssize_t k) noexcept nogil:
        """w ← (1 − ηλ) w + (η/k) · coefficient · x, and the projection; `_slots` tells where the entries of x are."""
        cdef double n
        self.n_iterations += 1
        n = self.n_iterations + self._t0
        self._scale((n - 1.0) / n)
        if e != NULL and self._add(e, coefficient / (self._l2 * n * k * self.weights._a)) < 0:
            return -1
        if self._project:
            self._back_into_ball()
        if 0 < self._average_from <= self.n_iterations:
            self.weights._accumulate(<double> self.n_iterations if self._average_by_t else 1.0)
        return 0

    cdef void _scale(self, double factor) noexcept nogil:
        self.weights._scale(factor)
        self._initial_scale *= factor

    cdef void _back_into_ball(self) noexcept nogil:
        cdef double ratio = self._l2 * self.weights._a * self.weights._a * self.weights._squares
        if ratio > 1.0:
            self._scale(1.0 / sqrt(ratio))

    cdef int _add(self, Example* e, double step) noexcept nogil:
        cdef Py_ssize_t i, n_new = 0
        cdef Py_ssize_t* slots = self._slots
        cdef double* spread = self.weights._spread
        cdef double* spread_sums = self.weights._spread_sums
        cdef Word* words = self.weights._table.words
        cdef bint averaging = self._average_from > 0
        cdef double squares = 0.0, b = self.weights._b, old, new
        cdef Word* entry
        if spread != NULL:
            for i in range(e.n):
                old = spread[e.hashes[i]]
                new = old + step * e.values[i]
                spread[e.hashes[i]] = new
                squares += (new - old) * (new + old)
                if averaging:
                    spread_sums[e.hashes[i]] += b * (step * e.values[i])
            self.weights._squares += squares
            return 0
        for i in range(e.n):
            entry = &words[slots[i]]
            if entry.hash == e.hashes[i]:
                old = entry[1].v
                new = old + step * e.values[i]
                entry[1].v = new
                squares += (new - old) * (new + old)
                if averaging:
                    entry[2].v += b * (step * e.values[i])
            else:
                slots[n_new] = i
                n_new += 1
        self.weights._squares += squares
        for i in range(n_new):  # last, since an insertion moves other entries
            if self.weights._add(e.hashes[slots[i]], step * e.values[slots[i]]) < 0:
                return -1
        return 0

    cdef int _reserve_buffer(self, Py_ssize_t n) noexcept nogil:
        if reserve(<void**> &self._buffer_hashes, &self._buffer_hashes_capacity, n, sizeof(uint64_t)) < 0:
            return -1
        return reserve(<void**> &self._buffer_values, &self._buffer_values_capacity, n, sizeof(double))
