cdef double NEGLIGIBLE = kernel.NEGLIGIBLE
cdef double LARGEST_SIMILARITY = kernel.LARGEST_SIMILARITY
cdef double SMALLEST_SIMILARITY = kernel.SMALLEST_SIMILARITY
cdef int HALVINGS = kernel.HALVINGS
cdef double SAME = kernel.SAME

cdef enum:
    LINEAR
    POLYNOMIAL
    RBF
    COSINE


cdef struct Vector:
    uint64_t* hashes
    double* values
    Py_ssize_t n


cdef struct Uses:  # of a feature: in which support vectors it is, and with what value
    double* values
    int32_t* vectors
    Py_ssize_t n, capacity
    Py_ssize_t displaced  # how many are not in the support vector of their own number


cdef double value_of_mixture(double h, double share, double log_similarity) noexcept nogil:
    return share * exp(log_similarity * (1.0 - h) * (1.0 - h)) + (1.0 - share) * exp(log_similarity * h * h)


cdef double best_mixture(double share, double log_similarity) noexcept nogil:
    cdef double low = 0.0, high = 0.5, h
    cdef int i
    for i in range(HALVINGS):
        h = 0.5 * (low + high)
        if share * (1.0 - h) * exp(log_similarity * (1.0 - h) * (1.0 - h)) > (1.0 - share) * h * exp(log_similarity * h * h):
            low = h
        else:
            high = h
    return low


