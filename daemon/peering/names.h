/*
 * The names that ranks of a job publish, with up to 1 KiB of data each, at the job's home.
 *
 * A name belongs to the rank that has published it, and is removed when that rank leaves. Where the
 * directory has a table, names are in it, so that a home that is started anew knows them. Ranks may
 * wait for a name to be published; these waiters do not outlive the process, and their nodes ask
 * again.
 *
 * Pure, as the directory is. The job's user is charged for names, for entries of waiters, and 4 KiB
 * for a job that has any of these. Thread: the thread that owns the directory (control).
 */
#ifndef PWC_PEERING_NAMES_H
#define PWC_PEERING_NAMES_H

#include "daemon/peering/directory.h"

#define NAMES_WAITERS_MAX 4096u /* of one job */

/* A name and its data, as its publisher's node sends it. */
struct names_item {
    uint32_t rank, node; /* the publisher's */
    const char *name;
    const uint8_t *data;
    uint32_t length;
};

/* A rank that waits until a name is published. */
struct names_waiter {
    struct names_waiter *next;
    uint32_t rank, node;
    uint64_t cookie; /* of the node's question */
    char name[DIRECTORY_PUBLISHED_NAME];
};

/* Whether a name may be published: 1 to 63 printable characters without spaces. */
bool names_valid(const char *name);

/* Publishes a name, or replaces the data that the same rank has published under it. -EINVAL: name
 * or length out of range; -ESTALE: the rank is not attached on that node; -EADDRINUSE: the name is
 * another rank's; -ENOSPC: the job has as many names as it may; -EDQUOT: the user has its share;
 * -ENOMEM. */
int names_publish(struct directory *d, const struct directory_id *id,
                  const struct names_item *item);
/* Takes a name back. -ENOENT: it is not this rank's. */
int names_unpublish(struct directory *d, const struct directory_id *id,
                    const struct names_item *item);
/* Finds a name; NULL: nobody has published it. */
const struct directory_published *names_find(const struct directory *d,
                                             const struct directory_id *id, const char *name);
uint32_t names_data_length(const struct directory_published *published);

/* Notes a waiter, unless it is noted already. -ESTALE: the rank is not attached on that node;
 * -ENOSPC: too many wait; -EDQUOT, -ENOMEM. */
int names_wait(struct directory *d, const struct directory_id *id,
               const struct names_waiter *waiter);
/* Removes one waiter for the name, and copies it to *out. False: none is left. */
bool names_next_waiter(struct directory *d, const struct directory_id *id, const char *name,
                       struct names_waiter *out);
/* Removes the waiter of a node's question that has ended; NAMES_ANY_COOKIE: all waiters of the
 * node. */
#define NAMES_ANY_COOKIE UINT64_MAX
void names_waits_no_longer(struct directory *d, const struct directory_id *id, uint32_t node,
                           uint64_t cookie);
/* Removes all waiters of a node whose link is new, or that is given up. The node may ask again. */
void names_node_waits_no_longer(struct directory *d, uint32_t node);
/* How many names a job has. */
uint32_t names_count(const struct directory_job *job);

#endif
