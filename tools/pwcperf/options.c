/* Reads the command line of pwcperf. */
#include "tools/pwcperf/options.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pwc/am.h>
#include <pwc/tuning.h>

#define TIMEOUT_DEFAULT_MS 30000

static const char usage[] =
    "usage: pwcperf put_lat|put_bw|put_rate|get_lat|get_bw|overlap [--size LIST] [--iters N]\n"
    "               [--warmup N] [--window N] [--protocol NAME] [--timeout SECONDS] [--json]\n"
    "               [--slots N] [--no-event] [--check] [--pin]\n"
    "       pwcperf am_lat|am_bw [--kind short|medium|long] [--both] [--size LIST] [--iters N]\n"
    "               [--warmup N] [--window N] [--protocol NAME] [--timeout SECONDS] [--json]\n"
    "               [--slots N] [--check] [--pin]\n"
    "       pwcperf inject [--kind put|short|medium|long] [--depth LIST] [--size LIST]\n"
    "               [--iters N] [--warmup N] [--protocol NAME] [--timeout SECONDS] [--json]\n"
    "               [--pin]\n"
    "       pwcperf share [--seconds N] [--size LIST] [--window N] [--protocol NAME]\n"
    "               [--timeout SECONDS] [--json] [--pin]\n"
    "       pwcperf stress [--ops N] [--seed S] [--window N] [--timeout SECONDS] [--json]\n"
    "to be run by pwcrun (or another launcher), with an even number of ranks\n";

static const char help[] =
    "Measures puts, gets and active messages between pairs of ranks: rank i and rank i + n/2.\n"
    "\n"
    "  put_lat   half the round trip of two puts, each waited for by its remote event\n"
    "  put_bw    bytes a second of puts, counted when the target has drained their events\n"
    "  put_rate  puts a second, counted when the target has drained their events\n"
    "  get_lat   from the get to its local event\n"
    "  get_bw    bytes a second of gets\n"
    "  am_lat    half the round trip of a request and its reply\n"
    "  am_bw     bytes a second of requests without reply, counted when they have been handled\n"
    "  inject    time to submit an operation of a batch of --depth, without waiting for its end\n"
    "  overlap   from a put to its local event while the target computes, and what that loses\n"
    "  share     puts a second of each pair, all at once for the same time, and how fair that is\n"
    "  stress    random peers, sizes, offsets, ids and flags; every byte and event is checked\n"
    "\n"
    "  --size LIST        bytes, with commas between; k and m multiply by 1024 and its square\n"
    "  --kind NAME        am_lat and am_bw: short, medium or long (short); inject: put too (put)\n"
    "  --both             am_bw: both ways at once; rates and bandwidths are of both together\n"
    "  --depth LIST       inject: operations of a batch (1,2,4,...,256)\n"
    "  --iters N          measured operations of each size, batches of inject; default: by size\n"
    "  --warmup N         operations before the measured ones; default: a tenth\n"
    "  --window N         operations in flight, of bandwidth, rate and stress (64)\n"
    "  --slots N          memory of bandwidth and rate, by the size; default: window, to 64 MiB\n"
    "  --no-event         put_bw, put_rate: the target learns nothing of them, and they are\n"
    "                     counted when the initiator knows that all have been placed\n"
    "  --protocol NAME    of large puts: ordered, reassemble or chain; default: the daemon's\n"
    "  --ops N            stress: operations of all ranks together (100000)\n"
    "  --seconds N        share: how long it counts (2)\n"
    "  --seed S           stress: what the operations are drawn from (1)\n"
    "  --timeout SECONDS  without any event for so long, the run has failed (30)\n"
    "  --json             one object a line and a size\n"
    "  --check            compare every byte\n"
    "  --pin              stay on the processor with the node's number, modulo those there are\n"
    "  --help, --version\n";

struct test_name {
    const char *name;
    enum perf_test test;
    const char *sizes; /* the default */
};

