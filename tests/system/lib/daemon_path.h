/*
 * The path through libpwc and real daemons: end i is rank i of a job, attached to node i % nodes
 * (path.h). All ends live in this process, as clients of their own.
 *
 * Memory of even ends comes from pwc_alloc; memory of odd ends is moved in place (PWC_MOVE), so it
 * stays at its address when its key is withdrawn, or given again with other rights.
 *
 * This path lacks PATH_CUTS_LINKS: on one machine only a firewall could break a connection between
 * daemons that both live on. The simulated world tests that, and test_death.c the death of a
 * daemon. The path lacks PATH_LIMITS_LENGTHS where the provider has no longest message. A client
 * that is to die detaches without any notice.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_SYSTEM_DAEMON_PATH_H
#define PWC_TESTS_SYSTEM_DAEMON_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/cluster.h"
#include "tests/engine/world/paths/path.h"
#include "tests/system/lib/request_ends.h"

#define DAEMON_PATH_ENDS    4u
#define DAEMON_PATH_REMOTES 64u
#define DAEMON_PATH_FETCHES 1024u /* more than are under way at a time */
/* Abilities that this path never has (enum path_ability). */
#define DAEMON_PATH_LACKS                                                                          \
    (PATH_CUTS_LINKS | PATH_HAS_CONTEXTS | PATH_FLUSHES | PATH_UNBINDS | PATH_CLOSES |             \
     PATH_ORDERS_KINDS)

/* The word that an atomic fetches, with the operation's id. */
struct daemon_fetch {
    uint64_t lid, value;
};

struct daemon_end {
    pwc_client *client; /* NULL: dead */
    pwc_ctx *ctx;
    pwc_region *region; /* NULL: withdrawn */
    unsigned rights;    /* rights of the region's key */
    uint8_t *memory;
    uint8_t *moved; /* mapped by us, or NULL; outlives the region */
    int wake;       /* pwc_fd */
    struct request_ends ends;

    /* A submission that the library refused, kept to be reported as an event. */
    bool refused;
    struct pwc_event refusal;
    uint8_t refused_id[PWC_CID_MAX];
};

struct daemon_path {
    struct path path;
    struct cluster *cluster; /* the caller's */
    bool by_requests;        /* set by the caller: operations are given requests */
    struct daemon_end ends[DAEMON_PATH_ENDS];
    struct {
        pwc_remote *remote;
        pwc_peer peer;
    } remotes[DAEMON_PATH_REMOTES];
    uint32_t remote_count;
    struct daemon_fetch fetches[DAEMON_PATH_FETCHES]; /* a ring of the latest fetches */
    uint32_t fetch_count;
    bool moved;       /* something has happened since the last turn */
    int64_t moved_ns; /* when something happened last */
};

/* Attaches the ends to the cluster's nodes under this job's name. On failure `failure` has the
 * reason. */
int daemon_path_open(struct daemon_path *p, struct cluster *cluster, const char *job,
                     char failure[400]);
void daemon_path_close(struct daemon_path *p);

#endif
