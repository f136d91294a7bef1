cdef union Word:
    uint64_t hash
    double v


cdef struct Table:
    # Entries of `stride` words, a hash and what is kept for it, sorted by hash, with gaps: an entry stands at its home,
    # hash · n_homes / 2⁶⁴, or as soon after it as the order allows. So a search ends, found or not, at the first entry that
    # is not smaller; and the order of the entries, hence every sum over them, depends on the keys alone. Positions are
    # counted in words. Entries of two words have homes where a line of the cache begins, which four of them share.
    Word* words
    Py_ssize_t stride
    # What else is kept for an entry, as many words at the same position, if anything: what is needed less often.
    Word* others
    bint has_others
    # What is kept for a hash: the numbers that follow it or, where records stand apart, a position among them. There they
    # stand as they came, the frequent ones, that come first, side by side; at 0 stands what is known of a hash that is
    # not there.
    double* records
    Py_ssize_t n_numbers, room  # of a record that stands apart, and for how many of them
    Py_ssize_t n, n_homes, n_slots  # the slots after the last home take what is pushed over the end
    # A large table grows where it stands, a few entries with each that is new: those from the hash `moved_from` on stand
    # where they belong among n_homes, those below where they did among n_homes_before, and the slots from unused_begin to
    # unused_end are not in use. At other times moved_from is 0, and both of these n_slots.
    uint64_t moved_from
    Py_ssize_t n_homes_before, unused_begin, unused_end
    # Whether keys were chosen to crowd: from then on homes depend on a secret, and an entry stands in the first slot from
    # its home on that was free.
    bint scattered


cdef struct Place:
    uint64_t hash
    Py_ssize_t slot


cdef enum:
    SPARE_SLOTS = 16
    FEWEST_HOMES = 16
    CROWD = 8192  # slots from home: more than chance makes of a hundred million entries, where slots are fullest
    LARGE = 1 << 12  # homes from which on a table grows where it stands
    AT_ONCE = 128  # entries that move at a time when it does


cdef inline uint64_t scatter(uint64_t h) noexcept nogil:
    """A bijection in which nobody who does not know the secret can choose neighbours."""
    h = (h ^ SECRET) * MULTIPLIER
    h = (h ^ h >> 32) * MULTIPLIER
    return h ^ h >> 32


cdef inline Py_ssize_t home_among(const Table* table, uint64_t h, Py_ssize_t n_homes) noexcept nogil:
    cdef int shared = 2 if table.stride == 2 else 0
    return (<Py_ssize_t> sp_high_product(h, <uint64_t> n_homes >> shared) << shared) * table.stride


cdef inline Py_ssize_t home(const Table* table, uint64_t h) noexcept nogil:
    cdef Py_ssize_t n_homes = table.n_homes_before if h < table.moved_from else table.n_homes
    return home_among(table, scatter(h) if table.scattered else h, n_homes)


cdef inline Py_ssize_t entry_from(Py_ssize_t stride, const Word* words, Py_ssize_t p, uint64_t h) noexcept nogil:
    """Where `h` is, or else where it belongs, from its home p on."""
    # Where near its home an entry is is hard to predict, so nothing branches on it.
    if stride == 2:
        p += 2 * (
            (words[p].hash < h) + (words[p + 2].hash < h) + (words[p + 4].hash < h) + (words[p + 6].hash < h)
        )
    else:
        p += stride * (words[p].hash < h)
        p += stride * (words[p].hash < h)
        p += stride * (words[p].hash < h)
    while words[p].hash < h:
        p += stride
    return p


cdef inline Py_ssize_t seek(const Table* table, uint64_t h) noexcept nogil:
    """Where `h` is, or else where it belongs. The last slot is always empty."""
    cdef Py_ssize_t p = home(table, h)
    if table.scattered:
        while table.words[p].hash != h and table.words[p].hash != EMPTY:
            p += table.stride
        return p
    return entry_from(2, table.words, p, h) if table.stride == 2 else entry_from(table.stride, table.words, p, h)


cdef void find_homes(const Table* given, const Row* e, Py_ssize_t* slots) noexcept nogil:
    """The home of each feature; and have the processor fetch the entries there while the first is waited for."""
    cdef Table table = given[0]  # a copy, or it would be read anew after each write
    cdef Py_ssize_t i
    for i in range(e.n):
        slots[i] = home(&table, e.hashes[i])
        SP_PREFETCH(&table.words[slots[i]])
        if table.stride > 4:  # which may well lie in two lines of the cache
            SP_PREFETCH(&table.words[slots[i] + table.stride - 1])


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


cdef inline Py_ssize_t n_in_use(const Table* table) noexcept nogil:
    return table.n_slots - (table.unused_end - table.unused_begin)


