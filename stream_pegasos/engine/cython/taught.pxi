cdef struct Taught:  # of a feature and a class
    double weight, squares, count
    Py_ssize_t column


cdef struct FeatureOfColumns:
    double log_ratio, count
    Py_ssize_t begin  # of its columns among those of all features
    int64_t n, n_counted  # how many there are, and how many of them, the first, have been counted with an example
    int64_t size  # the number of the size that there is room for


cdef enum:
    N_SIZES = 96
    NUMBERS_OF_FEATURE = 6  # the size of the record, in those of a double

# How many columns of a feature there may be room for: two sizes for each doubling.
cdef Py_ssize_t SIZES[N_SIZES]
for size_number in range(N_SIZES):
    SIZES[size_number] = size_number if size_number < 2 else (2 + size_number % 2) << size_number // 2 - 1


cdef struct Columns:  # of all features: blocks of the sizes above
    Taught* taught
    Py_ssize_t n, room
    Py_ssize_t free[N_SIZES]  # the first block that was given back, −1 for none; its first column is the next one


cdef void make_no_columns(Columns* columns) noexcept nogil:
    cdef Py_ssize_t size
    columns.n = 0
    for size in range(N_SIZES):
        columns.free[size] = -1


cdef Py_ssize_t take_block(Columns* columns, Py_ssize_t size) noexcept nogil:
    """Where a block of that size begins; -1 if there is no memory."""
    cdef Py_ssize_t begin = columns.free[size], room
    cdef Taught* moved
    if begin >= 0:
        columns.free[size] = columns.taught[begin].column
        return begin
    begin = columns.n
    if begin + SIZES[size] > columns.room:
        room = max(begin + SIZES[size], columns.room + columns.room // 2, 64)
        moved = <Taught*> sp_allocate(room * sizeof(Taught))
        if moved == NULL:
            return -1
        if begin:
            memcpy(moved, columns.taught, begin * sizeof(Taught))
        free(columns.taught)
        columns.taught, columns.room = moved, room
    columns.n += SIZES[size]
    return begin


cdef Taught* add_taught(Columns* columns, FeatureOfColumns* feature, Py_ssize_t column) noexcept nogil:
    """Room for a column that the feature does not have yet; NULL if there is no memory."""
    cdef Py_ssize_t begin
    cdef Taught* added
    if feature.n == SIZES[feature.size]:
        begin = take_block(columns, feature.size + 1)
        if begin < 0:
            return NULL
        if feature.n:
            memcpy(&columns.taught[begin], &columns.taught[feature.begin], feature.n * sizeof(Taught))
            columns.taught[feature.begin].column = columns.free[feature.size]
            columns.free[feature.size] = feature.begin
        feature.begin = begin
        feature.size += 1
    added = &columns.taught[feature.begin + feature.n]
    feature.n += 1
    added[0] = Taught(0.0, 0.0, 0.0, column)
    return added


cdef inline Py_ssize_t place_of(const Columns* columns, const FeatureOfColumns* feature, Py_ssize_t column) noexcept nogil:
    """Where the feature has that column; the number of its columns if it has not."""
    cdef const Taught* taught = columns.taught + feature.begin
    cdef Py_ssize_t i
    for i in range(feature.n):
        if taught[i].column == column:
            return i
    return feature.n


cdef inline int count_example(
    Columns* columns, FeatureOfColumns* feature, Py_ssize_t column, double counted
) noexcept nogil:
    """Count an example of that class with the feature, and keep what is counted in front; -1 if there is no memory."""
    cdef Py_ssize_t i = place_of(columns, feature, column)
    cdef Taught* taught
    cdef Taught moved
    if i == feature.n and add_taught(columns, feature, column) == NULL:
        return -1
    taught = columns.taught + feature.begin
    if i >= feature.n_counted:
        moved, taught[i] = taught[i], taught[feature.n_counted]
        i = feature.n_counted
        taught[i] = moved
        feature.n_counted += 1
    taught[i].count += counted
    return 0


cdef tuple taught_of(const Columns* columns, const FeatureOfColumns* features, const int64_t[::1] positions):
    """How many columns each feature has that stands at one of these positions, and all of them in order: their numbers, and
    what is known of each, with a row a number.
    """
    cdef Py_ssize_t i, j, n = 0
    cdef const Taught* taught
    counts = np.empty(positions.shape[0], np.int64)
    cdef int64_t[::1] out_counts = counts
    for i in range(positions.shape[0]):
        out_counts[i] = features[positions[i]].n
        n += out_counts[i]
    numbers, known = np.empty(n, np.int64), np.empty((3, n))
    cdef int64_t[::1] out_numbers = numbers
    cdef double[:, ::1] out = known
    n = 0
    for i in range(positions.shape[0]):
        taught = columns.taught + features[positions[i]].begin
        for j in range(features[positions[i]].n):
            out_numbers[n] = taught[j].column
            out[0, n], out[1, n], out[2, n] = taught[j].weight, taught[j].squares, taught[j].count
            n += 1
    order = np.lexsort((numbers, np.repeat(np.arange(len(counts)), counts)))
    return counts, numbers[order], np.ascontiguousarray(known[:, order])


cdef int fill_taught(
    Columns* columns, FeatureOfColumns* features, const int64_t[::1] positions, const int64_t[::1] counts,
    const int64_t[::1] numbers, const double[:, ::1] known,
) except -1:
    """Make these the only columns, as `taught_of` gives them."""
    cdef Py_ssize_t i, j, n = 0
    cdef FeatureOfColumns* feature
    make_no_columns(columns)
    for i in range(positions.shape[0]):
        feature = &features[positions[i]]
        feature.begin, feature.n, feature.n_counted, feature.size = 0, counts[i], 0, 0
        while SIZES[feature.size] < counts[i]:
            feature.size += 1
        if counts[i]:
            feature.begin = take_block(columns, feature.size)
            if feature.begin < 0:
                raise MemoryError
        for j in range(counts[i]):
            columns.taught[feature.begin + j] = Taught(known[0, n], known[1, n], 0.0, numbers[n])
            n += 1
        for j in range(n - counts[i], n):
            if known[2, j] > 0.0:
                count_example(columns, feature, numbers[j], known[2, j])
    return 0


cdef inline void fetch_entries(const Table* given, const Row* e, Py_ssize_t begin, Py_ssize_t* positions) noexcept nogil:
    """Find where some features are at home, and have the processor fetch the entries there."""
    cdef Table table = given[0]  # a copy, or it would be read anew after each write
    cdef Py_ssize_t i
    for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
        positions[i] = home(&table, e.hashes[i])
        SP_PREFETCH(&table.words[positions[i]])


cdef inline void find_records(
    const Table* table, const Row* e, Py_ssize_t begin, Py_ssize_t* positions, Py_ssize_t n_numbers
) noexcept nogil:
    """Find where the records of some features stand, 0 for those that are not known, and have them fetched."""
    cdef const Word* words = table.words
    cdef Py_ssize_t i, p
    cdef bint scattered = table.scattered
    for i in range(begin, min(<Py_ssize_t> (begin + AT_A_TIME), e.n)):
        if scattered:
            p = seek(table, e.hashes[i])
        else:
            p = entry_from(2, words, positions[i], e.hashes[i])
        positions[i] = words[p + 1].hash & (0 - <uint64_t> (words[p].hash == e.hashes[i]))
        SP_PREFETCH(table.records + positions[i] * n_numbers)


cdef inline Py_ssize_t make_record(Table* table, uint64_t h) noexcept nogil:
    """Where the record of `h` stands, which is made if there is none; -1 if there is no memory."""
    cdef Py_ssize_t p = seek(table, h)
    if table.words[p].hash != h:
        p = insert(table, p, h)
        if p < 0:
            return -1
    return table.words[p + 1].hash
