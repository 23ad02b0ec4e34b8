/*
 * Other pages under a range of addresses: the same contents, at the same place.
 *
 * The range may hold anything of the process, the C library's own data and this library's
 * included. So between the copy of the contents and the change of the pages the code has its stack
 * alone: it calls the kernel past the C library (raw.h), with all signals of its thread blocked.
 *
 * Thread: any; the caller promises that no other thread touches the range meanwhile. The kernel may
 * write into the range: in a program that is linked statically the first thread's variables stand
 * in the heap, with the area of restartable sequences. The kernel writes the number of the
 * processor there, and again whenever it takes the processor from the thread, so nothing is lost.
 * It writes to the list of robust mutexes only when a thread ends.
 */
#ifndef PWC_CLIENTLIB_MOVE_H
#define PWC_CLIENTLIB_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The pages of a file that stand at a place: how /proc/self/maps shows them. */
struct moved {
    uintptr_t start;
    size_t length;
    dev_t device;
    ino_t inode;
    int fd; /* the file's, and the caller's */
};

/*
 * Copies the contents of whole pages into the descriptor's file, which is sealed and all zero, and
 * maps the file in their place. Pages that were never touched (touched.h) are not read, and none of
 * the file is taken for them. The descriptor stays the caller's, and should be open until move_out:
 * without it the file is read as a whole. On failure the range is as before: -EPROTO (the file has
 * no seals, or another length) or an error of the kernel.
 */
int move_in(struct moved *moved, int fd, void *start, size_t length);

/*
 * Puts private anonymous memory with the contents back in the place of the file. Pages that are no
 * longer the file's stay as they are: the program has unmapped them, or malloc has given them back
 * to the kernel and taken others there. On failure what is still shared stays so, and a second call
 * goes on with it.
 */
int move_out(const struct moved *moved);

/* Whether [start, start + length) still is of the file, at its place: 0, -EINVAL, or why the
 * mappings could not be read. */
int move_holds(const struct moved *moved, uintptr_t start, size_t length);

#endif
