# What a character is, for the characters up to U+FFFF, filled in as they are met: its lower case in the low 16 bits.
cdef uint32_t CHARACTERS[65536]
cdef uint32_t KNOWN = 1 << 31
cdef uint32_t IS_WORD = 1 << 30
cdef uint32_t IS_SPACE = 1 << 29
cdef uint32_t IS_DIGIT = 1 << 28


cdef inline uint32_t look_up(uint32_t c) noexcept nogil:
    cdef uint32_t found = CHARACTERS[c]
    if not found:
        found = KNOWN | Py_UNICODE_TOLOWER(c)
        if Py_UNICODE_ISALNUM(c) or c == c'_':
            found |= IS_WORD
        if Py_UNICODE_ISSPACE(c):
            found |= IS_SPACE
        if Py_UNICODE_ISDECIMAL(c):
            found |= IS_DIGIT
        CHARACTERS[c] = found
    return found


cdef inline uint32_t folded(uint32_t c, int fold) noexcept nogil:
    """A character in lower case, and every digit as 0, if asked for."""
    cdef uint32_t found
    if c < 0x10000:
        found = look_up(c)
        if found & IS_DIGIT and fold & SP_MASK_DIGITS:
            return c'0'
        return found & 0xFFFF if fold & SP_LOWER else c
    if fold & SP_MASK_DIGITS and Py_UNICODE_ISDECIMAL(c):
        return c'0'
    return Py_UNICODE_TOLOWER(c) if fold & SP_LOWER else c


cdef bint lowers_irregularly(text):
    """Whether str.lower does more than to exchange letters one by one: it looks around Σ, and makes two of İ."""
    return "\u03a3" in text or "\u0130" in text


cdef enum:  # as in characters.py, which says what they are
    MARK = 0
    WORD = 1
    SYLLABLE = 2
    CHARACTER = 3
    SPACE = 4
    EXTEND = 5
    STACKER = 6
    IGNORED = 7
    JOINER = 8
    BREAK = 9
    REGIONAL = 10
    PART = 0x10
    END_OF_TABLE = 0x20000


# The classes of characters up to `KNOWN_CLASSES`.
cdef uint8_t CLASSES[END_OF_TABLE]
cdef Py_ssize_t KNOWN_CLASSES = 0


cdef inline Py_ssize_t classes_met(text):
    """Up to where a text may have characters."""
    cdef int kind = PyUnicode_KIND(text)
    return 0x100 if kind == 1 else 0x10000 if kind == 2 else END_OF_TABLE


cdef bint needs_python(text):
    """Whether classes of its characters are not known yet, or letters are written in parts."""
    cdef int kind
    cdef const void* data
    cdef Py_ssize_t i
    cdef uint32_t c
    if PyUnicode_IS_ASCII(text):
        return False
    if KNOWN_CLASSES < classes_met(text):
        return True
    kind, data = PyUnicode_KIND(text), PyUnicode_DATA(text)
    if kind == 1:
        return False
    for i in range(PyUnicode_GET_LENGTH(text)):
        c = PyUnicode_READ(kind, data, i)
        if CLASSES[c] & PART if c < END_OF_TABLE else 0x2F800 <= c < 0x2FA20:
            return True
    return False


cdef composed(text):
    """The text with its letters in one, and all of its characters known."""
    global KNOWN_CLASSES
    cdef Py_ssize_t begin = KNOWN_CLASSES, end = classes_met(text)
    cdef bytes found
    if begin < end:
        found = characters.classes_of(begin, end)
        memcpy(&CLASSES[begin], PyBytes_AS_STRING(found), end - begin)
        KNOWN_CLASSES = max(KNOWN_CLASSES, end)
    return characters.composed(str.__str__(text))


cdef inline int class_of(uint32_t c) noexcept nogil:
    if c < END_OF_TABLE:
        return CLASSES[c] & ~PART
    return CHARACTER if Py_UNICODE_ISALNUM(c) else IGNORED if 0xE0000 <= c < 0xE1000 else MARK


cdef inline uint32_t read_utf8(const uint8_t* p) noexcept nogil:
    """The character that begins there, of two bytes or more."""
    if p[0] < 0xE0:
        return (p[0] & 0x1F) << 6 | p[1] & 0x3F
    if p[0] < 0xF0:
        return (p[0] & 0xF) << 12 | (p[1] & 0x3F) << 6 | p[2] & 0x3F
    return (p[0] & 7) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | p[3] & 0x3F


cdef inline uint32_t end_of_character(const uint8_t* source, uint32_t begin, uint32_t end) noexcept nogil:
    """Where a character of a run ends, with what belongs to it, as vowel signs and characters that stand below it."""
    cdef uint32_t at = begin + utf8_length(source[begin])
    cdef bint stacks = False
    cdef int kind
    while at < end:
        kind = class_of(read_utf8(source + at))
        if kind != EXTEND and kind != STACKER and not (stacks and kind == CHARACTER):
            break
        stacks = kind == STACKER
        at += utf8_length(source[at])
    return at


