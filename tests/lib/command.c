/* Runs programs under a deadline, and reads their pipes (command.h). Thread: one for each command.
 */
#include "tests/lib/command.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/program.h"
#include "proto/clock.h"

#define DEADLINE_MS 30000

struct command *command_start(const char *const *argv, const char *setting)
{
    const struct program_options options = {.setting = setting,
                                            .streams = 1u << PROGRAM_OUT | 1u << PROGRAM_ERR};
    struct command *command = calloc(1, sizeof(*command));
    int from[PROGRAM_STREAMS];

    if (command == NULL)
        abort();
    command->pid = program_start(argv, &options, from);
    if (command->pid < 0)
        abort();
    command->out = from[PROGRAM_OUT];
    command->err = from[PROGRAM_ERR];
    return command;
}

/* Appends what can be read from a stream, as far as there is room; closes it at its end. */
static void take(int *from, char *text)
{
    char piece[4096];
    size_t used = strlen(text), room = COMMAND_TEXT_MAX - 1 - used;
    ssize_t got = read(*from, piece, sizeof(piece));
    if (got > 0) {
        size_t kept = (size_t)got < room ? (size_t)got : room;
        memcpy(text + used, piece, kept);
        text[used + kept] = '\0';
        return;
    }
    if (got < 0 && errno == EINTR)
        return;
    close(*from);
    *from = -1;
}

/* Reads from both streams. Returns false when both are closed, or at the deadline. */
static bool take_some(struct command *command, int64_t deadline)
{
    struct pollfd polled[2] = {{.fd = command->out, .events = POLLIN},
                               {.fd = command->err, .events = POLLIN}};
    int64_t left = deadline - now_ms();
    if ((command->out < 0 && command->err < 0) || left <= 0)
        return false;
    poll(polled, 2, (int)left);
    if (polled[0].revents != 0)
        take(&command->out, command->out_text);
    if (polled[1].revents != 0)
        take(&command->err, command->err_text);
    return true;
}

bool command_await(struct command *command, const char *text)
{
    int64_t deadline = now_ms() + DEADLINE_MS;
    while (strstr(command->out_text, text) == NULL)
        if (!take_some(command, deadline))
            return strstr(command->out_text, text) != NULL;
    return true;
}

int command_finish(struct command *command)
{
    int64_t deadline = now_ms() + DEADLINE_MS;
    while (take_some(command, deadline))
        ;
    bool late = command->out >= 0 || command->err >= 0;
    int status = program_reap(command->pid, late ? 0 : DEADLINE_MS);

    command->status = late                  ? -1
                      : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                            : WEXITSTATUS(status);
    return command->status;
}

void command_free(struct command *command)
{
    if (command->out >= 0)
        close(command->out);
    if (command->err >= 0)
        close(command->err);
    free(command);
}

bool command_said(const struct command *command, const char *text)
{
    return strstr(command->err_text, text) != NULL;
}
