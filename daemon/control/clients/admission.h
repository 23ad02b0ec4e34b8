/* Who is served: our own user, and configured users and groups; who sees what is others'. Thread:
 * control. */
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

/* Lists of names or numbers, comma-separated, or NULL. -EINVAL with the name in `why`. */
int admission_open(struct admission *a, const char *users, const char *groups,
                   const char *inspect_groups, char *why, size_t why_size);
void admission_close(struct admission *a);
/* The process at the other end of `socket`, of this user and main group. All its groups count. */
bool admission_allows(const struct admission *a, int socket, uid_t uid, gid_t gid);
/* May look at all clients: root, our own user, and members of an inspect group. */
bool admission_sees_all(const struct admission *a, int socket, uid_t uid, gid_t gid);
/* Users beside our own are served. */
bool admission_is_open(const struct admission *a);
/* Lets a connection look that has not greeted: within the few of its user, so that those who may
 * greet find room. False: it was refused. */
bool client_may_look(struct client *c, uint32_t request);

#endif
