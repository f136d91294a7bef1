cdef enum:  # reductions
    OF_RULE_OVR = TWO + 1
    MULTILABEL
    ORDINAL


cdef inline double rarity(Py_ssize_t n_classes, double counted, double n_examples) noexcept nogil:
    """The log-odds of a class met once in so many examples, less those of one among equals; 0 where it is no rarer."""
    return min(0.0, log(max(FIRST_COUNT * n_classes * counted / n_examples, LEAST_RARITY)))


cdef inline double bounded(double margin) noexcept nogil:
    return min(max(margin, -LARGEST_MARGIN_JOINED), LARGEST_MARGIN_JOINED)


cdef struct BinaryProblem:
    double intercept, squares, offset, offset_squares


# Classes become problems, each of which tells two things apart. Two classes are one problem, with a single column.
cdef struct Problems:
    int reduction
    bint hinge
    double largest_margin, scaling
    double n_examples
    Py_ssize_t n_classes, n, width  # and for how many classes there is room
    const int64_t* order  # of ordered classes, known or to come
    Py_ssize_t n_order
    BinaryProblem* terms
    double* class_counts
    Py_ssize_t* known_order
    # Of the current example, for each problem: the margin that predicts and the one before, what the example is to it, the
    # gradient, and a probability.
    double* margins
    double* raw
    double* signs
    double* gradients
    double* probabilities
    double* odds  # of each class, or of what stands above a problem: how often it is not, beside how often it is
    Py_ssize_t* active  # the columns with a gradient, and these gradients
    double* slopes
    Py_ssize_t n_active
    Py_ssize_t* places  # where a feature has some of these, and their gradients
    double* own_slopes
    Py_ssize_t* column_places  # where the feature has each column, if the column that stands there is that one
    double* own  # the margins of the features, where those that predict are joined with those of vectors
    double* joined  # the log-odds that these become
    double* numbers  # the memory of all these
    Py_ssize_t* memory  # of the order, and of what is known of columns in a step


