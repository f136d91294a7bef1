cdef struct HalfLife:  # see half_life.py
    bint is_growing
    double growth  # of what an example counts, from one to the next
    double n_steady, short_loss, long_loss, least_loss, variance  # in the order of the fields


cdef inline double next_growth(const HalfLife* h) noexcept nogil:
    return min(h.growth, 1.0 + GROWTH / h.n_steady) if h.is_growing and h.n_steady > FIRST_STEADY else h.growth


cdef inline double note_loss(HalfLife* h, double loss) noexcept nogil:
    """The share of the evidence that is to be kept."""
    cdef double share, error
    if not h.is_growing:
        return 1.0
    h.n_steady += 1.0
    h.short_loss += (loss - h.short_loss) / min(h.n_steady, SHORT)
    h.long_loss += (loss - h.long_loss) / min(h.n_steady, LONG)
    h.variance += ((h.short_loss - h.long_loss) * (h.short_loss - h.long_loss) - h.variance) / min(h.n_steady, FIRST_STEADY)
    if h.n_steady <= FIRST_STEADY:
        h.least_loss = h.long_loss
        return 1.0
    h.least_loss = min(h.least_loss, h.long_loss)
    error = ERRORS * sqrt(h.variance)
    if h.short_loss <= h.least_loss + error and h.long_loss <= h.least_loss + error * sqrt(SHORT / LONG):
        return 1.0
    share, h.n_steady = FIRST_STEADY / h.n_steady, 0.0
    return share


cdef dict steadiness_places(const HalfLife* h):
    return number_places(&h.n_steady, half_life.STEADY) if h.is_growing else {}
