/*
 * Notifications in a channel, over a session and a pair of the test's own: which are matched,
 * reported, kept or left in their ring, from the remote ring and from a neighbour's ring. A context
 * that can keep no more unexpected notifications must not lose any.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/channel/channel.h"
#include "pwc/notify.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"

enum {
    RING = SESSION_RING_MIN,
    FAR = 1,  /* the peer whose events come in the remote ring */
    NEAR = 2, /* the neighbour */
    SPACE = 7,
    STEPS = 200000,
    PATTERNS = 8,
};

struct hall {
    struct fake_session daemon;
    struct mapping mapping, pair;
    struct channel channel;
    struct pair_writer writer;
};

static void add_neighbour(struct hall *h)
{
    const struct pair_note note = {.peer = NEAR, .slot = BOARD_NONE};

    CU_ASSERT_EQUAL_FATAL(mapping_create(&h->pair, "test-pair", PAIR_BYTES), 0);
    pair_format(h->pair.base);
    CU_ASSERT_EQUAL_FATAL(pair_writer_init(&h->writer, h->pair.base, h->pair.size, PAIR_REQUESTS),
                          0);
    neighbours_add(&h->channel.neighbours, &note, dup(h->pair.fd), -1);
}

static struct hall *hall_new(uint32_t unexpected)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    struct hall *h = calloc(1, sizeof(*h));

    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    fake_channel_open(&h->daemon, &h->mapping, &h->channel, &rings);
    channel_set_unexpected(&h->channel, unexpected);
    add_neighbour(h);
    return h;
}

static void hall_free(struct hall *h)
{
    fake_channel_close(&h->daemon, &h->mapping, &h->channel);
    mapping_destroy(&h->pair);
    free(h);
}

static uint64_t id_of(uint32_t tag)
{
    return pwc_notice(SPACE, tag).value;
}

/* Sends a notification from the peer FAR or NEAR, with `number` as its length. Returns 0, or the
 * error of a full ring. */
static int notify(struct hall *h, uint64_t peer, uint32_t tag, uint64_t number)
{
    const struct pair_record record = {
        .kind = PAIR_PUT, .flags = PAIR_NOTIFY, .lines = 1, .bytes = number, .id = id_of(tag)};

    if (peer == FAR)
        return fake_session_post(&h->daemon, EVENT_NOTIFY, SUBMIT_PUT, FAR, 0, number, id_of(tag),
                                 NULL, 0);
    if (pair_room(&h->writer, 1) < 0)
        return -EAGAIN;
    pair_show(&h->writer, &record);
    return 0;
}

static struct pwc_request *request(struct hall *h, uint64_t peer, uint32_t tag, uint32_t count)
{
    const struct matcher_pattern pattern = {
        .peer = peer, .id = id_of(tag), .any_peer = peer == PWC_ANY, .any_tag = tag == PWC_ANY_TAG};
    struct pwc_request *r = NULL;

    CU_ASSERT_EQUAL_FATAL(request_pool_take(&h->channel.requests, REQUEST_NOTIFY, &r), 0);
    r->wanted = count;
    CU_ASSERT_EQUAL_FATAL(channel_notify_open(&h->channel, r, &pattern), 0);
    return r;
}

static void start(struct hall *h, struct pwc_request *r)
{
    CU_ASSERT_EQUAL_FATAL(channel_start_request(&h->channel, r), 0);
    CU_ASSERT_EQUAL_FATAL(channel_notify_start(&h->channel, r), 0);
}

static void cancel(struct hall *h, struct pwc_request *r)
{
    channel_notify_stop(&h->channel, r);
    channel_end_request(&h->channel, r, -ECANCELED);
}

static void expect(const struct pwc_request *r, uint64_t peer, uint32_t tag, uint64_t number)
{
    CU_ASSERT_EQUAL(r->left, 0);
    CU_ASSERT_EQUAL(r->status.status, 0);
    CU_ASSERT_EQUAL(r->status.count, r->wanted);
    CU_ASSERT_EQUAL(r->status.peer, peer);
    CU_ASSERT_EQUAL(r->status.id, id_of(tag));
    CU_ASSERT_EQUAL(r->status.bytes, number);
}

