/*
 * A daemon with oddities, for cases that cannot be provoked from outside: pwcd's own code, with a
 * few calls wrapped by the linker. PWCD_ODD names the oddity:
 *
 *     unsealed  small memory that it shares, and areas of teams, can be cut short by clients, so
 *               that they fault
 *     newer     it speaks a later version to other daemons, and no other
 *     slow      a name is found after half a second, and the log says that it is looked up
 *     lost      no name can be looked up: there is no memory for it
 *     late      its control thread stands still for a second when it has sent the progress thread
 *               the loss of a node, and the progress thread seems to be busy all the while; the log
 *               says that the control thread is late
 *     hasty     it waits 50 ms instead of a minute or longer
 *     patient   its hand-over waits without end for requests under way
 *     blind     it cannot watch clients' processes: there is no descriptor for that
 *     frank     it prints whether others may look into it when it reads the secret
 *     unopened  it cannot open its engines, once: when it could remove the file PWCD_ODD_FILE
 *     unforked  its keeper cannot start it, once, as above
 *     reusing   from the next close of a context on, its control thread stands still after calls
 *               about contexts, and dies after it has posted an open, once, as above
 *     tardy     its engine ends no client, until it was asked to open one whose rank is live, once,
 *               as above
 *     ended     it gets SIGTERM when it stops its engines, once, as above
 *     unlocked  its engine reports that the memory for ledgers is not registered
 *     ringless  its fabric registers no ring of a ledger
 *     pausing   its engine takes no step of ending an offload while the file PWCD_ODD_FILE exists
 *     crowded   the kernel allows so few mappings that there may be 8 pairs, 7 of them one user's;
 *               and a user may have 1 KiB of names in the store
 *
 * PWCD_ODD_CONFIG names the file that this daemon reads as the system's configuration.
 *
 * Where PWCD_MUNGE is set, a made-up MUNGE replaces the real one: a credential is plain text, and
 * each daemon believes it. The value says how this MUNGE behaves:
 *
 *     vouched   as it should be
 *     slow      a credential is opened after 0.3 s, and the log says so, after the start
 *     foreign   it vouches for another user
 *     altered   what was vouched for is not what was given
 *     long      and neither is its length, after the start
 *     late      munged answers no more after the start
 *     down      it has never run
 *
 * Thread: the one that makes the call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>
#include "daemon/control/control.h"
#include "daemon/control/threads/call.h"
#include "shm_ring/clock.h"
#include "daemon/control/nodes/credential.h"
#include "daemon/peering/handshake.h"
#include "daemon/control/threads/progress.h"
#include "daemon/control/start/secret.h"
#include "daemon/control/threads/worker.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum {
    SMALL = 131072, /* less than libpwc's memory, whose seals libpwc checks */
    MINUTE_MS = 60000,
    HASTY_MS = 50,
    CROWDED = 8,
    CROWDED_NAMES = 1024,
};

int __real_fcntl64(int fd, int command, long argument);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
void __real_handshake_begin(struct handshake *h, const struct handshake_identity *self,
                            enum handshake_role role, uint32_t node);
void __wrap_handshake_begin(struct handshake *h, const struct handshake_identity *self,
                            enum handshake_role role, uint32_t node);

void __real_call_post(struct progress *progress, struct call *call);
void __wrap_call_post(struct progress *progress, struct call *call);
int __real_engine_client_open(struct engine *e, const struct engine_client_info *info);
int __wrap_engine_client_open(struct engine *e, const struct engine_client_info *info);
void __real_engine_client_close(struct engine *e, uint32_t client);
void __wrap_engine_client_close(struct engine *e, uint32_t client);
uint64_t __real_progress_cpu_ns(const struct progress *p);
uint64_t __wrap_progress_cpu_ns(const struct progress *p);

int __real_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *name, const char *service, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *name, const char *service, const struct addrinfo *hints);

const char *__real_config_default_file(void);
const char *__wrap_config_default_file(void);
int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb done, uint64_t timeout, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb done, uint64_t timeout, uint64_t repeat);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __real_secret_load(const char *path, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size);
int __wrap_secret_load(const char *path, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size);
int __real_workers_open(struct control *control);
int __wrap_workers_open(struct control *control);
int __real_workers_stop(struct control *control);
int __wrap_workers_stop(struct control *control);
int __real_engine_notice(struct engine *e, struct engine_notice *out);
int __wrap_engine_notice(struct engine *e, struct engine_notice *out);
bool __real_engine_notice_pending(const struct engine *e);
bool __wrap_engine_notice_pending(const struct engine *e);
void __real_ring_added(struct engine *e, uint32_t peer, bool next, int status,
                       const struct fabric_memory *memory);
void __wrap_ring_added(struct engine *e, uint32_t peer, bool next, int status,
                       const struct fabric_memory *memory);
