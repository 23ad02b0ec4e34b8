/* Gathers the records of daemons on this machine, until time or room is over or a signal comes. */
#include "tools/pwcctl/trace/trace.h"
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "proto/control.pb-c.h"
#include "tools/request.h"
#include "tools/pwcctl/trace/events.h"
#include "proto/clock.h"

#define ENGINES_MAX 64u
#define WHY_MAX     600u
#define RECORDS_MAX 4000000u /* of one trace: 256 MB */
#define PAUSE_NS    5000000

struct records {
    struct trace_record *at;
    size_t count, room;
};

/* A daemon that is traced. */
struct daemon {
    const char *socket;
    int connection; /* -1: the daemon has gone, and may come back */
    bool seen;
    struct trace_source source;
    struct records engines[ENGINES_MAX];
    json_t *clients;
};

struct gathering {
    const struct options *options;
    struct daemon daemons[OPTIONS_SOCKETS_MAX];
    size_t daemon_count, records;
    int64_t real_ns;
    uint64_t lost;
};

static volatile sig_atomic_t stopped; /* the only variable that a signal handler sets */

static void stop(int signal)
{
    stopped = 1;
}

/* Returns whether the record belongs to the client asked for, or to any. */
static bool wanted(const struct options *o, uint32_t engine, const struct trace_record *r)
{
    return !o->one_client || (engine == o->engine && r->client == o->client);
}

static int append(struct gathering *g, struct records *to, const Pwc__TracedEngine *from)
{
    size_t count = from->records.len / sizeof(struct trace_record);
    if (from->records.len % sizeof(struct trace_record) != 0)
        return -EBADMSG;
    if (to->count + count > to->room) {
        size_t room = 2 * (to->count + count);
        struct trace_record *larger = realloc(to->at, room * sizeof(*larger));
        if (larger == NULL)
            return -ENOMEM;
        to->at = larger;
        to->room = room;
    }
    for (size_t i = 0; i < count; i++) {
        struct trace_record *r = &to->at[to->count];
        memcpy(r, from->records.data + i * sizeof(*r), sizeof(*r));
        bool keeps = wanted(g->options, from->engine, r);
        to->count += keeps;
        g->records += keeps;
    }
    return 0;
}

/* Takes the records of an answer. 1: more records wait already. */
static int take_answer(struct gathering *g, struct daemon *d, const Pwc__Traced *traced)
{
    int more = 0;
    if (traced->nodes == 0 || (d->seen && traced->node != d->source.node))
        return -EBADMSG;
    d->source = (struct trace_source){.node = traced->node, .nodes = traced->nodes};
    d->seen = true;
    g->real_ns = (int64_t)(traced->real_ns - traced->now_ns);
    for (size_t i = 0; i < traced->n_engines; i++) {
        const Pwc__TracedEngine *engine = traced->engines[i];
        int rc = engine->engine < ENGINES_MAX ? append(g, &d->engines[engine->engine], engine)
                                              : -EBADMSG;
        if (rc < 0)
            return rc;
        g->lost += engine->lost;
        more |= engine->more;
    }
    return more;
}

/* Adds the daemon's present clients to the known ones: clients may come after the trace has begun,
 * and may have gone by its end. */
static void learn_clients(struct daemon *d)
{
    json_t *document;
    char why[WHY_MAX];
    if (request_document(d->socket, "clients", &document, why, sizeof(why)) < 0)
        return;
    json_t *rows = json_object_get(document, "clients");
    if (d->clients != NULL)
        json_array_extend(json_object_get(d->clients, "clients"), rows);
    else
        d->clients = json_incref(document);
    json_decref(document);
}

static int connect_to(struct daemon *d, char *why)
{
    d->connection = request_connect(d->socket, why, WHY_MAX);
    if (d->connection >= 0)
        learn_clients(d);
    return d->connection < 0 ? d->connection : 0;
}

static int ask(struct gathering *g, struct daemon *d)
{
    char why[WHY_MAX];
    Pwc__ClientReply *reply;
    int rc = request_trace(d->connection, d->socket, &reply, why, sizeof(why));
    if (rc == 0) {
        rc = take_answer(g, d, reply->traced);
        pwc__client_reply__free_unpacked(reply, NULL);
        if (rc < 0)
            fprintf(stderr, "pwcctl: %s: %s\n", d->socket, strerror(-rc));
        return rc;
    }
    if ((rc == -ECONNRESET || rc == -EPIPE) && !d->seen) {
        fprintf(stderr, "pwcctl: %s: the daemon ended as the trace began: there is nothing of it\n",
                d->socket);
        return rc;
    }
    fprintf(stderr, "pwcctl: %s\n", why);
    if (rc != -ECONNRESET && rc != -EPIPE)
        return rc;
    /* A daemon that hands over hangs up; its successor is asked as soon as it serves. */
    close(d->connection);
    d->connection = -1;
    return 0;
}

