/*
 * The suite of the operations' meaning, through libpwc and real daemons, on two nodes by default.
 * With --nodes 1 all ranks are neighbours; with --ends requests each operation has a request in
 * place of its local id.
 *
 *     test_operations_daemon PWCD [--case N] [--nodes N] [--ends events|requests]
 *                            [--KEY VALUE]...    keys of the daemons
 *
 * Each case has clients and a job of its own; the daemons stay the same, and must have given back
 * everything at the end of each case.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/system/lib/daemon_path.h"
#include "tests/engine/world/paths/suite_operations.h"

#define KEYS_MAX 16 /* arguments passed on to the daemons */

/* Set by main before the tests run. */
static struct cluster cluster;
static size_t only = SIZE_MAX;
static bool by_requests;

/* Runs a case, and prints the result. Returns whether the case has passed. */
static bool run(size_t number)
{
    static struct driver driver;
    static struct daemon_path path;
    const struct suite_case *c = &suite_cases[number];
    const char *failure = NULL, *result = "left out";
    char job[32], room[400];

    if (c->needs & DAEMON_PATH_LACKS) {
        printf("%s: %s\n", c->name, result);
        return true;
    }
    snprintf(job, sizeof(job), "case-%zu", number);
    if (daemon_path_open(&path, &cluster, job, room) != 0) {
        printf("%s: %s\n", c->name, room);
        return false;
    }
    path.by_requests = by_requests;
    if (!(c->needs & path.path.lacks)) {
        failure = suite_run(&driver, c, &path.path, number);
        result = failure ? failure : "passed";
    }
    daemon_path_close(&path);
    printf("%s: %s\n", c->name, result);
    fflush(stdout);
    return !failure;
}

static int run_all(void)
{
    int failed = 0;

    for (size_t number = 0; number < suite_case_count; number++) {
        if (only != SIZE_MAX && only != number)
            continue;
        failed += !run(number);
        if (!cluster_runs(&cluster))
            return 1;
    }
    return failed != 0;
}

static int usage(const char *name)
{
    fprintf(stderr,
            "usage: %s PWCD [--case 0-%zu] [--nodes 1-2] [--ends events|requests] "
            "[--KEY VALUE]...\n",
            name, suite_case_count - 1);
    return 2;
}

int main(int argc, char **argv)
{
    const char *keys[KEYS_MAX + 1] = {NULL};
    struct cluster_options options = {.nodes = 2, .more = keys};
    int status = 1, given = 0;

    if (argc < 2 || argc % 2 != 0 || argc - 2 > KEYS_MAX)
        return usage(argv[0]);
    options.pwcd = argv[1];
    for (int i = 2; i < argc; i += 2)
        if (strcmp(argv[i], "--case") == 0) {
            only = strtoul(argv[i + 1], NULL, 0);
        } else if (strcmp(argv[i], "--nodes") == 0) {
            options.nodes = strcmp(argv[i + 1], "1") == 0 ? 1 : 2;
        } else if (strcmp(argv[i], "--ends") == 0) {
            by_requests = strcmp(argv[i + 1], "requests") == 0;
        } else {
            keys[given++] = argv[i];
            keys[given++] = argv[i + 1];
        }
    if (cluster_open(&cluster, &options) == 0)
        status = run_all();
    return cluster_end(&cluster, status);
}
