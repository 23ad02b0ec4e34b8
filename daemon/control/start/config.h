/*
 * The configuration: one table of keys (config_keys.c), read from flags, the environment and a
 * file.
 *
 * Each key is a flag (--peer-deadline-ms N), a line of the file (peer-deadline-ms = N), and, where
 * the table names one, an environment variable. A flag overrides the environment, the environment
 * overrides the file, and the file overrides the default. Unknown keys and bad values are refused
 * with their place and a remedy.
 *
 * Thread: main, at start; read-only afterwards.
 */
#ifndef PWC_CONTROL_CONFIG_H
#define PWC_CONTROL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_TEXT_MAX 4096u
#define CONFIG_KEYS_MAX 64u
#define CONFIG_UNITS    "KMGT" /* powers of 1024 */

/* Where a value came from; a higher source overrides a lower one. */
enum config_source {
    CONFIG_DEFAULT = 0,
    CONFIG_FILE = 1,
    CONFIG_ENVIRONMENT = 2,
    CONFIG_FLAG = 3,
};

struct config_origin {
    enum config_source source;
    uint32_t line; /* the file's line with the key; 0: there is none */
};

/* Whether clients of this node reach each other without the daemon. */
enum config_direct {
    CONFIG_DIRECT_AUTO = 0, /* clients of one user and one job do */
    CONFIG_DIRECT_OFF = 1,
};

/* The users whose programs of handlers the daemon accepts. */
enum config_handlers {
    CONFIG_HANDLERS_OFF = 0,
    CONFIG_HANDLERS_OWN = 1, /* programs of the daemon's own user */
    CONFIG_HANDLERS_ON = 2,  /* programs of all users who are served */
};

/* How daemons authenticate each other. */
enum config_auth {
    CONFIG_AUTH_AUTO = 0, /* by the secret if one is given, else by MUNGE */
    CONFIG_AUTH_MUNGE = 1,
    CONFIG_AUTH_SECRET = 2,
};

struct config {
    char *socket; /* strings: NULL if not given */
    char *nodes;
    char *nodes_file;
    char *secret;
    char *provider;
    char *address;
    char *allow_users;
    char *allow_groups;
    char *inspect_groups;
    char *collective;
    uint64_t node;     /* UINT64_MAX: not given */
    uint64_t protocol; /* enum engine_protocol */
    uint64_t rails;    /* the logarithm to base 2 of the number of rails */
    uint64_t auth;     /* enum config_auth */
    uint64_t job_port; /* 0: from the job's number */
    uint64_t progress; /* enum patience_mode */
    uint64_t progress_threads;
    uint64_t direct;   /* enum config_direct */
    uint64_t handlers; /* enum config_handlers */
    uint64_t handler_units, handler_us, handler_turn, handler_share;
    uint64_t log; /* enum log_level */
    uint64_t ledger_start, ledger_max, ledger_bytes;
    uint64_t packed_max, spill_max, stripe_min;
    uint64_t delay_ns;
    uint64_t keepalive_ms, peer_deadline_ms;
    uint64_t clients_max, pairs, binds;
    uint64_t client_memory, client_segments, client_contexts, client_regions, client_teams;
    uint64_t client_programs, client_program_bytes, client_offloads;
    uint64_t client_binds, client_pairs, client_queue;
    uint64_t user_clients, user_memory, user_segments, user_contexts, user_regions, user_jobs,
        user_teams, user_programs, user_program_bytes, user_offloads;
    uint64_t user_binds, user_pairs, user_queue;
    char *file;    /* the file that was read, or NULL */
    int port_held; /* keeps the control port ours (launch.h), or -1 */
    struct config_origin origins[CONFIG_KEYS_MAX]; /* by the key's place in the table */
};

enum config_kind {
    CONFIG_STRING = 1,
    CONFIG_NUMBER = 2, /* min to max */
    CONFIG_BYTES = 3,  /* a number, perhaps with K, M or G */
    CONFIG_CHOICE = 4, /* one of `choices`, stored as its index */
};

struct config_key {
    const char *name;
    enum config_kind kind;
    size_t offset; /* in struct config */
    uint64_t initial, min, max;
    const char *choices; /* "a|b|c" */
    const char *what;    /* the word for a string in the help: PATH, LIST, ... */
    const char *unset;   /* the default of a string in words; NULL: none */
    const char *zero;    /* the meaning of 0, or NULL */
    /* Checks a string that has a syntax of its own: 0, or -EINVAL with the reason in `why`. NULL:
     * any string will do. */
    int (*check)(const char *value, char *why, size_t why_size);
    const char *environment; /* variable, or NULL */
    const char *help;        /* printed after `what`, which begins its sentence */
};

/* The table; the last key has no name. */
const struct config_key *config_keys(void);

void config_init(struct config *config);
void config_free(struct config *config);
/* Sets one value. -ENOENT: there is no such key; -EINVAL: the value is wrong; `why` has the reason.
 * A value is only checked where the present value has a higher source. */
int config_set(struct config *config, const char *name, const char *value,
               enum config_source source, char *why, size_t why_size);
/* The path of the system's file. */
const char *config_default_file(void);
/* Reads a file, once; `why` names the line. */
int config_load(struct config *config, const char *path, char *why, size_t why_size);
int config_environment(struct config *config, char *why, size_t why_size);

/* Writes a number as text; a size has the largest unit that divides it. */
void config_amount(const struct config_key *key, uint64_t number, char *to, size_t size);
/* The value of a key as text; "" if not given. */
void config_text(const struct config *config, const struct config_key *key, char *to, size_t size);
/* The value of a string key; NULL if not given. */
const char *config_string(const struct config *config, const struct config_key *key);
/* The value of a number or size. */
uint64_t config_number(const struct config *config, const struct config_key *key);
/* After how long a silence a peer is asked whether it lives: keepalive-ms, but at most a fifth of
 * the deadline, which must have room for questions, answers, and a new link, too. */
uint64_t config_keepalive_ms(const struct config *config);
enum config_source config_source_of(const struct config *config, const char *name);
/* The source of a value: "default", "file", "environment" or "flag"; config_place writes the place
 * in this source. */
const char *config_source(const struct config *config, const struct config_key *key);
void config_place(const struct config *config, const struct config_key *key, char *to, size_t size);
/* The range and the default of a key: "20 to 3600000; default 1000". */
void config_facts(const struct config_key *key, char *to, size_t size);
/* Prints a paragraph of help for each key. */
void config_help(FILE *to);

#endif
