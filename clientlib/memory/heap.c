/* Owns nothing: looks at pages of the heap (heap.h). Thread: any. */
#include "clientlib/memory/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"

/* A bit of an entry of pagemap: the page is a file's. The moved pages are a segment's, which is a
 * file; other pages of the heap are anonymous. */
#define ENTRY_OF_FILE (UINT64_C(1) << 61)

/* Sets no bit of a word. */
#define OR_NOTHING FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0)

int heap_open_list(void)
{
    int list = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);

    return list < 0 ? -errno : list;
}

/*
 * The kernel makes the page as for a write, without a change of its bytes. A read would not do: it
 * may map the kernel's huge page of zeros, which counts as a file's. A write by the library would
 * not do: the program may have made the page read-only. Every kernel has this call, and
 * MADV_POPULATE_WRITE came with Linux 5.14. Nobody waits for `nobody`, so the call wakes nobody; a
 * waiter at the page's first word might wake, which a waiter for a futex must expect at any time.
 */
static bool make_page(uintptr_t start)
{
    uint32_t nobody = 0;

    return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, start,
                   OR_NOTHING) >= 0;
}

/* Reads the entry of a page, which shows only a page that is mapped. */
static bool read_entry(int list, uintptr_t at, uint64_t *entry)
{
    unsigned bits = (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
    uintptr_t page = at >> bits;

    return make_page(page << bits) &&
           pread(list, entry, sizeof(*entry), (off_t)(page * sizeof(*entry))) == sizeof(*entry);
}

bool heap_page_is_moved(int list, const void *at)
{
    struct maps_line line;
    uint64_t entry;

    if (read_entry(list, (uintptr_t)at, &entry))
        return entry & ENTRY_OF_FILE;
    return maps_find((uintptr_t)at, &line) > 0 && line.shared;
}
