/*
 * Packets of puts to an offload's region, from a peer that is the test: which packets do not fit
 * the earlier ones, and break the link; which are done already, and are skipped; and that nothing
 * else writes to the region. Each case says which rule it guards. Thread: one.
 */
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/watch/trace_ring.h"
#include "tests/engine/offload/packet_bench.h"
#include "tests/suite.h"

/* ---- records that do not fit ----------------------------------------------------------------- */

/* The second packet of a put in each row, and whether it fits the first. */
static const struct {
    uint32_t at, total, place, length;
    bool fits;
} second[] = {
    {64, TOTAL, PLACE, PART, true},       {0, TOTAL, PLACE, PART, true}, /* done already */
    {32, TOTAL, PLACE, PART, true},                                      /* half of it */
    {128, TOTAL, PLACE, PART, false},                                    /* one before is missing */
    {64, TOTAL + 64, PLACE, PART, false}, {64, TOTAL, PLACE + 64, PART, false},
    {64, TOTAL, PLACE, 0, false},         {160, TOTAL, PLACE, PART, false},
    {256, TOTAL, PLACE, 0, false},
};

static void packets_that_do_not_fit(void)
{
    for (size_t i = 0; i < COUNT(second); i++) {
        struct packet_record p;
        uint32_t handle;
        struct bench *b = new_bench(&handle);

        send_at(b, 0);
        check_runs(b, handle, 1, 1, 0);
        p = packet(b, second[i].at);
        p.w.total = second[i].total;
        p.w.put.offset = second[i].place;
        p.w.put.op.length = second[i].length;
        p.w.put.op.head.words = (uint16_t)((sizeof(p.w) + second[i].length) / 8);
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->broken, !second[i].fits);
        check_runs(b, handle, 1, second[i].fits && second[i].at > 0 ? 2 : 1, 0);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that a put which is stored has one record, of one form, and that its handlers run on all
 * packets. */
static void stored_records(void)
{
    static const struct {
        uint32_t flags, length, at, total;
        int status; /* status of the FAIL; -EPROTO: the record breaks the link */
    } rows[] = {{WIRE_STORED, 0, TOTAL, TOTAL, 0},
                {WIRE_STORED, 0, 4096 - PLACE, 4096 - PLACE, 0},
                {WIRE_STORED, 0, 4097 - PLACE, 4097 - PLACE, -ERANGE},
                {WIRE_STORED | WIRE_CUT, 0, TOTAL, TOTAL, -EPROTO},
                {WIRE_STORED, PART, TOTAL - PART, TOTAL, -EPROTO},
                {WIRE_STORED, PART, TOTAL, TOTAL, -EPROTO},
                {WIRE_STORED, 0, 0, TOTAL, -EPROTO},
                {WIRE_STORED, 0, 0, 0, -EPROTO},
                {WIRE_STORED | WIRE_NONCE, 0, TOTAL, TOTAL, -EPROTO},
                {WIRE_NONCE, PART, 0, PART, -EPROTO}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t handle, runs;
        struct bench *b = new_bench_with(&handle, ENGINE_OFFLOAD_PLACED);
        struct packet_record p = stored(b);

        p.w.put.op.head.flags = (uint8_t)rows[i].flags;
        p.w.put.op.head.words = (uint16_t)((sizeof(p.w) + rows[i].length) / 8);
        p.w.put.op.length = rows[i].length;
        p.w.at = rows[i].at;
        p.w.total = rows[i].total;
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->broken, rows[i].status == -EPROTO);
        CU_ASSERT_EQUAL(failed(b), rows[i].status == -EPROTO ? 0 : rows[i].status);
        runs = rows[i].status == 0;
        /* A packet is longer than the region, so that a put is one packet. */
        check_runs(b, handle, runs, runs, runs);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that no put is stored where the region only takes packets, and that a put which began in
 * packets cannot be stored. */
static void stored_elsewhere(void)
{
    for (uint32_t begun = 0; begun < 2; begun++) {
        uint32_t handle;
        struct bench *b = new_bench_with(&handle, begun ? ENGINE_OFFLOAD_PLACED : 0);
        struct packet_record p = stored(b);

        if (begun)
            send_at(b, 0);
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->broken, begun);
        CU_ASSERT_EQUAL(failed(b), begun ? 0 : -EOPNOTSUPP);
        check_runs(b, handle, begun, begun, 0);
        bench_free(b);
    }
}

/* Guards a put that is stored and is refused, because its client has no turn: it continues with the
 * same record alone, and ends where its origin cuts it. */
static void stored_and_refused(void)
{
    static const struct {
        uint8_t flags;
        uint32_t at;
        bool fits;
        uint32_t messages;
    } rows[] = {{WIRE_STORED, TOTAL, true, 1}, {WIRE_CUT, TOTAL, true, 1}, {0, 0, false, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t handle;
        struct bench *b = new_bench_with(&handle, ENGINE_OFFLOAD_PLACED);
        struct packet_record p = stored(b);

        poke_other_work(b->engine);
        poke_handler_debt(b->engine, 0, 1 << 24);
        send_packet(b, &p);
        CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE), 1);
        check_runs(b, handle, 0, 0, 0);
        for (int j = 0; j < 100 && sent(b, WIRE_GO) == 0; j++)
            bench_steps(b, 100);
        p.w.put.op.head.flags = rows[i].flags;
        p.w.at = rows[i].at;
        p.w.put.op.length = rows[i].at == 0 ? PART : 0;
        p.w.put.op.head.words = (uint16_t)((sizeof(p.w) + p.w.put.op.length) / 8);
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->broken, !rows[i].fits);
        CU_ASSERT_EQUAL(peek_offload(b->engine, handle).messages, rows[i].messages);
        check_runs(b, handle, i == 0, i == 0, i == 0);
        bench_free(b);
    }
}

