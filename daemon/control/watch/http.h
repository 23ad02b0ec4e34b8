/*
 * The head of an HTTP request, as far as it matters to who gives one document alone.
 *
 * Thread: any; pure.
 */
#ifndef PWC_CONTROL_HTTP_H
#define PWC_CONTROL_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEAD_MAX 4096u /* bytes, its empty line included */

struct http_request {
    int status;       /* to be answered */
    bool openmetrics; /* it accepts that format */
};

/* Of what has come so far: false, more is needed. True: 200 for "GET /metrics"; 400 no request;
 * 404 another path; 405 another method; 431 a head that is too long; 505 not HTTP/1. */
bool http_request_read(const char *bytes, size_t size, struct http_request *out);
/* "OK", "Not Found", ... */
const char *http_reason(int status);

#endif
