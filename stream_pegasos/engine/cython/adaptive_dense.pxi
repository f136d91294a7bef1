# What is learned of the vectors of messages, beside the problems of a reduction.


cdef inline void score_vector(const Problems* problems, sp_dense* dense, const Row* e) noexcept nogil:
    if dense.d:
        sp_score_vector(dense, e.vector, e.n_dimensions, 1.0 if problems.reduction == OF_RULE_OVR else 2.0)


cdef inline double vector_margin(const Problems* problems, const sp_dense* dense, Py_ssize_t problem) noexcept nogil:
    """The margin that the vector gives a problem."""
    return dense.margins[0 if shares_weights(problems) else problem]


cdef void join_margins(Problems* problems, const sp_dense* dense, double slope) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(problems.n):
        problems.own[i] = problems.raw[i] + problems.terms[i].offset / slope
        problems.joined[i] = dense.joint[0] * problems.own[i] + dense.joint[1] * vector_margin(problems, dense, i)
        problems.joined[i] = min(max(problems.joined[i], -LARGEST_JOINED), LARGEST_JOINED)


cdef void predict_problems(Problems* problems, sp_dense* dense, double slope) noexcept nogil:
    """The margins that predict; of ordered classes the logarithms of their probabilities."""
    cdef Py_ssize_t i
    cdef double above = 1.0, next_above, log_odds
    if dense.d:
        join_margins(problems, dense, slope)
    if problems.reduction != ORDINAL:
        for i in range(problems.n):
            if dense.d:
                problems.margins[i] = problems.joined[i] / slope
            else:
                problems.margins[i] = problems.raw[i] + problems.terms[i].offset / slope
        return
    for i in range(problems.n_classes):
        next_above = 0.0
        if i < problems.n:
            log_odds = slope * problems.raw[i] + problems.terms[i].offset
            next_above = sigmoid(problems.joined[i] if dense.d else log_odds)
        next_above = min(above, next_above)  # what is above a threshold can be no more than above the one before
        problems.margins[problems.known_order[i]] = log(max(above - next_above, 1e-300))
        above = next_above


cdef int make_block(const Problems* problems, sp_dense* dense, Calibration* calibration, const Row* e) noexcept nogil:
    """Make room for the classes that there are; −1 if there is no memory."""
    cdef Py_ssize_t n_rows = n_summed(problems)
    if dense.d:
        return sp_reserve_rows(dense, n_rows, problems.n_classes)
    if sp_make_dense(dense, e.n_dimensions, n_rows, problems.n_classes, FIRST_JOINT_WEIGHTS) < 0:
        return -1
    if problems.reduction == TWO:
        calibration.slope = 1.0  # from now on the weights of margins make log-odds of them
    score_vector(problems, dense, e)
    return 0


cdef void learn_vector(
    Problems* problems, sp_dense* dense, const Row* e, const int64_t* classes, Py_ssize_t n, Py_ssize_t n_known, double weight
) noexcept nogil:
    """Learn what the vector of a message of these classes tells; the first problems were known before."""
    weight = min(weight, LARGEST_CALIBRATION_WEIGHT)
    if n_known == problems.n or problems.reduction == MULTILABEL:
        learn_joint(problems, dense, n_known, weight)
    if dense.has_vector:
        learn_direction(problems, dense, e, classes, n, weight)


cdef void learn_joint(Problems* problems, sp_dense* dense, Py_ssize_t n, double weight) noexcept nogil:
    """One step of the weights of margins, over the first problems."""
    cdef double* p = problems.probabilities
    cdef double curvature[3]
    cdef double gradient[2]
    cdef double mean[2]
    cdef double own, other, error
    cdef bint is_softmax = problems.reduction == OF_RULE_OVR
    cdef Py_ssize_t i
    memset(curvature, 0, sizeof(curvature))
    memset(gradient, 0, sizeof(gradient))
    memset(mean, 0, sizeof(mean))
    for i in range(n):
        p[i] = dense.joint[0] * bounded(problems.own[i]) + dense.joint[1] * bounded(vector_margin(problems, dense, i))
    if is_softmax:
        find_softmax(p, n, 1.0, p)
    for i in range(n):
        if not is_softmax:
            p[i] = sigmoid(p[i])
            continue
        mean[0] += p[i] * bounded(problems.own[i])
        mean[1] += p[i] * bounded(vector_margin(problems, dense, i))
    for i in range(n):
        own, other = bounded(problems.own[i]) - mean[0], bounded(vector_margin(problems, dense, i)) - mean[1]
        error = p[i] if is_softmax else p[i] * (1.0 - p[i])
        curvature[0] += error * own * own
        curvature[1] += error * own * other
        curvature[2] += error * other * other
        error = (0.0 if is_softmax else p[i]) - (1.0 if problems.signs[i] > 0.0 else 0.0)
        gradient[0] += error * own
        gradient[1] += error * other
    sp_step_joint(dense, curvature, gradient, weight, JOINT_MEMORY, JOINT_PRECISION, LARGEST_JOINT_WEIGHT)


