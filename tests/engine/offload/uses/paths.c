/* Uses by messages that lead to messages: shortest paths, and breadth-first search (uses.h).
 * Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <string.h>

enum { VERTICES = 6, TARGETS = 6, DEGREE = 4, WEIGHT = 20, STARTS = 6 };

/* As in examples/handlers/shortest_paths.c. */
struct edge {
    uint32_t target, weight;
    uint64_t vertex;
};

struct vertex {
    uint64_t distance, first, edges;
};

struct shortest_paths {
    uint64_t vertices, nearer;
};

/* The graph: each client has the same number of vertices, with the same number of edges each. Edges
 * lead to vertices of other clients, because no client has itself as a target. */
struct graph {
    uint32_t vertices, degree;
    struct {
        uint32_t client, vertex, weight;
    } edge[WORLD_NODES_MAX][VERTICES][DEGREE];
    uint64_t distance[WORLD_NODES_MAX][VERTICES]; /* results of the plain computation */
};

static struct graph *graph_of(struct uses *u)
{
    return (struct graph *)u->own;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void draw_targets(struct uses *u, uint32_t client, struct uses_pair *pairs, uint32_t *count)
{
    struct use_client *c = &u->client[client];
    uint32_t most = u->nodes - 1 < TARGETS ? u->nodes - 1 : TARGETS;
    uint32_t first = uses_below(u, u->nodes - 1);

    for (uint32_t i = 0; i < most; i++) {
        uint32_t to = (client + 1 + (first + i * i) % (u->nodes - 1)) % u->nodes;
        bool known = false;

        for (uint32_t k = 0; k < c->targets; k++)
            known |= c->target[k] == to;
        if (known)
            continue;
        c->target[c->targets++] = to;
        pairs[(*count)++] = (struct uses_pair){client, to};
    }
}

static void write_graph(struct uses *u, uint32_t client, uint32_t weight_max)
{
    struct graph *g = graph_of(u);
    const struct shortest_paths state = {.vertices = g->vertices};
    uint8_t *region = uses_region(u, client);
    uint8_t *edges = region + g->vertices * sizeof(struct vertex);

    memcpy(uses_state(u, client), &state, sizeof(state));
    for (uint32_t v = 0; v < g->vertices; v++) {
        const struct vertex vertex = {UINT64_MAX, (uint64_t)v * g->degree, g->degree};

        memcpy(region + v * sizeof(vertex), &vertex, sizeof(vertex));
        for (uint32_t i = 0; i < g->degree; i++) {
            const struct edge e = {.target = uses_below(u, u->client[client].targets),
                                   .weight = 1 + uses_below(u, weight_max),
                                   .vertex = uses_below(u, g->vertices)};

            memcpy(edges + (vertex.first + i) * sizeof(e), &e, sizeof(e));
            g->edge[client][v][i].client = u->client[client].target[e.target];
            g->edge[client][v][i].vertex = (uint32_t)e.vertex;
            g->edge[client][v][i].weight = e.weight;
        }
    }
}

static void open_graph(struct uses *u, uint32_t weight_max)
{
    struct graph *g = graph_of(u);
    struct uses_pair pairs[WORLD_NODES_MAX * TARGETS];
    uint32_t count = 0;

    g->vertices = 1 + uses_below(u, VERTICES);
    g->degree = 1 + uses_below(u, DEGREE);
    u->wanted = 1 + uses_below(u, STARTS);
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    for (uint32_t i = 0; i < u->nodes; i++) {
        draw_targets(u, i, pairs, &count);
        write_graph(u, i, weight_max);
    }
    uses_bind(u, pairs, count, false);
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++)
        uses_offload(u, i, false, sizeof(struct shortest_paths));
}

static void shortest_paths_open(struct uses *u)
{
    open_graph(u, WEIGHT);
}

static void breadth_first_open(struct uses *u)
{
    open_graph(u, 1);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Submits one more start: a vertex of a target, with the distance that it has at first. */
static bool paths_submit(struct uses *u)
{
    struct use_op op = {.from = uses_below(u, u->nodes)};
    const struct use_client *c = &u->client[op.from];

    if (!uses_room(u, op.from, 0))
        return false;
    op.to = c->target[uses_below(u, c->targets)];
    op.word[0] = uses_below(u, graph_of(u)->vertices);
    op.word[1] = uses_below(u, 2 * WEIGHT);
    return uses_message(u, &op, 2, NULL, false);
}

/* Goes over all edges once. Returns whether a distance has become less. */
static bool relax(const struct uses *u, struct graph *g)
{
    bool nearer = false;

    for (uint32_t client = 0; client < u->nodes; client++)
        for (uint32_t v = 0; v < g->vertices; v++)
            for (uint32_t i = 0; i < g->degree && g->distance[client][v] != UINT64_MAX; i++) {
                uint64_t *there =
                    &g->distance[g->edge[client][v][i].client][g->edge[client][v][i].vertex];
                uint64_t here = g->distance[client][v] + g->edge[client][v][i].weight;

                nearer |= here < *there;
                *there = here < *there ? here : *there;
            }
    return nearer;
}

static void check_client(struct uses *u, const struct graph *g, uint32_t client)
{
    for (uint32_t v = 0; v < g->vertices; v++) {
        struct vertex found;

        memcpy(&found, uses_region(u, client) + v * sizeof(found), sizeof(found));
        if (found.distance != g->distance[client][v])
            world_fail(u->world, "vertex %u of client %u is at %llu, not %llu", v, client,
                       (unsigned long long)found.distance,
                       (unsigned long long)g->distance[client][v]);
    }
}

static void paths_check(struct uses *u)
{
    struct graph *g = graph_of(u);
    uint64_t runs = 0, sent = u->count;

    uses_expect_ends(u, NULL);
    memset(g->distance, 0xff, sizeof(g->distance));
    for (uint32_t i = 0; i < u->count; i++) {
        uint64_t *start = &g->distance[u->op[i].to][u->op[i].word[0]];

        *start = u->op[i].word[1] < *start ? u->op[i].word[1] : *start;
    }
    while (relax(u, g))
        continue;
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++) {
        check_client(u, g, i);
        runs += uses_counted(u, i, HANDLER_HEADER);
        sent += uses_sent(u, i);
    }
    if (runs != sent)
        world_fail(u->world, "%llu messages, and %llu runs", (unsigned long long)sent,
                   (unsigned long long)runs);
}

const struct use use_shortest_paths = {.name = "shortest paths",
                                       .object = "shortest_paths",
                                       .flows = 4,
                                       .least = 2,
                                       .open = shortest_paths_open,
                                       .submit = paths_submit,
                                       .check = paths_check};

const struct use use_breadth_first = {.name = "breadth-first search",
                                      .object = "shortest_paths",
                                      .flows = 4,
                                      .least = 2,
                                      .open = breadth_first_open,
                                      .submit = paths_submit,
                                      .check = paths_check};
