/* Rows of requests: raw connections to the daemons' sockets, with many requests under way. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/peering/directory.h"
#include "tests/lib/raw/session.h"
#include "tests/siege/row.h"

#define SEATS_MAX 640u
#define DEPTH     4 /* requests under way on a connection */

/* A connection, and the answers that it got. */
struct seat {
    int socket;
    uint32_t session, segment, remote;
    struct answer key; /* the last answer with a region's key */
};

static struct seat seats[SEATS_MAX];

/* ---- connections ----------------------------------------------------------------------------- */

static int attach(struct attack *a, struct seat *seat, unsigned node, unsigned number,
                  uint32_t size)
{
    char job[60];
    int rc;

    snprintf(job, sizeof(job), "%s-%u-%u", a->job, a->process, number);
    *seat = (struct seat){.socket = raw_connect_to(a->sockets[node])};
    if (seat->socket < 0)
        return seat->socket;
    rc = raw_hello(seat->socket, job, 0, size);
    if (rc < 0)
        close(seat->socket);
    return rc;
}

/* Opens as many connections as the daemon accepts, `count` at most. Returns their number. */
static unsigned attach_many(struct attack *a, unsigned node, unsigned count)
{
    unsigned have = 0;

    for (unsigned i = 0; i < count; i++) {
        int rc = attach(a, &seats[have], node, i, 1);

        have += rc == 0;
        if (rc < 0)
            attack_counts(a, rc);
    }
    return have;
}

static bool ask_view(int socket, const char *what)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;

    inspect.what = (char *)(uintptr_t)what;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    return raw_request(socket, 7, &request);
}

static bool ask_trace(int socket)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Trace trace = PWC__TRACE__INIT;

    request.body_case = PWC__CLIENT_REQUEST__BODY_TRACE;
    request.trace = &trace;
    return raw_request(socket, 7, &request);
}

/* ---- rows that look -------------------------------------------------------------------------- */

/* Asks for a view without pause, on this many connections without Hello, and reads the answers. */
static void look(struct attack *a, unsigned lookers, const char *what)
{
    int sockets[16];

    for (unsigned i = 0; i < lookers; i++)
        sockets[i] = -1;
    attack_begins(a);
    for (;;)
        for (unsigned i = 0; i < lookers; i++) {
            struct answer answer = {.status = -ENOTCONN};

            if (sockets[i] >= 0)
                ask_nothing(sockets[i], &answer);
            attack_counts(a, answer.status);
            if (answer.status == -ENOTCONN || answer.status == -ECONNRESET) {
                if (sockets[i] >= 0)
                    close(sockets[i]);
                sockets[i] = raw_connect_to(a->sockets[0]);
                for (int k = 0; sockets[i] >= 0 && k < DEPTH - 1; k++)
                    what ? ask_view(sockets[i], what) : ask_trace(sockets[i]);
            }
            if (sockets[i] >= 0)
                what ? ask_view(sockets[i], what) : ask_trace(sockets[i]);
        }
}

static void run_views(struct attack *a)
{
    attach_many(a, 0, 60);
    look(a, 1, "clients");
}

static void run_views_quota(struct attack *a)
{
    attach_many(a, 0, 224);
    look(a, 8, "clients");
}

static void run_traces(struct attack *a)
{
    look(a, 4, NULL);
}

/* Opens many regions, so that the view of regions is large. */
static void fill_view(int socket)
{
    struct answer answer;

    if (ask_segment(socket, 4096, &answer) < 0)
        return;
    uint32_t segment = answer.handle;

    answer_close(&answer);
    for (int i = 0; i < 2000; i++)
        ask_region(socket, segment, 0, 4096, 3, &answer);
}

/* Asks for a large view again and again, and reads no answer. */
static void run_unread(struct attack *a)
{
    unsigned count = attach_many(a, 0, 60);

    fill_view(seats[0].socket);
    for (unsigned i = 1; i < count; i++)
        fcntl(seats[i].socket, F_SETFL, O_NONBLOCK);
    attack_begins(a);
    for (;;) {
        unsigned sent = 0;

        for (unsigned i = 1; i < count; i++) {
            if (ask_view(seats[i].socket, "regions")) {
                attack_counts(a, 0);
                sent++;
            } else if (errno != EAGAIN) { /* the daemon has closed the connection */
                attack_counts(a, -errno);
                close(seats[i].socket);
                if (attach(a, &seats[i], 0, i, 1) == 0)
                    fcntl(seats[i].socket, F_SETFL, O_NONBLOCK);
            }
        }
        if (sent == 0)
            poll(NULL, 0, 1);
    }
}

/* ---- rows that ask for things, and give them back -------------------------------------------- */

enum step {
    BIND,
    UNBIND,
    BIND_WRONG, /* with an invented key of another node */
    CONTEXT_OPEN,
    CONTEXT_CLOSE,
    SEGMENT_OPEN,
    SEGMENT_CLOSE,
    REGION_OPEN,
    REGION_CLOSE,
    STEPS_END
};

