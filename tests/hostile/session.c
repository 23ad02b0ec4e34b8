/* A hostile client without a library (hostile.h). Thread: its process's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/hostile/hostile.h"
#include "tests/lib/raw/session.h"
#include "tests/hostile/records.h"
#include "tests/hostile/values.h"

#define RECORDS   48u  /* records of a session, before attack_race */
#define RACES     32u  /* rounds of attack_race */
#define RACE      256u /* words in each round */
#define TRIES     2000
#define PATIENCE  40 /* attempts to submit without room */
#define GOOD_PUTS 16u
#define NEAR      2048u /* bytes after the tail */

struct attacker {
    const struct hostile *hostile;
    struct daemon at; /* only the socket is used */
    struct values values;
    struct raw_session s;
    struct given given;
    bool stuck; /* the daemon takes no more submissions */
};

static bool done(const struct attacker *a)
{
    return atomic_load(&a->hostile->board->stop) ||
           tally_sum(a->hostile->tally) >= a->hostile->mutations;
}

static bool live(const struct attacker *a)
{
    return atomic_load(&a->s.shared->state) == SESSION_LIVE;
}

/* Opens a session; tries again, because the daemon refuses while another hostile client holds all
 * connections, or while our rank is being freed. */
static bool open_session(struct attacker *a)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const struct hostile *h = a->hostile;

    for (int i = 0; i < TRIES && !atomic_load(&h->board->stop); i++) {
        struct answer bound;

        if (raw_session_open(&a->s, &a->at, h->job, h->rank, h->size) == 0) {
            a->given =
                (struct given){.remotes = {a->s.remote, a->s.remote}, .segment = a->s.segment};
            if (ask_bind(a->s.socket, a->s.session, (h->rank + 1) % h->size, NULL, &bound) == 0)
                a->given.remotes[1] = bound.handle;
            atomic_store(&a->s.shared->handlers[0], UINT64_MAX);
            a->stuck = false;
            atomic_fetch_add(&h->tally->attached, 1);
            return true;
        }
        raw_session_close(&a->s);
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Closes the session, and counts the reason that the daemon gave, if it has ended the session. */
static bool close_session(struct attacker *a)
{
    struct answer last;
    bool well = true;

    if (!live(a)) {
        if (ask_nothing(a->s.socket, &last) == -EPROTO)
            tally_reason(a->hostile->tally, last.text);
        else
            well = false;
        well = raw_hangs_up(a->s.socket) && well;
        if (!well)
            fprintf(stderr, "a session that was ended without a reason, or not hung up\n");
    }
    raw_session_close(&a->s);
    return well;
}

/* Consumes all events, as the library would. */
static void consume(struct raw_session *s)
{
    struct ring_control *const rings[] = {&s->shared->local, &s->shared->remote,
                                          &s->shared->reply_event};

    for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
        atomic_store_explicit(&rings[i]->head, atomic_load(&rings[i]->tail), memory_order_release);
}

static bool has_room(struct attacker *a, uint32_t size)
{
    struct raw_session *s = &a->s;

    for (int i = 0; i < PATIENCE && live(a); i++) {
        if (s->tail - atomic_load(&s->shared->submit.head) + size <= RAW_RING / 2)
            return true;
        raw_ring(s);
        consume(s);
        usleep(50);
    }
    a->stuck = true;
    return false;
}

/* ---- acts ------------------------------------------------------------------------------------ */

/* Submits records with wrong fields among right ones. */
static void attack_records(struct attacker *a)
{
    struct raw_session *s = &a->s;

    for (uint32_t i = 0; i < RECORDS && live(a) && !done(a); i++) {
        bool answer = values_below(&a->values, 16) == 0;
        bool wrong = values_below(&a->values, 4) != 0;
        struct bytes b;
        uint32_t size;

        a->given.token = (uint32_t)values_below(&a->values, 8);
        record_make(&b, &a->values, &a->given, answer);
        size = b.record.size;
        if (!has_room(a, size))
            return;
        if (wrong)
            tally_count(a->hostile->tally, TARGET_RECORD, record_spoil(&b, &a->values));
        (answer ? raw_answer : raw_submit)(s, &b, size, size);
        consume(s);
    }
}

/* Changes words of the header, and restores each, so that more words are tried before the session
 * ends. */
static void attack_header(struct attacker *a)
{
    _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)a->s.shared;
    const uint64_t count = offsetof(struct session_shared, ended_remotes) / 8 + 8;

    for (uint32_t i = 0; i < RECORDS && live(a) && !done(a); i++) {
        uint64_t at = values_below(&a->values, count);
        uint64_t right = atomic_load(&words[at]);
        struct submit_record put = raw_put(&a->s);

        if (at == offsetof(struct session_shared, state) / 8)
            continue; /* shows us that the session is over */
        if (!has_room(a, put.size))
            return;
        atomic_store(&words[at], values_wrong(&a->values, right));
        raw_submit(&a->s, &put, put.size, put.size);
        if (values_below(&a->values, 2))
            atomic_store(&words[at], right);
        tally_count(a->hostile->tally, TARGET_HEADER, 1);
        consume(&a->s);
    }
}

static void submit_good(struct attacker *a)
{
    for (uint32_t i = 0; i < GOOD_PUTS; i++) {
        struct bytes b;

        record_make(&b, &a->values, &a->given, false);
        if (a->s.tail - atomic_load(&a->s.shared->submit.head) + b.record.size > RAW_RING / 2)
            return;
        raw_submit(&a->s, &b, b.record.size, b.record.size);
    }
}

/* A word that the daemon will read soon, or any word. */
static volatile uint64_t *word_at(struct attacker *a, uint64_t choice)
{
    uint64_t at = choice >> 8;

    if (choice & 1)
        return &((volatile uint64_t *)(void *)a->s.memory)[at % (RAW_SEGMENT / 8)];
    if (choice & 6)
        at = (a->s.tail - at % NEAR) / 8;
    return &((volatile uint64_t *)(void *)a->s.submit)[at % (RAW_RING / 8)];
}

/* Changes any words of rings and segment while the daemon reads right records. */
static void attack_race(struct attacker *a)
{
    for (uint32_t round = 0; round < RACES && live(a) && !done(a); round++) {
        submit_good(a);
        for (uint32_t i = 0; i < RACE; i++) {
            uint64_t word = values_any(&a->values);
            volatile uint64_t *at = word_at(a, word);
            uint64_t right = *at;

            *at = values_wrong(&a->values, right);
            if (word & 128)
                *at = right;
        }
        tally_count(a->hostile->tally, TARGET_RACE, RACE);
        consume(&a->s);
    }
}

int hostile_session(const struct hostile *h)
{
    static void (*const attacks[])(struct attacker *) = {
        attack_records, attack_header, attack_records, attack_header, attack_race};
    struct attacker *a = calloc(1, sizeof(*a));
    bool well = a != NULL;

    if (!a)
        return 1;
    a->hostile = h;
    values_init(&a->values, h->seed);
    memcpy(a->at.socket, h->node->socket, sizeof(a->at.socket) - 1);
    while (well && !done(a)) {
        if (!open_session(a)) {
            well = atomic_load(&h->board->stop);
            break;
        }
        while (live(a) && !a->stuck && !done(a))
            attacks[values_below(&a->values, sizeof(attacks) / sizeof(attacks[0]))](a);
        well = close_session(a);
    }
    free(a);
    return well ? 0 : 1;
}