/* For both peers: a started request takes the next notification; a request that is started later
 * takes an unexpected one. */
static void started_and_unexpected(void)
{
    for (uint64_t peer = FAR; peer <= NEAR; peer++) {
        struct hall *h = hall_new(8);
        struct pwc_request *early = request(h, peer, 5, 1), *late = request(h, peer, 6, 2);

        start(h, early);
        CU_ASSERT_EQUAL(notify(h, peer, 6, 1), 0);
        CU_ASSERT_EQUAL(notify(h, peer, 6, 2), 0);
        CU_ASSERT_EQUAL(notify(h, peer, 5, 3), 0);
        CU_ASSERT_EQUAL(notify(h, peer, 6, 4), 0);
        CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
        expect(early, peer, 5, 3);
        start(h, late);
        expect(late, peer, 6, 2);
        start(h, late);
        CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
        CU_ASSERT_EQUAL(late->left, 1);
        CU_ASSERT_EQUAL(notify(h, peer, 6, 5), 0);
        CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
        expect(late, peer, 6, 5);
        hall_free(h);
    }
}

/* A plain remote event with the id of a notification matches no request. */
static void events_match_nothing(void)
{
    struct hall *h = hall_new(8);
    struct pwc_request *r = request(h, NEAR, 5, 1);
    const struct pair_record event = {.kind = PAIR_PUT, .lines = 1, .bytes = 1, .id = id_of(5)};

    start(h, r);
    CU_ASSERT_FALSE(channel_run_direct(&h->channel));
    pair_show(&h->writer, &event);
    CU_ASSERT_FALSE(channel_run_direct(&h->channel));
    CU_ASSERT_EQUAL(r->left, 1);
    CU_ASSERT_EQUAL(notify(h, NEAR, 6, 2), 0);
    CU_ASSERT_EQUAL(notify(h, NEAR, 5, 3), 0);
    for (int look = 0; look < 3 && r->left > 0; look++)
        (void)channel_run_direct(&h->channel);
    expect(r, NEAR, 5, 3);
    hall_free(h);
}

/* A notification that had to stay in its neighbour's ring blocks no events any more once a request
 * has taken it. */
static void held_then_matched(void)
{
    struct hall *h = hall_new(1);
    struct pwc_request *other = request(h, NEAR, 9, 1), *r = request(h, NEAR, 6, 1);

    start(h, other);
    CU_ASSERT_EQUAL(notify(h, NEAR, 5, 1), 0);
    CU_ASSERT_EQUAL(notify(h, NEAR, 6, 2), 0);
    (void)channel_run(&h->channel);
    CU_ASSERT_TRUE(channel_is_full(&h->channel));
    start(h, r);
    CU_ASSERT_TRUE(channel_run_direct(&h->channel));
    expect(r, NEAR, 6, 2);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    CU_ASSERT_FALSE(channel_is_full(&h->channel));
    hall_free(h);
}

/* A notification that matches several requests belongs to the one that was started first, whichever
 * the program tests first. */
static void the_first_started(void)
{
    static const struct {
        uint64_t peer;
        uint32_t tag;
    } patterns[] = {{NEAR, 5}, {PWC_ANY, 5}, {NEAR, PWC_ANY_TAG}, {PWC_ANY, PWC_ANY_TAG}};

    for (unsigned first = 0; first < 4; first++) {
        struct hall *h = hall_new(8);
        struct pwc_request *r[4];

        for (unsigned i = 0; i < 4; i++)
            r[i] = request(h, patterns[i].peer, patterns[i].tag, 1);
        for (unsigned i = 0; i < 4; i++)
            start(h, r[(first + i) % 4]);
        for (unsigned i = 0; i < 4; i++) {
            CU_ASSERT_EQUAL(notify(h, NEAR, 5, i), 0);
            CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
            expect(r[(first + i) % 4], NEAR, 5, i);
        }
        hall_free(h);
    }
}

