/* Owns the pairs of which a context is the target (neighbours.h). Thread: the context's. */
#include "neighbours.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "doorbell.h"
#include "fault.h"

void neighbours_init(struct neighbours *n, struct inbox *remote, const _Atomic uint32_t *spilled)
{
    *n = (struct neighbours){.remote = remote, .spilled = spilled};
}

void neighbours_destroy(struct neighbours *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        mapping_destroy(&n->list[i].mapping);
    free(n->list);
    n->list = NULL;
    n->count = n->room = 0;
}

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

void neighbours_add(struct neighbours *n, uint64_t peer, int descriptor)
{
    struct neighbour *entry = new_entry(n);
    struct mapping mapping = {.fd = -1};

    /* Without it the origin finds its ring full, and says so to its program. */
    if (!entry || mapping_adopt(&mapping, descriptor, PAIR_BYTES) < 0) {
        close(descriptor);
        return;
    }
    mapping_close_fd(&mapping);
    *entry = (struct neighbour){.peer = peer, .mapping = mapping};
    FAULT(PAIR_NOTED);
    if (pair_reader_init(&entry->ring, mapping.base, mapping.size) < 0)
        mapping_destroy(&mapping);
    else
        n->count++; /* its bell is armed until we have slept and woken */
}

/* Events of one neighbour before the next has its turn. */
enum { NEIGHBOUR_RUN = 16 };

static void forget(struct neighbours *n, uint32_t i)
{
    mapping_destroy(&n->list[i].mapping);
    n->list[i] = n->list[--n->count];
}

void neighbours_check(struct neighbours *n)
{
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t gone = atomic_load_explicit(&n->list[i].ring.shared->gone, memory_order_acquire);

        n->list[i].over |= (gone & PAIR_ORIGIN_GONE) != 0;
    }
    /* What is empty now stays so: what a dead origin wrote came before we were told. */
    for (uint32_t i = n->count; i-- > 0;)
        if (n->list[i].over && !pair_pending(&n->list[i].ring))
            forget(n, i);
    if (n->turn >= n->count)
        n->turn = 0;
}

/* What its origin did before, through the daemon, has not been shown yet. */
static bool must_wait(struct neighbours *n, struct neighbour *of)
{
    if (!of->waits) {
        if (atomic_load_explicit(n->spilled, memory_order_acquire))
            return true;
        (void)inbox_pending(n->remote);
        of->until = n->remote->ring.tail_seen;
        of->waits = true;
    }
    return (int64_t)(n->remote->ring.head - of->until) < 0;
}

/* The record at the head, where it may be shown: 1, 0, or -EPROTO. */
static inline int look(struct neighbours *n, struct neighbour *from, struct pair_record *record,
                       void *id)
{
    int rc = pair_look(&from->ring, record, id);

    if (rc == 1 && record->flags & PAIR_AFTER && must_wait(n, from))
        rc = 0;
    return rc;
}

static void show(const struct pair_record *record, uint64_t peer, struct pwc_event *out,
                 const void *id)
{
    out->kind = PWC_REMOTE;
    out->status = 0;
    out->peer = peer;
    out->id = record->id;
    out->data = record->id_len > 0 ? id : NULL;
    out->size = record->id_len;
    out->bytes = record->bytes;
}

/* From the neighbour whose turn it is: 1, 0, or -EPROTO. */
static inline int take(struct neighbours *n, uint64_t peer, struct pwc_event *out, void *id)
{
    struct neighbour *from = &n->list[n->turn];
    struct pair_record record;
    int rc;

    if (peer != PWC_ANY && peer != from->peer)
        return 0;
    rc = look(n, from, &record, id);
    if (rc == 1) {
        show(&record, from->peer, out, id);
        FAULT(PAIR_READ);
        pair_pass(&from->ring, &record);
        from->waits = false;
    }
    return rc;
}

/* It is the next one's turn, and who is to be forgotten goes. */
static void turn(struct neighbours *n, int rc)
{
    struct neighbour *from = &n->list[n->turn];

    if (rc < 0 || (from->over && !pair_pending(&from->ring)))
        forget(n, n->turn);
    else
        n->turn++;
    if (n->turn >= n->count)
        n->turn = 0;
}

int neighbours_take(struct neighbours *n, uint64_t peer, struct pwc_event *out, void *id)
{
    for (uint32_t left = n->count; left > 0; left--) {
        int rc = take(n, peer, out, id);

        if (rc == 1 && ++n->run < NEIGHBOUR_RUN)
            return 1;
        n->run = 0;
        turn(n, rc);
        if (rc == 1)
            return 1;
    }
    return 0;
}

bool neighbours_pending(struct neighbours *n, uint64_t peer)
{
    uint8_t id[SESSION_ID_MAX];
    struct pair_record record;

    for (uint32_t i = 0; i < n->count; i++)
        if ((peer == PWC_ANY || peer == n->list[i].peer) && look(n, &n->list[i], &record, id) != 0)
            return true;
    return false;
}

static void set_bells(struct neighbours *n, uint32_t mode)
{
    for (uint32_t i = 0; i < n->count; i++)
        atomic_store_explicit(&n->list[i].ring.shared->bell.armed, mode,
                              memory_order_relaxed); /* G */
}

void neighbours_arm(struct neighbours *n, uint32_t mode)
{
    set_bells(n, mode);
    if (n->count > 0)
        pair_barrier(); /* G */
}

void neighbours_disarm(struct neighbours *n)
{
    set_bells(n, DOORBELL_AWAKE);
}
