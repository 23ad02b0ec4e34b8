/*
 * A collective by real engines and real team areas: all members of a node call, the last member
 * hands the call over to the engine, engines send letters, and all members take the result, which
 * is checked. A node begins its next call when its members have taken the result of the previous
 * one.
 *
 * A call of more data than a line is an allreduce with one member on each node. As in the library,
 * slices of up to TEAM_DATA_BYTES are instances of their own, and up to 8 slices of a call are
 * under way at once.
 *
 * The members' work in the area takes no virtual time.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "bench/scaling/fleet.h"
#include "proto/word_abi.h"
#include "shm_ring/team.h"

#define ROUNDS 4u
#define TEAM   1u /* its number */

/* The members of one node. */
struct hall {
    struct fleet_rank *ranks;
    struct team_area area;
    void *base;
    size_t bytes;
    uint32_t handle;
    uint64_t called, instance; /* instances: the one to call next, and the one to take next */
};

struct assembly {
    struct fleet *fleet;
    const struct row *row;
    struct hall *halls;
    uint32_t nodes, members; /* of each */
    uint64_t slices;         /* instances of a call */
    uint64_t until;          /* the instance up to which all halls work */
    uint32_t ended;          /* halls that have reached it */
};

static bool by_lines(const struct assembly *a)
{
    return a->row->bytes <= TEAM_LINE_BYTES;
}

/* The bytes of an instance: only the last slice of a call is shorter than the others. */
static uint64_t bytes_of(const struct assembly *a, uint64_t instance)
{
    uint64_t before = instance % a->slices * TEAM_DATA_BYTES, left = a->row->bytes - before;

    return left < TEAM_DATA_BYTES ? left : TEAM_DATA_BYTES;
}

/* gift_of returns a member's operand; the function after it, the sum over all members. */
static uint64_t gift_of(uint32_t rank, uint64_t instance)
{
    return rank * instance + 1;
}

static uint64_t sum_of(const struct assembly *a, uint64_t instance)
{
    uint64_t ranks = (uint64_t)a->nodes * a->members;

    return ranks * (ranks - 1) / 2 * instance + ranks;
}

/* Writes the engine's operand, whose word i is `sum` + i. */
static void give(struct assembly *a, struct hall *h, uint64_t sum)
{
    struct team_node *node = &team_row(&h->area, h->called)->node;
    uint8_t *to = by_lines(a) ? node->data : team_data(&h->area, h->called)->inputs;
    uint64_t bytes = bytes_of(a, h->called);

    node->length = (uint32_t)bytes;
    for (uint64_t i = 0; i < bytes / sizeof sum; i++, sum++)
        memcpy(to + i * sizeof sum, &sum, sizeof sum);
}

/* The last member to come combines the operands of all, and submits. */
static void hand_over(struct assembly *a, struct hall *h, uint64_t signature, uint64_t sum)
{
    struct fleet_rank *last = &h->ranks[a->members - 1];
    uint64_t turn = h->called % TEAM_DATA_ROWS;
    const struct submit_record record = {.kind = SUBMIT_COLLECTIVE,
                                         .code = (uint8_t)a->row->kind,
                                         .remote = h->handle,
                                         .instance = h->called,
                                         .length = bytes_of(a, h->called),
                                         .signature = signature,
                                         .data_row = by_lines(a) ? TEAM_LINES : turn};
    int rc;

    give(a, h, sum);
    rc = channel_note(&last->channel, &record);
    if (rc < 0)
        fleet_fail(a->fleet, "rank %u submits: %s", last->number, strerror(-rc));
    fleet_rouse(a->fleet, last->node);
}

static void call(struct assembly *a, struct hall *h)
{
    bool folds = a->row->kind == TEAM_ALLREDUCE;
    uint64_t signature = team_signature(a->row->kind, folds ? WORD_ADD : 0, folds ? WORD_U64 : 0, 0,
                                        bytes_of(a, h->called) / sizeof(uint64_t));
    uint64_t sum = 0;
    int last = team_row_room(&h->area, h->called);

    for (uint32_t m = 0; m < a->members && last == 0; m++) {
        uint64_t gift = gift_of(h->ranks[m].number, h->called);

        sum += gift;
        team_line_write(&h->area, h->called, m, signature, &gift,
                        by_lines(a) ? (uint32_t)a->row->bytes : 0);
        last = team_arrive(&h->area, h->called);
    }
    if (last == 1)
        hand_over(a, h, signature, sum);
    else
        fleet_fail(a->fleet, "the members of node %u do not arrive: %s", h->ranks[0].node,
                   strerror(-last));
}

