cdef struct Feature:
    double weight, log_ratio, squares, positives, negatives


FEATURE_NUMBERS = ("values", "log_ratios", "gradient_squares", "positives", "negatives")


cdef struct Step:  # what the features of an example have in common
    double rate, evidence, positive, negative, smoothing


cdef inline void set_ratio(Feature* feature, double smoothing) noexcept nogil:
    if smoothing != 0.0:
        feature.log_ratio = log(feature.positives + smoothing) - log(feature.negatives + smoothing)


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


cdef inline void weaken(Feature* feature, double factor) noexcept nogil:
    feature.squares /= factor
    feature.positives /= factor
    feature.negatives /= factor


cdef enum:
    AT_A_TIME = 64  # features
    AHEAD = 24  # slots


@cython.final
cdef class AdaptiveLearner:
    cdef readonly tuple arguments
    # An entry is a hash and a position among the features, which stand as they came: the frequent ones, that come first,
    # side by side. At 0 stands what is known of a feature that is not there.
    cdef Table _table
    cdef Feature* _features
    cdef Py_ssize_t _features_capacity
    cdef Feature _intercept
    cdef double _evidence, _growth, _learning_rate, _largest_margin, _smoothing, _intercept_scaling
    cdef bint _hinge
    cdef Calibration _calibration
    cdef readonly Py_ssize_t n_iterations
    cdef Py_ssize_t _max_features
    cdef Guard _guard
    cdef Hand _hand
    # Of the example in hand: the positions of its features, and the values that the weights meet.
    cdef Py_ssize_t* _positions
    cdef double* _values
    cdef Py_ssize_t _positions_capacity, _values_capacity

    def __init__(
        self,
        double learning_rate,
        bint hinge,
        double margin,
        double smoothing,
        double half_life,
        double intercept_scaling,
        Py_ssize_t max_features=0,
    ):
        self.arguments = (learning_rate, bool(hinge), margin, smoothing, half_life, intercept_scaling, max_features)
        self._learning_rate, self._hinge, self._largest_margin, self._smoothing = learning_rate, hinge, margin, smoothing
        self._growth = 2.0 ** (1.0 / half_life) if half_life else 1.0
        self._intercept_scaling, self._max_features = intercept_scaling, max_features
        self._evidence = self._calibration.slope = 1.0
        self._guard, self._hand = Guard(), Hand()
        if make_for(&self._table, 0, 2) < 0 or self._make_room(FEWEST_HOMES) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._table.words)
        free(self._features)
        free(self._positions)
        free(self._values)

    def __len__(self):
        return self._table.n

    @property
    def n_held(self):
        return self._table.n

    def __sizeof__(self):
        return object.__sizeof__(self) + end(&self._table) * sizeof(Word) + self._features_capacity * sizeof(Feature)

    @property
    def intercept(self):
        wait_for(self._guard, self._guard)
        return self._intercept_scaling * self._intercept.weight

    def items(self):
        state = self.get_state()
        scales = LEAST_SCALE + abs(state["log_ratios"] - self._intercept.log_ratio) if self._smoothing else 1.0
        return state["keys"], state["values"] * scales

    def weights_of(self, const int64_t[::1] keys):
        cdef Py_ssize_t i
        cdef Feature* feature
        cdef Word* entry
        weights = np.zeros(keys.shape[0])
        cdef double[::1] out = weights
        wait_for(self._guard, self._guard)
        for i in range(keys.shape[0]):
            entry = &self._table.words[seek(&self._table, hash_key(keys[i]))]
            if entry.hash == hash_key(keys[i]):
                feature = &self._features[entry[1].hash]
                out[i] = feature.weight
                if self._smoothing != 0.0:
                    out[i] *= LEAST_SCALE + fabs(feature.log_ratio - self._intercept.log_ratio)
        return weights

    def margin(self, Encoder encoder not None, x):
        # Names never learned count in the norm, so they have to be told apart.
        cdef Py_ssize_t before = load_one(encoder, self._guard, self._hand, x, True)
        try:
            if self._reserve(self._hand.example.n) < 0:
                raise MemoryError
            return self._margin(&self._hand.example)
        finally:
            encoder.forget(before)

    def contributions(self, Encoder encoder not None, x):
        cdef Example* e = &self._hand.example
        cdef Py_ssize_t i
        self.margin(encoder, x)
        return {
            <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER): self._features[self._positions[i]].weight * self._values[i]
            for i in range(e.n)
            if self._positions[i]
        }

    def probability(self, double margin):
        return probability_of(&self._calibration, margin)

    def learn(self, Encoder encoder not None, x, double y, double weight):
        cdef Example* e = &self._hand.example
        cdef double margin
        cdef Py_ssize_t before = load_one(encoder, self._guard, self._hand, x, True)
        if self._reserve(e.n) < 0:
            raise MemoryError
        margin = self._margin(e)
        if self._learn(encoder, e, margin, probability_of(&self._calibration, margin), y, weight) < 0:
            raise MemoryError
        if not encoder._learned:
            encoder.forget(before)
        return False

    def predict_learn_many(self, Encoder encoder not None, X, y=None, weights=None):
        begin_loop(encoder._guard, self._guard)
        try:
            return self._predict_learn_many(encoder, X, y, weights)
        finally:
            encoder._release()
            end_loop(encoder._guard, self._guard)

    cdef _predict_learn_many(self, Encoder encoder, X, y, weights):
        cdef Py_ssize_t i, n, n_done
        cdef bint learning = y is not None, weighted = weights is not None
        cdef const double[::1] labels, example_weights
        cdef double[::1] out_margins, out_probabilities
        cdef Example* e = &encoder._example
        cdef int status = 0
        if learning:
            labels = y
        if weighted:
            example_weights = weights
        n = n_done = encoder._load_many(X, True, True)
        margins, probabilities = np.empty(n), np.empty(n)
        out_margins, out_probabilities = margins, probabilities
        with nogil:
            for i in range(n):
                if encoder._fetch(i) < 0 or self._reserve(e.n) < 0:
                    status = -1
                    break
                out_margins[i] = self._margin(e)
                out_probabilities[i] = probability_of(&self._calibration, out_margins[i])
                if learning:
                    status = self._learn(
                        encoder,
                        e,
                        out_margins[i],
                        out_probabilities[i],
                        labels[i],
                        example_weights[i] if weighted else 1.0,
                    )
                    if status < 0:
                        break
                    if 0 < self._max_features < self._table.n:
                        n_done = i + 1
                        break
        if status < 0:
            raise MemoryError
        return margins[:n_done], probabilities[:n_done]

    def flush(self):
        pass

    def negate(self):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        exchange(&self._intercept)
        for i in range(1, self._table.n + 1):
            exchange(&self._features[i])

    def forget(self, double share):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        self._evidence /= share
        self._weigh_anew()
        set_ratio(&self._intercept, self._smoothing)
        self._intercept.weight *= sqrt(share)
        for i in range(1, self._table.n + 1):
            set_ratio(&self._features[i], self._smoothing)
            self._features[i].weight *= sqrt(share)

    def get_state(self):
        cdef Py_ssize_t j, i = 0, n, last
        cdef Word* entry
        cdef Feature* feature
        cdef Place* places
        wait_for(self._guard, self._guard)
        n = self._table.n
        keys, numbers = np.empty(n, np.int64), np.empty((5, n))
        cdef int64_t[::1] k = keys
        cdef double[:, ::1] out = numbers
        places = places_in_order(&self._table)
        last = n_places(&self._table, places) - 1
        for j in range(last + 1):
            entry = &self._table.words[place(&self._table, places, min(j + AHEAD, last))]
            # Features stand as they came, far from one another.
            SP_PREFETCH(&self._features[entry[1].hash if entry.hash != EMPTY else 0])
            entry = &self._table.words[place(&self._table, places, j)]
            if entry.hash != EMPTY:
                feature = &self._features[entry[1].hash]
                k[i] = <int64_t> (entry.hash * INVERSE_MULTIPLIER)
                out[0, i], out[1, i], out[2, i] = feature.weight, feature.log_ratio, feature.squares
                out[3, i], out[4, i] = feature.positives, feature.negatives
                i += 1
        free(places)
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
        order = np.argsort(hashes, kind="stable")  # quick where they are in order, as in files
        cdef const uint64_t[::1] h = hashes[order]
        cdef const double[:, ::1] numbers = np.array([state[name] for name in FEATURE_NUMBERS])[:, order].copy()
        cdef Py_ssize_t i, p
        if make_for(&self._table, h.shape[0], 2) < 0:
            raise MemoryError
        for i in range(h.shape[0]):
            p = self._insert(h[i])
            if p < 0:
                raise MemoryError
            self._features[p] = Feature(numbers[0, i], numbers[1, i], numbers[2, i], numbers[3, i], numbers[4, i])
        self._intercept = Feature(
            state["intercept"],
            state["intercept_log_ratio"],
            state["intercept_squares"],
            state["n_positives"],
            state["n_negatives"],
        )
        self._evidence, self.n_iterations = state["evidence"], state["n_iterations"]
        self._calibration.slope, self._calibration.squares = state["slope"], state["calibration_squares"]

    cdef int _make_room(self, Py_ssize_t n) noexcept nogil:
        """For n features in all; those there are stay. (Not by realloc, which knows nothing of large pages.)"""
        cdef Feature* features = <Feature*> sp_allocate(n * sizeof(Feature))
        if features == NULL:
            return -1
        memset(features, 0, n * sizeof(Feature))
        if self._features_capacity:
            memcpy(features, self._features, (self._table.n + 1) * sizeof(Feature))
        free(self._features)
        self._features, self._features_capacity = features, n
        return 0

    cdef Py_ssize_t _insert(self, uint64_t h) noexcept nogil:
        """The position of a feature that is put in, or is there since the example had it before; -1 if there is no memory."""
        cdef Py_ssize_t p = seek(&self._table, h), position = self._table.n + 1
        if self._table.words[p].hash == h:
            return <Py_ssize_t> self._table.words[p + 1].hash
        if position == self._features_capacity and self._make_room(position + position // 2) < 0:
            return -1
        p = insert(&self._table, p, h)
        if p < 0:
            return -1
        self._table.words[p + 1].hash = <uint64_t> position
        memset(&self._features[position], 0, sizeof(Feature))
        return position

    cdef int _reserve(self, Py_ssize_t n) noexcept nogil:
        if reserve(<void**> &self._positions, &self._positions_capacity, n, sizeof(Py_ssize_t)) < 0:
            return -1
        return reserve(<void**> &self._values, &self._values_capacity, n, sizeof(double))

    cdef double _margin(self, Example* e) noexcept nogil:
        """The margin; `_positions` tells from then on where the features are, `_values` what the weights have met."""
        cdef Py_ssize_t begin = 0, i
        cdef double squares = 0.0, total = 0.0
        # A few features at a time: while the processor fetches the entries of some, and what is known of those before, it
        # works on those before these; and nothing is out of its nearest cache before its turn comes.
        self._fetch_entries(e, 0)
        while begin < e.n:
            self._fetch_entries(e, begin + AT_A_TIME)
            self._find(e, begin)
            if begin:
                self._meet(e, begin - AT_A_TIME, &squares, &total)
            begin += AT_A_TIME
        if begin:
            self._meet(e, begin - AT_A_TIME, &squares, &total)
        squares = 1.0 / sqrt(squares) if squares > 0.0 else 0.0
        for i in range(e.n):
            self._values[i] *= squares
        return squares * total + self._intercept_scaling * self._intercept.weight

    cdef inline void _fetch_entries(self, const Example* e, Py_ssize_t begin) noexcept nogil:
        cdef Table table = self._table  # a copy, or it would be read anew after each write
        cdef Py_ssize_t* positions = self._positions
        cdef Py_ssize_t i
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            positions[i] = home(&table, e.hashes[i])
            SP_PREFETCH(&table.words[positions[i]])

    cdef inline void _find(self, const Example* e, Py_ssize_t begin) noexcept nogil:
        cdef const Word* words = self._table.words
        cdef const Feature* features = self._features
        cdef Py_ssize_t* positions = self._positions
        cdef Py_ssize_t i, p
        cdef bint scattered = self._table.scattered
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            if scattered:
                p = seek(&self._table, e.hashes[i])
            else:
                p = entry_from(2, words, positions[i], e.hashes[i])
            positions[i] = words[p + 1].hash & (0 - <uint64_t> (words[p].hash == e.hashes[i]))
            SP_PREFETCH(&features[positions[i]])

    cdef inline void _meet(self, const Example* e, Py_ssize_t begin, double* squares, double* total) noexcept nogil:
        """Scale the values, and add up their squares and what the weights make of them."""
        cdef double prior = self._intercept.log_ratio, value, sum_of_squares = squares[0], margin = total[0]
        cdef bint scaling = self._smoothing != 0.0
        cdef const Feature* features = self._features
        cdef const Py_ssize_t* positions = self._positions
        cdef double* values = self._values
        cdef Py_ssize_t i
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            value = e.values[i]
            if scaling:
                value *= LEAST_SCALE + fabs(features[positions[i]].log_ratio - prior)
            sum_of_squares += value * value
            margin += features[positions[i]].weight * value
            values[i] = value
        squares[0], total[0] = sum_of_squares, margin

    cdef int _learn(
        self, Encoder encoder, Example* e, double margin, double probability, double y, double weight
    ) noexcept nogil:
        calibrate(&self._calibration, -y * margin * (1.0 - probability if y > 0.0 else probability))
        if y * margin < self._largest_margin:
            encoder._keep(e)
            if self._take_step(e, margin, y, weight) < 0:
                return -1
        self.n_iterations += 1
        self._evidence *= self._growth
        if self._evidence > LARGEST_EVIDENCE:
            self._weigh_anew()
        return 0

    cdef int _take_step(self, Example* e, double margin, double y, double weight) noexcept nogil:
        cdef Py_ssize_t* positions = self._positions
        cdef Py_ssize_t i
        cdef Step step
        cdef double gradient
        if self._hinge:
            gradient = -y * weight if y * margin < 1.0 else 0.0
        else:
            gradient = -y * weight * (1.0 / (1.0 + exp(min(y * margin, 700.0))))
        step.rate, step.evidence = self._learning_rate, self._evidence
        step.positive = weight * self._evidence if y > 0.0 else 0.0
        step.negative = 0.0 if y > 0.0 else weight * self._evidence
        step.smoothing = self._smoothing * self._evidence
        learn_feature(&self._intercept, gradient * self._intercept_scaling, &step)
        for i in range(e.n):
            if e.values[i] != 0.0:
                if positions[i] == 0:
                    positions[i] = self._insert(e.hashes[i])
                    if positions[i] < 0:
                        return -1
                learn_feature(&self._features[positions[i]], gradient * self._values[i], &step)
        return 0

    cdef void _weigh_anew(self) noexcept nogil:
        """Write all evidence down as what it counts now."""
        cdef Py_ssize_t i
        weaken(&self._intercept, self._evidence)
        for i in range(1, self._table.n + 1):
            weaken(&self._features[i], self._evidence)
        self._evidence = 1.0
