/* Owns the client's tracts (tract.h). Thread: the one that holds the client's lock. */
#include "clientlib/memory/tract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"
#include "clientlib/memory/segments.h"
#include "shm_ring/fault.h"

void tracts_init(struct tracts *tracts, struct daemon_link *link, struct span_table *spans)
{
    *tracts = (struct tracts){.link = link, .spans = spans};
}

void tracts_destroy(struct tracts *tracts)
{
    while (tracts->list) {
        struct tract *tract = tracts->list;

        tracts->list = tract->next;
        (void)move_out(&tract->moved);
        close(tract->moved.fd);
        free(tract);
    }
}

enum tract_overlap tracts_overlap(const struct tracts *tracts, uintptr_t start, size_t length,
                                  struct tract **out)
{
    *out = NULL;
    for (struct tract *t = tracts->list; t; t = t->next) {
        uintptr_t from = t->moved.start, to = from + t->moved.length;

        if (start >= to || start + length <= from)
            continue;
        if (start >= from && start + length <= to) {
            *out = t;
            return TRACT_INSIDE;
        }
        if (!*out || from < (*out)->moved.start)
            *out = t;
    }
    return *out ? TRACT_PARTLY : TRACT_NONE;
}

/* Whether pages of the range are the heap break's; also if the mappings cannot be read. */
static bool is_in_heap(uintptr_t start, size_t length)
{
    struct maps_line line = {.start = 0};
    bool found = false;
    struct maps maps;
    int rc = maps_open(&maps);

    if (rc < 0)
        return true;
    while (!found && (rc = maps_next(&maps, &line)) > 0)
        found = line.start < start + length && line.end > start && strcmp(line.name, "[heap]") == 0;
    maps_close(&maps);
    return found || rc < 0;
}

int tract_make(struct tracts *tracts, uintptr_t start, size_t length, struct tract **out)
{
    struct tract *tract = calloc(1, sizeof(*tract));
    struct span span = {.start = start, .length = length, .heap = is_in_heap(start, length)};
    uint64_t opened = length;
    int fd, rc;

    if (!tract)
        return -ENOMEM;
    rc = segment_request(tracts->link, &opened, &tract->segment, &fd);
    if (rc < 0)
        goto release_memory;
    FAULT(SEGMENT_OPENED);
    rc = opened == length ? 0 : -EPROTO;
    span.segment = tract->segment;
    if (rc == 0)
        rc = span_table_add(tracts->spans, &span);
    if (rc < 0)
        goto release_segment;
    rc = move_in(&tract->moved, fd, (void *)start, length);
    if (rc < 0)
        goto remove_span;
    FAULT(SEGMENT_MAPPED);
    tract->regions = 1;
    tract->next = tracts->list;
    tracts->list = tract;
    *out = tract;
    return 0;

remove_span:
    span_table_remove(tracts->spans, start);
release_segment:
    close(fd);
    (void)segment_release(tracts->link, tract->segment);
release_memory:
    free(tract);
    return rc;
}

int tract_take(struct tract *tract, uintptr_t start, size_t length)
{
    int rc = move_holds(&tract->moved, start, length);

    if (rc == 0)
        tract->regions++;
    return rc;
}

int tract_give(struct tracts *tracts, struct tract *tract)
{
    struct tract **at = &tracts->list;
    int rc = tract->regions > 1 ? 0 : move_out(&tract->moved);

    if (rc < 0)
        return rc;
    if (tract->regions > 1) {
        tract->regions--;
        return 0;
    }
    while (*at != tract)
        at = &(*at)->next;
    *at = tract->next;
    span_table_remove(tracts->spans, tract->moved.start);
    close(tract->moved.fd);
    (void)segment_release(tracts->link, tract->segment);
    free(tract);
    return 0;
}
