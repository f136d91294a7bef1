cdef struct Table:
    # Records stand one behind the other as they came, so that those of frequent features, which come first, share lines of
    # the cache. Each begins with its hash. At 0 stands what is known of a hash that is not there.
    char* records
    Py_ssize_t record_size  # in bytes
    Py_ssize_t n, room  # how many records there are but for that at 0, and how many there is memory for with it
    # The index, by linear hashing (Litwin, 1980): groups of slots, of which one after the other is split in two, so that no
    # message waits for long as the table grows. A slot holds the position of a record and, above its bits, some of a hash
    # that depends on a secret; 0 if it is empty. Slots are looked at by the bucket, all at once; who finds its bucket full
    # stands in another one of the group. No group is ever full, so that each search ends in it: where the hashes of one
    # secret would fill it, another secret is taken.
    uint64_t secret
    uint32_t* slots
    Py_ssize_t n_slots, slots_room
    uint64_t slot_mask  # of the bits that tell slots from one another
    uint32_t position_mask


cdef enum:
    FEWEST_RECORDS = 8
    FEWEST_SLOTS = 16
    SLOTS_OF_GROUP = 1 << 10  # there is one group until it has so many
    POSITION_BITS = 25  # at first
    SLOTS_AHEAD = 32  # that the processor fetches while it works on those before


cdef inline uint64_t scatter(const Table* table, uint64_t h) noexcept nogil:
    """A hash with which nobody who does not know the secret can choose neighbours. The product alone would leave regular
    hashes regular with some secrets.
    """
    return sp_joined_product(h ^ (table.secret << 32 | table.secret >> 32), table.secret)


cdef inline Py_ssize_t home(const Table* table, uint64_t scattered) noexcept nogil:
    """The bucket where its search begins; the k-th after it is home ^ k · SP_SLOTS, which is of the same group."""
    cdef uint64_t p = scattered >> 32 & table.slot_mask
    return p & (table.slot_mask >> (p >= <uint64_t> table.n_slots)) & -SP_SLOTS  # whose group was not split yet


cdef inline uint32_t alike(const Table* table, Py_ssize_t bucket, uint64_t scattered) noexcept nogil:
    """A bit for each slot of a bucket whose part of a hash is that of this one, or that is empty and could pass for it."""
    return sp_slots_like(table.slots + bucket, <uint32_t> scattered, table.position_mask)


cdef inline Py_ssize_t position_in(const Table* table, uint32_t slot) noexcept nogil:
    return slot & table.position_mask


cdef inline void* record_at(const Table* table, Py_ssize_t position) noexcept nogil:
    return table.records + position * table.record_size


cdef inline uint64_t hash_at(const Table* table, Py_ssize_t position) noexcept nogil:
    return (<uint64_t*> record_at(table, position))[0]


cdef inline double* numbers_at(const Table* table, Py_ssize_t position) noexcept nogil:
    """What a record has behind its hash."""
    return <double*> record_at(table, position) + 1


cdef inline bint is_full(const Table* table, Py_ssize_t bucket) noexcept nogil:
    return table.slots[bucket + SP_SLOTS - 1] != 0


cdef Py_ssize_t find(const Table* table, uint64_t h) noexcept nogil:
    """Where the record of `h` stands; 0 if there is none."""
    cdef uint64_t scattered = scatter(table, h)
    cdef Py_ssize_t p = home(table, scattered), k = 0, position
    cdef uint32_t found
    while True:
        found = alike(table, p ^ k, scattered)
        while found:
            position = position_in(table, table.slots[(p ^ k) + sp_lowest_bit(found)])
            if position and hash_at(table, position) == h:
                return position
            found &= found - 1
        if not is_full(table, p ^ k):
            return 0
        k += SP_SLOTS


cdef inline Py_ssize_t fetch_slot(const Table* table, uint64_t h) noexcept nogil:
    """Have the processor fetch the slot where the search begins; what `find_fetched` needs to know."""
    cdef uint64_t scattered = scatter(table, h)
    cdef uint64_t p = home(table, scattered)
    SP_PREFETCH(&table.slots[p])
    return p << 32 | <uint32_t> scattered


cdef inline Py_ssize_t find_fetched(const Table* table, uint64_t fetched) noexcept nogil:
    """The position in the first slot that may be of this hash."""
    cdef Py_ssize_t p = fetched >> 32, k = 0
    cdef uint32_t found = alike(table, p, fetched)
    while found == 0 and is_full(table, p ^ k):
        k += SP_SLOTS
        found = alike(table, p ^ k, fetched)
    return position_in(table, table.slots[(p ^ k) + sp_lowest_bit(found)]) if found else 0


