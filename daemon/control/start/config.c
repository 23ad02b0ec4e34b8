/* Reads values from their sources, checks and shows them (config.h). Thread: main. */
#include "daemon/control/start/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/start/nearest.h"

static uint64_t *number_at(struct config *config, const struct config_key *key)
{
    return (uint64_t *)((char *)config + key->offset);
}

static char **string_at(struct config *config, const struct config_key *key)
{
    return (char **)((char *)config + key->offset);
}

static struct config_origin *origin_of(struct config *config, const struct config_key *key)
{
    return &config->origins[key - config_keys()];
}

void config_init(struct config *config)
{
    *config = (struct config){.port_held = -1};
    for (const struct config_key *key = config_keys(); key->name; key++)
        if (key->kind != CONFIG_STRING)
            *number_at(config, key) = key->initial;
}

void config_free(struct config *config)
{
    for (const struct config_key *key = config_keys(); key->name; key++)
        if (key->kind == CONFIG_STRING)
            free(*string_at(config, key));
    free(config->file);
    if (config->port_held >= 0)
        close(config->port_held);
    config_init(config);
}

/* ---- values ---------------------------------------------------------------------------------- */

static const char units[] = CONFIG_UNITS;

static int parse_number(const struct config_key *key, const char *value, uint64_t *out, char *why,
                        size_t why_size)
{
    unsigned shift = 0;
    char *end;

    errno = 0;
    *out = strtoull(value, &end, 10);
    if (key->kind == CONFIG_BYTES && *end) {
        const char *unit = strchr(units, toupper((unsigned char)*end));

        if (unit) {
            shift = 10u * (unsigned)(unit - units + 1);
            end++;
        }
    }
    if (!isdigit((unsigned char)*value) || *end || errno || *out > (UINT64_MAX >> shift) ||
        *out << shift < key->min || *out << shift > key->max) {
        char least[32], most[32];

        config_amount(key, key->min, least, sizeof(least));
        config_amount(key, key->max, most, sizeof(most));
        snprintf(why, why_size, "%s \"%.64s\": give a number from %s to %s%s", key->name, value,
                 least, most, key->kind == CONFIG_BYTES ? ", with K, M, G or T if you like" : "");
        return -EINVAL;
    }
    *out <<= shift;
    return 0;
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
        if (*value == '\0' || strlen(value) >= CONFIG_TEXT_MAX * 256) {
            snprintf(why, why_size, "%s is empty or too long: give a value or leave it out",
                     key->name);
            return -EINVAL;
        }
        rc = key->check ? key->check(value, why, why_size) : 0;
        if (rc < 0 || !keep)
            return rc;
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

static int unknown(const char *name, char *why, size_t why_size)
{
    const char *nearest = NULL;
    unsigned distance = 0;

    for (const struct config_key *key = config_keys(); key->name; key++)
        nearest_try(name, key->name, &nearest, &distance);
    if (strcmp(name, "metrics") == 0 || strcmp(name, "metrics-clients") == 0)
        snprintf(why, why_size,
                 "no key \"%s\" any more: leave it out, and have pwc-exporter(8) serve metrics",
                 name);
    else if (nearest)
        snprintf(why, why_size, "no key \"%.64s\": did you mean %s?", name, nearest);
    else
        snprintf(why, why_size, "no key \"%.64s\": pwcd --help lists them", name);
    return -ENOENT;
}

static const struct config_key *find(const char *name)
{
    const struct config_key *key = config_keys();

    while (key->name && strcmp(key->name, name) != 0)
        key++;
    return key->name ? key : NULL;
}

int config_set(struct config *config, const char *name, const char *value,
               enum config_source source, char *why, size_t why_size)
{
    const struct config_key *key = find(name);
    struct config_origin *origin;
    int rc;

    if (!key)
        return unknown(name, why, why_size);
    origin = origin_of(config, key);
    rc = store(config, key, value, source >= origin->source, why, why_size);
    if (rc == 0 && source >= origin->source)
        origin->source = source;
    return rc;
}

/* ---- sources --------------------------------------------------------------------------------- */

struct file_reader {
    struct config *config;
    FILE *file;
    uint32_t line;
    char why[384];
    int status;
};

/* Counts lines, which inih does not report to its handler, and refuses lines that inih would cut.
 */
static char *read_line(char *to, int room, void *context)
{
    struct file_reader *reader = context;
    char *line = reader->status == 0 ? fgets(to, room, reader->file) : NULL;

    if (!line)
        return NULL;
    reader->line++;
    if (strlen(line) + 1 < (size_t)room || line[strlen(line) - 1] == '\n')
        return line;
    snprintf(reader->why, sizeof(reader->why),
             "a line may have %d letters: a long list of nodes goes into nodes-file", room - 2);
    reader->status = -E2BIG;
    return NULL;
}

/* Refuses a key that was given before in the file. This also refuses a line that continues the line
 * before it, which inih reports as the same key again. */
static int take_key(struct file_reader *reader, const char *name, const char *value)
{
    const struct config_key *key = find(name);
    struct config_origin *origin = key ? origin_of(reader->config, key) : NULL;
    int rc = -EINVAL;

    if (origin && origin->line > 0)
        snprintf(reader->why, sizeof(reader->why), "%s stands in line %u already: give it once",
                 name, (unsigned)origin->line);
    else if (strstr(value, " #"))
        snprintf(reader->why, sizeof(reader->why),
                 "%s \"%.64s\": # begins a comment at the start of a line only; behind a value it "
                 "is a blank and ;",
                 name, value);
    else
        rc = config_set(reader->config, name, value, CONFIG_FILE, reader->why, sizeof(reader->why));
    if (rc == 0)
        origin->line = reader->line;
    return rc;
}

/* After the first error read_line returns no more lines, and inih no more values. */
static int take_value(void *context, const char *section, const char *name, const char *value)
{
    struct file_reader *reader = context;

    if (*section && strcmp(section, "pwcd") != 0) {
        reader->status = -EINVAL;
        snprintf(reader->why, sizeof(reader->why), "no section [%.64s]: put all keys under [pwcd]",
                 section);
    } else {
        reader->status = take_key(reader, name, value);
    }
    return reader->status == 0;
}

const char *config_default_file(void)
{
    return PWC_SYSCONFDIR "/pwcd/pwcd.conf";
}

int config_load(struct config *config, const char *path, char *why, size_t why_size)
{
    struct file_reader reader = {.config = config, .file = fopen(path, "re")};
    int rc;

    config->file = strdup(path);
    if (!reader.file) {
        rc = -errno;
        snprintf(why, why_size, "config \"%s\": %s", path, strerror(-rc));
        return rc;
    }
    rc = ini_parse_stream(read_line, &reader, take_value, &reader);
    if (ferror(reader.file))
        reader.status = -EIO;
    fclose(reader.file);
    if (reader.status == -EIO) {
        snprintf(why, why_size, "config \"%s\" cannot be read: name a regular file", path);
        return -EIO;
    }
    if (rc < 0 || !config->file) {
        snprintf(why, why_size, "config \"%s\": %s", path, strerror(ENOMEM));
        return -ENOMEM;
    }
    if (rc == 0 && reader.status == 0)
        return 0;
    /* Where inih cannot parse a line, `rc` is its number; else the error is in the line that was
     * read last. */
    snprintf(why, why_size, "config \"%s\" line %d: %s", path, rc > 0 ? rc : (int)reader.line,
             reader.why[0] ? reader.why : "give key = value");
    return reader.status < 0 ? reader.status : -EINVAL;
}

int config_environment(struct config *config, char *why, size_t why_size)
{
    for (const struct config_key *key = config_keys(); key->name; key++) {
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

enum config_source config_source_of(const struct config *config, const char *name)
{
    const struct config_key *key = find(name);

    return key ? config->origins[key - config_keys()].source : CONFIG_DEFAULT;
}
