/* The channel over a session whose daemon side is the test itself. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"

enum { RING = SESSION_RING_MIN };
static const struct session_sizes rings = {RING, RING, RING, RING, RING};

/* A session and the channel over a second mapping of it. */
struct pair {
    struct fake_session daemon;
    struct mapping mapping;
    struct channel channel;
};

static void pair_open(struct pair *p, uint32_t submit, uint32_t local, uint32_t remote)
{
    const struct session_sizes sizes = {submit, local, remote, RING, RING};

    fake_channel_open(&p->daemon, &p->mapping, &p->channel, &sizes);
}

static struct pair *pair_new(void)
{
    struct pair *p = calloc(1, sizeof(*p));

    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    pair_open(p, RING, RING, RING);
    return p;
}

static void pair_free(struct pair *p)
{
    fake_channel_close(&p->daemon, &p->mapping, &p->channel);
    free(p);
}

static struct submit_record put_record(uint64_t lid, uint32_t length)
{
    return (struct submit_record){
        .kind = SUBMIT_PUT,
        .flags = length > 0 ? SUBMIT_INLINE : 0,
        .remote = 7,
        .offset = 40,
        .length = length,
        .lid = lid,
        .rid = ~lid,
    };
}

static int submit_put(struct pair *p, uint64_t lid)
{
    struct submit_record record = put_record(lid, 0);

    return channel_submit(&p->channel, &record, NULL, NULL, NULL);
}

static int post_remote(struct pair *p, uint64_t peer, uint64_t id)
{
    return fake_session_post(&p->daemon, EVENT_REMOTE, SUBMIT_PUT, peer, 0, 0, id, NULL, 0);
}

static void test_header(void)
{
    static const struct {
        const char *what;
        size_t offset;
        uint32_t value;
    } wrong[] = {
        {"magic", offsetof(struct session_shared, magic), 1},
        {"version", offsetof(struct session_shared, version), SESSION_VERSION + 1},
        {"submit not a power of two", offsetof(struct session_shared, sizes.submit), RING + 8},
        {"submit small", offsetof(struct session_shared, sizes.submit), RING / 2},
        {"local zero", offsetof(struct session_shared, sizes.local), 0},
        {"local over the mapping", offsetof(struct session_shared, sizes.local), RING * 8},
        {"remote large", offsetof(struct session_shared, sizes.remote), SESSION_RING_MAX * 2u},
    };
    struct channel *ch = calloc(1, sizeof(*ch));
    struct fake_session *s = calloc(1, sizeof(*s));

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CU_ASSERT_EQUAL_FATAL(fake_session_open(s, &rings), 0);
        memcpy((char *)s->mapping.base + wrong[i].offset, &wrong[i].value, sizeof(uint32_t));
        CU_ASSERT_EQUAL(channel_init(ch, s->mapping.base, s->mapping.size), -EPROTO);
        fake_session_close(s);
    }
    CU_ASSERT_EQUAL_FATAL(fake_session_open(s, &rings), 0);
    CU_ASSERT_EQUAL(channel_init(ch, s->mapping.base, SESSION_DATA_OFFSET - 1), -EPROTO);
    CU_ASSERT_EQUAL(channel_init(ch, s->mapping.base, s->mapping.size - 8), -EPROTO);
    fake_session_close(s);
    free(s);
    free(ch);
}

