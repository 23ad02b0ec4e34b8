/*
 * Memory of which the program has touched only a part, moved in place and back: the library does
 * not read the rest, which takes no pages in the file. Where the kernel does not say which pages
 * were touched, the library copies all.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clientlib/memory/movable.h"
#include "clientlib/memory/move.h"
#include "tests/clientlib/session/kernel_calls.h"
#include "tests/suite.h"

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

/* Writes a different word near the end of each page of the pattern, and returns the number of
 * pages. */
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

/* Maps memory without huge pages, so that pages can be counted. */
static uint8_t *map_sparse(void)
{
    uint8_t *memory = memory_map_anonymous(SPARSE);

    (void)madvise(memory, SPARSE * page_bytes(), MADV_NOHUGEPAGE);
    return memory;
}

static size_t pages_of(int fd)
{
    struct stat file;

    CU_ASSERT_EQUAL_FATAL(fstat(fd, &file), 0);
    return (size_t)file.st_blocks * 512 / page_bytes();
}

/* Whether the system gives a file a huge page for one touch: then its pages cannot be counted. */
static bool are_huge(void)
{
    int fd = memory_file(SPARSE * page_bytes());
    uint8_t *file = memory_map(SPARSE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    bool huge;

    file[0] = 1;
    huge = pages_of(fd) > 1;
    munmap(file, SPARSE * page_bytes());
    close(fd);
    return huge;
}

/* Moving there takes pages of the file only for pages with contents, and moving back takes no more:
 * also where peers have written meanwhile. */
static void test_sparse(void)
{
    size_t size = SPARSE * page_bytes();
    bool huge = are_huge();

    for (unsigned i = 0; i < PATTERNS * PATTERNS; i++) {
        pattern mine = patterns[i % PATTERNS], peers = patterns[i / PATTERNS];
        uint8_t *memory = map_sparse(), *peer;
        int fd = memory_file(size);
        size_t count = touch(memory, mine, 1000), both = 0;
        struct moved moved;

        kernel.bytes_read = 0;
        kernel.is_counted = true;
        CU_ASSERT_EQUAL_FATAL(move_in(&moved, fd, memory, size), 0);
        kernel.is_counted = false;
        CU_ASSERT_EQUAL(kernel.bytes_read, count * page_bytes());
        CU_ASSERT_TRUE(huge || pages_of(fd) == count);

        peer = memory_map(SPARSE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        touch(peer, mine, 0);
        touch(peer, peers, 5000);
        for (unsigned page = 0; page < SPARSE; page++)
            both += mine(page) || peers(page);
        kernel.is_counted = true;
        kernel.bytes_read = 0;
        CU_ASSERT_EQUAL(move_out(&moved), 0);
        kernel.is_counted = false;
        CU_ASSERT_TRUE(huge || pages_of(fd) == both);
        CU_ASSERT_TRUE(huge || kernel.bytes_read == both * page_bytes());
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

/* Pages that were only read, and pages of zeros, take no pages in the file. */
static void test_zeros(void)
{
    size_t size = SPARSE * page_bytes();
    uint8_t *memory = map_sparse();
    volatile uint8_t sum = 0;
    bool huge = are_huge();
    int fd = memory_file(size);
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

/* Private pages of a file have contents before anybody touches them, so they must be copied: at the
 * start, in the middle and at the end of anonymous memory, also where the list of mappings cannot
 * be read. */
static void test_pages_of_files(void)
{
    size_t page = page_bytes(), size = SPARSE * page;
    uint8_t *expected = malloc(size);
    int file = memfd_create("file", MFD_CLOEXEC);
    struct moved moved;

    CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
    memory_fill(expected, size);
    CU_ASSERT_EQUAL_FATAL(write(file, expected, size), (ssize_t)size);
    for (int unread = 0; unread < 2; unread++) {
        uint8_t *memory = map_sparse();
        int fd = memory_file(size);

        for (unsigned i = 0; i < SPARSE; i++)
            if (is_of_file(i))
                CU_ASSERT_PTR_EQUAL(mmap(memory + i * page, page, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_FIXED, file, (off_t)(i * page)),
                                    memory + i * page);
        kernel.fault.error = -EMFILE;
        kernel.fault.passes = 0;
        kernel.fault.times = 1;
        kernel.fault.hole = false;
        kernel.fault.number = unread ? SYS_openat : 0;
        CU_ASSERT_EQUAL(move_in(&moved, fd, memory, size), 0);
        kernel.fault.number = 0;
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

/* Where the kernel does not say which pages were touched, or says it wrongly, all pages are
 * copied. */
static void test_pages_not_judged(void)
{
    static const struct {
        intptr_t number;
        unsigned passes;
        enum kernel_lie lie;
        bool out;
    } rows[] = {
        {SYS_openat, 0, LIE_NONE, false}, /* the list of mappings */
        {SYS_openat, 1, LIE_NONE, false}, /* the list of pages */
        {SYS_pread64, 0, LIE_NONE, false}, {SYS_pread64, 1, LIE_NONE, false},
        {SYS_pread64, 2, LIE_NONE, false}, {0, 0, LIE_UNTOUCHED, false},
        {0, 0, LIE_SWAPPED, false},        {SYS_fstat, 0, LIE_NONE, true},
        {SYS_lseek, 0, LIE_NONE, true},    {SYS_lseek, 1, LIE_NONE, true},
        {SYS_lseek, 4, LIE_NONE, true},
    };
    size_t size = SPARSE * page_bytes();
    char why[MOVABLE_WHY_MAX];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * PATTERNS; i++) {
        size_t row = i / PATTERNS;
        pattern touched = patterns[i % PATTERNS];
        uint8_t *memory = map_sparse();
        int fd = memory_file(size);
        struct moved moved;

        touch(memory, touched, 77);
        for (int out = 0; out < 2; out++) {
            kernel.fault.error = -EIO;
            kernel.fault.passes = rows[row].passes;
            kernel.fault.times = 1;
            kernel.fault.hole = false;
            kernel.fault.number = (out == 1) == rows[row].out ? rows[row].number : 0;
            kernel.lie = rows[row].lie;
            CU_ASSERT_EQUAL(out ? move_out(&moved) : move_in(&moved, fd, memory, size), 0);
            kernel.lie = LIE_NONE;
            kernel.fault.number = 0;
            CU_ASSERT_TRUE(is_touched_so(memory, touched, 77));
        }
        CU_ASSERT_EQUAL(movable_check(MOVABLE_ANONYMOUS, memory, size, why), 0);
        close(fd);
        munmap(memory, size);
    }
}

/* The program has closed all descriptors meanwhile, and may have another file under the same
 * number. */
static void test_closed_descriptor(void)
{
    size_t size = SPARSE * page_bytes();

    for (int again = 0; again < 2; again++) {
        uint8_t *memory = map_sparse();
        int fd = memory_file(size), other = memory_file(size);
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

int main(void)
{
    CU_TestInfo tests[] = {
        {"memory that was never touched", test_sparse},
        {"pages of zeros", test_zeros},
        {"private pages of files", test_pages_of_files},
        {"pages that cannot be judged", test_pages_not_judged},
        {"a descriptor that is closed", test_closed_descriptor},
        CU_TEST_INFO_NULL,
    };

    return suite_run("touched", tests);
}
