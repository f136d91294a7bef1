/* The words of a message, each once, and the sum of their vectors. A vector that was looked up is kept by the hash of its
   word. It is codes · 2^shift, so that sums are exact in any order. */

#ifndef STREAM_PEGASOS_VECTORS_H
#define STREAM_PEGASOS_VECTORS_H

#include <math.h>

#include "hashes.h"
#include "memory.h"

enum {
    SP_MOST_WORDS = 96 << 10,     /* whose vectors are kept: when more come, all of these are forgotten */
    SP_FEWEST_SLOTS = 64,
    SP_WORD_PADDING = 64,         /* bytes that may be read after a word */
    SP_ADDED_EXACTLY = 1 << 16    /* vectors whose sum is within 32 bits, whatever they are */
};

typedef struct {
    uint64_t hash;
    const uint8_t *bytes; /* as long as the message is the current one */
    uint32_t n;
} sp_met_word;

typedef struct {
    uint32_t *slots; /* a place and one, or 0 where there is none; twice as many as places, or more */
    ptrdiff_t capacity;
    uint32_t mask;
} sp_places;

typedef struct {
    ptrdiff_t d; /* numbers of a vector */
    uint64_t secret;
    sp_met_word *met; /* the words of the message */
    ptrdiff_t n_met, met_capacity;
    sp_places met_places;
    uint64_t *hashes; /* of the words whose vectors are kept */
    int8_t *codes;
    uint8_t *shifts;
    ptrdiff_t n, hashes_capacity, codes_capacity, shifts_capacity;
    sp_places places;
    uint8_t *noted; /* words to be looked up, with a space behind each */
    ptrdiff_t n_noted, n_noted_words, noted_capacity;
    int32_t *sums;
    double *totals; /* what was in the sums before these were emptied */
    ptrdiff_t n_added;
    int failed; /* for want of memory */
} sp_vectors;

SP_INLINE uint32_t sp_slot_in(const sp_places *p, uint64_t secret, uint64_t hash) { return (uint32_t)(hash * secret >> 32) & p->mask; }

/* Slots for twice n places, or more, all of them empty if there were too few. */
static int sp_reserve_slots(sp_places *p, ptrdiff_t n, int *emptied) {
    ptrdiff_t size = p->slots ? (ptrdiff_t)p->mask + 1 : SP_FEWEST_SLOTS;
    *emptied = 0;
    if (p->slots && 2 * n <= size) return 0;
    while (size < 2 * n) size *= 2;
    if (sp_reserve(&p->slots, &p->capacity, size, sizeof(uint32_t)) < 0) return -1;
    p->mask = (uint32_t)(size - 1), *emptied = 1;
    memset(p->slots, 0, (size_t)size * sizeof(uint32_t));
    return 0;
}

static void sp_begin_message(sp_vectors *v) {
    sp_places *p = &v->met_places;
    if (p->slots) {
        memset(p->slots, 0, ((size_t)p->mask + 1) * sizeof(uint32_t));
        p->mask = SP_FEWEST_SLOTS - 1;
    }
    v->n_met = v->n_added = v->failed = 0;
    memset(v->sums, 0, (size_t)v->d * sizeof(int32_t));
    memset(v->totals, 0, (size_t)v->d * sizeof(double));
}

/* Take note of a word, once a message. */
static void sp_meet_word(sp_vectors *v, const uint8_t *bytes, uint32_t n) {
    const uint64_t hash = sp_hash_word(bytes, n);
    sp_places *p = &v->met_places;
    int emptied;
    uint32_t slot;
    if (sp_reserve_slots(p, v->n_met + 1, &emptied) < 0
        || sp_reserve(&v->met, &v->met_capacity, v->n_met + 1, sizeof(sp_met_word)) < 0) {
        v->failed = 1;
        return;
    }
    for (ptrdiff_t i = 0; emptied && i < v->n_met; i++) {
        for (slot = sp_slot_in(p, v->secret, v->met[i].hash); p->slots[slot]; slot = (slot + 1) & p->mask) {}
        p->slots[slot] = (uint32_t)i + 1;
    }
    for (slot = sp_slot_in(p, v->secret, hash); p->slots[slot]; slot = (slot + 1) & p->mask)
        if (v->met[p->slots[slot] - 1].hash == hash) return;
    v->met[v->n_met].hash = hash, v->met[v->n_met].bytes = bytes, v->met[v->n_met].n = n;
    p->slots[slot] = (uint32_t)++v->n_met;
}

SP_INLINE void sp_add_codes_by(int32_t *sums, const int8_t *codes, ptrdiff_t d, int32_t unit) {
    for (ptrdiff_t i = 0; i < d; i++) sums[i] += codes[i] * unit;
}
static void sp_add_codes_portable(int32_t *sums, const int8_t *codes, ptrdiff_t d, int32_t unit) { sp_add_codes_by(sums, codes, d, unit); }
#if defined(SP_AVX2)
static SP_TARGET_AVX2 void sp_add_codes_avx2(int32_t *sums, const int8_t *codes, ptrdiff_t d, int32_t unit) {
    sp_add_codes_by(sums, codes, d, unit);
}
#endif
#define sp_add_codes SP_BETTER(sp_add_codes)

