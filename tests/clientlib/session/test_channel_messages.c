/* Active messages through the channel, over a session whose daemon side is the test itself. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"
#include "proto/wire_abi.h"

enum {
    RING = 32 << 10,
    MEDIUM = 4096, /* longest payload in a block, as fake_session.c states it */
};

/* A session, the channel over a second mapping of it, and what its messages did. */
struct pair {
    struct fake_session daemon;
    struct mapping mapping;
    struct channel channel;
    unsigned delivered; /* number of messages */
    struct message last;
    uint8_t payload[MEDIUM];
    bool inside_ring;
    int result; /* result that the next delivery returns */
    int status;
    bool collect;    /* handlers collect local events, as some calls do */
    bool reply;      /* reply to each request that may be replied to, without a payload */
    unsigned follow; /* number of requests that still follow, each during the handler of another */
};

static int post_request(struct pair *p, unsigned number);

static void reply(struct pair *p, uint16_t lid_len)
{
    static const uint8_t id[SESSION_ID_MAX];
    struct message block = {.kind = SUBMIT_SHORT};
    struct submit_record record = {
        .kind = SUBMIT_SHORT,
        .rid = p->last.token,
        .rid_len = sizeof(block),
        .lid_len = lid_len,
    };
    uint8_t *at;

    CU_ASSERT_EQUAL_FATAL(channel_begin(&p->channel, &p->channel.reply_submit, &record, &at), 0);
    at = channel_append(at, id, lid_len);
    (void)channel_append(at, &block, sizeof(block));
    CU_ASSERT_EQUAL(channel_commit(&p->channel, &p->channel.reply_submit), 0);
}

static int deliver(void *context, const struct event_record *event, int32_t *status)
{
    struct pair *p = context;
    const struct message *block = (const struct message *)(event + 1);
    const uint8_t *base = p->mapping.base, *at = (const uint8_t *)event;

    p->inside_ring = at >= base && at < base + p->mapping.size && (uintptr_t)at % 8 == 0;
    p->last = *block;
    memcpy(p->payload, (const uint64_t *)(block + 1) + block->arguments, block->payload_len);
    if (p->result < 0)
        return p->result;
    p->delivered++;
    *status = p->status;
    if (p->collect)
        CU_ASSERT_TRUE(channel_collect(&p->channel) >= 0);
    if (p->reply && block->token != WIRE_NONE)
        reply(p, SESSION_ID_MAX);
    if (p->follow > 0)
        CU_ASSERT_EQUAL(post_request(p, p->follow--), 0);
    return 0;
}

static struct pair *pair_new_sized(const struct session_sizes *sizes)
{
    struct pair *p = calloc(1, sizeof(*p));

    fake_channel_open(&p->daemon, &p->mapping, &p->channel, sizes);
    channel_set_deliver(&p->channel, deliver, p);
    return p;
}

static struct pair *pair_new(void)
{
    return pair_new_sized(&(struct session_sizes){RING, RING, RING, RING, RING});
}

static void pair_free(struct pair *p)
{
    fake_channel_close(&p->daemon, &p->mapping, &p->channel);
    free(p);
}

/* Posts a Medium whose payload and index depend on `number`. */
static int post(struct pair *p, uint8_t event, uint64_t peer, unsigned number, uint32_t len,
                uint32_t token)
{
    _Alignas(8) uint8_t bytes[sizeof(struct message) + 8 + MEDIUM];
    struct message *block = (struct message *)(void *)bytes;

    *block = (struct message){
        .index = number % 256,
        .kind = SUBMIT_MEDIUM,
        .arguments = 1,
        .token = token,
        .payload_len = len,
    };
    memset(block + 1, (int)number, 8 + len);
    return fake_session_post(&p->daemon, event, SUBMIT_MEDIUM, peer, 0, 0, 0, bytes,
                             (uint16_t)(sizeof(*block) + 8 + abi_pad8(len)));
}

static int post_request(struct pair *p, unsigned number)
{
    return post(p, EVENT_REQUEST, 1, number, 8, 77);
}

