/* Owns the pairs of a context (neighbours.h). Thread: the context's. */
#include "clientlib/neighbours/neighbours.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shm_ring/counts.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"

void neighbours_init(struct neighbours *n, uint64_t self, uint8_t *event, uint32_t message_max)
{
    uint32_t lines = message_max <= UINT16_MAX ? pair_lines(message_max) : PAIR_LINES;

    *n = (struct neighbours){
        .self = self,
        .event = event,
        .answer_max = lines <= PAIR_RECORD_MAX ? lines : 0,
        .board = {.fd = -1},
    };
}

void neighbours_destroy(struct neighbours *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        mapping_destroy(&n->list[i].mapping);
    free(n->list);
    n->list = NULL;
    n->active = n->count = n->room = 0;
    if (n->board.base) /* in a context that was never opened all is zero */
        mapping_destroy(&n->board);
    while (n->ours)
        neighbours_drop(n, n->ours);
    if (n->block_max > 0)
        free(n->event);
    n->event = NULL;
}

/* ---- neighbours that reach us -------------------------------------------------------------------
 */

static struct neighbour *new_entry(struct neighbours *n)
{
    if (n->count == n->room) {
        uint32_t room = n->room > 0 ? 2 * n->room : 4;
        struct neighbour *list = realloc(n->list, room * sizeof(*list));

        if (!list)
            return NULL;
        n->list = list;
        n->room = room;
    }
    return &n->list[n->count];
}

static void show_all_handlers(const struct neighbours *n, struct pair_side *side)
{
    for (uint32_t i = 0; i < SESSION_HANDLERS / 64; i++)
        atomic_store_explicit(&side->handlers[i], n->handlers[i], memory_order_relaxed);
}

static int entry_open(const struct neighbours *n, struct neighbour *entry)
{
    const struct mapping *m = &entry->mapping;
    int rc = pair_reader_init(&entry->ring, m->base, m->size, PAIR_REQUESTS);

    if (rc == 0)
        rc = pair_writer_init(&entry->answers, m->base, m->size, PAIR_ANSWERS);
    if (rc < 0)
        return rc;
    entry->ring.block_max = n->block_max;
    atomic_store_explicit(&entry->ring.shared->target.counts_awaited, n->counts_awaited,
                          memory_order_relaxed);
    show_all_handlers(n, &entry->ring.shared->target);
    atomic_store_explicit(&entry->ring.shared->target.mapped, 1, memory_order_release);
    return 0;
}

/* Each note has the board, because an earlier note may have lost its descriptor. */
static void take_board(struct neighbours *n, int descriptor)
{
    if (!n->board.base && mapping_adopt(&n->board, descriptor, BOARD_BYTES) == 0)
        mapping_close_fd(&n->board);
    else
        close(descriptor);
}

void neighbours_add(struct neighbours *n, const struct pair_note *note, int descriptor, int board)
{
    struct neighbour *entry = new_entry(n);
    struct mapping mapping = {.fd = -1};

    if (board >= 0)
        take_board(n, board);
    /* If the pair cannot be mapped, `mapped` stays 0, and the origin uses the daemon. */
    if (!entry || mapping_adopt(&mapping, descriptor, PAIR_BYTES) < 0) {
        close(descriptor);
        return;
    }
    mapping_close_fd(&mapping);
    *entry = (struct neighbour){.peer = note->peer, .slot = BOARD_NONE, .mapping = mapping};
    if (note->slot < BOARD_SLOTS)
        entry->slot = note->slot;
    FAULT(PAIR_NOTED);
    if (entry_open(n, entry) < 0) {
        mapping_destroy(&mapping);
        return;
    }
    if (entry->slot != BOARD_NONE && entry->slot / 64 >= n->board_words)
        n->board_words = entry->slot / 64 + 1;
    neighbours_activate(n, n->count++); /* its bell stays armed until our next sleep has ended */
}

/* Reads a neighbour's count. A neighbour may be hostile: a count that falls is ignored. */
static uint64_t arrived_from(struct neighbour *of)
{
    uint64_t now = count_look(&of->ring.shared->origin.counts.arrived);

    if ((int64_t)(now - of->arrived) > 0)
        of->arrived = now;
    return of->arrived;
}

uint64_t neighbours_arrived(struct neighbours *n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n->count; i++)
        sum += arrived_from(&n->list[i]);
    return sum;
}

void neighbours_await_counts(struct neighbours *n, bool awaited)
{
    n->counts_awaited = awaited;
    for (uint32_t i = 0; i < n->count; i++)
        atomic_store_explicit(&n->list[i].ring.shared->target.counts_awaited, awaited,
                              memory_order_relaxed); /* G */
}

/* Fills the gap with the last active entry, and then with the last quiet one. */
void neighbours_forget(struct neighbours *n, uint32_t i)
{
    if (n->arrived_before)
        count_up(n->arrived_before, arrived_from(&n->list[i]));
    mapping_destroy(&n->list[i].mapping);
    if (i < n->active) {
        n->list[i] = n->list[--n->active];
        i = n->active;
    }
    n->list[i] = n->list[--n->count];
    if (n->turn >= n->active)
        n->turn = 0;
}

