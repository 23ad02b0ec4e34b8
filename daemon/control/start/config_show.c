/* Shows keys, values and their sources (config.h). Thread: any, once they are read. */
#include "daemon/control/start/config.h"

#include <inttypes.h>
#include <string.h>

void config_amount(const struct config_key *key, uint64_t number, char *to, size_t size)
{
    char letter[2] = "";
    unsigned unit = 0;

    while (key->kind == CONFIG_BYTES && number > 0 && number % 1024 == 0 && CONFIG_UNITS[unit]) {
        number /= 1024;
        unit++;
    }
    letter[0] = unit > 0 ? CONFIG_UNITS[unit - 1] : '\0';
    snprintf(to, size, "%" PRIu64 "%s", number, letter);
}

static const char *choice_at(const char *choices, uint64_t index, size_t *length)
{
    const char *at = choices;

    for (; index > 0; index--)
        at = strchr(at, '|') + 1;
    *length = strcspn(at, "|");
    return at;
}

const char *config_string(const struct config *config, const struct config_key *key)
{
    return *(char *const *)((const char *)config + key->offset);
}

uint64_t config_number(const struct config *config, const struct config_key *key)
{
    return *(const uint64_t *)((const char *)config + key->offset);
}

uint64_t config_keepalive_ms(const struct config *config)
{
    uint64_t most = config->peer_deadline_ms / 5;

    return config->keepalive_ms < most ? config->keepalive_ms : most;
}

void config_text(const struct config *config, const struct config_key *key, char *to, size_t size)
{
    size_t length;
    const char *text;

    switch (key->kind) {
    case CONFIG_STRING:
        text = config_string(config, key);
        snprintf(to, size, "%s", text ? text : "");
        return;
    case CONFIG_CHOICE:
        text = choice_at(key->choices, config_number(config, key), &length);
        snprintf(to, size, "%.*s", (int)length, text);
        return;
    case CONFIG_NUMBER:
    case CONFIG_BYTES:
        if (config_number(config, key) == UINT64_MAX)
            *to = '\0';
        else
            config_amount(key, config_number(config, key), to, size);
        return;
    }
}

const char *config_source(const struct config *config, const struct config_key *key)
{
    static const char *const names[] = {"default", "file", "environment", "flag"};

    return names[config->origins[key - config_keys()].source];
}

void config_place(const struct config *config, const struct config_key *key, char *to, size_t size)
{
    const struct config_origin *origin = &config->origins[key - config_keys()];

    *to = '\0';
    if (origin->source == CONFIG_FILE)
        snprintf(to, size, "%s:%u", config->file ? config->file : "", (unsigned)origin->line);
    else if (origin->source == CONFIG_ENVIRONMENT)
        snprintf(to, size, "%s", key->environment);
    else if (origin->source == CONFIG_FLAG)
        snprintf(to, size, "--%s", key->name);
}

/* The range or the choices of a key, and its default. */
static void bounds_text(const struct config_key *key, char *to, size_t size)
{
    char least[32], most[32], initial[32];
    size_t length;

    if (key->kind == CONFIG_CHOICE) {
        const char *choice = choice_at(key->choices, key->initial, &length);

        snprintf(to, size, "One of %s; default %.*s", key->choices, (int)length, choice);
        return;
    }
    config_amount(key, key->min, least, sizeof(least));
    config_amount(key, key->max, most, sizeof(most));
    config_amount(key, key->initial, initial, sizeof(initial));
    if (key->initial == UINT64_MAX)
        snprintf(to, size, "%s to %s; default: %s", least, most, key->unset);
    else
        snprintf(to, size, "%s to %s; default %s%s%s", least, most, initial, key->zero ? ": " : "",
                 key->zero ? key->zero : "");
}

void config_facts(const struct config_key *key, char *to, size_t size)
{
    char bounds[256];

    if (key->kind != CONFIG_STRING)
        bounds_text(key, bounds, sizeof(bounds));
    else if (key->unset)
        snprintf(bounds, sizeof(bounds), "Default: %s", key->unset);
    else
        snprintf(bounds, sizeof(bounds), "No default");
    snprintf(to, size, "%s%s%s", bounds, key->environment ? "; environment " : "",
             key->environment ? key->environment : "");
}

/* Prints text in lines of 80, indented. */
static void print_wrapped(FILE *to, const char *text)
{
    enum { LEFT = 6, RIGHT = 80 };
    int column = 0;

    while (*text) {
        int length = (int)strcspn(text, " ");

        if (column == 0 || column + 1 + length > RIGHT)
            column = fprintf(to, "%s%*s", column > 0 ? "\n" : "", LEFT, "") - (column > 0);
        else
            column += fprintf(to, " ");
        column += fprintf(to, "%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    fprintf(to, "\n");
}

void config_help(FILE *to)
{
    for (const struct config_key *key = config_keys(); key->name; key++) {
        const char *what = key->kind == CONFIG_CHOICE  ? key->choices
                           : key->kind == CONFIG_BYTES ? "BYTES"
                           : key->what                 ? key->what
                                                       : "N";
        char facts[384], text[1024];

        config_facts(key, facts, sizeof(facts));
        snprintf(text, sizeof(text), "%s. %s.", key->help, facts);
        fprintf(to, "  --%s %s\n", key->name, what);
        print_wrapped(to, text);
    }
}
