/* Owns the descriptor from which signals are read (signals.h). Thread: control. */
#include "daemon/control/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TAKEN 3 /* signals: each waits once at most */

/* Reads each signal once, so that a flood of signals does not hold the loop up. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct signals *s = poll->data;
    struct signalfd_siginfo info;

    for (int i = 0; i < TAKEN && read(s->descriptor, &info, sizeof(info)) == sizeof(info); i++)
        s->take(s->context, (int)info.ssi_signo);
}

int signals_open(struct signals *s, uv_loop_t *loop, void (*take)(void *context, int number),
                 void *context)
{
    sigset_t taken;
    int rc;

    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGUSR2);
    rc = -pthread_sigmask(SIG_BLOCK, &taken, NULL);
    if (rc < 0)
        return rc;
    s->descriptor = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->descriptor < 0)
        return -errno;
    s->take = take;
    s->context = context;
    rc = uv_poll_init(loop, &s->poll, s->descriptor);
    if (rc < 0)
        return rc; /* signals_close closes the descriptor */
    s->poll.data = s;
    return uv_poll_start(&s->poll, UV_READABLE, on_readable);
}

void signals_close(struct signals *s)
{
    if (s->descriptor >= 0)
        close(s->descriptor);
    s->descriptor = -1;
}
