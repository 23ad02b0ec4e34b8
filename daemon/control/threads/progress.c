/* Owns the progress thread and how it waits (progress.h). */
#include "daemon/control/threads/progress.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "daemon/control/threads/slice.h"
#include "daemon/control/threads/step_watch.h"

#define STEP_BUDGET 256
/* Time that commands may take before each step, so that data moves however much many clients ask
 * for together. A command takes 1 to 5 us; at least one is carried out. */
#define COMMANDS_NS 10000u
#define OBSERVE_NS  100000000u
/* Where the fabric has no descriptor, an idle thread looks for work every LOOK_NS at first. After
 * LOOKS_IDLE looks without work, it looks less often: looking then takes 1/LOOK_SHARE of a core (a
 * look costs 20 to 60 us). */
#define LOOK_NS         1000000u
#define LOOK_LONGEST_NS 50000000u
#define LOOKS_IDLE      128u
#define LOOK_SHARE      400u
/* Without a descriptor, a sleep delays the next message by up to the time between two looks. So
 * yield for twice this time first, and accept a yield that takes as long. */
#define LOOK_PATIENCE_NS (2 * LOOK_NS)
#define NOTICES_MAX      64
#define FOUND_MOST       2 /* so many steps with work, just before a sleep, prevent the sleep */
#define BATCHES_MOST     8 /* of notices, in one round */

/* A batch of notices on its way to the control thread. */
struct notice_batch {
    struct command command;
    struct progress *progress;
    int count;
    struct engine_notice notices[NOTICES_MAX];
};

struct progress {
    struct progress_config config;
    struct engine *engine;
    void *memory; /* the engine's private memory */
    size_t memory_bytes;
    pthread_t thread;
    struct mailbox inbox;  /* to the progress thread */
    struct command *due;   /* list of commands that were taken from the inbox, and not carried out
                            * yet */
    struct mailbox outbox; /* to the control thread */
    /* Eventfds. With a uv_async_t, the control thread would spin until the sender has returned from
     * its write, although it may have taken the sender's processor. */
    int wake_fd; /* wakes the progress thread */
    int back_fd; /* wakes the control thread */
    uv_poll_t back;
    int epoll;
    int fabric_fd; /* the fabric's descriptor in the epoll set, or -1 */
    struct step_watch watch;
    uint64_t commands_ns; /* of the step under way */
    int processor;        /* the processor that the thread ran on at the last step, or -1 */
    bool rested;          /* the thread has slept since the watch's base was noted */
    struct patience patience;
    struct slice slice;
    uint64_t hastened; /* the last deadline that was too near to sleep until then: the next step
                        * takes it as its time, and no later step has an earlier time */
    uint32_t looks;    /* where the fabric has no descriptor: looks in a row that found no work */
    uint64_t look_ns;  /* time between two looks at a fabric without a descriptor */
    uint64_t looks_cpu_ns; /* the thread's processor time when look_ns was last chosen */
    _Atomic bool stop;
    bool halted;     /* the control thread's */
    uint64_t cpu_ns; /* of the whole thread, once it is halted */
    _Atomic uint64_t rounds, sleeps, work;
};

/* The time that a step gets as `now`; never earlier than that of the last step. */
static uint64_t step_time(const struct progress *p, uint64_t now)
{
    return now > p->hastened ? now : p->hastened;
}

static void ring(int eventfd)
{
    uint64_t one = 1;

    /* The write fails only where the counter is full, so the other thread is woken anyway. */
    (void)!write(eventfd, &one, sizeof(one));
}

static void send_back(struct progress *p, struct command *command)
{
    if (mailbox_put(&p->outbox, command))
        ring(p->back_fd);
}

/* ---- lengths of steps ------------------------------------------------------------------------ */

static struct step_usage usage_now(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) < 0)
        usage.ru_nvcsw = 0;
    return (struct step_usage){.cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID),
                               .blocked = (uint64_t)usage.ru_nvcsw};
}

