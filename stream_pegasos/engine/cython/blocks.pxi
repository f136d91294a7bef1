cdef struct Block:  # of examples that are made before the first of them is used
    Row* rows
    uint64_t* hashes  # those of one example after the other, each with room for the intercept
    double* values
    float* vectors  # one behind the other, where examples have any
    Py_ssize_t first, end  # the numbers of the examples
    Py_ssize_t n  # hashes
    Py_ssize_t rows_capacity, hashes_capacity, values_capacity, vectors_capacity
    bint ready, failed


cdef int begin_block(Block* block) noexcept nogil:
    block.n = 0
    return sp_reserve(&block.rows, &block.rows_capacity, block.end - block.first, sizeof(Row))


cdef inline int make_room_in(Block* block, Py_ssize_t n) noexcept nogil:
    """For an example of n features."""
    n += block.n + 1
    if sp_reserve(&block.hashes, &block.hashes_capacity, n, sizeof(uint64_t)) < 0:
        return -1
    return sp_reserve(&block.values, &block.values_capacity, n, sizeof(double))


cdef void end_block(Block* block) noexcept nogil:
    """Say where each example stands, which making the next ones may have moved."""
    cdef Py_ssize_t i, n = 0
    for i in range(block.end - block.first):
        block.rows[i].hashes, block.rows[i].values = block.hashes + n, block.values + n
        n += block.rows[i].n + 1


cdef void release_block(Block* block) noexcept nogil:
    sp_release(&block.rows, &block.rows_capacity)
    sp_release(&block.hashes, &block.hashes_capacity)
    sp_release(&block.values, &block.values_capacity)
    sp_release(&block.vectors, &block.vectors_capacity)


cdef void free_block(Block* block) noexcept nogil:
    free(block.rows)
    free(block.hashes)
    free(block.values)
    free(block.vectors)
