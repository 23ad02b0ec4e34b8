/* Handlers of the fleet's ranks (fleet.h). Thread: one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/scaling/fleet.h"
#include "clientlib/handlers/program.h"
#include "daemon/handlers/image.h"

#define ELF_MAX (1u << 16)

/* Loads the handlers. Returns the program's handle, or a negative errno. */
static int load(struct engine *engine, uint32_t client, const char *object)
{
    static const struct program_names names = {{"header", "payload", "completion"}};
    static uint8_t elf[ELF_MAX];
    FILE *file = fopen(object, "rb");
    struct program_error error;
    struct handler_image *image;
    struct image_error wrong;
    size_t size, bytes;
    int rc;

    if (!file)
        return -errno;
    size = fread(elf, 1, sizeof elf, file);
    (void)fclose(file);
    rc = image_of_elf(elf, size, &names, &image, &bytes, &error);
    if (rc < 0)
        return rc;
    rc = image_check(image, bytes, &wrong);
    if (rc == 0)
        rc = engine_program_load(engine, client, image, (uint32_t)bytes);
    free(image);
    return rc;
}

bool fleet_settled(struct fleet *f, const struct fleet_bind *bind)
{
    if (!fleet_run(f, NULL, NULL))
        return false;
    if (!bind->done || bind->status != 0)
        fleet_fail(f, "no answer to a bind or an offload: %s", strerror(-bind->status));
    return !f->failed;
}

int fleet_offload(struct fleet *f, const struct fleet_rank *rank, const struct fleet_handlers *h,
                  struct fleet_bind *offload)
{
    struct engine *engine = f->nodes[rank->node].engine;
    struct engine_offload_info info = {
        .takes = OFFLOAD_PUTS,
        .target_count = h->targets,
        .targets = h->target,
        .host = {rank->key.slot, rank->key.generation, 0, rank->segment_bytes}};
    int rc = load(engine, rank->handle, h->object);

    if (rc < 0)
        return rc;
    info.program = (uint32_t)rc;
    if (h->state_bytes > 0) {
        info.state = (struct engine_range){rank->key.slot, rank->key.generation,
                                           rank->segment_bytes - FLEET_STATE, h->state_bytes};
        memcpy(rank->memory + info.state.offset, h->state, h->state_bytes);
    }
    *offload = (struct fleet_bind){0};
    rc = engine_offload_create(engine, rank->session, &info, (uint64_t)(uintptr_t)offload);
    fleet_rouse(f, rank->node);
    return rc < 0 ? rc : fleet_settled(f, offload) ? 0 : -EPROTO;
}
