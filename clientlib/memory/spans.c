/*
 * Owns the table of reachable addresses, and the contexts' views of it. Threads: see spans.h.
 */
#include "clientlib/memory/spans.h"

#include <errno.h>
#include <unistd.h>
#include "clientlib/memory/heap.h"

static bool overlap(const void *left, const void *right)
{
    const struct span *a = left, *b = right;

    return b->start - a->start < a->length;
}

void span_table_init(struct span_table *spans)
{
    versioned_init(&spans->table, sizeof(struct span));
    spans->heap_list = -1;
}

void span_table_destroy(struct span_table *spans)
{
    versioned_destroy(&spans->table);
    if (spans->heap_list >= 0)
        close(spans->heap_list);
}

int span_table_add(struct span_table *spans, const struct span *span)
{
    if (span->heap && spans->heap_list < 0) {
        int list = heap_open_list();

        if (list == -EMFILE || list == -ENFILE || list == -ENOMEM)
            return list;
        spans->heap_list = list;
    }
    return versioned_add(&spans->table, span, overlap);
}

void span_table_remove(struct span_table *spans, uintptr_t start)
{
    versioned_remove(&spans->table, start);
}

void span_view_destroy(struct span_view *view)
{
    versioned_view_destroy(&view->view);
}

static bool holds(const struct span *span, uint64_t start, uint64_t length)
{
    uint64_t from = start - span->start; /* an address below the span gives a large number */

    return from <= span->length && length <= span->length - from;
}

/* Whether the span's pages are there up to this address, which memory of the program ends at. */
static bool is_moved_up_to(const struct span_table *table, const struct span *span, uint64_t end,
                           struct span_look *look)
{
    if (!heap_page_is_moved(table->heap_list, (const void *)(end - 1)))
        return false;
    look->span = span->start;
    look->moved = end;
    return true;
}

/* Looks at the highest piece first: where its page is there, those of all lower pieces are. */
static bool has_left(const struct span_table *table, const struct span *span, uint64_t end,
                     struct span_look *look)
{
    uint64_t highest = look->highest;

    if (look->span == span->start && end <= look->moved)
        return false;
    if (highest > end && highest - span->start <= span->length &&
        is_moved_up_to(table, span, highest, look))
        return false;
    return !is_moved_up_to(table, span, end, look);
}

int span_view_find_piece(struct span_view *view, struct span_table *table, struct span_look *look,
                         const void *address, uint64_t length, uint32_t *segment, uint64_t *offset,
                         uint8_t **shadow)
{
    struct versioned_view *v = &view->view;
    uint64_t start = (uintptr_t)address;
    const struct span *spans;
    uint32_t at;
    int rc = versioned_refresh(v, &table->table);

    if (rc < 0)
        return rc;
    spans = v->entries;
    at = v->last;
    if (at >= v->count || !holds(&spans[at], start, length)) {
        at = versioned_up_to(spans, sizeof(*spans), v->count, start);
        if (at == 0 || !holds(&spans[--at], start, length))
            return -EFAULT;
        v->last = at;
    }

    const struct span *span = &spans[at];

    if (__builtin_expect(span->heap, 0) && length > 0 &&
        has_left(table, span, start + length, look))
        return -EFAULT;
    *segment = span->segment;
    *offset = span->offset + (start - span->start);
    *shadow = span->shadow ? span->shadow + (start - span->start) : NULL;
    return 0;
}

int span_view_find(struct span_view *view, struct span_table *table, const void *address,
                   uint64_t length, uint32_t *segment, uint64_t *offset, uint8_t **shadow)
{
    struct span_look look = {0};

    return span_view_find_piece(view, table, &look, address, length, segment, offset, shadow);
}
