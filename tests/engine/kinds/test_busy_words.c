/*
 * Words that others keep changing: an atomic whose tries all fail ends with -EBUSY, and says how
 * much of it is done (record_atomic.c). This program has its own word_apply, which gives up at the
 * element that a test names. One engine, and its client's own region through the loop. One thread.
 */
#include "tests/suite.h"
#include <errno.h>
#include <string.h>
#include "proto/word_abi.h"
#include "shm_ring/word.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

#define PLACE UINT64_C(64) /* offset of the words in the region */

static uint32_t until_busy; /* how many elements word_apply changes before it gives up */

int word_apply(void *at, uint8_t code, const void *operands, void *fetched)
{
    uint64_t old, operand;

    if (until_busy == 0)
        return -EBUSY;
    until_busy--;
    memcpy(&old, at, sizeof(old));
    memcpy(&operand, operands, sizeof(operand));
    if (fetched)
        memcpy(fetched, &old, sizeof(old));
    old += operand;
    memcpy(at, &old, sizeof(old));
    return 0;
}

uint32_t word_apply_all(void *at, uint8_t code, uint32_t count, const void *operands, void *fetched)
{
    uint32_t i = 0;

    while (i < count && word_apply((uint64_t *)at + i, code, (const uint64_t *)operands + i,
                                   fetched ? (uint64_t *)fetched + i : NULL) == 0)
        i++;
    return i;
}

struct atomic {
    struct submit_record record;
    uint64_t operands[16];
};

/* An atomic that adds one to each of this many words. */
static struct atomic atomic_of(const struct bench *b, uint32_t words, uint16_t flags)
{
    struct atomic a = {.record = {.size = (uint32_t)sizeof(struct submit_record) + 8 * words,
                                  .kind = SUBMIT_ATOMIC,
                                  .code = word_code(WORD_ADD, WORD_U64),
                                  .flags = SUBMIT_INLINE | flags,
                                  .remote = b->remote,
                                  .reserve = event_bytes(0),
                                  .offset = PLACE,
                                  .length = UINT64_C(8) * words,
                                  .local_offset = 8192}};

    for (uint32_t i = 0; i < words; i++)
        a.operands[i] = 1;
    return a;
}

static void submit(struct bench *b, const struct atomic *a)
{
    struct ring_control *ring = &b->session->submit;
    uint64_t tail = atomic_load(&ring->tail);

    CU_ASSERT_FATAL(tail % RING + a->record.size <= RING);
    memcpy(b->submit + tail % RING, a, a->record.size);
    atomic_store(&ring->tail, tail + a->record.size);
}

static bool local_event(struct bench *b, struct event_record *event)
{
    for (int i = 0; i < 20; i++)
        if (bench_local_event(b, event))
            return true;
    return false;
}

/* Guards a single atomic: its target gets no event, and its own event says how many elements are
 * done. */
static void one(void)
{
    static const uint16_t flags[] = {0, SUBMIT_FETCH, SUBMIT_NO_LCE, SUBMIT_NO_RCE};

    for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]); f++)
        for (uint32_t words = 1; words <= 4; words += 3)
            for (uint32_t done = 0; done < words; done++) {
                struct bench *b = unbound_bench(true);
                struct atomic a = atomic_of(b, words, flags[f]);
                uint64_t events = bench_events(b), got;
                struct event_record event = {.size = 0};

                until_busy = done;
                memset(b->segment + 8192, 0xee, 64);
                memset(b->segment + PLACE, 0, 64);
                submit(b, &a);
                CU_ASSERT_TRUE(local_event(b, &event));
                CU_ASSERT_EQUAL(event.status, -EBUSY);
                CU_ASSERT_EQUAL(event.bytes, done);
                CU_ASSERT_EQUAL(bench_events(b), events);
                for (uint32_t i = 0; i < words; i++)
                    CU_ASSERT_EQUAL(b->segment[PLACE + UINT64_C(8) * i], i < done);
                for (uint32_t i = 0; i < words; i++) {
                    memcpy(&got, b->segment + 8192 + UINT64_C(8) * i, 8);
                    CU_ASSERT_EQUAL(got, flags[f] == SUBMIT_FETCH && i < done
                                             ? 0
                                             : UINT64_C(0xeeeeeeeeeeeeeeee));
                }
                until_busy = UINT32_MAX; /* the operations after this one are done */
                submit(b, &a);
                CU_ASSERT_EQUAL(local_event(b, &event), flags[f] != SUBMIT_NO_LCE);
                CU_ASSERT_EQUAL(b->segment[PLACE], done > 0 ? 2 : 1);
                bench_free(b);
            }
}

