/*
 * Sealed shared mappings: memfds that the daemon creates and both sides map.
 *
 * The creator seals memfds against shrinking, growing and further seals, so that no side can make
 * the other fault by a resize. The creator also clears their mode bits, because a new memfd has
 * mode 0777 and could be reopened through /proc. Memfds have no name in any file system.
 *
 * Holes: while one process gives pages back (MADV_REMOVE, fallocate), every other process that
 * touches them waits in the kernel, for 100 ms with 512 MiB. No seal forbids that and still lets a
 * neighbour, or the next daemon, map the memory for writing. The mark of an immutable file does:
 * open descriptors stay writable, and no process can give pages back. It takes CAP_LINUX_IMMUTABLE
 * and Linux 6.0; without them memory is shared unmarked.
 */
#ifndef PWC_SHM_RING_MAPPING_H
#define PWC_SHM_RING_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
    void *base;
    size_t size; /* page multiple */
    int fd;      /* -1 once closed; the mapping stays */
};

/* Creates, sizes, seals and maps zeroed memory, and marks it where the process may. `name` is shown
 * in /proc only. */
int mapping_create(struct mapping *m, const char *name, size_t size);
/* mapping_create with a second descriptor that allows only reading, or -1 where the system gives
 * none. The caller closes it. */
int mapping_create_with_reader(struct mapping *m, const char *name, size_t size, int *reader);
/* Creates a mapping without the mark, for memory that is shared with no client: its creator may
 * give pages back. */
int mapping_create_own(struct mapping *m, const char *name, size_t size);
/* Whether mapping_create marks. 0; -EPERM: the capability is missing; -EOPNOTSUPP: the kernel does
 * not know the mark of such files; another errno: no file to try that with. */
int mapping_probe_mark(void);
/* Maps a received descriptor (ownership passes on success) after checking its seals and size:
 * -EPROTO when it lacks a seal or its size differs from `size`. */
int mapping_adopt(struct mapping *m, int fd, size_t size);
/* Adopts a mapping that an earlier process of this daemon created, and treats it like our own. */
int mapping_inherit(struct mapping *m, int fd, size_t size);
/* Some bytes of a sealed file. Unless `writable`, the descriptor need not allow writing. */
struct mapping_part {
    uint64_t file_size;
    uint64_t offset, length;
    bool writable;
};
/* Adopts the pages that hold a part of a file; *at is the part's first byte. -ERANGE: the part is
 * not in the file. The caller keeps the descriptor. */
int mapping_adopt_part(struct mapping *m, int fd, const struct mapping_part *part, void **at);
/* Closes the descriptor, keeps the memory. */
void mapping_close_fd(struct mapping *m);
/* Unmaps and closes. Does nothing to a struct with base NULL and fd -1. */
void mapping_destroy(struct mapping *m);

#endif
