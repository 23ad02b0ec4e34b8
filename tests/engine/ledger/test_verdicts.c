/*
 * Clients' shares of a link, whatever they cause there: one client's refused messages, or its
 * replies, take turns with another's operations; and two nodes that refuse everything from each
 * other still drain. Time is virtual: the tests count the bytes that a node stages.
 *
 * A flooder and a victim are on node 0, their partners on node 1. Thread: one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/ops/turn.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/world/messages/message_client.h"

enum { FLOODER, PARTNER, VICTIM, SENDER, CLIENTS }; /* clients with odd numbers are on node 1 */

#define LEDGER     16384u
#define LEDGER_MAX (1u << 20)
#define ROUNDS     200000u
#define LONGEST    4096u

struct scene {
    struct world *w;
    struct message_client c[CLIENTS];
    uint32_t remotes[CLIENTS]; /* FLOODER and PARTNER to each other, VICTIM and SENDER too */
    uint64_t ended[CLIENTS], seen[CLIENTS]; /* local events, and requests that have arrived */
    uint64_t replies;
    int status;     /* status of all local events except those of the victims */
    uint32_t reply; /* bytes of the partner's replies; 0: the partner has no handler */
};

/* ---- the scene ------------------------------------------------------------------------------- */

static uint32_t partner_of(uint32_t client)
{
    return client ^ 1;
}

static void scene_open(struct scene *s, uint64_t seed)
{
    const struct world_options options = {
        .seed = seed,
        .nodes = 2,
        .submit_bytes = 1u << 18,
        .local_bytes = 1u << 22,
        .remote_bytes = 1u << 20,
        .answer_bytes = 1u << 18,
        .reply_bytes = 1u << 20,
        .limits = {.packed_max = LONGEST,
                   .chunks_max = 8192,
                   .ops_max = 262144,
                   .ledger_start = LEDGER,
                   .ledger_max = LEDGER_MAX,
                   .ledger_bytes = 16u << 20},
        .sim = {.ordered_write_max = UINT64_MAX},
    };

    memset(s, 0, sizeof(*s));
    CU_ASSERT_EQUAL_FATAL(world_open(&options, &s->w), 0);
    s->w->nodes[0].budget_max = s->w->nodes[1].budget_max = 256;
    for (uint32_t i = 0; i < CLIENTS; i++)
        CU_ASSERT_EQUAL_FATAL(world_client_open(s->w, i % 2, i, 1), i);
    CU_ASSERT_FATAL(world_settle(s->w, 10000));
    for (uint32_t i = 0; i < CLIENTS; i++) {
        int request = world_bind(s->w, i, 0, partner_of(i), 0, NULL);

        CU_ASSERT_EQUAL_FATAL(world_await(s->w, request), 0);
        s->remotes[i] = s->w->requests[request].handle;
        world_request_free(s->w, request);
        message_client_open(&s->c[i], s->w, i);
    }
}

static void scene_close(struct scene *s)
{
    if (s->w->failed)
        printf("\n  %s\n", s->w->failure);
    CU_ASSERT_FALSE(s->w->failed);
    world_close(s->w);
}

/* Sends a message of this many bytes. Returns 0 if there was room to submit it. */
static int send(struct scene *s, uint32_t from, uint16_t flags, uint32_t length)
{
    static const uint8_t payload[LONGEST];
    const struct message_send message = {.kind = length > 0 ? SUBMIT_MEDIUM : SUBMIT_SHORT,
                                         .flags = flags,
                                         .index = 3,
                                         .remote = s->remotes[from],
                                         .payload = payload,
                                         .length = length};

    return message_request(&s->c[from], &message);
}

static void answer(struct scene *s, uint32_t from, uint64_t token)
{
    static const uint8_t payload[LONGEST];
    const struct message_send message = {.kind = SUBMIT_MEDIUM,
                                         .flags = SUBMIT_NO_LCE,
                                         .index = 3,
                                         .token = token,
                                         .payload = payload,
                                         .length = s->reply};

    CU_ASSERT_EQUAL(message_reply(&s->c[from], &message), 0);
}

