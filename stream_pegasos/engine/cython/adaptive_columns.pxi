cdef extern from "cython/adaptive_pair.h" nogil:
    ctypedef struct sp_step:
        double gradient, rate, evidence, smoothing, positive, negative
        uint32_t age
        bint halving
    float sp_single(double)
    const double SP_SMALLEST_SINGLE, SP_LARGEST_SINGLE
    double sp_log_of_ratio(double, double)
    double sp_unevenness(const double*, size_t)
    void sp_weaken(sp_feature*, uint32_t, double)
    void sp_weigh(const sp_feature**, const double*, double*, size_t, bint, double, double, double*, double*)
    void sp_learn(sp_feature**, const double*, size_t, const sp_step*)

cdef extern from "cython/adaptive_columns.h" nogil:
    ctypedef struct sp_move:
        double rate, evidence, inverse_evidence, first_squares
    enum:
        SP_PIECE
        SP_LANES
    float* sp_weights(float*, const sp_columns*)
    float* sp_squares(float*, const sp_columns*)
    float* sp_counts(float*, const sp_columns*)
    uint32_t* sp_numbers(float*, const sp_columns*)
    void sp_fetch_weights(float*, const sp_columns*)
    void sp_fetch_evidence(float*, const sp_columns*)
    double sp_factor_of_age(uint32_t)
    void sp_weaken_columns(float*, sp_columns*, uint32_t, double)
    void sp_copy_numbers(sp_columns*, const sp_feature*)
    void sp_add_up(double*, size_t, float*, const sp_columns*, const Py_ssize_t*, const double*, size_t)
    void sp_move_columns(float*, float*, const Py_ssize_t*, const double*, size_t, double, const sp_move*)
    void sp_find_odds(const float*, const double*, size_t, double, double, double*, double*)
    void sp_find_odds_portable(const float*, const double*, size_t, double, double, double*, double*)
    void sp_find_odds_of_some(const float*, const uint32_t*, const double*, size_t, double, double, double*, double*)
    void sp_logs_of_ratios(double*, const double*, size_t)


cdef enum:
    N_SIZES = 96
    PIECES_OF_LINE = 4
    FEATURES_AHEAD = 16  # that the processor fetches while it reads those before

# How many pieces a block may have: two sizes for each doubling.
cdef Py_ssize_t SIZES[N_SIZES]
for size_number in range(N_SIZES):
    SIZES[size_number] = size_number if size_number < 2 else (2 + size_number % 2) << size_number // 2 - 1


cdef struct Columns:  # of all features: blocks of the sizes above
    float* numbers
    Py_ssize_t n, room  # pieces
    int64_t free[N_SIZES]  # the first block that was given back, −1 for none; there it says which is the next one


cdef void make_no_columns(Columns* columns) noexcept nogil:
    cdef Py_ssize_t size
    columns.n = 0
    for size in range(N_SIZES):
        columns.free[size] = -1


cdef inline void give_back(Columns* columns, Py_ssize_t begin, Py_ssize_t size) noexcept nogil:
    if SIZES[size]:
        memcpy(columns.numbers + SP_PIECE * begin, &columns.free[size], sizeof(int64_t))
        columns.free[size] = begin