/* A probe that asks for notifications reports those that no request takes. */
static void raw(void)
{
    for (uint64_t peer = FAR; peer <= NEAR; peer++) {
        struct hall *h = hall_new(8);
        struct pwc_request *r = request(h, peer, 5, 1);
        struct pwc_event event;

        CU_ASSERT_EQUAL(notify(h, peer, 6, 1), 0);
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, 0, &event), 0);
        CU_ASSERT_EQUAL(h->channel.notify.matcher.kept, 1);
        start(h, r);
        CU_ASSERT_EQUAL(notify(h, peer, 5, 2), 0);
        CU_ASSERT_EQUAL(notify(h, peer, 7, 3), 0);
        for (uint32_t tag = 6; tag <= 7; tag++) {
            CU_ASSERT_EQUAL(channel_probe(&h->channel, 3 - peer, PWC_NOTIFICATION, &event), 0);
            CU_ASSERT_EQUAL(channel_probe(&h->channel, peer, PWC_NOTIFICATION, &event), 1);
            CU_ASSERT_EQUAL(event.kind, PWC_NOTIFICATION);
            CU_ASSERT_EQUAL(event.op, PWC_OP_PUT);
            CU_ASSERT_EQUAL(event.peer, peer);
            CU_ASSERT_EQUAL(event.id, id_of(tag));
            CU_ASSERT_EQUAL(event.length, tag == 6 ? 1 : 3);
        }
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_NOTIFICATION, &event), 0);
        expect(r, peer, 5, 2);
        hall_free(h);
    }
}

/* The probe that matches a request with a local id also reports its local event. */
static void lids(void)
{
    for (uint64_t peer = FAR; peer <= NEAR; peer++) {
        struct hall *h = hall_new(8);
        struct pwc_request *r = request(h, peer, 5, 1);
        const pwc_cid lid = pwc_cid_u64(77);
        struct pwc_event event;

        CU_ASSERT_EQUAL(request_set_lid(r, &lid), 0);
        start(h, r);
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_LOCAL, &event), 0);
        CU_ASSERT_EQUAL(notify(h, peer, 5, 2), 0);
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_LOCAL, &event), 1);
        CU_ASSERT_EQUAL(event.op, PWC_OP_REQUEST);
        CU_ASSERT_EQUAL(event.id, 77);
        CU_ASSERT_EQUAL(event.peer, peer);
        CU_ASSERT_EQUAL(event.length, 2);
        hall_free(h);
    }
}

/* A cancelled request keeps the count it has, and gets no further notification. */
static void cancelled(void)
{
    struct hall *h = hall_new(8);
    struct pwc_request *r = request(h, FAR, 5, 3), *other = request(h, FAR, PWC_ANY_TAG, 1);

    start(h, r);
    start(h, other);
    CU_ASSERT_EQUAL(notify(h, FAR, 5, 1), 0);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    cancel(h, r);
    CU_ASSERT_EQUAL(r->left, 0);
    CU_ASSERT_EQUAL(r->status.status, -ECANCELED);
    CU_ASSERT_EQUAL(r->status.count, 1);
    CU_ASSERT_EQUAL(notify(h, FAR, 5, 2), 0);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    CU_ASSERT_EQUAL(r->status.count, 1);
    expect(other, FAR, 5, 2);
    hall_free(h);
}

/* Where no more unexpected notifications can be kept, the next one stays in its ring, and so do all
 * events after it. A probe for these returns -ENOBUFS; local events are still reported. A request
 * that takes a notification makes room. */
