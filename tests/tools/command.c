/* Starts programs under a deadline, through pipes. */
#include "tests/tools/command.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#define DEADLINE_MS 30000

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct command *command_start(const char *const *argv, const char *setting)
{
    int out[2], err[2];
    struct command *command = calloc(1, sizeof(*command));
    if (command == NULL || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        abort();
    command->pid = fork();
    if (command->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        if (setting != NULL)
            putenv((char *)setting);
        execvp(argv[0], (char *const *)argv);
        perror(argv[0]);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    command->out = out[0];
    command->err = err[0];
    return command;
}

/* Appends what can be read; closes at the end of the stream. */
static void take(int *from, char *text)
{
    size_t used = strlen(text);
    ssize_t got = read(*from, text + used, COMMAND_TEXT_MAX - 1 - used);
    if (got > 0) {
        text[used + (size_t)got] = '\0';
        return;
    }
    if (got < 0 && errno == EINTR)
        return;
    close(*from);
    *from = -1;
}

/* False when both streams are closed, or at the deadline. */
static bool take_some(struct command *command, long deadline)
{
    struct pollfd polled[2] = {{.fd = command->out, .events = POLLIN},
                               {.fd = command->err, .events = POLLIN}};
    long left = deadline - now_ms();
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
    long deadline = now_ms() + DEADLINE_MS;
    while (strstr(command->out_text, text) == NULL)
        if (!take_some(command, deadline))
            return strstr(command->out_text, text) != NULL;
    return true;
}

int command_finish(struct command *command)
{
    long deadline = now_ms() + DEADLINE_MS;
    while (take_some(command, deadline))
        ;
    int status;
    if (command->out >= 0 || command->err >= 0) {
        kill(command->pid, SIGKILL);
        waitpid(command->pid, &status, 0);
        command->status = -1;
    } else {
        waitpid(command->pid, &status, 0);
        command->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
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
