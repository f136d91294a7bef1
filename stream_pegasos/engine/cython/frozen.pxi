cdef extern from "cython/frozen.h" nogil:
    double sp_half(uint32_t)
    void sp_weigh_frozen(const uint32_t*, const double*, double*, size_t, double*, double*)


cdef struct FrozenEntry:
    uint32_t hash, known


cdef enum:
    GAP = 0xFFFFFFFF
    AT_A_TIME = 64  # features
    TOGETHER = 8  # as many entries as make a line of the cache are at home together


cdef inline Py_ssize_t n_in(const uint32_t* record) noexcept nogil:
    """How many columns a record has, which may be none."""
    return record[0] >> 16 if record != NULL else 0


cdef inline uint32_t column_in(const uint32_t* record, Py_ssize_t i) noexcept nogil:
    return record[i] & 0xFFFF


@cython.final
cdef class FrozenLearner(ReductionLearner):
    """The table and the records may be parts of a file: no number in them leads out of them."""

    cdef object _state
    cdef const uint32_t[::1] _table, _records  # these keep the memory
    cdef const FrozenEntry* _entries
    cdef const uint32_t* _words
    cdef uint64_t _n_homes, _n_words
    cdef uint32_t _multiplier  # that makes the hash of a key from the hash that the encoder gives it
    cdef uint32_t _unknown
    cdef Py_ssize_t _longest, _n
    cdef double _unit, _unknown_scale
    cdef double _inverse_norm
    # Of the current example: where its features are at home, then what is known of them; and their scaled values.
    cdef uint32_t* _known
    cdef double* _values
    cdef Py_ssize_t _known_capacity, _values_capacity

    def __init__(self, str reduction="two"):
        self.arguments = (reduction,)
        self._reduction = adaptive_state.REDUCTIONS.index(reduction)
        self.declaration = frozen.declared(reduction)
        self.several, self._meets_unknown = reduction != "two", True
        self.set_state(frozen.nothing_of(reduction))

    def __dealloc__(self):
        free(self._known)
        free(self._values)

    def __sizeof__(self):
        return object.__sizeof__(self) + 4 * (self._table.shape[0] + self._records.shape[0])

    @property
    def intercept(self):
        wait_for(self._guard, self._guard)
        return self._state["intercepts"].copy()

    def items(self):
        wait_for(self._guard, self._guard)
        hashes = np.asarray(self._table)[::2]
        inverse = np.uint64(pow(self._state["multiplier"], -1, 1 << 32))
        keys = (hashes[hashes != np.uint32(frozen.GAP)].astype(np.uint64) * inverse % np.uint64(1 << 32)).astype(np.int64)
        return keys, self.weights_of(keys)

    def weights_of(self, const int64_t[::1] keys):
        cdef Py_ssize_t i, j
        cdef uint64_t h
        cdef uint32_t known
        cdef const uint32_t* record
        weights = np.zeros((keys.shape[0], self._n_summed()))
        cdef double[:, ::1] out = weights
        wait_for(self._guard, self._guard)
        for i in range(keys.shape[0]):
            h = hash_key(keys[i])
            known = self._find(h, self._home(h))
            if self._shares_weights():
                out[i, 0] = self._unit * sp_half(known) * sp_half(known >> 16)
                continue
            record = self._record(known)
            for j in range(1, 1 + n_in(record)):
                if <Py_ssize_t> column_in(record, j) < out.shape[1]:
                    out[i, column_in(record, j)] = self._unit * sp_half(record[j] >> 16) * sp_half(record[0])
        return weights

    def contributions(self, Encoder encoder not None, x, Py_ssize_t column=0):
        cdef Row* e = &self._current_example.example
        cdef Py_ssize_t i, j
        cdef const uint32_t* record
        cdef double value
        self.predict(encoder, x)
        found = {}
        for i in range(e.n):
            key, value = <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER), self._unit * self._inverse_norm * self._values[i]
            if self._shares_weights():
                if self._known[i] != self._unknown:
                    found[key] = sp_half(self._known[i]) * value
                continue
            record = self._record(self._known[i])
            for j in range(1, 1 + n_in(record)):
                if <Py_ssize_t> column_in(record, j) == column:
                    found[key] = sp_half(record[j] >> 16) * value
        return found

    def negate(self):
        frozen.refuse()

    def get_state(self):
        return dict(self._state)

    def set_state(self, state):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        self._table, self._records = state["table"], state["records"]
        self._state = dict(state)
        self._entries, self._words = <const FrozenEntry*> &self._table[0], &self._records[0]
        self._longest, self._n_words = state["longest"], self._records.shape[0]
        self._n_homes = (self._table.shape[0] // 2 - self._longest) // TOGETHER
        self._multiplier = <uint32_t> (<uint64_t> state["multiplier"] * INVERSE_MULTIPLIER)
        self._n, self._unit, self._unknown_scale = state["n_features"], state["unit"], state["unknown_scale"]
        self._unknown = frozen.halves(np.array([self._unknown_scale]))[0] << 16 if self._shares_weights() else GAP
        self._n_problems = len(state["intercepts"])
        self._n_classes = len(state["order"]) if self._reduction == ORDINAL else 2 if self._reduction == TWO else self._n_problems
        if self._make_room(self._n_classes) < 0:
            raise MemoryError
        for i in range(self._n_problems):
            self._problems[i] = BinaryProblem(state["intercepts"][i], 0.0, 0.0, 0.0)
        for i in range(self._n_classes if self._reduction == ORDINAL else 0):
            self._met_order[i] = state["order"][i]
        self._slope, self._confidence_intercept = state["slope"], state["confidence_intercept"]
        self._confidence_slope, self.n_iterations = state["confidence_slope"], state["n_iterations"]
        self._set_dense(state)

    cdef Learner _twin(self):
        cdef FrozenLearner twin = FrozenLearner.__new__(FrozenLearner)
        twin._table, twin._records = self._table, self._records
        twin._entries, twin._words, twin._n_homes, twin._n_words = self._entries, self._words, self._n_homes, self._n_words
        twin._multiplier, twin._unknown, twin._longest, twin._n = self._multiplier, self._unknown, self._longest, self._n
        twin._unit, twin._unknown_scale = self._unit, self._unknown_scale
        return twin._with_problems(self)

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        return self._n

    cdef inline uint32_t _home(self, uint64_t h) noexcept nogil:
        return <uint32_t> ((<uint64_t> (<uint32_t> h * self._multiplier) * self._n_homes) >> 32) * TOGETHER

    cdef inline uint32_t _find(self, uint64_t h, uint32_t home) noexcept nogil:
        """What the entry of a feature says."""
        cdef const FrozenEntry* at = self._entries + home
        cdef const FrozenEntry* end = at + self._longest
        cdef uint32_t wanted = <uint32_t> h * self._multiplier, is_known
        # Which of these it is, is hard to predict, so nothing branches on it.
        at += (
            (at[0].hash < wanted) + (at[1].hash < wanted) + (at[2].hash < wanted) + (at[3].hash < wanted)
            + (at[4].hash < wanted) + (at[5].hash < wanted) + (at[6].hash < wanted) + (at[7].hash < wanted)
        )
        while at != end and at.hash < wanted:
            at += 1
        is_known = 0 - <uint32_t> (at != end and at.hash == wanted and wanted != GAP)
        return at.known & is_known | self._unknown & ~is_known

    cdef inline const uint32_t* _record(self, uint32_t known) noexcept nogil:
        """Where the scale and the columns of a feature stand; NULL where nothing is known of it."""
        if known >= self._n_words or known + <uint64_t> (self._words[known] >> 16) >= self._n_words:
            return NULL
        return self._words + known

    cdef int _meet(self, Row* e) noexcept nogil:
        """`_known` tells from then on what is known of the features, `_values` what their scaled values are."""
        cdef Py_ssize_t begin = 0, i
        cdef bint shares_weights = self._shares_weights()
        cdef double squares[4]
        cdef double sums[4]
        cdef double total
        if sp_reserve(&self._known, &self._known_capacity, e.n, sizeof(uint32_t)) < 0:
            return NO_MEMORY
        if sp_reserve(&self._values, &self._values_capacity, e.n, sizeof(double)) < 0:
            return NO_MEMORY
        for i in range(4):
            squares[i] = sums[i] = 0.0
        # A few features at a time, as where they are learned.
        self._fetch_entries(e, 0)
        while begin < e.n:
            self._fetch_entries(e, begin + AT_A_TIME)
            self._find_entries(e, begin)
            if shares_weights:
                sp_weigh_frozen(
                    self._known + begin, e.values + begin, self._values + begin,
                    min(<Py_ssize_t> AT_A_TIME, e.n - begin), squares, sums,
                )
            elif begin:
                squares[0] += self._scale_by_records(e, begin - AT_A_TIME)
            begin += AT_A_TIME
        if begin and not shares_weights:
            squares[0] += self._scale_by_records(e, begin - AT_A_TIME)
        total = (squares[0] + squares[1]) + (squares[2] + squares[3])
        self._inverse_norm = 1.0 / sqrt(total) if total > 0.0 else 0.0
        self._meet_vector(e)
        if not shares_weights:
            self._add_up(e)
            if self._dense.d:
                memcpy(self._raw, self._margins, self._n_classes * sizeof(double))
                self._predict()
            return 0
        total = self._unit * self._inverse_norm * ((sums[0] + sums[1]) + (sums[2] + sums[3]))
        for i in range(self._n_problems):
            self._margins[i] = self._raw[i] = total + self._problems[i].intercept
        if self._reduction == ORDINAL or self._dense.d:
            self._predict()
        return 0

    cdef inline void _fetch_entries(self, const Row* e, Py_ssize_t begin) noexcept nogil:
        """Find where some features are at home, and have the processor fetch the entries there."""
        cdef const FrozenEntry* entries = self._entries  # or all of these would be read anew after each write
        cdef uint32_t* known = self._known
        cdef uint64_t n_homes = self._n_homes
        cdef uint32_t multiplier = self._multiplier
        cdef Py_ssize_t i
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            known[i] = <uint32_t> ((<uint64_t> (<uint32_t> e.hashes[i] * multiplier) * n_homes) >> 32) * TOGETHER
            SP_PREFETCH(entries + known[i])

    cdef inline void _find_entries(self, const Row* e, Py_ssize_t begin) noexcept nogil:
        """Find what is known of some features, and have the processor fetch their records."""
        cdef Py_ssize_t i
        cdef bint shares_weights = self._shares_weights()
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            self._known[i] = self._find(e.hashes[i], self._known[i])
            if not shares_weights:
                SP_PREFETCH(self._words + (self._known[i] if self._known[i] < self._n_words else 0))

    cdef inline double _scale_by_records(self, const Row* e, Py_ssize_t begin) noexcept nogil:
        """Scale some values, and give the sum of their squares."""
        cdef const uint32_t* record
        cdef double value, squares = 0.0
        cdef Py_ssize_t i
        for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
            record = self._record(self._known[i])
            value = e.values[i] * (sp_half(record[0]) if record != NULL else self._unknown_scale)
            squares += value * value
            self._values[i] = value
        return squares

    cdef void _add_up(self, const Row* e) noexcept nogil:
        """The margins of several classes."""
        cdef Py_ssize_t i, j
        cdef const uint32_t* record
        cdef double* sums = self._margins
        cdef double value, unit = self._unit * self._inverse_norm
        memset(sums, 0, self._n_classes * sizeof(double))
        for i in range(e.n):
            record, value = self._record(self._known[i]), unit * self._values[i]
            for j in range(1, 1 + n_in(record)):
                if <Py_ssize_t> column_in(record, j) < self._n_classes:
                    sums[column_in(record, j)] += sp_half(record[j] >> 16) * value
        for i in range(self._n_classes):
            sums[i] += self._problems[i].intercept

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        with gil:
            frozen.refuse()
