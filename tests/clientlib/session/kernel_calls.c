/* Wraps the calls of the library to the kernel, and makes memory (kernel_calls.h). Thread: the
 * test's. */
#include "tests/clientlib/session/kernel_calls.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clientlib/memory/raw.h"
#include "shm_ring/mapping.h"

enum { POPULATE_READ = 22 }; /* MADV_POPULATE_READ of Linux 5.14 */

struct kernel_calls kernel;

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
    if (kernel.fault.number != number || kernel.fault.times == 0 ||
        (kernel.fault.passes > 0 && kernel.fault.passes-- > 0))
        return 0;
    kernel.fault.times--;
    return kernel.fault.error;
}

/* Reads the kernel's list of pages and falsifies it: LIE_UNTOUCHED: no page was touched.
 * LIE_SWAPPED: all pages that are in memory are said to be swapped out, except in an answer about a
 * single page. */
static intptr_t list_wrongly(const intptr_t arguments[5])
{
    uint64_t *entries = (uint64_t *)arguments[1];
    intptr_t got = __real_raw_call(SYS_pread64, arguments);

    if (kernel.lie == LIE_SWAPPED && got == 8)
        return got;
    for (intptr_t i = 0; i < got / 8; i++)
        entries[i] = kernel.lie == LIE_SWAPPED ? entries[i] >> 63 << 62 : 0;
    return got;
}

intptr_t __wrap_raw_call(intptr_t number, const intptr_t arguments[5])
{
    int error = kernel.fault.number ? failure_of(number) : 0; /* writes only with a fault */

    if (error && kernel.fault.hole)
        munmap((void *)arguments[4], (size_t)arguments[1]);
    if (error)
        return error;
    if (kernel.is_counted && number == SYS_madvise && arguments[2] == POPULATE_READ)
        kernel.bytes_read += (size_t)arguments[1];
    return kernel.lie != LIE_NONE && number == SYS_pread64 ? list_wrongly(arguments)
                                                           : __real_raw_call(number, arguments);
}

int __wrap_open64(const char *path, int flags, ...)
{
    int error = kernel.fault.number ? failure_of(SYS_openat) : 0;

    if (!error)
        return __real_open64(path, flags, 0600);
    errno = -error;
    return -1;
}

void *__wrap_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    int error = kernel.fault.number ? failure_of(SYS_mmap) : 0;

    if (!error)
        return __real_mmap64(at, length, protection, flags, fd, offset);
    errno = -error;
    return MAP_FAILED;
}

int __wrap_fstat64(int fd, struct stat *out)
{
    int error = kernel.fault.number ? failure_of(SYS_fstat) : 0;

    if (!error)
        return __real_fstat64(fd, out);
    errno = -error;
    return -1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

uint8_t *memory_map(size_t pages, int protection, int flags, int fd)
{
    void *base = mmap(NULL, pages * page_bytes(), protection, flags, fd, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(base, MAP_FAILED);
    return base;
}

uint8_t *memory_map_anonymous(size_t pages)
{
    return memory_map(pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

void memory_fill(uint8_t *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        memory[i] = (uint8_t)(i * 31 >> 3);
}

bool memory_is_filled(const uint8_t *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (memory[i] != (uint8_t)(i * 31 >> 3))
            return false;
    return true;
}

int memory_file(size_t size)
{
    struct mapping made;
    int fd;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&made, "moved", size), 0);
    fd = dup(made.fd);
    mapping_destroy(&made);
    return fd;
}
