/* Maps the counters read-only, checks that they are what they say, and writes them down as JSON. */
#include "tools/pwcctl/counters.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "proto/counters_abi.h"

struct counters {
    const struct counters_header *header;
    size_t size;
};

/* A counter of a row, and its key in the document. */
struct field {
    const char *key;
    size_t offset;
};

#define FIELD(row, member)                                                                         \
    {                                                                                              \
#member, offsetof(struct row, member)                                                      \
    }

static const struct field header_fields[] = {
    FIELD(counters_header, heartbeat),   FIELD(counters_header, cpu_ns),
    FIELD(counters_header, work),        FIELD(counters_header, sleeps),
    FIELD(counters_header, commands),    FIELD(counters_header, clients),
    FIELD(counters_header, quarantined), FIELD(counters_header, refused),
    FIELD(counters_header, put_ops),     FIELD(counters_header, put_bytes),
    FIELD(counters_header, get_ops),     FIELD(counters_header, get_bytes),
    FIELD(counters_header, am_ops),      FIELD(counters_header, am_bytes),
    FIELD(counters_header, errors),      FIELD(counters_header, delivered),
    FIELD(counters_header, spilled),     {0},
};

static const struct field session_fields[] = {
    FIELD(counters_session, client),
    FIELD(counters_session, rank),
    FIELD(counters_session, context),
    FIELD(counters_session, submit_used),
    FIELD(counters_session, submit_high),
    FIELD(counters_session, local_used),
    FIELD(counters_session, local_high),
    FIELD(counters_session, remote_used),
    FIELD(counters_session, remote_high),
    FIELD(counters_session, submitted),
    FIELD(counters_session, ended),
    FIELD(counters_session, in_flight),
    FIELD(counters_session, delivered),
    FIELD(counters_session, put_ops),
    FIELD(counters_session, put_bytes),
    FIELD(counters_session, get_ops),
    FIELD(counters_session, get_bytes),
    FIELD(counters_session, errors),
    FIELD(counters_session, spilled),
    FIELD(counters_session, spill_bytes),
    FIELD(counters_session, am_ops),
    FIELD(counters_session, am_bytes),
    FIELD(counters_session, reply_used),
    FIELD(counters_session, reply_high),
    FIELD(counters_session, replies_expected),
    FIELD(counters_session, replies_owed),
    {0},
};

static const struct field peer_fields[] = {
    FIELD(counters_peer, state),
    FIELD(counters_peer, tx_bytes),
    FIELD(counters_peer, tx_tail),
    FIELD(counters_peer, tx_sent),
    FIELD(counters_peer, tx_consumed),
    FIELD(counters_peer, tx_credit),
    FIELD(counters_peer, rx_bytes),
    FIELD(counters_peer, rx_consumed),
    FIELD(counters_peer, rx_acked),
    FIELD(counters_peer, runs_out),
    FIELD(counters_peer, runs_in),
    FIELD(counters_peer, records_out),
    FIELD(counters_peer, records_in),
    FIELD(counters_peer, starved),
    FIELD(counters_peer, grown),
    FIELD(counters_peer, sent_pending),
    {0},
};

