/*
 * Puts to an offload's region that do not end as they began, from a peer that is the test: they are
 * cut by their origin, or by its next put; a process dies in one of their handlers; or their
 * offload goes while they wait for a turn. Each case says which rule it guards. Thread: one.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/offload/packet_bench.h"
#include "tests/suite.h"

/* ---- cut ------------------------------------------------------------------------------------- */

/* Guards that an empty packet of an origin that has failed ends the put, and that an empty packet
 * for an unknown put has no effect. */
static void cut_by_its_origin(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct packet_record p = packet(b, PART);

    p.w.put.op.head.flags = WIRE_CUT;
    p.w.put.op.length = 0;
    p.w.put.op.head.words = sizeof(p.w) / 8;
    send_packet(b, &p);
    check_runs(b, handle, 0, 0, 0);
    send_at(b, 0);
    send_packet(b, &p);
    check_runs(b, handle, 1, 1, 1);
    CU_ASSERT_EQUAL(failed(b), 0);
    CU_ASSERT_EQUAL(bench_events(b), event_bytes(sizeof(struct offload_word)));
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).dropped, TOTAL - PART);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a put is cut when its origin has moved on to its next operation. */
static void cut_by_the_next(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct packet_record p = packet(b, 0);

    send_at(b, 0);
    p.w.put.op.sequence++;
    send_packet(b, &p);
    check_runs(b, handle, 2, 2, 1);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).messages, 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* ---- in doubt -------------------------------------------------------------------------------- */

static jmp_buf death;
static int runs_left; /* runs of handlers before the one in which the process dies */

/* The engine calls this hook after each run, before the run's commit. */
static bool die(void *context, uint32_t client)
{
    (void)context, (void)client;
    if (runs_left-- == 0)
        longjmp(death, 1);
    return false;
}

/* Opens a bench whose process has died in a handler of a put: the header handler of the first
 * packet, the payload handler of the second, or the completion handler. Another one has taken over,
 * without a link. */
static struct bench *died_in(enum handler_stage stage, uint32_t flags, uint32_t *handle)
{
    struct bench *b = new_bench_with(handle, flags);

    for (uint32_t i = 0; i < stage; i++)
        send_at(b, i * PART);
    b->host.faulted = die;
    runs_left = stage == HANDLER_COMPLETION; /* the payload handler runs before */
    if (setjmp(death) == 0) {
        send_at(b, stage * PART);
        CU_FAIL("the engine lives");
    }
    b->host.faulted = NULL;
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    b->position = peek_peer(b->engine, 1).staged; /* all that the engine has sent has arrived */
    return b;
}

enum { LOST, DISABLED, CLOSED, CUT, NEXT, RETURNS, WAYS };

/* After the death: the peer is lost, the offload is disabled, the inflow is closed, the origin cuts
 * the put or goes on to its next one, or the put's packets come again. */
static void happens(struct bench *b, uint32_t how, uint32_t handle, uint32_t at)
{
    struct packet_record p = packet(b, 0);

    if (how == LOST)
        engine_peer_lost(b->engine, 1);
    if (how == DISABLED)
        CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 0, handle), 0);
    if (how > DISABLED)
        CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    if (how == CLOSED)
        bench_note(b, WIRE_CLOSE, bench_inflow(b), 0);
    if (how == CUT) {
        p.w.put.op.head.flags = WIRE_CUT;
        p.w.put.op.length = 0;
        p.w.put.op.head.words = sizeof(p.w) / 8;
        p.w.at = at;
    }
    p.w.put.op.sequence += how == NEXT;
    if (how == CUT || how == NEXT)
        send_packet(b, &p);
    for (; how == RETURNS && at < TOTAL; at += PART)
        send_at(b, at);
    bench_steps(b, 2);
}

/* Guards that a put whose handler is in doubt is cut, whatever happens before its packet comes
 * again: the completion handler runs once, unless that was in doubt. A handler that may run again
 * does so where its packet comes again; the completion handler also without its packet. */
static void cut_in_doubt(void)
{
    for (uint32_t row = 0; row < 2 * HANDLER_STAGES * WAYS; row++) {
        uint32_t stage = row / 2 % HANDLER_STAGES, how = row / 2 / HANDLER_STAGES, handle;
        uint32_t flags = row % 2 ? ENGINE_OFFLOAD_REPEATABLE : 0, next = how == NEXT;
        struct bench *b = died_in((enum handler_stage)stage, flags, &handle);
        bool goes_on = how == RETURNS && flags;
        static const uint64_t payloads[] = {0, 1, 3};

        happens(b, how, handle, stage * PART);
        check_runs(b, handle, (stage > HANDLER_HEADER || goes_on) + next,
                   goes_on ? 3 : payloads[stage] + next, stage < HANDLER_COMPLETION || flags);
        /* Where the offload is disabled, the put ends when its packet comes again. */
        CU_ASSERT_EQUAL(peek_offload(b->engine, handle).failed, !goes_on && how != DISABLED);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* ---- in line for a turn ---------------------------------------------------------------------- */

/* Guards a put that waits for a turn when its offload is disabled or destroyed: its origin gets its
 * GO anyway, and a FAIL that says how the put has ended. */
static void waits_without_an_offload(void)
{
    for (uint32_t row = 0; row < 4; row++) {
        uint32_t begun = row % 2, handle;
        struct bench *b = new_bench(&handle);

        if (begun)
            send_at(b, 0);
        poke_other_work(b->engine);
        poke_handler_debt(b->engine, 0, 1 << 24);
        send_at(b, begun * PART);
        CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE), 1);
        CU_ASSERT_EQUAL(row < 2 ? engine_offload_destroy(b->engine, 0, handle)
                                : engine_offload_disable(b->engine, 0, handle),
                        0);
        check_runs(b, handle, begun, begun, begun);
        for (int i = 0; i < 100 && sent(b, WIRE_GO) == 0; i++)
            bench_steps(b, 100);
        CU_ASSERT_EQUAL(sent(b, WIRE_GO), 1);
        for (uint32_t at = begun * PART; at < TOTAL; at += PART)
            send_at(b, at);
        CU_ASSERT_EQUAL(failed(b), -ESHUTDOWN);
        check_runs(b, handle, begun, begun, begun);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"cut by its origin", cut_by_its_origin},
                           {"cut by the next operation", cut_by_the_next},
                           {"cut in doubt", cut_in_doubt},
                           {"a put waits without an offload", waits_without_an_offload},
                           CU_TEST_INFO_NULL};

    return suite_run("region cuts", tests);
}
