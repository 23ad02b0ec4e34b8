/* Checked traffic of two ranks (bystanders.h). Thread: one of its own. */
#include "tests/lib/bystanders.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define REGION_BYTES (1u << 20)

static const size_t lengths[] = {8, 4096, 4097, 65536, REGION_BYTES / 2, 0};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static bool event_is(const struct rank *r, int kind, uint64_t id, size_t bytes)
{
    struct pwc_event event = {0};
    int rc = pwc_wait(r->ctx, PWC_ANY, (unsigned)kind, &event, RANK_WAIT_MS);

    if (rc == 1 && event.status == 0 && event.id == id && event.length == bytes)
        return true;
    fprintf(stderr, "bystander %u: %s instead of %s event %llu: id %llu, status %d, %llu bytes\n",
            r->number, rc == 1 ? "an event" : pwc_strerror(rc),
            kind == PWC_LOCAL ? "local" : "remote", (unsigned long long)id,
            (unsigned long long)event.id, event.status, (unsigned long long)event.length);
    return false;
}

/* Makes a put from the upper half of one region to the lower half of the other, and checks event
 * and bytes. */
static bool round_of(struct bystanders *b, uint64_t number)
{
    const struct rank *from = &b->ranks[number / LENGTHS % 2];
    const struct rank *to = &b->ranks[1 - number / LENGTHS % 2];
    size_t length = lengths[number % LENGTHS];
    uint8_t *source = from->memory + REGION_BYTES / 2;
    int rc;

    rank_fill(source, length, number);
    rc = pwc_put(from->remote, 0, source, length, pwc_cid_u64(number), pwc_cid_u64(~number), 0);
    if (rc < 0)
        fprintf(stderr, "bystander %u: put: %s\n", from->number, pwc_strerror(rc));
    return rc == 0 && event_is(to, PWC_REMOTE, ~number, length) &&
           rank_check(to->memory, length, number) == 0 && event_is(from, PWC_LOCAL, number, length);
}

static void *run(void *argument)
{
    struct bystanders *b = argument;

    while (!b->stop && !b->failed) {
        if (round_of(b, b->rounds))
            b->rounds++;
        else
            b->failed = true;
    }
    return NULL;
}

static int start(struct bystanders *b, const char *const sockets[2], const char *job)
{
    int rc = 0;

    *b = (struct bystanders){0};
    for (uint32_t i = 0; rc == 0 && i < 2; i++)
        rc = rank_attach(&b->ranks[i], sockets[i], job, i, 2, REGION_BYTES);
    for (uint32_t i = 0; rc == 0 && i < 2; i++)
        rc = rank_bind(&b->ranks[i], &b->ranks[1 - i]);
    if (rc == 0)
        rc = -pthread_create(&b->thread, NULL, run, b);
    b->runs = rc == 0;
    for (uint32_t i = 0; rc < 0 && i < 2; i++)
        rank_detach(&b->ranks[i]);
    return rc;
}

int bystanders_start(struct bystanders *b, const struct cluster *cluster, const char *job)
{
    return start(b, (const char *const[]){cluster->nodes[0].socket, cluster->nodes[1].socket}, job);
}

int bystanders_start_on(struct bystanders *b, const char *socket, const char *job)
{
    return start(b, (const char *const[]){socket, socket}, job);
}

bool bystanders_go_on(const struct bystanders *b)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t until = b->rounds + 2 * LENGTHS;

    /* The thread sets `failed` by itself when nothing moves any more. */
    while (!b->failed && b->rounds < until)
        nanosleep(&pause, NULL);
    return !b->failed;
}

bool bystanders_stop(struct bystanders *b)
{
    b->stop = true;
    pthread_join(b->thread, NULL);
    b->runs = false;
    for (uint32_t i = 0; i < 2; i++)
        rank_detach(&b->ranks[i]);
    return !b->failed;
}
