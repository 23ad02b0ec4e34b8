/*
 * The heap break, whose end malloc gives back to the kernel and takes again. Moved pages there are
 * gone then, and the next pages at these addresses are ordinary memory, which the daemon does not
 * reach. The kernel's list of pages shows the difference.
 *
 * The heap shrinks and grows at its end only. So if one page of memory that the program has now is
 * still the moved one, all pages below it are, too.
 *
 * Thread: any.
 */
#ifndef PWC_CLIENTLIB_HEAP_H
#define PWC_CLIENTLIB_HEAP_H

#include <stdbool.h>

/* A descriptor of the kernel's list of pages, which the caller closes, or why it cannot be opened.
 */
int heap_open_list(void);
/*
 * Whether the page of this address is a moved one. Makes two system calls. The list of mappings
 * answers, more slowly, where the program has made the page read-only, and where `list` is
 * negative: the kernel has no list of pages. False where the kernel gives no answer.
 */
bool heap_page_is_moved(int list, const void *at);

#endif
