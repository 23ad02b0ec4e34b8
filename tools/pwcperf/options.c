/* Reads the command line of pwcperf. */
#include "tools/pwcperf/options.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <pwc/am.h>
#include <pwc/tuning.h>
#include "tools/arguments.h"

#define TOOL "pwcperf"

#define WINDOW_BYTES                                                                               \
    (UINT64_C(8) << 20) /* in a window of put_bw, which has WINDOW_LEAST to WINDOW_MOST puts */
#define WINDOW_LEAST 8u
#define WINDOW_MOST  512u

static const char about[] =
    "Measures puts, gets and active messages between pairs of ranks: rank i and rank i + n/2.\n"
    "pwcrun (or another launcher) runs it, with an even number of ranks.\n"
    "\n"
    "  put_lat   half the round trip of two puts, each waited for by its remote event\n"
    "  put_bw    bytes a second of puts, counted when the target has drained their events\n"
    "  put_rate  puts a second, counted when the target has drained their events\n"
    "  signal_lat  half the round trip of two puts with signal, each waited for by its word\n"
    "  get_lat   from the get to its local event\n"
    "  get_bw    bytes a second of gets\n"
    "  am_lat    half the round trip of a request and its reply\n"
    "  am_bw     bytes a second of requests without reply, counted when they have been handled\n"
    "  inject    time to submit an operation of a batch of --depth, without waiting for its end\n"
    "  overlap   from a put to its local event while the target computes, and what that loses\n"
    "  share     puts a second of each pair, all at once for the same time, and how fair that is\n"
    "  fetch_lat   from a fetch-and-add on a word of the target to its local event\n"
    "  fetch_rate  fetch-and-adds a second on one word of the target\n"
    "  gups      64-bit exclusive ors a second at random places of a table of 16 MiB\n"
    "  stress    random peers, sizes, offsets, ids and flags; every byte and event is checked\n";

struct test_name {
    const char *name;
    enum perf_test test;
    const char *sizes; /* the default */
};

static const struct test_name test_names[] = {
    {"put_lat", PUT_LAT, "1,8,64,512,4k,64k,1m"},
    {"put_bw", PUT_BW, "64,512,4k,64k,1m"},
    {"put_rate", PUT_RATE, "8"},
    {"signal_lat", SIGNAL_LAT, "1,8,64,512,4k,64k,1m"},
    {"get_lat", GET_LAT, "1,8,64,512,4k,64k,1m"},
    {"get_bw", GET_BW, "64,512,4k,64k,1m"},
    {"am_lat", AM_LAT, "1,8,64,512,4k,64k,1m"},
    {"am_bw", AM_BW, "64,512,4k,64k,1m"},
    {"inject", INJECT, "8,512,4k,64k,1m,2m"},
    {"overlap", OVERLAP, "8"},
    {"share", SHARE, "8"},
    {"fetch_lat", FETCH_LAT, "8"},
    {"fetch_rate", FETCH_RATE, "8"},
    {"gups", GUPS, "8"},
    {"stress", STRESS, "0"},
};

struct kind_name {
    const char *name;
    enum perf_kind kind;
    const char *sizes; /* instead of the test's default, or NULL */
};

static const struct kind_name kind_names[] = {
    {"put", KIND_PUT, NULL},
    {"short", KIND_SHORT, "0"},
    {"medium", KIND_MEDIUM, "8,64,512,1k,4k"},
    {"long", KIND_LONG, NULL},
    {"fetch", KIND_FETCH, NULL},
};

struct protocol_name {
    const char *name;
    unsigned flag;
};

static const struct protocol_name protocol_names[] = {
    {"ordered", PWC_PROTOCOL_ORDERED},
    {"reassemble", PWC_PROTOCOL_REASSEMBLE},
    {"chain", PWC_PROTOCOL_CHAIN},
};

static int wrong(const char *name, const char *text, const char *right)
{
    return arguments_refuse(TOOL, "%s \"%s\": give %s", name, text, right);
}

/* Parses up to `room` numbers from `min` to `max`, separated by commas; each may end in k (2^10) or
 * m (2^20). */
static int parse_list(const char *name, const char *list, const char *right, uint64_t min,
                      uint64_t max, uint64_t *out, size_t room, size_t *count)
{
    const char *at = list;
    *count = 0;
    do {
        char *end;
        if (*at < '0' || *at > '9' || *count == room)
            return wrong(name, list, right);
        unsigned long long number = strtoull(at, &end, 10);
        unsigned shift = *end == 'k' ? 10 : *end == 'm' ? 20 : 0;
        end += shift != 0;
        if (number > max >> shift || number << shift < min || (*end != ',' && *end != '\0'))
            return wrong(name, list, right);
        out[(*count)++] = number << shift;
        at = end + 1;
        if (*end == '\0')
            return 0;
    } while (true);
}

