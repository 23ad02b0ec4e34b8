/*
 * Memory that is moved in place and back: what may be moved, each call of the kernel that fails
 * meanwhile, and this program's own variables, heap and C library. The library is linked into the
 * program, so its variables move too.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"
#include "clientlib/memory/movable.h"
#include "clientlib/memory/move.h"
#include "clientlib/memory/raw.h"
#include "shm_ring/mapping.h"
#include "tests/suite.h"

/* ---- calls that fail ------------------------------------------------------------------------- */

/* With large offsets these calls have the names of 64 bits. The call that fails next, and after how
 * many that do not. */
static struct {
    intptr_t number; /* 0: none */
    int error;
    unsigned passes;
    unsigned times;
    bool hole; /* mremap unmaps the place before it fails */
} fault;

/* How the kernel's list of pages is not true, and how much the library has had read. Nothing of it
 * is written unless a test has asked for it. */
enum lie { LIE_NONE, LIE_UNTOUCHED, LIE_SWAPPED };
static enum lie lie;
static bool is_counted;
static size_t bytes_read;

intptr_t __real_raw_call(intptr_t number, const intptr_t arguments[5]);
intptr_t __wrap_raw_call(intptr_t number, const intptr_t arguments[5]);
void *__real_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset);
int __real_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

static int failure_of(intptr_t number)
{
    if (fault.number != number || fault.times == 0 || (fault.passes > 0 && fault.passes-- > 0))
        return 0;
    fault.times--;
    return fault.error;
}

/* No page was ever touched; or all are swapped out that are in memory, but for a page that is asked
 * for alone. */
static intptr_t list_wrongly(const intptr_t arguments[5])
{
    uint64_t *entries = (uint64_t *)arguments[1];
    intptr_t got = __real_raw_call(SYS_pread64, arguments);

    if (lie == LIE_SWAPPED && got == 8)
        return got;
    for (intptr_t i = 0; i < got / 8; i++)
        entries[i] = lie == LIE_SWAPPED ? entries[i] >> 63 << 62 : 0;
    return got;
}

intptr_t __wrap_raw_call(intptr_t number, const intptr_t arguments[5])
{
    int error = fault.number ? failure_of(number) : 0; /* writes nothing without a fault */

    if (error && fault.hole)
        munmap((void *)arguments[4], (size_t)arguments[1]);
    if (error)
        return error;
    if (is_counted && number == SYS_madvise)
        bytes_read += (size_t)arguments[1];
    return lie != LIE_NONE && number == SYS_pread64 ? list_wrongly(arguments)
                                                    : __real_raw_call(number, arguments);
}

int __wrap_open64(const char *path, int flags, ...)
{
    int error = fault.number ? failure_of(SYS_openat) : 0;

    if (!error)
        return __real_open64(path, flags, 0600);
    errno = -error;
    return -1;
}

void *__wrap_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    int error = fault.number ? failure_of(SYS_mmap) : 0;

    if (!error)
        return __real_mmap64(at, length, protection, flags, fd, offset);
    errno = -error;
    return MAP_FAILED;
}

