cdef extern from "cython/steps.h" nogil:
    ctypedef struct sp_feature:
        uint64_t hash
        float weight, log_ratio
    ctypedef struct sp_evidence:
        float squares, positives, negatives
        uint32_t age
    ctypedef struct sp_step:
        double gradient, rate, evidence, smoothing, positive, negative
        uint32_t age
        bint halving
    float sp_single(double)
    double sp_log_of_ratio(double, double)
    void sp_weaken(sp_evidence*, uint32_t, double)
    void sp_weigh(const sp_feature**, const double*, double*, size_t, bint, double, double, double*, double*)
    void sp_learn(sp_feature**, sp_evidence**, const double*, size_t, const sp_step*)


cdef enum:
    AT_A_TIME = 64  # features
    WORDS_OF_FEATURE = 2  # its hash is the first; those of its evidence are as many
    N_MISTAKES = 128
    SMALLEST = -8
    MOST_NEWEST = 1 << 15


cdef sp_feature UNKNOWN  # of which nothing is known


cdef inline void fetch_entries(const Table* given, const Row* e, Py_ssize_t begin, Py_ssize_t* positions) noexcept nogil:
    """Find where some features are at home, and have the processor fetch the entries there."""
    cdef Table table = given[0]  # a copy, or it would be read anew after each write
    cdef Py_ssize_t i
    for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
        positions[i] = home(&table, e.hashes[i])
        SP_PREFETCH(&table.words[positions[i]])


