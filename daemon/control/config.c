/* Owns the table of keys and how values are read and checked (config.h). */
#include "config.h"

#include <ctype.h>
#include <assert.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "nodes.h"

#define FIELD(member) offsetof(struct config, member)

static const struct config_key keys[] = {
    {"socket", CONFIG_STRING, FIELD(socket), 0, 0, 0, NULL, NULL,
     "PATH of the Unix socket for clients; default $XDG_RUNTIME_DIR/pwcd/pwcd.sock, for root "
     "/run/pwcd/pwcd.sock"},
    {"node", CONFIG_NUMBER, FIELD(node), UINT64_MAX, 0, 16383, NULL, "PWCD_NODE",
     "N: which entry of the list of nodes this daemon is"},
    {"nodes", CONFIG_STRING, FIELD(nodes), 0, 0, 0, NULL, "PWCD_NODES",
     "LIST of host:port,host:port,... of all nodes' control ports; default: this node alone"},
    {"nodes-file", CONFIG_STRING, FIELD(nodes_file), 0, 0, 0, NULL, NULL,
     "FILE with one host:port a line, # begins a comment"},
    {"secret", CONFIG_STRING, FIELD(secret), 0, 0, 0, NULL, NULL,
     "FILE with the secret that all nodes share: ours, mode 0600, 32 bytes or more; needed with "
     "two nodes or more"},
    {"provider", CONFIG_STRING, FIELD(provider), 0, 0, 0, NULL, NULL,
     "NAME of the libfabric provider; default: the first that can do what is needed"},
    {"address", CONFIG_STRING, FIELD(address), 0, 0, 0, NULL, NULL,
     "IP that the fabric binds to; default 127.0.0.1"},
    {"protocol", CONFIG_CHOICE, FIELD(protocol), 0, 0, 0, "auto|ordered|reassemble|chain", NULL,
     "auto, ordered, reassemble or chain: how large puts announce themselves"},
    {"rails", CONFIG_CHOICE, FIELD(rails), 0, 0, 0, "1|2|4", NULL,
     "1, 2 or 4 connections to each node, over which large puts travel side by side"},
    {"ledger-start", CONFIG_BYTES, FIELD(ledger_start), 0, 0, 1u << 30, NULL, NULL,
     "BYTES of a new ledger; 0: the engine's default"},
    {"ledger-max", CONFIG_BYTES, FIELD(ledger_max), 0, 0, 1u << 30, NULL, NULL,
     "BYTES that a ledger may grow to; 0: the engine's default"},
    {"ledger-bytes", CONFIG_BYTES, FIELD(ledger_bytes), 0, 0, UINT64_C(1) << 40, NULL, NULL,
     "BYTES of memory for all ledgers; 0: the engine's default"},
    {"packed-max", CONFIG_BYTES, FIELD(packed_max), 0, 0, 1u << 20, NULL, NULL,
     "BYTES up to which a payload leaves packed with its record; 0: the engine's default"},
    {"spill-max", CONFIG_BYTES, FIELD(spill_max), 0, 0, 1u << 30, NULL, NULL,
     "BYTES of events kept for a context that does not drain; 0: the engine's default"},
    {"stripe-min", CONFIG_BYTES, FIELD(stripe_min), 0, 0, 1u << 30, NULL, NULL,
     "BYTES from which on a payload travels over all rails at once; 0: the engine's default"},
    {"keepalive-ms", CONFIG_NUMBER, FIELD(keepalive_ms), 1000, 20, 3600000, NULL, NULL,
     "N: a node that is waited for and says nothing for so long is asked whether it lives; after "
     "three times as long its link begins anew"},
    {"peer-deadline-ms", CONFIG_NUMBER, FIELD(peer_deadline_ms), 5000, 100, 86400000, NULL, NULL,
     "N: a node that cannot be reached for so long is given up"},
    {"allow-users", CONFIG_STRING, FIELD(allow_users), 0, 0, 0, NULL, NULL,
     "LIST of users (names or numbers) whose processes are served beside our own user's"},
    {"allow-groups", CONFIG_STRING, FIELD(allow_groups), 0, 0, 0, NULL, NULL,
     "LIST of groups whose members are served"},
    {"clients-max", CONFIG_NUMBER, FIELD(clients_max), 256, 1, 4096, NULL, NULL,
     "N: clients at a time"},
    {"client-memory", CONFIG_BYTES, FIELD(client_memory), UINT64_C(4) << 30, 4096,
     UINT64_C(1) << 46, NULL, NULL, "BYTES of segments and rings of one client"},
    {"client-segments", CONFIG_NUMBER, FIELD(client_segments), 256, 1, 1024, NULL, NULL,
     "N: segments of one client"},
    {"client-contexts", CONFIG_NUMBER, FIELD(client_contexts), 64, 1, 512, NULL, NULL,
     "N: contexts of one client"},
    {"client-regions", CONFIG_NUMBER, FIELD(client_regions), 4096, 1, 16384, NULL, NULL,
     "N: regions of one client"},
    {"client-binds", CONFIG_NUMBER, FIELD(client_binds), 0, 0, 16384, NULL, NULL,
     "N: binds of one client; 0: seven eighths of all"},
    {"client-pairs", CONFIG_NUMBER, FIELD(client_pairs), 0, 0, 4096, NULL, NULL,
     "N: contexts elsewhere that one client is bound to, and as many that are bound to it; 0: "
     "seven "
     "eighths of all"},
    {"client-queue", CONFIG_BYTES, FIELD(client_queue), 0, 0, 64u << 20, NULL, NULL,
     "BYTES of one client's operations in flight and spilled events; 0: as much as it leaves free"},
    {"user-clients", CONFIG_NUMBER, FIELD(user_clients), 0, 0, 4096, NULL, NULL,
     "N: clients of one user; 0, here and below: where others than the daemon's own user are "
     "served, seven eighths of all, else all"},
    {"user-memory", CONFIG_BYTES, FIELD(user_memory), 0, 0, UINT64_C(1) << 46, NULL, NULL,
     "BYTES of segments and rings of one user; 0: of the machine's memory"},
    {"user-segments", CONFIG_NUMBER, FIELD(user_segments), 0, 0, 1024, NULL, NULL,
     "N: segments of one user"},
    {"user-contexts", CONFIG_NUMBER, FIELD(user_contexts), 0, 0, 512, NULL, NULL,
     "N: contexts of one user"},
    {"user-regions", CONFIG_NUMBER, FIELD(user_regions), 0, 0, 16384, NULL, NULL,
     "N: regions of one user"},
    {"user-binds", CONFIG_NUMBER, FIELD(user_binds), 0, 0, 16384, NULL, NULL,
     "N: binds of one user"},
    {"user-pairs", CONFIG_NUMBER, FIELD(user_pairs), 0, 0, 4096, NULL, NULL,
     "N: contexts that those of one user are bound to, and as many bound to them"},
    {"user-queue", CONFIG_BYTES, FIELD(user_queue), 0, 0, 64u << 20, NULL, NULL,
     "BYTES of one user's operations in flight and spilled events"},
    {"progress", CONFIG_CHOICE, FIELD(progress), 0, 0, 0, "adaptive|dedicated|sleep", NULL,
     "dedicated, adaptive or sleep: whether the daemon polls, yields for a while, or sleeps at "
     "once "
     "when it has nothing to do"},
    {"progress-threads", CONFIG_NUMBER, FIELD(progress_threads), 1, 1, NODES_ENGINES_MAX, NULL,
     NULL,
     "N threads that progress, each with an engine and a share of the clients of its own; nodes "
     "may "
     "differ"},
    {"direct", CONFIG_CHOICE, FIELD(direct), CONFIG_DIRECT_AUTO, 0, 0, "auto|off", NULL,
     "auto or off: whether clients of one user and one job on this node put and get through "
     "memory, "
     "without the daemon"},
    {"delay-ns", CONFIG_NUMBER, FIELD(delay_ns), 0, 0, 100000, NULL, NULL,
     "N: for measuring only: whatever comes from the fabric is held back for so long"},
    {"log", CONFIG_CHOICE, FIELD(log), LOG_LEVEL_WARNING, 0, 0, "error|warning|info|debug", NULL,
     "error, warning, info or debug"},
    {0},
};