int __wrap_fstat64(int fd, struct stat *out)
{
    int error = fault.number ? failure_of(SYS_fstat) : 0;

    if (!error)
        return __real_fstat64(fd, out);
    errno = -error;
    return -1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static uint8_t *map(size_t pages, int protection, int flags, int fd)
{
    void *base = mmap(NULL, pages * page_bytes(), protection, flags, fd, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(base, MAP_FAILED);
    return base;
}

static uint8_t *map_anonymous(size_t pages)
{
    return map(pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void fill(uint8_t *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        memory[i] = (uint8_t)(i * 31 >> 3);
}

static bool filled(const uint8_t *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (memory[i] != (uint8_t)(i * 31 >> 3))
            return false;
    return true;
}

static int sealed(size_t size)
{
    struct mapping made;
    int fd;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&made, "moved", size), 0);
    fd = dup(made.fd);
    mapping_destroy(&made);
    return fd;
}

/* ---- what may be moved ----------------------------------------------------------------------- */

static int strict(const void *start, size_t length)
{
    char why[MOVABLE_WHY_MAX];

    return movable_check(MOVABLE_ANONYMOUS, start, length, why);
}

/* The loose form's verdict; a refusal has the word in its reason. */
static int loose(const void *start, size_t length, const char *word)
{
    char why[MOVABLE_WHY_MAX];
    int rc = movable_check(MOVABLE_PRIVATE, start, length, why);

    CU_ASSERT_EQUAL(rc < 0, word != NULL);
    if (word && !strstr(why, word)) {
        fprintf(stderr, "\"%s\" has no \"%s\"\n", why, word);
        CU_FAIL("another reason");
    }
    return rc;
}

static void *page_of(const void *at)
{
    return (void *)((uintptr_t)at & ~(uintptr_t)(page_bytes() - 1));
}

static int initialised = 7;

static void test_movable(void)
{
    static const char constant[1];
    size_t page = page_bytes();
    uint8_t *good = map_anonymous(8);
    uint8_t *shared = map(4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    uint8_t *read_only = map(4, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    uint8_t *code = map(1, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    int fd = memfd_create("file", MFD_CLOEXEC);
    uint8_t *file, *heap, *file_shared;

    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)(4 * page)), 0);
    file = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
    file_shared = map(4, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    heap = sbrk(0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(sbrk((intptr_t)(4 * page)), (void *)-1);
    heap = (uint8_t *)page_of(heap + page - 1);

    const struct {
        const void *start;
        size_t pages;
        int strict;
        const char *loose; /* NULL: may be moved */
    } rows[] = {
        {good, 8, 0, NULL},
        {good + page, 1, 0, NULL},
        {shared, 1, -EINVAL, "shared"},
        {file_shared, 1, -EINVAL, "shared"},
        {read_only, 1, -EINVAL, "writable"},
        {page_of(constant), 1, -EINVAL, "writable"},
        {code, 1, -EINVAL, "executable"},
        {file, 4, -EINVAL, NULL},
        {heap, 3, -EINVAL, NULL},
        {page_of(&initialised), 1, -EINVAL, NULL},
        {page_of(&fault), 1, -EINVAL, NULL},
        {page_of(&fd), 1, -EINVAL, "a stack"},
        {NULL, 1, -EINVAL, "not mapped"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int rc = strict(rows[i].start, rows[i].pages * page);

        /* Between .bss and heap there may be no line, then .bss is anonymous memory. */
        CU_ASSERT(rc == rows[i].strict || rows[i].start == page_of(&fault));
        CU_ASSERT_EQUAL(loose(rows[i].start, rows[i].pages * page, rows[i].loose) < 0,
                        rows[i].loose != NULL);
    }

    /* Two mappings of different rights side by side, then a hole. */
    CU_ASSERT_EQUAL(mprotect(good + 4 * page, page, PROT_READ), 0);
    CU_ASSERT_EQUAL(strict(good, 4 * page), 0);
    CU_ASSERT_EQUAL(strict(good, 5 * page), -EINVAL);
    CU_ASSERT_EQUAL(munmap(good + 4 * page, page), 0);
    CU_ASSERT_EQUAL(strict(good + 3 * page, 2 * page), -EINVAL);
    (void)loose(good + 3 * page, 2 * page, "not mapped");
    CU_ASSERT_EQUAL(strict(good + 4 * page, page), -EINVAL);

    munmap(good, 4 * page);
    munmap(good + 5 * page, 3 * page);
    munmap(shared, 4 * page);
    munmap(read_only, 4 * page);
    munmap(code, page);
    munmap(file, 4 * page);
    munmap(file_shared, 4 * page);
    close(fd);
}

struct sleeper {
    sem_t ready, end;
    void *local;
};

static void *sleep_there(void *argument)
{
    struct sleeper *s = argument;
    int here;

    s->local = &here;
    sem_post(&s->ready);
    while (sem_wait(&s->end) != 0)
        ;
    return NULL;
}

/* A range on this thread's own stack, deeper than the frame that asks. */
static void *ask_for_own(void *argument)
{
    uint8_t memory[4 * 65536];

    memset(memory, 1, sizeof(memory));
    (void)argument;
    (void)loose((uint8_t *)page_of(memory + 2 * 65536), page_bytes(), "stack");
    return NULL;
}

/* A thread that sleeps, and one that asks for its own: their stacks are recognised. */
static void test_stacks_of_threads(void)
{
    struct sleeper s = {0};
    pthread_t thread;

    sem_init(&s.ready, 0, 0);
    sem_init(&s.end, 0, 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_there, &s), 0);
    while (sem_wait(&s.ready) != 0)
        ;
    (void)loose(page_of(s.local), page_bytes(), "stack");
    (void)loose((uint8_t *)page_of(s.local) - 65536, page_bytes(), "stack");
    CU_ASSERT_EQUAL(strict(page_of(s.local), page_bytes()), -EINVAL);
    sem_post(&s.end);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ask_for_own, NULL), 0);
    pthread_join(thread, NULL);
}

/* ---- there and back -------------------------------------------------------------------------- */

static void test_there_and_back(void)
{
    size_t size = 4 * page_bytes();
    uint8_t *memory = map_anonymous(4);
    struct mapping made;
    struct moved moved;

    fill(memory, size);
    CU_ASSERT_EQUAL_FATAL(mapping_create(&made, "moved", size), 0);
    CU_ASSERT_EQUAL_FATAL(move_in(&moved, made.fd, memory, size), 0);
    CU_ASSERT_EQUAL(memcmp(memory, made.base, size), 0);
    CU_ASSERT_TRUE(filled(memory, size));
    memory[5] = 0x77;
    CU_ASSERT_EQUAL(((uint8_t *)made.base)[5], 0x77);
    ((uint8_t *)made.base)[size - 1] = 0x66;
    CU_ASSERT_EQUAL(memory[size - 1], 0x66);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory, size), 0);

    CU_ASSERT_EQUAL(move_out(&moved), 0);
    CU_ASSERT_EQUAL(memcmp(memory, made.base, size), 0);
    ((uint8_t *)made.base)[9] ^= 0xff; /* no longer ours */
    CU_ASSERT_NOT_EQUAL(memory[9], ((uint8_t *)made.base)[9]);
    CU_ASSERT_EQUAL(strict(memory, size), 0);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory, size), -EINVAL);
    CU_ASSERT_EQUAL(move_out(&moved), 0); /* nothing is left of it */
    mapping_destroy(&made);
    munmap(memory, size);
}

