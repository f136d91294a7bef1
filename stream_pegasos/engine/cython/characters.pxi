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
