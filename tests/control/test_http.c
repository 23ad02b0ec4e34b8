/* Requests over HTTP: what each is answered, whole, cut short, and too long. */
#include <stdio.h>
#include <string.h>
#include "daemon/control/watch/http.h"
#include "tests/suite.h"

#define GET  "GET /metrics HTTP/1.1\r\n"
#define TYPE "application/openmetrics-text"

static void lines(void)
{
    static const struct {
        const char *line;
        int status;
    } rows[] = {
        {"GET /metrics HTTP/1.1", 200},
        {"GET /metrics HTTP/1.0", 200},
        {"GET /metrics? HTTP/1.1", 200},
        {"GET /metrics?name=a&name=b HTTP/1.1", 200},
        {"GET / HTTP/1.1", 404},
        {"GET /metric HTTP/1.1", 404},
        {"GET /metrics/ HTTP/1.1", 404},
        {"GET /Metrics HTTP/1.1", 404},
        {"GET ?/metrics HTTP/1.1", 404},
        {"HEAD /metrics HTTP/1.1", 405},
        {"PUT /metrics HTTP/1.1", 405},
        {"GETS /metrics HTTP/1.1", 405},
        {"GET /metrics HTTP/2.0", 505},
        {"GET /metrics HTTP/1.10", 505},
        {"GET /metrics HTTP/1.", 505},
        {"GET /metrics HTTP/", 505},
        {"", 400},
        {" ", 400},
        {"GET", 400},
        {"GET ", 400},
        {"GET  HTTP/1.1", 400},
        {"GET /metrics", 400},
        {"GET /metrics ", 400},
        {"GET /metrics HTTP", 400},
        {"GET /metrics http/1.1", 400},
        {"GET /metrics  HTTP/1.1", 400},
        {"get /metrics HTTP/1.1", 400},
        {"GE[ /metrics HTTP/1.1", 400},
        {"GE1 /metrics HTTP/1.1", 400},
        {" /metrics HTTP/1.1", 400},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_request request;
        char head[128];
        int size = snprintf(head, sizeof(head), "%s\r\n\r\n", rows[i].line);

        CU_ASSERT_TRUE(http_request_read(head, (size_t)size, &request));
        CU_ASSERT_EQUAL(request.status, rows[i].status);
        if (request.status != rows[i].status)
            fprintf(stderr, "\"%s\": %d\n", rows[i].line, request.status);
    }
}

static void formats(void)
{
    static const struct {
        const char *headers;
        bool openmetrics;
    } rows[] = {
        {"", false},
        {"Accept: " TYPE "\r\n", true},
        {"accept:" TYPE "; version=1.0.0,text/plain;q=0.5\r\n", true},
        {"Host: a\r\nACCEPT: text/plain, Application/OpenMetrics-Text\r\n", true},
        {"Accept: text/plain\r\n", false},
        {"Accept: application/openmetrics-tex\r\n", false},
        {"Accept:\r\n" TYPE "\r\n", false},
        {"A: " TYPE "\r\n", false},
        {"Accepts: " TYPE "\r\n", false},
        {"X-Accept: " TYPE "\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_request request;
        char head[256];
        int size = snprintf(head, sizeof(head), GET "%s\r\n", rows[i].headers);

        CU_ASSERT_TRUE(http_request_read(head, (size_t)size, &request));
        CU_ASSERT_EQUAL(request.status, 200);
        CU_ASSERT_EQUAL(request.openmetrics, rows[i].openmetrics);
    }
}

/* Up to its empty line it is no request, and beyond HTTP_HEAD_MAX it will be none. */
static void lengths(void)
{
    static const char head[] = GET "Accept: " TYPE "\r\n\r\n";
    static char endless[HTTP_HEAD_MAX];
    struct http_request request;

    for (size_t size = 0; size < sizeof(head) - 1; size++)
        CU_ASSERT_FALSE(http_request_read(head, size, &request));
    CU_ASSERT_TRUE(http_request_read(head, sizeof(head) - 1, &request));
    CU_ASSERT_EQUAL(request.status, 200);
    memset(endless, 'a', sizeof(endless));
    CU_ASSERT_FALSE(http_request_read(endless, sizeof(endless) - 1, &request));
    CU_ASSERT_TRUE(http_request_read(endless, sizeof(endless), &request));
    CU_ASSERT_EQUAL(request.status, 431);
}

static void reasons(void)
{
    static const struct {
        int status;
        const char *reason;
    } rows[] = {{200, "OK"},
                {400, "Bad Request"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {431, "Request Header Fields Too Large"},
                {503, "Service Unavailable"},
                {505, "HTTP Version Not Supported"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CU_ASSERT_STRING_EQUAL(http_reason(rows[i].status), rows[i].reason);
}

int main(void)
{
    CU_TestInfo tests[] = {{"request lines", lines},
                           {"formats", formats},
                           {"lengths", lengths},
                           {"reasons", reasons},
                           CU_TEST_INFO_NULL};

    return suite_run("http", tests);
}
