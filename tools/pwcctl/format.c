/* Formats the values of JSON documents. */
#include "tools/pwcctl/format.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "tools/pwcctl/table.h"

static void scaled(double value, double step, const char *const *units, char *out)
{
    size_t unit = 0;
    while (value >= step && units[unit + 1] != NULL) {
        value /= step;
        unit++;
    }
    snprintf(out, TABLE_CELL_MAX, "%.*f%s", unit == 0 ? 0 : 1, value, units[unit]);
}

static void format_ns(double ns, char *out)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    if (ns < 60e9)
        scaled(ns, 1000, units, out);
    else if (ns < 3600e9)
        snprintf(out, TABLE_CELL_MAX, "%.0fm%02.0fs", (double)(long)(ns / 60e9),
                 (double)((long)(ns / 1e9) % 60));
    else
        snprintf(out, TABLE_CELL_MAX, "%.0fh%02.0fm", (double)(long)(ns / 3600e9),
                 (double)((long)(ns / 60e9) % 60));
}

void format_number(double value, enum field_unit format, char *out)
{
    static const char *const binary[] = {"", "K", "M", "G", "T", "P", NULL};
    static const char *const decimal[] = {"", "k", "M", "G", "T", "P", NULL};
    switch (format) {
    case UNIT_BYTES:
        scaled(value, 1024, binary, out);
        break;
    case UNIT_COUNT:
        if (value < 10000)
            snprintf(out, TABLE_CELL_MAX, "%.0f", value);
        else
            scaled(value, 1000, decimal, out);
        break;
    case UNIT_NS:
        format_ns(value, out);
        break;
    case UNIT_SECOND:
        format_ns(value * 1e9, out);
        break;
    case UNIT_PERCENT:
        snprintf(out, TABLE_CELL_MAX, "%.1f%%", value);
        break;
    case UNIT_RANKS:
        snprintf(out, TABLE_CELL_MAX, value == UINT32_MAX ? "open" : "%.0f", value);
        break;
    case UNIT_NONE:
        snprintf(out, TABLE_CELL_MAX, "%g", value);
        break;
    }
}

/* A text that was cut ends with a mark. */
static void format_text(const char *text, char *out)
{
    if (snprintf(out, TABLE_CELL_MAX, "%s", text) >= (int)TABLE_CELL_MAX)
        strcpy(out + TABLE_CELL_MAX - 4, "...");
}

void format_cell(const json_t *value, enum field_unit format, char *out)
{
    if (json_is_string(value))
        format_text(json_string_value(value), out);
    else if (json_is_boolean(value))
        snprintf(out, TABLE_CELL_MAX, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_integer(value) && format == UNIT_NONE)
        snprintf(out, TABLE_CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_number(value))
        format_number(json_number_value(value), format, out);
    else
        snprintf(out, TABLE_CELL_MAX, "-");
}
