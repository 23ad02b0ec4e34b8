/* Reads the command line of pwcperf. */
#include "options.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pwc/am.h>

#define TIMEOUT_DEFAULT_MS 30000

static const char usage[] =
    "usage: pwcperf put_lat|put_bw|put_rate|get_lat|get_bw [--size LIST] [--iters N]\n"
    "               [--warmup N] [--window N] [--protocol NAME] [--timeout SECONDS] [--json]\n"
    "               [--check] [--pin]\n"
    "       pwcperf inject [--depth LIST] [--size LIST] [--iters N] [--warmup N]\n"
    "               [--protocol NAME] [--timeout SECONDS] [--json] [--pin]\n"
    "       pwcperf stress [--ops N] [--seed S] [--window N] [--timeout SECONDS] [--json]\n"
    "to be run by pwcrun (or another launcher), with an even number of ranks\n";

static const char help[] =
    "Measures puts and gets between pairs of ranks: rank i and rank i + n/2.\n"
    "\n"
    "  put_lat   half the round trip of two puts, each waited for by its remote event\n"
    "  put_bw    bytes a second of puts, counted when the target has drained their events\n"
    "  put_rate  puts a second, counted when the target has drained their events\n"
    "  get_lat   from the get to its local event\n"
    "  get_bw    bytes a second of gets\n"
    "  inject    time to submit a put of a batch of --depth, without waiting for its end\n"
    "  stress    random peers, sizes, offsets, ids and flags; every byte and event is checked\n"
    "\n"
    "  --size LIST        bytes, with commas between; k and m multiply by 1024 and its square\n"
    "  --depth LIST       inject: puts of a batch (1,2,4,...,256)\n"
    "  --iters N          measured operations of each size, batches of inject; default: by size\n"
    "  --warmup N         operations before the measured ones; default: a tenth\n"
    "  --window N         operations in flight, of bandwidth, rate and stress (64)\n"
    "  --protocol NAME    of large puts: ordered, reassemble or chain; default: the daemon's\n"
    "  --ops N            stress: operations of all ranks together (100000)\n"
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
    {"inject", INJECT, "8,512,4k,64k,1m,2m"},
    {"stress", STRESS, "0"},
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
    OPT_DEPTH,
    OPT_PROTOCOL,
    OPT_ITERS,
    OPT_WARMUP,
    OPT_WINDOW,
    OPT_OPS,
    OPT_SEED,
    OPT_TIMEOUT,
    OPT_JSON,
    OPT_CHECK,
    OPT_PIN,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option long_options[] = {
    {"size", required_argument, NULL, OPT_SIZE},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"protocol", required_argument, NULL, OPT_PROTOCOL},
    {"iters", required_argument, NULL, OPT_ITERS},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"ops", required_argument, NULL, OPT_OPS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"json", no_argument, NULL, OPT_JSON},
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

static int parse_test(struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(test_names) / sizeof(test_names[0]); i++) {
        if (strcmp(name, test_names[i].name) == 0) {
            o->test = test_names[i].test;
            o->test_name = test_names[i].name;
            return o->size_count == 0 ? parse_sizes(o, test_names[i].sizes) : 0;
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
    case OPT_PROTOCOL:
        return parse_protocol(o, optarg);
    case OPT_ITERS:
        return parse_number("--iters", optarg, 1, UINT64_C(1) << 40, &o->iters);
    case OPT_WARMUP:
        return parse_number("--warmup", optarg, 0, UINT64_C(1) << 40, &o->warmup);
    case OPT_WINDOW:
        return parse_number("--window", optarg, 1, 4096, &o->window);
    case OPT_OPS:
        return parse_number("--ops", optarg, 1, UINT64_C(1) << 32, &o->ops);
    case OPT_SEED:
        return parse_number("--seed", optarg, 0, UINT64_MAX, &o->seed);
    case OPT_TIMEOUT:
        rc = parse_number("--timeout", optarg, 1, 86400, &seconds);
        if (rc == 0)
            o->timeout_ms = (int)seconds * 1000;
        return rc;
    case OPT_JSON:
        o->json = true;
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

/* What was asked for that the test has no use for. */
static int check_together(const struct options *o)
{
    bool gets = o->test == GET_LAT || o->test == GET_BW;
    if (o->protocol == 0 || (!gets && o->test != STRESS))
        return 0;
    fprintf(stderr,
            "pwcperf: --protocol with %s: it is for puts; give the daemons one (pwcrun --protocol) "
            "or leave it out\n",
            o->test_name);
    return -EINVAL;
}

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){
        .protocol_name = "auto",
        .warmup = UINT64_MAX,
        .window = 64,
        .ops = 100000,
        .seed = 1,
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
