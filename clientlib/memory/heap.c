/* Owns nothing: looks at pages of the heap (heap.h). Thread: any. */
#include "clientlib/memory/heap.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* A bit of an entry of pagemap: the page is a file's. The moved pages are a segment's, which is a
 * file; other pages of the heap are anonymous. */
#define ENTRY_OF_FILE (UINT64_C(1) << 61)

int heap_open_list(void)
{
    return open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
}

/* The entry shows only a page that is mapped. */
__attribute__((no_sanitize("address", "thread"), noinline)) static void map_page(const void *at)
{
    (void)*(const volatile uint8_t *)at;
}

bool heap_page_is_moved(int list, const void *at)
{
    uintptr_t page = (uintptr_t)at >> __builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
    uint64_t entry = 0;

    map_page(at);
    return pread(list, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) == sizeof(entry) &&
           entry & ENTRY_OF_FILE;
}
