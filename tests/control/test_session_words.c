/*
 * Each index of a session's rings out of range, words that the daemon has only published, and
 * records that change while it reads them.
 *
 *     test_session_words PWCD
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "tests/control/lib/hostile_client.h"

#define INDEX   "submission ring: tail or record size out of range"
#define EVENT   "event ring: head out of range"
#define RESERVE "submission: more local events than the ring has room for"

/* ---- indices of the rings -------------------------------------------------------------------- */

static void tails_out_of_range(void)
{
    static const struct {
        int served; /* puts before the bad tail */
        uint64_t tail;
    } rows[] = {
        {0, 4},  {0, 1}, {0, RAW_RING + 8}, {0, UINT64_MAX - 7}, {0, UINT64_C(1) << 63},
        {1, 68}, {1, 0}, {1, 56},           {1, RAW_RING + 72},  {1, UINT64_MAX - 7},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raw_session s;

        hostile_open(&s);
        for (int n = 0; n < rows[i].served; n++)
            hostile_served(&s);
        raw_set_tail(&s, rows[i].tail);
        hostile_quarantined(&s, INDEX);
    }
}

/* At each submission the daemon reads the head of the ring of local events. */
static void local_heads_out_of_range(void)
{
    static const struct {
        bool seen; /* the daemon has seen that one event was consumed */
        uint64_t head;
    } rows[] = {
        {false, 8},  {false, 4}, {false, UINT64_MAX - 7}, {true, 0},
        {true, 100}, {true, 44}, {true, UINT64_MAX - 7},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raw_session s;
        struct submit_record put;

        hostile_open(&s);
        put = raw_put(&s);
        for (int n = 0; rows[i].seen && n < 2; n++)
            hostile_served(&s);
        atomic_store(&s.shared->local.head, rows[i].head);
        raw_submit(&s, &put, sizeof(put), put.size);
        hostile_quarantined(&s, EVENT);
    }
}

/* The client puts to itself until the ring of remote events is full. Then the daemon reads that
 * ring's head. */
static void remote_heads_out_of_range(void)
{
    static const uint64_t heads[] = {4, RAW_RING + 8, UINT64_MAX - 7};
    const int fill = RAW_RING / EVENT_BYTES;

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct raw_session s;
        struct submit_record put;

        hostile_open(&s);
        put = raw_put(&s);
        put.length = 0;
        for (int n = 0; n < fill; n++) {
            raw_submit(&s, &put, sizeof(put), put.size);
            hostile_event(&s, 0);
        }
        atomic_store(&s.shared->remote.head, heads[i]);
        raw_submit(&s, &put, sizeof(put), put.size);
        hostile_quarantined(&s, EVENT);
    }
}

/* The client never consumes events, and submits more operations than there is room for their
 * events. */
static void events_not_consumed(void)
{
    struct raw_session s;
    struct submit_record put;

    hostile_open(&s);
    put = raw_put(&s);
    put.flags = SUBMIT_NO_RCE;
    for (uint32_t n = 0; n < RAW_RING / sizeof(put); n++)
        memcpy(s.submit + n * sizeof(put), &put, sizeof(put));
    raw_set_tail(&s, RAW_RING);
    /* The ring has room for exactly so many events: wait until all these operations have ended. */
    for (int i = 0; i < 20000 && atomic_load(&s.shared->ended) < RAW_RING / sizeof(put); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    raw_set_tail(&s, 2 * RAW_RING);
    hostile_quarantined(&s, RESERVE);
}

/* ---- published words ------------------------------------------------------------------------- */

/* The daemon does not read back words that it only publishes: the client overwrites all of them,
 * and is still served. */
static void published_words(void)
{
    struct raw_session s;

    hostile_open(&s);
    hostile_served(&s);
    atomic_store(&s.shared->submit.head, UINT64_MAX);
    atomic_store(&s.shared->remote.tail, 12345);
    atomic_store(&s.shared->ended, UINT64_MAX);
    s.shared->magic = 0;
    s.shared->version = UINT32_MAX;
    s.shared->context = UINT32_MAX;
    s.shared->rank = UINT32_MAX;
    s.shared->message_max = UINT32_MAX;
    memset(&s.shared->sizes, 0xff, sizeof(s.shared->sizes));
    s.shared->sizes.submit = RAW_RING; /* raw_put of this test reads it */
    hostile_served(&s);
    atomic_store(&s.shared->submit_bell.armed, UINT32_MAX);
    hostile_served(&s);
    for (uint32_t mode = 1; mode != 0; mode = mode < 8 ? mode + 1 : mode == 8 ? UINT32_MAX : 0) {
        atomic_store(&s.shared->event_bell.armed, mode);
        hostile_served(&s);
    }
    hostile_leave(&s);
}

/* ---- while the daemon reads ------------------------------------------------------------------ */

struct scribbler {
    struct raw_session *session;
    _Atomic bool started, stop;
};

/* Writes random values into random words of a record, all the time. */
static void *scribble(void *argument)
{
    struct scribbler *scribbler = argument;
    volatile uint64_t *words = (volatile uint64_t *)(void *)scribbler->session->submit;
    uint64_t random = 88172645463325252u;

    scribbler->started = true;
    while (!scribbler->stop) {
        uint64_t word, good;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        word = random % (RAW_RING / 8);
        good = words[word];
        words[word] = random >> 32 & 1 ? random : good ^ UINT64_C(1) << (random >> 40) % 64;
        words[word] = good;
    }
    return NULL;
}

/* Submits records one by one, or as many small ones at once as form a batch. */
static void records_that_change(void)
{
    enum { SESSIONS = REPETITIONS, PUTS = 2000, ROW = 16 };

    for (int i = 0; i < 2 * SESSIONS; i++) {
        bool row = i % 2;
        struct raw_session s;
        struct scribbler scribbler = {.session = &s};
        struct {
            struct submit_record record;
            uint8_t payload[64]; /* so long that no record wraps at the ring's end */
        } puts[ROW] = {0};
        uint32_t count = row ? ROW : 1;
        uint32_t size = row ? sizeof(puts[0]) : sizeof(puts[0].record);
        pthread_t thread;

        hostile_open(&s);
        for (uint32_t n = 0; n < ROW; n++) {
            puts[n].record = raw_put(&s);
            puts[n].record.flags = SUBMIT_NO_LCE | SUBMIT_NO_RCE | (row ? SUBMIT_INLINE : 0);
            puts[n].record.size = size;
        }
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, scribble, &scribbler), 0);
        while (!scribbler.started)
            ;
        for (uint32_t n = 0; n < PUTS && atomic_load(&s.shared->state) == SESSION_LIVE;) {
            if (s.tail - atomic_load(&s.shared->submit.head) > RAW_RING - count * size)
                continue;
            raw_submit(&s, puts, count * size, count * size);
            n += count;
        }
        scribbler.stop = true;
        pthread_join(thread, NULL);
        hostile_leave(&s);
        CU_ASSERT_TRUE_FATAL(hostile_others_served());
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"tails out of range", tails_out_of_range},
                           {"heads of local events out of range", local_heads_out_of_range},
                           {"heads of remote events out of range", remote_heads_out_of_range},
                           {"events not consumed", events_not_consumed},
                           {"published words", published_words},
                           {"records that change", records_that_change},
                           {"others go on", hostile_others_go_on},
                           CU_TEST_INFO_NULL};

    return hostile_main(argc, argv, "session_words", tests);
}
