# Several threads at the examples of one call, without the GIL. They are started for the call and have ended before it does.
cdef enum:
    MOST_THREADS = 64
    CALLER = 0  # its number among them
    BLOCK_SIZE = 1 << 14  # about how many characters are turned into examples at a time
    HELPER_SIZE = 1 << 15  # and for how many a thread is started: for fewer it costs more than it gives


cdef class Learner


cdef class WorkerPool:
    """The thread that makes a call, and helpers. Whoever has nothing to do sleeps until it is woken.

    A helper touches no Python object but as memory that the call keeps alive. It takes the GIL when it comes, when it
    looks up the vector of a word, and when it leaves. So what is left of it then is gone when the caller has the GIL
    again.
    """

    cdef PyThread_type_lock _lock  # of all that they share
    cdef PyThread_type_lock _wake_locks[MOST_THREADS]  # each is locked until it wakes the one who sleeps
    cdef bint _asleep[MOST_THREADS]
    cdef int _n_running  # helpers
    cdef bint _stopped
    cdef Block* _blocks
    cdef Py_ssize_t _n_blocks

    def __cinit__(self):
        self._lock = new_lock()

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self._n_blocks):
            free_block(&self._blocks[i])
        free(self._blocks)
        for i in range(MOST_THREADS):
            if self._wake_locks[i] != NULL:
                PyThread_free_lock(self._wake_locks[i])
        if self._lock != NULL:
            PyThread_free_lock(self._lock)

    cdef int _make_blocks(self, Py_ssize_t n) except -1:
        cdef Py_ssize_t more = n - self._n_blocks
        cdef void* blocks
        if more > 0:
            blocks = realloc(self._blocks, n * sizeof(Block))
            if blocks == NULL:
                raise MemoryError
            self._blocks = <Block*> blocks
            memset(self._blocks + self._n_blocks, 0, more * sizeof(Block))
            self._n_blocks = n
        return 0

    cdef int _start(self, Encoder leader, list encoders, list learners) except -1:
        """A helper for each encoder, or as many as there can be. Whatever this raises, `_end` is to be called."""
        cdef int number = 0
        self._stopped = False
        if self._wake_locks[CALLER] == NULL:
            self._wake_locks[CALLER] = new_wake_lock()
        for encoder, learner in zip(encoders, learners):
            number += 1
            if self._wake_locks[number] == NULL:
                self._wake_locks[number] = new_wake_lock()
            self._enter()
            self._n_running += 1
            self._leave()
            try:
                # Not by threading.Thread: a signal's handler could raise between its start and its return.
                start_new_thread(self.run, (number, leader, encoder, learner))
            except BaseException as error:
                self._enter()
                self._n_running -= 1
                self._leave()
                if not isinstance(error, RuntimeError):
                    raise
                break  # the system has no more threads
        return 0

    cdef void _end(self) noexcept nogil:
        cdef int number
        self._enter()
        self._stopped = True
        for number in range(1, MOST_THREADS):
            self._wake(number)
        while self._n_running:
            self._sleep(CALLER)
        self._leave()

    def run(self, int number, Encoder leader, Encoder encoder, Learner learner):
        with nogil:
            self._work(number, leader, encoder, learner)
        self._enter()
        self._n_running -= 1
        self._wake(CALLER)
        self._leave()

    cdef void _work(self, int number, Encoder leader, Encoder encoder, Learner learner) noexcept nogil:
        """What a helper does; the examples are those that the leader has loaded."""

    cdef inline void _enter(self) noexcept nogil:
        PyThread_acquire_lock(self._lock, 1)

    cdef inline void _leave(self) noexcept nogil:
        PyThread_release_lock(self._lock)

    cdef void _sleep(self, int number) noexcept nogil:
        """Leave, and enter again when woken."""
        self._asleep[number] = True
        self._leave()
        PyThread_acquire_lock(self._wake_locks[number], 1)
        self._enter()

    cdef inline void _wake(self, int number) noexcept nogil:
        if self._asleep[number]:
            self._asleep[number] = False
            PyThread_release_lock(self._wake_locks[number])


cdef PyThread_type_lock new_lock() except NULL:
    cdef PyThread_type_lock lock = PyThread_allocate_lock()
    if lock == NULL:
        raise MemoryError
    return lock


