/* Writes metrics (openmetrics.h). */
#include "tools/pwc-exporter/openmetrics.h"

#include <inttypes.h>
#include <string.h>

/* Escapes bytes that are no printable ASCII: a text that a stranger chose cannot break the format.
 */
static void put_value(FILE *to, const char *value)
{
    for (const char *c = value; *c; c++) {
        if (*c == '\n')
            fputs("\\n", to);
        else if (*c < ' ' || *c > '~')
            fprintf(to, "\\\\x%02x", (unsigned)(unsigned char)*c);
        else
            fprintf(to, *c == '\\' || *c == '"' ? "\\%c" : "%c", *c);
    }
}

static void put_labels(FILE *to, const struct openmetrics_label *labels, const char *bound)
{
    const char *separator = "{";

    for (; labels && labels->name; labels++) {
        fprintf(to, "%s%s=\"", separator, labels->name);
        put_value(to, labels->value);
        fputs("\"", to);
        separator = ",";
    }
    if (bound)
        fprintf(to, "%sle=\"%s\"", separator, bound);
    if (bound || *separator == ',')
        fputs("}", to);
}

static void put_sample(FILE *to, const struct openmetrics_family *family, const char *suffix,
                       const struct openmetrics_label *labels, const char *bound, const char *value)
{
    fprintf(to, "%s%s", family->name, suffix);
    put_labels(to, labels, bound);
    fprintf(to, " %s\n", value);
}

static const char *suffix_of(enum openmetrics_type type)
{
    return type == OPENMETRICS_COUNTER ? "_total" : type == OPENMETRICS_INFO ? "_info" : "";
}

static const char *number_text(uint64_t value, char text[32])
{
    snprintf(text, 32, "%" PRIu64, value);
    return text;
}

static const char *seconds_text(uint64_t ns, char text[32])
{
    size_t length =
        (size_t)snprintf(text, 32, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);

    while (text[length - 1] == '0' && text[length - 2] != '.')
        text[--length] = '\0';
    return text;
}

void openmetrics_family(const struct openmetrics *to, const struct openmetrics_family *family)
{
    static const char *const types[] = {"unknown", "gauge", "counter", "info", "histogram"};
    const char *suffix = to->plain ? suffix_of(family->type) : "";
    const char *type =
        to->plain && family->type == OPENMETRICS_INFO ? "gauge" : types[family->type];

    fprintf(to->to, "# TYPE %s%s %s\n", family->name, suffix, type);
    if (family->unit && !to->plain)
        fprintf(to->to, "# UNIT %s %s\n", family->name, family->unit);
    fprintf(to->to, "# HELP %s%s %s\n", family->name, suffix, family->help);
}

void openmetrics_sample(const struct openmetrics *to, const struct openmetrics_family *family,
                        const struct openmetrics_label *labels, uint64_t value)
{
    bool seconds = family->unit && strcmp(family->unit, "seconds") == 0;
    char text[32];

    put_sample(to->to, family, suffix_of(family->type), labels, NULL,
               seconds ? seconds_text(value, text) : number_text(value, text));
}

void openmetrics_bucket(const struct openmetrics *to, const struct openmetrics_family *family,
                        const struct openmetrics_label *labels, uint64_t ns, uint64_t count)
{
    char bound[32], text[32];

    put_sample(to->to, family, "_bucket", labels,
               ns == UINT64_MAX ? "+Inf" : seconds_text(ns, bound), number_text(count, text));
}

void openmetrics_sum(const struct openmetrics *to, const struct openmetrics_family *family,
                     const struct openmetrics_label *labels, uint64_t sum_ns, uint64_t count)
{
    char text[32];

    put_sample(to->to, family, "_sum", labels, NULL, seconds_text(sum_ns, text));
    put_sample(to->to, family, "_count", labels, NULL, number_text(count, text));
}

void openmetrics_end(const struct openmetrics *to)
{
    if (!to->plain)
        fputs("# EOF\n", to->to);
}
