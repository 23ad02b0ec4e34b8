/*
 * The planned hand-over: another process, of the same program or of a new one, takes this process's
 * place while clients wait.
 *
 *     this process                               the next process
 *     starts it                          --->    opens its fabric, which takes longest
 *                                       <--- says that it is ready
 *     begins no request any more; when none is under way:
 *     stops the engine, closes the fabric and the links
 *     reports the daemon's new pid (MAINPID)
 *     sends all descriptors (store.h)    --->    takes over (takeover.h), and serves
 *     is gone
 *
 * Until the next process is ready, a failure does no harm: a program that is not ready within 60 s
 * is killed, and this process goes on serving. Where the next process dies later, the keeper or
 * systemd starts another, as after a crash. A hand-over needs systemd or the keeper, which hold the
 * store and watch the daemon while its process changes.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_HANDOVER_H
#define PWC_CONTROL_HANDOVER_H

#include "daemon/control/control.h"

enum handover_state {
    HANDOVER_NONE = 0,
    HANDOVER_STARTED, /* the next process is starting */
    HANDOVER_FAILED,  /* the next process did not start, and is being killed */
    HANDOVER_WAITS,   /* waits until requests under way have ended */
    HANDOVER_GOES,    /* the loop has ended, and the hand-over follows */
};

void handover_open(struct control *control);
/* Starts the next process: `program` (an absolute path), or our own program where it is NULL.
 * -ENOTSUP: nobody keeps the store; -EALREADY: a hand-over or the end has begun; or the errno of
 * the start; `why` has the reason. `client` (NULL: none) gets the answer to `request` when the next
 * process is ready, or has failed. */
int handover_begin(struct control *control, const char *program, struct client *client,
                   uint32_t request, char *why, size_t why_size);
/* Starts our own program as the next process, as a signal asks for. Where a hand-over is under way,
 * notes that another one must follow, because the next process may have read the configuration
 * already. */
void handover_ask(struct control *control);
/* Forgets a client that ends, so that it is not answered. */
void handover_forget(struct control *control, const struct client *client);
/* After the loop has ended in the state HANDOVER_GOES, hands over and ends this process. */
_Noreturn void handover_finish(struct control *control);

/* Called in the next process when its fabric is open: waits for the descriptors of the earlier
 * process. Returns 0, also where there is no earlier process; -EPIPE: the earlier process stays. */
int handover_await(struct control *control);
/* Whether this process is to take the place of an earlier one that still runs. */
bool handover_is_next(void);

#endif
