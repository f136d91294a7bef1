/* From a text to its tokens, from these to n-grams, and to the hashes that are counted: one walk, whatever the tokens are.

   An n-gram is hashed as scikit-learn does it, by MurmurHash3 of its tokens with one space between; or by the hashes of its
   words, without joining these (see `words_32` in pure/scanner.py). */

#ifndef STREAM_PEGASOS_NGRAMS_H
#define STREAM_PEGASOS_NGRAMS_H

#include "bag.h"
#include "characters.h"
#include "hashes.h"
#include "vectors.h"

enum { SP_TOKENS, SP_CHARACTERS, SP_CHARACTERS_IN_WORDS, SP_READY_MADE, SP_VECTOR }; /* what n-grams are made of; of a vector none are */
enum {
    SP_BATCH = 1024,  /* n-grams counted at a time */
    SP_PADDING = 64,  /* bytes that may be read after the end of a buffer */
    SP_FIRST_OF_RUNS = 0xE0,  /* runs and Hangul begin with this byte or a later one */
    SP_LONGEST_RUN = 16,  /* characters, of one that counts as a whole and is a word to its neighbours */
    SP_SHORT_TEXT = 150,  /* characters, of one whose letters count fully */
    SP_LONG_TEXT = 300,   /* of one whose letters do not count */
    SP_FEW_WORDS = 3,     /* as many as let letters count no more than elsewhere */
    SP_LENGTHS = 32       /* powers of 2 */
};
#define SP_BEGIN ((const uint8_t *)"<s>             ") /* with room to be read as 16 bytes */
#define SP_END ((const uint8_t *)"</s>            ")

typedef struct {
    const void *data;
    ptrdiff_t length;
    int kind, fold; /* bytes a character, 0 for ASCII; what is done to them */
} sp_text;

typedef struct {
    const uint8_t *bytes; /* NULL where there is none */
    uint32_t n;
} sp_word;

typedef struct sp_scanner {
    int of, kind_of_token, two_characters, any_language, by_words, boundaries; /* no boundaries where n is 1 at most */
    ptrdiff_t min_n, max_n, prefix_length;
    sp_word *stop_words; /* a table; NULL if there are none */
    uint32_t stop_mask;
    sp_bag bag;
    sp_vectors *vectors; /* of the words, those of all fields together; NULL if this field asks for none */
    struct sp_scanner *next; /* of the next field of a message, which counts into the bag of the first; NULL if none is */
    /* The text as folded UTF-8, and where its tokens lie in it. */
    uint8_t *buffer;
    ptrdiff_t buffer_capacity;
    sp_classes ascii_classes, classes; /* the one has nothing in `rest`, the other is all zero between texts */
    sp_edges edges;
    uint32_t *offsets; /* where each character begins, if n-grams are made of these */
    ptrdiff_t offsets_capacity;
    /* Where digits are masked, words of up to so many, if that is not 0, count also as they stand: one of them; where the next
       0 is looked for, and of what is not ASCII the next digit of the text. */
    ptrdiff_t most_digits, word_capacity, next_zero, next_digit;
    uint8_t *word;
    const sp_text *text;
    /* The tokens with one space between, if n-grams are ranges of that. */
    int joins;
    uint8_t *joined;
    ptrdiff_t joined_capacity;
    uint32_t joined_length;
    uint64_t *newest; /* by their n less one, the n-grams that end with the last token: their hashes, or where they begin */
    ptrdiff_t n_tokens, n_in_line; /* all, and those since the last run that is longer than words are */
    uint64_t last_of_run; /* the hash of the last character of a run that is the last token */
    int ends_in_run, failed; /* failed for want of memory */
    /* How much letters within words count, and the length; the hashes of numbers of characters, and of tokens; the words. */
    double letters, length;
    uint32_t length_hashes[2][SP_LENGTHS], word_starts[SP_LONG_TEXT], word_ends[SP_LONG_TEXT];
    ptrdiff_t n_words;
    int has_runs;
    /* What waits to be counted: hashes, or ranges of `source`. */
    const uint8_t *source;
    uint32_t hashes[SP_BATCH], starts[SP_BATCH], ends[SP_BATCH];
    ptrdiff_t n_waiting;
} sp_scanner;

/* Where a word stands in a table of twice as many slots, or is to stand. */
static sp_word *sp_place_of(sp_word *table, uint32_t mask, const uint8_t *bytes, uint32_t n) {
    uint32_t slot = sp_murmur3(bytes, n) & mask;
    while (table[slot].bytes && (table[slot].n != n || memcmp(table[slot].bytes, bytes, n))) slot = (slot + 1) & mask;
    return table + slot;
}

/* --- hashes -------------------------------------------------------------------------------------------------------- */

static void sp_count_ranges(sp_scanner *s, const uint32_t *starts, const uint32_t *ends, ptrdiff_t n) {
    sp_hash(s->source, starts, ends, (size_t)n, s->hashes);
    if (sp_add(&s->bag, s->hashes, n) < 0) s->failed = 1;
}

static void sp_count(sp_scanner *s) {
    const ptrdiff_t n = s->n_waiting;
    s->n_waiting = 0;
    if (!s->by_words) sp_count_ranges(s, s->starts, s->ends, n);
    else if (sp_add(&s->bag, s->hashes, n) < 0) s->failed = 1;
}

