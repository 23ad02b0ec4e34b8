/* Asks a daemon what it holds, counts and compares (look.h). Thread: any. */
#include "tests/lib/raw/look.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/process.h"

enum { TRIES = 2000, PAUSE_MS = 10 };

/* Where to look: a daemon's socket and process. */
struct place {
    const char *socket;
    pid_t pid;
};

static struct place place_of(const struct daemon *d)
{
    return (struct place){d->socket, d->pid};
}

static struct place place_of_node(const struct cluster_node *node)
{
    return (struct place){node->socket, node->pid};
}

static void pause_between(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
}

json_t *look_on(int s, const char *what)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    Pwc__ClientReply *reply = NULL;
    json_t *document = NULL;
    int fds[3], count;

    inspect.what = (char *)(uintptr_t)what;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    if (raw_request(s, 11, &request))
        reply = raw_reply(s, fds, &count);
    if (reply && reply->body_case == PWC__CLIENT_REPLY__BODY_INSPECTED)
        document = json_loads(reply->inspected->json, 0, NULL);
    if (reply)
        pwc__client_reply__free_unpacked(reply, NULL);
    return document;
}

json_t *look_at(const struct daemon *d, const char *what)
{
    json_t *document = NULL;
    int s = raw_connect_to(d->socket);

    if (s >= 0) {
        document = look_on(s, what);
        close(s);
    }
    return document;
}

/* The views that holdings are counted in. */
enum view { CLIENTS, QUEUES, REGIONS, PROGRAMS, OFFLOADS, OPS, VIEWS };
static const char *const view_names[VIEWS] = {"clients",  "queues",   "regions",
                                              "programs", "offloads", "ops"};

/* Counts the rows of a view, or sums one of their fields. Returns -1 without an answer. */
static int rows(json_t *const views[VIEWS], enum view view, const char *field)
{
    const json_t *array = json_object_get(views[view], view_names[view]);
    int n = json_is_array(array) ? 0 : -1;
    json_t *row;
    size_t i;

    json_array_foreach(array, i, row) n +=
        field ? (int)json_integer_value(json_object_get(row, field)) : 1;
    return n;
}

/* Asks for all views over one connection: the daemon would accept each further one only when its
 * thread runs again. The connection stays open until all is counted, so the daemon's end of it is
 * among the descriptors each time; when the daemon closes that end is not known. */
static bool take(struct place at, struct holdings *out)
{
    int s = raw_connect_to(at.socket);
    json_t *views[VIEWS]; /* NULL without an answer */

    for (enum view v = 0; v < VIEWS; v++)
        views[v] = s >= 0 ? look_on(s, view_names[v]) : NULL;
    *out = (struct holdings){
        .clients = rows(views, CLIENTS, NULL),
        .sessions = rows(views, QUEUES, NULL),
        .segments = rows(views, CLIENTS, "segments"),
        .regions = rows(views, REGIONS, NULL),
        .grants = rows(views, REGIONS, "grants"),
        .programs = rows(views, PROGRAMS, NULL),
        .offloads = rows(views, OFFLOADS, NULL),
        .ops = rows(views, OPS, NULL),
        .mappings = process_mappings(at.pid, "memfd:pwc-"),
        .descriptors = process_descriptors(at.pid),
    };
    for (enum view v = 0; v < VIEWS; v++)
        json_decref(views[v]);
    if (s >= 0)
        close(s);
    return out->clients >= 0 && out->sessions >= 0 && out->regions >= 0 && out->programs >= 0 &&
           out->offloads >= 0 && out->ops >= 0 && out->mappings >= 0 && out->descriptors >= 0;
}

/* Whether a daemon holds the same now as then. Fewer operations, or one more, count as the same,
 * because operations come and go with other clients' traffic. */
static bool same(const struct holdings *now, const struct holdings *then)
{
    return now->clients == then->clients && now->sessions == then->sessions &&
           now->segments == then->segments && now->regions == then->regions &&
           now->programs == then->programs && now->offloads == then->offloads &&
           now->grants == then->grants && now->mappings == then->mappings &&
           (then->descriptors == HOLDINGS_ANY || now->descriptors == then->descriptors) &&
           now->ops <= then->ops + 1;
}

/* Looks until the daemon holds the same twice in a row, because the daemon closes its side of a
 * connection, also of the test's own, some time after the other end. */
static bool settle(struct place at, struct holdings *out)
{
    struct holdings before;
    bool answers = take(at, out);

    for (int i = 0; i < TRIES && answers; i++) {
        before = *out;
        pause_between();
        answers = take(at, out);
        if (answers && same(out, &before))
            break;
    }
    return answers;
}

/* Waits until the daemon holds again what it held then. A daemon that has just been restarted may
 * not answer at first. */
static bool return_to(struct place at, const struct holdings *then)
{
    struct holdings now = {0};

    for (int i = 0; i < TRIES; i++) {
        if (take(at, &now) && same(&now, then))
            return true;
        pause_between();
    }
    fprintf(stderr,
            "%s: clients %d, were %d; sessions %d, %d; segments %d, %d; regions %d, %d; programs "
            "%d, %d; offloads %d, %d; grants %d, %d; operations %d, %d; mappings %d, %d; "
            "descriptors %d, %d\n",
            at.socket, now.clients, then->clients, now.sessions, then->sessions, now.segments,
            then->segments, now.regions, then->regions, now.programs, then->programs, now.offloads,
            then->offloads, now.grants, then->grants, now.ops, then->ops, now.mappings,
            then->mappings, now.descriptors, then->descriptors);
    return false;
}

bool look_holdings(const struct daemon *d, struct holdings *out)
{
    return settle(place_of(d), out);
}

bool look_returns_to(const struct daemon *d, const struct holdings *then)
{
    return return_to(place_of(d), then);
}

bool look_node_holdings(const struct cluster_node *node, struct holdings *out)
{
    return settle(place_of_node(node), out);
}

bool look_node_returns_to(const struct cluster_node *node, const struct holdings *then)
{
    return return_to(place_of_node(node), then);
}

/* Whether the last client in the list of quarantined ones is this one. */
static bool last_is(const json_t *document, const char *job, uint32_t rank, const char *reason,
                    bool print)
{
    const json_t *gone = json_object_get(document, "quarantined");
    const json_t *row = json_array_get(gone, json_array_size(gone) - 1);
    const char *its_job = json_string_value(json_object_get(row, "job"));
    const char *its_reason = json_string_value(json_object_get(row, "quarantine"));

    if (its_job && its_reason && strcmp(its_job, job) == 0 && strcmp(its_reason, reason) == 0 &&
        json_integer_value(json_object_get(row, "rank")) == (json_int_t)rank)
        return true;
    if (print)
        fprintf(stderr, "the last one quarantined is of job %s, for \"%s\" instead of \"%s\"\n",
                its_job ? its_job : "none", its_reason ? its_reason : "nothing", reason);
    return false;
}

bool look_quarantined(const struct daemon *d, const char *job, uint32_t rank, const char *reason)
{
    for (int i = 0; i < TRIES; i++) {
        json_t *document = look_at(d, "clients");
        bool found = last_is(document, job, rank, reason, i + 1 == TRIES);

        json_decref(document);
        if (found)
            return true;
        pause_between();
    }
    return false;
}