/* The daemon reads each record as it was submitted, with ids and payloads of every length. */
static void test_submit_shapes(void)
{
    static const struct {
        uint16_t lid_len, rid_len;
        uint32_t length;
    } shapes[] = {
        {0, 0, 0}, {0, 0, 1}, {0, 0, 8},    {0, 0, 1000},   {1, 0, 9},
        {0, 1, 7}, {8, 8, 8}, {1024, 0, 3}, {0, 1024, 900}, {13, 700, 64},
    };
    struct pair *p = pair_new();
    uint8_t lid[SESSION_ID_MAX], rid[SESSION_ID_MAX], payload[1024];
    struct pwc_event event;

    for (size_t i = 0; i < sizeof(lid); i++) {
        lid[i] = (uint8_t)(i * 3 + 1);
        rid[i] = (uint8_t)(i * 5 + 2);
        payload[i] = (uint8_t)(i * 7 + 3);
    }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct submit_record record = put_record(100 + i, shapes[i].length);
        const struct submit_record *got;

        record.lid_len = shapes[i].lid_len;
        record.rid_len = shapes[i].rid_len;
        CU_ASSERT_EQUAL(channel_submit(&p->channel, &record, lid, rid, payload), 0);
        got = fake_session_read(&p->daemon);
        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        CU_ASSERT_EQUAL(got->size, channel_record_bytes(&record));
        CU_ASSERT_EQUAL(got->reserve, event_bytes(record.lid_len));
        CU_ASSERT_EQUAL(got->kind, SUBMIT_PUT);
        CU_ASSERT_EQUAL(got->flags, record.flags);
        CU_ASSERT_EQUAL(got->remote, 7);
        CU_ASSERT_EQUAL(got->offset, 40);
        CU_ASSERT_EQUAL(got->length, record.length);
        CU_ASSERT_EQUAL(got->lid, record.lid);
        CU_ASSERT_EQUAL(got->rid, record.rid);
        CU_ASSERT_EQUAL(memcmp(fake_record_lid(got), lid, got->lid_len), 0);
        CU_ASSERT_EQUAL(memcmp(fake_record_rid(got), rid, got->rid_len), 0);
        CU_ASSERT_EQUAL(memcmp(fake_record_payload(got), payload, got->length), 0);

        CU_ASSERT_FALSE(channel_idle(&p->channel));
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, got, 3, -(int)i), 0);
        CU_ASSERT_TRUE(channel_idle(&p->channel));
        CU_ASSERT_EQUAL_FATAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 1);
        CU_ASSERT_EQUAL(event.kind, PWC_LOCAL);
        CU_ASSERT_EQUAL(event.status, -(int)i);
        CU_ASSERT_EQUAL(event.peer, 3);
        CU_ASSERT_EQUAL(event.id_size, shapes[i].lid_len);
        if (event.id_size > 0)
            CU_ASSERT_EQUAL(memcmp(event.data, lid, event.id_size), 0)
        else
            CU_ASSERT_EQUAL(event.id, 100 + i);
        CU_ASSERT_EQUAL(event.length, i == 0 ? shapes[i].length : 0);
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 0);
    }
    pair_free(p);
}

static void test_submit_too_long(void)
{
    struct pair *p = pair_new();
    static uint8_t payload[RING];
    struct submit_record record = put_record(1, RING / 4 - sizeof(record));

    CU_ASSERT_EQUAL(channel_submit(&p->channel, &record, NULL, NULL, payload), 0);
    record.length++;
    CU_ASSERT_EQUAL(channel_submit(&p->channel, &record, NULL, NULL, payload), -EMSGSIZE);
    record.length = UINT64_MAX;
    CU_ASSERT_EQUAL(channel_submit(&p->channel, &record, NULL, NULL, payload), -EMSGSIZE);
    CU_ASSERT_EQUAL(p->channel.submitted, 1);
    pair_free(p);
}

/* A full submit ring refuses a submission, and accepts it once the daemon has read a record. */
static void test_submit_ring_full(void)
{
    struct pair *p = calloc(1, sizeof(*p));
    unsigned accepted = 0;
    int rc;

    pair_open(p, RING, RING * 8, RING);
    while ((rc = submit_put(p, accepted)) == 0)
        accepted++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(accepted, RING / sizeof(struct submit_record));
    for (unsigned i = 0; i < accepted; i++) {
        const struct submit_record *got = fake_session_read(&p->daemon);

        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        CU_ASSERT_EQUAL(got->lid, i);
        CU_ASSERT_EQUAL(submit_put(p, accepted + i), 0);
    }
    CU_ASSERT_EQUAL(submit_put(p, 0), -EAGAIN);
    pair_free(p);
}

