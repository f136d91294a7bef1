/* The adaptive rule where a feature has a column a class: many columns at a time where the processor can. All ways do the same
   operations in the same order, so that they agree to the last bit. */

#ifndef STREAM_PEGASOS_ADAPTIVE_COLUMNS_H
#define STREAM_PEGASOS_ADAPTIVE_COLUMNS_H

#include "adaptive_pair.h"

/* The columns of a feature of several classes are a block of memory, which begins at `begin`, in pieces of SP_PIECE numbers,
   and has the size of number `size`. If it is `dense`, it has the weights, squares and counts of the columns from 0 to n; else
   the numbers of n columns, their weights, squares and counts, each with some `room`. */
#define SP_PIECE 4

/* What the features of an example have in common. */
typedef struct {
    double rate, evidence, inverse_evidence, first_squares;
} sp_move;

SP_INLINE float *sp_weights(float *numbers, const sp_columns *f) {
    return numbers + SP_PIECE * (size_t)f->begin + (f->dense ? 0 : f->room);
}
SP_INLINE float *sp_squares(float *numbers, const sp_columns *f) { return sp_weights(numbers, f) + f->room; }
SP_INLINE float *sp_counts(float *numbers, const sp_columns *f) { return sp_weights(numbers, f) + 2 * (size_t)f->room; }
SP_INLINE uint32_t *sp_numbers(float *numbers, const sp_columns *f) {
    return (uint32_t *)(numbers + SP_PIECE * (size_t)f->begin);
}

/* Have the first lines fetched of n numbers, which the processor then goes on with by itself. */
SP_INLINE void sp_fetch_some(const float *numbers, size_t n) {
    const size_t line = 16;
    for (size_t i = 0; i < n && i < 4 * line; i += line) SP_PREFETCH(numbers + i);
}

/* Have fetched what predicts, before a feature is scored; and the rest of it, before it is learned. */
SP_INLINE void sp_fetch_weights(float *numbers, const sp_columns *f) {
    sp_fetch_some(numbers + SP_PIECE * (size_t)f->begin, (f->dense ? 1 : 2) * (size_t)f->room);
}
SP_INLINE void sp_fetch_evidence(float *numbers, const sp_columns *f) {
    const size_t n = f->dense ? f->n : 2 * (size_t)f->room;
    sp_fetch_some(sp_squares(numbers, f), n);
    if (f->dense) sp_fetch_some(sp_counts(numbers, f), n);
}

/* The same of the columns of a feature. */
static void sp_weaken_columns(float *numbers, sp_columns *feature, uint32_t age, double divisor) {
    const double factor = sp_factor_of_age(age - feature->age);
    float *squares = sp_squares(numbers, feature), *counts = sp_counts(numbers, feature);
    feature->age = age;
    SP_AGEING_OF_SEVERAL(SP_AGE_NUMBER)
    for (size_t i = 0; i < feature->n; i++) {
        squares[i] = sp_single(squares[i] * factor / divisor);
        counts[i] = sp_single(counts[i] * factor / divisor);
    }
}

/* Take over the numbers that a feature has with two classes and with several. */
#define SP_COPY_NUMBER(number) to->number = from->number;

static void sp_copy_numbers(sp_columns *to, const sp_feature *from) {
    (void)to, (void)from; /* there may be none */
    SP_OF_EITHER(SP_COPY_NUMBER)
}

/* Add to n sums what a feature of that value makes of them. */
SP_INLINE void sp_add_some(double *sums, size_t n, float *numbers, const sp_columns *f, double value) {
    const uint32_t *of = sp_numbers(numbers, f);
    const float *weights = sp_weights(numbers, f);
    for (size_t i = 0; i < f->n; i++)
        if (of[i] < n) sums[of[i]] += weights[i] * value;
}

SP_INLINE void sp_add_all(double *sums, size_t i, size_t n, const float *weights, double value) {
    for (; i < n; i++) sums[i] += weights[i] * value;
}

#define SP_FETCHED_AHEAD 12 /* features */

