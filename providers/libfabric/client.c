/*
 * Owns nothing: finds the daemon by the environment, attaches to it, and writes and reads addresses
 * of contexts. Thread: the caller of fi_getinfo, fi_domain and fi_av_insert.
 */
#include "providers/libfabric/client.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "providers/libfabric/info.h"

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
    /* A job's own daemon may serve all jobs of the node instead. */
    if (rc < 0 && !value_of("PWC_SOCKET") && value_of("SLURM_JOB_ID"))
        rc = try_connect(SYSTEM_SOCKET);
    return rc;
}

int client_open(pwc_client **out)
{
    char why[256] = "";
    struct pwc_attr attr = {.error = why, .error_size = sizeof(why)};
    int rc = pwc_init(&attr, out);

    if (rc < 0)
        info_warn("attach to the daemon: %s", why[0] ? why : pwc_strerror(rc));
    return rc;
}

/* The interim form: a job's rank and context. */
struct plain_address {
    uint64_t magic;
    uint64_t peer;
    uint64_t reserved[2];
};

#define ADDRESS_MAGIC 0x7077632d666931ull

int client_address(pwc_client *client, pwc_ctx *ctx, uint8_t address[CLIENT_ADDRESS_BYTES])
{
    struct plain_address plain = {.magic = ADDRESS_MAGIC, .peer = pwc_ctx_peer(ctx)};

    memcpy(address, &plain, sizeof(plain));
    return 0;
}

int client_peer(pwc_client *client, const uint8_t address[CLIENT_ADDRESS_BYTES], pwc_peer *out)
{
    struct plain_address plain;

    memcpy(&plain, address, sizeof(plain));
    if (plain.magic != ADDRESS_MAGIC)
        return -EINVAL;
    *out = plain.peer;
    return 0;
}

int client_share(pwc_client *client, void *address, size_t length, unsigned rights,
                 pwc_region **out)
{
    return pwc_register(client, address, length, rights, PWC_MOVE, out);
}
