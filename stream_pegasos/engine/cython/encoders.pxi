@cython.final
cdef class CurrentExample:
    """The example that a learner works on: its own, whatever becomes of the encoder's."""

    cdef Row example
    cdef Py_ssize_t _capacity, _vector_capacity

    def __dealloc__(self):
        free(self.example.hashes)
        free(self.example.values)
        free(self.example.vector)

    cdef int copy(self, const Row* given) except -1:
        cdef Row* e = &self.example
        if reserve_example(&e.hashes, &e.values, &self._capacity, given.n) < 0:
            raise MemoryError
        e.n, e.factor, e.is_even = given.n, given.factor, given.is_even
        memcpy(e.hashes, given.hashes, given.n * sizeof(uint64_t))
        memcpy(e.values, given.values, given.n * sizeof(double))
        if sp_reserve(&e.vector, &self._vector_capacity, given.n_dimensions, sizeof(float)) < 0:
            raise MemoryError
        e.n_dimensions = given.n_dimensions
        if given.n_dimensions:
            memcpy(e.vector, given.vector, given.n_dimensions * sizeof(float))
        return 0


cdef int reserve_example(uint64_t** hashes, double** values, Py_ssize_t* capacity, Py_ssize_t n) noexcept nogil:
    """Room for `n` features and the intercept; what a huge example took is given back."""
    cdef Py_ssize_t before
    if capacity[0] > SP_MOST_KEPT and n < SP_MOST_KEPT:
        free(hashes[0])
        free(values[0])
        hashes[0], values[0], capacity[0] = NULL, NULL, 0
    if n < capacity[0]:
        return 0
    before = capacity[0]
    if sp_reserve(hashes, &before, n + 1, sizeof(uint64_t)) < 0:
        return -1
    before = capacity[0]
    if sp_reserve(values, &before, n + 1, sizeof(double)) < 0:
        return -1
    capacity[0] = before
    return 0


cdef class Encoder:
    """Turns one kind of input into examples. `_load` and `_load_many` check all of it under the GIL, `_fetch` fills
    `_example` without.
    """

    cdef Row _example
    cdef uint64_t* _hashes  # what the example usually points to
    cdef double* _values
    cdef Py_ssize_t _capacity
    cdef bint _learned  # whether the newest example was
    cdef bint _has_names
    cdef bint _defers_check  # whether values that are to be loaded may be checked later, by `_end_check`
    cdef Py_ssize_t _n_before  # names before the newest example, or before the loop
    cdef Guard _guard

    def __cinit__(self):
        self._guard = Guard()

    def __dealloc__(self):
        free(self._hashes)
        free(self._values)

    # For a learner in Python.

    def row(self, x, bint learning):
        current = CurrentExample()
        self._n_before = load_one(self, self._guard, current, x, learning)
        return row_of(&current.example)

    def rows(self, X, bint learning):
        self.check(X)
        return (self.row(x, learning) for x in X)

    def check(self, X):
        begin_loop(self._guard, self._guard)
        try:
            self._load_many(X, True, True)
        finally:
            self._release()
            end_loop(self._guard, self._guard)

    def forget_newest(self):
        self.forget(self._n_before)

    def name(self, int64_t key):
        return key

    cpdef Py_ssize_t size(self):
        """How many names have been numbered."""
        return 0

    cpdef forget(self, Py_ssize_t size):
        """Forget the names that came after that many."""

    cdef int _reserve(self, Py_ssize_t n) noexcept nogil:
        """Point the example to memory with room for `n` features and the intercept."""
        if reserve_example(&self._hashes, &self._values, &self._capacity, n) < 0:
            return -1
        self._example.hashes, self._example.values = self._hashes, self._values
        return 0

    cdef int _release(self) except -1:
        """Let go of the last input."""
        reserve_example(&self._hashes, &self._values, &self._capacity, 0)
        return 0

    cdef int _give_example(self, CurrentExample current) except -1:
        """Give the example away, memory and all, for that of the one before."""
        cdef Row before = current.example
        cdef Py_ssize_t capacity = current._capacity
        current.example, current._capacity = self._example, self._capacity
        current.example.vector, current.example.n_dimensions = before.vector, 0
        self._hashes, self._values, self._capacity = before.hashes, before.values, capacity
        return 0

    cdef int _load(self, x, bint learning) except -1:
        """Make the example; 0, and nothing done, if Python's help is needed: `_plain` gives an input that needs none."""
        raise NotImplementedError

    cdef _plain(self, x):
        return x

    cdef Py_ssize_t _load_many(self, X, bint learning, bint tentative=False) except -1:
        raise NotImplementedError

    cdef Row* _fetch(self, Py_ssize_t i) noexcept nogil:
        """Example i, which is the next one; NULL if there is no memory."""
        return NULL

    cdef void _keep(self, Row* e) noexcept nogil:
        """Take note that the features of an example are known from then on."""
        self._learned = True

    cdef bint _is_crowded(self, Py_ssize_t n_held) noexcept nogil:
        """In a loop, whether there are many more names than a learner holds features."""
        return False

    cpdef bint is_crowded(self, Py_ssize_t n_held):
        return False

    cdef int _end_check(self) except -1:
        """Check what the load has left, unless the loop checks each example as it comes."""
        return 0

    cdef int _raise_error(self) except -1:
        """Raise the error that ended a loop as an example was made, if there is one."""
        return 0

    # For several threads.

    def get_threaded(self, Py_ssize_t n):
        return self

    cdef bint _has_helpers(self):
        return False

    cdef list _helpers(self):
        """Encoders like this one, as many as are of use for what is loaded."""
        return []

    cdef int _start_helpers(self) except -1:
        """Have examples made ahead of their use, up to `_end_helpers`."""
        return 0

    cdef void _end_helpers(self) noexcept nogil:
        pass

    cdef Py_ssize_t _end_of_block(self, Py_ssize_t first) noexcept nogil:
        """Which example the block ends before that begins with this one."""
        return first + 1

    cdef int _fill(self, Encoder leader, Block* block) noexcept nogil:
        """Make the examples of a block, of what another encoder of this kind has loaded; -1 if there is no memory."""
        return -1


