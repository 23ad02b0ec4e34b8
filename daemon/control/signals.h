/*
 * The signals that the daemon takes: SIGTERM and SIGINT (it is to end) and SIGUSR2 (a hand-over).
 *
 * All threads block these signals, from the opening to the end of the process, and the control
 * thread reads them from a descriptor. So no such signal kills the daemon while it ends, when no
 * loop is there any more: a second SIGTERM is usual, because a keeper passes on a signal that the
 * whole process group has already received. Call signals_open before any other thread is started.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_SIGNALS_H
#define PWC_CONTROL_SIGNALS_H

#include <uv.h>

struct signals {
    uv_poll_t poll;
    int descriptor; /* a signalfd; -1: not open */
    void (*take)(void *context, int number);
    void *context;
};

/* Blocks the signals, and gives each that arrives to `take`, in the loop. Returns 0 or a negative
 * errno. */
int signals_open(struct signals *s, uv_loop_t *loop, void (*take)(void *context, int number),
                 void *context);
/* Closes the descriptor; the loop's handles are closed already. The signals stay blocked. */
void signals_close(struct signals *s);

#endif
