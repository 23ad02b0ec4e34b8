/*
 * Active messages: every rank asks every other to work for it, and handlers do the work.
 * Argument: how many requests each rank sends to each rank.
 *
 *     requester                              target
 *     SQUARE  a Short, a number     --->     replies with its square
 *     ADD     a Medium, numbers     --->     replies with their sum
 *     CHECK   a Long, numbers       --->     placed in its region, replies with their sum
 *     RESULT  <--- the reply to each request; the requester checks the result
 *
 * Meanwhile each rank starts chains. A chain is three CHAIN requests without a reply: to the next
 * rank, from there to a third rank, and back. A handler must not wait, neither for room nor until a
 * remote is bound, so it only keeps the chain's next request, and the loop sends that request.
 *
 * The end of a rank's work is a message too (FINISHED): a rank that has not yet sent it may still
 * send us requests. A barrier instead would run handlers, but not send the requests that they keep.
 */
#include <pwc/am.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUESTS   999u /* default: from each rank to each rank, a third of them of each kind */
#define WINDOW     12u  /* requests that a rank may have unanswered at a time */
#define SLOTS      4u   /* for the Longs of one rank: a third of WINDOW */
#define WORDS      64u  /* in a payload */
#define PAYLOAD    (WORDS * sizeof(uint64_t))
#define CHAINS     100u /* chains that each rank starts */
#define TIMEOUT_MS 30000
#define ONE_WAY    (PWC_NO_LCE | PWC_AM_NO_REPLY | PWC_WAIT)

enum index { SQUARE, ADD, CHECK, RESULT, CHAIN, FINISHED };

/* The next request of a chain, which the loop has to send. */
struct link {
    uint32_t to;
    uint64_t arguments[2]; /* the rank where it started, and hops that are left */
};

/* One rank. Its region has SLOTS payloads from each rank, and after these SLOTS payloads to each.
 */
struct here {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote **peers;        /* by rank */
    uint32_t *sent, *answered; /* requests, by rank */
    uint32_t rank, size;
    uint32_t requests;             /* that we send to each rank */
    struct link links[3 * CHAINS]; /* our chains, and those of two other ranks that pass here */
    uint32_t first_link, link_count;
    uint32_t home;     /* chains of ours that are back */
    uint32_t finished; /* ranks that have sent us FINISHED */
    uint32_t notified; /* ranks to which we have sent FINISHED */
    int error;
};

/* No local id: with PWC_NO_LCE a message has a local event only if it fails. */
static const pwc_cid no_id;

/* ---- the numbers of a request, and its right result ------------------------------------------ */

static size_t place(uint32_t rank, uint32_t slot)
{
    return ((size_t)rank * SLOTS + slot) * PAYLOAD;
}

static uint64_t *words_at(const struct here *here, uint32_t rank, uint32_t slot)
{
    return (uint64_t *)((char *)pwc_region_addr(here->region) + place(rank, slot));
}

static void fill(uint64_t *words, uint32_t i)
{
    for (uint32_t w = 0; w < WORDS; w++)
        words[w] = (uint64_t)i * WORDS + w;
}

static uint64_t sum(const uint64_t *words)
{
    uint64_t total = 0;
    for (uint32_t w = 0; w < WORDS; w++)
        total += words[w];
    return total;
}