/* Add a vector to the sum. */
static void sp_add_vector(sp_vectors *v, const int8_t *codes, int shift) {
    if (v->n_added++ == SP_ADDED_EXACTLY) {
        for (ptrdiff_t i = 0; i < v->d; i++) v->totals[i] += v->sums[i], v->sums[i] = 0;
        v->n_added = 1;
    }
    sp_add_codes(v->sums, codes, v->d, 1 << shift);
}

/* Add a vector that comes with the message. */
static void sp_add_numbers(sp_vectors *v, const float *numbers, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) v->totals[i] += numbers[i];
}

/* The place of a word among those whose vectors are kept; −1 for any other. */
SP_INLINE ptrdiff_t sp_find_kept(const sp_vectors *v, uint64_t hash) {
    const sp_places *p = &v->places;
    if (p->slots)
        for (uint32_t slot = sp_slot_in(p, v->secret, hash); p->slots[slot]; slot = (slot + 1) & p->mask)
            if (v->hashes[p->slots[slot] - 1] == hash) return (ptrdiff_t)p->slots[slot] - 1;
    return -1;
}

/* Add the vectors of the words from `begin` on that are kept; how many are not, and which these are. */
static ptrdiff_t sp_add_kept(sp_vectors *v, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t *missing) {
    ptrdiff_t n_missing = 0, place, next = begin < end ? sp_find_kept(v, v->met[begin].hash) : -1;
    for (ptrdiff_t i = begin; i < end; i++) {
        place = next;
        if (i + 1 < end) {
            next = sp_find_kept(v, v->met[i + 1].hash);
            if (next >= 0)
                for (ptrdiff_t at = 0; at < v->d; at += 64) SP_PREFETCH(v->codes + next * v->d + at);
        }
        if (place >= 0) sp_add_vector(v, v->codes + place * v->d, v->shifts[place]);
        else missing[n_missing++] = i;
    }
    return n_missing;
}

/* Write down words of the message that are to be looked up, each with a space behind it; −1 if there is no memory. */
static int sp_note_words(sp_vectors *v, const ptrdiff_t *which, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) {
        const sp_met_word *word = &v->met[which[i]];
        if (sp_reserve(&v->noted, &v->noted_capacity, v->n_noted + word->n + 1 + SP_WORD_PADDING, 1) < 0) return -1;
        memcpy(v->noted + v->n_noted, word->bytes, word->n);
        v->n_noted += word->n;
        v->noted[v->n_noted++] = ' ';
        v->n_noted_words++;
    }
    return 0;
}

/* Forget all vectors that are kept, if there would be too many with n more. */
static void sp_make_room_for_words(sp_vectors *v, ptrdiff_t n) {
    if (v->n + n <= SP_MOST_WORDS || !v->places.slots) return;
    memset(v->places.slots, 0, ((size_t)v->places.mask + 1) * sizeof(uint32_t));
    v->n = 0;
}

/* Keep the vector of a word, unless it is kept already; -1 if there is no memory. */
static int sp_keep_vector(sp_vectors *v, uint64_t hash, const int8_t *codes, int shift) {
    sp_places *p = &v->places;
    int emptied;
    uint32_t slot;
    if (sp_find_kept(v, hash) >= 0) return 0;
    if (sp_reserve_slots(p, v->n + 1, &emptied) < 0
        || sp_reserve(&v->hashes, &v->hashes_capacity, v->n + 1, sizeof(uint64_t)) < 0
        || sp_reserve(&v->shifts, &v->shifts_capacity, v->n + 1, 1) < 0
        || sp_reserve(&v->codes, &v->codes_capacity, (v->n + 1) * v->d, 1) < 0)
        return -1;
    for (ptrdiff_t i = 0; emptied && i < v->n; i++) {
        for (slot = sp_slot_in(p, v->secret, v->hashes[i]); p->slots[slot]; slot = (slot + 1) & p->mask) {}
        p->slots[slot] = (uint32_t)i + 1;
    }
    for (slot = sp_slot_in(p, v->secret, hash); p->slots[slot]; slot = (slot + 1) & p->mask) {}
    v->hashes[v->n] = hash, v->shifts[v->n] = (uint8_t)shift;
    memcpy(v->codes + v->n * v->d, codes, (size_t)v->d);
    p->slots[slot] = (uint32_t)++v->n;
    return 0;
}

/* The vector of the message: the sum, divided by its norm. */
static void sp_write_vector(const sp_vectors *v, float *out) {
    double squares[4] = {0.0, 0.0, 0.0, 0.0}, factor;
    for (ptrdiff_t i = 0; i < v->d; i++) {
        const double total = v->totals[i] + v->sums[i];
        squares[i & 3] += total * total;
    }
    factor = (squares[0] + squares[1]) + (squares[2] + squares[3]);
    factor = factor > 0.0 ? 1.0 / sqrt(factor) : 0.0;
    for (ptrdiff_t i = 0; i < v->d; i++) out[i] = (float)((v->totals[i] + v->sums[i]) * factor);
}

#endif
