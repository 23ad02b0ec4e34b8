/* The path through a simulated world (world_path.h). Thread: one. */
#include "world_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static pwc_peer path_peer(void *context, uint32_t end)
{
    struct world_path *p = context;

    return world_peer_of(p->world, end, 0);
}

static uint8_t *path_memory(void *context, uint32_t end, uint64_t *length)
{
    struct world_path *p = context;

    *length = p->world->clients[end].length;
    return p->world->clients[end].memory;
}

static int path_key(void *context, uint32_t end, unsigned rights, struct pwc_key *out)
{
    struct world_path *p = context;
    struct world_client *c = &p->world->clients[end];
    struct engine_key key = c->key;
    int rc = 0;

    if (rights == PWC_REMOTE_READ || rights == PWC_REMOTE_WRITE)
        rc = engine_region_open(p->world->nodes[c->node].engine, c->handle, c->segment, 0,
                                c->length, rights, &key);
    _Static_assert(sizeof *out == sizeof key, "the library's key is the engine's");
    memcpy(out, &key, sizeof key);
    return rc < 0 ? rc : 0;
}

static int path_bind(void *context, uint32_t from, uint32_t to, const struct pwc_key *key,
                     uint32_t *remote)
{
    struct world_path *p = context;
    struct engine_key k;
    int request, rc;

    if (key)
        memcpy(&k, key, sizeof k);
    request = world_bind(p->world, from, 0, to, 0, key ? &k : NULL);
    if (request < 0)
        return request;
    rc = world_await(p->world, request);
    *remote = p->world->requests[request].handle;
    world_request_free(p->world, request);
    return rc;
}

static int path_submit(void *context, const struct path_op *op)
{
    struct world_path *p = context;
    struct world_client *c = &p->world->clients[op->from];
    const uint8_t *source = c->memory + op->local_offset;
    struct submit_record record = {
        .kind = op->kind == PATH_PUT ? SUBMIT_PUT : SUBMIT_GET,
        .flags = (uint16_t)op->flags,
        .remote = op->remote,
        .offset = op->remote_offset,
        .length = op->length,
        .lid = op->lid.size ? 0 : op->lid.value,
        .rid = op->rid.size ? 0 : op->rid.value,
        .lid_len = (uint16_t)op->lid.size,
        .rid_len = (uint16_t)op->rid.size,
        .segment = c->segment,
        .local_offset = op->local_offset,
    };

    /* Short sources come with the record, as the library sends them, or not. */
    if (op->kind == PATH_PUT && op->length && op->length <= p->path.packed_max &&
        sim_random_below(&p->world->random, 2))
        record.flags |= SUBMIT_INLINE;
    return world_submit(p->world, op->from, 0, &record, op->lid.data, op->rid.data, source);
}

static int path_probe(void *context, uint32_t end, struct pwc_event *out)
{
    struct world_path *p = context;
    struct world_context *x = &p->world->clients[end].contexts[0];

    return x->channel_open ? channel_probe(&x->channel, PWC_ANY, 0, out) : -ESHUTDOWN;
}

static bool path_progress(void *context)
{
    struct world_path *p = context;

    if (p->restore_at && p->world->rounds >= p->restore_at) {
        p->restore_at = 0;
        world_link_restore(p->world, p->cut[0], p->cut[1]);
    }
    return world_round(p->world);
}

static bool path_idle(void *context, uint32_t end)
{
    struct world_path *p = context;

    return channel_idle(&p->world->clients[end].contexts[0].channel);
}

static int path_withdraw(void *context, uint32_t end)
{
    struct world_path *p = context;

    p->withdrawal[end] = world_withdraw(p->world, end);
    return p->withdrawal[end] < 0 ? p->withdrawal[end] : 0;
}

static bool path_withdrawn(void *context, uint32_t end)
{
    struct world_path *p = context;

    return p->world->requests[p->withdrawal[end]].done;
}

static int path_kill(void *context, uint32_t end)
{
    struct world_path *p = context;

    world_client_close(p->world, end);
    return 0;
}

static int path_cut(void *context, uint32_t a, uint32_t b, bool for_good)
{
    struct world_path *p = context;
    uint32_t from = p->world->clients[a].node, to = p->world->clients[b].node;

    p->cut[0] = from;
    p->cut[1] = to;
    world_link_cut(p->world, from, to);
    if (for_good)
        world_link_lost(p->world, from, to);
    else
        p->restore_at = p->world->rounds + sim_random_range(&p->world->random, 1, 100);
    return 0;
}

static const char *path_failure(void *context)
{
    struct world_path *p = context;

    return p->world->failed ? p->world->failure : NULL;
}

static const struct path_calls calls = {
    .peer = path_peer,
    .memory = path_memory,
    .key = path_key,
    .bind = path_bind,
    .submit = path_submit,
    .probe = path_probe,
    .progress = path_progress,
    .idle = path_idle,
    .withdraw = path_withdraw,
    .withdrawn = path_withdrawn,
    .kill = path_kill,
    .cut = path_cut,
    .failure = path_failure,
};

int world_path_open(struct world_path *p, const struct world_options *options, uint32_t ends,
                    char failure[400])
{
    struct world_options o = *options;
    int rc;

    memset(p, 0, sizeof *p);
    o.nodes = o.nodes ? o.nodes : 2;
    rc = world_open(&o, &p->world);
    if (rc != 0) {
        snprintf(failure, 400, "the world does not open: %s", strerror(-rc));
        return rc;
    }
    p->path = (struct path){
        .calls = &calls,
        .context = p,
        .ends = ends,
        .packed_max = p->world->nodes[0].config.packed_max,
        .message_max = p->world->nodes[0].fabric->traits.message_max,
    };
    for (uint32_t i = 0; i < ends; i++)
        world_client_open(p->world, i % o.nodes, i, 1);
    if (!world_settle(p->world, 10000)) {
        snprintf(failure, 400, "%s", p->world->failed ? p->world->failure : "never at rest");
        world_path_close(p);
        return -EIO;
    }
    return 0;
}

void world_path_close(struct world_path *p)
{
    world_close(p->world);
}
