/*
 * Things that a peer can leave an engine to keep: rings that the peer declines, nonces that it
 * gives back, binds whose answers it never acknowledges. One thread.
 */
#include <errno.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

enum { MORE_THAN_THE_MEMORY = 100 }; /* so many rings do not fit into the memory for ledgers */

static void send_plain(struct bench *b, uint8_t kind)
{
    const struct wire_record record = {.words = sizeof(record) / 8, .kind = kind};

    bench_send(b, &record, sizeof(record));
}

static bool has_sent(struct bench *b, uint8_t kind)
{
    bool sent = b->fabric.kinds & UINT64_C(1) << kind;

    b->fabric.kinds = 0;
    return sent;
}

/* Guards that a larger ring for whose mirror the sender has no memory is freed, and is offered
 * again later. */
static void declined_ring_is_freed(void)
{
    struct bench *b = linked_bench();

    send_plain(b, WIRE_WANT);
    bench_steps(b, 4);
    CU_ASSERT_TRUE(has_sent(b, WIRE_OFFER));
    CU_ASSERT_TRUE(peek_peer(b->engine, 1).ring_offered);
    send_plain(b, WIRE_DECLINE);
    bench_steps(b, 4);
    CU_ASSERT_FALSE(peek_peer(b->engine, 1).ring_offered);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).drops, 0);
    send_plain(b, WIRE_WANT);
    bench_steps(b, 4);
    CU_ASSERT_FALSE(has_sent(b, WIRE_OFFER));
    b->now += 200000000;
    send_plain(b, WIRE_WANT);
    bench_steps(b, 4);
    CU_ASSERT_TRUE(has_sent(b, WIRE_OFFER));
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Makes the fabric fail to register memory: it refuses the call at once, or reports an error later.
 */
static void refuse_memory(struct bench *b, bool at_once)
{
    b->fabric.add_refused = at_once ? -ENOSPC : 0;
    b->fabric.add_status = at_once ? 0 : -ENOSPC;
}

/* Guards that the memory of a larger ring that the fabric does not register is free again, however
 * often the peer asks for a larger one; the link continues with the ring that it has. */
