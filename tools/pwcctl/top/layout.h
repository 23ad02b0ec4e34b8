/* Makes lines of text from the model, as the view has them. Pure. */
#ifndef PWCCTL_TOP_LAYOUT_H
#define PWCCTL_TOP_LAYOUT_H

#include "tools/pwcctl/top/view.h"

enum { TOP_LINE_MAX = 512 };

enum top_style {
    TOP_PLAIN = 0,
    TOP_TITLE,  /* the first line */
    TOP_HEADER, /* over columns */
    TOP_NOTE,   /* something happened */
    TOP_HINT,
};

struct top_line {
    char text[TOP_LINE_MAX];
    enum top_style style;
    /* Start and width of the column that rows are sorted by. A width of 0: no such column here. */
    size_t mark, marked;
};

struct top_screen {
    struct top_line *lines;
    size_t count, room;
    bool failed; /* no memory */
};

/* `clock` is the time of day, as text. The screen belongs to the caller; it is empty or has earlier
 * lines. */
void top_layout(struct top_screen *screen, const struct top_model *model,
                const struct top_view *view, const char *clock);
void top_screen_free(struct top_screen *screen);

#endif
