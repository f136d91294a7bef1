cdef struct Calibration:  # see `Calibration` of the specification; in the order of its fields
    double slope, squares
    double confidence_intercept, confidence_slope
    double confidence_intercept_squares, confidence_slope_squares


cdef inline double sigmoid(double log_odds) noexcept nogil:
    return 1.0 / (1.0 + exp(-min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)))


cdef inline void find_softmax(const double* margins, Py_ssize_t n, double slope, double* probabilities) noexcept nogil:
    """The softmax of slope · margins."""
    cdef double largest = margins[0], total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        largest = max(largest, margins[i])
    for i in range(n):
        probabilities[i] = exp(slope * (margins[i] - largest))
        total += probabilities[i]
    for i in range(n):
        probabilities[i] /= total


cdef inline double confidence_step(double gradient, double* squares) noexcept nogil:
    squares[0] = CALIBRATION_MEMORY * squares[0] + gradient * gradient
    return CONFIDENCE_RATE * gradient / sqrt(squares[0]) if fabs(gradient) >= SMALLEST_GRADIENT else 0.0


cdef inline double probability_of_margin(const Calibration* calibration, double margin) noexcept nogil:
    cdef double p = sigmoid(calibration.slope * margin)
    return max(p, 0.5 + 1.1102230246251565e-16) if margin > 0.0 else p


cdef inline void calibrate(Calibration* calibration, double margin, double probability, double y, double weight) noexcept nogil:
    """One step on the log loss of the label y = ±1."""
    descend(calibration, -y * margin * (1.0 - probability if y > 0.0 else probability) * weight)


cdef void calibrate_class(
    Calibration* calibration, Py_ssize_t y, const double* margins, const double* moved, Py_ssize_t n, double* probabilities,
    double weight,
) noexcept nogil:
    """One step on the log loss of class y, whose probability is the softmax of slope · margins; these probabilities.
    Only what `moved` says of the margins grows with the slope.
    """
    cdef Py_ssize_t c
    cdef double expected = 0.0
    find_softmax(margins, n, calibration.slope, probabilities)
    for c in range(n):
        expected += probabilities[c] * (moved[c] - moved[y])
    descend(calibration, expected * weight)


cdef void learn_confidence(
    Calibration* calibration, const double* probabilities, Py_ssize_t n, Py_ssize_t y, double weight
) noexcept nogil:
    """One step on the log loss of whether the most probable of several classes is right; none where two are equally
    probable, to rounding.
    """
    cdef Py_ssize_t c, top = 0, n_same = 0
    cdef double log_odds, error
    for c in range(1, n):
        if probabilities[c] > probabilities[top]:
            top = c
    for c in range(n):
        n_same += probabilities[c] >= AS_LIKELY * probabilities[top]
    if n < 2 or n_same > 1:
        return
    log_odds = min(log(probabilities[top] / max(1.0 - probabilities[top], 1e-300)), LARGEST_LOG_ODDS)
    error = sigmoid(calibration.confidence_intercept + calibration.confidence_slope * log_odds) - (1.0 if top == y else 0.0)
    error *= weight
    calibration.confidence_intercept -= confidence_step(error, &calibration.confidence_intercept_squares)
    calibration.confidence_slope -= confidence_step(error * log_odds, &calibration.confidence_slope_squares)
    calibration.confidence_slope = max(calibration.confidence_slope, LEAST_CONFIDENCE_SLOPE)


cdef inline void descend(Calibration* calibration, double gradient) noexcept nogil:
    cdef double slope
    gradient = min(max(calibration.slope * gradient, -LARGEST_GRADIENT), LARGEST_GRADIENT)
    if fabs(gradient) >= SMALLEST_GRADIENT:
        calibration.squares = CALIBRATION_MEMORY * calibration.squares + gradient * gradient
        slope = calibration.slope * (1.0 - CALIBRATION_RATE * gradient / sqrt(calibration.squares))
        calibration.slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)


cdef inline void halve_slope(Calibration* calibration) noexcept nogil:
    """As the margins of two classes are twice as far apart as their column says."""
    calibration.slope = max(calibration.slope / 2.0, SMALLEST_SLOPE)
    calibration.confidence_intercept, calibration.confidence_slope = 0.0, 1.0
    # What a step of the slope was taken over is what one of the confidence is: (error · log-odds)².
    calibration.confidence_intercept_squares = calibration.confidence_slope_squares = calibration.squares


cdef dict calibration_places(const Calibration* calibration, bint by_class):
    return number_places(calibration, (*driver.CALIBRATION, *driver.CONFIDENCE) if by_class else driver.CALIBRATION)