SP_INLINE void sp_emit(sp_scanner *s, uint64_t hash_of_words) {
    s->hashes[s->n_waiting++] = (uint32_t)(hash_of_words >> 32);
    if (s->n_waiting == SP_BATCH) sp_count(s);
}

SP_INLINE void sp_emit_range(sp_scanner *s, uint32_t start, uint32_t end) {
    if (s->by_words) {
        s->hashes[s->n_waiting++] = sp_hash_words(s->source + start, end - start);
    } else {
        s->starts[s->n_waiting] = start;
        s->ends[s->n_waiting++] = end;
    }
    if (s->n_waiting == SP_BATCH) sp_count(s);
}

/* --- n-grams of tokens --------------------------------------------------------------------------------------------- */

/* The hash of a space and a word. */
SP_INLINE uint64_t sp_after_space(const uint8_t *word, uint32_t n) { return SP_OF_NOTHING * SP_OF_NEXT + sp_hash_word(word, n); }
/* The hash of an n-gram and a space, given that of the n-gram. */
SP_INLINE uint64_t sp_before_space(uint64_t hash) { return hash * SP_OF_NEXT + SP_OF_NOTHING; }

/* The n-grams of the characters of a run, or of a word of Hangul, which is not alone; how many characters it has. */
static ptrdiff_t sp_emit_run(sp_scanner *s, const uint8_t *run, uint32_t n_bytes, int alone) {
    ptrdiff_t n = 0, rest;
    uint32_t before = 0, last = 0, at = 0, after, prefix_end = 0;
    uint64_t of_last = 0, of_last_two = 0;
    int plain = n_bytes % 3 == 0; /* Han alone: nothing belongs to a character but itself */
    for (; plain && at < n_bytes; at += 3) plain = sp_begins_han(run + at);
    for (at = 0; at < n_bytes; before = last, last = at, at = after) {
        uint32_t *out;
        if (s->n_waiting > SP_BATCH - 4) sp_count(s); /* so that one more fits after the three of a character */
        out = s->hashes + s->n_waiting;
        after = plain ? at + 3 : sp_end_of_character(run, at, n_bytes);
        of_last = sp_hash_word(run + at, after - at);
        if (n > 0) *out++ = (uint32_t)((n == 1 ? sp_after_space(run, after) : sp_hash_word(run + before, after - before)) >> 32);
        else if (alone && s->boundaries && s->n_tokens == 2 && s->max_n > 1)
            *out++ = (uint32_t)((sp_hash_word(SP_BEGIN, 3) * SP_OF_NEXT + of_last) >> 32);
        of_last_two = n ? sp_hash_word(run + last, after - last) : sp_after_space(run, after);
        *out++ = (uint32_t)(of_last >> 32);
        *out++ = (uint32_t)(of_last_two >> 32);
        s->n_waiting = out - s->hashes;
        if (s->vectors) sp_meet_word(s->vectors, run + at, after - at);
        if (++n == s->prefix_length) prefix_end = after;
    }
    sp_emit(s, sp_before_space(of_last));
    sp_emit(s, sp_before_space(of_last_two));
    if (!alone) return n;
    s->last_of_run = of_last;
    if (1 < n && n <= SP_LONGEST_RUN) sp_emit(s, sp_before_space(sp_after_space(run, n_bytes)));
    if (0 < s->prefix_length && s->prefix_length < n) {
        at = plain ? n_bytes - 3 * (uint32_t)s->prefix_length : 0;
        for (rest = plain ? 0 : n; rest > s->prefix_length; rest--) at = sp_end_of_character(run, at, n_bytes);
        sp_emit(s, sp_after_space(run, prefix_end));
        sp_emit(s, sp_before_space(sp_hash_word(run + at, n_bytes - at)));
    }
    return n;
}

/* Append a token to those of before, a space between; where it begins. There is room for it, and for 16 bytes to be copied
   where fewer are meant. */
SP_INLINE uint32_t sp_join(sp_scanner *s, const uint8_t *token, uint32_t n) {
    const uint32_t begin = s->joined_length;
    memcpy(s->joined + begin, token, 16);
    if (n > 16) memcpy(s->joined + begin, token, n);
    s->joined[begin + n] = ' ';
    s->joined_length = begin + n + 1;
    return begin;
}

/* The words and pairs from token *i on, as many as may be hashed at once; whether a batch of them is full. */
SP_INLINE int sp_walk_pairs(sp_scanner *s, ptrdiff_t *i, uint32_t first_of_runs) {
    const sp_edges *edges = &s->edges;
    uint32_t *out = s->hashes + s->n_waiting;
    const size_t room = (size_t)(SP_BATCH - s->n_waiting) / 3, left = (size_t)(edges->n_ends - *i);
    const size_t most = left < room ? left : room;
    const ptrdiff_t done = (ptrdiff_t)sp_hash_pairs(
        s->buffer, edges->starts + *i, edges->ends + *i, most, (uint32_t)s->prefix_length, first_of_runs, s->newest, &out);
    s->n_waiting = out - s->hashes;
    for (ptrdiff_t j = *i; s->vectors && j < *i + done; j++)
        sp_meet_word(s->vectors, s->buffer + edges->starts[j], edges->ends[j] - edges->starts[j]);
    s->n_tokens += done, s->n_in_line += done, *i += done;
    if (done) s->ends_in_run = 0;
    if (s->n_waiting > SP_BATCH - 3) sp_count(s);
    return done == (ptrdiff_t)most;
}

