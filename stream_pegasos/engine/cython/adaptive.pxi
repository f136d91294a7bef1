cdef struct Feature:
    double weight, log_ratio, squares, positives, negatives


cdef struct Shared:  # what the features of an example have in common
    double rate, evidence, positive, negative, smoothing


cdef inline void set_ratio(Feature* feature, double smoothing) noexcept nogil:
    if smoothing != 0.0:
        feature.log_ratio = log(feature.positives + smoothing) - log(feature.negatives + smoothing)


cdef inline void learn_feature(Feature* feature, double gradient, const Shared* step) noexcept nogil:
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


cdef inline void fetch_entries(const Table* given, const Row* e, Py_ssize_t begin, Py_ssize_t* positions) noexcept nogil:
    """Find where some features are at home, and have the processor fetch the entries there."""
    cdef Table table = given[0]  # a copy, or it would be read anew after each write
    cdef Py_ssize_t i
    for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
        positions[i] = home(&table, e.hashes[i])
        SP_PREFETCH(&table.words[positions[i]])


cdef inline void find_records(
    const Table* table, const Row* e, Py_ssize_t begin, Py_ssize_t* positions, Py_ssize_t n_numbers
) noexcept nogil:
    """Find where the records of some features stand, 0 for those that are not known, and have them fetched."""
    cdef const Word* words = table.words
    cdef Py_ssize_t i, p
    cdef bint scattered = table.scattered
    for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
        if scattered:
            p = seek(table, e.hashes[i])
        else:
            p = entry_from(2, words, positions[i], e.hashes[i])
        positions[i] = words[p + 1].hash & (0 - <uint64_t> (words[p].hash == e.hashes[i]))
        SP_PREFETCH(table.records + positions[i] * n_numbers)


cdef inline Py_ssize_t make_record(Table* table, uint64_t h) noexcept nogil:
    """Where the record of `h` stands, which is made if there is none; -1 if there is no memory."""
    cdef Py_ssize_t p = seek(table, h)
    if table.words[p].hash != h:
        p = insert(table, p, h)
        if p < 0:
            return -1
    return table.words[p + 1].hash


cdef enum:
    N_MISTAKES = 128
    SMALLEST = -8
    MOST_NEWEST = 1 << 15