/* Asks all daemons once. 1: more records wait already. */
static int gather(struct gathering *g)
{
    int more = 0;
    for (size_t i = 0; i < g->daemon_count; i++) {
        struct daemon *d = &g->daemons[i];
        char why[WHY_MAX];
        if (d->connection < 0 && connect_to(d, why) < 0)
            continue;
        int rc = ask(g, d);
        if (rc < 0)
            return rc;
        more |= rc;
    }
    return more;
}

static int gather_all(struct gathering *g)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct sigaction action = {.sa_handler = stop};
    int64_t end;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->daemon_count; i++) {
        char why[WHY_MAX];
        rc = connect_to(&g->daemons[i], why);
        if (rc < 0)
            fprintf(stderr, "pwcctl: %s\n", why);
    }
    if (rc < 0)
        return rc;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    end = now_ns() + (int64_t)(g->options->seconds * 1e9);
    while (rc >= 0 && !stopped && now_ns() < end && g->records < RECORDS_MAX) {
        rc = gather(g);
        if (rc == 0)
            nanosleep(&pause, NULL);
    }
    if (rc >= 0)
        rc = gather(g);
    if (g->records >= RECORDS_MAX)
        fprintf(stderr, "pwcctl: %u records are as many as one trace has: it ends here\n",
                RECORDS_MAX);
    for (size_t i = 0; i < g->daemon_count; i++)
        if (g->daemons[i].connection >= 0)
            learn_clients(&g->daemons[i]);
    return rc < 0 ? rc : 0;
}

static int write_down(struct gathering *g, FILE *to)
{
    struct trace_model model = {0};
    struct trace_source sources[OPTIONS_SOCKETS_MAX];
    json_t *clients[OPTIONS_SOCKETS_MAX];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->daemon_count; i++) {
        struct daemon *d = &g->daemons[i];
        sources[i] = d->source;
        clients[i] = d->clients;
        for (uint32_t e = 0; rc == 0 && e < ENGINES_MAX; e++)
            if (d->engines[e].count > 0)
                rc = trace_model_add(&model, &d->source, (uint32_t)i, e, d->engines[e].at,
                                     d->engines[e].count);
    }
    if (rc == 0)
        rc = trace_model_finish(&model);
    if (rc == 0)
        rc = trace_events_write(&model, sources, clients, g->real_ns, g->lost, to);
    if (rc == 0)
        printf("%zu records of %zu operations and events in %s; %llu were lost\n", g->records,
               model.count, g->options->out, (unsigned long long)g->lost);
    trace_model_free(&model);
    return rc;
}

/* Opens the file before the recording, so that a path that will not do is noticed at once. An
 * earlier trace stays until there is a new one. */
static FILE *open_out(const char *path)
{
    FILE *to = fopen(path, "ae");
    if (to == NULL)
        fprintf(stderr, "pwcctl: %s: %s\n", path, strerror(errno));
    return to;
}

static int write_out(struct gathering *g, FILE *to)
{
    struct stat file;
    int rc = fstat(fileno(to), &file) < 0 || (S_ISREG(file.st_mode) && ftruncate(fileno(to), 0) < 0)
                 ? -errno
                 : write_down(g, to);
    if (rc == 0 && fflush(to) != 0)
        rc = -errno;
    if (rc < 0)
        fprintf(stderr, "pwcctl: %s: %s\n", g->options->out, strerror(-rc));
    return rc;
}

/* Closes the file, and removes it if nothing has come into it. */
static void close_out(FILE *to, const char *path)
{
    struct stat file;
    if (fstat(fileno(to), &file) == 0 && S_ISREG(file.st_mode) && file.st_size == 0)
        (void)remove(path);
    fclose(to);
}

int trace_run(const struct options *options)
{
    struct gathering *g = calloc(1, sizeof(*g));
    FILE *to;
    int rc;
    if (g == NULL) {
        fprintf(stderr, "pwcctl: %s\n", strerror(ENOMEM));
        return -ENOMEM;
    }
    to = open_out(options->out);
    if (to == NULL) {
        free(g);
        return -EIO;
    }
    g->options = options;
    g->daemon_count = options->socket_count;
    for (size_t i = 0; i < g->daemon_count; i++)
        g->daemons[i] = (struct daemon){.socket = options->sockets[i], .connection = -1};
    rc = gather_all(g);
    if (rc == 0)
        rc = write_out(g, to);
    for (size_t i = 0; i < g->daemon_count; i++) {
        if (g->daemons[i].connection >= 0)
            close(g->daemons[i].connection);
        json_decref(g->daemons[i].clients);
        for (uint32_t e = 0; e < ENGINES_MAX; e++)
            free(g->daemons[i].engines[e].at);
    }
    close_out(to, options->out);
    free(g);
    return rc;
}