cdef void learn_direction(
    Problems* problems, sp_dense* dense, const Row* e, const int64_t* classes, Py_ssize_t n, double weight
) noexcept nogil:
    cdef double* p = problems.probabilities
    cdef double* errors = problems.own_slopes
    cdef double few = 0.5 * dense.evidence, above, error = 0.0, curvature = 0.0, least = 1.0, most = 0.0
    cdef Py_ssize_t i, n_classes = 2
    if problems.reduction == OF_RULE_OVR:
        n_classes = max(problems.n_classes, 2)
        for i in range(problems.n):
            p[i] = dense.margins[i] + SHARE_BESIDE * dense.joint[0] * problems.own[i]
        find_softmax(p, problems.n, 1.0, p)
        error, curvature = 1.0 - p[classes[0]], p[classes[0]] * (1.0 - p[classes[0]])
    else:
        above = 0.0
        for i in range(problems.n - 1, -1, -1):
            p[i] = vector_margin(problems, dense, i)
            if problems.reduction != TWO:
                above = dense.counts[problems.known_order[i + 1]] + above if problems.reduction == ORDINAL else dense.counts[i]
                p[i] += SHARE_BESIDE * dense.joint[0] * problems.own[i]
                p[i] += (1.0 - SHARE_BESIDE) * log((above + few) / (max(dense.n - above, 0.0) + few))
            p[i] = sigmoid(p[i])
            if problems.reduction == ORDINAL:
                curvature += p[i] * (1.0 - p[i])
                if problems.signs[i] > 0.0:
                    least = min(least, p[i])
                else:
                    most = max(most, p[i])
            else:
                curvature = max(curvature, p[i] * (1.0 - p[i]))
                error = max(error, fabs((1.0 if problems.signs[i] > 0.0 else 0.0) - p[i]))
        if problems.reduction == ORDINAL:
            error = 1.0 - (least - most)
        for i in range(n if problems.reduction != TWO else 0):
            dense.counts[classes[i]] += dense.evidence
    sp_count_vector(dense, e.vector)
    if error < SURE_BELOW:
        return
    errors[0] = 0.0
    for i in range(problems.n):
        error = (1.0 if problems.signs[i] > 0.0 else 0.0) - p[i]
        if problems.reduction == ORDINAL:
            errors[0] += error
        else:
            errors[i] = error
    sp_step_dense(dense, errors, n_classes * PRIOR_VARIANCE * weight, curvature, LEAST_SPREAD)


cdef double calibrate_problems(
    Problems* problems, const sp_dense* dense, Calibration* calibration, int64_t y, double weight
) noexcept nogil:
    """One step on the log loss of the class, or of each problem; what the probabilities lacked before, all together."""
    cdef Py_ssize_t i
    cdef double error, total = 0.0, loss = 0.0
    cdef double rate = ORDINAL_OFFSET_RATE if problems.reduction == ORDINAL else OFFSET_RATE
    cdef double first_squares = ORDINAL_OFFSET_SQUARES if problems.reduction == ORDINAL else OFFSET_SQUARES
    cdef const double* margins
    cdef BinaryProblem* problem
    if problems.reduction == OF_RULE_OVR:
        margins = problems.own if dense.d else problems.margins
        calibrate_class(calibration, y, margins, problems.raw, problems.n, problems.probabilities, weight)
        if dense.d:
            find_softmax(problems.joined, problems.n, 1.0, problems.own)
            learn_confidence(calibration, problems.own, problems.n, y, weight)
        else:
            learn_confidence(calibration, problems.probabilities, problems.n, y, weight)
    else:
        for i in range(problems.n):
            problems.probabilities[i] = sigmoid(calibration.slope * problems.raw[i] + problems.terms[i].offset)
            total += weight * (problems.probabilities[i] - (1.0 if problems.signs[i] > 0.0 else 0.0)) * problems.raw[i]
        descend(calibration, total)
    for i in range(problems.n):
        problem = &problems.terms[i]
        error = problems.probabilities[i] - (1.0 if problems.signs[i] > 0.0 else 0.0)
        loss += fabs(error)
        error *= weight
        problem.offset_squares += error * error
        problem.offset -= rate * error / sqrt(problem.offset_squares + first_squares)
    return 1.0 - problems.probabilities[y] if problems.reduction == OF_RULE_OVR else loss


cdef void forget_vectors(sp_dense* dense, double share) noexcept nogil:
    cdef Py_ssize_t i
    sp_weaken_dense(dense, dense.evidence / share)
    dense.evidence = 1.0
    for i in range(dense.n_rows * dense.d):
        dense.weights[i] = <float> (dense.weights[i] * sqrt(share))
    for i in range(3):
        dense.information[i] *= share


cdef dict block_places(const Problems* problems, sp_dense* dense):
    cdef Py_ssize_t d = dense.d, n_pairs = d * (d + 1) // 2
    if not d:
        return {}
    weights = view_of(dense.weights, dense.n_rows * d, records.SINGLE)
    places = {
        **number_places(&dense.n, adaptive_state.OF_BLOCK),
        "vector_mean": view_of(dense.mean, d, records.DOUBLE),
        "vector_covariance": view_of(dense.covariance, n_pairs, records.SINGLE),
        "vector_weights": weights if shares_weights(problems) else weights.reshape(dense.n_rows, d),
        "joint_weights": view_of(dense.joint, 2, records.DOUBLE),
        "joint_information": view_of(dense.information, 3, records.DOUBLE),
    }
    if problems.reduction == MULTILABEL or problems.reduction == ORDINAL:
        places["vector_counts"] = view_of(dense.counts, dense.n_classes, records.DOUBLE)
    return places


cdef int size_block(const Problems* problems, sp_dense* dense, state) except -1:
    """A block of the size that a state needs; none if it has none."""
    sp_free_dense(dense)
    if "vector_mean" not in state:
        return 0
    if sp_make_dense(dense, len(state["vector_mean"]), n_summed(problems), problems.n_classes, FIRST_JOINT_WEIGHTS) < 0:
        raise MemoryError
    return 0