cdef inline int make_room_until(Columns* columns, Py_ssize_t end) noexcept nogil:
    """A few pieces more, since so many columns may be read at a time; -1 if there is no memory."""
    if end > <Py_ssize_t> 0xFFFFFFFF:
        return -1
    return sp_stretch(&columns.numbers, &columns.room, end + SP_LANES // SP_PIECE, SP_PIECE * sizeof(float))


cdef Py_ssize_t take_block(Columns* columns, Py_ssize_t size) noexcept nogil:
    """Where a block of that size begins; -1 if there is no memory."""
    cdef Py_ssize_t begin = columns.free[size], left
    if begin >= 0:
        memcpy(&columns.free[size], columns.numbers + SP_PIECE * begin, sizeof(int64_t))
        return begin
    begin = columns.n
    left = -begin & PIECES_OF_LINE - 1
    if left < (SIZES[size] & PIECES_OF_LINE - 1 or PIECES_OF_LINE) and left and SIZES[size]:
        begin += left  # so that the block lies in as few lines of the cache as it can; what is left is for smaller ones
    if make_room_until(columns, begin + SIZES[size]) < 0:
        return -1
    if begin > columns.n:
        give_back(columns, columns.n, left)  # sizes as small as that are numbered by their pieces
    columns.n = begin + SIZES[size]
    return begin


cdef inline Py_ssize_t size_for(Py_ssize_t n_pieces) noexcept nogil:
    cdef Py_ssize_t size = 0
    while SIZES[size] < n_pieces:
        size += 1
    return size


cdef inline bint is_known(double weight, double squares, double count) noexcept nogil:
    """Whether a column differs from a new one, be it by the sign of a zero."""
    return weight != 0.0 or squares != 0.0 or count != 0.0 or signbit(weight)


cdef inline bint is_taught(Columns* columns, const sp_columns* feature, Py_ssize_t i) noexcept nogil:
    """Whether anything is known of the i-th column."""
    return is_known(
        sp_weights(columns.numbers, feature)[i],
        sp_squares(columns.numbers, feature)[i],
        sp_counts(columns.numbers, feature)[i],
    )


cdef inline Py_ssize_t column_at(Columns* columns, const sp_columns* feature, Py_ssize_t i) noexcept nogil:
    """The number of the i-th column."""
    return i if feature.dense else sp_numbers(columns.numbers, feature)[i]


cdef inline Py_ssize_t place_of(Columns* columns, const sp_columns* feature, Py_ssize_t column) noexcept nogil:
    """Where the feature has that column; the number of its columns if it has not."""
    cdef const uint32_t* numbers = sp_numbers(columns.numbers, feature)
    cdef Py_ssize_t i
    if feature.dense:
        return min(column, <Py_ssize_t> feature.n)
    for i in range(feature.n):
        if numbers[i] == column:
            return i
    return feature.n


cdef inline Py_ssize_t add_column(Columns* columns, sp_columns* feature, Py_ssize_t column) noexcept nogil:
    """Where the feature has from now on that column, which is new to it, and for which there is room."""
    cdef Py_ssize_t i = feature.n
    if feature.dense:
        return column
    feature.n += 1
    sp_numbers(columns.numbers, feature)[i] = column
    sp_weights(columns.numbers, feature)[i] = 0.0
    sp_squares(columns.numbers, feature)[i] = 0.0
    sp_counts(columns.numbers, feature)[i] = 0.0
    return i


# Of some columns each takes a piece: its number, weight, squares and count. Of all, each takes three numbers.

cdef inline Py_ssize_t size_of_all(Py_ssize_t n_columns) noexcept nogil:
    return size_for((3 * n_columns + SP_PIECE - 1) // SP_PIECE)


cdef inline bint is_nearly_all(Py_ssize_t size, Py_ssize_t of_all) noexcept nogil:
    """Whether a block for some of the columns is to be one of all, which is faster, and takes little more memory."""
    return 2 * SIZES[size] > SIZES[of_all]


cdef inline Py_ssize_t most_pieces(const sp_columns* feature, Py_ssize_t n_more, Py_ssize_t of_all) noexcept nogil:
    """How many pieces it may take to lay a feature out with so many columns more."""
    cdef Py_ssize_t size = size_for(feature.n + n_more)
    return SIZES[of_all if is_nearly_all(size, of_all) else size] + PIECES_OF_LINE - 1


cdef int lay_out(Columns* columns, sp_columns* feature, Py_ssize_t n_more, Py_ssize_t n_columns) noexcept nogil:
    """Make room for so many columns more, of all that there are; -1 if there is no memory."""
    cdef sp_columns old = feature[0]
    cdef Py_ssize_t i, j, n = n_more, begin, size, of_all = size_of_all(n_columns)
    for i in range(old.n):
        n += not old.dense or is_taught(columns, &old, i)
    size = size_for(n)
    feature.dense = is_nearly_all(size, of_all)
    feature.size = of_all if feature.dense else size
    begin = take_block(columns, feature.size)
    if begin < 0:
        feature[0] = old
        return -1
    feature.begin = begin
    feature.room = SP_PIECE * SIZES[feature.size] // 3 if feature.dense else SIZES[feature.size]
    feature.n = feature.room if feature.dense else 0
    if feature.dense:
        memset(sp_weights(columns.numbers, feature), 0, 3 * feature.room * sizeof(float))
    for i in range(old.n):
        if not old.dense or is_taught(columns, &old, i):
            j = add_column(columns, feature, column_at(columns, &old, i))
            sp_weights(columns.numbers, feature)[j] = sp_weights(columns.numbers, &old)[i]
            sp_squares(columns.numbers, feature)[j] = sp_squares(columns.numbers, &old)[i]
            sp_counts(columns.numbers, feature)[j] = sp_counts(columns.numbers, &old)[i]
    give_back(columns, old.begin, old.size)
    return 0


cdef Py_ssize_t n_features_with(const sp_columns* features, Py_ssize_t n_features, Py_ssize_t n):
    """How many features have so many columns, or a few more; all if they have fewer."""
    cdef Py_ssize_t i = 0
    while i < n_features and n > 0:
        i += 1
        n -= features[i].n + 1
    return i


cdef Py_ssize_t n_taught_of(Columns* columns, const sp_columns* features, Py_ssize_t n_features, uint32_t age):
    """How many columns `taught_of` tells of."""
    cdef Py_ssize_t i, j, n_zeros, n = 0
    cdef const sp_columns* feature
    cdef const float* weights
    cdef double factor, square, count
    with nogil:
        for i in range(n_features):
            sp_fetch_weights(columns.numbers, &features[min(i + FEATURES_AHEAD, n_features)])
            feature = &features[i + 1]
            weights, n_zeros = sp_weights(columns.numbers, feature), 0
            for j in range(feature.n):
                n_zeros += weights[j] == 0.0
            n += feature.n - n_zeros
            if n_zeros == 0:
                continue
            factor = sp_factor_of_age(age - feature.age)
            for j in range(feature.n):
                if weights[j] == 0.0:
                    square = sp_single(sp_squares(columns.numbers, feature)[j] * factor)
                    count = sp_single(sp_counts(columns.numbers, feature)[j] * factor)
                    n += is_known(weights[j], square, count)
    return n


cdef tuple taught_of(Columns* columns, const sp_columns* features, Py_ssize_t n_features, uint32_t age):
    """How many columns of each feature were taught, and of all of these, in order, the numbers, weights, squares and counts."""
    cdef Py_ssize_t i, j, n = 0, begin, place, number
    cdef const sp_columns* feature
    cdef const float* its_weights  # named once, or they would be looked up anew after each write
    cdef const float* its_squares
    cdef const float* its_counts
    cdef const uint32_t* its_numbers
    cdef double factor
    cdef float weight, square, count
    cdef bint dense
    for i in range(n_features):
        n += features[i + 1].n
    n_taught, found = np.empty(n_features, np.int64), [np.empty(n, kind) for kind in (np.int64, *3 * (np.float32,))]
    cdef int64_t[::1] out = n_taught, numbers = found[0]
    cdef float[::1] weights = found[1], squares = found[2], counts = found[3]
    with nogil:
        n = 0
        for i in range(n_features):
            sp_fetch_weights(columns.numbers, &features[min(i + FEATURES_AHEAD, n_features)])
            sp_fetch_evidence(columns.numbers, &features[min(i + FEATURES_AHEAD, n_features)])
            feature = &features[i + 1]
            factor, begin, dense = sp_factor_of_age(age - feature.age), n, feature.dense
            its_numbers, its_weights = sp_numbers(columns.numbers, feature), sp_weights(columns.numbers, feature)
            its_squares, its_counts = sp_squares(columns.numbers, feature), sp_counts(columns.numbers, feature)
            for j in range(feature.n):
                weight = its_weights[j]
                square, count = sp_single(its_squares[j] * factor), sp_single(its_counts[j] * factor)
                if not is_known(weight, square, count):
                    continue
                place, number = n, j if dense else its_numbers[j]
                while place > begin and numbers[place - 1] > number:
                    numbers[place], weights[place] = numbers[place - 1], weights[place - 1]
                    squares[place], counts[place] = squares[place - 1], counts[place - 1]
                    place -= 1
                numbers[place], weights[place], squares[place], counts[place] = number, weight, square, count
                n += 1
            out[i] = n - begin
    return n_taught, [each[:n] for each in found]


cdef int fill_taught(
    Columns* columns, sp_columns* features, const int64_t[::1] n_taught, const int64_t[::1] numbers,
    const float[::1] weights, const float[::1] squares, const float[::1] counts, Py_ssize_t n_columns,
) except -1:
    """Make these the only columns of new features, as `taught_of` gives them, of so many that there are."""
    cdef Py_ssize_t i, j, place, n = 0
    cdef sp_columns* feature
    make_no_columns(columns)
    for i in range(n_taught.shape[0]):
        feature = &features[i + 1]
        if n_taught[i] and lay_out(columns, feature, n_taught[i], n_columns) < 0:
            raise MemoryError
        for j in range(n, n + n_taught[i]):
            place = add_column(columns, feature, numbers[j])
            sp_weights(columns.numbers, feature)[place] = weights[j]
            sp_squares(columns.numbers, feature)[place] = squares[j]
            sp_counts(columns.numbers, feature)[place] = counts[j]
        n += n_taught[i]
    return 0
