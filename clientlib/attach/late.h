/*
 * Things (contexts, segments, regions, remotes, programs, offloads, places in teams) that the
 * daemon makes after their caller has given up: the library gives them back. Owns the list of such
 * requests.
 *
 *     request sent --> -ETIMEDOUT: late_note --> the answer comes: late_answer --> a request that
 *                                                                                  ends the thing
 *
 * Thread: any; the lock of the daemon's link guards it (daemon_link.h).
 */
#ifndef PWC_CLIENTLIB_LATE_H
#define PWC_CLIENTLIB_LATE_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"

/* A request whose caller has given up, until its answer comes. */
struct late;

/* The request that ends what an answer has brought; `request` points into `what`. */
struct late_end {
    Pwc__ClientRequest request;
    union {
        Pwc__ContextClose context;
        Pwc__SegmentClose segment;
        Pwc__RegionClose region;
        Pwc__Unbind remote;
        Pwc__ProgramUnload program;
        Pwc__OffloadDestroy offload;
        Pwc__TeamLeave team;
    } what;
};

/* Notes the request if its answer will bring a thing. Without memory for the note, the daemon keeps
 * the thing until the client, or its context, ends. */
void late_note(struct late **list, const Pwc__ClientRequest *request);
/* For an answer that no caller waits for. True: the caller gives `end` an id and sends it. */
bool late_answer(struct late **list, const Pwc__ClientReply *reply, struct late_end *end);
void late_destroy(struct late **list);

#endif