cdef inline void find_records(const Table* given, const Row* e, Py_ssize_t* positions) noexcept nogil:
    """Where the record of each feature stands, 0 if there is none."""
    cdef Table table = given[0]  # a copy, or it would be read anew after each write
    cdef Py_ssize_t i
    cdef uint64_t fetched[SLOTS_AHEAD]
    for i in range(min(e.n, <Py_ssize_t> SLOTS_AHEAD)):
        fetched[i] = fetch_slot(&table, e.hashes[i])
    for i in range(e.n):
        positions[i] = find_fetched(&table, fetched[i % SLOTS_AHEAD])
        SP_PREFETCH(record_at(&table, positions[i]))
        if i + SLOTS_AHEAD < e.n:
            fetched[i % SLOTS_AHEAD] = fetch_slot(&table, e.hashes[i + SLOTS_AHEAD])
    for i in range(e.n):
        if positions[i] and hash_at(&table, positions[i]) != e.hashes[i]:  # of which the slot holds but a part
            positions[i] = find(&table, e.hashes[i])


cdef bint has_other_room(const Table* table, Py_ssize_t bucket) noexcept nogil:
    """Whether another bucket of its group has an empty slot."""
    cdef Py_ssize_t k = SP_SLOTS
    while k < min(table.n_slots, <Py_ssize_t> SLOTS_OF_GROUP):
        if not is_full(table, bucket ^ k):
            return True
        k += SP_SLOTS
    return False


cdef inline int put(Table* table, Py_ssize_t position) noexcept nogil:
    """Enter a record in the index: in the first empty slot, so that those of a bucket stand behind all that are taken. -1,
    and nothing done, if that is the last empty slot of its group.
    """
    cdef uint64_t scattered = scatter(table, hash_at(table, position))
    cdef Py_ssize_t p = home(table, scattered), k = 0, slot
    while is_full(table, p ^ k):
        k += SP_SLOTS
    slot = sp_lowest_bit(sp_slots_like(table.slots + (p ^ k), 0, 0))
    if slot == SP_SLOTS - 1 and not has_other_room(table, p ^ k):
        return -1
    table.slots[(p ^ k) + slot] = <uint32_t> scattered & ~table.position_mask | <uint32_t> position
    return 0


cdef void index_records(Table* table) noexcept nogil:
    """Enter all records in the index anew, with other secrets until no group is full."""
    cdef Py_ssize_t position = 1
    memset(table.slots, 0, table.n_slots * sizeof(uint32_t))
    while position <= table.n:
        if put(table, position) == 0:
            position += 1
            continue
        table.secret = (table.secret + 2) * MULTIPLIER  # odd, as a secret must be
        memset(table.slots, 0, table.n_slots * sizeof(uint32_t))
        position = 1


cdef int grow_index(Table* table) noexcept nogil:
    """Have one group more, or twice the slots in the only one; -1 if there is no memory."""
    cdef Py_ssize_t size = min(table.n_slots, <Py_ssize_t> SLOTS_OF_GROUP), i
    cdef uint32_t taken[SLOTS_OF_GROUP]
    cdef uint32_t* split
    if sp_stretch(&table.slots, &table.slots_room, table.n_slots + size, sizeof(uint32_t)) < 0:
        return -1
    if <uint64_t> table.n_slots > table.slot_mask:
        table.slot_mask = 2 * table.slot_mask + 1
    split = table.slots + (table.n_slots & (table.slot_mask >> 1))
    memcpy(taken, split, size * sizeof(uint32_t))
    memset(split, 0, size * sizeof(uint32_t))
    memset(table.slots + table.n_slots, 0, size * sizeof(uint32_t))
    table.n_slots += size
    for i in range(size):
        SP_PREFETCH(record_at(table, position_in(table, taken[min(i + SLOTS_AHEAD, size - 1)])))
        if taken[i]:
            put(table, position_in(table, taken[i]))  # there is room: all of these stood in one group, which was not full
    return 0


cdef inline bint is_crowded(const Table* table, Py_ssize_t n) noexcept nogil:
    """Whether the index is too small for n records: groups that are to be split are twice as full as those that were."""
    return n * (4 if table.n_slots < SLOTS_OF_GROUP else 8) > 3 * table.n_slots


cdef int make_room(Table* table, Py_ssize_t n) noexcept nogil:
    """For n records more; -1 if there is no memory."""
    cdef Py_ssize_t i
    if sp_stretch(&table.records, &table.room, table.n + n + 1, table.record_size) < 0:
        return -1
    while table.room > <Py_ssize_t> table.position_mask:  # the next bit of a slot is one of positions from now on
        if table.position_mask >> 31:
            return -1
        for i in range(table.n_slots):
            table.slots[i] &= ~(table.position_mask + 1)
        table.position_mask = 2 * table.position_mask + 1
    while is_crowded(table, table.n + n):
        if grow_index(table) < 0:
            return -1
    return 0


