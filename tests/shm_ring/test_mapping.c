/*
 * Sealed mappings: what the other side can and cannot do with the descriptor, and what adopt
 * refuses.
 */
#include "shm_ring/mapping.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

enum { ALL_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static size_t page;

static bool open_fd(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_sizes(void)
{
    const struct {
        size_t size;
        int result;
    } table[] = {
        {0, -EINVAL},        {1, -EINVAL},  {page - 1, -EINVAL}, {page, 0},
        {page + 1, -EINVAL}, {7 * page, 0}, {SIZE_MAX, -EINVAL}, {(size_t)0 - page, -EINVAL},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mapping m = {.fd = -1};

        CU_ASSERT_EQUAL(mapping_create(&m, "test", table[i].size), table[i].result);
        if (table[i].result == 0) {
            const uint8_t *bytes = m.base;

            CU_ASSERT_EQUAL(m.size, table[i].size);
            for (size_t n = 0; n < m.size; n++)
                CU_ASSERT_EQUAL_FATAL(bytes[n], 0);
        } else {
            CU_ASSERT_PTR_NULL(m.base);
            CU_ASSERT_EQUAL(m.fd, -1);
        }
        mapping_destroy(&m);
    }
}

static bool kernel_knows_noexec(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

static void test_sealed(void)
{
    struct mapping m;
    struct stat st;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&m, "test", 2 * page), 0);
    CU_ASSERT_EQUAL(fcntl(m.fd, F_GETFD), FD_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(fstat(m.fd, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0);
    int seals = fcntl(m.fd, F_GET_SEALS);
    CU_ASSERT_EQUAL(seals & ALL_SEALS, ALL_SEALS);

    const off_t sizes[] = {0,      1, (off_t)page, (off_t)(2 * page) - 1, (off_t)(2 * page) + 1,
                           1 << 30};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        CU_ASSERT_EQUAL(ftruncate(m.fd, sizes[i]), -1);
        CU_ASSERT_EQUAL(errno, EPERM);
    }
    CU_ASSERT_EQUAL(fallocate(m.fd, 0, 0, (off_t)(3 * page)), -1);
    CU_ASSERT_EQUAL(errno, EPERM);
    CU_ASSERT_EQUAL(pwrite(m.fd, "x", 1, (off_t)(2 * page)), -1);
    CU_ASSERT_EQUAL(errno, EPERM);
    /* Without F_SEAL_SEAL a client could seal the mapping against our own writes. */
    CU_ASSERT_EQUAL(fcntl(m.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    CU_ASSERT_EQUAL(errno, EPERM);
    CU_ASSERT_EQUAL(fcntl(m.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    CU_ASSERT_EQUAL(errno, EPERM);
    if (kernel_knows_noexec()) { /* the memory can never be executed as a program */
        CU_ASSERT((seals & F_SEAL_EXEC) != 0);
        CU_ASSERT_EQUAL(fchmod(m.fd, 0755), -1);
        CU_ASSERT_EQUAL(errno, EPERM);
    }
    mapping_destroy(&m);
}

/* A child without privileges opens `fd` again through /proc. Returns the errno; 0: that worked. */
static int reopen_unprivileged(int fd)
{
    pid_t child = fork();
    int status;

    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        char path[64];

        if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
            _exit(255);
        /* After the change of user /proc/self belongs to root; without this the open would fail for
         * that reason. */
        prctl(PR_SET_DUMPABLE, 1);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        _exit(open(path, O_RDWR) >= 0 ? 0 : errno);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT_FATAL(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_reopen(void)
{
    struct mapping m;
    int open_to_all = memfd_create("test", MFD_CLOEXEC);

    CU_ASSERT_FATAL(open_to_all >= 0);
    CU_ASSERT_EQUAL_FATAL(mapping_create(&m, "test", page), 0);
    CU_ASSERT_EQUAL(reopen_unprivileged(open_to_all), 0); /* a memfd with its first mode */
    CU_ASSERT_EQUAL(reopen_unprivileged(m.fd), mapping_probe_mark() == 0 ? EPERM : EACCES);
    close(open_to_all);
    mapping_destroy(&m);
}

/* Tries each way to give the mapping's pages back, and what must work all the same. */
static void try_holes(const struct mapping *m, int rc, int error)
{
    char *later = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);

    CU_ASSERT_FATAL(later != MAP_FAILED); /* as a neighbour maps it, or the next daemon */
    later[page] = 'x';
    errno = 0;
    CU_ASSERT_EQUAL(madvise(later, m->size, MADV_REMOVE), rc);
    CU_ASSERT_EQUAL(errno, error);
    CU_ASSERT_EQUAL(((char *)m->base)[page], rc == 0 ? 0 : 'x');
    later[page] = 'x';
    errno = 0;
    CU_ASSERT_EQUAL(fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)m->size),
                    rc);
    CU_ASSERT_EQUAL(errno, error);
    CU_ASSERT_EQUAL(((char *)m->base)[page], rc == 0 ? 0 : 'x');
    munmap(later, m->size);
}

/* No process may make the daemon wait for pages that are given back, where the system can forbid
 * that: not even the process that holds the descriptor. */
static void test_holes(void)
{
    struct mapping shared, own;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&shared, "test", 2 * page), 0);
    CU_ASSERT_EQUAL_FATAL(mapping_create_own(&own, "test", 2 * page), 0);
    try_holes(&own, 0, 0);
    if (mapping_probe_mark() == 0) {
        try_holes(&shared, -1, EPERM);
    } else {
        printf(" (not marked: %s)", strerror(-mapping_probe_mark()));
        try_holes(&shared, 0, 0);
    }
    mapping_destroy(&shared);
    mapping_destroy(&own);
}

/* A client has no capability: the mark stays, whatever user owns the file. */
static void test_mark_stays(void)
{
    unsigned none = 0;
    struct mapping m;
    pid_t child;
    int status;

    if (mapping_probe_mark() != 0) {
        printf(" (not marked: %s)", strerror(-mapping_probe_mark()));
        return;
    }
    CU_ASSERT_EQUAL_FATAL(mapping_create(&m, "test", page), 0);
    child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        if (setuid(65534) != 0)
            _exit(255);
        _exit(ioctl(m.fd, FS_IOC_SETFLAGS, &none) == 0                                           ? 1
              : madvise(m.base, page, MADV_REMOVE) == 0                                          ? 2
              : fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)page) == 0 ? 3
              : mapping_probe_mark() != -EPERM                                                   ? 4
              : setrlimit(RLIMIT_NOFILE, &(struct rlimit){0}) != 0                               ? 5
              : mapping_probe_mark() != -EMFILE                                                  ? 6
                                                : 0);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    mapping_destroy(&m);
}

static void test_adopt(void)
{
    struct mapping ours, theirs = {.fd = -1};

    CU_ASSERT_EQUAL_FATAL(mapping_create(&ours, "test", 2 * page), 0);
    int fd = fcntl(ours.fd, F_DUPFD_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(mapping_adopt(&theirs, fd, 2 * page), 0);
    CU_ASSERT_EQUAL(theirs.fd, fd);
    strcpy((char *)ours.base + page, "seen by both");
    CU_ASSERT_STRING_EQUAL((char *)theirs.base + page, "seen by both");

    /* The mapping stays after its descriptor is closed, and after the other side has ended. */
    mapping_close_fd(&theirs);
    CU_ASSERT_EQUAL(theirs.fd, -1);
    CU_ASSERT(!open_fd(fd));
    mapping_destroy(&ours);
    CU_ASSERT_STRING_EQUAL((char *)theirs.base + page, "seen by both");
    mapping_destroy(&theirs);
}

static void test_adopt_refuses(void)
{
    static const struct {
        int seals;
        int pages; /* pages of the file, of which 4 are asked for */
        int result;
    } table[] = {
        {ALL_SEALS, 4, 0},
        {ALL_SEALS | F_SEAL_FUTURE_WRITE, 4, -EPERM}, /* cannot be mapped writable */
        {F_SEAL_GROW | F_SEAL_SEAL, 4, -EPROTO},
        {F_SEAL_SHRINK | F_SEAL_SEAL, 4, -EPROTO},
        {F_SEAL_SHRINK | F_SEAL_GROW, 4, -EPROTO},
        {0, 4, -EPROTO},
        {ALL_SEALS, 3, -EPROTO},
        {ALL_SEALS, 5, -EPROTO},
        {ALL_SEALS, 0, -EPROTO},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mapping m = {.fd = -1};
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        CU_ASSERT_FATAL(fd >= 0);
        CU_ASSERT_EQUAL_FATAL(ftruncate(fd, table[i].pages * (off_t)page), 0);
        CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, table[i].seals), 0);
        CU_ASSERT_EQUAL(mapping_adopt(&m, fd, 4 * page), table[i].result);
        CU_ASSERT(open_fd(fd)); /* stays open after a refusal */
        mapping_destroy(&m);
        CU_ASSERT_EQUAL(open_fd(fd), table[i].result != 0);
        if (table[i].result != 0)
            close(fd);
    }

