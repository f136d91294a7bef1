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
    Py_ssize_t n, n_homes, n_slots  # the slots after the last home take what is pushed over the end


cdef enum:
    SPARE_SLOTS = 16
    FEWEST_HOMES = 16


cdef inline Py_ssize_t home(const Table* table, uint64_t h) noexcept nogil:
    return <Py_ssize_t> sp_high_product(h, <uint64_t> table.n_homes) * table.stride


cdef inline Py_ssize_t seek(const Table* table, uint64_t h) noexcept nogil:
    """Where `h` is, or else where it belongs. The last slot is always empty."""
    cdef Py_ssize_t p = home(table, h)
    while table.words[p].hash < h:
        p += table.stride
    return p


cdef void find_homes(const Table* given, const Example* e, Py_ssize_t* slots) noexcept nogil:
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


cdef inline void find_entries_by(Py_ssize_t stride, const Word* words, const Example* e, Py_ssize_t* slots) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(e.n):
        slots[i] = entry_from(stride, words, slots[i], e.hashes[i])


cdef void find_entries(const Table* table, const Example* e, Py_ssize_t* slots) noexcept nogil:
    """Where each feature is, or else where it belongs, from its home on."""
    if table.stride == 2:  # as nearly always; a multiplication by a constant costs nothing
        find_entries_by(2, table.words, e, slots)
    else:
        find_entries_by(table.stride, table.words, e, slots)


cdef inline Py_ssize_t end(const Table* table) noexcept nogil:
    return table.n_slots * table.stride


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
                q = max(home(table, old.words[p].hash), taken)
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


cdef Py_ssize_t insert(Table* table, Py_ssize_t p, uint64_t h) noexcept nogil:
    """Put in an `h` that is not there, and belongs at p; where it is then, or -1 if there is no memory."""
    cdef Py_ssize_t gap
    if table.n >= capacity_of(table.n_homes):
        if rebuild(table, grown(table.n_homes), SPARE_SLOTS, table.stride) < 0:
            return -1
        p = seek(table, h)
    while True:
        gap = p
        while table.words[gap].hash != EMPTY:
            gap += table.stride
        if gap < end(table) - table.stride:
            break
        if rebuild(table, table.n_homes, 2 * (table.n_slots - table.n_homes), table.stride) < 0:
            return -1
        p = seek(table, h)
    while gap > p:
        copy_entry(&table.words[gap], &table.words[gap - table.stride], table.stride)
        gap -= table.stride
    table.words[p].hash, table.words[p + 1].hash = h, 0
    if table.stride > 2:
        memset(&table.words[p + 2], 0, (table.stride - 2) * sizeof(Word))
    table.n += 1
    return p


cdef void erase(Table* table, Py_ssize_t p) noexcept nogil:
    """Take out the entry at p; those behind that are not at home move up."""
    cdef Py_ssize_t q = p + table.stride
    while table.words[q].hash != EMPTY and home(table, table.words[q].hash) < q:
        q += table.stride
    q -= table.stride
    memmove(&table.words[p], &table.words[p + table.stride], (q - p) * sizeof(Word))
    table.words[q].hash = EMPTY
    table.n -= 1


cdef int make_for(Table* table, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """Make the table an empty one with room for n entries; -1 if there is no memory."""
    cdef Py_ssize_t n_homes = FEWEST_HOMES
    while n > capacity_of(n_homes):
        n_homes = grown(n_homes)
    table.n = 0
    return rebuild(table, n_homes, SPARE_SLOTS, stride)