cdef inline int make_room_for(Table* table, const Row* e) noexcept nogil:
    """For a record of each feature of an example, before anything changes; -1 if there is no memory."""
    if table.n + e.n < table.room and not is_crowded(table, table.n + e.n):
        return 0
    return make_room(table, e.n)


cdef inline Py_ssize_t place_for(Table* table, uint64_t h) noexcept nogil:
    """Where the record of `h` stands, one of zeros if there was none; -1 if there is no memory."""
    cdef Py_ssize_t position = find(table, h)
    if position:
        return position
    if (table.n + 1 >= table.room or is_crowded(table, table.n + 1)) and make_room(table, 1) < 0:
        return -1
    table.n += 1
    memset(record_at(table, table.n), 0, table.record_size)
    (<uint64_t*> record_at(table, table.n))[0] = h
    if put(table, table.n) < 0:
        index_records(table)
    return table.n


cdef void free_table(Table* table) noexcept nogil:
    sp_resize(table.records, table.room * table.record_size, 0)
    sp_resize(table.slots, table.slots_room * sizeof(uint32_t), 0)


cdef int make_for(Table* table, Py_ssize_t n) noexcept nogil:
    """Make the table an empty one with room for n records; -1, and nothing done, if there is no memory."""
    cdef Table made
    memset(&made, 0, sizeof(Table))
    made.record_size, made.position_mask, made.secret = table.record_size, (1 << POSITION_BITS) - 1, SECRET
    if sp_stretch(&made.slots, &made.slots_room, FEWEST_SLOTS, sizeof(uint32_t)) == 0:
        made.n_slots, made.slot_mask = FEWEST_SLOTS, FEWEST_SLOTS - 1
        memset(made.slots, 0, FEWEST_SLOTS * sizeof(uint32_t))
        if make_room(&made, max(n, <Py_ssize_t> FEWEST_RECORDS)) == 0:
            memset(made.records, 0, made.record_size)
            (<uint64_t*> made.records)[0] = EMPTY
            free_table(table)
            table[0] = made
            return 0
    free_table(&made)
    return -1


cdef inline void clear(Table* table) noexcept nogil:
    memset(table.slots, 0, table.n_slots * sizeof(uint32_t))
    table.n = 0


cdef inline size_t table_size(const Table* table) noexcept nogil:
    return table.room * table.record_size + table.slots_room * sizeof(uint32_t)


cdef view_of(const void* memory, Py_ssize_t n, dtype):
    """Numbers or records of a declared type, where they stand."""
    return np.asarray(<char[: n * np.dtype(dtype).itemsize]> <char*> memory).view(dtype) if n else np.empty(0, dtype)


# The numbers of a state but for those of features stand in structs. Getting and setting them is one loop, over their places
# by the names of their fields.
cdef dict number_places(const void* memory, fields):
    """Where numbers of these fields stand, one behind the other."""
    numbers = view_of(memory, len(fields), records.DOUBLE)
    return {field.name: numbers[i : i + 1].reshape(()) for i, field in enumerate(fields)}


cdef dict read_places(dict places):
    kinds = {"i": records.COUNT, "f": records.DOUBLE}
    return {
        name: np.array(place, kinds[place.dtype.kind]) if place.ndim else place.item() for name, place in places.items()
    }


cdef int write_places(dict places, state) except -1:
    for name, place in places.items():
        place[...] = state[name]
    return 0


cdef dict copied(records, names):
    return {name: records[name].copy() for name in names}


cdef records_of(const Table* table, dtype):
    return view_of(table.records, table.n + 1, dtype)[1:]


cdef dict lazy_columns(Py_ssize_t n, dtypes, parts):
    return {name: LazyColumn((n,), np.dtype(dtype), parts) for name, dtype in dtypes.items()}


cdef keys_of(hashes):
    return (hashes * np.uint64(INVERSE_MULTIPLIER)).view(np.int64)


cdef int fill(Table* table, const int64_t[::1] keys) except -1:
    """Make records of zeros for these keys, in this order, the only ones."""
    cdef Py_ssize_t i
    if make_for(table, keys.shape[0]) < 0:
        raise MemoryError
    for i in range(keys.shape[0]):
        SP_PREFETCH(&table.slots[home(table, scatter(table, hash_key(keys[min(i + SLOTS_AHEAD, keys.shape[0] - 1)])))])
        place_for(table, hash_key(keys[i]))
    return 0