    struct mapping m = {.fd = -1};
    int device = open("/dev/zero", O_RDWR | O_CLOEXEC);
    CU_ASSERT_EQUAL(mapping_adopt(&m, device, page), -EPROTO);
    close(device);
    CU_ASSERT_EQUAL(mapping_adopt(&m, device, page), -EBADF);
    CU_ASSERT_EQUAL(mapping_adopt(&m, -1, page), -EBADF);
    CU_ASSERT_EQUAL(mapping_adopt(&m, 0, page + 8), -EINVAL);
}

/* A part must lie within its file, also where the sum of offset and length wraps. */
static void test_adopt_part(void)
{
    const uint64_t one = (uint64_t)sysconf(_SC_PAGESIZE), size = 4 * one;
    const struct {
        uint64_t offset, length;
        int rc;
    } rows[] = {
        {0, size, 0},
        {one + 8, 16, 0},
        {size - 8, 8, 0},
        {size - 8, 9, -ERANGE},
        {0, size + 1, -ERANGE},
        {0, 0, -ERANGE},
        {size, 1, -ERANGE},
        {size + one, 1, -ERANGE},
        {8, UINT64_MAX - 7, -ERANGE},
        {UINT64_MAX, 2, -ERANGE},
    };
    struct mapping whole;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&whole, "part", size), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct mapping_part part = {
            .file_size = size, .offset = rows[i].offset, .length = rows[i].length};
        struct mapping m;
        void *at;
        int rc = mapping_adopt_part(&m, whole.fd, &part, &at);

        CU_ASSERT_EQUAL(rc, rows[i].rc);
        if (rc != 0)
            continue;
        CU_ASSERT(m.size <= size && (uint8_t *)at + part.length <= (uint8_t *)m.base + m.size);
        mapping_destroy(&m);
    }
    mapping_destroy(&whole);

    const struct mapping_part all = {.file_size = size, .length = size};
    int bare = memfd_create("bare", MFD_CLOEXEC); /* a file without our seals */
    struct mapping m;
    void *at;

    CU_ASSERT_EQUAL_FATAL(ftruncate(bare, (off_t)size), 0);
    CU_ASSERT_EQUAL(mapping_adopt_part(&m, bare, &all, &at), -EPROTO);
    close(bare);
}

