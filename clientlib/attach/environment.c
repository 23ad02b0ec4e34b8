/*
 * Owns nothing: finds this process's job, rank and daemon from attributes and environment. Thread:
 * the caller of pwc_init.
 */
#include "clientlib/attach/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/job_socket.h"

/* Variables in order of precedence: the first that is set counts. */
static const char *const rank_names[] = {"PWC_RANK", "PMIX_RANK", "SLURM_PROCID"};
static const char *const size_names[] = {"PWC_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS",
                                         "SLURM_NTASKS"};

#define SYSTEM_SOCKET "/run/pwcd/pwcd.sock"

static const char *value_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Sets *out to the first of `names` that is set: 0; -ENODATA: none is set; -EINVAL: it is no
 * number. After an error `why` has the reason. */
static int number_from(const char *const *names, size_t count, uint32_t *out, char *why,
                       size_t why_size)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = value_of(names[i]);
        unsigned long long number;
        char *end;

        if (!value)
            continue;
        errno = 0;
        number = strtoull(value, &end, 10);
        if (errno == 0 && *end == '\0' && *value >= '0' && number < UINT32_MAX) {
            *out = (uint32_t)number;
            return 0;
        }
        snprintf(why, why_size, "%s is \"%s\": set it to a number", names[i], value);
        return -EINVAL;
    }
    snprintf(why, why_size,
             "%s is not set: start the program with pwcrun, srun or mpirun, "
             "or set it",
             names[0]);
    return -ENODATA;
}

static int fits(int length, size_t room, const char *what, char *why, size_t why_size)
{
    if (length > 0 && (size_t)length < room)
        return 0;
    snprintf(why, why_size, "the %s is %s", what, length == 0 ? "empty" : "too long");
    return -EINVAL;
}

static int resolve_socket(const struct pwc_attr *attr, struct environment *out, char *why,
                          size_t why_size)
{
    const char *path = attr->socket ? attr->socket : value_of("PWC_SOCKET");
    const char *runtime = value_of("XDG_RUNTIME_DIR");
    const char *slurm_job = value_of("SLURM_JOB_ID");
    int length;

    out->other[0] = '\0';
    if (path) {
        length = snprintf(out->socket, sizeof(out->socket), "%s", path);
    } else if (slurm_job) {
        if (job_socket_name(out->socket, sizeof(out->socket), geteuid(), slurm_job) < 0) {
            snprintf(why, why_size, "SLURM_JOB_ID is \"%.80s\": set it to the job's number",
                     slurm_job);
            return -EINVAL;
        }
        length = snprintf(out->other, sizeof(out->other), "%s", SYSTEM_SOCKET);
    } else {
        length = 0;
        if (geteuid() != 0 && runtime)
            length = snprintf(out->socket, sizeof(out->socket), "%s/pwcd/pwcd.sock", runtime);
        /* A path that is too long is kept here, and refused below. */
        if (length == 0 || ((size_t)length < sizeof(out->socket) && access(out->socket, F_OK) != 0))
            length = snprintf(out->socket, sizeof(out->socket), "%s", SYSTEM_SOCKET);
    }
    return fits(length, sizeof(out->socket), "path of the daemon's socket", why, why_size);
}

static int resolve_job(const struct pwc_attr *attr, struct environment *out, char *why,
                       size_t why_size)
{
    const char *job = attr->job ? attr->job : value_of("PWC_JOB");
    const char *slurm_job = value_of("SLURM_JOB_ID");
    const char *slurm_step = value_of("SLURM_STEP_ID");
    int length;

    if (!job)
        job = value_of("PMIX_NAMESPACE");
    if (job)
        length = snprintf(out->job, sizeof(out->job), "%s", job);
    else if (slurm_job)
        length =
            snprintf(out->job, sizeof(out->job), "%s.%s", slurm_job, slurm_step ? slurm_step : "0");
    else {
        snprintf(why, why_size,
                 "PWC_JOB is not set: start the program with pwcrun, srun or "
                 "mpirun, or set it to a name that all ranks share");
        return -ENODATA;
    }
    return fits(length, sizeof(out->job), "job's name", why, why_size);
}

/* The program must give the name of an open job: a launcher's job name belongs to a job of fixed
 * size. */
static int check_open(const struct pwc_attr *attr, char *why, size_t why_size)
{
    if (attr->rank != 0) {
        snprintf(why, why_size,
                 "rank %u of an open job: leave it 0, the daemons give the rank (pwc_rank)",
                 attr->rank);
        return -EINVAL;
    }
    if (!attr->job && !value_of("PWC_JOB")) {
        snprintf(why, why_size,
                 "an open job needs a name that its processes share: give one in struct pwc_attr, "
                 "or set PWC_JOB");
        return -ENODATA;
    }
    return 0;
}

static int resolve_rank(const struct pwc_attr *attr, struct environment *out, char *why,
                        size_t why_size)
{
    int rc = 0;

    out->rank = attr->rank;
    out->size = attr->size;
    if (attr->size == PWC_OPEN)
        return check_open(attr, why, why_size);
    if (attr->size == 0) {
        rc = number_from(rank_names, sizeof(rank_names) / sizeof(rank_names[0]), &out->rank, why,
                         why_size);
        if (rc == 0)
            rc = number_from(size_names, sizeof(size_names) / sizeof(size_names[0]), &out->size,
                             why, why_size);
    }
    if (rc == 0 && out->rank >= out->size) {
        snprintf(why, why_size, "rank %u of %u: it must be below the number of ranks", out->rank,
                 out->size);
        rc = -EINVAL;
    }
    return rc;
}

static int check_reserved(const struct pwc_attr *attr, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof(attr->reserved) / sizeof(attr->reserved[0]); i++)
        if (attr->reserved[i] != 0) {
            snprintf(why, why_size, "reserved words of struct pwc_attr are not 0: zero the struct");
            return -EINVAL;
        }
    return 0;
}

int environment_resolve(const struct pwc_attr *attr, struct environment *out, char *why,
                        size_t why_size)
{
    int rc = check_reserved(attr, why, why_size);

    if (rc == 0)
        rc = resolve_socket(attr, out, why, why_size);
    if (rc == 0)
        rc = resolve_job(attr, out, why, why_size);
    if (rc == 0)
        rc = resolve_rank(attr, out, why, why_size);
    out->timeout_ms = attr->timeout_ms > 0 ? attr->timeout_ms : ENVIRONMENT_TIMEOUT_MS;
    return rc;
}