cdef inline size_t size_of(const Table* table) noexcept nogil:
    cdef size_t entries = n_in_use(table) * table.stride * sizeof(Word)
    return entries * (1 + table.has_others) + table.room * table.n_numbers * sizeof(double)


cdef void free_table(Table* table) noexcept nogil:
    free_words(table)
    free(table.records)


cdef void free_words(Table* table) noexcept nogil:
    sp_resize(table.words, end(table) * sizeof(Word), 0)
    sp_resize(table.others, end(table) * sizeof(Word), 0)


cdef int make_words(Table* table, Py_ssize_t n_slots) noexcept nogil:
    """Have memory for that many slots, none of which has been written; -1, and nothing done, if there is none."""
    cdef size_t size = n_slots * table.stride * sizeof(Word)
    cdef void* words = sp_resize(NULL, 0, size)
    cdef void* others = sp_resize(NULL, 0, size) if table.has_others and words != NULL else NULL
    if words == NULL or table.has_others and others == NULL:
        sp_resize(words, size, 0)
        return -1
    table.words, table.others, table.n_slots = <Word*> words, <Word*> others, n_slots
    return 0


cdef inline double* record_at(const Table* table, Py_ssize_t p) noexcept nogil:
    """The numbers that are kept in the entry at p, or for it."""
    return &table.words[p + 1].v if table.records == NULL else table.records + table.words[p + 1].hash * table.n_numbers


cdef inline Py_ssize_t capacity_of(Py_ssize_t n_slots) noexcept nogil:
    return n_slots * 7 // 10


