/* What a character is, and how UTF-8 has it. */

#ifndef STREAM_PEGASOS_CHARACTERS_H
#define STREAM_PEGASOS_CHARACTERS_H

#include <Python.h>

#include "simd.h"

/* Of the characters up to U+FFFF, filled in as they are met: the lower case in the low 16 bits, and these. */
#define SP_KNOWN ((uint32_t)1 << 31)
#define SP_IS_WORD ((uint32_t)1 << 30)
#define SP_IS_SPACE ((uint32_t)1 << 29)
#define SP_IS_DIGIT ((uint32_t)1 << 28)
static uint32_t sp_characters[0x10000];

SP_INLINE uint32_t sp_look_up(uint32_t c) {
    uint32_t found = sp_characters[c];
    if (!found) {
        found = SP_KNOWN | Py_UNICODE_TOLOWER(c);
        if (Py_UNICODE_ISALNUM(c) || c == '_') found |= SP_IS_WORD;
        if (Py_UNICODE_ISSPACE(c)) found |= SP_IS_SPACE;
        if (Py_UNICODE_ISDECIMAL(c)) found |= SP_IS_DIGIT;
        sp_characters[c] = found;
    }
    return found;
}

/* A character in lower case, and every digit as 0, if asked for. */
SP_INLINE uint32_t sp_folded(uint32_t c, int fold) {
    if (c < 0x10000) {
        const uint32_t found = sp_look_up(c);
        if (found & SP_IS_DIGIT && fold & SP_MASK_DIGITS) return '0';
        return fold & SP_LOWER ? found & 0xFFFF : c;
    }
    if (fold & SP_MASK_DIGITS && Py_UNICODE_ISDECIMAL(c)) return '0';
    return fold & SP_LOWER ? Py_UNICODE_TOLOWER(c) : c;
}

SP_INLINE int sp_is_digit(uint32_t c) {
    if (c < 0x80) return c - '0' < 10;
    return c < 0x10000 ? (sp_look_up(c) & SP_IS_DIGIT) != 0 : Py_UNICODE_ISDECIMAL(c);
}

/* The classes of characters.py, which says what they are; in the table up to where they are known. */
enum { SP_MARK, SP_WORD, SP_SYLLABLE, SP_CHARACTER, SP_SPACE, SP_EXTEND, SP_STACKER, SP_IGNORED, SP_JOINER, SP_BREAK, SP_REGIONAL };
enum { SP_PART = 0x10, SP_END_OF_TABLE = 0x20000 };
static uint8_t sp_class_table[SP_END_OF_TABLE];

SP_INLINE int sp_class_of(uint32_t c) {
    if (c < SP_END_OF_TABLE) return sp_class_table[c] & ~SP_PART;
    return Py_UNICODE_ISALNUM(c) ? SP_CHARACTER : 0xE0000 <= c && c < 0xE1000 ? SP_IGNORED : SP_MARK;
}

/* The same where there are no classes but those that patterns of tokens know. */
SP_INLINE int sp_plain_class_of(uint32_t c) {
    if (c < 0x10000) {
        const uint32_t found = sp_look_up(c);
        return found & SP_IS_WORD ? SP_WORD : found & SP_IS_SPACE ? SP_SPACE : SP_MARK;
    }
    return Py_UNICODE_ISALNUM(c) ? SP_WORD : Py_UNICODE_ISSPACE(c) ? SP_SPACE : SP_MARK;
}

SP_INLINE int sp_is_han(uint32_t c) { return c - 0x4E00 < 0x5200; } /* of those in one block, the usual ones */
SP_INLINE int sp_begins_han(const uint8_t *p) { return (uint32_t)(p[0] << 8 | p[1]) - 0xE4B8 <= 0xE9BF - 0xE4B8; }

SP_INLINE uint32_t sp_utf8_length(uint8_t first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/* The character that begins there, of two bytes or more. */
SP_INLINE uint32_t sp_read_utf8(const uint8_t *p) {
    if (p[0] < 0xE0) return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    if (p[0] < 0xF0) return (p[0] & 0xFu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    return (p[0] & 7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/* Write one character, a lone surrogate as any other, and give back the end. */
SP_INLINE uint8_t *sp_put_utf8(uint8_t *out, uint32_t c) {
    if (c < 0x80) {
        *out++ = (uint8_t)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (uint8_t)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *out++ = (uint8_t)(0xE0 | c >> 12);
        } else {
            *out++ = (uint8_t)(0xF0 | c >> 18);
            *out++ = (uint8_t)(0x80 | (c >> 12 & 0x3F));
        }
        *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    }
    *out++ = (uint8_t)(0x80 | (c & 0x3F));
    return out;
}

/* How many bytes of UTF-8 that many characters have; n if there are no more. */
SP_INLINE uint32_t sp_first_bytes(const uint8_t *token, uint32_t n, ptrdiff_t n_characters) {
    uint32_t length = 0;
    for (; n_characters > 0 && length < n; n_characters--) length += sp_utf8_length(token[length]);
    return length;
}

/* Where a character of a run ends, with what belongs to it, as vowel signs and characters that stand below it. */
SP_INLINE uint32_t sp_end_of_character(const uint8_t *source, uint32_t begin, uint32_t end) {
    uint32_t at = begin + sp_utf8_length(source[begin]);
    int stacks = 0;
    while (at < end) {
        const int kind = sp_class_of(sp_read_utf8(source + at));
        if (kind != SP_EXTEND && kind != SP_STACKER && !(stacks && kind == SP_CHARACTER)) break;
        stacks = kind == SP_STACKER;
        at += sp_utf8_length(source[at]);
    }
    return at;
}

#endif
