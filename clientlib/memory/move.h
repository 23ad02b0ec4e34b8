/*
 * Replaces the pages of a range of addresses by others with the same contents, at the same place.
 *
 * The range may hold any memory of the process, also the data of the C library and of this library.
 * So between copying the contents and replacing the pages, the code writes only to its stack: it
 * calls the kernel without the C library (raw.h), with all signals of its thread blocked.
 *
 * Thread: any; the caller promises that no other thread touches the range meanwhile. The kernel may
 * write into the range: in a statically linked program the first thread's variables are in the
 * heap, with the area of restartable sequences. The kernel writes the processor's number into that
 * area, and writes it again whenever the thread was preempted, so nothing is lost. The kernel
 * writes to the list of robust mutexes only when a thread ends.
 */
#ifndef PWC_CLIENTLIB_MOVE_H
#define PWC_CLIENTLIB_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The pages of a file that are mapped at a place, as maps.h shows them. */
struct moved {
    uintptr_t start;
    size_t length;
    dev_t device;
    ino_t inode;
    int fd; /* of the file; owned by the caller */
};

/*
 * Copies the contents of whole pages into the descriptor's file, which is sealed and all zero, and
 * maps the file in their place. Pages that were never touched (touched.h) are not read, and take no
 * pages of the file. The caller keeps the descriptor, which should be open until move_out: without
 * it move_out reads the whole file. On failure the range is unchanged: -EPROTO (the file has no
 * seals, or another length), -ENOMEM (no memory for the pages; before Linux 5.14 the process ends
 * by SIGBUS instead), or an error of the kernel.
 */
int move_in(struct moved *moved, int fd, void *start, size_t length);

/*
 * Replaces the file's pages by private anonymous memory with the same contents. Pages that are no
 * longer the file's are left alone: the program has unmapped them, or malloc has returned them to
 * the kernel and got others there. After a failure the pages that are still shared stay shared, and
 * a second call continues with them.
 */
int move_out(const struct moved *moved);

/* Whether [start, start + length) is still mapped from the file, at its place: 0, -EINVAL, or the
 * error of reading the mappings. */
int move_holds(const struct moved *moved, uintptr_t start, size_t length);

#endif
