/* Command line, clock and result of the applications; see app.h. */
#include "examples/apps/app.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NUMBER_MAX 1000000ul

static bool parse_number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (uint32_t)value;
    return *text != '\0' && *end == '\0' && value > 0 && value <= NUMBER_MAX;
}

/* Pins this rank to its processor of a list as "0,1". */
static bool pin(const char *list, uint32_t rank)
{
    uint32_t count = 1;
    cpu_set_t set;

    for (const char *at = list; *at; at++)
        count += *at == ',';
    for (uint32_t skip = rank % count; skip > 0; skip--)
        list = strchr(list, ',') + 1;
    CPU_ZERO(&set);
    CPU_SET((size_t)atoi(list), &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static bool parse_one(struct app *app, int option)
{
    switch (option) {
    case 'c':
        return pin(optarg, app->rank);
    case 's':
        return parse_number(optarg, &app->size);
    case 'n':
        return parse_number(optarg, &app->rounds) && app->rounds > 1;
    default:
        return false;
    }
}

bool app_parse(struct app *app, int argc, char **argv)
{
    static const struct option known[] = {
        {"cpu", required_argument, NULL, 'c'},
        {"size", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (!parse_one(app, option)) {
            fprintf(stderr,
                    "%s: --cpu A,B takes processors of this machine, --size a number from "
                    "1 on, --rounds one from 2 on\n",
                    app->name);
            return false;
        }
    return true;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void app_round(struct app *app, uint32_t round)
{
    if (round == 0)
        app->started = now();
    app->ended = now();
}

void app_report(const struct app *app, const char *unit, double work)
{
    double seconds = (app->ended - app->started) / (app->rounds - 1);

    printf("{\"app\":\"%s\",\"way\":\"%s\",\"ranks\":%u,\"size\":%u,\"rounds\":%u,"
           "\"round_us\":%.3f,\"%s\":%.4f}\n",
           app->name, app->way, app->ranks, app->size, app->rounds, seconds * 1e6, unit,
           work / seconds);
}