/* Opens a bench with a region that stores, whose header handler takes all units of a step. An
 * operation of the client's own waits for its ACK: *acked is the position before that operation. */
static struct bench *slow_bench(uint64_t *acked)
{
    const struct handler_instruction code[] = {
        ALU(CODE_MOV, 3, 4500), ALU(CODE_SUB, 3, 1), op(CODE_JMP | CODE_JNE, 3, 0, -2, 0),
        RETURN(HANDLER_PROCESS_DATA), RETURN(HANDLER_SUCCESS)};
    const struct wire_bound bound = {.head = {.words = sizeof(bound) / 8, .kind = WIRE_BOUND},
                                     .flow = 3,
                                     .rights = 3,
                                     .length = 4096};
    const struct submit_record put = {
        .size = sizeof(put), .kind = SUBMIT_PUT, .reserve = event_bytes(0), .length = 64};
    const struct engine_key key = BENCH_KEY;
    uint64_t words[64] = {0};
    struct handler_image *image = (void *)words;
    uint32_t handle, bytes = (uint32_t)image_bytes(COUNT(code), 0, 0);
    struct bench *b = new_bench(&handle);
    struct image_error wrong;
    struct engine_key own;

    *image = (struct handler_image){
        .magic = HANDLER_IMAGE_MAGIC, .instructions = COUNT(code), .entry = {0, 5, HANDLER_NONE}};
    memcpy(words + 5, code, sizeof(code));
    CU_ASSERT_EQUAL_FATAL(image_check(words, bytes, &wrong), 0);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
    create_like(b, &own,
                (struct engine_offload_info){
                    .program = (uint32_t)engine_program_load(b->engine, 0, image, bytes),
                    .flags = ENGINE_OFFLOAD_PLACED});
    b->key = own;
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &bound, sizeof(bound)));
    bench_ack(b);
    *acked = peek_peer(b->engine, 1).posted;
    bench_submit(b, &put);
    bench_steps(b, 2);
    CU_ASSERT_FATAL(peek_peer(b->engine, 1).posted > *acked);
    return b;
}

enum { NOTHING, OLD_ACK, NEW_ACK, WANTED, BEHINDS };

