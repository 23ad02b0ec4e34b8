/* The fleet's ranks, and their binds (fleet.h). Thread: one. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "bench/scaling/fleet.h"

#define SEGMENT_BYTES 4096u   /* if the row does not ask for a size */
#define RING_BYTES    262144u /* as by default */

static const struct session_sizes sizes = {.submit = RING_BYTES,
                                           .local = RING_BYTES,
                                           .remote = RING_BYTES,
                                           .reply_submit = SESSION_RING_MIN,
                                           .reply_event = SESSION_RING_MIN};

static int session_open(struct fleet *f, struct fleet_rank *r)
{
    int rc =
        engine_session_open(f->nodes[r->node].engine, r->handle, 0, r->session_base, &sizes, 0);

    r->session = (uint32_t)rc;
    return rc;
}

static int segment_open(struct fleet *f, struct fleet_rank *r)
{
    int rc = engine_segment_open(f->nodes[r->node].engine, r->handle, r->memory, r->segment_bytes);

    r->segment = (uint32_t)rc;
    return rc;
}

static int client_open(struct fleet *f, struct fleet_rank *r, uint32_t ranks)
{
    const struct engine_client_info info = {
        .uid = 1000, .pid = 1 + r->number, .rank = r->number, .size = ranks, .job = "scale"};
    int rc = engine_client_open(f->nodes[r->node].engine, &info);

    r->handle = (uint32_t)rc;
    return rc;
}

int fleet_rank_open(struct fleet *f, uint32_t node, uint32_t number, uint32_t ranks,
                    struct fleet_rank *out)
{
    size_t session = (session_bytes(&sizes) + 4095) / 4096 * 4096;
    size_t segment = f->options.segment ? f->options.segment : SEGMENT_BYTES;
    int rc;

    *out = (struct fleet_rank){
        .node = node, .number = number, .bytes = session + segment, .segment_bytes = segment};
    out->session_base = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (out->session_base == MAP_FAILED) {
        out->session_base = NULL;
        return -ENOMEM;
    }
    out->memory = out->session_base + session;
    rc = client_open(f, out, ranks);
    if (rc >= 0)
        rc = session_open(f, out);
    if (rc >= 0)
        rc = segment_open(f, out);
    if (rc >= 0)
        rc = engine_region_open(f->nodes[node].engine, out->handle, out->segment, 0, segment,
                                ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, &out->key);
    fleet_rouse(f, node);
    if (rc < 0)
        fleet_rank_close(out);
    return rc < 0 ? rc : 0;
}

int fleet_rank_talks(struct fleet_rank *rank)
{
    int rc = channel_init(&rank->channel, rank->session_base, rank->bytes - rank->segment_bytes);

    return rc == 0 ? pending_open(&rank->channel.pending, rank->channel.local.limit) : rc;
}

void fleet_rank_close(struct fleet_rank *rank)
{
    if (rank->channel.shared)
        channel_destroy(&rank->channel);
    if (rank->session_base)
        munmap(rank->session_base, rank->bytes);
    rank->session_base = NULL;
}

int fleet_bind(struct fleet *f, const struct fleet_rank *from, const struct fleet_rank *to,
               struct fleet_bind *bind)
{
    *bind = (struct fleet_bind){0};
    fleet_rouse(f, from->node);
    return engine_bind(f->nodes[from->node].engine, from->session, to->node,
                       pwc_peer_of(to->number, 0), &to->key, (uint64_t)(uintptr_t)bind);
}
