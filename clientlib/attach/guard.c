/*
 * Owns the page that differs in a forked child, and each thread's count of handlers that run.
 * Threads: any.
 */
#include "clientlib/attach/guard.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

int fork_guard_open(struct fork_guard *guard)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int rc;

    if (word == MAP_FAILED)
        return -errno;
    if (madvise(word, page, MADV_WIPEONFORK) != 0) {
        rc = -errno;
        munmap(word, page);
        return rc;
    }
    *word = 1;
    guard->word = word;
    return 0;
}

void fork_guard_close(struct fork_guard *guard)
{
    if (guard->word)
        munmap((void *)(uintptr_t)guard->word, (size_t)sysconf(_SC_PAGESIZE));
    guard->word = NULL;
}

/* A handler may make calls on any client and context, so the count belongs to the thread. A fold
 * may run inside a handler. This TLS model allows reading the count without a function call. */
static _Thread_local unsigned inside __attribute__((tls_model("initial-exec")));

bool handler_on_this_thread(void)
{
    return inside > 0;
}

void handler_enter(void)
{
    inside++;
}

void handler_leave(void)
{
    inside--;
}