/* Guards that a stored put whose handlers take several steps is refused where a client waits for a
 * record after it, and only there. */
static void behind_a_stored_put(void)
{
    for (uint32_t what = NOTHING; what < BEHINDS; what++) {
        uint64_t acked;
        struct bench *b = slow_bench(&acked);
        struct packet_record p = stored(b);
        struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK},
                               .consumed = acked};
        struct wire_record want = {.words = 1, .kind = WIRE_WANT};

        if (what == NEW_ACK)
            ack.consumed = peek_peer(b->engine, 1).posted;
        CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, &p, sizeof(p.w)));
        if (what == WANTED)
            CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, &want, sizeof(want)));
        if (what == OLD_ACK || what == NEW_ACK)
            CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, &ack, sizeof(ack)));
        bench_steps(b, 4);
        CU_ASSERT_EQUAL(sent(b, WIRE_REFUSE), what == NEW_ACK || what == WANTED);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards that the time of each handler counts as units of the step before the next handler runs, so
 * that a stored put whose handlers are slow rests where another client has work. */
static void time_of_a_stored_put(void)
{
    for (uint32_t slow = 0; slow < 2; slow++) {
        uint32_t handle;
        struct bench *b = new_bench_with(&handle, ENGINE_OFFLOAD_PLACED);
        struct packet_record p = stored(b);

        poke_config(b->engine)->packed_max = PART;
        bench_clock(b);
        b->clock_tick = slow ? 10000 : 0; /* two looks take longer than OFFLOAD_STEP_UNITS */
        poke_other_work(b->engine);
        CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, &p, sizeof(p.w)));
        for (int i = 0; i < 4 && peek_offload(b->engine, handle).counters[HANDLER_HEADER] == 0; i++)
            bench_steps(b, 1);
        check_runs(b, handle, 1, slow ? 0 : TOTAL / PART, !slow);
        bench_free(b);
    }
}

/* Guards that a stored put whose handlers are slow rests also where nobody else has work, and goes
 * on in the next step. */
static void slow_and_alone(void)
{
    uint32_t handle;
    struct bench *b = new_bench_with(&handle, ENGINE_OFFLOAD_PLACED);
    struct packet_record p = stored(b);
    int steps = 0;

    poke_config(b->engine)->packed_max = PART;
    bench_clock(b);
    b->clock = b->now;
    b->clock_tick = 40000; /* two looks for each handler */
    CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, &p, sizeof(p.w)));
    for (; steps < 4 && peek_offload(b->engine, handle).counters[HANDLER_HEADER] == 0; steps++)
        bench_steps(b, 1);
    CU_ASSERT(peek_offload(b->engine, handle).counters[HANDLER_PAYLOAD] > 0);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).counters[HANDLER_COMPLETION], 0);
    bench_steps(b, 2);
    check_runs(b, handle, 1, TOTAL / PART, 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_REFUSE), 0);
    bench_free(b);
}

/* Guards that a packet after the first one is written nowhere when it names another region, or an
 * earlier life of the put's own region. */
static void packets_of_another_region(void)
{
    for (uint32_t earlier = 0; earlier < 2; earlier++) {
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        struct engine_key other, own;
        struct packet_record p;

        CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
        CU_ASSERT_EQUAL_FATAL(
            engine_region_open(b->engine, 0, 0, 8192, 4096, ENGINE_REMOTE_READ, &other), 0);
        create(b, &own, HANDLER_PROCEED);
        memset(b->segment + 4096, 0x5a, 8192);
        p = packet(b, 0);
        p.w.put.slot = own.slot;
        p.w.put.generation = own.generation;
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->segment[4096 + PLACE], 0);
        CU_ASSERT_FALSE_FATAL(b->broken);
        p.w.at = PART;
        p.w.put.slot = earlier ? own.slot : other.slot;
        p.w.put.generation = earlier ? own.generation - 1 : other.generation;
        send_packet(b, &p);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(b->segment[4096 + PLACE + PART], 0x5a);
        CU_ASSERT_EQUAL(b->segment[8192 + PLACE + PART], 0x5a);
        bench_free(b);
    }
}