static void full(void)
{
    for (uint64_t peer = FAR; peer <= NEAR; peer++) {
        struct hall *h = hall_new(2);
        struct pwc_request *r = request(h, peer, 9, 1), *old = request(h, peer, 0, 1);
        struct pwc_event event;

        start(h, r);
        for (uint32_t i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(notify(h, peer, i, i), 0);
        CU_ASSERT_EQUAL(notify(h, peer, 9, 3), 0);
        CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
        CU_ASSERT_TRUE(channel_is_full(&h->channel));
        CU_ASSERT_EQUAL(r->left, 1);
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event), -ENOBUFS);
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_LOCAL, &event), 0);
        start(h, old);
        expect(old, peer, 0, 0);
        CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
        CU_ASSERT_FALSE(channel_is_full(&h->channel));
        expect(r, peer, 9, 3);
        for (uint32_t i = 1; i < 3; i++) {
            CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_NOTIFICATION, &event), 1);
            CU_ASSERT_EQUAL(event.length, i);
        }
        hall_free(h);
    }
}

/* Notifications that stay in the ring fill it. Once half of it is full, a call that waits for an
 * event that may stand after them returns -ENOBUFS. */
static void crowded(void)
{
    struct hall *h = hall_new(2);
    struct pwc_request *all = request(h, FAR, PWC_ANY_TAG, UINT32_MAX);
    uint32_t half = 2 + RING / 2 / event_bytes(0);
    struct pwc_event event;

    for (uint32_t i = 0; i < half; i++)
        CU_ASSERT_EQUAL(notify(h, FAR, i, i), 0);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event), -ENOBUFS);
    CU_ASSERT_EQUAL(notify(h, FAR, 1, 1), 0);
    CU_ASSERT_EQUAL(channel_run(&h->channel), -ENOBUFS);
    CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_LOCAL, &event), 0);
    start(h, all);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    CU_ASSERT_EQUAL(all->status.count, half + 1);
    hall_free(h);
}

/* A full list must not keep a sleeper awake, and a request that makes room must wake it. */
static void sleepers(void)
{
    struct hall *h = hall_new(1);
    struct pwc_request *r = request(h, NEAR, 9, 1);

    start(h, r);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    CU_ASSERT_EQUAL(channel_arm(&h->channel, DOORBELL_FUTEX, PWC_LOCAL), 0);
    channel_disarm(&h->channel);
    CU_ASSERT_EQUAL(notify(h, NEAR, 9, 1), 0);
    CU_ASSERT_EQUAL(channel_arm(&h->channel, DOORBELL_FUTEX, PWC_LOCAL), 1);
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    expect(r, NEAR, 9, 1);
    start(h, r);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(notify(h, NEAR, i, i), 0);
        CU_ASSERT_EQUAL(notify(h, FAR, i, i), 0);
    }
    CU_ASSERT_EQUAL(channel_run(&h->channel), 0);
    CU_ASSERT_TRUE(channel_is_full(&h->channel));
    CU_ASSERT_EQUAL(channel_arm(&h->channel, DOORBELL_FUTEX, PWC_LOCAL), 0);
    channel_disarm(&h->channel);
    hall_free(h);
}

static void notify_spaces(struct hall *h, uint32_t from, uint32_t to)
{
    struct pwc_event event;

    for (uint32_t space = from; space <= to; space++)
        CU_ASSERT_EQUAL(fake_session_post(&h->daemon, EVENT_NOTIFY, SUBMIT_PUT, FAR, 0, 0,
                                          pwc_notice(space, 1).value, NULL, 0),
                        0);
    CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event), 0);
}

/* Notifications of a closed window are dropped. Notifications of a window that is not made yet, and
 * of the program's own spaces, are kept. */
