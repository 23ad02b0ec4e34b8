/* Decides which users are served (our own, and configured users and groups), and which users see
 * clients of others. Thread: control. */
#ifndef PWC_CONTROL_ADMISSION_H
#define PWC_CONTROL_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;

struct admission {
    uid_t own;
    uid_t *users;
    size_t user_count;
    gid_t *groups;
    size_t group_count;
    gid_t *inspect_groups;
    size_t inspect_count;
};

/* Takes lists of names or numbers, separated by commas, or NULL. -EINVAL: a name is unknown; `why`
 * has it. */
int admission_open(struct admission *a, const char *users, const char *groups,
                   const char *inspect_groups, char *why, size_t why_size);
void admission_close(struct admission *a);
/* Whether the process at the other end of `socket`, with this user and main group, may be served.
 * All groups of the process count. */
bool admission_allows(const struct admission *a, int socket, uid_t uid, gid_t gid);
/* Whether that process may see the clients of all users: root, our own user and members of an
 * inspect group. */
bool admission_sees_all(const struct admission *a, int socket, uid_t uid, gid_t gid);
/* Whether users other than our own are served. */
bool admission_is_open(const struct admission *a);
/* Lets a connection look (ask for views) without Hello. A user may have only few such connections,
 * so that clients with Hello find room. False: it was refused. */
bool client_may_look(struct client *c, uint32_t request);

#endif
