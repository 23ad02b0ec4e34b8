/* pwcd: reads flags, environment and file, then hands over to the control room. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "config.h"
#include "control.h"
#include "handover.h"
#include "keeper.h"

enum {
    KEYS_MAX = 64,
    EXIT_USAGE = 2,
};

enum own_flag {
    FLAG_CONFIG = 1000,
    FLAG_READY_FD,
    FLAG_KEEP,
    FLAG_CHECK,
    FLAG_VERSION,
    FLAG_HELP,
};

struct arguments {
    const char *config_file;
    int ready_fd;
    bool check;
    bool keep;
};

static void help(void)
{
    printf("usage: pwcd [--config FILE] [--KEY VALUE]...\n\n"
           "Serves put and get with completion to the processes of this node.\n\n"
           "  --config FILE   read keys from FILE, one \"key = value\" a line\n"
           "  --ready-fd N    write \"ready\" to descriptor N when serving\n"
           "  --keep          watch over the daemon: when it dies, its clients live through that\n"
           "  --check-config  check the configuration, print it, and end\n"
           "  --version, --help\n\n"
           "Keys, each a flag or a line of the file:\n");
    config_help(stdout);
}

/* The keys' flags number from 0, as in the table. */
static void make_flags(struct option flags[KEYS_MAX])
{
    static const struct option own[] = {
        {"config", required_argument, NULL, FLAG_CONFIG},
        {"ready-fd", required_argument, NULL, FLAG_READY_FD},
        {"keep", no_argument, NULL, FLAG_KEEP},
        {"check-config", no_argument, NULL, FLAG_CHECK},
        {"version", no_argument, NULL, FLAG_VERSION},
        {"help", no_argument, NULL, FLAG_HELP},
    };
    int n = 0;

    for (const struct config_key *key = config_keys(); key->name; key++, n++)
        flags[n] = (struct option){key->name, required_argument, NULL, n};
    memcpy(flags + n, own, sizeof(own));
    flags[n + (int)(sizeof(own) / sizeof(own[0]))] = (struct option){0};
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

/* 0: go on; 1: all is done; -EINVAL: said on stderr. */
static int parse(int argc, char **argv, struct config *config, struct arguments *arguments)
{
    struct option flags[KEYS_MAX];
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
        case FLAG_CHECK:
            arguments->check = true;
            break;
        case FLAG_VERSION:
            printf("pwcd %s\n", PWC_VERSION);
            return 1;
        case FLAG_HELP:
            help();
            return 1;
        case '?': /* getopt has said what is wrong */
            return -EINVAL;
        default:
            rc = config_set(config, flags[flag].name, optarg, CONFIG_FLAG, why, sizeof(why));
            if (rc < 0)
                fprintf(stderr, "pwcd: error: --%s\n", why);
        }
    }
    if (rc == 0 && optind < argc) {
        fprintf(stderr, "pwcd: error: \"%s\" is no flag: pwcd --help lists them\n", argv[optind]);
        rc = -EINVAL;
    }
    return rc;
}

static int load(struct config *config, const char *file)
{
    char why[512];
    int rc = config_environment(config, why, sizeof(why));

    if (rc == 0 && file)
        rc = config_load(config, file, why, sizeof(why));
    if (rc < 0)
        fprintf(stderr, "pwcd: error: %s\n", why);
    return rc;
}

static void print(const struct config *config)
{
    for (const struct config_key *key = config_keys(); key->name; key++) {
        char value[CONFIG_TEXT_MAX];

        config_text(config, key, value, sizeof(value));
        if (*value)
            printf("%s = %s\n", key->name, value);
    }
}

/* Started by the keeper, or by the daemon whose place we take; both have the same arguments. */
static bool is_kept(void)
{
    const char *keeper = getenv("PWCD_KEEPER");

    return handover_is_next() || (keeper && strtol(keeper, NULL, 10) == (long)getppid());
}

/* Segments and sessions are descriptors for a moment each; connections are for long, and so is what
 * a keeper holds. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.ready_fd = -1};
    struct config config;
    int rc, status = EXIT_USAGE;

    /* A dial is given up after 3 s: so should the look for the name be, and the end wait no longer.
     */
    setenv("RES_OPTIONS", "timeout:1 attempts:2", 0);
    raise_limits();
    config_init(&config);
    rc = parse(argc, argv, &config, &arguments);
    if (rc == 0)
        rc = load(&config, arguments.config_file);
    if (rc == 1) {
        status = EXIT_SUCCESS;
    } else if (rc == 0 && arguments.check) {
        print(&config);
        status = EXIT_SUCCESS;
    } else if (rc == 0 && arguments.keep && !is_kept()) {
        status = keeper_run(argv, arguments.ready_fd);
    } else if (rc == 0) {
        if (is_kept())
            arguments.ready_fd = -1; /* the keeper's, or our predecessor's */
        status = control_run(&(struct control_options){
            .config = &config, .ready_fd = arguments.ready_fd, .argv = argv});
    }
    config_free(&config);
    return status;
}