static_assert(sizeof(keys) / sizeof(keys[0]) - 1 <= sizeof(((struct config *)0)->sources),
              "a source for each key");

const struct config_key *config_keys(void)
{
    return keys;
}

static uint64_t *number_at(struct config *config, const struct config_key *key)
{
    return (uint64_t *)((char *)config + key->offset);
}

static char **string_at(struct config *config, const struct config_key *key)
{
    return (char **)((char *)config + key->offset);
}

void config_init(struct config *config)
{
    *config = (struct config){0};
    for (const struct config_key *key = keys; key->name; key++)
        if (key->kind != CONFIG_STRING)
            *number_at(config, key) = key->initial;
}

void config_free(struct config *config)
{
    for (const struct config_key *key = keys; key->name; key++)
        if (key->kind == CONFIG_STRING)
            free(*string_at(config, key));
    config_init(config);
}

/* ---- values ---------------------------------------------------------------------------------- */

static int parse_number(const struct config_key *key, const char *value, uint64_t *out, char *why,
                        size_t why_size)
{
    unsigned shift = 0;
    char *end;

    errno = 0;
    *out = strtoull(value, &end, 10);
    if (key->kind == CONFIG_BYTES && *end) {
        static const char units[] = "KMGT";
        const char *unit = strchr(units, toupper((unsigned char)*end));

        if (unit) {
            shift = 10u * (unsigned)(unit - units + 1);
            end++;
        }
    }
    if (!isdigit((unsigned char)*value) || *end || errno || *out > (UINT64_MAX >> shift) ||
        *out << shift < key->min || *out << shift > key->max) {
        snprintf(why, why_size, "%s \"%.64s\": give a number from %" PRIu64 " to %" PRIu64 "%s",
                 key->name, value, key->min, key->max,
                 key->kind == CONFIG_BYTES ? ", with K, M or G if you like" : "");
        return -EINVAL;
    }
    *out <<= shift;
    return 0;
}

