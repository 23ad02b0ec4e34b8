/* Zeroed memory that is used again (pages.h). Thread: one in each process. */
#include "tests/engine/world/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID(at, bytes) ASAN_POISON_MEMORY_REGION(at, bytes)
#define ALLOW(at, bytes)  ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#else
#define FORBID(at, bytes) ((void)0)
#define ALLOW(at, bytes)  ((void)0)
#endif

#define PAGE     4096u
#define RUN      512u /* pages */
#define KEPT_MAX 32u
/* So many pieces of a size are kept before the first is given out again. */
#define KEPT_MIN 2u

static struct {
    struct kept {
        void *at;
        size_t bytes;
    } kept[KEPT_MAX]; /* the oldest first */
    uint32_t count;
} pool;

/* Clears the pages that were touched; the others are zero. Returns whether it could. */
static bool clear(uint8_t *at, size_t bytes)
{
    unsigned char there[RUN];

    for (size_t from = 0; from < bytes; from += RUN * PAGE) {
        size_t rest = bytes - from, length = rest < RUN * PAGE ? rest : RUN * PAGE;

        if (mincore(at + from, length, there) != 0)
            return false;
        for (size_t i = 0; i * PAGE < length; i++) {
            size_t part = length - i * PAGE < PAGE ? length - i * PAGE : PAGE;

            if (there[i] & 1)
                memset(at + from + i * PAGE, 0, part);
        }
    }
    return true;
}

static void *drop(uint32_t index)
{
    void *at = pool.kept[index].at;

    pool.count--;
    memmove(&pool.kept[index], &pool.kept[index + 1], (pool.count - index) * sizeof(struct kept));
    return at;
}

void *pages_take(size_t bytes)
{
    uint32_t first = KEPT_MAX, same = 0;
    void *at;

    for (uint32_t i = pool.count; i-- > 0;)
        if (pool.kept[i].bytes == bytes) {
            first = i;
            same++;
        }
    if (same > KEPT_MIN) {
        at = drop(first);
        ALLOW(at, bytes);
        return at;
    }
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void pages_give(void *at, size_t bytes)
{
    if (!at)
        return;
    if (!clear(at, bytes)) {
        munmap(at, bytes);
        return;
    }
    if (pool.count == KEPT_MAX) {
        size_t oldest = pool.kept[0].bytes;
        void *out = drop(0);

        ALLOW(out, oldest);
        munmap(out, oldest);
    }
    FORBID(at, bytes);
    pool.kept[pool.count++] = (struct kept){at, bytes};
}