static const struct test_name test_names[] = {
    {"put_lat", PUT_LAT, "1,8,64,512,4k,64k,1m"},
    {"put_bw", PUT_BW, "64,512,4k,64k,1m"},
    {"put_rate", PUT_RATE, "8"},
    {"get_lat", GET_LAT, "1,8,64,512,4k,64k,1m"},
    {"get_bw", GET_BW, "64,512,4k,64k,1m"},
    {"am_lat", AM_LAT, "1,8,64,512,4k,64k,1m"},
    {"am_bw", AM_BW, "64,512,4k,64k,1m"},
    {"inject", INJECT, "8,512,4k,64k,1m,2m"},
    {"overlap", OVERLAP, "8"},
    {"share", SHARE, "8"},
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

enum long_option {
    OPT_SIZE = 256,
    OPT_KIND,
    OPT_BOTH,
    OPT_DEPTH,
    OPT_PROTOCOL,
    OPT_ITERS,
    OPT_WARMUP,
    OPT_WINDOW,
    OPT_SLOTS,
    OPT_OPS,
    OPT_SEED,
    OPT_SECONDS,
    OPT_TIMEOUT,
    OPT_JSON,
    OPT_NO_EVENT,
    OPT_CHECK,
    OPT_PIN,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option long_options[] = {
    {"size", required_argument, NULL, OPT_SIZE},
    {"kind", required_argument, NULL, OPT_KIND},
    {"both", no_argument, NULL, OPT_BOTH},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"protocol", required_argument, NULL, OPT_PROTOCOL},
    {"iters", required_argument, NULL, OPT_ITERS},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"ops", required_argument, NULL, OPT_OPS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"json", no_argument, NULL, OPT_JSON},
    {"no-event", no_argument, NULL, OPT_NO_EVENT},
    {"check", no_argument, NULL, OPT_CHECK},
    {"pin", no_argument, NULL, OPT_PIN},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int wrong(const char *name, const char *text, const char *right)
{
    fprintf(stderr, "pwcperf: %s \"%s\": give %s\n", name, text, right);
    return -EINVAL;
}

static int parse_number(const char *name, const char *text, uint64_t min, uint64_t max,
                        uint64_t *out)
{
    char *end, right[80];
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && value >= min &&
        value <= max) {
        *out = value;
        return 0;
    }
    snprintf(right, sizeof(right), "a number from %llu to %llu", (unsigned long long)min,
             (unsigned long long)max);
    return wrong(name, text, right);
}

/* Numbers from `min` to `max` with commas between, up to `room` of them. */
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

static int parse_sizes(struct options *o, const char *list)
{
    return parse_list("--size", list, "up to 64 numbers of bytes up to 1024m, like 8,4k,1m", 0,
                      UINT64_C(1) << 30, o->sizes, PWCPERF_SIZES_MAX, &o->size_count);
}

static int parse_depths(struct options *o, const char *list)
{
    return parse_list("--depth", list, "up to 64 numbers from 1 to 4096, like 1,16,256", 1, 4096,
                      o->depths, PWCPERF_DEPTHS_MAX, &o->depth_count);
}

static int parse_protocol(struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(protocol_names) / sizeof(protocol_names[0]); i++) {
        if (strcmp(name, protocol_names[i].name) == 0) {
            o->protocol_name = protocol_names[i].name;
            o->protocol = protocol_names[i].flag;
            return 0;
        }
    }
    return wrong("--protocol", name, "ordered, reassemble or chain, or leave it out");
}

static const struct kind_name *kind_at(enum perf_kind kind)
{
    return &kind_names[kind];
}

static int parse_kind(struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
        if (strcmp(name, kind_names[i].name) == 0) {
            o->kind = kind_names[i].kind;
            o->kind_name = kind_names[i].name;
            return 0;
        }
    }
    return wrong("--kind", name, "short, medium or long; put, too, for inject");
}

