/* The terminal, by ncurses: shows lines, reads keys. */
#ifndef PWCCTL_TOP_SCREEN_H
#define PWCCTL_TOP_SCREEN_H

#include "tools/pwcctl/top/layout.h"

/* Opens the terminal. -ENOTTY: there is none; -EINVAL: its type is not known. stderr has the
 * reason. */
int top_terminal_open(void);
void top_terminal_close(void);
void top_terminal_size(int *width, int *height);
void top_terminal_show(const struct top_screen *screen);
/* Reads a key (view.h); 0: there is none, or the size has changed. Never waits. */
int top_terminal_key(void);

#endif
