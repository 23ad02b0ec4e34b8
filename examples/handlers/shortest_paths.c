/* Single-source shortest paths in a graph that is spread over the ranks (SSSP in the sPIN paper;
 * with all weights 1 this is the paper's breadth-first search). A message says at which distance a
 * vertex can be reached. If this is less than the distance known so far, the handler sends messages
 * to the vertex's neighbours, without waking the client. The search ends when no message is under
 * way. Vertices with many edges are left to the client. */
#include <pwc/handler.h>

enum { EDGES_MAX = 16 };

struct edge {
    uint32_t target; /* index among the offload's targets: the rank that has the vertex */
    uint32_t weight;
    uint64_t vertex; /* its number there */
};

struct vertex {
    uint64_t distance; /* all ones: not yet reached */
    uint64_t first, edges;
};

/* The region: `vertices` vertices, and after them the edges. */
struct shortest_paths {
    uint64_t vertices;
    uint64_t nearer; /* how often a distance has become less */
};

/* Arguments: vertex, distance. */
PWC_HANDLER int header(const struct pwc_h_packet *p, struct shortest_paths *s)
{
    const uint64_t *args = p->header;
    uint64_t distance = args[1];
    struct vertex *v = (struct vertex *)pwc_h_host(args[0] * sizeof(*v));
    const struct edge *e = pwc_h_host(s->vertices * sizeof(*v) + v->first * sizeof(*e));

    if (distance > v->distance || (distance == v->distance && !(p->flags & PWC_H_RERUN)))
        return PWC_H_DROP;
    if (v->edges > EDGES_MAX)
        return PWC_H_DEFER;
    s->nearer += distance < v->distance;
    v->distance = distance;
    for (uint64_t i = 0; i < v->edges; i++) {
        uint64_t next[2];

        next[0] = e[i].vertex;
        next[1] = distance + e[i].weight;
        if (pwc_h_message(e[i].target, (uint32_t)p->id, next, 2, 0, 0) == PWC_H_EAGAIN)
            return PWC_H_AGAIN;
    }
    return PWC_H_DROP;
}
