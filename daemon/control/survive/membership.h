/*
 * The part of each client in its job, in memory that outlives the process: the job's instance, how
 * many contexts it has made in an open job, and the names that it has published. A daemon that is
 * started anew, or whose link to a job's home is new, announces them with the rank.
 *
 * By connection, as the table of requests under way (inflight.h). A name takes memory while it is
 * published. Private to the daemons that follow one another. Thread: control.
 */
#ifndef PWC_CONTROL_MEMBERSHIP_H
#define PWC_CONTROL_MEMBERSHIP_H

#include <assert.h>
#include <stdint.h>
#include "daemon/control/survive/store.h"
#include "daemon/peering/directory.h"
#include "shm_ring/mapping.h"

#define MEMBERSHIP_NAMES_MAX 16u /* of one client */

struct membership {
    uint64_t instance;
    uint32_t contexts;                   /* made so far, in an open job */
    uint8_t named[MEMBERSHIP_NAMES_MAX]; /* 1: a published name; written last */
    uint32_t unused;
};
static_assert(sizeof(struct membership) == 32, "membership");

struct membership_name {
    char name[DIRECTORY_PUBLISHED_NAME];
    uint32_t length;
    uint32_t unused;
    uint8_t data[DIRECTORY_PUBLISHED_DATA];
};
static_assert(sizeof(struct membership_name) == 1096, "membership_name");

struct memberships {
    struct mapping mapping;
    struct membership *members;    /* by connection */
    struct membership_name *names; /* MEMBERSHIP_NAMES_MAX of each, from a page on */
    uint32_t connections;
};

/* Maps the table of an earlier process, or makes a new one. */
int memberships_open(struct memberships *m, struct store *store, uint32_t connections,
                     bool inherited);
void memberships_close(struct memberships *m);

/* A client becomes a rank of a job, and ends. */
void membership_begin(struct memberships *m, uint32_t connection, uint64_t instance);
void membership_end(struct memberships *m, uint32_t connection);
struct membership *membership_of(const struct memberships *m, uint32_t connection);

/* A name's index, below MEMBERSHIP_NAMES_MAX; -ENOENT: the client has not published it. */
int membership_find(const struct memberships *m, uint32_t connection, const char *name);
/* Notes a name that the directory finds valid, with up to DIRECTORY_PUBLISHED_DATA bytes, or puts
 * them in place of those that it has: its index. -EDQUOT: the client has as many as it may. */
int membership_put(struct memberships *m, uint32_t connection, const char *name,
                   const uint8_t *data, uint32_t length);
void membership_drop(struct memberships *m, uint32_t connection, uint32_t index);
/* NULL: there is no name with this index. */
const struct membership_name *membership_name(const struct memberships *m, uint32_t connection,
                                              uint32_t index);

#endif
