/* The adaptive rule over the features of an example, four at a time where the processor can. All ways do the same operations
   in the same order, so that they agree to the last bit. */

#ifndef STREAM_PEGASOS_ADAPTIVE_PAIR_H
#define STREAM_PEGASOS_ADAPTIVE_PAIR_H

#include <math.h>
#include <stddef.h>
#include "records.h"
#include "simd.h"

/* A record of a feature is half a line of the cache. `age` tells at which evidence that was written which ages. Numbers that
   are read at a time must stand together, and both records in the same table. */
#define SP_REQUIRE(name, condition) typedef char sp_requires_##name[(condition) ? 1 : -1]
#define SP_FOLLOWS(number, before) (offsetof(sp_feature, number) == offsetof(sp_feature, before) + sizeof(float))
SP_REQUIRE(two_numbers, SP_FOLLOWS(log_ratio, weight));
SP_REQUIRE(four_numbers, SP_FOLLOWS(positives, squares) && SP_FOLLOWS(negatives, positives) && SP_FOLLOWS(age, negatives));
SP_REQUIRE(one_size, sizeof(sp_feature) == sizeof(sp_columns));

/* What the features of an example have in common: see `_take_step` in pure/adaptive.py. */
typedef struct {
    double gradient, rate, evidence, smoothing, positive, negative;
    uint32_t age;
    int halving; /* whether counts that no longer grow are to be halved */
} sp_step;

#define SP_LARGEST_SINGLE 1.7014118346046923e38  /* 2^127 */
#define SP_SMALLEST_SINGLE 1.1754943508222875e-38 /* 2^-126 */
#define SP_LN2 6.931471805599453094e-01
#define SP_SHIFT 6755399441055744.0 /* 1.5 * 2^52: added, it puts a whole number in the low bits */
#define SP_SQRT2 1.4142135623730951

SP_INLINE float sp_single(double x) {
    const double size = fabs(x);
    if (size < SP_SMALLEST_SINGLE) return 0.0f;
    return (float)(size > SP_LARGEST_SINGLE ? copysign(SP_LARGEST_SINGLE, x) : x);
}

/* log(a / b) of two positive numbers, to the last bits, with its sign changed exactly where a and b are exchanged: of each
   the power of two, and 2 atanh((a - b) / (a + b)) of what is left of both, by its series. */
#define SP_ATANH(z)                                                                                                   \
    (1.0 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z * (1.0 / 15 + \
    z * (1.0 / 17 + z * (1.0 / 19))))))))))

