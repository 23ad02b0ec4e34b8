/*
 * Finds segment and offset of an address: the ranges of this process's memory that the daemon
 * reaches.
 *
 * The client's table has whole segments, and ranges with a copy. Each context looks up addresses in
 * a view of its own (versioned.h), so the hot path takes no lock. A lookup may still find a range
 * that another thread is withdrawing; the program must not use memory that it withdraws.
 *
 * Threads: any thread uses a table; only the thread that owns the context uses its view.
 */
#ifndef PWC_CLIENTLIB_SPANS_H
#define PWC_CLIENTLIB_SPANS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "clientlib/attach/versioned.h"

struct span {
    uint64_t start; /* the address; the key of the table, whose spans never overlap */
    uint64_t length;
    uint64_t offset; /* of `start`, in the segment */
    uint32_t segment;
    bool heap;       /* pages may leave it: each call looks whether they are there (heap.h) */
    uint8_t *shadow; /* not NULL: the daemon reaches this copy instead */
};

struct span_table {
    struct versioned_table table;
    _Atomic int heap_list; /* of heap.h, once a span has `heap`; negative: there is none */
};

struct span_view {
    struct versioned_view view;
};

/* One look at a span with `heap`, by a call with several pieces: the call keeps the result, and
 * does not look again for each piece. */
struct span_look {
    uint64_t highest; /* the end of the call's highest piece; 0: nobody knows */
    uint64_t span;    /* where the span starts */
    uint64_t moved;   /* up to this address the span's pages are there; 0: no look has shown one */
};

void span_table_init(struct span_table *spans);
void span_table_destroy(struct span_table *spans);
/* -EEXIST: the span overlaps another; -ENOMEM; -EMFILE, -ENFILE: no descriptor for the list of
 * pages. */
int span_table_add(struct span_table *spans, const struct span *span);
void span_table_remove(struct span_table *spans, uintptr_t start);

void span_view_destroy(struct span_view *view);
/*
 * The span that holds all of [start, start + length), with the offset of `start` in its segment
 * (and in *shadow the address of its copy, or NULL): 0, -EFAULT when there is none, or when a page
 * has left it, or -ENOMEM.
 */
int span_view_find(struct span_view *view, struct span_table *spans, const void *start,
                   uint64_t length, uint32_t *segment, uint64_t *offset, uint8_t **shadow);
/* As span_view_find, for a piece of a call whose pieces share *look. */
int span_view_find_piece(struct span_view *view, struct span_table *spans, struct span_look *look,
                         const void *start, uint64_t length, uint32_t *segment, uint64_t *offset,
                         uint8_t **shadow);

#endif
