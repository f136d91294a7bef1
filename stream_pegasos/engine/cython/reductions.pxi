cdef enum:  # reductions
    OF_RULE_OVR = TWO + 1
    MULTILABEL
    ORDINAL


cdef inline double rarity(Py_ssize_t n_classes, double counted, double n_examples) noexcept nogil:
    """The log-odds of a class met once in so many examples, less those of one among equals; 0 where it is no rarer."""
    return min(0.0, log(max(FIRST_COUNT * n_classes * counted / n_examples, LEAST_RARITY)))


cdef inline double bounded(double margin) noexcept nogil:
    return min(max(margin, -LARGEST_MARGIN_JOINED), LARGEST_MARGIN_JOINED)


cdef struct BinaryProblem:
    double intercept, squares, offset, offset_squares


cdef class ReductionLearner(Learner):
    """Classes become problems, each of which tells two things apart: what an example is to each, and what they predict of it. A
    rule for features is a subclass. Two classes are one problem, with a single column.
    """

    cdef BinaryProblem* _problems
    cdef double* _class_counts
    cdef Py_ssize_t* _known_order
    cdef HalfLife _half_life
    cdef double _n_examples, _evidence, _learning_rate, _largest_margin, _smoothing, _problem_scaling
    cdef double _prior  # of two classes, the log-count ratio of all examples
    cdef uint32_t _age  # how often the evidence has begun anew
    cdef bint _hinge
    cdef readonly Py_ssize_t n_iterations
    cdef int _reduction
    cdef Py_ssize_t _n_classes, _n_problems, _width  # and for how many classes there is room
    cdef int64_t[::1] _order, _set_starts, _set_numbers
    # Of the current example, for each problem: the margin before it predicts, what the example is to it, the gradient,
    # and a probability.
    cdef double* _raw
    cdef double* _signs
    cdef double* _gradients
    cdef double* _probabilities
    cdef double* _odds  # of each class, or of what stands above a problem: how often it is not, beside how often it is
    cdef Py_ssize_t* _active  # the columns with a gradient, and these gradients
    cdef double* _slopes
    cdef Py_ssize_t _n_active
    cdef Py_ssize_t* _at  # where a feature has some of these, and their gradients
    cdef double* _own_slopes
    cdef Py_ssize_t* _places_of  # where the feature has each column, if the column that stands there is that one
    cdef double* _own  # the margins of the features, where those that predict are joined with those of vectors
    cdef double* _joined  # the log-odds that these become
    cdef sp_dense _dense  # what is learned of the vectors of messages; of no dimensions until one is learned
    cdef double* _numbers  # the memory of all these, of the margins and of the counts of classes
    cdef Py_ssize_t* _places  # the memory of the order and of what is known of columns in a step

    def __dealloc__(self):
        free(self._problems)
        free(self._numbers)
        free(self._places)
        sp_free_dense(&self._dense)

    @property
    def order(self):
        return np.asarray(self._order)

    @order.setter
    def order(self, order):
        wait_for(self._guard, self._guard)
        self._order = order

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
        return self._expand_pair(np.array([self._base() + self._intercept(i) for i in range(self._n_problems)], np.float64))

    @cython.final
    cdef int _make_room(self, Py_ssize_t n) noexcept nogil:
        """For as many classes; what is known stays, and the margins of the current example."""
        cdef Py_ssize_t width = max(n, self._width + self._width // 2), i
        cdef double* numbers
        cdef BinaryProblem* problems
        cdef Py_ssize_t* places
        if n <= self._width:
            return 0
        numbers = <double*> calloc(11 * width + SP_LANES, sizeof(double))
        problems = <BinaryProblem*> calloc(width, sizeof(BinaryProblem))
        places = <Py_ssize_t*> calloc(4 * width, sizeof(Py_ssize_t))
        if numbers == NULL or problems == NULL or places == NULL:
            free(numbers)
            free(problems)
            free(places)
            return -1
        for i in range(self._width):
            numbers[i], numbers[width + i] = self._margins[i], self._raw[i]
            numbers[6 * width + i], problems[i], places[i] = self._class_counts[i], self._problems[i], self._known_order[i]
        free(self._numbers)
        free(self._problems)
        free(self._places)
        self._numbers = self._margins = numbers
        self._raw, self._signs, self._gradients = numbers + width, numbers + 2 * width, numbers + 3 * width
        self._probabilities, self._odds = numbers + 4 * width, numbers + 10 * width  # and behind them stays 0
        self._class_counts, self._problems = numbers + 6 * width, problems
        self._slopes, self._own_slopes = numbers + 7 * width, numbers + 5 * width
        self._own, self._joined = numbers + 8 * width, numbers + 9 * width
        self._places = self._known_order = places
        self._active, self._at, self._places_of = places + width, places + 2 * width, places + 3 * width
        self._width = width
        return 0

    @cython.final
    cdef Learner _with_problems(self, ReductionLearner of):
        """Make this a view of another learner, with the problems that it has now."""
        if self._make_room(of._width) < 0:
            raise MemoryError
        memcpy(self._problems, of._problems, of._n_problems * sizeof(BinaryProblem))
        memcpy(self._known_order, of._known_order, of._n_classes * sizeof(Py_ssize_t))
        self._reduction, self._n_classes, self._n_problems = of._reduction, of._n_classes, of._n_problems
        if of._dense.d and sp_view_dense(&self._dense, &of._dense) < 0:
            raise MemoryError
        return self._as_view(of)

    cdef Py_ssize_t _n_columns(self) noexcept nogil:
        return self._n_classes if self.has_class_columns else 1

    cdef Py_ssize_t _n_classes_for(self, y) except -1:
        if self._reduction == MULTILABEL and y is not None and len(y):
            return max(self._n_classes, <Py_ssize_t> int(np.max(self._set_numbers, initial=-1)) + 1)
        return Learner._n_classes_for(self, y)

    @cython.final
    cdef inline Py_ssize_t _n_summed(self) noexcept nogil:
        """How many columns of weights there are."""
        return 1 if self._shares_weights() else self._n_classes

    @cython.final
    cdef inline bint _shares_weights(self) noexcept nogil:
        """Whether all problems do, which are in column 0."""
        return self._reduction == ORDINAL or self._reduction == TWO

    @cython.final
    cdef inline double _base(self) noexcept nogil:
        """What the margins begin with."""
        return 0.0 if self._shares_weights() else -log(<double> max(self._n_classes - 1, 1))

    @cython.final
    cdef inline double _intercept(self, Py_ssize_t problem) noexcept nogil:
        return self._problem_scaling * self._problems[problem].intercept + self._problems[problem].offset / self._slope

    @cython.final
    cdef void _predict(self) noexcept nogil:
        """The margins that predict; of ordered classes the logarithms of their probabilities."""
        cdef Py_ssize_t i
        cdef double above = 1.0, next_above, log_odds
        if self._dense.d:
            self._join()
        if self._reduction != ORDINAL:
            for i in range(self._n_problems):
                if self._dense.d:
                    self._margins[i] = self._joined[i] / self._slope
                else:
                    self._margins[i] = self._raw[i] + self._problems[i].offset / self._slope
            return
        for i in range(self._n_classes):
            next_above = 0.0
            if i < self._n_problems:
                log_odds = self._slope * self._raw[i] + self._problems[i].offset
                next_above = sigmoid(self._joined[i] if self._dense.d else log_odds)
            next_above = min(above, next_above)  # what is above a threshold can be no more than above the one before
            self._margins[self._known_order[i]] = log(max(above - next_above, 1e-300))
            above = next_above

    # The vectors of messages.

    @cython.final
    cdef inline void _score_vector(self, const Row* e) noexcept nogil:
        if self._dense.d:
            sp_score_vector(&self._dense, e.vector, e.n_dimensions, 1.0 if self._reduction == OF_RULE_OVR else 2.0)

    @cython.final
    cdef inline double _of_vector(self, Py_ssize_t problem) noexcept nogil:
        """The margin that the vector gives a problem."""
        return self._dense.margins[0 if self._shares_weights() else problem]

    @cython.final
    cdef void _join(self) noexcept nogil:
        cdef const double* joint = self._dense.joint
        cdef Py_ssize_t i
        for i in range(self._n_problems):
            self._own[i] = self._raw[i] + self._problems[i].offset / self._slope
            self._joined[i] = joint[0] * self._own[i] + joint[1] * self._of_vector(i)
            self._joined[i] = min(max(self._joined[i], -LARGEST_JOINED), LARGEST_JOINED)

    @cython.final
    cdef int _make_dense(self, const Row* e) noexcept nogil:
        """Make room for the classes that there are; −1 if there is no memory."""
        cdef Py_ssize_t n_rows = self._n_summed()
        if self._dense.d:
            return sp_reserve_rows(&self._dense, n_rows, self._n_classes)
        if sp_make_dense(&self._dense, e.n_dimensions, n_rows, self._n_classes, FIRST_JOINT_WEIGHTS) < 0:
            return -1
        if not self.has_class_columns:
            self._slope = 1.0  # from now on the weights of margins make log-odds of them
        self._score_vector(e)
        return 0

    @cython.final
    cdef void _learn_vector(self, const Row* e, const int64_t* classes, Py_ssize_t n, Py_ssize_t n_known, double weight) noexcept nogil:
        """Learn what the vector of a message of these classes tells; the first problems were known before."""
        weight = min(weight, LARGEST_CALIBRATION_WEIGHT)
        if n_known == self._n_problems or self._reduction == MULTILABEL:
            self._learn_joint(n_known, weight)
        if self._dense.has_vector:
            self._learn_direction(e, classes, n, weight)

    @cython.final
    cdef void _learn_joint(self, Py_ssize_t n, double weight) noexcept nogil:
        """One step of the weights of margins, over the first problems."""
        cdef double* p = self._probabilities
        cdef double curvature[3]
        cdef double gradient[2]
        cdef double mean[2]
        cdef double own, other, error
        cdef bint is_softmax = self._reduction == OF_RULE_OVR
        cdef Py_ssize_t i
        memset(curvature, 0, sizeof(curvature))
        memset(gradient, 0, sizeof(gradient))
        memset(mean, 0, sizeof(mean))
        for i in range(n):
            p[i] = self._dense.joint[0] * bounded(self._own[i]) + self._dense.joint[1] * bounded(self._of_vector(i))
        if is_softmax:
            find_softmax(p, n, 1.0, p)
        for i in range(n):
            if not is_softmax:
                p[i] = sigmoid(p[i])
                continue
            mean[0] += p[i] * bounded(self._own[i])
            mean[1] += p[i] * bounded(self._of_vector(i))
        for i in range(n):
            own, other = bounded(self._own[i]) - mean[0], bounded(self._of_vector(i)) - mean[1]
            error = p[i] if is_softmax else p[i] * (1.0 - p[i])
            curvature[0] += error * own * own
            curvature[1] += error * own * other
            curvature[2] += error * other * other
            error = (0.0 if is_softmax else p[i]) - (1.0 if self._signs[i] > 0.0 else 0.0)
            gradient[0] += error * own
            gradient[1] += error * other
        sp_step_joint(&self._dense, curvature, gradient, weight, JOINT_MEMORY, JOINT_PRECISION, LARGEST_JOINT_WEIGHT)

    @cython.final
    cdef void _learn_direction(self, const Row* e, const int64_t* classes, Py_ssize_t n, double weight) noexcept nogil:
        cdef sp_dense* block = &self._dense
        cdef double* p = self._probabilities
        cdef double* errors = self._own_slopes
        cdef double few = 0.5 * block.evidence, above, error = 0.0, curvature = 0.0, least = 1.0, most = 0.0
        cdef Py_ssize_t i, n_classes = 2
        if self._reduction == OF_RULE_OVR:
            n_classes = max(self._n_classes, 2)
            for i in range(self._n_problems):
                p[i] = block.margins[i] + SHARE_BESIDE * block.joint[0] * self._own[i]
            find_softmax(p, self._n_problems, 1.0, p)
            error, curvature = 1.0 - p[classes[0]], p[classes[0]] * (1.0 - p[classes[0]])
        else:
            above = 0.0
            for i in range(self._n_problems - 1, -1, -1):
                p[i] = self._of_vector(i)
                if self._reduction != TWO:
                    above = block.counts[self._known_order[i + 1]] + above if self._reduction == ORDINAL else block.counts[i]
                    p[i] += SHARE_BESIDE * block.joint[0] * self._own[i]
                    p[i] += (1.0 - SHARE_BESIDE) * log((above + few) / (max(block.n - above, 0.0) + few))
                p[i] = sigmoid(p[i])
                if self._reduction == ORDINAL:
                    curvature += p[i] * (1.0 - p[i])
                    if self._signs[i] > 0.0:
                        least = min(least, p[i])
                    else:
                        most = max(most, p[i])
                else:
                    curvature = max(curvature, p[i] * (1.0 - p[i]))
                    error = max(error, fabs((1.0 if self._signs[i] > 0.0 else 0.0) - p[i]))
            if self._reduction == ORDINAL:
                error = 1.0 - (least - most)
            for i in range(n if self._reduction != TWO else 0):
                block.counts[classes[i]] += block.evidence
        sp_count_vector(block, e.vector)
        if error < SURE_BELOW:
            return
        errors[0] = 0.0
        for i in range(self._n_problems):
            error = (1.0 if self._signs[i] > 0.0 else 0.0) - p[i]
            if self._reduction == ORDINAL:
                errors[0] += error
            else:
                errors[i] = error
        sp_step_dense(block, errors, n_classes * PRIOR_VARIANCE * weight, curvature, LEAST_SPREAD)

    @cython.final
    cdef void _forget_vectors(self, double share) noexcept nogil:
        cdef Py_ssize_t i
        sp_weaken_dense(&self._dense, self._dense.evidence / share)
        self._dense.evidence = 1.0
        for i in range(self._dense.n_rows * self._dense.d):
            self._dense.weights[i] = <float> (self._dense.weights[i] * sqrt(share))
        for i in range(3):
            self._dense.information[i] *= share

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
            factors *= sign * block.joint[1] / self._slope * (1.0 if self._reduction == OF_RULE_OVR else 2.0)
        return block.joint[0] / self._slope, factors, -float(factors @ mean)

    @cython.final
    cdef dict _of_dense(self):
        """The arrays of the block, where they stand."""
        cdef sp_dense* block = &self._dense
        cdef Py_ssize_t d = block.d, n_pairs = d * (d + 1) // 2
        weights = view_of(block.weights, block.n_rows * d, records.SINGLE)
        found = {
            "vector_mean": view_of(block.mean, d, records.DOUBLE),
            "vector_covariance": view_of(block.covariance, n_pairs, records.SINGLE),
            "vector_weights": weights if self._shares_weights() else weights.reshape(block.n_rows, d),
            "joint_weights": view_of(block.joint, 2, records.DOUBLE),
            "joint_information": view_of(block.information, 3, records.DOUBLE),
        }
        if self._reduction == MULTILABEL or self._reduction == ORDINAL:
            found["vector_counts"] = view_of(block.counts, block.n_classes, records.DOUBLE)
        return found

    @cython.final
    cdef dict _state_of_dense(self):
        if not self._dense.d:
            return {}
        arrays = {name: array.astype(records.DOUBLE) for name, array in self._of_dense().items()}
        return {**arrays, "n_vectors": self._dense.n, "vector_evidence": self._dense.evidence}

    @cython.final
    cdef int _set_dense(self, state) except -1:
        cdef sp_dense* block = &self._dense
        sp_free_dense(block)
        if "vector_mean" not in state:
            return 0
        if sp_make_dense(block, len(state["vector_mean"]), self._n_summed(), self._n_classes, FIRST_JOINT_WEIGHTS) < 0:
            raise MemoryError
        for name, array in self._of_dense().items():
            array[...] = state[name]
        block.n, block.evidence = state["n_vectors"], state["vector_evidence"]
        return 0

    @cython.final
    cdef void _begin_rare(self, double counted) noexcept nogil:
        """Have the newest class begin about as rare as it is; among ordered ones see the specification."""
        cdef Py_ssize_t last = self._n_classes - 1
        cdef BinaryProblem* problem = &self._problems[0 if self._side(last) < 0 else self._n_problems - 1]
        cdef double rare = rarity(self._n_classes, counted, self._n_examples + counted)
        if self._reduction != ORDINAL:
            problem.offset += rare
        elif self._side(last):
            problem.offset += self._side(last) * rare * (1.0 + BEYOND * self._slope)
            problem.offset_squares = 0.0

    @cython.final
    cdef inline void _give_back(self, Py_ssize_t number, double rare) noexcept nogil:
        cdef int side = self._side(number)
        cdef BinaryProblem* problem = &self._problems[0 if side < 0 else self._n_problems - 1 if side else number]
        if self._reduction != ORDINAL:
            problem.offset = min(max(problem.offset, rare) - rare / 2.0, max(problem.offset, 0.0))
        elif side:
            problem.offset -= self._side(number) * rare * BEYOND * self._slope / 2.0

    @cython.final
    cdef inline int _side(self, Py_ssize_t number) noexcept nogil:
        """1 for the last of three ordered classes or more, −1 for the first, 0 for one between."""
        return (self._known_order[self._n_classes - 1] == number) - (self._known_order[0] == number) if self._n_classes > 2 else 0

    @cython.final
    cdef void _add_class(self) noexcept nogil:
        """The next class, for which there is room; a problem between ordered ones begins as the one that it stands beside."""
        cdef Py_ssize_t number = self._n_classes, rank = 0, at, i, beside
        cdef double before = self._base()
        self._class_counts[number] = 0.0
        self._n_classes += 1
        if self._reduction != ORDINAL:
            for i in range(number):
                self._raw[i] += self._base() - before
            self._raw[number] = self._base()
            self._problems[number] = BinaryProblem(0.0, 0.0, 0.0, 0.0)
            self._n_problems += 1
            return
        # Both orders agree on those that are met.
        for i in range(self._order.shape[0]):
            if self._order[i] == number:
                break
            rank += rank < number and self._order[i] == self._known_order[rank]
        for i in range(number, rank, -1):
            self._known_order[i] = self._known_order[i - 1]
        self._known_order[rank] = number
        if number:
            at = max(rank - 1, 0)
            beside = min(at, self._n_problems - 1)
            if self._n_problems == 0:
                self._problems[0], self._raw[0] = BinaryProblem(0.0, 0.0, 0.0, 0.0), 0.0
            else:
                for i in range(self._n_problems, beside, -1):
                    self._problems[i], self._raw[i] = self._problems[i - 1], self._raw[i - 1]
            self._n_problems += 1

    @cython.final
    cdef void _remove_class(self) noexcept nogil:
        """The newest, of which nothing was learned yet."""
        cdef Py_ssize_t number = self._n_classes - 1, rank = 0, i
        self._n_classes = number
        self._n_problems = max(self._n_problems - 1, 0)
        if self._reduction == ORDINAL:
            while self._known_order[rank] != number:
                rank += 1
            for i in range(rank, number):
                self._known_order[i] = self._known_order[i + 1]
            for i in range(max(rank - 1, 0), self._n_problems if rank < number else 0):  # the last one is left behind
                self._problems[i] = self._problems[i + 1]

    @cython.final
    cdef inline void _find_signs(self, const int64_t* classes, Py_ssize_t n) noexcept nogil:
        """What the example is to each problem."""
        cdef Py_ssize_t i, rank
        for i in range(self._n_problems):
            self._signs[i] = -1.0
        if self._shares_weights():
            rank = 0
            while self._known_order[rank] != classes[0]:
                self._signs[rank] = 1.0
                rank += 1
        else:
            for i in range(n):
                self._signs[classes[i]] = 1.0

    @cython.final
    cdef inline bint _find_gradients(self, double weight) noexcept nogil:
        """Whether the example is near enough to teach a problem."""
        cdef Py_ssize_t i
        cdef double sign, margin, limit
        cdef bint near = False
        self._n_active = 0
        for i in range(self._n_problems):
            sign, margin, limit = self._signs[i], self._signs[i] * self._raw[i], self._largest_margin
            if sign < 0.0 and not self._shares_weights():
                limit *= SHARE_OF_REST
            self._gradients[i] = 0.0
            if margin <= limit:
                near = True
                if self._hinge:
                    self._gradients[i] = -sign * weight if margin < 1.0 else 0.0
                else:
                    self._gradients[i] = -sign * weight * (1.0 / (1.0 + exp(min(margin, 700.0))))
            if self._gradients[i] != 0.0:
                self._active[self._n_active] = i
                self._n_active += 1
        return near

    @cython.final
    cdef double _calibrate_problems(self, int64_t y, double weight) noexcept nogil:
        """One step on the log loss of the class, or of each problem; what the probabilities lacked before, all together."""
        cdef Py_ssize_t i
        cdef double error, total = 0.0, loss = 0.0
        cdef double rate = ORDINAL_OFFSET_RATE if self._reduction == ORDINAL else OFFSET_RATE
        cdef double first_squares = ORDINAL_OFFSET_SQUARES if self._reduction == ORDINAL else OFFSET_SQUARES
        cdef BinaryProblem* problem
        if self._reduction == OF_RULE_OVR:
            self._calibrate_class(y, self._own if self._dense.d else self._margins, self._raw, self._probabilities, weight)
            if self._dense.d:
                find_softmax(self._joined, self._n_problems, 1.0, self._own)
                self._learn_confidence(self._own, self._n_problems, y, weight)
            else:
                self._learn_confidence(self._probabilities, self._n_problems, y, weight)
        else:
            for i in range(self._n_problems):
                self._probabilities[i] = sigmoid(self._slope * self._raw[i] + self._problems[i].offset)
                total += weight * (self._probabilities[i] - (1.0 if self._signs[i] > 0.0 else 0.0)) * self._raw[i]
            self._descend(total)
        for i in range(self._n_problems):
            problem = &self._problems[i]
            error = self._probabilities[i] - (1.0 if self._signs[i] > 0.0 else 0.0)
            loss += fabs(error)
            error *= weight
            problem.offset_squares += error * error
            problem.offset -= rate * error / sqrt(problem.offset_squares + first_squares)
        return 1.0 - self._probabilities[y] if self._reduction == OF_RULE_OVR else loss

    @cython.final
    cdef void _count_odds(self) noexcept nogil:
        """How often an example is not of each class, beside how often it is; the inverse of what stands above a problem."""
        cdef double smoothing = self._smoothing * self._evidence, n = 0.0
        cdef Py_ssize_t i
        if smoothing == 0.0:
            return
        if self._reduction == ORDINAL:
            for i in range(self._n_problems - 1, -1, -1):
                n += self._class_counts[self._known_order[i + 1]]
                self._odds[i] = (n + smoothing) / (max(self._n_examples - n, 0.0) + smoothing)
        else:
            for i in range(self._n_classes):
                n = self._class_counts[i]
                self._odds[i] = (max(self._n_examples - n, 0.0) + smoothing) / (n + smoothing)

    cdef void _forget(self, double share) noexcept nogil:
        pass

    @cython.final
    cdef inline void _end_example(self, double loss) noexcept nogil:
        cdef double growth = next_growth(&self._half_life), kept
        self.n_iterations += 1
        self._evidence *= growth
        if self._dense.d and growth != 1.0:
            sp_fade_dense(&self._dense, growth)
        if self._evidence >= RESCALED_AT:
            self._evidence /= RESCALED_AT
            self._age += 1
            self._weaken(RESCALED_AT)
        kept = note_loss(&self._half_life, loss)
        if kept < 1.0:
            self._forget(kept)

    @cython.final
    cdef void _weaken(self, double factor) noexcept nogil:
        """Write the evidence of all but the features down as what it counts now."""
        cdef Py_ssize_t i
        self._n_examples /= factor
        for i in range(self._n_classes):
            self._class_counts[i] /= factor
        for i in range(self._n_problems):
            self._problems[i].squares /= factor
