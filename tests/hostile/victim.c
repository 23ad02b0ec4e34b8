/* The honest neighbour of victim.h. Thread: its own. */
#include "tests/hostile/victim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REGION_BYTES (1u << 16)
#define SIZE         8192u
#define REST_US      200
#define MINE         UINT64_C(0x6d696e65) /* marks the ids of our own puts: hard to guess */

/* Binds the neighbour's new region: the call must return, with any result. */
static void follow(struct victim *v, uint32_t *version, pwc_remote **other)
{
    uint32_t now = atomic_load(&v->board->hostile.version);
    struct pwc_key key = v->board->hostile.key;

    if (now == *version || now & 1 || now != atomic_load(&v->board->hostile.version))
        return;
    *version = now;
    if (*other)
        (void)pwc_unbind(*other);
    if (pwc_bind(v->rank.ctx, pwc_peer_of(1, 0), &key, other) < 0)
        *other = NULL;
}

/* Puts to our own region through the library: the event must come once, and all bytes must be
 * right. */
static bool round_trip(struct victim *v)
{
    uint8_t *target = pwc_region_addr(v->own), *source = target + REGION_BYTES / 2;
    uint64_t id = MINE << 32 ^ v->rounds;
    struct pwc_event event = {0};
    int rc;

    rank_fill(source, SIZE, v->rounds);
    do {
        rc = pwc_put(v->to_self, 0, source, SIZE, pwc_cid_u64(id), pwc_cid_u64(id), 0);
    } while (rc == -EAGAIN && pwc_probe(v->rank.ctx, pwc_peer_of(1, 0), 0, &event) >= 0);
    if (rc == 0)
        rc = pwc_wait(v->rank.ctx, pwc_peer_of(0, 0), PWC_REMOTE, &event, RANK_WAIT_MS);
    if (rc == 1 && event.id == id && event.length == SIZE)
        rc = pwc_wait(v->rank.ctx, pwc_peer_of(0, 0), PWC_LOCAL, &event, RANK_WAIT_MS);
    else if (rc == 1)
        rc = -EBADMSG;
    if (rc != 1 || event.id != id || event.status != 0) {
        fprintf(stderr, "victim: round %llu: %s\n", (unsigned long long)v->rounds,
                rc == 1 ? "another event" : pwc_strerror(rc));
        return false;
    }
    return rank_check(target, SIZE, v->rounds) == 0;
}

static void *run(void *argument)
{
    struct victim *v = argument;
    pwc_remote *other = NULL;
    uint32_t version = 0;

    while (!atomic_load(&v->board->stop) && !v->failed) {
        struct pwc_event event;

        follow(v, &version, &other);
        if (other)
            (void)pwc_put(other, 0, v->rank.memory, 64, pwc_cid_u64(1), pwc_cid_u64(2), PWC_NO_LCE);
        for (int i = 0; i < 64 && pwc_probe(v->rank.ctx, pwc_peer_of(1, 0), 0, &event) == 1; i++)
            v->events++;
        v->failed = !round_trip(v);
        v->rounds += !v->failed;
        usleep(REST_US); /* leaves the processor to others */
    }
    return NULL;
}

int victim_start(struct victim *v, const struct cluster_node *node, const char *job,
                 struct board *board)
{
    struct pwc_key key;
    int rc;

    *v = (struct victim){.board = board};
    rc = rank_attach(&v->rank, node->socket, job, 0, 2, REGION_BYTES);
    if (rc == 0)
        rc = pwc_region_key(v->rank.region, &board->victim);
    if (rc == 0)
        rc = pwc_alloc(v->rank.client, REGION_BYTES, PWC_REMOTE_RW, &v->own);
    if (rc == 0)
        rc = pwc_region_key(v->own, &key);
    if (rc == 0)
        rc = pwc_bind(v->rank.ctx, pwc_peer_of(0, 0), &key, &v->to_self);
    if (rc == 0)
        rc = -pthread_create(&v->thread, NULL, run, v);
    if (rc < 0)
        rank_detach(&v->rank);
    return rc;
}

bool victim_stop(struct victim *v)
{
    pthread_join(v->thread, NULL);
    rank_detach(&v->rank);
    return !v->failed;
}
