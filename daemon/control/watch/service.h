/*
 * Messages to the service manager, if there is one (NOTIFY_SOCKET; sd_notify(3)): that the daemon
 * is ready, its status, which process takes its place, and, while all engines live (watchdog.h),
 * the watchdog's feed.
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
    char text[256];    /* the status it has */
    uint32_t linked;   /* other nodes */
};

/* The daemon serves. From now on the watchdog is fed. */
void service_ready(struct control *control);
/* Clients, or links to other nodes (this many stand now), have appeared or gone: the manager gets a
 * new status, soon. */
void service_clients_changed(struct control *control);
void service_links_changed(struct control *control, uint32_t linked);
/* Another process is to take our place; or does not. */
void service_leaving(struct control *control);
void service_stays(struct control *control);
/* Another process has taken our place. */
void service_handed_over(struct control *control, pid_t next);
void service_ending(struct control *control);

#endif