static void unregistered_ring_is_freed(void)
{
    for (int at_once = 0; at_once < 2; at_once++) {
        struct bench *b = linked_bench();

        refuse_memory(b, at_once);
        for (int i = 0; i < MORE_THAN_THE_MEMORY; i++) {
            send_plain(b, WIRE_WANT);
            bench_steps(b, 4);
            CU_ASSERT_FALSE(has_sent(b, WIRE_OFFER));
            bench_ack(b);
        }
        b->fabric.add_refused = b->fabric.add_status = 0;
        send_plain(b, WIRE_WANT);
        bench_steps(b, 4);
        CU_ASSERT_TRUE(has_sent(b, WIRE_OFFER));
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Guards that a link whose first ring the fabric does not register is tried again, and costs no
 * memory. */
static void first_ring_is_freed(void)
{
    static const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096};

    for (int at_once = 0; at_once < 2; at_once++) {
        struct bench *b = bench_new(&shape);
        struct engine_offer offer;

        CU_ASSERT_PTR_NOT_NULL_FATAL(b);
        bench_steps(b, 4);
        refuse_memory(b, at_once);
        for (int i = 0; i < MORE_THAN_THE_MEMORY; i++) {
            b->broken = false;
            CU_ASSERT_EQUAL(engine_offer(b->engine, 1, &offer), at_once ? -ENOSPC : -EAGAIN);
            bench_steps(b, 2);
            CU_ASSERT_EQUAL(b->broken, !at_once);
        }
        b->fabric.add_refused = b->fabric.add_status = 0;
        CU_ASSERT_EQUAL(bench_link(b), 0);
        bench_bind(b, 5);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Guards that the lack of a ring is reported where the link was asked for while the last one
 * drained, and that a later try succeeds. */
static void lack_behind_a_drained_link_is_reported(void)
{
    struct bench *b = linked_bench();
    struct engine_offer offer;

    engine_peer_down(b->engine, 1);
    CU_ASSERT_EQUAL(engine_offer(b->engine, 1, &offer), -EAGAIN);
    refuse_memory(b, true);
    bench_steps(b, 4);
    CU_ASSERT_TRUE(b->broken);
    b->broken = false;
    bench_steps(b, 4);
    CU_ASSERT_FALSE(b->broken);
    b->fabric.add_refused = 0;
    CU_ASSERT_EQUAL(engine_offer(b->engine, 1, &offer), -EAGAIN);
    bench_steps(b, 4);
    CU_ASSERT_EQUAL(engine_offer(b->engine, 1, &offer), 0);
    bench_free(b);
}

/* Guards that a caller of engine_offer that has got the error gets no notice of it, when the peer
 * has its next step: that would end a later handshake. */
static void lack_is_reported_once(void)
{
    struct bench *b = linked_bench();
    struct engine_offer offer;

    bench_remote(b);
    engine_peer_down(b->engine, 1);
    bench_steps(b, 4);
    b->broken = false;
    refuse_memory(b, true);
    CU_ASSERT_EQUAL(engine_offer(b->engine, 1, &offer), -ENOSPC);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 1, 1, NULL, 1), 0); /* the peer has a step */
    bench_steps(b, 4);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards memory that the fabric cannot let go of: a peer, or the card, may still write to it, so it
 * is used for nothing else until the fabric has let go. The fabric is asked again after a while,
 * and not before, whatever else ends meanwhile. */
static void memory_not_dropped_stays(void)
{
    struct bench *b = linked_bench();
    static _Alignas(4096) uint8_t more[4096];
    int segment = engine_segment_open(b->engine, 0, more, sizeof(more));
    uint64_t begun = b->now;

    bench_steps(b, 4);
    b->fabric.drop_status = -EBUSY;
    send_plain(b, WIRE_WANT);
    bench_steps(b, 4);
    send_plain(b, WIRE_DECLINE);
    bench_steps(b, 4);
    CU_ASSERT_EQUAL(engine_segment_close(b->engine, 0, (uint32_t)segment), 0);
    bench_steps(b, 8);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).rings_leaving, 1);
    CU_ASSERT_EQUAL(peek_segment(b->engine, (uint32_t)segment), SEGMENT_CLOSING);
    /* The link ends anyway. */
    engine_peer_down(b->engine, 1);
    bench_steps(b, 4);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).link, LINK_NONE);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).rings_leaving, 2);
    CU_ASSERT_EQUAL(b->fabric.drops, 3);
    for (int i = 0; i < 8; i++) {
        poke_sweep(b->engine);
        bench_steps(b, 1);
    }
    CU_ASSERT_EQUAL(b->fabric.drops, 3);
    CU_ASSERT(b->now < begun + DROP_RETRY_NS);
    /* All three drops are asked for again at once, though not all of them were refused so long ago;
     * and again when that was in vain. */
    for (uint32_t times = 2; times < 4; times++) {
        b->now += DROP_RETRY_NS;
        bench_steps(b, 8);
        CU_ASSERT_EQUAL(b->fabric.drops, 3 * times);
    }
    b->fabric.drop_status = 0;
    b->now += DROP_RETRY_NS;
    bench_steps(b, 8);
    CU_ASSERT_EQUAL(b->fabric.drops, 12);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).rings_leaving, 0);
    CU_ASSERT_EQUAL(peek_segment(b->engine, (uint32_t)segment), SEGMENT_FREE);
    bench_free(b);
}

static void dead_fabric_is_reported(void)
{
    struct bench *b = linked_bench();
    struct engine_notice notice = {0};
    uint64_t deadline;
    uint32_t reports = 0;

    b->fabric.poll_status = -EIO;
    for (int i = 0; i < 3; i++)
        engine_step(b->engine, b->now, 16, &deadline);
    while (engine_notice(b->engine, &notice) == 1)
        reports += notice.kind == ENGINE_FABRIC_FAILED && notice.status == -EIO;
    CU_ASSERT_EQUAL(reports, 1);
    bench_free(b);
}

/* Guards that the engine asks anew for a link that it wants, where the handshake has died: before
 * the earlier link has drained, or because no ring can be registered. */
static void handshake_dies(void)
{
    static const struct {
        bool drained;
        int refused, status, offered;
    } rows[] = {{false, 0, 0, -EAGAIN}, {true, -ENOMEM, 0, -ENOMEM}, {true, 0, -ENOMEM, -EAGAIN}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct engine_offer offer;

        engine_peer_down(b->engine, 1);
        if (rows[i].drained)
            bench_steps(b, 4);
        b->wanted = 0;
        b->fabric.add_refused = rows[i].refused;
        b->fabric.add_status = rows[i].status;
        CU_ASSERT_EQUAL(engine_offer(b->engine, 1, &offer), rows[i].offered);
        if (rows[i].drained)
            bench_steps(b, 4);
        CU_ASSERT_EQUAL(b->wanted, 0);
        engine_peer_down(b->engine, 1);
        bench_steps(b, 4);
        CU_ASSERT_EQUAL(peek_peer(b->engine, 1).link, LINK_NONE);
        CU_ASSERT_EQUAL(b->wanted, 1);
        bench_free(b);
    }
}

