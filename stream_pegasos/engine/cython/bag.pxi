# The bag of words of one text: the distinct indices that its n-grams are hashed to, and how often each occurs.
cdef struct Bag:
    uint32_t n_features, index_mask  # the mask is 0 where n_features is no power of two
    bint alternate_sign, binary
    uint32_t* indices
    Py_ssize_t indices_capacity
    int32_t* counts  # not used if binary
    Py_ssize_t counts_capacity
    Py_ssize_t n
    # A table from index to its place in `indices`: (index + 1) << 32 | place, 0 where empty; if binary 32 bits with
    # index + 1 alone.
    uint64_t* positions
    uint32_t positions_mask  # of the part in use, as small as the text allows; all is empty between texts
    Py_ssize_t positions_capacity
    bint scattered  # whether the words of this text were chosen to crowd there


cdef enum:
    BATCH = 1024     # n-grams hashed at a time
    FEWEST_POSITIONS = 16
    CROWDED = 32     # slots that are looked at in vain for an n-gram; chance makes it less than one


cdef inline uint32_t bits_of(uint32_t index, bint scattered) noexcept nogil:
    """What the place of an index is taken from: if scattered nobody who does not know the secret can choose neighbours."""
    return <uint32_t> (index * SECRET >> 32) if scattered else index


cdef inline uint32_t index_of(const Bag* bag, uint32_t h) noexcept nogil:
    cdef uint32_t size = 0 - h if <int32_t> h < 0 else h
    return size & bag.index_mask if bag.index_mask or bag.n_features == 1 else size % bag.n_features


cdef int put_hashes(Bag* bag, const uint32_t* hashes, Py_ssize_t n) noexcept nogil:
    """Count the indices of at most BATCH hashes; -1 if there is no memory."""
    cdef Py_ssize_t n_steps
    if make_room(bag, n) < 0:
        return -1
    n_steps = mark_indices(bag, hashes, n) if bag.binary else count_indices(bag, hashes, n)
    if n_steps > CROWDED * BATCH and not bag.scattered:
        clear_positions(bag)
        bag.scattered = True
        fill_positions(bag)
    return 0


cdef Py_ssize_t count_indices(Bag* given, const uint32_t* hashes, Py_ssize_t n) noexcept nogil:
    """Count the indices of the hashes; how many slots were looked at in vain."""
    cdef Bag bag = given[0]  # a copy, or it would be read anew after each write
    cdef uint32_t n_distinct = bag.n, alternate = bag.alternate_sign
    cdef uint32_t index, slot, position, tag
    cdef uint64_t entry
    cdef Py_ssize_t n_steps = 0, i
    for i in range(n):
        index = index_of(&bag, hashes[i])
        tag = index + 1
        slot = bits_of(index, bag.scattered) & bag.positions_mask
        entry = bag.positions[slot]
        while (entry != 0) & (entry >> 32 != tag):
            n_steps += 1
            slot = (slot + 1) & bag.positions_mask
            entry = bag.positions[slot]
        # Whether the index is new is hard to predict, so nothing branches on it.
        position = <uint32_t> entry | (n_distinct & (0 - <uint32_t> (entry == 0)))
        bag.positions[slot] = <uint64_t> tag << 32 | position
        bag.indices[position] = index
        bag.counts[position] += 1 - 2 * <int32_t> (alternate & (hashes[i] >> 31))
        n_distinct += entry == 0
    given.n = n_distinct
    return n_steps


cdef Py_ssize_t mark_indices(Bag* given, const uint32_t* hashes, Py_ssize_t n) noexcept nogil:
    """Take in the indices that are not there yet, where nobody asks how often they are."""
    cdef Bag bag = given[0]
    cdef uint32_t* taken = <uint32_t*> bag.positions
    cdef uint32_t n_distinct = bag.n, index, slot
    cdef Py_ssize_t n_steps = 0, i
    for i in range(n):
        index = index_of(&bag, hashes[i])
        slot = bits_of(index, bag.scattered) & bag.positions_mask
        # While neither empty nor this index: a product, since which of the two it is is hard to predict.
        while <uint64_t> taken[slot] * (taken[slot] ^ (index + 1)):
            n_steps += 1
            slot = (slot + 1) & bag.positions_mask
        bag.indices[n_distinct] = index
        n_distinct += taken[slot] == 0
        taken[slot] = index + 1
    given.n = n_distinct
    return n_steps


cdef int make_room(Bag* bag, Py_ssize_t more) noexcept nogil:
    """Room for `more` distinct indices, with at least four positions for each."""
    cdef Py_ssize_t needed = bag.n + more + 1, size = bag.positions_mask + 1, before
    if needed > bag.counts_capacity:
        before = bag.counts_capacity
        if (
            reserve(<void**> &bag.indices, &bag.indices_capacity, needed, sizeof(uint32_t)) < 0
            or reserve(<void**> &bag.counts, &bag.counts_capacity, needed, sizeof(int32_t)) < 0
        ):
            return -1
        memset(bag.counts + before, 0, (bag.counts_capacity - before) * sizeof(int32_t))
    if needed * 4 > size:
        clear_positions(bag)
        while size < needed * 4:
            size *= 2
        if reserve_positions(bag, size) < 0:
            return -1
        fill_positions(bag)
    return 0


cdef int reserve_positions(Bag* bag, Py_ssize_t size) noexcept nogil:
    """Use that many positions, a power of two; all are empty before and after."""
    cdef Py_ssize_t before = bag.positions_capacity
    if reserve(<void**> &bag.positions, &bag.positions_capacity, size, sizeof(uint64_t)) < 0:
        return -1
    memset(bag.positions + before, 0, (bag.positions_capacity - before) * sizeof(uint64_t))
    bag.positions_mask = <uint32_t> (size - 1)
    return 0


cdef void fill_positions(Bag* bag) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint32_t slot
    for i in range(bag.n):
        slot = bits_of(bag.indices[i], bag.scattered) & bag.positions_mask
        if bag.binary:
            while (<uint32_t*> bag.positions)[slot]:
                slot = (slot + 1) & bag.positions_mask
            (<uint32_t*> bag.positions)[slot] = bag.indices[i] + 1
            continue
        while bag.positions[slot]:
            slot = (slot + 1) & bag.positions_mask
        bag.positions[slot] = <uint64_t> (bag.indices[i] + 1) << 32 | <uint64_t> i


cdef void clear_positions(Bag* bag) noexcept nogil:
    cdef size_t n = <size_t> bag.positions_mask + 1
    memset(bag.positions, 0, n * sizeof(uint32_t) if bag.binary else n * sizeof(uint64_t))


cdef void clear_bag(Bag* bag) noexcept nogil:
    """Make counts and positions ready for the next text; the indices stay, to be read."""
    if bag.n:
        memset(bag.counts, 0, bag.n * sizeof(int32_t))
    clear_positions(bag)
    bag.positions_mask, bag.scattered = FEWEST_POSITIONS - 1, False


cdef int release_positions(Bag* bag) noexcept nogil:
    """Give back what a huge text made the table grow to."""
    if bag.positions_capacity <= MOST_KEPT:
        return 0
    release(<void**> &bag.positions, &bag.positions_capacity)
    return reserve_positions(bag, FEWEST_POSITIONS)


cdef void free_bag(Bag* bag) noexcept nogil:
    free(bag.indices)
    free(bag.counts)
    free(bag.positions)