cdef class ColumnLearner(ReductionLearner):
    """What an adaptive learner keeps of two classes. A feature is an entry of the table: its hash and what predicts; what is
    needed to learn stands with the others.
    """

    cdef Table _table
    # Of the newest negative and positive examples: how many, and the sizes of margins on the wrong side; see mistakes.py.
    cdef double _n_newest[2]
    cdef double _sizes[2][N_MISTAKES]
    # Of the current example: its features in the table, their scaled values, and what these are divided by.
    cdef sp_feature** _found
    cdef double* _values  # the same with several columns
    cdef double _inverse_norm
    cdef sp_evidence** _known  # of these features
    cdef sp_feature* _new  # features that are not in the table yet
    cdef sp_evidence* _known_of_new
    cdef Py_ssize_t _found_capacity, _values_capacity, _known_capacity, _new_capacity, _known_of_new_capacity

    def __dealloc__(self):
        free(self._found)
        free(self._values)
        free(self._known)
        free(self._new)
        free(self._known_of_new)
        if not self._is_twin:
            free_table(&self._table)

    def mistakes(self):
        wait_for(self._guard, self._guard)
        sizes = [np.array([self._sizes[sign][i] for i in range(N_MISTAKES)]) for sign in range(2)]
        return dict(zip(mistakes.COUNTS, (self._n_newest[0], self._n_newest[1], *sizes)))

    def negate(self):
        cdef Py_ssize_t i
        cdef sp_feature* feature
        cdef sp_evidence* known
        if self.several:
            raise NotImplementedError
        wait_for(self._guard, self._guard)
        self._n_newest[0], self._n_newest[1] = self._n_newest[1], self._n_newest[0]
        for i in range(N_MISTAKES):
            self._sizes[0][i], self._sizes[1][i] = self._sizes[1][i], self._sizes[0][i]
        for i in range(self._dense.d):
            self._dense.weights[i] = 0.0 - self._dense.weights[i]
        self._problems[0].intercept, self._prior = 0.0 - self._problems[0].intercept, 0.0 - self._prior
        self._class_counts[0], self._class_counts[1] = self._class_counts[1], self._class_counts[0]
        for i in range(n_in_use(&self._table)):
            feature, known = self._feature_at(place(&self._table, NULL, i)), self._known_at(place(&self._table, NULL, i))
            feature.weight, feature.log_ratio = 0.0 - feature.weight, 0.0 - feature.log_ratio  # no −0
            known.positives, known.negatives = known.negatives, known.positives

    @cython.final
    cdef void _forget_column(self, double share, double evidence) noexcept nogil:
        cdef Py_ssize_t i
        cdef sp_feature* feature
        cdef sp_evidence* known
        self._find_prior()
        for i in range(n_in_use(&self._table)):
            feature, known = self._feature_at(place(&self._table, NULL, i)), self._known_at(place(&self._table, NULL, i))
            if feature.hash != EMPTY:
                sp_weaken(known, self._age, evidence)
                feature.log_ratio = sp_single(self._log_ratio(known.positives, known.negatives))
                feature.weight = sp_single(feature.weight * sqrt(share))

    @cython.final
    cdef dict _state_of_column(self):
        keys, numbers = self._numbers_of_column()
        cdef BinaryProblem* its = &self._problems[0]
        intercept = its.intercept, self._prior, its.squares, self._class_counts[1], self._class_counts[0]
        return {
            "keys": keys, **dict(zip(adaptive_state.OF_FEATURE, numbers)), **self._calibration(), **self.mistakes(),
            **dict(zip(adaptive_state.OF_INTERCEPT, intercept)),
        }

    @cython.final
    cdef tuple _numbers_of_column(self):
        """Keys, in the order of their hashes, and what is known of each, with a row a number."""
        cdef Py_ssize_t n = self._table.n
        cdef int64_t[::1] k
        cdef double[:, ::1] out
        cdef uint8_t[::1] is_done
        cdef Place* places
        cdef ForkedCopy copied = self._forked_copy if n >= WORTH_A_PROCESS else None
        if copied is None:
            keys, numbers = np.empty(n, np.int64), np.empty((len(adaptive_state.OF_FEATURE), n))
        else:
            keys, numbers = copied._arrays(n, len(adaptive_state.OF_FEATURE))
            is_done = copied._memory
        k, out = keys, numbers
        places = places_in_order(&self._table)
        if copied is not None:
            copied._process = sp_fork()
        if n and (copied is None or copied._process <= 0):
            self._write_numbers(places, &k[0], &out[0, 0])
            if copied is not None:
                is_done[0] = 1
                if copied._process == 0:  # the other process
                    sp_leave()
        free(places)
        return keys, numbers

    @cython.final
    cdef void _write_numbers(self, const Place* places, int64_t* keys, double* out) noexcept nogil:
        cdef Py_ssize_t i, p, n = self._table.n
        cdef const sp_feature* feature
        cdef sp_evidence known
        for i in range(n_places(&self._table, places)):
            p = place(&self._table, places, i)
            feature = self._feature_at(p)
            if feature.hash != EMPTY:
                known = self._known_at(p)[0]
                sp_weaken(&known, self._age, 1.0)
                keys[0] = <int64_t> (feature.hash * INVERSE_MULTIPLIER)
                out[0], out[n], out[2 * n], out[3 * n] = feature.weight, feature.log_ratio, known.squares, known.positives
                out[4 * n] = known.negatives
                keys, out = keys + 1, out + 1

    @cython.final
    cdef int _set_column(self, state) except -1:
        cdef Py_ssize_t i, p
        cdef const int64_t[::1] keys
        cdef const double[::1] weights, log_ratios, squares, positives, negatives
        cdef sp_feature* feature
        cdef sp_evidence* known
        cdef BinaryProblem* its = &self._problems[0]
        order = np.argsort(state["keys"].view(np.uint64) * np.uint64(MULTIPLIER), kind="stable")  # quick where in order
        keys = state["keys"][order]
        weights, log_ratios, squares, positives, negatives = [state[name][order] for name in adaptive_state.OF_FEATURE]
        if make_for(&self._table, keys.shape[0], WORDS_OF_FEATURE) < 0:
            raise MemoryError
        for i in range(keys.shape[0]):
            p = place_for(&self._table, hash_key(keys[i]))
            if p < 0:
                raise MemoryError
            feature, known = self._feature_at(p), self._known_at(p)
            feature.weight, feature.log_ratio = sp_single(weights[i]), sp_single(log_ratios[i])
            known.squares, known.age = sp_single(squares[i]), self._age
            known.positives, known.negatives = sp_single(positives[i]), sp_single(negatives[i])
        its.intercept, self._prior, its.squares, self._class_counts[1], self._class_counts[0] = [
            state[name] for name in adaptive_state.OF_INTERCEPT
        ]
        self._n_newest[0], self._n_newest[1] = state[mistakes.COUNTS[0]], state[mistakes.COUNTS[1]]
        for i in range(N_MISTAKES):
            self._sizes[0][i], self._sizes[1][i] = state[mistakes.COUNTS[2]][i], state[mistakes.COUNTS[3]][i]
        return 0

    @cython.final
    cdef inline sp_feature* _feature_at(self, Py_ssize_t p) noexcept nogil:
        return <sp_feature*> &self._table.words[p]

    @cython.final
    cdef inline sp_evidence* _known_at(self, Py_ssize_t p) noexcept nogil:
        return <sp_evidence*> &self._table.others[p]

    @cython.final
    cdef inline double _log_ratio(self, double positives, double negatives) noexcept nogil:
        cdef double smoothing = self._smoothing * self._evidence
        return sp_log_of_ratio(positives + smoothing, negatives + smoothing) if smoothing != 0.0 else 0.0

    @cython.final
    cdef inline void _find_prior(self) noexcept nogil:
        self._prior = self._log_ratio(self._class_counts[1], self._class_counts[0])

    @cython.final
    cdef int _meet_column(self, Row* e) noexcept nogil:
        """`_found` tells from then on where the features are, `_values` what their scaled values are."""
        cdef Py_ssize_t begin, n
        cdef Py_ssize_t* positions
        cdef double squares[4]
        cdef double margins[4]
        cdef double total
        if sp_reserve(&self._found, &self._found_capacity, e.n, sizeof(sp_feature*)) < 0:
            return NO_MEMORY
        positions = <Py_ssize_t*> self._found  # until they are found
        for n in range(4):
            squares[n] = margins[n] = 0.0
        # A few features at a time: while the processor fetches the entries of some, it works on those before.
        fetch_entries(&self._table, e, 0, positions)
        begin = 0
        while begin < e.n:
            fetch_entries(&self._table, e, begin + AT_A_TIME, positions)
            self._find_entries(e, begin)
            sp_weigh(
                <const sp_feature**> self._found + begin, e.values + begin, self._values + begin,
                min(<Py_ssize_t> AT_A_TIME, e.n - begin), self._smoothing != 0.0, LEAST_SCALE, self._prior,
                squares, margins,
            )
            begin += AT_A_TIME
        total = (squares[0] + squares[1]) + (squares[2] + squares[3])
        self._inverse_norm = 1.0 / sqrt(total) if total > 0.0 else 0.0
        total = self._inverse_norm * ((margins[0] + margins[1]) + (margins[2] + margins[3]))
        self._margins[0] = self._raw[0] = total + self._problem_scaling * self._problems[0].intercept
        if self._dense.d:
            self._meet_vector(e)
            self._predict()
        return 0

    @cython.final
    cdef void _announce(self, const Row* e) noexcept nogil:
        """Have the processor fetch the first entries of the example after the one that is met next."""
        cdef Table table = self._table
        cdef Py_ssize_t i
        if self.several:
            return
        for i in range(min(e.n, <Py_ssize_t> AT_A_TIME)):
            SP_PREFETCH(&table.words[home(&table, e.hashes[i])])

    @cython.final
    cdef inline void _find_entries(self, const Row* e, Py_ssize_t begin) noexcept nogil:
        """Find some features from their homes on."""
        cdef sp_feature** found = self._found
        cdef const Word* words = self._table.words
        cdef Py_ssize_t p
        cdef size_t is_known
        cdef bint scattered = self._table.scattered
        cdef Py_ssize_t i
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            if scattered:
                p = seek(&self._table, e.hashes[i])
            else:
                p = entry_from(WORDS_OF_FEATURE, words, <Py_ssize_t> found[i], e.hashes[i])
            # A mask, since whether it is known is hard to predict, too.
            is_known = 0 - <size_t> (words[p].hash == e.hashes[i])
            found[i] = <sp_feature*> (<size_t> &words[p] & is_known | <size_t> &UNKNOWN & ~is_known)

    @cython.final
    cdef inline void _count_mistake(self, bint sign) noexcept nogil:
        """Take note of the size of a margin on the wrong side, of an example of that sign."""
        cdef double* sizes = self._sizes[sign]
        cdef int exponent = 0
        cdef double margin = self._margins[0], place = 16.0 * frexp(fabs(margin), &exponent) - 8.0
        cdef Py_ssize_t i, first
        if (margin < 0.0) if sign else (margin > 0.0):
            place += 8.0 * (exponent - SMALLEST)
            if place < 0.0:
                sizes[0] += ldexp(fabs(margin), 1 - SMALLEST)
            else:
                first = min(<Py_ssize_t> place, <Py_ssize_t> (N_MISTAKES - 2))
                place = min(place - first, 1.0)
                sizes[first] += 1.0 - place
                sizes[first + 1] += place
        self._n_newest[sign] += 1.0
        if self._n_newest[sign] >= MOST_NEWEST:
            self._n_newest[sign] /= 2.0
            for i in range(N_MISTAKES):
                sizes[i] /= 2.0

    @cython.final
    cdef int _take_step_of_column(self, Row* e, bint positive, double weight) noexcept nogil:
        cdef sp_feature** found = self._found
        cdef sp_evidence** known
        cdef Word* words
        cdef Word* others
        cdef Py_ssize_t i, p, n_new = 0
        cdef sp_step step
        step.rate, step.evidence, step.age = self._learning_rate * sqrt(self._evidence), self._evidence, self._age
        step.positive = weight * self._evidence if positive else 0.0
        step.negative = 0.0 if positive else weight * self._evidence
        step.smoothing = self._smoothing * self._evidence
        step.halving = weight >= 1.0 and self.n_iterations >= MOST_COUNTED
        self._learn_intercept(self._gradients[0] * self._problem_scaling, &step)
        step.gradient = self._gradients[0] * self._inverse_norm
        if (
            sp_reserve(&self._known, &self._known_capacity, e.n, sizeof(sp_evidence*)) < 0
            or sp_reserve(&self._new, &self._new_capacity, e.n + 1, sizeof(sp_feature)) < 0
            or sp_reserve(&self._known_of_new, &self._known_of_new_capacity, e.n + 1, sizeof(sp_evidence)) < 0
        ):
            return NO_MEMORY
        known, words, others = self._known, self._table.words, self._table.others
        for i in range(e.n):
            if found[i] != &UNKNOWN and e.values[i] != 0.0:
                known[i] = <sp_evidence*> (others + (<Word*> found[i] - words))
                SP_PREFETCH(known[i])
            else:  # what is not to be learned goes where nobody looks
                p = n_new if e.values[i] != 0.0 else e.n
                found[i], known[i] = &self._new[p], &self._known_of_new[p]
                memset(found[i], 0, sizeof(sp_feature))
                memset(known[i], 0, sizeof(sp_evidence))
                found[i].hash, known[i].age = e.hashes[i], self._age
                n_new += e.values[i] != 0.0
                SP_PREFETCH(others + home(&self._table, e.hashes[i]))  # where it will stand
        sp_learn(found, known, self._values, e.n, &step)
        for i in range(n_new):  # last, since an insertion moves other entries
            p = place_for(&self._table, self._new[i].hash)
            if p < 0:
                return NO_MEMORY
            self._feature_at(p)[0], self._known_at(p)[0] = self._new[i], self._known_of_new[i]
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