/* The n-grams of `least` words and more that end with the token of this hash, or with the range of it that ends there. */
SP_INLINE void sp_emit_ngrams(sp_scanner *s, uint64_t h, ptrdiff_t least, uint32_t end, int by_words) {
    const ptrdiff_t most = s->max_n < s->n_in_line ? s->max_n : s->n_in_line;
    uint64_t *newest = s->newest;
    ptrdiff_t size;
    for (size = most; size > 1; size--) newest[size - 1] = by_words ? newest[size - 2] * SP_OF_NEXT + h : newest[size - 2];
    newest[0] = h;
    for (size = least; size <= most; size++)
        if (by_words) sp_emit(s, newest[size - 1]);
        else sp_emit_range(s, (uint32_t)newest[size - 1], end);
}

/* The n-grams that end with the tokens found; by_words as the scanner has it, but known as this is compiled. */
SP_INLINE void sp_walk_by(sp_scanner *s, int at_end, int two_characters, int ascii, int by_words) {
    const sp_edges *edges = &s->edges;
    const ptrdiff_t n_ends = edges->n_ends, last = n_ends + (at_end && s->boundaries), max_n = s->max_n;
    const int filtered = two_characters || s->stop_words, may_be_runs = by_words && s->any_language && !ascii;
    const int joins = !by_words && s->joins;
    const int usual = by_words && s->min_n == 1 && max_n == 2 && s->prefix_length <= 8 && !filtered;
    ptrdiff_t i = s->boundaries && s->n_tokens == 0 ? -1 : 0;
    if (s->n_tokens == 0) s->ends_in_run = 0;
    for (; i < last; i++) {
        const uint8_t *token;
        uint32_t n, prefix = 0;
        ptrdiff_t least = s->min_n;
        uint64_t h;
        if (usual && 0 <= i && i < n_ends && s->n_in_line > 0 && sp_walk_pairs(s, &i, may_be_runs ? SP_FIRST_OF_RUNS : 256)) {
            i--;
            continue;
        }
        if (i < 0) {
            token = SP_BEGIN, n = 3, least = max_n + 1;
        } else if (i == n_ends) {
            if (s->n_tokens == 1) break;
            token = SP_END, n = 4, least = least < 2 ? 2 : least;
        } else {
            token = s->buffer + edges->starts[i], n = edges->ends[i] - edges->starts[i];
            if (two_characters && n <= sp_utf8_length(token[0])) continue;
            if (s->stop_words && sp_place_of(s->stop_words, s->stop_mask, token, n)->bytes) continue;
            if (s->prefix_length) prefix = ascii ? (uint32_t)s->prefix_length : sp_first_bytes(token, n, s->prefix_length);
        }
        s->n_tokens++;
        h = by_words ? sp_hash_word(token, n) : joins ? sp_join(s, token, n) : edges->starts[i];
        if (may_be_runs) {
            const int kind = token[0] >= SP_FIRST_OF_RUNS ? sp_class_of(sp_read_utf8(token)) : SP_WORD;
            ptrdiff_t n_characters = 0;
            if (i == n_ends && s->ends_in_run && max_n > 1) sp_emit(s, s->last_of_run * SP_OF_NEXT + h);
            if (kind == SP_SYLLABLE || kind == SP_CHARACTER) n_characters = sp_emit_run(s, token, n, kind == SP_CHARACTER);
            s->ends_in_run = kind == SP_CHARACTER;
            if (kind == SP_CHARACTER) {
                if (n_characters > SP_LONGEST_RUN) {
                    s->n_in_line = 0;
                    continue;
                }
                prefix = 0, least = least < 2 ? 2 : least;
            }
        }
        if (s->vectors && 0 <= i && i < n_ends && !s->ends_in_run) sp_meet_word(s->vectors, token, n);
        s->n_in_line++;
        sp_emit_ngrams(s, h, least, by_words ? 0 : joins ? s->joined_length - 1 : edges->ends[i], by_words);
        /* A prefix stands behind a space, to tell it from a word. */
        if (0 < prefix && prefix < n) {
            if (by_words) sp_emit(s, sp_after_space(token, prefix));
            else sp_emit_range(s, (uint32_t)h - 1, (uint32_t)h + prefix);
        }
    }
}

static void sp_walk(sp_scanner *s, int at_end, int two_characters, int ascii) {
    const sp_edges *edges = &s->edges;
    ptrdiff_t room = SP_PADDING, i;
    if (s->by_words) {
        sp_walk_by(s, at_end, two_characters, ascii, 1);
        return;
    }
    s->source = s->buffer;
    if (!s->joins && !two_characters && !s->stop_words) { /* tokens that count as they lie there */
        for (i = 0; i < edges->n_ends; i += SP_BATCH)
            sp_count_ranges(s, edges->starts + i, edges->ends + i, edges->n_ends - i < SP_BATCH ? edges->n_ends - i : SP_BATCH);
        return;
    }
    if (s->joins) {
        /* Every token comes with a space, and so takes at most twice its own length. */
        if (edges->n_ends) room += 2 * (ptrdiff_t)(edges->ends[edges->n_ends - 1] - edges->starts[0]);
        if (sp_reserve(&s->joined, &s->joined_capacity, (ptrdiff_t)s->joined_length + room, 1) < 0) {
            s->failed = 1;
            return;
        }
        s->source = s->joined;
        if (s->joined_length == 0) s->joined[s->joined_length++] = ' ';
    }
    sp_walk_by(s, at_end, two_characters, ascii, 0);
}

