/* Owns nothing: replaces the pages of a range of addresses, and restores them (move.h). Thread: the
 * caller's, which keeps all others away from the range. */
#include "clientlib/memory/move.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"
#include "clientlib/memory/populate.h"
#include "clientlib/memory/raw.h"
#include "clientlib/memory/touched.h"
#include "shm_ring/mapping.h"

enum {
    ATTEMPTS = 16,
    PART_BYTES = 2 << 20, /* copied before the next pages are made: less than a cache holds */
};

/* ---- using only the stack
 * ---------------------------------------------------------------------- */

/* Copies words that are not zero. The compiler must not turn this into a call of memcpy, and
 * sanitizers must not check it, because the range includes the gaps between the program's
 * variables. */
__attribute__((no_sanitize("address", "undefined", "thread"), noinline)) static void
copy_words(uint64_t *to, const uint64_t *from, size_t length)
{
    for (size_t i = 0; i < length / sizeof(*to); i++) {
        if (from[i] != 0)
            to[i] = from[i];
        __asm__ volatile("" ::: "memory");
    }
}

__attribute__((no_sanitize("address", "undefined", "thread"), noinline)) static bool
is_zero(const uint64_t *from, size_t length)
{
    for (size_t i = 0; i < length / sizeof(*from); i++)
        if (from[i] != 0)
            return false;
    return true;
}

static intptr_t set_signals(const uint64_t *set, uint64_t *old)
{
    const intptr_t arguments[5] = {SIG_SETMASK, (intptr_t)set, (intptr_t)old, sizeof(*set)};

    return raw_call(SYS_rt_sigprocmask, arguments);
}

static intptr_t put_in_place(void *pages, uintptr_t start, size_t length)
{
    const intptr_t arguments[5] = {(intptr_t)pages, (intptr_t)length, (intptr_t)length,
                                   MREMAP_MAYMOVE | MREMAP_FIXED, (intptr_t)start};

    return raw_call(SYS_mremap, arguments);
}

/* Whether the kernel has unmapped the place, and then had no memory for its own list of
 * mappings. */
static bool is_hole(uintptr_t start)
{
    unsigned char resident;
    const intptr_t arguments[5] = {(intptr_t)start, 1, (intptr_t)&resident};

    return raw_call(SYS_mincore, arguments) == -ENOMEM;
}

static int populate(uintptr_t from, size_t length, int advice)
{
    const intptr_t arguments[5] = {(intptr_t)from, (intptr_t)length, advice};
    intptr_t rc = raw_call(SYS_madvise, arguments);

    return rc == -EINVAL ? 0 : (int)rc; /* an older kernel */
}

/* Lets the kernel read the pages first, so that an unreadable page gives an error instead of a
 * signal. */
static int read_pages(const struct touched_run *run)
{
    return populate(run->from, run->to - run->from, MADV_POPULATE_READ);
}

/* Likewise for pages that the kernel has no memory for. */
static int make_pages(uintptr_t from, size_t length)
{
    int rc = populate(from, length, MADV_POPULATE_WRITE);

    return rc == -EFAULT || rc == -EHWPOISON ? -ENOMEM : rc;
}

/* Finds the next pages of a run that are not all zero. Pages of zeros take no memory at the new
 * place. */
static bool next_part(uintptr_t from, const struct touched_run *run, size_t page,
                      struct touched_run *out)
{
    while (from < run->to && is_zero((const uint64_t *)from, page))
        from += page;
    out->from = from;
    while (from < run->to && from - out->from < PART_BYTES &&
           !is_zero((const uint64_t *)from, page))
        from += page;
    out->to = from;
    return out->from < run->to;
}

static int copy_run(uintptr_t to, const struct touched_run *run, size_t page)
{
    struct touched_run part = {.to = run->from};
    int rc = 0;

    while (rc == 0 && next_part(part.to, run, page, &part)) {
        uintptr_t at = to + (part.from - run->from);

        rc = make_pages(at, part.to - part.from);
        if (rc == 0)
            copy_words((uint64_t *)at, (const uint64_t *)part.from, part.to - part.from);
    }
    return rc;
}