static void spaces(void)
{
    struct hall *h = hall_new(16);
    struct channel_space a = {.number = CHANNEL_SPACES_OWN + 5};
    struct channel_space b = {.number = CHANNEL_SPACES_OWN + 9};
    const struct matcher *m = &h->channel.notify.matcher;

    channel_space_open(&h->channel, &b);
    channel_space_open(&h->channel, &a);
    CU_ASSERT_EQUAL(h->channel.notify.highest_space, b.number);
    notify_spaces(h, CHANNEL_SPACES_OWN - 2, CHANNEL_SPACES_OWN - 1);
    CU_ASSERT_EQUAL(m->kept, 2);
    notify_spaces(h, CHANNEL_SPACES_OWN, b.number + 2); /* kept: a, b, and two later windows */
    CU_ASSERT_EQUAL(m->kept, 6);
    channel_space_close(&h->channel, &b);
    CU_ASSERT_EQUAL(m->kept, 5);
    notify_spaces(h, CHANNEL_SPACES_OWN, b.number);
    CU_ASSERT_EQUAL(m->kept, 6); /* kept: only that of a */
    hall_free(h);
}

/* ---- many -------------------------------------------------------------------------------------
 */

static uint64_t seed = 1;

static uint64_t random_below(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

enum { FLOWS = 2 * PATTERNS };

/* A flow for each peer and tag, with its request. */
struct flows {
    struct pwc_request *requests[FLOWS];
    uint64_t sent[FLOWS], seen[FLOWS];
};

static void start_idle(struct hall *h, struct flows *f, uint32_t i)
{
    if (f->requests[i]->left == 0 && f->requests[i]->reported)
        start(h, f->requests[i]);
}

/* Checks that each request that has ended has the next number of its flow. */
static void look_at_ends(struct flows *f)
{
    for (uint32_t i = 0; i < FLOWS; i++)
        if (f->requests[i]->left == 0 && !f->requests[i]->reported) {
            CU_ASSERT_EQUAL_FATAL(f->requests[i]->status.bytes, f->seen[i]++);
            f->requests[i]->reported = true;
        }
}

static bool all_seen(const struct flows *f)
{
    return memcmp(f->sent, f->seen, sizeof(f->sent)) == 0;
}

/* Each flow's request is started at times, other remote events come in between, and few unexpected
 * notifications are kept: each flow's numbers come without gaps, in order. */
static void nothing_is_lost(void)
{
    struct hall *h = hall_new(5);
    struct flows f = {0};
    uint64_t events = 0, shown = 0;
    struct pwc_event event;

    printf("seed %llu ", (unsigned long long)seed);
    for (uint32_t i = 0; i < FLOWS; i++)
        f.requests[i] = request(h, FAR + i % 2, i, 1);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t i = (uint32_t)random_below(FLOWS);
        int rc;

        if (random_below(2) && notify(h, FAR + i % 2, i, f.sent[i]) == 0)
            f.sent[i]++;
        if (random_below(8) == 0 && fake_session_post(&h->daemon, EVENT_REMOTE, SUBMIT_PUT, FAR, 0,
                                                      0, events, NULL, 0) == 0)
            events++;
        start_idle(h, &f, (uint32_t)random_below(FLOWS));
        rc = random_below(2) ? channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event)
                             : channel_run(&h->channel);
        CU_ASSERT_TRUE(rc == 0 || rc == 1 || rc == -ENOBUFS);
        if (rc == 1)
            CU_ASSERT_EQUAL_FATAL(event.id, shown++);
        look_at_ends(&f);
    }
    for (uint32_t step = 0; step < STEPS && !all_seen(&f); step++) {
        start_idle(h, &f, step % FLOWS);
        (void)channel_run(&h->channel);
        look_at_ends(&f);
    }
    CU_ASSERT_TRUE(all_seen(&f));
    CU_ASSERT_TRUE(f.seen[0] > STEPS / 100);
    hall_free(h);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"started and unexpected", started_and_unexpected},
        {"events match nothing", events_match_nothing},
        {"held, then matched", held_then_matched},
        {"the first started", the_first_started},
        {"raw", raw},
        {"local ids", lids},
        {"cancelled", cancelled},
        {"full", full},
        {"crowded", crowded},
        {"sleepers", sleepers},
        {"spaces", spaces},
        {"nothing is lost", nothing_is_lost},
        CU_TEST_INFO_NULL,
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0) | 1;
    return suite_run("notify", tests);
}
