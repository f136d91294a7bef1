cdef extern from "cython/forked_copy.h" nogil:
    long sp_fork()
    void sp_leave()
    void sp_end(long)
    void sp_wait(long)


cdef enum:
    WORTH_A_PROCESS = 1 << 18  # features, whose copy takes some milliseconds


@cython.final
cdef class ForkedCopy:
    """Within it `get_state` may leave arrays to be written by another process, which sees all as it is then, so that this one
    goes on at once. They are whole once `wait` was called.
    """

    cdef Learner _learner
    cdef object _memory
    cdef long _process

    def __init__(self, Learner learner):
        self._learner = learner

    def __enter__(self):
        self._learner._forked_copy = self
        return self

    def __exit__(self, kind, error, trace):
        self._learner._forked_copy = None

    def __dealloc__(self):
        if self._process > 0:
            sp_end(self._process)
            sp_wait(self._process)

    def wait(self):
        """Wait until all arrays are whole.

        Raises
        ------
        MemoryError
            If the process that writes them was ended before, as when the machine has no memory left.
        """
        cdef long process = self._process
        cdef const uint8_t[::1] memory
        if process > 0:
            with nogil:
                sp_wait(process)  # at once, if another thread has waited
            self._process = 0
        if self._memory is not None:
            memory = self._memory
            if not memory[0]:
                raise MemoryError("the copy of the model was not finished")

    cdef tuple _arrays(self, Py_ssize_t n, Py_ssize_t n_numbers):
        """Keys, and rows of numbers, which two processes share."""
        self._memory = mmap(-1, 64 + 8 * n * (1 + n_numbers))
        keys = np.frombuffer(self._memory, np.int64, n, 64)
        return keys, np.frombuffer(self._memory, np.float64, n * n_numbers, 64 + 8 * n).reshape(n_numbers, n)
