/*
 * The free places of a table, found without a search. A place that was never taken costs no memory.
 *
 * Owner: the fabric that owns the table. Thread: the progress thread.
 */
#ifndef PWC_FABRIC_PLACES_H
#define PWC_FABRIC_PLACES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define PLACES_NONE UINT32_MAX

struct places {
    uint32_t *next;   /* by free place that was taken before: the next such place */
    uint32_t free;    /* the first such place, or PLACES_NONE */
    uint32_t touched; /* places that were taken at least once: the first ones of the table */
    uint32_t count;
};

static inline int places_open(struct places *places, uint32_t count)
{
    *places = (struct places){.free = PLACES_NONE, .count = count};
    /* calloc leaves the pages of places that are never taken untouched. */
    places->next = calloc(count, sizeof(*places->next));
    return places->next ? 0 : -ENOMEM;
}

static inline void places_close(struct places *places)
{
    free(places->next);
}

/* Takes a free place. PLACES_NONE: all are taken. */
static inline uint32_t places_take(struct places *places)
{
    uint32_t place = places->free;

    if (place != PLACES_NONE)
        places->free = places->next[place];
    else if (places->touched < places->count)
        place = places->touched++;
    return place;
}

static inline void places_give(struct places *places, uint32_t place)
{
    places->next[place] = places->free;
    places->free = place;
}

#endif
