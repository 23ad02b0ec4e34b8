/* Reads the command line of pwcctl. */
#include "tools/pwcctl/options.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/job_socket.h"
#include "tools/pwcctl/view.h"

static const char usage[] =
    "usage: pwcctl [--socket PATH] [--json] [--watch[=SECONDS]]\n"
    "              status|nodes|clients|queues|ledgers|regions|ops|latency|config|counters\n"
    "       pwcctl [--socket PATH] [--json] doctor\n"
    "       pwcctl [--socket PATH] [--watch[=SECONDS]] top [--batch] [--count N]\n"
    "       pwcctl [--socket PATH] upgrade [PROGRAM]\n"
    "       pwcctl [--socket PATH]... trace --out FILE [--seconds N] [--client N]\n";

static const char help[] =
    "Looks into a running daemon.\n"
    "\n"
    "  status     the daemon: node, provider, uptime, processor share\n"
    "  nodes      the peers: links, and why one is down\n"
    "  clients    attached processes, those in quarantine with the reason\n"
    "  queues     each context's rings: depth, high-water marks, operations, bytes\n"
    "  ledgers    each peer's ledgers: sizes, positions, credits\n"
    "  regions    memory that peers may reach\n"
    "  ops        operations in flight, with age\n"
    "  latency    how long operations take, by peer and step\n"
    "  config     the values of all keys, and where each came from\n"
    "  counters   read from shared memory: works while the daemon is stuck\n"
    "\n"
    "  top        all of it on a screen, with rates; h there tells its keys\n"
    "  doctor     checks this machine and the daemon: what is wrong, and how to mend it\n"
    "  upgrade    has another process take the daemon's place, while its clients wait: of\n"
    "             PROGRAM (an absolute path), or of the daemon's own\n"
    "\n"
    "  trace      records what operations do, step by step, for Perfetto or chrome://tracing;\n"
    "             of several daemons on this machine where --socket is given more than once.\n"
    "             What neighbours on a node do by themselves does not pass the daemon: to see\n"
    "             it, start pwcd with --direct off\n"
    "\n"
    "  --socket PATH       the daemon's socket; default: $PWC_SOCKET, then that of the Slurm "
    "job's\n"
    "                      own daemon, then the usual place\n"
    "  --json              print the document as the daemon gives it\n"
    "  --watch[=SECONDS]   look again every so often (1)\n"
    "  -b, --batch         of top: print lines instead of a screen\n"
    "  -n, --count N       of top --batch: end after N looks\n"
    "  --out FILE          of trace: where to write to\n"
    "  --seconds N         of trace: for how long (1)\n"
    "  --client N          of trace: this client of the daemon alone\n"
    "  --help, --version\n";

enum long_option {
    OPT_SOCKET = 256,
    OPT_JSON,
    OPT_WATCH,
    OPT_OUT,
    OPT_SECONDS,
    OPT_CLIENT,
    OPT_BATCH = 'b',
    OPT_COUNT = 'n',
    OPT_HELP = 300,
    OPT_VERSION,
};

static const struct option long_options[] = {
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"json", no_argument, NULL, OPT_JSON},
    {"out", required_argument, NULL, OPT_OUT},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"client", required_argument, NULL, OPT_CLIENT},
    {"watch", optional_argument, NULL, OPT_WATCH},
    {"batch", no_argument, NULL, OPT_BATCH},
    {"count", required_argument, NULL, OPT_COUNT},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int set_socket(struct options *o, const char *path)
{
    if (strlen(path) < sizeof(o->socket)) {
        strcpy(o->socket, path);
        return 0;
    }
    fprintf(stderr, "pwcctl: socket \"%s\": a path may have %zu characters\n", path,
            sizeof(o->socket) - 1);
    return -EINVAL;
}

static int parse_seconds(const char *option, const char *text, double *out)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end != text && *end == '\0' && seconds >= 0.05 && seconds <= 86400) {
        *out = seconds;
        return 0;
    }
    fprintf(stderr, "pwcctl: --%s \"%s\": give seconds from 0.05 to 86400\n", option, text);
    return -EINVAL;
}

static int parse_count(const char *text, unsigned *out)
{
    char *end;
    unsigned long count = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && count >= 1 && count <= 1000000) {
        *out = (unsigned)count;
        return 0;
    }
    fprintf(stderr, "pwcctl: --count \"%s\": give a number from 1 to 1000000\n", text);
    return -EINVAL;
}

static int parse_client(const char *text, long *out)
{
    char *end;
    *out = strtol(text, &end, 10);
    if (end != text && *end == '\0' && *out >= 0 && *out < UINT32_MAX)
        return 0;
    fprintf(stderr, "pwcctl: --client \"%s\": give a number as \"pwcctl clients\" shows it\n",
            text);
    return -EINVAL;
}

static int add_socket(struct options *o, const char *path)
{
    if (o->socket_count == OPTIONS_SOCKETS_MAX) {
        fprintf(stderr, "pwcctl: --socket \"%s\": %u sockets are as many as a trace has\n", path,
                OPTIONS_SOCKETS_MAX);
        return -EINVAL;
    }
    o->sockets[o->socket_count++] = path;
    return set_socket(o, path);
}

