/* Owns readers of /proc/thread-self/pagemap, and of a file's holes (touched.h). Thread: any. */
#include "clientlib/memory/touched.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"
#include "clientlib/memory/raw.h"

/* Bits of an entry of pagemap: the page is in memory, or swapped out, or the kernel keeps other
 * information about it. Each process may see these bits of its own pages. */
#define ENTRY_THERE (UINT64_C(3) << 62)

/* ---- private memory -------------------------------------------------------------------------- */

/* Reads the entry of a page, and the entries after it. False: they cannot be read. */
static bool read_entries(struct touched *t, uintptr_t page, uintptr_t end)
{
    uintptr_t count = (end - page) / t->page;
    intptr_t got;

    if (page >= t->known_from && page < t->known_to)
        return true;
    if (count > TOUCHED_ENTRIES)
        count = TOUCHED_ENTRIES;

    const intptr_t arguments[5] = {t->fd, (intptr_t)t->entries,
                                   (intptr_t)(count * sizeof(t->entries[0])),
                                   (intptr_t)(page / t->page * sizeof(t->entries[0]))};

    got = raw_call(SYS_pread64, arguments);
    if (got < (intptr_t)sizeof(t->entries[0]))
        return false;
    t->known_from = page;
    t->known_to = page + (uintptr_t)got / sizeof(t->entries[0]) * t->page;
    return true;
}

static bool is_touched(struct touched *t, uintptr_t page, uintptr_t end)
{
    if (t->fd < 0 || (page >= t->files_from && page < t->files_to) || !read_entries(t, page, end))
        return true;
    return t->entries[(page - t->known_from) / t->page] & ENTRY_THERE;
}

/* Finds the range from the first private page of a file to the last; it is everything if the
 * mappings cannot be read. */
static void find_files(struct touched *t, uintptr_t start, uintptr_t end)
{
    struct maps_line line;
    struct maps maps;
    int rc = maps_open(&maps);

    t->files_from = t->files_to = end;
    if (rc == 0) {
        while ((rc = maps_next(&maps, &line)) > 0) {
            if (line.end <= start || line.start >= end || line.inode == 0)
                continue;
            if (t->files_from == end)
                t->files_from = line.start;
            t->files_to = line.end;
        }
        maps_close(&maps);
    }
    if (rc < 0) {
        t->files_from = start;
        t->files_to = end;
    }
}

/* Whether pagemap is reliable: it must show a page that exists, here one of the stack. */
static bool is_true(struct touched *t)
{
    volatile uint8_t here = 1;
    uintptr_t page = (uintptr_t)&here & ~(t->page - 1);
    bool there = read_entries(t, page, page + t->page) && (t->entries[0] & ENTRY_THERE);

    t->known_from = t->known_to = 0;
    return there;
}

void touched_of_memory(struct touched *t, uintptr_t start, size_t length)
{
    t->shared = false;
    t->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    t->known_from = t->known_to = 0;
    find_files(t, start, start + length);
    /* Without its first thread a process has no /proc/self/pagemap. */
    t->fd = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    if (t->fd >= 0 && !is_true(t))
        touched_close(t);
}

/* ---- shared memory --------------------------------------------------------------------------- */

void touched_of_file(struct touched *t, uintptr_t origin, int fd, dev_t device, ino_t inode)
{
    struct stat file;

    t->shared = true;
    t->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    t->origin = origin;
    t->fd = fd;
    if (fd >= 0 && (fstat(fd, &file) != 0 || file.st_dev != device || file.st_ino != inode))
        t->fd = -1; /* the program has closed it, and opened another file with its number */
}

/* Finds the next data of the file, or the next hole, as an address; `end` if there is none. False:
 * the kernel gives no answer. */
static bool seek(const struct touched *t, uintptr_t from, uintptr_t end, int what, uintptr_t *out)
{
    const intptr_t arguments[5] = {t->fd, (intptr_t)(from - t->origin), what};
    intptr_t at = raw_call(SYS_lseek, arguments);

    *out = end;
    if (at == -ENXIO)
        return true;
    if (at < 0)
        return false;
    if ((uintptr_t)at < end - t->origin)
        *out = t->origin + (uintptr_t)at;
    return *out >= from;
}

static bool next_of_file(const struct touched *t, uintptr_t from, uintptr_t end,
                         struct touched_run *out)
{
    uintptr_t last = t->page - 1;

    if (t->fd < 0 || !seek(t, from, end, SEEK_DATA, &out->from))
        out->from = from;
    out->from &= ~last;
    if (out->from >= end)
        return false;
    if (t->fd < 0 || !seek(t, out->from, end, SEEK_HOLE, &out->to))
        out->to = end;
    out->to = (out->to + last) & ~last;
    if (out->to == out->from) /* a peer is making a hole */
        out->to += t->page;
    return true;
}

/* ---- private and shared memory --------------------------------------------------------------- */

bool touched_next(struct touched *t, uintptr_t from, uintptr_t end, struct touched_run *out)
{
    if (t->shared)
        return next_of_file(t, from, end, out);
    while (from < end && !is_touched(t, from, end))
        from += t->page;
    out->from = from;
    while (from < end && is_touched(t, from, end))
        from += t->page;
    out->to = from;
    return out->from < end;
}

void touched_close(struct touched *t)
{
    if (t->fd >= 0 && !t->shared)
        close(t->fd);
    t->fd = -1;
}