/* Begins as many slices of a call as may be under way. A call begins when all slices of the call
 * before it were taken. */
static void begin(struct assembly *a, struct hall *h)
{
    uint64_t end = h->instance - h->instance % a->slices + a->slices;

    if (h->instance == a->until)
        a->ended++;
    for (; h->called < end && h->called < a->until; h->called++) {
        if (h->called - h->instance >= TEAM_DATA_ROWS)
            return;
        call(a, h);
    }
}

static void check_result(struct assembly *a, const struct hall *h)
{
    const struct team_result *result = &team_row(&h->area, h->instance)->result;
    const uint8_t *data = by_lines(a) ? result->data : team_data(&h->area, h->instance)->result;
    uint64_t sum = 0, last = bytes_of(a, h->instance) / sizeof sum - 1;
    bool right;

    if (result->status != 0) {
        fleet_fail(a->fleet, "node %u: instance %llu: %s", h->ranks[0].node,
                   (unsigned long long)h->instance, strerror(-result->status));
        return;
    }
    if (a->row->kind != TEAM_ALLREDUCE)
        return;
    memcpy(&sum, data + last * sizeof sum, sizeof sum);
    right = sum == sum_of(a, h->instance) + last * a->nodes;
    memcpy(&sum, data, sizeof sum);
    if (!right || sum != sum_of(a, h->instance))
        fleet_fail(a->fleet, "node %u: the sum of instance %llu is %llu, not %llu",
                   h->ranks[0].node, (unsigned long long)h->instance, (unsigned long long)sum,
                   (unsigned long long)sum_of(a, h->instance));
}

static void look(void *context, struct fleet *f, uint32_t node)
{
    struct assembly *a = context;
    struct hall *h = &a->halls[node];

    if (h->instance == h->called || team_ended(&h->area, h->instance) != 1)
        return;
    while (h->instance < h->called && team_ended(&h->area, h->instance) == 1) {
        check_result(a, h);
        for (uint32_t m = 0; m < a->members; m++) {
            team_take(&h->area, h->instance);
            if (!by_lines(a))
                team_take_data(&h->area, h->instance);
        }
        h->instance++;
    }
    begin(a, h);
}

static bool all_ended(void *context)
{
    const struct assembly *a = context;

    return a->ended == a->nodes;
}

