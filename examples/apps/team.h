/*
 * What the applications have in common over libpwc: every rank with a region of the same size, and
 * puts whose tag appears at the target. A call that fails ends the program with a message.
 */
#ifndef EXAMPLES_APPS_TEAM_H
#define EXAMPLES_APPS_TEAM_H

#include "examples/apps/app.h"

#include <pwc/pwc.h>
#include <stddef.h>

struct team {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote **peers; /* by rank: their regions */
    void *memory;       /* of this rank's region */
};

#define CHECK(call) team_check(#call, call)
int team_check(const char *call, int rc);

/* Attaches to the daemon, and reads the command line into `app`. */
void team_open(struct team *team, struct app *app, int argc, char **argv);

/* Makes the regions, and binds all of them; every rank calls it. */
void team_share(struct team *team, size_t bytes);

/* Puts `len` bytes of the region at `src`, or of any memory up to 8 bytes, at `off` into a rank's
 * region. That rank's team_wait gives the tag when they are there. */
void team_put(struct team *team, uint32_t to, uint64_t off, const void *src, size_t len,
              uint64_t tag);

/* Waits for the next put of a rank, or of PWC_ANY; its tag. */
uint64_t team_wait(struct team *team, pwc_peer from);

/* Waits until all puts of this rank are placed: their sources may be written again. */
void team_flush(struct team *team);

/* Every rank has checked its part: rank 0 reports, and all end. The exit status. */
int team_end(struct team *team, const struct app *app, bool right, const char *unit, double work);

#endif
