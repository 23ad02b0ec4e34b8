/*
 * A hash table over the memory of all ranks. The hash of a key gives a rank and a first slot; where
 * another key has this slot, the next slots are tried. `insert` claims a slot by compare-and-swap
 * of the slot's key, so that ranks may insert at the same time, and then puts the value; `look_up`
 * gets key and value. The rank that owns the memory runs no code to serve the others.
 *
 * Run: pwcrun --nodes 2 -n 4 -- ./hash_table
 */
#include <pwc/atomic.h>
#include <pwc/request.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4096, KEYS = 1000 }; /* of a rank */

struct slot {
    uint64_t key; /* 0: free */
    uint64_t value;
};

#define CHECK(call) check(#call, call)
static int check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "hash_table: %s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

struct table {
    pwc_remote **ranks;
    uint32_t size;
    pwc_request *request;
};

/* Returns the rank of the n-th slot to try for a key, and the slot's offset there. */
static pwc_remote *place(const struct table *t, uint64_t key, uint64_t n, uint64_t *off)
{
    uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15) >> 20;

    *off = (h / t->size + n) % SLOTS * sizeof(struct slot);
    return t->ranks[h % t->size];
}

/* Claims a slot for the key if the slot is free. Returns the slot's key from before: 0 if free. */
static uint64_t claim(const struct table *t, pwc_remote *rank, uint64_t off, uint64_t key)
{
    const uint64_t none = 0;
    struct pwc_status status;
    uint64_t before;

    CHECK(pwc_compare_swap(rank, off, PWC_U64, &none, &key, &before, pwc_cid_request(t->request),
                           PWC_CID_NONE, PWC_NO_RCE | PWC_WAIT));
    CHECK(pwc_request_wait(t->request, &status, -1));
    CHECK(status.status);
    return before;
}

static void insert(const struct table *t, uint64_t key, uint64_t value)
{
    uint64_t off, before, n = 0;
    pwc_remote *rank;

    do {
        rank = place(t, key, n++, &off);
        before = claim(t, rank, off, key);
    } while (before != 0 && before != key);
    CHECK(pwc_put_wait(rank, off + offsetof(struct slot, value), &value, sizeof(value),
                       PWC_CID_NONE, PWC_NO_RCE));
}

/* Returns the value, or 0: there is no such key. */
static uint64_t look_up(const struct table *t, uint64_t key)
{
    struct slot slot;
    uint64_t off, n = 0;

    do {
        pwc_remote *rank = place(t, key, n++, &off);

        CHECK(pwc_get_wait(rank, off, &slot, sizeof(slot), PWC_CID_NONE, PWC_NO_RCE));
    } while (slot.key != 0 && slot.key != key);
    return slot.key == key ? slot.value : 0;
}

int main(void)
{
    struct table t;
    pwc_client *client;
    pwc_region *region;
    pwc_ctx *ctx;
    uint64_t wrong = 0;

    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_alloc(client, SLOTS * sizeof(struct slot), PWC_REMOTE_RW, &region));
    CHECK(pwc_request_create(ctx, &t.request));
    t.size = pwc_size(client);
    t.ranks = calloc(t.size, sizeof(pwc_remote *));
    CHECK(t.ranks ? pwc_bind_all(ctx, region, t.ranks) : -1);

    uint64_t mine = (uint64_t)pwc_rank(client) * KEYS, all = (uint64_t)t.size * KEYS;
    for (uint64_t key = mine + 1; key <= mine + KEYS; key++)
        insert(&t, key, key * key);
    CHECK(pwc_barrier(ctx)); /* each rank has waited for the ends of its own inserts */
    for (uint64_t i = 0, key; i < KEYS; i++) {
        key = (mine + i * 7) % all + 1; /* a key of any rank */
        wrong += look_up(&t, key) != key * key;
    }
    wrong += look_up(&t, all + 1) != 0;
    printf("hash_table: rank %u: %d keys, %d wrong\n", pwc_rank(client), KEYS, (int)wrong);
    CHECK(pwc_barrier(ctx));
    free(t.ranks);
    CHECK(pwc_finalize(client));
    return wrong > 0;
}