@cython.final
cdef class KernelLearner(Learner):
    """For each feature a list of its uses in the support vectors, so that an example meets only those that share one."""

    cdef readonly Py_ssize_t n_iterations
    cdef double _l2, _t0, _gamma, _coef0
    cdef int _kernel, _degree
    cdef Py_ssize_t _budget
    cdef bint _merge
    cdef const double[:, ::1] _losses
    cdef Table _table  # an entry points to the uses of its feature
    cdef Vector* _vectors
    cdef double* _betas  # and, of each support vector too:
    cdef double* _squares  # ⟨z, z⟩
    cdef double* _itself  # K(z, z)
    cdef double* _similarities  # of the example in hand to each support vector
    cdef double* _values  # of the example in hand
    cdef Py_ssize_t _n, _capacity, _similarities_capacity, _values_capacity
    cdef double _margin

    def __init__(
        self, double l2, double t0, str kernel_name, double gamma, double coef0, int degree, Py_ssize_t budget, bint merge
    ):
        self.arguments = (l2, t0, kernel_name, gamma, coef0, degree, budget, bool(merge))
        self.declaration = kernel.declared(budget)
        self._meets_unknown, self._margins = True, &self._margin
        self._l2, self._t0, self._gamma, self._coef0, self._degree = l2, t0, gamma, coef0, degree
        self._kernel = ["linear", "polynomial", "rbf", "cosine"].index(kernel_name)
        self._budget, self._merge = budget, merge
        self._losses = kernel.loss_table() if merge else np.empty((0, 0))
        if make_for(&self._table, 0, 2) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self._similarities)
        free(self._values)
        if not self._is_twin:
            self._clear()
            free_table(&self._table)
            free(self._vectors)
            free(self._betas)
            free(self._squares)
            free(self._itself)

    def __sizeof__(self):
        cdef Py_ssize_t i, n = 0
        for i in range(self._n):
            n += self._vectors[i].n
        return object.__sizeof__(self) + size_of(&self._table) + n * 32

    def negate(self):
        cdef Py_ssize_t i
        wait_for(self._guard, self._guard)
        for i in range(self._n):
            self._betas[i] = -self._betas[i]

    def get_state(self):
        cdef Py_ssize_t i, j, n = 0
        wait_for(self._guard, self._guard)
        for i in range(self._n):
            n += self._vectors[i].n
        coefficients, indptr = np.empty(self._n), np.zeros(self._n + 1, np.int64)
        keys, values = np.empty(n, np.int64), np.empty(n)
        cdef double[::1] b = coefficients, v = values
        cdef int64_t[::1] ends = indptr, k = keys
        n = 0
        for i in range(self._n):
            b[i] = self._betas[i]
            for j in range(self._vectors[i].n):
                k[n] = <int64_t> (self._vectors[i].hashes[j] * INVERSE_MULTIPLIER)
                v[n] = self._vectors[i].values[j]
                n += 1
            ends[i + 1] = n
        return {
            **self._calibration(),
            "n_iterations": self.n_iterations,
            "coefficients": coefficients,
            "indptr": indptr,
            "keys": keys,
            "values": values,
        }

    def set_state(self, state):
        cdef Py_ssize_t i, j, begin
        wait_for(self._guard, self._guard)
        cdef const double[::1] b = state["coefficients"], v = state["values"]
        cdef const int64_t[::1] ends = state["indptr"], k = state["keys"]
        cdef Vector x
        self._clear()
        for i in range(b.shape[0]):
            begin, x.n = ends[i], ends[i + 1] - ends[i]
            if allocate(&x, x.n) < 0:
                raise MemoryError
            for j in range(x.n):
                x.hashes[j], x.values[j] = hash_key(k[begin + j]), v[begin + j]
            if self._append(&x, square_of(&x), b[i]) < 0:
                raise MemoryError
        self._set_calibration(state)
        self.n_iterations = state["n_iterations"]

    cdef Learner _twin(self):
        cdef KernelLearner twin = KernelLearner.__new__(KernelLearner)
        if reserve(<void**> &twin._similarities, &twin._similarities_capacity, self._n, sizeof(double)) < 0:
            raise MemoryError
        twin._kernel, twin._gamma, twin._coef0, twin._degree = self._kernel, self._gamma, self._coef0, self._degree
        twin._l2, twin._t0, twin.n_iterations = self._l2, self._t0, self.n_iterations
        twin._table, twin._n, twin._betas, twin._squares = self._table, self._n, self._betas, self._squares
        twin._margins = &twin._margin
        return twin._as_twin(self)

    cdef void _clear(self) noexcept nogil:
        while self._n:
            self._remove(self._n - 1)

    cdef inline double _similarity(self, double product, double x_square, double z_square) noexcept nogil:
        cdef double lengths, base, power = 1.0
        cdef int i
        if self._kernel == RBF:
            return exp(-self._gamma * max(x_square + z_square - 2.0 * product, 0.0))
        if self._kernel == COSINE:
            lengths = sqrt(x_square) * sqrt(z_square)
            return product / lengths if lengths != 0.0 else 0.0
        if self._kernel == POLYNOMIAL:
            base = self._gamma * product + self._coef0
            for i in range(self._degree):
                power *= base
            return power
        return product

    cdef Py_ssize_t _n_features(self) noexcept nogil:
        return self._n

    cdef Py_ssize_t _n_held(self) noexcept nogil:
        return self._table.n

    cdef int _meet(self, Row* e) noexcept nogil:
        cdef Py_ssize_t i
        cdef double square = 0.0, itself
        cdef int status
        if reserve(<void**> &self._similarities, &self._similarities_capacity, self._n, sizeof(double)) < 0:
            return NO_MEMORY
        if reserve(<void**> &self._values, &self._values_capacity, e.n, sizeof(double)) < 0:
            return NO_MEMORY
        for i in range(e.n):
            self._values[i] = e.factor * e.values[i]
            square += self._values[i] * self._values[i]
        itself = self._similarity(square, square, square)
        if not fabs(itself) <= LARGEST_SIMILARITY:
            return NO_NUMBER
        status = self._compare(e.hashes, self._values, e.n, square)
        self._margin = 0.0
        if self._n:
            self._margin = sp_dot(self._betas, self._similarities, self._n) / (self._l2 * (self.n_iterations + self._t0))
        return status

    cdef int _compare(self, const uint64_t* hashes, const double* values, Py_ssize_t n, double square) noexcept nogil:
        """Fill `_similarities` with K(x, z) for every support vector z."""
        cdef double* products = self._similarities  # at first
        # Features that every support vector has, their values and those of the example, four at a time.
        cdef const double* rows[4]
        cdef double factors[4]
        cdef Py_ssize_t n_rows = 0
        cdef Py_ssize_t i, j, p
        cdef Uses* uses
        cdef double x
        cdef bint fine = True, dense
        if self._n:
            memset(products, 0, self._n * sizeof(double))
        for i in range(n):
            SP_PREFETCH(&self._table.words[home(&self._table, hashes[i])])
        for i in range(n):
            p = seek(&self._table, hashes[i])
            if self._table.words[p].hash == hashes[i]:
                uses = <Uses*> self._table.words[p + 1].pointer
                x = values[i]
                dense = uses.displaced == 0 and uses.n == self._n
                if dense:
                    rows[n_rows], factors[n_rows] = uses.values, x
                    n_rows += 1
                if n_rows == 4 or not dense:  # always in the order of the features, or copies of a model would differ
                    sp_add_scaled(products, rows, factors, n_rows, self._n)
                    n_rows = 0
                if not dense:
                    for j in range(uses.n):
                        products[uses.vectors[j]] += x * uses.values[j]
        sp_add_scaled(products, rows, factors, n_rows, self._n)
        if self._kernel == RBF:
            for j in range(self._n):
                products[j] = -self._gamma * max(square + self._squares[j] - 2.0 * products[j], 0.0)
            sp_exp(products, self._n)
            return 0
        for j in range(self._n):
            products[j] = self._similarity(products[j], square, self._squares[j])
            fine &= fabs(products[j]) <= LARGEST_SIMILARITY
        return 0 if fine else NO_NUMBER

    cdef int _learn(self, Encoder encoder, Row* e, double probability, double y, double weight) except RAISED nogil:
        self._calibrate(probability, y)
        self.n_iterations += 1
        if y * self._margin < 1.0 and weight > 0.0:
            encoder._keep(e)
            if self._add(e, weight * y) < 0:
                return NO_MEMORY
            if 0 < self._budget < self._n:
                return self._make_room()
        return 0

    cdef int _add(self, Row* e, double beta) noexcept nogil:
        cdef Py_ssize_t i
        cdef Vector x
        cdef double square
        if allocate(&x, e.n) < 0:
            return NO_MEMORY
        x.n = 0
        for i in range(e.n):
            if self._values[i] != 0.0:
                x.hashes[x.n], x.values[x.n] = e.hashes[i], self._values[i]
                x.n += 1
        square = square_of(&x)
        for i in range(self._n):
            if fabs(self._squares[i] - square) <= SAME * square and is_same(&self._vectors[i], &x):
                discard(&x)
                self._betas[i] += beta
                if self._betas[i] == 0.0:
                    self._remove(i)
                return 0
        return self._append(&x, square, beta)

    cdef int _append(self, Vector* x, double square, double beta) noexcept nogil:
        """Make x, whose memory is handed over, the last support vector."""
        cdef Py_ssize_t i, n = self._n
        if n == self._capacity and self._grow() < 0:
            discard(x)
            return NO_MEMORY
        self._vectors[n], self._betas[n], self._squares[n] = x[0], beta, square
        self._itself[n] = self._similarity(square, square, square)
        self._n = n + 1
        for i in range(x.n):
            if self._enter(x.hashes[i], n, x.values[i]) < 0:
                return NO_MEMORY
        return 0

    cdef int _grow(self) noexcept nogil:
        cdef Py_ssize_t capacity = self._capacity, needed = self._n + 1
        if reserve(<void**> &self._vectors, &capacity, needed, sizeof(Vector)) < 0:
            return -1
        capacity = self._capacity
        if reserve(<void**> &self._betas, &capacity, needed, sizeof(double)) < 0:
            return -1
        capacity = self._capacity
        if reserve(<void**> &self._squares, &capacity, needed, sizeof(double)) < 0:
            return -1
        capacity = self._capacity
        if reserve(<void**> &self._itself, &capacity, needed, sizeof(double)) < 0:
            return -1
        self._capacity = capacity
        return reserve(<void**> &self._similarities, &self._similarities_capacity, capacity, sizeof(double))

    cdef int _make_room(self) noexcept nogil:
        cdef Py_ssize_t i, least = 0
        cdef int status
        cdef double size, smallest = 0.0
        if self._merge:
            status = self._merge_two()
            if status != 0:
                return min(status, 0)
        for i in range(self._n):
            size = self._betas[i] * self._betas[i] * self._itself[i]
            if i == 0 or size < smallest:
                smallest = size
        # Rounding decides nothing: of those that are as small the first.
        while self._betas[least] * self._betas[least] * self._itself[least] > smallest * (1.0 + SAME):
            least += 1
        self._remove(least)
        return 0

    cdef int _merge_two(self) noexcept nogil:
        """1 if two have been merged, 0 if there are none."""
        cdef Py_ssize_t i, one = 0, best = -1
        cdef Vector* vectors = self._vectors
        cdef double* betas = self._betas
        cdef Vector mixed
        cdef double loss, least = 0.0, total, share, h, log_similarity, beta
        cdef int status
        for i in range(1, self._n):
            if fabs(betas[i]) < fabs(betas[one]):
                one = i
        status = self._compare(vectors[one].hashes, vectors[one].values, vectors[one].n, self._squares[one])
        if status < 0:
            return status
        for i in range(self._n):
            if i != one and betas[i] * betas[one] > 0.0:
                total = fabs(betas[i]) + fabs(betas[one])
                loss = total * total * self._look_up_loss(fabs(betas[one]) / total, self._similarities[i])
                if best < 0 or loss < least:
                    best, least = i, loss
        if best < 0:
            return 0
        total = fabs(betas[one]) + fabs(betas[best])
        share = fabs(betas[one]) / total
        log_similarity = log(max(self._similarities[best], SMALLEST_SIMILARITY))
        h = best_mixture(share, log_similarity)
        beta = copysign(total * value_of_mixture(h, share, log_similarity), betas[best])
        if self._mix(&mixed, h, &vectors[one], best) < 0:
            return NO_MEMORY
        betas[best], self._squares[best] = beta, square_of(&mixed)
        self._itself[best] = 1.0
        if self._replace(best, &mixed) < 0:
            return NO_MEMORY
        self._remove(one)
        return 1

    cdef int _mix(self, Vector* mixed, double h, const Vector* x, Py_ssize_t other) noexcept nogil:
        """h x + (1 − h) z, first the features of z, without those that have become negligible."""
        cdef const Vector* z = &self._vectors[other]
        cdef Py_ssize_t i, n = z.n
        cdef double largest = 0.0
        if allocate(mixed, z.n + x.n) < 0:
            return -1
        memcpy(mixed.hashes, z.hashes, n * sizeof(uint64_t))
        for i in range(z.n):
            # What x has of the feature is found below.
            mixed.values[i] = (1.0 - h) * z.values[i]
        for i in range(x.n):
            self._mix_in(mixed, &n, z, x.hashes[i], h * x.values[i])
        mixed.n = 0
        for i in range(n):
            largest = max(largest, fabs(mixed.values[i]))
        for i in range(n):
            if fabs(mixed.values[i]) > NEGLIGIBLE * largest:
                mixed.hashes[mixed.n], mixed.values[mixed.n] = mixed.hashes[i], mixed.values[i]
                mixed.n += 1
        return 0

    cdef void _mix_in(self, Vector* mixed, Py_ssize_t* n, const Vector* z, uint64_t h, double value) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(z.n):
            if z.hashes[i] == h:
                mixed.values[i] += value
                return
        mixed.hashes[n[0]], mixed.values[n[0]] = h, value
        n[0] += 1

    cdef double _look_up_loss(self, double share, double similarity) noexcept nogil:
        cdef Py_ssize_t rows = self._losses.shape[0] - 1, columns = self._losses.shape[1] - 1
        cdef double row = share * 2.0 * rows, column = similarity * columns
        cdef Py_ssize_t i = min(<Py_ssize_t> row, rows - 1), j = min(<Py_ssize_t> column, columns - 1)
        cdef double above, below
        row -= i
        column -= j
        above = (1.0 - column) * self._losses[i, j] + column * self._losses[i, j + 1]
        below = (1.0 - column) * self._losses[i + 1, j] + column * self._losses[i + 1, j + 1]
        return (1.0 - row) * above + row * below

    cdef int _enter(self, uint64_t h, Py_ssize_t vector, double value) noexcept nogil:
        cdef Py_ssize_t p = seek(&self._table, h)
        cdef Uses* uses
        if self._table.words[p].hash != h:
            uses = <Uses*> calloc(1, sizeof(Uses))
            p = insert(&self._table, p, h) if uses != NULL else -1
            if p < 0:
                free(uses)
                return NO_MEMORY
            self._table.words[p + 1].pointer = uses
        uses = <Uses*> self._table.words[p + 1].pointer
        if uses.n == uses.capacity and make_longer(uses) < 0:
            return NO_MEMORY
        uses.values[uses.n], uses.vectors[uses.n] = value, <int32_t> vector
        uses.displaced += uses.n != vector
        uses.n += 1
        return 0

    cdef void _take_out(self, uint64_t h, Py_ssize_t vector) noexcept nogil:
        cdef Py_ssize_t p = seek(&self._table, h), use
        cdef Uses* uses
        if self._table.words[p].hash != h:
            return  # there was no memory to enter it
        uses = <Uses*> self._table.words[p + 1].pointer
        use = find_use(uses, vector)
        if use < 0:
            return
        uses.n -= 1
        uses.values[use] = uses.values[uses.n]
        move_use(uses, use, uses.vectors[uses.n])
        uses.displaced -= uses.vectors[uses.n] != uses.n
        if uses.n == 0:
            free(uses.values)
            free(uses.vectors)
            free(uses)
            erase(&self._table, p)

    cdef int _replace(self, Py_ssize_t vector, Vector* mixed) noexcept nogil:
        """Put another support vector, whose memory is handed over, in the place of one."""
        cdef Vector old = self._vectors[vector]
        cdef Py_ssize_t i, use, p
        cdef Uses* uses
        self._vectors[vector] = mixed[0]
        for i in range(mixed.n):
            p = seek(&self._table, mixed.hashes[i])
            use = -1
            if self._table.words[p].hash == mixed.hashes[i]:
                uses = <Uses*> self._table.words[p + 1].pointer
                use = find_use(uses, vector)
                if use >= 0:
                    uses.values[use] = mixed.values[i]
            if use < 0 and self._enter(mixed.hashes[i], vector, mixed.values[i]) < 0:
                return NO_MEMORY
        for i in range(old.n):
            if not has_feature(mixed, old.hashes[i]):
                self._take_out(old.hashes[i], vector)
        discard(&old)
        return 0

    cdef void _remove(self, Py_ssize_t i) noexcept nogil:
        """The last one takes the place."""
        cdef Py_ssize_t last = self._n - 1, j
        cdef Uses* uses
        for j in range(self._vectors[i].n):
            self._take_out(self._vectors[i].hashes[j], i)
        discard(&self._vectors[i])
        self._n = last
        if i < last:
            self._vectors[i], self._betas[i] = self._vectors[last], self._betas[last]
            self._squares[i], self._itself[i] = self._squares[last], self._itself[last]
            for j in range(self._vectors[i].n):
                uses = <Uses*> self._table.words[seek(&self._table, self._vectors[i].hashes[j]) + 1].pointer
                move_use(uses, find_use(uses, last), <int32_t> i)


