/* Owns the counters file and what is written into it (counters.h). Thread: control. */
#include "daemon/control/watch/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm_ring/clock.h"

enum { VIEW_BATCH = 16, TOTALS_LOOKS = 8 };

/* Adds to a sum the growth of an engine's value since it was written last. */
static void grow(_Atomic uint64_t *to, uint64_t *written, uint64_t value)
{
    atomic_fetch_add_explicit(to, value - *written, memory_order_relaxed);
    *written = value;
}

/* Writes a row, its first word last, so that a reader that sees a new row sees all of it. */
static void write_row(uint64_t *to, const void *from, size_t bytes)
{
    const uint64_t *words = from;

    for (size_t i = 1; i < bytes / sizeof(*to); i++)
        __atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&to[0], words[0], __ATOMIC_RELEASE);
}

static struct counters_session *session_rows(const struct counters *c)
{
    return (struct counters_session *)((char *)c->shared + c->shared->session_offset);
}

static struct counters_peer *peer_rows(const struct counters *c)
{
    return (struct counters_peer *)((char *)c->shared + c->shared->peer_offset);
}

/* Makes a file with this name, or, where the name is empty, memory only. */
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

    if (config->engines > 1) /* each engine has rows for its siblings, and for several engines of a
                              * node */
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
    atomic_init(&h->started_day_ns, config->day);
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

static uint64_t write_sessions(struct counters *c, const struct counters_share *share,
                               const struct counters_source *source)
{
    uint32_t count = c->shared->session_rows / c->engines;
    struct counters_session *rows = session_rows(c) + share->engine * count;
    struct counters_session views[VIEW_BATCH];
    uint32_t from = 0, row = 0, used;
    int got;

    while ((got = engine_view_sessions(source->engine, clock_ns(), &from, views, VIEW_BATCH)) > 0)
        for (int i = 0; i < got && row < count; i++) {
            source->pairs(source->context, (uint32_t)views[i].session - 1, &views[i]);
            views[i].session |= (uint64_t)share->engine << 32;
            write_row(&rows[row++].session, &views[i], sizeof(views[i]));
        }
    used = row;
    while (row < count && rows[row].session != 0)
        __atomic_store_n(&rows[row++].session, 0, __ATOMIC_RELAXED);
    return used;
}

static void write_peers(struct counters *c, const struct counters_share *share,
                        const struct engine *engine)
{
    uint32_t count = c->shared->peer_rows / c->engines;
    struct counters_peer *rows = peer_rows(c) + share->engine * count;
    struct counters_peer views[VIEW_BATCH];
    uint32_t from = 0, row = 0;
    int got;

    while (row < count && (got = engine_view_peers(engine, &from, views, VIEW_BATCH)) > 0)
        for (int i = 0; i < got && row < count; i++) {
            views[i].node |= (uint64_t)share->engine << 32;
            write_row(&rows[row++].node, &views[i], sizeof(views[i]));
        }
    while (row < count && rows[row].node != 0)
        __atomic_store_n(&rows[row++].node, 0, __ATOMIC_RELAXED);
}

/* Writes the engine's sums. Where contexts end so often that no look is consistent, leaves the sums
 * for the next time. */
static void write_totals(struct counters_header *h, struct counters_share *share,
                         const struct engine *engine)
{
    struct engine_totals_view *written = &share->engine_written, now;
    int looks = 0;

    while (!engine_view_totals(engine, &now))
        if (++looks == TOTALS_LOOKS)
            return;
    grow(&h->put_ops, &written->put_ops, now.put_ops);
    grow(&h->get_ops, &written->get_ops, now.get_ops);
    grow(&h->am_ops, &written->am_ops, now.am_ops);
    grow(&h->put_bytes, &written->put_bytes, now.put_bytes);
    grow(&h->get_bytes, &written->get_bytes, now.get_bytes);
    grow(&h->am_bytes, &written->am_bytes, now.am_bytes);
    grow(&h->atomic_ops, &written->atomic_ops, now.atomic_ops);
    grow(&h->atomic_bytes, &written->atomic_bytes, now.atomic_bytes);
    grow(&h->errors, &written->errors, now.errors);
    grow(&h->delivered, &written->delivered, now.delivered);
    grow(&h->spilled, &written->spilled, now.spilled);
}

void counters_write(struct counters *c, struct counters_share *share,
                    const struct counters_source *from, uint64_t now)
{
    const struct counters_totals *totals = from->totals;
    struct counters_totals *written = &share->written;
    struct counters_header *h = c->shared;

    grow(&h->heartbeat, &written->heartbeat, totals->heartbeat);
    grow(&h->cpu_ns, &written->cpu_ns, totals->cpu_ns);
    grow(&h->work, &written->work, totals->work);
    grow(&h->sleeps, &written->sleeps, totals->sleeps);
    grow(&h->commands, &written->commands, totals->commands);
    grow(&h->quarantined, &written->quarantined, totals->quarantined);
    grow(&h->refused, &written->refused, totals->refused);
    grow(&h->sessions, &share->sessions, write_sessions(c, share, from));
    grow(&h->clients, &share->clients, from->clients);
    write_totals(h, share, from->engine);
    write_peers(c, share, from->engine);
    atomic_store_explicit(&h->updated_ns, now, memory_order_relaxed);
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