static void ledgers_not_registered_are_reported(void)
{
    struct bench *b = linked_bench();
    struct engine_notice notice = {0};
    uint64_t deadline;

    still_push(&b->fabric, &(struct fabric_event){.kind = FABRIC_ADDED,
                                                  .cookie = cookie_of(COOKIE_HEAP, 0),
                                                  .status = -ENOMEM});
    engine_step(b->engine, b->now, 16, &deadline);
    CU_ASSERT_EQUAL_FATAL(engine_notice(b->engine, &notice), 1);
    CU_ASSERT_EQUAL(notice.kind, ENGINE_LEDGERS_FAILED);
    CU_ASSERT_EQUAL(notice.status, -ENOMEM);
    bench_free(b);
}

/* Guards that a client which has hung up is freed although its ring still has a senseless wake. */
static void last_words_end(void)
{
    struct bench *b = linked_bench();
    const struct submit_record record = {.size = sizeof(record),
                                         .kind = SUBMIT_WAKE,
                                         .remote = SUBMIT_NO_REMOTE,
                                         .flags = SUBMIT_FENCE};

    memcpy(b->submit, &record, sizeof(record));
    atomic_store(&b->session->submit.tail, sizeof(record));
    engine_client_close(b->engine, 0);
    bench_steps(b, 8);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).state, SESSION_FREE);
    bench_free(b);
}

static void what_was_not_offered_is_not_declined(void)
{
    struct bench *b = linked_bench();

    send_plain(b, WIRE_DECLINE);
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

/* Guards that an engine declines a ring that is larger than all the memory it has. */
static void too_large_is_declined(void)
{
    struct bench *b = linked_bench();
    struct wire_offer offer = {.head = {.words = sizeof(offer) / 8, .kind = WIRE_OFFER},
                               .bytes = 131072};

    for (int i = 0; i < 2; i++) {
        bench_send(b, &offer, sizeof(offer));
        bench_steps(b, 4);
        CU_ASSERT_TRUE(has_sent(b, WIRE_DECLINE));
        CU_ASSERT_FALSE(b->broken);
    }
    bench_free(b);
}

/* Guards that a nonce that is given back is free when its payload has been placed, and not before,
 * and that a VOID without a valid nonce breaks the link. */
static void nonces_are_given_back(void)
{
    struct wire_void record = {
        .head = {.words = sizeof(record) / 8, .kind = WIRE_VOID, .flags = WIRE_NONCE},
        .nonce = 7,
        .pieces = 1};
    struct bench *b = linked_bench();
    uint64_t consumed = peek_peer(b->engine, 1).consumed;

    bench_send(b, &record, sizeof(record));
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).consumed, consumed);
    still_push(&b->fabric, &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                                  .immediate = wire_immediate(WIRE_PAYLOAD, 1, 7)});
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).consumed, consumed + sizeof(record));
    CU_ASSERT_EQUAL(peek_payloads(b->engine, 1, 7), 0);
    CU_ASSERT_FALSE(b->broken);
    record.nonce = NONCE_WINDOW;
    bench_send(b, &record, sizeof(record));
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
    b = linked_bench();
    record.head.flags = 0;
    record.nonce = 7;
    bench_send(b, &record, sizeof(record));
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

static void send_revoke(struct bench *b)
{
    const struct wire_region revoke = {.head = {.words = sizeof(revoke) / 8, .kind = WIRE_REVOKE}};

    bench_send(b, &revoke, sizeof(revoke));
}

/* Sends a BIND or a REVOKE; if the ring has no room for it and an ACK, begins the link again, after
 * the test has consumed all that was sent to it, or nothing. */
static void ask_again(struct bench *b, bool revoke, bool consumed)
{
    if (b->position + 512 > b->offer.ring_bytes) {
        b->position = consumed ? peek_peer(b->engine, 1).posted : 0;
        CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    }
    if (revoke)
        send_revoke(b);
    else
        bench_bind(b, 5);
}

/* Guards that the answers to a peer that never acknowledges are bounded, but only by memory: the
 * peer may have more binds than this node has entries. The answers to a peer that acknowledges are
 * not counted. */
