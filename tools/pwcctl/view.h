/* The views of daemons, as text. */
#ifndef PWCCTL_VIEW_H
#define PWCCTL_VIEW_H

#include <stddef.h>
#include <stdio.h>
#include "views/fields.h"

enum { VIEW_ANSWERS_MAX = 16 };

/* What the daemon of a socket has answered. */
struct view_answer {
    const char *socket;
    char *json;
};

/* Prints the answers as one table, where they are several with the node of each row's daemon in
 * front. 0, or a negative errno, said on stderr: an answer is not one of that view, and the table
 * goes without it. */
int view_print(const struct view *view, const struct view_answer *answers, size_t count, FILE *to);

#endif
