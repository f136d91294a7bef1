cdef union Word:
    uint64_t hash
    double v
    void* pointer


cdef struct Table:
    # Entries of `stride` words, a hash and what is kept for it, sorted by hash, with gaps: an entry stands at its home,
    # hash · n_homes / 2⁶⁴, or as soon after it as the order allows. So a search ends, found or not, at the first entry that
    # is not smaller; growing is one sequential pass; and the order of the entries, hence every sum over them, depends on
    # the keys alone. Positions are counted in words.
    Word* words
    Py_ssize_t stride
    # What is kept for a hash: the numbers that follow it or, where records stand apart, a position among them. There they
    # stand as they came, the frequent ones, that come first, side by side; at 0 stands what is known of a hash that is
    # not there.
    double* records
    Py_ssize_t n_numbers, room  # of a record that stands apart, and for how many of them
    Py_ssize_t n, n_homes, n_slots  # the slots after the last home take what is pushed over the end
    # Whether keys were chosen to crowd: from then on homes depend on a secret, and an entry stands in the first slot from
    # its home on that was free.
    bint scattered


cdef struct Place:
    uint64_t hash
    Py_ssize_t slot


cdef enum:
    SPARE_SLOTS = 16
    FEWEST_HOMES = 16
    CROWD = 1024  # slots from home: more than chance ever makes of a table that is seven tenths full


cdef inline uint64_t scatter(uint64_t h) noexcept nogil:
    """A bijection in which nobody who does not know the secret can choose neighbours."""
    h = (h ^ SECRET) * MULTIPLIER
    h = (h ^ h >> 32) * MULTIPLIER
    return h ^ h >> 32


cdef inline Py_ssize_t home(const Table* table, uint64_t h) noexcept nogil:
    if table.scattered:
        h = scatter(h)
    return <Py_ssize_t> sp_high_product(h, <uint64_t> table.n_homes) * table.stride


cdef inline Py_ssize_t seek(const Table* table, uint64_t h) noexcept nogil:
    """Where `h` is, or else where it belongs. The last slot is always empty."""
    cdef Py_ssize_t p = home(table, h)
    if table.scattered:
        while table.words[p].hash != h and table.words[p].hash != EMPTY:
            p += table.stride
    else:
        while table.words[p].hash < h:
            p += table.stride
    return p


cdef void find_homes(const Table* given, const Row* e, Py_ssize_t* slots) noexcept nogil:
    """The home of each feature; and have the processor fetch the entries there while the first is waited for."""
    cdef Table table = given[0]  # a copy, or it would be read anew after each write
    cdef Py_ssize_t i
    for i in range(e.n):
        slots[i] = home(&table, e.hashes[i])
        SP_PREFETCH(&table.words[slots[i]])
        if table.stride > 4:  # which may well lie in two lines of the cache
            SP_PREFETCH(&table.words[slots[i] + table.stride - 1])


cdef inline Py_ssize_t entry_from(Py_ssize_t stride, const Word* words, Py_ssize_t p, uint64_t h) noexcept nogil:
    """Where `h` is, or else where it belongs, from its home p on."""
    # Most entries are at most three slots from home: how many is hard to predict, so nothing branches on it.
    p += stride * (words[p].hash < h)
    p += stride * (words[p].hash < h)
    p += stride * (words[p].hash < h)
    while words[p].hash < h:
        p += stride
    return p


cdef inline void find_entries_by(Py_ssize_t stride, const Word* words, const Row* e, Py_ssize_t* slots) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(e.n):
        slots[i] = entry_from(stride, words, slots[i], e.hashes[i])


cdef void find_entries(const Table* table, const Row* e, Py_ssize_t* slots) noexcept nogil:
    """Where each feature is, or else where it belongs, from its home on."""
    cdef Py_ssize_t i
    if table.scattered:
        for i in range(e.n):
            slots[i] = seek(table, e.hashes[i])
    elif table.stride == 2:  # as nearly always; a multiplication by a constant costs nothing
        find_entries_by(2, table.words, e, slots)
    else:
        find_entries_by(table.stride, table.words, e, slots)


cdef inline Py_ssize_t end(const Table* table) noexcept nogil:
    return table.n_slots * table.stride


cdef inline size_t size_of(const Table* table) noexcept nogil:
    return end(table) * sizeof(Word) + table.room * table.n_numbers * sizeof(double)


cdef inline double* record_at(const Table* table, Py_ssize_t p) noexcept nogil:
    """The numbers that are kept in the entry at p, or for it."""
    return &table.words[p + 1].v if table.records == NULL else table.records + table.words[p + 1].hash * table.n_numbers