static int post_event(struct pair *p, uint64_t peer, uint64_t id)
{
    return fake_session_post(&p->daemon, EVENT_REMOTE, SUBMIT_PUT, peer, 0, 0, id, NULL, 0);
}

static int probe(struct pair *p, unsigned kinds)
{
    struct pwc_event event;

    return channel_probe(&p->channel, PWC_ANY, kinds, &event);
}

static int submit(struct pair *p, uint8_t kind, uint16_t flags)
{
    static const struct message block = {.kind = SUBMIT_SHORT};
    struct submit_record record = {.kind = kind, .flags = flags, .rid_len = sizeof(block)};

    return channel_submit(&p->channel, &record, NULL, &block, NULL);
}

/* Many rounds of both rings, with payloads of changing length. */
static void test_delivery(void)
{
    static const uint8_t events[] = {EVENT_REQUEST, EVENT_REPLY};

    for (unsigned e = 0; e < 2; e++) {
        struct pair *p = pair_new();

        for (unsigned i = 0; i < 3000; i++) {
            uint32_t len = i * 37 % (MEDIUM + 1);
            struct pwc_event event;

            CU_ASSERT_EQUAL_FATAL(post(p, events[e], i, i, len, WIRE_NONE), 0);
            p->status = -(int)(i % 3);
            CU_ASSERT_EQUAL_FATAL(channel_probe(&p->channel, i, PWC_MESSAGE, &event), 1);
            CU_ASSERT_EQUAL(p->delivered, i + 1);
            CU_ASSERT_TRUE(p->inside_ring);
            CU_ASSERT_EQUAL(event.kind, PWC_MESSAGE);
            CU_ASSERT_EQUAL(event.id, i % 256);
            CU_ASSERT_EQUAL(event.id_size, 0);
            CU_ASSERT_EQUAL(event.peer, i);
            CU_ASSERT_EQUAL(event.status, -(int)(i % 3));
            CU_ASSERT_EQUAL(event.length, len);
            CU_ASSERT_EQUAL(p->last.payload_len, len);
            for (uint32_t b = 0; b < len; b += 97)
                CU_ASSERT_EQUAL(p->payload[b], (uint8_t)i);
            CU_ASSERT_EQUAL(probe(p, PWC_MESSAGE), 0);
        }
        pair_free(p);
    }
}

/* A message whose delivery fails stays in the ring, and is delivered by a later probe. */
static void test_delivery_fails(void)
{
    struct pair *p = pair_new();

    p->result = -ENOMEM;
    CU_ASSERT_EQUAL(post_request(p, 1), 0);
    CU_ASSERT_EQUAL(post_event(p, 1, 5), 0);
    CU_ASSERT_EQUAL(probe(p, 0), -ENOMEM);
    CU_ASSERT_EQUAL(probe(p, 0), -ENOMEM);
    p->result = 0;
    CU_ASSERT_EQUAL(probe(p, 0), 1);
    CU_ASSERT_EQUAL(p->delivered, 1);
    pair_free(p);
}

