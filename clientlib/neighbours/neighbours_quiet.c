/*
 * Decides which of the neighbours that reach a context are looked at, and which are quiet until
 * they set their bit on the board (neighbours.h, board_abi.h; barriers G and I in pair.h). Thread:
 * the context's.
 */
#include <stdatomic.h>
#include "clientlib/attach/deadline.h"
#include "shm_ring/doorbell.h"
#include "clientlib/neighbours/neighbours.h"

enum {
    REST_LOOKS = 1024, /* between two searches for silent neighbours: a power of two */
    ALL_LOOKS = 256,   /* between two looks at all rings: a power of two */
};

#define REST_NS INT64_C(4000000) /* at least, between two barriers */

static struct board_shared *board(const struct neighbours *n)
{
    return n->board.base;
}

static void swap(struct neighbours *n, uint32_t a, uint32_t b)
{
    struct neighbour was = n->list[a];

    n->list[a] = n->list[b];
    n->list[b] = was;
}

static void set_bell(const struct neighbour *of, uint32_t mode)
{
    atomic_store_explicit(&of->ring.ring->bell.armed, mode, memory_order_relaxed); /* G */
}

void neighbours_activate(struct neighbours *n, uint32_t i)
{
    swap(n, i, n->active++);
}

void neighbours_listen_to_all(struct neighbours *n)
{
    n->active = n->count;
}

/* Takes all bits of each word: bits of slots without a quiet neighbour are ignored. */
static bool take_calls(struct neighbours *n, uint64_t *calls)
{
    bool any = false;

    for (uint32_t i = 0; i < n->board_words; i++) {
        _Atomic uint64_t *word = &board(n)->called[i];

        calls[i] = atomic_load_explicit(word, memory_order_relaxed);
        if (calls[i] != 0) {
            calls[i] = atomic_exchange_explicit(word, 0, memory_order_acquire); /* I */
            any = true;
        }
    }
    return any;
}

static void activate_callers(struct neighbours *n, const uint64_t *calls)
{
    for (uint32_t i = n->active; i < n->count; i++) {
        uint32_t slot = n->list[i].slot;

        if (calls[slot / 64] >> slot % 64 & 1) {
            set_bell(&n->list[i], DOORBELL_AWAKE);
            neighbours_activate(n, i);
        }
    }
}

/* Activates all neighbours that have written, whether they have set their bit or not. */
static void activate_writers(struct neighbours *n)
{
    for (uint32_t i = n->active; i < n->count; i++)
        if (pair_pending(&n->list[i].ring)) {
            set_bell(&n->list[i], DOORBELL_AWAKE);
            neighbours_activate(n, i);
        }
}

/* ---- rest ----------------------------------------------------------------------------------- */

static bool is_silent(const struct neighbour *of)
{
    return of->slot != BOARD_NONE && of->ring.head == of->rested_at && !of->over &&
           !pair_pending(&of->ring) &&
           atomic_load_explicit(&of->ring.shared->origin.mapped, memory_order_acquire) == 1;
}

/* Sets the bells of all silent neighbours to quiet, so that their origins call when they write, and
 * moves these neighbours to the end of the active ones. Returns the index of the first. */
static uint32_t announce(struct neighbours *n)
{
    uint32_t from = n->active;

    for (uint32_t i = n->active; i-- > 0;) {
        bool silent = is_silent(&n->list[i]);

        n->list[i].rested_at = n->list[i].ring.head;
        if (silent) {
            set_bell(&n->list[i], DOORBELL_QUIET);
            swap(n, i, --from);
        }
    }
    return from;
}

static void rest(struct neighbours *n)
{
    uint32_t from = announce(n), end = n->active;

    if (from == end)
        return;
    (void)doorbell_fence_others(); /* G: with a pair we have registered */
    n->active = from;
    for (uint32_t i = from; i < end; i++)
        if (pair_pending(&n->list[i].ring)) {
            set_bell(&n->list[i], DOORBELL_AWAKE);
            neighbours_activate(n, i);
        }
    n->turn = n->run = 0;
}

static void rest_at_times(struct neighbours *n)
{
    int64_t now = clock_now();

    if (now - n->rested < REST_NS || n->polled)
        return;
    n->rested = now;
    rest(n);
}

void neighbours_listen(struct neighbours *n)
{
    uint64_t calls[BOARD_SLOTS / 64];

    if (!n->board.base)
        return;
    if (n->active < n->count && take_calls(n, calls))
        activate_callers(n, calls);
    if (++n->looks % ALL_LOOKS == 0)
        activate_writers(n);
    if (n->looks % REST_LOOKS == 0)
        rest_at_times(n);
}