cdef inline Py_ssize_t capacity_of(Py_ssize_t n_homes) noexcept nogil:
    return n_homes * 7 // 10


cdef inline Py_ssize_t grown(Py_ssize_t n_homes) noexcept nogil:
    # At 16 bytes a slot and between 7/10 and 3/4 · 7/10 of them taken, an entry costs at most 31 bytes.
    return n_homes + n_homes // 3


cdef inline void copy_entry(Word* to, const Word* source, Py_ssize_t stride) noexcept nogil:
    to[0], to[1] = source[0], source[1]
    if stride > 2:  # a call costs more than what most entries hold
        memcpy(to + 2, source + 2, (stride - 2) * sizeof(Word))


cdef void make_empty(Word* words, Py_ssize_t n_slots, Py_ssize_t stride) noexcept nogil:
    cdef Py_ssize_t slot
    memset(words, 0, n_slots * stride * sizeof(Word))
    for slot in range(n_slots):
        words[slot * stride].hash = EMPTY


cdef int rebuild(Table* table, Py_ssize_t n_homes, Py_ssize_t spare, Py_ssize_t stride) noexcept nogil:
    """Spread the entries over `n_homes` homes and at least `spare` slots behind; -1 if there is no memory."""
    cdef Table old = table[0]
    cdef Py_ssize_t slot, p, q, taken
    table.n_homes, table.stride = n_homes, stride
    while True:
        table.n_slots = n_homes + spare
        table.words = <Word*> sp_allocate(end(table) * sizeof(Word))
        if table.words == NULL:
            table[0] = old
            return -1
        make_empty(table.words, table.n_slots, stride)
        taken = 0
        for slot in range(old.n_slots if old.n else 0):
            p = slot * old.stride
            if old.words[p].hash != EMPTY:
                q = home(table, old.words[p].hash)
                if not table.scattered:
                    q = max(q, taken)
                else:
                    while q < end(table) - stride and table.words[q].hash != EMPTY:
                        q += stride
                if q >= end(table) - stride:
                    break
                copy_entry(&table.words[q], &old.words[p], min(stride, old.stride))
                taken = q + stride
        else:
            break
        free(table.words)
        spare *= 2
    free(old.words)
    return 0


cdef int make_room_apart(Table* table, Py_ssize_t n) noexcept nogil:
    """For n records in all; those there are stay. (Not by realloc, which knows nothing of large pages.)"""
    cdef size_t size = table.n_numbers * sizeof(double)
    cdef double* records = <double*> sp_allocate(n * size)
    if records == NULL:
        return -1
    memset(records, 0, n * size)
    if table.room:
        memcpy(records, table.records, (table.n + 1) * size)
    free(table.records)
    table.records, table.room = records, n
    return 0