static void test_destroy(void)
{
    struct mapping m = {.fd = -1};

    mapping_destroy(&m); /* was never created */
    CU_ASSERT_EQUAL_FATAL(mapping_create(&m, "test", page), 0);
    int fd = m.fd;
    mapping_destroy(&m);
    CU_ASSERT(!open_fd(fd));
    CU_ASSERT_PTR_NULL(m.base);
    CU_ASSERT_EQUAL(m.fd, -1);
    mapping_destroy(&m); /* a second time */
}

/* Where a limit of the process makes the creation fail, nothing is left behind. */
static void test_limits(void)
{
    static const struct {
        const char *what;
        int resource; /* the exhausted resource; for descriptors: how many are left */
        rlim_t left;
        int result;
        bool reader;
    } rows[] = {
        {"descriptors", RLIMIT_NOFILE, 0, -EMFILE, false},
        {"descriptors", RLIMIT_NOFILE, 0, -EMFILE, true},
        {"length of files", RLIMIT_FSIZE, 0, -EFBIG, false},
        {"length of files", RLIMIT_FSIZE, 0, -EFBIG, true},
        {"address space", RLIMIT_AS, 0, -ENOMEM, false},
        {"address space", RLIMIT_AS, 0, -ENOMEM, true},
        {"a reader's descriptor", RLIMIT_NOFILE, 1, 0, true},
    };
    const size_t size = 1024 * page; /* more than any free room in existing mappings */

    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mapping m = {.fd = -1};
        struct rlimit before, none;
        int reader = -1, next = dup(0), rc;

        close(next); /* the lowest free number */
        CU_ASSERT_EQUAL_FATAL(getrlimit((__rlimit_resource_t)rows[i].resource, &before), 0);
        none = before;
        none.rlim_cur = rows[i].resource == RLIMIT_NOFILE ? (rlim_t)next + rows[i].left : 0;
        CU_ASSERT_EQUAL_FATAL(setrlimit((__rlimit_resource_t)rows[i].resource, &none), 0);
        rc = mapping_create_with_reader(&m, "test", size, rows[i].reader ? &reader : NULL);
        CU_ASSERT_EQUAL_FATAL(setrlimit((__rlimit_resource_t)rows[i].resource, &before), 0);
        if (rc != rows[i].result)
            printf("%s: %d\n", rows[i].what, rc);
        CU_ASSERT_EQUAL(rc, rows[i].result);
        CU_ASSERT_EQUAL(reader, -1);
        CU_ASSERT_EQUAL(open_fd(next), rc == 0);
        mapping_destroy(&m);
        CU_ASSERT_FALSE(open_fd(next));
    }
}