/* --- words of few digits, as they stand ----------------------------------------------------------------------------- */

/* What a 0 of the buffer was in the text, where digits stand in the same order. */
static uint32_t sp_unmasked(sp_scanner *s, uint32_t at) {
    const sp_text *text = s->text;
    const uint8_t *bytes = (const uint8_t *)text->data;
    ptrdiff_t i = s->next_digit;
    uint32_t c = '0';
    if (!text->kind) return bytes[at];
    if (text->kind == 1) { /* whose digits are those of ASCII */
        while (i < text->length && (uint32_t)(bytes[i] - '0') >= 10) i++;
        if (i < text->length) c = bytes[i++];
    } else {
        while (i < text->length) {
            const uint32_t next = PyUnicode_READ(text->kind, text->data, i++);
            if (sp_is_han(next) || !sp_is_digit(next)) continue;
            c = next;
            break;
        }
    }
    s->next_digit = i;
    return c;
}

static void sp_take_number(sp_scanner *s, uint32_t start, uint32_t end) {
    const int is_long = !s->two_characters || end - start > sp_utf8_length(s->buffer[start]);
    ptrdiff_t n_digits = 0;
    int differs = 0;
    uint8_t *out;
    for (uint32_t at = start; at < end; at++) n_digits += s->buffer[at] == '0';
    if (n_digits > s->most_digits) {
        for (; s->text->kind && n_digits > 0; n_digits--) sp_unmasked(s, start);
        return;
    }
    if (sp_reserve(&s->word, &s->word_capacity, end - start + 3 * n_digits + SP_PADDING, 1) < 0) {
        s->failed = 1;
        return;
    }
    out = s->word;
    for (uint32_t at = start; at < end; at++) {
        const uint32_t c = s->buffer[at] == '0' ? sp_unmasked(s, at) : s->buffer[at];
        differs |= c != s->buffer[at];
        if (s->buffer[at] == '0') out = sp_put_utf8(out, c);
        else *out++ = s->buffer[at];
    }
    if (differs && is_long) {
        const uint32_t n = (uint32_t)(out - s->word);
        if (s->stop_words && sp_place_of(s->stop_words, s->stop_mask, s->word, n)->bytes) return;
        if (s->by_words) {
            sp_emit(s, sp_hash_word(s->word, n));
        } else {
            uint32_t hash = sp_murmur3(s->word, n);
            if (sp_add(&s->bag, &hash, 1) < 0) s->failed = 1;
        }
    }
}

/* The same of a word of up to eight bytes of ASCII, after which the text has eight bytes more, at once. */
SP_INLINE void sp_take_short_number(sp_scanner *s, uint32_t start, uint32_t n) {
    const uint64_t ones = 0x0101010101010101ULL, bits = sp_bits_of_word[n][0], masked = sp_load64(s->buffer + start) & bits;
    const uint64_t others = masked ^ '0' * ones; /* of ASCII, so that no byte has its highest bit */
    const uint64_t digits = ~(others + 0x7f * ones) >> 7 & ones;
    const uint64_t word = masked | (sp_load64((const uint8_t *)s->text->data + start) & digits * 0xff);
    /* Whether it counts is hard to predict, so nothing branches on it. */
    s->hashes[s->n_waiting] = (uint32_t)(sp_joined_product(word ^ SP_OF_WORD, SP_SEED + n * SP_OF_LENGTH) >> 32);
    s->n_waiting += (word != masked) & ((ptrdiff_t)(digits * ones >> 56) <= s->most_digits);
    if (s->n_waiting == SP_BATCH) sp_count(s);
}

SP_INLINE void sp_take_number_of(sp_scanner *s, uint32_t start, uint32_t end) {
    const int may_be_short = s->by_words && !s->stop_words && !s->text->kind;
    if (may_be_short && end - start <= 8 && (ptrdiff_t)start + 8 <= s->text->length) sp_take_short_number(s, start, end - start);
    else sp_take_number(s, start, end);
}

/* Take those among the tokens found, from the next 0 up to that before `end`, where one of them ends or later. */
static void sp_take_numbers(sp_scanner *s, ptrdiff_t end) {
    const sp_edges *edges = &s->edges;
    ptrdiff_t i = 0;
    while (s->next_zero < end) {
        const uint8_t *zero = (const uint8_t *)memchr(s->buffer + s->next_zero, '0', (size_t)(end - s->next_zero));
        if (!zero) break;
        s->next_zero = zero - s->buffer;
        while ((ptrdiff_t)edges->ends[i] <= s->next_zero) i++;
        if ((ptrdiff_t)edges->starts[i] <= s->next_zero) {
            sp_take_number_of(s, edges->starts[i], edges->ends[i]);
            s->next_zero = edges->ends[i];
        } else { /* one by itself, where words have two characters */
            s->next_zero++;
        }
    }
    if (s->next_zero < end) s->next_zero = end;
}

/* The same of a segment of ASCII whose tokens are runs of word characters: where such a one ends, the bits of its block tell
   without a search among all edges, unless it reaches over the block. */
