/* Starts and ends daemons (cluster.h). Thread: one. */
#include "tests/lib/cluster.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/program.h"
#include "tests/lib/process.h"

#define END_MS         10000
#define NEXT_S         60
#define ARGUMENTS_MAX  40u
#define FOLDER_PATTERN "pwc-system.XXXXXX"

/* ---- the place ------------------------------------------------------------------------------ */

static int make_folder(struct cluster *cluster)
{
    const char *bases[] = {getenv("XDG_RUNTIME_DIR"), "/tmp"};

    for (size_t i = 0; i < 2; i++) {
        int length = bases[i] ? snprintf(cluster->folder, sizeof(cluster->folder),
                                         "%s/" FOLDER_PATTERN, bases[i])
                              : -1;

        if (length > 0 && (size_t)length < sizeof(cluster->folder) && mkdtemp(cluster->folder))
            return 0;
    }
    cluster->folder[0] = '\0';
    return -ENOENT;
}

static int make_secret(struct cluster *cluster)
{
    uint8_t random[64];
    int fd, rc;

    snprintf(cluster->secret, sizeof(cluster->secret), "%s/secret", cluster->folder);
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    fd = open(cluster->secret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    rc = write(fd, random, sizeof(random)) == sizeof(random) ? 0 : -EIO;
    close(fd);
    return rc;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

/* Finds free ports at an address that no other process uses; all of 127/8 is loopback. Each probe
 * stays bound until all ports are known. */
static int choose_ports(struct cluster *cluster)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    int probes[CLUSTER_NODES_MAX];
    unsigned done = 0;
    size_t used = 0;
    int rc = 0;

    name.sin_addr.s_addr = htonl(0x7f800000u | ((uint32_t)getpid() & 0x003fffffu));
    inet_ntop(AF_INET, &name.sin_addr, cluster->host, sizeof(cluster->host));
    while (rc == 0 && done < cluster->options.nodes) {
        socklen_t length = sizeof(name);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
            rc = -errno;
        else
            probes[done++] = fd;
        name.sin_port = 0;
        if (rc == 0 && (bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ||
                        getsockname(fd, (struct sockaddr *)&name, &length) < 0))
            rc = -errno;
        if (rc < 0)
            break;
        cluster->nodes[done - 1].port = ntohs(name.sin_port);
        used += (size_t)snprintf(cluster->list + used, sizeof(cluster->list) - used, "%s%s:%u",
                                 done > 1 ? "," : "", cluster->host, cluster->nodes[done - 1].port);
    }
    while (done > 0)
        close(probes[--done]);
    return rc;
}

/* ---- daemons -------------------------------------------------------------------------------- */

static int start(struct cluster *cluster, unsigned number, int *ready)
{
    const struct cluster_options *options = &cluster->options;
    struct cluster_node *node = &cluster->nodes[number];
    char own[16];
    const char *argv[ARGUMENTS_MAX] = {
        options->pwcd,   "--config",  "none",      "--socket",    node->socket,
        "--node",        own,         "--nodes",   cluster->list, "--secret",
        cluster->secret, "--address", "127.0.0.1", "--ready-fd",  "3"};
    size_t count = 15;
    const struct program_options how = {.streams = 1u << PROGRAM_READY};
    int from[PROGRAM_STREAMS];

    snprintf(own, sizeof(own), "%u", number);
    if (options->provider) {
        argv[count++] = "--provider";
        argv[count++] = options->provider;
    }
    if (getenv("PWC_TEST_LOG")) {
        argv[count++] = "--log";
        argv[count++] = getenv("PWC_TEST_LOG");
    }
    if (options->protocol) {
        argv[count++] = "--protocol";
        argv[count++] = options->protocol;
    }
    for (int k = 0; k < 3; k++) {
        const char *const *const lists[] = {options->more, options->given,
                                            options->one_more[number]};

        for (const char *const *more = lists[k]; more && *more; more++) {
            if (count == ARGUMENTS_MAX - 1)
                return -E2BIG;
            argv[count++] = *more;
        }
    }
    node->pid = program_start(argv, &how, from);
    if (node->pid < 0) {
        int rc = node->pid;

        node->pid = 0;
        return rc;
    }
    *ready = from[PROGRAM_READY];
    return 0;
}

/* Takes ownership of `ready`. */
static int await_ready(struct cluster *cluster, unsigned number, int ready)
{
    int rc = 0;

    if (!program_is_ready(ready)) {
        snprintf(cluster->failure, sizeof(cluster->failure), "daemon %u does not come to serve",
                 number);
        rc = -EPIPE;
    }
    close(ready);
    return rc;
}

bool cluster_arguments(struct cluster_options *options, int argc, char **argv)
{
    int keys = argc > 3 && argv[3][0] != '-' ? 4 : 3;

    if (argc < 3 || (argc - keys) % 2 != 0) {
        fprintf(stderr, "usage: %s PWCD PROVIDER [NODES] [--KEY VALUE]...\n", argv[0]);
        return false;
    }
    options->pwcd = argv[1];
    options->provider = argv[2];
    if (keys == 4)
        options->nodes = (unsigned)strtoul(argv[3], NULL, 10);
    options->given = (const char *const *)argv + keys;
    return true;
}

int cluster_open(struct cluster *cluster, const struct cluster_options *options)
{
    int ready[CLUSTER_NODES_MAX];
    unsigned started = 0;
    int rc;

    *cluster = (struct cluster){.options = *options};
    if (options->nodes == 0 || options->nodes > CLUSTER_NODES_MAX)
        return -EINVAL;
    rc = make_folder(cluster);
    if (rc == 0)
        rc = make_secret(cluster);
    if (rc == 0)
        rc = choose_ports(cluster);
    for (unsigned i = 0; i < options->nodes; i++)
        snprintf(cluster->nodes[i].socket, sizeof(cluster->nodes[i].socket), "%s/%u.sock",
                 cluster->folder, i);
    while (rc == 0 && started < options->nodes) {
        rc = start(cluster, started, &ready[started]);
        started += rc == 0;
    }
    for (unsigned i = 0; i < started; i++) {
        int late = await_ready(cluster, i, ready[i]);

        rc = rc < 0 ? rc : late;
    }
    if (rc < 0) {
        char why[sizeof(cluster->failure)];

        snprintf(why, sizeof(why), "%s", cluster->failure[0] ? cluster->failure : strerror(-rc));
        cluster_close(cluster);
        memcpy(cluster->failure, why, sizeof(why));
    }
    return rc;
}

/* Removes what the shm provider of a killed process has left: the name of its endpoint has the pid.
 */
static void remove_shared_memory(pid_t pid)
{
    char stem[32];
    const struct dirent *entry;
    DIR *folder = opendir("/dev/shm");

    if (!folder)
        return;
    snprintf(stem, sizeof(stem), "pwcd-%d.", pid);
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, stem, strlen(stem)) == 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

/* Waits for the daemon's end, and kills it when that takes too long. Returns whether it ended well.
 */
static bool reap(struct cluster_node *node)
{
    int status = program_reap(node->pid, END_MS);

    remove_shared_memory(node->pid);
    node->pid = 0;
    node->status = status;
    return status == 0;
}

int cluster_close(struct cluster *cluster)
{
    int rc = 0;

    for (unsigned i = 0; i < CLUSTER_NODES_MAX; i++)
        if (cluster->nodes[i].pid > 0)
            kill(cluster->nodes[i].pid, SIGTERM);
    for (unsigned i = 0; i < CLUSTER_NODES_MAX; i++)
        if (cluster->nodes[i].pid > 0 && !reap(&cluster->nodes[i])) {
            snprintf(cluster->failure, sizeof(cluster->failure),
                     "daemon %u does not end well on SIGTERM", i);
            rc = -EIO;
        }
    if (cluster->folder[0])
        nftw(cluster->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    cluster->folder[0] = '\0';
    return rc;
}

int cluster_end(struct cluster *cluster, int status)
{
    if (cluster_close(cluster) != 0)
        status = 1;
    if (cluster->failure[0])
        fprintf(stderr, "%s\n", cluster->failure);
    return status;
}

void cluster_kill(struct cluster *cluster, unsigned node)
{
    kill(cluster->nodes[node].pid, SIGKILL);
    reap(&cluster->nodes[node]);
}

int cluster_restart(struct cluster *cluster, unsigned node)
{
    int ready;
    int rc = start(cluster, node, &ready);

    return rc < 0 ? rc : await_ready(cluster, node, ready);
}

pid_t cluster_kept(const struct cluster *cluster, unsigned node)
{
    return process_child(cluster->nodes[node].pid);
}

pid_t cluster_next(const struct cluster *cluster, unsigned node, pid_t before)
{
    const time_t end = time(NULL) + NEXT_S;
    pid_t next;

    while (((next = cluster_kept(cluster, node)) == 0 || next == before) && time(NULL) < end)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return next == before ? 0 : next;
}

bool cluster_runs(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->options.nodes; i++) {
        siginfo_t info = {0};

        if (cluster->nodes[i].pid > 0 &&
            waitid(P_PID, (id_t)cluster->nodes[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0) {
            snprintf(cluster->failure, sizeof(cluster->failure), "daemon %u has ended: %s %d", i,
                     info.si_code == CLD_EXITED ? "exit status" : "signal", info.si_status);
            return false;
        }
    }
    return true;
}
