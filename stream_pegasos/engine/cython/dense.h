/* Weights for the vectors of messages, with one covariance of all classes: see pure/dense.py. */

#ifndef STREAM_PEGASOS_DENSE_H
#define STREAM_PEGASOS_DENSE_H

#include <math.h>

#include "simd.h"

typedef struct {
    ptrdiff_t d, n_rows, n_classes; /* numbers of a vector, 0 where there is no block; rows of weights */
    double n;
    double *mean, *covariance; /* the lower half, row by row */
    double *weights, *counts;
    double joint[2], information[3];
    /* Of the current message: its direction, what the covariance makes of it, and the margin of each row. */
    double *x, *px, *margins;
    ptrdiff_t weights_capacity, counts_capacity, margins_capacity;
    int is_view; /* of what another block knows */
} sp_dense;

/* Sums are taken in eight lanes, so that all processors give the same bits. */
SP_INLINE double sp_dot_by(const double *a, const double *b, ptrdiff_t n) {
    double s[8] = {0.0};
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) s[j] += a[i + j] * b[i + j];
    for (; i < n; i++) s[i & 7] += a[i] * b[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

SP_INLINE void sp_add_times_by(double *to, const double *x, double factor, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] += factor * x[i];
}

/* y ← P x */
SP_INLINE void sp_multiply_by(const double *triangle, const double *x, double *y, ptrdiff_t d) {
    const double *row = triangle;
    for (ptrdiff_t i = 0; i < d; row += ++i) {
        y[i] = sp_dot_by(row, x, i + 1);
        sp_add_times_by(y, row, x[i], i);
    }
}

/* P ← P − factor y y′ */
SP_INLINE void sp_subtract_square_by(double *triangle, const double *y, double factor, ptrdiff_t d) {
    double *row = triangle;
    for (ptrdiff_t i = 0; i < d; row += ++i) sp_add_times_by(row, y, -(factor * y[i]), i + 1);
}

SP_INLINE void sp_find_dots_by(const double *rows, const double *x, double *out, ptrdiff_t n, ptrdiff_t d) {
    for (ptrdiff_t i = 0; i < n; i++) out[i] = sp_dot_by(rows + i * d, x, d);
}

SP_INLINE void sp_add_rows_by(double *rows, const double *x, const double *factors, ptrdiff_t n, ptrdiff_t d) {
    for (ptrdiff_t i = 0; i < n; i++)
        if (factors[i] != 0.0) sp_add_times_by(rows + i * d, x, factors[i], d);
}

