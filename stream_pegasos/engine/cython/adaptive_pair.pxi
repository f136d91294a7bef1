cdef extern from "cython/adaptive_pair.h" nogil:
    ctypedef struct sp_feature:
        uint64_t hash
        float weight, log_ratio, squares, positives, negatives
        uint32_t age
    ctypedef struct sp_step:
        double gradient, rate, evidence, smoothing, positive, negative
        uint32_t age
        bint halving
    enum:
        SP_AGE_BITS
    float sp_single(double)
    double sp_log_of_ratio(double, double)
    double sp_unevenness(const double*, size_t)
    void sp_weaken(sp_feature*, uint32_t, double)
    void sp_weigh(const sp_feature**, const double*, double*, size_t, bint, double, double, double*, double*)
    void sp_learn(sp_feature**, const double*, size_t, const sp_step*)

cdef enum:
    N_MISTAKES = 128
    SMALLEST = -8
    MOST_NEWEST = 1 << 15


cdef class PairLearner(ReductionLearner):
    """What an adaptive learner keeps of two classes: a feature is a record of the table."""

    cdef Table _table
    # Of the newest negative and positive examples: how many, and the sizes of margins on the wrong side; see mistakes.py.
    cdef double _n_newest[2]
    cdef double _sizes[2][N_MISTAKES]
    # Of the current example: where its features stand, their scaled values, and what these are divided by.
    cdef Py_ssize_t* _positions
    cdef double* _values
    cdef double _inverse_norm
    cdef sp_feature** _found  # with one column, the features
    cdef sp_feature _unused  # in place of those that are not to be learned
    cdef Py_ssize_t _positions_capacity, _values_capacity, _found_capacity

    def __dealloc__(self):
        free(self._positions)
        free(self._found)
        free(self._values)
        if not self._is_view:
            free_table(&self._table)

    def mistakes(self):
        wait_for(self._guard, self._guard)
        if self.has_class_columns:
            return {}
        sizes = [np.array([self._sizes[sign][i] for i in range(N_MISTAKES)]) for sign in range(2)]
        return dict(zip(mistakes.COUNTS, (self._n_newest[0], self._n_newest[1], *sizes)))

    @cython.final
    cdef void _forget_pair(self, double share, double evidence) noexcept nogil:
        cdef Py_ssize_t i
        cdef sp_feature* feature
        self._find_prior()
        for i in range(1, self._table.n + 1):
            feature = self._feature_at(i)
            sp_weaken(feature, self._age, evidence)
            feature.log_ratio = sp_single(self._log_ratio(feature.positives, feature.negatives))
            feature.weight = sp_single(feature.weight * sqrt(share))

    @cython.final
    cdef dict _state_of_pair(self):
        cdef BinaryProblem* its = &self._problems[0]
        intercept = its.intercept, self._prior, its.squares, self._class_counts[1], self._class_counts[0]
        return {
            **self._state_of_features(records.PAIR), **self._calibration(), **self.mistakes(),
            **dict(zip(adaptive_state.OF_INTERCEPT, intercept)),
        }

    @cython.final
    cdef dict _state_of_features(self, dtype):
        names = {name: records.SINGLE for name in records.OF_FEATURES if name in dtype.names}
        return lazy_columns(self._table.n, {"keys": records.COUNT, **names}, partial(self._features_in_parts, dtype))

    def _features_in_parts(self, dtype, Py_ssize_t n):
        cdef Py_ssize_t begin
        for begin in range(0, max(self._table.n, 1), n):
            some = records_of(&self._table, dtype)[begin : begin + n]
            yield {"keys": keys_of(some["hash"]), **records.read_numbers(some, self._age, SP_AGE_BITS)}

    @cython.final
    cdef int _set_features(self, dtype, names, state) except -1:
        """Make these the only features, of the age of now."""
        fill(&self._table, state["keys"])
        features = records_of(&self._table, dtype)
        for name in names:
            features[name] = records.as_singles(state[name])
        features["age"] = self._age
        return 0

    @cython.final
    cdef int _set_pair(self, state) except -1:
        cdef Py_ssize_t i
        cdef BinaryProblem* its = &self._problems[0]
        self._set_features(records.PAIR, adaptive_state.OF_FEATURE, state)
        its.intercept, self._prior, its.squares, self._class_counts[1], self._class_counts[0] = [
            state[name] for name in adaptive_state.OF_INTERCEPT
        ]
        self._n_newest[0], self._n_newest[1] = state[mistakes.COUNTS[0]], state[mistakes.COUNTS[1]]
        for i in range(N_MISTAKES):
            self._sizes[0][i], self._sizes[1][i] = state[mistakes.COUNTS[2]][i], state[mistakes.COUNTS[3]][i]
        return 0

    @cython.final
    cdef inline sp_feature* _feature_at(self, Py_ssize_t position) noexcept nogil:
        return <sp_feature*> record_at(&self._table, position)

    @cython.final
    cdef inline double _log_ratio(self, double positives, double negatives) noexcept nogil:
        cdef double smoothing = self._smoothing * self._evidence
        return sp_log_of_ratio(positives + smoothing, negatives + smoothing) if smoothing != 0.0 else 0.0

    @cython.final
    cdef inline void _find_prior(self) noexcept nogil:
        self._prior = self._log_ratio(self._class_counts[1], self._class_counts[0])

    @cython.final
    cdef int _score_pair(self, Row* e) noexcept nogil:
        """`_positions` tells from then on where the features are, `_values` what their scaled values are."""
        cdef Py_ssize_t i
        cdef double squares[4]
        cdef double margins[4]
        cdef double total
        if (
            sp_reserve(&self._positions, &self._positions_capacity, e.n, sizeof(Py_ssize_t)) < 0
            or sp_reserve(&self._found, &self._found_capacity, e.n, sizeof(sp_feature*)) < 0
        ):
            return NO_MEMORY
        for i in range(4):
            squares[i] = margins[i] = 0.0
        find_records(&self._table, e, self._positions)
        for i in range(e.n):
            self._found[i] = self._feature_at(self._positions[i])
        sp_weigh(
            <const sp_feature**> self._found, e.values, self._values, e.n, self._smoothing != 0.0, LEAST_SCALE,
            self._prior, squares, margins,
        )
        total = (squares[0] + squares[1]) + (squares[2] + squares[3])
        if total < LEAST_SQUARED_NORM:
            total, margins[0], margins[1], margins[2], margins[3] = self._enlarge(e.n), 0.0, 0.0, 0.0, 0.0
            for i in range(e.n):
                margins[0] += self._values[i] * self._found[i].weight
        self._inverse_norm = 1.0 / sqrt(total) if total > 0.0 else 0.0
        total = self._inverse_norm * ((margins[0] + margins[1]) + (margins[2] + margins[3]))
        self._margins[0] = self._raw[0] = total + self._problem_scaling * self._problems[0].intercept
        if self._dense.d:
            self._score_vector(e)
            self._predict()
        return 0

    @cython.final
    cdef double _enlarge(self, Py_ssize_t n) noexcept nogil:
        """Make values larger, all alike, whose squares are nearly or wholly 0; the sum of their squares."""
        cdef Py_ssize_t i
        cdef double squares = 0.0
        for i in range(n):
            self._values[i] *= ENLARGED
            squares += self._values[i] * self._values[i]
        return squares

    @cython.final
    cdef inline void _count_mistake(self, bint sign, double weight) noexcept nogil:
        """Take note of the size of a margin on the wrong side, of an example of that sign."""
        cdef double* sizes = self._sizes[sign]
        cdef int exponent = 0
        cdef double margin = self._margins[0], place = 16.0 * frexp(fabs(margin), &exponent) - 8.0
        cdef Py_ssize_t i, first
        if (margin < 0.0) if sign else (margin > 0.0):
            place += 8.0 * (exponent - SMALLEST)
            if place < 0.0:
                sizes[0] += weight * ldexp(fabs(margin), 1 - SMALLEST)
            else:
                first = min(<Py_ssize_t> place, <Py_ssize_t> (N_MISTAKES - 2))
                place = min(place - first, 1.0)
                sizes[first] += weight * (1.0 - place)
                sizes[first + 1] += weight * place
        self._n_newest[sign] += weight
        if self._n_newest[sign] >= MOST_NEWEST:
            self._n_newest[sign] /= 2.0
            for i in range(N_MISTAKES):
                sizes[i] /= 2.0

    @cython.final
    cdef int _take_step_of_pair(self, Row* e, bint positive, double weight) noexcept nogil:
        cdef Py_ssize_t* positions = self._positions
        cdef Py_ssize_t i
        cdef double fading = EMPHASIZED / (EMPHASIZED + <double> self.n_iterations)
        cdef double emphasis = 1.0 if e.is_even else 1.0 + EMPHASIS * sp_unevenness(e.values, e.n) * fading
        cdef sp_step step
        step.rate = self._learning_rate * emphasis * sqrt(self._evidence)
        step.evidence, step.age = self._evidence, self._age
        step.positive = weight * self._evidence if positive else 0.0
        step.negative = 0.0 if positive else weight * self._evidence
        step.smoothing = self._smoothing * self._evidence * emphasis * emphasis
        step.halving = weight >= 1.0 and self.n_iterations >= MOST_COUNTED
        for i in range(e.n):
            if positions[i] == 0 and e.values[i] != 0.0:
                positions[i] = place_for(&self._table, e.hashes[i])
                if positions[i] < 0:
                    return NO_MEMORY
                self._feature_at(positions[i]).age = self._age
        self._unused.age = self._age
        for i in range(e.n):  # again, since making room may have moved them
            self._found[i] = self._feature_at(positions[i]) if e.values[i] != 0.0 else &self._unused
        self._learn_intercept(self._gradients[0] * self._problem_scaling, &step)
        step.gradient = self._gradients[0] * self._inverse_norm
        sp_learn(self._found, self._values, e.n, &step)
        return 0

    @cython.final
    cdef inline void _learn_intercept(self, double gradient, const sp_step* step) noexcept nogil:
        cdef BinaryProblem* its = &self._problems[0]
        cdef double square = gradient * gradient
        if square > 0.0:
            its.squares += step.evidence * square
            its.intercept -= step.rate * gradient / sqrt(its.squares)
        self._class_counts[1] += step.positive
        self._class_counts[0] += step.negative
        self._find_prior()
