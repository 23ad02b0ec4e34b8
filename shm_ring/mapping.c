/*
 * Owns the life of a sealed memfd mapping: create or adopt, close its descriptor, unmap.
 *
 * Thread: any; a struct mapping belongs to its holder.
 */
#include "shm_ring/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u /* since Linux 6.3 */
#endif

static const int seals_required = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static bool size_fits(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return size != 0 && (size & (page - 1)) == 0;
}

static int open_memfd(const char *name)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL) /* an older kernel; fchmod below takes the mode bits away */
        fd = memfd_create(name, flags);
    return fd < 0 ? -errno : fd;
}

static int map_shared(struct mapping *m, int fd, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED)
        return -errno;
    *m = (struct mapping){.base = base, .size = size, .fd = fd};
    return 0;
}

/* Call this while the mode bits still allow reading. */
static int open_reader(int fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Keeps the shared pages out of our core dumps. A failure is harmless. */
static void leave_core(const struct mapping *m)
{
    (void)madvise(m->base, m->size, MADV_DONTDUMP);
}

/* The mark against holes (mapping.h). */
static int mark_immutable(int fd)
{
    unsigned flags = FS_IMMUTABLE_FL; /* the kernel reads an int, whatever FS_IOC_SETFLAGS says */

    if (ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0)
        return 0;
    return errno == ENOTTY ? -EOPNOTSUPP : -errno;
}

int mapping_probe_mark(void)
{
    int fd = open_memfd("pwc-probe");
    int rc = fd < 0 ? fd : mark_immutable(fd);

    if (fd >= 0)
        close(fd);
    return rc;
}

/* Sealed and mapped. */
static int create_sealed(struct mapping *m, const char *name, size_t size, int *reader)
{
    if (!size_fits(size))
        return -EINVAL;

    int fd = open_memfd(name);
    int rc = fd;

    if (fd < 0)
        return rc;
    if (reader)
        *reader = open_reader(fd);
    if (ftruncate(fd, (off_t)size) != 0 || fchmod(fd, 0) != 0 ||
        fcntl(fd, F_ADD_SEALS, seals_required) != 0) {
        rc = -errno;
        goto close_fd;
    }
    rc = map_shared(m, fd, size);
    if (rc != 0)
        goto close_fd;
    leave_core(m);
    return 0;

close_fd:
    close(fd);
    if (reader && *reader >= 0)
        close(*reader);
    if (reader)
        *reader = -1;
    return rc;
}

int mapping_create_own(struct mapping *m, const char *name, size_t size)
{
    return create_sealed(m, name, size, NULL);
}

int mapping_create(struct mapping *m, const char *name, size_t size)
{
    return mapping_create_with_reader(m, name, size, NULL);
}

int mapping_create_with_reader(struct mapping *m, const char *name, size_t size, int *reader)
{
    int rc = create_sealed(m, name, size, reader);

    if (rc == 0)
        (void)mark_immutable(m->fd);
    return rc;
}

/* Checks that a descriptor from a socket is a memfd of the right size that can never be resized. */
static int check_sealed(int fd, size_t size)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (seals < 0) /* EINVAL: a file without seals */
        return errno == EINVAL ? -EPROTO : -errno;
    if (fstat(fd, &st) != 0)
        return -errno;
    if ((seals & seals_required) != seals_required || (uint64_t)st.st_size != size)
        return -EPROTO;
    return 0;
}

int mapping_adopt(struct mapping *m, int fd, size_t size)
{
    if (!size_fits(size))
        return -EINVAL;

    int rc = check_sealed(fd, size);

    return rc != 0 ? rc : map_shared(m, fd, size);
}

int mapping_inherit(struct mapping *m, int fd, size_t size)
{
    int rc = mapping_adopt(m, fd, size);

    if (rc == 0)
        leave_core(m);
    return rc;
}

int mapping_adopt_part(struct mapping *m, int fd, const struct mapping_part *part, void **at)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t from = part->offset & ~(page - 1);
    int protection = part->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    size_t size;
    void *base;

    if (part->length == 0 || part->offset > part->file_size ||
        part->length > part->file_size - part->offset)
        return -ERANGE;

    int rc = check_sealed(fd, part->file_size);

    if (rc != 0)
        return rc;
    size = (part->offset + part->length - from + page - 1) & ~(page - 1);
    base = mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)from);
    if (base == MAP_FAILED)
        return -errno;
    *m = (struct mapping){.base = base, .size = size, .fd = -1};
    *at = (uint8_t *)base + (part->offset - from);
    return 0;
}

void mapping_close_fd(struct mapping *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
}

void mapping_destroy(struct mapping *m)
{
    if (m->base != NULL)
        munmap(m->base, m->size);
    mapping_close_fd(m);
    m->base = NULL;
    m->size = 0;
}
