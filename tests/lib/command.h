/* Runs a program to its end, and keeps what it prints. Thread: one for each command. */
#ifndef PWC_TESTS_LIB_COMMAND_H
#define PWC_TESTS_LIB_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#define COMMAND_TEXT_MAX 65536

struct command {
    pid_t pid;
    int out, err; /* reading ends of its streams; -1: closed */
    int status;   /* as in a shell's $?; -1 when the program was killed at its deadline */
    char out_text[COMMAND_TEXT_MAX];
    char err_text[COMMAND_TEXT_MAX];
};

/* Starts a program; `argv` ends with NULL. `setting`: "NAME=value" for its environment, or NULL. */
struct command *command_start(const char *const *argv, const char *setting);
/* Reads until `text` has arrived on stdout. Returns false if the program ended, or after the
 * deadline. */
bool command_await(struct command *command, const char *text);
/* Waits for the program's end; kills it after the deadline. Returns its status. */
int command_finish(struct command *command);
void command_free(struct command *command);

bool command_said(const struct command *command, const char *text);

#endif
