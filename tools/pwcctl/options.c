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
#include "tools/arguments.h"
#include "views/fields.h"

#define TOOL "pwcctl"

static const char usage[] =
    "[--socket PATH]... [--json] [--watch[=SECONDS]]\n"
    "              "
    "status|nodes|clients|queues|ledgers|regions|programs|offloads|teams|collectives|jobs|\n"
    "              ops|latency|config|counters\n"
    "       pwcctl [--socket PATH]... [--json] doctor\n"
    "       pwcctl [--socket PATH]... [--watch[=SECONDS]] top [--batch] [--count N]\n"
    "       pwcctl [--socket PATH] check FILE\n"
    "       pwcctl [--socket PATH] disassemble FILE|[ENGINE.]PROGRAM\n"
    "       pwcctl [--socket PATH] upgrade [PROGRAM]\n"
    "       pwcctl [--socket PATH]... trace --out FILE [--seconds N]\n"
    "              [--client [ENGINE.]N]";

static const char about[] =
    "Looks into a running daemon.\n"
    "\n"
    "  status     the daemon: node, provider, uptime, processor share\n"
    "  nodes      the peers: links, and why one is down\n"
    "  clients    attached processes, those in quarantine with the reason\n"
    "  queues     each context: the call that it waits in, its rings, operations, bytes\n"
    "  ledgers    each peer's ledgers: sizes, positions, credits\n"
    "  regions    memory that peers may reach\n"
    "  programs   programs of handlers that clients have loaded\n"
    "  offloads   programs that run on messages, puts and gets: packets, units, sends, faults\n"
    "  teams      teams of contexts, and their collectives under way\n"
    "  collectives  algorithms of collectives between engines: calls, letters, bytes\n"
    "  jobs       jobs whose home this node is: ranks that are gone, and ranks that a barrier or "
    "an\n"
    "             exchange waits for\n"
    "  ops        operations in flight, with age\n"
    "  latency    how long operations take, by peer and step\n"
    "  config     the values of all keys, and where each came from\n"
    "  counters   read from shared memory: works while the daemon is stuck\n"
    "\n"
    "  top        all of it on a screen, with rates; its key h lists the keys\n"
    "  doctor     checks this machine and the daemon: what is wrong, and how to fix it; and why\n"
    "             nothing moves: give the sockets of all nodes on this machine by --socket\n"
    "  check      says whether the daemon would take an object file of handlers\n"
    "  disassemble  prints the instructions of an object file, or of a program that the daemon\n"
    "             has, by the number that \"pwcctl programs\" shows\n"
    "  upgrade    has another process take the daemon's place, while its clients wait: of\n"
    "             PROGRAM (an absolute path), or of the daemon's own\n"
    "\n"
    "  trace      records what operations do, step by step, for Perfetto or chrome://tracing;\n"
    "             of several daemons on this machine where --socket is given more than once.\n"
    "             What neighbours on a node do by themselves does not pass the daemon: to see\n"
    "             it, start pwcd with --direct off\n";

static int set_socket(struct options *o, const char *path)
{
    if (strlen(path) >= sizeof(o->socket))
        return arguments_refuse(TOOL, "socket \"%s\": a path may have %zu characters", path,
                                sizeof(o->socket) - 1);
    strcpy(o->socket, path);
    return 0;
}

int options_handle(const char *text, uint32_t *engine, uint32_t *number)
{
    char *end;
    unsigned long first = strtoul(text, &end, 10), second = 0;
    if (end == text || first > UINT32_MAX)
        return -EINVAL;
    *engine = 0;
    *number = (uint32_t)first;
    if (*end == '\0')
        return 0;
    text = end + 1;
    if (*end == '.')
        second = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || second > UINT32_MAX)
        return -EINVAL;
    *engine = (uint32_t)first;
    *number = (uint32_t)second;
    return 0;
}

static int take_client(void *options, const char *text)
{
    struct options *o = options;
    o->one_client = true;
    if (options_handle(text, &o->engine, &o->client) == 0)
        return 0;
    return arguments_refuse(
        TOOL,
        "--client \"%s\": give a number as \"pwcctl clients\" shows it, with the "
        "engine and a point in front where there are several",
        text);
}

static int take_socket(void *options, const char *path)
{
    struct options *o = options;
    if (o->socket_count == OPTIONS_SOCKETS_MAX)
        return arguments_refuse(TOOL, "--socket \"%s\": %u sockets are as many as there may be",
                                path, OPTIONS_SOCKETS_MAX);
    o->sockets[o->socket_count++] = path;
    return set_socket(o, path);
}

#define AT(member) offsetof(struct options, member)

