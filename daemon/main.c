/* pwcd: reads flags, environment and file, then runs the daemon (control.h), the keeper (keeper.h),
 * or a check. Thread: main, which becomes the control thread. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "daemon/control/start/check.h"
#include "daemon/control/start/config.h"
#include "daemon/control/control.h"
#include "daemon/control/survive/handover.h"
#include "daemon/control/start/launch.h"
#include "daemon/fabric/provider.h"
#include "daemon/keeper/keeper.h"
#include "daemon/control/start/nearest.h"
#include "proto/exit_status.h"

enum {
    FLAGS_MAX = 96,
};

enum own_flag {
    FLAG_CONFIG = 1000,
    FLAG_READY_FD,
    FLAG_KEEP,
    FLAG_JOB,
    FLAG_CHECK,
    FLAG_PROVIDERS,
    FLAG_VERSION,
    FLAG_HELP,
};

struct arguments {
    const char *config_file;
    int ready_fd;
    bool check, providers;
    bool keep;
    bool job;
};

static void help(void)
{
    printf(
        "usage: pwcd [--config FILE|none] [--KEY VALUE]...\n\n"
        "Serves put and get with completion to the processes of this node.\n\n"
        "  --config FILE|none  read keys from FILE, one \"key = value\" a line under [pwcd], or\n"
        "                      from no file; default: for root, where it is there,\n"
        "                      %s\n"
        "  --ready-fd N        write \"ready\" to descriptor N when serving\n"
        "  --keep              watch over the daemon: when it dies, its clients live through it\n"
        "  --job               serve the job that started us (srun): nodes and socket are its "
        "own,\n"
        "                      and no file is read unless it is named\n"
        "  --check-config      check the configuration and what it names, print it, and end\n"
        "  --providers         print the providers that can serve here, and end: the first is\n"
        "                      the one that the daemon takes\n"
        "  --version, --help\n\n"
        "Keys, each a flag or a line of the file:\n",
        config_default_file());
    config_help(stdout);
}

/* The flag of a key has the key's index in the table as its number. */
static void make_flags(struct option flags[FLAGS_MAX])
{
    static const struct option own[] = {
        {"config", required_argument, NULL, FLAG_CONFIG},
        {"ready-fd", required_argument, NULL, FLAG_READY_FD},
        {"keep", no_argument, NULL, FLAG_KEEP},
        {"job", no_argument, NULL, FLAG_JOB},
        {"check-config", no_argument, NULL, FLAG_CHECK},
        {"providers", no_argument, NULL, FLAG_PROVIDERS},
        {"version", no_argument, NULL, FLAG_VERSION},
        {"help", no_argument, NULL, FLAG_HELP},
    };
    int n = 0;

    for (const struct config_key *key = config_keys(); key->name; key++, n++)
        flags[n] = (struct option){key->name, required_argument, NULL, n};
    memcpy(flags + n, own, sizeof(own));
    flags[n + (int)(sizeof(own) / sizeof(own[0]))] = (struct option){0};
}

/* Prints an error like the log does: under systemd with its level. */
static void complain(const char *before, const char *why)
{
    struct log log;

    log_open(&log, STDERR_FILENO, LOG_LEVEL_ERROR);
    log_line(&log, LOG_LEVEL_ERROR, "%s%s", before, why);
}

static int parse_ready_fd(const char *text, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 0 || value > 1 << 20) {
        fprintf(stderr, "pwcd: error: ready-fd \"%s\": give the number of an open descriptor\n",
                text);
        return -EINVAL;
    }
    *out = (int)value;
    return 0;
}

/* getopt has printed the error; this suggests the nearest flag. */
static void suggest(const char *word)
{
    struct option flags[FLAGS_MAX];
    const char *nearest = NULL;
    unsigned distance = 0;

    make_flags(flags);
    for (const struct option *flag = flags; flag->name; flag++)
        nearest_try(word + strspn(word, "-"), flag->name, &nearest, &distance);
    if (nearest && strcmp(nearest, word + strspn(word, "-")) != 0)
        fprintf(stderr, "pwcd: did you mean --%s?\n", nearest);
}