static void take_events(struct scene *s)
{
    static struct message_event event;

    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct message_client *c = &s->c[i];

        while (message_probe(c, MESSAGE_LOCAL, &event) == 1) {
            s->ended[i]++;
            if (event.head.status != (i < VICTIM ? s->status : 0))
                world_fail(s->w, "client %u: status %d", i, event.head.status);
        }
        while (message_reply_room(c) && message_probe(c, MESSAGE_REMOTE, &event) == 1) {
            s->seen[i]++;
            if (i == PARTNER && s->reply > 0)
                answer(s, i, event.message.token);
        }
        while (message_probe(c, MESSAGE_REPLY, &event) == 1)
            s->replies++;
    }
}

/* The flooder submits what it can, then every node steps. */
static void flood_round(struct scene *s)
{
    while (send(s, FLOODER, s->reply > 0 ? SUBMIT_NO_LCE : SUBMIT_NO_REPLY, 0) == 0)
        continue;
    world_round(s->w);
    take_events(s);
}

static uint64_t staged(const struct scene *s)
{
    return peek_peer(s->w->nodes[1].engine, 0).staged;
}

static uint64_t staged_of(const struct scene *s, uint32_t client)
{
    return peek_staged_of(s->w->nodes[1].engine, s->w->clients[client].handle);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct flood {
    const char *what;
    uint32_t reply;
    int status;
    uint32_t ledger_max; /* LEDGER: ledgers do not grow */
    uint32_t length;     /* bytes of the lone message */
} floods[] = {
    {"refused messages", 0, -ENOSYS, LEDGER_MAX, 0},
    {"refused messages, long", 0, -ENOSYS, LEDGER, LONGEST},
    {"short replies", 64, 0, LEDGER_MAX, 0},
    {"long replies", LONGEST, 0, LEDGER_MAX, 0},
};

static void flood_begin(struct scene *s, size_t flood)
{
    scene_open(s, 11 + flood);
    poke_config(s->w->nodes[0].engine)->ledger_max = floods[flood].ledger_max;
    s->reply = floods[flood].reply;
    s->status = floods[flood].status;
    message_handlers(&s->c[PARTNER], s->reply > 0);
    for (uint32_t i = 0; i < 2000; i++)
        flood_round(s);
    CU_ASSERT_FATAL(!s->w->failed);
}

/* Guards that a lone message waits for one turn of the flood and its excess, and with a full ledger
 * also until there is room (ledger_may_pass). */
static void test_a_lone_message(void)
{
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        const uint64_t bound = 2 * TURN_BYTES + LEDGER + 8 * LONGEST;
        struct scene s;
        uint64_t most = 0;

        flood_begin(&s, i);
        /* A step takes a turn or two, so that little of what follows the message is counted. */
        s.w->nodes[1].budget_max = 1;
        for (uint32_t n = 1; n <= 50 && !s.w->failed; n++) {
            uint64_t before = staged(&s), own = staged_of(&s, SENDER), seen = s.seen[VICTIM];
            uint32_t rounds = 0;

            CU_ASSERT_EQUAL_FATAL(send(&s, SENDER, SUBMIT_NO_REPLY, floods[i].length), 0);
            while (staged_of(&s, SENDER) == own && rounds++ < ROUNDS &&
                   staged(&s) < before + 64 * bound)
                flood_round(&s);
            if (staged(&s) - before > most)
                most = staged(&s) - before;
            if (most > bound)
                break;
            while (s.seen[VICTIM] == seen && rounds++ < ROUNDS)
                flood_round(&s);
        }
        if (most > bound)
            printf("\n  %s: a message waited for %llu bytes\n", floods[i].what,
                   (unsigned long long)most);
        CU_ASSERT(most <= bound);
        scene_close(&s);
    }
}

