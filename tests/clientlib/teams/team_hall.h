/*
 * Members of one team in one process, on one thread, each with a context over a session of its own;
 * and engines as small as can be: plain loops collect the inputs of a team's engines, and write
 * each engine's result as proto/team_abi.h says.
 */
#ifndef PWC_TESTS_CLIENTLIB_TEAM_HALL_H
#define PWC_TESTS_CLIENTLIB_TEAM_HALL_H

#include <stdbool.h>
#include <stdint.h>
#include "clientlib/teams/team.h"
#include "tests/clientlib/session/fake_session.h"

enum { HALL_RANKS = 40, HALL_ENGINES = 9, HALL_WINDOW_MAX = 64 };
/* The number of elements of 8 bytes in a slice, where each engine has one member. */
enum { HALL_SLICE = TEAM_INPUT_MAX / 8 };

struct hall_member {
    struct pwc_client client;
    struct fake_session daemon;
    struct mapping mapping;
    struct pwc_ctx *ctx;
    struct pwc_team *team;
    uint32_t engine; /* index in `engine` of the hall */
};

struct hall_engine {
    struct mapping mapping;
    struct team_area area;
    uint32_t members;
    bool has[HALL_WINDOW_MAX]; /* by row: records[row] is an instance that has not ended */
    struct submit_record records[HALL_WINDOW_MAX];
};

struct hall {
    uint32_t size, window, engines;
    uint32_t wakes;             /* wakes that members have asked for */
    uint32_t mismatches;        /* mismatches that members have reported */
    bool held;                  /* engines end no instance */
    uint32_t order[HALL_RANKS]; /* ranks by place */
    struct hall_member members[HALL_RANKS];
    struct hall_engine engine[HALL_ENGINES];
};

/* How ranks are spread over engines. */
enum hall_layout {
    HALL_BLOCKS,
    HALL_ROUND, /* rank by rank in turn */
};

struct hall *hall_new(uint32_t size, uint32_t engines, enum hall_layout layout, uint32_t window);
void hall_free(struct hall *h);

/* Takes the members' submissions, and ends the instances that all engines have reached. */
void hall_run(struct hall *h);
/* Breaks the team on all engines. */
void hall_break(struct hall *h, const struct team_reason *reason);

static inline struct pwc_team *hall_team(struct hall *h, uint32_t rank)
{
    return h->members[rank].team;
}

/* Probes for the next local event of a member. Returns 1, 0, or an error. */
int hall_probe(struct hall *h, uint32_t rank, struct pwc_event *event);

/* A member calls for the sum of n elements. Returns what the call returns. */
int hall_sum(struct hall *h, uint32_t rank, const uint64_t *in, uint64_t *out, size_t n,
             pwc_cid lid);
/* Whether the text of the team's last error has these words. */
bool hall_text_has(struct hall *h, uint32_t rank, const char *words);
/* Checks that each call under way ends once, with this status, and that later calls are refused. */
void hall_expect_broken(struct hall *h, uint32_t rank, unsigned under_way, int status);

#endif