/* 0: continue; 1: all is done; -EINVAL: printed on stderr. */
static int parse(int argc, char **argv, struct config *config, struct arguments *arguments)
{
    struct option flags[FLAGS_MAX];
    char why[512];
    int flag, rc = 0;

    make_flags(flags);
    while (rc == 0 && (flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        switch (flag) {
        case FLAG_CONFIG:
            arguments->config_file = optarg;
            break;
        case FLAG_READY_FD:
            rc = parse_ready_fd(optarg, &arguments->ready_fd);
            break;
        case FLAG_KEEP:
            arguments->keep = true;
            break;
        case FLAG_JOB:
            arguments->job = true;
            break;
        case FLAG_CHECK:
            arguments->check = true;
            break;
        case FLAG_PROVIDERS:
            arguments->providers = true;
            break;
        case FLAG_VERSION:
            printf("pwcd %s\n", PWC_VERSION);
            return 1;
        case FLAG_HELP:
            help();
            return 1;
        case '?':
            suggest(argv[optind - 1]);
            return -EINVAL;
        default:
            rc = config_set(config, flags[flag].name, optarg, CONFIG_FLAG, why, sizeof(why));
            if (rc < 0)
                complain("--", why);
        }
    }
    if (rc == 0 && optind < argc) {
        fprintf(stderr, "pwcd: error: \"%s\" is no flag: pwcd --help lists them\n", argv[optind]);
        rc = -EINVAL;
    }
    return rc;
}

/* The file to read, or NULL. The system's file is for the system's daemon, not for a user's or a
 * job's. */
static const char *file_to_read(const struct arguments *arguments)
{
    const char *named = arguments->config_file;

    if (named)
        return strcmp(named, "none") == 0 ? NULL : named;
    return geteuid() == 0 && !arguments->job && access(config_default_file(), F_OK) == 0
               ? config_default_file()
               : NULL;
}

static int load(struct config *config, const struct arguments *arguments)
{
    const char *file = file_to_read(arguments);
    char why[512] = "out of memory";
    int rc = config_environment(config, why, sizeof(why));

    if (rc == 0 && file)
        rc = config_load(config, file, why, sizeof(why));
    if (rc == 0 && arguments->job)
        rc = launch_configure(config, arguments->check || arguments->providers, why, sizeof(why));
    if (rc < 0)
        complain("", why);
    return rc;
}

/* Prints the configuration as a file that would give the same, with the source of each value. */
static void print(const struct config *config)
{
    printf("[pwcd]\n");
    for (const struct config_key *key = config_keys(); key->name; key++) {
        char value[CONFIG_TEXT_MAX], place[CONFIG_TEXT_MAX], line[2 * CONFIG_TEXT_MAX];

        config_text(config, key, value, sizeof(value));
        config_place(config, key, place, sizeof(place));
        snprintf(line, sizeof(line), "%s = %s", key->name, value);
        if (*value)
            printf("%-32s ; %s%s%s\n", line, config_source(config, key), *place ? " " : "", place);
        else if (key->unset)
            printf("; %s: %s\n", key->name, key->unset);
    }
}

static int check(const struct config *config, const struct arguments *arguments)
{
    print(config);
    if (arguments->job && !config->nodes && !config->nodes_file)
        fprintf(stderr, "pwcd: the nodes of this job come by PMIx, when pwcd --job runs on all of "
                        "them: they are not checked\n");
    return control_check(config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Whether this process was started by the keeper, or by a daemon whose place it takes. Each of them
 * passes on its own arguments. */
static bool is_kept(void)
{
    const char *keeper = getenv("PWCD_KEEPER");

    return handover_is_next() || (keeper && strtol(keeper, NULL, 10) == (long)getppid());
}

/* Raises the limit of descriptors: each open connection takes some, and so do the descriptors that
 * a keeper holds. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Opens descriptors 0, 1 and 2 if they are closed. Otherwise a client's socket, for example, could
 * get one of these numbers, and our log would be written to it. */
static void open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR); /* open takes the lowest free number, which is fd */
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.ready_fd = -1};
    struct config config;
    int rc, status = EXIT_USAGE;

    /* A connection attempt is given up after 3 s. Bound the lookup of the name likewise, so that
     * the daemon's end does not wait for a lookup. */
    setenv("RES_OPTIONS", "timeout:1 attempts:2", 0);
    provider_prepare();
    open_standard();
    raise_limits();
    config_init(&config);
    rc = parse(argc, argv, &config, &arguments);
    if (rc == 0)
        rc = load(&config, &arguments);
    if (rc == 1) {
        status = EXIT_SUCCESS;
    } else if (rc == 0 && arguments.check) {
        status = check(&config, &arguments);
    } else if (rc == 0 && arguments.providers) {
        status = check_providers(&config, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    } else if (rc == 0 && arguments.keep && !is_kept()) {
        status = keeper_run(argv, arguments.ready_fd);
    } else if (rc == 0) {
        if (is_kept())
            arguments.ready_fd = -1; /* the start by the keeper or by our predecessor */
        status = control_run(&(struct control_options){
            .config = &config, .ready_fd = arguments.ready_fd, .argv = argv});
    }
    config_free(&config);
    return status;
}