cdef PyThread_type_lock new_wake_lock() except NULL:
    cdef PyThread_type_lock lock = new_lock()
    PyThread_acquire_lock(lock, 1)
    return lock


@cython.final
cdef class PrefetchedBlocks(WorkerPool):
    """Blocks of examples that are used in turn. Helpers make them ahead of their use, and so does who uses them while the
    next one is not ready; without helpers there is one block at a time.
    """

    cdef Py_ssize_t _n_in_turn  # blocks that there is room for
    cdef Py_ssize_t _number  # of the block in use
    cdef Py_ssize_t _n_claimed
    cdef Py_ssize_t _next, _n  # the first example that nobody has claimed, and how many there are

    cdef int _begin(self, Py_ssize_t n, Py_ssize_t n_helpers=0) except -1:
        self._n_in_turn = 3 * n_helpers + 1
        self._number, self._n_claimed, self._next, self._n = -1, 0, 0, n
        return self._make_blocks(self._n_in_turn)

    cdef Block* _take(self, Encoder leader) noexcept nogil:
        """The next block, in place of the one in use; NULL if there was no memory for it."""
        cdef Block* wanted
        cdef Block* block
        cdef int number
        self._enter()
        self._number += 1
        wanted = &self._blocks[self._number % self._n_in_turn]
        if 2 * (self._n_claimed - self._number) <= self._n_in_turn:  # not for each block, since waking costs
            for number in range(1, MOST_THREADS):
                self._wake(number)
        while self._n_claimed <= self._number or not wanted.ready:
            block = self._claim(leader)
            if block != NULL:
                self._make(block, leader, leader)
            else:
                self._sleep(CALLER)
        self._leave()
        return NULL if wanted.failed else wanted

    cdef void _work(self, int number, Encoder leader, Encoder encoder, Learner learner) noexcept nogil:
        cdef Block* block
        self._enter()
        while not self._stopped and self._next < self._n:
            block = self._claim(leader)
            if block != NULL:
                self._make(block, leader, encoder)
                self._wake(CALLER)
            else:
                self._sleep(number)
        self._leave()

    cdef Block* _claim(self, Encoder leader) noexcept nogil:
        """A block to be made; NULL if there is no room or nothing to do."""
        cdef Block* block = &self._blocks[self._n_claimed % self._n_in_turn]
        if self._next == self._n or self._n_claimed - self._number == self._n_in_turn:
            return NULL
        self._n_claimed += 1
        block.ready, block.first = False, self._next
        block.end = self._next = leader._end_of_block(self._next)
        return block

    cdef void _make(self, Block* block, Encoder leader, Encoder encoder) noexcept nogil:
        self._leave()
        block.failed = encoder._fill(leader, block) < 0
        self._enter()
        block.ready = True

    cdef void _release(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self._n_blocks):
            release_block(&self._blocks[i])


@cython.final
cdef class ParallelPrediction(WorkerPool):
    """Examples that are predicted, each block by whoever is free; every thread has an encoder and a learner of its own."""

    cdef double[:, ::1] _margins, _calibrated
    cdef Py_ssize_t _next, _n
    cdef int _status

    def __init__(self, margins, calibrated):
        self._margins, self._calibrated, self._n = margins, calibrated, len(margins)

    cdef int _predict(self, Encoder leader, Learner learner) except -1:
        cdef list helpers = leader._helpers()
        self._make_blocks(len(helpers) + 1)
        try:
            self._start(leader, helpers, [learner._view() for _ in helpers])
            with nogil:
                self._work(CALLER, leader, leader, learner)
        finally:
            with nogil:
                self._end()
        if self._status == NO_MEMORY:
            leader._raise_error()
        return check_status(self._status)

    cdef void _work(self, int number, Encoder leader, Encoder encoder, Learner learner) noexcept nogil:
        cdef Block* block = &self._blocks[number]
        cdef int status
        self._enter()
        while not self._stopped and self._status == 0 and self._next < self._n:
            block.first = self._next
            block.end = self._next = leader._end_of_block(self._next)
            self._leave()
            status = encoder._fill(leader, block)
            if status == 0:
                status = learner._predict_block(
                    block, &self._margins[block.first, 0], self._margins.shape[1],
                    &self._calibrated[block.first, 0],
                )
            self._enter()
            self._status = min(self._status, status)
        self._leave()
