/* The part of the model that is looked at, and the keys that change it. Pure. */
#ifndef PWCCTL_TOP_VIEW_H
#define PWCCTL_TOP_VIEW_H

#include "tools/pwcctl/top/model.h"

struct top_view {
    int width, height; /* height 0: as many lines as there are */
    enum top_table table;
    size_t sort[TOP_TABLES]; /* columns */
    bool ascending[TOP_TABLES];
    size_t scroll[TOP_TABLES]; /* rows passed over */
    bool help;
};

/* Keys that have names; any other value is a character. */
enum top_key {
    TOP_KEY_UP = 256,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
};

void top_view_init(struct top_view *view);
/* Handles a key. Returns false to end. */
bool top_view_key(struct top_view *view, const struct top_model *model, int key);
/* Chooses the columns of the table that fit on the screen, leaving out those that are needed least.
 * Returns how many, with their indices in `columns` and their widths. */
size_t top_view_columns(const struct top_view *view, const struct top_model *model,
                        enum top_table table, size_t columns[TOP_COLUMNS_MAX],
                        size_t widths[TOP_COLUMNS_MAX]);
/* Returns the table's rows in order, to be freed; NULL: no memory. */
const struct top_row **top_view_order(const struct top_view *view, const struct top_model *model,
                                      enum top_table table);

#endif