static void fill_key(Pwc__Key *key, const struct answer *from)
{
    key->node = from->key.node;
    key->slot = from->key.slot;
    key->generation = from->key.generation;
    key->secret.data = (uint8_t *)(uintptr_t)from->key.secret;
    key->secret.len = sizeof(from->key.secret);
}

static bool ask_step(const struct seat *seat, enum step step)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;
    Pwc__Unbind unbind = PWC__UNBIND__INIT;
    Pwc__Key key = PWC__KEY__INIT;
    Pwc__Rings rings = PWC__RINGS__INIT;
    Pwc__ContextOpen open = PWC__CONTEXT_OPEN__INIT;
    Pwc__ContextClose context = PWC__CONTEXT_CLOSE__INIT;
    Pwc__SegmentOpen segment_open = PWC__SEGMENT_OPEN__INIT;
    Pwc__SegmentClose segment = PWC__SEGMENT_CLOSE__INIT;
    Pwc__RegionOpen region_open = PWC__REGION_OPEN__INIT;
    Pwc__RegionClose region = PWC__REGION_CLOSE__INIT;

    switch (step) {
    case BIND:
    case BIND_WRONG:
        bind.session = seat->session;
        fill_key(&key, &seat->key);
        if (step == BIND_WRONG)
            key.node = 1;
        bind.key = &key;
        r.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
        r.bind = &bind;
        break;
    case UNBIND:
        unbind.session = seat->session;
        unbind.remote = seat->remote;
        r.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
        r.unbind = &unbind;
        break;
    case CONTEXT_OPEN:
        open.rings = &rings;
        r.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN;
        r.context_open = &open;
        break;
    case CONTEXT_CLOSE:
        context.session = seat->session;
        r.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE;
        r.context_close = &context;
        break;
    case SEGMENT_OPEN:
        segment_open.length = 1u << 20;
        r.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN;
        r.segment_open = &segment_open;
        break;
    case SEGMENT_CLOSE:
        segment.segment = seat->segment;
        r.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE;
        r.segment_close = &segment;
        break;
    case REGION_OPEN:
        region_open.segment = seat->segment;
        region_open.length = 1u << 20;
        region_open.rights = 3;
        r.body_case = PWC__CLIENT_REQUEST__BODY_REGION_OPEN;
        r.region_open = &region_open;
        break;
    case REGION_CLOSE:
        region.slot = seat->key.key.slot;
        region.generation = seat->key.key.generation;
        r.body_case = PWC__CLIENT_REQUEST__BODY_REGION_CLOSE;
        r.region_close = &region;
        break;
    case STEPS_END:
        return false;
    }
    return raw_request(seat->socket, 9, &r);
}

/* Reads the answer's status. */
static int take_step(struct seat *seat, enum step step)
{
    struct answer answer;
    int rc = ask_nothing(seat->socket, &answer);

    if (rc == 0 && step == BIND)
        seat->remote = answer.handle;
    else if (rc == 0 && step == CONTEXT_OPEN)
        seat->session = answer.handle;
    else if (rc == 0 && step == SEGMENT_OPEN)
        seat->segment = answer.handle;
    else if (rc == 0 && step == REGION_OPEN)
        seat->key = answer;
    answer_close(&answer);
    return rc;
}

/* Makes the steps in turn, without end, each on all seats at once. */
static void cycle(struct attack *a, unsigned count, const enum step *steps)
{
    attack_begins(a);
    for (const enum step *step = steps;; step = step[1] == STEPS_END ? steps : step + 1) {
        for (unsigned i = 0; i < count; i++)
            if (!ask_step(&seats[i], *step))
                return;
        for (unsigned i = 0; i < count; i++) {
            int rc = take_step(&seats[i], *step);

            /* The refusal of a wrong key is the expected answer. */
            attack_counts(a, *step == BIND_WRONG && rc != -ECONNRESET ? 0 : rc);
            if (rc == -ECONNRESET)
                return;
        }
    }
}

/* Attaches clients, each with a context, a segment and a region. Returns the number of clients that
 * have all three. */
static unsigned furnish(struct attack *a, unsigned count)
{
    static const enum step first[] = {CONTEXT_OPEN, SEGMENT_OPEN, REGION_OPEN};

    count = attach_many(a, 0, count);
    for (unsigned i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof(first) / sizeof(first[0]); k++)
            if (!ask_step(&seats[i], first[k]) || take_step(&seats[i], first[k]) < 0)
                return i;
    return count;
}

static void run_binds(struct attack *a)
{
    static const enum step steps[] = {BIND, UNBIND, STEPS_END};

    cycle(a, furnish(a, 64), steps);
}

static void run_wrong_keys(struct attack *a)
{
    static const enum step steps[] = {BIND_WRONG, STEPS_END};

    cycle(a, furnish(a, 16), steps);
}

static void run_contexts(struct attack *a)
{
    static const enum step steps[] = {CONTEXT_OPEN, CONTEXT_CLOSE, STEPS_END};

    cycle(a, attach_many(a, 0, 16), steps);
}