int __real_engine_offload_destroy(struct engine *e, uint32_t session, uint32_t offload);
int __wrap_engine_offload_destroy(struct engine *e, uint32_t session, uint32_t offload);
void __real_quota_open(struct control *control, bool others);
void __wrap_quota_open(struct control *control, bool others);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_credential_make(const uint8_t *payload, size_t size, char **out, char *why,
                           size_t why_size);
int __wrap_credential_make(const uint8_t *payload, size_t size, char **out, char *why,
                           size_t why_size);
int __real_credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid,
                           char *why, size_t why_size);
int __wrap_credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid,
                           char *why, size_t why_size);

static bool is_odd(const char *how)
{
    const char *odd = getenv("PWCD_ODD");

    return odd && strcmp(odd, how) == 0;
}

static bool is_odd_once(const char *how)
{
    return is_odd(how) && unlink(getenv("PWCD_ODD_FILE")) == 0;
}

static bool is_area(int fd)
{
    char path[32], name[64] = "";

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof(name) - 1) > 0 &&
           strcmp(name, "/memfd:pwc-team (deleted)") == 0;
}

static int without_seals(int fd, int command, va_list arguments)
{
    struct stat st;

    if (command == F_ADD_SEALS && is_odd("unsealed") &&
        (is_area(fd) || (fstat(fd, &st) == 0 && st.st_size <= SMALL)))
        return 0;
    return __real_fcntl64(fd, command, va_arg(arguments, long));
}

int __wrap_fcntl(int fd, int command, ...)
{
    va_list arguments;
    int rc;

    va_start(arguments, command);
    rc = without_seals(fd, command, arguments);
    va_end(arguments);
    return rc;
}

int __wrap_fcntl64(int fd, int command, ...)
{
    va_list arguments;
    int rc;

    va_start(arguments, command);
    rc = without_seals(fd, command, arguments);
    va_end(arguments);
    return rc;
}

void __wrap_handshake_begin(struct handshake *h, const struct handshake_identity *self,
                            enum handshake_role role, uint32_t node)
{
    static struct handshake_identity newer;

    __real_handshake_begin(h, self, role, node);
    if (!is_odd("newer"))
        return;
    newer = *self;
    newer.version_min = newer.version_max = HANDSHAKE_VERSION_MAX + 1;
    h->self = &newer;
}

/* After a post: the control thread does not see what its progress thread reports, until it dies.
 * `before` is how many calls the progress thread had carried out when the post began. */
static void look_away(enum call_kind kind, const _Atomic uint64_t *calls, uint64_t before)
{
    static bool away;

    if (kind == CALL_SESSION_CLOSE && is_odd_once("reusing"))
        away = true;
    if (!away)
        return;
    while (atomic_load(calls) == before)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    /* The engine may need further steps. */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    if (kind == CALL_SESSION_OPEN)
        kill(getpid(), SIGKILL);
}

