/*
 * Finds out which rank another launcher has made of this process, chooses the rank's node among the
 * sockets in PWC_SOCKETS, and becomes the program. Owns nothing. Thread: main's.
 */
#include "tools/pwcrun/place.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/pwcrun/rank.h"

#define SOCKET_MAX 108u /* sun_path, terminator included */

/* The variables of launchers; the first one whose rank is set counts. */
static const struct launcher {
    const char *rank, *size, *job, *step; /* names of variables; the last two may be NULL */
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE",
     NULL},                               /* mpirun of Open MPI */
    {"PMI_RANK", "PMI_SIZE", NULL, NULL}, /* hydra, of MPICH */
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"PWC_RANK", "PWC_SIZE", "PWC_JOB", NULL},
};

struct place {
    unsigned rank, size, node, nodes;
    char socket[SOCKET_MAX];
    char job[64];
};

/* Reads the number in the variable: 0, or -EINVAL with the reason on stderr. */
static int number_in(const char *name, unsigned least, unsigned most, unsigned *out)
{
    const char *text = getenv(name);
    char *end = NULL;
    errno = 0;
    unsigned long number = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || errno != 0 || *text < '0' || *text > '9' || *end != '\0' ||
        number < least || number > most) {
        fprintf(stderr, "pwcrun: --place: %s is \"%s\": it must be a number from %u to %u\n", name,
                text != NULL ? text : "", least, most);
        return -EINVAL;
    }
    *out = (unsigned)number;
    return 0;
}

static const char *value_of(const char *name)
{
    return name != NULL ? getenv(name) : NULL;
}

/* All ranks that a launcher starts here have one parent, so its number names their job where the
 * launcher gives no name. */
static void name_job(struct place *place, const struct launcher *launcher)
{
    const char *job = value_of(launcher->job), *step = value_of(launcher->step);
    if (job != NULL && step != NULL)
        snprintf(place->job, sizeof(place->job), "slurm-%s-%s", job, step);
    else if (job != NULL && launcher->step == NULL)
        snprintf(place->job, sizeof(place->job), "%s", job);
    else
        snprintf(place->job, sizeof(place->job), "placed-%d", (int)getppid());
}

static int find_rank(struct place *place)
{
    const size_t count = sizeof(launchers) / sizeof(launchers[0]);
    for (size_t i = 0; i < count; i++) {
        if (getenv(launchers[i].rank) == NULL)
            continue;
        int rc = number_in(launchers[i].size, 1, PWCRUN_RANKS_MAX, &place->size);
        if (rc == 0)
            rc = number_in(launchers[i].rank, 0, place->size - 1, &place->rank);
        if (rc == 0)
            name_job(place, &launchers[i]);
        return rc;
    }
    fprintf(stderr, "pwcrun: --place: none of OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID and "
                    "PWC_RANK is set: start it with mpirun, mpiexec.hydra or srun\n");
    return -EINVAL;
}

static int find_socket(struct place *place)
{
    const char *list = getenv("PWC_SOCKETS"), *at = list;
    if (list == NULL || *list == '\0') {
        fprintf(stderr, "pwcrun: --place: PWC_SOCKETS is not set: run the launcher by pwcrun "
                        "--hold, or set what pwcrun --hold prints\n");
        return -EINVAL;
    }
    place->nodes = 1;
    for (const char *c = list; *c != '\0'; c++)
        place->nodes += *c == ':';
    place->node = rank_node(place->rank, place->size, place->nodes);
    for (unsigned i = 0; i < place->node; i++)
        at = strchr(at, ':') + 1;
    size_t length = strcspn(at, ":");
    if (length == 0 || length >= sizeof(place->socket)) {
        fprintf(stderr,
                "pwcrun: --place: socket %u of PWC_SOCKETS has %zu characters, not 1 to "
                "%zu\n",
                place->node, length, sizeof(place->socket) - 1);
        return -EINVAL;
    }
    memcpy(place->socket, at, length);
    place->socket[length] = '\0';
    return 0;
}

static int set_number(const char *name, unsigned number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    return setenv(name, text, 1);
}

static int set_environment(const struct place *place)
{
    if (setenv("PWC_SOCKET", place->socket, 1) < 0 || setenv("PWC_JOB", place->job, 1) < 0 ||
        set_number("PWC_RANK", place->rank) < 0 || set_number("PWC_SIZE", place->size) < 0 ||
        set_number("PWC_NODE", place->node) < 0 || set_number("PWC_NODES", place->nodes) < 0 ||
        unsetenv("PWC_SOCKETS") < 0) {
        fprintf(stderr, "pwcrun: --place: setting PWC_RANK and others: %s\n", strerror(errno));
        return -errno;
    }
    return 0;
}

int place_run(const struct options *options)
{
    struct place place = {.rank = 0};
    cpu_set_t processors;
    int rc = find_rank(&place);
    if (rc == 0)
        rc = find_socket(&place);
    if (rc == 0)
        rc = set_environment(&place);
    if (rc < 0)
        return PWCRUN_FAILED;
    /* If the launcher has bound this rank to fewer processors than there are nodes, this stays. */
    if (processors_of(place.node, place.nodes, options->bind, &processors))
        sched_setaffinity(0, sizeof(processors), &processors);
    execvp(options->program[0], options->program);
    rc = errno;
    fprintf(stderr, "pwcrun: %s: %s\n", options->program[0], strerror(rc));
    return rc == ENOENT ? PWCRUN_NOT_FOUND : rc == EACCES ? PWCRUN_NOT_EXECUTABLE : PWCRUN_FAILED;
}