static void note_usage(struct progress *p, uint64_t now)
{
    p->watch.base = usage_now();
    p->watch.base_at = now;
    p->watch.sleeps = 0;
}

/* The part of a step's time in which the thread ran. Reports to patience how long the thread had
 * lost its core. */
static uint64_t own_time(struct progress *p, uint64_t took, uint64_t now)
{
    struct step_usage usage;
    uint64_t own;

    if (took <= STEP_SURE_NS)
        return took;
    usage = usage_now();
    own = step_watch_own(&p->watch, took, &usage);
    p->watch.base = usage;
    p->watch.base_at = now;
    p->watch.sleeps = 0;
    patience_lost(&p->patience, took - own, now);
    return own;
}

/* Notes a step that is the longest or the first of its second, or so long that the thread may have
 * lost its core. */
static void note_step(struct progress *p, uint64_t now)
{
    uint64_t took = now - p->watch.began, slowest_ns;
    uint32_t part = engine_slowest(p->engine, now, &slowest_ns);

    if (p->commands_ns >= slowest_ns)
        part = ENGINE_COMMANDS;
    took = own_time(p, took, now);
    if (step_watch_asks(&p->watch, now))
        step_watch_end(&p->watch, now, took, part);
}

static void step_ends(struct progress *p, uint64_t now)
{
    if (p->watch.began > 0 &&
        (step_watch_asks(&p->watch, now) || now - p->watch.began > p->patience.long_ns))
        note_step(p, now);
    p->watch.began = 0;
}

static void step_begins(struct progress *p, uint64_t now)
{
    step_ends(p, now);
    if (p->rested)
        p->watch.base_at = now; /* the thread has used no processor time while it rested */
    p->rested = false;
    if (now - p->watch.base_at > STEP_BASE_NS)
        note_usage(p, now);
    p->watch.began = now;
    p->commands_ns = 0;
}

/* ---- commands and notices -------------------------------------------------------------------- */

/* Runs commands in order, until they have taken `limit_ns`. The rest runs in the next round. */
static int run_commands(struct progress *p, uint64_t limit_ns)
{
    uint64_t begun;
    int n = 0;

    if (!p->due)
        p->due = mailbox_take(&p->inbox);
    if (!p->due)
        return 0;
    begun = clock_ns();
    do {
        struct command *command = p->due;

        p->due = command->next;
        command->run(command, p->engine);
        send_back(p, command);
        n++;
    } while (p->due && clock_ns() - begun < limit_ns);
    return n;
}

static void batch_done(struct command *command)
{
    struct notice_batch *batch = (struct notice_batch *)command;

    for (int i = 0; i < batch->count; i++)
        batch->progress->config.notice(batch->progress->config.context, &batch->notices[i]);
    free(batch);
}

/* Sends notices to the control thread in batches. Where a batch finds no memory, and after
 * BATCHES_MOST of them, the notices stay in the engine until the next round. */
static int forward_notices(struct progress *p)
{
    int sum = 0;

    for (int batches = 0; batches < BATCHES_MOST && engine_notice_pending(p->engine); batches++) {
        struct notice_batch *batch = malloc(sizeof(*batch));
        int count = 0;

        if (!batch)
            break;
        batch->command = (struct command){.done = batch_done};
        batch->progress = p;
        while (count < NOTICES_MAX && engine_notice(p->engine, &batch->notices[count]))
            count++;
        batch->count = count;
        send_back(p, &batch->command); /* the control thread owns it now */
        sum += count;
    }
    return sum;
}

/* Chooses the slice again: sessions may have come and gone. */
static void fit_slice(struct progress *p)
{
    if (p->config.apart)
        slice_choose(&p->slice, p->config.apart(p->config.context));
}

/* Runs the commands that have arrived, but only after all notices have left the engine. A command
 * may reuse a handle whose CLOSED notice is still in the engine, and the notice would then seem to
 * be about the new owner. */
