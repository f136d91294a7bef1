cdef double DENSE = numeric.DENSE, TABLE = numeric.TABLE, LARGE = numeric.LARGE, FIRST_EXAMPLES = numeric.FIRST_EXAMPLES
cdef double LARGEST_SCALED = numeric.LARGEST_SCALED, CONSTANT = numeric.CONSTANT


cdef inline double value_in(object x, name) except? -1.0:
    """The value of a feature, 0 where it is absent."""
    cdef PyObject* found = PyDict_GetItemWithError(x, name)
    if found == NULL:
        return 0.0
    if type(<object> found) is float and fabs(PyFloat_AS_DOUBLE(<object> found)) <= VALUE_LIMIT:
        return PyFloat_AS_DOUBLE(<object> found)
    return check_value(name, <object> found)


def learn_moments(x not None, list names not None, double[:, ::1] moments not None, double n, double weight):
    cdef Py_ssize_t place
    cdef double value, difference
    for place in range(min(len(names), moments.shape[1])):
        value = value_in(x, names[place])
        difference = value - moments[1, place]
        moments[0, place] += weight * (value != 0.0)
        moments[1, place] += difference * (weight / (n + weight))
        moments[2, place] = max(moments[2, place] + weight * difference * (value - moments[1, place]), 0.0)


def find_numeric(const double[:, ::1] moments not None, double n, double n_values):
    cdef Py_ssize_t place
    cdef double total = 0.0
    cdef bint is_table
    if n < FIRST_EXAMPLES:
        return []
    for place in range(moments.shape[1]):
        total += moments[0, place] if moments[0, place] >= DENSE * n else 0.0
    is_table = total >= TABLE * n_values
    return [
        place for place in range(moments.shape[1]) if moments[0, place] >= DENSE * n and (
            is_table or moments[1, place] * moments[1, place] + moments[2, place] / n > LARGE * LARGE
        )
    ]


def standardize(x not None, list names not None, list places not None, const double[:, ::1] moments not None, double n):
    cdef Py_ssize_t place
    cdef double value, difference, deviation, least
    made = x.copy()
    for place in places:
        name = names[place]
        try:
            value = value_in(x, name)
        except (TypeError, ValueError):
            continue
        made.pop(name, None)
        difference, deviation = value - moments[1, place], sqrt(moments[2, place] / n)
        least = CONSTANT * fabs(moments[1, place])
        if deviation > least:
            made[name] = min(max(difference / deviation, -LARGEST_SCALED), LARGEST_SCALED)
        elif fabs(difference) > least:
            made[name] = LARGEST_SCALED if difference > 0.0 else -LARGEST_SCALED
        else:
            made[name] = 1.0 if value != 0.0 else 0.0
    return made
