/*
 * How the process survives SIGBUS. A sealed mapping cannot be made to fault, so the test truncates
 * unsealed memfds under their mapping.
 */
#include "shm_ring/mapping.h"
#include "shm_ring/sigbus.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 4 };

static size_t page;

/* Maps PAGES pages of 'x', of which the file keeps only `kept`: an access to the others faults. */
static volatile char *cut_short(int kept)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    char *base;

    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)(PAGES * page)), 0);
    base = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_FATAL(base != MAP_FAILED);
    memset(base, 'x', PAGES * page);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, kept * (off_t)page), 0);
    close(fd);
    return base;
}

static void unmap(volatile char *base)
{
    munmap((void *)base, PAGES * page);
}

/* Reads and writes at the edges of the missing pages. Afterwards the whole range is private memory,
 * zeroed and writable. */
static void test_survives(void)
{
    const struct {
        int kept;
        size_t touch;
        bool write;
        bool faults;
    } table[] = {
        {PAGES, 0, false, false},
        {1, 0, false, false},
        {1, page - 1, true, false},
        {1, page, false, true},
        {1, page, true, true},
        {1, PAGES * page - 1, false, true},
        {1, PAGES * page - 1, true, true},
        {0, 0, false, true},
        {PAGES - 1, PAGES * page - 1, true, true},
    };
    uint64_t seen = 0;

    sigbus_any(&seen);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        volatile char *base = cut_short(table[i].kept);
        int range = sigbus_add((void *)base, PAGES * page);

        CU_ASSERT_FATAL(range >= 0);
        CU_ASSERT(!sigbus_hit(range));
        if (table[i].write)
            base[table[i].touch] = 'w';
        char now = base[table[i].touch];
        CU_ASSERT_EQUAL(now, table[i].write ? 'w' : table[i].faults ? 0 : 'x');
        CU_ASSERT_EQUAL(sigbus_hit(range), table[i].faults);
        CU_ASSERT_EQUAL(sigbus_any(&seen), table[i].faults);
        CU_ASSERT(!sigbus_any(&seen));
        if (table[i].faults) {
            base[table[i].touch] = 0;
            for (size_t n = 0; n < PAGES * page; n++)
                CU_ASSERT_EQUAL_FATAL(base[n], 0);
            base[0] = base[PAGES * page - 1] = 'y';
        }
        sigbus_remove(range);
        unmap(base);
    }
}

static void test_only_the_range_at_fault(void)
{
    volatile char *bases[3];
    int indices[3];

    for (int i = 0; i < 3; i++) {
        bases[i] = cut_short(2);
        indices[i] = sigbus_add((void *)bases[i], PAGES * page);
        CU_ASSERT_FATAL(indices[i] >= 0);
    }
    bases[1][3 * page] = 'w';
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(sigbus_hit(indices[i]), i == 1);
        CU_ASSERT_EQUAL(bases[i][0], i == 1 ? 0 : 'x');
    }
    /* A slot that is used again does not show the earlier fault. */
    sigbus_remove(indices[1]);
    int again = sigbus_add((void *)bases[1], PAGES * page);
    CU_ASSERT_EQUAL(again, indices[1]);
    CU_ASSERT(!sigbus_hit(again));
    for (int i = 0; i < 3; i++) {
        sigbus_remove(indices[i]);
        unmap(bases[i]);
    }
}

enum death {
    OUTSIDE_EVERY_RANGE,
    AFTER_REMOVE,
    JUST_BEHIND_THE_RANGE,
    SENT_NOT_FAULTED,
};

static void die(enum death death)
{
    volatile char *base = cut_short(0);
    size_t covered = death == JUST_BEHIND_THE_RANGE ? page : PAGES * page;
    int range = death == OUTSIDE_EVERY_RANGE ? -1 : sigbus_add((void *)base, covered);

    if (death == AFTER_REMOVE)
        sigbus_remove(range);
    if (death == SENT_NOT_FAULTED)
        raise(SIGBUS);
    else
        base[death == JUST_BEHIND_THE_RANGE ? page : 0] = 'w';
}

