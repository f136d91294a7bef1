/* Finding tokens in UTF-8 text, 64 bytes at a time, and hashing them.

   A block of 64 bytes becomes one bit a byte (word character? white space?); token edges are where those bits change.
   x86-64 has SSE2 everywhere and takes AVX2 where the processor has it; ARM64 has NEON; anything else takes a table. */

#ifndef STREAM_PEGASOS_SIMD_H
#define STREAM_PEGASOS_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define SP_INLINE static __forceinline
#define SP_PREFETCH(p) ((void)(p))
SP_INLINE unsigned sp_lowest_bit(uint64_t bits) { unsigned long i; _BitScanForward64(&i, bits); return (unsigned)i; }
SP_INLINE uint64_t sp_high_product(uint64_t a, uint64_t b) { return __umulh(a, b); }
#else
#define SP_INLINE static inline __attribute__((always_inline))
#define SP_PREFETCH(p) __builtin_prefetch(p)
SP_INLINE unsigned sp_lowest_bit(uint64_t bits) { return (unsigned)__builtin_ctzll(bits); }
SP_INLINE uint64_t sp_high_product(uint64_t a, uint64_t b) { return (uint64_t)(((unsigned __int128)a * b) >> 64); }
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define SP_SSE2 1
#if defined(__GNUC__) || defined(__clang__)
#define SP_AVX2 1
#endif
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
#include <arm_neon.h>
#define SP_NEON 1
#endif

enum { SP_BLOCK = 64, SP_SEGMENT = 4096, SP_WORDS_IN_SEGMENT = SP_SEGMENT / SP_BLOCK };

/* What counts as a token; see TOKEN_PATTERNS in _pure.py. */
enum { SP_WORDS, SP_WORDS_AND_MARKS, SP_NONSPACE };

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
    uint64_t in_token, after_mark; /* does the byte before the next segment belong to a run, is it a mark of its own */
} sp_edges;

/* --- 64 ASCII bytes: lower-case them into `to`, and classify them ----------------------------------------------- */

#if defined(SP_SSE2)
SP_INLINE unsigned sp_classify16(const uint8_t *from, uint8_t *to, int lowercase, unsigned *space) {
    const __m128i c = _mm_loadu_si128((const __m128i *)from);
    const __m128i upper = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('A' - 1)), _mm_cmplt_epi8(c, _mm_set1_epi8('Z' + 1)));
    const __m128i low = _mm_or_si128(c, _mm_and_si128(upper, _mm_set1_epi8(0x20)));
    const __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(low, _mm_set1_epi8('a' - 1)), _mm_cmplt_epi8(low, _mm_set1_epi8('z' + 1)));
    const __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('0' - 1)), _mm_cmplt_epi8(c, _mm_set1_epi8('9' + 1)));
    const __m128i control = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8(8)), _mm_cmplt_epi8(c, _mm_set1_epi8(14)));
    const __m128i separator = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8(27)), _mm_cmplt_epi8(c, _mm_set1_epi8(33)));
    _mm_storeu_si128((__m128i *)to, lowercase ? low : c);
    *space = (unsigned)_mm_movemask_epi8(_mm_or_si128(control, separator));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), _mm_cmpeq_epi8(c, _mm_set1_epi8('_'))));
}
SP_INLINE void sp_classify64(const uint8_t *from, uint8_t *to, int lowercase, uint64_t *word, uint64_t *space) {
    uint64_t words = 0, spaces = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s;
        words |= (uint64_t)sp_classify16(from + 16 * i, to + 16 * i, lowercase, &s) << (16 * i);
        spaces |= (uint64_t)s << (16 * i);
    }
    *word = words;
    *space = spaces;
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
SP_INLINE void sp_classify64(const uint8_t *from, uint8_t *to, int lowercase, uint64_t *word, uint64_t *space) {
    uint8x16_t words[4], spaces[4];
    for (int i = 0; i < 4; i++) {
        const uint8x16_t c = vld1q_u8(from + 16 * i);
        const uint8x16_t low = vorrq_u8(c, vandq_u8(sp_between(c, 'A', 'Z'), vdupq_n_u8(0x20)));
        vst1q_u8(to + 16 * i, lowercase ? low : c);
        words[i] = vorrq_u8(vorrq_u8(sp_between(low, 'a', 'z'), sp_between(c, '0', '9')), vceqq_u8(c, vdupq_n_u8('_')));
        spaces[i] = vorrq_u8(sp_between(c, 9, 13), sp_between(c, 28, 32));
    }
    *word = sp_bits(words);
    *space = sp_bits(spaces);
}
#else
SP_INLINE void sp_classify64(const uint8_t *from, uint8_t *to, int lowercase, uint64_t *word, uint64_t *space) {
    uint64_t words = 0, spaces = 0;
    for (int i = 0; i < SP_BLOCK; i++) {
        const uint8_t c = from[i];
        const uint8_t low = (uint8_t)(c - 'A') < 26 ? c | 0x20 : c;
        to[i] = lowercase ? low : c;
        words |= (uint64_t)((uint8_t)(low - 'a') < 26 || (uint8_t)(c - '0') < 10 || c == '_') << i;
        spaces |= (uint64_t)((uint8_t)(c - 9) < 5 || (uint8_t)(c - 28) < 5) << i;
    }
    *word = words;
    *space = spaces;
}
#endif