#define SP_ADD_UP_BODY(ADD_ALL)                                                                          \
    for (size_t k = 0; k < n_features && k < SP_FETCHED_AHEAD; k++)                                      \
        sp_fetch_weights(numbers, features + positions[k]);                                              \
    for (size_t k = 0; k < n_features; k++) {                                                            \
        if (k + SP_FETCHED_AHEAD < n_features)                                                           \
            sp_fetch_weights(numbers, features + positions[k + SP_FETCHED_AHEAD]);                       \
        const sp_columns *f = features + positions[k];                                                   \
        if (f->dense)                                                                                    \
            ADD_ALL(sums, 0, f->n < n ? f->n : n, sp_weights(numbers, f), values[k]);                    \
        else                                                                                             \
            sp_add_some(sums, n, numbers, f, values[k]);                                                 \
    }

static void sp_add_up_portable(double *sums, size_t n, float *numbers, const sp_columns *features,
                               const ptrdiff_t *positions, const double *values, size_t n_features) {
    SP_ADD_UP_BODY(sp_add_all)
}

/* One step for n of the columns: those with these indices, which have these gradients for a value of 1. */
SP_INLINE void sp_move_one(float *weight, float *squares, double gradient, const sp_move *move) {
    const double sum = *squares = sp_single(*squares + move->evidence * (gradient * gradient));
    *weight = sp_single(*weight - move->rate * gradient / sqrt(sum * move->inverse_evidence + move->first_squares));
}

static void sp_move_columns_portable(float *weights, float *squares, const ptrdiff_t *at, const double *gradients,
                                     size_t n, double value, const sp_move *move) {
    for (size_t i = 0; i < n; i++) sp_move_one(weights + at[i], squares + at[i], gradients[i] * value, move);
}

/* The largest quotient of c · odds and the rest of `all`, each count with `smoothing` added, over the counts c above 0, and of
   1: what stands above and what stands below. Each lane takes every eighth column. */
#define SP_LANES 8

SP_INLINE void sp_compare_odds(double count, double odds, double all, double smoothing, double *above, double *below) {
    const double rest = all - count, a = (count + smoothing) * odds, b = (rest > 0.0 ? rest : 0.0) + smoothing;
    if (count > 0.0 && a * *below > *above * b) *above = a, *below = b;
}

/* The larger lane of each two that are four apart, then of two of these that are two apart, then of the last two. */
SP_INLINE void sp_largest_lane(double *lanes_above, double *lanes_below, double *above, double *below) {
    for (size_t half = SP_LANES / 2; half; half /= 2)
        for (size_t i = 0, k = half; i < half; i++, k++)
            if (lanes_above[k] * lanes_below[i] > lanes_above[i] * lanes_below[k])
                lanes_above[i] = lanes_above[k], lanes_below[i] = lanes_below[k];
    *above = lanes_above[0], *below = lanes_below[0];
}

/* Of the n columns with these numbers. */
static void sp_find_odds_of_some_portable(const float *counts, const uint32_t *of, const double *odds, size_t n, double all,
                                          double smoothing, double *above, double *below) {
    double lanes_above[SP_LANES], lanes_below[SP_LANES];
    for (size_t i = 0; i < SP_LANES; i++) lanes_above[i] = lanes_below[i] = 1.0;
    for (size_t i = 0; i < n; i++)
        sp_compare_odds(counts[i], odds[of[i]], all, smoothing, lanes_above + i % SP_LANES, lanes_below + i % SP_LANES);
    sp_largest_lane(lanes_above, lanes_below, above, below);
}

/* Of the columns from 0 to n. After n odds there are SP_LANES more, which are 0. */
static void sp_find_odds_portable(const float *counts, const double *odds, size_t n, double all, double smoothing,
                                  double *above, double *below) {
    double lanes_above[SP_LANES], lanes_below[SP_LANES];
    for (size_t i = 0; i < SP_LANES; i++) lanes_above[i] = lanes_below[i] = 1.0;
    for (size_t i = 0; i < n; i++)
        sp_compare_odds(counts[i], odds[i], all, smoothing, lanes_above + i % SP_LANES, lanes_below + i % SP_LANES);
    sp_largest_lane(lanes_above, lanes_below, above, below);
}

