# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled engine. `_pure` is its specification: the same names, arguments and, to rounding, results."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport exp, fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from stream_pegasos import _pure
from stream_pegasos._pure import Row, check_value, plain_name

cdef extern from "Python.h":
    ctypedef struct PyObject
    int PyUnicode_KIND(object)
    bint PyUnicode_IS_ASCII(object)
    void* PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    uint32_t PyUnicode_READ(int, const void*, Py_ssize_t) nogil
    bint PyLong_CheckExact(object)
    bint PyFloat_Check(object)
    bint PyBool_Check(object)
    Py_ssize_t PyDict_Size(object)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)
    double PyFloat_AS_DOUBLE(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    # Look-ups in constant tables, safe without the GIL.
    bint Py_UNICODE_ISALNUM(uint32_t) nogil
    bint Py_UNICODE_ISSPACE(uint32_t) nogil
    uint32_t Py_UNICODE_TOLOWER(uint32_t) nogil

cdef extern from "_simd.h" nogil:
    enum:
        SP_SEGMENT
        SP_LONG_WORDS
        SP_WORDS
        SP_WORDS_AND_MARKS
        SP_NONSPACE
    ctypedef struct sp_classes:
        uint64_t* word
        uint64_t* space
        uint64_t* rest
    ctypedef struct sp_edges:
        uint32_t* starts
        uint32_t* ends
        uint32_t n_starts, n_ends
        uint64_t in_token, after_mark, after_word
    void SP_PREFETCH(const void*)
    uint64_t sp_high_product(uint64_t, uint64_t)
    void sp_choose_instructions()
    void sp_classify(const uint8_t*, uint8_t*, size_t, int, sp_classes*)
    void sp_find_edges(const sp_classes*, uint32_t, uint32_t, int, int, sp_edges*)
    void sp_hash(const uint8_t*, const uint32_t*, const uint32_t*, size_t, uint32_t*)
    uint32_t sp_murmur3(const uint8_t*, uint32_t)
    double sp_take(double, uint64_t)
    bint sp_all_within(const double*, size_t, double)

sp_choose_instructions()

cdef int64_t DIRECT_LIMIT = _pure.DIRECT_LIMIT
cdef int64_t FIRST_NAME = _pure.FIRST_NAME
cdef double VALUE_LIMIT = _pure.VALUE_LIMIT
cdef double FOLD_BELOW = _pure.FOLD_BELOW
cdef double CALIBRATION_RATE = _pure.CALIBRATION_RATE
cdef double CALIBRATION_MEMORY = _pure.CALIBRATION_MEMORY
cdef double SMALLEST_GRADIENT = _pure.SMALLEST_GRADIENT
cdef double LARGEST_GRADIENT = _pure.LARGEST_GRADIENT
cdef double SMALLEST_SLOPE = _pure.SMALLEST_SLOPE
cdef double LARGEST_SLOPE = _pure.LARGEST_SLOPE

# Fibonacci hashing: an odd multiplier is a bijection of the 64-bit integers, so the table can hold the hash alone.
cdef extern from *:
    """
    #define MULTIPLIER 0x9E3779B97F4A7C15ULL
    #define INVERSE_MULTIPLIER 0xF1DE83E19937733DULL
    #define ALL_BITS 0xFFFFFFFFFFFFFFFFULL
    #define EMPTY 0xFFFFFFFFFFFFFFFFULL /* the hash of a key that no encoder gives out */
    """
    const uint64_t MULTIPLIER, INVERSE_MULTIPLIER, ALL_BITS, EMPTY


cdef extern from *:
    """
    /* Ints of a single digit, as nearly all are, can be read without a call. */
    #if PY_VERSION_HEX >= 0x030C0000
    #define IS_SMALL_INT(x) PyUnstable_Long_IsCompact((PyLongObject *)(x))
    #define SMALL_INT_VALUE(x) PyUnstable_Long_CompactValue((PyLongObject *)(x))
    #else
    #define IS_SMALL_INT(x) (Py_SIZE(x) == 1)
    #define SMALL_INT_VALUE(x) ((PyLongObject *)(x))->ob_digit[0]
    #endif

    /* Read a dict whose names are all ints and whose values are all floats, without counting references; -1 for any other
       dict. The objects lie scattered in memory, so that all are asked for before the first is waited for. */
    static Py_ssize_t read_usual_items(PyObject *x, int64_t limit, int64_t *keys, double *values) {
        PyObject *names[32], *numbers[32];
        Py_ssize_t position = 0, n = 0, size;
        do {
            for (size = 0; size < 32 && PyDict_Next(x, &position, &names[size], &numbers[size]); size++) {
                SP_PREFETCH(names[size]);
                SP_PREFETCH(numbers[size]);
            }
            for (Py_ssize_t i = 0; i < size; i++, n++) {
                if (!PyLong_CheckExact(names[i]) || !PyFloat_Check(numbers[i])) return -1;
                values[n] = PyFloat_AS_DOUBLE(numbers[i]);
                if (IS_SMALL_INT(names[i])) {
                    keys[n] = SMALL_INT_VALUE(names[i]);
                } else {
                    int overflow;
                    keys[n] = PyLong_AsLongLongAndOverflow(names[i], &overflow);
                    if (overflow || keys[n] <= -limit || keys[n] >= limit) return -1;
                }
            }
        } while (size == 32);
        return n;
    }
    """
    Py_ssize_t read_usual_items(object, int64_t, int64_t*, double*)


cdef inline uint64_t hash_key(int64_t key) noexcept nogil:
    return <uint64_t> key * MULTIPLIER


cdef uint64_t INTERCEPT_HASH = hash_key(_pure.INTERCEPT)


cdef struct Example:  # x = factor · {hash: value}, as in _pure.Row
    uint64_t* hashes
    double* values
    Py_ssize_t n
    double factor


cdef enum:
    MOST_KEPT = 1 << 20  # items that a buffer may have room for between calls


cdef int reserve(void** memory, Py_ssize_t* capacity, Py_ssize_t needed, size_t item) noexcept nogil:
    """Make room for `needed` items, at least half as many again as before; -1 if there is no memory."""
    cdef Py_ssize_t grown
    cdef void* moved
    if needed <= capacity[0]:
        return 0
    grown = max(needed, capacity[0] + (capacity[0] >> 1), 64)
    moved = realloc(memory[0], grown * item)
    if moved == NULL:
        return -1
    memory[0] = moved
    capacity[0] = grown
    return 0


cdef void release(void** memory, Py_ssize_t* capacity) noexcept nogil:
    """Give back what a huge input made a buffer grow to."""
    if capacity[0] > MOST_KEPT:
        free(memory[0])
        memory[0] = NULL
        capacity[0] = 0


# --- threads ----------------------------------------------------------------------------------------------------------


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


# --- weights ----------------------------------------------------------------------------------------------------------


cdef struct Entry:
    uint64_t hash
    double v


cdef enum:
    SPARE_SLOTS = 16


cdef void make_empty(Entry* table, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(n):
        table[p].hash, table[p].v = EMPTY, 0.0


@cython.final
cdef class WeightDict:
    """w = a·v in one array of entries sorted by hash, with gaps: an entry stands at its home, hash · n_homes / 2⁶⁴, or as
    soon after it as the order allows. So a search ends, found or not, at the first entry that is not smaller; growing is
    one sequential pass; and the order of the entries, hence every sum over them, depends on the keys alone.
    """

    cdef Entry* _table
    cdef Py_ssize_t _n, _n_homes, _n_slots  # the slots after the last home take what is pushed over the end
    cdef double _a, _squares
    cdef double* _spread  # during a loop over a matrix: v by column, then that of the intercept; ahead of the table
    cdef Py_ssize_t _n_columns
    cdef Guard _guard

    def __cinit__(self):
        self._guard = Guard()
        self._a = 1.0
        if self._rebuild(16, SPARE_SLOTS) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._table)
        free(self._spread)

    def __len__(self):
        return self._n

    def __sizeof__(self):
        return object.__sizeof__(self) + self._n_slots * sizeof(Entry)

    @property
    def squared_norm(self):
        wait_for(self._guard, self._guard)
        return self._a * self._a * self._squares

    def get(self, int64_t key):
        wait_for(self._guard, self._guard)
        return self._get(hash_key(key))

    def items(self):
        state = self.get_state()
        return state["keys"], state["scale"] * state["values"]

    def dot(self, row):
        cdef double total = 0.0, x
        cdef int64_t key
        for key, x in zip(row.keys, row.values, strict=True):
            total += self.get(key) * x
        return row.factor * total

    def add(self, row, double factor):
        cdef double x
        cdef int64_t key
        for key, x in zip(row.keys, row.values, strict=True):
            wait_for(self._guard, self._guard)
            if self._add(hash_key(key), factor * row.factor * x / self._a) < 0:
                raise MemoryError

    def scale(self, double factor):
        wait_for(self._guard, self._guard)
        self._scale(factor)

    cdef double _get(self, uint64_t h) noexcept nogil:
        cdef Py_ssize_t p = self._seek(h)
        return self._a * self._table[p].v if self._table[p].hash == h else 0.0

    def get_state(self):
        wait_for(self._guard, self._guard)
        keys, values = np.empty(self._n, np.int64), np.empty(self._n, np.float64)
        cdef int64_t[::1] k = keys
        cdef double[::1] v = values
        cdef Py_ssize_t p, i = 0
        for p in range(self._n_slots):
            if self._table[p].hash != EMPTY:
                k[i] = <int64_t> (self._table[p].hash * INVERSE_MULTIPLIER)
                v[i] = self._table[p].v
                i += 1
        return {"keys": keys, "values": values, "scale": self._a, "squares": self._squares}

    def set_state(self, state):
        wait_for(self._guard, self._guard)
        hashes = state["keys"].view(np.uint64) * np.uint64(MULTIPLIER)
        order = np.argsort(hashes)
        cdef const uint64_t[::1] h = hashes[order]
        cdef const double[::1] v = np.ascontiguousarray(state["values"][order])
        cdef Py_ssize_t i, p, n_homes = 16
        while h.shape[0] > self._capacity(n_homes):
            n_homes = self._grown(n_homes)
        self._clear()
        if self._rebuild(n_homes, SPARE_SLOTS) < 0:
            raise MemoryError
        for i in range(h.shape[0]):
            if self._insert(self._seek(h[i]), h[i], v[i]) < 0:
                raise MemoryError
        self._a, self._squares = state["scale"], state["squares"]

    cdef Py_ssize_t _capacity(self, Py_ssize_t n_homes) noexcept nogil:
        return n_homes * 7 // 10

    cdef Py_ssize_t _grown(self, Py_ssize_t n_homes) noexcept nogil:
        # At 16 bytes a slot and between 7/10 and 3/4 · 7/10 of them taken, an entry costs at most 31 bytes.
        return n_homes + n_homes // 3

    cdef inline Py_ssize_t _home(self, uint64_t h) noexcept nogil:
        return <Py_ssize_t> sp_high_product(h, <uint64_t> self._n_homes)

    cdef inline Py_ssize_t _seek(self, uint64_t h) noexcept nogil:
        """Where `h` is, or else where it belongs. The last slot is always empty."""
        cdef Py_ssize_t p = self._home(h)
        while self._table[p].hash < h:
            p += 1
        return p

    cdef int _rebuild(self, Py_ssize_t n_homes, Py_ssize_t spare) noexcept nogil:
        """Spread the entries over `n_homes` homes and at least `spare` slots behind; -1 if there is no memory."""
        cdef Entry* old = self._table
        cdef Entry* new
        cdef Py_ssize_t n_old = self._n_slots, before = self._n_homes, n_slots, p, q, taken
        self._n_homes = n_homes
        while True:
            n_slots = n_homes + spare
            new = <Entry*> malloc(n_slots * sizeof(Entry))
            if new == NULL:
                self._n_homes = before
                return -1
            make_empty(new, n_slots)
            taken = 0
            for p in range(n_old):
                if old[p].hash != EMPTY:
                    q = max(self._home(old[p].hash), taken)
                    if q >= n_slots - 1:
                        break
                    new[q] = old[p]
                    taken = q + 1
            else:
                break
            free(new)
            spare *= 2
        free(old)
        self._table, self._n_slots = new, n_slots
        return 0

    cdef int _insert(self, Py_ssize_t p, uint64_t h, double v) noexcept nogil:
        """Put in an `h` that is not there, and belongs at slot p."""
        cdef Py_ssize_t gap
        if self._n >= self._capacity(self._n_homes):
            if self._rebuild(self._grown(self._n_homes), SPARE_SLOTS) < 0:
                return -1
            p = self._seek(h)
        while True:
            gap = p
            while self._table[gap].hash != EMPTY:
                gap += 1
            if gap < self._n_slots - 1:
                break
            if self._rebuild(self._n_homes, 2 * (self._n_slots - self._n_homes)) < 0:
                return -1
            p = self._seek(h)
        while gap > p:
            self._table[gap] = self._table[gap - 1]
            gap -= 1
        self._table[p].hash, self._table[p].v = h, v
        self._n += 1
        self._squares += v * v
        return 0

    cdef inline void _add_at(self, Py_ssize_t p, double step) noexcept nogil:
        cdef double old = self._table[p].v, new = old + step
        self._table[p].v = new
        self._squares += (new - old) * (new + old)

    cdef int _add(self, uint64_t h, double step) noexcept nogil:
        cdef Py_ssize_t p = self._seek(h)
        if self._table[p].hash == h:
            self._add_at(p, step)
        elif step != 0.0:
            return self._insert(p, h, step)
        return 0

    cdef int _spread_out(self, Py_ssize_t n_columns) noexcept nogil:
        cdef Py_ssize_t p
        cdef int64_t key
        self._spread = <double*> calloc(n_columns + 1, sizeof(double))
        if self._spread == NULL:
            return -1
        self._n_columns = n_columns
        for p in range(self._n_slots):
            if self._table[p].hash != EMPTY and self._is_spread(self._table[p].hash):
                key = <int64_t> (self._table[p].hash * INVERSE_MULTIPLIER)
                self._spread[n_columns if key < 0 else key] = self._table[p].v
        return 0

    cdef bint _is_spread(self, uint64_t h) noexcept nogil:
        return h == INTERCEPT_HASH or 0 <= <int64_t> (h * INVERSE_MULTIPLIER) < self._n_columns

    cdef int _gather_in(self) noexcept nogil:
        cdef double* spread = self._spread
        cdef double squares = self._squares
        cdef Py_ssize_t column, p
        cdef uint64_t h
        self._spread = NULL
        for column in range(self._n_columns + 1):
            h = hash_key(column) if column < self._n_columns else INTERCEPT_HASH
            p = self._seek(h)
            if self._table[p].hash == h:
                self._table[p].v = spread[column]
            elif spread[column] != 0.0 and self._insert(p, h, spread[column]) < 0:
                free(spread)
                return -1
        self._squares = squares  # which knows of what was gathered already
        free(spread)
        return 0

    cdef void _clear(self) noexcept nogil:
        make_empty(self._table, self._n_slots)
        if self._spread != NULL:
            memset(self._spread, 0, (self._n_columns + 1) * sizeof(double))
        self._n, self._a, self._squares = 0, 1.0, 0.0

    cdef void _scale(self, double factor) noexcept nogil:
        cdef Py_ssize_t p
        if factor == 0.0:
            self._clear()
            return
        self._a *= factor
        if fabs(self._a) < FOLD_BELOW:
            self._squares = 0.0
            if self._spread != NULL:
                for p in range(self._n_columns + 1):
                    self._spread[p] *= self._a
                    self._squares += self._spread[p] * self._spread[p]
            for p in range(self._n_slots):
                if self._table[p].hash != EMPTY:
                    self._table[p].v *= self._a
                    if self._spread == NULL or not self._is_spread(self._table[p].hash):
                        self._squares += self._table[p].v * self._table[p].v
            self._a = 1.0


# --- encoders ---------------------------------------------------------------------------------------------------------


cdef class Encoder:
    """Turns one kind of input into examples. `_load` and `_load_many` check all of it under the GIL, `_fetch` fills
    `_example` without.
    """

    cdef Example _example
    cdef uint64_t* _hashes  # what the example usually points to
    cdef double* _values
    cdef Py_ssize_t _capacity
    cdef Guard _guard

    def __cinit__(self):
        self._guard = Guard()

    def __dealloc__(self):
        free(self._hashes)
        free(self._values)

    def row(self, x, bint learning):
        wait_for(self._guard, self._guard)
        self._load(x, learning)
        return self._row()

    def rows(self, X, bint learning):
        cdef Py_ssize_t i, n
        wait_for(self._guard, self._guard)
        n = self._load_many(X, learning)
        rows = []
        for i in range(n):
            if self._fetch(i) < 0:
                raise MemoryError
            rows.append(self._row())
        return rows

    cdef _row(self):
        cdef Example* e = &self._example
        cdef Py_ssize_t i
        keys = [<int64_t> (e.hashes[i] * INVERSE_MULTIPLIER) for i in range(e.n)]
        return Row(keys, [e.values[i] for i in range(e.n)], e.factor)

    cdef int _reserve(self, Py_ssize_t n) noexcept nogil:
        """Point the example to memory with room for `n` features and the intercept."""
        cdef Py_ssize_t capacity = self._capacity
        if n + 1 > capacity:
            if reserve(<void**> &self._hashes, &capacity, n + 1, sizeof(uint64_t)) < 0:
                return -1
            capacity = self._capacity
            if reserve(<void**> &self._values, &capacity, n + 1, sizeof(double)) < 0:
                return -1
            self._capacity = capacity
        self._example.hashes, self._example.values = self._hashes, self._values
        return 0

    cdef int _release(self) except -1:
        """Let go of the last input."""
        if self._capacity > MOST_KEPT:
            free(self._hashes)
            free(self._values)
            self._hashes, self._values, self._capacity = NULL, NULL, 0
        return 0

    cdef int _load(self, x, bint learning) except -1:
        raise NotImplementedError

    cdef Py_ssize_t _load_many(self, X, bint learning) except -1:
        raise NotImplementedError

    cdef int _fetch(self, Py_ssize_t i) noexcept nogil:
        return -1


cdef bint is_plain(name):
    """Whether `plain_name` would give a name back as it is."""
    if type(name) is tuple:
        for part in <tuple> name:
            if not is_plain(part):
                return False
        return True
    return type(name) is str or type(name) is int


@cython.final
cdef class Vocabulary(Encoder):
    cdef dict _keys
    cdef uint64_t* _flat_hashes
    cdef double* _flat_values
    cdef Py_ssize_t* _ends
    cdef Py_ssize_t _n_flat, _flat_hashes_capacity, _flat_values_capacity, _ends_capacity

    def __init__(self, names=()):
        self._keys = {name: FIRST_NAME + i for i, name in enumerate(names)}

    def __dealloc__(self):
        free(self._flat_hashes)
        free(self._flat_values)
        free(self._ends)

    @property
    def names(self):
        return list(self._keys)

    cdef int _load(self, x, bint learning) except -1:
        cdef Py_ssize_t before = len(self._keys)
        if not isinstance(x, dict):
            raise TypeError(f"features must be a dict, not {type(x).__name__}")
        try:
            if not self._encode(x, learning):
                self._encode({plain_name(name): check_value(name, value) for name, value in x.items()}, learning)
        except BaseException:
            self._forget(before)
            raise
        return 0

    cdef bint _encode(self, x, bint learning) except -1:
        """Make the example; False, and nothing done, if Python's help is needed to see what a name or a value is. (Python
        code might let other threads in.)
        """
        cdef Example* e = &self._example
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
        cdef Example* e = &self._example
        cdef double value
        cdef long long key
        cdef int overflow
        e.n = 0
        for name, given in (<dict?> x if type(x) is dict else dict(x)).items():
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
                number = self._keys.get(name)
                if number is None:
                    if not is_plain(name):
                        return False
                    if not learning or value == 0.0:
                        continue
                    number = self._keys[name] = FIRST_NAME + len(self._keys)
                key = number
            e.hashes[e.n] = hash_key(key)
            e.values[e.n] = value
            e.n += 1
        return True

    cdef int _release(self) except -1:
        Encoder._release(self)
        release(<void**> &self._flat_hashes, &self._flat_hashes_capacity)
        release(<void**> &self._flat_values, &self._flat_values_capacity)
        release(<void**> &self._ends, &self._ends_capacity)
        return 0

    cdef _forget(self, Py_ssize_t size):
        while len(self._keys) > size:
            self._keys.popitem()

    cdef Py_ssize_t _load_many(self, X, bint learning) except -1:
        cdef Py_ssize_t before = len(self._keys), i = 0, n
        cdef Example* e = &self._example
        self._n_flat = 0
        try:
            for x in X:
                self._load(x, learning)
                n = self._n_flat + e.n
                if (
                    reserve(<void**> &self._flat_hashes, &self._flat_hashes_capacity, n + 1, sizeof(uint64_t)) < 0
                    or reserve(<void**> &self._flat_values, &self._flat_values_capacity, n + 1, sizeof(double)) < 0
                    or reserve(<void**> &self._ends, &self._ends_capacity, i + 1, sizeof(Py_ssize_t)) < 0
                ):
                    raise MemoryError
                memcpy(self._flat_hashes + self._n_flat, e.hashes, e.n * sizeof(uint64_t))
                memcpy(self._flat_values + self._n_flat, e.values, e.n * sizeof(double))
                self._ends[i] = self._n_flat = n
                i += 1
        except BaseException:
            self._forget(before)
            raise
        return i

    cdef int _fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t begin = self._ends[i - 1] if i else 0
        cdef Example* e = &self._example
        e.n, e.factor = self._ends[i] - begin, 1.0
        if self._reserve(e.n) < 0:
            return -1
        memcpy(e.hashes, self._flat_hashes + begin, e.n * sizeof(uint64_t))
        memcpy(e.values, self._flat_values + begin, e.n * sizeof(double))
        return 0


@cython.final
cdef class Rows(Encoder):
    cdef const int64_t[::1] _indptr
    cdef const int32_t[::1] _indices32
    cdef const int64_t[::1] _indices64
    cdef const double[::1] _data
    cdef bint _wide, _spread, _in_place  # in place where no intercept is to stand behind the values
    cdef Py_ssize_t _n_columns

    cdef Py_ssize_t _load_many(self, X, bint learning) except -1:
        cdef Py_ssize_t i, n
        cdef int64_t bits = 0  # no column is beyond all bits of all columns
        cdef bint fine = True
        indptr, indices, data = X
        self._indptr, self._data = indptr, data
        self._wide, self._spread, self._in_place = indices.dtype == np.int64, False, False
        n = self._data.shape[0]
        if self._wide:
            self._indices64 = indices
        else:
            self._indices32 = indices
        with nogil:
            if self._wide:
                for i in range(n):
                    bits |= self._indices64[i]
            else:
                for i in range(n):
                    bits |= self._indices32[i]
            if n:
                fine = sp_all_within(&self._data[0], n, VALUE_LIMIT)
        if bits < 0 or bits >= FIRST_NAME:
            raise ValueError("a column of the matrix is negative or beyond 2**60")
        if not fine:
            for i in range(n):
                if not fabs(self._data[i]) <= VALUE_LIMIT:
                    raise ValueError(
                        f"column {indices[i]} holds the value {self._data[i]!r}; "
                        f"values must be finite and at most {VALUE_LIMIT:g} in size"
                    )
        self._n_columns = bits + 1
        return self._indptr.shape[0] - 1

    cdef bint _is_dense(self) noexcept nogil:
        """Whether columns come again so often that a loop gains by having the weights by column."""
        return not self._wide and self._n_columns < self._data.shape[0] // 4

    cdef int _fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t begin = self._indptr[i], j
        cdef Example* e = &self._example
        e.n, e.factor = self._indptr[i + 1] - begin, 1.0
        if self._reserve(e.n) < 0:
            return -1
        if self._spread:
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
        return 0


# --- text -------------------------------------------------------------------------------------------------------------


# What a character is, for the characters up to U+FFFF, filled in as they are met: its lower case in the low 16 bits.
cdef uint32_t CHARACTERS[65536]
cdef uint32_t KNOWN = 1 << 31
cdef uint32_t IS_WORD = 1 << 30
cdef uint32_t IS_SPACE = 1 << 29


cdef inline uint32_t look_up(uint32_t c) noexcept nogil:
    cdef uint32_t found = CHARACTERS[c]
    if not found:
        found = KNOWN | Py_UNICODE_TOLOWER(c)
        if Py_UNICODE_ISALNUM(c) or c == c'_':
            found |= IS_WORD
        if Py_UNICODE_ISSPACE(c):
            found |= IS_SPACE
        CHARACTERS[c] = found
    return found


cdef bint lowers_irregularly(text):
    """Whether str.lower does more than to exchange letters one by one: it looks around Σ, and makes two of İ."""
    return "\u03a3" in text or "\u0130" in text


cdef inline uint8_t* put_utf8(uint8_t* out, uint32_t c) noexcept nogil:
    """Write one character, a lone surrogate as any other, and give back the end."""
    if c < 0x80:
        out[0] = c
        return out + 1
    if c < 0x800:
        out[0] = 0xC0 | c >> 6
        out[1] = 0x80 | c & 0x3F
        return out + 2
    if c < 0x10000:
        out[0] = 0xE0 | c >> 12
        out[1] = 0x80 | c >> 6 & 0x3F
        out[2] = 0x80 | c & 0x3F
        return out + 3
    out[0] = 0xF0 | c >> 18
    out[1] = 0x80 | c >> 12 & 0x3F
    out[2] = 0x80 | c >> 6 & 0x3F
    out[3] = 0x80 | c & 0x3F
    return out + 4


cdef inline void add_bits(uint64_t* words, Py_ssize_t at, uint64_t bits, Py_ssize_t n) noexcept nogil:
    """Set the bits from position `at` on as the lowest n of `bits` are."""
    bits &= ALL_BITS >> (64 - n)
    words[at >> 6] |= bits << (at & 63)
    if (at & 63) + n > 64:
        words[(at >> 6) + 1] |= bits >> (64 - (at & 63))


cdef void carry_classes(sp_classes* classes, Py_ssize_t block) noexcept nogil:
    """Move the classes of a block that is not whole yet to the front, and forget the others."""
    cdef Py_ssize_t i
    cdef uint64_t word = classes.word[block], space = classes.space[block], rest = classes.rest[block]
    for i in range(block + 1):
        classes.word[i] = classes.space[i] = classes.rest[i] = 0
    classes.word[0], classes.space[0], classes.rest[0] = word, space, rest


cdef inline bint is_ascii_word(uint8_t c) noexcept nogil:
    return c'a' <= (c | 0x20) <= c'z' or c'0' <= c <= c'9' or c == c'_'


cdef inline uint32_t utf8_length(uint8_t first) noexcept nogil:
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


cdef struct Text:
    const void* data
    Py_ssize_t length
    int kind  # bytes a character, 0 for ASCII
    bint lowercase


cdef enum:
    PADDING = 64     # bytes that may be read after the end of a buffer
    BATCH = 1024     # n-grams hashed at a time
    FEWEST_POSITIONS = 16
    MAX_BYTES = 0x7FFFFF00


@cython.final
cdef class StringSet:
    """A set of strings, asked for by their UTF-8 bytes."""

    cdef uint32_t* _slots  # 1 + number of the member, 0 where empty
    cdef uint32_t _mask
    cdef list _encoded
    cdef const char** _bytes
    cdef Py_ssize_t* _lengths

    def __init__(self, members):
        cdef Py_ssize_t i, n
        cdef uint32_t slot
        self._encoded = [member.encode("utf-8", "surrogatepass") + b"\0" * 16 for member in members]
        n = len(self._encoded)
        self._mask = (1 << (2 * n + 1).bit_length()) - 1
        self._slots = <uint32_t*> malloc((self._mask + 1) * sizeof(uint32_t))
        self._bytes = <const char**> malloc((n + 1) * sizeof(char*))
        self._lengths = <Py_ssize_t*> malloc((n + 1) * sizeof(Py_ssize_t))
        if not self._slots or not self._bytes or not self._lengths:
            raise MemoryError
        memset(self._slots, 0, (self._mask + 1) * sizeof(uint32_t))
        for i in range(n):
            encoded = self._encoded[i]
            self._bytes[i] = PyBytes_AS_STRING(encoded)
            self._lengths[i] = PyBytes_GET_SIZE(encoded) - 16
            slot = sp_murmur3(<const uint8_t*> self._bytes[i], self._lengths[i]) & self._mask
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
            self._slots[slot] = i + 1

    def __dealloc__(self):
        free(self._slots)
        free(self._bytes)
        free(self._lengths)

    cdef bint _contains(self, const uint8_t* word, uint32_t n) noexcept nogil:
        cdef uint32_t slot = sp_murmur3(word, n) & self._mask, i
        while self._slots[slot]:
            i = self._slots[slot] - 1
            if self._lengths[i] == n and memcmp(self._bytes[i], word, n) == 0:
                return True
            slot = (slot + 1) & self._mask
        return False


@cython.final
cdef class Scanner(Encoder):
    cdef readonly tuple arguments
    cdef bint _lowercase, _alternate_sign, _binary, _l1, _l2, _two_characters, _plain_words
    cdef int _kind_of_token
    cdef bint _char, _char_wb, _ngrams
    cdef Py_ssize_t _min_n, _max_n
    cdef uint32_t _n_features, _index_mask  # the mask is 0 where n_features is no power of two
    cdef StringSet _stop_words

    # The text as lower-cased UTF-8, and, for n-grams, its tokens with one space between.
    cdef uint8_t* _buffer
    cdef Py_ssize_t _buffer_capacity
    cdef uint8_t* _joined
    cdef Py_ssize_t _joined_capacity, _joined_length
    cdef uint32_t* _recent  # where in _joined the newest max_n tokens begin
    cdef Py_ssize_t _n_tokens
    cdef uint32_t* _offsets  # where each character begins
    cdef Py_ssize_t _offsets_capacity
    cdef sp_classes _ascii_classes  # of which none is ever in `rest`
    cdef sp_classes _classes  # all zero between texts
    cdef sp_edges _edges

    # N-grams waiting to be hashed, as ranges of _source.
    cdef const uint8_t* _source
    cdef uint32_t _range_starts[BATCH]
    cdef uint32_t _range_ends[BATCH]
    cdef Py_ssize_t _n_ranges

    # The distinct indices of this text, with their counts, and a table from index to position among them.
    cdef uint32_t* _indices
    cdef Py_ssize_t _indices_capacity
    cdef int32_t* _counts
    cdef Py_ssize_t _counts_capacity
    cdef Py_ssize_t _n
    cdef double _length  # the norm that the counts are divided by
    cdef uint64_t* _positions  # (index + 1) << 32 | position, 0 where empty
    cdef uint32_t _positions_mask  # of the part in use, as small as the text allows; all is empty between texts
    cdef Py_ssize_t _positions_capacity

    cdef object _held  # keeps alive what _texts points into
    cdef Text* _texts
    cdef Py_ssize_t _texts_capacity
    cdef object _last  # the text that the example is of: predicting and then learning scans it once
    cdef dict _last_features

    def __cinit__(self):
        self._reserve_fewest_positions()

    def __init__(
        self, analyzer, token_pattern, lowercase, stop_words, ngram_range, n_features, alternate_sign, binary, norm
    ):
        self.arguments = (
            analyzer, token_pattern, lowercase, stop_words, ngram_range, n_features, alternate_sign, binary, norm
        )
        pattern = _pure.TOKEN_PATTERNS.index(token_pattern)
        self._two_characters = pattern == 0
        self._kind_of_token = (SP_WORDS, SP_WORDS, SP_WORDS_AND_MARKS, SP_NONSPACE)[pattern]
        self._char, self._char_wb, self._ngrams = analyzer == "char", analyzer == "char_wb", analyzer == "ngrams"
        self._lowercase = lowercase and not self._ngrams
        self._stop_words = StringSet(stop_words) if stop_words else None
        self._min_n, self._max_n = ngram_range
        self._plain_words = self._max_n == 1 and self._stop_words is None
        self._n_features = n_features
        self._index_mask = n_features - 1 if n_features & (n_features - 1) == 0 else 0
        self._alternate_sign, self._binary = alternate_sign, binary
        self._l1, self._l2 = norm == "l1", norm == "l2"
        self._recent = <uint32_t*> malloc(self._max_n * sizeof(uint32_t))
        if self._recent == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._buffer)
        free(self._joined)
        free(self._recent)
        free(self._offsets)
        free(self._indices)
        free(self._counts)
        free(self._positions)
        free(self._texts)

    def transform_one(self, text):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        if text is not self._last or self._last_features is None:
            self._load(text, False)
            self._last_features = {self._indices[i]: self._example.values[i] / self._length for i in range(self._n)}
        return self._last_features.copy()

    def transform_many(self, texts):
        with self._guard.lock:
            self._guard.busy = True
            try:
                return self._transform_many(texts)
            finally:
                self._release()
                self._guard.busy = False

    cdef _transform_many(self, texts):
        cdef Py_ssize_t i, j, n, total = 0, capacity = 0
        cdef int32_t[::1] out_indices
        cdef double[::1] out_data
        cdef int64_t[::1] out_indptr
        n = self._load_many(texts, False)
        indptr = np.zeros(n + 1, np.int64)
        indices, data = np.empty(0, np.int32), np.empty(0, np.float64)
        out_indptr, out_indices, out_data = indptr, indices, data
        for i in range(n):
            with nogil:
                if self._fetch(i) < 0:
                    with gil:
                        raise MemoryError
            if total + self._n > capacity:
                capacity = max(total + self._n, 2 * capacity, 1024)
                indices = np.concatenate([indices[:total], np.empty(capacity - total, np.int32)])
                data = np.concatenate([data[:total], np.empty(capacity - total, np.float64)])
                out_indices, out_data = indices, data
            for j in range(self._n):
                out_indices[total + j] = self._indices[j]
                out_data[total + j] = self._example.values[j] / self._length
            total += self._n
            out_indptr[i + 1] = total
        return indptr, indices[:total].copy(), data[:total].copy()

    def index(self, str ngram):
        cdef bytes encoded = ngram.encode("utf-8", "surrogatepass")
        cdef uint32_t n = len(encoded), h
        encoded += b"\0" * 16
        h = sp_murmur3(<const uint8_t*> PyBytes_AS_STRING(encoded), n)
        return self._index(h), -1.0 if self._alternate_sign and <int32_t> h < 0 else 1.0

    cdef inline uint32_t _index(self, uint32_t h) noexcept nogil:
        cdef uint32_t size = 0 - h if <int32_t> h < 0 else h
        return size & self._index_mask if self._index_mask or self._n_features == 1 else size % self._n_features

    # Loading: check the texts and remember where their characters are.

    cdef int _load(self, x, bint learning) except -1:
        if x is self._last and x is not None:
            self._example.n = self._n
            return 0
        self._load_many((x,), learning)
        if self._fetch(0) < 0:
            raise MemoryError
        if self._texts[0].length <= 65536 and type(x) is str:
            self._last = x
        return 0

    cdef Py_ssize_t _load_many(self, X, bint learning) except -1:
        cdef Py_ssize_t i, n
        cdef Text* text
        self._release()
        if self._ngrams:
            self._held = [self._separated(ngrams) for ngrams in X]
            texts = self._held
        else:
            texts = tuple(X)
            self._held = [texts]
        n = len(texts)
        if reserve(<void**> &self._texts, &self._texts_capacity, n + 1, sizeof(Text)) < 0:
            raise MemoryError
        self._texts[n].data = NULL
        for i in range(n):
            x = texts[i]
            if not isinstance(x, str):
                raise TypeError(f"a text must be a str, not {type(x).__name__}")
            text = &self._texts[i]
            text.lowercase = self._lowercase
            if not PyUnicode_IS_ASCII(x) and self._lowercase and lowers_irregularly(x):
                x = x.lower()
                self._held.append(x)
                text.lowercase = False
            text.data = PyUnicode_DATA(x)
            text.length = PyUnicode_GET_LENGTH(x)
            text.kind = 0 if PyUnicode_IS_ASCII(x) else PyUnicode_KIND(x)
            if text.length * (text.kind + 1) > MAX_BYTES:
                raise ValueError(f"text {i} has {text.length:,} characters, which may be more than 2 GiB; split it")
        return n

    cdef int _release(self) except -1:
        Encoder._release(self)
        self._last = self._last_features = self._held = None
        release(<void**> &self._buffer, &self._buffer_capacity)
        release(<void**> &self._joined, &self._joined_capacity)
        release(<void**> &self._offsets, &self._offsets_capacity)
        release(<void**> &self._texts, &self._texts_capacity)
        if self._positions_capacity > MOST_KEPT:
            release(<void**> &self._positions, &self._positions_capacity)
            self._reserve_fewest_positions()
        return 0

    cdef int _reserve_fewest_positions(self) except -1:
        if reserve(<void**> &self._positions, &self._positions_capacity, FEWEST_POSITIONS, sizeof(uint64_t)) < 0:
            raise MemoryError
        self._positions_mask = FEWEST_POSITIONS - 1
        memset(self._positions, 0, self._positions_capacity * sizeof(uint64_t))
        return 0

    cdef str _separated(self, ngrams):
        """N-grams that come ready-made, each behind its length, as one string."""
        return "".join([f"{len(ngram):x} {ngram}" for ngram in ngrams])

    # Scanning: from characters to distinct indices and counts, and to the example.

    cdef int _fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Text* text = &self._texts[i]
        SP_PREFETCH(text[1].data)  # one past the last text stands a text of no characters
        SP_PREFETCH(<const char*> text[1].data + 64)
        self._reset()
        if text.length == 0:
            pass
        elif self._ngrams or self._char or self._char_wb:
            if self._scan_characters(text) < 0:
                return -1
        elif text.kind:
            if self._scan_unicode(text) < 0:
                return -1
        elif self._scan_ascii(text) < 0:
            return -1
        return self._make_example()

    cdef void _reset(self) noexcept nogil:
        self._n = 0
        self._n_ranges = 0
        self._joined_length = 0
        self._n_tokens = 0
        self._edges.n_starts = self._edges.n_ends = 0
        self._edges.in_token = self._edges.after_mark = self._edges.after_word = 0

    cdef int _scan_ascii(self, Text* text) noexcept nogil:
        cdef const uint8_t* data = <const uint8_t*> text.data
        cdef Py_ssize_t begin = 0, n
        cdef int kind = SP_LONG_WORDS if self._two_characters else self._kind_of_token
        cdef bint more
        if reserve(<void**> &self._buffer, &self._buffer_capacity, text.length + PADDING, 1) < 0:
            return -1
        while begin < text.length:
            n = min(<Py_ssize_t> SP_SEGMENT, text.length - begin)
            sp_classify(data + begin, self._buffer + begin, n, text.lowercase, &self._ascii_classes)
            more = begin + n < text.length and is_ascii_word(data[begin + n])
            sp_find_edges(&self._ascii_classes, begin, n, kind, more, &self._edges)
            begin += n
            if self._take_tokens(begin == text.length, begin, False) < 0:
                return -1
        return 0

    cdef int _scan_unicode(self, Text* text) noexcept nogil:
        cdef Py_ssize_t i = 0, begin = 0, n, whole
        cdef uint32_t c, found
        cdef uint8_t* out
        cdef uint8_t* end
        cdef uint8_t ascii[64]
        cdef sp_classes block
        cdef Py_ssize_t run
        if reserve(<void**> &self._buffer, &self._buffer_capacity, text.length * (text.kind + 1) + PADDING, 1) < 0:
            return -1
        out = self._buffer
        while i < text.length:
            while i < text.length and out - self._buffer - begin < SP_SEGMENT:
                # ASCII inside other text goes through the fast classifier, up to a block at a time.
                run = 0
                while run < 64 and i + run < text.length:
                    c = PyUnicode_READ(text.kind, text.data, i + run)
                    if c >= 0x80:
                        break
                    ascii[run] = c
                    run += 1
                if run > 3:
                    sp_classify(ascii, out, 64, text.lowercase, &block)
                    n = out - self._buffer - begin
                    add_bits(self._classes.word, n, block.word[0], run)
                    add_bits(self._classes.space, n, block.space[0], run)
                    i += run
                    out += run
                    continue
                c = PyUnicode_READ(text.kind, text.data, i)
                i += 1
                if c < 0x10000:
                    found = look_up(c)
                    if text.lowercase:
                        c = found & 0xFFFF
                else:
                    found = IS_WORD if Py_UNICODE_ISALNUM(c) else IS_SPACE if Py_UNICODE_ISSPACE(c) else 0
                    if text.lowercase:
                        c = Py_UNICODE_TOLOWER(c)
                n = out - self._buffer - begin
                end = put_utf8(out, c)
                if found & IS_WORD:
                    add_bits(self._classes.word, n, ALL_BITS, end - out)
                elif found & IS_SPACE:
                    add_bits(self._classes.space, n, ALL_BITS, end - out)
                elif end - out > 1:
                    add_bits(self._classes.rest, n + 1, ALL_BITS, end - out - 1)
                out = end
            # Whole blocks now; what is left over opens the next segment.
            n = out - self._buffer - begin
            while n >= 64 or (n > 0 and i == text.length):
                whole = min(n & ~63 if n >= 64 else n, <Py_ssize_t> SP_SEGMENT)
                sp_find_edges(&self._classes, begin, whole, self._kind_of_token, False, &self._edges)
                carry_classes(&self._classes, (whole + 63) >> 6)
                begin += whole
                n -= whole
            if self._take_tokens(i == text.length, begin, self._two_characters) < 0:
                return -1
        return 0

    cdef int _take_tokens(self, bint at_end, uint32_t end, bint two_characters) noexcept nogil:
        """Count the tokens whose two edges are known (and two characters, if asked for); keep one that is still open for the
        next segment.
        """
        cdef sp_edges* edges = &self._edges
        cdef Py_ssize_t i
        cdef uint32_t n
        if at_end and (edges.in_token or edges.after_mark):
            edges.ends[edges.n_ends] = end
            edges.n_ends += 1
            edges.in_token = edges.after_mark = 0
        if self._plain_words and not two_characters:
            self._source = self._buffer
            if self._count(edges.starts, edges.ends, edges.n_ends) < 0:
                return -1
        else:
            for i in range(edges.n_ends):
                n = edges.ends[i] - edges.starts[i]
                if two_characters and n <= utf8_length(self._buffer[edges.starts[i]]):
                    continue
                if self._plain_words:
                    if self._add_range(self._buffer, edges.starts[i], edges.ends[i]) < 0:
                        return -1
                elif self._take_token(self._buffer + edges.starts[i], n) < 0:
                    return -1
            if at_end and self._count_ranges() < 0:
                return -1
        if edges.n_starts > edges.n_ends:
            edges.starts[0] = edges.starts[edges.n_starts - 1]
        edges.n_starts -= edges.n_ends
        edges.n_ends = 0
        return 0

    cdef int _take_token(self, const uint8_t* token, uint32_t n) noexcept nogil:
        """Append a token to the joined tokens, and the n-grams that end with it to the ranges."""
        cdef Py_ssize_t size
        cdef uint32_t end
        if self._stop_words is not None and self._stop_words._contains(token, n):
            return 0
        if self._joined_length + n + 1 + PADDING > self._joined_capacity:
            if reserve(<void**> &self._joined, &self._joined_capacity, self._joined_length + n + 1 + PADDING, 1) < 0:
                return -1
        memcpy(self._joined + self._joined_length, token, n)
        self._recent[self._n_tokens % self._max_n] = self._joined_length
        self._n_tokens += 1
        end = self._joined_length + n
        self._joined[end] = c' '
        self._joined_length = end + 1
        for size in range(self._min_n, min(self._max_n, self._n_tokens) + 1):
            if self._add_range(self._joined, self._recent[(self._n_tokens - size) % self._max_n], end) < 0:
                return -1
        return 0

    cdef inline int _add_range(self, const uint8_t* source, uint32_t start, uint32_t end) noexcept nogil:
        self._source = source
        self._range_starts[self._n_ranges] = start
        self._range_ends[self._n_ranges] = end
        self._n_ranges += 1
        return self._count_ranges() if self._n_ranges == BATCH else 0

    cdef int _count_ranges(self) noexcept nogil:
        cdef Py_ssize_t n = self._n_ranges
        self._n_ranges = 0
        return self._count(self._range_starts, self._range_ends, n)

    cdef int _count(self, const uint32_t* starts, const uint32_t* ends, Py_ssize_t n) noexcept nogil:
        """Hash ranges of _source and count their indices."""
        cdef uint32_t hashes[BATCH]
        cdef Py_ssize_t begin = 0, i, size
        cdef uint32_t index, slot, position, tag, mask, n_distinct, alternate = self._alternate_sign
        cdef uint32_t* indices
        cdef int32_t* counts
        cdef uint64_t* positions
        cdef uint64_t entry
        while begin < n:
            size = min(n - begin, <Py_ssize_t> BATCH)
            sp_hash(self._source, starts + begin, ends + begin, size, hashes)
            if self._reserve_positions(size) < 0:
                return -1
            indices, counts, positions, mask = self._indices, self._counts, self._positions, self._positions_mask
            n_distinct = self._n
            for i in range(size):
                index = self._index(hashes[i])
                tag = index + 1
                slot = index & mask
                entry = positions[slot]
                while (entry != 0) & (entry >> 32 != tag):
                    slot = (slot + 1) & mask
                    entry = positions[slot]
                # Whether the index is new is hard to predict, so nothing branches on it.
                position = <uint32_t> entry | (n_distinct & (0 - <uint32_t> (entry == 0)))
                positions[slot] = <uint64_t> tag << 32 | position
                indices[position] = index
                counts[position] += 1 - 2 * <int32_t> (alternate & (hashes[i] >> 31))
                n_distinct += entry == 0
            self._n = n_distinct
            begin += size
        return 0

    cdef int _reserve_positions(self, Py_ssize_t more) noexcept nogil:
        """Room for `more` distinct indices, with at least four positions for each."""
        cdef Py_ssize_t needed = self._n + more, size = self._positions_mask + 1, before, i
        cdef uint32_t slot
        if needed > self._counts_capacity:
            before = self._counts_capacity
            if (
                reserve(<void**> &self._indices, &self._indices_capacity, needed, sizeof(uint32_t)) < 0
                or reserve(<void**> &self._counts, &self._counts_capacity, needed, sizeof(int32_t)) < 0
            ):
                return -1
            memset(self._counts + before, 0, (self._counts_capacity - before) * sizeof(int32_t))
        if needed * 4 > size:
            memset(self._positions, 0, size * sizeof(uint64_t))
            while size < needed * 4:
                size *= 2
            before = self._positions_capacity
            if reserve(<void**> &self._positions, &self._positions_capacity, size, sizeof(uint64_t)) < 0:
                return -1
            memset(self._positions + before, 0, (self._positions_capacity - before) * sizeof(uint64_t))
            self._positions_mask = <uint32_t> (size - 1)
            for i in range(self._n):
                slot = self._indices[i] & self._positions_mask
                while self._positions[slot]:
                    slot = (slot + 1) & self._positions_mask
                self._positions[slot] = <uint64_t> (self._indices[i] + 1) << 32 | <uint64_t> i
        return 0

    cdef int _scan_characters(self, Text* text) noexcept nogil:
        """N-grams of characters, or n-grams that come ready-made, by the place where each character begins."""
        cdef Py_ssize_t n = self._write_characters(text), i, j, size, end
        if n < 0:
            return -1
        if self._ngrams:
            i = 0
            while i < n:
                size = 0
                while self._buffer[self._offsets[i]] != c' ':
                    size = 16 * size + hex_digit(self._buffer[self._offsets[i]])
                    i += 1
                i += 1
                if self._add_range(self._buffer, self._offsets[i], self._offsets[i + size]) < 0:
                    return -1
                i += size
        elif self._char:
            for size in range(self._min_n, min(self._max_n, n) + 1):
                for i in range(n - size + 1):
                    if self._add_range(self._buffer, self._offsets[i], self._offsets[i + size]) < 0:
                        return -1
        else:
            i = 0
            while i < n:  # each word stands between two spaces of its own
                end = i + 1
                while self._buffer[self._offsets[end]] != c' ':
                    end += 1
                end += 1
                for size in range(self._min_n, self._max_n + 1):
                    if size >= end - i:
                        if self._add_range(self._buffer, self._offsets[i], self._offsets[end]) < 0:
                            return -1
                        break
                    for j in range(i, end - size + 1):
                        if self._add_range(self._buffer, self._offsets[j], self._offsets[j + size]) < 0:
                            return -1
                i = end
        return self._count_ranges()

    cdef Py_ssize_t _write_characters(self, Text* text) noexcept nogil:
        """Write the text, its white space as the analyzer wants it, with the offset of each character and of the end."""
        cdef int kind = max(text.kind, 1)
        cdef Py_ssize_t i, n = 0, room = 2 * text.length + 2 if self._char_wb else text.length + 1
        cdef uint32_t c
        cdef bint space, after_space = True
        cdef uint8_t* out
        if reserve(<void**> &self._buffer, &self._buffer_capacity, room * (kind + 1) + PADDING, 1) < 0:
            return -1
        if reserve(<void**> &self._offsets, &self._offsets_capacity, room + 1, sizeof(uint32_t)) < 0:
            return -1
        out = self._buffer
        for i in range(text.length):
            c = PyUnicode_READ(kind, text.data, i)
            space = Py_UNICODE_ISSPACE(c)
            if self._char_wb:
                if space != after_space:  # a word begins or ends here
                    self._offsets[n] = out - self._buffer
                    n += 1
                    out = put_utf8(out, c' ')
                after_space = space
                if space:
                    continue
            elif self._char and space:
                if i and Py_UNICODE_ISSPACE(PyUnicode_READ(kind, text.data, i - 1)):
                    continue
                if i + 1 < text.length and Py_UNICODE_ISSPACE(PyUnicode_READ(kind, text.data, i + 1)):
                    c = c' '
            self._offsets[n] = out - self._buffer
            n += 1
            out = put_utf8(out, Py_UNICODE_TOLOWER(c) if text.lowercase else c)
        if self._char_wb and not after_space:
            self._offsets[n] = out - self._buffer
            n += 1
            out = put_utf8(out, c' ')
        self._offsets[n] = out - self._buffer
        return n

    cdef int _make_example(self) noexcept nogil:
        """Turn counts into the example, and leave the tables empty for the next text."""
        cdef Example* e = &self._example
        cdef Py_ssize_t i, n = self._n
        cdef double count, squares = 0.0, sizes = 0.0
        if self._reserve(n) < 0:
            return -1
        for i in range(n):
            count = 1.0 if self._binary else self._counts[i]
            squares += count * count
            sizes += fabs(count)
            e.hashes[i] = hash_key(self._indices[i])
            e.values[i] = count
        if n:
            memset(self._counts, 0, n * sizeof(int32_t))
        memset(self._positions, 0, (<size_t> self._positions_mask + 1) * sizeof(uint64_t))
        self._positions_mask = FEWEST_POSITIONS - 1
        self._length = sqrt(squares) if self._l2 else sizes if self._l1 else 1.0
        if self._length == 0.0:
            self._length = 1.0
        e.n, e.factor = n, 1.0 / self._length
        return 0