cdef row_of(const Row* e):
    cdef Py_ssize_t i
    keys = [<int64_t> (e.hashes[i] * INVERSE_MULTIPLIER) for i in range(e.n)]
    vector = np.array([e.vector[i] for i in range(e.n_dimensions)], np.float64)
    return PureRow(keys, [e.values[i] for i in range(e.n)], e.factor, vector, e.is_even)


cdef Py_ssize_t load_one(Encoder encoder, Guard guard, CurrentExample current, x, bint learning) except -2:
    """Take the current example once no loop is under way; how many names there were before."""
    cdef Py_ssize_t before
    wait_for(encoder._guard, guard)
    before = load_usual(encoder, guard, current, x, learning)
    if before < 0:
        x = encoder._plain(x)  # which may let other threads in
        wait_for(encoder._guard, guard)
        before = load_usual(encoder, guard, current, x, learning)
    return before


cdef Py_ssize_t load_usual(Encoder encoder, Guard guard, CurrentExample current, x, bint learning) except -2:
    """The same at once; −1, and nothing done, where a loop is under way or Python's help is needed."""
    cdef Py_ssize_t before
    if encoder._guard.busy or guard.busy:
        return -1
    before = encoder.size()
    if not encoder._load(x, learning):
        return -1
    encoder._learned = False
    encoder._give_example(current)
    return before


cdef bint is_plain(name, int depth=0):
    """Whether `plain_name` would give a name back as it is."""
    if type(name) is tuple:
        for part in <tuple> name:
            if depth == DEEPEST_NAME or not is_plain(part, depth + 1):
                return False
        return True
    return type(name) is str or type(name) is int


