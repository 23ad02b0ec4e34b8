/* Owns the messages to the service manager (service.h). Thread: control. */
#include "daemon/control/watch/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/clock.h"
#include "daemon/control/control.h"

enum { STATUS_MS = 200 /* at most one status line in this time */ };

/* ---- status ---------------------------------------------------------------------------------- */

static void write_status(const struct control *control, char *to, size_t size)
{
    uint32_t clients = 0;
    int used;

    for (const struct client *c = control->clients; c; c = c->next)
        clients += c->state == CLIENT_SERVED;
    used = snprintf(to, size, "%u client%s", clients, clients == 1 ? "" : "s");
    if (control->node_count > 1 && (size_t)used < size)
        used += snprintf(to + used, size - (size_t)used, ", %u of %u other nodes linked",
                         control->service.linked, control->node_count - 1);
    if ((size_t)used < size)
        snprintf(to + used, size - (size_t)used, "; node %u, provider %s, %u progress thread%s",
                 control->node, control->provider, control->worker_count,
                 control->worker_count == 1 ? "" : "s");
}

static void send_status(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct service *s = &control->service;
    char text[sizeof(s->text)];

    write_status(control, text, sizeof(text));
    if (strcmp(text, s->text) == 0)
        return;
    memcpy(s->text, text, sizeof(text));
    sd_notifyf(0, "STATUS=%s", text);
}

void service_clients_changed(struct control *control)
{
    struct service *s = &control->service;

    if (s->manager && !control->stopping && !uv_is_active((uv_handle_t *)&s->status))
        uv_timer_start(&s->status, send_status, STATUS_MS, 0);
}

void service_links_changed(struct control *control, uint32_t linked)
{
    control->service.linked = linked;
    service_clients_changed(control);
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static void say_stuck(struct control *control, const struct worker *w)
{
    const struct service *s = &control->service;

    log_line(&control->log, LOG_LEVEL_WARNING,
             "engine %u has not gone round for %" PRIu64
             " ms, though it was woken: unless it does, "
             "the watchdog ends this daemon %" PRIu64 " ms after its last round",
             w->engine, (uint64_t)s->watchdog.engine[w->engine].silent * s->look_ms,
             WATCHDOG_LOOKS * s->look_ms);
}

static void look(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct service *s = &control->service;

    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct worker *w = &control->workers[i];
        struct progress_stats stats;

        if (!w->progress)
            return;
        progress_stats(w->progress, &stats);
        if (watchdog_look(&s->watchdog, i, stats.rounds))
            progress_kick(w->progress);
        if (watchdog_missed(&s->watchdog, i) == 1)
            say_stuck(control, w);
    }
    if (watchdog_feed(&s->watchdog))
        sd_notify(0, "WATCHDOG=1");
}

static void feed(struct control *control)
{
    struct service *s = &control->service;
    uint64_t interval_us;

    if (sd_watchdog_enabled(0, &interval_us) <= 0)
        return;
    watchdog_init(&s->watchdog, control->worker_count);
    s->look_ms = interval_us / (WATCHDOG_LOOKS * 1000);
    if (s->look_ms == 0)
        s->look_ms = 1;
    uv_timer_start(&s->look, look, s->look_ms, s->look_ms);
}

/* ---- our life -------------------------------------------------------------------------------- */

void service_ready(struct control *control)
{
    struct service *s = &control->service;

    s->manager = getenv("NOTIFY_SOCKET") != NULL;
    if (!s->manager)
        return;
    uv_timer_init(&control->loop, &s->look);
    uv_timer_init(&control->loop, &s->status);
    s->look.data = s->status.data = control;
    write_status(control, s->text, sizeof(s->text));
    sd_notifyf(0, "READY=1\nWATCHDOG=1\nSTATUS=%s", s->text);
    feed(control);
}

void service_leaving(struct control *control)
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=another process takes over",
               clock_ns() / 1000);
}

void service_stays(struct control *control)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", control->service.text);
}

void service_handed_over(struct control *control, pid_t next)
{
    sd_notifyf(0, "MAINPID=%d\nWATCHDOG=1", (int)next);
}

void service_ending(struct control *control)
{
    sd_notify(0, "STOPPING=1\nSTATUS=ending");
}