static double sp_log_of_ratio(double a, double b) {
    uint64_t bits_a, bits_b;
    double k, s, z;
    memcpy(&bits_a, &a, 8);
    memcpy(&bits_b, &b, 8);
    k = (double)(int64_t)((bits_a >> 52) - (bits_b >> 52));
    bits_a = (bits_a & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
    bits_b = (bits_b & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
    memcpy(&a, &bits_a, 8);
    memcpy(&b, &bits_b, 8);
    if (a > SP_SQRT2 * b) b += b, k += 1.0;
    else if (b > SP_SQRT2 * a) a += a, k -= 1.0;
    s = (a - b) / (a + b);
    z = s * s;
    return k * SP_LN2 + (s + s) * SP_ATANH(z);
}

/* What evidence of so many years ago counts now, each of SP_AGE_BITS bits. */
SP_INLINE double sp_factor_of_age(uint32_t years) { return years < 16 ? ldexp(1.0, -SP_AGE_BITS * (int)years) : 0.0; }

/* Write evidence down as what it counts now, divided by that number. */
#define SP_AGE_NUMBER(number) feature->number = sp_single(feature->number * factor / divisor);

static void sp_weaken(sp_feature *feature, uint32_t age, double divisor) {
    const double factor = sp_factor_of_age(age - feature->age);
    SP_AGEING_OF_PAIR(SP_AGE_NUMBER)
    feature->age = age;
}

static void sp_learn_feature(sp_feature *feature, double value, const sp_step *step) {
    const double gradient = step->gradient * value;
    float squares, positives, negatives;
    if (feature->age != step->age) sp_weaken(feature, step->age, 1.0);
    squares = sp_single(feature->squares + step->evidence * (gradient * gradient));
    if (gradient != 0.0 && squares > 0.0f) {
        feature->squares = squares;
        feature->weight = sp_single(feature->weight - step->rate * gradient / sqrt((double)squares));
    }
    positives = sp_single(feature->positives + step->positive);
    negatives = sp_single(feature->negatives + step->negative);
    if (step->halving && positives == feature->positives && negatives == feature->negatives) {
        positives = sp_single(feature->positives * 0.5 + step->positive);
        negatives = sp_single(feature->negatives * 0.5 + step->negative);
    }
    feature->positives = positives;
    feature->negatives = negatives;
    if (step->smoothing != 0.0)
        feature->log_ratio = sp_single(sp_log_of_ratio(positives + step->smoothing, negatives + step->smoothing));
}

/* How much the values of an example differ: see pure/scaled.py. */
static double sp_unevenness(const double *x, size_t n) {
    double largest = 0.0, least = INFINITY, total = 0.0, squares = 0.0, n_values = 0.0;
    if (n < 2 || !memcmp(x, x + 1, (n - 1) * sizeof *x)) return 0.0; /* those of a text are all alike */
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(x[i]);
        if (size > largest) largest = size;
        if (size < least && size > 0.0) least = size;
    }
    if (least >= largest) return 0.0;
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(x[i]) / largest;
        if (x[i] == 0.0) continue;
        total += size - least / largest;
        squares += size * size;
        n_values += 1.0;
    }
    return total / sqrt(n_values * squares);
}

/* Scale n values, and add to four sums each their squares, and what the weights make of them. */
static void sp_weigh_portable(const sp_feature *const *features, const double *x, double *values, size_t n, int scaling,
                              double least, double prior, double *squares, double *margins) {
    for (size_t i = 0; i < n; i++) {
        const double value = scaling ? x[i] * (least + fabs(features[i]->log_ratio - prior)) : x[i];
        values[i] = value;
        squares[i & 3] += value * value;
        margins[i & 3] += features[i]->weight * value;
    }
}

static void sp_learn_portable(sp_feature *const *features, const double *values, size_t n, const sp_step *step) {
    for (size_t i = 0; i < n; i++) sp_learn_feature(features[i], values[i], step);
}

#if defined(SP_AVX2)
SP_TARGET_AVX2 static void sp_weigh_avx2(const sp_feature *const *features, const double *x, double *values, size_t n,
                                         int scaling, double least, double prior, double *squares, double *margins) {
    const __m256d sign = _mm256_set1_pd(-0.0), least4 = _mm256_set1_pd(least), prior4 = _mm256_set1_pd(prior);
    __m256d s = _mm256_loadu_pd(squares), m = _mm256_loadu_pd(margins);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
#define PAIR(k) _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)&features[i + (k)]->weight))
        const __m128 low = _mm_unpacklo_ps(PAIR(0), PAIR(1)), high = _mm_unpacklo_ps(PAIR(2), PAIR(3));
#undef PAIR
        const __m256d weights = _mm256_cvtps_pd(_mm_movelh_ps(low, high));
        const __m256d ratios = _mm256_cvtps_pd(_mm_movehl_ps(high, low));
        __m256d value = _mm256_loadu_pd(x + i);
        if (scaling)
            value = _mm256_mul_pd(value, _mm256_add_pd(least4, _mm256_andnot_pd(sign, _mm256_sub_pd(ratios, prior4))));
        _mm256_storeu_pd(values + i, value);
        s = _mm256_add_pd(s, _mm256_mul_pd(value, value));
        m = _mm256_add_pd(m, _mm256_mul_pd(weights, value));
    }
    _mm256_storeu_pd(squares, s);
    _mm256_storeu_pd(margins, m);
    sp_weigh_portable(features + i, x + i, values + i, n - i, scaling, least, prior, squares, margins);
}

