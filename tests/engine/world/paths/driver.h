/*
 * Drives operations over a path, and the model along with it: chooses ranges that do not overlap,
 * fills sources, repeats calls that gave -EAGAIN, takes events, and reports a failure when nothing
 * moves although something has not ended.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_DRIVER_H
#define PWC_TESTS_ENGINE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/engine/world/model/model.h"
#include "tests/engine/world/paths/path.h"

struct driver {
    const struct path *path;
    struct model model;
    uint64_t random;
    struct {
        bool bound;
        uint32_t handle;
    } remotes[MODEL_ENDS_MAX][MODEL_ENDS_MAX];
    /* Where the next range begins in each half of an end's memory: in the half for its own
     * operations, and in the half for those of others. */
    uint64_t local_next[MODEL_ENDS_MAX], remote_next[MODEL_ENDS_MAX];
    uint32_t silent; /* a bit for each end that takes no events */
    uint32_t id_max; /* longest id of random operations */
    bool dies;       /* a daemon may die within a signal of random operations, whose outcome is then
                        unknown */
    bool failed;
    char failure[400];
};

int driver_open(struct driver *s, const struct path *path, uint64_t seed);
void driver_close(struct driver *s);

/* Keeps the first failure. */
__attribute__((format(printf, 2, 3))) void driver_fail(struct driver *s, const char *format, ...);
uint64_t driver_random(struct driver *s, uint64_t limit);

/* Takes all events that are there, and returns how many. */
uint32_t driver_probe(struct driver *s);
/* Makes one turn of everything. Returns false when nothing moves any more. */
bool driver_turn(struct driver *s);
/* driver_finish_one goes on until this operation has ended; driver_finish until all have ended, and
 * checks memory. */
void driver_finish_one(struct driver *s, uint32_t number);
void driver_finish(struct driver *s);

/* Submits a flush after all operations that were submitted so far from one end to another, and
 * returns its number. The model checks that the flush does not end too early. */
uint64_t driver_flush(struct driver *s, uint32_t from, uint32_t to);
bool driver_flushed(struct driver *s, uint32_t from, uint64_t number);
/* Goes on until all flushes of this end have ended. */
void driver_finish_flush(struct driver *s, uint32_t from);

/* driver_bind binds again, with a new remote; driver_unbind unbinds. */
uint32_t driver_bind(struct driver *s, uint32_t from, uint32_t to);
void driver_unbind(struct driver *s, uint32_t from, uint32_t to);
/* Returns a remote with a key to all memory, which is bound at the first call. */
uint32_t driver_remote(struct driver *s, uint32_t from, uint32_t to);
/* Returns a free range in the half of an end's memory that others reach, or in the half for its own
 * operations. When the half has been used up, waits first until all operations in flight have
 * ended. */
uint64_t driver_range(struct driver *s, uint32_t end, bool own, uint64_t length);
/* Submits `op` unchanged over this remote, again while the result is -EAGAIN. Returns the
 * operation's number. */
uint32_t driver_submit_over(struct driver *s, uint32_t remote, const struct model_op *op);
/* Chooses ranges and source bytes, and submits. */
uint32_t driver_submit(struct driver *s, struct model_op op);
/* Draws an operation: kind, flags, length and ids are random. */
struct model_op driver_random_op(struct driver *s, uint32_t from, uint32_t to);

#endif
