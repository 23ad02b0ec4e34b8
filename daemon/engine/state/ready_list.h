/*
 * Lists of numbers, in private memory: a list has its first and last number, and a table beside it
 * has for each number the next one. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_READY_LIST_H
#define PWC_ENGINE_READY_LIST_H

#include <stdint.h>

#define NONE UINT32_MAX

/* First and last entry of a list; a table `next` links the entries. */
struct ready_list {
    uint32_t first, last;
};

static inline void list_push(struct ready_list *list, uint32_t *next, uint32_t i)
{
    next[i] = NONE;
    if (list->first == NONE)
        list->first = i;
    else
        next[list->last] = i;
    list->last = i;
}

static inline uint32_t list_pop(struct ready_list *list, const uint32_t *next)
{
    uint32_t i = list->first;

    list->first = next[i];
    return i;
}

static inline void list_remove(struct ready_list *list, uint32_t *next, uint32_t i)
{
    uint32_t before = NONE;

    for (uint32_t at = list->first; at != i; at = next[at])
        before = at;
    if (before == NONE)
        list->first = next[i];
    else
        next[before] = next[i];
    if (list->last == i)
        list->last = before;
}

#endif