@cython.final
cdef class Vocabulary(Encoder):
    """In a loop names that are new get their numbers as they are read; those of examples that are not learned are forgotten. Or,
    where that is `tentative`, numbers for the time being, from TEMPORARY on: then those that are kept get the numbers that
    they get one at a time.
    """

    cdef dict _keys
    cdef list _names  # all of them or, until one is asked for, fewer
    cdef bint _tentative
    cdef Block _block  # the examples of the loop
    cdef Py_ssize_t _n_new, _n_kept  # names new in a loop, and kept of these
    cdef Py_ssize_t* _places  # the place of each new one among those kept, −1 if it has none
    cdef Py_ssize_t _places_capacity

    def __init__(self, names=()):
        self._has_names = True
        self.set_names(names)

    def set_names(self, names):
        self._keys = {name: FIRST_NAME + i for i, name in enumerate(names)}
        self._names = list(self._keys)

    def __dealloc__(self):
        free_block(&self._block)
        free(self._places)

    @property
    def names(self):
        return list(self._keys)

    def name(self, int64_t key):
        if key < FIRST_NAME:
            return key
        if len(self._names) != len(self._keys):
            self._names += self._newest(len(self._keys) - len(self._names))
        if key - FIRST_NAME >= len(self._names):
            raise IndexError(f"{key} is the key of no name")
        return self._names[key - FIRST_NAME]

    cdef list _newest(self, Py_ssize_t n):
        """The n names that came last; in no time that depends on those before."""
        names = list(itertools.islice(reversed(self._keys), n))
        names.reverse()
        return names

    def rows(self, X, bint learning):
        checked = [x if self._load(x, False) else self._plain(x) for x in X]
        # One by one, since a name is numbered when it is learned.
        return (self.row(x, learning) for x in checked)

    cdef int _load(self, x, bint learning) except -1:
        cdef Py_ssize_t before = len(self._keys)
        if not isinstance(x, dict):
            raise TypeError(must_be("features", "a dict", type_name(x)))
        try:
            if self._encode(x, learning):
                return 1
        except BaseException:
            self.forget(before)
            raise
        self.forget(before)
        return 0

    cdef _plain(self, x):
        return {plain_name(name): check_value(name, value) for name, value in x.items()}

    cdef bint _encode(self, x, bint learning) except -1:
        """Make the example; False if only Python can see what a name or a value is, which might let other threads in."""
        cdef Row* e = &self._example
        cdef Py_ssize_t i
        if self._reserve(PyDict_Size(x)) < 0:
            raise MemoryError
        e.n, e.factor = read_usual_items(x, DIRECT_LIMIT, <int64_t*> e.hashes, e.values), 1.0
        if e.n < 0 or not sp_all_within(e.values, e.n, VALUE_LIMIT):
            return self._encode_any(x, learning)
        for i in range(e.n):
            e.hashes[i] = hash_key(<int64_t> e.hashes[i])
        return True

    cdef bint _encode_any(self, x, bint learning) except -1:
        cdef Row* e = &self._example
        cdef double value
        cdef long long key
        cdef int overflow
        e.n = 0
        if type(x) is not dict:
            return False
        for name, given in (<dict> x).items():
            if PyFloat_Check(given):
                value = PyFloat_AS_DOUBLE(given)
            elif PyLong_CheckExact(given) or PyBool_Check(given):
                key = PyLong_AsLongLongAndOverflow(given, &overflow)
                if overflow:
                    return False
                value = <double> key
            else:
                return False
            if not fabs(value) <= VALUE_LIMIT:
                check_value(name, given)
            overflow = 1
            if PyLong_CheckExact(name):
                key = PyLong_AsLongLongAndOverflow(name, &overflow)
            if overflow or not -DIRECT_LIMIT < key < DIRECT_LIMIT:
                if not is_plain(name):
                    return False
                if value == 0.0:
                    continue  # a name of zeros may be forgotten, so it is never anything to learn from
                number = self._keys.get(name)
                if number is None:
                    if not learning:
                        continue
                    number = FIRST_NAME + len(self._keys)
                    if self._tentative:
                        number += TEMPORARY - FIRST_NAME - self._n_before
                    self._keys[name] = number
                key = number
            e.hashes[e.n] = hash_key(key)
            e.values[e.n] = value
            e.n += 1
        return True

    cdef int _release(self) except -1:
        Encoder._release(self)
        self._settle()
        sp_release(&self._places, &self._places_capacity)
        release_block(&self._block)
        return 0

    cpdef Py_ssize_t size(self):
        return len(self._keys)

    cdef bint _is_crowded(self, Py_ssize_t n_held) noexcept nogil:
        return self._n_before + self._n_kept > NAMES_HELD * n_held + SPARE_NAMES

    cpdef bint is_crowded(self, Py_ssize_t n_held):
        return len(self._keys) > NAMES_HELD * n_held + SPARE_NAMES

    cpdef forget(self, Py_ssize_t size):
        if len(self._keys) > size:
            del self._names[size:]
            while len(self._keys) > size:
                self._keys.popitem()

    cdef Py_ssize_t _load_many(self, X, bint learning, bint tentative=False) except -1:
        cdef Py_ssize_t before = len(self._keys), i = 0
        cdef list examples = list(X)
        cdef Row* e = &self._example
        cdef Block* block = &self._block
        self._n_before, self._tentative = before, tentative
        block.first, block.end = 0, len(examples)
        try:
            if begin_block(block) < 0:
                raise MemoryError
            for i, x in enumerate(examples):
                if not self._load(x, learning):
                    self._load(self._plain(x), learning)
                if make_room_in(block, e.n) < 0:
                    raise MemoryError
                memcpy(block.hashes + block.n, e.hashes, e.n * sizeof(uint64_t))
                memcpy(block.values + block.n, e.values, e.n * sizeof(double))
                block.rows[i] = e[0]
                block.n += e.n + 1
            end_block(block)
            if sp_reserve(&self._places, &self._places_capacity, len(self._keys) - before, sizeof(Py_ssize_t)) < 0:
                raise MemoryError
        except BaseException:
            self.forget(before)
            raise
        self._n_new = len(self._keys) - before
        for i in range(self._n_new):
            self._places[i] = -1
        return block.end

    cdef int _settle(self) except -1:
        """At the end of a loop: forget the new names that were not kept, and number the others for good."""
        cdef Py_ssize_t i, n_same = 0
        cdef list new, kept
        if self._n_new and self._tentative:
            new, kept = self._newest(self._n_new), [None] * self._n_kept
            for i in range(self._n_new):
                if self._places[i] >= 0:
                    kept[self._places[i]] = new[i]
            while n_same < self._n_kept and self._places[n_same] == n_same:
                self._keys[new[n_same]] = FIRST_NAME + self._n_before + n_same
                n_same += 1
            self.forget(self._n_before + n_same)
            for i in range(n_same, self._n_kept):
                self._keys[kept[i]] = FIRST_NAME + self._n_before + i
        elif self._n_new:
            self.forget(self._n_before + self._n_kept)
        self._n_new, self._n_kept, self._tentative = 0, 0, False
        return 0

    cdef void _keep(self, Row* e) noexcept nogil:
        cdef Py_ssize_t i, new
        cdef int64_t first = TEMPORARY if self._tentative else FIRST_NAME + self._n_before
        self._learned = True
        for i in range(e.n if self._n_kept < self._n_new else 0):
            new = <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER) - first
            if 0 <= new < self._n_new:
                if self._tentative:
                    self._places[new] = self._n_kept
                    e.hashes[i] = self._hash_of_kept(new)
                    self._n_kept += 1
                else:
                    self._n_kept = max(self._n_kept, new + 1)

    cdef inline uint64_t _hash_of_kept(self, Py_ssize_t new) noexcept nogil:
        return hash_key(FIRST_NAME + self._n_before + self._places[new])

    cdef Row* _fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Row* e = &self._block.rows[i]
        cdef Py_ssize_t new
        self._learned = False
        for i in range(e.n if self._tentative and self._n_kept else 0):
            new = <int64_t> (e.hashes[i] * INVERSE_MULTIPLIER) - TEMPORARY
            if 0 <= new < self._n_new and self._places[new] >= 0:
                e.hashes[i] = self._hash_of_kept(new)
        return e


