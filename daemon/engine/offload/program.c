/* The table of programs (program.h, engine.h). Thread: the progress thread. */
#include "daemon/engine/offload/program.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/state/table.h"
#include "shm_ring/fault.h"

uint32_t engine_program_room(uint32_t bytes)
{
    return (bytes + ENGINE_PROGRAM_UNIT - 1) / ENGINE_PROGRAM_UNIT * ENGINE_PROGRAM_UNIT;
}

/* ---- finding --------------------------------------------------------------------------------- */

uint32_t program_of_handle(const struct engine *e, uint32_t client, uint32_t handle)
{
    uint32_t program = handle & (PROGRAMS_MAX - 1);
    const struct program *p = &e->programs.table[program];

    return p->state == PROGRAM_LOADED && p->generation == handle >> PROGRAMS_SHIFT &&
                   p->client == client
               ? program
               : NONE;
}

static uint8_t *memory_of(const struct engine *e, const struct program *p)
{
    return e->programs.memory + (uint64_t)p->place * ENGINE_PROGRAM_UNIT;
}

const struct handler_image *program_image(const struct engine *e, uint32_t program)
{
    return (const void *)memory_of(e, &e->programs.table[program]);
}

/* ---- coming and going ------------------------------------------------------------------------ */

int engine_program_load(struct engine *e, uint32_t client, const struct handler_image *image,
                        uint32_t bytes)
{
    struct program *p;
    uint32_t program;
    uint8_t *room;

    if (client >= e->config.clients_max || e->clients[client].state != CLIENT_LIVE || bytes == 0 ||
        bytes > HANDLER_IMAGE_MAX)
        return -EINVAL;
    program = table_take(e, TABLE_PROGRAMS);
    if (program == NONE)
        return -ENOSPC;
    room = heap_take(&e->programs.heap, engine_program_room(bytes));
    if (!room) {
        arena_rollback(&e->arena);
        return -ENOSPC;
    }
    memcpy(room, image, bytes);
    p = &e->programs.table[program];
    *p = (struct program){
        .client = client,
        .generation = (p->generation + 1) % PROGRAM_GENERATIONS,
        .place = (uint32_t)((uint64_t)(room - e->programs.memory) / ENGINE_PROGRAM_UNIT),
        .bytes = bytes};
    set32(e, &p->state, PROGRAM_LOADED);
    commit(e);
    FAULT(PROGRAM_LOADED);
    return (int)(p->generation << PROGRAMS_SHIFT | program);
}

static void remove_program(struct engine *e, uint32_t program)
{
    struct program *p = &e->programs.table[program];

    set32(e, &p->state, PROGRAM_FREE);
    table_give(e, TABLE_PROGRAMS, program);
    commit(e);
    heap_give(&e->programs.heap, memory_of(e, p), engine_program_room(p->bytes));
}

int engine_program_unload(struct engine *e, uint32_t client, uint32_t handle)
{
    uint32_t program = program_of_handle(e, client, handle);

    if (program == NONE)
        return -EINVAL;
    if (e->programs.table[program].holds > 0)
        return -EBUSY;
    remove_program(e, program);
    FAULT(PROGRAM_UNLOADED);
    return (int)engine_program_room(e->programs.table[program].bytes);
}

void program_hold(struct engine *e, uint32_t program)
{
    struct program *p = &e->programs.table[program];

    set32(e, &p->holds, p->holds + 1);
}

void program_release(struct engine *e, uint32_t program)
{
    struct program *p = &e->programs.table[program];

    set32(e, &p->holds, p->holds - 1);
}

bool programs_leave(struct engine *e, uint32_t client)
{
    bool gone = true;

    for (uint32_t i = 0; i < PROGRAMS_MAX; i++) {
        const struct program *p = &e->programs.table[i];

        if (p->state != PROGRAM_LOADED || p->client != client)
            continue;
        if (p->holds == 0)
            remove_program(e, i);
        else
            gone = false;
    }
    return gone;
}

/* ---- after a restart ------------------------------------------------------------------------- */

void programs_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < PROGRAMS_MAX; i++) {
        const struct program *p = &e->programs.table[i];

        if (p->state == PROGRAM_LOADED)
            memset(e->programs.heap.used + p->place, 1,
                   engine_program_room(p->bytes) / ENGINE_PROGRAM_UNIT);
    }
}
