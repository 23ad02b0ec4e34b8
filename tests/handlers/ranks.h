/*
 * Runs the handlers of an example for several ranks, in this process: each rank has a struct
 * pwc_h_world of its own (pwc/handler.h). Puts and messages of handlers are delivered in random
 * order. Now and then a handler finds no room to send.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_HANDLERS_RANKS_H
#define PWC_TESTS_HANDLERS_RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <pwc/handler.h>

enum {
    RANKS_MAX = 16,
    RANKS_SENDS = 32, /* sends of one handler */
    RANKS_REGION = 4096,
    RANKS_FLYING = 4096,
};

struct ranks {
    uint64_t random;
    uint32_t flying; /* sends that are not delivered yet */
    struct {
        uint32_t to;
        struct pwc_h_sent sent;
    } flight[RANKS_FLYING];
    struct rank {
        struct pwc_h_world world;
        struct pwc_h_sent sent[RANKS_SENDS];
        _Alignas(64) unsigned char region[RANKS_REGION];
        _Alignas(64) unsigned char state[64];
        uint32_t target[RANKS_MAX]; /* rank that each target number leads to */
        bool dead;
    } rank[RANKS_MAX];
};

typedef int ranks_handler(const struct pwc_h_packet *p, void *state);

/* Begins with ranks 0 to RANKS_MAX - 1, with empty regions and states; target i of each is rank i.
 */
void ranks_begin(struct ranks *r, uint64_t seed);
uint64_t ranks_draw(struct ranks *r, uint64_t below);
/* Puts a send on its way: a put or a message. */
void ranks_send(struct ranks *r, uint32_t to, const struct pwc_h_sent *sent);
/* Delivers until nothing is under way. `payload` may be NULL. Returns false if more was under way
 * than there is room for. */
bool ranks_run(struct ranks *r, ranks_handler *header, ranks_handler *payload);

#endif
