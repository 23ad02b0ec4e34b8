/*
 * The command line of a tool as a table: getopt's options, the page of --help and the checks of
 * values come from its rows. Each tool also has --help and --version.
 *
 * Thread: main's.
 */
#ifndef PWC_TOOLS_ARGUMENTS_H
#define PWC_TOOLS_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

enum argument_kind {
    ARGUMENT_PLAIN = 0, /* const char *; for an argument without a value, bool */
    ARGUMENT_U32,       /* uint32_t, from `min` to `max` */
    ARGUMENT_U64,
    ARGUMENT_SECONDS, /* double; `min` and `max` are milliseconds */
    ARGUMENT_TAKE,    /* `take` reads the value: 0, or -EINVAL after a message on stderr */
};

struct argument {
    const char *name; /* without dashes; NULL: the end of the table */
    const char
        *takes; /* as --help shows the value: "N"; "[=N]": 1 if left out; NULL: there is none */
    const char *help; /* lines */
    size_t offset;    /* in the tool's options */
    enum argument_kind kind;
    uint64_t min, max;
    char letter; /* the letter of the short form, or 0 */
    int (*take)(void *options, const char *text);
};

struct command_line {
    const char *tool, *usage; /* usage: after the tool's name */
    const char *about, *end;  /* help before and after the rows; `end` may be NULL */
    const char *letters;      /* "+": options end at the first other word; else "" */
    const struct argument *rows;
};

/* Fills `options`. 0: argv[optind] is the first word that is no option; 1: help or the version was
 * printed; -EINVAL: the command line is wrong, and stderr has the reason. */
int arguments_parse(const struct command_line *line, void *options, int argc, char **argv);

/* Prints on stderr what is wrong and where to find help. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int arguments_refuse(const char *tool, const char *format,
                                                           ...);

#endif
