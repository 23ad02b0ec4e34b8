/*
 * Exchange and barrier: collective over the job's ranks, through the control connection.
 *
 * A rank that waits runs handlers and keeps events, as in a flush. A rank whose timeout has passed
 * gives up for all: the job's home then fails the exchange at each rank.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake_socket.h"
#include "clientlib/calls/wait.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"

enum {
    EXCHANGE_MAX = 4096,
    NAP_MS = 1,
};

/* How long a rank that has given up waits for the answer: a busy home may need time. */
#define ANSWER_NS INT64_C(5000000000)

struct gathering {
    uint8_t *all; /* NULL: the call is a barrier */
    uint64_t total;
    uint64_t received;
};

static int accept_piece(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__Exchanged *piece = reply->exchanged;
    struct gathering *gathering = context;

    if (piece->offset > gathering->total || piece->data.len > gathering->total - piece->offset)
        return -EPROTO;
    if (piece->data.len > 0 && gathering->all)
        memcpy(gathering->all + piece->offset, piece->data.data, piece->data.len);
    gathering->received += piece->data.len;
    FAULT(EXCHANGE_PIECE);
    if (!piece->last)
        return 0;
    return gathering->received == gathering->total ? 1 : -EPROTO;
}

/* An exchange that waits for other ranks. */
struct waiting {
    struct pwc_ctx *ctx;
    uint32_t sequence;
    int64_t give_up_at;
    bool given_up;
};

/* Makes the exchange fail for all ranks; the answer names the missing ranks. */
static void give_up(struct waiting *w)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;

    w->given_up = true;
    exchange.sequence = w->sequence;
    exchange.give_up = true;
    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    (void)daemon_send(&w->ctx->client->link, &request);
}

/* Sleeps until an event, a frame on the link, or the deadline. poll ignores descriptors that are
 * -1. */
static void sleep_beside(struct pwc_ctx *ctx, int fd, int bell, int64_t deadline)
{
    struct pollfd polled[] = {{.fd = ctx->wake_fd, .events = POLLIN},
                              {.fd = fd, .events = POLLIN},
                              {.fd = bell, .events = POLLIN}};
    int ms = deadline_poll_ms(deadline);

    wake_socket_read(ctx);
    if (wait_arm_drained(ctx, DOORBELL_FD, wait_taken_too(PWC_MESSAGE)) != 0)
        return;
    /* No bell rings when a reply gets room. */
    if ((bell < 0 || channel_holds_request(&ctx->channel)) && (ms < 0 || ms > NAP_MS))
        ms = NAP_MS;
    wait_asleep(ctx, clock_now());
    (void)poll(polled, sizeof(polled) / sizeof(polled[0]), ms);
    (void)wait_awake(ctx);
    channel_disarm(&ctx->channel);
    teams_disarm(ctx);
}

/* Runs handlers and keeps events, because the ranks that we wait for may wait for that. */
static void work(void *context, int fd, int bell, int64_t deadline)
{
    struct waiting *w = context;
    struct pwc_ctx *ctx = w->ctx;
    int64_t now = clock_now();

    if (!w->given_up && now >= w->give_up_at)
        give_up(w);
    (void)wait_collect(ctx, PWC_MESSAGE); /* an event that can't be kept waits in its ring */
    if (!wait_yield(ctx, now))
        sleep_beside(ctx, fd, bell, w->given_up ? deadline : w->give_up_at);
}

static int exchange_all(pwc_ctx *ctx, const void *mine, size_t len, void *all)
{
    struct pwc_client *client = ctx->client;
    struct gathering gathering = {.all = all, .total = (uint64_t)len * client->size};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;
    int rc = client_may_ask(client);
    int64_t limit;
    char why[80];

    if (rc < 0)
        return rc;
    rc = client_needs_size(client, "an exchange or a barrier");
    if (rc < 0)
        return rc;
    if (len > EXCHANGE_MAX) {
        snprintf(why, sizeof(why), "%zu bytes for an exchange: a rank may give %d", len,
                 EXCHANGE_MAX);
        return daemon_link_refuse(&client->link, -EINVAL, why);
    }
    exchange.sequence = atomic_fetch_add_explicit(&client->exchanges, 1, memory_order_relaxed);
    exchange.data.len = len;
    exchange.data.data = (uint8_t *)(uintptr_t)mine;
    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    limit = deadline_after_ms(client->link.timeout_ms);
    /* A restarted daemon does not know the call. Asking again is harmless. */
    do {
        struct waiting waiting = {.ctx = ctx, .sequence = exchange.sequence, .give_up_at = limit};
        const struct daemon_meanwhile meanwhile = {
            .work = work,
            .context = &waiting,
            .deadline = limit == DEADLINE_NEVER ? limit : limit + ANSWER_NS,
        };

        gathering.received = 0;
        patience_worked(&ctx->patience, (uint64_t)clock_now());
        rc = daemon_call_meanwhile(&client->link, &request, PWC__CLIENT_REPLY__BODY_EXCHANGED,
                                   accept_piece, &gathering, &meanwhile);
    } while (rc == -ECONNABORTED);
    /* Ranks may have bound us before they called the exchange. */
    if (neighbours_have_changed(ctx))
        neighbours_update(ctx, neighbour_changes(ctx));
    return rc;
}

int pwc_exchange(pwc_ctx *ctx, const void *mine, size_t len, void *all)
{
    wait_begin(ctx, SESSION_WAITS_EXCHANGE);
    int rc = exchange_all(ctx, mine, len, all);

    wait_end(ctx);
    return rc;
}

int pwc_barrier(pwc_ctx *ctx)
{
    wait_begin(ctx, SESSION_WAITS_BARRIER);
    int rc = exchange_all(ctx, NULL, 0, NULL);

    wait_end(ctx);
    return rc;
}