cdef double square_of(const Vector* x) noexcept nogil:
    cdef Py_ssize_t i
    cdef double square = 0.0
    for i in range(x.n):
        square += x.values[i] * x.values[i]
    return square


cdef bint is_same(const Vector* z, const Vector* x) noexcept nogil:
    """Whether they have the same features, in whichever order."""
    cdef Py_ssize_t i, j
    if z.n != x.n:
        return False
    for i in range(x.n):
        j = i  # where it is if the order is the same
        if z.hashes[j] != x.hashes[i]:
            j = 0
            while j < z.n and z.hashes[j] != x.hashes[i]:
                j += 1
            if j == z.n:
                return False
        if z.values[j] != x.values[i]:
            return False
    return True


cdef int make_longer(Uses* uses) noexcept nogil:
    cdef Py_ssize_t capacity = 2 * uses.capacity + 1
    cdef void* moved = realloc(uses.values, capacity * sizeof(double))
    if moved == NULL:
        return -1
    uses.values = <double*> moved
    moved = realloc(uses.vectors, capacity * sizeof(int32_t))
    if moved == NULL:
        return -1
    uses.vectors, uses.capacity = <int32_t*> moved, capacity
    return 0


cdef Py_ssize_t find_use(const Uses* uses, Py_ssize_t vector) noexcept nogil:
    cdef Py_ssize_t i
    if uses.displaced == 0:
        return vector if vector < uses.n else -1
    for i in range(uses.n):
        if uses.vectors[i] == vector:
            return i
    return -1


cdef void move_use(Uses* uses, Py_ssize_t use, int32_t vector) noexcept nogil:
    uses.displaced += (vector != use) - (uses.vectors[use] != use)
    uses.vectors[use] = vector


cdef bint has_feature(const Vector* x, uint64_t h) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(x.n):
        if x.hashes[i] == h:
            return True
    return False


cdef int allocate(Vector* x, Py_ssize_t n) noexcept nogil:
    x.hashes, x.values = <uint64_t*> malloc((n + 1) * sizeof(uint64_t)), <double*> malloc((n + 1) * sizeof(double))
    if x.hashes == NULL or x.values == NULL:
        discard(x)
        return -1
    return 0


cdef void discard(Vector* x) noexcept nogil:
    free(x.hashes)
    free(x.values)