static uint64_t expected(uint32_t i)
{
    uint64_t first = (uint64_t)i * WORDS;
    return i % 3 == SQUARE ? (uint64_t)i * i : WORDS * first + WORDS * (WORDS - 1) / 2;
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void note(struct here *here, int rc)
{
    if (rc < 0 && here->error == 0)
        here->error = rc;
}

/* Handles SQUARE, ADD and CHECK. A reply always finds room. */
static void work(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    uint64_t i = am->arguments[0];
    uint64_t result[2] = {i, am->kind == PWC_AM_SHORT ? i * i : sum(am->payload)};
    note(argument, pwc_am_reply_short(
                       ctx, am->token,
                       &(struct pwc_am_send){
                           .index = RESULT, .arguments = result, .count = 2, .flags = PWC_NO_LCE}));
}

static void on_result(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct here *here = argument;
    uint32_t from = pwc_peer_rank(am->from);
    /* Replies of one rank arrive in the order of our requests to it. */
    if (am->arguments[0] != here->answered[from] ||
        am->arguments[1] != expected((uint32_t)am->arguments[0]))
        note(here, -EBADMSG);
    here->answered[from]++;
    (void)ctx;
}

static void add_link(struct here *here, uint32_t to, uint64_t origin, uint64_t hops)
{
    if (here->link_count == sizeof(here->links) / sizeof(here->links[0]))
        note(here, -ENOBUFS);
    else
        here->links[here->link_count++] = (struct link){to, {origin, hops}};
}

static void on_chain(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct here *here = argument;
    uint64_t origin = am->arguments[0], hops = am->arguments[1];
    uint32_t to = hops == 1 ? (uint32_t)origin : (here->rank + 1) % here->size;
    if (hops == 0)
        here->home++;
    else
        add_link(here, to, origin, hops - 1);
    (void)ctx;
}

static void on_finished(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    ((struct here *)argument)->finished++;
    (void)ctx;
    (void)am;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int send_links(struct here *here)
{
    int rc = 0;
    while (rc == 0 && here->first_link < here->link_count) {
        const struct link *link = &here->links[here->first_link++];
        rc = pwc_am_short(here->peers[link->to], &(struct pwc_am_send){.index = CHAIN,
                                                                       .arguments = link->arguments,
                                                                       .count = 2,
                                                                       .flags = ONE_WAY});
    }
    return rc;
}

/* Sends a Medium whose payload is written directly into the submit ring. */
static int send_numbers(struct here *here, uint32_t to, uint32_t i)
{
    uint64_t argument = i;
    void *payload;
    int rc = pwc_am_prepare(here->peers[to], PAYLOAD, 1, no_id, PWC_NO_LCE, &payload);
    if (rc < 0)
        return rc;
    fill(payload, i);
    return pwc_am_commit(here->ctx, ADD, PAYLOAD, &argument);
}

static int send_request(struct here *here, uint32_t to, uint32_t i)
{
    uint64_t argument = i;
    uint32_t slot = i / 3 % SLOTS;
    uint64_t *from = words_at(here, here->size + to, slot);
    switch (i % 3) {
    case SQUARE:
        return pwc_am_short(here->peers[to], &(struct pwc_am_send){.index = SQUARE,
                                                                   .arguments = &argument,
                                                                   .count = 1,
                                                                   .flags = PWC_NO_LCE});
    case ADD:
        return send_numbers(here, to, i);
    default:
        fill(from, i);
        return pwc_am_long(here->peers[to], place(here->rank, slot),
                           &(struct pwc_am_send){.index = CHECK,
                                                 .arguments = &argument,
                                                 .count = 1,
                                                 .src = from,
                                                 .len = PAYLOAD,
                                                 .flags = PWC_NO_LCE});
    }
}

/* Sends as much as the windows of requests and the submit ring allow. */
static int send_some(struct here *here)
{
    bool all = here->home == CHAINS;
    int rc = send_links(here);
    for (uint32_t to = 0; to < here->size; to++) {
        while (rc == 0 && here->sent[to] < here->requests &&
               here->sent[to] - here->answered[to] < WINDOW) {
            rc = send_request(here, to, here->sent[to]);
            if (rc == 0)
                here->sent[to]++;
        }
        all = all && here->answered[to] == here->requests;
    }
    while (rc == 0 && all && here->notified < here->size)
        rc = pwc_am_short(here->peers[here->notified++],
                          &(struct pwc_am_send){.index = FINISHED, .flags = ONE_WAY});
    return rc == -EAGAIN ? 0 : rc;
}

static int loop(struct here *here)
{
    struct pwc_event event;
    for (uint32_t i = 0; i < CHAINS; i++)
        add_link(here, (here->rank + 1) % here->size, here->rank, 2);
    int rc = send_some(here);
    while (rc == 0 && (here->finished < here->size || here->notified < here->size)) {
        /* Returns after each handler that has run. A reply makes room for the next request. */
        rc = pwc_wait(here->ctx, PWC_ANY, PWC_LOCAL | PWC_MESSAGE, &event, TIMEOUT_MS);
        if (rc == 0)
            return -ETIMEDOUT;
        if (rc == 1)
            rc = event.status < 0 ? event.status : here->error;
        if (rc == 0)
            rc = send_some(here);
    }
    return rc;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int register_handlers(struct here *here)
{
    static const pwc_am_handler handlers[] = {
        [SQUARE] = work,      [ADD] = work,       [CHECK] = work,
        [RESULT] = on_result, [CHAIN] = on_chain, [FINISHED] = on_finished,
    };
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i <= FINISHED; i++)
        rc = pwc_am_register(here->ctx, i, handlers[i], here);
    return rc;
}

static int here_open(struct here *here)
{
    int rc = pwc_init(NULL, &here->client);
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
        rc = pwc_alloc(here->client, place(2 * here->size, 0), PWC_REMOTE_WRITE, &here->region);
    /* Handlers come before the remotes: ranks that have a remote for us may send. */
    if (rc == 0)
        rc = register_handlers(here);
    return rc == 0 ? pwc_bind_all(here->ctx, here->region, here->peers) : rc;
}

/* Our last messages may still be on their way when those of all other ranks have arrived.
 * pwc_finalize completes ours, and returns how many it could not complete. */
static int here_close(struct here *here)
{
    int lost = here->client != NULL ? pwc_finalize(here->client) : 0;

    free(here->answered);
    free(here->sent);
    free(here->peers);
    return lost;
}

int main(int argc, char **argv)
{
    static struct here here = {.requests = REQUESTS};
    int rc;

    if (argc > 1) {
        char *end;
        unsigned long requests = strtoul(argv[1], &end, 10);
        if (*end != '\0' || requests == 0 || requests > 1000000)
            return fprintf(stderr, "active_messages: \"%s\": give a number from 1 to 1000000\n",
                           argv[1]),
                   2;
        here.requests = (uint32_t)requests;
    }
    rc = here_open(&here);
    if (rc == 0)
        rc = loop(&here);
    if (rc < 0)
        fprintf(stderr, "active_messages: rank %u: %s\n", here.rank, pwc_strerror(rc));
    else
        printf("active_messages: rank %u of %u: %u results, %u chains\n", here.rank, here.size,
               here.size * here.requests, here.home);
    return here_close(&here) != 0 || rc < 0;
}
