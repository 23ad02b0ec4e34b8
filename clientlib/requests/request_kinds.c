/*
 * Owns the table of the kinds of requests. Thread: any.
 */
#include "clientlib/requests/request.h"

static const struct request_kind plain = {.ended_by = PWC_LOCAL};

const struct request_kind *const request_kinds[] = {
    [REQUEST_PLAIN] = &plain,
    [REQUEST_NOTIFY] = &request_notify,
    [REQUEST_COLLECTIVE] = &request_collective,
};
