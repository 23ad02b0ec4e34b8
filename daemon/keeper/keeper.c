/* Owns the daemon's process and the descriptors that outlive it (keeper.h). Thread: the keeper's
 * only one. */
#include "daemon/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/keeper/holdings.h"
#include "proto/clock.h"
#include "proto/exit_status.h"

enum {
    MESSAGE_MAX = 4096,
    BACK_OFF_MAX_MS = 1000,
    STEADY_MS = 1000, /* a daemon that has lived this long is started again without delay */
    ATTEMPTS_MAX = 5, /* starts in a row with the same descriptors */
    FIRST_FD = 3,     /* the first descriptor that is passed to the daemon */
};

struct keeper {
    char *const *argv;
    char program[4096]; /* the program's path: the next start uses a new binary there */
    struct holdings holdings;
    int socket;      /* the daemon's NOTIFY_SOCKET */
    int signals;     /* a signalfd */
    int lifeline[2]; /* a pipe: the daemon's end hangs up when the keeper dies */
    char address[32];
    pid_t pid; /* the daemon; 0: none */
    int ready_fd;
    bool ready; /* this daemon has sent READY */
    bool ending;
    int attempts;
    int back_off_ms;
    int64_t started_ms;
};

/* ---- starting -------------------------------------------------------------------------------- */

static void set_number(const char *name, long value)
{
    char text[24];

    snprintf(text, sizeof(text), "%ld", value);
    setenv(name, text, 1);
}

/* Gives the holding that has this number another one. Only the holdings from `first` on can have
 * it. */
static int clear_place(struct holdings *h, uint32_t first, int place)
{
    for (uint32_t i = first; i < h->count; i++)
        if (h->list[i].descriptor == place) {
            h->list[i].descriptor = fcntl(place, F_DUPFD_CLOEXEC, FIRST_FD);
            return h->list[i].descriptor < 0 ? -errno : 0;
        }
    return 0;
}

/* Runs in the child: the held descriptors become 3, 4, ... All others are close-on-exec. One free
 * number is enough for that, because a keeper may hold almost as many descriptors as it may have
 * open. */
static int place_descriptors(struct holdings *h)
{
    char *names = holdings_names(h);

    if (!names)
        return -ENOMEM;
    for (uint32_t i = 0; i < h->count; i++) {
        int place = FIRST_FD + (int)i, held = h->list[i].descriptor;
        int rc = clear_place(h, i + 1, place);

        if (rc < 0)
            return rc;
        if (held == place) {
            (void)fcntl(place, F_SETFD, 0);
            continue;
        }
        if (dup2(held, place) < 0)
            return -errno;
        close(held);
    }
    setenv("LISTEN_FDNAMES", names, 1);
    set_number("LISTEN_FDS", h->count);
    set_number("LISTEN_PID", getpid());
    return 0;
}

static void become_daemon(struct keeper *k, pid_t parent)
{
    sigset_t blocked;
    char lifeline[24];
    int rc;

    /* SIGUSR2 waits until the daemon takes it; otherwise it would kill a process that starts. */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    snprintf(lifeline, sizeof(lifeline), "%d", (int)parent);
    setenv("PWCD_KEEPER", lifeline, 1);
    setenv("NOTIFY_SOCKET", k->address, 1);
    set_number("FDSTORE", HOLDINGS_MAX);
    unsetenv("WATCHDOG_USEC");
    close(k->signals); /* frees a number */
    rc = place_descriptors(&k->holdings);
    if (rc < 0) {
        fprintf(stderr, "pwcd: error: the keeper cannot pass %u descriptors on: %s\n",
                k->holdings.count, strerror(-rc));
        _exit(EXIT_FAILURE);
    }
    execv(k->program, k->argv);
    execv("/proc/self/exe", k->argv); /* where the path is gone, start our own program */
    perror("pwcd: error: the keeper cannot start the daemon");
    _exit(127);
}

static int start(struct keeper *k)
{
    pid_t parent = getpid();

    fflush(NULL);
    k->pid = fork();
    if (k->pid == 0)
        become_daemon(k, parent);
    if (k->pid < 0) {
        k->pid = 0;
        return -errno;
    }
    k->ready = false;
    k->started_ms = now_ms();
    return 0;
}

/* ---- messages of the daemon ------------------------------------------------------------------ */

static void say_ready(struct keeper *k)
{
    k->ready = true;
    if (k->ready_fd < 0)
        return;
    (void)!write(k->ready_fd, "ready\n", 6);
    close(k->ready_fd);
    k->ready_fd = -1;
}