static void test_order_and_filters(void)
{
    struct pair *p = pair_new();
    struct pwc_event event;

    /* Events and messages by turns: a probe with any filter delivers messages, and keeps other
     * events in order. */
    for (unsigned round = 0; round < 4; round++) {
        CU_ASSERT_EQUAL(post_event(p, 1, 10 + round), 0);
        CU_ASSERT_EQUAL(post(p, EVENT_REQUEST, 2, round, 8, WIRE_NONE), 0);
    }
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_REMOTE, &event), 1);
    CU_ASSERT_EQUAL(event.id, 10);
    CU_ASSERT_EQUAL(p->delivered, 0);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_REMOTE, &event), 1);
    CU_ASSERT_EQUAL(event.id, 11);
    CU_ASSERT_EQUAL(p->delivered, 1);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, 2, PWC_MESSAGE, &event), 1);
    CU_ASSERT_EQUAL(event.id, 1);
    CU_ASSERT_EQUAL(p->delivered, 2);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, 9, PWC_MESSAGE, &event), 0);
    CU_ASSERT_EQUAL(p->delivered, 4);
    CU_ASSERT_EQUAL(probe(p, PWC_LOCAL), 0);
    for (uint64_t id = 12; id < 14; id++) {
        CU_ASSERT_EQUAL(channel_probe(&p->channel, 1, 0, &event), 1);
        CU_ASSERT_EQUAL(event.id, id);
    }
    CU_ASSERT_EQUAL(probe(p, PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE), 0);

    /* A probe for local events and a call that waits for something else deliver messages, too. */
    CU_ASSERT_EQUAL(post_event(p, 1, 20), 0);
    CU_ASSERT_EQUAL(post_request(p, 5), 0);
    CU_ASSERT_EQUAL(post_event(p, 1, 21), 0);
    CU_ASSERT_EQUAL(probe(p, PWC_LOCAL), 0);
    CU_ASSERT_EQUAL(p->delivered, 5);
    CU_ASSERT_EQUAL(post(p, EVENT_REPLY, 1, 6, 8, WIRE_NONE), 0);
    CU_ASSERT_EQUAL(post_request(p, 7), 0);
    CU_ASSERT_EQUAL(channel_run(&p->channel), 0);
    CU_ASSERT_EQUAL(p->delivered, 7);
    for (uint64_t id = 20; id < 22; id++) {
        CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, 0, &event), 1);
        CU_ASSERT_EQUAL(event.id, id);
    }
    pair_free(p);
}

/* An event that is not asked for and can no longer be kept blocks those after it, but must not keep
 * a sleeper awake. */
static void test_kept_full(void)
{
    struct pair *p = pair_new();
    struct pwc_event event;
    uint64_t posted = 0, seen = 0;

    while (p->channel.hold != HOLD_KEPT) {
        while (post_event(p, 1, posted) == 0)
            posted++;
        CU_ASSERT_EQUAL_FATAL(probe(p, PWC_LOCAL), 0);
    }
    CU_ASSERT_TRUE(posted * event_bytes(0) >= CHANNEL_KEPT_BYTES);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_LOCAL), 0);
    channel_disarm(&p->channel);
    while (channel_probe(&p->channel, PWC_ANY, PWC_REMOTE, &event) == 1) {
        CU_ASSERT_EQUAL_FATAL(event.id, seen);
        seen++;
    }
    CU_ASSERT_EQUAL(seen, posted);
    CU_ASSERT_EQUAL(post_request(p, 1), 0);
    CU_ASSERT_EQUAL(probe(p, PWC_LOCAL), 0);
    CU_ASSERT_EQUAL(p->delivered, 1);
    pair_free(p);
}

/* An endless stream of messages does not keep a call from looking at the other rings. */
static void test_stream(void)
{
    struct pair *p = pair_new();
    unsigned posted = 0;

    while (post(p, EVENT_REQUEST, 1, posted, 8, WIRE_NONE) == 0)
        posted++;
    CU_ASSERT_EQUAL(probe(p, 0), 0);
    CU_ASSERT_TRUE(p->delivered > 0 && p->delivered < posted);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_LOCAL), 1);
    while (p->delivered < posted)
        CU_ASSERT_EQUAL_FATAL(probe(p, PWC_LOCAL), 0);
    pair_free(p);
}

static unsigned submit_all(struct pair *p)
{
    unsigned accepted = 0;

    while (submit(p, SUBMIT_SHORT, PWC_NO_LCE) == 0) {
        const struct submit_record *got = fake_session_read(&p->daemon);

        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        fake_session_end_silent(&p->daemon, got);
        accepted++;
    }
    return accepted;
}