SP_INLINE SP_TARGET_AVX2 __m128 sp_single4(__m256d x) {
    const __m256d sign = _mm256_set1_pd(-0.0), most = _mm256_set1_pd(SP_LARGEST_SINGLE);
    const __m256d size = _mm256_andnot_pd(sign, x);
    const __m256d kept = _mm256_cmp_pd(size, _mm256_set1_pd(SP_SMALLEST_SINGLE), _CMP_GE_OQ);
    const __m256d within = _mm256_or_pd(_mm256_min_pd(size, most), _mm256_and_pd(sign, x));
    return _mm256_cvtpd_ps(_mm256_and_pd(within, kept));
}

SP_INLINE SP_TARGET_AVX2 __m256d sp_log_of_ratio4(__m256d a, __m256d b) {
    const __m256i mantissa = _mm256_set1_epi64x(0xFFFFFFFFFFFFFLL), one = _mm256_set1_epi64x(0x3FF0000000000000LL);
    const __m256d sqrt2 = _mm256_set1_pd(SP_SQRT2), unit = _mm256_set1_pd(1.0), shift = _mm256_set1_pd(SP_SHIFT);
    const __m256i bits_a = _mm256_castpd_si256(a), bits_b = _mm256_castpd_si256(b);
    const __m256i powers = _mm256_sub_epi64(_mm256_srli_epi64(bits_a, 52), _mm256_srli_epi64(bits_b, 52));
    __m256d k = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_add_epi64(powers, _mm256_castpd_si256(shift))), shift);
    a = _mm256_castsi256_pd(_mm256_or_si256(_mm256_and_si256(bits_a, mantissa), one));
    b = _mm256_castsi256_pd(_mm256_or_si256(_mm256_and_si256(bits_b, mantissa), one));
    const __m256d more = _mm256_cmp_pd(a, _mm256_mul_pd(sqrt2, b), _CMP_GT_OQ);
    const __m256d less = _mm256_cmp_pd(b, _mm256_mul_pd(sqrt2, a), _CMP_GT_OQ);
    k = _mm256_sub_pd(_mm256_add_pd(k, _mm256_and_pd(more, unit)), _mm256_and_pd(less, unit));
    b = _mm256_add_pd(b, _mm256_and_pd(more, b));
    a = _mm256_add_pd(a, _mm256_and_pd(less, a));
    const __m256d s = _mm256_div_pd(_mm256_sub_pd(a, b), _mm256_add_pd(a, b)), z = _mm256_mul_pd(s, s);
    __m256d p = _mm256_set1_pd(1.0 / 19);
#define TERM(n) p = _mm256_add_pd(_mm256_set1_pd(1.0 / (n)), _mm256_mul_pd(z, p))
    TERM(17); TERM(15); TERM(13); TERM(11); TERM(9); TERM(7); TERM(5); TERM(3); TERM(1);
#undef TERM
    return _mm256_add_pd(_mm256_mul_pd(k, _mm256_set1_pd(SP_LN2)), _mm256_mul_pd(_mm256_add_pd(s, s), p));
}