/* The value after "KEY=" at the beginning of a line, or NULL. */
static const char *value_of(const char *line, const char *key)
{
    size_t length = strlen(key);

    return strncmp(line, key, length) == 0 && line[length] == '=' ? line + length + 1 : NULL;
}

/* Whether this process is a child that reap has not collected. One that has died is, until then: it
 * is collected as the daemon. */
static bool is_child(pid_t pid)
{
    siginfo_t info;

    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Takes the daemon's new process. Where that process has been collected already, the old one stays
 * the daemon, so that its end is seen. The old process may have got SIGTERM too late to pass it
 * on. */
static void take_main_pid(struct keeper *k, pid_t pid)
{
    if (!is_child(pid))
        return;
    k->pid = pid;
    if (k->ending)
        kill(pid, SIGTERM);
}

static void take_message(struct keeper *k, char *text, const int *descriptors, int count)
{
    const char *name = NULL, *value;
    bool store = false, remove = false;
    char *next;

    for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        store |= strcmp(line, "FDSTORE=1") == 0;
        remove |= strcmp(line, "FDSTOREREMOVE=1") == 0;
        if ((value = value_of(line, "FDNAME")))
            name = value;
        else if ((value = value_of(line, "MAINPID")))
            take_main_pid(k, (pid_t)strtol(value, NULL, 10));
        else if (strcmp(line, "READY=1") == 0)
            say_ready(k);
    }
    for (int i = 0; i < count; i++)
        if (!store || !name || holdings_add(&k->holdings, name, descriptors[i]) < 0)
            close(descriptors[i]);
    if (remove && name)
        holdings_remove(&k->holdings, name);
}

/* Takes one message of the daemon; messages of other processes are dropped. 0: there is no
 * message. */
static int read_message(struct keeper *k)
{
    _Alignas(struct cmsghdr) uint8_t
        room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(HOLDINGS_A_MESSAGE * sizeof(int))];
    char text[MESSAGE_MAX + 1];
    struct iovec part = {.iov_base = text, .iov_len = MESSAGE_MAX};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct ucred from = {0};
    int descriptors[HOLDINGS_A_MESSAGE], count = 0;
    ssize_t got = recvmsg(k->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got < 0)
        return errno == EINTR;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET)
            continue;
        if (head->cmsg_type == SCM_CREDENTIALS)
            memcpy(&from, CMSG_DATA(head), sizeof(from));
        if (head->cmsg_type == SCM_RIGHTS) {
            count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(descriptors, CMSG_DATA(head), (size_t)count * sizeof(int));
        }
    }
    text[got] = '\0';
    if (from.pid == k->pid && k->pid != 0) {
        take_message(k, text, descriptors, count);
    } else {
        for (int i = 0; i < count; i++)
            close(descriptors[i]);
    }
    return 1;
}

static void read_messages(struct keeper *k)
{
    while (read_message(k))
        continue;
}

/* ---- its end --------------------------------------------------------------------------------- */