/* Guards that a record with WIRE_CUT places no bytes, even if the header handler has let the put
 * proceed: the origin could not read these bytes, or has named another region. */
static void bytes_of_a_cut(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct engine_key other, own;
    struct packet_record p;

    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 8192, 4096, 3, &other), 0);
    create(b, &own, HANDLER_PROCEED);
    create(b, &other, HANDLER_PROCEED);
    memset(b->segment + 4096, 0x5a, 8192);
    p = packet(b, 0);
    p.w.put.slot = own.slot;
    p.w.put.generation = own.generation;
    send_packet(b, &p);
    CU_ASSERT_EQUAL(b->segment[4096 + PLACE], 0);
    p.w.at = PART;
    p.w.put.slot = other.slot;
    p.w.put.generation = other.generation;
    p.w.put.op.head.flags |= WIRE_CUT;
    send_packet(b, &p);
    CU_ASSERT_EQUAL(b->segment[4096 + PLACE + PART], 0x5a);
    CU_ASSERT_EQUAL(b->segment[8192 + PLACE + PART], 0x5a);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a region which no longer takes packets gets none, even of a put whose header handler
 * has let it proceed. */
static void packets_of_a_plain_region(void)
{
    uint32_t handle, gone;
    struct bench *b = new_bench(&handle);
    struct engine_key own;
    struct packet_record p = packet(b, 0);

    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
    gone = create(b, &own, HANDLER_PROCEED);
    memset(b->segment + 4096, 0x5a, 4096);
    p.w.put.slot = own.slot;
    p.w.put.generation = own.generation;
    send_packet(b, &p);
    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, gone), 0);
    for (p.w.at = PART; p.w.at < TOTAL; p.w.at += PART)
        send_packet(b, &p);
    CU_ASSERT_EQUAL(failed(b), -EKEYREJECTED);
    CU_ASSERT_EQUAL(b->segment[4096 + PLACE + PART], 0x5a);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a key of an offload's region leads to the context of the offload alone: puts to
 * another context would run its handlers. A peer that may not read the region gets no address of
 * it, unless the region stores. */
static void keys_of_the_own_context(void)
{
    static const struct {
        uint64_t target;
        uint32_t rights;
        int32_t status;
        uint32_t flags;
        bool address;
    } rows[] = {{0, ENGINE_REMOTE_WRITE, 0, 0, false},
                {0, ENGINE_REMOTE_WRITE | ENGINE_REMOTE_READ, 0, 0, true},
                {0, ENGINE_REMOTE_WRITE, 0, ENGINE_OFFLOAD_PLACED, true},
                {0, ENGINE_REMOTE_WRITE, 0, ENGINE_OFFLOAD_OBSERVE, false},
                {UINT64_C(1) << 32, ENGINE_REMOTE_WRITE, -EKEYREJECTED, 0, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct session_sizes sizes = {RING, RING, RING, RING, RING};
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        void *memory = aligned_alloc(4096, (b->session_bytes + 4095) / 4096 * 4096);
        struct engine_key key;
        struct wire_bound answer;
        struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                                 .flow = WIRE_NONE,
                                 .origin_flow = ORIGIN_FLOW + 1,
                                 .origin = 3,
                                 .target = rows[i].target,
                                 .has_key = 1,
                                 .job = "j"};

        CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
        memset(memory, 0, b->session_bytes);
        CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 1, memory, &sizes, 0), 1);
        CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, rows[i].rights, &key),
                              0);
        create_like(b, &key,
                    (struct engine_offload_info){.program = load(b, HANDLER_PROCESS_DATA, 0),
                                                 .flags = rows[i].flags});
        bind.slot = key.slot;
        bind.generation = key.generation;
        memcpy(bind.secret, key.secret, sizeof(bind.secret));
        CU_ASSERT_TRUE_FATAL(bench_send(b, &bind, sizeof(bind)));
        peek_last_note(b->engine, 1, NOTES_OTHERS, &answer);
        CU_ASSERT_EQUAL_FATAL(answer.head.kind, WIRE_BOUND);
        CU_ASSERT_EQUAL(answer.status, rows[i].status);
        CU_ASSERT_EQUAL(answer.packet > 0, rows[i].status == 0);
        CU_ASSERT_EQUAL(answer.address != 0, rows[i].address);
        CU_ASSERT_EQUAL(answer.rights & WIRE_BOUND_STORES,
                        rows[i].flags & ENGINE_OFFLOAD_PLACED ? WIRE_BOUND_STORES : 0);
        CU_ASSERT_EQUAL(answer.rights & WIRE_BOUND_OBSERVES,
                        rows[i].flags & ENGINE_OFFLOAD_OBSERVE ? WIRE_BOUND_OBSERVES : 0);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
        free(memory);
    }
}

