/* The list of a context's remotes against a plain array: which remotes are found by peer, and that
 * the list holds all. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/attach/context.h"
#include "tests/suite.h"

enum { REMOTES = 3000, PEERS = 700, STEPS = 20000 };

static struct pwc_remote remotes[REMOTES];
static bool there[REMOTES];

static uint32_t next_random(void)
{
    static uint64_t state = 7;

    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Peers as the library has them: the rank in the lower half of the word, the context in the upper
 * half. */
static pwc_peer peer_of(uint32_t i)
{
    return (pwc_peer)(i % PEERS / 2) | (pwc_peer)(i % 2) << 32;
}

/* Whether the search finds exactly the remotes of this peer, each once, the newest first. */
static bool finds_all(const struct bound_remotes *bound, pwc_peer peer)
{
    uint32_t found = 0, wanted = 0;
    uint64_t before = UINT64_MAX;

    for (const struct pwc_remote *r = bound_of_peer(bound, peer); r; r = bound_next(r)) {
        if (r->peer != peer || !there[r - remotes] || r->length > before)
            return false;
        before = r->length;
        found++;
    }
    for (uint32_t i = 0; i < REMOTES; i++)
        wanted += there[i] && remotes[i].peer == peer;
    return found == wanted;
}

static bool lists_all(const struct bound_remotes *bound)
{
    const struct pwc_remote *before = NULL;
    uint32_t count = 0;

    for (const struct pwc_remote *r = bound->first; r; before = r, r = r->next, count++)
        if (r->previous != before || !there[r - remotes])
            return false;
    return count == bound->count;
}

static void change(struct bound_remotes *bound, uint32_t i)
{
    static uint64_t now;

    remotes[i].length = now++; /* the time at which it was added */
    if (there[i])
        bound_forget(bound, &remotes[i]);
    else
        bound_add(bound, &remotes[i]);
    there[i] = !there[i];
}

static void test_against_an_array(void)
{
    struct bound_remotes bound = {.first = NULL};

    memset(remotes, 0, sizeof(remotes));
    for (uint32_t i = 0; i < REMOTES; i++)
        remotes[i].peer = peer_of(i);
    CU_ASSERT_PTR_NULL(bound_of_peer(&bound, 0));
    for (uint32_t i = 0; i < REMOTES / 2; i++)
        change(&bound, i);
    for (uint32_t step = 0; step < STEPS; step++) {
        change(&bound, next_random() % REMOTES);
        if (step % 64 == 0) {
            CU_ASSERT_FATAL(finds_all(&bound, peer_of(next_random() % REMOTES)));
            CU_ASSERT_FATAL(lists_all(&bound));
        }
    }
    CU_ASSERT_PTR_NULL(bound_of_peer(&bound, PEERS));
    CU_ASSERT_PTR_NULL(bound_of_peer(&bound, UINT64_MAX));
    for (uint32_t i = 0; i < REMOTES; i++)
        if (there[i])
            change(&bound, i);
    CU_ASSERT_PTR_NULL(bound.first);
    CU_ASSERT_EQUAL(bound.count, 0);
    CU_ASSERT(finds_all(&bound, 0));
    bound_destroy(&bound);
}

/* The hash spreads peers: no chain is long, whether ranks or contexts differ. */
static void test_chains(void)
{
    struct bound_remotes bound = {.first = NULL};
    uint32_t longest = 0;

    memset(remotes, 0, sizeof(remotes));
    for (uint32_t i = 0; i < 2048; i++) {
        remotes[i].peer = i < 1024 ? i : (pwc_peer)(i - 1024) << 32 | 5;
        bound_add(&bound, &remotes[i]);
    }
    for (uint32_t i = 0; i < UINT32_C(1) << bound.bits; i++) {
        uint32_t length = 0;

        for (const struct pwc_remote *r = bound.buckets[i]; r; r = r->beside)
            length++;
        longest = length > longest ? length : longest;
    }
    CU_ASSERT(longest <= 8);
    bound_destroy(&bound);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"against an array", test_against_an_array},
        {"chains", test_chains},
        CU_TEST_INFO_NULL,
    };

    return suite_run("bound", tests);
}
