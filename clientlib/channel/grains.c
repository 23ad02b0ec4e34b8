/* Owns nothing: takes and gives back grains of staging (grains.h). Thread: the one that owns the
 * context. */
#include "clientlib/channel/grains.h"

#include <assert.h>

static_assert(GRAINS == 128 && GRAINS_PIECE < 64, "grains_in_use looks at two words");

static bool is_used(const struct grains *g, uint32_t grain)
{
    return g->used[grain / 64] >> grain % 64 & 1;
}

static void mark(struct grains *g, struct grains_run run)
{
    for (uint32_t i = run.first; i < run.first + (uint32_t)run.count; i++)
        g->used[i / 64] ^= UINT64_C(1) << i % 64;
}

bool grains_take(struct grains *g, uint32_t from, uint32_t to, uint32_t count,
                 struct grains_run *out)
{
    uint32_t free = 0;

    for (uint32_t i = from; i < to; i++) {
        free = is_used(g, i) ? 0 : free + 1;
        if (free < count)
            continue;
        *out = (struct grains_run){.first = (uint8_t)(i + 1 - count), .count = (uint8_t)count};
        mark(g, *out);
        return true;
    }
    return false;
}

void grains_give(struct grains *g, struct grains_run run)
{
    mark(g, run);
}