@cython.final
cdef class Rows(Encoder):
    cdef const int64_t[::1] _indptr
    cdef const int32_t[::1] _indices32
    cdef const int64_t[::1] _indices64
    cdef const double[::1] _data
    cdef bint _wide, _by_column, _in_place  # in place where no intercept is to stand behind the values
    cdef bint _is_checked  # whether the values were; in a loop by column each row is checked as it comes
    cdef Py_ssize_t _n_columns
    cdef Py_ssize_t _most  # the last column that has a value
    cdef Py_ssize_t _wrong  # the row with a wrong value that ended a loop; −1 for none

    def __init__(self, Py_ssize_t n_columns):
        self._n_columns = n_columns

    def rows(self, X, bint learning):
        return map(self.row_at, range(self._load_many(X, learning)))

    def row_at(self, Py_ssize_t i):
        cdef const Row* e = self._fetch(i)
        if e == NULL:
            raise MemoryError
        return row_of(e)

    cdef Py_ssize_t _load_many(self, X, bint learning, bint tentative=False) except -1:
        cdef Py_ssize_t i, n
        cdef uint64_t most = 0  # of numbers without a sign, so that a negative column is a huge one
        indptr, indices, data = X
        self._wrong, self._is_checked = -1, False
        self._indptr, self._data = indptr, data
        self._wide, self._by_column, self._in_place = indices.dtype == np.int64, False, False
        n = self._data.shape[0]
        if self._wide:
            self._indices64 = indices
        else:
            self._indices32 = indices
        with nogil:
            if self._wide:
                for i in range(n):
                    most = max(most, <uint64_t> self._indices64[i])
            elif n:
                most = sp_largest(<const uint32_t*> &self._indices32[0], n)
        if n and most >= <uint64_t> (self._n_columns if self._wide else min(self._n_columns, 1 << 31)):
            wrong = indices.min() if indices.min() < 0 else indices.max()
            raise ValueError(must_be("a column of X", f"from 0 to {self._n_columns - 1}", int(wrong)))
        self._most = most
        if not self._defers_check:
            self._check_values(0, n)
            self._is_checked = True
        return self._indptr.shape[0] - 1

    cdef int _check_values(self, Py_ssize_t begin, Py_ssize_t end) except -1:
        cdef Py_ssize_t i
        cdef bint fine = True
        if begin < end:
            with nogil:
                fine = sp_all_within(&self._data[begin], end - begin, VALUE_LIMIT)
        for i in range(begin, begin if fine else end):
            if not fabs(self._data[i]) <= VALUE_LIMIT:
                column = self._indices64[i] if self._wide else self._indices32[i]
                raise ValueError(must_be(f"column {column}", SIZE_EXPECTED, self._data[i]))
        return 0

    cdef int _end_check(self) except -1:
        if not self._is_checked and not self._by_column:
            self._check_values(0, self._data.shape[0])
            self._is_checked = True
        return 0

    cdef int _raise_error(self) except -1:
        cdef Py_ssize_t wrong = self._wrong
        self._wrong = -1
        return self._check_values(self._indptr[wrong], self._indptr[wrong + 1]) if wrong >= 0 else 0

    cdef bint _is_dense(self) noexcept nogil:
        """Whether columns come again so often that a loop gains by having the weights by column."""
        return not self._wide and self._most < self._data.shape[0] // 4

    cdef Row* _fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t begin = self._indptr[i], j
        cdef Row* e = &self._example
        e.n, e.factor = self._indptr[i + 1] - begin, 1.0
        e.columns = NULL
        if self._by_column and not self._is_checked and not sp_all_within(&self._data[begin], e.n, VALUE_LIMIT):
            self._wrong = i
            return NULL
        if self._by_column and self._in_place:
            e.columns = &self._indices32[begin]
        elif self._reserve(e.n) < 0:
            return NULL
        elif self._by_column:
            for j in range(e.n):
                e.hashes[j] = self._indices32[begin + j]
        elif self._wide:
            for j in range(e.n):
                e.hashes[j] = hash_key(self._indices64[begin + j])
        else:
            for j in range(e.n):
                e.hashes[j] = hash_key(self._indices32[begin + j])
        if self._in_place:
            e.values = <double*> &self._data[begin]
        elif e.n:
            memcpy(e.values, &self._data[begin], e.n * sizeof(double))
        begin += e.n
        for j in range(0, min(e.n, self._data.shape[0] - begin), 8):  # what the next row will want
            SP_PREFETCH(&self._data[begin + j])
            if not self._wide:
                SP_PREFETCH(&self._indices32[begin + j])
        return e
