/* Inherits and resumes the state of an earlier process (takeover.h). Thread: control. */
#include "daemon/control/survive/takeover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/nodes/names_client.h"
#include "daemon/control/clients/pairs.h"
#include "shm_ring/sigbus.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_memory.h"
#include "daemon/control/requests/requests.h"
#include "daemon/control/teams/team_client.h"
#include "daemon/control/teams/team_inherit.h"

static void drop(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

/* ---- clients --------------------------------------------------------------------------------- */

static bool view_client(struct engine *e, uint32_t number, struct view_client *out)
{
    uint32_t from = number;

    return engine_view_clients(e, &from, out, 1) == 1 && out->client == number;
}

static uint32_t open_regions(struct engine *e, uint32_t client)
{
    struct view_region rows[64];
    uint32_t from = 0, count = 0;
    int n;

    while ((n = engine_view_regions(e, &from, rows, 64)) > 0)
        for (int i = 0; i < n; i++)
            count += rows[i].client == client && rows[i].state == ENGINE_REGION_OPEN;
    return count;
}

static void charge_programs(struct client *c, struct engine *e, uint32_t client)
{
    struct view_program rows[64];
    uint32_t from = 0;
    int n;

    while ((n = engine_view_programs(e, &from, rows, 64)) > 0)
        for (int i = 0; i < n; i++)
            if (rows[i].client == client) {
                quota_charge(c, QUOTA_PROGRAMS, 1);
                quota_charge(c, QUOTA_PROGRAM_BYTES, rows[i].bytes);
            }
}

/* Makes the connection a rank again: the engine knows which rank of which job it was. */
static void restore_rank(struct worker *w, struct client *c, struct engine *e, uint32_t number)
{
    struct view_client view;

    if (c->state == CLIENT_ENDING || number >= w->config.clients_max || w->by_handle[number] ||
        !view_client(e, number, &view) || view.uid != c->uid)
        return;
    client_becomes(c, CLIENT_SERVED);
    client_find_relation(c);
    c->worker = w;
    w->clients++;
    uv_timer_stop(&c->deadline);
    c->number = number;
    c->rank = view.rank;
    c->size = view.size;
    c->instance = membership_of(&c->control->memberships, c->slot)->instance;
    memcpy(c->job, view.job, sizeof(c->job));
    quota_charge(c, QUOTA_CLIENTS, 1);
    quota_charge(c, QUOTA_REGIONS, open_regions(e, number));
    charge_programs(c, e, number);
    w->by_handle[number] = c;
}

/* Inherits one connection, and its rank, if the engine knows it. */
static void inherit_client(struct worker *w, struct engine *e, uint32_t slot)
{
    struct control *control = w->control;
    struct inflight_entry *entry = &control->inflight.entries[slot];
    int descriptor = store_take(&control->store, "client.%u", slot);
    int process = store_take(&control->store, "process.%u", slot);
    struct client *c = NULL;

    if (descriptor < 0) {
        descriptor = store_take(&control->store, "guest.%u", slot);
        store_remove(&control->store, "guest.%u", slot); /* was sent in a hand-over only, and is not
                                                          * kept */
    }
    if (descriptor >= 0 && !entry->lost)
        c = client_accept_inherited(control, slot, descriptor, process, request_handle);
    if (c && entry->state == INFLIGHT_SERVED)
        restore_rank(w, c, e, entry->number);
    if (c) {
        store_charge(&control->store, c->uid, "client.%u", slot);
        store_charge(&control->store, c->uid, "process.%u", slot);
        return;
    }
    entry->state = INFLIGHT_FREE;
    store_remove(&control->store, "client.%u", slot);
    store_remove(&control->store, "process.%u", slot);
    drop(descriptor);
    drop(process);
}

/* Inherits the connections of this engine's ranks. Engine 0 also inherits the connections that have
 * no rank yet, and those whose engine is gone. */
static void inherit_clients(struct worker *w, struct engine *e)
{
    struct inflight *inflight = &w->control->inflight;

    for (uint32_t slot = 0; slot < inflight->header->entries; slot++) {
        const struct inflight_entry *entry = &inflight->entries[slot];
        bool served = entry->state == INFLIGHT_SERVED && entry->engine < w->control->worker_count;

        if (entry->state != INFLIGHT_FREE && (served ? entry->engine : 0) == w->engine)
            inherit_client(w, e, slot);
    }
}

/* Closes the engine's clients that have no connection: they left while no daemon ran. */
static void close_orphans(struct worker *w, struct engine *e)
{
    for (uint32_t i = 0; i < w->config.clients_max; i++)
        if (!w->by_handle[i])
            engine_client_close(e, i);
}

/* ---- sessions and segments --------------------------------------------------------------------
 */

/* Maps shared memory; takes the descriptor over on success. */
static int map_shared(struct mapping *m, int descriptor, uint64_t bytes, int *range)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int rc = FAULT(MEMORY_MAP);

    if (rc == 0)
        rc = mapping_inherit(m, descriptor, (bytes + page - 1) & ~(page - 1));
    if (rc == 0)
        rc = *range = sigbus_add(m->base, m->size);
    if (rc < 0)
        m->fd = -1;
    return rc < 0 ? rc : 0;
}

