/*
 * A message-driven loop, after Listing 1 of Kissel and Swany, "Photon: Remote Memory Access
 * Middleware for High-Performance Runtime Systems" (2016): the completion id of a put carries an
 * operation and the place of its parcel, and the event that a probe finds starts the action. There
 * is no receive: the bytes are in place before the event can be seen.
 *
 *     origin                               target
 *     parcel --put, rid = (op, slot)--->   inbox[slot]
 *                                          probe -> action_table[op](source, slot)
 *
 * The work here: every rank sends numbers to every other, which adds them up (ADD) and answers each
 * with its square (SQUARED); the end of a rank's stream is an operation too (FINISHED).
 */
#include <pwc/pwc.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS    1000u /* that each rank sends to each other */
#define SLOTS      16u   /* parcels in flight between two ranks */
#define TIMEOUT_MS 30000

enum op {
    OP_ADD,      /* the parcel holds a number: add it, answer with its square */
    OP_SQUARED,  /* the parcel holds a square: the slot of the number is free again */
    OP_FINISHED, /* the source sends no more numbers */
    OP_COUNT,
};

struct parcel {
    uint64_t number;
};

/* One rank. Region: an inbox of SLOTS parcels for each rank and each op. */
struct here {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote **peers;        /* by rank */
    uint32_t *sent, *answered; /* numbers, by rank */
    uint32_t rank, size;
    uint32_t finished; /* ranks that send us no more numbers */
    uint32_t done;     /* ranks to which we send no more numbers */
    uint64_t sum, squares;
};

typedef int action(struct here *here, uint32_t source, uint32_t slot);

/* ---- completion ids: op and slot ------------------------------------------------------------- */

static pwc_cid command(enum op op, uint32_t slot)
{
    return pwc_cid_u64((uint64_t)op << 32 | slot);
}

static size_t place(uint32_t rank, enum op op, uint32_t slot)
{
    return (((size_t)rank * OP_COUNT + op) * SLOTS + slot) * sizeof(struct parcel);
}

static struct parcel *inbox(const struct here *here, uint32_t source, enum op op, uint32_t slot)
{
    return (struct parcel *)((char *)pwc_region_addr(here->region) + place(source, op, slot));
}

/* Parcels are small and leave packed with their record: the put copies them at once. */
static int send_parcel(struct here *here, uint32_t to, enum op op, uint32_t slot, uint64_t number)
{
    struct parcel parcel = {number};
    return pwc_put(here->peers[to], place(here->rank, op, slot), &parcel, sizeof(parcel),
                   pwc_cid_u64(0), command(op, slot), PWC_NO_LCE);
}

/* ---- actions --------------------------------------------------------------------------------- */

static int add(struct here *here, uint32_t source, uint32_t slot)
{
    uint64_t number = inbox(here, source, OP_ADD, slot)->number;
    here->sum += number;
    return send_parcel(here, source, OP_SQUARED, slot, number * number);
}

static int squared(struct here *here, uint32_t source, uint32_t slot)
{
    here->squares += inbox(here, source, OP_SQUARED, slot)->number;
    here->answered[source]++;
    return 0;
}

static int finished(struct here *here, uint32_t source, uint32_t slot)
{
    (void)source;
    (void)slot;
    here->finished++;
    return 0;
}

static action *const action_table[OP_COUNT] = {
    [OP_ADD] = add,
    [OP_SQUARED] = squared,
    [OP_FINISHED] = finished,
};

/* ---- the loop -------------------------------------------------------------------------------- */

/* Decodes the completion id, looks the action up, and runs it. */
static int rid_handler(struct here *here, const struct pwc_event *event)
{
    uint32_t op = (uint32_t)(event->id >> 32), slot = (uint32_t)event->id;
    if (event->status < 0)
        return event->status;
    if (op >= OP_COUNT || slot >= SLOTS)
        return -EBADMSG;
    return action_table[op](here, pwc_peer_rank(event->peer), slot);
}

/* Waits for an event, and then handles all events that are there. */
static int progress(struct here *here)
{
    struct pwc_event event;
    int rc = pwc_wait(here->ctx, PWC_ANY, 0, &event, TIMEOUT_MS);
    if (rc == 0)
        return -ETIMEDOUT;
    while (rc == 1) {
        rc = rid_handler(here, &event);
        if (rc == 0)
            rc = pwc_probe(here->ctx, PWC_ANY, 0, &event);
    }
    return rc;
}

/* Sends as many numbers as slots are free. A slot is free when its last number was answered. */
static int send_numbers(struct here *here)
{
    int rc = 0;
    for (uint32_t to = 0; rc == 0 && to < here->size; to++) {
        while (rc == 0 && here->sent[to] < NUMBERS && here->sent[to] - here->answered[to] < SLOTS) {
            uint32_t i = here->sent[to]++;
            rc = send_parcel(here, to, OP_ADD, i % SLOTS, i);
        }
        if (rc == 0 && here->sent[to] == NUMBERS && here->answered[to] == NUMBERS) {
            here->sent[to]++; /* so that FINISHED is sent once */
            here->done++;
            rc = send_parcel(here, to, OP_FINISHED, 0, 0);
        }
    }
    return rc;
}

static int loop(struct here *here)
{
    int rc = send_numbers(here);
    while (rc == 0 && (here->finished < here->size || here->done < here->size)) {
        rc = progress(here);
        if (rc == 0)
            rc = send_numbers(here);
    }
    return rc;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int here_open(struct here *here)
{
    struct pwc_attr attr = {0};
    int rc = pwc_init(&attr, &here->client);
    if (rc < 0)
        return rc;
    here->rank = pwc_rank(here->client);
    here->size = pwc_size(here->client);
    here->peers = calloc(here->size, sizeof(pwc_remote *));
    here->sent = calloc(here->size, sizeof(*here->sent));
    here->answered = calloc(here->size, sizeof(*here->answered));
    if (here->peers == NULL || here->sent == NULL || here->answered == NULL)
        rc = -ENOMEM;
    if (rc == 0)
        rc = pwc_ctx_create(here->client, NULL, &here->ctx);
    if (rc == 0)
        rc = pwc_alloc(here->client, place(here->size, OP_ADD, 0), PWC_REMOTE_WRITE, &here->region);
    if (rc == 0)
        rc = pwc_bind_all(here->ctx, here->region, here->peers);
    return rc;
}

/* Our last puts may still be on their way when those of all other ranks have arrived. pwc_finalize
 * completes ours, and returns how many it could not complete. */
static int here_close(struct here *here)
{
    int lost = here->client != NULL ? pwc_finalize(here->client) : 0;

    free(here->answered);
    free(here->sent);
    free(here->peers);
    return lost;
}

int main(void)
{
    struct here here = {0};
    int rc = here_open(&here);
    if (rc == 0)
        rc = loop(&here);
    uint64_t n = NUMBERS, sum = n * (n - 1) / 2, squares = (n - 1) * n * (2 * n - 1) / 6;
    if (rc == 0 && (here.sum != here.size * sum || here.squares != here.size * squares))
        rc = -EBADMSG;
    if (rc < 0)
        fprintf(stderr, "message_driven: rank %u: %s\n", here.rank, pwc_strerror(rc));
    else
        printf("message_driven: rank %u of %u: sum %llu, squares %llu\n", here.rank, here.size,
               (unsigned long long)here.sum, (unsigned long long)here.squares);
    return here_close(&here) != 0 || rc < 0;
}
