/* Hashing ranges of text, and words. */

#ifndef STREAM_PEGASOS_HASHES_H
#define STREAM_PEGASOS_HASHES_H

#include "simd.h"

SP_INLINE uint32_t sp_load32(const uint8_t *p) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
#else
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
#endif
}
SP_INLINE uint64_t sp_load64(const uint8_t *p) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return sp_load32(p) | (uint64_t)sp_load32(p + 4) << 32;
#else
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
#endif
}

/* The bits of sixteen bytes of which n are of the word. */
#define SP_BITS(n) ((n) >= 8 ? ~0ULL : (1ULL << 8 * (n)) - 1)
#define SP_BITS_OF(n) {SP_BITS(n), (n) <= 8 ? 0 : SP_BITS((n) - 8)}
static const uint64_t sp_bits_of_word[17][2] = {
    SP_BITS_OF(0), SP_BITS_OF(1), SP_BITS_OF(2), SP_BITS_OF(3), SP_BITS_OF(4), SP_BITS_OF(5), SP_BITS_OF(6), SP_BITS_OF(7), SP_BITS_OF(8),
    SP_BITS_OF(9), SP_BITS_OF(10), SP_BITS_OF(11), SP_BITS_OF(12), SP_BITS_OF(13), SP_BITS_OF(14), SP_BITS_OF(15), SP_BITS_OF(16),
};
#undef SP_BITS
#undef SP_BITS_OF

/* --- MurmurHash3_x86_32 with seed 0 (Appleby, 2011, public domain) ------------------------------------------------ */

SP_INLINE uint32_t sp_rotate(uint32_t x, int r) { return x << r | x >> (32 - r); }
SP_INLINE uint32_t sp_mix_block(uint32_t k) { return sp_rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
SP_INLINE uint32_t sp_mix_hash(uint32_t h) { return sp_rotate(h, 13) * 5 + 0xe6546b64u; }

/* `p` can be read for SP_BLOCK bytes after its end. The last bytes, up to 16, go without a branch on how many there are, which
   would be mispredicted at every other word. */
SP_INLINE uint32_t sp_murmur3(const uint8_t *p, uint32_t n) {
    uint32_t h = 0, left = n;
    for (; left > 16; left -= 4, p += 4) h = sp_mix_hash(h ^ sp_mix_block(sp_load32(p)));
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t text = (uint32_t)(sp_bits_of_word[left][i >> 1] >> 32 * (i & 1));
        h ^= sp_mix_block(sp_load32(p + 4 * i) & text);
        h ^= (h ^ sp_mix_hash(h)) & (0 - (text >> 31)); /* whole blocks */
    }
    h ^= n;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* The hashes of n ranges of `source`; there is room for n to be rounded up to eight hashes. */
static void sp_hash_portable(const uint8_t *source, const uint32_t *starts, const uint32_t *ends, size_t n, uint32_t *hashes) {
    for (size_t i = 0; i < n; i++) hashes[i] = sp_murmur3(source + starts[i], ends[i] - starts[i]);
}

#if defined(SP_AVX2)
/* Eight ranges at a time, each in a lane of its own, the first 16 bytes of each; longer ones again, one by one. */
static SP_TARGET_AVX2 void sp_hash_eight(const uint8_t *source, const uint32_t *starts, const uint32_t *ends, uint32_t *hashes) {
#define LOAD(i) _mm_loadu_si128((const __m128i *)(source + starts[i]))
#define PAIR(i) _mm256_inserti128_si256(_mm256_castsi128_si256(LOAD(i)), LOAD((i) + 4), 1)
#define ROTATE(x, r) _mm256_or_si256(_mm256_slli_epi32(x, r), _mm256_srli_epi32(x, 32 - (r)))
#define TIMES(x, c) _mm256_mullo_epi32(x, _mm256_set1_epi32((int)(c)))
    const __m256i length = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)ends), _mm256_loadu_si256((const __m256i *)starts));
    const __m256i bits = _mm256_slli_epi32(length, 3);
    const __m256i a = PAIR(0), b = PAIR(1), c = PAIR(2), d = PAIR(3);
    const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    const __m256i ab2 = _mm256_unpackhi_epi32(a, b), cd2 = _mm256_unpackhi_epi32(c, d);
    const __m256i blocks[4] = {_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd),
                               _mm256_unpacklo_epi64(ab2, cd2), _mm256_unpackhi_epi64(ab2, cd2)};
    __m256i h = _mm256_setzero_si256();
    for (int j = 0; j < 4; j++) {
        /* Shifting ones right by 32 bits and more leaves none: past the end of a range everything is masked. */
        const __m256i spare = _mm256_max_epi32(_mm256_sub_epi32(_mm256_set1_epi32(32 * (j + 1)), bits), _mm256_setzero_si256());
        const __m256i block = _mm256_and_si256(blocks[j], _mm256_srlv_epi32(_mm256_set1_epi32(-1), spare));
        h = _mm256_xor_si256(h, TIMES(ROTATE(TIMES(block, 0xcc9e2d51u), 15), 0x1b873593u));
        const __m256i turned = ROTATE(h, 13);
        const __m256i mixed = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(turned, 2), turned), _mm256_set1_epi32((int)0xe6546b64u));
        h = _mm256_blendv_epi8(h, mixed, _mm256_cmpgt_epi32(length, _mm256_set1_epi32(4 * j + 3)));
    }
    h = _mm256_xor_si256(h, length);
    h = TIMES(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)), 0x85ebca6bu);
    h = TIMES(_mm256_xor_si256(h, _mm256_srli_epi32(h, 13)), 0xc2b2ae35u);
    _mm256_storeu_si256((__m256i *)hashes, _mm256_xor_si256(h, _mm256_srli_epi32(h, 16)));
    unsigned beyond = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(length, _mm256_set1_epi32(16))));
    for (; beyond; beyond &= beyond - 1) {
        const unsigned k = sp_lowest_bit(beyond);
        hashes[k] = sp_murmur3(source + starts[k], ends[k] - starts[k]);
    }
