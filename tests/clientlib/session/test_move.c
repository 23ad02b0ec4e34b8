/*
 * Memory that is moved in place into a segment, and back: which memory may be moved, each call of
 * the kernel that may fail meanwhile, and this program's own variables, heap and C library. The
 * library is linked into the program, so its variables are moved, too.
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
#include "clientlib/memory/stacks.h"
#include "shm_ring/mapping.h"
#include "tests/clientlib/session/kernel_calls.h"
#include "tests/suite.h"

/* ---- what may be moved ----------------------------------------------------------------------- */

static int strict(const void *start, size_t length)
{
    char why[MOVABLE_WHY_MAX];

    return movable_check(MOVABLE_ANONYMOUS, start, length, why);
}

/* The result of the loose form of the check; a refusal's reason must contain `word`. */
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
    uint8_t *good = memory_map_anonymous(8);
    uint8_t *shared = memory_map(4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    uint8_t *read_only = memory_map(4, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    uint8_t *code =
        memory_map(1, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    int fd = memfd_create("file", MFD_CLOEXEC);
    uint8_t *file, *heap, *file_shared;

    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)(4 * page)), 0);
    file = memory_map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
    file_shared = memory_map(4, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
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
        {page_of(&kernel), 1, -EINVAL, NULL},
        {page_of(&fd), 1, -EINVAL, "a stack"},
        {NULL, 1, -EINVAL, "not mapped"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int rc = strict(rows[i].start, rows[i].pages * page);

        /* `kernel` lies in .bss, which the kernel's table of mappings shows in one line with the
         * heap or the file, or in an anonymous line of its own, which the strict form takes. */
        CU_ASSERT(rc == rows[i].strict || rows[i].start == page_of(&kernel));
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

/* Asks for a range on this thread's own stack, below the frame that asks. */
static void *ask_for_own(void *argument)
{
    uint8_t memory[4 * 65536];

    memset(memory, 1, sizeof(memory));
    (void)argument;
    (void)loose((uint8_t *)page_of(memory + 2 * 65536), page_bytes(), "stack");
    return NULL;
}

/* The stack of a thread that sleeps, and of a thread that asks for its own, are recognised. */
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

/* A stack that the C library has made fills its mapping from the lower end, whether the library
 * names it or not; of one that a program has cut from its heap only the top is known. */
static void test_names_of_stacks(void)
{
    static const struct {
        const char *name;
        bool whole;
    } rows[] = {
        {"", true},
        {"[anon: glibc: pthread stack: 4711]", true},
        {"[heap]", false},
        {"[anon: glibc: malloc arena]", false},
        {"/usr/lib/libc.so.6", false},
    };
    uintptr_t page = page_bytes(), start = 1024 * page, head = start + 100 * page + 64;
    const struct stacks stacks = {.heads = &head, .count = 1};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct maps_line line = {.start = start, .end = start + 200 * page};

        snprintf(line.name, sizeof(line.name), "%s", rows[i].name);
        CU_ASSERT_TRUE(stacks_touch(&stacks, &line, start + 100 * page, start + 101 * page));
        CU_ASSERT_EQUAL(stacks_touch(&stacks, &line, start + page, start + 2 * page),
                        rows[i].whole);
        CU_ASSERT_FALSE(stacks_touch(&stacks, &line, start + 101 * page, start + 102 * page));
    }
}

/* ---- there and back -------------------------------------------------------------------------- */

static void test_there_and_back(void)
{
    size_t size = 4 * page_bytes();
    uint8_t *memory = memory_map_anonymous(4);
    struct mapping made;
    struct moved moved;

    memory_fill(memory, size);
    CU_ASSERT_EQUAL_FATAL(mapping_create(&made, "moved", size), 0);
    CU_ASSERT_EQUAL_FATAL(move_in(&moved, made.fd, memory, size), 0);
    CU_ASSERT_EQUAL(memcmp(memory, made.base, size), 0);
    CU_ASSERT_TRUE(memory_is_filled(memory, size));
    memory[5] = 0x77;
    CU_ASSERT_EQUAL(((uint8_t *)made.base)[5], 0x77);
    ((uint8_t *)made.base)[size - 1] = 0x66;
    CU_ASSERT_EQUAL(memory[size - 1], 0x66);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory, size), 0);

    CU_ASSERT_EQUAL(move_out(&moved), 0);
    CU_ASSERT_EQUAL(memcmp(memory, made.base, size), 0);
    ((uint8_t *)made.base)[9] ^= 0xff; /* changes the segment only */
    CU_ASSERT_NOT_EQUAL(memory[9], ((uint8_t *)made.base)[9]);
    CU_ASSERT_EQUAL(strict(memory, size), 0);
    CU_ASSERT_EQUAL(move_holds(&moved, (uintptr_t)memory, size), -EINVAL);
    CU_ASSERT_EQUAL(move_out(&moved), 0); /* nothing is moved any more */
    mapping_destroy(&made);
    munmap(memory, size);
}

