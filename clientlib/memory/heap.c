/* Owns nothing: looks at pages of the heap (heap.h). Thread: any. */
#include "clientlib/memory/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"
#include "clientlib/memory/populate.h"

/* A bit of an entry of pagemap: the page is a file's. The moved pages are a segment's, which is a
 * file; other pages of the heap are anonymous. */
#define ENTRY_OF_FILE (UINT64_C(1) << 61)

int heap_open_list(void)
{
    int list = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);

    return list < 0 ? -errno : list;
}

/* Reads the entry of a page, which shows only a page that is mapped. A read would not do to map it:
 * it may map the kernel's huge page of zeros, which counts as a file's. The kernel does the write,
 * because the program may have made the page read-only. */
static bool read_entry(int list, uintptr_t at, uint64_t *entry)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = at / size;

    return madvise((void *)(page * size), size, MADV_POPULATE_WRITE) == 0 &&
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
