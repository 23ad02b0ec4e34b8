/*
 * The socket of a job's own daemon, and the names of sockets. A name that begins with @ is
 * abstract. An abstract socket has no file, so nothing is left when the daemon ends. It has no mode
 * either, so any user may take its name, and each end asks the kernel for the other end's user.
 */
#ifndef PWC_JOB_SOCKET_H
#define PWC_JOB_SOCKET_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#define JOB_SOCKET_ID_MAX 64 /* of a job's number or name, terminator included */

/* "@pwcd/UID/ID", the same for the daemon, its ranks and pwcctl. -EINVAL: no such id. */
static inline int job_socket_name(char *to, size_t size, uid_t uid, const char *id)
{
    int length;

    if (!*id || strlen(id) >= JOB_SOCKET_ID_MAX || strchr(id, '/'))
        return -EINVAL;
    length = snprintf(to, size, "@pwcd/%u/%s", (unsigned)uid, id);
    return length > 0 && (size_t)length < size ? 0 : -EINVAL;
}

/* Makes the address of a path or @name, which must fit into sun_path with its terminator. Returns
 * the address's length. */
static inline socklen_t job_socket_address(const char *name, struct sockaddr_un *out)
{
    size_t length = strlen(name);

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    memcpy(out->sun_path, name, length < sizeof(out->sun_path) ? length : sizeof(out->sun_path));
    if (*name != '@')
        return sizeof(*out);
    out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* The user of a connection's other end, or (uid_t)-1. */
static inline uid_t job_socket_peer(int socket)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof(peer);

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : (uid_t)-1;
}

/*
 * Whether `owner`, the user of the serving end (job_socket_peer), may serve at this name. At an
 * abstract name these are our own user, root, and the user whose number is in the name.
 */
static inline bool job_socket_trusted(const char *name, uid_t owner)
{
    unsigned named;

    return *name != '@' || owner == geteuid() || owner == 0 ||
           (sscanf(name, "@pwcd/%u/", &named) == 1 && owner == named && owner != (uid_t)-1);
}

#endif
