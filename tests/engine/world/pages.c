/* Zeroed memory that is used again (pages.h). Thread: one in each process. */
#include "tests/engine/world/pages.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(POISONS)
#include <sanitizer/asan_interface.h>
#define FORBID(at, bytes) ASAN_POISON_MEMORY_REGION(at, bytes)
#define ALLOW(at, bytes)  ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#else
#define FORBID(at, bytes) ((void)0)
#define ALLOW(at, bytes)  ((void)0)
#endif

#define RUN      2048u /* pages that one read of the pagemap covers */
#define KEPT_MAX 128u
/* The oldest piece of a size is given out again only while more than this many are kept. */
#define KEPT_MIN 2u

static struct {
    struct kept {
        void *at;
        size_t bytes;
    } kept[KEPT_MAX]; /* the oldest first */
    uint32_t count;
    pid_t process; /* that was the first to take memory */
    int pagemap;   /* /proc/self/pagemap of `reader`, which stays open */
    pid_t reader;
} pool;

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Pieces have few sizes (powers of two, from a page on), so that a kept piece often fits. */
static size_t piece_bytes(size_t bytes)
{
    size_t piece = page_size();

    while (piece < bytes)
        piece *= 2;
    return piece;
}

/* A child has the descriptor of its parent, which shows the parent's pages: it opens its own. */
static int pagemap(void)
{
    if (pool.reader != getpid()) {
        pool.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        pool.reader = getpid();
    }
    return pool.pagemap;
}

/* Calls `each` for the pages that were touched, whether they are in memory or swapped out. Returns
 * whether the kernel says which ones. */
static bool over_touched(uint8_t *at, size_t bytes, void (*each)(uint8_t *page, size_t bytes))
{
    uint64_t entry[RUN]; /* the two highest bits: in memory, swapped out */
    size_t page = page_size(), pages = bytes / page;
    int map = pagemap();
    bool known = map >= 0;

    for (size_t from = 0; known && from < pages; from += RUN) {
        size_t count = pages - from < RUN ? pages - from : RUN;
        off_t place = (off_t)(((uintptr_t)at / page + from) * sizeof(*entry));

        known =
            pread(map, entry, count * sizeof(*entry), place) == (ssize_t)(count * sizeof(*entry));
        for (size_t i = 0; known && i < count; i++)
            if (entry[i] >> 62 != 0)
                each(at + (from + i) * page, page);
    }
    return known;
}

/* Zeroes a touched page, and forbids access to it. Pages that were not touched are zero already. */
static void clear(uint8_t *page, size_t bytes)
{
    memset(page, 0, bytes);
    FORBID(page, bytes);
}

/* A page that is not zero was written after it had been given back. */
static void check(uint8_t *page, size_t bytes)
{
    ALLOW(page, bytes);
    if (page[0] == 0 && memcmp(page, page + 1, bytes - 1) == 0)
        return;
    fprintf(stderr, "pages: memory at %p was written after it was given back\n", (void *)page);
    abort();
}

static void *drop(uint32_t index)
{
    void *at = pool.kept[index].at;

    pool.count--;
    memmove(&pool.kept[index], &pool.kept[index + 1], (pool.count - index) * sizeof(struct kept));
    return at;
}

static void unmap(void *at, size_t bytes)
{
    ALLOW(at, bytes);
    munmap(at, bytes);
}

void *pages_take(size_t bytes)
{
    uint32_t first = KEPT_MAX, same = 0;
    void *at;

    if (pool.process == 0)
        pool.process = getpid();
    bytes = piece_bytes(bytes);
    for (uint32_t i = pool.count; i-- > 0;)
        if (pool.kept[i].bytes == bytes) {
            first = i;
            same++;
        }
    if (same > KEPT_MIN) {
        at = drop(first);
        if (over_touched(at, bytes, check))
            return at;
        unmap(at, bytes);
    }
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void pages_give(void *at, size_t bytes)
{
    if (!at)
        return;
    bytes = piece_bytes(bytes);
    /* A child shares its pages with its parent, and to clear one is to copy it first. The child
     * ends soon. */
    if (pool.process != getpid())
        return;
    if (!over_touched(at, bytes, clear)) {
        unmap(at, bytes);
        return;
    }
    if (pool.count == KEPT_MAX) {
        size_t oldest = pool.kept[0].bytes;

        unmap(drop(0), oldest);
    }
    pool.kept[pool.count++] = (struct kept){at, bytes};
}
