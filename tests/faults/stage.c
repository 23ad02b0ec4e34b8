/* Makes and maps the memory that processes share (stage.h). */
#include "tests/faults/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(int fd, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return base == MAP_FAILED ? NULL : base;
}

void *stage_share(size_t size, int *fd)
{
    *fd = memfd_create("pwc-test", 0);
    return *fd >= 0 && ftruncate(*fd, (off_t)size) == 0 ? map(*fd, size) : NULL;
}

void stage_unshare(void *base, size_t size, int fd)
{
    munmap(base, size);
    close(fd);
}

void *stage_find(const char *variable, size_t size)
{
    const char *number = getenv(variable);

    return number ? map(atoi(number), size) : NULL;
}

void stage_name(const char *variable, int fd)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", fd);
    setenv(variable, number, 1);
}

void stage_name_path(const char *variable, int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
    setenv(variable, path, 1);
}