/* Submits and lets the daemon read until the space for local events is used up. */
static unsigned fill_space(struct pair *p)
{
    unsigned accepted = 0;

    while (submit_put(p, accepted) == 0) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(fake_session_read(&p->daemon));
        accepted++;
    }
    return accepted;
}

static void test_local_space(void)
{
    struct pair *p = pair_new();
    struct submit_record ended = put_record(0, 0);
    unsigned room = session_local_limit(RING) / event_bytes(0);
    struct pwc_event event;

    ended.reserve = event_bytes(0);
    CU_ASSERT_EQUAL(fill_space(p), room);
    CU_ASSERT_EQUAL(submit_put(p, 0), -EAGAIN);

    /* The daemon gives space back without an event. */
    fake_session_end_silent(&p->daemon, &ended);
    CU_ASSERT_EQUAL(fill_space(p), 1);

    /* An event in the ring still occupies space; a taken one does not. */
    CU_ASSERT_EQUAL(fake_session_end(&p->daemon, &ended, 1, 0), 0);
    CU_ASSERT_EQUAL(submit_put(p, 0), -EAGAIN);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(fill_space(p), 1);
    /* The library's count of returned space stands in shared memory for the daemon to see. */
    CU_ASSERT_EQUAL(atomic_load(&p->daemon.shared->local.head), event_bytes(0));

    /* With all space reserved, every event still finds room in the ring. */
    for (unsigned i = 0; i < room; i++)
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, &ended, 1, 0), 0);
    for (unsigned i = 0; i < room; i++)
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 1);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 0);
    CU_ASSERT_TRUE(channel_idle(&p->channel));
    CU_ASSERT_EQUAL(fill_space(p), room);
    pair_free(p);
}

/* Many rounds of the rings, with ids of changing length, so that padding occurs at every place. */
static void test_around(void)
{
    enum { ROUNDS = 20000 };
    struct pair *p = pair_new();
    uint8_t id[SESSION_ID_MAX];
    uint64_t next = 0, seen = 0;
    struct pwc_event event;

    memset(id, 0x5a, sizeof(id));
    while (seen < ROUNDS) {
        struct submit_record record = put_record(next, 0);
        const struct submit_record *got;

        record.lid_len = (uint16_t)(next * 37 % (SESSION_ID_MAX + 1));
        if (next < ROUNDS && channel_submit(&p->channel, &record, id, NULL, NULL) == 0) {
            next++;
            continue;
        }
        while ((got = fake_session_read(&p->daemon)))
            CU_ASSERT_EQUAL_FATAL(fake_session_end(&p->daemon, got, 1, 0), 0);
        while (channel_probe(&p->channel, PWC_ANY, 0, &event) == 1) {
            CU_ASSERT_EQUAL_FATAL(event.id_size, seen * 37 % (SESSION_ID_MAX + 1));
            CU_ASSERT_EQUAL(event.id_size ? 0 : event.id, event.id_size ? 0 : seen);
            seen++;
        }
    }
    CU_ASSERT_TRUE(channel_idle(&p->channel));
    pair_free(p);
}

static void expect_id(struct pair *p, uint64_t peer, unsigned kinds, uint64_t id)
{
    struct pwc_event event = {0};

    CU_ASSERT_EQUAL(channel_probe(&p->channel, peer, kinds, &event), 1);
    CU_ASSERT_EQUAL(event.id, id);
}

static void expect_none(struct pair *p, uint64_t peer, unsigned kinds)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(channel_probe(&p->channel, peer, kinds, &event), 0);
}

