/* Finding tokens in UTF-8 text, 64 bytes at a time; and loops over numbers.

   A block of 64 bytes becomes one bit a byte (word character? white space?); token edges are where those bits change.
   x86-64 has SSE2 everywhere and takes AVX2 where the processor has it; ARM64 has NEON; anything else takes a table. */

#ifndef STREAM_PEGASOS_SIMD_H
#define STREAM_PEGASOS_SIMD_H

#include "memory.h"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
SP_INLINE unsigned sp_lowest_bit(uint64_t bits) { unsigned long i; _BitScanForward64(&i, bits); return (unsigned)i; }
SP_INLINE unsigned sp_highest_bit(uint64_t bits) { unsigned long i; _BitScanReverse64(&i, bits); return (unsigned)i; }
SP_INLINE uint64_t sp_joined_product(uint64_t a, uint64_t b) { return a * b ^ __umulh(a, b); }
#else
SP_INLINE unsigned sp_lowest_bit(uint64_t bits) { return (unsigned)__builtin_ctzll(bits); }
SP_INLINE unsigned sp_highest_bit(uint64_t bits) { return 63 - (unsigned)__builtin_clzll(bits); }
SP_INLINE uint64_t sp_joined_product(uint64_t a, uint64_t b) { /* its two halves, of one multiplication */
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
#endif

/* SP_PORTABLE leaves out all that only some processors have; for tests. */
#if defined(SP_PORTABLE)
#elif defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define SP_SSE2 1
#if defined(__GNUC__) || defined(__clang__)
#define SP_AVX2 1
#endif
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
#include <arm_neon.h>
#define SP_NEON 1
#endif

/* A function that comes in two ways, to be called in the better one. */
#if defined(SP_AVX2)
#define SP_TARGET_AVX2 __attribute__((target("avx2,bmi,popcnt")))
#define SP_BETTER(function) (sp_has_avx2 ? function##_avx2 : function##_portable)
static int sp_has_avx2;
static void sp_look_at_processor(void) {
    __builtin_cpu_init();
    sp_has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
}
#else
#define SP_BETTER(function) function##_portable
static void sp_look_at_processor(void) {}
#endif

enum { SP_SLOTS = 8 }; /* of a bucket of an index */

/* Which slots of a bucket have the bits of that one, but for those of `mask`: a bit for each. */
SP_INLINE uint32_t sp_slots_like(const uint32_t *bucket, uint32_t slot, uint32_t mask) {
#if defined(SP_SSE2)
    const __m128i kept = _mm_set1_epi32((int)~mask), bits = _mm_set1_epi32((int)(slot & ~mask));
    const __m128i *fours = (const __m128i *)bucket;
    const __m128i low = _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(fours), kept), bits);
    const __m128i high = _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(fours + 1), kept), bits);
    return (uint32_t)(_mm_movemask_ps(_mm_castsi128_ps(low)) | _mm_movemask_ps(_mm_castsi128_ps(high)) << 4);
#else
    uint32_t like = 0;
    for (uint32_t i = 0; i < SP_SLOTS; i++) like |= (uint32_t)(((bucket[i] ^ slot) & ~mask) == 0) << i;
    return like;
#endif
}

enum { SP_BLOCK = 64, SP_SEGMENT = 4096, SP_WORDS_IN_SEGMENT = SP_SEGMENT / SP_BLOCK };

/* What counts as a token; see TOKEN_PATTERNS in pure/scanner.py. Long words have two bytes or more. */
enum { SP_LONG_WORDS, SP_WORDS, SP_WORDS_AND_MARKS, SP_NONSPACE };

/* Which bytes of a segment, as bits, are of word characters, which of white space, and which of any other character but
   its first byte (never set in ASCII text). */
typedef struct {
    uint64_t word[SP_WORDS_IN_SEGMENT + 1];
    uint64_t space[SP_WORDS_IN_SEGMENT + 1];
    uint64_t rest[SP_WORDS_IN_SEGMENT + 1];
} sp_classes;

/* Edges of the tokens found; a token still open at the end of a segment has a start and no end yet. */
typedef struct {
    uint32_t starts[SP_SEGMENT + 2 * SP_BLOCK];
    uint32_t ends[SP_SEGMENT + 2 * SP_BLOCK];
    uint32_t n_starts, n_ends;
    uint64_t in_token, after_mark, after_word; /* what the byte before the next segment is */
} sp_edges;

