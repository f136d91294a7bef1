cdef void find_probabilities(const double* margins, Py_ssize_t n, const double* calibrated, double* found) noexcept nogil:
    """The probabilities of classes; see the specification."""
    cdef Py_ssize_t c, top = -1, n_known = 0, n_alike = 0
    cdef double largest = -INFINITY, total = 0.0, second = 0.0, log_odds = LARGEST_LOG_ODDS, confidence
    for c in range(n):
        n_known += margins[c] > -INFINITY
        if margins[c] > largest:
            largest, top = margins[c], c
    if top < 0:
        memset(found, 0, n * sizeof(double))
        return
    for c in range(n):
        found[c] = exp(calibrated[0] * (margins[c] - largest))
        n_alike += found[c] >= AS_LIKELY
        total += found[c]
    if n_alike > 1 or n_known == 1:
        for c in range(n):
            found[c] /= total
        return
    found[top] = total = 0.0
    for c in range(n):
        total += found[c]
    if total != 0.0:
        log_odds = min(-log(total), LARGEST_LOG_ODDS)
    else:
        for c in range(n):
            found[c] = -INFINITY < margins[c] < largest
            total += found[c]
    for c in range(n):
        second = max(second, found[c])
    confidence = max(sigmoid(calibrated[1] + calibrated[2] * log_odds), second / (total + second) + 2.220446049250313e-16)
    for c in range(n):
        found[c] = found[c] / total * (1.0 - confidence)
    found[top] = confidence


def probabilities_one(margins, calibrated):
    cdef double[3] calibration
    cdef double[2] of_two, found_of_two
    cdef double[::1] rows, made
    calibration[0], calibration[1], calibration[2] = calibrated
    if type(margins) is list and len(<list> margins) == 2:  # by far the most frequent, and an array would take longer
        of_two[0], of_two[1] = (<list> margins)[0], (<list> margins)[1]
        find_probabilities(of_two, 2, calibration, found_of_two)
        return [found_of_two[0], found_of_two[1]]
    rows = np.array(margins, np.float64)
    found = np.empty(len(rows))
    made = found
    if len(rows):
        find_probabilities(&rows[0], len(rows), calibration, &made[0])
    return found.tolist()


def probabilities_many(const double[:, :] margins not None, const double[:, ::1] calibrated not None):
    cdef Py_ssize_t i, n = margins.shape[0], n_classes = margins.shape[1]
    cdef const double[:, ::1] rows = np.ascontiguousarray(margins)
    cdef double[:, ::1] made
    found = np.empty((n, n_classes))
    if calibrated.shape[0] != n or calibrated.shape[1] != 3:
        raise ValueError(f"there are margins of {n} examples, but calibrations of others")
    made = found
    with nogil:
        for i in range(n if n_classes else 0):
            find_probabilities(&rows[i, 0], n_classes, &calibrated[i, 0], &made[i, 0])
    return found