static void sp_logs_of_ratios_portable(double *above, const double *below, size_t n) {
    for (size_t i = 0; i < n; i++) above[i] = sp_log_of_ratio(above[i], below[i]);
}

#if defined(SP_AVX2)
SP_INLINE SP_TARGET_AVX2 void sp_add_all_avx2(double *sums, size_t i, size_t n, const float *weights, double value) {
    for (; i + 4 <= n; i += 4) {
        const __m256d added = _mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(weights + i)), _mm256_set1_pd(value));
        _mm256_storeu_pd(sums + i, _mm256_add_pd(_mm256_loadu_pd(sums + i), added));
    }
    sp_add_all(sums, i, n, weights, value);
}

SP_TARGET_AVX2 static void sp_add_up_avx2(double *sums, size_t n, float *numbers, const sp_columns *features,
                                          const ptrdiff_t *positions, const double *values, size_t n_features) {
    SP_ADD_UP_BODY(sp_add_all_avx2)
}

SP_TARGET_AVX2 static void sp_move_columns_avx2(float *weights, float *squares, const ptrdiff_t *at,
                                                const double *gradients, size_t n, double value, const sp_move *move) {
    const __m256d evidence = _mm256_set1_pd(move->evidence), inverse = _mm256_set1_pd(move->inverse_evidence);
    const __m256d first = _mm256_set1_pd(move->first_squares), rate = _mm256_set1_pd(move->rate);
    size_t i = 0;
    for (; i + 2 <= n; i += 4) { /* with three left, or two, one column stands there again, with the same numbers */
        const size_t last = n - i < 4 ? n - i - 1 : 3, third = last < 2 ? last : 2;
        const ptrdiff_t to[4] = {at[i], at[i + 1], at[i + third], at[i + last]};
        const __m256d slopes = _mm256_setr_pd(gradients[i], gradients[i + 1], gradients[i + third], gradients[i + last]);
        const __m256d gradient = _mm256_mul_pd(slopes, _mm256_set1_pd(value));
        const __m128 before = _mm_setr_ps(squares[to[0]], squares[to[1]], squares[to[2]], squares[to[3]]);
        const __m128 weight = _mm_setr_ps(weights[to[0]], weights[to[1]], weights[to[2]], weights[to[3]]);
        const __m128 sum = sp_single4(
            _mm256_add_pd(_mm256_cvtps_pd(before), _mm256_mul_pd(evidence, _mm256_mul_pd(gradient, gradient))));
        const __m256d root = _mm256_sqrt_pd(_mm256_add_pd(_mm256_mul_pd(_mm256_cvtps_pd(sum), inverse), first));
        const __m256d change = _mm256_div_pd(_mm256_mul_pd(rate, gradient), root);
        const __m128 moved = sp_single4(_mm256_sub_pd(_mm256_cvtps_pd(weight), change));
        float s[4], w[4];
        _mm_storeu_ps(s, sum);
        _mm_storeu_ps(w, moved);
        for (int j = 0; j < 4; j++) squares[to[j]] = s[j], weights[to[j]] = w[j];
    }
    for (; i < n; i++) sp_move_one(weights + at[i], squares + at[i], gradients[i] * value, move);
}

#define SP_COMPARE_ODDS(count4, odds4, above4, below4)                                                           \
    {                                                                                                            \
        const __m256d count = count4, a = _mm256_mul_pd(_mm256_add_pd(count, more), odds4);                      \
        const __m256d b = _mm256_add_pd(_mm256_max_pd(_mm256_sub_pd(all4, count), zero), more);                  \
        const __m256d larger = _mm256_and_pd(                                                                    \
            _mm256_cmp_pd(count, zero, _CMP_GT_OQ),                                                              \
            _mm256_cmp_pd(_mm256_mul_pd(a, below4), _mm256_mul_pd(above4, b), _CMP_GT_OQ));                      \
        above4 = _mm256_blendv_pd(above4, a, larger);                                                            \
        below4 = _mm256_blendv_pd(below4, b, larger);                                                            \
    }
