/* Weights for the vectors of messages, with one covariance of all classes: see pure/dense.py. */

#ifndef STREAM_PEGASOS_DENSE_H
#define STREAM_PEGASOS_DENSE_H

#include <math.h>

#include "simd.h"

typedef struct {
    ptrdiff_t d, n_rows, n_classes; /* numbers of a vector, 0 where there is no block; rows of weights */
    double n, evidence;
    double *mean, *counts;
    float *covariance; /* the lower half, row by row */
    float *weights;
    double joint[2], information[3];
    /* Of the current message: whether it has a vector, its direction, what the covariance makes of it, and the margin of
       each row. */
    int has_vector;
    float *x, *px;
    double *margins;
    ptrdiff_t weights_capacity, counts_capacity, margins_capacity;
    int is_view; /* of what another block knows */
} sp_dense;

/* Sums are taken in eight lanes, so that all processors give the same bits. */
SP_INLINE float sp_sum_of_lanes(const float *s) { return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])); }

static float sp_dot_portable(const float *a, const float *b, ptrdiff_t n) {
    float s[8] = {0.0f};
    for (ptrdiff_t i = 0; i < n; i++) s[i & 7] += a[i] * b[i];
    return sp_sum_of_lanes(s);
}

static void sp_add_times_portable(float *to, const float *x, float factor, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] += factor * x[i];
}

/* Of four rows, over n columns: their products with x, and y + the sum of rows · factors. */
static void sp_multiply_four_portable(const float *const *rows, const float *x, const float *factors, float *y,
                                      float *products, ptrdiff_t n) {
    float s[4][8] = {{0.0f}};
    for (ptrdiff_t j = 0; j < n; j++) {
        for (int k = 0; k < 4; k++) s[k][j & 7] += rows[k][j] * x[j];
        y[j] += (rows[0][j] * factors[0] + rows[1][j] * factors[1]) + (rows[2][j] * factors[2] + rows[3][j] * factors[3]);
    }
    for (int k = 0; k < 4; k++) products[k] = sp_sum_of_lanes(s[k]);
}

#if defined(SP_AVX2)
static SP_TARGET_AVX2 float sp_dot_avx2(const float *a, const float *b, ptrdiff_t n) {
    float s[8];
    __m256 sums = _mm256_setzero_ps();
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8) sums = _mm256_add_ps(sums, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    _mm256_storeu_ps(s, sums);
    for (; i < n; i++) s[i & 7] += a[i] * b[i];
    return sp_sum_of_lanes(s);
}

static SP_TARGET_AVX2 void sp_add_times_avx2(float *to, const float *x, float factor, ptrdiff_t n) {
    const __m256 f = _mm256_set1_ps(factor);
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(to + i), _mm256_mul_ps(f, _mm256_loadu_ps(x + i))));
    for (; i < n; i++) to[i] += factor * x[i];
}

static SP_TARGET_AVX2 void sp_multiply_four_avx2(const float *const *rows, const float *x, const float *factors, float *y,
                                                 float *products, ptrdiff_t n) {
    const __m256 f0 = _mm256_set1_ps(factors[0]), f1 = _mm256_set1_ps(factors[1]), f2 = _mm256_set1_ps(factors[2]),
                 f3 = _mm256_set1_ps(factors[3]);
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    float s[4][8];
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8) {
        const __m256 a = _mm256_loadu_ps(rows[0] + j), b = _mm256_loadu_ps(rows[1] + j), c = _mm256_loadu_ps(rows[2] + j),
                     d = _mm256_loadu_ps(rows[3] + j), of = _mm256_loadu_ps(x + j);
        s0 = _mm256_add_ps(s0, _mm256_mul_ps(a, of)), s1 = _mm256_add_ps(s1, _mm256_mul_ps(b, of));
        s2 = _mm256_add_ps(s2, _mm256_mul_ps(c, of)), s3 = _mm256_add_ps(s3, _mm256_mul_ps(d, of));
        _mm256_storeu_ps(y + j, _mm256_add_ps(_mm256_loadu_ps(y + j),
                                              _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(a, f0), _mm256_mul_ps(b, f1)),
                                                            _mm256_add_ps(_mm256_mul_ps(c, f2), _mm256_mul_ps(d, f3)))));
    }
    _mm256_storeu_ps(s[0], s0), _mm256_storeu_ps(s[1], s1), _mm256_storeu_ps(s[2], s2), _mm256_storeu_ps(s[3], s3);
    for (; j < n; j++) {
        for (int k = 0; k < 4; k++) s[k][j & 7] += rows[k][j] * x[j];
        y[j] += (rows[0][j] * factors[0] + rows[1][j] * factors[1]) + (rows[2][j] * factors[2] + rows[3][j] * factors[3]);
    }
    for (int k = 0; k < 4; k++) products[k] = sp_sum_of_lanes(s[k]);
}
#endif
#define sp_dot SP_BETTER(sp_dot)
#define sp_add_times SP_BETTER(sp_add_times)
#define sp_multiply_four SP_BETTER(sp_multiply_four)

/* y ← P x, four rows at a time, so that y is read and written less often. */
static void sp_multiply(const float *triangle, const float *x, float *y, ptrdiff_t d) {
    const float *row = triangle;
    ptrdiff_t i = 0;
    for (; i + 4 <= d; row += 4 * i + 10, i += 4) {
        const float *rows[4] = {row, row + i + 1, row + 2 * i + 3, row + 3 * i + 6};
        sp_multiply_four(rows, x, x + i, y, y + i, i);
        for (ptrdiff_t k = 0; k < 4; k++) {
            for (ptrdiff_t j = i; j < i + k; j++) y[i + k] += rows[k][j] * x[j], y[j] += rows[k][j] * x[i + k];
            y[i + k] += rows[k][i + k] * x[i + k];
        }
    }
    for (; i < d; row += ++i) {
        y[i] = sp_dot(row, x, i + 1);
        sp_add_times(y, row, x[i], i);
    }
}

