/*
 * A hostile client with the library (hostile.h): it writes anything into all memory that it shares
 * with the daemon and with a neighbour, and calls the library in between. So the library also reads
 * senseless words, as if its daemon were hostile.
 *
 * Thread: its process's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "tests/hostile/hostile.h"
#include "pwc/am.h"
#include "tests/lib/rank.h"
#include "proto/session_abi.h"
#include "tests/hostile/values.h"

#define REGION_BYTES (1u << 16)
#define SHARED_MAX   16u
#define WORDS        64u /* words that are written between two calls */
#define TURNS        400u
#define TRIES        2000
#define WAIT_MS      1

struct shared {
    volatile uint64_t *words;
    uint64_t count;
    enum target target;
};

struct attacker {
    const struct hostile *hostile;
    struct values values;
    struct rank rank;
    struct shared shared[SHARED_MAX];
    uint32_t shared_count;
};

static bool done(const struct attacker *a)
{
    return atomic_load(&a->hostile->board->stop) ||
           tally_sum(a->hostile->tally) >= a->hostile->mutations;
}

/* Parses a line of /proc/self/maps, and notes the mapping if it is shared and writable. */
static void take_mapping(struct attacker *a, const char *line)
{
    unsigned long start, end;
    bool pair = strstr(line, "memfd:pwc-pair") != NULL;

    if (a->shared_count == SHARED_MAX || !strstr(line, " rw-s ") || !strstr(line, "memfd:pwc-") ||
        sscanf(line, "%lx-%lx", &start, &end) != 2)
        return;
    a->shared[a->shared_count++] = (struct shared){
        .words = (volatile uint64_t *)start, // NOLINT: an address, from the kernel
        .count = (end - start) / 8,
        .target = pair ? TARGET_PAIR : TARGET_RACE,
    };
}

static bool find_shared(struct attacker *a)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];

    a->shared_count = 0;
    while (maps && fgets(line, sizeof(line), maps))
        take_mapping(a, line);
    if (maps)
        fclose(maps);
    return a->shared_count > 0;
}

/* Publishes the key of our region on the board; the neighbour binds each new key. */
static void show_key(const struct attacker *a)
{
    struct board *board = a->hostile->board;
    struct pwc_key key;

    if (pwc_region_key(a->rank.region, &key) < 0)
        return;
    atomic_fetch_add(&board->hostile.version, 1);
    board->hostile.key = key;
    atomic_fetch_add(&board->hostile.version, 1);
}

static void on_message(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
}

static bool attach(struct attacker *a)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const struct hostile *h = a->hostile;

    for (int i = 0; i < TRIES && !done(a); i++) {
        if (rank_attach(&a->rank, h->node->socket, h->job, h->rank, h->size, REGION_BYTES) == 0) {
            if (pwc_bind(a->rank.ctx, pwc_peer_of(0, 0), &h->board->victim, &a->rank.remote) == 0 &&
                find_shared(a)) {
                (void)pwc_am_register(a->rank.ctx, 1, on_message, NULL);
                show_key(a);
                atomic_fetch_add(&h->tally->attached, 1);
                return true;
            }
            rank_detach(&a->rank);
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Chooses a word; for the lines of a pair often one that looks right: small sequences, kinds,
 * lengths of ids. */
static uint64_t word_for(struct attacker *a, const struct shared *s, uint64_t at, uint64_t right)
{
    struct values *v = &a->values;

    if (s->target == TARGET_PAIR && values_below(v, 2))
        return (at / 8 - 63) | values_below(v, 4) << 32 | values_below(v, 3) << 40 |
               values_below(v, SESSION_ID_MAX + 10) << 48;
    return values_wrong(v, right);
}

/* Writes words. Words of the header are written more often than their share, and mostly restored,
 * because otherwise the session would end at once. */
static void scribble(struct attacker *a)
{
    struct values *v = &a->values;
    const struct shared *s = &a->shared[values_below(v, a->shared_count)];

    for (uint32_t i = 0; i < WORDS; i++) {
        bool head = values_below(v, 16) == 0;
        uint64_t at = values_below(v, head ? 256 : s->count), right = s->words[at];

        s->words[at] = word_for(a, s, at, right);
        if (head ? values_below(v, 64) != 0 : values_below(v, 4) == 0)
            s->words[at] = right;
    }
    tally_count(a->hostile->tally, s->target, WORDS);
}

/* Makes one call of the library. Negative: the session cannot be used any more. */
static int call(struct attacker *a)
{
    struct rank *r = &a->rank;
    struct pwc_event event;
    uint64_t n = values_any(&a->values);
    int rc;

    switch (n >> 8 & 7) {
    case 0:
        rc = pwc_get(r->remote, 0, r->memory, 64 + (n >> 20) % 8192, pwc_cid_u64(n), pwc_cid_u64(n),
                     0);
        break;
    case 1:
        rc = pwc_put(r->remote, 0, r->memory, 8, pwc_cid_u64(n),
                     pwc_cid_bytes(r->memory, (n >> 20) % 1000), 0);
        break;
    case 2:
        rc = pwc_am_short(r->remote, &(struct pwc_am_send){.index = 1,
                                                           .arguments = &n,
                                                           .count = 1,
                                                           .lid = pwc_cid_u64(n),
                                                           .flags = PWC_AM_NO_REPLY});
        break;
    case 3:
        rc = pwc_wait(r->ctx, PWC_ANY, 0, &event, WAIT_MS);
        break;
    case 4:
    case 5:
        rc = pwc_probe(r->ctx, PWC_ANY, 0, &event);
        break;
    default:
        rc = pwc_put(r->remote, 0, r->memory, (n >> 20) % 8192, pwc_cid_u64(n), pwc_cid_u64(n),
                     PWC_NO_LCE);
        break;
    }
    return rc == -ESHUTDOWN || rc == -EPROTO ? rc : 0;
}

int hostile_neighbour(const struct hostile *h)
{
    static struct attacker a;
    char why[TALLY_REASON_MAX];

    a.hostile = h;
    values_init(&a.values, h->seed);
    while (!done(&a)) {
        int rc = 0;

        if (!attach(&a))
            return done(&a) ? 0 : 1;
        for (uint32_t turn = 0; turn < TURNS && rc == 0 && !done(&a); turn++) {
            scribble(&a);
            rc = call(&a);
        }
        if (rc == -ESHUTDOWN) {
            pwc_error_text(a.rank.client, why, sizeof(why));
            tally_reason(h->tally, why);
        }
        rank_detach(&a.rank);
    }
    return 0;
}