static int hold_lifeline(struct keeper *k)
{
    int copy = fcntl(k->lifeline[0], F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -errno : holdings_add(&k->holdings, "keeper", copy);
}

/* The keeper's exit status, where the daemon was to end. */
static int ended(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    if (WTERMSIG(status) == SIGTERM)
        return EXIT_SUCCESS; /* the signal came before the daemon took signals */
    fprintf(stderr, "pwcd: error: signal %d has ended the daemon while it ended\n",
            WTERMSIG(status));
    return EXIT_FAILURE;
}

/* Decides what follows after the daemon has ended. -EAGAIN: start it again; else the keeper's exit
 * status. */
static int judge(struct keeper *k, int status)
{
    bool killed = WIFSIGNALED(status);
    int code = killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

    if (k->ending)
        return ended(status);
    if (code == 0 || code == EXIT_UNLOCKED || (!k->ready && k->holdings.count <= 1))
        return killed ? EXIT_FAILURE : code;
    k->attempts = k->ready ? 0 : k->attempts + 1;
    if (k->attempts == ATTEMPTS_MAX) {
        fprintf(stderr, "pwcd: error: the daemon does not come up with what it has left: it begins "
                        "anew, its clients end\n");
        holdings_clear(&k->holdings);
        (void)hold_lifeline(k);
        k->attempts = 0;
    }
    if (now_ms() - k->started_ms >= STEADY_MS)
        k->back_off_ms = 0;
    fprintf(stderr, "pwcd: warning: the daemon has ended (%s %d): it is started again\n",
            killed ? "signal" : "status", killed ? WTERMSIG(status) : code);
    return -EAGAIN;
}

static void pass_on(struct keeper *k, int number)
{
    if (number == SIGTERM || number == SIGINT)
        k->ending = true;
    if (k->pid > 0)
        kill(k->pid, number == SIGINT ? SIGTERM : number);
}

/* Passes signals to the daemon. True: a child has ended. */
static bool read_signals(struct keeper *k)
{
    struct signalfd_siginfo info;
    bool child = false;

    while (read(k->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            child = true;
        else
            pass_on(k, (int)info.ssi_signo);
    }
    return child;
}

/* Collects ended children. -EAGAIN: start the daemon again; -EINPROGRESS: it lives; else the
 * keeper's exit status. */
static int reap(struct keeper *k)
{
    int status, verdict = -EINPROGRESS;
    siginfo_t child;

    for (;;) {
        child.si_pid = 0;
        if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 || child.si_pid == 0)
            return verdict;
        /* Before the process is collected, read the messages that it sent before it died, and a
         * message that makes it the daemon. */
        read_messages(k);
        (void)waitpid(child.si_pid, &status, 0);
        if (child.si_pid == k->pid) {
            k->pid = 0;
            verdict = judge(k, status);
        }
    }
}

/* Starts the daemon again, after a delay. Returns what reap returns. */
static int restart(struct keeper *k)
{
    struct pollfd signals = {.fd = k->signals, .events = POLLIN};

    if (k->back_off_ms > 0 && poll(&signals, 1, k->back_off_ms) > 0)
        (void)read_signals(k);
    k->back_off_ms = k->back_off_ms == 0                    ? 1
                     : 2 * k->back_off_ms < BACK_OFF_MAX_MS ? 2 * k->back_off_ms
                                                            : BACK_OFF_MAX_MS;
    if (k->ending)
        return EXIT_SUCCESS;
    if (start(k) == 0)
        return -EINPROGRESS;
    perror("pwcd: warning: the daemon cannot be started again yet");
    return -EAGAIN;
}

static int watch(struct keeper *k)
{
    int verdict = -EINPROGRESS;

    while (verdict == -EINPROGRESS) {
        struct pollfd polled[] = {{.fd = k->socket, .events = POLLIN},
                                  {.fd = k->signals, .events = POLLIN}};

        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            return EXIT_FAILURE;
        read_messages(k);
        if (read_signals(k))
            verdict = reap(k);
        while (verdict == -EAGAIN)
            verdict = restart(k);
    }
    return verdict;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Opens the notify socket. Its address is abstract; the kernel reports the sender's process with
 * each message. */
static int open_socket(struct keeper *k)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(name);
    int yes = 1;

    k->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (k->socket < 0 || setsockopt(k->socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
        bind(k->socket, (struct sockaddr *)&name, sizeof(sa_family_t)) != 0 ||
        getsockname(k->socket, (struct sockaddr *)&name, &size) != 0)
        return -errno;
    snprintf(k->address, sizeof(k->address), "@%.*s", (int)(size - sizeof(sa_family_t) - 1),
             name.sun_path + 1);
    return 0;
}

static int open_signals(struct keeper *k)
{
    sigset_t watched;

    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGUSR2);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    k->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return k->signals < 0 ? -errno : 0;
}

int keeper_run(char *const *argv, int ready_fd)
{
    struct keeper k = {
        .argv = argv, .ready_fd = ready_fd, .socket = -1, .signals = -1, .lifeline = {-1, -1}};
    ssize_t length = readlink("/proc/self/exe", k.program, sizeof(k.program) - 1);
    int status = EXIT_FAILURE;

    if (length > 0 && open_socket(&k) == 0 && open_signals(&k) == 0 &&
        (ready_fd < 0 || fcntl(ready_fd, F_SETFD, FD_CLOEXEC) == 0) &&
        pipe2(k.lifeline, O_CLOEXEC) == 0 && hold_lifeline(&k) == 0 &&
        prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && start(&k) == 0)
        status = watch(&k);
    else
        perror("pwcd: error: the keeper cannot start");
    holdings_clear(&k.holdings);
    if (k.socket >= 0)
        close(k.socket);
    if (k.signals >= 0)
        close(k.signals);
    return status;
}