#if defined(SP_AVX2)
#define SP_TARGET_AVX2 __attribute__((target("avx2,bmi,popcnt")))
static inline SP_TARGET_AVX2 uint32_t sp_classify32(const uint8_t *from, uint8_t *to, int lowercase, uint32_t *space) {
#define BETWEEN(c, a, b) _mm256_and_si256(_mm256_cmpgt_epi8(c, _mm256_set1_epi8((a) - 1)), _mm256_cmpgt_epi8(_mm256_set1_epi8((b) + 1), c))
    const __m256i c = _mm256_loadu_si256((const __m256i *)from);
    const __m256i low = _mm256_or_si256(c, _mm256_and_si256(BETWEEN(c, 'A', 'Z'), _mm256_set1_epi8(0x20)));
    const __m256i word = _mm256_or_si256(_mm256_or_si256(BETWEEN(low, 'a', 'z'), BETWEEN(c, '0', '9')), _mm256_cmpeq_epi8(c, _mm256_set1_epi8('_')));
    _mm256_storeu_si256((__m256i *)to, lowercase ? low : c);
    *space = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(BETWEEN(c, 9, 13), BETWEEN(c, 28, 32)));
    return (uint32_t)_mm256_movemask_epi8(word);
#undef BETWEEN
}
#endif

/* The classes of `n` ASCII bytes, n <= SP_SEGMENT; `to` has room for the last block to be whole. */
#define SP_CLASSIFY_BODY(CLASSIFY64)                                                                     \
    uint8_t last[SP_BLOCK];                                                                              \
    size_t i = 0;                                                                                        \
    for (; i + SP_BLOCK <= n; i += SP_BLOCK)                                                             \
        CLASSIFY64(from + i, to + i, lowercase, &classes->word[i / SP_BLOCK], &classes->space[i / SP_BLOCK]); \
    if (i < n) { /* the text must not be read past its end */                                            \
        memset(last, 0, SP_BLOCK);                                                                       \
        memcpy(last, from + i, n - i);                                                                   \
        CLASSIFY64(last, to + i, lowercase, &classes->word[i / SP_BLOCK], &classes->space[i / SP_BLOCK]); \
    }

static void sp_classify_portable(const uint8_t *from, uint8_t *to, size_t n, int lowercase, sp_classes *classes) {
    SP_CLASSIFY_BODY(sp_classify64)
}
#if defined(SP_AVX2)
static inline SP_TARGET_AVX2 void sp_classify64_avx2(const uint8_t *from, uint8_t *to, int lowercase, uint64_t *word, uint64_t *space) {
    uint32_t s0, s1;
    const uint32_t w0 = sp_classify32(from, to, lowercase, &s0), w1 = sp_classify32(from + 32, to + 32, lowercase, &s1);
    *word = w0 | (uint64_t)w1 << 32;
    *space = s0 | (uint64_t)s1 << 32;
}
static SP_TARGET_AVX2 void sp_classify_avx2(const uint8_t *from, uint8_t *to, size_t n, int lowercase, sp_classes *classes) {
    SP_CLASSIFY_BODY(sp_classify64_avx2)
}
#endif

/* --- from classes to edges -------------------------------------------------------------------------------------- */

SP_INLINE uint32_t sp_positions(uint64_t bits, uint32_t base, uint32_t *out) {
    uint32_t n = 0;
    while (bits) {
        /* Two at a time, the second one spurious at an odd end: half the mispredicted branches. */
        out[n++] = base + sp_lowest_bit(bits);
        bits &= bits - 1;
        out[n] = base + sp_lowest_bit(bits | 1ULL << 63);
        n += bits != 0;
        bits &= bits - (bits != 0);
    }
    return n;
}

