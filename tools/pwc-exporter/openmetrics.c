/* Owns how metrics are written (openmetrics.h). */
#include "tools/pwc-exporter/openmetrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024, ROOM_FIRST = 16384 };

static bool make_room(struct openmetrics *to, size_t more)
{
    size_t room = to->room ? to->room : ROOM_FIRST;
    char *text;

    if (to->failed)
        return false;
    while (room - to->length < more)
        room *= 2;
    if (room == to->room)
        return true;
    text = realloc(to->text, room);
    to->failed = text == NULL;
    if (text) {
        to->text = text;
        to->room = room;
    }
    return text != NULL;
}

static void add(struct openmetrics *to, const char *bytes, size_t length)
{
    if (!make_room(to, length + 1))
        return;
    memcpy(to->text + to->length, bytes, length);
    to->length += length;
    to->text[to->length] = '\0';
}

static void add_text(struct openmetrics *to, const char *text)
{
    add(to, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void add_format(struct openmetrics *to,
                                                             const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    add_text(to, line);
}

/* What is no printable ASCII is spelled out: whoever chose the text cannot break the format. */
static void add_value(struct openmetrics *to, const char *value)
{
    for (const char *c = value; *c; c++) {
        if (*c == '\\' || *c == '"')
            add_format(to, "\\%c", *c);
        else if (*c == '\n')
            add_text(to, "\\n");
        else if (*c < ' ' || *c > '~')
            add_format(to, "\\\\x%02x", (unsigned)(unsigned char)*c);
        else
            add(to, c, 1);
    }
}

static void add_labels(struct openmetrics *to, const struct openmetrics_label *labels,
                       const char *bound)
{
    const char *separator = "{";

    for (; labels && labels->name; labels++) {
        add_format(to, "%s%s=\"", separator, labels->name);
        add_value(to, labels->value);
        add_text(to, "\"");
        separator = ",";
    }
    if (bound)
        add_format(to, "%sle=\"%s\"", separator, bound);
    if (bound || *separator == ',')
        add_text(to, "}");
}

static const char *suffix_of(enum openmetrics_type type)
{
    return type == OPENMETRICS_COUNTER ? "_total" : type == OPENMETRICS_INFO ? "_info" : "";
}

void openmetrics_family(struct openmetrics *to, const struct openmetrics_family *family)
{
    static const char *const types[] = {"unknown", "gauge", "counter", "info", "histogram"};
    const char *suffix = to->plain ? suffix_of(family->type) : "";
    const char *type =
        to->plain && family->type == OPENMETRICS_INFO ? "gauge" : types[family->type];

    add_format(to, "# TYPE %s%s %s\n", family->name, suffix, type);
    if (family->unit && !to->plain)
        add_format(to, "# UNIT %s %s\n", family->name, family->unit);
    add_format(to, "# HELP %s%s %s\n", family->name, suffix, family->help);
}

static void begin_sample(struct openmetrics *to, const struct openmetrics_family *family,
                         const struct openmetrics_label *labels)
{
    add_text(to, family->name);
    add_text(to, suffix_of(family->type));
    add_labels(to, labels, NULL);
}

static void seconds_text(uint64_t ns, char text[32])
{
    size_t length =
        (size_t)snprintf(text, 32, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);

    while (text[length - 1] == '0' && text[length - 2] != '.')
        text[--length] = '\0';
}

void openmetrics_sample(struct openmetrics *to, const struct openmetrics_family *family,
                        const struct openmetrics_label *labels, uint64_t value)
{
    begin_sample(to, family, labels);
    add_format(to, " %" PRIu64 "\n", value);
}

void openmetrics_seconds(struct openmetrics *to, const struct openmetrics_family *family,
                         const struct openmetrics_label *labels, uint64_t ns)
{
    char seconds[32];

    seconds_text(ns, seconds);
    begin_sample(to, family, labels);
    add_format(to, " %s\n", seconds);
}

void openmetrics_histogram(struct openmetrics *to, const struct openmetrics_family *family,
                           const struct openmetrics_label *labels,
                           const struct openmetrics_buckets *buckets)
{
    uint64_t total = 0;
    char seconds[32];

    for (size_t i = 0; i <= buckets->bounds; i++) {
        if (i < buckets->bounds)
            seconds_text(buckets->bounds_ns[i], seconds);
        total += buckets->counts[i];
        add_format(to, "%s_bucket", family->name);
        add_labels(to, labels, i < buckets->bounds ? seconds : "+Inf");
        add_format(to, " %" PRIu64 "\n", total);
    }
    seconds_text(buckets->sum_ns, seconds);
    add_format(to, "%s_sum", family->name);
    add_labels(to, labels, NULL);
    add_format(to, " %s\n%s_count", seconds, family->name);
    add_labels(to, labels, NULL);
    add_format(to, " %" PRIu64 "\n", total);
}

void openmetrics_end(struct openmetrics *to)
{
    if (!to->plain)
        add_text(to, "# EOF\n");
}
