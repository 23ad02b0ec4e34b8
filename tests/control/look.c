/* Asks, counts, compares (look.h). */
#include "tests/control/look.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 2000, PAUSE_MS = 10 };

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
    int s = raw_connect(d);

    if (s >= 0) {
        document = look_on(s, what);
        close(s);
    }
    return document;
}

static int rows(const struct daemon *d, const char *view)
{
    json_t *document = look_at(d, view);
    const json_t *array = json_object_get(document, view);
    int n = json_is_array(array) ? (int)json_array_size(array) : -1;

    json_decref(document);
    return n;
}

static int segments(const struct daemon *d)
{
    json_t *document = look_at(d, "clients"), *row;
    int n = document ? 0 : -1;
    size_t i;

    json_array_foreach(json_object_get(document, "clients"), i, row) n +=
        (int)json_integer_value(json_object_get(row, "segments"));
    json_decref(document);
    return n;
}

static int mappings(const struct daemon *d)
{
    char path[64], line[512];
    FILE *maps;
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)d->pid);
    maps = fopen(path, "re");
    if (!maps)
        return -1;
    while (fgets(line, sizeof(line), maps))
        n += strstr(line, "memfd:pwc-session") || strstr(line, "memfd:pwc-segment");
    fclose(maps);
    return n;
}

bool look_holdings(const struct daemon *d, struct holdings *out)
{
    *out = (struct holdings){
        .clients = rows(d, "clients"),
        .sessions = rows(d, "queues"),
        .segments = segments(d),
        .regions = rows(d, "regions"),
        .ops = rows(d, "ops"),
        .mappings = mappings(d),
        .descriptors = daemon_descriptors(d),
    };
    return out->clients >= 0 && out->sessions >= 0 && out->segments >= 0 && out->regions >= 0 &&
           out->ops >= 0 && out->mappings >= 0;
}

bool look_returns_to(const struct daemon *d, const struct holdings *then)
{
    struct holdings now = {0};

    for (int i = 0; i < TRIES; i++) {
        if (!look_holdings(d, &now))
            break;
        /* Operations come and go with others' traffic; our own looks may still be closing. */
        if (now.clients == then->clients && now.sessions == then->sessions &&
            now.segments == then->segments && now.regions == then->regions &&
            now.mappings == then->mappings && now.ops <= then->ops + 1 &&
            now.descriptors <= then->descriptors)
            return true;
        pause_between();
    }
    fprintf(stderr,
            "clients %d, were %d; sessions %d, %d; segments %d, %d; regions %d, %d; operations %d, "
            "%d; mappings %d, %d; descriptors %d, %d\n",
            now.clients, then->clients, now.sessions, then->sessions, now.segments, then->segments,
            now.regions, then->regions, now.ops, then->ops, now.mappings, then->mappings,
            now.descriptors, then->descriptors);
    return false;
}

/* The last of those that are gone. */
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