/* Ends a client whose memory cannot be mapped again: the engine closes the session or segment, and
 * the client would wait for ever for what it has submitted. */
static void unmapped(struct client *c, const char *what, int status)
{
    struct log_subject about = client_subject(c);

    log_about(&c->control->log, LOG_LEVEL_ERROR, &about,
              "the memory of a %s cannot be mapped again: %s: pid %d is hung up on", what,
              strerror(-status), (int)c->pid);
    client_doom(c, CLIENT_UNREGISTERED);
}

/* -ENOENT: the client is gone, or has not got the session yet, so that its descriptors are not
 * there. */
static int inherit_session(struct worker *w, struct engine *e, uint32_t handle,
                           const struct engine_session_found *found)
{
    struct store *store = &w->control->store;
    struct client *c = w->by_handle[found->client];
    struct client_session *s = c ? calloc(1, sizeof(*s)) : NULL;
    int memory, rc = -ENOENT;

    if (!s)
        return c ? -ENOMEM : -ENOENT;
    *s = (struct client_session){.client = c,
                                 .handle = handle,
                                 .generation = found->generation,
                                 .context = found->context,
                                 .mapping = {.fd = -1},
                                 .direct = found->mark != 0,
                                 .doorbell = store_take_for(store, c->uid, "%u.doorbell.%u.%u",
                                                            w->engine, handle, found->generation),
                                 .wake = store_take_for(store, c->uid, "%u.wake.%u.%u", w->engine,
                                                        handle, found->generation),
                                 .board = store_take_for(store, c->uid, "%u.board.%u.%u", w->engine,
                                                         handle, found->generation),
                                 .range = -1,
                                 .client_memory = -1,
                                 .client_wake = -1,
                                 .client_doorbell = -1,
                                 .offloads = found->offloads,
                                 .closing = found->closing};
    memory =
        store_take_for(store, c->uid, "%u.session.%u.%u", w->engine, handle, found->generation);
    if (memory >= 0 && s->doorbell >= 0 && s->wake >= 0)
        rc = map_shared(&s->mapping, memory, session_bytes(&found->sizes), &s->range);
    if (rc < 0) {
        mapping_destroy(&s->mapping);
        free(s);
        return rc;
    }
    s->next = c->sessions;
    c->sessions = s;
    quota_charge(c, QUOTA_CONTEXTS, 1);
    quota_charge(c, QUOTA_OFFLOADS, s->offloads);
    quota_charge(c, QUOTA_MEMORY, s->mapping.size);
    w->sessions[handle] = s;
    host_table_add_session(&w->host_table, handle,
                           &(struct host_session){.shared = s->mapping.base,
                                                  .client = found->client,
                                                  .wake = s->wake,
                                                  .range = s->range,
                                                  .relation = c->relation});
    engine_session_inherit(e, handle, s->mapping.base);
    return 0;
}

static void inherit_sessions(struct worker *w, struct engine *e)
{
    static const char *const names[] = {"session", "doorbell", "wake", "board"};
    struct engine_session_found found;

    for (uint32_t handle = 0; handle < w->config.sessions_max; handle++) {
        int rc =
            engine_session_find(e, handle, &found) == 0 ? inherit_session(w, e, handle, &found) : 0;

        for (size_t i = 0; rc < 0 && i < sizeof(names) / sizeof(*names); i++)
            store_untake(&w->control->store, "%u.%s.%u.%u", w->engine, names[i], handle,
                         found.generation);
        if (rc < 0 && rc != -ENOENT && !found.closing)
            unmapped(w->by_handle[found.client], "context", rc);
    }
}

/* -ENOENT: as inherit_session. */
static int inherit_segment(struct worker *w, struct engine *e, uint32_t handle,
                           const struct engine_segment_found *found)
{
    struct store *store = &w->control->store;
    struct client *c = w->by_handle[found->client];
    struct client_segment *s = c ? calloc(1, sizeof(*s)) : NULL;
    int memory, rc = -ENOENT;

    if (!s)
        return c ? -ENOMEM : -ENOENT;
    *s = (struct client_segment){.client = c,
                                 .handle = handle,
                                 .generation = found->generation,
                                 .mapping = {.fd = -1},
                                 .reader = store_take_for(store, c->uid, "%u.reader.%u.%u",
                                                          w->engine, handle, found->generation),
                                 .range = -1,
                                 .closing = found->closing};
    memory =
        store_take_for(store, c->uid, "%u.segment.%u.%u", w->engine, handle, found->generation);
    if (memory >= 0)
        rc = map_shared(&s->mapping, memory, found->length, &s->range);
    if (rc < 0) {
        mapping_destroy(&s->mapping);
        free(s);
        return rc;
    }
    w->control->segments_shared += s->reader >= 0;
    s->next = c->segments;
    c->segments = s;
    quota_charge(c, QUOTA_SEGMENTS, 1);
    quota_charge(c, QUOTA_MEMORY, s->mapping.size);
    w->segments[handle] = s;
    host_table_add_segment(&w->host_table, handle,
                           &(struct host_segment){.base = s->mapping.base,
                                                  .client = found->client,
                                                  .range = s->range});
    rc = engine_segment_inherit(e, handle, s->mapping.base);
    if (rc < 0)
        segment_lost(s, rc);
    return 0;
}