cdef inline uint8_t* put_utf8(uint8_t* out, uint32_t c) noexcept nogil:
    """Write one character, a lone surrogate as any other, and give back the end."""
    if c < 0x80:
        out[0] = c
        return out + 1
    if c < 0x800:
        out[0] = 0xC0 | c >> 6
        out[1] = 0x80 | c & 0x3F
        return out + 2
    if c < 0x10000:
        out[0] = 0xE0 | c >> 12
        out[1] = 0x80 | c >> 6 & 0x3F
        out[2] = 0x80 | c & 0x3F
        return out + 3
    out[0] = 0xF0 | c >> 18
    out[1] = 0x80 | c >> 12 & 0x3F
    out[2] = 0x80 | c >> 6 & 0x3F
    out[3] = 0x80 | c & 0x3F
    return out + 4


cdef inline bint is_ascii_word(uint8_t c) noexcept nogil:
    return c'a' <= (c | 0x20) <= c'z' or c'0' <= c <= c'9' or c == c'_'


cdef inline uint32_t utf8_length(uint8_t first) noexcept nogil:
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


cdef inline uint32_t first_bytes(const uint8_t* token, uint32_t n, Py_ssize_t n_characters) noexcept nogil:
    """How many bytes of UTF-8 that many characters have; n if there are no more."""
    cdef uint32_t length = 0
    while n_characters > 0 and length < n:
        length += utf8_length(token[length])
        n_characters -= 1
    return length


cdef inline Py_ssize_t hex_digit(uint8_t c) noexcept nogil:
    return c - c'0' if c <= c'9' else c - c'a' + 10


@cython.final
cdef class Composed:
    """A text that needs nothing more of Python."""

    cdef object text


@cython.final
cdef class StringSet:
    """A set of strings, asked for by their UTF-8 bytes."""

    cdef uint32_t* _slots  # 1 + number of the member, 0 where empty
    cdef uint32_t _mask
    cdef list _encoded
    cdef const char** _bytes
    cdef Py_ssize_t* _lengths

    def __init__(self, members):
        cdef Py_ssize_t i, n
        cdef uint32_t slot
        self._encoded = [member.encode("utf-8", "surrogatepass") + b"\0" * 16 for member in members]
        n = len(self._encoded)
        self._mask = (1 << (2 * n + 1).bit_length()) - 1
        self._slots = <uint32_t*> malloc((self._mask + 1) * sizeof(uint32_t))
        self._bytes = <const char**> malloc((n + 1) * sizeof(char*))
        self._lengths = <Py_ssize_t*> malloc((n + 1) * sizeof(Py_ssize_t))
        if not self._slots or not self._bytes or not self._lengths:
            raise MemoryError
        memset(self._slots, 0, (self._mask + 1) * sizeof(uint32_t))
        for i in range(n):
            encoded = self._encoded[i]
            self._bytes[i] = PyBytes_AS_STRING(encoded)
            self._lengths[i] = PyBytes_GET_SIZE(encoded) - 16
            slot = sp_murmur3(<const uint8_t*> self._bytes[i], self._lengths[i]) & self._mask
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
            self._slots[slot] = i + 1

    def __dealloc__(self):
        free(self._slots)
        free(self._bytes)
        free(self._lengths)

    cdef bint _contains(self, const uint8_t* word, uint32_t n) noexcept nogil:
        cdef uint32_t slot = sp_murmur3(word, n) & self._mask, i
        while self._slots[slot]:
            i = self._slots[slot] - 1
            if self._lengths[i] == n and memcmp(self._bytes[i], word, n) == 0:
                return True
            slot = (slot + 1) & self._mask
        return False


cdef inline void add_bits(uint64_t* words, Py_ssize_t at, uint64_t bits, Py_ssize_t n) noexcept nogil:
    """Set the bits from position `at` on as the lowest n of `bits` are."""
    bits &= ALL_BITS >> (64 - n)
    words[at >> 6] |= bits << (at & 63)
    if (at & 63) + n > 64:
        words[(at >> 6) + 1] |= bits >> (64 - (at & 63))


cdef void carry_classes(sp_classes* classes, Py_ssize_t block) noexcept nogil:
    """Move the classes of a block that is not whole yet to the front, and forget the others."""
    cdef Py_ssize_t i
    cdef uint64_t word = classes.word[block], space = classes.space[block], rest = classes.rest[block]
    for i in range(block + 1):
        classes.word[i] = classes.space[i] = classes.rest[i] = 0
    classes.word[0], classes.space[0], classes.rest[0] = word, space, rest