static int take_sizes(void *options, const char *list)
{
    struct options *o = options;
    return parse_list("--size", list, "up to 64 numbers of bytes up to 1024m, like 8,4k,1m", 0,
                      UINT64_C(1) << 30, o->sizes, PWCPERF_SIZES_MAX, &o->size_count);
}

static int take_depths(void *options, const char *list)
{
    struct options *o = options;
    return parse_list("--depth", list, "up to 64 numbers from 1 to 4096, like 1,16,256", 1, 4096,
                      o->depths, PWCPERF_DEPTHS_MAX, &o->depth_count);
}

static int take_protocol(void *options, const char *name)
{
    struct options *o = options;
    for (size_t i = 0; i < sizeof(protocol_names) / sizeof(protocol_names[0]); i++) {
        if (strcmp(name, protocol_names[i].name) == 0) {
            o->protocol_name = protocol_names[i].name;
            o->protocol = protocol_names[i].flag;
            return 0;
        }
    }
    return wrong("--protocol", name, "ordered, reassemble or chain, or leave it out");
}

static int take_kind(void *options, const char *name)
{
    struct options *o = options;
    for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
        if (strcmp(name, kind_names[i].name) == 0) {
            o->kind = kind_names[i].kind;
            o->kind_name = kind_names[i].name;
            return 0;
        }
    }
    return wrong("--kind", name,
                 "short, medium or long; put, too, for inject; put or fetch for overlap");
}

#define AT(member) offsetof(struct options, member)
#define COUNT_MAX  (UINT64_C(1) << 40)

static const struct argument rows[] = {
    {"size", "LIST", "bytes, with commas between; k and m multiply by 1024 and its square",
     .kind = ARGUMENT_TAKE, .take = take_sizes},
    {"kind", "NAME",
     "am_lat and am_bw: short, medium or long (short); inject: put too (put);\n"
     "overlap: put or fetch (put)",
     .kind = ARGUMENT_TAKE, .take = take_kind},
    {"both", NULL, "am_bw: both ways at once; rates and bandwidths are of both together", AT(both)},
    {"contend", NULL, "fetch_lat, fetch_rate: the target adds to the same word all the time",
     AT(contend)},
    {"depth", "LIST", "inject: operations of a batch (1,2,4,...,256)", .kind = ARGUMENT_TAKE,
     .take = take_depths},
    {"iters", "N", "measured operations of each size, batches of inject; default: by size",
     AT(iters), ARGUMENT_U64, 1, COUNT_MAX},
    {"warmup", "N", "operations before the measured ones; default: a tenth", AT(warmup),
     ARGUMENT_U64, 0, COUNT_MAX},
    {"window", "N",
     "operations in flight, of bandwidth, rate and stress; default: put_rate 2048,\n"
     "gups 1024, put_bw 8 MiB of them, 8 to 512, others 64",
     AT(window), ARGUMENT_U64, 1, 4096},
    {"slots", "N",
     "memory of bandwidth and rate, by the size; default: 1 of puts and gets, the\n"
     "window of messages and with --check; to 64 MiB",
     AT(slots), ARGUMENT_U64, 1, 4096},
    {"no-event", NULL,
     "put_bw, put_rate: the target learns nothing of them, and they are\n"
     "counted when the initiator knows that all have been placed",
     AT(no_event)},
    {"protocol", "NAME", "of large puts: ordered, reassemble or chain; default: the daemon's",
     .kind = ARGUMENT_TAKE, .take = take_protocol},
    {"ops", "N", "stress: operations of all ranks together (100000)", AT(ops), ARGUMENT_U64, 1,
     UINT64_C(1) << 32},
    {"seconds", "N", "share: how long it counts (2)", AT(seconds), ARGUMENT_U64, 1, 3600},
    {"seed", "S", "stress: what the operations are drawn from (1)", AT(seed), ARGUMENT_U64, 0,
     UINT64_MAX},
    {"timeout", "SECONDS", "without any event for so long, the run has failed (30)", AT(timeout_s),
     ARGUMENT_U32, 1, 86400},
    {"json", NULL, "one object a line and a size", AT(json)},
    {"check", NULL, "compare every byte", AT(check)},
    {"pin", NULL, "stay on the processor with the node's number, modulo those there are", AT(pin)},
    {0},
};