static void send_message(struct bench *b)
{
    const struct {
        struct wire_op op;
        struct message message;
    } m = {.op = {.head = {.words = sizeof(m) / 8,
                           .kind = WIRE_NOTE,
                           .flags = WIRE_MESSAGE | WIRE_NO_REPLY},
                  .flow = bench_inflow(b),
                  .sequence = SEQUENCE,
                  .rid_len = sizeof(m.message)},
           .message = {.kind = SUBMIT_SHORT, .token = UINT32_MAX}};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &m, sizeof(m)));
}

/* Guards that a message with the sequence of a put that is under way breaks the link. */
static void message_of_a_put(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    send_at(b, 0);
    send_message(b);
    CU_ASSERT_TRUE(b->broken);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    check_runs(b, handle, 1, 1, 0);
    bench_free(b);
}

/* ---- gets that are observed ------------------------------------------------------------------ */

static struct wire_put observed(const struct bench *b, const struct engine_key *key)
{
    return (struct wire_put){
        .op = {.head = {.words = sizeof(struct wire_put) / 8, .kind = WIRE_OBSERVED},
               .flow = bench_inflow(b),
               .sequence = SEQUENCE,
               .length = PART},
        .slot = key->slot,
        .generation = key->generation,
        .offset = PLACE};
}

/* Guards that the handler runs on a get that its peer may have made, and on no other; the get has
 * its event, whatever the record claims. */
static void observed_records(void)
{
    static const struct {
        uint32_t flags, rights;
        uint64_t offset;
        uint32_t length, other, slot; /* added to the generation and the slot */
        uint64_t runs;
    } rows[] = {{ENGINE_OFFLOAD_OBSERVE, 3, PLACE, PART, 0, 0, 1},
                {ENGINE_OFFLOAD_OBSERVE, 3, 4096 - PART, PART, 0, 0, 1},
                {ENGINE_OFFLOAD_OBSERVE, 3, 4096, 0, 0, 0, 1},
                {ENGINE_OFFLOAD_OBSERVE, 3, 4097 - PART, PART, 0, 0, 0},
                {ENGINE_OFFLOAD_OBSERVE, 3, 4097, 0, 0, 0, 0},
                {ENGINE_OFFLOAD_OBSERVE, 3, UINT64_MAX, 1, 0, 0, 0},
                {ENGINE_OFFLOAD_OBSERVE, ENGINE_REMOTE_WRITE, PLACE, PART, 0, 0, 0},
                {ENGINE_OFFLOAD_OBSERVE, 3, PLACE, PART, 1, 0, 0},
                {ENGINE_OFFLOAD_OBSERVE, 3, PLACE, PART, 0, 1u << 30, 0},
                {0, 3, PLACE, PART, 0, 0, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t plain, handle;
        struct bench *b = new_bench(&plain);
        struct engine_key key;
        struct wire_put w;
        uint64_t events;

        CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, rows[i].rights, &key),
                              0);
        handle = create_like(b, &key,
                             (struct engine_offload_info){.program = load(b, HANDLER_DROP, 0),
                                                          .flags = rows[i].flags});
        w = observed(b, &key);
        w.op.length = rows[i].length;
        w.offset = rows[i].offset;
        w.generation += rows[i].other;
        w.slot += rows[i].slot;
        events = bench_events(b);
        CU_ASSERT_TRUE_FATAL(bench_send(b, &w, sizeof(w)));
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        CU_ASSERT_EQUAL(bench_events(b), events + event_bytes(0));
        CU_ASSERT_EQUAL(failed(b), 0);
        check_runs(b, handle, rows[i].runs, 0, 0);
        check_runs(b, plain, 0, 0, 0);
        bench_free(b);
    }
}