/* P ← P − factor y y′ */
static void sp_subtract_square(float *triangle, const float *y, double factor, ptrdiff_t d) {
    float *row = triangle;
    for (ptrdiff_t i = 0; i < d; row += ++i) sp_add_times(row, y, (float)-(factor * y[i]), i + 1);
}

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
    if (sp_reserve(&block->weights, &block->weights_capacity, n_rows * block->d, sizeof(float)) < 0
        || sp_reserve(&block->counts, &block->counts_capacity, n_classes, sizeof(double)) < 0
        || sp_reserve(&block->margins, &block->margins_capacity, n_rows, sizeof(double)) < 0)
        return -1;
    for (; block->n_rows < n_rows; block->n_rows++) {
        memset(block->weights + block->n_rows * block->d, 0, (size_t)block->d * sizeof(float));
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
    block->covariance = (float *)calloc((size_t)n_pairs, sizeof(float));
    block->x = (float *)calloc((size_t)d, sizeof(float));
    block->px = (float *)calloc((size_t)d, sizeof(float));
    if (!block->mean || !block->covariance || !block->x || !block->px || sp_reserve_rows(block, n_rows, n_classes) < 0) {
        sp_free_dense(block);
        return -1;
    }
    for (ptrdiff_t i = 0; i < d; i++) block->covariance[i * (i + 1) / 2 + i] = 1.0f;
    block->evidence = 1.0;
    block->joint[0] = joint[0], block->joint[1] = joint[1];
    return 0;
}

/* A view of a block, which predicts as that does; −1 if there is no memory. */
static int sp_view_dense(sp_dense *view, const sp_dense *block) {
    *view = *block;
    view->is_view = 1;
    view->margins_capacity = 0;
    view->x = (float *)calloc((size_t)block->d, sizeof(float));
    view->px = NULL, view->margins = NULL;
    if (!view->x || sp_reserve(&view->margins, &view->margins_capacity, block->n_rows, sizeof(double)) < 0) return -1;
    return 0;
}

/* Find the direction of a message, 0 where it has no vector, and the margins of all rows. */
static void sp_score_vector(sp_dense *block, const float *vector, ptrdiff_t d, double factor) {
    double squares = 0.0, inverse;
    block->has_vector = 0;
    for (ptrdiff_t i = 0; i < d && d == block->d; i++) block->has_vector |= vector[i] != 0.0f;
    for (ptrdiff_t i = 0; i < block->d; i++) {
        const double centred = block->has_vector ? vector[i] - block->mean[i] : 0.0;
        squares += centred * centred;
    }
    inverse = squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
    for (ptrdiff_t i = 0; i < block->d; i++)
        block->x[i] = block->has_vector ? (float)((vector[i] - block->mean[i]) * inverse) : 0.0f;
    for (ptrdiff_t i = 0; i < block->n_rows; i++)
        block->margins[i] = factor * sp_dot(block->weights + i * block->d, block->x, block->d);
}

/* Move the mean towards a vector. */
static void sp_count_vector(sp_dense *block, const float *vector) {
    double share;
    block->n += block->evidence;
    share = 1.0 / (block->n / block->evidence + 1.0);
    for (ptrdiff_t i = 0; i < block->d; i++) block->mean[i] += share * (vector[i] - block->mean[i]);
}

/* One step of Newton's method, given of each row what it is wrong by; none where less variance is left than `least`. */
static void sp_step_dense(sp_dense *block, const double *errors, double variance, double curvature, double least) {
    double spread, gain;
    sp_multiply(block->covariance, block->x, block->px, block->d);
    variance *= block->evidence;
    spread = sp_dot(block->x, block->px, block->d);
    if (!(spread >= least)) return;
    gain = variance / (1.0 + variance * curvature * spread);
    sp_subtract_square(block->covariance, block->px, curvature * gain, block->d);
    for (ptrdiff_t i = 0; i < block->n_rows; i++)
        if (errors[i] != 0.0) sp_add_times(block->weights + i * block->d, block->px, (float)(errors[i] * gain), block->d);
}

/* By which a variance grows: none beyond that of the prior, each by itself, as a number that never varies stays there. */
static double sp_growth_of(const sp_dense *block, ptrdiff_t i, double factor) {
    const double variance = block->covariance[i * (i + 1) / 2 + i];
    return variance * factor <= 1.0 ? factor : variance < 1.0 ? 1.0 / variance : 1.0;
}

/* Write all evidence down as what it counts now. */
static void sp_weaken_dense(sp_dense *block, double factor) {
    block->evidence /= factor;
    block->n /= factor;
    for (ptrdiff_t i = 0; i < block->n_classes; i++) block->counts[i] /= factor;
    /* Variances last: those of rows to come are still as they were. */
    for (ptrdiff_t i = block->d - 1; i >= 0; i--) {
        float *row = block->covariance + i * (i + 1) / 2;
        const double growth = sp_growth_of(block, i, factor);
        for (ptrdiff_t j = 0; j < i; j++) row[j] = (float)(row[j] * sqrt(growth * sp_growth_of(block, j, factor)));
        row[i] = (float)(row[i] * growth);
    }
}

/* Have the next message count so much more than those before. */
static void sp_fade_dense(sp_dense *block, double growth) {
    block->evidence *= growth;
    if (block->evidence >= 2.0) sp_weaken_dense(block, 2.0);
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