static void sp_take_numbers_of_words(sp_scanner *s, ptrdiff_t begin, ptrdiff_t end) {
    const uint64_t *words = s->ascii_classes.word;
    if (s->next_zero < begin) sp_take_numbers(s, begin);
    for (; begin < end; begin += SP_BLOCK, words++) {
        const uint64_t word = *words;
        uint64_t zeros = sp_zeros64(s->buffer + begin) & word;
        while (zeros) {
            const unsigned at = sp_lowest_bit(zeros);
            const uint64_t below = ~word & ((1ULL << at) - 1), above = ~word & ~0ULL << at;
            const ptrdiff_t zero = begin + at;
            if (zero >= end) break;
            zeros &= zeros - 1;
            if (zero < s->next_zero) continue;
            if (below && above) {
                const unsigned first = sp_highest_bit(below) + 1, last = sp_lowest_bit(above);
                if (last - first > (unsigned)s->two_characters) sp_take_number_of(s, (uint32_t)begin + first, (uint32_t)begin + last);
                zeros &= ~0ULL << last;
            } else {
                s->next_zero = zero;
                sp_take_numbers(s, zero + 1);
            }
        }
    }
    if (s->next_zero < end) s->next_zero = end;
}

/* --- letters within words, and the length ---------------------------------------------------------------------------- */

/* Keep where the words among the tokens found lie in the buffer. */
static void sp_keep_words(sp_scanner *s, int two_characters) {
    const sp_edges *edges = &s->edges;
    for (ptrdiff_t i = 0; i < edges->n_ends && s->n_words < SP_LONG_TEXT; i++) {
        const uint8_t *token = s->buffer + edges->starts[i];
        const uint32_t n = edges->ends[i] - edges->starts[i], c = token[0] < 0x80 ? token[0] : sp_read_utf8(token);
        const int kind = s->any_language && c >= 0x80 ? sp_class_of(c) : sp_plain_class_of(c);
        s->has_runs |= kind == SP_CHARACTER;
        if (kind != SP_WORD) continue;
        if (two_characters && n <= sp_utf8_length(token[0])) continue;
        if (s->stop_words && sp_place_of(s->stop_words, s->stop_mask, token, n)->bytes) continue;
        s->word_starts[s->n_words] = edges->starts[i];
        s->word_ends[s->n_words++] = edges->ends[i];
    }
}

/* The sequences of so many letters within a word between two spaces, behind two more; of the word's n letters it is given
   where each begins, and where the last ends. */
static void sp_emit_letters(sp_scanner *s, const uint32_t *at, ptrdiff_t n, ptrdiff_t size) {
    const uint64_t within = (SP_OF_NOTHING * SP_OF_NEXT + SP_OF_NOTHING) * SP_OF_NEXT, first = (within + SP_OF_NOTHING) * SP_OF_NEXT;
    for (ptrdiff_t i = 0; i + size <= n + 2; i++) {
        const int is_last = i + size == n + 2;
        const uint32_t begin = at[i ? i - 1 : 0], end = at[is_last ? n : i + size - 1];
        const uint64_t hash = (i ? within : first) + sp_hash_word(s->buffer + begin, end - begin);
        sp_emit(s, is_last ? sp_before_space(hash) : hash);
    }
}

/* The same of threes within a word of two bytes of ASCII or more. */
SP_INLINE void sp_emit_threes(sp_scanner *s, const uint8_t *word, ptrdiff_t n) {
    const uint64_t within = (SP_OF_NOTHING * SP_OF_NEXT + SP_OF_NOTHING) * SP_OF_NEXT, first = (within + SP_OF_NOTHING) * SP_OF_NEXT;
    uint32_t *out;
    if (s->n_waiting + n > SP_BATCH) sp_count(s); /* short texts alone have letters: more fit than a word has */
    out = s->hashes + s->n_waiting;
    *out++ = (uint32_t)((first + sp_hash_word(word, 2)) >> 32);
    for (ptrdiff_t i = 0; i < n - 2; i++) *out++ = (uint32_t)((within + sp_hash_word(word + i, 3)) >> 32);
    *out = (uint32_t)(sp_before_space(within + sp_hash_word(word + n - 2, 2)) >> 32);
    s->n_waiting += n;
}

static void sp_emit_letters_of_words(sp_scanner *s, ptrdiff_t size) {
    uint32_t at[SP_LONG_TEXT + 1];
    for (ptrdiff_t i = 0; i < s->n_words; i++) {
        if (size == 3 && !s->text->kind && s->word_ends[i] - s->word_starts[i] > 1) {
            sp_emit_threes(s, s->buffer + s->word_starts[i], s->word_ends[i] - s->word_starts[i]);
            continue;
        }
        uint32_t next = s->word_starts[i];
        ptrdiff_t n = 0;
        for (; next < s->word_ends[i]; next += sp_utf8_length(s->buffer[next])) at[n++] = next;
        at[n] = next;
        sp_emit_letters(s, at, n, size);
    }
}

/* Count what is new as much as `weight` says. */
static void sp_count_as(sp_scanner *s, double weight) {
    sp_count(s);
    if (!s->failed) sp_weigh(&s->bag, weight);
}

