cdef inline object part(dict of, str name):
    cdef PyObject* found = PyDict_GetItemWithError(of, name)
    return None if found == NULL else <object> found


cdef inline dict trainer_parts(model):
    """The parts of the model's trainer; none if it has none yet."""
    trainer = part(PyObject_GenericGetDict(model, NULL), "trainer")
    return {} if trainer is None else PyObject_GenericGetDict(trainer, NULL)


cdef bint is_between_steps(dict parts):
    lock = part(parts, "lock")
    return type(lock) is Lock and (<Lock> lock).is_open()


@cython.auto_pickle(False)
cdef class OneByOne:
    """The usual case without Python: labels met before, plain feature dicts or texts. It has no state of its own, so
    that an estimator stays an object of Python's like any other.
    """

    def learn_one(self, x, y, w=1.0):
        parts = trainer_parts(self)
        self._learn_now(parts, part(parts, "vocabulary"), x, y, w)

    def predict_one(self, x):
        parts = trainer_parts(self)
        return self._predict_now(parts, part(parts, "vocabulary"), x)

    def learn_prepared(self, encoder, x, y, w=1.0):
        self._learn_now(trainer_parts(self), encoder, x, y, w)

    def predict_prepared(self, encoder, x):
        return self._predict_now(trainer_parts(self), encoder, x)

    @cython.final
    cdef int _learn_now(self, dict parts, encoder, x, y, w) except -1:
        cdef object learner
        cdef PyObject* target = NULL
        cdef Py_ssize_t before
        if (
            type(w) is float and <double> w == 1.0
            and (type(y) is str or type(y) is bool or type(y) is int)
            and is_between_steps(parts)
        ):
            learner = part(parts, "direct")
            target = PyDict_GetItemWithError(part(PyObject_GenericGetDict(part(parts, "labels"), NULL), "targets"), y)
            if target != NULL and isinstance(learner, Learner) and isinstance(encoder, Encoder):
                before = load_usual(<Encoder> encoder, (<Learner> learner)._guard, (<Learner> learner)._current_example, x, True)
                if before >= 0:
                    if (<Learner> learner)._learn_current(<Encoder> encoder, before, <object> target, 1.0):
                        self.trainer.forget_names()
                    return 0
        PureOneByOne.learn_prepared(self, self.trainer.vocabulary if encoder is None else encoder, x, y, w)
        return 0

    @cython.final
    cdef object _predict_now(self, dict parts, encoder, x):
        cdef Learner learner
        cdef object choices
        cdef Py_ssize_t before, number, n
        if part(parts, "by_margin") is True and is_between_steps(parts):
            choices = part(PyObject_GenericGetDict(part(parts, "labels"), NULL), "choices")
            if choices is not None and isinstance(encoder, Encoder) and isinstance(part(parts, "learner"), Learner):
                learner = part(parts, "learner")
                before = load_usual(<Encoder> encoder, learner._guard, learner._current_example, x, learner._counts_unknown)
                if before >= 0:
                    learner._score_current(<Encoder> encoder, before)
                    number, n = learner._largest(), len(<tuple> choices) - 1
                    return (<tuple> choices)[number if 0 <= number < n else n]  # which nothing else checks
        return PureOneByOne.predict_prepared(self, self.trainer.vocabulary if encoder is None else encoder, x)


for name in ("learn_one", "predict_one"):
    function = getattr(OneByOne, name)
    function.__doc__, function.__annotations__ = getattr(PureOneByOne, name).__doc__, getattr(PureOneByOne, name).__annotations__
