/* Memory of PWC_SHARE through the public calls, against a daemon on a thread: ranges inside and
 * beside pages that were moved already, how often regions are counted, keys and errors. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "pwc/vector.h"
#include "clientlib/memory/populate.h"
#include "tests/clientlib/daemon/client_world.h"
#include "tests/count.h"
#include "tests/suite.h"

enum { PAGES = 8 };

/* The error that the kernel gives where the library opens the list of pages; 0: none. */
static int list_error;

/* How often the library has looked at an entry of the list of pages, or at the mappings; and
 * whether the kernel is one before Linux 5.14, which does not know the advice to make pages. */
static struct {
    _Atomic unsigned entries, mappings;
    _Atomic bool old_kernel;
} looks;

/* These three are in place of the C library's, for the library's calls too. */
int madvise(void *at, size_t length, int advice)
{
    if (looks.old_kernel && (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, length, advice);
}

ssize_t pread64(int fd, void *bytes, size_t length, off64_t at)
{
    looks.entries++;
    return syscall(SYS_pread64, fd, bytes, length, at);
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    mode_t mode;

    va_start(rest, flags);
    mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    looks.mappings += strcmp(path, "/proc/thread-self/maps") == 0;
    if (list_error && strcmp(path, "/proc/thread-self/pagemap") == 0) {
        errno = list_error;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The last region that the daemon was asked for, and the errors with which it refuses segments and
 * regions. */
static struct {
    _Atomic uint32_t segment;
    _Atomic uint64_t offset, length;
    _Atomic uint32_t rights;
    _Atomic int region_error, segment_error;
} seen;

static bool look(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    int error = 0;

    if (request->body_case == PWC__CLIENT_REQUEST__BODY_REGION_OPEN) {
        seen.segment = request->region_open->segment;
        seen.offset = request->region_open->offset;
        seen.length = request->region_open->length;
        seen.rights = request->region_open->rights;
        error = seen.region_error;
    }
    if (request->body_case == PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN)
        error = seen.segment_error;
    if (error)
        fake_daemon_error(daemon, request->id, error, "2 MiB left of 64 MiB: ask for less");
    return error != 0;
}

static size_t page;

static uint8_t *map(size_t pages)
{
    uint8_t *at =
        mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
    fill(at, pages * page, 3);
    return at;
}

static struct world *open_world(void)
{
    seen.region_error = seen.segment_error = 0;
    page = (size_t)sysconf(_SC_PAGESIZE);
    return world_new_sized(0, look);
}

static int share(struct world *w, void *at, size_t length, unsigned rights, pwc_region **out)
{
    return pwc_register(w->client, at, length, rights, PWC_SHARE, out);
}

static bool says(struct world *w, const char *words)
{
    char why[256] = "";

    pwc_error_text(w->client, why, sizeof(why));
    if (!strstr(why, words))
        fprintf(stderr, "\"%s\" has no \"%s\"\n", why, words);
    return strstr(why, words);
}

/* A second range overlaps pages 2 to 4, which a first range has moved, or lies beside them. */
static void test_overlaps(void)
{
    static const struct {
        long from, to; /* bytes from the start of page 2, in eighths of a page */
        int result;
        unsigned segments; /* open segments of the daemon */
        long offset;       /* in its segment, in eighths */
    } rows[] = {
        {4, 20, 0, 2, 4},        /* the first range again: its tract is pages 2 to 4 */
        {0, 24, 0, 2, 0},        /* all of the tract */
        {1, 2, 0, 2, 1},         /* bytes beside the first range, in its first page */
        {23, 24, 0, 2, 23},      /* bytes beside the range, in its last page */
        {8, 16, 0, 2, 8},        /* the page between */
        {-1, 4, -EEXIST, 2, 0},  /* begins before */
        {20, 25, -EEXIST, 2, 0}, /* ends after the tract */
        {-8, 32, -EEXIST, 2, 0}, /* more on both sides */
        {-1, 0, 0, 3, 7},        /* ends where the tract begins: a page of its own */
        {24, 25, 0, 3, 0},       /* from its end */
        {30, 40, 0, 3, 6},       /* apart */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world *w = open_world();
        uint8_t *memory = map(PAGES), *at = memory + 2 * page;
        long eighth = (long)page / 8;
        pwc_region *first, *other, *again;
        struct pwc_key keys[2];
        uint8_t expected[32];

        memcpy(expected, at, sizeof(expected));
        CU_ASSERT_EQUAL_FATAL(
            share(w, at + 4 * eighth, (size_t)(16 * eighth), PWC_REMOTE_WRITE, &first), 0);
        CU_ASSERT_EQUAL(seen.offset, 4 * (size_t)eighth);
        CU_ASSERT_EQUAL(seen.length, 16 * (size_t)eighth);
        CU_ASSERT_EQUAL(share(w, at + rows[i].from * eighth,
                              (size_t)((rows[i].to - rows[i].from) * eighth), PWC_REMOTE_READ,
                              &other),
                        rows[i].result);
        CU_ASSERT_EQUAL(w->daemon.segments_open, rows[i].segments);
        if (rows[i].result < 0) {
            char range[64];

            snprintf(range, sizeof(range), "%zu bytes at %p", 3 * page, (void *)at);
            CU_ASSERT_TRUE(says(w, range));
        } else {
            CU_ASSERT_EQUAL(seen.offset, (size_t)(rows[i].offset * eighth));
            CU_ASSERT_EQUAL(seen.length, (size_t)((rows[i].to - rows[i].from) * eighth));
            CU_ASSERT_EQUAL(seen.rights, PWC_REMOTE_READ);
            CU_ASSERT_PTR_NOT_EQUAL(other, first);
            CU_ASSERT_EQUAL(pwc_region_key(first, &keys[0]), 0);
            CU_ASSERT_EQUAL(pwc_region_key(other, &keys[1]), 0);
            CU_ASSERT_NOT_EQUAL(keys[0].slot, keys[1].slot);
            CU_ASSERT_PTR_EQUAL(pwc_region_addr(other), at + rows[i].from * eighth);
            /* Either region may be freed first; the pages go back with their last region. */
            CU_ASSERT_EQUAL(pwc_region_free(i % 2 ? first : other), 0);
            CU_ASSERT_EQUAL(w->daemon.segments_open, 2);
            if (rows[i].segments == 2) /* the pages are still in the segment */
                CU_ASSERT_EQUAL(pwc_register(w->client, at, page, 0, PWC_MOVE, &again), -EINVAL);
            CU_ASSERT_EQUAL(pwc_region_free(i % 2 ? other : first), 0);
            CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
        }
        CU_ASSERT_EQUAL(memcmp(at, expected, sizeof(expected)), 0);
        world_free(w);
        munmap(memory, PAGES * page);
    }
}

/* Sharing a range again with the same rights counts the same region up; with other rights it makes
 * another region. Ranges of PWC_MOVE and of copies are refused as before. */
static void test_again(void)
{
    struct world *w = open_world();
    uint8_t *memory = map(PAGES);
    pwc_region *region, *again, *reader, *moved, *other;

    CU_ASSERT_EQUAL(pwc_register(w->client, memory + 8, page, 0, PWC_MOVE, &other), -EINVAL);
    CU_ASSERT_TRUE(says(w, "not whole pages"));
    CU_ASSERT_EQUAL(pwc_register(w->client, memory, page + 8, 0, PWC_MOVE, &other), -EINVAL);
    CU_ASSERT_EQUAL_FATAL(share(w, memory + 5, 100, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(share(w, memory + 5, 100, PWC_REMOTE_RW, &again), 0);
    CU_ASSERT_PTR_EQUAL(again, region);
    CU_ASSERT_EQUAL(share(w, memory + 5, 100, PWC_REMOTE_READ, &reader), 0);
    CU_ASSERT_PTR_NOT_EQUAL(reader, region);
    CU_ASSERT_EQUAL(pwc_register(w->client, memory + 5, 100, 0, 0, &other), -EEXIST);
    CU_ASSERT_TRUE(says(w, "belongs to another region"));
    CU_ASSERT_EQUAL(pwc_register(w->client, memory + 200, 100, 0, 0, &other), -EEXIST);
    CU_ASSERT_EQUAL(pwc_register(w->client, memory, page, PWC_REMOTE_RW, PWC_MOVE, &other),
                    -EINVAL);
    CU_ASSERT_TRUE(says(w, "shared: a region's"));
    CU_ASSERT_EQUAL(
        pwc_register(w->client, memory, page, PWC_REMOTE_RW, PWC_MOVE | PWC_SHARE, &other),
        -EINVAL);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(pwc_region_free(reader), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 2); /* the region was shared twice */
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);

    /* Shares bytes of a region of PWC_MOVE, which is then freed first. */
    CU_ASSERT_EQUAL_FATAL(
        pwc_register(w->client, memory, 2 * page, PWC_REMOTE_RW, PWC_MOVE, &moved), 0);
    CU_ASSERT_EQUAL(share(w, memory + page + 1, 7, PWC_REMOTE_READ, &reader), 0);
    CU_ASSERT_EQUAL(share(w, memory, 2 * page, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_PTR_NOT_EQUAL(region, moved);
    CU_ASSERT_EQUAL(pwc_region_free(moved), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 2);
    CU_ASSERT_EQUAL(pwc_region_free(reader), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);

    /* Bytes registered without PWC_SHARE or PWC_MOVE have a copy in a segment; no byte of their
     * page can be shared. */
    CU_ASSERT_EQUAL(pwc_register(w->client, memory + 8, 8, 0, 0, &region), 0);
    CU_ASSERT_EQUAL(share(w, memory + 100, 8, PWC_REMOTE_RW, &other), -EEXIST);
    CU_ASSERT_EQUAL(share(w, memory + 8, 8, PWC_REMOTE_RW, &other), -EEXIST);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    world_free(w);
    munmap(memory, PAGES * page);
}

/* With PWC_OWN_KEY each call makes a region, also of a range that has one; no other call gives this
 * region, and it ends at once. */
static void test_own_key(void)
{
    struct world *w = open_world();
    uint8_t *memory = map(PAGES);
    pwc_region *own, *second, *plain, *again, *other;
    struct pwc_key keys[3];

    CU_ASSERT_EQUAL_FATAL(share(w, memory + 5, 100, PWC_REMOTE_RW, &plain), 0);
    CU_ASSERT_EQUAL_FATAL(
        pwc_register(w->client, memory + 5, 100, PWC_REMOTE_RW, PWC_SHARE | PWC_OWN_KEY, &own), 0);
    CU_ASSERT_EQUAL_FATAL(
        pwc_register(w->client, memory + 5, 100, PWC_REMOTE_RW, PWC_SHARE | PWC_OWN_KEY, &second),
        0);
    CU_ASSERT_EQUAL_FATAL(share(w, memory + 5, 100, PWC_REMOTE_RW, &again), 0);
    CU_ASSERT_PTR_NOT_EQUAL(own, second);
    CU_ASSERT_PTR_NOT_EQUAL(own, plain);
    CU_ASSERT_PTR_NOT_EQUAL(second, plain);
    CU_ASSERT_PTR_EQUAL(again, plain);
    CU_ASSERT_EQUAL(pwc_region_key(own, &keys[0]), 0);
    CU_ASSERT_EQUAL(pwc_region_key(second, &keys[1]), 0);
    CU_ASSERT_EQUAL(pwc_region_key(plain, &keys[2]), 0);
    CU_ASSERT_NOT_EQUAL(keys[0].slot, keys[1].slot);
    CU_ASSERT_NOT_EQUAL(keys[0].slot, keys[2].slot);
    CU_ASSERT_EQUAL(pwc_register(w->client, memory, page, 0, PWC_OWN_KEY, &other), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, memory, page, 0, PWC_MOVE | PWC_OWN_KEY, &other),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_region_free(again), 0);
    CU_ASSERT_EQUAL(pwc_region_free(plain), 0);
    CU_ASSERT_EQUAL(pwc_region_free(own), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 2);
    CU_ASSERT_EQUAL(pwc_region_free(second), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    world_free(w);
    munmap(memory, PAGES * page);
}

/* A call that fails leaves nothing behind; the next one succeeds. */
static void test_unwinding(void)
{
    struct world *w = open_world();
    uint8_t *memory = map(PAGES), here[64];
    pwc_region *region, *other;

    seen.segment_error = -EDQUOT;
    CU_ASSERT_EQUAL(share(w, memory + 9, 9000, PWC_REMOTE_RW, &region), -EDQUOT);
    CU_ASSERT_TRUE(says(w, "2 MiB left"));
    seen.segment_error = 0;
    seen.region_error = -ENOSPC;
    CU_ASSERT_EQUAL(share(w, memory + 9, 9000, PWC_REMOTE_RW, &region), -ENOSPC);
    seen.region_error = 0;
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    CU_ASSERT_EQUAL(share(w, here, sizeof(here), PWC_REMOTE_RW, &region), -EINVAL);
    CU_ASSERT_TRUE(says(w, "stack"));
    CU_ASSERT_EQUAL(share(w, w->memory, 8, PWC_REMOTE_RW, &region), -EINVAL);
    CU_ASSERT_TRUE(says(w, "shared"));
    CU_ASSERT_EQUAL(share(w, (void *)"constant", 8, PWC_REMOTE_RW, &region), -EINVAL);
    CU_ASSERT_TRUE(says(w, "writable"));
    CU_ASSERT_EQUAL(share(w, (void *)(UINTPTR_MAX - 8), 8, PWC_REMOTE_RW, &region), -EINVAL);

    CU_ASSERT_EQUAL(share(w, memory + 9, 9000, PWC_REMOTE_RW, &region), 0);
    seen.region_error = -ENOSPC; /* the tract still has a region */
    CU_ASSERT_EQUAL(share(w, memory, 9, PWC_REMOTE_RW, &other), -ENOSPC);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 2);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    world_free(w);
    munmap(memory, PAGES * page);
}

/* Pages that the program has unmapped cannot be shared again; their first region can still be
 * freed. */
static void test_pages_that_are_gone(void)
{
    struct world *w = open_world();
    uint8_t *memory = map(PAGES);
    pwc_region *region, *other;

    CU_ASSERT_EQUAL_FATAL(share(w, memory, PAGES * page, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(munmap(memory + 3 * page, page), 0);
    CU_ASSERT_EQUAL(share(w, memory + 2 * page, page, PWC_REMOTE_RW, &other), 0);
    CU_ASSERT_EQUAL(pwc_region_free(other), 0);
    CU_ASSERT_EQUAL(share(w, memory + 3 * page - 1, 2, PWC_REMOTE_RW, &other), -EINVAL);
    CU_ASSERT_TRUE(says(w, "given back to the system"));
    CU_ASSERT_EQUAL(share(w, memory, PAGES * page, PWC_REMOTE_RW, &other), -EINVAL);
    CU_ASSERT_PTR_EQUAL(mmap(memory + 3 * page, page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                        memory + 3 * page);
    CU_ASSERT_EQUAL(share(w, memory + 3 * page, 2, PWC_REMOTE_RW, &other), -EINVAL);
    memory[3 * page] = 0x5a;
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(memory[3 * page], 0x5a);
    CU_ASSERT_EQUAL(share(w, memory + 3 * page, 2, PWC_REMOTE_RW, &other), 0);
    world_free(w);
    munmap(memory, PAGES * page);
}

/* The heap's end is shared; then the program gives half of it back to the system and takes it
 * again, as malloc may do. That half can no longer be shared, and freeing the region leaves its
 * bytes alone. */
static void test_heap_that_shrinks(void)
{
    struct world *w = open_world();
    size_t room = 64 * page;
    uint8_t *from = sbrk((intptr_t)room), *at;
    pwc_region *region, *other;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(from, (void *)-1);
    fill(from, room, 5);
    CU_ASSERT_EQUAL_FATAL(share(w, from, room, PWC_REMOTE_RW, &region), 0);
    at = malloc(100000); /* from the heap or from elsewhere */
    fill(at, 100000, 6);
    if (sbrk(0) == from + room) { /* the heap has not grown meanwhile */
        CU_ASSERT_PTR_NOT_EQUAL(sbrk(-(intptr_t)(room / 2)), (void *)-1);
        CU_ASSERT_EQUAL(share(w, from + room - page, 8, PWC_REMOTE_RW, &other), -EINVAL);
        CU_ASSERT_PTR_NOT_EQUAL(sbrk((intptr_t)(room / 2)), (void *)-1);
        CU_ASSERT_EQUAL(from[room - 1], 0);
        from[room - 1] = 0x33;
        CU_ASSERT_EQUAL(share(w, from + room - page, 8, PWC_REMOTE_RW, &other), -EINVAL);
    } else {
        from[room - 1] = 0x33;
    }
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(from[room - 1], 0x33);
    free(at);
    world_free(w);
}

/* Puts bytes and gets them back, by the daemon; the source and the destination have a length for
 * which the daemon reads and writes memory itself. */
static void there_and_back(struct world *w, uint8_t *at, size_t length, unsigned seed)
{
    fill(at, length, seed);
    CU_ASSERT_EQUAL(put(w, 0, at, length, 1, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, at, length), 0);
    fill(w->memory, length, seed);
    CU_ASSERT_EQUAL(memcmp(w->memory, at, length), 0); /* the put has left its source alone */
    fill(w->memory, length, seed + 1);
    CU_ASSERT_EQUAL(get(w, 0, at, length, 2, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, at, length), 0);
}

/* The program's own operations on a part of the heap that has left the moved pages, and has come
 * back as ordinary memory, reach what the program sees there. Other parts stay as they were. */
static void test_operations_where_the_heap_shrank(void)
{
    struct world *w = open_world();
    size_t room = 64 * page, half = room / 2;
    uint8_t *from = sbrk((intptr_t)room);
    pwc_region *region;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(from, (void *)-1);
    CU_ASSERT_EQUAL_FATAL(share(w, from, room, PWC_REMOTE_RW, &region), 0);
    fill(w->memory, room, 5);
    CU_ASSERT_EQUAL(get(w, 0, from, room, 3, PWC_NO_RCE), 0); /* where nobody has touched a page */
    (void)expect(w, PWC_LOCAL, 3, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, from, room), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon),
                    1); /* with a copy there would be several operations */
    there_and_back(w, from, room, 6);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 3);
    if (sbrk(0) == from + room) { /* the heap has not grown meanwhile */
        CU_ASSERT_PTR_NOT_EQUAL(sbrk(-(intptr_t)half), (void *)-1);
        CU_ASSERT_PTR_NOT_EQUAL(sbrk((intptr_t)half), (void *)-1);
    }
    there_and_back(w, from, half, 10);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 5);
    there_and_back(w, from + half, half, 20);
    there_and_back(w, from + half - 3, page + 3, 30);
    there_and_back(w, from + room - page - 1, page + 1, 40);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    world_free(w);
}

/* A put and a get of memory whose first touch is the library's look at it. */
static void look_first(struct world *w, uint8_t *get_to, const uint8_t *put_from)
{
    fill(w->memory, BIG, 7);
    CU_ASSERT_EQUAL(get(w, 0, get_to, BIG, 1, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, get_to, BIG), 0);
    CU_ASSERT_EQUAL(put(w, 0, put_from, BIG, 2, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, put_from, BIG), 0);
}

/* Where the program asks for huge pages, the first read of ordinary memory maps the kernel's huge
 * page of zeros, which the list of pages shows as a file's, like a moved page. Operations on memory
 * that has left the region reach what the program sees there all the same, and neither these nor
 * operations on moved memory need the right to write. */
static void test_huge_pages_where_the_heap_shrank(void)
{
    enum { HUGE_PAGE = 2 << 20 };
    struct world *w = open_world();
    size_t room = 4 * HUGE_PAGE;
    uint8_t *from = sbrk((intptr_t)room), *at;
    unsigned executed;
    pwc_region *region;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(from, (void *)-1);
    at = from + (-(uintptr_t)from & (HUGE_PAGE - 1));
    fill(from, room, 5);
    CU_ASSERT_EQUAL_FATAL(share(w, from, room, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(mprotect(at, HUGE_PAGE, PROT_READ), 0);
    executed = fake_executed(&w->daemon);
    CU_ASSERT_EQUAL(put(w, 0, at, BIG, 3, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 3, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, at, BIG), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), executed + 1); /* still without a copy */
    CU_ASSERT_EQUAL(mprotect(at, HUGE_PAGE, PROT_READ | PROT_WRITE), 0);

    if (sbrk(0) == from + room) { /* the heap has not grown meanwhile */
        CU_ASSERT_PTR_NOT_EQUAL(sbrk(-(intptr_t)room), (void *)-1);
        CU_ASSERT_PTR_NOT_EQUAL(sbrk((intptr_t)room), (void *)-1);
    }
    (void)madvise(at, 3 * HUGE_PAGE, MADV_HUGEPAGE); /* a kernel without such pages refuses */
    look_first(w, at, at + HUGE_PAGE);
    CU_ASSERT_EQUAL(mprotect(at + 2 * HUGE_PAGE, HUGE_PAGE, PROT_READ), 0);
    look_first(w, at, at + 2 * HUGE_PAGE);
    CU_ASSERT_EQUAL(mprotect(at + 2 * HUGE_PAGE, HUGE_PAGE, PROT_READ | PROT_WRITE), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    world_free(w);
}

enum { PIECES = 100, PIECE = 8192 };

/* Pieces that follow each other in the world's region, and lie apart in the heap. */
static void lay_out(struct pwc_piece *list, uint8_t *from, bool descending)
{
    for (size_t i = 0; i < PIECES; i++) {
        size_t at = descending ? PIECES - 1 - i : i;

        list[i] = (struct pwc_piece){i * PIECE, from + 2 * at * PIECE, PIECE};
    }
}

/* As pwc_getv, with a shape that has the same pieces. */
static int get_shaped(pwc_remote *remote, const struct pwc_piece *list, size_t n, pwc_cid lid,
                      pwc_cid rid, unsigned flags)
{
    const struct pwc_shape shape = {
        .dims = 1,
        .element = PIECE,
        .count = {n},
        .local_stride = {(uint8_t *)list[1].local - (uint8_t *)list[0].local},
        .remote_stride = {PIECE},
    };

    return pwc_get_shape(remote, list[0].off, list[0].local, &shape, lid, rid, flags);
}

/* A call looks once at a range of the heap, for all its pieces there, and does not read the
 * mappings, also before Linux 5.14. */
static void test_one_look_for_all_pieces(void)
{
    static const struct {
        bool old_kernel, descending;
        int (*move)(pwc_remote *remote, const struct pwc_piece *list, size_t n, pwc_cid lid,
                    pwc_cid rid, unsigned flags);
    } rows[] = {
        {false, false, pwc_putv},   {false, true, pwc_putv},   {false, false, pwc_getv},
        {false, true, pwc_getv},    {true, false, pwc_putv},   {true, false, pwc_getv},
        {false, false, get_shaped}, {false, true, get_shaped},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = open_world();
        size_t room = 2 * PIECES * PIECE;
        uint8_t *from = sbrk((intptr_t)room);
        struct pwc_piece list[PIECES];
        pwc_region *region;

        CU_ASSERT_PTR_NOT_EQUAL_FATAL(from, (void *)-1);
        fill(from, room, 5);
        fill(w->memory, PIECES * PIECE, 6);
        CU_ASSERT_EQUAL_FATAL(share(w, from, room, PWC_REMOTE_RW, &region), 0);
        lay_out(list, from, rows[i].descending);
        looks.entries = looks.mappings = 0;
        looks.old_kernel = rows[i].old_kernel;
        CU_ASSERT_EQUAL(
            rows[i].move(w->remote, list, PIECES, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE), 0);
        looks.old_kernel = false;
        CU_ASSERT_EQUAL(looks.entries, 1);
        CU_ASSERT_EQUAL(looks.mappings, 0);
        (void)expect(w, PWC_LOCAL, 1, 0);
        for (size_t k = 0; k < PIECES; k++)
            CU_ASSERT_EQUAL(memcmp(w->memory + list[k].off, list[k].local, PIECE), 0);
        CU_ASSERT_EQUAL(pwc_region_free(region), 0);
        world_free(w);
    }
}

/* A range has lost its pages; a range above, which was shared later, has its pages. The looks at
 * one say nothing of the other, whichever is first, and pieces of the one that has its pages are
 * used. */
static void test_pieces_of_two_ranges(void)
{
    struct world *w = open_world();
    size_t half = 4 * PIECE;
    uint8_t *from = sbrk((intptr_t)(2 * half)), *to = from + half;
    struct pwc_piece rows[][2] = {
        {{0, from, PIECE}, {2 * PIECE, to, PIECE}},
        {{0, to, PIECE}, {2 * PIECE, from, PIECE}},
        {{0, to, PIECE}, {2 * PIECE, to + 2 * PIECE, PIECE}},
    };
    pwc_region *low, *high;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(from, (void *)-1);
    CU_ASSERT_EQUAL_FATAL(share(w, from, half, PWC_REMOTE_RW, &low), 0);
    if (sbrk(0) == from + 2 * half) { /* the heap has not grown meanwhile */
        CU_ASSERT_PTR_NOT_EQUAL(sbrk(-(intptr_t)(2 * half)), (void *)-1);
        CU_ASSERT_PTR_NOT_EQUAL(sbrk((intptr_t)(2 * half)), (void *)-1);
        CU_ASSERT_EQUAL_FATAL(share(w, to, half, PWC_REMOTE_RW, &high), 0);
        for (size_t i = 0; i < COUNT(rows); i++)
            CU_ASSERT_EQUAL(
                pwc_getv(w->remote, rows[i], 2, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE),
                i == 2 ? 0 : -EFAULT);
        (void)expect(w, PWC_LOCAL, 1, 0);
        CU_ASSERT_EQUAL(pwc_region_free(high), 0);
    }
    CU_ASSERT_EQUAL(pwc_region_free(low), 0);
    world_free(w);
}

/* Where the list of pages cannot be opened for want of a descriptor or memory, memory of the heap
 * is not shared. A kernel without the list has another, so that memory is shared there, and serves
 * calls that work on regions alone. */
static void test_no_list_of_pages(void)
{
    static const struct {
        int error, result;
    } rows[] = {
        {EMFILE, -EMFILE}, {ENFILE, -ENFILE}, {ENOMEM, -ENOMEM}, {ENOENT, 0}, {EACCES, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = open_world();
        size_t room = 4 * BIG;
        uint8_t *from = sbrk((intptr_t)room);
        struct pwc_piece list[] = {{0, from, BIG}, {2 * BIG, from + 2 * BIG, BIG}};
        pwc_region *region;

        CU_ASSERT_PTR_NOT_EQUAL_FATAL(from, (void *)-1);
        list_error = rows[i].error;
        CU_ASSERT_EQUAL(share(w, from, room, PWC_REMOTE_RW, &region), rows[i].result);
        CU_ASSERT_EQUAL(w->daemon.segments_open, rows[i].result < 0 ? 1 : 2);
        if (rows[i].result < 0) {
            list_error = 0;
            CU_ASSERT_EQUAL_FATAL(share(w, from, room, PWC_REMOTE_RW, &region), 0);
        }
        fill(w->memory, room, 5);
        CU_ASSERT_EQUAL_FATAL(
            pwc_getv(w->remote, list, 2, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE), 0);
        (void)expect(w, PWC_LOCAL, 1, 0);
        CU_ASSERT_EQUAL(memcmp(from, w->memory, BIG), 0);
        CU_ASSERT_EQUAL(memcmp(from + 2 * BIG, w->memory + 2 * BIG, BIG), 0);
        list_error = 0;
        CU_ASSERT_EQUAL(pwc_region_free(region), 0);
        world_free(w);
    }
}

static unsigned descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* A tract keeps one descriptor, up to its last region's end or its client's. */
static void test_descriptors(void)
{
    unsigned before = descriptors(), ours;
    struct world *w = open_world();
    uint8_t *memory = map(PAGES);
    pwc_region *region, *inside, *other;

    /* The daemon on a thread has one for each segment, too. */
    ours = descriptors() - w->daemon.segments_open;
    CU_ASSERT_EQUAL_FATAL(share(w, memory, page, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(share(w, memory, 8, PWC_REMOTE_RW, &inside), 0);
    CU_ASSERT_EQUAL(share(w, memory + page, page, PWC_REMOTE_RW, &other), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 3);
    CU_ASSERT_EQUAL(descriptors() - w->daemon.segments_open, ours + 2);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(descriptors() - w->daemon.segments_open, ours + 2);
    CU_ASSERT_EQUAL(pwc_region_free(inside), 0);
    CU_ASSERT_EQUAL(descriptors() - w->daemon.segments_open, ours + 1);
    world_free(w); /* while a tract is still there */
    CU_ASSERT_EQUAL(descriptors(), before);
    munmap(memory, PAGES * page);
}

/* Operations of the region's own process use moved memory without a copy, and offsets of peers
 * count from the region's first byte. */
static void test_operations(void)
{
    struct world *w = open_world();
    uint8_t *memory = map(PAGES), *at = memory + page + 77;
    size_t length = 5 * page + 3;
    pwc_region *region;
    pwc_remote *remote;
    struct pwc_key key;

    CU_ASSERT_EQUAL_FATAL(share(w, at, length, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(pwc_region_len(region), length);
    CU_ASSERT_EQUAL(put(w, 0, at, length, 1, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, at, length), 0);
    fill(w->memory, length, 9);
    CU_ASSERT_EQUAL(get(w, 0, at, length, 2, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, at, length), 0);

    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &remote), 0);
    CU_ASSERT_EQUAL(
        pwc_put(remote, length - 4, "last", 4, pwc_cid_u64(3), pwc_cid_u64(4), PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 3, 0);
    CU_ASSERT_EQUAL(memcmp(at + length - 4, "last", 4), 0);
    CU_ASSERT_EQUAL(
        pwc_put(remote, length - 4, "lasts", 5, pwc_cid_u64(3), pwc_cid_u64(4), PWC_NO_RCE),
        -ERANGE);

    /* The memory stays when the client ends. */
    world_free(w);
    CU_ASSERT_EQUAL(memcmp(at + length - 4, "last", 4), 0);
    memory[0] = at[0];
    munmap(memory, PAGES * page);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"ranges that overlap", test_overlaps},
        {"the same range again", test_again},
        {"keys of their own", test_own_key},
        {"calls that fail", test_unwinding},
        {"pages that are gone", test_pages_that_are_gone},
        {"a heap that shrinks", test_heap_that_shrinks},
        {"operations where the heap shrank", test_operations_where_the_heap_shrank},
        {"huge pages where the heap shrank", test_huge_pages_where_the_heap_shrank},
        {"one look for all pieces", test_one_look_for_all_pieces},
        {"pieces of two ranges", test_pieces_of_two_ranges},
        {"no list of pages", test_no_list_of_pages},
        {"descriptors", test_descriptors},
        {"operations", test_operations},
        CU_TEST_INFO_NULL,
    };

    return suite_run("shared", tests);
}