static void test_reply_space(void)
{
    struct pair *p = pair_new();
    uint32_t each = event_bytes(message_bytes_max(MEDIUM));
    unsigned room = session_reply_limit(RING, message_bytes_max(MEDIUM)) / each;

    CU_ASSERT_EQUAL(submit_all(p), room);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, 0), -EAGAIN);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_MEDIUM, 0), -EAGAIN);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_LONG, 0), -EAGAIN);
    /* Other operations reserve no space for a reply. */
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY), 0);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_PUT, 0), 0);
    fake_session_end_silent(&p->daemon, fake_session_read(&p->daemon));
    fake_session_end_silent(&p->daemon, fake_session_read(&p->daemon));

    /* Given back without an event. */
    fake_session_release_reply(&p->daemon);
    CU_ASSERT_EQUAL(submit_all(p), 1);
    /* A reply in the ring still occupies its space; a handled one has given back all of it, however
     * short it was. */
    CU_ASSERT_EQUAL(post(p, EVENT_REPLY, 1, 1, 8, WIRE_NONE), 0);
    CU_ASSERT_EQUAL(submit_all(p), 0);
    CU_ASSERT_EQUAL(probe(p, PWC_LOCAL), 0);
    CU_ASSERT_EQUAL(p->delivered, 1);
    CU_ASSERT_EQUAL(submit_all(p), 1);
    CU_ASSERT_EQUAL(atomic_load(&p->daemon.shared->reply_event.head),
                    atomic_load(&p->daemon.shared->reply_event.tail));
    /* With all space reserved, replies of the longest kind still find room. */
    for (unsigned i = 0; i < room; i++)
        CU_ASSERT_EQUAL(post(p, EVENT_REPLY, 1, i, MEDIUM, WIRE_NONE), 0);
    CU_ASSERT_EQUAL(probe(p, 0), 0);
    CU_ASSERT_EQUAL(p->delivered, 1 + room);
    CU_ASSERT_EQUAL(submit_all(p), room);
    /* A count of more returned space than was ever reserved ends the session. */
    atomic_store(&p->daemon.shared->reply_released, 1u << 30);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, 0), -EPROTO);
    pair_free(p);

    /* Where the ring has no room for any reply, a request is refused. */
    p = pair_new_sized(&(struct session_sizes){RING, RING, RING, RING, RING / 2});
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, 0), -EAGAIN);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY), 0);
    pair_free(p);
}

static void test_reply_ring_full(void)
{
    struct pair *p = pair_new();
    const struct submit_record *got;
    unsigned posted = 0;

    p->reply = true;
    while (p->channel.hold != HOLD_REPLY) {
        CU_ASSERT_EQUAL_FATAL(post_request(p, posted), 0);
        posted++;
        CU_ASSERT_EQUAL_FATAL(probe(p, 0), 0);
        CU_ASSERT_TRUE_FATAL(posted < 1000);
    }
    CU_ASSERT_TRUE(channel_holds_request(&p->channel));
    CU_ASSERT_EQUAL(p->delivered, posted - 1);
    CU_ASSERT_EQUAL(post_event(p, 1, 5), 0); /* waits after the request */
    CU_ASSERT_EQUAL(probe(p, 0), 0);
    /* Replies and local events do not wait. */
    CU_ASSERT_EQUAL(post(p, EVENT_REPLY, 1, 1, 8, WIRE_NONE), 0);
    CU_ASSERT_EQUAL(probe(p, 0), 0);
    CU_ASSERT_EQUAL(p->delivered, posted);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, 0), 0);
    channel_disarm(&p->channel);

    while ((got = fake_session_read_answer(&p->daemon))) {
        CU_ASSERT_EQUAL(got->rid, 77);
        CU_ASSERT_EQUAL_FATAL(fake_session_end(&p->daemon, got, 1, 0), 0);
    }
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_REMOTE), 1);
    CU_ASSERT_EQUAL(probe(p, PWC_REMOTE), 1);
    CU_ASSERT_EQUAL(p->delivered, posted + 1);
    pair_free(p);
}

/* Requests under way leave space for the local events of replies, and local events that were not
 * taken do not stop replies. */