/* A descriptor that is not what was asked for leaves the memory as it was. */
static void test_refused_file(void)
{
    size_t size = 2 * page_bytes();
    uint8_t *memory = map_anonymous(2);
    struct moved moved;
    int fd = memfd_create("not sealed", MFD_CLOEXEC);

    fill(memory, size);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)size), 0);
    CU_ASSERT_EQUAL(move_in(&moved, fd, memory, size), -EPROTO);
    CU_ASSERT_TRUE(filled(memory, size));
    CU_ASSERT_EQUAL(strict(memory, size), 0);
    close(fd);
    munmap(memory, size);
}

/* Parts of moved memory that the program has unmapped, or that are other memory now, stay so. */
static void test_parts(void)
{
    size_t page = page_bytes(), size = 6 * page;
    uint8_t *memory = map_anonymous(6);
    int fd = sealed(size);
    struct moved moved;

    fill(memory, size);
    CU_ASSERT_EQUAL_FATAL(move_in(&moved, fd, memory, size), 0);
    close(fd);
    CU_ASSERT_EQUAL(munmap(memory + page, page), 0);
    CU_ASSERT_PTR_EQUAL(mmap(memory + 3 * page, page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                        memory + 3 * page);
    memory[3 * page] = 0x99;
    CU_ASSERT_EQUAL(mprotect(memory + 5 * page, page, PROT_NONE), 0);

    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory, page), 0);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory, 2 * page), -EINVAL);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory + page, page), -EINVAL);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory + 2 * page, page), 0);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory + 2 * page, 2 * page), -EINVAL);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory + 4 * page, 2 * page), 0);

    CU_ASSERT_EQUAL(move_out(&moved), 0);
    CU_ASSERT_TRUE(filled(memory, page));
    (void)loose(memory + page, page, "not mapped");
    CU_ASSERT_EQUAL(memory[3 * page], 0x99);
    CU_ASSERT_EQUAL(memory[3 * page + 1], 0);
    for (size_t i = 4 * page; i < size; i++)
        CU_ASSERT_EQUAL_FATAL(memory[i], (uint8_t)(i * 31 >> 3));
    CU_ASSERT_EQUAL(strict(memory + 2 * page, 4 * page), 0);
    munmap(memory, size);
}