static uint64_t load(const void *row, size_t offset)
{
    const _Atomic uint64_t *counter = (const void *)((const char *)row + offset);
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add(json_t *to, const char *key, uint64_t value)
{
    json_object_set_new(to, key, json_integer((json_int_t)value));
}

/* Those within `bytes`: an older daemon's have fewer. */
static void add_fields(json_t *to, const void *row, size_t bytes, const struct field *fields)
{
    for (; fields->key != NULL; fields++)
        if (fields->offset + sizeof(uint64_t) <= bytes)
            add(to, fields->key, load(row, fields->offset));
}

/* What the first word of a row names: a session or a peer, and the engine that it is of. */
static void add_name(json_t *row, const struct counters_header *h, const char *name, uint64_t word)
{
    uint32_t number = (uint32_t)word - 1;
    bool is_peer = strcmp(name, "node") == 0 && h->nodes > 0;
    if (h->engines > 1)
        add(row, "engine", word >> 32);
    add(row, name, is_peer ? number % h->nodes : number);
    if (is_peer && (h->engines > 1 || number >= h->nodes))
        add(row, "peer_engine", number / h->nodes);
}

/* Rows in use: the first word of each tells. */
static json_t *rows_of(const struct counters *c, uint32_t offset, uint32_t row_bytes,
                       uint32_t count, const char *name, const struct field *fields)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const char *row = (const char *)c->header + offset + (size_t)i * row_bytes;
        uint64_t number = load(row, 0);
        if (number == 0)
            continue;
        json_t *object = json_object();
        add_name(object, c->header, name, number);
        add_fields(object, row, row_bytes, fields);
        json_array_append_new(rows, object);
    }
    return rows;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static json_t *document_of(const struct counters *c)
{
    const struct counters_header *h = c->header;
    json_t *document = json_object();
    uint64_t now = now_ns(), updated = load(h, offsetof(struct counters_header, updated_ns));
    add(document, "pid", h->pid);
    add(document, "node", h->node);
    add(document, "nodes", h->nodes);
    json_object_set_new(document, "provider",
                        json_stringn(h->provider, strnlen(h->provider, sizeof(h->provider))));
    add(document, "uptime_ns", now - h->started_ns);
    add(document, "age_ns", now > updated ? now - updated : 0);
    add_fields(document, h, h->session_offset, header_fields);
    json_object_set_new(document, "sessions",
                        rows_of(c, h->session_offset, h->session_row_bytes, h->session_rows,
                                "session", session_fields));
    json_object_set_new(
        document, "peers",
        rows_of(c, h->peer_offset, h->peer_row_bytes, h->peer_rows, "node", peer_fields));
    return document;
}

static int rows_fit(const struct counters *c, uint32_t offset, uint32_t row_bytes, uint32_t count,
                    size_t known)
{
    return offset % 8 == 0 && row_bytes % 8 == 0 && row_bytes >= known && offset <= c->size &&
           count <= (c->size - offset) / row_bytes;
}

static int check(const struct counters *c)
{
    const struct counters_header *h = c->header;
    if (h->magic != COUNTERS_MAGIC || h->version != COUNTERS_VERSION)
        return -EPROTONOSUPPORT;
    if (!rows_fit(c, h->session_offset, h->session_row_bytes, h->session_rows,
                  sizeof(struct counters_session)) ||
        !rows_fit(c, h->peer_offset, h->peer_row_bytes, h->peer_rows, sizeof(struct counters_peer)))
        return -EBADMSG;
    return 0;
}

static int map(const char *path, struct counters *out)
{
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &stat) < 0 ? -errno : 0;
    if (rc == 0 && stat.st_size < (off_t)sizeof(struct counters_header))
        rc = -EBADMSG;
    if (rc == 0) {
        out->size = (size_t)stat.st_size;
        void *base = mmap(NULL, out->size, PROT_READ, MAP_SHARED, fd, 0);
        rc = base == MAP_FAILED ? -errno : 0;
        out->header = base;
    }
    close(fd);
    return rc;
}

int counters_read(const char *socket_path, char **out)
{
    char path[128];
    size_t length = strlen(socket_path);
    if (length > 5 && strcmp(socket_path + length - 5, ".sock") == 0)
        length -= 5;
    snprintf(path, sizeof(path), "%.*s.counters", (int)length, socket_path);

    struct counters counters;
    int rc = map(path, &counters);
    if (rc == 0) {
        rc = check(&counters);
        if (rc == 0) {
            json_t *document = document_of(&counters);
            *out = json_dumps(document, JSON_COMPACT);
            json_decref(document);
            rc = *out != NULL ? 0 : -ENOMEM;
        }
        munmap((void *)counters.header, counters.size);
    }
    if (rc < 0)
        fprintf(stderr, "pwcctl: %s: %s%s\n", path, strerror(-rc),
                rc == -ENOENT            ? ": no daemon runs there (--socket tells where it does)"
                : rc == -EPROTONOSUPPORT ? ": pwcctl and the daemon are of different versions"
                                         : "");
    return rc;
}