/* Guards a get that waits for its client's turn: its record comes again. A put or a message with
 * its sequence breaks the link. */
static void observed_and_refused(void)
{
    for (uint32_t other = 0; other < 3; other++) {
        uint32_t handle;
        struct bench *b = new_bench_with(&handle, ENGINE_OFFLOAD_OBSERVE);
        struct wire_put w = observed(b, &b->key);

        poke_other_work(b->engine);
        poke_handler_debt(b->engine, 0, 1 << 24);
        CU_ASSERT_TRUE_FATAL(bench_send(b, &w, sizeof(w)));
        CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE), 1);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        for (int j = 0; j < 100 && sent(b, WIRE_GO) == 0; j++)
            bench_steps(b, 100);
        if (other == 0)
            CU_ASSERT_TRUE_FATAL(bench_send(b, &w, sizeof(w)));
        if (other == 1)
            send_at(b, 0);
        if (other == 2)
            send_message(b);
        CU_ASSERT_EQUAL(b->broken, other > 0);
        check_runs(b, handle, other == 0, 0, 0);
        CU_ASSERT_EQUAL(bench_events(b), other > 0 ? 0 : event_bytes(0));
        bench_free(b);
    }
}

/* Guards that only the first packet of a put begins it: another one breaks the link. */
static void begins_in_the_middle(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    send_at(b, PART);
    CU_ASSERT_TRUE(b->broken);
    check_runs(b, handle, 0, 0, 0);
    bench_free(b);
}

/* Guards that a packet which was done already is skipped, and that the others run once. */
static void comes_twice(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    for (uint32_t at = 0; at < TOTAL; at += PART) {
        if (at > 0)
            send_at(b, at - PART);
        send_at(b, at);
    }
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).messages, 1);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).bytes, TOTAL);
    check_runs(b, handle, 1, 3, 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* ---- other operations that may not write ----------------------------------------------------- */

/* Sends an ordinary put of one word with the value 1. */
static void send_put(struct bench *b, uint32_t sequence)
{
    const struct {
        struct wire_put w;
        uint64_t word;
    } put = {.w = {.op = {.head = {.words = sizeof(put) / 8, .kind = WIRE_PUT},
                          .flow = bench_inflow(b),
                          .sequence = sequence,
                          .length = 8},
                   .slot = b->key.slot,
                   .generation = b->key.generation},
             .word = 1};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &put, sizeof(put)));
}

