/*
 * The advice by which the kernel makes pages before their first use, so that a page that cannot be
 * read or written gives an error instead of a signal. An older kernel answers -EINVAL.
 *
 * Thread: any.
 */
#ifndef PWC_CLIENTLIB_POPULATE_H
#define PWC_CLIENTLIB_POPULATE_H

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* since Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#endif
