/*
 * The membership of each client in its job, in memory that outlives the process: the job's
 * instance, how many contexts the client has made in an open job, and the names that it has
 * published. A daemon that is started anew, or whose link to a job's home is new, announces
 * instance and names together with the rank.
 *
 * There is an entry for each connection, as in the table of requests under way (inflight.h). A name
 * uses memory only while it is published. Only the processes of this daemon, one after the other,
 * read the table. Thread: control.
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
    uint32_t contexts;                   /* contexts made so far, in an open job */
    uint8_t named[MEMBERSHIP_NAMES_MAX]; /* 1: the name is published; written after the name */
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
    struct membership_name *names; /* MEMBERSHIP_NAMES_MAX for each connection, in pages of their
                                    * own */
    uint32_t connections;
};

/* Maps the table of an earlier process, or makes a new one. */
int memberships_open(struct memberships *m, struct store *store, uint32_t connections,
                     bool inherited);
void memberships_close(struct memberships *m);

/* Begins the entry of a client that has become a rank of a job; membership_end clears it when the
 * client ends. */
void membership_begin(struct memberships *m, uint32_t connection, uint64_t instance);
void membership_end(struct memberships *m, uint32_t connection);
struct membership *membership_of(const struct memberships *m, uint32_t connection);

/* Finds a name's index, below MEMBERSHIP_NAMES_MAX; -ENOENT: the client has not published this
 * name. */
int membership_find(const struct memberships *m, uint32_t connection, const char *name);
/* Notes a valid name (names_valid) with up to DIRECTORY_PUBLISHED_DATA bytes, or replaces the bytes
 * of a name that is noted. Returns the name's index. -EDQUOT: the client has as many names as it
 * may have. */
int membership_put(struct memberships *m, uint32_t connection, const char *name,
                   const uint8_t *data, uint32_t length);
void membership_drop(struct memberships *m, uint32_t connection, uint32_t index);
/* NULL: there is no name with this index. */
const struct membership_name *membership_name(const struct memberships *m, uint32_t connection,
                                              uint32_t index);

#endif
