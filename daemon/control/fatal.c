/* Logs errors of the start, and ends the process where no orderly end is possible (fatal.h).
 * Thread: control. */
#include "daemon/control/fatal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/control.h"

int control_explain(struct control *control, int rc, const char *why)
{
    if (rc < 0)
        log_line(&control->log, LOG_LEVEL_ERROR, "%s", *why ? why : strerror(-rc));
    return rc;
}

/* Removes the files of a daemon that no other process continues. */
static void remove_files(struct control *control)
{
    if (control->publisher.counters.path)
        (void)unlink(control->publisher.counters.path);
    socket_path_close(&control->socket);
}

_Noreturn void control_end_at_once(struct control *control, const char *why)
{
    log_line(&control->log, LOG_LEVEL_ERROR, "%s", why);
    if (!control->store.kept)
        remove_files(control);
    _exit(EXIT_FAILURE);
}

_Noreturn void control_end_for_good(struct control *control, enum exit_status status,
                                    const char *why)
{
    log_line(&control->log, LOG_LEVEL_ERROR, "%s", why);
    remove_files(control);
    _exit(status);
}