static void run_segments(struct attack *a)
{
    static const enum step steps[] = {SEGMENT_OPEN, REGION_OPEN, REGION_CLOSE, SEGMENT_CLOSE,
                                      STEPS_END};

    cycle(a, attach_many(a, 0, 16), steps);
}

/* ---- rows that come and go ------------------------------------------------------------------- */

static void run_hellos(struct attack *a)
{
    attack_begins(a);
    for (;;) {
        unsigned count = attach_many(a, 0, 16);

        for (unsigned i = 0; i < count; i++) {
            attack_counts(a, 0);
            close(seats[i].socket);
        }
    }
}

static bool contribute(int socket)
{
    static uint8_t data[DIRECTORY_DATA_MAX];
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;

    exchange.data.data = data;
    exchange.data.len = sizeof(data);
    r.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    r.exchange = &exchange;
    return raw_request(socket, 8, &r);
}

/* The first of 16384 ranks contributes to an exchange; the other ranks never attach. */
static void run_exchanges(struct attack *a)
{
    attack_begins(a);
    for (unsigned first = 0;; first += 32) {
        for (unsigned i = 0; i < 32; i++) {
            int rc = attach(a, &seats[i], i % ATTACK_NODES, first + i,
                            DIRECTORY_TOTAL_MAX / DIRECTORY_DATA_MAX);

            if (rc < 0)
                seats[i].socket = -1;
            else if (!contribute(seats[i].socket))
                rc = -EPIPE;
            attack_counts(a, rc);
        }
        for (unsigned i = 0; i < 32; i++)
            if (seats[i].socket >= 0) {
                struct answer answer;

                /* The view's answer shows that the daemon has taken the exchange. */
                if (ask_view(seats[i].socket, "status"))
                    ask_nothing(seats[i].socket, &answer);
                close(seats[i].socket);
            }
    }
}

/* Attaches jobs of one rank, all with the same home, as many as possible. */
static void run_homes(struct attack *a)
{
    unsigned have = 0;

    for (unsigned number = 0; have < 560; number++) {
        char job[60];
        struct directory_id id = {getuid(), job};
        int s, rc;

        snprintf(job, sizeof(job), "%s-%u-%u", a->job, a->process, number);
        if (directory_home(&id, ATTACK_NODES) != 0)
            continue;
        s = raw_connect_to(a->sockets[a->process % ATTACK_NODES]);
        rc = s < 0 ? s : raw_hello(s, job, 0, 1);
        attack_counts(a, rc);
        if (rc < 0)
            break;
        have++;
    }
    attack_begins(a);
    for (;;)
        pause();
}

/* Attaches clients that break the protocol and are quarantined, one after another. */
static void run_quarantines(struct attack *a)
{
    struct daemon at = {0};

    snprintf(at.socket, sizeof(at.socket), "%s", a->sockets[0]);
    attack_begins(a);
    for (unsigned number = 0;; number++) {
        struct raw_session s;
        char job[60];
        int rc;

        snprintf(job, sizeof(job), "%s-%u", a->job, number);
        rc = raw_session_open(&s, &at, job, 0, 1);
        if (rc == 0) {
            struct submit_record wrong = raw_put(&s);

            wrong.kind = 200;
            raw_submit(&s, &wrong, sizeof(wrong), sizeof(wrong));
            rc = raw_hangs_up(s.socket) ? 0 : -ETIMEDOUT;
        }
        attack_counts(a, rc);
        raw_session_close(&s);
    }
}

const struct row rows_requests[] = {
    {"views", "asks for the view clients without pause, 60 clients of its own", 1, 0, NULL,
     run_views},
    {"views-quota", "the same with all clients that a user may have, 8 connections that ask", 1,
     ROW_USERS | ROW_ALONE, NULL, run_views_quota},
    {"unread", "asks for large views on 59 connections, reads no answer", 1, 0, NULL, run_unread},
    {"traces", "reads traces without pause on 4 connections", 1, 0, NULL, run_traces},
    {"homes", "1024 jobs whose names have one home", 2, ROW_USERS | ROW_ALONE, "--clients-max 1280",
     run_homes},
    {"binds", "binds and unbinds on 64 connections", 1, 0, NULL, run_binds},
    {"wrong-keys", "binds keys of the other node that nobody made, on 16 connections", 1, 0, NULL,
     run_wrong_keys},
    {"contexts", "opens and closes contexts on 16 connections", 1, 0, NULL, run_contexts},
    {"segments", "opens, registers, withdraws and closes segments of 1 MiB on 16 connections", 1, 0,
     NULL, run_segments},
    {"hellos", "attaches 16 clients and hangs up, again and again", 1, 0, NULL, run_hellos},
    {"exchanges", "begins exchanges of 64 MiB that never end, and hangs up", 1, 0, NULL,
     run_exchanges},
    {"quarantines", "attaches, breaks the protocol, is ended, again and again", 1, 0, NULL,
     run_quarantines},
    {0},
};
