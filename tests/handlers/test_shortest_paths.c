/*
 * The example shortest_paths on 16 ranks, compared with a plain computation: random graphs,
 * messages in any order, and handlers that run again because there was no room to send. Thread:
 * one.
 */
#include <string.h>
#include "proto/handler_abi.h"
#include "tests/handlers/ranks.h"
#include "tests/suite.h"

enum { VERTICES = 24, EDGES_MOST = 4, ALL = VERTICES * RANKS_MAX, GRAPHS = 40, INDEX = 3 };

struct vertex {
    uint64_t distance, first, edges;
};
struct edge {
    uint32_t target, weight;
    uint64_t vertex;
};
static_assert(VERTICES * (sizeof(struct vertex) + EDGES_MOST * sizeof(struct edge)) <= RANKS_REGION,
              "a rank's part fits its region");

extern int header(const struct pwc_h_packet *p, void *state);

static struct ranks r;

static struct vertex *vertex_at(uint32_t number)
{
    return (struct vertex *)(void *)r.rank[number / VERTICES].region + number % VERTICES;
}

static struct edge *edge_at(uint32_t rank, uint64_t number)
{
    return (struct edge *)(void *)(r.rank[rank].region + VERTICES * sizeof(struct vertex)) + number;
}

static void draw_graph(uint64_t seed)
{
    ranks_begin(&r, seed);
    for (uint32_t rank = 0; rank < RANKS_MAX; rank++) {
        uint64_t state[2] = {VERTICES, 0}, used = 0;

        memcpy(r.rank[rank].state, state, sizeof(state));
        for (uint32_t i = 0; i < VERTICES; i++) {
            uint64_t edges = ranks_draw(&r, EDGES_MOST + 1);

            *vertex_at(rank * VERTICES + i) = (struct vertex){UINT64_MAX, used, edges};
            for (uint64_t last = used + edges; used < last; used++)
                *edge_at(rank, used) =
                    (struct edge){(uint32_t)ranks_draw(&r, RANKS_MAX),
                                  (uint32_t)ranks_draw(&r, 100), ranks_draw(&r, VERTICES)};
        }
    }
}

/* Computes as Bellman and Ford do: goes over all edges again until no distance becomes less. */
static void compute(uint64_t distance[ALL])
{
    bool changed = true;

    for (uint32_t i = 0; i < ALL; i++)
        distance[i] = i == 0 ? 0 : UINT64_MAX;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < ALL; i++) {
            const struct vertex *v = vertex_at(i);

            for (uint64_t n = 0; n < v->edges && distance[i] != UINT64_MAX; n++) {
                const struct edge *e = edge_at(i / VERTICES, v->first + n);
                uint32_t to = e->target * VERTICES + (uint32_t)e->vertex;

                if (distance[i] + e->weight >= distance[to])
                    continue;
                distance[to] = distance[i] + e->weight;
                changed = true;
            }
        }
    }
}

static void as_computed(void)
{
    const struct pwc_h_sent first = {
        .helper = HELPER_MESSAGE, .index = INDEX, .nargs = 2, .args = {0, 0}};
    static uint64_t distance[ALL];
    uint32_t found = 0, differ = 0;

    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        draw_graph(seed);
        compute(distance);
        ranks_send(&r, 0, &first);
        CU_ASSERT_TRUE_FATAL(ranks_run(&r, header, NULL));
        for (uint32_t i = 0; i < ALL; i++) {
            differ += vertex_at(i)->distance != distance[i];
            found += distance[i] != UINT64_MAX;
        }
    }
    CU_ASSERT_EQUAL(differ, 0);
    CU_ASSERT(found > GRAPHS * ALL / 4);
}

int main(void)
{
    CU_TestInfo tests[] = {{"distances as computed", as_computed}, CU_TEST_INFO_NULL};

    return suite_run("shortest_paths", tests);
}