#define SP_IN_BOTH_WAYS(name, parameters, arguments) \
    static void name##_portable parameters { name##_by arguments; } \
    SP_WITH_AVX2(static SP_TARGET_AVX2 void name##_avx2 parameters { name##_by arguments; })
#if defined(SP_AVX2)
#define SP_WITH_AVX2(definition) definition
#else
#define SP_WITH_AVX2(definition)
#endif
SP_IN_BOTH_WAYS(sp_multiply, (const double *triangle, const double *x, double *y, ptrdiff_t d), (triangle, x, y, d))
SP_IN_BOTH_WAYS(sp_subtract_square, (double *triangle, const double *y, double factor, ptrdiff_t d), (triangle, y, factor, d))
SP_IN_BOTH_WAYS(sp_find_dots, (const double *rows, const double *x, double *out, ptrdiff_t n, ptrdiff_t d), (rows, x, out, n, d))
SP_IN_BOTH_WAYS(sp_add_rows, (double *rows, const double *x, const double *factors, ptrdiff_t n, ptrdiff_t d), (rows, x, factors, n, d))
#define sp_multiply SP_BETTER(sp_multiply)
#define sp_subtract_square SP_BETTER(sp_subtract_square)
#define sp_find_dots SP_BETTER(sp_find_dots)
#define sp_add_rows SP_BETTER(sp_add_rows)

static void sp_free_dense(sp_dense *block) {
    if (!block->is_view) {
        free(block->mean);
        free(block->covariance);
        free(block->weights);
        free(block->counts);
    }
    free(block->x);
    free(block->px);
    free(block->margins);
    memset(block, 0, sizeof *block);
}

/* Room for so many rows and classes, which begin with zeros; −1 if there is no memory. */
static int sp_reserve_rows(sp_dense *block, ptrdiff_t n_rows, ptrdiff_t n_classes) {
    if (sp_reserve(&block->weights, &block->weights_capacity, n_rows * block->d, sizeof(double)) < 0
        || sp_reserve(&block->counts, &block->counts_capacity, n_classes, sizeof(double)) < 0
        || sp_reserve(&block->margins, &block->margins_capacity, n_rows, sizeof(double)) < 0)
        return -1;
    for (; block->n_rows < n_rows; block->n_rows++) {
        memset(block->weights + block->n_rows * block->d, 0, (size_t)block->d * sizeof(double));
        block->margins[block->n_rows] = 0.0;
    }
    for (; block->n_classes < n_classes; block->n_classes++) block->counts[block->n_classes] = 0.0;
    return 0;
}

/* A block that knows nothing; −1 if there is no memory. */
static int sp_make_dense(sp_dense *block, ptrdiff_t d, ptrdiff_t n_rows, ptrdiff_t n_classes, const double *joint) {
    const ptrdiff_t n_pairs = d * (d + 1) / 2;
    memset(block, 0, sizeof *block);
    block->d = d;
    block->mean = (double *)calloc((size_t)d, sizeof(double));
    block->covariance = (double *)calloc((size_t)n_pairs, sizeof(double));
    block->x = (double *)calloc((size_t)d, sizeof(double));
    block->px = (double *)calloc((size_t)d, sizeof(double));
    if (!block->mean || !block->covariance || !block->x || !block->px || sp_reserve_rows(block, n_rows, n_classes) < 0) {
        sp_free_dense(block);
        return -1;
    }
    for (ptrdiff_t i = 0; i < d; i++) block->covariance[i * (i + 1) / 2 + i] = 1.0;
    block->joint[0] = joint[0], block->joint[1] = joint[1];
    return 0;
}

/* A view of a block, which predicts as that does; −1 if there is no memory. */
static int sp_view_dense(sp_dense *view, const sp_dense *block) {
    *view = *block;
    view->is_view = 1;
    view->margins_capacity = 0;
    view->x = (double *)calloc((size_t)block->d + 1, sizeof(double));
    view->px = view->margins = NULL;
    if (!view->x || sp_reserve(&view->margins, &view->margins_capacity, block->n_rows, sizeof(double)) < 0) return -1;
    return 0;
}

/* Find the direction of a message, 0 where it has no vector, and the margins of all rows. */
static void sp_meet_vector(sp_dense *block, const float *vector, ptrdiff_t d, double factor) {
    double norm = 0.0;
    int is_there = 0;
    for (ptrdiff_t i = 0; i < d && d == block->d; i++) is_there |= vector[i] != 0.0f;
    for (ptrdiff_t i = 0; i < block->d; i++) block->x[i] = is_there ? vector[i] - block->mean[i] : 0.0;
    norm = sqrt(sp_dot_by(block->x, block->x, block->d));
    for (ptrdiff_t i = 0; norm != 0.0 && i < block->d; i++) block->x[i] /= norm;
    sp_find_dots(block->weights, block->x, block->margins, block->n_rows, block->d);
    for (ptrdiff_t i = 0; factor != 1.0 && i < block->n_rows; i++) block->margins[i] *= factor;
}

/* Move the mean towards a vector. */
static void sp_count_vector(sp_dense *block, const float *vector) {
    block->n += 1.0;
    for (ptrdiff_t i = 0; i < block->d; i++) block->mean[i] += (vector[i] - block->mean[i]) / (block->n + 1.0);
}

/* One step of Newton's method, given of each row what it is wrong by. */
static void sp_step_dense(sp_dense *block, const double *errors, double variance, double curvature) {
    double spread, gain;
    sp_multiply(block->covariance, block->x, block->px, block->d);
    spread = sp_dot_by(block->x, block->px, block->d);
    gain = variance / (1.0 + variance * curvature * (spread > 0.0 ? spread : 0.0));
    for (ptrdiff_t i = 0; i < block->n_rows; i++) block->margins[i] = errors[i] * gain;
    sp_subtract_square(block->covariance, block->px, curvature * gain, block->d);
    sp_add_rows(block->weights, block->px, block->margins, block->n_rows, block->d);
}

/* Have what was learned count so much less; no variance grows beyond that of the prior. */
static void sp_fade_dense(sp_dense *block, double kept) {
    double largest = 0.0, factor;
    block->n *= kept;
    for (ptrdiff_t i = 0; i < block->n_classes; i++) block->counts[i] *= kept;
    for (ptrdiff_t i = 0; i < block->d; i++) {
        const double variance = block->covariance[i * (i + 1) / 2 + i];
        largest = variance > largest ? variance : largest;
    }
    factor = largest * (1.0 / kept) <= 1.0 ? 1.0 / kept : 1.0 / largest;
    for (ptrdiff_t i = 0; factor > 1.0 && i < block->d * (block->d + 1) / 2; i++) block->covariance[i] *= factor;
}

/* One step of the two weights of margins, given the sums of their curvatures and gradients. */
static void sp_step_joint(sp_dense *block, const double *curvature, const double *gradient, double weight, double memory,
                          const double *precision, double largest) {
    double *known = block->information, a, b, c, determinant, steps[2];
    for (int i = 0; i < 3; i++) known[i] = memory * known[i] + weight * curvature[i];
    a = known[0] + precision[0], b = known[1], c = known[2] + precision[1];
    determinant = fmax(a * c - b * b, precision[0] * precision[1]); /* which it is, but for rounding */
    steps[0] = (c * gradient[0] - b * gradient[1]) / determinant;
    steps[1] = (a * gradient[1] - b * gradient[0]) / determinant;
    for (int i = 0; i < 2; i++) {
        const double moved = block->joint[i] - weight * steps[i];
        block->joint[i] = moved < 0.0 ? 0.0 : moved > largest ? largest : moved;
    }
}

#endif