static void answers_are_bounded(void)
{
    const uint32_t most = CHUNK_BYTES >> NOTE_SHIFT; /* one of the eight chunks */

    for (uint32_t revokes = 0; revokes < 2; revokes++) {
        struct bench *b = linked_bench();

        poke_config(b->engine)->chunks_max = 8;
        CU_ASSERT(most > 2 * b->config.remotes_max);
        for (uint32_t i = 0;
             i < 2 * most && peek_peer(b->engine, 1).answers_owed < most && !b->broken; i++)
            ask_again(b, revokes, false);
        CU_ASSERT_FALSE(b->broken);
        ask_again(b, revokes, false);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(peek_peer(b->engine, 1).answers_owed, most);
        bench_free(b);

        b = linked_bench();
        poke_config(b->engine)->chunks_max = 8;
        for (uint32_t i = 0; i < 2 * most && !b->broken; i++) {
            struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK},
                                   .consumed = peek_peer(b->engine, 1).posted};

            bench_send(b, &ack, sizeof(ack));
            CU_ASSERT_EQUAL(peek_peer(b->engine, 1).answers_owed, 0);
            ask_again(b, revokes, true);
        }
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Guards that a bind fails, and leaves nothing, when there is no memory to ask the peer. */
static void bind_without_memory(void)
{
    struct bench *b = unbound_bench(false);
    uint32_t free;

    bench_steps(b, 4);
    free = poke_memory(b->engine, 0);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 1, 7, NULL, 5), -ENOBUFS);
    poke_memory(b->engine, free);
    bench_steps(b, 4);
    CU_ASSERT_EQUAL(peek_census(b->engine).flows, 0);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_FREE);
    bench_free(b);
}

/* Guards a region that is withdrawn again while a peer has not answered: the end is reported for
 * the last request. */
static void withdrawal_is_asked_for_again(void)
{
    struct wire_region answer = {.head = {.words = sizeof(answer) / 8, .kind = WIRE_REVOKED}};
    struct bench *b = linked_bench();
    const struct engine_key *key = &b->key;
    uint32_t client = peek_region(b->engine, key->slot).client;

    bench_steps(b, 4);
    CU_ASSERT_EQUAL(engine_region_close(b->engine, client, key->slot, key->generation, 100), 0);
    bench_steps(b, 4);
    CU_ASSERT_TRUE(has_sent(b, WIRE_REVOKE));
    CU_ASSERT_EQUAL(engine_region_close(b->engine, client, key->slot, key->generation, 200), 1);
    CU_ASSERT_EQUAL(engine_region_close(b->engine, client + 1, key->slot, key->generation, 300),
                    -EINVAL);
    CU_ASSERT_EQUAL(engine_region_close(b->engine, client, key->slot, key->generation + 1, 300),
                    -EINVAL);
    bench_steps(b, 4);
    CU_ASSERT_FALSE(has_sent(b, WIRE_REVOKE));
    CU_ASSERT_EQUAL(peek_region(b->engine, key->slot).state, REGION_REVOKING);
    CU_ASSERT_EQUAL(peek_region(b->engine, key->slot).cookie, 200);
    answer.slot = key->slot;
    answer.generation = key->generation;
    bench_send(b, &answer, sizeof(answer));
    bench_steps(b, 4);
    CU_ASSERT_EQUAL(peek_region(b->engine, key->slot).state, REGION_FREE);
    CU_ASSERT_EQUAL(engine_region_close(b->engine, client, key->slot, key->generation, 400),
                    -EINVAL);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a withdrawal is asked for again", withdrawal_is_asked_for_again},
        {"a declined ring is freed", declined_ring_is_freed},
        {"an unregistered ring is freed", unregistered_ring_is_freed},
        {"the first ring is freed", first_ring_is_freed},
        {"the lack of a ring behind a drained link is reported",
         lack_behind_a_drained_link_is_reported},
        {"the lack of a ring is reported once", lack_is_reported_once},
        {"memory that was not dropped stays", memory_not_dropped_stays},
        {"a dead fabric is reported", dead_fabric_is_reported},
        {"a handshake dies", handshake_dies},
        {"ledgers not registered", ledgers_not_registered_are_reported},
        {"last words end", last_words_end},
        {"what was not offered is not declined", what_was_not_offered_is_not_declined},
        {"too large is declined", too_large_is_declined},
        {"nonces are given back", nonces_are_given_back},
        {"answers are bounded", answers_are_bounded},
        {"a bind without memory", bind_without_memory},
        CU_TEST_INFO_NULL};

    return suite_run("debts", tests);
}
