/* Owns the lists of users and groups that are served (admission.h). Thread: control. */
#include "daemon/control/clients/admission.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* since Linux 4.13 */
#endif

enum { LIST_MAX = 256, NAME_MAX_BYTES = 64 };

static bool number_of(const char *name, unsigned *out)
{
    char *end;
    unsigned long value;

    if (!isdigit((unsigned char)*name))
        return false;
    value = strtoul(name, &end, 10);
    *out = (unsigned)value;
    return *end == '\0' && value < UINT32_MAX;
}

static bool user_id(const char *name, unsigned *out)
{
    const struct passwd *entry;

    if (number_of(name, out))
        return true;
    entry = getpwnam(name);
    if (entry)
        *out = entry->pw_uid;
    return entry != NULL;
}

static bool group_id(const char *name, unsigned *out)
{
    const struct group *entry;

    if (number_of(name, out))
        return true;
    entry = getgrnam(name);
    if (entry)
        *out = entry->gr_gid;
    return entry != NULL;
}

static int parse(const char *list, const char *kind, bool (*lookup)(const char *, unsigned *),
                 unsigned **out, size_t *count, char *why, size_t why_size)
{
    *count = 0;
    if (!list)
        return 0;
    *out = calloc(LIST_MAX, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    for (const char *at = list;; at++) {
        char name[NAME_MAX_BYTES];
        size_t length = strcspn(at, ",");

        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        if (length == 0 || length >= sizeof(name) || *count == LIST_MAX ||
            !lookup(name, &(*out)[*count])) {
            snprintf(why, why_size, "%s \"%s\" is unknown here: give names or numbers, at most %d",
                     kind, name, LIST_MAX);
            return -EINVAL;
        }
        (*count)++;
        at += length;
        if (*at == '\0')
            return 0;
    }
}

int admission_open(struct admission *a, const char *users, const char *groups,
                   const char *inspect_groups, char *why, size_t why_size)
{
    int rc;

    *a = (struct admission){.own = geteuid()};
    rc = parse(users, "allow-users: user", user_id, &a->users, &a->user_count, why, why_size);
    if (rc == 0)
        rc = parse(groups, "allow-groups: group", group_id, &a->groups, &a->group_count, why,
                   why_size);
    if (rc == 0)
        rc = parse(inspect_groups, "inspect-groups: group", group_id, &a->inspect_groups,
                   &a->inspect_count, why, why_size);
    if (rc < 0)
        admission_close(a);
    return rc;
}

void admission_close(struct admission *a)
{
    free(a->users);
    free(a->groups);
    free(a->inspect_groups);
    *a = (struct admission){0};
}

bool admission_is_open(const struct admission *a)
{
    return a->user_count > 0 || a->group_count > 0;
}

static bool has_group(const gid_t *groups, size_t count, gid_t gid)
{
    for (size_t i = 0; i < count; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

/* Whether one of the process's supplementary groups, as they were when it connected, is listed. The
 * kernel is asked for them, because to ask the group file, or the network, could take long. */
static bool has_more_groups(const gid_t *listed, size_t count, int socket)
{
    socklen_t size = 0;
    gid_t *groups;
    bool found = false;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE)
        return false; /* the peer process has no groups, or they cannot be read */
    groups = malloc(size);
    if (groups && getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
        for (size_t i = 0; i < size / sizeof(*groups) && !found; i++)
            found = has_group(listed, count, groups[i]);
    free(groups);
    return found;
}

static bool is_member(const gid_t *listed, size_t count, int socket, gid_t gid)
{
    return count > 0 && (has_group(listed, count, gid) || has_more_groups(listed, count, socket));
}

bool admission_allows(const struct admission *a, int socket, uid_t uid, gid_t gid)
{
    if (uid == a->own)
        return true;
    for (size_t i = 0; i < a->user_count; i++)
        if (a->users[i] == uid)
            return true;
    return is_member(a->groups, a->group_count, socket, gid);
}

bool admission_sees_all(const struct admission *a, int socket, uid_t uid, gid_t gid)
{
    return uid == 0 || uid == a->own || is_member(a->inspect_groups, a->inspect_count, socket, gid);
}

bool client_may_look(struct client *c, uint32_t request)
{
    if (c->user->lookers >= CLIENT_LOOKERS_MAX) {
        reply_error(c, request, -EUSERS,
                    "user %u already has %u connections that only look: close one of them",
                    (unsigned)c->uid, CLIENT_LOOKERS_MAX);
        return false;
    }
    client_becomes(c, CLIENT_LOOKING);
    return true;
}