/* A fault outside the client mappings keeps its default action. */
static void test_default_action(void)
{
    for (int death = OUTSIDE_EVERY_RANGE; death <= SENT_NOT_FAULTED; death++) {
        pid_t child = fork();
        int status;

        CU_ASSERT_FATAL(child >= 0);
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0});
            alarm(10); /* in case the fault repeats forever */
            die((enum death)death);
            _exit(0);
        }
        CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
        CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}

/* Seals do not prevent a client from punching holes: such pages read as zeros, without a fault.
 * Memory that the daemon cannot mark is like this when it is shared. */
static void test_hole_in_sealed(void)
{
    struct mapping m;

    CU_ASSERT_EQUAL_FATAL(mapping_create_own(&m, "test", PAGES * page), 0);
    int range = sigbus_add(m.base, m.size);
    CU_ASSERT_FATAL(range >= 0);
    memset(m.base, 'x', m.size);
    CU_ASSERT_EQUAL(
        fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page, (off_t)(2 * page)),
        0);
    volatile char *bytes = m.base;
    CU_ASSERT_EQUAL(bytes[page - 1], 'x');
    CU_ASSERT_EQUAL(bytes[page], 0);
    CU_ASSERT_EQUAL(bytes[3 * page - 1], 0);
    CU_ASSERT_EQUAL(bytes[3 * page], 'x');
    bytes[page] = 'w';
    CU_ASSERT_EQUAL(bytes[page], 'w');
    CU_ASSERT(!sigbus_hit(range));
    sigbus_remove(range);
    mapping_destroy(&m);
}

/* ThreadSanitizer takes the handler's mmap for an unordered write, so it is off here. */
__attribute__((no_sanitize("thread"))) static void *touch_all(void *arg)
{
    volatile char *base = arg;

    for (size_t i = 0; i < PAGES; i++)
        (void)base[i * page];
    return NULL;
}

/* Threads fault in one range at the same time: each replaces the range, or finds it replaced. */
static void test_threads(void)
{
    enum { ROUNDS = 200, THREADS = 4 };

    for (int round = 0; round < ROUNDS; round++) {
        volatile char *base = cut_short(0);
        int range = sigbus_add((void *)base, PAGES * page);
        pthread_t threads[THREADS];

        CU_ASSERT_FATAL(range >= 0);
        for (int i = 0; i < THREADS; i++)
            CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, touch_all, (void *)base), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CU_ASSERT(sigbus_hit(range));
        sigbus_remove(range);
        unmap(base);
    }
}

static void test_table_full(void)
{
    static char memory[SIGBUS_RANGES_MAX];

    for (uint32_t i = 0; i < SIGBUS_RANGES_MAX; i++)
        CU_ASSERT_EQUAL_FATAL(sigbus_add(memory + i, 1), (int)i);
    CU_ASSERT_EQUAL(sigbus_add(memory, 1), -ENOSPC);
    sigbus_remove(1234);
    CU_ASSERT_EQUAL(sigbus_add(memory, 1), 1234);
    CU_ASSERT_EQUAL(sigbus_add(memory, 1), -ENOSPC);

    /* The last slot works as the first one does. */
    volatile char *base = cut_short(0);
    sigbus_remove(SIGBUS_RANGES_MAX - 1);
    CU_ASSERT_EQUAL_FATAL(sigbus_add((void *)base, PAGES * page), (int)SIGBUS_RANGES_MAX - 1);
    CU_ASSERT_EQUAL(base[0], 0);
    CU_ASSERT(sigbus_hit(SIGBUS_RANGES_MAX - 1));
    unmap(base);
    for (uint32_t i = 0; i < SIGBUS_RANGES_MAX; i++)
        sigbus_remove((int)i);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"survives", test_survives},
        {"only the range at fault", test_only_the_range_at_fault},
        {"default action", test_default_action},
        {"hole in sealed memory", test_hole_in_sealed},
        {"threads", test_threads},
        {"table full", test_table_full},
        CU_TEST_INFO_NULL,
    };

    page = (size_t)sysconf(_SC_PAGESIZE);
    if (sigbus_install() != 0)
        return 1;
    return suite_run("sigbus", tests);
}
