/* The parts of pwc-exporter that need no daemon: writing text, rendering documents, and where to
 * listen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "tools/pwc-exporter/exporter.h"

/* ---- text ------------------------------------------------------------------------------------ */

static const struct openmetrics_family counter = {"a_ops", OPENMETRICS_COUNTER, NULL, "Ops."},
                                       gauge = {"a_bytes", OPENMETRICS_GAUGE, "bytes", "Size."},
                                       info = {"a_build", OPENMETRICS_INFO, NULL, "Which."},
                                       times = {"a_wait_seconds", OPENMETRICS_HISTOGRAM, "seconds",
                                                "Waits."},
                                       duration = {"a_wait_seconds", OPENMETRICS_GAUGE, "seconds",
                                                   "Waits."};

/* The text of the current writer, which check_text compares and frees. */
static char *written;
static size_t written_length;

static struct openmetrics writer(bool plain)
{
    return (struct openmetrics){open_memstream(&written, &written_length), plain};
}

static void check_text(struct openmetrics to, const char *expected)
{
    CU_ASSERT_EQUAL(fclose(to.to), 0);
    if (strcmp(written, expected) != 0)
        printf("\n%s\ninstead of\n%s\n", written, expected);
    CU_ASSERT_STRING_EQUAL(written, expected);
    free(written);
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
        for (int plain = 0; plain < 2; plain++) {
            struct openmetrics to = writer(plain);

            openmetrics_family(&to, rows[i].family);
            openmetrics_sample(&to, rows[i].family, NULL, 7);
            check_text(to, plain ? rows[i].plain : rows[i].text);
        }
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
        struct openmetrics to = writer(false);
        char expected[256];

        snprintf(expected, sizeof(expected), "a_bytes{job=\"%s\",rank=\"3\"} 1\n", rows[i].written);
        openmetrics_sample(&to, &gauge, labels, 1);
        check_text(to, expected);
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
    struct openmetrics whole;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct openmetrics to = writer(false);
        char expected[64];

        snprintf(expected, sizeof(expected), "a_wait_seconds %s\n", rows[i].written);
        openmetrics_sample(&to, &duration, NULL, rows[i].ns);
        check_text(to, expected);
    }
    whole = writer(false);
    openmetrics_sample(&whole, &gauge, NULL, UINT64_MAX);
    openmetrics_end(&whole);
    check_text(whole, "a_bytes 18446744073709551615\n# EOF\n");
}

static void histograms(void)
{
    static const struct openmetrics_label labels[] = {{"step", "wire"}, {0}};
    struct openmetrics to = writer(false);

    openmetrics_bucket(&to, &times, labels, 1000, 3);
    openmetrics_bucket(&to, &times, labels, 2000000, 3);
    openmetrics_bucket(&to, &times, labels, UINT64_MAX, 7);
    openmetrics_sum(&to, &times, labels, 5000000000, 7);
    check_text(to, "a_wait_seconds_bucket{step=\"wire\",le=\"0.000001\"} 3\n"
                   "a_wait_seconds_bucket{step=\"wire\",le=\"0.002\"} 3\n"
                   "a_wait_seconds_bucket{step=\"wire\",le=\"+Inf\"} 7\n"
                   "a_wait_seconds_sum{step=\"wire\"} 5.0\n"
                   "a_wait_seconds_count{step=\"wire\"} 7\n");
}

/* ---- documents ------------------------------------------------------------------------------- */

static char *render_text(const struct documents *d)
{
    char *text = render(d, false);

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_STRING_EQUAL(text + strlen(text) - 6, "# EOF\n");
    return text;
}

static const char counters[] =
    "{'version': '1', 'provider': 'tcp;ofi_rxm', 'node': 7, 'nodes': 9, 'put_ops': 12,"
    " 'am_bytes': 5, 'start_ns_since_1970': 1500000000, 'sessions': ["
    "  {'engine': 2, 'session': 0, 'client': 3, 'rank': 4, 'context': 1, 'put_ops': 99, "
    "'spill_bytes': 30},"
    "  {'engine': 1, 'session': 0, 'client': 3, 'context': 0, 'put_ops': 98, 'spill_bytes': 4}],"
    " 'engines': [{'engine': 2, 'responding': 1, 'progress_cpu_ns': 2500000000}],"
    " 'peers': ["
    "  {'engine': 0, 'node': 1, 'state': 'down', 'records_out': 10, 'fabric_count': 1,"
    "   'fabric_ns': 500000000},"
    "  {'engine': 1, 'node': 1, 'state': 'up', 'records_out': 7, 'fabric_count': 2,"
    "   'fabric_ns': 1000000000},"
    "  {'engine': 0, 'node': 5, 'state': 'wanted'}]}";
static const char latency[] =
    "{'all': [{'step': 'local', 'count': 6, 'sum_ns': 2000006120, 'buckets': ["
    "  {'to_ns': 1023, 'count': 2}, {'to_ns': 2047, 'count': 5}]}]}";
