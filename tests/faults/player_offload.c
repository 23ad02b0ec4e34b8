/* Makes and destroys a player's offload (player_offload.h). */
#include "tests/faults/player_offload.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { STATE_BYTES = 4096, COUNTER_BYTES = 16 };

/* The outcome of a call is unknown when the daemon is restarted meanwhile, so the call is made
 * again. A program that the first call may have loaded stays until the client ends. */
static int load(struct player_offload *o, pwc_client *client)
{
    static uint8_t elf[1 << 16];
    FILE *file = fopen(HANDLER_OBJECT, "rb");
    size_t size;
    int rc = -errno;

    if (!file) {
        fprintf(stderr, "the victim: %s: %s\n", HANDLER_OBJECT, strerror(-rc));
        return rc;
    }
    size = fread(elf, 1, sizeof(elf), file);
    fclose(file);
    do
        rc = pwc_program_load(client, elf, size, NULL, &o->program);
    while (rc == -ECONNABORTED);
    return rc;
}

/* The call for an offload is made again after a restart, too. If the region has an offload then, an
 * earlier call has made it. */
static int create(struct player_offload *o, pwc_ctx *ctx, const struct pwc_offload_attr *attr)
{
    bool again = false;
    int rc;

    while ((rc = pwc_offload_create(ctx, attr, &o->offload)) == -ECONNABORTED)
        again = true;
    o->kept = again && rc == -EADDRINUSE;
    return o->kept ? 0 : rc;
}

int player_offload_open(struct player_offload *o, pwc_client *client, pwc_ctx *ctx,
                        pwc_region *region)
{
    struct pwc_offload_attr attr = {.flags = PWC_OFFLOAD_QUIET, .region = region};
    int rc = load(o, client);

    if (rc == 0)
        rc = pwc_alloc(client, STATE_BYTES, PWC_REMOTE_READ, &o->state);
    attr.program = o->program;
    attr.state = o->state;
    attr.state_length = COUNTER_BYTES;
    return rc < 0 ? rc : create(o, ctx, &attr);
}

int player_offload_close(struct player_offload *o)
{
    int rc = o->offload ? pwc_offload_destroy(o->offload) : 0;

    if (o->kept)
        return 0;
    if (rc == 0 && o->state)
        rc = pwc_region_free(o->state);
    if (rc == 0 && o->program)
        rc = pwc_program_unload(o->program);
    return rc;
}