/* Runs this many more calls, and measures them as run_rounds in row_exchange.c does. */
static bool run_calls(struct assembly *a, uint32_t count, struct fleet_count *cost)
{
    struct fleet_count from = fleet_counted(a->fleet), to;
    uint64_t ended;

    a->until += count * a->slices;
    a->ended = 0;
    for (uint32_t i = 0; i < a->nodes; i++)
        begin(a, &a->halls[i]);
    if (!fleet_run(a->fleet, all_ended, a))
        return false;
    ended = sim_now(a->fleet->sim);
    if (!fleet_run(a->fleet, NULL, NULL))
        return false;
    to = fleet_counted(a->fleet);
    *cost = fleet_between(&from, &to);
    cost->ns = ended - from.ns;
    return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_area(struct assembly *a, struct hall *h)
{
    h->bytes = team_area_bytes(a->members, TEAM_WINDOW);
    h->base = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (h->base == MAP_FAILED) {
        h->base = NULL;
        return -ENOMEM;
    }
    team_area_format(h->base, a->members, TEAM_WINDOW);
    return team_area_view(&h->area, h->base, h->bytes, a->members, TEAM_WINDOW);
}

static int open_team(struct assembly *a, uint32_t node,
                     const struct engine_team_participant *participants)
{
    struct hall *h = &a->halls[node];
    struct engine_team_member *local = calloc(a->members, sizeof *local);
    const struct engine_team_info info = {.number = TEAM,
                                          .size = a->nodes * a->members,
                                          .window = TEAM_WINDOW,
                                          .me = node,
                                          .participants = a->nodes,
                                          .members = a->members,
                                          .list = participants,
                                          .local = local};
    int rc = local ? open_area(a, h) : -ENOMEM;

    for (uint32_t m = 0; m < a->members && rc == 0; m++)
        local[m] = (struct engine_team_member){h->ranks[m].number, h->ranks[m].session};
    if (rc == 0)
        rc = engine_team_open(a->fleet->nodes[node].engine, &info, h->base);
    h->handle = (uint32_t)rc;
    free(local);
    return rc < 0 ? rc : 0;
}

static int open_hall(struct assembly *a, uint32_t node)
{
    struct hall *h = &a->halls[node];
    uint32_t ranks = a->nodes * a->members;
    int rc;

    h->ranks = calloc(a->members, sizeof *h->ranks);
    rc = h->ranks ? 0 : -ENOMEM;
    for (uint32_t m = 0; m < a->members && rc == 0; m++)
        rc = fleet_rank_open(a->fleet, node, node * a->members + m, ranks, &h->ranks[m]);
    return rc == 0 ? fleet_rank_talks(&h->ranks[a->members - 1]) : rc;
}

static int open_halls(struct assembly *a)
{
    struct engine_team_participant *participants = calloc(a->nodes, sizeof *participants);
    int rc = participants ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < a->nodes && rc == 0; i++) {
        participants[i] = (struct engine_team_participant){.peer = i, .members = a->members};
        rc = open_hall(a, i);
    }
    if (rc == 0 && !fleet_run(a->fleet, NULL, NULL))
        rc = -EPROTO;
    for (uint32_t i = 0; i < a->nodes && rc == 0; i++)
        rc = open_team(a, i, participants);
    free(participants);
    return rc;
}

static void close_halls(struct assembly *a)
{
    for (uint32_t i = 0; a->halls && i < a->nodes; i++) {
        struct hall *h = &a->halls[i];

        for (uint32_t m = 0; h->ranks && m < a->members; m++)
            fleet_rank_close(&h->ranks[m]);
        free(h->ranks);
        if (h->base)
            munmap(h->base, h->bytes);
    }
    free(a->halls);
}

static int measure(struct assembly *a, struct figures *out)
{
    struct fleet_count cost;
    double all = (double)ROUNDS * a->nodes;
    uint64_t before = fleet_resident(a->fleet, 0);
    int rc = open_halls(a);

    if (rc != 0)
        return rc;
    if (!run_calls(a, 1, &cost) || !run_calls(a, ROUNDS, &cost))
        return -EPROTO;
    figure_add(out, "us", (double)cost.ns / 1e3 / ROUNDS);
    figure_add(out, "messages_a_node", (double)cost.messages / all);
    figure_add(out, "bytes_a_node", (double)cost.bytes / all);
    figure_add(out, "steps_a_node", (double)cost.steps / all);
    figure_add(out, "real_us_a_node", (double)cost.real_ns / 1e3 / all);
    figure_add(out, "kib_a_node", (double)fleet_resident(a->fleet, 0) / 1024);
    figure_add(out, "kib_empty", (double)before / 1024);
    return 0;
}

int row_team(const struct row_run *run, struct figures *out)
{
    uint64_t bytes = run->row->bytes;
    uint64_t slices = bytes > 0 ? (bytes + TEAM_DATA_BYTES - 1) / TEAM_DATA_BYTES : 1;
    struct assembly a = {
        .row = run->row, .nodes = run->nodes, .members = run->row->parameter, .slices = slices};
    struct fleet_options options = {
        .nodes = run->nodes, .loggp = run->loggp, .hooks = {.context = &a, .look = look}};
    int rc = -ENOMEM;

    a.halls = calloc(a.nodes, sizeof *a.halls);
    if (a.halls)
        rc = fleet_open(&options, &a.fleet);
    if (rc == 0)
        rc = measure(&a, out);
    if (a.fleet && a.fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", a.fleet->failure);
    close_halls(&a);
    if (a.fleet)
        fleet_close(a.fleet);
    return rc;
}