static int take_commands(struct progress *p, uint64_t now)
{
    int commands;

    (void)forward_notices(p); /* notices of the last step before a sleep */
    if (engine_notice_pending(p->engine))
        return 0;
    commands = run_commands(p, COMMANDS_NS);
    if (commands > 0) {
        fit_slice(p);
        p->commands_ns = clock_ns() - now;
    }
    return commands;
}

/* Puts the fabric's descriptor into the epoll set; it seldom changes. Returns whether it is there.
 */
static bool watch_fabric(struct progress *p, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

    if (descriptor == p->fabric_fd)
        return true;
    if (p->fabric_fd >= 0)
        epoll_ctl(p->epoll, EPOLL_CTL_DEL, p->fabric_fd, NULL);
    p->fabric_fd = epoll_ctl(p->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? descriptor : -1;
    return p->fabric_fd >= 0;
}

/* Sleeps, and returns the number of ready descriptors; 0: the time is over. Sets *silent to whether
 * the fabric's is not among them. */
static int wait_for_events(struct progress *p, uint64_t limit_ns, bool *silent)
{
    struct epoll_event events[64];
    struct timespec limit = {.tv_sec = (time_t)(limit_ns / 1000000000u),
                             .tv_nsec = (long)(limit_ns % 1000000000u)};
    int n = epoll_pwait2(p->epoll, events, 64, limit_ns == UINT64_MAX ? NULL : &limit, NULL);
    uint64_t count;

    *silent = true;
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == p->wake_fd)
            (void)!read(p->wake_fd, &count, sizeof(count));
        *silent &= events[i].data.fd != p->fabric_fd;
    }
    return n;
}

/* The time until the next look, where the fabric has no descriptor. */
static uint64_t look_interval(struct progress *p)
{
    if (p->looks++ % LOOKS_IDLE == 0) {
        uint64_t cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
        uint64_t fair = (cpu - p->looks_cpu_ns) / LOOKS_IDLE * LOOK_SHARE;

        p->look_ns = p->looks == 1 || fair < LOOK_NS ? LOOK_NS
                     : fair > LOOK_LONGEST_NS        ? LOOK_LONGEST_NS
                                                     : fair;
        p->looks_cpu_ns = cpu;
    }
    return p->look_ns;
}

static int step(struct progress *p, uint64_t now, uint64_t *deadline)
{
    int work = engine_step(p->engine, step_time(p, now), STEP_BUDGET, deadline);

    if (work > 0) {
        atomic_fetch_add_explicit(&p->work, (uint64_t)work, memory_order_relaxed);
        patience_worked(&p->patience, now);
        p->looks = 0;
    }
    return work;
}

/*
 * Arms the bells, looks once or twice more for work, and sleeps if there was none. The fabric is
 * armed last, because a later poll would disarm it. A fabric without a descriptor is looked at
 * every millisecond, later less often; each look costs one step and arms nothing.
 *
 * The bells stay armed after the sleep. Where the thread soon sleeps again, as beside a program
 * that computes, the bells need not be armed again, with a fence of all processors.
 */
static void sleep_unless_work(struct progress *p)
{
    int descriptor, ready = 0, found = 0;
    bool slept = false, watched, silent;

    if (engine_arm(p->engine) < 0)
        return;
    fit_slice(p);
    while (ready == 0) {
        uint64_t now = clock_ns(), limit = UINT64_MAX, deadline;
        int r;

        step_begins(p, now);
        /* As a rule the first step finds what is left of earlier work, and the second finds
         * nothing. */
        while (step(p, now, &deadline) > 0 && ++found < FOUND_MOST)
            ;
        if (found == FOUND_MOST || engine_notice_pending(p->engine))
            break;
        if (p->config.observe)
            p->config.observe(p->config.context, p->engine);
        r = fabric_arm(p->config.fabric, &descriptor);
        if (r == -EAGAIN)
            break;
        watched = r == 0 && watch_fabric(p, descriptor);
        if (!watched)
            limit = look_interval(p);
        if (deadline != UINT64_MAX && (deadline <= now || deadline - now < limit))
            limit = deadline <= now ? 0 : deadline - now;
        if (!slept)
            atomic_fetch_add_explicit(&p->sleeps, 1, memory_order_relaxed);
        slept = true;
        step_ends(p, clock_ns());
        note_usage(p, now);
        p->watch.sleeps = 1;
        p->rested = true;
        ready = wait_for_events(p, limit, &silent);
        if (watched && silent)
            fabric_silent(p->config.fabric);
    }
}

