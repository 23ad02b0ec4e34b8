/* Reads the command line of pwcrun. */
#include "tools/pwcrun/options.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "tools/arguments.h"

static int take_daemon_argument(void *options, const char *text)
{
    struct options *o = options;
    o->daemon_args[o->daemon_arg_count++] = text;
    return 0;
}

/* "-n 4", "--ranks 4", and "-np 4" as mpirun has it. */
static int take_ranks(void *options, const char *text)
{
    struct options *o = options;
    char *end;
    if (strcmp(text, "p") == 0 && o->words[optind] != NULL)
        text = o->words[optind++];
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || number == 0 ||
        number > PWCRUN_RANKS_MAX)
        return arguments_refuse("pwcrun", "--ranks \"%s\": give a number from 1 to %u", text,
                                PWCRUN_RANKS_MAX);
    o->ranks = (unsigned)number;
    return 0;
}

static int take_bind(void *options, const char *text)
{
    static const char *const names[] = {
        [BIND_SHARE] = "share", [BIND_ONE] = "one", [BIND_NONE] = "none"};
    struct options *o = options;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            o->bind = (enum bind)i;
            return 0;
        }
    }
    return arguments_refuse("pwcrun", "--bind \"%s\": give share, one or none", text);
}

static int take_pin(void *options, const char *text)
{
    ((struct options *)options)->bind = BIND_ONE;
    return 0;
}

#define AT(member) offsetof(struct options, member)

static const struct argument rows[] = {
    {"nodes", "N", "daemons to start (1)", AT(nodes), ARGUMENT_U32, 1, PWCRUN_NODES_MAX},
    {"ranks", "N",
     "copies of PROGRAM, spread over the nodes in blocks (one a node; of pwcperf\n"
     "as many as make pairs); also -np N",
     .kind = ARGUMENT_TAKE, .take = take_ranks, .letter = 'n'},
    {"provider", "NAME", "fabric of the daemons: stream, \"tcp;ofi_rxm\", ...", AT(provider)},
    {"protocol", "NAME", "auto, ordered, reassemble or chain", AT(protocol)},
    {"rails", "N", "connections from node to node: 1, 2 or 4", AT(rails)},
    {"progress", "MODE", "adaptive, dedicated or sleep: what daemons do with nothing to do",
     AT(progress)},
    {"delay-ns", "N", "for measuring: a wire longer by N nanoseconds", AT(delay_ns)},
    {"keep", NULL, "a daemon that dies is started again, and its ranks go on", AT(keep)},
    {"netns", NULL, "each node in its own network namespace (root only)", AT(netns)},
    {"daemon", "PATH", "the pwcd to start", AT(daemon)},
    {"daemon-arg", "ARG", "a further argument for every daemon; may be repeated",
     .kind = ARGUMENT_TAKE, .take = take_daemon_argument},
    {"grace", "SECONDS", "after a failure, time for the other ranks to end by themselves (3)",
     AT(grace_s), ARGUMENT_SECONDS, 0, 3600000},
    {"bind", "HOW",
     "the processors of a node's processes: share (its share of them, where there\n"
     "are as many as nodes), one, or none: any (share)",
     .kind = ARGUMENT_TAKE, .take = take_bind},
    {"pin", NULL, "the same as --bind one", .kind = ARGUMENT_TAKE, .take = take_pin},
    {"hold", NULL,
     "start the daemons for ranks that another launcher starts by pwcrun --place:\n"
     "PROGRAM is the launcher, run once; without PROGRAM print PWC_SOCKETS=... and\n"
     "hold the daemons until a signal comes",
     AT(hold)},
    {"place", NULL,
     "become PROGRAM, as the rank that mpirun, hydra or srun made of this process, on\n"
     "its node of PWC_SOCKETS",
     AT(place)},
    {"label", NULL, "put the rank before each line of output", AT(label)},
    {"verbose", NULL, "print what is started, and show the daemons' information messages",
     AT(verbose)},
    {0},
};

static const struct command_line line = {
    .tool = "pwcrun",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about =
        "Starts daemons and copies of PROGRAM on this machine, and takes all down at the end.\n",
    .end = "\nThe status is that of the first rank that failed (128+n for signal n), or 125 when "
           "pwcrun or a\n"
           "daemon failed, 126 when PROGRAM cannot be executed, 127 when it is not there.\n",
    .letters = "+", /* PROGRAM's own options are not ours */
    .rows = rows,
};

static int check(const struct options *o, int words)
{
    if (words == 0 && !o->hold)
        return arguments_refuse(line.tool, "no program given");
    if (o->hold && o->place)
        return arguments_refuse(line.tool, "--hold with --place: the first is for the daemons, the "
                                           "second for each rank");
    if (o->hold && (o->ranks != 0 || o->netns))
        return arguments_refuse(line.tool,
                                "--hold with %s: another launcher starts the ranks, here",
                                o->ranks != 0 ? "--ranks" : "--netns");
    if (o->netns && o->provider != NULL && strstr(o->provider, "shm") != NULL)
        return arguments_refuse(line.tool,
                                "--netns with --provider %s: shared memory has no network; use it "
                                "with tcp or net",
                                o->provider);
    return 0;
}

/* One rank a node, but pwcperf measures between pairs. */
static unsigned default_ranks(const struct options *o)
{
    const char *slash = strrchr(o->program[0], '/');
    bool pairs = strcmp(slash != NULL ? slash + 1 : o->program[0], "pwcperf") == 0;
    return pairs ? o->nodes + o->nodes % 2 : o->nodes;
}

int options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){.nodes = 1, .grace_s = 3, .words = argv};
    out->daemon_args = calloc((size_t)argc, sizeof(*out->daemon_args));
    if (out->daemon_args == NULL)
        return -ENOMEM;
    int rc = arguments_parse(&line, out, argc, argv);
    if (rc == 0)
        rc = check(out, argc - optind);
    if (rc != 0)
        options_free(out);
    out->program = argv + optind;
    if (rc == 0 && out->hold)
        out->ranks = out->program[0] != NULL ? 1 : 0; /* the launcher takes a rank's place */
    else if (rc == 0 && out->ranks == 0)
        out->ranks = default_ranks(out);
    return rc;
}

void options_free(struct options *options)
{
    free(options->daemon_args);
    options->daemon_args = NULL;
}
