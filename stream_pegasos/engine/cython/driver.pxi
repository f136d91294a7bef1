def target_array(y, dict targets):
    """The target of each label of a list, or None if one has none, or is of a type that is not `PLAIN`."""
    cdef Py_ssize_t i, n = len(y)
    cdef list labels = y
    cdef PyObject* label
    cdef PyObject* before = NULL
    cdef double target = 0.0
    result = np.empty(n)
    cdef double[::1] out = result
    for i in range(n):
        label = PyList_GET_ITEM(labels, i)
        if label != before:
            found, kind = targets.get(<object> label), type(<object> label)
            if found is None or (kind is not str and kind is not int and kind not in driver.PLAIN):
                return None
            target, before = found, label
        out[i] = target
    return result


cdef enum:  # what a rule may answer
    NO_MEMORY = -1
    RAISED = -2  # an exception of Python's
    NO_CLASS = -3  # y is the number of none


cdef inline int check_status(int status) except -1:
    return 0 if status >= 0 else raise_for(status)


cdef int raise_for(int status) except -1:
    if status == NO_MEMORY:
        raise MemoryError
    if status == NO_CLASS:
        raise IndexError("y is the number of no class")
    return 0


cdef class Learner:
    """The driver. A rule is a subclass: `_find_margins` finds the margins of an example, and `_learn` takes in the one met."""

    cdef readonly dict parameters
    cdef readonly bint has_class_columns  # whether each class has a column; two may share one, whose mirror is class 0
    cdef public Py_ssize_t n_known  # how many of two classes that share a column have come
    cdef public bint names_opposite  # whether the first of these makes the other one known
    cdef Calibration _calibration
    cdef Guard _guard
    cdef CurrentExample _current_example
    cdef double* _margins  # those that predict of the current example, by column; the rule's memory
    cdef Py_ssize_t _max_features
    cdef bint _counts_unknown  # whether features never learned count, so that names are to be told apart
    cdef bint _is_view  # of another learner, whose tables it looks into

    def __cinit__(self, *_, **__):
        if type(self) is Learner:
            raise TypeError("a learner needs a rule")
        self._guard, self._current_example = Guard(), CurrentExample()
        self._calibration.slope = self._calibration.confidence_slope = 1.0
        self.n_known = 2

    # What a rule says.

    cdef Py_ssize_t _n_columns(self) noexcept nogil:
        return 1

    cdef Py_ssize_t _n_classes_for(self, y) except -1:
        """How many classes there are once these are learned."""
        cdef Py_ssize_t n_classes = self._n_columns() if self.has_class_columns else 2
        return n_classes if y is None or not len(y) else max(n_classes, <Py_ssize_t> int(y.max()) + 1)

    cdef int _grow(self, Row* e) noexcept nogil:
        """Give two classes that share a column one each; nothing is done without memory for that, and for learning e, of a
        third class, if there is one.
        """
        return NO_CLASS

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        return 0

    cdef Py_ssize_t _n_held(self) noexcept nogil:
        return self._n_features()

    cdef int _find_margins(self, Row* e) noexcept nogil:
        return 0

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        return 0

    cdef Learner _view(self):
        """A learner that predicts as this one does, with memory of its own for the current ones, while this one neither
        changes nor goes.
        """
        raise NotImplementedError

    cdef Learner _as_view(self, Learner of):
        """Take over what all kinds of learners predict with."""
        self._is_view, self.has_class_columns, self.n_known = True, of.has_class_columns, of.n_known
        self._calibration = of._calibration
        return self

    cdef int _begin_many(self, Encoder encoder, Py_ssize_t n_classes) except -1:
        return 0

    cdef int _end_many(self, bint failed) noexcept nogil:
        """End a loop; one that failed may be undone."""
        return 0

    def flush(self):
        pass

    def has_columns_in(self, state):
        return self.has_class_columns

    def grow(self):
        wait_for(self._guard, self._guard)
        if not self.has_class_columns:
            check_status(self._grow(NULL))

    # What drives it.

    def __len__(self):
        wait_for(self._guard, self._guard)
        return self._n_features()

    @property
    def n_held(self):
        wait_for(self._guard, self._guard)
        return self._n_held()

    def vector_score(self, Encoder encoder not None, x, Py_ssize_t number=0):
        return 1.0, np.zeros(0), 0.0

    @property
    def n_learned(self):
        return self.n_iterations

    @cython.final
    cdef _expand_pair(self, numbers):
        """The numbers of classes, given those of columns in the last dimension."""
        return numbers if self.has_class_columns else np.concatenate((0.0 - numbers, numbers), axis=-1)

    @cython.final
    cdef double _sign_of(self, Py_ssize_t* number):
        """The sign that a class has in its column, whose number takes the place of the one given."""
        cdef double sign = 1.0 if self.has_class_columns or number[0] else -1.0
        if not self.has_class_columns:
            number[0] = 0
        return sign

    @property
    def n_columns(self):
        return self._n_columns()

    @property
    def calibrated(self):
        cdef double[3] found
        self._note_calibration(found)
        return found[0], found[1], found[2]

    def margins(self, Encoder encoder not None, x):
        cdef Py_ssize_t c
        cdef double[::1] out
        self._score_current(encoder, load_one(encoder, self._guard, self._current_example, x, self._counts_unknown))
        if not self.has_class_columns:
            return [0.0 - self._margins[0], self._margins[0]][: self.n_known]
        margins = np.empty(self._n_columns())
        out = margins
        for c in range(out.shape[0]):
            out[c] = self._margins[c]
        return margins

    def predict(self, Encoder encoder not None, x):
        self._score_current(encoder, load_one(encoder, self._guard, self._current_example, x, self._counts_unknown))
        return self._largest()

    @cython.final
    cdef inline Py_ssize_t _largest(self) noexcept nogil:
        """The class with the largest margin, of the current example; -1 where there is none."""
        cdef Py_ssize_t c, best = -1
        if not self.has_class_columns:
            return min(<Py_ssize_t> (self._margins[0] > 0.0), self.n_known - 1)
        for c in range(self._n_columns()):
            if self._margins[c] > (-INFINITY if best < 0 else self._margins[best]):
                best = c
        return best

    def learn(self, Encoder encoder not None, x, double y, double weight):
        return self._learn_current(encoder, load_one(encoder, self._guard, self._current_example, x, True), y, weight)

    @cython.final
    cdef inline int _learn_scored(
        self, Encoder encoder, Row* e, double probability, double y, double weight
    ) except RAISED nogil:
        """Learn an example of class y; one of weight 0 moves nothing and counts nowhere."""
        cdef int status
        if weight == 0.0:
            return 0
        if not self.has_class_columns and y != 2.0:
            status = self._learn(encoder, e, probability, 2.0 * y - 1.0, weight) if y == 0.0 or y == 1.0 else NO_CLASS
            if status >= 0 and self.n_known < 2:
                self.n_known = 2 if self.names_opposite else max(self.n_known, <Py_ssize_t> y + 1)
            return status
        if not self.has_class_columns:
            status = self._grow(e)
            if status == 0:
                status = self._find_margins(e)
            if status < 0:
                return status
        return self._learn(encoder, e, probability, y, weight)

    @cython.final
    cdef int _score_current(self, Encoder encoder, Py_ssize_t before) except -1:
        """Find the margins of the current example; there were so many names before it."""
        try:
            check_status(self._find_margins(&self._current_example.example))
        finally:
            if self._counts_unknown:
                encoder.forget(before)
        return 0

    @cython.final
    cdef bint _learn_current(self, Encoder encoder, Py_ssize_t before, double y, double weight) except -1:
        """Learn the current example; whether there are many more names than features now."""
        cdef Row* e = &self._current_example.example
        try:
            check_status(self._find_margins(e))
            check_status(
                self._learn_scored(encoder, e, 0.0 if self.has_class_columns else probability_of_margin(&self._calibration, self._margins[0]), y, weight)
            )
            if weight != 0.0 and not self._counts_unknown:
                encoder._keep(e)
        finally:
            if not encoder._learned:
                encoder.forget(before)
        return encoder.is_crowded(self._n_held())

    def predict_learn_many(self, Encoder encoder not None, X, y=None, weights=None, list found=None):
        begin_loop(encoder._guard, self._guard)
        try:
            scores = self._predict_learn_many(encoder, X, y, weights)
            if found is not None:
                found.append(scores)
            return scores
        finally:
            encoder._release()
            end_loop(encoder._guard, self._guard)

    cdef _predict_learn_many(self, Encoder encoder, X, y, weights):
        cdef Py_ssize_t i, n, n_done, n_classes
        cdef bint learning = y is not None, weighted = weights is not None
        cdef const double[::1] targets, example_weights
        cdef double[:, ::1] out_margins
        cdef double[:, ::1] out_calibrated
        cdef double probability = 0.0
        cdef Row* e
        cdef int status = 0
        if learning:
            targets = y
        if weighted:
            example_weights = weights
        # Names get numbers for the time being where an example may leave none.
        encoder._defers_check = True
        try:
            n = n_done = encoder._load_many(X, learning or self._counts_unknown, weighted or self._counts_unknown)
        finally:
            encoder._defers_check = False
        n_classes = self._n_classes_for(y)
        margins, calibrated = np.empty((n, n_classes)), np.empty((n, 3))
        out_margins, out_calibrated = margins, calibrated
        if not learning and encoder._has_helpers():
            ParallelPrediction(margins, calibrated)._predict(encoder, self)
            return margins, calibrated
        self._begin_many(encoder, n_classes)
        encoder._end_check()
        try:
            encoder._start_helpers()
            with nogil:
                for i in range(n):
                    e = encoder._fetch(i)
                    if e != NULL and learning and not self._counts_unknown and not (weighted and example_weights[i] == 0.0):
                        encoder._keep(e)
                    status = NO_MEMORY if e == NULL else self._find_margins(e)
                    if status < 0:
                        break
                    probability = self._note(&out_margins[i, 0], n_classes, &out_calibrated[i, 0])
                    if learning:
                        status = self._learn_scored(
                            encoder, e, probability, targets[i], example_weights[i] if weighted else 1.0
                        )
                        if status < 0:
                            break
                        if 0 < self._max_features < self._n_features() or (
                            encoder._has_names and encoder._is_crowded(self._n_held())
                        ):
                            n_done = i + 1
                            break
        finally:
            with nogil:
                encoder._end_helpers()
            status = min(status, self._end_many(status < 0))
        if status == NO_MEMORY:
            encoder._raise_error()
        check_status(status)
        return margins[:n_done], calibrated[:n_done]

    @cython.final
    cdef inline double _note(self, double* margins, Py_ssize_t n_classes, double* calibrated) noexcept nogil:
        """Write down what is found of the current example, −∞ for classes to come; where two share a column, also give the
        probability of class 1.
        """
        cdef Py_ssize_t c, n = self._n_columns() if self.has_class_columns else self.n_known
        self._note_calibration(calibrated)
        for c in range(n, n_classes):
            margins[c] = -INFINITY
        if not self.has_class_columns:
            if n > 0:
                margins[0] = 0.0 - self._margins[0]
            if n > 1:
                margins[1] = self._margins[0]
            return probability_of_margin(&self._calibration, self._margins[0])
        memcpy(margins, self._margins, n * sizeof(double))
        return 0.0

    @cython.final
    cdef inline void _note_calibration(self, double* found) noexcept nogil:
        if self.has_class_columns:
            found[0], found[1], found[2] = self._calibration.slope, self._calibration.confidence_intercept, self._calibration.confidence_slope
        else:  # the margins of both classes are twice as far apart as their column says
            found[0], found[1], found[2] = max(self._calibration.slope / 2.0, SMALLEST_SLOPE), 0.0, 1.0

    cdef int _predict_block(
        self, Block* block, double* margins, Py_ssize_t n_classes, double* calibrated
    ) noexcept nogil:
        cdef Py_ssize_t i, n = block.end - block.first
        cdef int status
        for i in range(n):
            status = self._find_margins(&block.rows[i])
            if status < 0:
                return status
            self._note(margins + i * n_classes, n_classes, calibrated + 3 * i)
        return 0
