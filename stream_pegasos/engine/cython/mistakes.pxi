cdef enum:
    N_MISTAKES = 128
    SMALLEST = -8
    MOST_NEWEST = 1 << 15


cdef struct Mistakes:  # of the newest negative and positive examples: see the specification
    double n[2]
    double sizes[2][N_MISTAKES]


cdef inline void count_mistake(Mistakes* mistakes, double margin, bint sign, double weight) noexcept nogil:
    """Take note of the size of a margin on the wrong side, of an example of that sign."""
    cdef double* sizes = mistakes.sizes[sign]
    cdef int exponent = 0
    cdef double place = 16.0 * frexp(fabs(margin), &exponent) - 8.0
    cdef Py_ssize_t i, first
    if (margin < 0.0) if sign else (margin > 0.0):
        place += 8.0 * (exponent - SMALLEST)
        if place < 0.0:
            sizes[0] += weight * ldexp(fabs(margin), 1 - SMALLEST)
        else:
            first = min(<Py_ssize_t> place, <Py_ssize_t> (N_MISTAKES - 2))
            place = min(place - first, 1.0)
            sizes[first] += weight * (1.0 - place)
            sizes[first + 1] += weight * place
    mistakes.n[sign] += weight
    if mistakes.n[sign] >= MOST_NEWEST:
        mistakes.n[sign] /= 2.0
        for i in range(N_MISTAKES):
            sizes[i] /= 2.0


cdef dict mistakes_places(const Mistakes* newest):
    sizes = [view_of(newest.sizes[sign], N_MISTAKES, records.DOUBLE) for sign in range(2)]
    return number_places(newest.n, mistakes.MISTAKES[:2]) | dict(zip(mistakes.COUNTS[2:], sizes))
