/* The distinct columns that the n-grams of a text are hashed to, and how often each is met. */

#ifndef STREAM_PEGASOS_BAG_H
#define STREAM_PEGASOS_BAG_H

#include "simd.h"

typedef struct {
    uint32_t n_features, index_mask; /* the mask is 0 where the number of columns is no power of two */
    uint32_t field;                  /* what tells the n-grams of a field from those of others */
    int alternate_sign, binary;
    uint32_t *indices; /* in the order in which they came */
    int64_t *counts; /* a long text has more n-grams than 32 bits count */
    ptrdiff_t n, indices_capacity, counts_capacity;
    /* A table from index to position among these, of which a part is in use that is as small as the text allows; all of it
       is empty between texts. An entry is (index + 1) << 32 | position; if binary index + 1 alone, in 32 bits. Strangers
       write the words: nobody who does not know the secret can choose such as would crowd there. */
    uint64_t *table;
    uint32_t secret, mask, shift; /* 32 bits less those of the mask */
    ptrdiff_t table_capacity;
    /* Where n-grams count differently: how much each of the first `n_weighed` does. */
    int weighted;
    double *weights;
    ptrdiff_t n_weighed, weights_capacity;
} sp_bag;

enum { SP_SMALLEST_TABLE = 16 };

SP_INLINE uint32_t sp_index_of(const sp_bag *bag, uint32_t hash) {
    const uint32_t size = (int32_t)hash < 0 ? 0 - hash : hash;
    return bag->index_mask ? size & bag->index_mask : size % bag->n_features;
}

/* Where an index stands in the table from `slot` on, or is to stand. Which of the two it is, is hard to predict: hence the
   product. */
SP_INLINE uint32_t sp_slot_from(const sp_bag *bag, uint32_t slot, uint32_t index, int binary) {
    for (;;) {
        const uint32_t there = binary ? ((const uint32_t *)bag->table)[slot] : (uint32_t)(bag->table[slot] >> 32);
        if ((uint64_t)there * (there ^ (index + 1)) == 0) return slot;
        slot = (slot + 1) & bag->mask;
    }
}

SP_INLINE uint32_t sp_slot_of(const sp_bag *bag, uint32_t index, int binary) {
    return sp_slot_from(bag, index * bag->secret >> bag->shift, index, binary);
}

static void sp_clear_table(sp_bag *bag) {
    memset(bag->table, 0, ((size_t)bag->mask + 1) * (bag->binary ? sizeof(uint32_t) : sizeof(uint64_t)));
}

static void sp_set_size(sp_bag *bag, uint32_t size) {
    bag->mask = size - 1;
    bag->shift = 32 - sp_lowest_bit(size);
}

static int sp_reserve_table(sp_bag *bag, ptrdiff_t size) {
    const ptrdiff_t before = bag->table_capacity;
    if (sp_reserve(&bag->table, &bag->table_capacity, size, sizeof(uint64_t)) < 0) return -1;
    memset(bag->table + before, 0, (size_t)(bag->table_capacity - before) * sizeof(uint64_t));
    sp_set_size(bag, (uint32_t)size);
    return 0;
}

/* Room for `more` distinct indices, with at least two positions for each. */
static int sp_reserve_bag(sp_bag *bag, ptrdiff_t more) {
    const ptrdiff_t needed = bag->n + more + 1, before = bag->counts_capacity;
    ptrdiff_t size = (ptrdiff_t)bag->mask + 1, i;
    if (sp_reserve(&bag->indices, &bag->indices_capacity, needed, sizeof(uint32_t)) < 0) return -1;
    if (sp_reserve(&bag->counts, &bag->counts_capacity, needed, sizeof(int64_t)) < 0) return -1;
    if (bag->weighted && sp_reserve(&bag->weights, &bag->weights_capacity, needed, sizeof(double)) < 0) return -1;
    memset(bag->counts + before, 0, (size_t)(bag->counts_capacity - before) * sizeof(int64_t));
    if (needed * 4 <= size) return 0;
    sp_clear_table(bag);
    while (size < needed * 4) size *= 2;
    if (sp_reserve_table(bag, size) < 0) return -1;
    for (i = 0; i < bag->n; i++) {
        const uint32_t index = bag->indices[i], slot = sp_slot_of(bag, index, bag->binary);
        if (bag->binary) ((uint32_t *)bag->table)[slot] = index + 1;
        else bag->table[slot] = (uint64_t)(index + 1) << 32 | (uint64_t)i;
    }
    return 0;
}

