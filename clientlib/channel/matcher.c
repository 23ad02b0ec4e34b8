/*
 * Owns the hashes and lists of started requests and of unexpected notifications (matcher.h).
 * Thread: the one that owns the context.
 */
#include "clientlib/channel/matcher.h"

#include <errno.h>
#include <stdlib.h>

enum { BITS_FIRST = 4, ENTRIES_FIRST = 16 };

static uint32_t bucket_of(uint64_t peer, uint64_t id, uint32_t bits)
{
    uint64_t mixed = (peer * UINT64_C(0x9e3779b97f4a7c15) ^ id) * UINT64_C(0xc2b2ae3d27d4eb4f);

    return (uint32_t)((mixed ^ mixed >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

void matcher_init(struct matcher *m, uint32_t unexpected_max)
{
    *m = (struct matcher){
        .kept_max = unexpected_max < MATCHER_NONE ? unexpected_max : MATCHER_NONE,
        .free = MATCHER_NONE,
        .first = MATCHER_NONE,
        .last = MATCHER_NONE,
    };
}

void matcher_destroy(struct matcher *m)
{
    free(m->buckets);
    free(m->chains);
    free(m->entries);
    matcher_init(m, m->kept_max);
}

/* ---- started requests ------------------------------------------------------------------------ */

static bool is_wild(const struct matcher_request *r)
{
    return r->pattern.any_peer || r->pattern.any_tag;
}

static struct matcher_started_bucket *list_of(struct matcher *m, const struct matcher_request *r)
{
    if (is_wild(r))
        return &m->wild;
    return &m->buckets[bucket_of(r->pattern.peer, r->pattern.id, m->bucket_bits)];
}

static void append(struct matcher_started_bucket *list, struct matcher_request *r)
{
    r->before = list->last;
    r->next = NULL;
    if (list->last)
        list->last->next = r;
    else
        list->first = r;
    list->last = r;
}

static void unlink_started(struct matcher_started_bucket *list, struct matcher_request *r)
{
    if (r->before)
        r->before->next = r->next;
    else
        list->first = r->next;
    if (r->next)
        r->next->before = r->before;
    else
        list->last = r->before;
}

/* Doubles the buckets. Each new bucket gets entries of one old bucket, in their order. */
static int grow_buckets(struct matcher *m)
{
    uint32_t bits = m->buckets ? m->bucket_bits + 1 : BITS_FIRST;
    struct matcher_started_bucket *old = m->buckets;
    uint32_t count = old ? UINT32_C(1) << m->bucket_bits : 0;
    struct matcher_started_bucket *buckets = calloc((size_t)1 << bits, sizeof(*buckets));

    if (!buckets)
        return -ENOMEM;
    m->buckets = buckets;
    m->bucket_bits = bits;
    for (uint32_t i = 0; i < count; i++)
        for (struct matcher_request *r = old[i].first, *next; r; r = next) {
            next = r->next;
            append(list_of(m, r), r);
        }
    free(old);
    return 0;
}

static void insert(struct matcher *m, struct matcher_request *r)
{
    append(list_of(m, r), r);
    m->hashed += !is_wild(r);
}

/* The sole request enters the hash together with the next one. If there is no memory for more
 * buckets, the hash is slower, but still correct. */
int matcher_prepare_more(struct matcher *m)
{
    if (m->buckets && m->hashed + 2 <= UINT32_C(1) << m->bucket_bits)
        return 0;
    return grow_buckets(m) < 0 && !m->buckets ? -ENOMEM : 0;
}

void matcher_start_more(struct matcher *m, struct matcher_request *r)
{
    if (m->sole)
        insert(m, m->sole);
    m->sole = NULL;
    insert(m, r);
}

void matcher_stop_one(struct matcher *m, struct matcher_request *r)
{
    unlink_started(list_of(m, r), r);
    m->hashed -= !is_wild(r);
}

static uint32_t count_in(const struct matcher_request *r, uint32_t space)
{
    uint32_t count = 0;

    for (; r; r = r->next)
        count += r->pattern.id >> 32 == space;
    return count;
}

uint32_t matcher_started_in(const struct matcher *m, uint32_t space)
{
    uint32_t count = count_in(m->wild.first, space);

    if (m->sole)
        return m->sole->pattern.id >> 32 == space;
    for (uint32_t i = 0; m->buckets && i < UINT32_C(1) << m->bucket_bits; i++)
        count += count_in(m->buckets[i].first, space);
    return count;
}

struct matcher_request *matcher_search(const struct matcher *m, uint64_t peer, uint64_t id)
{
    struct matcher_request *exact = m->buckets[bucket_of(peer, id, m->bucket_bits)].first;

    while (exact && (exact->pattern.peer != peer || exact->pattern.id != id))
        exact = exact->next;
    for (struct matcher_request *r = m->wild.first; r && (!exact || r->number < exact->number);
         r = r->next)
        if (matcher_matches(&r->pattern, peer, id))
            return r;
    return exact;
}

/* ---- unexpected notifications ---------------------------------------------------------------- */

static struct matcher_chain *chain_of(const struct matcher *m, uint64_t peer, uint64_t id)
{
    return &m->chains[bucket_of(peer, id, m->chain_bits)];
}

static void chain_append(struct matcher *m, uint32_t number)
{
    struct matcher_unexpected *e = &m->entries[number];
    struct matcher_chain *chain = chain_of(m, e->peer, e->id);

    e->chain = MATCHER_NONE;
    if (chain->first == MATCHER_NONE)
        chain->first = number;
    else
        m->entries[chain->last].chain = number;
    chain->last = number;
}

/* Doubles the chains, and adds the entries again in the order of arrival. */
static int grow_chains(struct matcher *m)
{
    uint32_t bits = m->chains ? m->chain_bits + 1 : BITS_FIRST;
    struct matcher_chain *chains = malloc(sizeof(*chains) << bits);

    if (!chains)
        return -ENOMEM;
    for (uint32_t i = 0; i < UINT32_C(1) << bits; i++)
        chains[i] = (struct matcher_chain){MATCHER_NONE, MATCHER_NONE};
    free(m->chains);
    m->chains = chains;
    m->chain_bits = bits;
    for (uint32_t i = m->first; i != MATCHER_NONE; i = m->entries[i].next)
        chain_append(m, i);
    return 0;
}

static int grow_entries(struct matcher *m)
{
    uint32_t room = m->room ? 2 * m->room : ENTRIES_FIRST;
    struct matcher_unexpected *entries;

    if (room > m->kept_max)
        room = m->kept_max;
    entries = realloc(m->entries, room * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    m->entries = entries;
    m->room = room;
    return 0;
}

int matcher_room(struct matcher *m)
{
    if (m->kept >= m->kept_max)
        return -ENOBUFS;
    if (m->kept == m->room && grow_entries(m) < 0)
        return -ENOMEM;
    if (m->chains && m->kept < UINT32_C(1) << m->chain_bits)
        return 0;
    return grow_chains(m) < 0 && !m->chains ? -ENOMEM : 0;
}

int matcher_keep(struct matcher *m, const struct matcher_notice *notice)
{
    int rc = matcher_room(m);
    uint32_t number = m->free;

    if (rc < 0)
        return rc;
    if (number != MATCHER_NONE)
        m->free = m->entries[number].next;
    else
        number = m->fresh++;
    m->entries[number] = (struct matcher_unexpected){
        .peer = notice->peer,
        .id = notice->id,
        .bytes = notice->bytes,
        .op = notice->op,
        .before = m->last,
        .next = MATCHER_NONE,
    };
    if (m->last != MATCHER_NONE)
        m->entries[m->last].next = number;
    else
        m->first = number;
    m->last = number;
    m->kept++;
    chain_append(m, number);
    return 0;
}

/* Takes the entry out of its chain. `before` is the entry before it there, or MATCHER_NONE. */
static void chain_remove(struct matcher *m, uint32_t number, uint32_t before)
{
    const struct matcher_unexpected *e = &m->entries[number];
    struct matcher_chain *chain = chain_of(m, e->peer, e->id);

    if (before == MATCHER_NONE)
        chain->first = e->chain;
    else
        m->entries[before].chain = e->chain;
    if (chain->last == number)
        chain->last = before;
}

/* Moves the oldest entry of this peer and id to *out, if there is one. */
static bool take_exact(struct matcher *m, uint64_t peer, uint64_t id, struct matcher_notice *out)
{
    uint32_t before = MATCHER_NONE, number = chain_of(m, peer, id)->first;
    struct matcher_unexpected *e;

    for (; number != MATCHER_NONE; before = number, number = m->entries[number].chain)
        if (m->entries[number].peer == peer && m->entries[number].id == id)
            break;
    if (number == MATCHER_NONE)
        return false;
    e = &m->entries[number];
    *out = (struct matcher_notice){.peer = peer, .id = id, .bytes = e->bytes, .op = e->op};
    chain_remove(m, number, before);
    if (e->before != MATCHER_NONE)
        m->entries[e->before].next = e->next;
    else
        m->first = e->next;
    if (e->next != MATCHER_NONE)
        m->entries[e->next].before = e->before;
    else
        m->last = e->before;
    e->next = m->free;
    m->free = number;
    m->kept--;
    return true;
}

bool matcher_take_matching(struct matcher *m, const struct matcher_pattern *pattern,
                           struct matcher_notice *out)
{
    if (!pattern->any_peer && !pattern->any_tag)
        return take_exact(m, pattern->peer, pattern->id, out);
    for (uint32_t i = m->first; i != MATCHER_NONE; i = m->entries[i].next)
        if (matcher_matches(pattern, m->entries[i].peer, m->entries[i].id))
            return take_exact(m, m->entries[i].peer, m->entries[i].id, out);
    return false;
}

bool matcher_take_from(struct matcher *m, uint64_t peer, bool any_peer, struct matcher_notice *out)
{
    for (uint32_t i = m->first; i != MATCHER_NONE; i = m->entries[i].next)
        if (any_peer || m->entries[i].peer == peer)
            return take_exact(m, m->entries[i].peer, m->entries[i].id, out);
    return false;
}

void matcher_drop(struct matcher *m, uint32_t space)
{
    const struct matcher_pattern all = {
        .id = (uint64_t)space << 32, .any_peer = true, .any_tag = true};
    struct matcher_notice dropped;

    for (uint32_t i = m->first, next; i != MATCHER_NONE; i = next) {
        const struct matcher_unexpected *e = &m->entries[i];

        next = e->next;
        if (matcher_matches(&all, e->peer, e->id)) /* the oldest with this peer and id: none is left
                                                      before it */
            take_exact(m, e->peer, e->id, &dropped);
    }
}