cdef Py_ssize_t insert(Table* table, Py_ssize_t p, uint64_t h) noexcept nogil:
    """Put in an `h` that is not there, and belongs at p; where it is then, or -1 if there is no memory."""
    cdef Py_ssize_t gap
    if table.records != NULL and table.n + 1 == table.room:
        if make_room_apart(table, table.n + 1 + (table.n + 1) // 2) < 0:
            return -1
    if table.n >= capacity_of(table.n_homes):
        if rebuild(table, grown(table.n_homes), SPARE_SLOTS, table.stride) < 0:
            return -1
        p = seek(table, h)
    while True:
        gap = p
        while table.words[gap].hash != EMPTY:
            gap += table.stride
        if not table.scattered and gap - home(table, h) > CROWD * table.stride:
            table.scattered = True
            if rebuild(table, table.n_homes, SPARE_SLOTS, table.stride) < 0:
                table.scattered = False
                return -1
        elif gap < end(table) - table.stride:
            break
        elif rebuild(table, table.n_homes, 2 * (table.n_slots - table.n_homes), table.stride) < 0:
            return -1
        p = seek(table, h)
    while gap > p:
        copy_entry(&table.words[gap], &table.words[gap - table.stride], table.stride)
        gap -= table.stride
    table.words[p].hash, table.words[p + 1].hash = h, 0
    if table.stride > 2:
        memset(&table.words[p + 2], 0, (table.stride - 2) * sizeof(Word))
    table.n += 1
    if table.records != NULL:
        table.words[p + 1].hash = <uint64_t> table.n  # where all is still 0
    return p


cdef double* insert_record(Table* table, uint64_t h) noexcept nogil:
    """The record of `h`, which is put in where it is not there; NULL if there is no memory."""
    cdef Py_ssize_t p = seek(table, h)
    if table.words[p].hash != h:
        p = insert(table, p, h)
    return NULL if p < 0 else record_at(table, p)


cdef void erase(Table* table, Py_ssize_t p) noexcept nogil:
    """Take out the entry at p, where records do not stand apart; those behind that are not at home move up."""
    cdef Py_ssize_t q = p + table.stride
    table.n -= 1
    if table.scattered:
        while table.words[q].hash != EMPTY:
            if home(table, table.words[q].hash) <= p:
                copy_entry(&table.words[p], &table.words[q], table.stride)
                p = q
            q += table.stride
        table.words[p].hash = EMPTY
        return
    while table.words[q].hash != EMPTY and home(table, table.words[q].hash) < q:
        q += table.stride
    q -= table.stride
    memmove(&table.words[p], &table.words[p + table.stride], (q - p) * sizeof(Word))
    table.words[q].hash = EMPTY


cdef int make_for(Table* table, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """Make the table an empty one with room for n entries; -1 if there is no memory."""
    cdef Py_ssize_t n_homes = FEWEST_HOMES
    while n > capacity_of(n_homes):
        n_homes = grown(n_homes)
    table.n, table.scattered = 0, False
    if table.records != NULL:
        memset(table.records, 0, table.room * table.n_numbers * sizeof(double))
    return rebuild(table, n_homes, SPARE_SLOTS, stride)


cdef int compare_places(const void* one, const void* other) noexcept nogil:
    cdef uint64_t a = (<const Place*> one).hash, b = (<const Place*> other).hash
    return (a > b) - (a < b)


cdef Place* places_in_order(const Table* table) noexcept nogil:
    """Where the entries of a scattered table stand, sorted by hash, so that nothing depends on the secret. NULL if the
    slots are in order, or if there is no memory.
    """
    cdef Place* places
    cdef Py_ssize_t slot, i = 0
    if not table.scattered:
        return NULL
    places = <Place*> malloc(max(table.n, 1) * sizeof(Place))
    if places != NULL:
        for slot in range(table.n_slots):
            if table.words[slot * table.stride].hash != EMPTY:
                places[i] = Place(table.words[slot * table.stride].hash, slot)
                i += 1
        qsort(places, table.n, sizeof(Place), compare_places)
    return places


cdef inline Py_ssize_t n_places(const Table* table, const Place* places) noexcept nogil:
    return table.n_slots if places == NULL else table.n


cdef inline Py_ssize_t place(const Table* table, const Place* places, Py_ssize_t i) noexcept nogil:
    """Where the i-th entry or, in slots that are in order, gap is."""
    return (i if places == NULL else places[i].slot) * table.stride


cdef enum:
    AHEAD = 24  # entries


cdef records_of(const Table* table, Py_ssize_t n_numbers):
    """Keys, in the order of their hashes, and the first numbers of their records, with a row a number."""
    cdef Py_ssize_t i = 0, j, c, last, p
    cdef const double* record
    keys, numbers = np.empty(table.n, np.int64), np.empty((n_numbers, table.n))
    cdef int64_t[::1] k = keys
    cdef double[:, ::1] out = numbers
    cdef Place* places = places_in_order(table)
    last = n_places(table, places) - 1
    for j in range(last + 1):
        if table.records != NULL:  # which stand far from one another
            p = place(table, places, min(j + AHEAD, last))
            SP_PREFETCH(record_at(table, p) if table.words[p].hash != EMPTY else table.records)
        p = place(table, places, j)
        if table.words[p].hash != EMPTY:
            record = record_at(table, p)
            k[i] = <int64_t> (table.words[p].hash * INVERSE_MULTIPLIER)
            for c in range(n_numbers):
                out[c, i] = record[c]
            i += 1
    free(places)
    return keys, numbers


cdef int fill(Table* table, keys, numbers) except -1:
    """Make these the only records."""
    hashes = keys.view(np.uint64) * np.uint64(MULTIPLIER)
    order = np.argsort(hashes, kind="stable")  # quick where they are in order, as in files
    cdef const uint64_t[::1] h = hashes[order]
    cdef const double[:, ::1] given = np.ascontiguousarray(np.asarray(numbers)[:, order])
    cdef Py_ssize_t i, c
    cdef double* record
    if make_for(table, h.shape[0], table.stride) < 0:
        raise MemoryError
    for i in range(h.shape[0]):
        record = insert_record(table, h[i])
        if record == NULL:
            raise MemoryError
        for c in range(given.shape[0]):
            record[c] = given[c, i]
    return 0
