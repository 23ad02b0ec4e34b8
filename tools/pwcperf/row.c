/* Prints rows. Latencies are printed in microseconds, the cost of submitting in nanoseconds. */
#include "tools/pwcperf/row.h"

static void print_json(FILE *to, const struct options *o, const struct result *r)
{
    fprintf(to, "{\"test\":\"%s\",", o->test_name);
    if (options_has_kind(o))
        fprintf(to, "\"kind\":\"%s\",", o->kind_name);
    if (o->test != GET_LAT && o->test != GET_BW)
        fprintf(to, "\"protocol\":\"%s\",", o->protocol_name);
    if (o->test == INJECT) {
        fprintf(to,
                "\"depth\":%llu,\"size\":%llu,\"iters\":%llu,\"min_ns\":%.1f,\"p50_ns\":%.1f,"
                "\"p99_ns\":%.1f,\"mean_ns\":%.1f,\"eagain\":%llu}\n",
                (unsigned long long)r->depth, (unsigned long long)r->size,
                (unsigned long long)r->iters, r->min_us * 1e3, r->p50_us * 1e3, r->p99_us * 1e3,
                r->mean_us * 1e3, (unsigned long long)r->eagain);
        return;
    }
    if (o->test == OVERLAP) {
        fprintf(to,
                "\"size\":%llu,\"iters\":%llu,\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,"
                "\"mean_us\":%.3f,\"loss_percent\":%.2f}\n",
                (unsigned long long)r->size, (unsigned long long)r->iters, r->min_us, r->p50_us,
                r->p99_us, r->mean_us, r->loss_percent);
        return;
    }
    fprintf(to,
            "\"size\":%llu,\"iters\":%llu,\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,"
            "\"mean_us\":%.3f,\"rate_mps\":%.6f,\"bw_mbps\":%.3f}\n",
            (unsigned long long)r->size, (unsigned long long)r->iters, r->min_us, r->p50_us,
            r->p99_us, r->mean_us, r->rate_mps, r->bw_mbps);
}

enum { CELL = 16 };

/* Writes a value of a table, or a dash where it is 0: the test does not measure it. */
static const char *cell(char to[CELL], int digits, double value)
{
    snprintf(to, CELL, "%.*f", digits, value);
    return value > 0 ? to : "-";
}

static void print_line(FILE *to, const struct options *o, const struct result *r)
{
    bool kind = options_has_kind(o);
    char test[32];
    snprintf(test, sizeof(test), "%s%s%s", o->test_name, kind ? " " : "", kind ? o->kind_name : "");
    if (o->test == INJECT) {
        if (r->size == o->sizes[0] && r->depth == o->depths[0])
            fprintf(to, "%-13s %10s %7s %9s %10s %10s %10s %10s %10s\n", "test", "size", "depth",
                    "batches", "min ns", "p50 ns", "p99 ns", "mean ns", "eagain");
        fprintf(to, "%-13s %10llu %7llu %9llu %10.1f %10.1f %10.1f %10.1f %10llu\n", test,
                (unsigned long long)r->size, (unsigned long long)r->depth,
                (unsigned long long)r->iters, r->min_us * 1e3, r->p50_us * 1e3, r->p99_us * 1e3,
                r->mean_us * 1e3, (unsigned long long)r->eagain);
        return;
    }
    if (o->test == OVERLAP) {
        if (r->size == o->sizes[0])
            fprintf(to, "%-13s %10s %9s %10s %10s %10s %10s %10s\n", "test", "size", "puts",
                    "min us", "p50 us", "p99 us", "mean us", "loss %");
        fprintf(to, "%-13s %10llu %9llu %10.2f %10.2f %10.2f %10.2f %10.2f\n", test,
                (unsigned long long)r->size, (unsigned long long)r->iters, r->min_us, r->p50_us,
                r->p99_us, r->mean_us, r->loss_percent);
        return;
    }
    if (r->size == o->sizes[0])
        fprintf(to, "%-13s %10s %9s %10s %10s %10s %10s %10s %10s\n", "test", "size", "iters",
                "min us", "p50 us", "p99 us", "mean us", "Mop/s", "MB/s");
    char least[CELL], half[CELL], most[CELL], bytes[CELL];
    fprintf(to, "%-13s %10llu %9llu %10s %10s %10s %10.2f %10.4f %10s\n", test,
            (unsigned long long)r->size, (unsigned long long)r->iters, cell(least, 2, r->min_us),
            cell(half, 2, r->p50_us), cell(most, 2, r->p99_us), r->mean_us, r->rate_mps,
            cell(bytes, 1, r->bw_mbps));
}

void row_print(FILE *to, const struct options *options, const struct result *r)
{
    if (options->json)
        print_json(to, options, r);
    else
        print_line(to, options, r);
}
