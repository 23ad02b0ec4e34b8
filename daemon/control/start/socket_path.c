/* Owns the socket's path, directory and lock (socket_path.h). Thread: main, control at the end. */
#include "daemon/control/start/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "proto/job_socket.h"

/* A rank that finds the queue full waits in connect. In a longer queue, a rank would wait longer
 * after connections of a user who connects without end (clients/accepts.h). */
enum { BACKLOG = 512 };

static bool is_abstract(const struct socket_path *s)
{
    return s->path[0] == '@';
}

static void beside(const struct socket_path *s, const char *suffix, char *to, size_t size)
{
    size_t length = strlen(s->path);

    if (length > 5 && strcmp(s->path + length - 5, ".sock") == 0)
        length -= 5;
    snprintf(to, size, "%.*s%s", (int)length, s->path, suffix);
}

int socket_path_find(struct socket_path *s, const char *configured, char *why, size_t why_size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int wanted;

    *s = (struct socket_path){.lock_fd = -1, .listen_fd = -1};
    if (configured) {
        wanted = snprintf(s->path, sizeof(s->path), "%s", configured);
    } else if (geteuid() == 0) {
        wanted = snprintf(s->path, sizeof(s->path), "/run/pwcd/pwcd.sock");
    } else if (runtime && *runtime) {
        wanted = snprintf(s->path, sizeof(s->path), "%s/pwcd/pwcd.sock", runtime);
    } else {
        snprintf(why, why_size, "XDG_RUNTIME_DIR is not set: give --socket PATH");
        return -ENOENT;
    }
    if ((size_t)wanted >= sizeof(s->path)) {
        snprintf(why, why_size, "socket path of %d characters: a path may have %u", wanted,
                 SOCKET_PATH_MAX - 1);
        return -ENAMETOOLONG;
    }
    if (is_abstract(s))
        return 0;
    beside(s, ".counters", s->counters, sizeof(s->counters));
    beside(s, ".lock", s->lock, sizeof(s->lock));
    return 0;
}

/* Makes only the last directory of the path. Where a directory above is missing, the path is
 * probably wrong, which is an error to report. */
static int make_directory(const struct socket_path *s, bool system, char *why, size_t why_size)
{
    char path[SOCKET_PATH_MAX];
    char *slash;

    memcpy(path, s->path, sizeof(path));
    slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    *slash = '\0';
    if (mkdir(path, 0700) == 0) {
        if (!system || chmod(path, 0755) == 0)
            return 0;
    } else if (errno == EEXIST) {
        return 0;
    }
    int rc = -errno;

    snprintf(why, why_size, "directory \"%s\": %s", path, strerror(-rc));
    return rc;
}

/* Takes the lock, and holds it while the daemon lives. The lock's holder owns the socket's path. */
static int take_lock(struct socket_path *s, char *why, size_t why_size)
{
    struct stat held, named;
    int rc;

    for (;;) {
        s->lock_fd = open(s->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (s->lock_fd < 0)
            break;
        if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
            break;
        /* An earlier holder may have unlinked the file just now. Then our lock is void, and we try
         * again. */
        if (fstat(s->lock_fd, &held) != 0)
            break;
        if (stat(s->lock, &named) != 0) {
            if (errno != ENOENT)
                break;
        } else if (held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
            return 0;
        }
        close(s->lock_fd);
    }
    rc = -errno;
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    s->lock_fd = -1;
    if (rc == -EWOULDBLOCK) {
        snprintf(why, why_size, "a daemon already serves \"%s\": stop it, or give another --socket",
                 s->path);
        return -EADDRINUSE;
    }
    snprintf(why, why_size, "lock \"%s\": %s", s->lock, strerror(-rc));
    return rc;
}

static int listen_there(struct socket_path *s, bool system, char *why, size_t why_size)
{
    struct sockaddr_un name;
    socklen_t size = job_socket_address(s->path, &name);
    struct stat st;
    mode_t before;
    int rc;

    /* We hold the lock, so a socket at this path is left over from a dead daemon. Any other file
     * belongs to somebody. */
    if (!is_abstract(s) && lstat(s->path, &st) == 0 &&
        (!S_ISSOCK(st.st_mode) || unlink(s->path) != 0)) {
        rc = S_ISSOCK(st.st_mode) ? -errno : -EEXIST;
        snprintf(why, why_size, "socket \"%s\" is in the way: %s", s->path, strerror(-rc));
        return rc;
    }
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listen_fd < 0)
        goto fail;
    before = umask(system ? 0111 : 0177);
    rc = bind(s->listen_fd, (struct sockaddr *)&name, size);
    umask(before);
    if (rc != 0 || listen(s->listen_fd, BACKLOG) != 0)
        goto fail;
    return 0;
fail:
    rc = -errno;
    snprintf(why, why_size, "socket \"%s\": %s%s", s->path, strerror(-rc),
             rc == -EADDRINUSE ? ": stop who serves there, or give another --socket" : "");
    return rc;
}

