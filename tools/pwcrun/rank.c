/*
 * Owns the environment of a rank while the rank is started: the variables that libpwc reads. For a
 * launcher (--hold) these are the variables that pwcrun --place reads. Thread: main's.
 */
#include "tools/pwcrun/rank.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/pwcrun/child.h"

#define OWN_VARIABLES 6u
#define VARIABLE_MAX  160u
#define OURS          "PWC_" /* no variable that begins so is inherited */

extern char **environ;

struct environment {
    char text[OWN_VARIABLES][VARIABLE_MAX];
    char **list; /* the inherited variables except for PWC_*, then ours */
};

/* Makes the list, with room for our variables after the inherited ones. Returns where they go. */
static char **environment_inherit(struct environment *out)
{
    size_t inherited = 0, count = 0;
    while (environ[inherited] != NULL)
        inherited++;
    out->list = calloc(inherited + OWN_VARIABLES + 1, sizeof(*out->list));
    if (out->list == NULL)
        return NULL;
    for (size_t i = 0; i < inherited; i++)
        if (strncmp(environ[i], OURS, strlen(OURS)) != 0)
            out->list[count++] = environ[i];
    return out->list + count;
}

static int environment_of_rank(struct environment *out, unsigned number, const struct node *node,
                               const char *job, const struct options *options)
{
    char **own = environment_inherit(out);
    if (own == NULL)
        return -ENOMEM;
    snprintf(out->text[0], VARIABLE_MAX, "PWC_SOCKET=%s", node->socket);
    snprintf(out->text[1], VARIABLE_MAX, "PWC_JOB=%s", job);
    snprintf(out->text[2], VARIABLE_MAX, "PWC_RANK=%u", number);
    snprintf(out->text[3], VARIABLE_MAX, "PWC_SIZE=%u", options->ranks);
    snprintf(out->text[4], VARIABLE_MAX, "PWC_NODE=%u", node->number);
    snprintf(out->text[5], VARIABLE_MAX, "PWC_NODES=%u", options->nodes);
    for (size_t i = 0; i < OWN_VARIABLES; i++)
        own[i] = out->text[i];
    return 0;
}

/* `sockets`: "PWC_SOCKETS=..."; has to stay until the launcher is started. */
static int environment_of_launcher(struct environment *out, char *sockets)
{
    char **own = environment_inherit(out);
    if (own == NULL)
        return -ENOMEM;
    own[0] = sockets;
    return 0;
}

static void close_end(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Starts the program for `rank`, with its output labelled or not. */
static int start(struct rank *rank, struct child_spec *spec, const struct options *options)
{
    int rc = 0;
    spec->out = spec->err = spec->extra = -1;
    spec->argv = options->program;
    if (options->label) {
        char label[24];
        snprintf(label, sizeof(label), "[%u] ", rank->number);
        rc = output_open(&rank->out, STDOUT_FILENO, label, true, &spec->out);
        if (rc == 0)
            rc = output_open(&rank->err, STDERR_FILENO, label, true, &spec->err);
    }
    if (rc == 0)
        rc = child_start(spec, &rank->pid);
    close_end(spec->out);
    close_end(spec->err);
    return rc;
}

int rank_start(struct rank *rank, unsigned number, const struct node *node, const char *job,
               const struct options *options, const struct reaper *reaper)
{
    *rank = (struct rank){.number = number, .out.from = -1, .err.from = -1};
    struct environment environment;
    int rc = environment_of_rank(&environment, number, node, job, options);
    if (rc < 0)
        return rc;
    struct child_spec spec = {
        .envp = environment.list,
        .netns = node->netns[0] != '\0' ? node->netns : NULL,
        .processors = node->bound ? &node->processors : NULL,
        .reaper = reaper,
    };
    rc = start(rank, &spec, options);
    free(environment.list);
    return rc;
}

int rank_start_launcher(struct rank *rank, char *sockets, const struct options *options,
                        const struct reaper *reaper)
{
    *rank = (struct rank){.out.from = -1, .err.from = -1};
    struct environment environment;
    int rc = environment_of_launcher(&environment, sockets);
    if (rc < 0)
        return rc;
    struct child_spec spec = {.envp = environment.list, .reaper = reaper};
    rc = start(rank, &spec, options);
    free(environment.list);
    return rc;
}
