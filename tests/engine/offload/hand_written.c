/* Offloads with programs written by hand (hand_written.h). Thread: one. */
#include "tests/engine/offload/hand_written.h"

#include <string.h>

#define ROUNDS_MAX 10000u

uint32_t hand_written_offload(struct world *w, uint32_t client, const struct hand_written *program,
                              uint32_t takes, uint32_t index, uint32_t target)
{
    const struct world_client *c = &w->clients[client];
    const struct engine_key *key = &c->contexts[0].key;
    struct engine *e = w->nodes[c->node].engine;
    _Alignas(64) struct {
        struct handler_image image;
        struct handler_instruction stop; /* the first instruction of every image */
        struct handler_instruction code[HAND_WRITTEN_MOST];
    } whole = {.image = {.magic = HANDLER_IMAGE_MAGIC, .instructions = program->count}};
    struct engine_offload_info info = {
        .index = index,
        .takes = takes,
        .target_count = target != UINT32_MAX,
        .targets = &target,
        .host = {key->slot, key->generation, 0, c->contexts[0].length}};
    int loaded, handle;

    memcpy(whole.image.entry, program->entry, sizeof(program->entry));
    memcpy(whole.code, program->code, program->count * sizeof(program->code[0]));
    loaded = engine_program_load(e, c->handle, &whole.image,
                                 (uint32_t)image_bytes(program->count, 0, 0));
    info.program = (uint32_t)loaded;
    handle = loaded < 0 ? loaded : engine_offload_create(e, c->contexts[0].session, &info, 1);
    if (handle < 0)
        world_fail(w, "client %u: no offload: %s", client, strerror(-handle));
    world_settle(w, ROUNDS_MAX);
    return (uint32_t)handle;
}

uint32_t hand_written_bind(struct world *w, uint32_t from, uint32_t to,
                           const struct engine_key *key)
{
    int request = world_bind(w, from, 0, to, 0, key);
    uint32_t remote;

    if (world_await(w, request) < 0)
        world_fail(w, "client %u is not bound to client %u", from, to);
    remote = w->requests[request].handle;
    world_request_free(w, request);
    return remote;
}
