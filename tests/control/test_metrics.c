/* Metrics without a daemon: how text is written, what a head asks for, where to listen; tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/watch/http.h"
#include "daemon/control/watch/metrics.h"
#include "daemon/control/watch/metrics_read.h"
#include "daemon/control/watch/openmetrics.h"
#include "daemon/control/watch/scrape.h"
#include "tests/suite.h"

/* ---- text ------------------------------------------------------------------------------------ */

static const struct openmetrics_family counter = {"a_ops", OPENMETRICS_COUNTER, NULL, "Ops."},
                                       gauge = {"a_bytes", OPENMETRICS_GAUGE, "bytes", "Size."},
                                       info = {"a_build", OPENMETRICS_INFO, NULL, "Which."},
                                       times = {"a_wait_seconds", OPENMETRICS_HISTOGRAM, "seconds",
                                                "Waits."};

static void check_text(struct openmetrics *text, const char *expected)
{
    CU_ASSERT_FALSE(text->failed);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text->text);
    CU_ASSERT_EQUAL(strlen(text->text), text->length);
    if (strcmp(text->text, expected) != 0)
        printf("\n%s\ninstead of\n%s\n", text->text, expected);
    CU_ASSERT_STRING_EQUAL(text->text, expected);
    free(text->text);
}

static void families(void)
{
    static const struct {
        const struct openmetrics_family *family;
        const char *text, *plain;
    } rows[] = {
        {&counter, "# TYPE a_ops counter\n# HELP a_ops Ops.\na_ops_total 7\n",
         "# TYPE a_ops_total counter\n# HELP a_ops_total Ops.\na_ops_total 7\n"},
        {&gauge, "# TYPE a_bytes gauge\n# UNIT a_bytes bytes\n# HELP a_bytes Size.\na_bytes 7\n",
         "# TYPE a_bytes gauge\n# HELP a_bytes Size.\na_bytes 7\n"},
        {&info, "# TYPE a_build info\n# HELP a_build Which.\na_build_info 7\n",
         "# TYPE a_build_info gauge\n# HELP a_build_info Which.\na_build_info 7\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct openmetrics text = {0}, plain = {.plain = true};

        openmetrics_family(&text, rows[i].family);
        openmetrics_sample(&text, rows[i].family, NULL, 7);
        check_text(&text, rows[i].text);
        openmetrics_family(&plain, rows[i].family);
        openmetrics_sample(&plain, rows[i].family, NULL, 7);
        check_text(&plain, rows[i].plain);
    }
}

static void label_values(void)
{
    static const struct {
        const char *value, *written;
    } rows[] = {
        {"", ""},
        {"plain job-1", "plain job-1"},
        {"a\"b", "a\\\"b"},
        {"a\\b", "a\\\\b"},
        {"a\nb", "a\\nb"},
        {"a\x01\x7f\xff", "a\\\\x01\\\\x7f\\\\xff"},
        {"} 1\n# EOF\n", "} 1\\n# EOF\\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct openmetrics_label labels[] = {{"job", rows[i].value}, {"rank", "3"}, {0}};
        struct openmetrics text = {0};
        char expected[256];

        snprintf(expected, sizeof(expected), "a_bytes{job=\"%s\",rank=\"3\"} 1\n", rows[i].written);
        openmetrics_sample(&text, &gauge, labels, 1);
        check_text(&text, expected);
    }
}

static void values(void)
{
    static const struct {
        uint64_t ns;
        const char *written;
    } rows[] = {{0, "0.0"},
                {1, "0.000000001"},
                {1000000000, "1.0"},
                {1500000000, "1.5"},
                {UINT64_MAX, "18446744073.709551615"}};
    struct openmetrics whole = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct openmetrics text = {0};
        char expected[64];

        snprintf(expected, sizeof(expected), "a_bytes %s\n", rows[i].written);
        openmetrics_seconds(&text, &gauge, NULL, rows[i].ns);
        check_text(&text, expected);
    }
    openmetrics_sample(&whole, &gauge, NULL, UINT64_MAX);
    openmetrics_end(&whole);
    check_text(&whole, "a_bytes 18446744073709551615\n# EOF\n");
}

static void histograms(void)
{
    static const uint64_t bounds[] = {1000, 2000000}, counts[] = {3, 0, 4};
    static const struct openmetrics_label labels[] = {{"step", "wire"}, {0}};
    static const struct openmetrics_buckets buckets = {bounds, counts, 2, 5000000000};
    struct openmetrics text = {0};

    openmetrics_histogram(&text, &times, labels, &buckets);
    check_text(&text, "a_wait_seconds_bucket{step=\"wire\",le=\"0.000001\"} 3\n"
                      "a_wait_seconds_bucket{step=\"wire\",le=\"0.002\"} 3\n"
                      "a_wait_seconds_bucket{step=\"wire\",le=\"+Inf\"} 7\n"
                      "a_wait_seconds_sum{step=\"wire\"} 5.0\n"
                      "a_wait_seconds_count{step=\"wire\"} 7\n");
    openmetrics_histogram(&(struct openmetrics){.failed = true}, &times, NULL, &buckets);
}

/* ---- what is rendered ------------------------------------------------------------------------ */

/* Of a node with several engines all are its row's; the row that peers share is nobody's. */
static void latencies_of_engines(void)
{
    static const struct snapshot_latency rows[] = {
        {.node = 1,
         .count = {[ENGINE_LATENCY_FABRIC] = 1},
         .sum_ns = {[ENGINE_LATENCY_FABRIC] = 10}},
        {.node = 3,
         .count = {[ENGINE_LATENCY_FABRIC] = 2},
         .sum_ns = {[ENGINE_LATENCY_FABRIC] = 20}},
        {.node = 2,
         .count = {[ENGINE_LATENCY_FABRIC] = 4},
         .sum_ns = {[ENGINE_LATENCY_FABRIC] = 40}},
        {.node = ENGINE_LATENCY_SHARED, .count = {[ENGINE_LATENCY_FABRIC] = 8}}};
    struct metrics_peer peers[] = {{.node = 1}};
    struct metrics metrics = {.node = {.nodes = 2}, .peers = peers, .peer_count = 1};

    CU_ASSERT_EQUAL(metrics_add_latencies(&metrics, rows, sizeof(rows) / sizeof(rows[0])), 0);
    CU_ASSERT_EQUAL(peers[0].timed[ENGINE_LATENCY_FABRIC], 3);
    CU_ASSERT_EQUAL(peers[0].timed_ns[ENGINE_LATENCY_FABRIC], 30);
}

static const char *render(const struct metrics *metrics)
{
    struct openmetrics text = {0};

    metrics_render(metrics, &text);
    CU_ASSERT_FALSE_FATAL(text.failed);
    return text.text;
}

static void rendered(void)
{
    struct metrics_engine engine = {.engine = 2, .responding = 1, .cpu_ns = 2500000000};
    struct metrics_peer peers[] = {{.node = 1,
                                    .up = 1,
                                    .records_out = 17,
                                    .timed = {[ENGINE_LATENCY_FABRIC] = 3},
                                    .timed_ns = {[ENGINE_LATENCY_FABRIC] = 1500000000}},
                                   {.node = 5}};
    struct metrics_context context = {.owner = {.job = "a\"b", .client = 3, .rank = 4, .uid = 1000},
                                      .put_ops = 99};
    struct metrics_client client = {.owner = {.job = "a\"b", .client = 3}, .memory = 4096};
    struct metrics m = {.version = "1",
                        .provider = "tcp;ofi_rxm",
                        .node_number = 7,
                        .node = {.put_ops = 12, .am_bytes = 5},
                        .engines = &engine,
                        .peers = peers,
                        .contexts = &context,
                        .clients = &client,
                        .engine_count = 1,
                        .peer_count = 2,
                        .context_count = 1,
                        .client_count = 1};
    static const char *const open[] = {
        "pwcd_build_info{version=\"1\",provider=\"tcp;ofi_rxm\",node=\"7\"} 1\n",
        "pwcd_operations_total{kind=\"put\"} 12\n",
        "pwcd_operation_bytes_total{kind=\"am\"} 5\n",
        "pwcd_progress_cpu_seconds_total{engine=\"2\"} 2.5\n",
        "pwcd_peer_records_total{peer=\"1\",direction=\"out\"} 17\n",
        "pwcd_peer_up{peer=\"5\"} 0\n",
        "pwcd_peer_operations_timed_total{peer=\"1\",step=\"fabric\"} 3\n",
        "pwcd_peer_operation_latency_seconds_total{peer=\"1\",step=\"fabric\"} 1.5\n",
        "pwcd_peer_operation_latency_seconds_total{peer=\"1\",step=\"local\"} 0.0\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"0.000001023\"} 2\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"0.000002047\"} 5\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"1.073741823\"} 5\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"+Inf\"} 6\n",
        "pwcd_operation_latency_seconds_sum{step=\"local\"} 2.00000612\n",
        "pwcd_operation_latency_seconds_count{step=\"queued\"} 0\n",
    };
    static const char *const closed[] = {
        "pwcd_context_operations_total{engine=\"0\",client=\"3\",uid=\"1000\",job_name=\"a\\\"b\","
        "rank=\"4\",context=\"0\",kind=\"put\"} 99\n",
        "pwcd_client_memory_bytes{engine=\"0\",client=\"3\",uid=\"0\",job_name=\"a\\\"b\","
        "rank=\"0\"} 4096\n",
    };
    const char *text;

    histogram_record(&m.latency.steps[ENGINE_LATENCY_LOCAL], 1023, 2);
    histogram_record(&m.latency.steps[ENGINE_LATENCY_LOCAL], 1024, 1);
    histogram_record(&m.latency.steps[ENGINE_LATENCY_LOCAL], 1525, 2);
    histogram_record(&m.latency.steps[ENGINE_LATENCY_LOCAL], 2000000000, 1);
    text = render(&m);

    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, open[i]));
    /* Nobody's rows without the key. */
    CU_ASSERT_PTR_NULL(strstr(text, "uid"));
    CU_ASSERT_PTR_NULL(strstr(text, "job_name"));
    CU_ASSERT_STRING_EQUAL(text + strlen(text) - 6, "# EOF\n");
    free((char *)(uintptr_t)text);

    m.has_clients = true;
    text = render(&m);
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, closed[i]));
    free((char *)(uintptr_t)text);
}