static void inherit_segments(struct worker *w, struct engine *e)
{
    struct engine_segment_found found;

    for (uint32_t handle = 0; handle < w->config.segments_max; handle++) {
        int rc =
            engine_segment_find(e, handle, &found) == 0 ? inherit_segment(w, e, handle, &found) : 0;

        if (rc == 0)
            continue;
        store_untake(&w->control->store, "%u.segment.%u.%u", w->engine, handle, found.generation);
        store_untake(&w->control->store, "%u.reader.%u.%u", w->engine, handle, found.generation);
        if (rc != -ENOENT && !found.closing)
            unmapped(w->by_handle[found.client], "segment", rc);
    }
}

/* ---- pairs ------------------------------------------------------------------------------------
 */

static struct client_session *session_of(struct control *control, uint32_t engine, uint32_t handle)
{
    return engine < control->worker_count ? worker_session(&control->workers[engine], handle)
                                          : NULL;
}

static void inherit_pair(struct control *control, const char *name)
{
    uint32_t engines[2], handles[2], slot = BOARD_NONE;
    struct client_session *from, *to;
    uint64_t number;
    int descriptor;

    if (sscanf(name, "pair.%" SCNu64 ".%u.%u.%u.%u.%u", &number, &engines[0], &handles[0],
               &engines[1], &handles[1], &slot) < 5)
        return;
    from = session_of(control, engines[0], handles[0]);
    to = session_of(control, engines[1], handles[1]);
    descriptor =
        store_take_for(&control->store, from ? from->client->uid : STORE_NOBODY, "%s", name);
    if (from && to && pairs_inherit(from, to, number, slot, descriptor) == 0)
        return;
    pairs_abandon(from, to, descriptor);
    store_untake(&control->store, "%s", name);
}

static void inherit_pairs(struct control *control)
{
    const char *name;

    for (uint32_t at = 0; (name = store_next(&control->store, &at, "pair."));)
        inherit_pair(control, name);
}

void takeover_inherit(void *context, struct engine *engine)
{
    struct worker *w = context;

    if (!w->control->inherited)
        return;
    inherit_clients(w, engine);
    inherit_sessions(w, engine);
    inherit_segments(w, engine);
    node_teams_inherit(w, engine);
    close_orphans(w, engine);
}

/* ---- serving on ------------------------------------------------------------------------------ */

/* Answers the requests that an earlier process had taken from the socket and had not answered. */
static void answer_aborted(struct client *c)
{
    struct inflight_entry *entry = client_inflight(c);
    uint32_t requests[INFLIGHT_REQUESTS_MAX];

    memcpy(requests, entry->requests, sizeof(requests));
    entry->count = 0;
    for (uint32_t i = 0; i < INFLIGHT_REQUESTS_MAX; i++)
        entry->count += requests[i] != 0;
    if (entry->taking != 0 && client_next_request(c) == entry->taking)
        inflight_done(entry, entry->taking);
    for (uint32_t i = 0; i < INFLIGHT_REQUESTS_MAX; i++)
        if (requests[i] != 0 && entry->requests[i] != 0)
            reply_error(c, requests[i], -ECONNABORTED,
                        "this daemon was started anew while it worked on it: nobody knows how it "
                        "ended");
    entry->taking = 0;
}

/* Wakes a client in any case, because nobody knows which wake-ups the earlier process has sent. */
static void wake_client(struct client_session *s)
{
    struct session_shared *shared = s->mapping.base;

    doorbell_wake(&shared->event_bell);
    (void)send(s->wake, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void resume_client(struct client *c)
{
    struct inflight_entry *entry = client_inflight(c);

    if (entry->state == INFLIGHT_SERVED && c->state != CLIENT_SERVED)
        client_end(c, NULL);
    if (c->state == CLIENT_ENDING)
        return;
    if (c->state == CLIENT_SERVED)
        answer_aborted(c);
    for (struct client_session *s = c->sessions; s; s = s->next) {
        s->watched = progress_watch(c->worker->progress, s->doorbell) == 0;
        wake_client(s);
    }
    if (c->state == CLIENT_SERVED) {
        directory_client_announce(c);
        names_client_announce(c);
    }
    client_stream_resume(c);
}

void takeover_resume(struct control *control)
{
    struct client *next;
    uint32_t count = 0;

    if (!control->inherited)
        return;
    inherit_pairs(control);
    team_client_resume(control);
    for (struct client *c = control->clients; c; c = next) {
        next = c->next;
        count += c->state == CLIENT_SERVED;
        resume_client(c);
    }
    log_line(&control->log, LOG_LEVEL_INFO, "%u clients are taken over", count);
}
