/* The head of a request for metrics, whole and in every part of it; and where to listen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/watch/http.h"
#include "daemon/control/watch/scrape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_request request, longer;
    struct node_address at;
    char text[300], why[64];

    if (size > 2 * HTTP_HEAD_MAX)
        return 0;
    if (http_request_read((const char *)data, size, &request)) {
        if (request.status < 200 || request.status > 599 || strlen(http_reason(request.status)) < 2)
            abort();
        /* Bytes behind a head change nothing. */
        if (request.status != 431) {
            char *more = malloc(size + 16);

            if (!more)
                return 0;
            memcpy(more, data, size);
            memset(more + size, '\n', 16);
            if (!http_request_read(more, size + 16, &longer) || longer.status != request.status ||
                longer.openmetrics != request.openmetrics)
                abort();
            free(more);
        }
    }
    snprintf(text, sizeof(text), "%.*s", (int)(size < sizeof(text) ? size : sizeof(text) - 1),
             (const char *)data);
    if (scrape_parse(text, &at, why, sizeof(why)) == 0 &&
        (at.host[0] == '\0' || at.port[0] == '\0'))
        abort();
    return 0;
}
