/* Owns ranks on the host (ranks.h). Thread: one. */
#include "tests/handlers/ranks.h"

#include <string.h>
#include "proto/handler_abi.h"

void ranks_begin(struct ranks *r, uint64_t seed)
{
    memset(r->rank, 0, sizeof(r->rank));
    r->random = seed;
    r->flying = 0;
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        r->rank[i].world = (struct pwc_h_world){
            .host = r->rank[i].region, .sent = r->rank[i].sent, .targets = RANKS_MAX};
        for (uint32_t j = 0; j < RANKS_MAX; j++)
            r->rank[i].target[j] = j;
    }
}

uint64_t ranks_draw(struct ranks *r, uint64_t below)
{
    r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (r->random >> 33) % below;
}

void ranks_send(struct ranks *r, uint32_t to, const struct pwc_h_sent *sent)
{
    uint32_t at = r->flying++;

    if (at >= RANKS_FLYING)
        return; /* ranks_run reports that more is under way than there is room for */
    r->flight[at].to = to;
    r->flight[at].sent = *sent;
}

/* Runs a handler as the daemon does: a handler that finds no room is run again, and what it has
 * sent is dropped. */
static int run(struct ranks *r, struct rank *rank, ranks_handler *handler, struct pwc_h_packet *p)
{
    int returned;

    rank->world.sends = 0;
    rank->world.room = (unsigned)(ranks_draw(r, 4) == 0 ? ranks_draw(r, 3) : RANKS_SENDS);
    returned = handler(p, rank->state);
    if (returned == PWC_H_AGAIN) {
        p->flags |= PWC_H_RERUN;
        rank->world.sends = 0;
        rank->world.room = RANKS_SENDS;
        returned = handler(p, rank->state);
        p->flags &= ~(uint32_t)PWC_H_RERUN;
    }
    for (unsigned i = 0; i < rank->world.sends; i++)
        ranks_send(r, rank->target[rank->sent[i].target], &rank->sent[i]);
    return returned;
}

static void deliver(struct ranks *r, uint32_t to, const struct pwc_h_sent *sent,
                    ranks_handler *header, ranks_handler *payload)
{
    bool put = sent->helper == HELPER_PUT;
    struct rank *rank = &r->rank[to];
    struct pwc_h_packet p = {
        .kind = put ? PWC_H_PUT : PWC_H_MESSAGE,
        .flags = PWC_H_FIRST | PWC_H_LAST,
        .source = PWC_H_NONE,
        .id = put ? sent->id : sent->index,
        .header = sent->args,
        .header_length = (uint32_t)(8 * sent->nargs),
        .data = sent->bytes,
        .length = sent->n,
        .total = sent->n,
        .place = sent->off,
    };

    if (rank->dead)
        return;
    pwc_h_enter(&rank->world);
    if ((run(r, rank, header, &p) & HANDLER_RETURN_MASK) == PWC_H_PROCESS_DATA && payload)
        (void)run(r, rank, payload, &p);
}

bool ranks_run(struct ranks *r, ranks_handler *header, ranks_handler *payload)
{
    while (r->flying > 0 && r->flying <= RANKS_FLYING) {
        uint32_t at = (uint32_t)ranks_draw(r, r->flying), to = r->flight[at].to;
        struct pwc_h_sent sent = r->flight[at].sent;

        r->flight[at] = r->flight[--r->flying];
        deliver(r, to, &sent, header, payload);
    }
    return r->flying == 0;
}