static void test_local_space_for_replies(void)
{
    struct pair *p =
        pair_new_sized(&(struct session_sizes){RING, SESSION_RING_MIN, RING, RING, RING});
    unsigned limit = session_local_limit(SESSION_RING_MIN), held = 0;
    struct submit_record silent = {.reserve = event_bytes(0)};
    const struct submit_record *got;

    p->reply = true;
    while (submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY) == 0) {
        CU_ASSERT_PTR_NOT_NULL(fake_session_read(&p->daemon));
        held++;
    }
    CU_ASSERT_EQUAL(held, (limit - EVENT_BYTES_MAX) / event_bytes(0));

    /* There is room for one reply's event: the library keeps that event elsewhere when the next
     * reply needs the room. */
    for (unsigned i = 0; i < 100; i++) {
        CU_ASSERT_EQUAL_FATAL(post_request(p, i), 0);
        CU_ASSERT_EQUAL_FATAL(post_request(p, i), 0);
        CU_ASSERT_EQUAL_FATAL(probe(p, PWC_REMOTE), 0);
        CU_ASSERT_EQUAL_FATAL(p->delivered, 2 * i + 1);
        CU_ASSERT_TRUE(channel_holds_request(&p->channel));
        CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_REMOTE), 0);
        channel_disarm(&p->channel);
        got = fake_session_read_answer(&p->daemon);
        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, got, 1, 0), 0);
        CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_REMOTE), 1);
        CU_ASSERT_EQUAL_FATAL(probe(p, PWC_REMOTE), 0);
        CU_ASSERT_EQUAL_FATAL(p->delivered, 2 * i + 2);
        got = fake_session_read_answer(&p->daemon);
        CU_ASSERT_EQUAL_FATAL(fake_session_end(&p->daemon, got, 1, 0), 0);
    }
    CU_ASSERT_TRUE(p->channel.kept.bytes > 100 * EVENT_BYTES_MAX);
    /* Room that the daemon gives back serves replies, too. */
    for (unsigned i = 0; i < held; i++)
        fake_session_end_silent(&p->daemon, &silent);
    CU_ASSERT_EQUAL(post_request(p, 1), 0);
    CU_ASSERT_EQUAL(probe(p, PWC_REMOTE), 0);
    CU_ASSERT_EQUAL(p->delivered, 201);
    pair_free(p);
}

/* Local events that a client does not take are kept. When they fill their memory, handlers are not
 * run until the client takes some, because there is no room for the events of replies. */
static void test_untaken_local_events(void)
{
    struct pair *p = pair_new();
    struct pwc_event event;
    unsigned posted = 0;

    p->reply = true;
    while (!channel_holds_request(&p->channel)) {
        const struct submit_record *got;

        CU_ASSERT_EQUAL_FATAL(post_request(p, posted), 0);
        posted++;
        CU_ASSERT_EQUAL_FATAL(probe(p, PWC_REMOTE), 0);
        while ((got = fake_session_read_answer(&p->daemon)))
            CU_ASSERT_EQUAL_FATAL(fake_session_end(&p->daemon, got, 1, 0), 0);
        CU_ASSERT_TRUE_FATAL(posted < 10000);
    }
    CU_ASSERT_TRUE(posted * EVENT_BYTES_MAX > CHANNEL_KEPT_BYTES);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, PWC_REMOTE), 0);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(channel_probe(&p->channel, PWC_ANY, PWC_REMOTE, &event), 0);
    CU_ASSERT_EQUAL(p->delivered, posted);
    pair_free(p);
}

/* Guards that a probe shows a local event that a handler has collected during the probe, whether
 * the probe looks into the local ring before or after the handler runs. */
static void test_handler_collects(void)
{
    enum { ROUNDS = 6 };
    struct pair *p = pair_new();

    p->collect = true;
    for (unsigned i = 0; i < ROUNDS; i++) {
        CU_ASSERT_EQUAL_FATAL(submit(p, SUBMIT_PUT, 0), 0);
        CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read(&p->daemon), 1, 0), 0);
        CU_ASSERT_EQUAL(post_request(p, i), 0);
        CU_ASSERT_EQUAL(probe(p, PWC_LOCAL | PWC_REMOTE), 1);
    }
    CU_ASSERT_EQUAL(probe(p, PWC_LOCAL | PWC_REMOTE), 0);
    CU_ASSERT_EQUAL(p->delivered, ROUNDS);
    pair_free(p);
}