static void sp_count_letters_and_length(sp_scanner *s) {
    const ptrdiff_t length = s->text->length, ends = s->boundaries ? 2 : 0, n_tokens = s->n_tokens < ends ? 0 : s->n_tokens - ends;
    if (s->n_words) {
        const double few = SP_FEW_WORDS * SP_FEW_WORDS, n_words = (double)s->n_words;
        const double part = (double)(SP_LONG_TEXT - length) / (SP_LONG_TEXT - SP_SHORT_TEXT), fading = part < 1.0 ? part : 1.0;
        const double share = s->has_runs ? 0.0 : (few / (n_words * n_words) - 1.0) / (few - 1.0);
        sp_emit_letters_of_words(s, 3);
        sp_count_as(s, (share > s->letters ? share : s->letters) * fading);
        if (share > 0.0) {
            sp_emit_letters_of_words(s, 2);
            sp_emit_letters_of_words(s, 4);
            sp_count_as(s, share * fading);
        }
    }
    if (s->length > 0.0 && n_tokens) {
        s->hashes[s->n_waiting++] = s->length_hashes[0][sp_highest_bit((uint64_t)length + 1)];
        s->hashes[s->n_waiting++] = s->length_hashes[1][sp_highest_bit((uint64_t)n_tokens + 1)];
        sp_count_as(s, s->length);
    }
}

/* --- from text to tokens ------------------------------------------------------------------------------------------- */

/* Take the tokens whose two edges are known (and two characters, if asked for); keep one that is still open for the next
   segment. */
static void sp_take_tokens(sp_scanner *s, int at_end, uint32_t begin, uint32_t end, int two_characters, int ascii) {
    sp_edges *edges = &s->edges;
    if (at_end && (edges->in_token || edges->after_mark)) {
        edges->ends[edges->n_ends++] = end;
        edges->in_token = edges->after_mark = 0;
    }
    sp_walk(s, at_end, two_characters, ascii);
    if (s->letters > 0.0 && s->text->length < SP_LONG_TEXT) sp_keep_words(s, two_characters);
    if (s->most_digits && edges->n_ends) {
        const uint32_t known = edges->ends[edges->n_ends - 1];
        if (ascii && s->kind_of_token != SP_NONSPACE) sp_take_numbers_of_words(s, begin, known);
        else sp_take_numbers(s, known);
    }
    if (edges->n_starts > edges->n_ends) edges->starts[0] = edges->starts[edges->n_starts - 1];
    edges->n_starts -= edges->n_ends;
    edges->n_ends = 0;
}

static void sp_scan_ascii(sp_scanner *s, const sp_text *text) {
    const uint8_t *data = (const uint8_t *)text->data;
    const int kind = s->two_characters ? SP_LONG_WORDS : s->kind_of_token;
    ptrdiff_t begin = 0, end;
    for (; begin < text->length; begin = end) {
        int more;
        end = begin + SP_SEGMENT < text->length ? begin + SP_SEGMENT : text->length;
        more = end < text->length && sp_plain_class_of(data[end]) == SP_WORD;
        sp_classify(data + begin, s->buffer + begin, (size_t)(end - begin), text->fold, &s->ascii_classes);
        sp_find_edges(&s->ascii_classes, (uint32_t)begin, (uint32_t)(end - begin), kind, more, &s->edges);
        sp_take_tokens(s, end == text->length, (uint32_t)begin, (uint32_t)end, 0, 1);
    }
}

/* Set n bits from position `at` on. */
SP_INLINE void sp_add_bits(uint64_t *words, ptrdiff_t at, uint64_t bits, ptrdiff_t n) {
    bits &= ~0ULL >> (64 - n);
    words[at >> 6] |= bits << (at & 63);
    if ((at & 63) + n > 64) words[(at >> 6) + 1] |= bits >> (64 - (at & 63));
}

/* Take the tokens of whole blocks, from `begin` on; where what is left over begins, which opens the next segment. */
static ptrdiff_t sp_find_tokens(sp_scanner *s, ptrdiff_t begin, ptrdiff_t end, int at_end) {
    sp_classes *classes = &s->classes;
    ptrdiff_t n = end - begin;
    while (n >= 64 || (n > 0 && at_end)) {
        const ptrdiff_t all = n >= 64 ? n & ~(ptrdiff_t)63 : n, whole = all < SP_SEGMENT ? all : SP_SEGMENT, block = (whole + 63) >> 6;
        const uint64_t word = classes->word[block], space = classes->space[block], rest = classes->rest[block];
        sp_find_edges(classes, (uint32_t)begin, (uint32_t)whole, s->kind_of_token, 0, &s->edges);
        /* What is not whole yet moves to the front. */
        for (ptrdiff_t i = 0; i <= block; i++) classes->word[i] = classes->space[i] = classes->rest[i] = 0;
        classes->word[0] = word, classes->space[0] = space, classes->rest[0] = rest;
        begin += whole;
        n -= whole;
    }
    sp_take_tokens(s, at_end, (uint32_t)begin, (uint32_t)begin, s->two_characters, 0);
    return begin;
}

