/*
 * The path through a simulated world: end i is rank i, on node i % nodes (path.h). Second contexts,
 * where there are any, are the upper half of the ends. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_WORLD_PATH_H
#define PWC_TESTS_ENGINE_WORLD_PATH_H

#include "tests/engine/world/paths/path.h"
#include "tests/engine/world/world.h"

struct world_path {
    struct path path;
    struct world *world;
    uint32_t clients;
    int withdrawal[WORLD_CLIENTS_MAX]; /* request that withdraws the key, or -1 */
    uint32_t cut[2];                   /* the two nodes whose link is cut */
    uint64_t restore_at;               /* round at which the link works again; 0: the link is up */
};

/* Opens a world (of two nodes by default) with a client for each end. If that fails, `failure` says
 * why. */
int world_path_open(struct world_path *p, const struct world_options *options, uint32_t ends,
                    char failure[400]);
/* Lets all clients leave. Returns NULL, or what is left over, which is the world's failure. */
const char *world_path_leave(struct world_path *p);
void world_path_close(struct world_path *p);

#endif
