cdef struct Feature:
    double weight, log_ratio, squares, positives, negatives


cdef inline Feature* feature_at(Word* entry) noexcept nogil:
    return <Feature*> &entry[1]


FEATURE_NUMBERS = ("values", "log_ratios", "gradient_squares", "positives", "negatives")


cdef struct Step:  # what the features of an example have in common
    double rate, evidence, positive, negative, smoothing


cdef inline void set_ratio(Feature* feature, double smoothing) noexcept nogil:
    if smoothing != 0.0:
        feature.log_ratio = log((feature.positives + smoothing) / (feature.negatives + smoothing))


cdef inline void learn_feature(Feature* feature, double gradient, const Step* step) noexcept nogil:
    cdef double square = gradient * gradient
    if square > 0.0:
        feature.squares += step.evidence * square
        feature.weight -= step.rate * gradient / sqrt(feature.squares / step.evidence)
    feature.positives += step.positive
    feature.negatives += step.negative
    set_ratio(feature, step.smoothing)


cdef inline void exchange(Feature* feature) noexcept nogil:
    feature.weight, feature.log_ratio = -feature.weight, -feature.log_ratio
    feature.positives, feature.negatives = feature.negatives, feature.positives


cdef inline void weigh_anew(Feature* feature, double evidence, double smoothing) noexcept nogil:
    feature.squares /= evidence
    feature.positives /= evidence
    feature.negatives /= evidence
    set_ratio(feature, smoothing)