/* ASCII inside other text goes through the fast classifier, up to a block at a time; how much it was, if any. */
SP_INLINE ptrdiff_t sp_write_ascii(sp_scanner *s, const sp_text *text, ptrdiff_t i, uint8_t *out, ptrdiff_t n) {
    uint8_t ascii[64];
    sp_classes block;
    ptrdiff_t run = 0;
    for (; run < 64 && i + run < text->length; run++) {
        const uint32_t c = PyUnicode_READ(text->kind, text->data, i + run);
        if (c >= 0x80) break;
        ascii[run] = (uint8_t)c;
    }
    if (run <= 3) return 0;
    sp_classify(ascii, out, 64, text->fold, &block);
    sp_add_bits(s->classes.word, n, block.word[0], run);
    sp_add_bits(s->classes.space, n, block.space[0], run);
    return run;
}

/* Han characters likewise: each is three bytes, which folding leaves as they are. */
SP_INLINE ptrdiff_t sp_write_han(sp_scanner *s, const sp_text *text, ptrdiff_t i, uint8_t *out, ptrdiff_t n) {
    const ptrdiff_t left = text->length - i, most = left < 21 ? left : 21;
    ptrdiff_t run = 0;
    for (; run < most; run++, out += 3) {
        const uint32_t c = PyUnicode_READ(text->kind, text->data, i + run);
        if (!sp_is_han(c)) break;
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
    }
    sp_add_bits(s->classes.word, n, ~0ULL, 3 * run);
    return run;
}

SP_INLINE int sp_is_of_word(int kind) { return kind == SP_WORD || kind == SP_SYLLABLE || kind == SP_CHARACTER; }

/* The bits of a character and how many of its first bytes have none: a mark that begins anew has a gap before it. `before`
   is the kind of the character before, then of this one. */
SP_INLINE uint64_t *sp_bits_of(sp_classes *classes, uint32_t c, int kind, int *before, int *joins, ptrdiff_t *gap) {
    uint64_t *bits;
    *gap = 0;
    if ((kind == SP_EXTEND || kind == SP_STACKER) && *before != SP_SPACE) {
        bits = *before == SP_MARK || *before == SP_REGIONAL ? classes->rest : classes->word;
        if (*before == SP_REGIONAL) *before = SP_MARK;
        return bits;
    }
    if (sp_is_of_word(kind)) {
        bits = classes->word;
    } else if (kind == SP_SPACE) {
        bits = classes->space;
    } else {
        bits = classes->rest;
        *gap = !((*joins && kind == SP_MARK && c >= 0x80) || (kind == SP_REGIONAL && *before == SP_REGIONAL));
    }
    *before = kind == SP_EXTEND || kind == SP_STACKER || (kind == SP_REGIONAL && !*gap) ? SP_MARK : kind;
    *joins = 0;
    return bits;
}

/* Words and marks; and, in any language, runs, as `tokens_of` finds them: a space more is written where one begins or ends. */
SP_INLINE void sp_scan_unicode_by(sp_scanner *s, const sp_text *text, int any_language) {
#define CLASS_OF(c) (any_language ? sp_class_of(c) : sp_plain_class_of(c))
    sp_classes *classes = &s->classes;
    ptrdiff_t i = 0, begin = 0;
    int before = SP_SPACE, joins = 0;
    uint8_t *out = s->buffer;
    while (i < text->length) {
        while (i < text->length && out - s->buffer - begin < SP_SEGMENT) {
            const uint32_t c = PyUnicode_READ(text->kind, text->data, i);
            const int kind = CLASS_OF(c);
            ptrdiff_t n = out - s->buffer - begin, gap;
            uint64_t *bits;
            uint8_t *end;
            /* A word, and a space of no width, ends a run. */
            if (sp_is_of_word(kind) ? kind != before && sp_is_of_word(before) : kind == SP_BREAK && before == SP_CHARACTER) {
                sp_add_bits(classes->space, n++, 1, 1);
                *out++ = ' ';
                before = SP_SPACE;
            }
            if (c < 0x80) {
                const ptrdiff_t run = sp_write_ascii(s, text, i, out, n);
                if (run) {
                    i += run, out += run;
                    before = CLASS_OF(PyUnicode_READ(text->kind, text->data, i - 1));
                    joins = 0;
                    continue;
                }
            }
            if (sp_is_han(c)) {
                const ptrdiff_t run = sp_write_han(s, text, i, out, n);
                i += run, out += 3 * run;
                before = kind;
                joins = 0;
                continue;
            }
            i++;
            if (kind == SP_IGNORED || kind == SP_JOINER || kind == SP_BREAK) {
                joins |= kind == SP_JOINER && before == SP_MARK;
                continue;
            }
            end = sp_put_utf8(out, kind == SP_SPACE ? c : sp_folded(c, text->fold));
            bits = sp_bits_of(classes, c, kind, &before, &joins, &gap);
            if (end - out > gap) sp_add_bits(bits, n + gap, ~0ULL, end - out - gap);
            out = end;
        }
        begin = sp_find_tokens(s, begin, out - s->buffer, i == text->length);
    }
#undef CLASS_OF
}

static void sp_scan_any_language(sp_scanner *s, const sp_text *text) { sp_scan_unicode_by(s, text, 1); }
static void sp_scan_unicode(sp_scanner *s, const sp_text *text) { sp_scan_unicode_by(s, text, 0); }

/* --- n-grams of characters, and such as come ready-made ----------------------------------------------------------- */