static void test_filters_keep_order(void)
{
    struct pair *p = pair_new();

    for (uint64_t id = 0; id < 12; id++)
        CU_ASSERT_EQUAL(post_remote(p, id % 3, id), 0);
    expect_none(p, PWC_ANY, PWC_LOCAL);
    expect_none(p, 9, 0);
    expect_none(p, 9, 0);
    for (uint64_t id = 1; id < 12; id += 3)
        expect_id(p, 1, PWC_REMOTE, id);
    expect_none(p, 1, PWC_REMOTE);
    /* An event that arrives after a caller that spins has searched the kept ones is found. */
    CU_ASSERT_EQUAL(post_remote(p, 1, 100), 0);
    expect_id(p, 1, PWC_REMOTE, 100);
    expect_none(p, 0, PWC_LOCAL);
    for (uint64_t id = 0; id < 12; id++)
        if (id % 3 != 1)
            expect_id(p, PWC_ANY, 0, id);
    expect_none(p, PWC_ANY, 0);
    CU_ASSERT_EQUAL(p->channel.kept.bytes, 0);
    pair_free(p);
}

/* Submits an operation with a slot, whose end then reports `id`. */
static int submit_slot(struct pair *p, uint8_t kind, uint64_t id, bool silent)
{
    pwc_cid lid = pwc_cid_u64(id);
    struct submit_record record = {.kind = kind, .flags = SUBMIT_SLOT, .remote = 7};

    record.lid = (uint64_t)pending_begin(&p->channel.pending, &lid, silent ? SUBMIT_NO_LCE : 0,
                                         NULL, NULL, 0);
    return channel_submit(&p->channel, &record, NULL, NULL, NULL);
}

/* Different events of one kind, before and after a probe that has looked further: each is reported
 * unchanged and in order. */
static void test_one_kind(void)
{
    static const char id[] = "an id of bytes";
    struct submit_record flush = {.kind = SUBMIT_FLUSH, .lid = 42};
    struct pair *p = pair_new();
    struct pwc_event event;

    CU_ASSERT_EQUAL(post_remote(p, 1, 1), 0);
    CU_ASSERT_EQUAL(post_remote(p, 1, 2), 0);
    CU_ASSERT_EQUAL(post_remote(p, 2, 3), 0);
    CU_ASSERT_EQUAL(fake_session_post(&p->daemon, EVENT_REMOTE, SUBMIT_PUT, 1, 0, 77, 0, id,
                                      (uint16_t)sizeof(id)),
                    0);
    CU_ASSERT_EQUAL(fake_session_post(&p->daemon, EVENT_REMOTE, SUBMIT_GET, 1, 0, 0, 4, NULL, 0),
                    0);
    CU_ASSERT_EQUAL(post_remote(p, 1, 5), 0);
    expect_id(p, 1, PWC_REMOTE, 1);
    expect_id(p, 1, PWC_REMOTE, 2);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, 1, PWC_REMOTE, &event), 1); /* 3: other peer */
    CU_ASSERT_EQUAL_FATAL(event.id_size, sizeof(id));
    CU_ASSERT_EQUAL(memcmp(event.data, id, sizeof(id)), 0);
    CU_ASSERT_EQUAL(event.length, 77);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_REMOTE, &event), 1);
    CU_ASSERT(event.id == 3 && event.peer == 2 && event.kind == PWC_REMOTE && !event.data);
    expect_id(p, 1, PWC_REMOTE, 4);
    expect_id(p, 1, PWC_REMOTE, 5);
    expect_none(p, PWC_ANY, PWC_REMOTE);

    CU_ASSERT_EQUAL(submit_put(p, 6), 0);
    CU_ASSERT_EQUAL(channel_submit(&p->channel, &flush, NULL, NULL, NULL), 0);
    CU_ASSERT_EQUAL(submit_put(p, 8), 0);
    CU_ASSERT_EQUAL(submit_slot(p, SUBMIT_PUT, 1009, true), 0);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 1, -EHOSTDOWN),
                        0);
    expect_id(p, PWC_ANY, PWC_LOCAL, 6);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT(event.id == 8 && event.status == -EHOSTDOWN && event.kind == PWC_LOCAL);
    CU_ASSERT_EQUAL(p->channel.flushed, 42);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT(event.id == 1009 && event.status == -EHOSTDOWN && event.op == PWC_OP_PUT);
    expect_none(p, PWC_ANY, PWC_LOCAL);
    CU_ASSERT_TRUE(channel_idle(&p->channel));
    pair_free(p);
}

