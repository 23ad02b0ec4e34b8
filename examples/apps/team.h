/*
 * Code that the applications share over libpwc. Each rank has a window onto the memory of all
 * others, and does two things: it puts with a notification, and waits for notifications. A call
 * that fails ends the program with a message.
 */
#ifndef EXAMPLES_APPS_TEAM_H
#define EXAMPLES_APPS_TEAM_H

#include "examples/apps/app.h"

#include <pwc/notify.h>
#include <stddef.h>

struct team {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_window *window; /* the regions of all ranks */
    void *memory;       /* of this rank's region */
};

#define CHECK(call) team_check(#call, call)
int team_check(const char *call, int rc);

/* Attaches to the daemon, and reads the command line into `app`. */
void team_open(struct team *team, struct app *app, int argc, char **argv);

/* Makes a region on each rank, and the window; every rank calls it. */
void team_share(struct team *team, size_t bytes);

/* Puts `len` bytes at `off` into a rank's region, and notifies that rank with the tag. If there are
 * more than pwc_packed_max bytes, they must be in this rank's region, and stay unchanged until
 * `sent` has ended; with fewer bytes `sent` may be NULL. */
void team_put(struct team *team, uint32_t to, uint64_t off, const void *src, size_t len,
              uint32_t tag, pwc_request *sent);

/* A request for `count` notifications: from a rank or PWC_ANY_RANK, with a tag or PWC_ANY_TAG. */
pwc_request *team_request(struct team *team, uint32_t from, uint32_t tag, uint32_t count);

/* Starts the request once more, and waits for it. Returns the tag of the last notification. */
uint32_t team_wait(pwc_request *request);

/* Every rank calls this when it has checked its part. Rank 0 reports if all parts are right, and
 * all ranks detach. Returns the exit status. */
int team_end(struct team *team, const struct app *app, bool right, const char *unit, double work);

#endif
