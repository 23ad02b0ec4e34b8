/* Starts ranks, each with the variables that libpwc reads. */
#include "tools/pwcrun/rank.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/pwcrun/child.h"

#define OWN_VARIABLES 6u
#define VARIABLE_MAX  160u

extern char **environ;

struct environment {
    char text[OWN_VARIABLES][VARIABLE_MAX];
    char **list; /* ours, then what we inherited but for PWC_* */
};

static int environment_make(struct environment *out, unsigned number, const struct node *node,
                            const char *job, const struct options *options)
{
    size_t inherited = 0, count = 0;
    while (environ[inherited] != NULL)
        inherited++;
    out->list = calloc(inherited + OWN_VARIABLES + 1, sizeof(*out->list));
    if (out->list == NULL)
        return -ENOMEM;
    snprintf(out->text[0], VARIABLE_MAX, "PWC_SOCKET=%s", node->socket);
    snprintf(out->text[1], VARIABLE_MAX, "PWC_JOB=%s", job);
    snprintf(out->text[2], VARIABLE_MAX, "PWC_RANK=%u", number);
    snprintf(out->text[3], VARIABLE_MAX, "PWC_SIZE=%u", options->ranks);
    snprintf(out->text[4], VARIABLE_MAX, "PWC_NODE=%u", node->number);
    snprintf(out->text[5], VARIABLE_MAX, "PWC_NODES=%u", options->nodes);
    for (size_t i = 0; i < OWN_VARIABLES; i++)
        out->list[count++] = out->text[i];
    for (size_t i = 0; i < inherited; i++)
        if (strncmp(environ[i], "PWC_", 4) != 0)
            out->list[count++] = environ[i];
    return 0;
}

static void close_end(int fd)
{
    if (fd >= 0)
        close(fd);
}

int rank_start(struct rank *rank, unsigned number, const struct node *node, const char *job,
               const struct options *options, const struct reaper *reaper)
{
    *rank = (struct rank){.number = number, .out.from = -1, .err.from = -1};
    struct environment environment;
    int rc = environment_make(&environment, number, node, job, options);
    if (rc < 0)
        return rc;

    int out = -1, err = -1;
    if (options->label) {
        char label[24];
        snprintf(label, sizeof(label), "[%u] ", number);
        rc = output_open(&rank->out, STDOUT_FILENO, label, &out);
        if (rc == 0)
            rc = output_open(&rank->err, STDERR_FILENO, label, &err);
    }
    if (rc == 0) {
        struct child_spec spec = {
            .argv = options->program,
            .envp = environment.list,
            .netns = node->netns[0] != '\0' ? node->netns : NULL,
            .processors = node->bound ? &node->processors : NULL,
            .out = out,
            .err = err,
            .extra = -1,
            .reaper = reaper,
        };
        rc = child_start(&spec, &rank->pid);
    }
    close_end(out);
    close_end(err);
    free(environment.list);
    return rc;
}