static void test_rings_take_turns(void)
{
    struct pair *p = pair_new();
    unsigned local = 0, remote = 0;
    struct pwc_event event;

    for (uint64_t id = 0; id < 10; id++) {
        CU_ASSERT_EQUAL(post_remote(p, 1, id), 0);
        CU_ASSERT_EQUAL(submit_put(p, id), 0);
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 1, 0), 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 1);
        if (event.kind == PWC_LOCAL)
            local++;
        else
            remote++;
    }
    CU_ASSERT_EQUAL(local, 5);
    CU_ASSERT_EQUAL(remote, 5);
    pair_free(p);
}

static void test_kept_quota(void)
{
    struct pair *p = pair_new();
    uint64_t kept = 0, seen = 0;
    struct pwc_event event;
    int rc = 0;

    while (rc == 0) {
        while (post_remote(p, 1, kept) == 0)
            kept++;
        rc = channel_probe(&p->channel, 2, 0, &event);
        CU_ASSERT_TRUE_FATAL(kept * event_bytes(0) < CHANNEL_KEPT_BYTES + 2 * RING);
    }
    CU_ASSERT_EQUAL(rc, -ENOBUFS);
    /* The full remote ring does not block the local one. */
    CU_ASSERT_EQUAL(submit_put(p, 77), 0);
    CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 2, 0), 0);
    expect_id(p, 2, 0, 77);
    /* No event is lost or out of order, and taking events makes room again. */
    while (channel_probe(&p->channel, 1, 0, &event) == 1) {
        CU_ASSERT_EQUAL_FATAL(event.id, seen);
        seen++;
    }
    CU_ASSERT_EQUAL(seen, kept);
    expect_none(p, 2, 0);
    pair_free(p);
}

static void test_collect(void)
{
    struct pair *p = pair_new();
    struct submit_record flush = {.kind = SUBMIT_FLUSH, .lid = 42};

    CU_ASSERT_EQUAL(submit_put(p, 1), 0);
    CU_ASSERT_EQUAL(submit_put(p, 2), 0);
    CU_ASSERT_EQUAL(channel_submit(&p->channel, &flush, NULL, NULL, NULL), 0);
    CU_ASSERT_EQUAL(submit_put(p, 3), 0);
    flush.lid = 41; /* an older flush, to another peer */
    CU_ASSERT_EQUAL(channel_submit(&p->channel, &flush, NULL, NULL, NULL), 0);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 1, 0), 0);
    CU_ASSERT_EQUAL(post_remote(p, 1, 9), 0);
    CU_ASSERT_EQUAL(channel_collect(&p->channel), 5);
    CU_ASSERT_EQUAL(channel_collect(&p->channel), 0);
    CU_ASSERT_EQUAL(p->channel.flushed, 42);
    for (uint64_t id = 1; id <= 3; id++)
        expect_id(p, PWC_ANY, PWC_LOCAL, id);
    expect_none(p, PWC_ANY, PWC_LOCAL);
    expect_id(p, PWC_ANY, PWC_REMOTE, 9);
    pair_free(p);
}

static uint64_t left_in_ring(struct pair *p)
{
    const struct ring_consumer *ring = &p->channel.remote.ring;

    (void)ring_pending(&p->channel.remote.ring);
    return ring->tail_seen - ring->head;
}

/* A call that waits moves remote events out of their ring to the kept ones once half the ring is
 * full, or while more events wait in the daemon. Where no more can be kept, the call returns
 * -ENOBUFS. */