/* Write the text, its white space as it counts, with the offset of each character and of the end; how many there are. */
static ptrdiff_t sp_write_characters(sp_scanner *s, const sp_text *text) {
#define READ(i) PyUnicode_READ(text->kind ? text->kind : 1, text->data, i)
#define PUT(c) (s->offsets[n++] = (uint32_t)(out - s->buffer), out = sp_put_utf8(out, c))
    uint8_t *out = s->buffer;
    ptrdiff_t n = 0;
    int after_space = 1;
    for (ptrdiff_t i = 0; i < text->length; i++) {
        uint32_t c = READ(i);
        const int space = Py_UNICODE_ISSPACE(c);
        if (s->of == SP_CHARACTERS_IN_WORDS) {
            if (space != after_space) PUT(' '); /* a word begins or ends here */
            after_space = space;
            if (space) continue;
        } else if (s->of == SP_CHARACTERS && space) {
            if (i && Py_UNICODE_ISSPACE(READ(i - 1))) continue;
            if (i + 1 < text->length && Py_UNICODE_ISSPACE(READ(i + 1))) c = ' ';
        }
        PUT(sp_folded(c, text->fold));
    }
    if (s->of == SP_CHARACTERS_IN_WORDS && !after_space) PUT(' ');
    s->offsets[n] = (uint32_t)(out - s->buffer);
    return n;
#undef READ
#undef PUT
}

static void sp_scan_characters(sp_scanner *s, const sp_text *text) {
    const ptrdiff_t n = sp_write_characters(s, text);
    const uint32_t *offsets = s->offsets;
    ptrdiff_t i, size, begin = 0, end;
    s->source = s->buffer;
    if (s->of == SP_READY_MADE) {
        for (i = 0; i < n; i += size) { /* each behind its length in hexadecimal, and a space */
            for (size = 0; s->buffer[offsets[i]] != ' '; i++) {
                const uint8_t digit = s->buffer[offsets[i]];
                size = 16 * size + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
            }
            i++;
            sp_emit_range(s, offsets[i], offsets[i + size]);
            if (s->vectors && size && !memchr(s->buffer + offsets[i], ' ', offsets[i + size] - offsets[i]))
                sp_meet_word(s->vectors, s->buffer + offsets[i], offsets[i + size] - offsets[i]);
        }
        return;
    }
    for (; begin < n; begin = end) {
        end = n;
        if (s->of == SP_CHARACTERS_IN_WORDS) /* each stands between two spaces of its own */
            for (end = begin + 1; s->buffer[offsets[end++]] != ' ';) {}
        for (size = s->min_n; size <= s->max_n; size++) {
            if (s->of == SP_CHARACTERS_IN_WORDS && size >= end - begin) { /* which counts once, whatever n may be */
                sp_emit_range(s, offsets[begin], offsets[end]);
                break;
            }
            for (i = begin; i + size <= end; i++) sp_emit_range(s, offsets[i], offsets[i + size]);
        }
    }
}

/* --- all of it ----------------------------------------------------------------------------------------------------- */

/* Count the n-grams of a text, after which stands another one, or one of no characters; −1 if there is no memory. */
static int sp_scan_text(sp_scanner *s, const sp_text *text) {
    /* Characters may be written with a space before each. */
    const int of_characters = s->of != SP_TOKENS;
    const ptrdiff_t room = text->length * (text->kind ? text->kind + 2 : of_characters ? 2 : 1);
    SP_PREFETCH(text[1].data);
    SP_PREFETCH((const char *)text[1].data + 64);
    s->n_waiting = s->n_tokens = s->n_in_line = s->n_words = s->has_runs = 0;
    s->joined_length = 0;
    s->text = text, s->next_zero = s->next_digit = 0;
    s->edges.n_starts = s->edges.n_ends = 0;
    s->edges.in_token = s->edges.after_mark = s->edges.after_word = 0;
    if (s->of == SP_VECTOR) return sp_add_numbers(s->vectors, text->data, text->length), 0;
    s->failed = sp_reserve(&s->buffer, &s->buffer_capacity, room + SP_PADDING, 1) < 0
                || (of_characters
                    && sp_reserve(&s->offsets, &s->offsets_capacity, 2 * text->length + 3, sizeof(uint32_t)) < 0);
    if (s->failed || text->length == 0) return -s->failed;
    if (of_characters) sp_scan_characters(s, text);
    else if (!text->kind) sp_scan_ascii(s, text);
    else if (s->any_language) sp_scan_any_language(s, text);
    else sp_scan_unicode(s, text);
    sp_count(s);
    if (s->bag.weighted && !s->failed) {
        sp_weigh(&s->bag, 1.0);
        sp_count_letters_and_length(s);
    }
    if (s->vectors) s->failed |= s->vectors->failed;
    if (s->failed) sp_empty_bag(&s->bag);
    return -s->failed;
}

/* The same of a message, whose fields are texts one behind the other. */
static int sp_scan(sp_scanner *s, const sp_text *texts) {
    const sp_scanner *asks = s;
    int failed;
    while (asks && !asks->vectors) asks = asks->next;
    if (asks) sp_begin_message(asks->vectors);
    failed = sp_scan_text(s, texts);
    for (sp_scanner *next = s->next; next && !failed; next = next->next) {
        const sp_bag own = next->bag;
        const uint32_t field = s->bag.field;
        next->bag = s->bag;
        next->bag.field = own.field;
        failed = sp_scan_text(next, ++texts);
        s->bag = next->bag;
        s->bag.field = field;
        next->bag = own;
    }
    return failed;
}

#endif