/* Guards that a client's replies leave before its own requests, however many those are. */
static void test_own_requests(void)
{
    const uint64_t bound = 2 * TURN_BYTES + LEDGER + 8 * LONGEST;
    uint64_t most = 0;
    struct scene s;

    scene_open(&s, 5);
    s.reply = 64;
    poke_config(s.w->nodes[0].engine)->ledger_max = LEDGER;
    s.w->nodes[1].budget_max = 1;
    for (uint32_t n = 1; n <= 20 && most <= bound && !s.w->failed; n++) {
        uint64_t answered = 0;

        CU_ASSERT_EQUAL_FATAL(send(&s, FLOODER, SUBMIT_NO_LCE, 0), 0);
        for (uint32_t rounds = 0; s.replies < n && rounds < ROUNDS && most <= bound; rounds++) {
            while (send(&s, PARTNER, SUBMIT_NO_REPLY, LONGEST) == 0)
                continue;
            world_round(s.w);
            take_events(&s);
            if (answered == 0 && s.seen[PARTNER] == n)
                answered = staged(&s);
            if (answered > 0 && staged(&s) - answered > most)
                most = staged(&s) - answered;
        }
        CU_ASSERT_EQUAL(s.replies, n);
    }
    CU_ASSERT(most <= bound);
    scene_close(&s);
}

/* Guards that a client with any amount to send has half of the link beside a flood. */
static void test_shares(void)
{
    const uint64_t each = sizeof(struct wire_op) + sizeof(struct message) + LONGEST;

    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        struct scene s;
        uint64_t bytes, seen;

        flood_begin(&s, i);
        bytes = staged(&s);
        seen = s.seen[VICTIM];
        while (staged(&s) < bytes + (24u << 20) && !s.w->failed) {
            while (send(&s, SENDER, SUBMIT_NO_REPLY, LONGEST) == 0)
                continue;
            flood_round(&s);
        }
        bytes = staged(&s) - bytes;
        seen = (s.seen[VICTIM] - seen) * each;
        if (seen * 200 < bytes * 95)
            printf("\n  %s: %llu of %llu bytes\n", floods[i].what, (unsigned long long)seen,
                   (unsigned long long)bytes);
        CU_ASSERT(seen * 200 >= bytes * 95);
        scene_close(&s);
    }
}

/* Guards that two nodes which refuse everything from each other drain, with ledgers that are full
 * in both directions: operations wait for acknowledgements, acknowledgements wait for verdicts, and
 * verdicts pass operations. */
static void test_refused_both_ways(void)
{
    for (uint32_t shorts = 200; shorts < 230; shorts++) {
        struct scene s;
        uint32_t rounds = 0;

        scene_open(&s, shorts);
        s.status = -ENOSYS;
        s.w->nodes[0].budget_max = s.w->nodes[1].budget_max = 4096; /* fills the ledgers at once */
        for (uint32_t i = 0; i < 2; i++)
            poke_config(s.w->nodes[i].engine)->ledger_max = LEDGER;
        message_handlers(&s.c[FLOODER], false);
        message_handlers(&s.c[PARTNER], false);
        world_link_cut(s.w, 0, 1);
        for (uint32_t from = FLOODER; from <= PARTNER; from++)
            for (uint32_t n = 0; n < 250; n++)
                CU_ASSERT_EQUAL_FATAL(send(&s, from, SUBMIT_NO_REPLY, n < shorts ? 0 : LONGEST), 0);
        while (!(world_taken(s.w, FLOODER, 0) && world_taken(s.w, PARTNER, 0)) && rounds++ < ROUNDS)
            world_round(s.w);
        world_link_restore(s.w, 0, 1);
        while (s.ended[FLOODER] + s.ended[PARTNER] <
                   s.c[FLOODER].submitted + s.c[PARTNER].submitted &&
               rounds++ < ROUNDS && !s.w->failed) {
            world_round(s.w);
            take_events(&s);
        }
        CU_ASSERT_EQUAL(s.ended[FLOODER], s.c[FLOODER].submitted);
        CU_ASSERT_EQUAL(s.ended[PARTNER], s.c[PARTNER].submitted);
        scene_close(&s);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"a lone message passes a flood", test_a_lone_message},
                           {"a flood has its share", test_shares},
                           {"replies before own requests", test_own_requests},
                           {"refused both ways", test_refused_both_ways},
                           CU_TEST_INFO_NULL};

    return suite_run("verdicts", tests);
}
