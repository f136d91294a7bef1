/* What predicts of the features of an example where it is kept in half precision, four at a time where the processor can. All
   ways do the same operations in the same order, so that they agree to the last bit. */

#ifndef STREAM_PEGASOS_FROZEN_H
#define STREAM_PEGASOS_FROZEN_H

#include "simd.h"

#define SP_OF_HALF 0x1p112f /* what makes a float of the bits of half precision */

/* The number of half precision that the lower 16 bits are; there is none that is not finite. */
SP_INLINE double sp_half(uint32_t bits) {
    uint32_t made = (bits & 0x7FFF) << 13;
    float x;
    memcpy(&x, &made, 4);
    x *= SP_OF_HALF;
    memcpy(&made, &x, 4);
    made |= (bits & 0x8000) << 16;
    memcpy(&x, &made, 4);
    return x;
}

/* Scale n values by what is known of their features, a weight and in the higher half a scale, and add to four sums each their
   squares, and what the weights make of them. */
static void sp_weigh_frozen_portable(const uint32_t *known, const double *x, double *values, size_t n, double *squares,
                                     double *margins) {
    for (size_t i = 0; i < n; i++) {
        const double value = x[i] * sp_half(known[i] >> 16);
        values[i] = value;
        squares[i & 3] += value * value;
        margins[i & 3] += sp_half(known[i]) * value;
    }
}

#if defined(SP_AVX2)
SP_INLINE SP_TARGET_AVX2 __m256d sp_half4(__m128i bits) {
    const __m128i size = _mm_slli_epi32(_mm_and_si128(bits, _mm_set1_epi32(0x7FFF)), 13);
    const __m128i sign = _mm_slli_epi32(_mm_and_si128(bits, _mm_set1_epi32(0x8000)), 16);
    const __m128 x = _mm_mul_ps(_mm_castsi128_ps(size), _mm_set1_ps(SP_OF_HALF));
    return _mm256_cvtps_pd(_mm_or_ps(x, _mm_castsi128_ps(sign)));
}

SP_TARGET_AVX2 static void sp_weigh_frozen_avx2(const uint32_t *known, const double *x, double *values, size_t n,
                                                double *squares, double *margins) {
    __m256d s = _mm256_loadu_pd(squares), m = _mm256_loadu_pd(margins);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m128i bits = _mm_loadu_si128((const __m128i *)(known + i));
        const __m256d value = _mm256_mul_pd(_mm256_loadu_pd(x + i), sp_half4(_mm_srli_epi32(bits, 16)));
        _mm256_storeu_pd(values + i, value);
        s = _mm256_add_pd(s, _mm256_mul_pd(value, value));
        m = _mm256_add_pd(m, _mm256_mul_pd(sp_half4(bits), value));
    }
    _mm256_storeu_pd(squares, s);
    _mm256_storeu_pd(margins, m);
    sp_weigh_frozen_portable(known + i, x + i, values + i, n - i, squares, margins);
}
#endif
#define sp_weigh_frozen SP_BETTER(sp_weigh_frozen)

#endif
