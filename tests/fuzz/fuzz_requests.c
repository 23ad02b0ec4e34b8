/*
 * Fuzzes requests of clients on their sockets, which are carried out. An input is a sequence of
 * (control byte, length, bytes). The bytes are sent on one of two connections as they are, or as a
 * request's body after the frame's length; the control byte may also ask to attach properly first,
 * or to hang up.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/control.pb-c.h"
#include "proto/session_abi.h"
#include "tests/fuzz/room.h"

enum {
    SECOND = 1 << 0, /* use the second connection */
    RAW = 1 << 1,    /* send no length before the bytes */
    HELLO = 1 << 2,  /* send a Hello of a rank of two first */
    READ = 1 << 3,   /* read and drop the daemon's answers */
    HANG_UP = 1 << 4,
    TURN = 1 << 5,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int s, const void *bytes, size_t size)
{
    (void)!send(s, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void put_frame(int s, const uint8_t *body, size_t size)
{
    const uint8_t head[4] = {(uint8_t)size, (uint8_t)(size >> 8), 0, 0};

    put(s, head, sizeof(head));
    put(s, body, size);
}

static void hello(int s, uint32_t rank)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello h = PWC__HELLO__INIT;
    uint8_t body[64];

    h.version_min = h.version_max = 1;
    h.rings = SESSION_VERSION;
    h.job = (char *)(uintptr_t) "j";
    h.rank = rank;
    h.size = 2;
    request.id = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &h;
    put_frame(s, body, pwc__client_request__pack(&request, body));
}

/* Reads and drops all answers, and closes descriptors that came with them. */
static void read_all(int s)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    char bytes[4096];

    for (;;) {
        struct iovec part = {bytes, sizeof(bytes)};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        const struct cmsghdr *header;

        if (recvmsg(s, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
            return;
        header = CMSG_FIRSTHDR(&message);
        for (size_t at = CMSG_LEN(0); header && at < header->cmsg_len; at += sizeof(int)) {
            int fd;

            memcpy(&fd, (const char *)header + at, sizeof(fd));
            close(fd);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct room *room = room_new();
    int sockets[2];

    if (!room)
        abort();
    sockets[0] = room_connect(room);
    sockets[1] = room_connect(room);
    while (size >= 2) {
        uint8_t how = data[0];
        uint32_t which = how & SECOND;
        size_t length = data[1];

        data += 2;
        size -= 2;
        length = length < size ? length : size;
        if (how & HANG_UP) {
            close(sockets[which]);
            sockets[which] = room_connect(room);
        }
        if (how & HELLO) {
            hello(sockets[which], which);
            room_turn(room);
        }
        if (how & RAW)
            put(sockets[which], data, length);
        else
            put_frame(sockets[which], data, length);
        if (how & TURN)
            room_turn(room);
        if (how & READ)
            read_all(sockets[which]);
        data += length;
        size -= length;
    }
    room_turn(room);
    for (int i = 0; i < 2; i++) {
        read_all(sockets[i]);
        close(sockets[i]);
    }
    room_free(room);
    return 0;
}