/* --- 64 ASCII bytes: fold them into `to`, and classify them ------------------------------------------------------ */

enum { SP_LOWER = 1, SP_MASK_DIGITS = 2 }; /* what folding does: to lower case, and every digit to 0 */
#define SP_CASE_BIT(fold) ((fold) & SP_LOWER ? 0x20 : 0)
#define SP_DIGIT_BITS(fold) ((fold) & SP_MASK_DIGITS ? 0x0f : 0)

#if defined(SP_SSE2)
SP_INLINE unsigned sp_classify16(const uint8_t *from, uint8_t *to, int fold, unsigned *space) {
    const __m128i c = _mm_loadu_si128((const __m128i *)from);
    const __m128i upper = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('A' - 1)), _mm_cmplt_epi8(c, _mm_set1_epi8('Z' + 1)));
    const __m128i low = _mm_or_si128(c, _mm_and_si128(upper, _mm_set1_epi8(0x20)));
    const __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(low, _mm_set1_epi8('a' - 1)), _mm_cmplt_epi8(low, _mm_set1_epi8('z' + 1)));
    const __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('0' - 1)), _mm_cmplt_epi8(c, _mm_set1_epi8('9' + 1)));
    const __m128i control = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8(8)), _mm_cmplt_epi8(c, _mm_set1_epi8(14)));
    const __m128i separator = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8(27)), _mm_cmplt_epi8(c, _mm_set1_epi8(33)));
    const __m128i cased = _mm_or_si128(c, _mm_and_si128(upper, _mm_set1_epi8(SP_CASE_BIT(fold))));
    _mm_storeu_si128((__m128i *)to, _mm_andnot_si128(_mm_and_si128(digit, _mm_set1_epi8(SP_DIGIT_BITS(fold))), cased));
    *space = (unsigned)_mm_movemask_epi8(_mm_or_si128(control, separator));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), _mm_cmpeq_epi8(c, _mm_set1_epi8('_'))));
}
SP_INLINE void sp_classify64(const uint8_t *from, uint8_t *to, int fold, uint64_t *word, uint64_t *space) {
    uint64_t words = 0, spaces = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s;
        words |= (uint64_t)sp_classify16(from + 16 * i, to + 16 * i, fold, &s) << (16 * i);
        spaces |= (uint64_t)s << (16 * i);
    }
    *word = words;
    *space = spaces;
}
/* Which of 64 bytes are a 0. */
SP_INLINE uint64_t sp_zeros64(const uint8_t *from) {
    uint64_t zeros = 0;
    for (int i = 0; i < 4; i++) {
        const __m128i c = _mm_loadu_si128((const __m128i *)(from + 16 * i));
        zeros |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(c, _mm_set1_epi8('0'))) << (16 * i);
    }
    return zeros;
}
#elif defined(SP_NEON)
SP_INLINE uint64_t sp_bits(const uint8x16_t m[4]) {
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t a = vpaddq_u8(vandq_u8(m[0], bit), vandq_u8(m[1], bit));
    const uint8x16_t b = vpaddq_u8(vandq_u8(m[2], bit), vandq_u8(m[3], bit));
    const uint8x16_t c = vpaddq_u8(a, b);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(c, c)), 0);
}
SP_INLINE uint8x16_t sp_between(uint8x16_t c, uint8_t first, uint8_t last) {
    return vcleq_u8(vsubq_u8(c, vdupq_n_u8(first)), vdupq_n_u8((uint8_t)(last - first)));
}
SP_INLINE void sp_classify64(const uint8_t *from, uint8_t *to, int fold, uint64_t *word, uint64_t *space) {
    uint8x16_t words[4], spaces[4];
    for (int i = 0; i < 4; i++) {
        const uint8x16_t c = vld1q_u8(from + 16 * i);
        const uint8x16_t upper = sp_between(c, 'A', 'Z'), digit = sp_between(c, '0', '9');
        const uint8x16_t low = vorrq_u8(c, vandq_u8(upper, vdupq_n_u8(0x20)));
        const uint8x16_t cased = vorrq_u8(c, vandq_u8(upper, vdupq_n_u8(SP_CASE_BIT(fold))));
        vst1q_u8(to + 16 * i, vbicq_u8(cased, vandq_u8(digit, vdupq_n_u8(SP_DIGIT_BITS(fold)))));
        words[i] = vorrq_u8(vorrq_u8(sp_between(low, 'a', 'z'), digit), vceqq_u8(c, vdupq_n_u8('_')));
        spaces[i] = vorrq_u8(sp_between(c, 9, 13), sp_between(c, 28, 32));
    }
    *word = sp_bits(words);
    *space = sp_bits(spaces);
}
SP_INLINE uint64_t sp_zeros64(const uint8_t *from) {
    uint8x16_t zeros[4];
    for (int i = 0; i < 4; i++) zeros[i] = vceqq_u8(vld1q_u8(from + 16 * i), vdupq_n_u8('0'));
    return sp_bits(zeros);
}
#else
SP_INLINE void sp_classify64(const uint8_t *from, uint8_t *to, int fold, uint64_t *word, uint64_t *space) {
    uint64_t words = 0, spaces = 0;
    for (int i = 0; i < SP_BLOCK; i++) {
        const uint8_t c = from[i];
        const uint8_t low = (uint8_t)(c - 'A') < 26 ? c | 0x20 : c;
        to[i] = (uint8_t)((fold & SP_LOWER ? low : c) & ~((uint8_t)(c - '0') < 10 ? SP_DIGIT_BITS(fold) : 0));
        words |= (uint64_t)((uint8_t)(low - 'a') < 26 || (uint8_t)(c - '0') < 10 || c == '_') << i;
        spaces |= (uint64_t)((uint8_t)(c - 9) < 5 || (uint8_t)(c - 28) < 5) << i;
    }
    *word = words;
    *space = spaces;
}
SP_INLINE uint64_t sp_zeros64(const uint8_t *from) {
    uint64_t zeros = 0;
    for (int i = 0; i < SP_BLOCK; i++) zeros |= (uint64_t)(from[i] == '0') << i;
    return zeros;
}
#endif