/* ---- memory that was never touched ----------------------------------------------------------- */

enum { SPARSE = 1500 }; /* more pages than the library asks for at once */

static bool none(unsigned page)
{
    (void)page;
    return false;
}

static bool all(unsigned page)
{
    (void)page;
    return true;
}

static bool first(unsigned page)
{
    return page == 0;
}

static bool last(unsigned page)
{
    return page == SPARSE - 1;
}

static bool odd(unsigned page)
{
    return page % 2 == 1;
}

static bool runs(unsigned page)
{
    return page % 700 > 400;
}

static bool scattered(unsigned page)
{
    return page * 2654435761u >> 28 == 3;
}

typedef bool (*pattern)(unsigned page);

static const pattern patterns[] = {none, all, first, last, odd, runs, scattered};

enum { PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

/* Writes a word of its own near the end of each page of a pattern: how many pages. */
static size_t touch(uint8_t *memory, pattern touched, uint64_t seed)
{
    size_t count = 0;

    for (unsigned i = 0; i < SPARSE; i++) {
        uint64_t word = seed + i;

        if (!touched(i))
            continue;
        memcpy(memory + (i + 1) * page_bytes() - sizeof(word), &word, sizeof(word));
        count++;
    }
    return count;
}

/* Whether each page of the pattern has its word, and all else is zero. */
static bool is_touched_so(const uint8_t *memory, pattern touched, uint64_t seed)
{
    size_t words = page_bytes() / sizeof(uint64_t);

    for (unsigned i = 0; i < SPARSE; i++)
        for (size_t k = 0; k < words; k++) {
            uint64_t word;

            memcpy(&word, memory + (i * words + k) * sizeof(word), sizeof(word));
            if (word != (k == words - 1 && touched(i) ? seed + i : 0))
                return false;
        }
    return true;
}

/* Without huge pages, so that pages can be counted. */
static uint8_t *map_sparse(void)
{
    uint8_t *memory = map_anonymous(SPARSE);

    (void)madvise(memory, SPARSE * page_bytes(), MADV_NOHUGEPAGE);
    return memory;
}

static size_t pages_of(int fd)
{
    struct stat file;

    CU_ASSERT_EQUAL_FATAL(fstat(fd, &file), 0);
    return (size_t)file.st_blocks * 512 / page_bytes();
}

/* The system gives huge pages for one touch: then pages of files cannot be counted. */
static bool are_huge(void)
{
    int fd = sealed(SPARSE * page_bytes());
    uint8_t *file = map(SPARSE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    bool huge;

    file[0] = 1;
    huge = pages_of(fd) > 1;
    munmap(file, SPARSE * page_bytes());
    close(fd);
    return huge;
}

/* Moving there takes pages of the file for what has contents, and moving back takes none more: also
 * where peers have written meanwhile, and for pages that were only read or hold zeros. */
static void test_sparse(void)
{
    size_t size = SPARSE * page_bytes();
    bool huge = are_huge();

    for (unsigned i = 0; i < PATTERNS * PATTERNS; i++) {
        pattern mine = patterns[i % PATTERNS], peers = patterns[i / PATTERNS];
        uint8_t *memory = map_sparse(), *peer;
        int fd = sealed(size);
        size_t count = touch(memory, mine, 1000), both = 0;
        struct moved moved;

        bytes_read = 0;
        is_counted = true;
        CU_ASSERT_EQUAL_FATAL(move_in(&moved, fd, memory, size), 0);
        is_counted = false;
        CU_ASSERT_EQUAL(bytes_read, count * page_bytes());
        CU_ASSERT_TRUE(huge || pages_of(fd) == count);

        peer = map(SPARSE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        touch(peer, mine, 0);
        touch(peer, peers, 5000);
        for (unsigned page = 0; page < SPARSE; page++)
            both += mine(page) || peers(page);
        is_counted = true;
        bytes_read = 0;
        CU_ASSERT_EQUAL(move_out(&moved), 0);
        is_counted = false;
        CU_ASSERT_TRUE(huge || pages_of(fd) == both);
        CU_ASSERT_TRUE(huge || bytes_read == both * page_bytes());
        for (unsigned page = 0; page < SPARSE; page++) {
            uint64_t word, wanted = peers(page) ? 5000 + page : mine(page) ? page : 0;

            memcpy(&word, memory + (page + 1) * page_bytes() - sizeof(word), sizeof(word));
            CU_ASSERT_EQUAL_FATAL(word, wanted);
        }
        munmap(peer, size);
        close(fd);
        munmap(memory, size);
    }
}

/* Pages that were read alone, and pages of zeros, are none in the file. */
static void test_zeros(void)
{
    size_t size = SPARSE * page_bytes();
    uint8_t *memory = map_sparse();
    volatile uint8_t sum = 0;
    bool huge = are_huge();
    int fd = sealed(size);
    struct moved moved;

    for (size_t i = 0; i < SPARSE / 2; i++)
        sum = (uint8_t)(sum + memory[i * page_bytes()]);
    for (size_t i = SPARSE / 2; i < SPARSE; i++)
        memory[i * page_bytes()] = sum;
    memory[20 * page_bytes()] = 7;
    CU_ASSERT_EQUAL_FATAL(move_in(&moved, fd, memory, size), 0);
    CU_ASSERT_TRUE(huge || pages_of(fd) == 1);
    CU_ASSERT_EQUAL(move_out(&moved), 0);
    CU_ASSERT_TRUE(huge || pages_of(fd) == 1);
    CU_ASSERT_EQUAL(memory[20 * page_bytes()], 7);
    close(fd);
    munmap(memory, size);
}

static bool is_of_file(unsigned page)
{
    return page < 3 || page % 300 == 200 || page >= SPARSE - 2;
}

static bool are_those_of_file(const uint8_t *memory, const uint8_t *expected)
{
    size_t page = page_bytes();

    for (unsigned i = 0; i < SPARSE; i++)
        if (is_of_file(i) && memcmp(memory + i * page, expected + i * page, page) != 0)
            return false;
    return true;
}

/* Private pages of a file have contents before they are touched: before, between and behind
 * anonymous ones; also where the mappings cannot be read. */
static void test_pages_of_files(void)
{
    size_t page = page_bytes(), size = SPARSE * page;
    uint8_t *expected = malloc(size);
    int file = memfd_create("file", MFD_CLOEXEC);
    struct moved moved;

    CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
    fill(expected, size);
    CU_ASSERT_EQUAL_FATAL(write(file, expected, size), (ssize_t)size);
    for (int unread = 0; unread < 2; unread++) {
        uint8_t *memory = map_sparse();
        int fd = sealed(size);

        for (unsigned i = 0; i < SPARSE; i++)
            if (is_of_file(i))
                CU_ASSERT_PTR_EQUAL(mmap(memory + i * page, page, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_FIXED, file, (off_t)(i * page)),
                                    memory + i * page);
        fault.error = -EMFILE;
        fault.passes = 0;
        fault.times = 1;
        fault.hole = false;
        fault.number = unread ? SYS_openat : 0;
        CU_ASSERT_EQUAL(move_in(&moved, fd, memory, size), 0);
        fault.number = 0;
        CU_ASSERT_TRUE(are_those_of_file(memory, expected));
        CU_ASSERT_EQUAL(move_out(&moved), 0);
        CU_ASSERT_TRUE(are_those_of_file(memory, expected));
        CU_ASSERT_EQUAL(memory[100 * page], 0);
        close(fd);
        munmap(memory, size);
    }
    free(expected);
    close(file);
}

/* Where the kernel does not say what was touched, or says it wrongly, all is copied. */
static void test_pages_not_judged(void)
{
    static const struct {
        intptr_t number;
        unsigned passes;
        enum lie lie;
        bool out;
    } rows[] = {
        {SYS_openat, 0, LIE_NONE, false}, /* the mappings */
        {SYS_openat, 1, LIE_NONE, false}, /* the list of pages */
        {SYS_pread64, 0, LIE_NONE, false}, {SYS_pread64, 1, LIE_NONE, false},
        {SYS_pread64, 2, LIE_NONE, false}, {0, 0, LIE_UNTOUCHED, false},
        {0, 0, LIE_SWAPPED, false},        {SYS_fstat, 0, LIE_NONE, true},
        {SYS_lseek, 0, LIE_NONE, true},    {SYS_lseek, 1, LIE_NONE, true},
        {SYS_lseek, 4, LIE_NONE, true},
    };
    size_t size = SPARSE * page_bytes();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * PATTERNS; i++) {
        size_t row = i / PATTERNS;
        pattern touched = patterns[i % PATTERNS];
        uint8_t *memory = map_sparse();
        int fd = sealed(size);
        struct moved moved;

        touch(memory, touched, 77);
        for (int out = 0; out < 2; out++) {
            fault.error = -EIO;
            fault.passes = rows[row].passes;
            fault.times = 1;
            fault.hole = false;
            fault.number = (out == 1) == rows[row].out ? rows[row].number : 0;
            lie = rows[row].lie;
            CU_ASSERT_EQUAL(out ? move_out(&moved) : move_in(&moved, fd, memory, size), 0);
            lie = LIE_NONE;
            fault.number = 0;
            CU_ASSERT_TRUE(is_touched_so(memory, touched, 77));
        }
        CU_ASSERT_EQUAL(strict(memory, size), 0);
        close(fd);
        munmap(memory, size);
    }
}

/* The program has closed all descriptors, and may have another file under the number. */
static void test_closed_descriptor(void)
{
    size_t size = SPARSE * page_bytes();

    for (int again = 0; again < 2; again++) {
        uint8_t *memory = map_sparse();
        int fd = sealed(size), other = sealed(size);
        struct moved moved;

        touch(memory, scattered, 9);
        CU_ASSERT_EQUAL_FATAL(move_in(&moved, fd, memory, size), 0);
        CU_ASSERT_EQUAL(moved.fd, fd);
        CU_ASSERT_EQUAL(again ? dup2(other, fd) : close(fd), again ? fd : 0);
        CU_ASSERT_EQUAL(move_out(&moved), 0);
        CU_ASSERT_TRUE(is_touched_so(memory, scattered, 9));
        if (again)
            close(fd);
        close(other);
        munmap(memory, size);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Each call of the kernel fails: the data stays, and a second try succeeds. */
static void test_failures(void)
{
    static const struct {
        intptr_t number;
        int error;
        unsigned passes, times;
        bool hole;
        int in, out;
    } rows[] = {
        {SYS_fstat, -EIO, 0, 1, false, -EIO, 0},
        {SYS_mmap, -ENOMEM, 0, 1, false, -ENOMEM, -ENOMEM},
        {SYS_madvise, -EFAULT, 0, 1, false, -EFAULT, -EFAULT},
        {SYS_madvise, -EINVAL, 0, 1, false, 0, 0}, /* an older kernel */
        {SYS_rt_sigprocmask, -EPERM, 0, 1, false, -EPERM, -EPERM},
        {SYS_mremap, -ENOMEM, 0, 1, false, -ENOMEM, -ENOMEM},
        {SYS_mremap, -EFAULT, 0, 1, false, -EFAULT, -EFAULT},
        /* The kernel has unmapped the place, so it must be filled again. */
        {SYS_mremap, -ENOMEM, 0, 1, true, 0, 0},
        {SYS_mremap, -ENOMEM, 0, 5, true, 0, 0},
    };
    size_t size = 3 * page_bytes();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t *memory = map_anonymous(3);
        int fd = sealed(size), rc;
        sigset_t signals;
        struct moved moved;

        fill(memory, size);
        for (int out = 0; out < 2; out++) {
            fault.error = rows[i].error;
            fault.passes = rows[i].passes;
            fault.times = rows[i].times;
            fault.hole = rows[i].hole;
            fault.number = rows[i].number;
            rc = out ? move_out(&moved) : move_in(&moved, fd, memory, size);
            fault.number = 0;
            CU_ASSERT_EQUAL(rc, out ? rows[i].out : rows[i].in);
            CU_ASSERT_TRUE(filled(memory, size));
            sigprocmask(SIG_SETMASK, NULL, &signals);
            CU_ASSERT_EQUAL(sigismember(&signals, SIGTERM), 0);
            if (rc < 0) { /* as before, and once more */
                CU_ASSERT_EQUAL(strict(memory, size), out ? -EINVAL : 0);
                CU_ASSERT_EQUAL_FATAL(out ? move_out(&moved) : move_in(&moved, fd, memory, size),
                                      0);
                CU_ASSERT_TRUE(filled(memory, size));
            }
        }
        CU_ASSERT_EQUAL(strict(memory, size), 0);
        close(fd);
        munmap(memory, size);
    }
}

/* A file that is shorter than its mapping: an error, no signal. */
static void test_behind_the_end_of_a_file(void)
{
    size_t page = page_bytes();
    int file = memfd_create("short", MFD_CLOEXEC), fd = sealed(2 * page), rc;
    struct moved moved;
    uint8_t *memory;

    CU_ASSERT_EQUAL_FATAL(ftruncate(file, (off_t)page), 0);
    memory = map(2, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
    memory[0] = 5;
    if (madvise(memory, page, 22 /* MADV_POPULATE_READ */) == 0) { /* Linux 5.14 */
        rc = move_in(&moved, fd, memory, 2 * page);
        CU_ASSERT_EQUAL(rc, -EFAULT);
        CU_ASSERT_EQUAL(memory[0], 5);
    }
    munmap(memory, 2 * page);
    close(file);
    close(fd);
}

/* ---- the program itself ---------------------------------------------------------------------- */

enum { PARTS = 24 };

struct part {
    uintptr_t start;
    size_t length;
    int fd;
    struct moved moved;
};

/* The program's and the C library's .data and .bss, and the heap: whole mappings. */
static unsigned own_parts(struct part parts[PARTS])
{
    struct maps maps;
    struct maps_line line;
    uintptr_t behind = 0; /* the end of a file's mapping: .bss begins there */
    unsigned count = 0;

    CU_ASSERT_EQUAL_FATAL(maps_open(&maps), 0);
    while (maps_next(&maps, &line) > 0 && count < PARTS) {
        bool file = strstr(line.name, "test_move") || strstr(line.name, "libc.so");
        bool bss = line.name[0] == '\0' && line.start == behind;

        if (file)
            behind = line.end;
        if (!(file || bss || strcmp(line.name, "[heap]") == 0) || !line.writable ||
            !line.readable || line.shared)
            continue;
        parts[count++] = (struct part){.start = line.start, .length = line.end - line.start};
    }
    maps_close(&maps);
    return count;
}

static int bss[100000];
static int data[1000] = {1, 2, 3};
static char **volatile environment_copy;
extern char **environ; /* a variable of the C library, copied into this program's .bss */

/* Uses variables, malloc in all sizes, stdio with a full buffer, the environment and a child. */
static unsigned use_everything(FILE *out, unsigned round)
{
    void *blocks[64];
    unsigned sum = 0;
    pid_t child;
    int status;

    for (unsigned i = 0; i < 64; i++) {
        blocks[i] = malloc((size_t)8 << (i % 20));
        memset(blocks[i], (int)i, (size_t)8 << (i % 20));
    }
    for (unsigned i = 0; i < 3000; i++)
        fprintf(out, "round %u line %u\n", round, i);
    for (unsigned i = 0; i < 100000; i += 100) {
        bss[i] += (int)(i + round);
        sum += (unsigned)bss[i];
    }
    data[round]++;
    for (unsigned i = 0; i < 64; i++)
        free(blocks[i]);
    malloc_trim(0);
    setenv("PWC_TEST_MOVE", round % 2 ? "odd" : "even", 1);
    environment_copy = environ;
    child = fork();
    if (child == 0)
        _exit(strcmp(getenv("PWC_TEST_MOVE"), round % 2 ? "odd" : "even") == 0 ? 0 : 1);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    return sum;
}

/* All of the program's variables and heap, and those of the C library, there and back. What is
 * written before is there afterwards, and the program goes on. */
static void test_this_program(void)
{
    struct part parts[PARTS];
    unsigned count = own_parts(parts), sums[3], lines = 0;
    char line[64], wanted[64];
    FILE *file = tmpfile();

    CU_ASSERT_TRUE_FATAL(count >= 3 && count < PARTS && file);
    printf("(%u parts", count);
    sums[0] = use_everything(file, 0);
    fprintf(file, "half a line, ");
    for (unsigned i = 0; i < count; i++)
        parts[i].fd = sealed(parts[i].length);
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT_EQUAL_FATAL(
            move_in(&parts[i].moved, parts[i].fd, (void *)parts[i].start, parts[i].length), 0);
    CU_ASSERT_EQUAL(move_holds(&parts[0].moved, parts[0].start, parts[0].length), 0);
    printf(", moved");
    fprintf(file, "and the other\n");
    sums[1] = use_everything(file, 1);
    fprintf(file, "half a line, ");
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT_EQUAL_FATAL(move_out(&parts[i].moved), 0);
    printf(", and back) ");
    fprintf(file, "and the other\n");
    sums[2] = use_everything(file, 2);
    for (unsigned i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(move_holds(&parts[i].moved, parts[i].start, parts[i].length), -EINVAL);
        close(parts[i].fd);
    }
    for (unsigned round = 0; round < 3; round++) {
        unsigned total = 0;

        CU_ASSERT_EQUAL(data[round], (int)round + 2);
        for (unsigned r = 0; r <= round; r++)
            for (unsigned i = 0; i < 100000; i += 100)
                total += i + r;
        CU_ASSERT_EQUAL(sums[round], total);
    }
    rewind(file);
    for (unsigned round = 0; round < 3; round++) {
        if (round > 0) {
            CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof(line), file));
            CU_ASSERT_STRING_EQUAL(line, "half a line, and the other\n");
        }
        for (unsigned i = 0; i < 3000 && fgets(line, sizeof(line), file); i++) {
            snprintf(wanted, sizeof(wanted), "round %u line %u\n", round, i);
            lines += strcmp(line, wanted) == 0;
        }
    }
    CU_ASSERT_EQUAL(lines, 9000);
    fclose(file);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"what may be moved", test_movable},
        {"stacks of threads", test_stacks_of_threads},
        {"there and back", test_there_and_back},
        {"a file that is refused", test_refused_file},
        {"parts that are gone", test_parts},
        {"memory that was never touched", test_sparse},
        {"pages of zeros", test_zeros},
        {"private pages of files", test_pages_of_files},
        {"pages that cannot be judged", test_pages_not_judged},
        {"a descriptor that is closed", test_closed_descriptor},
        {"calls that fail", test_failures},
        {"behind the end of a file", test_behind_the_end_of_a_file},
        {"this program itself", test_this_program},
        CU_TEST_INFO_NULL,
    };

    return suite_run("move", tests);
}