/* Guards that the look for a peer's end ends, although peers send without a pause. */
static void test_end_in_a_flood(void)
{
    struct pair *p = pair_new();

    p->follow = 1000;
    CU_ASSERT_EQUAL(post_request(p, 0), 0);
    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, 1));
    CU_ASSERT_TRUE(p->delivered > 0);
    CU_ASSERT_TRUE(p->follow > 0);
    pair_free(p);
}

static void test_two_steps(void)
{
    struct pair *p = pair_new();
    struct channel *ch = &p->channel;
    struct submit_record record = {
        .kind = SUBMIT_MEDIUM,
        .rid_len = sizeof(struct message) + 1000,
        .lid_len = 5,
    };
    const struct submit_record *got;
    uint8_t *at;

    CU_ASSERT_EQUAL_FATAL(channel_begin(ch, &ch->submit, &record, &at), 0);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_PUT, 0), -EBUSY);
    CU_ASSERT_EQUAL(channel_begin(ch, &ch->submit, &record, &at), -EBUSY);
    CU_ASSERT_PTR_NULL(fake_session_read(&p->daemon));
    CU_ASSERT_TRUE(channel_idle(ch));
    channel_cancel(ch, &ch->submit);
    CU_ASSERT_EQUAL(ch->local.reserved, 0);
    CU_ASSERT_EQUAL(ch->reply_event.reserved, 0);

    CU_ASSERT_EQUAL_FATAL(channel_begin(ch, &ch->submit, &record, &at), 0);
    memset(at, 3, 8);
    memset(at + 8, 4, 48);
    ch->submit.open->rid_len = 48;
    ch->submit.open->size = (uint32_t)channel_record_bytes(ch->submit.open);
    CU_ASSERT_EQUAL(channel_commit(ch, &ch->submit), 0);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_PUT, 0), 0);
    got = fake_session_read(&p->daemon);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_EQUAL(got->size, sizeof(*got) + 8 + 48);
    CU_ASSERT_EQUAL(got->reserve, event_bytes(5));
    CU_ASSERT_EQUAL(((const uint8_t *)fake_record_rid(got))[47], 4);
    got = fake_session_read(&p->daemon);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_EQUAL(got->kind, SUBMIT_PUT);
    CU_ASSERT_EQUAL(ch->submitted, 2);
    CU_ASSERT_EQUAL(ch->local.reserved, event_bytes(5) + event_bytes(0));
    pair_free(p);
}

