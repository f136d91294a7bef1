@cython.final
cdef class Guard:
    """Keeps threads apart. A loop over many examples holds the lock, and lets go of the GIL. Any other access keeps the GIL
    from its beginning to its end, which is enough among such accesses; it only waits for loops.
    """

    cdef cython.pymutex lock
    cdef bint busy


cdef int wait_for(Guard one, Guard other) except -1:
    """Wait until neither is busy; from then on the GIL keeps it so."""
    while one.busy or other.busy:
        with one.lock:
            pass
        with other.lock:
            pass
    return 0
