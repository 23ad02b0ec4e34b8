/*
 * The example broadcast on 16 ranks: whichever three of them are dead, all others get the bytes,
 * and pass them on once. Four dead ranks can keep the bytes from the others, because the root has
 * four targets. Thread: one.
 */
#include <string.h>
#include "proto/handler_abi.h"
#include "tests/handlers/ranks.h"
#include "tests/suite.h"

enum { TARGETS = 4, BYTES = 100 };

extern int header(const struct pwc_h_packet *p, void *state);
extern int payload(const struct pwc_h_packet *p, void *state);

static struct ranks r;

static void begin(uint64_t seed)
{
    ranks_begin(&r, seed);
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        uint64_t state[2] = {0, TARGETS};

        memcpy(r.rank[i].state, state, sizeof(state));
        for (uint32_t t = 0; t < TARGETS; t++)
            r.rank[i].target[t] = (i + (1u << t)) % RANKS_MAX;
    }
}

/* Begins broadcast `number`, by a put from the root, rank 0, to itself, and delivers everything. */
static void broadcast(uint64_t number)
{
    struct pwc_h_sent first = {.helper = HELPER_PUT, .off = 64, .n = BYTES, .id = number};

    memset(first.bytes, (int)number, BYTES);
    ranks_send(&r, 0, &first);
    CU_ASSERT_TRUE(ranks_run(&r, header, payload));
}

/* How many live ranks have the bytes of this broadcast. */
static unsigned reached(uint64_t number)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < RANKS_MAX; i++)
        count += !r.rank[i].dead && r.rank[i].region[64] == number &&
                 memcmp(r.rank[i].region + 64, r.rank[i].region + 65, BYTES - 1) == 0;
    return count;
}

static void outlives_three(void)
{
    for (uint32_t a = 1; a < RANKS_MAX; a++)
        for (uint32_t b = a; b < RANKS_MAX; b++)
            for (uint32_t c = b; c < RANKS_MAX; c++) {
                unsigned dead;

                begin(a * 256 + b * 16 + c);
                r.rank[a].dead = r.rank[b].dead = r.rank[c].dead = true;
                dead = 1 + (b != a) + (c != b);
                for (uint64_t number = 1; number <= 2; number++) {
                    broadcast(number);
                    CU_ASSERT_EQUAL(reached(number), RANKS_MAX - dead);
                }
            }
}

static void not_four(void)
{
    begin(1);
    for (uint32_t t = 0; t < TARGETS; t++)
        r.rank[1u << t].dead = true;
    broadcast(1);
    CU_ASSERT_EQUAL(reached(1), 1);
}

/* Guards that each rank sends the bytes to its targets once: a copy that arrives later goes no
 * further. */
static void passed_on_once(void)
{
    struct pwc_h_packet p = {.kind = PWC_H_PUT, .id = 1, .length = 8, .data = "8 bytes"};

    begin(2);
    broadcast(1);
    pwc_h_enter(&r.rank[5].world);
    CU_ASSERT_EQUAL(header(&p, r.rank[5].state), PWC_H_DROP_PENDING);
    p.id = 2;
    CU_ASSERT_EQUAL(header(&p, r.rank[5].state), PWC_H_PROCESS_DATA);
    r.rank[5].world.sends = 0;
    r.rank[5].world.room = RANKS_SENDS;
    CU_ASSERT_EQUAL(payload(&p, r.rank[5].state), PWC_H_SUCCESS);
    CU_ASSERT_EQUAL(r.rank[5].world.sends, TARGETS);
}

int main(void)
{
    CU_TestInfo tests[] = {{"outlives three dead ranks", outlives_three},
                           {"but not four", not_four},
                           {"passed on once", passed_on_once},
                           CU_TEST_INFO_NULL};

    return suite_run("broadcast", tests);
}
