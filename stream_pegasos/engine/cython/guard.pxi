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


cdef int refuse_reentry(Guard one, Guard other) except -1:
    """Python runs inside a loop where a value is Python's; it must not come back to where it came from."""
    if one.is_mine() or other.is_mine():
        raise RuntimeError("the model, or the features that it shares, is in the middle of a call of this very thread")
    return 0


cdef int wait_for(Guard one, Guard other) except -1:
    """Wait until neither is busy; from then on the GIL keeps it so."""
    while one.busy or other.busy:
        refuse_reentry(one, other)
        with one.lock:
            pass
        with other.lock:
            pass
    return 0


cdef int begin_loop(Guard one, Guard other) except -1:
    refuse_reentry(one, other)
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
    return 0
