/* Stops an engine at its n-th store (crash_guard.h). Thread: one. */
#include "tests/engine/world/crash/crash_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE          4096u
#define RANGES_MAX    (2u + WORLD_CLIENTS_MAX * WORLD_CONTEXTS_MAX)
#define PAGES_MAX     4u /* pages that one instruction may touch */
#define TRAP_FLAG     0x100
#define CHILD_SECONDS 20u

struct range {
    uint8_t *base;
    size_t size;
};

/* The state of the guard, which its signal handlers can reach in no other way. */
static struct {
    struct crash_guard *guard;
    bool inside;
    struct range ranges[RANGES_MAX];
    uint32_t range_count;
    uint8_t *pages[PAGES_MAX]; /* pages that are writable for the instruction under way */
    uint32_t page_count;
    sigjmp_buf out;
} running;

#if defined(__x86_64__)

bool crash_guard_supported(void)
{
    return true;
}

static void set_trap(ucontext_t *context, bool on)
{
    if (on)
        context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    else
        context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

#else

bool crash_guard_supported(void)
{
    return false;
}

static void set_trap(ucontext_t *context, bool on)
{
}

#endif

static void collect(struct world *w, const struct world_node *n)
{
    running.range_count = 0;
    running.ranges[running.range_count++] = (struct range){n->arena, n->arena_bytes};
    if (w->areas[n->number].base)
        running.ranges[running.range_count++] =
            (struct range){w->areas[n->number].base, w->areas[n->number].bytes};
    for (uint32_t i = 0; i < w->client_count; i++)
        for (uint32_t k = 0; k < WORLD_CONTEXTS_MAX; k++) {
            const struct world_context *x = &w->clients[i].contexts[k];

            if (w->clients[i].node == n->number && x->base)
                running.ranges[running.range_count++] = (struct range){x->base, x->size};
        }
}

static void protect(int protection)
{
    for (uint32_t i = 0; i < running.range_count; i++)
        mprotect(running.ranges[i].base, running.ranges[i].size, protection);
}

static bool is_ours(const uint8_t *address)
{
    for (uint32_t i = 0; i < running.range_count; i++)
        if (address >= running.ranges[i].base &&
            address < running.ranges[i].base + running.ranges[i].size)
            return true;
    return false;
}

/* Whether this process dies before the store that has just faulted. */
static bool dies_here(struct crash_guard *g)
{
    pid_t pid;
    int status;

    g->stores++;
    if (!g->forking)
        return g->stores == g->stop;
    if (g->stores % g->sample.stores != g->sample.store)
        return false;
    pid = fork();
    if (pid == 0) {
        g->child = true;
        g->forking = false;
        alarm(CHILD_SECONDS);
        return true;
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        g->failed++;
        if (pid > 0 && WIFSIGNALED(status))
            dprintf(STDOUT_FILENO, "store %llu: signal %d\n", (unsigned long long)g->stores,
                    WTERMSIG(status));
    }
    return false;
}

static void on_store(int number, siginfo_t *info, void *context)
{
    uint8_t *address = info->si_addr;

    if (!running.inside || !is_ours(address) || running.page_count == PAGES_MAX) {
        signal(SIGSEGV, SIG_DFL); /* a fault of the program itself: let it happen again */
        return;
    }
    if (running.page_count == 0 && dies_here(running.guard))
        siglongjmp(running.out, 1);
    address -= (uintptr_t)address % PAGE;
    mprotect(address, PAGE, PROT_READ | PROT_WRITE);
    running.pages[running.page_count++] = address;
    set_trap(context, true);
}

static void on_step(int number, siginfo_t *info, void *context)
{
    for (uint32_t i = 0; i < running.page_count; i++)
        mprotect(running.pages[i], PAGE, PROT_READ);
    running.page_count = 0;
    set_trap(context, false);
}

/* The store at which the process that took over dies too; 0: it does not. */
static uint64_t second_stop(const struct crash_guard *g)
{
    uint64_t death = g->stores / g->sample.stores; /* its number among those of the sample */

    if (g->again > 0)
        return g->stores + g->again;
    return death % 4 ? 0 : g->stores + 1 + g->stores * 7 % 90;
}

/* Whether the victim's next call is guarded: until the first death those of the sample are. */
static bool watches(struct crash_guard *g, const struct world_node *node)
{
    g->work = node->work;
    return g->died_at > 0 || g->calls++ % g->sample.calls == g->sample.call;
}

static bool guarded(void *context, struct world_node *node, void (*call)(void *), void *argument)
{
    struct crash_guard *g = context;

    if (!g->armed || node->number != g->victim || !watches(g, node)) {
        call(argument);
        return true;
    }
    collect(g->world, node);
    running.guard = g;
    running.page_count = 0;
    if (sigsetjmp(running.out, 1) != 0) {
        running.inside = false;
        protect(PROT_READ | PROT_WRITE);
        g->stop = g->died_at == 0 ? second_stop(g) : 0;
        if (g->died_at == 0)
            g->died_at = g->stores;
        g->armed = g->stop != 0;
        return false;
    }
    protect(PROT_READ);
    running.inside = true;
    call(argument);
    running.inside = false;
    protect(PROT_READ | PROT_WRITE);
    return true;
}

void crash_guard_open(struct crash_guard *g)
{
    struct sigaction store = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO};
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &store, NULL);
    sigaction(SIGTRAP, &step, NULL);
    g->world->guard = guarded;
    g->world->guard_context = g;
}

void crash_guard_close(struct crash_guard *g)
{
    g->world->guard = NULL;
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
}
