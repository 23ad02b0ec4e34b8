/*
 * Sends messages to the service manager, if there is one (NOTIFY_SOCKET; sd_notify(3)): that the
 * daemon is ready, its status, which process takes its place, and, while no engine is stuck
 * (watchdog.h), the messages that feed the watchdog.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_SERVICE_H
#define PWC_CONTROL_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>
#include "daemon/control/watch/watchdog.h"

struct control;

struct service {
    bool manager; /* there is a service manager */
    struct watchdog watchdog;
    uint64_t look_ms;
    uv_timer_t look;   /* looks at the engines, if there is a watchdog */
    uv_timer_t status; /* sends a changed status */
    char text[256];    /* the status that the manager has */
    uint32_t linked;   /* how many other nodes are linked */
};

/* Reports that the daemon serves, and begins to feed the watchdog. */
void service_ready(struct control *control);
/* Sends a new status soon, after clients have come or gone. service_links_changed: after links to
 * other nodes have changed; `linked` nodes are linked now. */
void service_clients_changed(struct control *control);
void service_links_changed(struct control *control, uint32_t linked);
/* Reports that another process is to take our place; service_stays: that it does not. */
void service_leaving(struct control *control);
void service_stays(struct control *control);
/* Reports that another process, `next`, has taken our place. */
void service_handed_over(struct control *control, pid_t next);
void service_ending(struct control *control);

#endif