/* Messages that make no sense end the session, and the channel stays broken. */
static void test_bad_messages(void)
{
    static const struct {
        const char *what;
        uint8_t event;
        uint16_t id_len;
        struct message block;
    } bad[] = {
        {"no block", EVENT_REQUEST, 8, {.kind = SUBMIT_SHORT}},
        {"half a block", EVENT_REQUEST, 24, {.kind = SUBMIT_SHORT}},
        {"kind too low", EVENT_REQUEST, 32, {.kind = SUBMIT_PUT}},
        {"kind too high", EVENT_REQUEST, 32, {.kind = SUBMIT_LONG + 1}},
        {"index", EVENT_REQUEST, 32, {.kind = SUBMIT_SHORT, .index = 256}},
        {"many arguments", EVENT_REQUEST, 168, {.kind = SUBMIT_SHORT, .arguments = 17}},
        {"arguments over the end", EVENT_REQUEST, 40, {.kind = SUBMIT_SHORT, .arguments = 2}},
        {"payload without its padding",
         EVENT_REQUEST,
         39,
         {.kind = SUBMIT_MEDIUM, .payload_len = 7}},
        {"bytes left over", EVENT_REQUEST, 48, {.kind = SUBMIT_SHORT, .arguments = 1}},
        {"payload of a Short", EVENT_REQUEST, 40, {.kind = SUBMIT_SHORT, .payload_len = 8}},
        {"payload of a Long", EVENT_REQUEST, 40, {.kind = SUBMIT_LONG, .payload_len = 8}},
        {"payload over the end", EVENT_REQUEST, 40, {.kind = SUBMIT_MEDIUM, .payload_len = 9}},
        {"endless payload",
         EVENT_REQUEST,
         40,
         {.kind = SUBMIT_MEDIUM, .arguments = 1, .payload_len = UINT32_MAX}},
        {"too long", EVENT_REQUEST, 4272, {.kind = SUBMIT_MEDIUM, .payload_len = 4240}},
        {"a reply too long", EVENT_REPLY, 4272, {.kind = SUBMIT_MEDIUM, .payload_len = 4240}},
        {"a reply's kind", EVENT_REPLY, 32, {.kind = SUBMIT_FLUSH}},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pair *p = pair_new();
        uint8_t bytes[8192] = {0};

        memcpy(bytes, &bad[i].block, sizeof(bad[i].block));
        CU_ASSERT_EQUAL_FATAL(fake_session_post(&p->daemon, bad[i].event, SUBMIT_SHORT, 1, 0, 0, 0,
                                                bytes, bad[i].id_len),
                              0);
        CU_ASSERT_EQUAL(probe(p, 0), -EPROTO);
        CU_ASSERT_EQUAL(probe(p, PWC_MESSAGE), -EPROTO);
        CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, 0), -EPROTO);
        CU_ASSERT_EQUAL(p->delivered, 0);
        pair_free(p);
    }
}

/* Messages in a wrong ring, of a wrong size, or in a context without handlers. */
static void test_misplaced_messages(void)
{
    static const struct {
        uint8_t kind;
        int ring; /* 0 local, 1 remote, 2 reply */
        uint32_t size;
    } rows[] = {
        {EVENT_REQUEST, 0, 80}, {EVENT_REPLY, 0, 80},   {EVENT_REPLY, 1, 80},
        {EVENT_REQUEST, 2, 80}, {EVENT_LOCAL, 2, 80},   {EVENT_REMOTE, 2, 80},
        {EVENT_REQUEST, 1, 88}, {EVENT_REQUEST, 1, 72}, {EVENT_REQUEST, 1, 8},
        {EVENT_REPLY, 2, 88},   {EVENT_REPLY, 2, 16},   {EVENT_REMOTE, 2, 4096},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair *p = pair_new();
        struct ring_producer *ring = rows[i].ring == 0   ? &p->daemon.local
                                     : rows[i].ring == 1 ? &p->daemon.remote
                                                         : &p->daemon.reply_event;
        uint8_t bytes[80] = {0};
        struct event_record *event = (struct event_record *)(void *)bytes;
        struct message *block = (struct message *)(event + 1);
        void *room;

        event->size = rows[i].size;
        event->kind = rows[i].kind;
        event->id_len = sizeof(*block);
        block->kind = SUBMIT_SHORT;
        CU_ASSERT_EQUAL_FATAL(ring_reserve(ring, rows[i].size, &room), 0);
        memcpy(room, bytes, rows[i].size < sizeof(bytes) ? rows[i].size : sizeof(bytes));
        ring_advance(ring, rows[i].size);
        ring_publish(ring);
        CU_ASSERT_EQUAL(probe(p, 0), -EPROTO);
        CU_ASSERT_EQUAL(p->delivered, 0);
        pair_free(p);
    }

    struct pair *p = pair_new();

    p->channel.deliver = NULL;
    CU_ASSERT_EQUAL(post_request(p, 1), 0);
    CU_ASSERT_EQUAL(probe(p, 0), -EPROTO);
    pair_free(p);
}

/* The daemon's count of returned room is impossible. The library checks the count when a reply
 * needs the room. */
