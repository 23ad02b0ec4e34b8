/* Reads the command line of pwcrun; every wrong value is named with what would be right. */
#include "tools/pwcrun/options.h"
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_DEFAULT_MS 3000u

static const char usage[] =
    "usage: pwcrun [--nodes N] [-n RANKS] [--provider NAME] [--protocol NAME]\n"
    "              [--rails N] [--progress MODE] [--delay-ns N] [--keep]\n"
    "              [--netns] [--daemon PATH] [--daemon-arg ARG]... [--grace SECONDS] [--pin]\n"
    "              [--label] [--verbose] [--] PROGRAM [ARGUMENT]...\n";

static const char help[] =
    "Starts N daemons and RANKS copies of PROGRAM on this machine, and takes all down at the end.\n"
    "\n"
    "  --nodes N         daemons to start (1)\n"
    "  -n, --ranks N     copies of PROGRAM, spread over the nodes in blocks (one a node)\n"
    "  --provider NAME   fabric of the daemons: stream, \"tcp;ofi_rxm\", ...\n"
    "  --protocol NAME   auto, ordered, reassemble or chain\n"
    "  --rails N         connections from node to node: 1, 2 or 4\n"
    "  --progress MODE   adaptive, dedicated or sleep: what daemons do with nothing to do\n"
    "  --delay-ns N      for measuring: a wire longer by N nanoseconds\n"
    "  --keep            a daemon that dies is started again, and its ranks go on\n"
    "  --netns           each node in its own network namespace (root only)\n"
    "  --daemon PATH     the pwcd to start\n"
    "  --daemon-arg ARG  a further argument for every daemon; may be repeated\n"
    "  --grace SECONDS   after a failure, time for the other ranks to end by themselves (3)\n"
    "  --pin             keep each node's processes on one processor\n"
    "  --label           put the rank before each line of output\n"
    "  --verbose         print what is started, and show the daemons' information messages\n"
    "  --help, --version\n"
    "\n"
    "The status is that of the first rank that failed (128+n for signal n), or 125 when pwcrun or "
    "a\n"
    "daemon failed, 126 when PROGRAM cannot be executed, 127 when it is not there.\n";

enum long_option {
    OPT_NODES = 256,
    OPT_PROVIDER,
    OPT_PROTOCOL,
    OPT_RAILS,
    OPT_PROGRESS,
    OPT_DELAY_NS,
    OPT_KEEP,
    OPT_NETNS,
    OPT_DAEMON,
    OPT_DAEMON_ARG,
    OPT_GRACE,
    OPT_PIN,
    OPT_LABEL,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option long_options[] = {
    {"nodes", required_argument, NULL, OPT_NODES},
    {"ranks", required_argument, NULL, 'n'},
    {"provider", required_argument, NULL, OPT_PROVIDER},
    {"protocol", required_argument, NULL, OPT_PROTOCOL},
    {"rails", required_argument, NULL, OPT_RAILS},
    {"progress", required_argument, NULL, OPT_PROGRESS},
    {"delay-ns", required_argument, NULL, OPT_DELAY_NS},
    {"keep", no_argument, NULL, OPT_KEEP},
    {"netns", no_argument, NULL, OPT_NETNS},
    {"daemon", required_argument, NULL, OPT_DAEMON},
    {"daemon-arg", required_argument, NULL, OPT_DAEMON_ARG},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"pin", no_argument, NULL, OPT_PIN},
    {"label", no_argument, NULL, OPT_LABEL},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int parse_count(const char *name, const char *text, unsigned min, unsigned max,
                       unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < min || value > max) {
        fprintf(stderr, "pwcrun: %s \"%s\": give a number from %u to %u\n", name, text, min, max);
        return -EINVAL;
    }
    *out = (unsigned)value;
    return 0;
}

static int parse_seconds(const char *text, unsigned *out_ms)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0 && seconds <= 3600)) {
        fprintf(stderr, "pwcrun: --grace \"%s\": give seconds from 0 to 3600\n", text);
        return -EINVAL;
    }
    *out_ms = (unsigned)(seconds * 1000);
    return 0;
}

static int apply(struct options *o, int option)
{
    switch (option) {
    case OPT_NODES:
        return parse_count("--nodes", optarg, 1, PWCRUN_NODES_MAX, &o->nodes);
    case 'n':
        return parse_count("-n", optarg, 1, PWCRUN_RANKS_MAX, &o->ranks);
    case OPT_PROVIDER:
        o->provider = optarg;
        return 0;
    case OPT_PROTOCOL:
        o->protocol = optarg;
        return 0;
    case OPT_RAILS:
        o->rails = optarg;
        return 0;
    case OPT_PROGRESS:
        o->progress = optarg;
        return 0;
    case OPT_DELAY_NS:
        o->delay_ns = optarg;
        return 0;
    case OPT_KEEP:
        o->keep = true;
        return 0;
    case OPT_NETNS:
        o->netns = true;
        return 0;
    case OPT_DAEMON:
        o->daemon = optarg;
        return 0;
    case OPT_DAEMON_ARG:
        o->daemon_args[o->daemon_arg_count++] = optarg;
        return 0;
    case OPT_GRACE:
        return parse_seconds(optarg, &o->grace_ms);
    case OPT_PIN:
        o->pin = true;
        return 0;
    case OPT_LABEL:
        o->label = true;
        return 0;
    case OPT_VERBOSE:
        o->verbose = true;
        return 0;
    case OPT_HELP:
        printf("%s\n%s", usage, help);
        return 1;
    case OPT_VERSION:
        printf("pwcrun %s\n", PWC_VERSION);
        return 1;
    default: /* getopt has said what is wrong */
        fputs(usage, stderr);
        return -EINVAL;
    }
}

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){.nodes = 1, .grace_ms = GRACE_DEFAULT_MS};
    out->daemon_args = calloc((size_t)argc, sizeof(*out->daemon_args));
    if (out->daemon_args == NULL)
        return -ENOMEM;

    int rc = 0, option;
    /* "+": PROGRAM's own options are not ours. */
    while (rc == 0 && (option = getopt_long(argc, argv, "+n:", long_options, NULL)) != -1)
        rc = apply(out, option);
    if (rc == 0 && optind == argc) {
        fprintf(stderr, "pwcrun: no program given\n%s", usage);
        rc = -EINVAL;
    }
    if (rc == 0 && out->netns && out->provider != NULL && strstr(out->provider, "shm") != NULL) {
        fprintf(stderr,
                "pwcrun: --netns with --provider %s: shared memory has no network; use it "
                "with tcp or net\n",
                out->provider);
        rc = -EINVAL;
    }
    if (rc != 0) {
        options_free(out);
        return rc;
    }
    out->program = argv + optind;
    if (out->ranks == 0)
        out->ranks = out->nodes;
    return 0;
}

void options_free(struct options *options)
{
    free(options->daemon_args);
    options->daemon_args = NULL;
}
