cdef enum:  # reductions
    OF_RULE_OVR = TWO + 1
    MULTILABEL
    ORDINAL


cdef struct BinaryProblem:
    double intercept, squares, offset, offset_squares


cdef class ReductionLearner(Learner):
    """Classes become problems, each of which tells two things apart: what an example is to each, and what they predict of it. A
    rule for features is a subclass. Two classes are one problem, with a single column.
    """

    cdef BinaryProblem* _problems
    cdef double* _class_counts
    cdef Py_ssize_t* _met_order
    cdef double _n_examples, _evidence, _growth, _learning_rate, _largest_margin, _smoothing, _problem_scaling
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
    cdef double* _numbers  # the memory of all these, of the margins and of the counts of classes
    cdef Py_ssize_t* _places  # the memory of the order and of what is known of columns in a step

    def __dealloc__(self):
        free(self._problems)
        free(self._numbers)
        free(self._places)

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
        return np.array([self._base() + self._intercept(i) for i in range(self._n_problems)], np.float64)

    @cython.final
    cdef int _make_room(self, Py_ssize_t n) noexcept nogil:
        """For as many classes; what is known stays, and the margins of the current example."""
        cdef Py_ssize_t width = max(n, self._width + self._width // 2), i
        cdef double* numbers
        cdef BinaryProblem* problems
        cdef Py_ssize_t* places
        if n <= self._width:
            return 0
        numbers = <double*> calloc(9 * width + SP_LANES, sizeof(double))
        problems = <BinaryProblem*> calloc(width, sizeof(BinaryProblem))
        places = <Py_ssize_t*> calloc(3 * width, sizeof(Py_ssize_t))
        if numbers == NULL or problems == NULL or places == NULL:
            free(numbers)
            free(problems)
            free(places)
            return -1
        for i in range(self._width):
            numbers[i], numbers[width + i] = self._margins[i], self._raw[i]
            numbers[6 * width + i], problems[i], places[i] = self._class_counts[i], self._problems[i], self._met_order[i]
        free(self._numbers)
        free(self._problems)
        free(self._places)
        self._numbers = self._margins = numbers
        self._raw, self._signs, self._gradients = numbers + width, numbers + 2 * width, numbers + 3 * width
        self._probabilities, self._odds = numbers + 4 * width, numbers + 8 * width  # and behind them stays 0
        self._class_counts, self._problems = numbers + 6 * width, problems
        self._slopes, self._own_slopes = numbers + 7 * width, numbers + 5 * width
        self._places = self._met_order = places
        self._active, self._at, self._width = places + width, places + 2 * width, width
        return 0

    @cython.final
    cdef Learner _with_problems(self, ReductionLearner of):
        """Make this a twin of another learner, with the problems that it has now."""
        if self._make_room(of._width) < 0:
            raise MemoryError
        memcpy(self._problems, of._problems, of._n_problems * sizeof(BinaryProblem))
        memcpy(self._met_order, of._met_order, of._n_classes * sizeof(Py_ssize_t))
        self._reduction, self._n_classes, self._n_problems = of._reduction, of._n_classes, of._n_problems
        return self._as_twin(of)

    cdef Py_ssize_t _n_columns(self) noexcept nogil:
        return self._n_classes if self.several else 1

    cdef Py_ssize_t _n_columns_for(self, y) except -1:
        if y is None or not len(y):
            return self._n_classes
        if self._reduction == MULTILABEL:
            return max(self._n_classes, <Py_ssize_t> int(np.max(self._set_numbers, initial=-1)) + 1)
        return max(self._n_classes, <Py_ssize_t> int(y.max()) + 1)

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
        cdef double above = 1.0, next_above
        if self._reduction != ORDINAL:
            for i in range(self._n_problems):
                self._margins[i] = self._raw[i] + self._problems[i].offset / self._slope
            return
        for i in range(self._n_classes):
            next_above = sigmoid(self._slope * self._raw[i] + self._problems[i].offset) if i < self._n_problems else 0.0
            next_above = min(above, next_above)  # what is above a threshold can be no more than above the one before
            self._margins[self._met_order[i]] = log(max(above - next_above, 1e-300))
            above = next_above

    @cython.final
    cdef int _add_class(self) noexcept nogil:
        """Make room for the next class; a problem between ordered ones begins as the one that it stands beside."""
        cdef Py_ssize_t number = self._n_classes, rank = 0, at, i, beside
        cdef double before = self._base()
        if self._make_room(number + 1) < 0:
            return -1
        self._class_counts[number] = 0.0
        self._n_classes += 1
        if self._reduction != ORDINAL:
            for i in range(number):
                self._raw[i] += self._base() - before
            self._raw[number] = self._base()
            self._problems[number] = BinaryProblem(0.0, 0.0, 0.0, 0.0)
            self._n_problems += 1
            return 0
        # Both orders agree on those that are met.
        for i in range(self._order.shape[0]):
            if self._order[i] == number:
                break
            rank += rank < number and self._order[i] == self._met_order[rank]
        for i in range(number, rank, -1):
            self._met_order[i] = self._met_order[i - 1]
        self._met_order[rank] = number
        if number:
            at = max(rank - 1, 0)
            beside = min(at, self._n_problems - 1)
            if self._n_problems == 0:
                self._problems[0], self._raw[0] = BinaryProblem(0.0, 0.0, 0.0, 0.0), 0.0
            else:
                for i in range(self._n_problems, beside, -1):
                    self._problems[i], self._raw[i] = self._problems[i - 1], self._raw[i - 1]
            self._n_problems += 1
        return 0

    @cython.final
    cdef inline void _find_signs(self, const int64_t* classes, Py_ssize_t n) noexcept nogil:
        """What the example is to each problem."""
        cdef Py_ssize_t i, rank
        for i in range(self._n_problems):
            self._signs[i] = -1.0
        if self._shares_weights():
            rank = 0
            while self._met_order[rank] != classes[0]:
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
            if margin < limit:
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
    cdef void _calibrate_problems(self, int64_t y) noexcept nogil:
        """One step on the log loss of what the example is: of its class, or of each problem."""
        cdef Py_ssize_t i
        cdef double error, total = 0.0
        cdef double rate = ORDINAL_OFFSET_RATE if self._reduction == ORDINAL else OFFSET_RATE
        cdef double first_squares = ORDINAL_OFFSET_SQUARES if self._reduction == ORDINAL else OFFSET_SQUARES
        cdef BinaryProblem* problem
        if self._reduction == OF_RULE_OVR:
            self._calibrate_class(y, self._raw, self._probabilities)
        else:
            for i in range(self._n_problems):
                self._probabilities[i] = sigmoid(self._slope * self._raw[i] + self._problems[i].offset)
                total += (self._probabilities[i] - (1.0 if self._signs[i] > 0.0 else 0.0)) * self._raw[i]
            self._descend(total)
        for i in range(self._n_problems):
            problem = &self._problems[i]
            error = self._probabilities[i] - (1.0 if self._signs[i] > 0.0 else 0.0)
            problem.offset_squares += error * error
            problem.offset -= rate * error / sqrt(problem.offset_squares + first_squares)

    @cython.final
    cdef void _count_odds(self) noexcept nogil:
        """How often an example is not of each class, beside how often it is; the inverse of what stands above a problem."""
        cdef double smoothing = self._smoothing * self._evidence, n = 0.0
        cdef Py_ssize_t i
        if smoothing == 0.0:
            return
        if self._reduction == ORDINAL:
            for i in range(self._n_problems - 1, -1, -1):
                n += self._class_counts[self._met_order[i + 1]]
                self._odds[i] = (n + smoothing) / (max(self._n_examples - n, 0.0) + smoothing)
        else:
            for i in range(self._n_classes):
                n = self._class_counts[i]
                self._odds[i] = (max(self._n_examples - n, 0.0) + smoothing) / (n + smoothing)

    @cython.final
    cdef inline void _end_example(self) noexcept nogil:
        self.n_iterations += 1
        self._evidence *= self._growth
        if self._evidence >= RESCALED_AT:
            self._evidence /= RESCALED_AT
            self._age += 1
            self._weaken(RESCALED_AT)

    @cython.final
    cdef void _weaken(self, double factor) noexcept nogil:
        """Write the evidence of all but the features down as what it counts now."""
        cdef Py_ssize_t i
        self._n_examples /= factor
        for i in range(self._n_classes):
            self._class_counts[i] /= factor
        for i in range(self._n_problems):
            self._problems[i].squares /= factor