static int parse_test(struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(test_names) / sizeof(test_names[0]); i++) {
        if (strcmp(name, test_names[i].name) == 0) {
            o->test = test_names[i].test;
            o->test_name = test_names[i].name;
            if (o->kind_name == NULL && options_has_kind(o)) /* the default */
                (void)parse_kind(o, o->test == INJECT ? "put" : "short");
            o->sizes_given = o->size_count > 0;
            if (o->sizes_given)
                return 0;
            const char *by_kind = o->kind_name != NULL ? kind_at(o->kind)->sizes : NULL;
            return parse_sizes(o, by_kind != NULL ? by_kind : test_names[i].sizes);
        }
    }
    fprintf(stderr, "pwcperf: there is no test \"%s\"\n%s", name, usage);
    return -EINVAL;
}

static int apply(struct options *o, int option)
{
    uint64_t seconds;
    int rc;
    switch (option) {
    case OPT_SIZE:
        return parse_sizes(o, optarg);
    case OPT_DEPTH:
        return parse_depths(o, optarg);
    case OPT_KIND:
        return parse_kind(o, optarg);
    case OPT_BOTH:
        o->both = true;
        return 0;
    case OPT_PROTOCOL:
        return parse_protocol(o, optarg);
    case OPT_ITERS:
        return parse_number("--iters", optarg, 1, UINT64_C(1) << 40, &o->iters);
    case OPT_WARMUP:
        return parse_number("--warmup", optarg, 0, UINT64_C(1) << 40, &o->warmup);
    case OPT_WINDOW:
        return parse_number("--window", optarg, 1, 4096, &o->window);
    case OPT_SLOTS:
        return parse_number("--slots", optarg, 1, 4096, &o->slots);
    case OPT_OPS:
        return parse_number("--ops", optarg, 1, UINT64_C(1) << 32, &o->ops);
    case OPT_SEED:
        return parse_number("--seed", optarg, 0, UINT64_MAX, &o->seed);
    case OPT_SECONDS:
        return parse_number("--seconds", optarg, 1, 3600, &o->seconds);
    case OPT_TIMEOUT:
        rc = parse_number("--timeout", optarg, 1, 86400, &seconds);
        if (rc == 0)
            o->timeout_ms = (int)seconds * 1000;
        return rc;
    case OPT_JSON:
        o->json = true;
        return 0;
    case OPT_NO_EVENT:
        o->no_event = true;
        return 0;
    case OPT_CHECK:
        o->check = true;
        return 0;
    case OPT_PIN:
        o->pin = true;
        return 0;
    case OPT_HELP:
        printf("%s\n%s", usage, help);
        return 1;
    case OPT_VERSION:
        printf("pwcperf %s\n", PWC_VERSION);
        return 1;
    default: /* getopt has said what is wrong */
        fputs(usage, stderr);
        return -EINVAL;
    }
}

static int not_together(const char *option, const char *with, const char *remedy)
{
    fprintf(stderr, "pwcperf: %s with %s: %s\n", option, with, remedy);
    return -EINVAL;
}

/* Names an option that the test has no use for. */
static int check_together(const struct options *o)
{
    bool large = o->test == PUT_LAT || o->test == OVERLAP || o->test == PUT_BW ||
                 o->test == PUT_RATE || o->test == SHARE ||
                 (options_has_kind(o) && (o->kind == KIND_PUT || o->kind == KIND_LONG));
    if (o->kind_name != NULL && !options_has_kind(o))
        return not_together("--kind", o->test_name, "it is for am_lat, am_bw and inject");
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

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){
        .protocol_name = "auto",
        .warmup = UINT64_MAX,
        .window = 64,
        .ops = 100000,
        .seed = 1,
        .seconds = 2,
        .timeout_ms = TIMEOUT_DEFAULT_MS,
    };
    int rc = parse_depths(out, "1,2,4,8,16,32,64,128,256"), option;
    while (rc == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        rc = apply(out, option);
    if (rc != 0)
        return rc;
    if (optind != argc - 1) {
        fprintf(stderr, "pwcperf: give one test\n%s", usage);
        return -EINVAL;
    }
    rc = parse_test(out, argv[optind]);
    return rc < 0 ? rc : check_together(out);
}
