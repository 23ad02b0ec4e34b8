/*
 * Fuzzes replies of a broken or hostile daemon on the control socket, as the library reads them.
 * The first byte of an input chooses the request; the rest is all that the daemon sends before it
 * hangs up.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clientlib/attach/daemon_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads all fields of a reply of any kind. */
static int read_reply(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    volatile uint64_t *sum = context;

    if (reply->body_case == PWC__CLIENT_REPLY__BODY_EXCHANGED)
        for (size_t i = 0; i < reply->exchanged->data.len; i++)
            *sum += reply->exchanged->data.data[i];
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_FOUND)
        for (size_t i = 0; i < reply->found->data.len; i++)
            *sum += reply->found->data.data[i];
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_EXCHANGED && !reply->exchanged->last)
        return 0;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const Pwc__ClientReply__BodyCase kinds[] = {
        PWC__CLIENT_REPLY__BODY_WELCOME,        PWC__CLIENT_REPLY__BODY_CONTEXT_OPENED,
        PWC__CLIENT_REPLY__BODY_SEGMENT_OPENED, PWC__CLIENT_REPLY__BODY_REGION_OPENED,
        PWC__CLIENT_REPLY__BODY_BOUND,          PWC__CLIENT_REPLY__BODY_EXCHANGED,
        PWC__CLIENT_REPLY__BODY_DONE,           PWC__CLIENT_REPLY__BODY_FOUND};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    struct daemon_link link;
    char text[64];
    uint64_t sum = 0;
    int ends[2];

    if (size == 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0 ||
        daemon_link_open(&link, ends[0], 20) < 0)
        abort();
    (void)!send(ends[1], data + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(ends[1], SHUT_WR);
    inspect.what = (char *)(uintptr_t) "status";
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    for (int i = 0; i < 4; i++)
        if (daemon_call(&link, &request, kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))],
                        read_reply, &sum) < 0)
            (void)daemon_link_text(&link, text, sizeof(text));
    close(ends[1]);
    daemon_link_close(&link);
    return 0;
}