cdef inline Py_ssize_t grown(Py_ssize_t n_homes) noexcept nogil:
    return (n_homes + n_homes // 3) & ~3


cdef inline void copy_words(Word* to, const Word* source, Py_ssize_t n) noexcept nogil:
    if n == 2:  # a call costs more than what most entries hold
        memcpy(to, source, 2 * sizeof(Word))
    else:
        memcpy(to, source, n * sizeof(Word))


cdef inline void copy_entry(Table* to, Py_ssize_t p, const Table* source, Py_ssize_t q) noexcept nogil:
    copy_words(to.words + p, source.words + q, min(to.stride, source.stride))
    if to.has_others:
        copy_words(to.others + p, source.others + q, min(to.stride, source.stride))


cdef inline bint is_empty(const Table* table, Py_ssize_t slot) noexcept nogil:
    return table.words[slot * table.stride].hash == EMPTY


cdef inline void make_empty(Table* table, Py_ssize_t slot, Py_ssize_t last) noexcept nogil:
    """Make empty the slots up to the last, which is left as it is."""
    while slot < last:
        table.words[slot * table.stride].hash = EMPTY
        slot += 1


cdef inline void clear(Table* table) noexcept nogil:
    make_empty(table, 0, table.unused_begin)
    make_empty(table, table.unused_end, table.n_slots)
    table.n = 0


cdef inline void use_all(Table* table) noexcept nogil:
    table.moved_from, table.unused_begin, table.unused_end = 0, table.n_slots, table.n_slots


cdef int rebuild(Table* table, Py_ssize_t n_homes, Py_ssize_t spare, Py_ssize_t stride) noexcept nogil:
    """Spread the entries over `n_homes` homes and at least `spare` slots behind; -1 if there is no memory."""
    cdef Table old = table[0]
    cdef Py_ssize_t i, p, q, taken
    table.n_homes, table.stride = n_homes, stride
    while True:
        if make_words(table, n_homes + spare) < 0:
            table[0] = old
            return -1
        use_all(table)
        memset(table.words, 0, end(table) * sizeof(Word))
        make_empty(table, 0, table.n_slots)
        taken = 0
        for i in range(n_in_use(&old) if old.n else 0):
            p = place(&old, NULL, i)
            if old.words[p].hash != EMPTY:
                q = home(table, old.words[p].hash)
                if not table.scattered:
                    q = max(q, taken)
                else:
                    while q < end(table) - stride and table.words[q].hash != EMPTY:
                        q += stride
                if q >= end(table) - stride:
                    break
                copy_entry(table, q, &old, p)
                taken = q + stride
        else:
            break
        free_words(table)
        spare *= 2
    free_words(&old)
    return 0


cdef int stretch(Table* table, Py_ssize_t n_slots) noexcept nogil:
    """Have memory for that many slots, more than before; -1 if there is none."""
    cdef size_t slot = table.stride * sizeof(Word)
    cdef void* words = sp_resize(table.words, table.n_slots * slot, n_slots * slot)
    cdef void* others = NULL
    if words == NULL:
        return -1
    table.words = <Word*> words
    if table.has_others:
        others = sp_resize(table.others, table.n_slots * slot, n_slots * slot)
        if others == NULL:
            words = sp_resize(words, n_slots * slot, table.n_slots * slot)
            if words != NULL:
                table.words = <Word*> words
            return -1
    table.others, table.n_slots = <Word*> others, n_slots
    return 0


cdef int add_spare(Table* table) noexcept nogil:
    """More slots after the last home; -1 if there is no memory."""
    cdef Py_ssize_t before = table.n_slots
    cdef bint growing = table.moved_from != 0
    if stretch(table, before + 2 * AT_ONCE) < 0:
        return -1
    make_empty(table, before, table.n_slots)
    if not growing:
        use_all(table)
    return 0


cdef int begin_growth(Table* table) noexcept nogil:
    """From now on there are more homes, though no entry has moved yet; -1 if there is no memory."""
    cdef Py_ssize_t before = table.n_slots, n_homes = grown(table.n_homes)
    if stretch(table, n_homes + max(before - table.n_homes, <Py_ssize_t> (2 * AT_ONCE))) < 0:
        return -1
    table.moved_from, table.n_homes_before, table.n_homes = EMPTY, table.n_homes, n_homes
    table.unused_begin, table.unused_end = before, n_homes
    make_empty(table, n_homes, table.n_slots)
    return 0


cdef int move_some(Table* table) noexcept nogil:
    """Move the last entries that have not moved yet; -1, and nothing done, if there is no memory."""
    cdef Py_ssize_t stride = table.stride, first = table.unused_begin, last = first, n = 0, begin, i
    cdef uint64_t h
    while first > 0 and n < AT_ONCE:
        first -= 1
        n += not is_empty(table, first)
    h = table.words[first * stride].hash
    begin = min(home_among(table, h, table.n_homes) // stride, table.unused_end)
    if first == 0 or last + SPARE_SLOTS >= begin:
        return move_rest(table)
    if not is_empty(table, table.n_slots - 2 - n) and add_spare(table) < 0:
        return -1
    make_empty(table, begin, table.unused_end)
    table.moved_from, table.unused_begin, table.unused_end = h, first + SPARE_SLOTS, begin
    put_all(table, table, first, last)
    make_empty(table, first, first + SPARE_SLOTS)
    give_back_slots(table, last)
    for i in range(max(2 * first - last, <Py_ssize_t> 0), first, 4):  # have the processor fetch those that move next
        SP_PREFETCH(table.words + i * stride)
        if table.has_others:
            SP_PREFETCH(table.others + i * stride)
    return 0


cdef inline void give_back_slots(const Table* table, Py_ssize_t before) noexcept nogil:
    """The memory of slots that came out of use."""
    cdef size_t slot = table.stride * sizeof(Word), size = table.n_slots * slot
    sp_give_back(table.words, size, table.unused_begin * slot, before * slot, table.unused_end * slot)
    if table.has_others:
        sp_give_back(table.others, size, table.unused_begin * slot, before * slot, table.unused_end * slot)


cdef int move_rest(Table* table) noexcept nogil:
    """Move all that is left to move, and with it what stands already where some of it will; -1, and nothing done, if there
    is no memory.
    """
    cdef Py_ssize_t n_before = table.unused_begin, begin = table.unused_end, last = begin, i
    cdef Table rest = table[0]
    if n_before > LARGE // 4:  # keys that crowd, of which nobody knows how far they push others
        return rebuild(table, table.n_homes, table.n_slots - table.n_homes, table.stride)
    while not is_empty(table, last):
        last += 1
    if make_words(&rest, n_before + last - begin) < 0:
        return -1
    for i in range(rest.n_slots):
        copy_entry(&rest, i * rest.stride, table, (i if i < n_before else begin + i - n_before) * rest.stride)
    make_empty(table, 0, last)
    use_all(table)
    put_all(table, &rest, 0, rest.n_slots)
    free_words(&rest)
    return 0


cdef inline void put_all(Table* table, const Table* source, Py_ssize_t slot, Py_ssize_t last) noexcept nogil:
    """Put in what stands in some slots elsewhere, in order."""
    cdef Py_ssize_t stride = table.stride, q, p, taken = 0
    for slot in range(slot, last):
        q = slot * stride
        if source.words[q].hash != EMPTY:
            p = max(home(table, source.words[q].hash), taken)
            if table.words[p].hash != EMPTY:  # others stood here before
                p = seek(table, source.words[q].hash)
                open_slot(table, p, gap_from(table, p))
            copy_entry(table, p, source, q)
            taken = p + stride


cdef inline Py_ssize_t gap_from(const Table* table, Py_ssize_t p) noexcept nogil:
    """The first slot from p on that is free."""
    while table.words[p].hash != EMPTY:
        p += table.stride
    return p


cdef inline void open_slot(Table* table, Py_ssize_t p, Py_ssize_t gap) noexcept nogil:
    """Make room for an entry at p by moving those up to the gap."""
    cdef Py_ssize_t i
    if table.stride > 2:
        memmove(table.words + p + table.stride, table.words + p, (gap - p) * sizeof(Word))
        if table.has_others:
            memmove(table.others + p + table.stride, table.others + p, (gap - p) * sizeof(Word))
        return
    for i in range(gap, p, -2):  # mostly one or two, which cost less than a call
        table.words[i], table.words[i + 1] = table.words[i - 2], table.words[i - 1]
    if table.has_others:
        for i in range(gap, p, -2):
            table.others[i], table.others[i + 1] = table.others[i - 2], table.others[i - 1]


cdef int settle(Table* table) noexcept nogil:
    """Move all that is left to move; -1 if there is no memory."""
    while table.moved_from:
        if move_some(table) < 0:
            return -1
    return 0


cdef int make_room(Table* table) noexcept nogil:
    """For one entry more; -1 if there is no memory."""
    while table.n >= capacity_of(n_in_use(table)):
        if table.scattered or table.n_homes < LARGE:
            return rebuild(table, grown(table.n_homes), SPARE_SLOTS, table.stride)
        if table.moved_from == 0 and begin_growth(table) < 0:
            return -1
        if move_some(table) < 0:
            return -1
    return 0


cdef int make_slots(Table* table, Py_ssize_t p) noexcept nogil:
    """More empty slots after those of p, which are full to the last but one; -1 if there is no memory."""
    cdef Py_ssize_t spare = table.n_slots - table.n_homes
    if p < table.unused_begin * table.stride and table.moved_from:
        if table.unused_begin + SPARE_SLOTS > table.unused_end:
            return settle(table)
        make_empty(table, table.unused_begin, table.unused_begin + SPARE_SLOTS)
        table.unused_begin += SPARE_SLOTS
        return 0
    if table.scattered or table.n_homes < LARGE:
        return rebuild(table, table.n_homes, 2 * spare, table.stride)
    return add_spare(table)


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
    cdef Py_ssize_t gap, last
    if table.records != NULL and table.n + 1 == table.room:
        if make_room_apart(table, table.n + 1 + (table.n + 1) // 2) < 0:
            return -1
    if table.n >= capacity_of(n_in_use(table)):
        if make_room(table) < 0:
            return -1
        p = seek(table, h)
    while True:
        gap = gap_from(table, p)
        last = (table.unused_begin if p < table.unused_begin * table.stride else table.n_slots) - 1
        if not table.scattered and gap - home(table, h) > CROWD * table.stride:
            if settle(table) < 0:
                return -1
            table.scattered = True
            if rebuild(table, table.n_homes, SPARE_SLOTS, table.stride) < 0:
                table.scattered = False
                return -1
        elif gap < last * table.stride:
            break
        elif make_slots(table, p) < 0:
            return -1
        p = seek(table, h)
    open_slot(table, p, gap)
    table.words[p].hash, table.words[p + 1].hash = h, 0
    if table.stride > 2:
        memset(&table.words[p + 2], 0, (table.stride - 2) * sizeof(Word))
    if table.has_others:
        memset(&table.others[p], 0, table.stride * sizeof(Word))
    table.n += 1
    if table.records != NULL:
        table.words[p + 1].hash = <uint64_t> table.n  # where all is still 0
    return p


cdef inline Py_ssize_t place_for(Table* table, uint64_t h) noexcept nogil:
    """Where the entry of `h` is, which is put in where it is not there; -1 if there is no memory."""
    cdef Py_ssize_t p = seek(table, h)
    return p if table.words[p].hash == h else insert(table, p, h)


cdef inline double* insert_record(Table* table, uint64_t h) noexcept nogil:
    """The record of `h`, which is put in where it is not there; NULL if there is no memory."""
    cdef Py_ssize_t p = place_for(table, h)
    return NULL if p < 0 else record_at(table, p)


cdef int make_for(Table* table, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """Make the table an empty one with room for n entries; -1, and nothing done, if there is no memory."""
    cdef Table before = table[0]
    table.n, table.scattered = 0, False
    if rebuild(table, max((n * 10 // 7 + 4) & ~3, <Py_ssize_t> FEWEST_HOMES), SPARE_SLOTS, stride) < 0:
        table[0] = before
        return -1
    if table.records != NULL:
        memset(table.records, 0, table.room * table.n_numbers * sizeof(double))
    return 0


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
    return n_in_use(table) if places == NULL else table.n


cdef inline Py_ssize_t place(const Table* table, const Place* places, Py_ssize_t i) noexcept nogil:
    """Where the i-th entry or, in slots that are in order, gap is."""
    if places != NULL:
        i = places[i].slot
    elif i >= table.unused_begin:
        i += table.unused_end - table.unused_begin
    return i * table.stride


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
