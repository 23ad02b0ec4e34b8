/*
 * Owns the page that tells a forked child from its parent. Thread: any.
 */
#include "clientlib/attach/fork_guard.h"

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