#if defined(SP_AVX2)
static inline SP_TARGET_AVX2 uint32_t sp_classify32(const uint8_t *from, uint8_t *to, int fold, uint32_t *space) {
#define BETWEEN(c, a, b) _mm256_and_si256(_mm256_cmpgt_epi8(c, _mm256_set1_epi8((a) - 1)), _mm256_cmpgt_epi8(_mm256_set1_epi8((b) + 1), c))
    const __m256i c = _mm256_loadu_si256((const __m256i *)from);
    const __m256i upper = BETWEEN(c, 'A', 'Z'), digit = BETWEEN(c, '0', '9');
    const __m256i low = _mm256_or_si256(c, _mm256_and_si256(upper, _mm256_set1_epi8(0x20)));
    const __m256i cased = _mm256_or_si256(c, _mm256_and_si256(upper, _mm256_set1_epi8(SP_CASE_BIT(fold))));
    const __m256i word = _mm256_or_si256(_mm256_or_si256(BETWEEN(low, 'a', 'z'), digit), _mm256_cmpeq_epi8(c, _mm256_set1_epi8('_')));
    _mm256_storeu_si256((__m256i *)to, _mm256_andnot_si256(_mm256_and_si256(digit, _mm256_set1_epi8(SP_DIGIT_BITS(fold))), cased));
    *space = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(BETWEEN(c, 9, 13), BETWEEN(c, 28, 32)));
    return (uint32_t)_mm256_movemask_epi8(word);
#undef BETWEEN
}
#endif

/* The classes of `n` ASCII bytes, 0 < n <= SP_SEGMENT; `to` has room for the last block to be whole. The text must not be
   read past its end, so a last block that is not whole is read as the last 64 bytes, or copied where there are fewer. */