cdef int make_room_for_problems(Problems* problems, Py_ssize_t n) noexcept nogil:
    """For as many classes; what is known stays, and the margins of the current example."""
    cdef Py_ssize_t width = max(n, problems.width + problems.width // 2), i
    cdef double* numbers
    cdef BinaryProblem* terms
    cdef Py_ssize_t* places
    if n <= problems.width:
        return 0
    numbers = <double*> calloc(11 * width + SP_LANES, sizeof(double))
    terms = <BinaryProblem*> calloc(width, sizeof(BinaryProblem))
    places = <Py_ssize_t*> calloc(4 * width, sizeof(Py_ssize_t))
    if numbers == NULL or terms == NULL or places == NULL:
        free(numbers)
        free(terms)
        free(places)
        return -1
    for i in range(problems.width):
        numbers[i], numbers[width + i] = problems.margins[i], problems.raw[i]
        numbers[6 * width + i], terms[i], places[i] = problems.class_counts[i], problems.terms[i], problems.known_order[i]
    free(problems.numbers)
    free(problems.terms)
    free(problems.memory)
    problems.numbers = problems.margins = numbers
    problems.raw, problems.signs, problems.gradients = numbers + width, numbers + 2 * width, numbers + 3 * width
    problems.probabilities, problems.odds = numbers + 4 * width, numbers + 10 * width  # and behind them stays 0
    problems.class_counts, problems.terms = numbers + 6 * width, terms
    problems.slopes, problems.own_slopes = numbers + 7 * width, numbers + 5 * width
    problems.own, problems.joined = numbers + 8 * width, numbers + 9 * width
    problems.memory = problems.known_order = places
    problems.active, problems.places, problems.column_places = places + width, places + 2 * width, places + 3 * width
    problems.width = width
    return 0


cdef int copy_problems(Problems* problems, const Problems* of) noexcept nogil:
    """Take over what predicts; -1 if there is no memory."""
    if make_room_for_problems(problems, of.width) < 0:
        return -1
    memcpy(problems.terms, of.terms, of.n * sizeof(BinaryProblem))
    memcpy(problems.known_order, of.known_order, of.n_classes * sizeof(Py_ssize_t))
    problems.reduction, problems.scaling = of.reduction, of.scaling
    problems.n_classes, problems.n = of.n_classes, of.n
    return 0


cdef void free_problems(Problems* problems) noexcept nogil:
    free(problems.terms)
    free(problems.numbers)
    free(problems.memory)


cdef inline Py_ssize_t n_summed(const Problems* problems) noexcept nogil:
    """How many columns of weights there are."""
    return 1 if shares_weights(problems) else problems.n_classes


cdef inline bint shares_weights(const Problems* problems) noexcept nogil:
    """Whether all problems do, which are in column 0."""
    return problems.reduction == ORDINAL or problems.reduction == TWO


cdef inline double base_margin(const Problems* problems) noexcept nogil:
    """What the margins begin with."""
    return 0.0 if shares_weights(problems) else -log(<double> max(problems.n_classes - 1, 1))


cdef inline double problem_intercept(const Problems* problems, Py_ssize_t i, double slope) noexcept nogil:
    return problems.scaling * problems.terms[i].intercept + problems.terms[i].offset / slope


cdef inline int side(const Problems* problems, Py_ssize_t number) noexcept nogil:
    """1 for the last of three ordered classes or more, −1 for the first, 0 for one between."""
    if problems.n_classes <= 2:
        return 0
    return (problems.known_order[problems.n_classes - 1] == number) - (problems.known_order[0] == number)


cdef void begin_rare(Problems* problems, double slope, double counted) noexcept nogil:
    """Have the newest class begin about as rare as it is; among ordered ones see the specification."""
    cdef Py_ssize_t last = problems.n_classes - 1
    cdef BinaryProblem* problem = &problems.terms[0 if side(problems, last) < 0 else problems.n - 1]
    cdef double rare = rarity(problems.n_classes, counted, problems.n_examples + counted)
    if problems.reduction != ORDINAL:
        problem.offset += rare
    elif side(problems, last):
        problem.offset += side(problems, last) * rare * (1.0 + BEYOND * slope)
        problem.offset_squares = 0.0


cdef inline void give_rarity_back(Problems* problems, double slope, Py_ssize_t number, double rare) noexcept nogil:
    cdef int end = side(problems, number)
    cdef BinaryProblem* problem = &problems.terms[0 if end < 0 else problems.n - 1 if end else number]
    if problems.reduction != ORDINAL:
        problem.offset = min(max(problem.offset, rare) - rare / 2.0, max(problem.offset, 0.0))
    elif end:
        problem.offset -= end * rare * BEYOND * slope / 2.0


cdef void add_class(Problems* problems) noexcept nogil:
    """The next class, for which there is room; a problem between ordered ones begins as the one that it stands beside."""
    cdef Py_ssize_t number = problems.n_classes, rank = 0, at, i, beside
    cdef double before = base_margin(problems)
    problems.class_counts[number] = 0.0
    problems.n_classes += 1
    if problems.reduction != ORDINAL:
        for i in range(number):
            problems.raw[i] += base_margin(problems) - before
        problems.raw[number] = base_margin(problems)
        problems.terms[number] = BinaryProblem(0.0, 0.0, 0.0, 0.0)
        problems.n += 1
        return
    # Both orders agree on those that are met.
    for i in range(problems.n_order):
        if problems.order[i] == number:
            break
        rank += rank < number and problems.order[i] == problems.known_order[rank]
    for i in range(number, rank, -1):
        problems.known_order[i] = problems.known_order[i - 1]
    problems.known_order[rank] = number
    if number:
        at = max(rank - 1, 0)
        beside = min(at, problems.n - 1)
        if problems.n == 0:
            problems.terms[0], problems.raw[0] = BinaryProblem(0.0, 0.0, 0.0, 0.0), 0.0
        else:
            for i in range(problems.n, beside, -1):
                problems.terms[i], problems.raw[i] = problems.terms[i - 1], problems.raw[i - 1]
        problems.n += 1


cdef void remove_class(Problems* problems) noexcept nogil:
    """The newest, of which nothing was learned yet."""
    cdef Py_ssize_t number = problems.n_classes - 1, rank = 0, i
    problems.n_classes = number
    problems.n = max(problems.n - 1, 0)
    if problems.reduction == ORDINAL:
        while problems.known_order[rank] != number:
            rank += 1
        for i in range(rank, number):
            problems.known_order[i] = problems.known_order[i + 1]
        for i in range(max(rank - 1, 0), problems.n if rank < number else 0):  # the last one is left behind
            problems.terms[i] = problems.terms[i + 1]


cdef inline void find_signs(Problems* problems, const int64_t* classes, Py_ssize_t n) noexcept nogil:
    """What the example is to each problem."""
    cdef Py_ssize_t i, rank
    for i in range(problems.n):
        problems.signs[i] = -1.0
    if shares_weights(problems):
        rank = 0
        while problems.known_order[rank] != classes[0]:
            problems.signs[rank] = 1.0
            rank += 1
    else:
        for i in range(n):
            problems.signs[classes[i]] = 1.0


cdef inline bint find_gradients(Problems* problems, double weight) noexcept nogil:
    """Whether the example is near enough to teach a problem."""
    cdef Py_ssize_t i
    cdef double sign, margin, limit
    cdef bint near = False
    problems.n_active = 0
    for i in range(problems.n):
        sign, margin, limit = problems.signs[i], problems.signs[i] * problems.raw[i], problems.largest_margin
        if sign < 0.0 and not shares_weights(problems):
            limit *= SHARE_OF_REST
        problems.gradients[i] = 0.0
        if margin <= limit:
            near = True
            if problems.hinge:
                problems.gradients[i] = -sign * weight if margin < 1.0 else 0.0
            else:
                problems.gradients[i] = -sign * weight * (1.0 / (1.0 + exp(min(margin, 700.0))))
        if problems.gradients[i] != 0.0:
            problems.active[problems.n_active] = i
            problems.n_active += 1
    return near


cdef void count_odds(Problems* problems, double smoothing) noexcept nogil:
    """How often an example is not of each class, beside how often it is; the inverse of what stands above a problem."""
    cdef double n = 0.0
    cdef Py_ssize_t i
    if smoothing == 0.0:
        return
    if problems.reduction == ORDINAL:
        for i in range(problems.n - 1, -1, -1):
            n += problems.class_counts[problems.known_order[i + 1]]
            problems.odds[i] = (n + smoothing) / (max(problems.n_examples - n, 0.0) + smoothing)
    else:
        for i in range(problems.n_classes):
            n = problems.class_counts[i]
            problems.odds[i] = (max(problems.n_examples - n, 0.0) + smoothing) / (n + smoothing)


cdef void weaken_problems(Problems* problems, double factor) noexcept nogil:
    """Write the evidence of all but the features down as what it counts now."""
    cdef Py_ssize_t i
    problems.n_examples /= factor
    for i in range(problems.n_classes):
        problems.class_counts[i] /= factor
    for i in range(problems.n):
        problems.terms[i].squares /= factor
