/* Owns the pairs of contexts that reach each other without the daemon (pairs.h). Thread:
 * control. */
#include "daemon/control/clients/pairs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "daemon/control/clients/message.h"
#include "shm_ring/pair.h"
#include "shm_ring/sigbus.h"

/* The name of a pair's descriptor in the store (store.h). */
static const char *name_of(const struct pair *p, char *name)
{
    int n = snprintf(name, STORE_NAME_MAX, "pair.%" PRIu64 ".%u.%u.%u.%u", p->number,
                     p->origin->client->worker->engine, p->origin->handle,
                     p->target->client->worker->engine, p->target->handle);

    if (p->slot != BOARD_NONE)
        snprintf(name + n, STORE_NAME_MAX - (size_t)n, ".%u", p->slot);
    return name;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static struct pair **same_hash(struct control *control, const struct client_session *origin,
                               const struct client_session *target)
{
    uint32_t hash = origin->handle * 2654435761u + origin->client->worker->engine;

    hash = (hash ^ target->handle) * 2654435761u + target->client->worker->engine;
    return &control->pairs[hash >> 8 & (CONTROL_PAIR_HASHES - 1)];
}

static struct pair *find(struct control *control, const struct client_session *origin,
                         const struct client_session *target)
{
    struct pair *p = *same_hash(control, origin, target);

    while (p && (p->origin != origin || p->target != target))
        p = p->same_hash.next;
    return p;
}

/* Finds a pair's place in a list by its offset in struct pair, which is the same for all pairs of
 * the list. */
static struct pair_place *place_in(struct pair *p, size_t offset)
{
    return (void *)((uint8_t *)p + offset);
}

static void list_add(struct pair **first, struct pair *p, size_t offset)
{
    *place_in(p, offset) = (struct pair_place){.next = *first, .at = first};
    if (*first)
        place_in(*first, offset)->at = &place_in(p, offset)->next;
    *first = p;
}

static void list_remove(struct pair *p, size_t offset)
{
    struct pair_place *place = place_in(p, offset);

    *place->at = place->next;
    if (place->next)
        place_in(place->next, offset)->at = place->at;
    *place = (struct pair_place){0};
}

static void pair_link(struct pair *p)
{
    list_add(same_hash(p->origin->client->control, p->origin, p->target), p,
             offsetof(struct pair, same_hash));
    list_add(&p->origin->pairs_from, p, offsetof(struct pair, of_origin));
    list_add(&p->target->pairs_to, p, offsetof(struct pair, of_target));
    p->origin->pairs++;
    p->origin->client->control->pairs_live++;
    if (p->slot < BOARD_SLOTS)
        p->target->board_slots[p->slot / 64] |= UINT64_C(1) << p->slot % 64;
}

static void pair_unlink(struct pair *p)
{
    list_remove(p, offsetof(struct pair, same_hash));
    list_remove(p, offsetof(struct pair, of_origin));
    list_remove(p, offsetof(struct pair, of_target));
    p->origin->pairs--;
    p->origin->client->control->pairs_live--;
    if (p->slot < BOARD_SLOTS)
        p->target->board_slots[p->slot / 64] &= ~(UINT64_C(1) << p->slot % 64);
}

static void uncharge(struct client *c)
{
    quota_give(c, QUOTA_PAIRS, 1);
    quota_give(c, QUOTA_MEMORY, PAIR_BYTES);
}

static void pair_free(struct pair *p)
{
    char name[STORE_NAME_MAX];

    if (p->same_hash.at) {
        pair_unlink(p);
        uncharge(p->origin->client);
        store_remove(&p->origin->client->control->store, "%s", name_of(p, name));
    }
    if (p->range >= 0)
        sigbus_remove(p->range);
    mapping_destroy(&p->ring);
    free(p);
}

/* Increments a count in the context's session, so that its library looks for new pairs and for
 * pairs that have ended. Wakes the library if it sleeps: where nothing is under way, no progress
 * thread would wake it. */
static void notify(const struct client_session *s)
{
    struct session_shared *shared = s->mapping.base;
    uint32_t mode;

    atomic_fetch_add_explicit(&shared->neighbours, 1, memory_order_release);
    mode = doorbell_ring(&shared->event_bell);
    if (mode == DOORBELL_FUTEX)
        doorbell_wake(&shared->event_bell);
    else if (mode == DOORBELL_FD)
        (void)send(s->wake, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- boards ---------------------------------------------------------------------------------- */

static int board_make(struct client_session *s)
{
    struct store *store = &s->client->control->store;
    struct mapping m = {.fd = -1};
    int rc = mapping_create(&m, "pwc-board", BOARD_BYTES);

    if (rc < 0)
        return rc;
    if (!store_add_spare(store, s->client->uid, m.fd, "%u.board.%u.%u", s->client->worker->engine,
                         s->handle, s->generation)) {
        mapping_destroy(&m);
        return -ENOSPC;
    }
    s->board = m.fd;
    m.fd = -1; /* the descriptor belongs to `s` now; only clients map the board */
    mapping_destroy(&m);
    return 0;
}

/* The first free slot on the board of a new pair's target, or BOARD_NONE. */
static uint32_t board_slot(struct client_session *target)
{
    const uint64_t *taken = target->board_slots;

    if (target->board < 0 && board_make(target) < 0)
        return BOARD_NONE;
    for (uint32_t i = 0; i < BOARD_SLOTS / 64; i++)
        if (~taken[i] != 0)
            return i * 64 + (uint32_t)__builtin_ctzll(~taken[i]);
    return BOARD_NONE;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Sends the new pair's descriptor, and the board's, to the target's wake socket. Does not block: a
 * socket without room is an error. */
static int send_note(const struct pair *p)
{
    const struct client *from = p->origin->client;
    struct pair_note note = {
        .peer = (uint64_t)p->origin->context << 32 | from->rank,
        .slot = p->slot,
    };
    const int descriptors[2] = {p->ring.fd, p->target->board};
    _Alignas(struct cmsghdr) uint8_t room[MESSAGE_ROOM(2)] = {0};
    struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    message_attach(&message, room, descriptors, p->slot == BOARD_NONE ? 1 : 2);
    return sendmsg(p->target->wake, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int pairs_inherit(struct client_session *origin, struct client_session *target, uint64_t number,
                  uint32_t slot, int descriptor)
{
    struct control *control = origin->client->control;
    struct pair *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return -ENOMEM;
    *p = (struct pair){.number = number,
                       .origin = origin,
                       .target = target,
                       .slot = slot,
                       .ring = {.fd = -1},
                       .range = -1};
    rc = mapping_inherit(&p->ring, descriptor, PAIR_BYTES);
    if (rc == 0)
        rc = p->range = sigbus_add(p->ring.base, p->ring.size);
    if (rc < 0) {
        p->ring.fd = -1; /* the descriptor is still the caller's */
        pair_free(p);
        return rc;
    }
    if (control->pairs_made < number)
        control->pairs_made = number;
    quota_charge(origin->client, QUOTA_PAIRS, 1);
    quota_charge(origin->client, QUOTA_MEMORY, PAIR_BYTES);
    pair_link(p);
    return 0;
}

static int pair_make(struct client_session *origin, struct client_session *target,
                     struct pair **out)
{
    struct client *c = origin->client;
    struct control *control = c->control;
    char name[STORE_NAME_MAX];
    struct pair *p;
    int rc;

    if (origin->pairs >= PAIRS_MAX || control->pairs_live >= control->pairs_most ||
        quota_take_one(c, QUOTA_PAIRS, PAIR_BYTES, NULL, 0) < 0)
        return -EDQUOT;
    p = calloc(1, sizeof(*p));
    if (!p) {
        uncharge(c);
        return -ENOMEM;
    }
    *p = (struct pair){.number = ++control->pairs_made,
                       .origin = origin,
                       .target = target,
                       .slot = board_slot(target),
                       .ring = {.fd = -1},
                       .range = -1};
    rc = mapping_create(&p->ring, "pwc-pair", PAIR_BYTES);
    if (rc < 0)
        goto fail;
    rc = p->range = sigbus_add(p->ring.base, p->ring.size);
    if (rc < 0)
        goto fail;
    pair_format(p->ring.base);
    FAULT(PAIR_MADE);
    rc = store_add_spare(&control->store, c->uid, p->ring.fd, "%s", name_of(p, name)) ? send_note(p)
                                                                                      : -ENOSPC;
    FAULT(PAIR_ANNOUNCED);
    if (rc < 0)
        goto fail;
    notify(target);
    pair_link(p);
    *out = p;
    return 0;

fail:
    store_remove(&control->store, "%s", name_of(p, name));
    uncharge(c);
    pair_free(p);
    return rc;
}

static bool may_share(const struct client_session *origin, const struct client_session *target)
{
    const struct client *a = origin->client, *b = target->client;

    return origin->direct && target->direct && !target->closing && b->state == CLIENT_SERVED &&
           a->uid == b->uid && strcmp(a->job, b->job) == 0;
}

static int add(struct pair_way *way, int descriptor)
{
    int copy = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);

    if (copy < 0)
        return -EMFILE;
    way->descriptors[way->descriptor_count++] = copy;
    return 0;
}

static void drop_descriptors(struct pair_way *way)
{
    while (way->descriptor_count > 0)
        close(way->descriptors[--way->descriptor_count]);
}

static int add_segment(struct pair_way *way, const struct client_session *target,
                       const struct engine_neighbour *found, uint32_t rights)
{
    const struct client_segment *segment = worker_segment(target->client->worker, found->segment);

    if (!segment || segment->client != target->client || segment->opening || segment->closing)
        return -ENOENT;
    way->segment_length = segment->mapping.size;
    return add(way, rights & ENGINE_REMOTE_WRITE ? segment->mapping.fd : segment->reader);
}

static void count(const struct pair_counts *shared, struct direct_counts *counts)
{
    counts->put_ops += atomic_load_explicit(&shared->put_ops, memory_order_relaxed);
    counts->put_bytes += atomic_load_explicit(&shared->put_bytes, memory_order_relaxed);
    counts->get_ops += atomic_load_explicit(&shared->get_ops, memory_order_relaxed);
    counts->get_bytes += atomic_load_explicit(&shared->get_bytes, memory_order_relaxed);
    counts->am_ops += atomic_load_explicit(&shared->am_ops, memory_order_relaxed);
    counts->am_bytes += atomic_load_explicit(&shared->am_bytes, memory_order_relaxed);
}

/* Whether a request is in the `nth` line after those that the target has read. The head of a
 * written line has the line's position. */
static bool stands(const struct pair_shared *shared, uint64_t consumed, uint32_t nth)
{
    const struct pair_line *lines = (const void *)((const uint8_t *)shared + PAIR_DATA_OFFSET);
    uint64_t position = consumed + nth;
    uint64_t head = atomic_load_explicit(&lines[position % PAIR_LINES].head, memory_order_relaxed);

    return (uint32_t)head == (uint32_t)(position + 1);
}

/* Counts the lines of requests that the target has not read. The search doubles its steps and then
 * bisects, so that it seldom reads pages of the ring that were never written: reading such a page
 * would allocate it. The two clients may write anything; then the result is any number up to
 * PAIR_LINES. */
static uint32_t unread(const struct pair *p)
{
    const struct pair_shared *shared = p->ring.base;
    uint64_t consumed = atomic_load_explicit(&shared->requests.consumed, memory_order_relaxed);
    uint32_t least = 0, most = 1;

    while (most <= PAIR_LINES && stands(shared, consumed, most - 1)) {
        least = most;
        most *= 2;
    }
    most = most <= PAIR_LINES ? most - 1 : PAIR_LINES;
    while (least < most) {
        uint32_t middle = least + (most - least) / 2;

        if (stands(shared, consumed, middle))
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

static void look_at_ring(const struct pair *p, struct direct_counts *counts)
{
    uint64_t used = (uint64_t)unread(p) * sizeof(struct pair_line);

    counts->pair_size = PAIR_RING_BYTES;
    if (used > counts->pair_used) {
        counts->pair_used = used;
        counts->pair_rank = p->origin->client->rank;
    }
}

struct direct_counts pairs_count(const struct client_session *s)
{
    struct direct_counts counts = s->counted;

    for (const struct pair *p = s->pairs_from; p; p = p->of_origin.next)
        count(&((const struct pair_shared *)p->ring.base)->origin.counts, &counts);
    for (const struct pair *p = s->pairs_to; p; p = p->of_target.next) {
        const struct pair_shared *shared = p->ring.base;

        count(&shared->target.counts, &counts);
        counts.arrived +=
            atomic_load_explicit(&shared->origin.counts.arrived, memory_order_relaxed);
        look_at_ring(p, &counts);
    }
    return counts;
}

/* Ends a pair. The side that is left may still read what is in the ring. */
static void pair_end(struct pair *p, uint32_t gone)
{
    struct pair_shared *shared = p->ring.base;

    atomic_fetch_or_explicit(&shared->gone, gone, memory_order_release);
    count(&shared->origin.counts, &p->origin->counted);
    count(&shared->target.counts, &p->target->counted);
    if (gone == PAIR_ORIGIN_GONE)
        notify(p->target);
    if (gone == PAIR_TARGET_GONE)
        notify(p->origin);
    pair_free(p);
}

void pairs_abandon(struct client_session *origin, struct client_session *target, int descriptor)
{
    bool both = origin && target;
    struct mapping ring = {.fd = -1};
    struct pair_shared *shared;
    int range;

    if (mapping_inherit(&ring, descriptor, PAIR_BYTES) < 0)
        return;
    ring.fd = -1; /* the descriptor is still the caller's */
    range = sigbus_add(ring.base, ring.size);
    if (range < 0)
        goto unmap;
    shared = ring.base;
    atomic_fetch_or_explicit(&shared->gone,
                             (!origin || both ? PAIR_ORIGIN_GONE : 0) |
                                 (!target || both ? PAIR_TARGET_GONE : 0),
                             memory_order_release);
    if (origin) {
        count(&shared->origin.counts, &origin->counted);
        notify(origin);
    }
    if (target) {
        count(&shared->target.counts, &target->counted);
        notify(target);
    }
    sigbus_remove(range);
unmap:
    mapping_destroy(&ring);
}

int pairs_connect(struct client_session *origin, struct client_session *target,
                  const struct engine_neighbour *found, uint32_t rights, struct pair_way *out)
{
    struct pair *p = find(origin->client->control, origin, target);
    int rc = may_share(origin, target) ? 0 : -EPERM;

    if (rc == 0 && !p) {
        rc = pair_make(origin, target, &p);
        out->fresh = rc == 0;
    }
    if (rc < 0)
        return rc;
    out->number = p->number;
    if (out->fresh) {
        rc = add(out, p->ring.fd);
        out->slot = p->slot;
        if (rc == 0 && p->slot != BOARD_NONE) {
            rc = add(out, p->target->board);
            out->board = true;
        }
        if (!p->origin->client->control->store.kept)
            mapping_close_fd(&p->ring);
    }
    if (rc == 0 && found->segment != UINT32_MAX)
        rc = add_segment(out, target, found, rights);
    if (rc < 0) {
        drop_descriptors(out);
        if (out->fresh)
            pair_end(p, PAIR_ORIGIN_GONE);
    }
    return rc;
}

void pairs_give_up(struct client_session *origin, uint64_t number)
{
    struct pair *p = origin->pairs_from;

    while (p && p->number != number)
        p = p->of_origin.next;
    if (p)
        pair_end(p, PAIR_ORIGIN_GONE);
}

void pairs_end(struct client_session *s)
{
    /* A context that has bound itself is both the origin and the target of a pair. */
    while (s->pairs_from)
        pair_end(s->pairs_from, s->pairs_from->target == s ? PAIR_ORIGIN_GONE | PAIR_TARGET_GONE
                                                           : PAIR_ORIGIN_GONE);
    while (s->pairs_to)
        pair_end(s->pairs_to, PAIR_TARGET_GONE);
}
