/* Owns the counters file and what is written into it (counters.h). */
#include "daemon/control/watch/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VIEW_BATCH = 16 };

static void set(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

/* Of what is counted for all threads: our share is now `value`. */
static void grow(_Atomic uint64_t *to, uint64_t *told, uint64_t value)
{
    atomic_fetch_add_explicit(to, value - *told, memory_order_relaxed);
    *told = value;
}

/* The first word of a row: engine << 32 | number + 1. */
static uint64_t row_name(const struct counters_share *share, uint32_t number)
{
    return (uint64_t)share->engine << 32 | (number + UINT64_C(1));
}

static struct counters_session *session_rows(const struct counters *c)
{
    return (struct counters_session *)((char *)c->shared + c->shared->session_offset);
}

static struct counters_peer *peer_rows(const struct counters *c)
{
    return (struct counters_peer *)((char *)c->shared + c->shared->peer_offset);
}

/* In a file of that name, or, where there is to be none, in memory alone. */
static int open_file(const char *path)
{
    if (!*path)
        return memfd_create("pwcd.counters", MFD_CLOEXEC);
    if (unlink(path) != 0 && errno != ENOENT)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int counters_open(struct counters *c, const struct counters_config *config)
{
    uint32_t peers =
        config->nodes < COUNTERS_PEER_ROWS_MAX ? config->nodes : COUNTERS_PEER_ROWS_MAX;
    uint32_t sessions = config->sessions_max * config->engines;
    struct counters_header *h;
    int fd, rc;

    if (config->engines > 1) /* each has rows for its siblings, and for more than one a node */
        peers = 2 * (peers + config->engines) * config->engines;
    *c = (struct counters){.path = strdup(config->path), .engines = config->engines};
    if (!c->path)
        return -ENOMEM;
    c->size = sizeof(*h) + sessions * sizeof(struct counters_session) +
              peers * sizeof(struct counters_peer);
    fd = open_file(c->path);
    if (fd < 0)
        goto fail;
    rc = fchmod(fd, 0600) == 0 ? -posix_fallocate(fd, 0, (off_t)c->size) : -errno;
    h = MAP_FAILED;
    if (rc == 0)
        h = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (rc == 0 && h == MAP_FAILED)
        rc = -errno;
    close(fd);
    if (rc < 0) {
        (void)unlink(c->path);
        free(c->path);
        *c = (struct counters){0};
        return rc;
    }
    c->shared = h;
    h->version = COUNTERS_VERSION;
    h->bytes = (uint32_t)c->size;
    h->session_offset = sizeof(*h);
    h->session_row_bytes = sizeof(struct counters_session);
    h->session_rows = sessions;
    h->peer_offset = h->session_offset + h->session_rows * h->session_row_bytes;
    h->peer_row_bytes = sizeof(struct counters_peer);
    h->peer_rows = peers;
    h->node = config->node;
    h->nodes = config->nodes;
    h->engines = config->engines;
    h->pid = (uint32_t)getpid();
    h->started_ns = config->now;
    snprintf(h->provider, sizeof(h->provider), "%s", config->provider);
    atomic_thread_fence(memory_order_release);
    h->magic = COUNTERS_MAGIC;
    return 0;

fail:
    rc = -errno;
    free(c->path);
    *c = (struct counters){0};
    return rc;
}

static void write_session(struct counters_session *row, const struct engine_session_view *v)
{
    set(&row->client, v->client);
    set(&row->rank, v->rank);
    set(&row->context, v->context);
    set(&row->submit_used, v->submit_used);
    set(&row->local_used, v->local_used);
    set(&row->remote_used, v->remote_used);
    set(&row->submit_high, v->submit_high);
    set(&row->local_high, v->local_high);
    set(&row->remote_high, v->remote_high);
    set(&row->submitted, v->submitted);
    set(&row->ended, v->ended);
    set(&row->in_flight, v->in_flight);
    set(&row->delivered, v->delivered);
    set(&row->put_ops, v->put_ops);
    set(&row->get_ops, v->get_ops);
    set(&row->put_bytes, v->put_bytes);
    set(&row->get_bytes, v->get_bytes);
    set(&row->errors, v->errors);
    set(&row->spilled, v->spilled);
    set(&row->spill_bytes, v->spill_bytes);
    set(&row->am_ops, v->am_ops);
    set(&row->am_bytes, v->am_bytes);
    set(&row->reply_used, v->reply_used);
    set(&row->reply_high, v->reply_high);
    set(&row->replies_expected, v->replies_expected);
    set(&row->replies_owed, v->replies_owed);
}

static void write_peer(struct counters_peer *row, const struct engine_peer_view *v)
{
    set(&row->state, v->state);
    set(&row->tx_bytes, v->tx_bytes);
    set(&row->rx_bytes, v->rx_bytes);
    set(&row->tx_tail, v->tx_tail);
    set(&row->tx_sent, v->tx_sent);
    set(&row->tx_consumed, v->tx_consumed);
    set(&row->tx_credit, v->tx_credit);
    set(&row->rx_consumed, v->rx_consumed);
    set(&row->rx_acked, v->rx_acked);
    set(&row->runs_out, v->runs_out);
    set(&row->runs_in, v->runs_in);
    set(&row->records_out, v->records_out);
    set(&row->records_in, v->records_in);
    set(&row->starved, v->starved);
    set(&row->grown, v->grown);
    set(&row->sent_pending, v->sent_pending);
}

static uint64_t write_sessions(struct counters *c, const struct counters_share *share,
                               struct engine *engine)
{
    uint32_t count = c->shared->session_rows / c->engines;
    struct counters_session *rows = session_rows(c) + share->engine * count;
    struct engine_session_view views[VIEW_BATCH];
    uint32_t from = 0, row = 0, used;
    int got;

    while ((got = engine_view_sessions(engine, &from, views, VIEW_BATCH)) > 0)
        for (int i = 0; i < got && row < count; i++) {
            set(&rows[row].session, row_name(share, views[i].session));
            write_session(&rows[row++], &views[i]);
        }
    used = row;
    while (row < count && atomic_load_explicit(&rows[row].session, memory_order_relaxed) != 0)
        set(&rows[row++].session, 0);
    return used;
}

static void write_peers(struct counters *c, const struct counters_share *share,
                        struct engine *engine)
{
    uint32_t count = c->shared->peer_rows / c->engines;
    struct counters_peer *rows = peer_rows(c) + share->engine * count;
    struct engine_peer_view views[VIEW_BATCH];
    uint32_t from = 0, row = 0;
    int got;

    while (row < count && (got = engine_view_peers(engine, &from, views, VIEW_BATCH)) > 0)
        for (int i = 0; i < got && row < count; i++) {
            set(&rows[row].node, row_name(share, views[i].node));
            write_peer(&rows[row++], &views[i]);
        }
    while (row < count && atomic_load_explicit(&rows[row].node, memory_order_relaxed) != 0)
        set(&rows[row++].node, 0);
}

static uint64_t count_clients(struct engine *engine)
{
    struct engine_client_view views[VIEW_BATCH];
    uint64_t clients = 0;
    uint32_t from = 0;
    int got;

    while ((got = engine_view_clients(engine, &from, views, VIEW_BATCH)) > 0)
        clients += (uint64_t)got;
    return clients;
}

static void write_totals(struct counters_header *h, struct counters_share *share,
                         const struct engine *engine)
{
    struct engine_totals_view *told = &share->engine_told, now;

    engine_view_totals(engine, &now);
    grow(&h->put_ops, &told->put_ops, now.put_ops);
    grow(&h->get_ops, &told->get_ops, now.get_ops);
    grow(&h->am_ops, &told->am_ops, now.am_ops);
    grow(&h->put_bytes, &told->put_bytes, now.put_bytes);
    grow(&h->get_bytes, &told->get_bytes, now.get_bytes);
    grow(&h->am_bytes, &told->am_bytes, now.am_bytes);
    grow(&h->errors, &told->errors, now.errors);
    grow(&h->delivered, &told->delivered, now.delivered);
    grow(&h->spilled, &told->spilled, now.spilled);
}

void counters_write(struct counters *c, struct counters_share *share, struct engine *engine,
                    uint64_t now, const struct counters_totals *totals)
{
    struct counters_header *h = c->shared;
    struct counters_totals *told = &share->told;

    grow(&h->heartbeat, &told->heartbeat, totals->heartbeat);
    grow(&h->cpu_ns, &told->cpu_ns, totals->cpu_ns);
    grow(&h->work, &told->work, totals->work);
    grow(&h->sleeps, &told->sleeps, totals->sleeps);
    grow(&h->commands, &told->commands, totals->commands);
    grow(&h->quarantined, &told->quarantined, totals->quarantined);
    grow(&h->refused, &told->refused, totals->refused);
    grow(&h->sessions, &share->sessions, write_sessions(c, share, engine));
    grow(&h->clients, &share->clients, count_clients(engine));
    write_totals(h, share, engine);
    write_peers(c, share, engine);
    set(&h->updated_ns, now);
}

void counters_close(struct counters *c)
{
    if (!c->shared)
        return;
    munmap(c->shared, c->size);
    (void)unlink(c->path);
    free(c->path);
    *c = (struct counters){0};
}
