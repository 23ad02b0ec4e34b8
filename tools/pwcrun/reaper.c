/* Ends the processes that are left, then removes namespaces, folder and shared memory files. */
#include "tools/pwcrun/reaper.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DYING_MS 5000 /* for a killed process to be gone: it may have much memory to give back */

/* A message in the pipe. */
struct news {
    pid_t group;
    int began; /* 1, or 0: ended */
};

/* A live child of pwcrun, which leads a group of its own. */
struct live {
    pid_t group;
    int pidfd; /* -1: it had ended before the message came, but its group may live */
};

struct live_set {
    struct live *row;
    size_t count, room;
};

static void remember(struct live_set *live, pid_t group)
{
    if (live->count == live->room) {
        size_t room = live->room != 0 ? 2 * live->room : 64;
        struct live *row = realloc(live->row, room * sizeof(*row));
        if (row == NULL) /* the kernel still ends the child: PR_SET_PDEATHSIG */
            return;
        live->row = row;
        live->room = room;
    }
    live->row[live->count++] = (struct live){group, (int)syscall(SYS_pidfd_open, group, 0)};
}

static void forget(struct live_set *live, pid_t group)
{
    for (size_t i = 0; i < live->count; i++) {
        if (live->row[i].group == group) {
            if (live->row[i].pidfd >= 0)
                close(live->row[i].pidfd);
            live->row[i] = live->row[--live->count];
            return;
        }
    }
}

/* Returns at the end of the pipe. */
static void follow(int pipe, struct live_set *live)
{
    struct news news;
    ssize_t got;
    while ((got = read(pipe, &news, sizeof(news))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got != sizeof(news)) /* writes this small are whole */
            return;
        if (news.began)
            remember(live, news.group);
        else
            forget(live, news.group);
    }
}

static void end_children(struct live_set *live)
{
    for (size_t i = 0; i < live->count; i++)
        kill(-live->row[i].group, SIGKILL);
    for (size_t i = 0; i < live->count; i++) {
        struct pollfd ended = {.fd = live->row[i].pidfd, .events = POLLIN};
        if (ended.fd >= 0) {
            poll(&ended, 1, DYING_MS);
            close(ended.fd);
        }
        reaper_sweep_shm(live->row[i].group);
    }
    free(live->row);
}

void reaper_sweep_shm(pid_t group)
{
    /* A killed daemon leaves the file of its shm endpoint, which has its name from
     * daemon/fabric/ofi/ofi_provider.c: the daemon's number, then its group's. */
    DIR *folder = opendir("/dev/shm");
    if (folder == NULL)
        return;
    struct dirent *entry;
    int owner;
    while ((entry = readdir(folder)) != NULL)
        if (sscanf(entry->d_name, "pwcd-%*d.%d", &owner) == 1 && owner == (int)group)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

static void reaper_main(int pipe, const struct workdir *dir, const struct network *network)
{
    prctl(PR_SET_NAME, "pwcrun-reaper");
    setpgid(0, 0); /* out of reach of the terminal's signals */
    struct live_set live = {0};
    follow(pipe, &live);
    end_children(&live);
    if (network->nodes > 0)
        network_down(network);
    workdir_remove(dir);
}

int reaper_start(struct reaper *out, const struct workdir *dir, const struct network *network)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork(); /* signals are blocked here, and stay so in the reaper */
    if (pid < 0) {
        int rc = -errno;
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    if (pid == 0) {
        close(ends[1]);
        reaper_main(ends[0], dir, network);
        _exit(0);
    }
    close(ends[0]);
    *out = (struct reaper){pid, ends[1]};
    return 0;
}

static void notify(const struct reaper *reaper, struct news news)
{
    ssize_t written;
    do
        written = write(reaper->pipe, &news, sizeof(news));
    while (written < 0 && errno == EINTR);
}

void reaper_began(const struct reaper *reaper, pid_t group)
{
    notify(reaper, (struct news){group, 1});
}

void reaper_ended(const struct reaper *reaper, pid_t group)
{
    notify(reaper, (struct news){group, 0});
}

void reaper_lost(struct reaper *reaper)
{
    fprintf(
        stderr,
        "pwcrun: the reaper, process %d, was killed: should pwcrun be killed too, its processes "
        "and its folder may stay\n",
        (int)reaper->pid);
    waitpid(reaper->pid, NULL, 0);
    reaper->pid = 0;
}

bool reaper_finish(struct reaper *reaper)
{
    int status = -1;

    close(reaper->pipe);
    if (reaper->pid == 0)
        return false;
    while (waitpid(reaper->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}
