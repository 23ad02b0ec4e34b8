/*
 * Which parts of a context's staging (memory/staging.h) are in use: a bit for each grain of 4 KiB.
 *
 *     0            16                                                   128
 *     +------------+-----------------------------------------------------+
 *     | short gets | pieces, and short gets where no series is under way |
 *     +------------+-----------------------------------------------------+
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_GRAINS_H
#define PWC_CLIENTLIB_GRAINS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GRAIN_BYTES = 4096,
    GRAINS = 128,
    GRAINS_SHORT = 16, /* for short gets only, so that series cannot stop all of them */
    GRAINS_PIECE = 16, /* the longest run that may be taken at once */
};

struct grains {
    uint64_t used[GRAINS / 64]; /* bit i % 64 of word i / 64: grain i is in use */
};

/* Adjacent grains. */
struct grains_run {
    uint8_t first;
    uint8_t count; /* 0: none */
};

static inline uint32_t grains_of(uint64_t bytes)
{
    return (uint32_t)((bytes + GRAIN_BYTES - 1) / GRAIN_BYTES);
}

/* Takes `count` adjacent grains, at least 1, from the grains `from` up to before `to`. False: no
 * free run is long enough.
 */
bool grains_take(struct grains *g, uint32_t from, uint32_t to, uint32_t count,
                 struct grains_run *out);
void grains_give(struct grains *g, struct grains_run run);

static inline bool grains_in_use(const struct grains *g)
{
    return (g->used[0] | g->used[1]) != 0;
}

#endif