@cython.final
cdef class AdaptiveLearner:
    cdef readonly tuple arguments
    cdef Table _table  # an entry is a hash and a Feature
    cdef Feature _intercept
    cdef double _evidence, _growth, _learning_rate, _largest_margin, _smoothing, _intercept_scaling
    cdef bint _hinge
    cdef Calibration _calibration
    cdef readonly Py_ssize_t n_iterations
    cdef Guard _guard
    # Of the example in hand: where the features are, and the values that the weights meet.
    cdef Py_ssize_t* _slots
    cdef double* _values
    cdef Py_ssize_t _slots_capacity, _values_capacity

    def __init__(
        self, double learning_rate, bint hinge, double margin, double smoothing, double half_life, double intercept_scaling
    ):
        self.arguments = (learning_rate, bool(hinge), margin, smoothing, half_life, intercept_scaling)
        self._learning_rate, self._hinge, self._largest_margin, self._smoothing = learning_rate, hinge, margin, smoothing
        self._growth = 2.0 ** (1.0 / half_life) if half_life else 1.0
        self._intercept_scaling = intercept_scaling
        self._evidence = self._calibration.slope = 1.0
        self._guard = Guard()
        if make_for(&self._table, 0, 6) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._table.words)
        free(self._slots)
        free(self._values)

    def __len__(self):
        return self._table.n

    def __sizeof__(self):
        return object.__sizeof__(self) + end(&self._table) * sizeof(Word)

    @property
    def intercept(self):
        wait_for(self._guard, self._guard)
        return self._intercept_scaling * self._intercept.weight

    def items(self):
        state = self.get_state()
        scales = LEAST_SCALE + abs(state["log_ratios"] - self._intercept.log_ratio) if self._smoothing else 1.0
        return state["keys"], state["values"] * scales

    def margin(self, Encoder encoder not None, x):
        wait_for(encoder._guard, self._guard)
        encoder._load(x, False)
        if self._begin(&encoder._example) < 0:
            raise MemoryError
        return self._margin(&encoder._example)

    def contributions(self, Encoder encoder not None, x):
        cdef Example* e = &encoder._example
        cdef Word* entry
        cdef Py_ssize_t i
        self.margin(encoder, x)
        found = {}
        for i in range(e.n):
            entry = &self._table.words[self._slots[i]]
            if entry.hash == e.hashes[i]:
                found[<int64_t> (e.hashes[i] * INVERSE_MULTIPLIER)] = feature_at(entry).weight * self._values[i]
        return found

    def probability(self, double margin):
        return probability_of(&self._calibration, margin)

    def learn(self, Encoder encoder not None, x, double y, double weight):
        cdef Example* e = &encoder._example
        cdef double margin
        wait_for(encoder._guard, self._guard)
        encoder._load(x, True)
        if self._begin(e) < 0:
            raise MemoryError
        margin = self._margin(e)
        if self._learn(e, margin, probability_of(&self._calibration, margin), y, weight) < 0:
            raise MemoryError

    def predict_learn_many(self, Encoder encoder not None, X, y=None, weights=None):
        with encoder._guard.lock:
            with self._guard.lock:
                encoder._guard.busy = self._guard.busy = True
                try:
                    return self._predict_learn_many(encoder, X, y, weights)
                finally:
                    encoder._release()
                    encoder._guard.busy = self._guard.busy = False

    cdef _predict_learn_many(self, Encoder encoder, X, y, weights):
        cdef Py_ssize_t i, n
        cdef bint learning = y is not None, weighted = weights is not None
        cdef const double[::1] labels, example_weights
        cdef double[::1] out_margins, out_probabilities
        cdef Example* e = &encoder._example
        cdef int status = 0
        if learning:
            labels = y
        if weighted:
            example_weights = weights
        n = encoder._load_many(X, learning)
        margins, probabilities = np.empty(n), np.empty(n)
        out_margins, out_probabilities = margins, probabilities
        with nogil:
            for i in range(n):
                if encoder._fetch(i) < 0 or self._begin(e) < 0:
                    status = -1
                    break
                out_margins[i] = self._margin(e)
                out_probabilities[i] = probability_of(&self._calibration, out_margins[i])
                if learning:
                    status = self._learn(
                        e,
                        out_margins[i],
                        out_probabilities[i],
                        labels[i],
                        example_weights[i] if weighted else 1.0,
                    )
                    if status < 0:
                        break
        if status < 0:
            raise MemoryError
        return margins, probabilities

    def flush(self):
        pass

    def negate(self):
        cdef Py_ssize_t slot
        cdef Word* entry
        wait_for(self._guard, self._guard)
        exchange(&self._intercept)
        for slot in range(self._table.n_slots):
            entry = &self._table.words[slot * self._table.stride]
            if entry.hash != EMPTY:
                exchange(feature_at(entry))

    def forget(self, double share):
        wait_for(self._guard, self._guard)
        self._evidence /= share
        self._weigh_anew()

    def get_state(self):
        cdef Py_ssize_t slot, i = 0, n = self._table.n
        cdef Word* entry
        cdef Feature* feature
        wait_for(self._guard, self._guard)
        keys, numbers = np.empty(n, np.int64), np.empty((5, n))
        cdef int64_t[::1] k = keys
        cdef double[:, ::1] out = numbers
        for slot in range(self._table.n_slots):
            entry = &self._table.words[slot * self._table.stride]
            if entry.hash != EMPTY:
                feature = feature_at(entry)
                k[i] = <int64_t> (entry.hash * INVERSE_MULTIPLIER)
                out[0, i], out[1, i], out[2, i] = feature.weight, feature.log_ratio, feature.squares
                out[3, i], out[4, i] = feature.positives, feature.negatives
                i += 1
        return {
            "keys": keys,
            **dict(zip(FEATURE_NUMBERS, numbers)),
            "intercept": self._intercept.weight,
            "intercept_log_ratio": self._intercept.log_ratio,
            "intercept_squares": self._intercept.squares,
            "n_positives": self._intercept.positives,
            "n_negatives": self._intercept.negatives,
            "evidence": self._evidence,
            "n_iterations": self.n_iterations,
            "slope": self._calibration.slope,
            "calibration_squares": self._calibration.squares,
        }

    def set_state(self, state):
        wait_for(self._guard, self._guard)
        hashes = state["keys"].view(np.uint64) * np.uint64(MULTIPLIER)
        order = np.argsort(hashes)
        cdef const uint64_t[::1] h = hashes[order]
        cdef const double[:, ::1] numbers = np.array([state[name] for name in FEATURE_NUMBERS])[:, order].copy()
        cdef Py_ssize_t i, p
        if make_for(&self._table, h.shape[0], self._table.stride) < 0:
            raise MemoryError
        for i in range(h.shape[0]):
            p = insert(&self._table, seek(&self._table, h[i]), h[i])
            if p < 0:
                raise MemoryError
            feature_at(&self._table.words[p])[0] = Feature(
                numbers[0, i], numbers[1, i], numbers[2, i], numbers[3, i], numbers[4, i]
            )
        self._intercept = Feature(
            state["intercept"],
            state["intercept_log_ratio"],
            state["intercept_squares"],
            state["n_positives"],
            state["n_negatives"],
        )
        self._evidence, self.n_iterations = state["evidence"], state["n_iterations"]
        self._calibration.slope, self._calibration.squares = state["slope"], state["calibration_squares"]

    cdef int _begin(self, Example* e) noexcept nogil:
        """Begin to look for the entries."""
        if (
            reserve(<void**> &self._slots, &self._slots_capacity, e.n, sizeof(Py_ssize_t)) < 0
            or reserve(<void**> &self._values, &self._values_capacity, e.n, sizeof(double)) < 0
        ):
            return -1
        find_homes(&self._table, e, self._slots)
        return 0

    cdef double _margin(self, Example* e) noexcept nogil:
        """The margin; `_slots` tells from then on where the entries are, `_values` what the weights have met."""
        cdef double prior = self._intercept.log_ratio, squares = 0.0, total = 0.0, value
        cdef bint scaling = self._smoothing != 0.0
        cdef Word* words = self._table.words
        cdef const Py_ssize_t* slots = self._slots
        cdef double* values = self._values
        cdef Feature* feature
        cdef uint64_t found
        cdef Py_ssize_t i
        find_entries(&self._table, e, self._slots)
        for i in range(e.n):
            feature = feature_at(&words[slots[i]])
            found = words[slots[i]].hash == e.hashes[i]
            value = e.values[i]
            if scaling:
                value *= LEAST_SCALE + fabs(sp_take(feature.log_ratio, found) - prior)
            squares += value * value
            total += sp_take(feature.weight, found) * value
            values[i] = value
        squares = 1.0 / sqrt(squares) if squares > 0.0 else 0.0
        for i in range(e.n):
            values[i] *= squares
        return squares * total + self._intercept_scaling * self._intercept.weight

    cdef int _learn(self, Example* e, double margin, double probability, double y, double weight) noexcept nogil:
        calibrate(&self._calibration, -y * margin * (1.0 - probability if y > 0.0 else probability))
        if y * margin < self._largest_margin and self._take_step(e, margin, y, weight) < 0:
            return -1
        self.n_iterations += 1
        self._evidence *= self._growth
        if self._evidence > LARGEST_EVIDENCE:
            self._weigh_anew()
        return 0

    cdef int _take_step(self, Example* e, double margin, double y, double weight) noexcept nogil:
        cdef Word* words = self._table.words
        cdef Py_ssize_t* slots = self._slots
        cdef const double* values = self._values
        cdef Py_ssize_t i, p, n_new = 0
        cdef Step step
        cdef double gradient
        if self._hinge:
            gradient = -y * weight if y * margin < 1.0 else 0.0
        else:
            gradient = -y * weight * (1.0 / (1.0 + exp(min(y * margin, 700.0))))
        step.rate, step.evidence = self._learning_rate, self._evidence
        step.positive = weight * self._evidence if y > 0.0 else 0.0
        step.negative = 0.0 if y > 0.0 else weight * self._evidence
        step.smoothing = 2.0 * self._smoothing * self._evidence
        learn_feature(&self._intercept, gradient * self._intercept_scaling, &step)
        step.smoothing = self._smoothing * self._evidence
        for i in range(e.n):
            if e.values[i] != 0.0:
                if words[slots[i]].hash == e.hashes[i]:
                    learn_feature(feature_at(&words[slots[i]]), gradient * values[i], &step)
                else:
                    slots[n_new] = i
                    n_new += 1
        for i in range(n_new):  # last, since an insertion moves other entries
            p = insert(&self._table, seek(&self._table, e.hashes[slots[i]]), e.hashes[slots[i]])
            if p < 0:
                return -1
            learn_feature(feature_at(&self._table.words[p]), gradient * values[slots[i]], &step)
        return 0

    cdef void _weigh_anew(self) noexcept nogil:
        """Write all evidence down as what it counts now."""
        cdef Py_ssize_t slot
        cdef Word* entry
        cdef double evidence = self._evidence
        self._evidence = 1.0
        weigh_anew(&self._intercept, evidence, 2.0 * self._smoothing)
        for slot in range(self._table.n_slots):
            entry = &self._table.words[slot * self._table.stride]
            if entry.hash != EMPTY:
                weigh_anew(feature_at(entry), evidence, self._smoothing)
