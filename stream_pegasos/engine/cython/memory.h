/* Memory: buffers that grow, and tables in large pages. */

#ifndef STREAM_PEGASOS_MEMORY_H
#define STREAM_PEGASOS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define SP_INLINE static __forceinline
#define SP_PREFETCH(p) ((void)(p))
#else
#define SP_INLINE static inline __attribute__((always_inline))
#define SP_PREFETCH(p) __builtin_prefetch(p)
#endif

/* Room for `needed` items in a buffer, whose pointer stands at `buffer`, at least half as many again as before; -1 if there
   is no memory. */
static int sp_reserve(void *buffer, ptrdiff_t *capacity, ptrdiff_t needed, size_t item) {
    ptrdiff_t grown = *capacity + (*capacity >> 1);
    void *memory;
    if (needed <= *capacity) return 0;
    if (grown < 64) grown = 64;
    if (grown < needed) grown = needed;
    memcpy(&memory, buffer, sizeof memory);
    memory = realloc(memory, (size_t)grown * item);
    if (!memory) return -1;
    memcpy(buffer, &memory, sizeof memory);
    *capacity = grown;
    return 0;
}

enum { SP_MOST_KEPT = 1 << 20 }; /* items that a buffer may have room for between calls */

/* Give back what a huge input made a buffer grow to. */
static void sp_release(void *buffer, ptrdiff_t *capacity) {
    void *memory;
    if (*capacity <= SP_MOST_KEPT) return;
    memcpy(&memory, buffer, sizeof memory);
    free(memory);
    memset(buffer, 0, sizeof memory);
    *capacity = 0;
}

/* Memory for `size` bytes, 0 for none, in the place of that for `before` bytes, which stay as they are, and aligned to the
   lines of the cache; NULL, and nothing done, if there is none. Where the system can, much of it is moved by name alone, and
   in large pages, or the processor has to look up where a page lies for nearly every record. */
#if defined(__linux__)
#define SP_LARGE_PAGE ((size_t)1 << 21)

SP_INLINE size_t sp_mapped(size_t size) {
    return size < SP_LARGE_PAGE / 2 ? 0 : (size + SP_LARGE_PAGE - 1) & ~(SP_LARGE_PAGE - 1);
}

static void *sp_map(size_t size) {
    /* One page more, so that it can begin with a large page. */
    char *all = (char *)mmap(NULL, size + SP_LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *begin = (char *)(((uintptr_t)all + SP_LARGE_PAGE - 1) & ~(SP_LARGE_PAGE - 1));
    if (all == (char *)MAP_FAILED) return NULL;
    if (begin > all) munmap(all, (size_t)(begin - all));
    munmap(begin + size, SP_LARGE_PAGE - (size_t)(begin - all));
    madvise(begin, size, MADV_HUGEPAGE); /* a wish: it may be refused */
    return begin;
}
#else
SP_INLINE size_t sp_mapped(size_t size) { return (void)size, 0; }
static void *sp_map(size_t size) { return (void)size, NULL; }
#endif

static void sp_free(void *memory, size_t size) {
#if defined(__linux__)
    if (memory && sp_mapped(size)) munmap(memory, sp_mapped(size));
    else free(memory);
#elif defined(_WIN32)
    _aligned_free(memory);
#else
    free(memory);
#endif
}

static void *sp_resize(void *memory, size_t before, size_t size) {
    void *moved = NULL;
    if (memory && sp_mapped(size) && sp_mapped(size) == sp_mapped(before)) return memory;
    if (sp_mapped(size)) {
        moved = sp_map(sp_mapped(size));
        if (!moved) return NULL;
    } else if (size) {
#if defined(_WIN32)
        moved = _aligned_malloc(size, 64);
#else
        if (posix_memalign(&moved, 64, size)) moved = NULL;
#endif
        if (!moved) return NULL;
    }
#if defined(__linux__)
    if (memory && sp_mapped(size) && sp_mapped(before)) {
        /* All of it at once, so that it is one piece to the system, or it could not be moved again. */
        if (mremap(memory, sp_mapped(before), sp_mapped(size), MREMAP_MAYMOVE | MREMAP_FIXED, moved) == MAP_FAILED)
            return NULL; /* what became of the new place is not known */
        madvise(moved, sp_mapped(size), MADV_HUGEPAGE);
        return moved;
    }
#endif
    if (memory && moved) memcpy(moved, memory, before < size ? before : size);
    sp_free(memory, before);
    return moved;
}

/* The same as sp_reserve for such memory, of which at most a quarter, where it is much an eighth, is not in use. */
static int sp_stretch(void *buffer, ptrdiff_t *capacity, ptrdiff_t needed, size_t item) {
    ptrdiff_t grown = *capacity + (*capacity >> (*capacity * item < 1 << 20 ? 2 : 3));
    void *memory;
    if (needed <= *capacity) return 0;
    if (grown < needed) grown = needed;
    memcpy(&memory, buffer, sizeof memory);
    memory = sp_resize(memory, (size_t)*capacity * item, (size_t)grown * item);
    if (!memory) return -1;
    memcpy(buffer, &memory, sizeof memory);
    *capacity = grown;
    return 0;
}

#endif
