/*
 * The planned hand-over: another process, of this program or of a new one, takes this daemon's
 * place while its clients wait.
 *
 *     this one                                   the next one
 *     starts it                          --->    opens its fabric, which takes longest
 *                                       <--- says that it is ready
 *     begins no request any more; when none is under way:
 *     stops the engine, closes the fabric and the links
 *     reports the daemon's new pid (MAINPID)
 *     sends all descriptors (store.h)    --->    takes over (takeover.h), serves on
 *     is gone
 *
 * Until the engine stops, a failure does no harm: a program that does not come up within 60 s is
 * ended, and leaves this daemon as it was. A hand-over needs systemd or the keeper, which hold the
 * store and watch the daemon while its process changes; without them there is none.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_HANDOVER_H
#define PWC_CONTROL_HANDOVER_H

#include "daemon/control/control.h"

enum handover_state {
    HANDOVER_NONE = 0,
    HANDOVER_STARTED, /* the next process comes up */
    HANDOVER_FAILED,  /* the next process did not come up, and is being ended */
    HANDOVER_WAITS,   /* until requests under way have ended */
    HANDOVER_GOES,    /* the loop has ended for the hand-over */
};

void handover_open(struct control *control);
/* Starts the next process: `program` (an absolute path), or, NULL, our own program. -ENOTSUP:
 * nobody keeps the store; -EALREADY; or the reason why it cannot be started, also in `why`.
 * `client` (NULL: none) gets the answer to `request` when the next process is ready, or has failed.
 */
int handover_begin(struct control *control, const char *program, struct client *client,
                   uint32_t request, char *why, size_t why_size);
/* A client ends: it gets no answer any more. */
void handover_forget(struct control *control, const struct client *client);
/* With the loop ended and the state HANDOVER_GOES: hands over, and ends this process. */
_Noreturn void handover_finish(struct control *control);

/* In the next process, when its fabric is open: waits for the descriptors of the process before it.
 * 0, also where there is no such process; -EPIPE: that process stays. */
int handover_await(struct control *control);
/* Whether there is a process before this one, whose place it takes. */
bool handover_is_next(void);

#endif