static const char clients[] =
    "{'clients': [{'engine': 2, 'client': 3, 'uid': 1000, 'job': 'a\\\"b', 'rank': 4,"
    "  'bytes': 4096}]}";

static json_t *load(const char *text)
{
    char *json = strdup(text);
    json_t *document;

    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    document = json_loads(json, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    free(json);
    return document;
}

static void has(const char *text, const char *line)
{
    CU_ASSERT_PTR_NOT_NULL(strstr(text, line));
    if (!strstr(text, line))
        printf("\nnot there: %s in %s", line, text);
}

static void rendered(void)
{
    static const char *const open[] = {
        "\npwcd_up 1\n",
        "pwcd_build_info{version=\"1\",provider=\"tcp;ofi_rxm\",node=\"7\"} 1\n",
        "\npwcd_nodes 9\n",
        "\npwcd_start_time_seconds 1.5\n",
        "pwcd_operations_total{kind=\"put\"} 12\n",
        "pwcd_operation_bytes_total{kind=\"am\"} 5\n",
        "\npwcd_spill_bytes 34\n",
        "pwcd_progress_responding{engine=\"2\"} 1\n",
        "pwcd_progress_cpu_seconds_total{engine=\"2\"} 2.5\n",
        /* The engines of a node count as one peer, which is up if one of them is. */
        "pwcd_peer_records_total{peer=\"1\",direction=\"out\"} 17\n",
        "pwcd_peer_up{peer=\"1\"} 1\n",
        "pwcd_peer_wanted{peer=\"1\"} 0\n",
        "pwcd_peer_up{peer=\"5\"} 0\n",
        "pwcd_peer_wanted{peer=\"5\"} 1\n",
        "pwcd_peer_operations_timed_total{peer=\"1\",step=\"fabric\"} 3\n",
        "pwcd_peer_operation_latency_seconds_total{peer=\"1\",step=\"fabric\"} 1.5\n",
        "pwcd_peer_operation_latency_seconds_total{peer=\"5\",step=\"local\"} 0.0\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"0.000001023\"} 2\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"0.000002047\"} 5\n",
        "pwcd_operation_latency_seconds_bucket{step=\"local\",le=\"+Inf\"} 6\n",
        "pwcd_operation_latency_seconds_sum{step=\"local\"} 2.00000612\n",
    };
    static const char *const closed[] = {
        "pwcd_context_operations_total{engine=\"2\",client=\"3\",uid=\"1000\",job_name=\"a\\\"b\","
        "rank=\"4\",context=\"1\",kind=\"put\"} 99\n",
        "pwcd_client_memory_bytes{engine=\"2\",client=\"3\",uid=\"1000\",job_name=\"a\\\"b\","
        "rank=\"4\"} 4096\n",
    };
    struct documents d = {.counters = load(counters), .latency = load(latency)};
    char *text = render_text(&d);

    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        has(text, open[i]);
    }
    /* Rows of clients are shown only when asked for. */
    CU_ASSERT_PTR_NULL(strstr(text, "uid"));
    CU_ASSERT_PTR_NULL(strstr(text, "pwcd_context_"));
    free(text);

    d.clients = load(clients);
    text = render_text(&d);
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        has(text, closed[i]);
    /* A context whose client is not among the clients has no row. */
    CU_ASSERT_PTR_NULL(strstr(text, " 98\n"));
    free(text);
    json_decref(d.counters);
    json_decref(d.latency);
    json_decref(d.clients);
}

/* Documents of another version, or missing ones, cause no crash, and the text stays well-formed. */
static void poor_documents(void)
{
    static const char *const rows[] = {"{}", "[]",
                                       "{'sessions': 1, 'peers': {}, 'engines': [1], 'all': 'x'}",
                                       "{'sessions': [1], 'peers': [null], 'all': [{'step': 1}]}"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct documents d = {.counters = load(rows[i]), .latency = load(rows[i])};

        d.clients = json_incref(d.latency);
        free(render_text(&d));
        json_decref(d.clients);
        json_decref(d.counters);
        json_decref(d.latency);
    }
}

static void no_daemon(void)
{
    char *text = render_text(NULL);

    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\npwcd_up 0\n# EOF\n"));
    free(text);
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
        struct exporter_address at;
        bool good = exporter_address_parse(rows[i].text, &at);

        CU_ASSERT_EQUAL(good, rows[i].host != NULL);
        CU_ASSERT(!good || strcmp(at.host, rows[i].host) == 0);
        CU_ASSERT(!good || strcmp(at.port, rows[i].port) == 0);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"families", families},   {"label values", label_values},
                           {"values", values},       {"histograms", histograms},
                           {"rendered", rendered},   {"poor documents", poor_documents},
                           {"no daemon", no_daemon}, {"addresses", addresses},
                           CU_TEST_INFO_NULL};

    return suite_run("render", tests);
}
