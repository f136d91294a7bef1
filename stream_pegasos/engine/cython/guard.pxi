@cython.final
cdef class Lock:
    """A model's lock, which is reentrant, and which the engine itself can look at: as long as it keeps the GIL nobody takes it.
    Only those that have to wait need a lock of Python's, which is released for one of them whenever this one becomes free.
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


@cython.final
cdef class Guard:
    """Keeps threads apart. A loop over many examples holds the lock, and lets go of the GIL. Any other access keeps the GIL
    from its beginning to its end, which is enough among such accesses; it only waits for loops.
    """

    cdef cython.pymutex lock
    cdef bint busy
    cdef unsigned long owner  # the thread whose loop it is

    cdef bint is_mine(self):
        return self.busy and self.owner == PyThread_get_thread_ident()


# How many loops a thread is in, or waits for; none stands here that is in no loop.
cdef dict loops = {}


@cython.final
cdef class LoopsAtFork:
    """No loop runs in another thread while this is held, and no other thread waits for one or for its end: a child would never
    see these end. It is a lock of its own kind, as locks of guards are taken without the GIL.
    """

    cdef unsigned long _owner
    cdef object __weakref__

    def acquire(self, double timeout=-1.0):
        cdef unsigned long thread = PyThread_get_thread_ident()
        cdef double end = monotonic() + timeout
        while True:
            if not self._owner or self._owner == thread:
                self._owner = thread
                if len(loops) == (thread in loops):
                    return True
            if 0.0 <= timeout and end <= monotonic():
                break
            try:
                sleep(MOMENT)
            except BaseException:
                self._reopen(thread)
                raise
        self._reopen(thread)
        return False

    def release(self):
        self._owner = 0

    cdef void _reopen(self, unsigned long thread) noexcept:
        if self._owner == thread:
            self._owner = 0


MOMENT = 0.001  # seconds between two looks
cdef LoopsAtFork at_fork = LoopsAtFork()
heed_forks(at_fork)


cdef int enter() except -1:
    """Before a lock of a guard is waited for: not while the process forks, but for whoever is in a loop, whose end is awaited."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    while at_fork._owner and at_fork._owner != thread and thread not in loops:
        sleep(MOMENT)
    loops[thread] = loops.get(thread, 0) + 1
    return 0


cdef int leave() except -1:
    cdef unsigned long thread = PyThread_get_thread_ident()
    n = loops.pop(thread) - 1
    if n:
        loops[thread] = n
    return 0


cdef int refuse_reentry(Guard one, Guard other) except -1:
    """Python runs inside a loop where a value is Python's; it must not come back to where it came from."""
    if one.is_mine() or other.is_mine():
        raise RuntimeError("the model, or the features that it shares, is in the middle of a call of this very thread")
    return 0


cdef int wait_for(Guard one, Guard other) except -1:
    """Wait until neither is busy; from then on the GIL keeps it so."""
    while one.busy or other.busy:
        refuse_reentry(one, other)
        enter()
        with one.lock:
            pass
        with other.lock:
            pass
        leave()
    return 0


cdef int begin_loop(Guard one, Guard other) except -1:
    refuse_reentry(one, other)
    enter()
    one.lock.acquire()
    if other is not one:
        other.lock.acquire()
    one.busy = other.busy = True
    one.owner = other.owner = PyThread_get_thread_ident()
    return 0


cdef int end_loop(Guard one, Guard other) except -1:
    one.busy = other.busy = False
    if other is not one:
        other.lock.release()
    one.lock.release()
    return leave()
