/*
 * Runs one row of bench/scale with one number of nodes, and prints its figures as a line of JSON.
 *
 *     scale_rows [--network NAME] [--latency NS] [--overhead NS] [--gap NS] [--byte NS] ROW NODES
 *     scale_rows --list
 *
 * --list prints a line for each row: its name, the most nodes, and a description.
 *
 * Thread: one.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/scaling/network.h"
#include "bench/scaling/row.h"

static void list(void)
{
    uint32_t count;
    const struct row *rows = rows_all(&count);

    for (uint32_t i = 0; i < count; i++)
        printf("%s\t%u\t%s\n", rows[i].name, rows[i].most_nodes, rows[i].what);
}

/* Parses a time in ns, not negative, into units of 1/`parts` ns. */
static int parse_time(const char *text, double parts, uint64_t *out)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= 0 && value <= 1e9)) {
        fprintf(stderr, "scale_rows: \"%s\" is no time: give nanoseconds from 0 to 1e9\n", text);
        return -EINVAL;
    }
    *out = (uint64_t)(value * parts + 0.5);
    return 0;
}

static int parse_network(const char *name, struct loggp *out)
{
    const struct network *network = network_named(name);

    if (!network) {
        fprintf(stderr, "scale_rows: no network \"%s\": give hdr or spin\n", name);
        return -EINVAL;
    }
    *out = network->loggp;
    return 0;
}

static int parse_flag(int flag, const char *text, struct loggp *loggp)
{
    switch (flag) {
    case 'n':
        return parse_network(text, loggp);
    case 'L':
        return parse_time(text, 1e3, &loggp->latency_ps);
    case 'o':
        return parse_time(text, 1e3, &loggp->overhead_ps);
    case 'g':
        return parse_time(text, 1e3, &loggp->gap_ps);
    case 'G':
        return parse_time(text, 1e6, &loggp->byte_fs);
    default:
        return -EINVAL;
    }
}

static int parse_row(int argc, char **argv, const struct row **row, uint32_t *nodes)
{
    char *end;
    unsigned long value;

    if (argc != 2)
        return -EINVAL;
    *row = row_named(argv[0]);
    if (!*row) {
        fprintf(stderr, "scale_rows: no row \"%s\": --list shows them\n", argv[0]);
        return -EINVAL;
    }
    value = strtoul(argv[1], &end, 10);
    if (*end != '\0' || value < 2 || value > (*row)->most_nodes) {
        fprintf(stderr, "scale_rows: %s takes 2 to %u nodes, not \"%s\"\n", argv[0],
                (*row)->most_nodes, argv[1]);
        return -EINVAL;
    }
    *nodes = (uint32_t)value;
    return 0;
}

static int run_row(const struct row *row, uint32_t nodes, const struct loggp *loggp)
{
    const struct row_run run = {.row = row, .nodes = nodes, .loggp = *loggp};
    struct figures figures = {0};
    int rc = row->run(&run, &figures);

    if (rc != 0) {
        fprintf(stderr, "scale_rows: %s with %u nodes: %s%s%s\n", row->name, nodes, strerror(-rc),
                figures.failure[0] ? ": " : "", figures.failure);
        return 1;
    }
    printf("{\"row\":\"%s\",\"nodes\":%u", row->name, nodes);
    for (uint32_t i = 0; i < figures.count; i++)
        printf(",\"%s\":%.6g", figures.of[i].name, figures.of[i].value);
    printf("}\n");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {{"network", required_argument, NULL, 'n'},
                                          {"latency", required_argument, NULL, 'L'},
                                          {"overhead", required_argument, NULL, 'o'},
                                          {"gap", required_argument, NULL, 'g'},
                                          {"byte", required_argument, NULL, 'G'},
                                          {"list", no_argument, NULL, 'l'},
                                          {0}};
    struct loggp loggp = network_named("hdr")->loggp;
    const struct row *row;
    uint32_t nodes;
    int flag, rc = 0;

    while (rc == 0 && (flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (flag == 'l') {
            list();
            return 0;
        }
        rc = parse_flag(flag, optarg, &loggp);
    }
    if (rc == 0)
        rc = parse_row(argc - optind, argv + optind, &row, &nodes);
    return rc == 0 ? run_row(row, nodes, &loggp) : 2;
}