/* Yields the core. The thread continues without a wake-up, so no bell is needed. */
static void yield_core(struct progress *p)
{
    uint64_t before = clock_ns();

    engine_disarm(p->engine);
    step_ends(p, before);
    sched_yield();
    patience_yielded(&p->patience, before, clock_ns());
}

/* Publishes the processor that this thread runs on: clients on the same one wait in another way
 * (session_shared.processor). */
static void show_processor(struct progress *p)
{
    int processor = sched_getcpu();

    if (processor == p->processor)
        return;
    p->processor = processor;
    engine_set_processor(p->engine, (uint32_t)processor);
}

static void wait_for_work(struct progress *p, uint64_t now, uint64_t deadline)
{
    switch (patience_next(&p->patience, now, deadline)) {
    case PATIENCE_POLL:
        break;
    case PATIENCE_YIELD:
        if (!patience_looks(&p->patience, now))
            yield_core(p);
        break;
    case PATIENCE_HASTEN:
        p->hastened = step_time(p, deadline);
        break;
    case PATIENCE_SLEEP_NOW:
        sleep_unless_work(p);
        break;
    }
}

static void *progress_main(void *argument)
{
    struct progress *p = argument;
    uint64_t observed = 0;

    while (!atomic_load_explicit(&p->stop, memory_order_acquire)) {
        uint64_t now = clock_ns(), deadline;
        bool sleepy;
        int commands, work;

        step_begins(p, now);
        show_processor(p);
        commands = take_commands(p, now);
        now += p->commands_ns;
        sleepy = !patience_yields(&p->patience, now);
        engine_hasten(p->engine, sleepy);
        if (p->config.errand)
            p->config.errand(p->config.context, p->engine);
        work = step(p, now, &deadline);
        work += forward_notices(p);

        atomic_fetch_add_explicit(&p->rounds, 1, memory_order_relaxed);
        if (p->config.observe && now - observed > OBSERVE_NS) {
            p->config.observe(p->config.context, p->engine);
            observed = now;
        }
        if (work > 0 && patience_may_yield(&p->patience, now) && engine_published(p->engine))
            yield_core(p); /* the client may share this core, and can answer now */
        /* After commands the thread does not wait: the next step may find work that they began. A
         * thread that is to sleep without polling may wait even after work, because it looks for
         * more work just before it sleeps (sleep_unless_work). */
        if (commands == 0 && !p->due && (work == 0 || sleepy))
            wait_for_work(p, now, deadline);
    }
    p->cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void take_back(struct progress *p)
{
    struct command *command = mailbox_take(&p->outbox);

    while (command) {
        struct command *next = command->next;

        if (command->done)
            command->done(command);
        command = next;
    }
}

/* A command that is put into the outbox after this read rings again. */
static void back_rung(uv_poll_t *poll, int status, int events)
{
    struct progress *p = poll->data;
    uint64_t count;

    (void)!read(p->back_fd, &count, sizeof(count));
    take_back(p);
}

int progress_watch(struct progress *p, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

    return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void progress_unwatch(struct progress *p, int fd)
{
    epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void progress_kick(struct progress *p)
{
    ring(p->wake_fd);
}

void progress_post(struct progress *p, struct command *command)
{
    if (mailbox_put(&p->inbox, command))
        progress_kick(p);
}

uint64_t progress_cpu_ns(const struct progress *p)
{
    clockid_t clock;

    if (p->halted)
        return p->cpu_ns;
    return pthread_getcpuclockid(p->thread, &clock) == 0 ? clock_of(clock) : 0;
}

const struct engine *progress_engine(const struct progress *p)
{
    return p->engine;
}

void progress_stats(const struct progress *p, struct progress_stats *out)
{
    out->rounds = atomic_load_explicit(&p->rounds, memory_order_relaxed);
    out->sleeps = atomic_load_explicit(&p->sleeps, memory_order_relaxed);
    out->work = atomic_load_explicit(&p->work, memory_order_relaxed);
}

void progress_longest_step(const struct progress *p, struct step_longest *out)
{
    step_watch_read(&p->watch, clock_ns(), out);
}

static void progress_free(uv_handle_t *handle)
{
    free(handle->data);
}

int progress_start(const struct progress_config *config, uv_loop_t *loop, struct progress **out)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct progress *p = calloc(1, sizeof(*p));
    bool on_loop = false;
    int r;

    if (!p)
        return -ENOMEM;
    p->config = *config;
    p->fabric_fd = p->epoll = p->wake_fd = p->back_fd = p->processor = -1;
    patience_init(&p->patience, config->mode, PATIENCE_LONG_NS);
    if (!config->fabric->traits.can_sleep)
        p->patience.window_ns = p->patience.long_ns = LOOK_PATIENCE_NS;
    mailbox_init(&p->inbox);
    mailbox_init(&p->outbox);
    r = engine_config_check(&p->config.engine);
    if (r < 0)
        goto fail;
    p->memory_bytes = engine_private_bytes(&p->config.engine);
    p->memory =
        mmap(NULL, p->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->memory == MAP_FAILED) {
        p->memory = NULL;
        r = -ENOMEM;
        goto fail;
    }
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->back_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.fd = p->wake_fd;
    if (p->epoll < 0 || p->wake_fd < 0 || p->back_fd < 0 ||
        epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->wake_fd, &event) < 0) {
        r = -errno;
        goto fail;
    }
    r = engine_open(&p->config.engine, config->arena, p->memory, config->fabric, config->host,
                    clock_ns(), &p->engine);
    if (r < 0)
        goto fail;
    if (config->opened)
        config->opened(config->context, p->engine);
    p->back.data = p;
    r = uv_poll_init(loop, &p->back, p->back_fd);
    if (r < 0)
        goto fail;
    on_loop = true;
    r = uv_poll_start(&p->back, UV_READABLE, back_rung);
    if (r == 0)
        r = -pthread_create(&p->thread, NULL, progress_main, p);
    if (r < 0)
        goto fail;
    (void)pthread_setname_np(p->thread, "pwcd-progress");
    *out = p;
    return 0;
fail:
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    if (p->epoll >= 0)
        close(p->epoll);
    if (p->memory)
        munmap(p->memory, p->memory_bytes);
    if (on_loop)
        uv_close((uv_handle_t *)&p->back, progress_free);
    if (p->back_fd >= 0)
        close(p->back_fd);
    if (!on_loop)
        free(p);
    return r;
}

int progress_halt(struct progress *p, uint64_t limit_ms)
{
    struct timespec limit;

    if (p->halted)
        return 0;
    atomic_store_explicit(&p->stop, true, memory_order_release);
    progress_kick(p);
    clock_gettime(CLOCK_REALTIME, &limit); /* the clock of pthread_timedjoin_np */
    limit.tv_sec += (time_t)(limit_ms / 1000 + 1);
    p->halted = pthread_timedjoin_np(p->thread, NULL, &limit) == 0;
    return p->halted ? 0 : -ETIMEDOUT;
}

int progress_stop(struct progress *p, uint64_t limit_ms)
{
    if (progress_halt(p, limit_ms) < 0)
        return -ETIMEDOUT;
    while (run_commands(p, UINT64_MAX) > 0)
        ;
    take_back(p);
    p->config.fabric->ops->close(p->config.fabric);
    close(p->epoll);
    close(p->wake_fd);
    munmap(p->memory, p->memory_bytes);
    uv_close((uv_handle_t *)&p->back, progress_free);
    close(p->back_fd);
    return 0;
}