static void other_records(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    send_put(b, SEQUENCE);
    CU_ASSERT_EQUAL(failed(b), -EOPNOTSUPP);
    let_go(b);
    send_put(b, SEQUENCE + 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 2);
    CU_ASSERT_EQUAL(b->segment[0], 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that when the offload has gone, ordinary puts may write once all origins that had to send
 * packets have released the region. */
static void after_the_offload(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), 0);
    send_put(b, SEQUENCE);
    CU_ASSERT_EQUAL(failed(b), -EOPNOTSUPP);
    CU_ASSERT_EQUAL(b->segment[0], 0);
    let_go(b);
    send_put(b, SEQUENCE + 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 1);
    CU_ASSERT_EQUAL(b->segment[0], 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that the origin gets the reason when the target cannot take a put of one packet. */
static void refused_packets(void)
{
    static const struct {
        uint32_t slot, generation;
        uint64_t place;
        int status;
    } rows[] = {{1, 0, 0, -EKEYREJECTED},
                {0, 1, 0, -EKEYREJECTED},
                {100000, 0, 0, -EKEYREJECTED},
                {0, 0, 4096 - PART + 1, -ERANGE},
                {0, 0, UINT64_MAX, -ERANGE}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        struct packet_record p = packet(b, 0);

        p.w.total = PART;
        p.w.put.slot += rows[i].slot;
        p.w.put.generation += rows[i].generation;
        p.w.put.offset = rows[i].place;
        send_packet(b, &p);
        CU_ASSERT_EQUAL(failed(b), rows[i].status);
        check_runs(b, handle, 0, 0, 0);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* ---- trace ----------------------------------------------------------------------------------- */

/* Guards that a trace has a record for each run of a handler, with its units and time, and that
 * without a trace nothing is recorded. */
static void traced_runs(void)
{
    enum { RECORDS = 64 };
    static const uint32_t runs[HANDLER_STAGES] = {1, 3, 1};
    struct trace_ring *ring = aligned_alloc(64, (trace_ring_bytes(RECORDS) + 63) / 64 * 64);
    struct trace_record records[RECORDS];
    uint32_t handle, seen[HANDLER_STAGES] = {0};
    struct bench *b = new_bench(&handle);
    uint64_t from = 0, lost = 0, units = 0;
    int count;

    CU_ASSERT_PTR_NOT_NULL_FATAL(ring);
    memset(ring, 0, trace_ring_bytes(RECORDS));
    trace_ring_init(ring, RECORDS);
    bench_clock(b);
    b->clock_tick = 10;
    engine_trace(b->engine, ring);
    for (uint32_t at = 0; at < TOTAL; at += PART)
        send_at(b, at);
    engine_trace(b->engine, NULL);
    count = trace_ring_read(ring, &from, records, RECORDS, &lost);
    for (int i = 0; i < count; i++) {
        if (records[i].kind != TRACE_HANDLER)
            continue;
        CU_ASSERT_FATAL(records[i].op < HANDLER_STAGES);
        CU_ASSERT_EQUAL(records[i].flow, handle);
        CU_ASSERT_EQUAL(records[i].client, 0);
        CU_ASSERT_EQUAL(records[i].length, PART);
        CU_ASSERT_EQUAL(records[i].status, 0);
        CU_ASSERT(records[i].position >= 10);
        units += records[i].sequence;
        seen[records[i].op]++;
    }
    CU_ASSERT_EQUAL(memcmp(seen, runs, sizeof(runs)), 0);
    CU_ASSERT_EQUAL(units, peek_offload(b->engine, handle).units);
    for (uint32_t at = 0; at < TOTAL; at += PART) {
        struct packet_record p = packet(b, at);

        p.w.put.op.sequence++;
        send_packet(b, &p);
    }
    CU_ASSERT_EQUAL(trace_ring_head(ring), from);
    check_runs(b, handle, 2, 6, 2);
    bench_free(b);
    free(ring);
}

int main(void)
{
    CU_TestInfo tests[] = {{"packets that do not fit", packets_that_do_not_fit},
                           {"records of puts that are stored", stored_records},
                           {"stored where there are packets", stored_elsewhere},
                           {"stored and refused", stored_and_refused},
                           {"behind a stored put", behind_a_stored_put},
                           {"time of a stored put", time_of_a_stored_put},
                           {"slow and alone", slow_and_alone},
                           {"packets of another region", packets_of_another_region},
                           {"bytes of a cut", bytes_of_a_cut},
                           {"packets of a plain region", packets_of_a_plain_region},
                           {"keys of the own context", keys_of_the_own_context},
                           {"a message of a put", message_of_a_put},
                           {"gets that are observed", observed_records},
                           {"observed and refused", observed_and_refused},
                           {"a put begins in the middle", begins_in_the_middle},
                           {"packets come twice", comes_twice},
                           {"other records", other_records},
                           {"after the offload", after_the_offload},
                           {"packets that are refused", refused_packets},
                           {"runs in a trace", traced_runs},
                           CU_TEST_INFO_NULL};

    return suite_run("region records", tests);
}
