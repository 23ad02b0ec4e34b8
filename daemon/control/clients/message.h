/* Attaches descriptors to a message of a Unix socket. Thread: any. */
#ifndef PWC_CONTROL_MESSAGE_H
#define PWC_CONTROL_MESSAGE_H

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes that `count` descriptors need, aligned as struct cmsghdr. */
#define MESSAGE_ROOM(count) CMSG_SPACE((count) * sizeof(int))

/* Attaches the descriptors. `room`, zeroed, holds them until the message is sent. */
static inline void message_attach(struct msghdr *message, void *room, const int *descriptors,
                                  uint32_t count)
{
    struct cmsghdr *head;

    message->msg_control = room;
    message->msg_controllen = MESSAGE_ROOM(count);
    head = CMSG_FIRSTHDR(message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
}

#endif
