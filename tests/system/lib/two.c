/* Two ranks, and what they have seen of each other's operations (two.h). Thread: the test's. */
#include "tests/system/lib/two.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "proto/pair_abi.h"
#include "tests/lib/message.h"
#include "proto/clock.h"

/* More slots than for requests: only some requests get a Long as reply, so the numbers of Longs
 * under way are further apart. */
enum { REPLY_SLOTS = 512, REPLY_SLOT_BYTES = 4096 };

int two_attach(const struct cluster *cluster, struct rank *r, const char *job, uint32_t number)
{
    return rank_attach(r, cluster->nodes[0].socket, job, number, 2, TWO_REGION_BYTES);
}

void two_check(struct two *t, bool right)
{
    t->right = t->right && right;
}

struct two_pairs two_pairs(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct two_pairs pairs = {0};
    char line[512];

    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long long from;

        if (strstr(line, "pwc-pair") && sscanf(line, "%llx-", &from) == 1) {
            const struct pair_shared *shared = (const void *)(uintptr_t)from;

            pairs.sent += atomic_load(&shared->origin.counts.am_ops);
            pairs.gone |= atomic_load(&shared->gone);
        }
    }
    if (maps)
        fclose(maps);
    return pairs;
}

/* Sends the reply to request `number`. */
static void reply_to(struct two *t, pwc_ctx *ctx, const struct pwc_am *m, uint64_t number)
{
    static const int kinds[] = {0, PWC_AM_SHORT, PWC_AM_MEDIUM, PWC_AM_LONG, PWC_AM_LONG};
    int kind = kinds[number % 5];
    uint8_t payload[REPLY_SLOT_BYTES];
    struct pwc_am_send reply = message_of(TWO_REPLY, &number);
    uint64_t at = number % REPLY_SLOTS * REPLY_SLOT_BYTES;

    if (kind == 0)
        return;
    if (kind == PWC_AM_LONG && number - t->back >= REPLY_SLOTS) /* its slot may be in use */
        kind = PWC_AM_MEDIUM;
    rank_fill(payload, sizeof(payload), number);
    reply.src = payload;
    reply.len = number % sizeof(payload);
    reply.lid = pwc_cid_u64(t->replies_asked);
    reply.flags = number % 3 ? PWC_NO_LCE : 0;
    two_check(t, message_reply(kind, ctx, m->token, t->b.remote, at, reply) == 0);
    two_check(t, message_reply(kind, ctx, m->token, t->b.remote, at, reply) == -EALREADY);
    t->replies_asked += reply.flags == 0;
    t->answered = number + 1;
}

static void on_request(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    struct two *t = argument;
    uint64_t number = m->arguments[0];

    two_check(t, number == t->seen++ && m->from == pwc_peer_of(0, 0) && !m->is_reply);
    for (unsigned i = 1; i < m->count; i++)
        two_check(t, m->arguments[i] == number + i);
    if (m->kind != PWC_AM_SHORT)
        two_check(t, rank_check(m->payload, m->length, number) == 0);
    if (m->token != 0)
        reply_to(t, ctx, m, number);
}

static void on_reply(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    struct two *t = argument;
    uint64_t number = m->arguments[0];

    two_check(t, number >= t->back && number % 5 != 0 && m->is_reply);
    if (m->kind != PWC_AM_SHORT)
        two_check(t, m->length == number % 4096 && rank_check(m->payload, m->length, number) == 0);
    t->back = number + 1;
}

void two_open(struct two *t, const struct cluster *cluster, const char *job)
{
    *t = (struct two){.right = true};
    CU_ASSERT_EQUAL_FATAL(two_attach(cluster, &t->a, job, 0), 0);
    CU_ASSERT_EQUAL_FATAL(two_attach(cluster, &t->b, job, 1), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_register(t->a.ctx, TWO_REPLY, on_reply, t), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_register(t->b.ctx, TWO_REQUEST, on_request, t), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&t->a, &t->b), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&t->b, &t->a), 0);
}

void two_close(struct two *t)
{
    rank_detach(&t->a);
    rank_detach(&t->b);
}

void two_take(struct two *t, unsigned kinds)
{
    struct pwc_event event;

    while (pwc_probe(t->b.ctx, PWC_ANY, kinds, &event) == 1) {
        if (event.kind == PWC_LOCAL) {
            two_check(t, event.status == 0);
            t->replied++;
            t->replied_sum += event.id;
        } else if (event.kind == PWC_REMOTE) {
            two_check(t, event.id == t->seen++);
        } else {
            two_check(t, event.status == 0 && event.id == TWO_REQUEST);
        }
    }
    while (pwc_probe(t->a.ctx, PWC_ANY, PWC_LOCAL, &event) == 1)
        two_check(t, event.status == 0 && event.id == t->ended++);
}

int two_main(struct cluster *cluster, int argc, char **argv, int (*run)(void))
{
    struct cluster_options options = {.nodes = 1};
    int status = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: %s PWCD [--KEY VALUE]...\n", argv[0]);
        return 2;
    }
    options.pwcd = argv[1];
    options.more = (const char *const *)argv + 2;
    if (cluster_open(cluster, &options) == 0)
        status = run();
    return cluster_end(cluster, status);
}
