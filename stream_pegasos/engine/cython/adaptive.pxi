cdef enum:
    FETCHED_AHEAD = 8  # features, before they are learned


@cython.final
cdef class AdaptiveLearner(PairLearner):
    """With several columns, those taught stand apart from the records."""

    cdef Columns _columns
    cdef double* _above  # of the current example: what stands above and below in the largest of the features' count ratios
    cdef double* _below
    cdef Py_ssize_t _above_capacity, _below_capacity

    def __init__(
        self, double learning_rate, bint hinge, double largest_margin, double smoothing, double half_life,
        double intercept_scaling, Py_ssize_t max_features=0, str reduction="two", bint growing_half_life=False,
    ):
        self.parameters = {
            "learning_rate": learning_rate, "hinge": bool(hinge), "largest_margin": largest_margin, "smoothing": smoothing,
            "half_life": half_life, "intercept_scaling": intercept_scaling, "max_features": max_features,
            "reduction": reduction, "growing_half_life": bool(growing_half_life),
        }
        self._learning_rate, self._hinge, self._largest_margin = learning_rate, hinge, largest_margin
        self._smoothing = smoothing
        self._half_life.is_growing, self._half_life.growth = growing_half_life, 2.0 ** (1.0 / half_life) if half_life else 1.0
        self._reduction = adaptive_state.REDUCTIONS.index(reduction)
        self._problem_scaling = 1.0 if self._reduction == ORDINAL else intercept_scaling
        self._max_features = max_features
        self._evidence, self._counts_unknown = 1.0, True
        self._order = np.zeros(0, np.int64)
        self._set_starts, self._set_numbers = np.zeros(1, np.int64), np.zeros(0, np.int64)
        make_no_columns(&self._columns)
        self._table.record_size = sizeof(sp_columns)  # which is that of sp_feature, too
        if make_for(&self._table, 0) < 0 or self._make_room(4) < 0:
            raise MemoryError
        self._set_reduction(self._reduction)

    def __dealloc__(self):
        free(self._above)
        free(self._below)
        if not self._is_view:
            sp_resize(self._columns.numbers, self._columns.room * SP_PIECE * sizeof(float), 0)

    def __sizeof__(self):
        return object.__sizeof__(self) + table_size(&self._table) + self._columns.room * SP_PIECE * sizeof(float)

    @property
    def declaration(self):
        return adaptive_state.declared(adaptive_state.REDUCTIONS[self._reduction], self.parameters["growing_half_life"])

    def items(self):
        wait_for(self._guard, self._guard)
        keys = keys_of(records_of(&self._table, records.PAIR)["hash"])
        return keys, self.get_weights(keys)

    def get_weights(self, const int64_t[::1] keys):
        cdef Py_ssize_t i, j, p, column
        cdef const sp_columns* feature
        wait_for(self._guard, self._guard)
        weights = np.zeros((keys.shape[0], self._n_summed()))
        cdef double[:, ::1] out = weights
        for i in range(keys.shape[0]):
            p = find(&self._table, hash_key(keys[i]))
            if p == 0:
                continue
            if not self.has_class_columns:
                out[i, 0] = self._feature_at(p).weight * self._scale(self._feature_at(p).log_ratio)
            else:
                feature = &self._features()[p]
                for j in range(feature.n):
                    column = column_at(&self._columns, feature, j)
                    if column < out.shape[1]:
                        out[i, column] = sp_weights(self._columns.numbers, feature)[j] * self._scale(feature.log_ratio)
        return self._expand_pair(weights)

    def contributions(self, Encoder encoder not None, x, Py_ssize_t number=0):
        cdef double sign = self._sign_of(&number)
        cdef Row* e = &self._current_example.example
        cdef Py_ssize_t i, j
        cdef const sp_columns* feature
        self.predict(encoder, x)
        found = {}
        for i in range(e.n):
            key = <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER)
            if not self.has_class_columns:
                if self._positions[i]:
                    found[key] = sign * self._found[i].weight * (self._inverse_norm * self._values[i])
                continue
            feature = &self._features()[self._positions[i]]
            j = place_of(&self._columns, feature, number)
            if j < feature.n and is_taught(&self._columns, feature, j):
                weight = sp_weights(self._columns.numbers, feature)[j]
                found[key] = weight * self._values[i]
        return found

    def forget(self, double share):
        wait_for(self._guard, self._guard)
        self._forget(share)

    cdef void _forget(self, double share) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef sp_columns* feature
        cdef float* weights
        cdef double above, below, evidence = self._evidence / share
        self._evidence = 1.0
        self._half_life.n_steady *= share
        self._weaken(evidence)
        for i in range(self._n_problems):
            self._problems[i].intercept *= sqrt(share)
        if self._dense.d:
            self._forget_vectors(share)
        if not self.has_class_columns:
            self._forget_pair(share, evidence)
            return
        self._count_odds()
        for i in range(1, self._table.n + 1):
            feature = &self._features()[i]
            sp_weaken_columns(self._columns.numbers, feature, self._age, evidence)
            weights = sp_weights(self._columns.numbers, feature)
            for j in range(feature.n):
                weights[j] = sp_single(weights[j] * sqrt(share))
            self._find_ratio(feature, &above, &below)
            self._take_logs(&above, &below, 1)
            feature.log_ratio = sp_single(min(above, LARGEST_LOG_RATIO))

    def get_state(self, bint lazy=False):
        wait_for(self._guard, self._guard)
        state = self._state_by_class(lazy) if self.has_class_columns else {
            **self._state_of_pair(), **self._state_of_dense(), "evidence": self._evidence, "n_iterations": self.n_iterations,
            **steadiness_of(&self._half_life),
        }
        return state if lazy else whole(state)

    def _taught_in_parts(self, Py_ssize_t n):
        cdef Py_ssize_t begin = 0, n_features
        while begin < max(self._table.n, 1):
            n_features = n_features_with(self._features() + begin, self._table.n - begin, n)
            n_taught, taught = taught_of(&self._columns, self._features() + begin, n_features, self._age)
            yield {"n_taught": n_taught, **dict(zip(adaptive_state.OF_TAUGHT, taught))}
            begin += max(n_features, 1)

    cdef dict _state_by_class(self, bint lazy):
        cdef Py_ssize_t n = n_taught_of(&self._columns, self._features(), self._table.n, self._age) if lazy else 0
        taught = self._taught_in_parts
        singles = dict.fromkeys(adaptive_state.OF_COLUMN, records.SINGLE)
        state = {
            **self._state_of_features(records.SEVERAL), **lazy_columns(self._table.n, {"n_taught": records.COUNT}, taught),
            **lazy_columns(n, {"taught_columns": records.COUNT, **singles}, taught),
            **copied(view_of(self._problems, self._n_problems, records.PROBLEM), adaptive_state.OF_PROBLEM),
            "class_counts": view_of(self._class_counts, self._n_classes, records.DOUBLE).copy(),
            "n_examples": self._n_examples, "evidence": self._evidence, "n_iterations": self.n_iterations,
            **steadiness_of(&self._half_life), **self._calibration(), **self._confidence(), **self._state_of_dense(),
        }
        if self._reduction == ORDINAL:
            state["order"] = view_of(self._known_order, self._n_classes, records.COUNT).copy()
        return state

    def set_state(self, state):
        wait_for(self._guard, self._guard)
        self._age, self._evidence, self.n_iterations = 0, state["evidence"], state["n_iterations"]
        self._set_calibration(state)
        set_steadiness(&self._half_life, state)
        made_with = self.parameters["reduction"]
        grown = made_with == "two" and driver.has_column_each(state)
        self._set_reduction(OF_RULE_OVR if grown else adaptive_state.REDUCTIONS.index(made_with))
        if not self.has_class_columns:
            self._set_pair(state)
            self._set_dense(state)
            return
        self._set_features(records.SEVERAL, records.OF_SEVERAL, state)
        n_taught, numbers = [np.ascontiguousarray(state[name]) for name in ("n_taught", "taught_columns")]
        weights, squares, counts = [
            np.ascontiguousarray(records.as_singles(state[name])) for name in adaptive_state.OF_COLUMN
        ]
        fill_taught(
            &self._columns, self._features(), n_taught, numbers, weights, squares, counts, len(state["class_counts"])
        )
        self._n_classes, self._n_problems = len(state["class_counts"]), len(state["intercepts"])
        if self._make_room(self._n_classes) < 0:
            raise MemoryError
        view_of(self._class_counts, self._n_classes, records.DOUBLE)[:] = state["class_counts"]
        if self._reduction == ORDINAL:
            view_of(self._known_order, self._n_classes, records.COUNT)[:] = state["order"]
        problems = view_of(self._problems, self._n_problems, records.PROBLEM)
        for name in adaptive_state.OF_PROBLEM:
            problems[name] = state[name]
        if self._reduction == ORDINAL and self._order.shape[0] < self._n_classes:  # or it knows of classes to come
            self._order = np.array(state["order"], np.int64)
        self._n_examples = state["n_examples"]
        self._set_dense(state)

    cdef Learner _view(self):
        cdef AdaptiveLearner view = AdaptiveLearner.__new__(AdaptiveLearner)
        view._table, view._columns, view._prior = self._table, self._columns, self._prior
        view._smoothing, view._problem_scaling = self._smoothing, self._problem_scaling
        return view._with_problems(self)

    cdef void _set_reduction(self, int reduction) noexcept nogil:
        self._reduction, self.has_class_columns, self._prior = reduction, reduction != TWO, 0.0
        memset(self._odds, 0, (self._width + SP_LANES) * sizeof(double))  # those of more classes than there are now, too
        if not self.has_class_columns:
            self._n_problems, self._n_classes, self._known_order[0], self._known_order[1] = 1, 2, 0, 1

    cdef int _grow(self, Row* e) noexcept nogil:
        cdef Py_ssize_t i, c, place, n_new = 0 if e == NULL else e.n
        cdef Py_ssize_t n_pieces = self._table.n * SIZES[size_of_all(2)]
        cdef BinaryProblem problem = self._problems[0]
        cdef sp_feature known
        cdef sp_columns* feature
        cdef sp_dense* block = &self._dense
        make_no_columns(&self._columns)
        if (
            make_room_until(&self._columns, n_pieces + (n_new + 1) * (SIZES[size_of_all(3)] + PIECES_OF_LINE)) < 0
            or make_room(&self._table, n_new) < 0
            or self._make_room(3) < 0
            or sp_reserve(&self._above, &self._above_capacity, n_new, sizeof(double)) < 0
            or sp_reserve(&self._below, &self._below_capacity, n_new, sizeof(double)) < 0
            or block.d and sp_reserve_rows(block, 3, 3) < 0
        ):
            return NO_MEMORY
        for i in range(1, self._table.n + 1):
            known, feature = self._feature_at(i)[0], &self._features()[i]
            sp_weaken(&known, self._age, 1.0)
            feature[0] = sp_columns(
                known.hash, 0, sp_single(min(fabs(known.log_ratio - self._prior), LARGEST_LOG_RATIO)),
                sp_single(<double> known.positives + known.negatives), self._age, 0, 0, 0, 0,
            )
            lay_out(&self._columns, feature, 2, 2)
            for c in range(2):
                place = add_column(&self._columns, feature, c)
                sp_weights(self._columns.numbers, feature)[place] = known.weight if c else 0.0 - known.weight
                sp_squares(self._columns.numbers, feature)[place] = known.squares
                sp_counts(self._columns.numbers, feature)[place] = known.positives if c else known.negatives
        self._problems[0] = BinaryProblem(0.0 - problem.intercept, problem.squares, 0.0, 0.0)
        self._problems[1] = BinaryProblem(problem.intercept, problem.squares, 0.0, 0.0)
        self._n_problems, self._n_examples = 2, self._class_counts[0] + self._class_counts[1]
        if block.d:
            block.n_rows = block.n_classes = 2  # for the third one there is room
            for i in range(block.d):
                block.weights[block.d + i], block.weights[i] = block.weights[i], -block.weights[i]
            self._slope = max(block.joint[0], LEAST_SLOPE)
        self._halve_slope()
        self._set_reduction(OF_RULE_OVR)
        return 0

    cdef inline sp_columns* _features(self) noexcept nogil:
        return <sp_columns*> self._table.records

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        return self._table.n

    cdef inline double _scale(self, double log_ratio) noexcept nogil:
        return LEAST_SCALE + fabs(log_ratio - self._prior) if self._smoothing != 0.0 else 1.0

    # Scoring

    cdef int _find_margins(self, Row* e) noexcept nogil:
        """`_positions` tells from then on where the features are, `_values` what the weights have met."""
        cdef Py_ssize_t i
        cdef double squares
        if sp_reserve(&self._values, &self._values_capacity, e.n, sizeof(double)) < 0:
            return NO_MEMORY
        if not self.has_class_columns:
            return self._score_pair(e)
        if sp_reserve(&self._positions, &self._positions_capacity, e.n, sizeof(Py_ssize_t)) < 0:
            return NO_MEMORY
        find_records(&self._table, e, self._positions)
        squares = self._scale_values(e)
        if squares < LEAST_SQUARED_NORM:
            squares = self._enlarge(e.n)
        squares = 1.0 / sqrt(squares) if squares > 0.0 else 0.0
        for i in range(e.n):
            self._values[i] *= squares
        self._add_up(e)
        self._score_vector(e)
        self._predict()
        return 0

    cdef inline double _scale_values(self, const Row* e) noexcept nogil:
        """Scale the values, and give the sum of their squares; have the columns fetched."""
        cdef const sp_columns* feature
        cdef double value, squares = 0.0
        cdef Py_ssize_t i
        for i in range(e.n):
            feature = &self._features()[self._positions[i]]
            value = e.values[i] * (LEAST_SCALE + feature.log_ratio if self._smoothing != 0.0 else 1.0)
            squares += value * value
            self._values[i] = value
        return squares

    cdef void _add_up(self, const Row* e) noexcept nogil:
        """The margins of the problems before they predict."""
        cdef Py_ssize_t i, n = self._n_summed()
        cdef double* sums = self._raw
        cdef double base = self._base()
        memset(sums, 0, max(n, self._n_problems) * sizeof(double))
        sp_add_up(sums, n, self._columns.numbers, self._features(), self._positions, self._values, e.n)
        for i in range(self._n_problems if self._reduction == ORDINAL else 0):
            sums[self._n_problems - 1 - i] = sums[0]
        for i in range(self._n_problems):
            sums[i] += base + self._problem_scaling * self._problems[i].intercept

    # Learning

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        cdef const int64_t* classes
        cdef Py_ssize_t i, n = 1, n_known = self._n_problems, n_classes = self._n_classes
        cdef int64_t one = <int64_t> y if self.has_class_columns else y > 0.0
        cdef bint near
        cdef double rate = 0.0, loss, slope, confidence_intercept, confidence_slope
        weight = min(weight, LARGEST_EXAMPLE)
        if self._reduction == MULTILABEL:
            if not 0 <= one < self._set_starts.shape[0] - 1:
                return NO_CLASS
            n = self._set_starts[one + 1] - self._set_starts[one]
            classes = &self._set_numbers[0] + self._set_starts[one] if n else NULL
        else:
            classes = &one
        for i in range(n):
            if classes[i] < 0 or self._reduction != MULTILABEL and classes[i] > self._n_classes:
                return NO_CLASS
            if self._reduction == ORDINAL and classes[i] >= self._order.shape[0]:
                return NO_CLASS
            n_classes = max(n_classes, <Py_ssize_t> classes[i] + 1)
        if make_room_for(&self._table, e) < 0 or self._make_room(n_classes) < 0:
            return NO_MEMORY
        n_classes = self._n_classes
        for i in range(n):
            while self._n_classes <= classes[i]:
                self._add_class()
                self._begin_rare(weight * self._evidence)
        self._find_signs(classes, n)
        near = self._find_gradients(weight)
        # The last that may fail. Only classes were added yet, which is undone.
        if (near and self.has_class_columns and self._make_room_to_step(e, n) < 0) or (
            (self._dense.d or e.n_dimensions) and self._make_dense(e) < 0
        ):
            while self._n_classes > n_classes:
                self._remove_class()
            return NO_MEMORY
        if self.has_class_columns or self._dense.d:
            self._predict()
        if self._dense.d:
            self._learn_vector(e, classes, n, n_known, weight)
        if self.has_class_columns:
            rate = self._learning_rate * sqrt(2.0 * min(max(self._slope, LEAST_SLOPE), MOST_SLOPE))
            slope, confidence_intercept, confidence_slope = self._slope, self._confidence_intercept, self._confidence_slope
            loss = self._calibrate_problems(one, min(weight, LARGEST_CALIBRATION_WEIGHT))
            if self._n_problems > n_known:  # no probability could have told a class that is new
                self._slope = slope
                if n_known == 2:
                    self._confidence_intercept, self._confidence_slope = confidence_intercept, confidence_slope
        else:
            if self._dense.d:
                probability = self._probability(self._margins[0])
            else:
                self._calibrate(self._margins[0], probability, y, min(weight, LARGEST_CALIBRATION_WEIGHT))
            loss = 1.0 - probability if one else probability
            self._count_mistake(one, min(weight, LARGEST_CALIBRATION_WEIGHT))
        if near:
            encoder._keep(e)
            if not self.has_class_columns and self._take_step_of_pair(e, one, weight) < 0:
                return NO_MEMORY
            if self.has_class_columns:
                self._take_step(e, classes, n, weight, rate)
        self._end_example(loss)
        return 0

    cdef int _make_room_to_step(self, const Row* e, Py_ssize_t n) noexcept nogil:
        """For columns of the problems with a gradient and of n classes; -1 if there is no memory."""
        cdef Py_ssize_t i, n_pieces = 0, n_more = n + (1 if self._reduction == ORDINAL else self._n_active)
        cdef Py_ssize_t of_all = size_of_all(self._n_classes)
        cdef const sp_columns* feature
        if sp_reserve(&self._above, &self._above_capacity, e.n, sizeof(double)) < 0:
            return -1
        if sp_reserve(&self._below, &self._below_capacity, e.n, sizeof(double)) < 0:
            return -1
        for i in range(e.n):
            feature = &self._features()[self._positions[i]]
            if feature.n < self._n_classes if feature.dense else feature.n + n_more > feature.room:
                n_pieces += most_pieces(feature, n_more, of_all)
        return make_room_until(&self._columns, self._columns.n + n_pieces)

    cdef void _take_step(self, Row* e, const int64_t* classes, Py_ssize_t n, double weight, double rate) noexcept nogil:
        cdef Py_ssize_t i
        cdef double counted = weight * self._evidence, gradient, square, total = 0.0
        cdef double intercept_rate = ORDINAL_INTERCEPT_RATE * rate if self._reduction == ORDINAL else rate
        cdef bint halving = weight >= 1.0 and self.n_iterations >= MOST_COUNTED
        cdef sp_move move = sp_move(rate, self._evidence, 1.0 / self._evidence, FIRST_SQUARES)
        cdef BinaryProblem* problem
        self._n_examples += counted
        for i in range(n):
            if 0.0 < self._class_counts[classes[i]] <= 2.5 * counted:  # its second example or third
                self._give_back(classes[i], rarity(self._n_classes, counted, self._n_examples))
        for i in range(n):
            self._class_counts[classes[i]] += counted
        for i in range(self._n_problems):
            problem, gradient = &self._problems[i], self._gradients[i] * self._problem_scaling
            square = gradient * gradient
            if square > 0.0:
                problem.squares += self._evidence * square
                problem.intercept -= intercept_rate * gradient / sqrt(problem.squares / self._evidence)
        if self._reduction == ORDINAL:
            for i in range(self._n_problems):
                total += self._gradients[i]
            memset(self._gradients, 0, self._n_classes * sizeof(double))
            self._gradients[0], self._active[0], self._n_active = total, 0, total != 0.0
        for i in range(self._n_active):
            self._slopes[i] = self._gradients[self._active[i]]
        self._count_odds()
        for i in range(e.n):
            if i + FETCHED_AHEAD < e.n:
                sp_fetch_evidence(self._columns.numbers, &self._features()[self._positions[i + FETCHED_AHEAD]])
            if e.values[i] != 0.0:
                if self._positions[i] == 0:
                    self._positions[i] = place_for(&self._table, e.hashes[i])  # it has one if it stands there twice
                self._learn_feature(i, classes, n, counted, halving, &move)
            if i > 0:  # one later, or the processor would read counts together before it has written the last of them
                self._find_ratio_of(e, i - 1)
        if e.n > 0:
            self._find_ratio_of(e, e.n - 1)
        self._take_logs(self._above, self._below, e.n)
        for i in range(e.n):
            if e.values[i] != 0.0:
                self._features()[self._positions[i]].log_ratio = sp_single(min(self._above[i], LARGEST_LOG_RATIO))

    cdef void _learn_feature(
        self, Py_ssize_t i, const int64_t* classes, Py_ssize_t n, double counted, bint halving, const sp_move* move
    ) noexcept nogil:
        cdef sp_columns* feature = &self._features()[self._positions[i]]
        cdef float* numbers
        cdef float* counts
        cdef Py_ssize_t j, at, n_active
        if feature.age != self._age:
            sp_weaken_columns(self._columns.numbers, feature, self._age, 1.0)
        n_active = self._make_columns(feature, classes, n)
        numbers = self._columns.numbers
        if feature.dense:
            sp_move_columns(
                sp_weights(numbers, feature), sp_squares(numbers, feature), self._active, self._slopes, self._n_active,
                self._values[i], move,
            )
        else:
            sp_move_columns(
                sp_weights(numbers, feature), sp_squares(numbers, feature), self._at, self._own_slopes, n_active,
                self._values[i], move,
            )
        counts = sp_counts(numbers, feature)
        if halving and sp_single(feature.count + counted) == feature.count:
            feature.count = sp_single(feature.count * 0.5)
            for j in range(feature.n):
                counts[j] = sp_single(counts[j] * 0.5)
        feature.count = sp_single(feature.count + counted)
        for j in range(n):
            at = classes[j] if feature.dense else self._place(feature, classes[j])
            counts[at] = sp_single(counts[at] + counted)

    cdef inline Py_ssize_t _make_columns(self, sp_columns* feature, const int64_t* classes, Py_ssize_t n) noexcept nogil:
        """Give a feature all columns that are to be taught, for which there is room, and find where they are if it has few; how
        many of these have a gradient.
        """
        cdef Py_ssize_t i, n_active = 0, n_missing
        if feature.dense and feature.n >= self._n_classes:
            return 0
        n_missing = self._n_active + n
        if not feature.dense:
            self._find_places(feature)
            n_active = self._find_active(feature)
            n_missing -= n_active
            for i in range(n):
                n_missing -= self._gradients[classes[i]] != 0.0 or self._place(feature, classes[i]) < feature.n
            if n_missing == 0:
                return n_active
        if feature.dense or feature.n + n_missing > feature.room:
            lay_out(&self._columns, feature, n_missing, self._n_classes)
            if feature.dense:
                return 0
            self._find_places(feature)
        for i in range(self._n_active):
            self._add_missing(feature, self._active[i])
        for i in range(n):
            self._add_missing(feature, classes[i])
        return self._find_active(feature)

    cdef inline void _find_places(self, const sp_columns* feature) noexcept nogil:
        cdef const uint32_t* of = sp_numbers(self._columns.numbers, feature)
        cdef Py_ssize_t i
        for i in range(feature.n):
            self._places_of[of[i]] = i

    cdef inline Py_ssize_t _place(self, const sp_columns* feature, Py_ssize_t column) noexcept nogil:
        """Where a feature has that column; the number of its columns if it has not."""
        cdef Py_ssize_t i = self._places_of[column]
        if i < feature.n and sp_numbers(self._columns.numbers, feature)[i] == column:
            return i
        return feature.n

    cdef inline void _add_missing(self, sp_columns* feature, Py_ssize_t column) noexcept nogil:
        if self._place(feature, column) == feature.n:
            self._places_of[column] = add_column(&self._columns, feature, column)

    cdef inline Py_ssize_t _find_active(self, const sp_columns* feature) noexcept nogil:
        """Where a feature has columns with a gradient; how many."""
        cdef Py_ssize_t i, place, n = 0
        for i in range(self._n_active):
            place = self._place(feature, self._active[i])
            self._at[n], self._own_slopes[n] = place, self._slopes[i]
            n += place < feature.n  # hard to predict, so nothing branches on it
        return n

    cdef inline void _find_ratio_of(self, const Row* e, Py_ssize_t i) noexcept nogil:
        self._above[i] = self._below[i] = 1.0
        if e.values[i] != 0.0:
            self._find_ratio(&self._features()[self._positions[i]], &self._above[i], &self._below[i])

    cdef inline void _find_ratio(self, const sp_columns* feature, double* above, double* below) noexcept nogil:
        """Two numbers whose quotient is the count ratio of a feature; of ordered classes its logarithm, and any number."""
        cdef double smoothing = self._smoothing * self._evidence
        cdef const float* counts = sp_counts(self._columns.numbers, feature)
        cdef const uint32_t* numbers
        above[0] = below[0] = 0.0 if self._reduction == ORDINAL else 1.0
        if smoothing == 0.0 or self._n_problems == 0:
            return
        if self._reduction == ORDINAL:
            above[0] = self._ordinal_ratio(feature, smoothing)
            return
        if feature.dense and feature.n >= self._n_classes:
            sp_find_odds(counts, self._odds, self._n_classes, feature.count, smoothing, above, below)
        elif feature.dense:  # and not learned since a class came
            sp_find_odds_portable(counts, self._odds, feature.n, feature.count, smoothing, above, below)
        else:
            numbers = sp_numbers(self._columns.numbers, feature)
            sp_find_odds_of_some(counts, numbers, self._odds, feature.n, feature.count, smoothing, above, below)

    cdef inline void _take_logs(self, double* above, const double* below, Py_ssize_t n) noexcept nogil:
        if self._reduction != ORDINAL:
            sp_logs_of_ratios(above, below, n)

    cdef double _ordinal_ratio(self, const sp_columns* feature, double smoothing) noexcept nogil:
        cdef const float* counts = sp_counts(self._columns.numbers, feature)
        cdef double above = 0.0, total = 0.0
        cdef Py_ssize_t i
        memset(self._probabilities, 0, self._n_classes * sizeof(double))
        for i in range(feature.n):
            if column_at(&self._columns, feature, i) < self._n_classes:
                self._probabilities[column_at(&self._columns, feature, i)] = counts[i]
        for i in range(self._n_problems - 1, -1, -1):
            above += self._probabilities[self._known_order[i + 1]]
            total += fabs(log((above + smoothing) / (max(feature.count - above, 0.0) + smoothing) / self._odds[i]))
        return min(total / self._n_problems, LARGEST_LOG_RATIO)
