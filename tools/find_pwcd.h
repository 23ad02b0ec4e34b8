/* Where the daemon's program is, for tools that start it. */
#ifndef PWC_TOOLS_FIND_PWCD_H
#define PWC_TOOLS_FIND_PWCD_H

#include <stddef.h>

/* Returns the program beside this one, as installed or as built; else "pwcd", to be looked for in
 * PATH. */
void find_pwcd(char *out, size_t size);

#endif