#define SP_EDGES_BODY                                                                                    \
    const uint32_t n_blocks = (n + SP_BLOCK - 1) / SP_BLOCK;                                             \
    uint32_t n_starts = edges->n_starts, n_ends = edges->n_ends;                                         \
    uint64_t in_token = edges->in_token, after_mark = edges->after_mark;                                 \
    for (uint32_t i = 0; i < n_blocks; i++) {                                                            \
        const uint32_t base = begin + i * SP_BLOCK, left = n - i * SP_BLOCK;                             \
        const uint64_t valid = left >= SP_BLOCK ? ~0ULL : (1ULL << left) - 1;                            \
        const uint64_t run = kind == SP_NONSPACE ? ~classes->space[i] & valid : classes->word[i] & valid; \
        const uint64_t mark = kind == SP_WORDS_AND_MARKS ? ~(classes->word[i] | classes->space[i]) & valid : 0; \
        const uint64_t before = run << 1 | in_token;                                                     \
        const uint64_t first = (run & ~before) | (mark & ~classes->rest[i]);                             \
        const uint64_t end = (~run & before) | ((mark << 1 | after_mark) & ~classes->rest[i]);           \
        n_starts += sp_positions(first, base, edges->starts + n_starts);                                 \
        n_ends += sp_positions(end, base, edges->ends + n_ends);                                         \
        in_token = run >> 63;                                                                            \
        after_mark = mark >> 63;                                                                         \
    }                                                                                                    \
    edges->n_starts = n_starts;                                                                          \
    edges->n_ends = n_ends;                                                                              \
    edges->in_token = in_token;                                                                          \
    edges->after_mark = after_mark;

/* Append the edges in the segment of `n` bytes that begins at byte `begin`; n is whole blocks but at the end of a text. */
static void sp_find_edges_portable(const sp_classes *classes, uint32_t begin, uint32_t n, int kind, sp_edges *edges) {
    SP_EDGES_BODY
}
#if defined(SP_AVX2)
static SP_TARGET_AVX2 void sp_find_edges_avx2(const sp_classes *classes, uint32_t begin, uint32_t n, int kind, sp_edges *edges) {
    SP_EDGES_BODY
}
#endif

static void (*sp_classify)(const uint8_t *, uint8_t *, size_t, int, sp_classes *) = sp_classify_portable;
static void (*sp_find_edges)(const sp_classes *, uint32_t, uint32_t, int, sp_edges *) = sp_find_edges_portable;

static void sp_choose_instructions(void) {
#if defined(SP_AVX2)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) {
        sp_classify = sp_classify_avx2;
        sp_find_edges = sp_find_edges_avx2;
    }
#endif
}

/* --- MurmurHash3_x86_32 with seed 0 (Appleby, 2011, public domain) ------------------------------------------------ */

SP_INLINE uint32_t sp_rotate(uint32_t x, int r) { return x << r | x >> (32 - r); }
SP_INLINE uint32_t sp_load32(const uint8_t *p) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
#else
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
#endif
}
SP_INLINE uint32_t sp_mix_block(uint32_t k) { return sp_rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
SP_INLINE uint32_t sp_mix_hash(uint32_t h) { return sp_rotate(h, 13) * 5 + 0xe6546b64u; }

/* The first `n` bytes of a block, the others zero: a block of zeros changes nothing, so tails need no case of their own. */
SP_INLINE uint32_t sp_keep_bytes(uint32_t k, uint32_t n) {
    return n >= 4 ? k : k & (uint32_t)((1ULL << (8 * n)) - 1);
}

/* Up to 4 * blocks bytes without a branch on the length, which would be mispredicted at every other word. */
SP_INLINE uint32_t sp_murmur3_short(const uint8_t *p, uint32_t n, uint32_t blocks) {
    uint32_t h = 0;
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t left = n > 4 * i ? n - 4 * i : 0;
        h ^= sp_mix_block(sp_keep_bytes(sp_load32(p + 4 * i), left));
        h = left >= 4 ? sp_mix_hash(h) : h;
    }
    return h;
}

/* `p` can be read for 3 bytes past its end and, however short, for 12 bytes. */
SP_INLINE uint32_t sp_murmur3(const uint8_t *p, uint32_t n) {
    uint32_t h;
    if (n <= 12) {
        h = sp_murmur3_short(p, n, 3);
    } else {
        uint32_t i = 0;
        for (h = 0; i + 4 <= n; i += 4) h = sp_mix_hash(h ^ sp_mix_block(sp_load32(p + i)));
        h ^= sp_mix_block(sp_keep_bytes(sp_load32(p + i), n - i));
    }
    h ^= n;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

#endif
