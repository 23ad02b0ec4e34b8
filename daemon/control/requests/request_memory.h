/*
 * Makes segments and regions, which the engine registers, within the client's quota.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_MEMORY_H
#define PWC_CONTROL_REQUEST_MEMORY_H

#include "daemon/control/clients/client.h"

void request_segment_open(struct client *c, uint32_t request, const Pwc__SegmentOpen *open);
void request_segment_close(struct client *c, uint32_t request, const Pwc__SegmentClose *close);
void request_region_open(struct client *c, uint32_t request, const Pwc__RegionOpen *open);
void request_region_close(struct client *c, uint32_t request, const Pwc__RegionClose *close);

/* Notices of the engine. */
void segment_ready(struct worker *w, uint32_t handle, int status);
void segment_closed(struct worker *w, uint32_t handle);
void region_closed(struct control *control, uint64_t cookie);

/* Ends the client of an inherited segment that the fabric does not register again: each operation
 * with its memory would fail. */
void segment_lost(const struct client_segment *s, int status);
/* Frees a segment that the engine has never had, or has released. */
void segment_free(struct client_segment *s);

#endif
