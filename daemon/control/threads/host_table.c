/* Owns the progress thread's table of mappings (host_table.h). Thread: progress. */
#include "daemon/control/threads/host_table.h"

#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "proto/session_abi.h"
#include "shm_ring/clock.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/sigbus.h"

int host_table_open(struct host_table *a, const struct engine_config *config)
{
    *a = (struct host_table){
        .sessions_max = config->sessions_max,
        .segments_max = config->segments_max,
        .clients_max = config->clients_max,
        .sessions = calloc(config->sessions_max, sizeof(*a->sessions)),
        .segments = calloc(config->segments_max, sizeof(*a->segments)),
        .faulted = calloc(config->clients_max, sizeof(*a->faulted)),
    };
    for (uint32_t i = 0; i < ENGINE_TEAMS; i++)
        a->area_ranges[i] = -1;
    if (a->sessions && a->segments && a->faulted)
        return 0;
    host_table_close(a);
    return -ENOMEM;
}

void host_table_close(struct host_table *a)
{
    free(a->sessions);
    free(a->segments);
    free(a->faulted);
    *a = (struct host_table){0};
}

static void forget_session(struct host_table *a, uint32_t session)
{
    struct host_session *s = &a->sessions[session];

    a->sessions_beside -= s->shared && s->relation == SCHED_BESIDE;
    a->sessions_apart -= s->shared && s->relation == SCHED_APART;
    *s = (struct host_session){.wake = -1, .range = -1};
}

void host_table_add_session(struct host_table *a, uint32_t session, const struct host_session *s)
{
    forget_session(a, session); /* the handle's earlier mapping may still be there */
    a->sessions[session] = *s;
    a->sessions_beside += s->relation == SCHED_BESIDE;
    a->sessions_apart += s->relation == SCHED_APART;
    atomic_store_explicit(&s->shared->apart, s->relation == SCHED_APART, memory_order_relaxed);
}

void host_table_add_segment(struct host_table *a, uint32_t segment, const struct host_segment *s)
{
    a->segments[segment] = *s;
}

void host_table_add_area(struct host_table *a, uint32_t team, int range)
{
    a->area_ranges[team % ENGINE_TEAMS] = range;
}

void host_table_drop_session(struct host_table *a, uint32_t session, const void *base)
{
    if (a->sessions[session].shared == base)
        forget_session(a, session);
}

bool host_table_is_apart(const struct host_table *a)
{
    return a->sessions_apart > 0 && a->sessions_beside == 0;
}

void host_table_drop_segment(struct host_table *a, uint32_t segment, const void *base)
{
    if (a->segments[segment].base == base)
        a->segments[segment] = (struct host_segment){.range = -1};
}

void host_table_drop_client(struct host_table *a, uint32_t client)
{
    a->faulted_count -= a->faulted[client];
    a->faulted[client] = false;
    for (uint32_t i = 0; i < a->sessions_max; i++)
        if (a->sessions[i].client == client)
            a->sessions[i].range = -1;
    for (uint32_t i = 0; i < a->segments_max; i++)
        if (a->segments[i].client == client)
            a->segments[i].range = -1;
}

/* ---- calls of the engine -------------------------------------------------------------------- */

static void wake(void *context, uint32_t session, uint32_t mode)
{
    struct host_table *a = context;
    struct host_session *s = &a->sessions[session];

    if (!s->shared)
        return;
    if (mode == DOORBELL_FUTEX)
        doorbell_wake(&s->shared->event_bell);
    else
        /* Ignore a full socket: the client's end is readable already. */
        (void)send(s->wake, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void random_bytes(void *context, void *to, size_t size)
{
    randombytes_buf(to, size);
}

static void note_fault(struct host_table *a, uint32_t client)
{
    a->faulted_count += !a->faulted[client];
    a->faulted[client] = true;
}

/* Looks for ranges of clients with a fault. Each range counts once, because the fault has replaced
 * its pages by zero pages of the daemon's own. */
static void note_faults(struct host_table *a)
{
    for (uint32_t i = 0; i < a->sessions_max; i++) {
        struct host_session *s = &a->sessions[i];

        if (s->shared && s->range >= 0 && sigbus_hit(s->range)) {
            s->range = -1;
            note_fault(a, s->client);
        }
    }
    for (uint32_t i = 0; i < a->segments_max; i++) {
        struct host_segment *s = &a->segments[i];

        if (s->base && s->range >= 0 && sigbus_hit(s->range)) {
            s->range = -1;
            note_fault(a, s->client);
        }
    }
}

static void look(struct host_table *a)
{
    if (!sigbus_any(&a->faults_seen))
        return;
    note_faults(a);
    a->areas_due = true;
}

/* The engine asks about all areas after each answer of true. */
static bool any_faulted(void *context)
{
    struct host_table *a = context;
    bool areas;

    look(a);
    areas = a->areas_due;
    a->areas_due = false;
    return areas || a->faulted_count > 0;
}

static bool area_faulted(void *context, uint32_t team)
{
    struct host_table *a = context;
    int *range = &a->area_ranges[team % ENGINE_TEAMS];

    if (*range < 0 || !sigbus_hit(*range))
        return false;
    *range = -1;
    return true;
}

static bool faulted(void *context, uint32_t client)
{
    struct host_table *a = context;

    look(a);
    if (!a->faulted[client])
        return false;
    a->faulted[client] = false;
    a->faulted_count--;
    return true;
}

static uint64_t read_clock(void *context)
{
    return clock_ns();
}

static uint64_t read_switches(void *context)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : (uint64_t)usage.ru_nivcsw;
}

static int fence(void *context)
{
    return doorbell_fence_others();
}

void host_table_host(struct host_table *a, struct engine_host *out)
{
    *out = (struct engine_host){.context = a,
                                .wake = wake,
                                .random = random_bytes,
                                .clock = read_clock,
                                .switches = read_switches,
                                .fence = doorbell_fence_others() == 0 ? fence : NULL,
                                .faulted = faulted,
                                .area_faulted = area_faulted,
                                .any_faulted = any_faulted};
}
