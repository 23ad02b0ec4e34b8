/* Owns the reading of HTTP requests (http.h). */
#include "daemon/control/watch/http.h"

#include <string.h>
#include <strings.h>

static const char path[] = "/metrics";

/* A word up to the next blank of the line, or all of it. */
static size_t word_length(const char *at, const char *end)
{
    const char *blank = memchr(at, ' ', (size_t)(end - at));

    return (size_t)((blank ? blank : end) - at);
}

static bool is_method(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (word[i] < 'A' || word[i] > 'Z')
            return false;
    return length > 0;
}

/* With or without a query, which is passed over. */
static bool is_path(const char *word, size_t length)
{
    const char *query = memchr(word, '?', length);

    if (query)
        length = (size_t)(query - word);
    return length == sizeof(path) - 1 && memcmp(word, path, length) == 0;
}

/* METHOD SP TARGET SP HTTP/1.x */
static int line_status(const char *line, const char *end)
{
    size_t method = word_length(line, end), target;
    const char *at = line + method;

    if (!is_method(line, method) || at == end)
        return 400;
    target = word_length(++at, end);
    if (target == 0 || at + target == end)
        return 400;
    if ((size_t)(end - (at + target)) < 6 || memcmp(at + target + 1, "HTTP/", 5) != 0)
        return 400;
    if (end - (at + target + 1) != 8 || memcmp(at + target + 1, "HTTP/1.", 7) != 0)
        return 505;
    if (!is_path(at, target))
        return 404;
    return method == 3 && memcmp(line, "GET", 3) == 0 ? 200 : 405;
}

static bool accepts_openmetrics(const char *line, const char *end)
{
    static const char name[] = "accept:", type[] = "application/openmetrics-text";
    const size_t length = sizeof(type) - 1;

    if ((size_t)(end - line) < sizeof(name) || strncasecmp(line, name, sizeof(name) - 1) != 0)
        return false;
    for (const char *at = line; (size_t)(end - at) >= length; at++)
        if (strncasecmp(at, type, length) == 0)
            return true;
    return false;
}

bool http_request_read(const char *bytes, size_t size, struct http_request *out)
{
    const char *head = memmem(bytes, size, "\r\n\r\n", 4), *end, *next;

    *out = (struct http_request){.status = 431};
    if (!head)
        return size >= HTTP_HEAD_MAX;
    end = head + 2;
    next = memmem(bytes, size, "\r\n", 2);
    out->status = line_status(bytes, next);
    for (const char *line = next + 2; line < end; line = next + 2) {
        next = memmem(line, (size_t)(end - line), "\r\n", 2);
        out->openmetrics |= accepts_openmetrics(line, next);
    }
    return true;
}

const char *http_reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Bad Request";
    }
}