/* "--watch SECONDS" as well as "--watch=SECONDS": a number cannot be a view. */
static const char *watch_argument(int argc, char **argv)
{
    if (optarg != NULL)
        return optarg;
    if (optind < argc && argv[optind][0] >= '0' && argv[optind][0] <= '9')
        return argv[optind++];
    return "1";
}

static int apply(struct options *o, int option, int argc, char **argv)
{
    switch (option) {
    case OPT_SOCKET:
        return add_socket(o, optarg);
    case OPT_JSON:
        o->json = true;
        return 0;
    case OPT_WATCH:
        return parse_seconds("watch", watch_argument(argc, argv), &o->watch);
    case OPT_OUT:
        o->out = optarg;
        return 0;
    case OPT_SECONDS:
        return parse_seconds("seconds", optarg, &o->seconds);
    case OPT_CLIENT:
        return parse_client(optarg, &o->client);
    case OPT_BATCH:
        o->batch = true;
        return 0;
    case OPT_COUNT:
        return parse_count(optarg, &o->count);
    case OPT_HELP:
        printf("%s\n%s", usage, help);
        return 1;
    case OPT_VERSION:
        printf("pwcctl %s\n", PWC_VERSION);
        return 1;
    default: /* getopt has said what is wrong */
        fputs(usage, stderr);
        return -EINVAL;
    }
}

/* Within a Slurm job: whether the job has a daemon of its own here. */
static bool job_socket(char *path, size_t size)
{
    const char *job = getenv("SLURM_JOB_ID");
    struct sockaddr_un name;
    if (job == NULL || job_socket_name(path, size, geteuid(), job) < 0)
        return false;
    socklen_t length = job_socket_address(path, &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = fd >= 0 && connect(fd, (struct sockaddr *)&name, length) == 0 &&
                   job_socket_trusted(path, job_socket_peer(fd));
    if (fd >= 0)
        close(fd);
    return answers;
}

static int default_socket(struct options *o)
{
    const char *named = getenv("PWC_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
    char path[512];
    if (named != NULL && *named != '\0')
        return set_socket(o, named);
    if (job_socket(path, sizeof(o->socket)))
        return set_socket(o, path);
    path[0] = '\0';
    if (getenv("SLURM_JOB_ID") == NULL && geteuid() != 0 && runtime != NULL)
        snprintf(path, sizeof(path), "%s/pwcd/pwcd.sock", runtime);
    return set_socket(o, access(path, F_OK) == 0 ? path : "/run/pwcd/pwcd.sock");
}

static int trace_options(struct options *o)
{
    int rc = o->socket_count == 0 ? default_socket(o) : 0;
    if (rc == 0 && o->out == NULL) {
        fprintf(stderr, "pwcctl: trace needs a file: --out FILE\n%s", usage);
        rc = -EINVAL;
    }
    if (o->socket_count == 0)
        o->sockets[o->socket_count++] = o->socket;
    o->trace = true;
    return rc;
}

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){.seconds = 1, .client = -1};
    int rc = 0, option;
    while (rc == 0 && (option = getopt_long(argc, argv, "bn:", long_options, NULL)) != -1)
        rc = apply(out, option, argc, argv);
    if (rc != 0)
        return rc;
    if ((out->batch || out->count > 0) &&
        (optind != argc - 1 || strcmp(argv[optind], "top") != 0)) {
        fprintf(stderr, "pwcctl: --batch and --count are for top\n%s", usage);
        return -EINVAL;
    }
    if (optind == argc - 1 && strcmp(argv[optind], "top") == 0) {
        out->top = true;
        out->what = argv[optind];
        out->watch = out->watch > 0 ? out->watch : 1;
        return out->socket[0] == '\0' ? default_socket(out) : 0;
    }
    if (optind < argc && strcmp(argv[optind], "upgrade") == 0 && argc - optind <= 2) {
        out->upgrade = true;
        out->what = argv[optind];
        out->program = argv[optind + 1]; /* or NULL */
        return out->socket[0] == '\0' ? default_socket(out) : 0;
    }
    if (optind == argc - 1 && strcmp(argv[optind], "doctor") == 0) {
        out->doctor = true;
        out->what = argv[optind];
        return out->socket[0] == '\0' ? default_socket(out) : 0;
    }
    if (optind == argc - 1 && strcmp(argv[optind], "trace") == 0)
        return trace_options(out);
    if (optind != argc - 1 || view_find(argv[optind]) == NULL) {
        fprintf(stderr, "pwcctl: %s%s%s\n%s", optind < argc ? "no view \"" : "give one view",
                optind < argc ? argv[optind] : "", optind < argc ? "\"" : "", usage);
        return -EINVAL;
    }
    if (out->socket_count > 1) {
        fprintf(stderr, "pwcctl: %u sockets: %s asks one daemon, only trace asks several\n",
                out->socket_count, argv[optind]);
        return -EINVAL;
    }
    out->what = argv[optind];
    return out->socket[0] == '\0' ? default_socket(out) : 0;
}
