cdef enum:
    FETCHED_AHEAD = 8  # features, before they are learned


@cython.final
cdef class AdaptiveLearner(Learner):
    """The adaptive rule: see pure/adaptive.py. The parts that it is composed of are structs, with functions of their own. The
    table has one of two layouts: `sp_feature` where two classes share a column, else `sp_columns`, where those columns that
    were taught stand apart from the records.
    """

    cdef Table _table
    cdef Columns _columns
    cdef Problems _problems
    cdef HalfLife _half_life
    cdef Mistakes _mistakes  # with one column
    cdef sp_dense _dense  # what is learned of the vectors of messages; of no dimensions until one is learned
    cdef Evidence _evidence
    cdef double _learning_rate
    cdef readonly Py_ssize_t n_iterations
    cdef const int64_t[::1] _order, _set_starts, _set_numbers
    cdef FoundFeatures _found

    def __init__(
        self, double learning_rate, bint hinge, double largest_margin, double smoothing, double half_life,
        double intercept_scaling, Py_ssize_t max_features=0, str reduction="two", bint growing_half_life=False,
    ):
        self.parameters = {
            "learning_rate": learning_rate, "hinge": bool(hinge), "largest_margin": largest_margin, "smoothing": smoothing,
            "half_life": half_life, "intercept_scaling": intercept_scaling, "max_features": max_features,
            "reduction": reduction, "growing_half_life": bool(growing_half_life),
        }
        self._learning_rate, self._problems.hinge, self._problems.largest_margin = learning_rate, hinge, largest_margin
        self._evidence.smoothing = smoothing
        self._half_life.is_growing, self._half_life.growth = growing_half_life, 2.0 ** (1.0 / half_life) if half_life else 1.0
        self._problems.reduction = adaptive_state.REDUCTIONS.index(reduction)
        self._problems.scaling = 1.0 if self._problems.reduction == ORDINAL else intercept_scaling
        self._max_features = max_features
        self._evidence.unit, self._counts_unknown = 1.0, True
        self._set_order(np.zeros(0, np.int64))
        self._set_starts, self._set_numbers = np.zeros(1, np.int64), np.zeros(0, np.int64)
        make_no_columns(&self._columns)
        self._table.record_size = sizeof(sp_columns)  # which is that of sp_feature, too
        if make_for(&self._table, 0) < 0 or self._make_room(4) < 0:
            raise MemoryError
        self._set_reduction(self._problems.reduction)

    def __dealloc__(self):
        free_found(&self._found)
        free_problems(&self._problems)
        sp_free_dense(&self._dense)
        if not self._is_view:
            free_table(&self._table)
            sp_resize(self._columns.numbers, self._columns.room * SP_PIECE * sizeof(float), 0)

    def __sizeof__(self):
        return object.__sizeof__(self) + table_size(&self._table) + self._columns.room * SP_PIECE * sizeof(float)

    @property
    def declaration(self):
        return adaptive_state.declared(adaptive_state.REDUCTIONS[self._problems.reduction], self.parameters["growing_half_life"])

    def has_columns_in(self, state):
        declared = adaptive_state.declared("ovr", self.parameters["growing_half_life"])
        return self.parameters["reduction"] != "two" or declared.is_complete(state)

    def mistakes(self):
        wait_for(self._guard, self._guard)
        return {} if self.has_class_columns else read_places(mistakes_places(&self._mistakes))

    @property
    def order(self):
        return np.asarray(self._order)

    @order.setter
    def order(self, order):
        wait_for(self._guard, self._guard)
        self._set_order(order)

    @property
    def sets(self):
        return np.asarray(self._set_starts), np.asarray(self._set_numbers)

    @sets.setter
    def sets(self, sets):
        wait_for(self._guard, self._guard)
        self._set_starts, self._set_numbers = sets

    @property
    def intercept(self):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        base = base_margin(&self._problems)
        intercepts = [base + problem_intercept(&self._problems, i, self._calibration.slope) for i in range(self._problems.n)]
        return self._expand_pair(np.array(intercepts, np.float64))

    def items(self):
        wait_for(self._guard, self._guard)
        keys = keys_of(records_of(&self._table, records.PAIR)["hash"])
        return keys, self.get_weights(keys)

    def get_weights(self, const int64_t[::1] keys):
        cdef Py_ssize_t i, j, p, column
        cdef const sp_columns* feature
        wait_for(self._guard, self._guard)
        weights = np.zeros((keys.shape[0], n_summed(&self._problems)))
        cdef double[:, ::1] out = weights
        for i in range(keys.shape[0]):
            p = find(&self._table, hash_key(keys[i]))
            if p == 0:
                continue
            if not self.has_class_columns:
                out[i, 0] = pair_at(&self._table, p).weight * self._scale(pair_at(&self._table, p).log_ratio)
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
                if self._found.positions[i]:
                    found[key] = sign * self._found.pairs[i].weight * (self._found.inverse_norm * self._found.values[i])
                continue
            feature = &self._features()[self._found.positions[i]]
            j = place_of(&self._columns, feature, number)
            if j < feature.n and is_taught(&self._columns, feature, j):
                weight = sp_weights(self._columns.numbers, feature)[j]
                found[key] = weight * self._found.values[i]
        return found

    def vector_score(self, Encoder encoder not None, x, Py_ssize_t number=0):
        cdef double sign = self._sign_of(&number)
        cdef sp_dense* block = &self._dense
        cdef const Row* e = &self._current_example.example
        if not block.d:
            return 1.0, np.zeros(0), 0.0
        self.predict(encoder, x)
        mean, factors = view_of(block.mean, block.d, records.DOUBLE), np.zeros(block.d)
        vector = view_of(e.vector, e.n_dimensions, records.SINGLE)
        if vector.any() and number < block.n_rows:
            factors = view_of(block.weights + number * block.d, block.d, records.SINGLE).astype(records.DOUBLE)
            factors /= np.linalg.norm(vector - mean)
            factors *= sign * block.joint[1] / self._calibration.slope * (1.0 if self._problems.reduction == OF_RULE_OVR else 2.0)
        return block.joint[0] / self._calibration.slope, factors, -float(factors @ mean)

    def forget(self, double share):
        wait_for(self._guard, self._guard)
        self._forget(share)

    cdef void _forget(self, double share) noexcept nogil:
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i, j
        cdef sp_columns* feature
        cdef float* weights
        cdef double above, below, evidence = self._evidence.unit / share
        self._evidence.unit = 1.0
        self._half_life.n_steady *= share
        weaken_problems(problems, evidence)
        for i in range(problems.n):
            problems.terms[i].intercept *= sqrt(share)
        if self._dense.d:
            forget_vectors(&self._dense, share)
        if not self.has_class_columns:
            forget_pair(&self._table, problems, &self._evidence, share, evidence)
            return
        count_odds(problems, self._evidence.smoothing * self._evidence.unit)
        for i in range(1, self._table.n + 1):
            feature = &self._features()[i]
            sp_weaken_columns(self._columns.numbers, feature, self._evidence.age, evidence)
            weights = sp_weights(self._columns.numbers, feature)
            for j in range(feature.n):
                weights[j] = sp_single(weights[j] * sqrt(share))
            self._find_ratio(feature, &above, &below)
            self._take_logs(&above, &below, 1)
            feature.log_ratio = sp_single(min(above, LARGEST_LOG_RATIO))

    cdef dict _places(self):
        """Where the numbers stand that are of no feature, by the names of their fields."""
        cdef Problems* problems = &self._problems
        cdef BinaryProblem* its = &problems.terms[0]
        places = {
            **number_places(&self._evidence.unit, (adaptive_state.EVIDENCE,)),
            "n_iterations": view_of(&self.n_iterations, 1, records.COUNT).reshape(()),
            **steadiness_places(&self._half_life), **calibration_places(&self._calibration, self.has_class_columns),
            **block_places(problems, &self._dense),
        }
        if not self.has_class_columns:
            intercept = (
                view_of(&its.intercept, 1, records.DOUBLE), view_of(&self._evidence.prior, 1, records.DOUBLE),
                view_of(&its.squares, 1, records.DOUBLE), view_of(&problems.class_counts[1], 1, records.DOUBLE),
                view_of(&problems.class_counts[0], 1, records.DOUBLE),
            )
            places |= {field.name: place.reshape(()) for field, place in zip(adaptive_state.OF_INTERCEPT, intercept)}
            return places | mistakes_places(&self._mistakes)
        terms = view_of(problems.terms, problems.n, records.PROBLEM)
        places |= {name: terms[name] for name in adaptive_state.PROBLEMS}
        places["class_counts"] = view_of(problems.class_counts, problems.n_classes, records.DOUBLE)
        places["n_examples"] = view_of(&problems.n_examples, 1, records.DOUBLE).reshape(())
        if problems.reduction == ORDINAL:
            places["order"] = view_of(problems.known_order, problems.n_classes, records.COUNT)
        return places

    def get_state(self, bint lazy=False):
        wait_for(self._guard, self._guard)
        features = self._features_by_class(lazy) if self.has_class_columns else self._features_of(records.PAIR)
        state = {**features, **read_places(self._places())}
        return state if lazy else whole(state)

    def _taught_in_parts(self, Py_ssize_t n):
        cdef Py_ssize_t begin = 0, n_features
        while begin < max(self._table.n, 1):
            n_features = n_features_with(self._features() + begin, self._table.n - begin, n)
            n_taught, taught = taught_of(&self._columns, self._features() + begin, n_features, self._evidence.age)
            yield {"n_taught": n_taught, **dict(zip(("taught_columns", *adaptive_state.KNOWN), taught))}
            begin += max(n_features, 1)

    cdef dict _features_of(self, dtype):
        names = dict.fromkeys(records.names_in(dtype), records.SINGLE)
        return lazy_columns(self._table.n, {"keys": records.COUNT, **names}, partial(self._features_in_parts, dtype))

    def _features_in_parts(self, dtype, Py_ssize_t n):
        cdef Py_ssize_t begin
        for begin in range(0, max(self._table.n, 1), n):
            some = records_of(&self._table, dtype)[begin : begin + n]
            yield {"keys": keys_of(some["hash"]), **records.read_numbers(some, self._evidence.age)}

    cdef int _set_features(self, dtype, state) except -1:
        """Make these the only features, of the age of now."""
        fill(&self._table, state["keys"])
        features = records_of(&self._table, dtype)
        for name in records.names_in(dtype):
            features[name] = records.as_singles(state[name])
        features["age"] = self._evidence.age
        return 0

    cdef dict _features_by_class(self, bint lazy):
        cdef Py_ssize_t n = n_taught_of(&self._columns, self._features(), self._table.n, self._evidence.age) if lazy else 0
        taught = self._taught_in_parts
        singles = dict.fromkeys(adaptive_state.KNOWN, records.SINGLE)
        return {
            **self._features_of(records.SEVERAL), **lazy_columns(self._table.n, {"n_taught": records.COUNT}, taught),
            **lazy_columns(n, {"taught_columns": records.COUNT, **singles}, taught),
        }

    def set_state(self, state):
        cdef Problems* problems = &self._problems
        wait_for(self._guard, self._guard)
        made_with = self.parameters["reduction"]
        grown = made_with == "two" and self.has_columns_in(state)
        self._set_reduction(OF_RULE_OVR if grown else adaptive_state.REDUCTIONS.index(made_with))
        self._evidence.age = 0
        self._set_features(records.SEVERAL if self.has_class_columns else records.PAIR, state)
        if self.has_class_columns:
            self._set_taught(state)
            problems.n_classes, problems.n = len(state["class_counts"]), len(state["intercepts"])
            if self._make_room(problems.n_classes) < 0:
                raise MemoryError
        size_block(problems, &self._dense, state)
        write_places(self._places(), state)
        if problems.reduction == ORDINAL and problems.n_order < problems.n_classes:  # or it knows of classes to come
            self._set_order(np.array(state["order"], np.int64))

    cdef int _set_taught(self, state) except -1:
        n_taught, numbers = [np.ascontiguousarray(state[name]) for name in ("n_taught", "taught_columns")]
        weights, squares, counts = [
            np.ascontiguousarray(records.as_singles(state[name])) for name in adaptive_state.KNOWN
        ]
        fill_taught(
            &self._columns, self._features(), n_taught, numbers, weights, squares, counts, len(state["class_counts"])
        )
        return 0

    cdef Learner _view(self):
        cdef AdaptiveLearner view = AdaptiveLearner.__new__(AdaptiveLearner)
        view._table, view._columns = self._table, self._columns
        view._evidence = self._evidence
        if copy_problems(&view._problems, &self._problems) < 0 or self._dense.d and sp_view_dense(&view._dense, &self._dense) < 0:
            raise MemoryError
        view._margins = view._problems.margins
        return view._as_view(self)

    cdef int _set_order(self, order) except -1:
        self._order = order
        self._problems.order, self._problems.n_order = &self._order[0] if order.shape[0] else NULL, order.shape[0]
        return 0

    cdef int _make_room(self, Py_ssize_t n) noexcept nogil:
        """For as many classes."""
        cdef int status = make_room_for_problems(&self._problems, n)
        self._margins = self._problems.margins
        return status

    cdef Py_ssize_t _n_columns(self) noexcept nogil:
        return self._problems.n_classes if self.has_class_columns else 1

    cdef Py_ssize_t _n_classes_for(self, y) except -1:
        if self._problems.reduction == MULTILABEL and y is not None and len(y):
            return max(self._problems.n_classes, <Py_ssize_t> int(np.max(self._set_numbers, initial=-1)) + 1)
        return Learner._n_classes_for(self, y)

    cdef void _set_reduction(self, int reduction) noexcept nogil:
        cdef Problems* problems = &self._problems
        problems.reduction, self.has_class_columns, self._evidence.prior = reduction, reduction != TWO, 0.0
        memset(problems.odds, 0, (problems.width + SP_LANES) * sizeof(double))  # those of more classes than there are now, too
        if not self.has_class_columns:
            problems.n, problems.n_classes, problems.known_order[0], problems.known_order[1] = 1, 2, 0, 1

    cdef int _grow(self, Row* e) noexcept nogil:
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i, c, place, n_new = 0 if e == NULL else e.n
        cdef Py_ssize_t n_pieces = self._table.n * SIZES[size_of_all(2)]
        cdef BinaryProblem problem = problems.terms[0]
        cdef sp_feature known
        cdef sp_columns* feature
        cdef sp_dense* block = &self._dense
        make_no_columns(&self._columns)
        if (
            make_room_until(&self._columns, n_pieces + (n_new + 1) * (SIZES[size_of_all(3)] + PIECES_OF_LINE)) < 0
            or make_room(&self._table, n_new) < 0
            or self._make_room(3) < 0
            or sp_reserve(&self._found.above, &self._found.above_capacity, n_new, sizeof(double)) < 0
            or sp_reserve(&self._found.below, &self._found.below_capacity, n_new, sizeof(double)) < 0
            or block.d and sp_reserve_rows(block, 3, 3) < 0
        ):
            return NO_MEMORY
        for i in range(1, self._table.n + 1):
            known, feature = pair_at(&self._table, i)[0], &self._features()[i]
            sp_weaken(&known, self._evidence.age, 1.0)
            feature[0] = sp_columns(
                known.hash, 0, sp_single(min(fabs(known.log_ratio - self._evidence.prior), LARGEST_LOG_RATIO)),
                sp_single(<double> known.positives + known.negatives), self._evidence.age, 0, 0, 0, 0,
            )
            sp_copy_numbers(feature, &known)
            lay_out(&self._columns, feature, 2, 2)
            for c in range(2):
                place = add_column(&self._columns, feature, c)
                sp_weights(self._columns.numbers, feature)[place] = known.weight if c else 0.0 - known.weight
                sp_squares(self._columns.numbers, feature)[place] = known.squares
                sp_counts(self._columns.numbers, feature)[place] = known.positives if c else known.negatives
        problems.terms[0] = BinaryProblem(0.0 - problem.intercept, problem.squares, 0.0, 0.0)
        problems.terms[1] = BinaryProblem(problem.intercept, problem.squares, 0.0, 0.0)
        problems.n, problems.n_examples = 2, problems.class_counts[0] + problems.class_counts[1]
        if block.d:
            block.n_rows = block.n_classes = 2  # for the third one there is room
            for i in range(block.d):
                block.weights[block.d + i], block.weights[i] = block.weights[i], -block.weights[i]
            self._calibration.slope = max(block.joint[0], LEAST_SLOPE)
        halve_slope(&self._calibration)
        self._set_reduction(OF_RULE_OVR)
        return 0

    cdef inline sp_columns* _features(self) noexcept nogil:
        return <sp_columns*> self._table.records

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        return self._table.n

    cdef inline double _scale(self, double log_ratio) noexcept nogil:
        return LEAST_SCALE + fabs(log_ratio - self._evidence.prior) if self._evidence.smoothing != 0.0 else 1.0

    # Scoring

    cdef int _find_margins(self, Row* e) noexcept nogil:
        """`_positions` tells from then on where the features are, `_values` what the weights have met."""
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i
        cdef double squares
        if sp_reserve(&self._found.values, &self._found.values_capacity, e.n, sizeof(double)) < 0:
            return NO_MEMORY
        if not self.has_class_columns:
            if score_pair(&self._table, problems, &self._evidence, &self._found, e) < 0:
                return NO_MEMORY
            if self._dense.d:
                score_vector(problems, &self._dense, e)
                self._predict()
            return 0
        if sp_reserve(&self._found.positions, &self._found.positions_capacity, e.n, sizeof(Py_ssize_t)) < 0:
            return NO_MEMORY
        find_records(&self._table, e, self._found.positions)
        squares = self._scale_values(e)
        if squares < LEAST_SQUARED_NORM:
            squares = enlarge(&self._found, e.n)
        squares = 1.0 / sqrt(squares) if squares > 0.0 else 0.0
        for i in range(e.n):
            self._found.values[i] *= squares
        self._add_up(e)
        score_vector(problems, &self._dense, e)
        self._predict()
        return 0

    cdef inline void _predict(self) noexcept nogil:
        predict_problems(&self._problems, &self._dense, self._calibration.slope)

    cdef inline double _scale_values(self, const Row* e) noexcept nogil:
        """Scale the values, and give the sum of their squares; have the columns fetched."""
        cdef const sp_columns* feature
        cdef double value, squares = 0.0
        cdef Py_ssize_t i
        for i in range(e.n):
            feature = &self._features()[self._found.positions[i]]
            value = e.values[i] * (LEAST_SCALE + feature.log_ratio if self._evidence.smoothing != 0.0 else 1.0)
            squares += value * value
            self._found.values[i] = value
        return squares

    cdef void _add_up(self, const Row* e) noexcept nogil:
        """The margins of the problems before they predict."""
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i, n = n_summed(problems)
        cdef double* sums = problems.raw
        cdef double base = base_margin(problems)
        memset(sums, 0, max(n, problems.n) * sizeof(double))
        sp_add_up(sums, n, self._columns.numbers, self._features(), self._found.positions, self._found.values, e.n)
        for i in range(problems.n if problems.reduction == ORDINAL else 0):
            sums[problems.n - 1 - i] = sums[0]
        for i in range(problems.n):
            sums[i] += base + problems.scaling * problems.terms[i].intercept

    # Learning

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        cdef Problems* problems = &self._problems
        cdef const int64_t* classes
        cdef Py_ssize_t i, n = 1, n_known = problems.n, n_classes = problems.n_classes
        cdef int64_t one = <int64_t> y if self.has_class_columns else y > 0.0
        cdef bint near
        cdef double rate = 0.0, loss
        cdef Calibration* calibration = &self._calibration
        cdef Calibration before
        weight = min(weight, LARGEST_EXAMPLE)
        if problems.reduction == MULTILABEL:
            if not 0 <= one < self._set_starts.shape[0] - 1:
                return NO_CLASS
            n = self._set_starts[one + 1] - self._set_starts[one]
            classes = &self._set_numbers[0] + self._set_starts[one] if n else NULL
        else:
            classes = &one
        for i in range(n):
            if classes[i] < 0 or problems.reduction != MULTILABEL and classes[i] > problems.n_classes:
                return NO_CLASS
            if problems.reduction == ORDINAL and classes[i] >= problems.n_order:
                return NO_CLASS
            n_classes = max(n_classes, <Py_ssize_t> classes[i] + 1)
        if make_room_for(&self._table, e) < 0 or self._make_room(n_classes) < 0:
            return NO_MEMORY
        n_classes = problems.n_classes
        for i in range(n):
            while problems.n_classes <= classes[i]:
                add_class(problems)
                begin_rare(problems, calibration.slope, weight * self._evidence.unit)
        find_signs(problems, classes, n)
        near = find_gradients(problems, weight)
        # The last that may fail. Only classes were added yet, which is undone.
        if (near and self.has_class_columns and self._make_room_to_step(e, n) < 0) or (
            (self._dense.d or e.n_dimensions) and make_block(problems, &self._dense, calibration, e) < 0
        ):
            while problems.n_classes > n_classes:
                remove_class(problems)
            return NO_MEMORY
        if self.has_class_columns or self._dense.d:
            self._predict()
        if self._dense.d:
            learn_vector(problems, &self._dense, e, classes, n, n_known, weight)
        if self.has_class_columns:
            rate = self._learning_rate * sqrt(2.0 * min(max(calibration.slope, LEAST_SLOPE), MOST_SLOPE))
            before = calibration[0]
            loss = calibrate_problems(problems, &self._dense, calibration, one, min(weight, LARGEST_CALIBRATION_WEIGHT))
            if problems.n > n_known:  # no probability could have told a class that is new
                calibration.slope = before.slope
                if n_known == 2:
                    calibration.confidence_intercept = before.confidence_intercept
                    calibration.confidence_slope = before.confidence_slope
        else:
            if self._dense.d:
                probability = probability_of_margin(calibration, self._margins[0])
            else:
                calibrate(calibration, self._margins[0], probability, y, min(weight, LARGEST_CALIBRATION_WEIGHT))
            loss = 1.0 - probability if one else probability
            count_mistake(&self._mistakes, self._margins[0], one, min(weight, LARGEST_CALIBRATION_WEIGHT))
        if near:
            encoder._keep(e)
            if not self.has_class_columns and take_step_of_pair(
                &self._table, problems, &self._evidence, &self._found, e, self._learning_rate, self.n_iterations, one,
                weight,
            ) < 0:
                return NO_MEMORY
            if self.has_class_columns:
                self._take_step(e, classes, n, weight, rate)
        self._end_example(loss)
        return 0

    cdef inline void _end_example(self, double loss) noexcept nogil:
        cdef double growth = next_growth(&self._half_life), kept
        self.n_iterations += 1
        self._evidence.unit *= growth
        if self._dense.d and growth != 1.0:
            sp_fade_dense(&self._dense, growth)
        if self._evidence.unit >= RESCALED_AT:
            self._evidence.unit /= RESCALED_AT
            self._evidence.age += 1
            weaken_problems(&self._problems, RESCALED_AT)
        kept = note_loss(&self._half_life, loss)
        if kept < 1.0:
            self._forget(kept)

    cdef int _make_room_to_step(self, const Row* e, Py_ssize_t n) noexcept nogil:
        """For columns of the problems with a gradient and of n classes; -1 if there is no memory."""
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i, n_pieces = 0, n_more = n + (1 if problems.reduction == ORDINAL else problems.n_active)
        cdef Py_ssize_t of_all = size_of_all(problems.n_classes)
        cdef const sp_columns* feature
        if sp_reserve(&self._found.above, &self._found.above_capacity, e.n, sizeof(double)) < 0:
            return -1
        if sp_reserve(&self._found.below, &self._found.below_capacity, e.n, sizeof(double)) < 0:
            return -1
        for i in range(e.n):
            feature = &self._features()[self._found.positions[i]]
            if feature.n < problems.n_classes if feature.dense else feature.n + n_more > feature.room:
                n_pieces += most_pieces(feature, n_more, of_all)
        return make_room_until(&self._columns, self._columns.n + n_pieces)

    cdef void _take_step(self, Row* e, const int64_t* classes, Py_ssize_t n, double weight, double rate) noexcept nogil:
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i
        cdef double counted = weight * self._evidence.unit, gradient, square, total = 0.0, rare
        cdef double intercept_rate = ORDINAL_INTERCEPT_RATE * rate if problems.reduction == ORDINAL else rate
        cdef bint halving = weight >= 1.0 and self.n_iterations >= MOST_COUNTED
        cdef sp_move move = sp_move(rate, self._evidence.unit, 1.0 / self._evidence.unit, FIRST_SQUARES)
        cdef BinaryProblem* problem
        problems.n_examples += counted
        for i in range(n):
            if 0.0 < problems.class_counts[classes[i]] <= 2.5 * counted:  # its second example or third
                rare = rarity(problems.n_classes, counted, problems.n_examples)
                give_rarity_back(problems, self._calibration.slope, classes[i], rare)
        for i in range(n):
            problems.class_counts[classes[i]] += counted
        for i in range(problems.n):
            problem, gradient = &problems.terms[i], problems.gradients[i] * problems.scaling
            square = gradient * gradient
            if square > 0.0:
                problem.squares += self._evidence.unit * square
                problem.intercept -= intercept_rate * gradient / sqrt(problem.squares / self._evidence.unit)
        if problems.reduction == ORDINAL:
            for i in range(problems.n):
                total += problems.gradients[i]
            memset(problems.gradients, 0, problems.n_classes * sizeof(double))
            problems.gradients[0], problems.active[0], problems.n_active = total, 0, total != 0.0
        for i in range(problems.n_active):
            problems.slopes[i] = problems.gradients[problems.active[i]]
        count_odds(problems, self._evidence.smoothing * self._evidence.unit)
        for i in range(e.n):
            if i + FETCHED_AHEAD < e.n:
                sp_fetch_evidence(self._columns.numbers, &self._features()[self._found.positions[i + FETCHED_AHEAD]])
            if e.values[i] != 0.0:
                if self._found.positions[i] == 0:
                    self._found.positions[i] = place_for(&self._table, e.hashes[i])  # it has one if it stands there twice
                self._learn_feature(i, classes, n, counted, halving, &move)
            if i > 0:  # one later, or the processor would read counts together before it has written the last of them
                self._find_ratio_of(e, i - 1)
        if e.n > 0:
            self._find_ratio_of(e, e.n - 1)
        self._take_logs(self._found.above, self._found.below, e.n)
        for i in range(e.n):
            if e.values[i] != 0.0:
                self._features()[self._found.positions[i]].log_ratio = sp_single(min(self._found.above[i], LARGEST_LOG_RATIO))

    cdef void _learn_feature(
        self, Py_ssize_t i, const int64_t* classes, Py_ssize_t n, double counted, bint halving, const sp_move* move
    ) noexcept nogil:
        cdef Problems* problems = &self._problems
        cdef sp_columns* feature = &self._features()[self._found.positions[i]]
        cdef float* numbers
        cdef float* counts
        cdef Py_ssize_t j, at, n_active
        if feature.age != self._evidence.age:
            sp_weaken_columns(self._columns.numbers, feature, self._evidence.age, 1.0)
        n_active = self._make_columns(feature, classes, n)
        numbers = self._columns.numbers
        if feature.dense:
            sp_move_columns(
                sp_weights(numbers, feature), sp_squares(numbers, feature), problems.active, problems.slopes, problems.n_active,
                self._found.values[i], move,
            )
        else:
            sp_move_columns(
                sp_weights(numbers, feature), sp_squares(numbers, feature), problems.places, problems.own_slopes, n_active,
                self._found.values[i], move,
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
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i, n_active = 0, n_missing
        if feature.dense and feature.n >= problems.n_classes:
            return 0
        n_missing = problems.n_active + n
        if not feature.dense:
            self._find_places(feature)
            n_active = self._find_active(feature)
            n_missing -= n_active
            for i in range(n):
                n_missing -= problems.gradients[classes[i]] != 0.0 or self._place(feature, classes[i]) < feature.n
            if n_missing == 0:
                return n_active
        if feature.dense or feature.n + n_missing > feature.room:
            lay_out(&self._columns, feature, n_missing, problems.n_classes)
            if feature.dense:
                return 0
            self._find_places(feature)
        for i in range(problems.n_active):
            self._add_missing(feature, problems.active[i])
        for i in range(n):
            self._add_missing(feature, classes[i])
        return self._find_active(feature)

    cdef inline void _find_places(self, const sp_columns* feature) noexcept nogil:
        cdef const uint32_t* of = sp_numbers(self._columns.numbers, feature)
        cdef Py_ssize_t i
        for i in range(feature.n):
            self._problems.column_places[of[i]] = i

    cdef inline Py_ssize_t _place(self, const sp_columns* feature, Py_ssize_t column) noexcept nogil:
        """Where a feature has that column; the number of its columns if it has not."""
        cdef Py_ssize_t i = self._problems.column_places[column]
        if i < feature.n and sp_numbers(self._columns.numbers, feature)[i] == column:
            return i
        return feature.n

    cdef inline void _add_missing(self, sp_columns* feature, Py_ssize_t column) noexcept nogil:
        if self._place(feature, column) == feature.n:
            self._problems.column_places[column] = add_column(&self._columns, feature, column)

    cdef inline Py_ssize_t _find_active(self, const sp_columns* feature) noexcept nogil:
        """Where a feature has columns with a gradient; how many."""
        cdef Problems* problems = &self._problems
        cdef Py_ssize_t i, place, n = 0
        for i in range(problems.n_active):
            place = self._place(feature, problems.active[i])
            problems.places[n], problems.own_slopes[n] = place, problems.slopes[i]
            n += place < feature.n  # hard to predict, so nothing branches on it
        return n

    cdef inline void _find_ratio_of(self, const Row* e, Py_ssize_t i) noexcept nogil:
        self._found.above[i] = self._found.below[i] = 1.0
        if e.values[i] != 0.0:
            self._find_ratio(&self._features()[self._found.positions[i]], &self._found.above[i], &self._found.below[i])

    cdef inline void _find_ratio(self, const sp_columns* feature, double* above, double* below) noexcept nogil:
        """Two numbers whose quotient is the count ratio of a feature; of ordered classes its logarithm, and any number."""
        cdef Problems* problems = &self._problems
        cdef double smoothing = self._evidence.smoothing * self._evidence.unit
        cdef const float* counts = sp_counts(self._columns.numbers, feature)
        cdef const uint32_t* numbers
        above[0] = below[0] = 0.0 if problems.reduction == ORDINAL else 1.0
        if smoothing == 0.0 or problems.n == 0:
            return
        if problems.reduction == ORDINAL:
            above[0] = self._ordinal_ratio(feature, smoothing)
            return
        if feature.dense and feature.n >= problems.n_classes:
            sp_find_odds(counts, problems.odds, problems.n_classes, feature.count, smoothing, above, below)
        elif feature.dense:  # and not learned since a class came
            sp_find_odds_portable(counts, problems.odds, feature.n, feature.count, smoothing, above, below)
        else:
            numbers = sp_numbers(self._columns.numbers, feature)
            sp_find_odds_of_some(counts, numbers, problems.odds, feature.n, feature.count, smoothing, above, below)

    cdef inline void _take_logs(self, double* above, const double* below, Py_ssize_t n) noexcept nogil:
        if self._problems.reduction != ORDINAL:
            sp_logs_of_ratios(above, below, n)

    cdef double _ordinal_ratio(self, const sp_columns* feature, double smoothing) noexcept nogil:
        cdef Problems* problems = &self._problems
        cdef const float* counts = sp_counts(self._columns.numbers, feature)
        cdef double above = 0.0, total = 0.0
        cdef Py_ssize_t i
        memset(problems.probabilities, 0, problems.n_classes * sizeof(double))
        for i in range(feature.n):
            if column_at(&self._columns, feature, i) < problems.n_classes:
                problems.probabilities[column_at(&self._columns, feature, i)] = counts[i]
        for i in range(problems.n - 1, -1, -1):
            above += problems.probabilities[problems.known_order[i + 1]]
            total += fabs(log((above + smoothing) / (max(feature.count - above, 0.0) + smoothing) / problems.odds[i]))
        return min(total / problems.n, LARGEST_LOG_RATIO)