static pthread_t first;

/* Ends the process with the number of the first wrong step, or with 0. */
static void *move_alone(void *argument)
{
    size_t size = 16 * page_bytes();
    uint8_t *memory = memory_map_anonymous(16);
    char why[MOVABLE_WHY_MAX];
    struct moved moved;
    int fd = memory_file(size);

    (void)argument;
    memory[3] = 3;
    if (pthread_join(first, NULL) != 0)
        _exit(1);
    if (movable_check(MOVABLE_ANONYMOUS, memory, size, why) != 0)
        _exit(2);
    kernel.is_counted = true;
    if (move_in(&moved, fd, memory, size) != 0)
        _exit(3);
    if (kernel.bytes_read >= size) /* all pages count as touched */
        _exit(4);
    if (move_holds(&moved, (uintptr_t)memory, size) != 0)
        _exit(5);
    if (move_out(&moved) != 0 || move_holds(&moved, (uintptr_t)memory, size) != -EINVAL)
        _exit(6);
    _exit(memory[3] == 3 ? 0 : 7);
}

/* The first thread has ended, as by pthread_exit in main: /proc/self has no mappings any more. */
static void test_without_the_first_thread(void)
{
    pthread_t other;
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        first = pthread_self();
        if (pthread_create(&other, NULL, move_alone, NULL) != 0)
            _exit(8);
        pthread_exit(NULL);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    if (status != 0)
        fprintf(stderr, "step %d is wrong\n", WEXITSTATUS(status));
}

/* A descriptor with a wrong file is refused, and the memory stays as it was. */
static void test_refused_file(void)
{
    size_t size = 2 * page_bytes();
    uint8_t *memory = memory_map_anonymous(2);
    struct moved moved;
    int fd = memfd_create("not sealed", MFD_CLOEXEC);

    memory_fill(memory, size);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)size), 0);
    CU_ASSERT_EQUAL(move_in(&moved, fd, memory, size), -EPROTO);
    CU_ASSERT_TRUE(memory_is_filled(memory, size));
    CU_ASSERT_EQUAL(strict(memory, size), 0);
    close(fd);
    munmap(memory, size);
}