static const struct command_line line = {
    .tool = TOOL, .usage = "TEST [OPTION]...", .about = about, .letters = "", .rows = rows};

static int parse_test(struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(test_names) / sizeof(test_names[0]); i++) {
        if (strcmp(name, test_names[i].name) == 0) {
            o->test = test_names[i].test;
            o->test_name = test_names[i].name;
            if (o->kind_name == NULL && options_has_kind(o)) /* the default */
                (void)take_kind(o, o->test == INJECT || o->test == OVERLAP ? "put" : "short");
            o->sizes_given = o->size_count > 0;
            if (o->sizes_given)
                return 0;
            const char *by_kind = o->kind_name != NULL ? kind_names[o->kind].sizes : NULL;
            return take_sizes(o, by_kind != NULL ? by_kind : test_names[i].sizes);
        }
    }
    return arguments_refuse(TOOL, "there is no test \"%s\"", name);
}

static int not_together(const char *option, const char *with, const char *remedy)
{
    return arguments_refuse(TOOL, "%s with %s: %s", option, with, remedy);
}

static bool is_atomic(const struct options *o)
{
    return o->test == FETCH_LAT || o->test == FETCH_RATE || o->test == GUPS ||
           (o->test == OVERLAP && o->kind == KIND_FETCH);
}

/* Names an option that the test has no use for. */
static int check_together(const struct options *o)
{
    bool large = o->test == PUT_LAT || o->test == SIGNAL_LAT || o->test == PUT_BW ||
                 o->test == PUT_RATE || o->test == SHARE ||
                 (options_has_kind(o) && (o->kind == KIND_PUT || o->kind == KIND_LONG));
    if (o->kind_name != NULL && !options_has_kind(o))
        return not_together("--kind", o->test_name, "it is for am_lat, am_bw, inject and overlap");
    if (o->test == OVERLAP ? o->kind != KIND_PUT && o->kind != KIND_FETCH : o->kind == KIND_FETCH)
        return not_together("--kind", o->test_name,
                            o->test == OVERLAP ? "give put or fetch" : "fetch is for overlap");
    if (o->contend && o->test != FETCH_LAT && o->test != FETCH_RATE)
        return not_together("--contend", o->test_name, "it is for fetch_lat and fetch_rate");
    for (size_t i = 0; is_atomic(o) && i < o->size_count; i++)
        if (o->sizes[i] != 8)
            return not_together("--size", o->kind == KIND_FETCH ? "--kind fetch" : o->test_name,
                                "a word has 8 bytes");
    if (o->kind == KIND_PUT && (o->test == AM_LAT || o->test == AM_BW))
        return not_together("--kind put", o->test_name, "give short, medium or long");
    if (o->both && o->test != AM_BW)
        return not_together("--both", o->test_name, "it is for am_bw");
    if (o->no_event && o->test != PUT_BW && o->test != PUT_RATE)
        return not_together("--no-event", o->test_name, "it is for put_bw and put_rate");
    if (o->protocol != 0 && !large)
        return not_together("--protocol", o->kind_name != NULL ? o->kind_name : o->test_name,
                            "it is for puts and Longs; give the daemons one (pwcrun --protocol) or "
                            "leave it out");
    for (size_t i = 0; o->kind == KIND_SHORT && i < o->size_count; i++)
        if (o->sizes[i] > 0)
            return not_together("--size", "--kind short",
                                "a Short has no payload: give medium or long");
    return 0;
}

uint64_t options_window(const struct options *o, uint64_t size)
{
    uint64_t fit = size > 0 ? WINDOW_BYTES / size : WINDOW_MOST;
    if (o->window > 0)
        return o->window;
    switch (o->test) {
    case PUT_RATE:
        return 2048;
    case GUPS:
        return 1024;
    case PUT_BW:
        return fit < WINDOW_LEAST ? WINDOW_LEAST : fit < WINDOW_MOST ? fit : WINDOW_MOST;
    default:
        return 64;
    }
}

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){
        .protocol_name = "auto",
        .warmup = UINT64_MAX,
        .ops = 100000,
        .seed = 1,
        .seconds = 2,
        .timeout_s = 30,
    };
    int rc = take_depths(out, "1,2,4,8,16,32,64,128,256");
    if (rc == 0)
        rc = arguments_parse(&line, out, argc, argv);
    if (rc == 0 && optind != argc - 1)
        rc = arguments_refuse(TOOL, "give one test");
    if (rc == 0)
        rc = parse_test(out, argv[optind]);
    return rc == 0 ? check_together(out) : rc;
}