@cython.final
cdef class AdaptiveLearner(Learner):
    """Records stand apart from the entries of their hashes, so that the frequent features stand side by side."""

    cdef Table _table
    cdef Feature _intercept
    cdef double _evidence, _growth, _learning_rate, _largest_margin, _smoothing, _intercept_scaling
    cdef bint _hinge
    cdef readonly Py_ssize_t n_iterations
    cdef double _margin
    # Of the newest negative and positive examples: how many, and the sizes of margins on the wrong side; see mistakes.py.
    cdef double _n_newest[2]
    cdef double _sizes[2][N_MISTAKES]
    # Of the example in hand: the positions of its features, and the values that the weights meet.
    cdef Py_ssize_t* _positions
    cdef double* _values
    cdef Py_ssize_t _positions_capacity, _values_capacity

    def __init__(
        self, double learning_rate, bint hinge, double largest_margin, double smoothing, double half_life,
        double intercept_scaling, Py_ssize_t max_features=0,
    ):
        self.arguments = (
            learning_rate, bool(hinge), largest_margin, smoothing, half_life, intercept_scaling, max_features
        )
        self.declaration = adaptive.DECLARATION
        self._learning_rate, self._hinge, self._largest_margin = learning_rate, hinge, largest_margin
        self._smoothing = smoothing
        self._growth = 2.0 ** (1.0 / half_life) if half_life else 1.0
        self._intercept_scaling, self._max_features = intercept_scaling, max_features
        self._evidence, self._meets_unknown, self._margins = 1.0, True, &self._margin
        self._table.n_numbers = sizeof(Feature) // sizeof(double)
        if make_for(&self._table, 0, 2) < 0 or make_room_apart(&self._table, FEWEST_HOMES) < 0:
            raise MemoryError

    def __dealloc__(self):
        free_table(&self._table)
        free(self._positions)
        free(self._values)

    def __sizeof__(self):
        return object.__sizeof__(self) + size_of(&self._table)

    @property
    def intercept(self):
        wait_for(self._guard, self._guard)
        return np.array([self._intercept_scaling * self._intercept.weight])

    def items(self):
        wait_for(self._guard, self._guard)
        keys = records_of(&self._table, 0)[0]
        return keys, self.weights_of(keys)

    def weights_of(self, const int64_t[::1] keys):
        cdef Py_ssize_t i, p
        cdef const Feature* feature
        weights = np.zeros((keys.shape[0], 1))
        cdef double[:, ::1] out = weights
        wait_for(self._guard, self._guard)
        for i in range(keys.shape[0]):
            p = seek(&self._table, hash_key(keys[i]))
            if self._table.words[p].hash == hash_key(keys[i]):
                feature = <const Feature*> record_at(&self._table, p)
                out[i, 0] = feature.weight
                if self._smoothing != 0.0:
                    out[i, 0] *= LEAST_SCALE + fabs(feature.log_ratio - self._intercept.log_ratio)
        return weights

    def contributions(self, Encoder encoder not None, x, Py_ssize_t column=0):
        cdef Row* e = &self._hand.example
        cdef Py_ssize_t i
        self.margin(encoder, x)
        return {
            <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER): self._features()[self._positions[i]].weight * self._values[i]
            for i in range(e.n)
            if self._positions[i]
        }

    def mistakes(self):
        wait_for(self._guard, self._guard)
        sizes = [np.array([self._sizes[sign][i] for i in range(N_MISTAKES)]) for sign in range(2)]
        return dict(zip(mistakes.COUNTS, (self._n_newest[0], self._n_newest[1], *sizes)))

    def negate(self):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        self._n_newest[0], self._n_newest[1] = self._n_newest[1], self._n_newest[0]
        for i in range(N_MISTAKES):
            self._sizes[0][i], self._sizes[1][i] = self._sizes[1][i], self._sizes[0][i]
        exchange(&self._intercept)
        for i in range(1, self._table.n + 1):
            exchange(&self._features()[i])

    def forget(self, double share):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        self._evidence /= share
        self._weigh_anew()
        set_ratio(&self._intercept, self._smoothing)
        self._intercept.weight *= sqrt(share)
        for i in range(1, self._table.n + 1):
            set_ratio(&self._features()[i], self._smoothing)
            self._features()[i].weight *= sqrt(share)

    def get_state(self):
        wait_for(self._guard, self._guard)
        keys, numbers = records_of(&self._table, self._table.n_numbers)
        state = {"keys": keys, **dict(zip(adaptive.OF_FEATURE, numbers)), **self._calibration(), **self.mistakes()}
        intercept = [(<double*> &self._intercept)[i] for i in range(self._table.n_numbers)]
        state.update(zip(adaptive.OF_INTERCEPT, intercept), evidence=self._evidence, n_iterations=self.n_iterations)
        return state

    def set_state(self, state):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        fill(&self._table, state["keys"], [state[name] for name in adaptive.OF_FEATURE])
        for i in range(self._table.n_numbers):
            (<double*> &self._intercept)[i] = state[adaptive.OF_INTERCEPT[i]]
        self._evidence, self.n_iterations = state["evidence"], state["n_iterations"]
        self._set_calibration(state)
        self._n_newest[0], self._n_newest[1] = state[mistakes.COUNTS[0]], state[mistakes.COUNTS[1]]
        for i in range(N_MISTAKES):
            self._sizes[0][i], self._sizes[1][i] = state[mistakes.COUNTS[2]][i], state[mistakes.COUNTS[3]][i]

    cdef inline Feature* _features(self) noexcept nogil:
        return <Feature*> self._table.records

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        return self._table.n

    cdef int _meet(self, Row* e) noexcept nogil:
        """`_positions` tells from then on where the features are, `_values` what the weights have met."""
        cdef Py_ssize_t begin = 0, i
        cdef double squares = 0.0, total = 0.0
        if reserve(<void**> &self._positions, &self._positions_capacity, e.n, sizeof(Py_ssize_t)) < 0:
            return NO_MEMORY
        if reserve(<void**> &self._values, &self._values_capacity, e.n, sizeof(double)) < 0:
            return NO_MEMORY
        # A few features at a time: while the processor fetches the entries of some, and what is known of those before, it
        # works on those before these; and nothing is out of its nearest cache before its turn comes.
        fetch_entries(&self._table, e, 0, self._positions)
        while begin < e.n:
            fetch_entries(&self._table, e, begin + AT_A_TIME, self._positions)
            find_records(&self._table, e, begin, self._positions, sizeof(Feature) // sizeof(double))
            if begin:
                self._weigh(e, begin - AT_A_TIME, &squares, &total)
            begin += AT_A_TIME
        if begin:
            self._weigh(e, begin - AT_A_TIME, &squares, &total)
        squares = 1.0 / sqrt(squares) if squares > 0.0 else 0.0
        for i in range(e.n):
            self._values[i] *= squares
        self._margin = squares * total + self._intercept_scaling * self._intercept.weight
        return 0

    cdef inline void _weigh(self, const Row* e, Py_ssize_t begin, double* squares, double* total) noexcept nogil:
        """Scale the values, and add up their squares and what the weights make of them."""
        cdef double prior = self._intercept.log_ratio, value, sum_of_squares = squares[0], margin = total[0]
        cdef bint scaling = self._smoothing != 0.0
        cdef const Feature* features = self._features()
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

    cdef void _count_mistake(self, double y) noexcept nogil:
        """Take note of the size of a margin on the wrong side."""
        cdef double* sizes = self._sizes[y > 0.0]
        cdef int exponent = 0
        cdef double place = 16.0 * frexp(fabs(self._margin), &exponent) - 8.0
        cdef Py_ssize_t first
        place += 8.0 * (exponent - SMALLEST)
        if place < 0.0:
            sizes[0] += ldexp(fabs(self._margin), 1 - SMALLEST)
            return
        first = min(<Py_ssize_t> place, <Py_ssize_t> (N_MISTAKES - 2))
        place = min(place - first, 1.0)
        sizes[first] += 1.0 - place
        sizes[first + 1] += place

    cdef void _halve_newest(self, bint sign) noexcept nogil:
        cdef Py_ssize_t i
        self._n_newest[sign] /= 2.0
        for i in range(N_MISTAKES):
            self._sizes[sign][i] /= 2.0

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        self._calibrate(probability, y)
        if y * self._margin < 0.0:
            self._count_mistake(y)
        self._n_newest[y > 0.0] += 1.0
        if self._n_newest[y > 0.0] >= MOST_NEWEST:
            self._halve_newest(y > 0.0)
        if y * self._margin < self._largest_margin:
            encoder._keep(e)
            if self._take_step(e, y, weight) < 0:
                return NO_MEMORY
        self.n_iterations += 1
        self._evidence *= self._growth
        if self._evidence > LARGEST_EVIDENCE:
            self._weigh_anew()
        return 0

    cdef int _take_step(self, Row* e, double y, double weight) noexcept nogil:
        cdef Py_ssize_t* positions = self._positions
        cdef Feature* features = self._features()
        cdef Py_ssize_t i, p
        cdef double margin = self._margin
        cdef Shared step
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
                    p = make_record(&self._table, e.hashes[i])  # which it has if it stands in the example twice
                    if p < 0:
                        return NO_MEMORY
                    positions[i] = p
                    features = self._features()
                learn_feature(&features[positions[i]], gradient * self._values[i], &step)
        return 0

    cdef void _weigh_anew(self) noexcept nogil:
        """Write all evidence down as what it counts now."""
        cdef Py_ssize_t i
        weaken(&self._intercept, self._evidence)
        for i in range(1, self._table.n + 1):
            weaken(&self._features()[i], self._evidence)
        self._evidence = 1.0
