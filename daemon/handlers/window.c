/* Owns the line of zeros (window.h). Thread: the thread that runs the handler. */
#include "daemon/handlers/window.h"

#include <string.h>

const uint8_t window_nowhere[64] __attribute__((aligned(64))) = {0};

/* Clears parts of 64 bytes: for the whole struct compilers would use a string instruction, which
 * takes longer. */
void windows_clear(struct windows *w)
{
    memset(w->base, 0, sizeof(w->base));
    memset(w->size[WINDOW_READ], 0, sizeof(w->size[WINDOW_READ]));
    memset(w->size[WINDOW_WRITE], 0, sizeof(w->size[WINDOW_WRITE]));
}

void window_set(struct windows *w, enum handler_window window, void *base, uint64_t size)
{
    w->base[window] = base;
    w->size[WINDOW_READ][window] = size;
    w->size[WINDOW_WRITE][window] = size;
}

void window_set_constant(struct windows *w, enum handler_window window, const void *base,
                         uint64_t size)
{
    w->base[window] = (uint8_t *)(uintptr_t)base; /* nobody writes, because the size for writing is
                                                   * 0 */
    w->size[WINDOW_READ][window] = size;
    w->size[WINDOW_WRITE][window] = 0;
}