#define SP_CLASSIFY_BODY(CLASSIFY64)                                                                     \
    size_t i = 0;                                                                                        \
    for (; i + SP_BLOCK <= n; i += SP_BLOCK)                                                             \
        CLASSIFY64(from + i, to + i, fold, &classes->word[i / SP_BLOCK], &classes->space[i / SP_BLOCK]); \
    if (i < n && n >= SP_BLOCK) {                                                                        \
        uint64_t word, space;                                                                            \
        CLASSIFY64(from + n - SP_BLOCK, to + n - SP_BLOCK, fold, &word, &space);                         \
        classes->word[i / SP_BLOCK] = word >> (i + SP_BLOCK - n);                                        \
        classes->space[i / SP_BLOCK] = space >> (i + SP_BLOCK - n);                                      \
    } else if (i < n) {                                                                                  \
        uint8_t block[SP_BLOCK];                                                                         \
        memset(block, 0, SP_BLOCK);                                                                      \
        memcpy(block, from, n);                                                                          \
        CLASSIFY64(block, to, fold, &classes->word[0], &classes->space[0]);                              \
    }

static void sp_classify_portable(const uint8_t *from, uint8_t *to, size_t n, int fold, sp_classes *classes) {
    SP_CLASSIFY_BODY(sp_classify64)
}
#if defined(SP_AVX2)
static inline SP_TARGET_AVX2 void sp_classify64_avx2(const uint8_t *from, uint8_t *to, int fold, uint64_t *word, uint64_t *space) {
    uint32_t s0, s1;
    const uint32_t w0 = sp_classify32(from, to, fold, &s0), w1 = sp_classify32(from + 32, to + 32, fold, &s1);
    *word = w0 | (uint64_t)w1 << 32;
    *space = s0 | (uint64_t)s1 << 32;
}
static SP_TARGET_AVX2 void sp_classify_avx2(const uint8_t *from, uint8_t *to, size_t n, int fold, sp_classes *classes) {
    SP_CLASSIFY_BODY(sp_classify64_avx2)
}
#endif
#define sp_classify SP_BETTER(sp_classify)

/* --- from classes to edges -------------------------------------------------------------------------------------- */