cdef inline Py_ssize_t hex_digit(uint8_t c) noexcept nogil:
    return c - c'0' if c <= c'9' else c - c'a' + 10


# --- learning ---------------------------------------------------------------------------------------------------------


cdef inline double logistic(double z) noexcept nogil:
    return 1.0 / (1.0 + exp(-min(max(z, -34.0), 34.0)))


def signs_of(y, dict signs):
    """The value in `signs` of each label of a list, or None if one is not there."""
    cdef Py_ssize_t i, n = len(y)
    cdef list labels = y
    cdef PyObject* label
    cdef PyObject* before = NULL
    cdef double sign = 0.0
    result = np.empty(n)
    cdef double[::1] out = result
    for i in range(n):
        label = PyList_GET_ITEM(labels, i)
        if label != before:
            found = signs.get(<object> label)
            if found is None:
                return None
            sign, before = found, label
        out[i] = sign
    return result


@cython.final
cdef class Learner:
    cdef readonly tuple arguments
    cdef readonly WeightDict weights
    cdef readonly Py_ssize_t n_iterations
    cdef readonly Py_ssize_t n_buffered
    cdef double _l2, _t0, _intercept_scaling
    cdef Py_ssize_t _batch_size
    cdef bint _project
    cdef double _slope, _calibration_squares
    cdef uint64_t* _buffer_hashes
    cdef double* _buffer_values
    cdef Py_ssize_t _buffer_size, _buffer_hashes_capacity, _buffer_values_capacity
    cdef Py_ssize_t* _slots  # where in the table each feature of the example in hand is
    cdef Py_ssize_t _slots_capacity

    def __init__(self, double l2, Py_ssize_t batch_size, double t0, bint project, double intercept_scaling):
        self.arguments = (l2, batch_size, t0, bool(project), intercept_scaling)
        self.weights = WeightDict()
        self._l2, self._t0, self._intercept_scaling = l2, t0, intercept_scaling
        self._batch_size, self._project = batch_size, project
        self._slope = 1.0

    def __dealloc__(self):
        free(self._buffer_hashes)
        free(self._buffer_values)
        free(self._slots)

    def __sizeof__(self):
        return object.__sizeof__(self) + self._buffer_size * 16  # the weights count for themselves

    def margin(self, Encoder encoder not None, x):
        wait_for(encoder._guard, self.weights._guard)
        encoder._load(x, False)
        if self._begin(&encoder._example) < 0:
            raise MemoryError
        return self._margin(&encoder._example)

    def probability(self, double margin):
        return self._probability(margin)

    def learn(self, Encoder encoder not None, x, double y, double weight):
        cdef Example* e = &encoder._example
        cdef double margin
        wait_for(encoder._guard, self.weights._guard)
        encoder._load(x, True)
        if self._begin(e) < 0:
            raise MemoryError
        margin = self._margin(e)
        if self._learn(e, margin, self._probability(margin), y, weight) < 0:
            raise MemoryError

    def predict_learn_many(self, Encoder encoder not None, X, y=None, weights=None):
        with encoder._guard.lock:
            with self.weights._guard.lock:
                encoder._guard.busy = self.weights._guard.busy = True
                try:
                    return self._predict_learn_many(encoder, X, y, weights)
                finally:
                    encoder._release()
                    encoder._guard.busy = self.weights._guard.busy = False

    cdef _predict_learn_many(self, Encoder encoder, X, y, weights):
        cdef Py_ssize_t i, n
        cdef bint learning = y is not None, weighted = weights is not None
        cdef const double[::1] labels, example_weights
        cdef double[::1] out_margins, out_probabilities
        cdef Example* e = &encoder._example
        cdef int status = 0
        if learning:
            labels = y
        if weighted:
            example_weights = weights
        n = encoder._load_many(X, learning)
        margins, probabilities = np.empty(n), np.empty(n)
        out_margins, out_probabilities = margins, probabilities
        if self._batch_size == 1 and isinstance(encoder, Rows) and (<Rows> encoder)._is_dense():
            if self.weights._spread_out((<Rows> encoder)._n_columns) < 0:
                raise MemoryError
            (<Rows> encoder)._spread = True
            (<Rows> encoder)._in_place = self._intercept_scaling == 0.0
        with nogil:
            for i in range(n):
                if encoder._fetch(i) < 0 or self._begin(e) < 0:
                    status = -1
                    break
                out_margins[i] = self._margin(e)
                out_probabilities[i] = self._probability(out_margins[i])
                if learning:
                    status = self._learn(
                        e, out_margins[i], out_probabilities[i], labels[i], example_weights[i] if weighted else 1.0
                    )
                    if status < 0:
                        break
            if self.weights._spread != NULL and self.weights._gather_in() < 0:
                status = -1
        if status < 0:
            raise MemoryError
        return margins, probabilities

    def flush(self):
        wait_for(self.weights._guard, self.weights._guard)
        if self.n_buffered and self._step() < 0:
            raise MemoryError

    def negate(self):
        cdef Py_ssize_t i
        wait_for(self.weights._guard, self.weights._guard)
        self.weights._scale(-1.0)
        for i in range(self._buffer_size):
            self._buffer_values[i] = -self._buffer_values[i]

    def get_state(self):
        cdef Py_ssize_t i
        wait_for(self.weights._guard, self.weights._guard)
        keys = [<int64_t> (self._buffer_hashes[i] * INVERSE_MULTIPLIER) for i in range(self._buffer_size)]
        return {
            **self.weights.get_state(),
            "n_iterations": self.n_iterations,
            "n_buffered": self.n_buffered,
            "buffer_keys": np.array(keys, np.int64),
            "buffer_values": np.array([self._buffer_values[i] for i in range(self._buffer_size)], np.float64),
            "slope": self._slope,
            "calibration_squares": self._calibration_squares,
        }

    def set_state(self, state):
        cdef int64_t key
        cdef double value
        wait_for(self.weights._guard, self.weights._guard)
        self.weights.set_state(state)
        self.n_iterations, self.n_buffered = state["n_iterations"], state["n_buffered"]
        self._buffer_size = 0
        if self._reserve_buffer(len(state["buffer_keys"])) < 0:
            raise MemoryError
        for key, value in zip(state["buffer_keys"].tolist(), state["buffer_values"].tolist(), strict=True):
            self._buffer_hashes[self._buffer_size] = hash_key(key)
            self._buffer_values[self._buffer_size] = value
            self._buffer_size += 1
        self._slope, self._calibration_squares = state["slope"], state["calibration_squares"]

    cdef int _begin(self, Example* e) noexcept nogil:
        """Add the constant feature, and have the processor fetch the entries of all features while the first is waited for."""
        cdef Py_ssize_t i, n = e.n
        if self._intercept_scaling != 0.0:
            e.hashes[n] = INTERCEPT_HASH if self.weights._spread == NULL else self.weights._n_columns  # there is room for it
            e.values[n] = self._intercept_scaling / e.factor
            e.n = n = n + 1
        if self.weights._spread != NULL:
            return 0
        if n > self._slots_capacity:
            if reserve(<void**> &self._slots, &self._slots_capacity, n, sizeof(Py_ssize_t)) < 0:
                return -1
        for i in range(n):
            self._slots[i] = self.weights._home(e.hashes[i])
            SP_PREFETCH(&self.weights._table[self._slots[i]])
        return 0

    cdef double _margin(self, Example* e) noexcept nogil:
        cdef Entry* table = self.weights._table
        cdef Py_ssize_t i, p
        cdef uint64_t h
        cdef double even = 0.0, odd = 0.0  # two sums, since each addition waits for the one before
        if self.weights._spread != NULL:
            for i in range(0, e.n - 1, 2):
                even += self.weights._spread[e.hashes[i]] * e.values[i]
                odd += self.weights._spread[e.hashes[i + 1]] * e.values[i + 1]
            if e.n & 1:
                even += self.weights._spread[e.hashes[e.n - 1]] * e.values[e.n - 1]
            return self.weights._a * e.factor * (even + odd)
        for i in range(e.n):
            p, h = self._slots[i], e.hashes[i]
            # Most entries are at most three slots from home: how many is hard to predict, so nothing branches on it.
            p += table[p].hash < h
            p += table[p].hash < h
            p += table[p].hash < h
            while table[p].hash < h:
                p += 1
            self._slots[i] = p
        for i in range(0, e.n - 1, 2):
            even += self._term(e, i)
            odd += self._term(e, i + 1)
        if e.n & 1:
            even += self._term(e, e.n - 1)
        return self.weights._a * e.factor * (even + odd)

    cdef inline double _term(self, Example* e, Py_ssize_t i) noexcept nogil:
        cdef Entry* entry = &self.weights._table[self._slots[i]]
        return sp_take(entry.v, entry.hash == e.hashes[i]) * e.values[i]

    cdef double _probability(self, double margin) noexcept nogil:
        cdef double p = logistic(self._slope * margin)
        return max(p, 0.5 + 1.1102230246251565e-16) if margin > 0.0 else p

    cdef int _learn(self, Example* e, double margin, double probability, double y, double weight) noexcept nogil:
        cdef Py_ssize_t i
        cdef double coefficient = weight * y * e.factor
        cdef bint violated = y * margin < 1.0
        self._calibrate(y * margin, 1.0 - probability if y > 0.0 else probability)
        self.n_buffered += 1
        if self._batch_size == 1:  # straight from the example, whose entries are found already
            self.n_buffered = 0
            return self._take_step(e if violated else NULL, coefficient, 1)
        if violated:
            if self._reserve_buffer(self._buffer_size + e.n) < 0:
                return -1
            for i in range(e.n):
                self._buffer_hashes[self._buffer_size + i] = e.hashes[i]
                self._buffer_values[self._buffer_size + i] = coefficient * e.values[i]
            self._buffer_size += e.n
        return self._step() if self.n_buffered == self._batch_size else 0

    cdef int _step(self) noexcept nogil:
        """The step with what the buffer holds."""
        cdef Example e
        e.hashes, e.values, e.n, e.factor = self._buffer_hashes, self._buffer_values, self._buffer_size, 1.0
        cdef Py_ssize_t k = self.n_buffered
        self.n_buffered = self._buffer_size = 0
        if self._begin_step(&e) < 0:
            return -1
        return self._take_step(&e, 1.0, k)

    cdef int _begin_step(self, Example* e) noexcept nogil:
        cdef Py_ssize_t i
        if reserve(<void**> &self._slots, &self._slots_capacity, e.n, sizeof(Py_ssize_t)) < 0:
            return -1
        for i in range(e.n):
            self._slots[i] = self.weights._seek(e.hashes[i])
        return 0

    cdef int _take_step(self, Example* e, double coefficient, Py_ssize_t k) noexcept nogil:
        """w ← (1 − ηλ) w + (η/k) · coefficient · x, and the projection; `_slots` tells where the entries of x are."""
        cdef double n, ratio
        self.n_iterations += 1
        n = self.n_iterations + self._t0
        self.weights._scale((n - 1.0) / n)
        if e != NULL and self._add(e, coefficient / (self._l2 * n * k * self.weights._a)) < 0:
            return -1
        if self._project:
            ratio = self._l2 * self.weights._a * self.weights._a * self.weights._squares
            if ratio > 1.0:
                self.weights._scale(1.0 / sqrt(ratio))
        return 0

    cdef int _add(self, Example* e, double step) noexcept nogil:
        cdef Py_ssize_t i, n_new = 0
        cdef Entry* table = self.weights._table
        cdef double squares = 0.0, old, new
        if self.weights._spread != NULL:
            for i in range(e.n):
                old = self.weights._spread[e.hashes[i]]
                new = old + step * e.values[i]
                self.weights._spread[e.hashes[i]] = new
                squares += (new - old) * (new + old)
            self.weights._squares += squares
            return 0
        for i in range(e.n):
            if table[self._slots[i]].hash == e.hashes[i]:
                old = table[self._slots[i]].v
                new = old + step * e.values[i]
                table[self._slots[i]].v = new
                squares += (new - old) * (new + old)
            else:
                self._slots[n_new] = i
                n_new += 1
        self.weights._squares += squares
        for i in range(n_new):  # last, since an insertion moves other entries
            if self.weights._add(e.hashes[self._slots[i]], step * e.values[self._slots[i]]) < 0:
                return -1
        return 0

    cdef int _reserve_buffer(self, Py_ssize_t n) noexcept nogil:
        if reserve(<void**> &self._buffer_hashes, &self._buffer_hashes_capacity, n, sizeof(uint64_t)) < 0:
            return -1
        return reserve(<void**> &self._buffer_values, &self._buffer_values_capacity, n, sizeof(double))

    cdef void _calibrate(self, double signed_margin, double wrong) noexcept nogil:
        cdef double gradient = -self._slope * signed_margin * wrong, slope
        gradient = min(max(gradient, -LARGEST_GRADIENT), LARGEST_GRADIENT)
        if fabs(gradient) >= SMALLEST_GRADIENT:
            self._calibration_squares = CALIBRATION_MEMORY * self._calibration_squares + gradient * gradient
            slope = self._slope * (1.0 - CALIBRATION_RATE * gradient / sqrt(self._calibration_squares))
            self._slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)