/* The process may open one more descriptor, but may not write to files: the call fails, and leaves
 * no descriptor open. */
static void test_two_limits(void)
{
    struct mapping m = {.fd = -1};
    struct rlimit files, descriptors;
    int reader = -1, next = dup(0), rc;

    close(next);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &files), 0);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, files.rlim_max});
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next + 1, descriptors.rlim_max});
    rc = mapping_create_with_reader(&m, "test", page, &reader);
    setrlimit(RLIMIT_FSIZE, &files);
    setrlimit(RLIMIT_NOFILE, &descriptors);
    CU_ASSERT_EQUAL(rc, -EFBIG);
    CU_ASSERT_EQUAL(reader, -1);
    CU_ASSERT_FALSE(open_fd(next));
}

/* Adopting a descriptor fails without room, too; the descriptor still belongs to the caller. */
static void test_adopt_without_room(void)
{
    const size_t size = 1024 * page;
    struct mapping m = {.fd = -1}, n = {.fd = -1};
    const struct mapping_part part = {.file_size = size, .length = size};
    struct rlimit before, none;
    void *at = NULL;
    int results[3];

    CU_ASSERT_EQUAL_FATAL(mapping_create(&m, "test", size), 0);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_AS, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_AS, &none), 0);
    results[0] = mapping_adopt(&n, m.fd, size);
    results[1] = mapping_inherit(&n, m.fd, size);
    results[2] = mapping_adopt_part(&n, m.fd, &part, &at);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_AS, &before), 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(results[i], -ENOMEM);
    CU_ASSERT_PTR_NULL(n.base);
    CU_ASSERT_PTR_NULL(at);
    CU_ASSERT_TRUE(open_fd(m.fd));
    CU_ASSERT_EQUAL(mapping_inherit(&n, m.fd, size), 0);
    m.fd = -1; /* n owns the descriptor now */
    mapping_destroy(&n);
    mapping_destroy(&m);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"sizes", test_sizes},
        {"sealed", test_sealed},
        {"reopen", test_reopen},
        {"holes", test_holes},
        {"the mark stays", test_mark_stays},
        {"adopt", test_adopt},
        {"adopt refuses", test_adopt_refuses},
        {"adopt a part", test_adopt_part},
        {"limits", test_limits},
        {"two limits", test_two_limits},
        {"adopt without room", test_adopt_without_room},
        {"destroy", test_destroy},
        CU_TEST_INFO_NULL,
    };

    page = (size_t)sysconf(_SC_PAGESIZE);
    return suite_run("mapping", tests);
}