#undef LOAD
#undef PAIR
#undef ROTATE
#undef TIMES
}
static SP_TARGET_AVX2 void sp_hash_avx2(const uint8_t *source, const uint32_t *starts, const uint32_t *ends, size_t n, uint32_t *hashes) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) sp_hash_eight(source, starts + i, ends + i, hashes + i);
    if (i < n) {
        uint32_t last_starts[8] = {0}, last_ends[8] = {0};
        for (size_t j = i; j < n; j++) last_starts[j - i] = starts[j], last_ends[j - i] = ends[j];
        sp_hash_eight(source, last_starts, last_ends, hashes + i);
    }
}
#endif
#define sp_hash SP_BETTER(sp_hash)

/* --- the hash of words: see `word_64` in pure/scanner.py ------------------------------------------------------------ */

#define SP_SEED 0x243F6A8885A308D3ULL
#define SP_OF_LENGTH 0x13198A2E03707345ULL
#define SP_OF_WORD 0xA4093822299F31D1ULL
#define SP_OF_NEXT 0x082EFA98EC4E6C89ULL

#define SP_OF_NOTHING sp_joined_product(SP_OF_WORD, SP_SEED) /* the hash of a word without bytes */

/* `word` can be read for 16 bytes after its end. */
SP_INLINE uint64_t sp_hash_word(const uint8_t *word, uint32_t n) {
    uint64_t h = SP_SEED + n * SP_OF_LENGTH;
    for (; n > 16; n -= 16, word += 16)
        h = sp_joined_product(sp_load64(word) ^ SP_OF_WORD, sp_load64(word + 8) ^ h);
    return sp_joined_product((sp_load64(word) & sp_bits_of_word[n][0]) ^ SP_OF_WORD,
                             (sp_load64(word + 8) & sp_bits_of_word[n][1]) ^ h);
}

/* The hash of words with spaces between. */
static uint32_t sp_hash_words(const uint8_t *words, uint32_t n) {
    uint64_t h = 0;
    uint32_t begin = 0, i;
    for (i = 0; i <= n; i++)
        if (i == n || words[i] == ' ') {
            h = h * SP_OF_NEXT + sp_hash_word(words + begin, i - begin);
            begin = i + 1;
        }
    return (uint32_t)(h >> 32);
}

/* The hashes of words, of the pairs with the word before each, whose hash is `last`, and of the first `prefix` bytes, at most
   eight, of longer ones, behind a space; up to a word that begins with the byte `stop` or a later one, or whose prefix is not
   ASCII. How many words it were; `hashes` moves to behind the last. */
static size_t sp_hash_pairs(const uint8_t *source, const uint32_t *starts, const uint32_t *ends, size_t n, uint32_t prefix,
                            unsigned stop, uint64_t *last, uint32_t **hashes) {
    const uint64_t of_prefix = prefix ? sp_bits_of_word[prefix][0] : 0, length = SP_SEED + prefix * SP_OF_LENGTH;
    const uint64_t after_space = SP_OF_NOTHING * SP_OF_NEXT;
    uint64_t before = *last;
    uint32_t *out = *hashes;
    size_t i = 0;
    for (; i < n; i++) {
        const uint8_t *word = source + starts[i];
        const uint32_t size = ends[i] - starts[i];
        const uint64_t bytes = sp_load64(word);
        uint64_t h;
        if ((bytes & 0xff) >= stop || (bytes & of_prefix & 0x8080808080808080ULL)) break;
        h = sp_hash_word(word, size);
        out[0] = (uint32_t)(h >> 32);
        out[1] = (uint32_t)((before * SP_OF_NEXT + h) >> 32);
        out[2] = (uint32_t)((after_space + sp_joined_product((bytes & of_prefix) ^ SP_OF_WORD, length)) >> 32);
        out += 2 + (prefix && size > prefix);
        before = h;
    }
    *last = before;
    *hashes = out;
    return i;
}

#endif
