/* The views of a daemon, as text. */
#ifndef PWCCTL_VIEW_H
#define PWCCTL_VIEW_H

#include <stdio.h>
#include "views/fields.h"

/* 0, or a negative errno, said on stderr: the document is not one of that view. */
int view_print(const struct view *view, const char *json, FILE *to);

#endif
