/* What each view shows: a document's rows as a table, or its members one a line. */
#ifndef PWCCTL_VIEW_H
#define PWCCTL_VIEW_H

#include <stdio.h>

struct view;

/* NULL when there is none of that name. */
const struct view *view_find(const char *name);

/* Renders the daemon's document; -EBADMSG, said on stderr, when it is not what it should be. */
int view_print(const struct view *view, const char *json, FILE *to);

#endif
