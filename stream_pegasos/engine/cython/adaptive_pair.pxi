# Two classes that share a column: a feature is a record of the table.


cdef struct Evidence:
    double unit  # the count of an example that is learned now
    uint32_t age  # how often the unit has begun anew
    double smoothing
    double prior  # of two classes, the log-count ratio of all examples


cdef struct FoundFeatures:  # of the current example
    Py_ssize_t* positions  # where they stand in the table
    double* values  # scaled
    double inverse_norm  # with one column, what the values are multiplied by
    sp_feature** pairs  # with one column, the records
    sp_feature unused  # in place of those that are not to be learned
    double* above  # what stands above and below in the largest of their count ratios
    double* below
    Py_ssize_t positions_capacity, values_capacity, pairs_capacity, above_capacity, below_capacity


cdef void free_found(FoundFeatures* found) noexcept nogil:
    free(found.positions)
    free(found.values)
    free(found.pairs)
    free(found.above)
    free(found.below)


cdef inline sp_feature* pair_at(const Table* table, Py_ssize_t position) noexcept nogil:
    return <sp_feature*> record_at(table, position)


cdef inline double pair_log_ratio(const Evidence* evidence, double positives, double negatives) noexcept nogil:
    cdef double smoothing = evidence.smoothing * evidence.unit
    return sp_log_of_ratio(positives + smoothing, negatives + smoothing) if smoothing != 0.0 else 0.0


cdef inline void find_prior(Evidence* evidence, const Problems* problems) noexcept nogil:
    evidence.prior = pair_log_ratio(evidence, problems.class_counts[1], problems.class_counts[0])


cdef double enlarge(FoundFeatures* found, Py_ssize_t n) noexcept nogil:
    """Make values larger, all alike, whose squares are nearly or wholly 0; the sum of their squares."""
    cdef Py_ssize_t i
    cdef double squares = 0.0
    for i in range(n):
        found.values[i] *= ENLARGED
        squares += found.values[i] * found.values[i]
    return squares


cdef int score_pair(const Table* table, Problems* problems, const Evidence* evidence, FoundFeatures* found, Row* e) noexcept nogil:
    """`positions` of `found` tells from then on where the features are, `values` what their scaled values are."""
    cdef Py_ssize_t i
    cdef double squares[4]
    cdef double margins[4]
    cdef double total
    if (
        sp_reserve(&found.positions, &found.positions_capacity, e.n, sizeof(Py_ssize_t)) < 0
        or sp_reserve(&found.pairs, &found.pairs_capacity, e.n, sizeof(sp_feature*)) < 0
    ):
        return NO_MEMORY
    for i in range(4):
        squares[i] = margins[i] = 0.0
    find_records(table, e, found.positions)
    for i in range(e.n):
        found.pairs[i] = pair_at(table, found.positions[i])
    sp_weigh(
        <const sp_feature**> found.pairs, e.values, found.values, e.n, evidence.smoothing != 0.0, LEAST_SCALE,
        evidence.prior, squares, margins,
    )
    total = (squares[0] + squares[1]) + (squares[2] + squares[3])
    if total < LEAST_SQUARED_NORM:
        total, margins[0], margins[1], margins[2], margins[3] = enlarge(found, e.n), 0.0, 0.0, 0.0, 0.0
        for i in range(e.n):
            margins[0] += found.values[i] * found.pairs[i].weight
    found.inverse_norm = 1.0 / sqrt(total) if total > 0.0 else 0.0
    total = found.inverse_norm * ((margins[0] + margins[1]) + (margins[2] + margins[3]))
    problems.margins[0] = problems.raw[0] = total + problems.scaling * problems.terms[0].intercept
    return 0


cdef void forget_pair(Table* table, const Problems* problems, Evidence* evidence, double share, double divisor) noexcept nogil:
    cdef Py_ssize_t i
    cdef sp_feature* feature
    find_prior(evidence, problems)
    for i in range(1, table.n + 1):
        feature = pair_at(table, i)
        sp_weaken(feature, evidence.age, divisor)
        feature.log_ratio = sp_single(pair_log_ratio(evidence, feature.positives, feature.negatives))
        feature.weight = sp_single(feature.weight * sqrt(share))


cdef int take_step_of_pair(
    Table* table, Problems* problems, Evidence* evidence, FoundFeatures* found, const Row* e, double learning_rate,
    double n_learned, bint positive, double weight,
) noexcept nogil:
    cdef Py_ssize_t* positions = found.positions
    cdef Py_ssize_t i
    cdef double fading = EMPHASIZED / (EMPHASIZED + n_learned)
    cdef double emphasis = 1.0 if e.is_even else 1.0 + EMPHASIS * sp_unevenness(e.values, e.n) * fading
    cdef sp_step step
    step.rate = learning_rate * emphasis * sqrt(evidence.unit)
    step.evidence, step.age = evidence.unit, evidence.age
    step.positive = weight * evidence.unit if positive else 0.0
    step.negative = 0.0 if positive else weight * evidence.unit
    step.smoothing = evidence.smoothing * evidence.unit * emphasis * emphasis
    step.halving = weight >= 1.0 and n_learned >= MOST_COUNTED
    for i in range(e.n):
        if positions[i] == 0 and e.values[i] != 0.0:
            positions[i] = place_for(table, e.hashes[i])
            if positions[i] < 0:
                return NO_MEMORY
            pair_at(table, positions[i]).age = evidence.age
    found.unused.age = evidence.age
    for i in range(e.n):  # again, since making room may have moved them
        found.pairs[i] = pair_at(table, positions[i]) if e.values[i] != 0.0 else &found.unused
    learn_intercept(problems, evidence, problems.gradients[0] * problems.scaling, &step)
    step.gradient = problems.gradients[0] * found.inverse_norm
    sp_learn(found.pairs, found.values, e.n, &step)
    return 0


cdef inline void learn_intercept(Problems* problems, Evidence* evidence, double gradient, const sp_step* step) noexcept nogil:
    cdef BinaryProblem* its = &problems.terms[0]
    cdef double square = gradient * gradient
    if square > 0.0:
        its.squares += step.evidence * square
        its.intercept -= step.rate * gradient / sqrt(its.squares)
    problems.class_counts[1] += step.positive
    problems.class_counts[0] += step.negative
    find_prior(evidence, problems)
