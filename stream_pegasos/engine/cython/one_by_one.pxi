@cython.final
cdef class Lock:
    """A reentrant lock that the engine itself can look at: as long as it keeps the GIL nobody takes it. Only those that have
    to wait need a lock of Python's, which is released for one of them whenever this one becomes free.
    """

    cdef unsigned long _owner
    cdef Py_ssize_t _depth, _n_waiting
    cdef object _free, __weakref__

    def __cinit__(self):
        self._free = allocate_lock()
        self._free.acquire()
        heed_forks(self)

    def acquire(self, bint blocking=True, double timeout=-1.0):
        return self._take() or (blocking and self._wait(timeout))

    def release(self):
        self._give()

    def __enter__(self):
        return self._take() or self._wait(-1.0)

    def __exit__(self, kind, error, trace):
        self._give()

    cdef bint is_open(self):
        """Whether this thread may take it at once: it has it already, or nobody has it and nobody waits, whose turn it is."""
        if self._depth:
            return self._owner == PyThread_get_thread_ident()
        return not self._n_waiting

    cdef bint _take(self):
        if not self.is_open():
            return False
        self._owner = PyThread_get_thread_ident()
        self._depth += 1
        return True

    cdef bint _wait(self, double timeout) except -1:
        cdef double end
        self._n_waiting += 1
        try:
            end = monotonic() + timeout
            while self._free.acquire(True, -1.0 if timeout < 0.0 else max(0.0, end - monotonic())):
                if not self._depth:
                    self._owner, self._depth = PyThread_get_thread_ident(), 1
                    return True
            return False
        finally:
            self._n_waiting -= 1

    cdef int _give(self) except -1:
        if not self._depth or not self.is_open():
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if not self._depth and self._n_waiting and self._free.locked():
            self._free.release()
        return 0


cdef inline object part(dict of, str name):
    cdef PyObject* found = PyDict_GetItemWithError(of, name)
    return None if found == NULL else <object> found


cdef bint is_between_steps(dict model):
    lock = part(model, "lock")
    return type(lock) is Lock and (<Lock> lock).is_open()


@cython.auto_pickle(False)
cdef class OneByOne:
    """The usual case without Python: labels met before, plain feature dicts or texts. It has no state of its own, so
    that an estimator stays an object of Python's like any other.
    """

    def learn_one(self, x, y, w=1.0):
        self._learn_now(part(PyObject_GenericGetDict(self, NULL), "vocabulary"), x, y, w)

    def predict_one(self, x):
        return self._predict_now(part(PyObject_GenericGetDict(self, NULL), "vocabulary"), x)

    def learn_prepared(self, encoder, x, y, w=1.0):
        self._learn_now(encoder, x, y, w)

    def predict_prepared(self, encoder, x):
        return self._predict_now(encoder, x)

    @cython.final
    cdef int _learn_now(self, encoder, x, y, w) except -1:
        cdef dict model = PyObject_GenericGetDict(self, NULL)
        cdef object learner
        cdef PyObject* target = NULL
        cdef Py_ssize_t before
        if (
            type(w) is float and <double> w == 1.0 and part(model, "is_direct") is True
            and (type(y) is str or type(y) is bool or type(y) is int)
            and is_between_steps(model)
        ):
            learner = part(model, "learner")
            target = PyDict_GetItemWithError(part(PyObject_GenericGetDict(part(model, "labels"), NULL), "targets"), y)
            if target != NULL and isinstance(learner, Learner) and isinstance(encoder, Encoder):
                before = load_usual(<Encoder> encoder, (<Learner> learner)._guard, (<Learner> learner)._current_example, x, True)
                if before >= 0:
                    if (<Learner> learner)._learn_current(<Encoder> encoder, before, <object> target, 1.0):
                        self.forget_names()
                    return 0
        PureOneByOne.learn_prepared(self, encoder, x, y, w)
        return 0

    @cython.final
    cdef object _predict_now(self, encoder, x):
        cdef dict model = PyObject_GenericGetDict(self, NULL)
        cdef Learner learner
        cdef object choices
        cdef Py_ssize_t before, number, n
        if part(model, "by_margin") is True and is_between_steps(model):
            choices = part(PyObject_GenericGetDict(part(model, "labels"), NULL), "choices")
            if choices is not None and isinstance(encoder, Encoder) and isinstance(part(model, "learner"), Learner):
                learner = part(model, "learner")
                before = load_usual(<Encoder> encoder, learner._guard, learner._current_example, x, learner._meets_unknown)
                if before >= 0:
                    learner._meet_current(<Encoder> encoder, before)
                    number, n = learner._largest(), len(<tuple> choices) - 1
                    return (<tuple> choices)[number if 0 <= number < n else n]  # which nothing else checks
        return PureOneByOne.predict_prepared(self, encoder, x)


for name in ("learn_one", "predict_one"):
    function = getattr(OneByOne, name)
    function.__doc__, function.__annotations__ = getattr(PureOneByOne, name).__doc__, getattr(PureOneByOne, name).__annotations__