SP_INLINE uint32_t sp_count_bits(uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555ULL;
    bits = (bits & 0x3333333333333333ULL) + (bits >> 2 & 0x3333333333333333ULL);
    return (uint32_t)(((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL >> 56);
}

/* Write where the bits of both masks are, in groups of four pairs, since a branch after each would be mispredicted; what
   is written past the last bit does not count. */
SP_INLINE void sp_write_positions(uint64_t first, uint64_t end, uint32_t n, uint32_t base, uint32_t *starts, uint32_t *ends) {
    for (uint32_t i = 0; i < n; i += 4)
        for (int j = 0; j < 4; j++) {
            starts[i + j] = base + sp_lowest_bit(first | 1ULL << 63);
            ends[i + j] = base + sp_lowest_bit(end | 1ULL << 63);
            first &= first - 1;
            end &= end - 1;
        }
}

#define SP_EDGES_BODY(COUNT_BITS)                                                                        \
    const uint32_t n_blocks = (n + SP_BLOCK - 1) / SP_BLOCK;                                             \
    uint32_t n_starts = edges->n_starts, n_ends = edges->n_ends;                                         \
    uint64_t in_token = edges->in_token, after_mark = edges->after_mark, after_word = edges->after_word; \
    for (uint32_t i = 0; i < n_blocks; i++) {                                                            \
        const uint32_t base = begin + i * SP_BLOCK, left = n - i * SP_BLOCK;                             \
        const uint64_t valid = left >= SP_BLOCK ? ~0ULL : (1ULL << left) - 1;                            \
        uint64_t run = kind == SP_NONSPACE ? ~classes->space[i] & valid : classes->word[i] & valid;      \
        if (kind == SP_LONG_WORDS) { /* word characters with another one beside them */                  \
            const uint64_t next = i + 1 < n_blocks ? classes->word[i + 1] : (uint64_t)before_word;       \
            const uint64_t beside = (run << 1 | after_word) | (left > SP_BLOCK ? run >> 1 | next << 63   \
                                                                               : run >> 1 | next << (left - 1)); \
            after_word = run >> 63;                                                                      \
            run &= beside;                                                                               \
        }                                                                                                \
        const uint64_t mark = kind == SP_WORDS_AND_MARKS ? ~(classes->word[i] | classes->space[i]) & valid : 0; \
        const uint64_t before = run << 1 | in_token;                                                     \
        const uint64_t first = (run & ~before) | (mark & ~classes->rest[i]);                             \
        const uint64_t end = (~run & before) | ((mark << 1 | after_mark) & ~classes->rest[i]);           \
        const uint32_t n_first = COUNT_BITS(first), n_end = COUNT_BITS(end);                             \
        sp_write_positions(first, end, n_first > n_end ? n_first : n_end, base,                          \
                           edges->starts + n_starts, edges->ends + n_ends);                              \
        n_starts += n_first;                                                                             \
        n_ends += n_end;                                                                                 \
        in_token = run >> 63;                                                                            \
        after_mark = mark >> 63;                                                                         \
    }                                                                                                    \
    edges->n_starts = n_starts;                                                                          \
    edges->n_ends = n_ends;                                                                              \
    edges->in_token = in_token;                                                                          \
    edges->after_mark = after_mark;                                                                      \
    edges->after_word = after_word;

/* Append the edges in the segment of `n` bytes that begins at byte `begin`; n is whole blocks but at the end of a text.
   Long words want to know whether a word character follows. */
static void sp_find_edges_portable(const sp_classes *classes, uint32_t begin, uint32_t n, int kind, int before_word, sp_edges *edges) {
    SP_EDGES_BODY(sp_count_bits)
}
#if defined(SP_AVX2)
static SP_TARGET_AVX2 void sp_find_edges_avx2(const sp_classes *classes, uint32_t begin, uint32_t n, int kind, int before_word, sp_edges *edges) {
    SP_EDGES_BODY((uint32_t)__builtin_popcountll)
}
#endif
#define sp_find_edges SP_BETTER(sp_find_edges)

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* Whether all of n numbers are at most `limit` in size, and none of them NaN. */
static int sp_all_within(const double *x, size_t n, double limit) {
    size_t i = 0;
    int fine = 1;
#if defined(SP_SSE2)
    const __m128d size = _mm_castsi128_pd(_mm_set1_epi64x(0x7fffffffffffffffLL)), most = _mm_set1_pd(limit);
    __m128d beyond = _mm_setzero_pd();
    for (; i + 4 <= n; i += 4) {
        beyond = _mm_or_pd(beyond, _mm_cmpnle_pd(_mm_and_pd(_mm_loadu_pd(x + i), size), most));
        beyond = _mm_or_pd(beyond, _mm_cmpnle_pd(_mm_and_pd(_mm_loadu_pd(x + i + 2), size), most));
    }
    fine = _mm_movemask_pd(beyond) == 0;
#endif
    for (; i < n; i++) fine &= x[i] <= limit && x[i] >= -limit;
    return fine;
}

/* y += the sum of a x over up to four x's, so that y is read and written once for all of them. The instructions are the
   compiler's choice, and without fused ones, so that all processors agree. */
SP_INLINE void sp_add_scaled_portable(double *y, const double *const *x, const double *a, size_t n_x, size_t n) {
    if (n_x == 4) {
        const double *const first = x[0], *const second = x[1], *const third = x[2], *const fourth = x[3];
        for (size_t i = 0; i < n; i++)
            y[i] = (((y[i] + a[0] * first[i]) + a[1] * second[i]) + a[2] * third[i]) + a[3] * fourth[i];
        return;
    }
    for (size_t j = 0; j < n_x; j++)
        for (size_t i = 0; i < n; i++) y[i] += a[j] * x[j][i];
}
#if defined(SP_AVX2)
SP_TARGET_AVX2 static void sp_add_scaled_avx2(double *y, const double *const *x, const double *a, size_t n_x, size_t n) {
    sp_add_scaled_portable(y, x, a, n_x, n);
}
#endif
#define sp_add_scaled SP_BETTER(sp_add_scaled)

/* The largest of n numbers, 0 for none. The compiler makes several at a time of it, where it may. */
SP_INLINE uint32_t sp_largest_portable(const uint32_t *x, size_t n) {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}
#if defined(SP_AVX2)
static SP_TARGET_AVX2 uint32_t sp_largest_avx2(const uint32_t *x, size_t n) { return sp_largest_portable(x, n); }
#endif
#define sp_largest SP_BETTER(sp_largest)

#endif