static void test_run_keeps(void)
{
    struct pair *p = pair_new();
    uint64_t posted = 0, seen = 0;
    int rc = 0;

    while (left_in_ring(p) + event_bytes(0) <= RING / 2)
        CU_ASSERT_EQUAL_FATAL(post_remote(p, 1, posted++), 0);
    CU_ASSERT_EQUAL(channel_run(&p->channel), 0);
    CU_ASSERT_EQUAL(left_in_ring(p), posted * event_bytes(0));
    CU_ASSERT_EQUAL(post_remote(p, 1, posted++), 0);
    CU_ASSERT_EQUAL(channel_run(&p->channel), 0);
    CU_ASSERT_EQUAL(left_in_ring(p), 0);
    CU_ASSERT_EQUAL(post_remote(p, 1, posted++), 0);
    atomic_store(&p->daemon.shared->spilled, 1);
    CU_ASSERT_EQUAL(channel_run(&p->channel), 0);
    CU_ASSERT_EQUAL(left_in_ring(p), 0);
    atomic_store(&p->daemon.shared->spilled, 0);

    for (int round = 0; rc == 0 && round < 1000; round++) {
        while (post_remote(p, 1, posted) == 0)
            posted++;
        rc = channel_run(&p->channel);
    }
    CU_ASSERT_EQUAL(rc, -ENOBUFS);
    CU_ASSERT_TRUE(posted * event_bytes(0) >= CHANNEL_KEPT_BYTES);
    while (seen < posted)
        expect_id(p, 1, 0, seen++);
    expect_none(p, PWC_ANY, 0);
    CU_ASSERT_EQUAL(channel_run(&p->channel), 0);
    pair_free(p);
}

/* The end of an operation with a slot is settled once, for each kind, also where its event is kept
 * for later. */
static void test_slots(void)
{
    static const uint8_t ops[] = {SUBMIT_GET, SUBMIT_PUT, SUBMIT_PUT, SUBMIT_GET};
    struct pair *p = pair_new();
    struct pwc_event event;

    for (uint64_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(submit_slot(p, ops[i], 1000 + i, i % 2 == 0), 0);
    CU_ASSERT_EQUAL(submit_put(p, 2), 0);
    CU_ASSERT_EQUAL(p->channel.pending.busy, 4);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 1, 0), 0);
    expect_none(p, 2, 0);
    CU_ASSERT_EQUAL(p->channel.pending.busy, 0);
    for (uint64_t i = 1; i < 4; i += 2) {
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 1);
        CU_ASSERT_EQUAL(event.id, 1000 + i);
        CU_ASSERT_EQUAL(event.op, ops[i]);
    }
    expect_id(p, PWC_ANY, 0, 2);
    expect_none(p, PWC_ANY, 0);
    CU_ASSERT_EQUAL(fake_session_post(&p->daemon, EVENT_LOCAL, event_op(SUBMIT_GET, SUBMIT_SLOT), 1,
                                      0, 0, 0, NULL, 0),
                    0);
    CU_ASSERT_EQUAL(channel_collect(&p->channel), -EPROTO);
    CU_ASSERT_EQUAL(submit_put(p, 1), -EPROTO);
    pair_free(p);
}

static void test_session_ends(void)
{
    static const struct {
        uint32_t state;
        int result;
    } ends[] = {
        {SESSION_CLOSED, -ESHUTDOWN},
        {SESSION_QUARANTINED, -EPROTO},
        {0, -EPROTO},
        {77, -EPROTO},
    };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct pair *p = pair_new();
        struct pwc_event event;

        CU_ASSERT_EQUAL(post_remote(p, 1, 5), 0);
        atomic_store(&p->daemon.shared->state, ends[i].state);
        CU_ASSERT_EQUAL(submit_put(p, 1), ends[i].result);
        expect_id(p, PWC_ANY, 0, 5); /* an earlier event can still be taken */
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), ends[i].result);
        CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, 0), 1);
        /* The daemon hangs up afterwards, which hides nothing. */
        channel_end(&p->channel, -ESHUTDOWN);
        CU_ASSERT_EQUAL(channel_state(&p->channel), ends[i].result);
        pair_free(p);
    }
}