/* Guards a batch: atomics before the busy word are done and have their events, the others are not
 * and end with -EBUSY. */
static void in_a_batch(void)
{
    enum { COUNT = 6 };
    static const uint16_t flags[] = {0, SUBMIT_FETCH, SUBMIT_NO_LCE, SUBMIT_NO_RCE};

    for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]); f++)
        for (uint32_t done = 0; done < COUNT; done++) {
            struct bench *b = unbound_bench(true);
            uint64_t events = bench_events(b), released = atomic_load(&b->session->released);
            bool silent = flags[f] & SUBMIT_NO_LCE;
            struct event_record event;

            until_busy = done;
            for (uint32_t i = 0; i < COUNT; i++) {
                struct atomic a = atomic_of(b, 1, flags[f]);

                a.record.lid = i;
                submit(b, &a);
            }
            for (uint32_t i = silent ? done : 0; i < COUNT; i++) {
                CU_ASSERT_TRUE(local_event(b, &event));
                CU_ASSERT_EQUAL(event.id, i);
                CU_ASSERT_EQUAL(event.status, i < done ? 0 : -EBUSY);
                CU_ASSERT_EQUAL(event.bytes, i >= done ? 0 : flags[f] & SUBMIT_FETCH ? i : 8);
            }
            CU_ASSERT_FALSE(bench_local_event(b, &event));
            CU_ASSERT_EQUAL(atomic_load(&b->session->released) - released,
                            silent ? done * event_bytes(0) : 0);
            CU_ASSERT_EQUAL(bench_events(b) - events,
                            flags[f] & SUBMIT_NO_RCE ? 0 : done * event_bytes(0));
            CU_ASSERT_EQUAL(b->segment[PLACE], done);
            bench_free(b);
        }
}

/* A notification without a local event: it fills one place of the remote ring. */
static struct atomic notification(const struct bench *b)
{
    struct atomic a = atomic_of(b, 0, SUBMIT_NO_LCE);

    a.record.kind = SUBMIT_PUT;
    a.record.code = 0;
    a.record.flags = SUBMIT_NO_LCE;
    return a;
}

/* Guards the room for a batch's events when the ring has one place left: only events of atomics
 * that were done spill, and if none was done the flow is not stopped. */
static void spilled(void)
{
    /* Spilled events, by the number of atomics that are done: one event finds the only place left.
     */
    static const uint64_t spills[] = {0, 0, 1, 2};

    for (uint32_t done = 0; done < 4; done++) {
        struct bench *b = unbound_bench(true);
        const uint32_t places = RING / event_bytes(0);
        struct event_record event;

        for (uint32_t i = 0; i < places - 1; i++) {
            struct atomic a = notification(b);

            submit(b, &a);
            bench_steps(b, 3);
        }
        until_busy = done;
        for (uint32_t i = 0; i < 4; i++) {
            struct atomic a = atomic_of(b, 1, 0);

            submit(b, &a);
        }
        for (uint32_t i = 0; i < 4; i++) {
            CU_ASSERT_TRUE(local_event(b, &event));
            CU_ASSERT_EQUAL(event.status, i < done ? 0 : -EBUSY);
        }
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, spills[done] * event_bytes(0));
        until_busy = UINT32_MAX;
        atomic_store(&b->session->remote.head, atomic_load(&b->session->remote.tail));
        bench_steps(b, 10);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, 0);
        submit(b, &(struct atomic){atomic_of(b, 1, 0).record, {1}});
        CU_ASSERT_TRUE(local_event(b, &event));
        CU_ASSERT_FALSE(b->quarantined || b->broken);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"one operation", one},
        {"in a batch", in_a_batch},
        {"with events that have spilled", spilled},
        CU_TEST_INFO_NULL,
    };

    return suite_run("busy words", tests);
}