static bool listens_there(const struct socket_path *s, int listener)
{
    struct sockaddr_un name;
    size_t length = is_abstract(s) ? strlen(s->path) : 0;

    (void)job_socket_address(s->path, &name);
    return sd_is_socket_unix(listener, SOCK_STREAM, 1, name.sun_path, length) > 0;
}

/* Socket activation: takes a socket that systemd has made, and sets the length of its queue. 1:
 * there is one; 0: there is none. */
static int inherit(struct socket_path *s, struct store *store, char *why, size_t why_size)
{
    const char *name = store_next_foreign(store);
    uint32_t count = store_foreign(store);

    if (count == 0)
        return 0;
    s->listen_fd = store_take(store, "%s", name);
    if (count > 1 || !listens_there(s, s->listen_fd)) {
        snprintf(why, why_size,
                 "%u descriptors were passed on instead of one socket that listens at \"%s\": give "
                 "ListenStream= and --socket the same path",
                 count, s->path);
        s->inherited = true;
        return -EINVAL;
    }
    s->inherited = true;
    (void)fcntl(s->listen_fd, F_SETFL, fcntl(s->listen_fd, F_GETFL) | O_NONBLOCK);
    (void)listen(s->listen_fd, BACKLOG);
    return 1;
}

/* Inherits the lock of an earlier process of this daemon. False: there is none. */
static bool lock_taken_over(struct socket_path *s, struct store *store)
{
    int lock = store_take(store, "lock");
    struct stat held, named;

    if (lock < 0)
        return false;
    if (fstat(lock, &held) == 0 && stat(s->lock, &named) == 0 && held.st_ino == named.st_ino &&
        held.st_dev == named.st_dev) {
        s->lock_fd = lock;
        return true;
    }
    store_remove(store, "lock");
    close(lock);
    return false;
}

static bool socket_taken_over(struct socket_path *s, struct store *store)
{
    int listener = store_take(store, "listen");

    if (listener < 0)
        return false;
    if (listens_there(s, listener)) {
        s->listen_fd = listener;
        return true;
    }
    store_remove(store, "listen");
    close(listener);
    return false;
}

int socket_path_open(struct socket_path *s, struct store *store, bool system, char *why,
                     size_t why_size)
{
    bool named = !is_abstract(s); /* a file names the socket: it needs a directory and a lock */
    int rc = named ? make_directory(s, system, why, why_size) : 0;

    if (rc == 0 && named && !lock_taken_over(s, store)) {
        rc = take_lock(s, why, why_size);
        if (rc == 0)
            (void)store_add(store, s->lock_fd, "lock");
    }
    if (rc == 0 && !socket_taken_over(s, store)) {
        rc = inherit(s, store, why, why_size);
        if (rc == 0)
            rc = listen_there(s, system, why, why_size);
        if (rc == 0 && !s->inherited)
            (void)store_add(store, s->listen_fd, "listen");
    }
    if (rc < 0)
        socket_path_close(s);
    return rc < 0 ? rc : 0;
}

void socket_path_close(struct socket_path *s)
{
    if (s->listen_fd >= 0) {
        if (!s->inherited && !is_abstract(s))
            (void)unlink(s->path);
        close(s->listen_fd);
    }
    if (s->lock_fd >= 0) {
        (void)unlink(s->lock);
        close(s->lock_fd);
    }
    s->lock_fd = s->listen_fd = -1;
}
