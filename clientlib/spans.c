/*
 * Owns the table of reachable addresses, and the contexts' views of it. Threads: spans.h tells.
 */
#include "spans.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void span_table_init(struct span_table *table)
{
    memset(table, 0, sizeof(*table));
    pthread_mutex_init(&table->lock, NULL);
    atomic_init(&table->generation, 1);
}

void span_table_destroy(struct span_table *table)
{
    free(table->spans);
    pthread_mutex_destroy(&table->lock);
}

static int make_room(struct span **spans, uint32_t *room, uint32_t count)
{
    uint32_t larger = *room ? *room : 8;
    struct span *list;

    if (count <= *room)
        return 0;
    while (larger < count)
        larger *= 2;
    list = realloc(*spans, larger * sizeof(*list));
    if (!list)
        return -ENOMEM;
    *spans = list;
    *room = larger;
    return 0;
}

/* How many spans start at or below `start`. */
static uint32_t count_up_to(const struct span *spans, uint32_t count, uintptr_t start)
{
    uint32_t low = 0;
    uint32_t high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (spans[middle].start <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int span_table_add(struct span_table *table, const struct span *span)
{
    uint32_t at;
    int rc;

    pthread_mutex_lock(&table->lock);
    rc = make_room(&table->spans, &table->room, table->count + 1);
    if (rc < 0)
        goto unlock;
    at = count_up_to(table->spans, table->count, span->start);

    const struct span *left = at > 0 ? &table->spans[at - 1] : NULL;
    const struct span *right = at < table->count ? &table->spans[at] : NULL;

    if ((left && span->start - left->start < left->length) ||
        (right && right->start - span->start < span->length)) {
        rc = -EEXIST;
        goto unlock;
    }
    memmove(&table->spans[at + 1], &table->spans[at], (table->count - at) * sizeof(*span));
    table->spans[at] = *span;
    table->count++;
    atomic_fetch_add_explicit(&table->generation, 1, memory_order_release);
unlock:
    pthread_mutex_unlock(&table->lock);
    return rc;
}

void span_table_remove(struct span_table *table, uintptr_t start)
{
    uint32_t after;

    pthread_mutex_lock(&table->lock);
    after = count_up_to(table->spans, table->count, start);
    if (after > 0 && table->spans[after - 1].start == start) {
        memmove(&table->spans[after - 1], &table->spans[after],
                (table->count - after) * sizeof(table->spans[0]));
        table->count--;
        atomic_fetch_add_explicit(&table->generation, 1, memory_order_release);
    }
    pthread_mutex_unlock(&table->lock);
}

void span_view_destroy(struct span_view *view)
{
    free(view->spans);
    *view = (struct span_view){0};
}

static int copy_table(struct span_view *view, struct span_table *table)
{
    int rc;

    pthread_mutex_lock(&table->lock);
    rc = make_room(&view->spans, &view->room, table->count);
    if (rc == 0) {
        if (table->count > 0)
            memcpy(view->spans, table->spans, table->count * sizeof(table->spans[0]));
        view->count = table->count;
        view->generation = atomic_load_explicit(&table->generation, memory_order_relaxed);
        view->last = 0;
    }
    pthread_mutex_unlock(&table->lock);
    return rc;
}

static bool holds(const struct span *span, uintptr_t start, uint64_t length)
{
    uint64_t from = start - span->start; /* wraps to a large number below the span */

    return from <= span->length && length <= span->length - from;
}

int span_view_find(struct span_view *view, struct span_table *table, const void *address,
                   uint64_t length, uint32_t *segment, uint64_t *offset, uint8_t **shadow)
{
    uintptr_t start = (uintptr_t)address;
    uint32_t at;

    if (atomic_load_explicit(&table->generation, memory_order_acquire) != view->generation) {
        int rc = copy_table(view, table);

        if (rc < 0)
            return rc;
    }
    at = view->last;
    if (at >= view->count || !holds(&view->spans[at], start, length)) {
        at = count_up_to(view->spans, view->count, start);
        if (at == 0 || !holds(&view->spans[--at], start, length))
            return -EFAULT;
        view->last = at;
    }

    const struct span *span = &view->spans[at];

    *segment = span->segment;
    *offset = span->offset + (start - span->start);
    *shadow = span->shadow ? span->shadow + (start - span->start) : NULL;
    return 0;
}
