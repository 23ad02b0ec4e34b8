/* Owns the socket that plays the service manager (manager.h). */
#include "tests/control/lib/manager.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };

bool manager_open(struct manager *m)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(name);
    char address[64];
    int yes = 1;

    m->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (setsockopt(m->socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
        bind(m->socket, (struct sockaddr *)&name, sizeof(sa_family_t)) != 0 ||
        getsockname(m->socket, (struct sockaddr *)&name, &size) != 0)
        return false;
    snprintf(address, sizeof(address), "@%.*s", (int)(size - sizeof(sa_family_t) - 1),
             name.sun_path + 1);
    return setenv("NOTIFY_SOCKET", address, 1) == 0;
}

bool manager_hears(struct manager *m, int limit_ms)
{
    _Alignas(struct cmsghdr)
        uint8_t room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    struct iovec part = {.iov_base = m->said, .iov_len = sizeof(m->said) - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct pollfd wait = {.fd = m->socket, .events = POLLIN};
    ssize_t got;

    if (poll(&wait, 1, limit_ms) != 1)
        return false;
    got = recvmsg(m->socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return false;
    m->said[got] = '\0';
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        struct ucred from;
        int descriptor;

        if (head->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&from, CMSG_DATA(head), sizeof(from));
            m->speaker = from.pid;
        } else if (head->cmsg_type == SCM_RIGHTS) {
            memcpy(&descriptor, CMSG_DATA(head), sizeof(descriptor));
            close(descriptor);
        }
    }
    return true;
}

bool manager_is_notified(struct manager *m, const char *text)
{
    while (manager_hears(m, WAIT_MS))
        if (strstr(m->said, text))
            return true;
    return false;
}