void neighbours_check(struct neighbours *n)
{
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t gone = atomic_load_explicit(&n->list[i].ring.shared->gone, memory_order_acquire);

        if (!(gone & PAIR_ORIGIN_GONE))
            continue;
        n->list[i].over = true;
        if (i >= n->active)
            neighbours_activate(n, i);
    }
    /* An empty ring stays empty, because a dead origin wrote its last record before the daemon set
     * `gone`.
     */
    for (uint32_t i = n->count; i-- > 0;)
        if (n->list[i].over && !pair_pending(&n->list[i].ring))
            neighbours_forget(n, i);
    for (struct direct_pair *p = n->ours; p; p = p->next) {
        uint32_t gone = atomic_load_explicit(&p->writer.shared->gone, memory_order_acquire);

        p->over |= (gone & PAIR_TARGET_GONE) != 0;
        if (p->over && !pair_pending(&p->answers))
            neighbours_await_none(n, p);
    }
}

/* ---- pairs by which we reach others
 * ------------------------------------------------------------------- */

void neighbours_add_ours(struct neighbours *n, struct direct_pair *pair)
{
    pair->answers.block_max = n->block_max;
    show_all_handlers(n, &pair->writer.shared->origin);
    pair->next = n->ours;
    n->ours = pair;
}

void neighbours_drop(struct neighbours *n, struct direct_pair *pair)
{
    struct direct_pair **at = &n->ours;

    while (*at != pair)
        at = &(*at)->next;
    *at = pair->next;
    neighbours_await_none(n, pair);
    mapping_destroy(&pair->ring);
    mapping_destroy(&pair->board);
    free(pair);
}

void neighbours_await_none(struct neighbours *n, struct direct_pair *pair)
{
    n->awaited -= pair->awaited;
    pair->awaited = 0;
}

/* ---- messages ------------------------------------------------------------------------------- */

int neighbours_take_messages(struct neighbours *n, uint32_t block_max)
{
    uint32_t id = block_max > SESSION_ID_MAX ? block_max : SESSION_ID_MAX;
    uint8_t *event = malloc(sizeof(struct event_record) + id);

    if (!event)
        return -ENOMEM;
    n->event = event;
    n->block_max = block_max;
    for (uint32_t i = 0; i < n->count; i++)
        n->list[i].ring.block_max = block_max;
    for (struct direct_pair *p = n->ours; p; p = p->next)
        p->answers.block_max = block_max;
    return 0;
}

void neighbours_show_handlers(struct neighbours *n, uint32_t word, uint64_t value)
{
    n->handlers[word] = value;
    for (uint32_t i = 0; i < n->count; i++)
        atomic_store_explicit(&n->list[i].ring.shared->target.handlers[word], value,
                              memory_order_relaxed);
    for (struct direct_pair *p = n->ours; p; p = p->next)
        atomic_store_explicit(&p->writer.shared->origin.handlers[word], value,
                              memory_order_relaxed);
}

/* ---- sleeping ------------------------------------------------------------------------------- */

/*
 * A sleep in a call ends once for room, and then the caller tries again. Before a sleep on the
 * descriptor several calls may have been refused, each for a different amount of room: from the
 * first refusal on, each time the target reads wakes the sleeper.
 */
static bool waits_for_room(const struct direct_pair *p, uint32_t mode)
{
    return mode == DOORBELL_FD ? p->wants_room : p->refused;
}

static void set_bells(struct neighbours *n, uint32_t mode)
{
    for (uint32_t i = 0; i < n->count; i++)
        atomic_store_explicit(&n->list[i].ring.ring->bell.armed, mode,
                              memory_order_relaxed); /* G */
    for (struct direct_pair *p = n->ours; p; p = p->next) {
        if (p->awaited > 0 || mode == DOORBELL_AWAKE)
            atomic_store_explicit(&p->answers.ring->bell.armed, mode, memory_order_relaxed); /* G */
        if (waits_for_room(p, mode) || mode == DOORBELL_AWAKE)
            atomic_store_explicit(&p->writer.ring->room_bell, mode, memory_order_relaxed); /* H */
    }
}

/* Whether another context is at the other side of a pair. In a pair with itself a context writes
 * nothing while it arms. */
static bool has_others(const struct neighbours *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].peer != n->self)
            return true;
    for (const struct direct_pair *p = n->ours; p; p = p->next)
        if (p->peer != n->self)
            return true;
    return false;
}

void neighbours_arm(struct neighbours *n, uint32_t mode)
{
    neighbours_listen_to_all(n); /* activates quiet neighbours too, since all bells are set below */
    set_bells(n, mode);
    /* With a pair this process has registered, so the call cannot fail. */
    if (has_others(n))
        (void)doorbell_fence_others(); /* G, H */
}

void neighbours_disarm(struct neighbours *n)
{
    n->polled = false;
    set_bells(n, DOORBELL_AWAKE);
}

bool neighbours_have_room(struct neighbours *n)
{
    bool found = false;

    for (struct direct_pair *p = n->ours; p; p = p->next)
        if (p->refused && (p->over || pair_look_at_consumed(&p->writer) < 0 ||
                           p->writer.consumed_seen != p->refused_at)) { /* H */
            p->refused = false;
            found = true;
        }
    return found;
}
