/* Makes getopt's options, help and values from a table of arguments (arguments.h). */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "tools/arguments.h"

enum { ROWS_MAX = 32, NAME_ROOM = 64, OPTION_HELP = 256, OPTION_VERSION, OPTION_ROWS };

int arguments_refuse(const char *tool, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: ", tool);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; see %s --help\n", tool);
    return -EINVAL;
}

/* Formats the option as --help prints it: "-n, --ranks N". Returns its length. */
static int name_of(const struct argument *a, char out[NAME_ROOM])
{
    const char letter[] = {'-', a->letter, ',', ' ', '\0'};

    return snprintf(out, NAME_ROOM, "%s--%s%s%s", a->letter ? letter : "", a->name,
                    a->takes && *a->takes != '[' ? " " : "", a->takes ? a->takes : "");
}

static void print_help(const struct command_line *line)
{
    char name[NAME_ROOM];
    int width = 0;

    printf("usage: %s %s\n\n%s\n", line->tool, line->usage, line->about);
    for (const struct argument *a = line->rows; a->name; a++)
        width = name_of(a, name) > width ? name_of(a, name) : width;
    for (const struct argument *a = line->rows; a->name; a++) {
        (void)name_of(a, name);
        printf("  %-*s  ", width, name);
        for (const char *c = a->help; *c; c++) {
            putchar(*c);
            if (*c == '\n')
                printf("%*s", width + 4, "");
        }
        putchar('\n');
    }
    printf("  --help, --version\n%s", line->end ? line->end : "");
}

static int take_number(const char *tool, const struct argument *a, const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && *out >= a->min &&
        *out <= a->max)
        return 0;
    return arguments_refuse(tool, "--%s \"%s\": give a number from %llu to %llu", a->name, text,
                            (unsigned long long)a->min, (unsigned long long)a->max);
}

static int take_seconds(const char *tool, const struct argument *a, const char *text, double *out)
{
    double least = (double)a->min / 1000, most = (double)a->max / 1000;
    char *end;

    *out = strtod(text, &end);
    if (end != text && *end == '\0' && *out >= least && *out <= most)
        return 0;
    return arguments_refuse(tool, "--%s \"%s\": give seconds from %g to %g", a->name, text, least,
                            most);
}

static int take(const char *tool, const struct argument *a, void *options, const char *text)
{
    void *to = (char *)options + a->offset;
    uint64_t number;
    int rc = 0;

    switch (a->kind) {
    case ARGUMENT_PLAIN:
        if (a->takes)
            *(const char **)to = text;
        else
            *(bool *)to = true;
        break;
    case ARGUMENT_U32:
        rc = take_number(tool, a, text, &number);
        *(uint32_t *)to = (uint32_t)number;
        break;
    case ARGUMENT_U64:
        rc = take_number(tool, a, text, to);
        break;
    case ARGUMENT_SECONDS:
        rc = take_seconds(tool, a, text, to);
        break;
    case ARGUMENT_TAKE:
        rc = a->take(options, text);
        break;
    }
    return rc;
}

/* The value of an option that may have none: "--watch 2" as well as "--watch=2"; the next word
 * counts only if it is a number. */
static const char *optional_value(int argc, char **argv)
{
    if (optarg)
        return optarg;
    return optind < argc && argv[optind][0] >= '0' && argv[optind][0] <= '9' ? argv[optind++] : "1";
}

static int apply(const struct command_line *line, void *options, int option, int argc, char **argv)
{
    const struct argument *a = line->rows;

    if (option == '?') { /* getopt has printed what is wrong */
        fprintf(stderr, "see %s --help\n", line->tool);
        return -EINVAL;
    }
    if (option == OPTION_HELP)
        print_help(line);
    else if (option == OPTION_VERSION)
        printf("%s %s\n", line->tool, PWC_VERSION);
    if (option == OPTION_HELP || option == OPTION_VERSION)
        return 1;
    for (int i = OPTION_ROWS; option != i && option != a->letter; i++)
        a++;
    return take(line->tool, a, options,
                a->takes && *a->takes == '[' ? optional_value(argc, argv) : optarg);
}

int arguments_parse(const struct command_line *line, void *options, int argc, char **argv)
{
    struct option list[ROWS_MAX + 3] = {{"help", no_argument, NULL, OPTION_HELP},
                                        {"version", no_argument, NULL, OPTION_VERSION}};
    char letters[2 * ROWS_MAX + 4];
    size_t used = (size_t)snprintf(letters, sizeof(letters), "%s", line->letters);
    int rc = 0, option;

    for (int i = 0; line->rows[i].name && i < ROWS_MAX; i++) {
        const struct argument *a = &line->rows[i];

        list[2 + i].name = a->name;
        list[2 + i].val = a->letter ? a->letter : OPTION_ROWS + i;
        list[2 + i].has_arg = !a->takes          ? no_argument
                              : *a->takes == '[' ? optional_argument
                                                 : required_argument;
        if (a->letter)
            used += (size_t)snprintf(letters + used, sizeof(letters) - used, "%c%s", a->letter,
                                     a->takes ? ":" : "");
    }
    while (rc == 0 && (option = getopt_long(argc, argv, letters, list, NULL)) != -1)
        rc = apply(line, options, option, argc, argv);
    return rc;
}
