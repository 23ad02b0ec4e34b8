/*
 * Owns nothing: finds the daemon by the environment, attaches to it, and writes and reads addresses
 * of contexts. Thread: the caller of fi_getinfo, fi_domain and fi_av_insert.
 */
#include "providers/libfabric/members/client.h"

#include <errno.h>
#include <pwc/open.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "providers/libfabric/objects/info.h"

#define SYSTEM_SOCKET "/run/pwcd/pwcd.sock"

static const char *value_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Writes the name of the socket as struct pwc_attr documents it. */
static int socket_name(char *out, size_t size)
{
    const char *path = value_of("PWC_SOCKET");
    const char *runtime = value_of("XDG_RUNTIME_DIR");
    const char *slurm_job = value_of("SLURM_JOB_ID");
    int length;

    if (path)
        length = snprintf(out, size, "%s", path);
    else if (slurm_job)
        length = snprintf(out, size, "@pwcd/%u/%s", (unsigned)geteuid(), slurm_job);
    else {
        length = geteuid() != 0 && runtime ? snprintf(out, size, "%s/pwcd/pwcd.sock", runtime) : 0;
        if (length == 0 || access(out, F_OK) != 0)
            length = snprintf(out, size, "%s", SYSTEM_SOCKET);
    }
    return length > 0 && (size_t)length < size ? 0 : -EINVAL;
}

static int try_connect(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    int fd, rc;

    if (length >= sizeof(address.sun_path))
        return -EINVAL;
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    else if (access(name, F_OK) != 0)
        return -errno;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    rc = connect(fd, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    rc = rc == 0 || errno == EAGAIN || errno == EINPROGRESS ? 0 : -errno;
    close(fd);
    return rc;
}

int client_reachable(void)
{
    char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = "";
    int rc = socket_name(name, sizeof(name));

    if (rc == 0)
        rc = try_connect(name);
    /* If the Slurm job has no daemon of its own, the node's daemon may serve all jobs. */
    if (rc < 0 && !value_of("PWC_SOCKET") && value_of("SLURM_JOB_ID"))
        rc = try_connect(SYSTEM_SOCKET);
    return rc;
}

/* Writes the name of the open job: processes of one job name reach one another. An open job and a
 * job of fixed size cannot have the same name, so the launcher's name gets an ending. */
static int job_name(char *out, size_t size)
{
    const char *step = value_of("SLURM_STEP_ID");
    const char *job = value_of("PWC_JOB");
    char *own = NULL;
    int length;

    fi_param_get_str(&info_provider, "job", &own);
    if (!job)
        job = value_of("PMIX_NAMESPACE");
    if (own && *own)
        length = snprintf(out, size, "%s", own);
    else if (job)
        length = snprintf(out, size, "%s.fi", job);
    else if (value_of("SLURM_JOB_ID"))
        length = snprintf(out, size, "%s.%s.fi", value_of("SLURM_JOB_ID"), step ? step : "0");
    else
        length = snprintf(out, size, "libfabric");
    return length > 0 && (size_t)length < size ? 0 : -EINVAL;
}

int client_open(pwc_client **out)
{
    char why[256] = "", job[60];
    struct pwc_attr attr = {.job = job, .size = PWC_OPEN, .error = why, .error_size = sizeof(why)};
    int rc = job_name(job, sizeof(job));

    if (rc < 0) {
        info_warn("the job's name is longer than %zu characters", sizeof(job) - 1);
        return rc;
    }
    rc = pwc_init(&attr, out);
    if (rc < 0)
        info_warn("attach to the daemon: %s", why[0] ? why : pwc_strerror(rc));
    return rc;
}

int client_address(pwc_ctx *ctx, uint8_t out[CLIENT_ADDRESS_BYTES])
{
    struct pwc_address address;
    int rc = pwc_address(ctx, &address);

    if (rc == 0)
        memcpy(out, address.bytes, sizeof(address.bytes));
    return rc;
}

int client_peer(pwc_client *client, const uint8_t bytes[CLIENT_ADDRESS_BYTES], pwc_peer *out)
{
    struct pwc_address address;

    memcpy(address.bytes, bytes, sizeof(address.bytes));
    return pwc_address_peer(client, &address, out);
}

int client_share(pwc_client *client, void *address, size_t length, unsigned rights,
                 pwc_region **out)
{
    return pwc_register(client, address, length, rights, PWC_SHARE | PWC_OWN_KEY, out);
}
