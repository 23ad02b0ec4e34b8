/* Ends of requests, reported as events (request_ends.h). Thread: the context's. */
#include "tests/system/lib/request_ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct request_end {
    struct request_end *next;
    pwc_request *request;
    struct pwc_event event; /* complete, except for the fields from the status */
    uint8_t id[PWC_CID_MAX];
    bool silent; /* the operation's end is shown only if it failed */
};

void request_ends_init(struct request_ends *ends)
{
    ends->first = NULL;
    ends->last = &ends->first;
}

void request_ends_forget(struct request_ends *ends)
{
    while (ends->first) {
        struct request_end *end = ends->first;

        ends->first = end->next;
        free(end);
    }
    request_ends_init(ends);
}

int request_ends_add(struct request_ends *ends, pwc_ctx *ctx, const struct path_op *op,
                     pwc_request **out)
{
    struct request_end *end = calloc(1, sizeof(*end));
    int rc = end ? pwc_request_create(ctx, &end->request) : -ENOMEM;

    if (rc < 0) {
        free(end);
        return rc;
    }
    end->event = (struct pwc_event){.kind = PWC_LOCAL,
                                    .op = path_event_op(op->kind),
                                    .id = op->lid.size == 0 ? op->lid.value : 0,
                                    .id_size = (uint32_t)op->lid.size};
    if (op->lid.size > 0)
        memcpy(end->id, op->lid.data, op->lid.size);
    end->silent = op->flags & PWC_NO_LCE;
    *ends->last = end;
    ends->last = &end->next;
    *out = end->request;
    return 0;
}

static void remove_end(struct request_ends *ends, struct request_end **at)
{
    struct request_end *end = *at;

    *at = end->next;
    if (!*at)
        ends->last = at;
    (void)pwc_request_free(end->request);
    free(end);
}

void request_ends_drop(struct request_ends *ends, pwc_request *request)
{
    struct request_end **at = &ends->first;

    while ((*at)->request != request)
        at = &(*at)->next;
    remove_end(ends, at);
}

/* Completes the event of an operation that has ended. Where the request has not counted exactly
 * this one operation, the event gets a status that no case expects. */
static void show(struct request_ends *ends, const struct request_end *end,
                 const struct pwc_status *status, struct pwc_event *out)
{
    memcpy(ends->id, end->id, sizeof(ends->id));
    *out = end->event;
    out->status = status->count == 1 ? status->status : -EBADMSG;
    out->peer = status->peer;
    out->length = status->bytes;
    out->data = out->id_size > 0 ? ends->id : NULL;
}

/* Returns the first entry before `limit` whose request has ended; `limit` if there is none; NULL,
 * with *rc < 0, on an error. */
static struct request_end **first_ended(struct request_ends *ends, struct request_end **limit,
                                        struct pwc_status *status, int *rc)
{
    struct request_end **at = &ends->first;

    for (*rc = 0; at != limit && *rc == 0; at = *rc == 0 ? &(*at)->next : at)
        *rc = pwc_test((*at)->request, status);
    return *rc < 0 ? NULL : at;
}

/* Takes the oldest end. Each pwc_test also takes events that have arrived, so it may end a request
 * that was tested just before. So the requests before one that has ended are tested again, until
 * none of them has ended. */
int request_ends_take(struct request_ends *ends, struct pwc_event *out)
{
    while (ends->first) {
        struct request_end **found = NULL, **limit = ends->last, **at;
        struct pwc_status status;
        bool shown;
        int rc;

        while ((at = first_ended(ends, limit, &status, &rc)) != limit) {
            if (!at)
                return rc;
            found = limit = at;
        }
        if (!found)
            return 0;
        (void)pwc_test((*found)->request, &status);
        shown = !((*found)->silent && status.status == 0 && status.count == 1);
        if (shown)
            show(ends, *found, &status, out);
        remove_end(ends, found);
        if (shown)
            return 1;
    }
    return 0;
}