void __wrap_call_post(struct progress *progress, struct call *call)
{
    enum call_kind kind = call->kind; /* read now: after the post the call may be freed */
    bool lost = kind == CALL_PEER_LOST;
    const _Atomic uint64_t *calls = call->target->calls;
    uint64_t before = atomic_load(calls);

    __real_call_post(progress, call);
    look_away(kind, calls, before);
    if (lost && is_odd("late")) {
        fprintf(stderr, "the control thread is late\n");
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}

static uint32_t clients_kept; /* clients below this number were not ended */

int __wrap_engine_client_open(struct engine *e, const struct engine_client_info *info)
{
    int rc = __real_engine_client_open(e, info);

    if (rc == -EADDRINUSE && is_odd_once("tardy"))
        for (uint32_t i = 0; i < clients_kept; i++)
            __real_engine_client_close(e, i);
    return rc;
}

void __wrap_engine_client_close(struct engine *e, uint32_t client)
{
    if (is_odd("tardy") && access(getenv("PWCD_ODD_FILE"), F_OK) == 0)
        clients_kept = client + 1;
    else
        __real_engine_client_close(e, client);
}

uint64_t __wrap_progress_cpu_ns(const struct progress *p)
{
    return is_odd("late") ? clock_ns() : __real_progress_cpu_ns(p);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *name, const char *service, const struct addrinfo *hints)
{
    return is_odd("lost") ? UV_ENOMEM
                          : __real_uv_getaddrinfo(loop, request, done, name, service, hints);
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb done, uint64_t timeout, uint64_t repeat)
{
    /* Only a hand-over that waits looks once a millisecond. */
    if (repeat == 1 && is_odd("patient"))
        ((struct control *)timer->data)->handover.deadline_ns = UINT64_MAX;
    return __real_uv_timer_start(
        timer, done, timeout >= MINUTE_MS && is_odd("hasty") ? HASTY_MS : timeout, repeat);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    if (option == SO_PEERPIDFD && is_odd("blind")) {
        errno = EMFILE;
        return -1;
    }
    return __real_getsockopt(fd, level, option, value, size);
}

int __wrap_secret_load(const char *path, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size)
{
    if (is_odd("frank"))
        fprintf(stderr, "others %s look\n", prctl(PR_GET_DUMPABLE) == 1 ? "may" : "may not");
    return __real_secret_load(path, key, why, why_size);
}

int __wrap_workers_open(struct control *control)
{
    return is_odd_once("unopened") ? -EIO : __real_workers_open(control);
}

int __wrap_workers_stop(struct control *control)
{
    if (is_odd_once("ended"))
        kill(getpid(), SIGTERM);
    return __real_workers_stop(control);
}

int __wrap_engine_notice(struct engine *e, struct engine_notice *out)
{
    if (!is_odd("unlocked"))
        return __real_engine_notice(e, out);
    *out = (struct engine_notice){.kind = ENGINE_LEDGERS_FAILED, .status = -ENOMEM};
    return 1;
}

bool __wrap_engine_notice_pending(const struct engine *e)
{
    return is_odd("unlocked") || __real_engine_notice_pending(e);
}

void __wrap_ring_added(struct engine *e, uint32_t peer, bool next, int status,
                       const struct fabric_memory *memory)
{
    __real_ring_added(e, peer, next, is_odd("ringless") ? -EIO : status, memory);
}

int __wrap_engine_offload_destroy(struct engine *e, uint32_t session, uint32_t offload)
{
    if (is_odd("pausing") && access(getenv("PWCD_ODD_FILE"), F_OK) == 0)
        return -EAGAIN;
    return __real_engine_offload_destroy(e, session, offload);
}

void __wrap_quota_open(struct control *control, bool others)
{
    __real_quota_open(control, others);
    if (!is_odd("crowded"))
        return;
    control->store.user_bytes = CROWDED_NAMES;
    control->pairs_most = CROWDED;
    control->user_limits[QUOTA_PAIRS] = others ? CROWDED * 7 / 8 : UINT64_MAX;
}

pid_t __wrap_fork(void)
{
    if (is_odd_once("unforked")) {
        errno = EAGAIN;
        return -1;
    }
    return __real_fork();
}

/* libuv's calls pass through this wrapper too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (is_odd("slow") && !(hints->ai_flags & AI_PASSIVE)) {
        fprintf(stderr, "%s is looked up\n", name);
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    }
    return real(name, service, hints, found);
}

const char *__wrap_config_default_file(void)
{
    const char *file = getenv("PWCD_ODD_CONFIG");

    return file ? file : __real_config_default_file();
}

/* ---- a made-up MUNGE: "UID:" and two hexadecimal digits a byte --------------------------------
 */

static bool munge_is(const char *how)
{
    const char *munge = getenv("PWCD_MUNGE");

    return munge && strcmp(munge, how) == 0;
}

int __wrap_credential_make(const uint8_t *payload, size_t size, char **out, char *why,
                           size_t why_size)
{
    static _Atomic int made;
    size_t used;

    if (!getenv("PWCD_MUNGE"))
        return __real_credential_make(payload, size, out, why, why_size);
    made++;
    if (munge_is("down") || (munge_is("late") && made > 1)) {
        snprintf(why, why_size, "munged is made up and down");
        return -ECONNREFUSED;
    }
    *out = malloc(2 * size + 16);
    if (!*out)
        return -ENOMEM;
    used = (size_t)sprintf(*out, "%u:", (unsigned)geteuid() + munge_is("foreign"));
    for (size_t i = 0; i < size; i++)
        used += (size_t)sprintf(*out + used, "%02x", payload[i] ^ (i == 5 && munge_is("altered")));
    if (munge_is("long") && made > 1)
        strcat(*out, "00");
    return 0;
}

int __wrap_credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid,
                           char *why, size_t why_size)
{
    static _Atomic int opened;
    unsigned user, byte;
    const char *at = strchr(credential, ':');

    if (!getenv("PWCD_MUNGE"))
        return __real_credential_open(credential, payload, size, uid, why, why_size);
    if (munge_is("slow") && opened++ > 0) {
        fprintf(stderr, "a credential is opened\n");
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    }
    if (!at || sscanf(credential, "%u:", &user) != 1 || strlen(at + 1) != 2 * size) {
        snprintf(why, why_size, "a made-up credential that is none");
        return -EACCES;
    }
    for (size_t i = 0; i < size; i++) {
        if (sscanf(at + 1 + 2 * i, "%2x", &byte) != 1)
            return -EACCES;
        payload[i] = (uint8_t)byte;
    }
    *uid = user;
    return 0;
}