static const char *choice_at(const char *choices, uint64_t index, size_t *length)
{
    const char *at = choices;

    for (; index > 0; index--)
        at = strchr(at, '|') + 1;
    *length = strcspn(at, "|");
    return at;
}

static int parse_choice(const struct config_key *key, const char *value, uint64_t *out, char *why,
                        size_t why_size)
{
    const char *at = key->choices;

    for (*out = 0;; (*out)++) {
        size_t length = strcspn(at, "|");

        if (strlen(value) == length && strncmp(value, at, length) == 0)
            return 0;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    snprintf(why, why_size, "%s \"%.64s\": give one of %s", key->name, value, key->choices);
    return -EINVAL;
}

static int store(struct config *config, const struct config_key *key, const char *value, bool keep,
                 char *why, size_t why_size)
{
    uint64_t number;
    char *copy;
    int rc;

    if (key->kind == CONFIG_STRING) {
        if (*value == '\0' || strlen(value) >= CONFIG_TEXT_MAX * 64) {
            snprintf(why, why_size, "%s is empty or too long: give a value or leave it out",
                     key->name);
            return -EINVAL;
        }
        if (!keep)
            return 0;
        copy = strdup(value);
        if (!copy)
            return -ENOMEM;
        free(*string_at(config, key));
        *string_at(config, key) = copy;
        return 0;
    }
    rc = key->kind == CONFIG_CHOICE ? parse_choice(key, value, &number, why, why_size)
                                    : parse_number(key, value, &number, why, why_size);
    if (rc == 0 && keep)
        *number_at(config, key) = number;
    return rc;
}

int config_set(struct config *config, const char *name, const char *value,
               enum config_source source, char *why, size_t why_size)
{
    for (const struct config_key *key = keys; key->name; key++) {
        uint8_t *from = &config->sources[key - keys];
        int rc;

        if (strcmp(key->name, name) != 0)
            continue;
        rc = store(config, key, value, source >= *from, why, why_size);
        if (rc == 0 && source >= *from)
            *from = (uint8_t)source;
        return rc;
    }
    snprintf(why, why_size, "no key \"%.64s\": pwcd --help lists them", name);
    return -ENOENT;
}

/* ---- sources --------------------------------------------------------------------------------- */

struct file_reader {
    struct config *config;
    FILE *file;
    int line;
    char why[256];
    int status;
};

/* Counts lines, since inih tells its handler nothing of them. */
static char *read_line(char *to, int room, void *context)
{
    struct file_reader *reader = context;
    char *line = fgets(to, room, reader->file);

    if (line)
        reader->line++;
    return line;
}

static int take_value(void *context, const char *section, const char *name, const char *value)
{
    struct file_reader *reader = context;

    if (reader->status == 0) {
        reader->status = *section && strcmp(section, "pwcd") != 0 ? -EINVAL : 0;
        if (reader->status < 0)
            snprintf(reader->why, sizeof(reader->why),
                     "no section [%.64s]: put all keys under [pwcd] or under none", section);
        else
            reader->status = config_set(reader->config, name, value, CONFIG_FILE, reader->why,
                                        sizeof(reader->why));
    }
    return reader->status == 0;
}

int config_load(struct config *config, const char *path, char *why, size_t why_size)
{
    struct file_reader reader = {.config = config, .file = fopen(path, "re")};
    int rc;

    if (!reader.file) {
        rc = -errno;
        snprintf(why, why_size, "config \"%s\": %s", path, strerror(-rc));
        return rc;
    }
    /* The handler's first complaint is at the line that has just been read. */
    int first = 0;
    rc = ini_parse_stream(read_line, &reader, take_value, &reader);
    first = rc > 0 ? rc : reader.line;
    fclose(reader.file);
    if (rc == 0 && reader.status == 0)
        return 0;
    if (rc < 0)
        return -ENOMEM;
    snprintf(why, why_size, "config \"%s\" line %d: %s", path, first,
             reader.why[0] ? reader.why : "give key = value");
    return reader.status < 0 ? reader.status : -EINVAL;
}

int config_environment(struct config *config, char *why, size_t why_size)
{
    for (const struct config_key *key = keys; key->name; key++) {
        const char *value = key->environment ? getenv(key->environment) : NULL;
        char reason[256];
        int rc;

        if (!value)
            continue;
        rc = config_set(config, key->name, value, CONFIG_ENVIRONMENT, reason, sizeof(reason));
        if (rc < 0) {
            snprintf(why, why_size, "environment variable %s: %s", key->environment, reason);
            return rc;
        }
    }
    return 0;
}

/* ---- showing --------------------------------------------------------------------------------- */

void config_text(const struct config *config, const struct config_key *key, char *to, size_t size)
{
    struct config *c = (struct config *)(uintptr_t)config; /* only read */
    size_t length;
    const char *choice;

    switch (key->kind) {
    case CONFIG_STRING:
        snprintf(to, size, "%s", *string_at(c, key) ? *string_at(c, key) : "");
        return;
    case CONFIG_CHOICE:
        choice = choice_at(key->choices, *number_at(c, key), &length);
        snprintf(to, size, "%.*s", (int)length, choice);
        return;
    case CONFIG_NUMBER:
    case CONFIG_BYTES:
        if (*number_at(c, key) == UINT64_MAX)
            snprintf(to, size, "%s", "");
        else
            snprintf(to, size, "%" PRIu64, *number_at(c, key));
        return;
    }
}

void config_help(FILE *to)
{
    for (const struct config_key *key = keys; key->name; key++) {
        char initial[64] = "";

        if (key->kind == CONFIG_CHOICE) {
            size_t length;
            const char *choice = choice_at(key->choices, key->initial, &length);

            snprintf(initial, sizeof(initial), " (%.*s)", (int)length, choice);
        } else if (key->kind != CONFIG_STRING && key->initial != 0 && key->initial != UINT64_MAX) {
            snprintf(initial, sizeof(initial), " (%" PRIu64 ")", key->initial);
        }
        fprintf(to, "  --%s %s%s%s%s\n", key->name, key->help, initial,
                key->environment ? "; environment " : "", key->environment ? key->environment : "");
    }
}