static const struct argument rows[] = {
    {"socket", "PATH",
     "the daemon's socket; default: $PWC_SOCKET, then those of pwcrun --hold, then\n"
     "that of the Slurm job's own daemon, then the usual place; views, top, doctor\n"
     "and trace take several",
     .kind = ARGUMENT_TAKE, .take = take_socket},
    {"json", NULL, "print the document as the daemon gives it", AT(json)},
    {"watch", "[=SECONDS]", "look again every so often (1)", AT(watch), ARGUMENT_SECONDS, 50,
     86400000},
    {"batch", NULL, "of top: print lines instead of a screen", AT(batch), .letter = 'b'},
    {"count", "N", "of top --batch: end after N looks", AT(count), ARGUMENT_U32, 1, 1000000, 'n'},
    {"out", "FILE", "of trace: where to write to", AT(out)},
    {"seconds", "N", "of trace: for how long (1)", AT(seconds), ARGUMENT_SECONDS, 50, 86400000},
    {"client", "[ENGINE.]N", "of trace: this client of the daemon alone", .kind = ARGUMENT_TAKE,
     .take = take_client},
    {0},
};

static const struct command_line line = {
    .tool = TOOL, .usage = usage, .about = about, .letters = "", .rows = rows};

/* Returns whether we are within a Slurm job that has a daemon of its own here. */
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

/* The sockets of pwcrun --hold, with a colon between two. */
static int take_held(struct options *o, const char *list)
{
    char *rest = o->held;
    int rc = 0;
    if (strlen(list) >= sizeof(o->held))
        return arguments_refuse(TOOL, "PWC_SOCKETS has %zu characters, %zu at most: use --socket",
                                strlen(list), sizeof(o->held) - 1);
    strcpy(o->held, list);
    for (char *path; rc == 0 && (path = strsep(&rest, ":")) != NULL;)
        rc = take_socket(o, path);
    return rc;
}

/* Fills in the sockets of a command line that names none. */
static int take_default(struct options *o)
{
    const char *named = getenv("PWC_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
    const char *held = getenv("PWC_SOCKETS");
    char path[512];
    bool one = named != NULL && *named != '\0';
    if (!one && held != NULL && *held != '\0')
        return take_held(o, held);
    o->sockets[o->socket_count++] = o->socket;
    if (one)
        return set_socket(o, named);
    if (job_socket(path, sizeof(o->socket)))
        return set_socket(o, path);
    path[0] = '\0';
    if (getenv("SLURM_JOB_ID") == NULL && geteuid() != 0 && runtime != NULL)
        snprintf(path, sizeof(path), "%s/pwcd/pwcd.sock", runtime);
    return set_socket(o, access(path, F_OK) == 0 ? path : "/run/pwcd/pwcd.sock");
}

/* Refuses a word that names nothing, and says which words name a view. */
static int refuse_view(const char *what)
{
    char names[256] = "";
    for (const struct view *view = views; view->name != NULL; view++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", view->name);
    }
    return arguments_refuse(TOOL, "no view \"%s\": give one of %s", what, names);
}

/* Finds the command that the first word names, and checks the number of words. */
static int choose(struct options *o, int words)
{
    const char *what = o->what ? o->what : "";
    o->top = strcmp(what, "top") == 0;
    o->upgrade = strcmp(what, "upgrade") == 0;
    o->doctor = strcmp(what, "doctor") == 0;
    o->trace = strcmp(what, "trace") == 0;
    o->check = strcmp(what, "check") == 0;
    o->disassemble = strcmp(what, "disassemble") == 0;
    if ((o->batch || o->count > 0) && !o->top)
        return arguments_refuse(TOOL, "--batch and --count are for top");
    if (o->check && words != 2)
        return arguments_refuse(TOOL, "check: give one object file");
    if (o->disassemble && words != 2)
        return arguments_refuse(TOOL, "disassemble: give one object file or program");
    if (words < 1 || words > 1 + (o->upgrade || o->check || o->disassemble))
        return arguments_refuse(TOOL, "give one view, for example status");
    if (!o->top && !o->upgrade && !o->doctor && !o->trace && !o->check && !o->disassemble &&
        view_find(what) == NULL)
        return refuse_view(what);
    if (o->trace && o->out == NULL)
        return arguments_refuse(TOOL, "trace needs a file: --out FILE");
    if (o->socket_count > 1 && o->trace && o->one_client)
        return arguments_refuse(TOOL, "%u sockets: --client names a client of one daemon",
                                o->socket_count);
    if (o->socket_count > 1 && (o->upgrade || o->check || o->disassemble))
        return arguments_refuse(TOOL, "%u sockets: %s asks one daemon", o->socket_count, what);
    return 0;
}

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){.seconds = 1};
    int rc = arguments_parse(&line, out, argc, argv);
    if (rc != 0)
        return rc;
    out->what = argv[optind];
    if (out->socket_count == 0)
        rc = take_default(out);
    if (rc == 0)
        rc = choose(out, argc - optind);
    if (rc == 0 && out->upgrade)
        out->program = argv[optind + 1]; /* or NULL */
    if (rc == 0 && (out->check || out->disassemble))
        out->program = argv[optind + 1];
    if (out->top && out->watch == 0)
        out->watch = 1;
    return rc;
}