SP_TARGET_AVX2 static void sp_learn_avx2(sp_feature *const *features, const double *values, size_t n,
                                         const sp_step *step) {
    const __m256d rate = _mm256_set1_pd(step->rate), evidence = _mm256_set1_pd(step->evidence);
    const __m256d smoothing = _mm256_set1_pd(step->smoothing), gradient_of_all = _mm256_set1_pd(step->gradient);
    const __m256d positive = _mm256_set1_pd(step->positive), negative = _mm256_set1_pd(step->negative);
    const __m128i age = _mm_set1_epi32((int)step->age);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        sp_feature *const *f = features + i;
        __m128 squares = _mm_loadu_ps(&f[0]->squares), positives = _mm_loadu_ps(&f[1]->squares);
        __m128 negatives = _mm_loadu_ps(&f[2]->squares), ages = _mm_loadu_ps(&f[3]->squares);
        _MM_TRANSPOSE4_PS(squares, positives, negatives, ages);
        const __m128 new_positives = sp_single4(_mm256_add_pd(_mm256_cvtps_pd(positives), positive));
        const __m128 new_negatives = sp_single4(_mm256_add_pd(_mm256_cvtps_pd(negatives), negative));
        const __m128 unchanged = _mm_and_ps(_mm_cmpeq_ps(positives, new_positives), _mm_cmpeq_ps(negatives, new_negatives));
        const int of_age = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(_mm_castps_si128(ages), age)));
        if (of_age != 15 || (step->halving && _mm_movemask_ps(unchanged))) {
            for (int j = 0; j < 4; j++) sp_learn_feature(f[j], values[i + j], step);
            continue;
        }
#define PAIR(j) _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)&f[j]->weight))
        const __m128 low = _mm_unpacklo_ps(PAIR(0), PAIR(1)), high = _mm_unpacklo_ps(PAIR(2), PAIR(3));
#undef PAIR
        __m128 weights = _mm_movelh_ps(low, high), ratios = _mm_movehl_ps(high, low);
        const __m256d gradient = _mm256_mul_pd(gradient_of_all, _mm256_loadu_pd(values + i));
        const __m256d square = _mm256_mul_pd(evidence, _mm256_mul_pd(gradient, gradient));
        const __m128 new_squares = sp_single4(_mm256_add_pd(_mm256_cvtps_pd(squares), square));
        const __m256d sum = _mm256_cvtps_pd(new_squares);
        const __m256d taken = _mm256_and_pd(_mm256_cmp_pd(gradient, _mm256_setzero_pd(), _CMP_NEQ_OQ),
                                            _mm256_cmp_pd(sum, _mm256_setzero_pd(), _CMP_GT_OQ));
        const __m256d change = _mm256_div_pd(_mm256_mul_pd(rate, gradient), _mm256_sqrt_pd(sum));
        const __m128 new_weights = sp_single4(_mm256_sub_pd(_mm256_cvtps_pd(weights), change));
        const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0);
        const __m128 mask = _mm256_castps256_ps128(_mm256_permutevar8x32_ps(_mm256_castpd_ps(taken), order));
        weights = _mm_blendv_ps(weights, new_weights, mask);
        squares = _mm_blendv_ps(squares, new_squares, mask);
        if (step->smoothing != 0.0)
            ratios = sp_single4(sp_log_of_ratio4(_mm256_add_pd(_mm256_cvtps_pd(new_positives), smoothing),
                                                 _mm256_add_pd(_mm256_cvtps_pd(new_negatives), smoothing)));
        positives = new_positives;
        negatives = new_negatives;
        _MM_TRANSPOSE4_PS(squares, positives, negatives, ages);
        _mm_storeu_ps(&f[0]->squares, squares);
        _mm_storeu_ps(&f[1]->squares, positives);
        _mm_storeu_ps(&f[2]->squares, negatives);
        _mm_storeu_ps(&f[3]->squares, ages);
        const __m128 first = _mm_unpacklo_ps(weights, ratios), last = _mm_unpackhi_ps(weights, ratios);
        _mm_storel_pi((__m64 *)&f[0]->weight, first);
        _mm_storeh_pi((__m64 *)&f[1]->weight, first);
        _mm_storel_pi((__m64 *)&f[2]->weight, last);
        _mm_storeh_pi((__m64 *)&f[3]->weight, last);
    }
    for (; i < n; i++) sp_learn_feature(features[i], values[i], step);
}
#endif
#define sp_weigh SP_BETTER(sp_weigh)
#define sp_learn SP_BETTER(sp_learn)

#endif