/* Guards that the first end stays: a hang-up, or a ring that makes no sense. */
static void test_first_end_stays(void)
{
    struct pair *p = pair_new();

    channel_end(&p->channel, -ESHUTDOWN);
    CU_ASSERT_EQUAL(channel_state(&p->channel), -ESHUTDOWN);
    pair_free(p);
    p = pair_new();
    CU_ASSERT_EQUAL(channel_break(&p->channel), -EPROTO);
    channel_end(&p->channel, -ESHUTDOWN);
    CU_ASSERT_EQUAL(channel_state(&p->channel), -EPROTO);
    pair_free(p);
}

/* Events that make no sense end the session, and the channel stays broken. */
static void test_bad_events(void)
{
    static const struct {
        const char *what;
        struct event_record event;
    } bad[] = {
        {"short", {.size = 40, .kind = EVENT_REMOTE}},
        {"longer than it is", {.size = 56, .kind = EVENT_REMOTE}},
        {"kind of the other ring", {.size = 48, .kind = EVENT_LOCAL}},
        {"unknown kind", {.size = 48, .kind = 9}},
        {"id over the record", {.size = 48, .kind = EVENT_REMOTE, .id_len = 1}},
        {"record over the id", {.size = 64, .kind = EVENT_REMOTE, .id_len = 8}},
        {"id too long", {.size = 1080, .kind = EVENT_REMOTE, .id_len = 1025}},
        {"notification with a long id", {.size = 56, .kind = EVENT_NOTIFY, .id_len = 8}},
    };

    for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
        struct event_record record = bad[i / 2].event;
        bool behind = i % 2; /* after a good event */
        unsigned kinds = behind ? PWC_REMOTE : 0;
        struct pair *p = pair_new();
        struct pwc_event event;
        void *room;

        record.op = SUBMIT_PUT;
        if (behind)
            CU_ASSERT_EQUAL(post_remote(p, 1, 5), 0);
        CU_ASSERT_EQUAL_FATAL(ring_reserve(&p->daemon.remote, record.size, &room), 0);
        memcpy(room, &record, 40);
        ring_advance(&p->daemon.remote, record.size);
        ring_publish(&p->daemon.remote);
        if (behind)
            expect_id(p, PWC_ANY, kinds, 5);
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, kinds, &event), -EPROTO);
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_LOCAL, &event), -EPROTO);
        CU_ASSERT_EQUAL(submit_put(p, 1), -EPROTO);
        pair_free(p);
    }
}

static void test_bad_counters(void)
{
    struct pair *p = calloc(1, sizeof(*p));

    pair_open(p, RING, RING * 8, RING);
    while (submit_put(p, 1) == 0)
        ;
    atomic_store(&p->daemon.shared->submit.head, UINT64_MAX - 7);
    CU_ASSERT_EQUAL(submit_put(p, 1), -EPROTO);
    pair_free(p);

    p = pair_new();
    CU_ASSERT_TRUE(fill_space(p) > 0);
    atomic_store(&p->daemon.shared->released, RING);
    CU_ASSERT_EQUAL(submit_put(p, 1), -EPROTO);
    CU_ASSERT_EQUAL(channel_state(&p->channel), -EPROTO);
    pair_free(p);
}

static void test_bells(void)
{
    struct pair *p = pair_new();
    struct doorbell_word *submit = &p->daemon.shared->submit_bell;
    struct doorbell_word *bell = &p->daemon.shared->event_bell;

    CU_ASSERT_EQUAL(submit_put(p, 1), 0);
    doorbell_arm(submit, DOORBELL_FD);
    CU_ASSERT_EQUAL(submit_put(p, 2), 1);
    CU_ASSERT_EQUAL(submit_put(p, 3), 0);

    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FD, 0), 0);
    CU_ASSERT_EQUAL(atomic_load(&bell->armed), DOORBELL_FD);
    channel_disarm(&p->channel);
    CU_ASSERT_EQUAL(atomic_load(&bell->armed), DOORBELL_AWAKE);
    CU_ASSERT_EQUAL(post_remote(p, 1, 1), 0);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, 0), 1);
    CU_ASSERT_EQUAL(atomic_load(&bell->armed), DOORBELL_AWAKE);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_REMOTE), 1);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_LOCAL), 0);
    pair_free(p);
}

