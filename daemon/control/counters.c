/* Owns the counters file and what is written into it (counters.h). */
#include "counters.h"

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

static struct counters_session *session_rows(const struct counters *c)
{
    return (struct counters_session *)((char *)c->shared + c->shared->session_offset);
}

static struct counters_peer *peer_rows(const struct counters *c)
{
    return (struct counters_peer *)((char *)c->shared + c->shared->peer_offset);
}

int counters_open(struct counters *c, const struct counters_config *config)
{
    uint32_t peers =
        config->nodes < COUNTERS_PEER_ROWS_MAX ? config->nodes : COUNTERS_PEER_ROWS_MAX;
    struct counters_header *h;
    int fd, rc;

    *c = (struct counters){.path = strdup(config->path)};
    if (!c->path)
        return -ENOMEM;
    c->size = sizeof(*h) + config->sessions_max * sizeof(struct counters_session) +
              peers * sizeof(struct counters_peer);
    if (unlink(c->path) != 0 && errno != ENOENT)
        goto fail;
    fd = open(c->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        goto fail;
    h = MAP_FAILED;
    if (fchmod(fd, 0600) == 0 && posix_fallocate(fd, 0, (off_t)c->size) == 0)
        h = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    rc = h == MAP_FAILED ? -(errno ? errno : EIO) : 0;
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
    h->session_rows = config->sessions_max;
    h->peer_offset = h->session_offset + h->session_rows * h->session_row_bytes;
    h->peer_row_bytes = sizeof(struct counters_peer);
    h->peer_rows = peers;
    h->node = config->node;
    h->nodes = config->nodes;
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
    set(&row->session, v->session + UINT64_C(1));
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
    set(&row->node, v->node + UINT64_C(1));
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

static uint64_t write_sessions(struct counters *c, struct engine *engine)
{
    struct counters_session *rows = session_rows(c);
    struct engine_session_view views[VIEW_BATCH];
    uint32_t from = 0, row = 0, used;
    int got;

    while ((got = engine_view_sessions(engine, &from, views, VIEW_BATCH)) > 0)
        for (int i = 0; i < got && row < c->shared->session_rows; i++)
            write_session(&rows[row++], &views[i]);
    used = row;
    while (row < c->shared->session_rows &&
           atomic_load_explicit(&rows[row].session, memory_order_relaxed) != 0)
        set(&rows[row++].session, 0);
    return used;
}

static void write_peers(struct counters *c, struct engine *engine)
{
    struct counters_peer *rows = peer_rows(c);
    struct engine_peer_view views[VIEW_BATCH];
    uint32_t from = 0, row = 0;
    int got;

    while (row < c->shared->peer_rows &&
           (got = engine_view_peers(engine, &from, views, VIEW_BATCH)) > 0)
        for (int i = 0; i < got && row < c->shared->peer_rows; i++)
            write_peer(&rows[row++], &views[i]);
    while (row < c->shared->peer_rows &&
           atomic_load_explicit(&rows[row].node, memory_order_relaxed) != 0)
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

void counters_write(struct counters *c, struct engine *engine, uint64_t now,
                    const struct counters_totals *totals)
{
    struct counters_header *h = c->shared;

    set(&h->heartbeat, totals->heartbeat);
    set(&h->cpu_ns, totals->cpu_ns);
    set(&h->work, totals->work);
    set(&h->sleeps, totals->sleeps);
    set(&h->commands, totals->commands);
    set(&h->quarantined, totals->quarantined);
    set(&h->sessions, write_sessions(c, engine));
    set(&h->clients, count_clients(engine));
    write_peers(c, engine);
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
