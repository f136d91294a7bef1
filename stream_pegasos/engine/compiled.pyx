# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: auto_pickle=False, emit_code_comments=False
"""The compiled engine. `pure` is its specification: the same names, arguments and, to rounding, results."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport INFINITY, exp, fabs, frexp, ldexp, log, signbit, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

import itertools
from _thread import allocate_lock, start_new_thread
from functools import partial
from os import urandom
from time import monotonic, sleep

import numpy as np

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.lazy_columns import Column as LazyColumn, whole
from stream_pegasos.common.locks import heed_forks
from stream_pegasos.engine import feature_schema, records
from stream_pegasos.engine.pure import OneByOne as PureOneByOne, Row as PureRow, adaptive_state, characters, driver, encoders, half_life, mistakes, moments as numeric, pegasos, scanner, weights
from stream_pegasos.engine.pure.encoders import SIZE_EXPECTED, check_value, plain_name

cdef extern from "Python.h":
    ctypedef struct PyObject
    int PyUnicode_KIND(object)
    bint PyUnicode_IS_ASCII(object)
    object PyUnicode_FromObject(object)
    void* PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    uint32_t PyUnicode_READ(int, const void*, Py_ssize_t) nogil
    bint PyLong_CheckExact(object)
    bint PyFloat_Check(object)
    bint PyBool_Check(object)
    Py_ssize_t PyDict_Size(object)
    PyObject* PyDict_GetItemWithError(object, object) except? NULL
    object PyObject_GenericGetDict(object, void*)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)
    double PyFloat_AS_DOUBLE(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    unsigned long PyThread_get_thread_ident()
    ctypedef void* PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)
    int PyThread_acquire_lock(PyThread_type_lock, int) nogil
    void PyThread_release_lock(PyThread_type_lock) nogil
    # Look-ups in constant tables, safe without the GIL.
    bint Py_UNICODE_ISALNUM(uint32_t) nogil
    bint Py_UNICODE_ISDECIMAL(uint32_t) nogil
    bint Py_UNICODE_ISSPACE(uint32_t) nogil
    uint32_t Py_UNICODE_TOLOWER(uint32_t) nogil

cdef extern from *:
    dict __Pyx_PyDict_NewPresized(Py_ssize_t)

cdef extern from "cython/memory.h" nogil:
    enum:
        SP_MOST_KEPT
    void SP_PREFETCH(const void*)
    int sp_reserve(void*, Py_ssize_t*, Py_ssize_t, size_t)
    void sp_release(void*, Py_ssize_t*)
    void* sp_resize(void*, size_t, size_t)
    int sp_stretch(void*, Py_ssize_t*, Py_ssize_t, size_t)

cdef extern from "cython/simd.h" nogil:
    enum:
        SP_LOWER
        SP_MASK_DIGITS
        SP_WORDS
        SP_WORDS_AND_MARKS
        SP_NONSPACE
        SP_SLOTS
    uint32_t sp_slots_like(const uint32_t*, uint32_t, uint32_t)
    unsigned sp_lowest_bit(uint64_t)
    void sp_look_at_processor()
    bint sp_all_within(const double*, size_t, double)
    uint32_t sp_largest(const uint32_t*, size_t)
    void sp_add_scaled(double*, const double* const*, const double*, size_t, size_t)

cdef extern from "cython/dense.h" nogil:
    ctypedef struct sp_dense:
        Py_ssize_t d, n_rows, n_classes
        double n, evidence
        double* mean
        double* counts
        float* covariance
        float* weights
        double[2] joint
        double[3] information
        bint has_vector
        double* margins
    void sp_free_dense(sp_dense*)
    int sp_reserve_rows(sp_dense*, Py_ssize_t, Py_ssize_t)
    int sp_make_dense(sp_dense*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*)
    int sp_view_dense(sp_dense*, const sp_dense*)
    void sp_score_vector(sp_dense*, const float*, Py_ssize_t, double)
    void sp_count_vector(sp_dense*, const float*)
    void sp_step_dense(sp_dense*, const double*, double, double, double)
    void sp_fade_dense(sp_dense*, double)
    void sp_weaken_dense(sp_dense*, double)
    void sp_step_joint(sp_dense*, const double*, const double*, double, double, const double*, double)

cdef extern from "cython/ngrams.h" nogil:
    enum:
        SP_TOKENS
        SP_CHARACTERS
        SP_CHARACTERS_IN_WORDS
        SP_READY_MADE
        SP_VECTOR
        SP_PADDING
        SP_SMALLEST_TABLE
        SP_PART
        SP_END_OF_TABLE
    uint8_t* sp_class_table
    ctypedef struct sp_text:
        const void* data
        Py_ssize_t length
        int kind, fold
    ctypedef struct sp_word:
        const uint8_t* bytes
        uint32_t n
    ctypedef struct sp_bag:
        uint32_t n_features, index_mask, field
        bint alternate_sign, binary, weighted
        uint32_t secret
        uint32_t* indices
        int64_t* counts
        uint64_t* table
        double* weights
        Py_ssize_t n, table_capacity
    ctypedef struct sp_met_word:
        uint64_t hash
        const uint8_t* bytes
        uint32_t n
    ctypedef struct sp_places:
        uint32_t* slots
        Py_ssize_t capacity
    ctypedef struct sp_vectors:
        Py_ssize_t d, n_met, n, met_capacity, n_noted, n_noted_words, noted_capacity
        uint8_t* noted
        uint64_t secret
        sp_met_word* met
        sp_places met_places, places
        uint64_t* hashes
        int8_t* codes
        uint8_t* shifts
        int32_t* sums
        double* totals
    ctypedef struct sp_scanner:
        int of, kind_of_token
        bint two_characters, any_language, by_words, boundaries, joins
        Py_ssize_t min_n, max_n, prefix_length
        sp_word* stop_words
        uint32_t stop_mask
        sp_bag bag
        sp_vectors* vectors
        sp_scanner* next
        uint8_t* buffer
        uint8_t* joined
        uint32_t* offsets
        uint8_t* word
        Py_ssize_t buffer_capacity, joined_capacity, offsets_capacity, word_capacity, most_digits
        uint64_t* newest
        double letters, length
        uint32_t length_hashes[2][32]
    uint32_t sp_murmur3(const uint8_t*, uint32_t)
    uint32_t sp_hash_words(const uint8_t*, uint32_t)
    uint32_t sp_index_of(const sp_bag*, uint32_t)
    sp_word* sp_place_of(sp_word*, uint32_t, const uint8_t*, uint32_t)
    int sp_reserve_table(sp_bag*, Py_ssize_t)
    void sp_empty_bag(sp_bag*)
    int sp_scan(sp_scanner*, const sp_text*)
    Py_ssize_t sp_add_kept(sp_vectors*, Py_ssize_t, Py_ssize_t, Py_ssize_t*)
    void sp_add_vector(sp_vectors*, const int8_t*, int)
    uint64_t sp_hash_word(const uint8_t*, uint32_t)
    uint64_t sp_joined_product(uint64_t, uint64_t)
    Py_ssize_t sp_find_kept(const sp_vectors*, uint64_t)
    int sp_note_words(sp_vectors*, const Py_ssize_t*, Py_ssize_t)
    void sp_make_room_for_words(sp_vectors*, Py_ssize_t)
    int sp_keep_vector(sp_vectors*, uint64_t, const int8_t*, int)
    void sp_write_vector(const sp_vectors*, float*)

sp_look_at_processor()

cdef int64_t DIRECT_LIMIT = weights.DIRECT_LIMIT
cdef int64_t FIRST_NAME = weights.FIRST_NAME
cdef int DEEPEST_NAME = encoders.DEEPEST_NAME
cdef Py_ssize_t NAMES_HELD = encoders.NAMES_HELD
cdef Py_ssize_t SPARE_NAMES = encoders.SPARE_NAMES
cdef double VALUE_LIMIT = weights.VALUE_LIMIT
cdef double FOLD_BELOW = weights.FOLD_BELOW
cdef double FOLD_AVERAGED_BELOW = weights.FOLD_AVERAGED_BELOW
cdef double CALIBRATION_RATE = driver.CALIBRATION_RATE
cdef double CALIBRATION_MEMORY = driver.CALIBRATION_MEMORY
cdef double LEAST_SCALE = adaptive_state.LEAST_SCALE
cdef double LEAST_SQUARED_NORM = adaptive_state.LEAST_SQUARED_NORM
cdef double ENLARGED = adaptive_state.ENLARGED
cdef double RESCALED_AT = adaptive_state.RESCALED_AT
cdef Py_ssize_t MOST_COUNTED = 1 << 24  # examples, one by one, in single precision
cdef double LARGEST_EXAMPLE = adaptive_state.LARGEST_EXAMPLE
cdef double LARGEST_LOG_RATIO = feature_schema.LARGEST_LOG_RATIO
cdef double SHARE_OF_REST = adaptive_state.SHARE_OF_REST
cdef double EMPHASIS = adaptive_state.EMPHASIS
cdef double EMPHASIZED = adaptive_state.EMPHASIZED
cdef double FIRST_COUNT = adaptive_state.FIRST_COUNT
cdef double BEYOND = adaptive_state.BEYOND
cdef double LEAST_RARITY = adaptive_state.LEAST_RARITY
cdef double FIRST_STEADY = half_life.FIRST_STEADY
cdef double GROWTH = half_life.GROWTH
cdef double SHORT = half_life.SHORT
cdef double LONG = half_life.LONG
cdef double ERRORS = half_life.ERRORS
cdef double FIRST_SQUARES = adaptive_state.FIRST_SQUARES
cdef double LEAST_SLOPE = adaptive_state.LEAST_SLOPE
cdef double MOST_SLOPE = adaptive_state.MOST_SLOPE
cdef double OFFSET_RATE = adaptive_state.OFFSET_RATE
cdef double OFFSET_SQUARES = adaptive_state.OFFSET_SQUARES
cdef double ORDINAL_OFFSET_RATE = adaptive_state.ORDINAL_OFFSET_RATE
cdef double ORDINAL_OFFSET_SQUARES = adaptive_state.ORDINAL_OFFSET_SQUARES
cdef double ORDINAL_INTERCEPT_RATE = adaptive_state.ORDINAL_INTERCEPT_RATE
cdef double PRIOR_VARIANCE = adaptive_state.PRIOR_VARIANCE
cdef double SHARE_BESIDE = adaptive_state.SHARE_BESIDE
cdef double SURE_BELOW = adaptive_state.SURE_BELOW
cdef double[2] FIRST_JOINT_WEIGHTS = adaptive_state.FIRST_JOINT_WEIGHTS
cdef double[2] JOINT_PRECISION = adaptive_state.JOINT_PRECISION
cdef double JOINT_MEMORY = adaptive_state.JOINT_MEMORY
cdef double LARGEST_JOINT_WEIGHT = adaptive_state.LARGEST_JOINT_WEIGHT
cdef double LARGEST_JOINED = adaptive_state.LARGEST_JOINED
cdef double LEAST_SPREAD = adaptive_state.LEAST_SPREAD
cdef double LARGEST_MARGIN_JOINED = adaptive_state.LARGEST_MARGIN_JOINED
cdef double CONFIDENCE_RATE = driver.CONFIDENCE_RATE
cdef double LEAST_CONFIDENCE_SLOPE = driver.LEAST_CONFIDENCE_SLOPE
cdef double LARGEST_LOG_ODDS = driver.LARGEST_LOG_ODDS
cdef double AS_LIKELY = driver.AS_LIKELY
cdef double SMALLEST_GRADIENT = driver.SMALLEST_GRADIENT
cdef double LARGEST_GRADIENT = driver.LARGEST_GRADIENT
cdef double LARGEST_CALIBRATION_WEIGHT = driver.LARGEST_CALIBRATION_WEIGHT
cdef double SMALLEST_SLOPE = driver.SMALLEST_SLOPE
cdef double LARGEST_SLOPE = driver.LARGEST_SLOPE

# Fibonacci hashing: an odd multiplier is a bijection of the 64-bit integers, so the table can hold the hash alone.
cdef extern from *:
    """
    #define MULTIPLIER 0x9E3779B97F4A7C15ULL
    #define INVERSE_MULTIPLIER 0xF1DE83E19937733DULL
    #define ALL_BITS 0xFFFFFFFFFFFFFFFFULL
    #define EMPTY 0xFFFFFFFFFFFFFFFFULL /* the hash of a key that no encoder gives out */
    """
    const uint64_t MULTIPLIER, INVERSE_MULTIPLIER, ALL_BITS, EMPTY

cdef int64_t TEMPORARY = 1 << 61  # keys from here on are those of names that may yet be forgotten


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


# Strangers write the words. This number, which each process draws for itself, keeps them from choosing such as would crowd.
cdef uint64_t SECRET = int.from_bytes(urandom(8), "little") | 1

cdef uint64_t INTERCEPT_HASH = hash_key(weights.INTERCEPT)


cdef struct Row:  # x = factor · {hash: value}, as in `pure`
    uint64_t* hashes
    const int32_t* columns  # of a matrix, in place of hashes during a loop by column; else NULL
    double* values
    Py_ssize_t n
    double factor
    float* vector  # of the message, where there are word vectors
    Py_ssize_t n_dimensions
    bint is_even  # whether values differ by the kind of a feature alone


# One module, so that each part can be inlined in the others.
include "cython/guard.pxi"
include "cython/table.pxi"
include "cython/weights.pxi"
include "cython/blocks.pxi"
include "cython/encoders.pxi"
include "cython/threads.pxi"
include "cython/vectors.pxi"
include "cython/scanner.pxi"
include "cython/calibration.pxi"
include "cython/driver.pxi"
include "cython/probabilities.pxi"
include "cython/moments.pxi"
include "cython/one_by_one.pxi"
include "cython/pegasos.pxi"
include "cython/half_life.pxi"
include "cython/records.pxi"
include "cython/adaptive_columns.pxi"
include "cython/reductions.pxi"
include "cython/adaptive_dense.pxi"
include "cython/mistakes.pxi"
include "cython/adaptive_pair.pxi"
include "cython/adaptive.pxi"


for declared, size in (
    (records.PAIR, sizeof(sp_feature)), (records.SEVERAL, sizeof(sp_columns)), (records.PROBLEM, sizeof(BinaryProblem)),
    (records.WEIGHTS_COLUMN, sizeof(Column)), (records.STEPS_OF_COLUMN, sizeof(Steps)), (records.BUFFERED, sizeof(Buffered)),
):
    if declared.itemsize != size:
        raise ImportError("the engine was compiled for other records")
if records.LAYOUTS != RECORDS_COMPILED:
    raise ImportError("the engine was compiled for other records")
# What is a number of C, since C needs it while it compiles.
for here, there in (
    (SP_AGE_BITS, records.AGE_BITS), (SP_SMALLEST_SINGLE, records.SMALLEST_SINGLE), (SP_LARGEST_SINGLE, records.LARGEST_SINGLE),
    (N_MISTAKES, mistakes.N_MISTAKES), (SMALLEST, mistakes.SMALLEST), (MOST_NEWEST, mistakes.MOST_NEWEST),
    (MULTIPLIER, weights.MULTIPLIER), (TWO, pegasos.REDUCTIONS.index("two")), (OVR, pegasos.REDUCTIONS.index("ovr")),
    (CRAMMER_SINGER, pegasos.REDUCTIONS.index("crammer_singer")), (TWO, adaptive_state.REDUCTIONS.index("two")),
    (OF_RULE_OVR, adaptive_state.REDUCTIONS.index("ovr")), (MULTILABEL, adaptive_state.REDUCTIONS.index("multilabel")),
    (ORDINAL, adaptive_state.REDUCTIONS.index("ordinal")),
):
    if here != there:
        raise ImportError("the engine was compiled for other constants")