static void test_impossible_room(void)
{
    enum { ANSWER_HEAD, RELEASED, ROWS };

    for (int row = 0; row < ROWS; row++) {
        struct pair *p =
            pair_new_sized(&(struct session_sizes){RING, SESSION_RING_MIN, RING, RING, RING});
        struct session_shared *shared = p->daemon.shared;

        p->reply = true;
        if (row == ANSWER_HEAD)
            p->channel.local.limit = UINT32_MAX;
        while (!channel_holds_request(&p->channel)) {
            CU_ASSERT_EQUAL_FATAL(post_request(p, 1), 0);
            CU_ASSERT_EQUAL_FATAL(probe(p, 0), 0);
        }
        if (row == ANSWER_HEAD)
            atomic_store(&shared->reply_submit.head, atomic_load(&shared->reply_submit.tail) + 8);
        else
            atomic_store(&shared->released, UINT64_MAX);
        CU_ASSERT_EQUAL(probe(p, 0), -EPROTO);
        CU_ASSERT_EQUAL(probe(p, 0), -EPROTO);
        pair_free(p);
    }
}

/* A count of returned room that falls ends the session. */
static void test_room_taken_back(void)
{
    struct pair *p =
        pair_new_sized(&(struct session_sizes){RING, SESSION_RING_MIN, RING, RING, RING});
    struct submit_record silent = {.reserve = event_bytes(0)};

    while (submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY) == 0)
        CU_ASSERT_PTR_NOT_NULL_FATAL(fake_session_read(&p->daemon));
    fake_session_end_silent(&p->daemon, &silent);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY), 0);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY), -EAGAIN);
    atomic_fetch_sub(&p->daemon.shared->released, 8);
    CU_ASSERT_EQUAL(submit(p, SUBMIT_SHORT, SUBMIT_NO_REPLY), -EPROTO);
    pair_free(p);
}

static void test_bells(void)
{
    struct pair *p = pair_new();
    struct channel *ch = &p->channel;

    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FUTEX, PWC_LOCAL), 0);
    channel_disarm(ch);
    CU_ASSERT_EQUAL(post_request(p, 1), 0);
    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FUTEX, PWC_LOCAL), 1);
    CU_ASSERT_EQUAL(probe(p, 0), 0);
    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FUTEX, PWC_LOCAL), 0);
    channel_disarm(ch);
    CU_ASSERT_EQUAL(post(p, EVENT_REPLY, 1, 1, 8, WIRE_NONE), 0);
    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FUTEX, PWC_LOCAL), 1);
    CU_ASSERT_EQUAL(probe(p, 0), 0);

    /* A reply rings the bell of a daemon that sleeps. */
    doorbell_arm(&p->daemon.shared->submit_bell, DOORBELL_FD);
    struct submit_record record = {.kind = SUBMIT_SHORT};
    uint8_t *at;

    CU_ASSERT_EQUAL(channel_begin(ch, &ch->reply_submit, &record, &at), 0);
    CU_ASSERT_EQUAL(channel_commit(ch, &ch->reply_submit), CHANNEL_WAKES);
    CU_ASSERT_FALSE(channel_idle(ch));
    CU_ASSERT_EQUAL(fake_session_end(&p->daemon, fake_session_read_answer(&p->daemon), 1, 0), 0);
    CU_ASSERT_TRUE(channel_idle(ch));
    pair_free(p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"messages where they stand", test_delivery},
        {"a delivery that fails", test_delivery_fails},
        {"order, and filters", test_order_and_filters},
        {"no more can be kept", test_kept_full},
        {"a stream of messages", test_stream},
        {"space for replies", test_reply_space},
        {"a full ring of replies", test_reply_ring_full},
        {"local event space for replies", test_local_space_for_replies},
        {"local events that nobody takes", test_untaken_local_events},
        {"a handler that collects events", test_handler_collects},
        {"the end of a peer in a flood of messages", test_end_in_a_flood},
        {"submission in two steps", test_two_steps},
        {"messages that make no sense", test_bad_messages},
        {"messages where none may be", test_misplaced_messages},
        {"impossible room", test_impossible_room},
        {"room taken back", test_room_taken_back},
        {"bells", test_bells},
        CU_TEST_INFO_NULL,
    };

    return suite_run("channel_messages", tests);
}