/* Write the indices of hashes behind those that are there, and over the hashes where each is first looked for: apart from the
   looking, so that several are taken at a time. */
SP_INLINE void sp_find_slots_portable(const sp_bag *bag, uint32_t *hashes, ptrdiff_t n) {
    const sp_bag b = *bag;
    uint32_t *indices = b.indices + b.n;
    for (ptrdiff_t i = 0; i < n; i++) {
        indices[i] = sp_index_of(&b, hashes[i] ^ b.field);
        hashes[i] = indices[i] * b.secret >> b.shift;
    }
}
#if defined(SP_AVX2)
static SP_TARGET_AVX2 void sp_find_slots_avx2(const sp_bag *bag, uint32_t *hashes, ptrdiff_t n) { sp_find_slots_portable(bag, hashes, n); }
#endif
#define sp_find_slots SP_BETTER(sp_find_slots)

/* Whether an index is new is hard to predict, so nothing branches on it. */
static void sp_add_once(sp_bag *bag, uint32_t *hashes, ptrdiff_t n) {
    const sp_bag b = *bag;
    const uint32_t *new = b.indices + b.n;
    uint32_t *table = (uint32_t *)b.table, n_distinct = (uint32_t)b.n;
    sp_find_slots(bag, hashes, n);
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t index = new[i], slot = sp_slot_from(&b, hashes[i], index, 1);
        b.indices[n_distinct] = index;
        n_distinct += table[slot] == 0;
        table[slot] = index + 1;
    }
    bag->n = n_distinct;
}

static void sp_add_each(sp_bag *bag, const uint32_t *hashes, ptrdiff_t n) {
    const sp_bag b = *bag;
    uint32_t n_distinct = (uint32_t)b.n;
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t hash = hashes[i] ^ b.field, index = sp_index_of(&b, hash), slot = sp_slot_of(&b, index, 0);
        const uint64_t entry = b.table[slot];
        const uint32_t position = (uint32_t)entry | (n_distinct & (0 - (uint32_t)(entry == 0)));
        b.table[slot] = (uint64_t)(index + 1) << 32 | position;
        b.indices[position] = index;
        b.counts[position] += 1 - 2 * (int64_t)(b.alternate_sign & hash >> 31);
        n_distinct += entry == 0;
    }
    bag->n = n_distinct;
}

/* Count the indices of hashes, which are overwritten; -1 if there is no memory. */
static int sp_add(sp_bag *bag, uint32_t *hashes, ptrdiff_t n) {
    if (sp_reserve_bag(bag, n) < 0) return -1;
    if (bag->binary) sp_add_once(bag, hashes, n);
    else sp_add_each(bag, hashes, n);
    return 0;
}

/* Have those that are new since the last call count so much. */
SP_INLINE void sp_weigh(sp_bag *bag, double weight) {
    for (; bag->n_weighed < bag->n; bag->n_weighed++) bag->weights[bag->n_weighed] = weight;
}

/* Make it empty. */
static void sp_empty_bag(sp_bag *bag) {
    bag->n_weighed = 0;
    if (!bag->binary && bag->n) memset(bag->counts, 0, (size_t)bag->n * sizeof(int64_t));
    sp_clear_table(bag);
    sp_set_size(bag, SP_SMALLEST_TABLE);
    bag->n = 0;
}

#endif