/* Copies the touched pages of a place to zeroed ones. */
static int copy_touched(void *pages, uintptr_t start, size_t length, struct touched *touched)
{
    struct touched_run run = {.to = start};
    int rc = 0;

    while (rc == 0 && touched_next(touched, run.to, start + length, &run)) {
        rc = read_pages(&run);
        if (rc == 0)
            rc = copy_run((uintptr_t)pages + (run.from - start), &run, touched->page);
    }
    return rc;
}

/* Copies the contents of a place to zeroed pages, and maps these at the place. */
static int replace(void *pages, uintptr_t start, size_t length, struct touched *touched)
{
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    intptr_t rc = set_signals(&all, &before);

    if (rc < 0)
        return (int)rc;
    rc = copy_touched(pages, start, length, touched);
    if (rc == 0)
        rc = put_in_place(pages, start, length);
    for (int i = 1; rc < 0 && i < ATTEMPTS && is_hole(start); i++)
        rc = put_in_place(pages, start, length);
    (void)set_signals(&before, &before);
    return rc < 0 ? (int)rc : 0;
}

/* ---- moving in
 * ----------------------------------------------------------------------------------- */

int move_in(struct moved *moved, int fd, void *start, size_t length)
{
    struct mapping pages = {.fd = -1};
    struct touched touched;
    struct stat file;
    int rc;

    if (fstat(fd, &file) != 0)
        return -errno;
    rc = mapping_adopt(&pages, fd, length);
    if (rc < 0)
        return rc;
    *moved = (struct moved){
        .start = (uintptr_t)start,
        .length = length,
        .device = file.st_dev,
        .inode = file.st_ino,
        .fd = fd,
    };
    touched_of_memory(&touched, moved->start, length);
    rc = replace(pages.base, moved->start, length, &touched);
    touched_close(&touched);
    if (rc < 0)
        munmap(pages.base, length);
    return rc;
}

/* ---- moving out
 * -------------------------------------------------------------------------------- */

static bool is_of(const struct moved *moved, const struct maps_line *line)
{
    return line->start >= moved->start && line->end <= moved->start + moved->length &&
           line->device == moved->device && line->inode == moved->inode && line->shared &&
           line->offset == line->start - moved->start;
}

static int part_back(const struct moved *moved, uintptr_t start, size_t length)
{
    struct touched touched;
    void *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int rc;

    if (pages == MAP_FAILED)
        return -errno;
    touched_of_file(&touched, moved->start, moved->fd, moved->device, moved->inode);
    rc = replace(pages, start, length, &touched);
    touched_close(&touched);
    if (rc < 0)
        munmap(pages, length);
    return rc;
}

/* The first mapping of the file: 1, 0 where there is none, or a negative errno. */
static int find_part(const struct moved *moved, struct maps_line *line)
{
    struct maps maps;
    int rc = maps_open(&maps);

    if (rc < 0)
        return rc;
    do
        rc = maps_next(&maps, line);
    while (rc > 0 && !is_of(moved, line));
    maps_close(&maps);
    return rc;
}

int move_out(const struct moved *moved)
{
    struct maps_line line;
    int rc;

    while ((rc = find_part(moved, &line)) > 0) {
        /* The program has removed its own right to read. */
        if (!line.readable && mprotect((void *)line.start, line.end - line.start, PROT_READ) != 0)
            return -errno;
        rc = part_back(moved, line.start, line.end - line.start);
        if (rc < 0)
            return rc;
    }
    return rc;
}

int move_holds(const struct moved *moved, uintptr_t start, size_t length)
{
    uintptr_t end = start + length, covered = start;
    struct maps_line line;
    struct maps maps;
    int rc = maps_open(&maps);

    if (rc < 0)
        return rc;
    while (covered < end && (rc = maps_next(&maps, &line)) > 0)
        if (line.start <= covered && line.end > covered) {
            if (!is_of(moved, &line))
                break;
            covered = line.end;
        }
    maps_close(&maps);
    if (rc < 0)
        return rc;
    return covered >= end ? 0 : -EINVAL;
}
