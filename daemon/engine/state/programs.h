/*
 * Programs: the handlers of clients that the check has let pass, each with the room of its image in
 * the arena's memory for programs. An image is written once, before its entry shows it, and no byte
 * of it changes until the entry is free again.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h).
 * Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_PROGRAMS_H
#define PWC_ENGINE_PROGRAMS_H

#include <assert.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/state/heap.h"

#define PROGRAMS_SHIFT 10u
#define PROGRAMS_MAX   (1u << PROGRAMS_SHIFT)
static_assert(PROGRAMS_MAX == ENGINE_PROGRAMS_MAX, "the shift is that of a handle");
#define PROGRAM_GENERATIONS (1u << (31 - PROGRAMS_SHIFT))

/* ---- in the arena ---------------------------------------------------------------------------- */

enum program_state {
    PROGRAM_FREE = 0,
    PROGRAM_LOADED = 1,
};

struct program {
    uint32_t state;      /* enum program_state */
    uint32_t client;     /* the client that loaded it */
    uint32_t generation; /* of the entry: a handle of an earlier generation is refused */
    uint32_t holds;      /* offloads that run it */
    uint32_t place;      /* of its image in `memory`, in units */
    uint32_t bytes;      /* of its image */
};
static_assert(sizeof(struct program) == 24, "program");

/* ---- private --------------------------------------------------------------------------------- */

struct programs {
    struct program *table;
    uint8_t *memory;  /* in the arena, as is the table */
    struct heap heap; /* which parts of `memory` are taken */
};

#endif