/* Moving back leaves alone the parts that the program has unmapped or mapped anew meanwhile. */
static void test_parts(void)
{
    size_t page = page_bytes(), size = 6 * page;
    uint8_t *memory = memory_map_anonymous(6);
    int fd = memory_file(size);
    struct moved moved;

    memory_fill(memory, size);
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
    CU_ASSERT_TRUE(memory_is_filled(memory, page));
    (void)loose(memory + page, page, "not mapped");
    CU_ASSERT_EQUAL(memory[3 * page], 0x99);
    CU_ASSERT_EQUAL(memory[3 * page + 1], 0);
    for (size_t i = 4 * page; i < size; i++)
        CU_ASSERT_EQUAL_FATAL(memory[i], (uint8_t)(i * 31 >> 3));
    CU_ASSERT_EQUAL(strict(memory + 2 * page, 4 * page), 0);
    munmap(memory, size);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Each call of the kernel fails once: the data stays as it was, and a second try succeeds. */
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
        {SYS_madvise, -EINVAL, 0, 1, false, 0, 0}, /* as an older kernel answers */
        /* The kernel has no memory for the new pages. */
        {SYS_madvise, -EFAULT, 1, 1, false, -ENOMEM, -ENOMEM},
        {SYS_madvise, -ENOMEM, 1, 1, false, -ENOMEM, -ENOMEM},
        {SYS_madvise, -EINVAL, 1, 1, false, 0, 0},
        {SYS_rt_sigprocmask, -EPERM, 0, 1, false, -EPERM, -EPERM},
        {SYS_mremap, -ENOMEM, 0, 1, false, -ENOMEM, -ENOMEM},
        {SYS_mremap, -EFAULT, 0, 1, false, -EFAULT, -EFAULT},
        /* The kernel has unmapped the target, so the library must fill it again. */
        {SYS_mremap, -ENOMEM, 0, 1, true, 0, 0},
        {SYS_mremap, -ENOMEM, 0, 5, true, 0, 0},
    };
    size_t size = 3 * page_bytes();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t *memory = memory_map_anonymous(3);
        int fd = memory_file(size), rc;
        sigset_t signals;
        struct moved moved;

        memory_fill(memory, size);
        for (int out = 0; out < 2; out++) {
            kernel.fault.error = rows[i].error;
            kernel.fault.passes = rows[i].passes;
            kernel.fault.times = rows[i].times;
            kernel.fault.hole = rows[i].hole;
            kernel.fault.number = rows[i].number;
            rc = out ? move_out(&moved) : move_in(&moved, fd, memory, size);
            kernel.fault.number = 0;
            CU_ASSERT_EQUAL(rc, out ? rows[i].out : rows[i].in);
            CU_ASSERT_TRUE(memory_is_filled(memory, size));
            sigprocmask(SIG_SETMASK, NULL, &signals);
            CU_ASSERT_EQUAL(sigismember(&signals, SIGTERM), 0);
            if (rc < 0) { /* nothing has changed; a second try */
                CU_ASSERT_EQUAL(strict(memory, size), out ? -EINVAL : 0);
                CU_ASSERT_EQUAL_FATAL(out ? move_out(&moved) : move_in(&moved, fd, memory, size),
                                      0);
                CU_ASSERT_TRUE(memory_is_filled(memory, size));
            }
        }
        CU_ASSERT_EQUAL(strict(memory, size), 0);
        close(fd);
        munmap(memory, size);
    }
}

/* A file that is shorter than its mapping: an error, and no SIGBUS. */
static void test_behind_the_end_of_a_file(void)
{
    size_t page = page_bytes();
    int file = memfd_create("short", MFD_CLOEXEC), fd = memory_file(2 * page), rc;
    struct moved moved;
    uint8_t *memory;

    CU_ASSERT_EQUAL_FATAL(ftruncate(file, (off_t)page), 0);
    memory = memory_map(2, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
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

/* Lists the mappings of the program's and the C library's .data and .bss, and of the heap. */
static unsigned own_parts(struct part parts[PARTS])
{
    struct maps maps;
    struct maps_line line;
    uintptr_t behind = 0; /* the end of the last file's mapping, where .bss begins */
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

/* Uses all parts that were moved: variables, malloc in all sizes, stdio with a full buffer, the
 * environment and a child process. */
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

/* Moves all variables and the heap of the program, and the C library's variables, there and back.
 * All contents stay, and the program runs on. */
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
        parts[i].fd = memory_file(parts[i].length);
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
        {"names of stacks", test_names_of_stacks},
        {"there and back", test_there_and_back},
        {"without the first thread", test_without_the_first_thread},
        {"a file that is refused", test_refused_file},
        {"parts that are gone", test_parts},
        {"calls that fail", test_failures},
        {"behind the end of a file", test_behind_the_end_of_a_file},
        {"this program itself", test_this_program},
        CU_TEST_INFO_NULL,
    };

    return suite_run("move", tests);
}
