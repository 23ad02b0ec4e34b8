/* Asks the daemon for its fabric, and the kernel for our processors. */
#include "tools/pwcperf/heading.h"
#include <jansson.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "tools/request.h"

static bool has_window(enum perf_test test)
{
    return test == PUT_BW || test == PUT_RATE || test == GET_BW || test == AM_BW || test == SHARE ||
           test == FETCH_RATE || test == GUPS;
}

/* Formats the windows of all sizes: "window 64", "window 8 to 512". */
static void format_windows(char *out, size_t size, const struct options *o)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < o->size_count; i++) {
        uint64_t window = options_window(o, o->sizes[i]);
        least = window < least ? window : least;
        most = window > most ? window : most;
    }
    if (!has_window(o->test) || o->size_count == 0)
        out[0] = '\0';
    else if (least == most)
        snprintf(out, size, ", window %llu", (unsigned long long)least);
    else
        snprintf(out, size, ", window %llu to %llu", (unsigned long long)least,
                 (unsigned long long)most);
}

void heading_format(char *out, size_t size, const struct options *options, uint32_t ranks,
                    uint32_t nodes, const char *fabric, bool bound)
{
    char of_nodes[32] = "", windows[64];
    format_windows(windows, sizeof(windows), options);
    if (nodes > 0)
        snprintf(of_nodes, sizeof(of_nodes), ", %u node%s", nodes, nodes == 1 ? "" : "s");
    snprintf(out, size, "# pwcperf %s %s, %u ranks%s%s%s%s, %s", PWC_VERSION, options->test_name,
             ranks, of_nodes, fabric != NULL ? ", " : "", fabric != NULL ? fabric : "", windows,
             bound ? "bound" : "not bound");
}

/* Returns whether this process is bound to a part of the machine's processors. */
static bool is_bound(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 &&
           CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN);
}

void heading_print(FILE *to, const struct world *world)
{
    const char *socket = getenv("PWC_SOCKET"), *fabric = NULL;
    json_t *status = NULL;
    uint32_t nodes = 0;
    char line[256], why[600];
    if (socket != NULL && request_document(socket, "status", &status, why, sizeof(why)) == 0) {
        nodes = (uint32_t)json_integer_value(json_object_get(status, "nodes"));
        fabric = json_string_value(json_object_get(status, "provider"));
    }
    /* Ranks of one node reach each other without the daemon's fabric. */
    heading_format(line, sizeof(line), world->options, world->size, nodes,
                   nodes == 1 ? "shared memory" : fabric, is_bound());
    fprintf(to, "%s\n", line);
    fflush(to);
    json_decref(status);
}