/* Submits this many puts, and ends each. Returns for how many the session has said that the client
 * fences for itself. */
static int puts_fenced(struct pair *p, int count)
{
    int fenced = 0;

    for (int i = 0; i < count; i++) {
        struct pwc_event event;

        fenced += atomic_load(&p->daemon.shared->waits.fenced) == 1;
        CU_ASSERT_EQUAL_FATAL(submit_put(p, 1), 0);
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 1, 0), 0);
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 1);
    }
    return fenced;
}

/* Guards when a client fences for itself: for 64 puts after the start, after a put that has woken
 * the daemon, and after a sleep. The client always fences for itself where the daemon or the
 * client's kernel cannot fence for it. */
static void test_fenced(void)
{
    enum { FENCED = 64, MANY = 200 };

    for (int able = 0; able < 3; able++) {
        struct pair *p = pair_new();

        p->daemon.shared->fences = able == 2;
        if (able > 0)
            channel_set_registered(&p->channel);
        CU_ASSERT_EQUAL(puts_fenced(p, MANY), able == 2 ? FENCED : MANY);
        doorbell_arm(&p->daemon.shared->submit_bell, DOORBELL_FD);
        CU_ASSERT_EQUAL(submit_put(p, 1), 1);
        (void)fake_session_read(&p->daemon);
        CU_ASSERT_EQUAL(puts_fenced(p, FENCED - 1), FENCED - 1);
        doorbell_arm(&p->daemon.shared->submit_bell, DOORBELL_FD);
        CU_ASSERT_EQUAL(submit_put(p, 1), 1);
        (void)fake_session_read(&p->daemon);
        CU_ASSERT_EQUAL(puts_fenced(p, MANY), able == 2 ? FENCED : MANY);
        channel_begin_fenced(&p->channel);
        CU_ASSERT_EQUAL(puts_fenced(p, MANY), able == 2 ? FENCED : MANY);
        pair_free(p);
    }
}

/* Guards that an operation that has ended, but has not left its flow, keeps the channel from being
 * idle. */
static void test_idle_when_left(void)
{
    struct pair *p = pair_new();
    struct submit_record record = put_record(1, 8);
    struct session_shared *shared = p->daemon.shared;

    atomic_store(&shared->left, 1);
    CU_ASSERT_EQUAL(channel_submit(&p->channel, &record, NULL, NULL, "8 bytes"), 0);
    CU_ASSERT_EQUAL(channel_unended(&p->channel), 1);
    atomic_store(&shared->ended, 1);
    CU_ASSERT_EQUAL(channel_unended(&p->channel), 1);
    atomic_store(&shared->left, 2);
    CU_ASSERT_TRUE(channel_idle(&p->channel));
    atomic_store(&shared->left, 0); /* as a daemon before 0.7 */
    CU_ASSERT_TRUE(channel_idle(&p->channel));
    pair_free(p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a session's header is checked", test_header},
        {"submissions of every shape", test_submit_shapes},
        {"a submission too long for the ring", test_submit_too_long},
        {"a full submission ring", test_submit_ring_full},
        {"space for local events", test_local_space},
        {"round the rings", test_around},
        {"filters keep order", test_filters_keep_order},
        {"events of one kind", test_one_kind},
        {"the event rings take turns", test_rings_take_turns},
        {"the quota of kept events", test_kept_quota},
        {"collect and flush", test_collect},
        {"a caller that waits keeps remote events", test_run_keeps},
        {"slots are settled once", test_slots},
        {"the session ends", test_session_ends},
        {"the first end stays", test_first_end_stays},
        {"events that make no sense", test_bad_events},
        {"counters that make no sense", test_bad_counters},
        {"bells", test_bells},
        {"fences of its own", test_fenced},
        {"a channel is idle when its operations have left", test_idle_when_left},
        CU_TEST_INFO_NULL,
    };

    return suite_run("channel", tests);
}
