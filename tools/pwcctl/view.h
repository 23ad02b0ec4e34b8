/* The views of daemons, as text. */
#ifndef PWCCTL_VIEW_H
#define PWCCTL_VIEW_H

#include <stddef.h>
#include <stdio.h>
#include "views/fields.h"

enum { VIEW_ANSWERS_MAX = 256 };

/* The answer of the daemon of a socket. */
struct view_answer {
    const char *socket;
    char *json;
};

/* Prints the answers as one table; if there are several, each row begins with its daemon's node. 0,
 * or a negative errno after a message on stderr: an answer does not belong to that view, and is
 * left out of the table. */
int view_print(const struct view *view, const struct view_answer *answers, size_t count, FILE *to);

#endif