#define SP_FIND_ODDS_BODY(COMPARE)                                                                               \
    const __m256d zero = _mm256_setzero_pd(), one = _mm256_set1_pd(1.0);                                         \
    const __m256d all4 = _mm256_set1_pd(all), more = _mm256_set1_pd(smoothing);                                  \
    __m256d above0 = one, below0 = one, above1 = one, below1 = one;                                              \
    for (size_t i = 0; i < n; i += SP_LANES) {                                                                   \
        COMPARE(i, above0, below0)                                                                               \
        COMPARE(i + 4, above1, below1)                                                                           \
    }                                                                                                            \
    sp_largest_of_eight(above0, below0, above1, below1, above, below);

SP_INLINE SP_TARGET_AVX2 void sp_largest_of_eight(__m256d above0, __m256d below0, __m256d above1, __m256d below1,
                                                  double *above, double *below) {
    const __m256d second = _mm256_cmp_pd(_mm256_mul_pd(above1, below0), _mm256_mul_pd(above0, below1), _CMP_GT_OQ);
    const __m256d a = _mm256_blendv_pd(above0, above1, second), b = _mm256_blendv_pd(below0, below1, second);
    const __m128d a0 = _mm256_castpd256_pd128(a), a1 = _mm256_extractf128_pd(a, 1);
    const __m128d b0 = _mm256_castpd256_pd128(b), b1 = _mm256_extractf128_pd(b, 1);
    const __m128d upper = _mm_cmpgt_pd(_mm_mul_pd(a1, b0), _mm_mul_pd(a0, b1));
    const __m128d a2 = _mm_blendv_pd(a0, a1, upper), b2 = _mm_blendv_pd(b0, b1, upper);
    const __m128d a3 = _mm_unpackhi_pd(a2, a2), b3 = _mm_unpackhi_pd(b2, b2);
    const __m128d last = _mm_cmpgt_pd(_mm_mul_pd(a3, b2), _mm_mul_pd(a2, b3));
    _mm_store_sd(above, _mm_blendv_pd(a2, a3, last));
    _mm_store_sd(below, _mm_blendv_pd(b2, b3, last));
}

SP_TARGET_AVX2 static void sp_find_odds_avx2(const float *counts, const double *odds, size_t n, double all,
                                             double smoothing, double *above, double *below) {
#define COMPARE(at, above4, below4) \
    SP_COMPARE_ODDS(_mm256_cvtps_pd(_mm_loadu_ps(counts + (at))), _mm256_loadu_pd(odds + (at)), above4, below4)
    SP_FIND_ODDS_BODY(COMPARE)
#undef COMPARE
}

/* A lane past the last column takes a count of 0, and the odds of column 0. */
SP_TARGET_AVX2 static void sp_find_odds_of_some_avx2(const float *counts, const uint32_t *of, const double *odds, size_t n,
                                                     double all, double smoothing, double *above, double *below) {
    const __m128i lanes = _mm_setr_epi32(0, 1, 2, 3);
#define COMPARE(at, above4, below4)                                                                              \
    {                                                                                                            \
        const __m128i within = _mm_cmpgt_epi32(_mm_set1_epi32((int)n - (int)(at)), lanes);                       \
        const __m128i numbers = _mm_maskload_epi32((const int *)(of + (at)), within);                            \
        SP_COMPARE_ODDS(_mm256_cvtps_pd(_mm_maskload_ps(counts + (at), within)),                                 \
                        _mm256_i32gather_pd(odds, numbers, 8), above4, below4)                                   \
    }
    SP_FIND_ODDS_BODY(COMPARE)
#undef COMPARE
}

SP_TARGET_AVX2 static void sp_logs_of_ratios_avx2(double *above, const double *below, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_pd(above + i, sp_log_of_ratio4(_mm256_loadu_pd(above + i), _mm256_loadu_pd(below + i)));
    for (; i < n; i++) above[i] = sp_log_of_ratio(above[i], below[i]);
}
#endif
#define sp_add_up SP_BETTER(sp_add_up)
#define sp_move_columns SP_BETTER(sp_move_columns)
#define sp_find_odds SP_BETTER(sp_find_odds)
#define sp_find_odds_of_some SP_BETTER(sp_find_odds_of_some)
#define sp_logs_of_ratios SP_BETTER(sp_logs_of_ratios)

#endif