/* ---- heads ----------------------------------------------------------------------------------- */

#define OPEN_TYPE "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n"

static void heads(void)
{
    static const struct {
        const char *head;
        int status; /* 0: more is needed */
        bool openmetrics;
    } rows[] = {
        {"GET /metrics HTTP/1.1\r\n\r\n", 200, false},
        {"GET /metrics HTTP/1.0\r\n\r\nbehind it", 200, false},
        {"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", 200, false},
        {"GET /metrics HTTP/1.1\r\nHost: a\r\n" OPEN_TYPE "\r\n", 200, true},
        {"GET /metrics HTTP/1.1\r\naCCept:APPLICATION/OpenMetrics-Text\r\n\r\n", 200, true},
        {"GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n", 200, false},
        {"GET /metrics HTTP/1.1\r\nX: application/openmetrics-text\r\n\r\n", 200, false},
        {"GET /metrics HTTP/1.1\r\nAccept:\r\n\r\n", 200, false},
        {"GET /metrics HTTP/1.1\r\n\r\n" OPEN_TYPE "\r\n", 200, false}, /* behind the head */
        {"", 0, false},
        {"GET /metrics HTTP/1.1\r\n", 0, false},
        {"GET /metrics HTTP/1.1\n\n", 0, false},
        {"GET / HTTP/1.1\r\n\r\n", 404, false},
        {"GET /metric HTTP/1.1\r\n\r\n", 404, false},
        {"GET /metricsx HTTP/1.1\r\n\r\n", 404, false},
        {"GET /metrics/../x HTTP/1.1\r\n\r\n", 404, false},
        {"GET http://a/metrics HTTP/1.1\r\n\r\n", 404, false},
        {"HEAD /metrics HTTP/1.1\r\n\r\n", 405, false},
        {"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 405, false},
        {"GETX /metrics HTTP/1.1\r\n\r\n", 405, false},
        {"GET /metrics HTTP/2.0\r\n\r\n", 505, false},
        {"GET /metrics HTTP/1.\r\n\r\n", 505, false},
        {"GET /metrics HTTP/1.11\r\n\r\n", 505, false},
        {"GET /metrics\r\n\r\n", 400, false},
        {"GET /metrics \r\n\r\n", 400, false},
        {"GET  HTTP/1.1\r\n\r\n", 400, false},
        {"GET\r\n\r\n", 400, false},
        {" GET /metrics HTTP/1.1\r\n\r\n", 400, false},
        {"get /metrics HTTP/1.1\r\n\r\n", 400, false},
        {"\r\n\r\n", 400, false},
        {"\x16\x03\x01\r\n\r\n", 400, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t size = strlen(rows[i].head);
        char *exact = malloc(size + 1); /* so that a sanitizer sees what lies behind */
        struct http_request request;
        bool whole;

        exact = realloc(exact, size ? size : 1);
        memcpy(exact, rows[i].head, size);
        whole = http_request_read(exact, size, &request);
        if (whole != (rows[i].status != 0) || (whole && request.status != rows[i].status))
            printf("\nrow %zu: %d ", i, whole ? request.status : 0);
        CU_ASSERT_EQUAL(whole, rows[i].status != 0);
        CU_ASSERT(!whole || request.status == rows[i].status);
        CU_ASSERT(!whole || request.openmetrics == rows[i].openmetrics);
        free(exact);
    }
}

static void long_heads(void)
{
    static char head[HTTP_HEAD_MAX];
    static const char line[] = "GET /metrics HTTP/1.1\r\n";
    struct http_request request;

    memset(head, 'x', sizeof(head));
    memcpy(head, line, sizeof(line) - 1);
    CU_ASSERT_FALSE(http_request_read(head, sizeof(head) - 1, &request));
    CU_ASSERT_TRUE(http_request_read(head, sizeof(head), &request));
    CU_ASSERT_EQUAL(request.status, 431);
    memcpy(head + sizeof(head) - 4, "\r\n\r\n", 4);
    CU_ASSERT_TRUE(http_request_read(head, sizeof(head), &request));
    CU_ASSERT_EQUAL(request.status, 200);
}

static void addresses(void)
{
    static const struct {
        const char *text, *host, *port; /* host NULL: refused */
    } rows[] = {
        {"9464", "127.0.0.1", "9464"},
        {"0", "127.0.0.1", "0"},
        {"65535", "127.0.0.1", "65535"},
        {"localhost:9464", "localhost", "9464"},
        {"10.0.0.1:1", "10.0.0.1", "1"},
        {"[::1]:9464", "::1", "9464"},
        {"65536", NULL, NULL},
        {"123456", NULL, NULL},
        {"", NULL, NULL},
        {":9464", NULL, NULL},
        {"localhost", NULL, NULL},
        {"localhost:", NULL, NULL},
        {"localhost:x", NULL, NULL},
        {"-1", NULL, NULL},
        {"9464 ", NULL, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct node_address at;
        char why[256] = "";
        int rc = scrape_parse(rows[i].text, &at, why, sizeof(why));

        CU_ASSERT_EQUAL(rc, rows[i].host ? 0 : -EINVAL);
        CU_ASSERT(rc < 0 || strcmp(at.host, rows[i].host) == 0);
        CU_ASSERT(rc < 0 || strcmp(at.port, rows[i].port) == 0);
        CU_ASSERT(rc == 0 || strstr(why, "host:port") != NULL);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"families", families},
                           {"label values", label_values},
                           {"values", values},
                           {"histograms", histograms},
                           {"rendered", rendered},
                           {"heads", heads},
                           {"long heads", long_heads},
                           {"addresses", addresses},
                           {"latencies of engines", latencies_of_engines},
                           CU_TEST_INFO_NULL};

    return suite_run("metrics", tests);
}
