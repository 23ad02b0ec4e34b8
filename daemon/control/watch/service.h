/*
 * What the service manager is told, where there is one (NOTIFY_SOCKET; sd_notify(3)): that we are
 * ready, what we are about, who takes our place, and, while all engines live (watchdog.h), that
 * the watchdog need not bark.
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
    bool manager; /* there is one */
    struct watchdog watchdog;
    uint64_t look_ms;
    uv_timer_t look;   /* at the engines; not where no watchdog is set */
    uv_timer_t status; /* that is to be told */
    char text[256];    /* that it has */
    uint32_t linked;   /* other nodes */
};

/* We serve. From now on the watchdog is fed. */
void service_ready(struct control *control);
/* Clients, or links to other nodes (so many stand now), have come or gone: the manager gets a new
 * status, soon. */
void service_clients_changed(struct control *control);
void service_links_changed(struct control *control, uint32_t linked);
/* Another process is to take our place, or will not. */
void service_leaving(struct control *control);
void service_stays(struct control *control);
/* It does now. */
void service_handed_over(struct control *control, pid_t next);
void service_ending(struct control *control);

#endif
