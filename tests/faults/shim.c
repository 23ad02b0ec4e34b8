/*
 * A library that LD_PRELOAD loads in front of the C library. The shim makes the calls of one call
 * site fail (shim.h), so that the release build can be tested, and counts the allocations of our
 * own modules that are not freed yet.
 *
 * Thread: any; the only lock is that of the table of allocations.
 */
#include "tests/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLER     __builtin_return_address(0)
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

enum { ALLOCATIONS = 1 << 16 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *base);

static struct shim_board *board; /* NULL: not mapped yet */

/* The address range of our own modules' code. */
static struct {
    uintptr_t base, start, end;
} modules[SHIM_MODULES];
static uint32_t module_count;

/* The allocations of our own modules, by address. */
static pthread_mutex_t allocations_lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation {
    uintptr_t base; /* 0: never used; 1: freed */
    struct shim_site *site;
} allocations[ALLOCATIONS];

/* ---- sites ----------------------------------------------------------------------------------- */

static bool is_own(const char *path, const char *own)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    for (size_t length; *own; own += length + 1) {
        length = strcspn(own, " ");
        if (length > 0 && strncmp(name, own, length) == 0)
            return true;
        if (own[length] == '\0')
            break;
    }
    return false;
}

/* Numbers our modules in the order in which they are loaded, which is the same in each run. */
static int add_module(struct dl_phdr_info *info, size_t size, void *own)
{
    char program[256] = "";

    if (!*info->dlpi_name &&
        syscall(SYS_readlink, "/proc/self/exe", program, sizeof(program) - 1) < 0)
        return 0;
    if (module_count == SHIM_MODULES || !is_own(*program ? program : info->dlpi_name, own))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        modules[module_count].base = info->dlpi_addr;
        modules[module_count].start = info->dlpi_addr + part->p_vaddr;
        modules[module_count].end = modules[module_count].start + part->p_memsz;
    }
    module_count++;
    return 0;
}

static __attribute__((constructor)) void begin(void)
{
    const char *number = getenv("PWC_SHIM_FD"), *own = getenv("PWC_SHIM_OWN");
    void *base;

    if (!number || !own)
        return;
    base = NEXT(mmap64)(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(number), 0);
    if (base == MAP_FAILED)
        return;
    dl_iterate_phdr(add_module, (void *)(uintptr_t)own);
    atomic_fetch_add(&((struct shim_board *)base)->pids, 1);
    board = base;
}

/* Returns the key of a call site; 0: the address is not in our modules. */
static uint64_t key_of(enum shim_call call, const void *caller)
{
    uintptr_t at = (uintptr_t)caller;

    for (uint32_t i = 0; i < module_count; i++)
        if (at >= modules[i].start && at < modules[i].end)
            return shim_key(call, i, at - modules[i].base);
    return 0;
}

static struct shim_site *site_of(uint64_t key)
{
    for (uint32_t i = 0, at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 54); i < SHIM_SITES;
         i++, at++) {
        struct shim_site *site = &board->sites[at % SHIM_SITES];
        uint64_t there = 0;

        if (atomic_load(&site->key) == key ||
            atomic_compare_exchange_strong(&site->key, &there, key) || there == key)
            return site;
    }
    return NULL;
}

/* Counts a call, and returns whether it must fail, with errno set. */
static bool fails(enum shim_call call, const void *caller)
{
    struct shim_site *site;
    uint64_t key, passing, at;

    if (!board)
        return false;
    key = key_of(call, caller);
    if (key == 0) {
        atomic_fetch_add_explicit(&board->foreign, 1, memory_order_relaxed);
        return false;
    }
    site = site_of(key);
    if (!site)
        return false;
    passing = atomic_fetch_add(&site->passed, 1) + 1;
    if (atomic_load(&board->fail_key) != key)
        return false;
    at = atomic_load(&board->fail_at);
    if (passing < at || (passing > at && !atomic_load(&board->for_ever)))
        return false;
    atomic_fetch_add(&board->failed, 1);
    errno = atomic_load(&board->error);
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint32_t slot_of(const void *base)
{
    return (uint32_t)(((uintptr_t)base >> 4) * 2654435761u);
}

static void count(struct shim_site *site, int64_t more)
{
    atomic_fetch_add(&board->live, more);
    if (site)
        atomic_fetch_add(&site->live, more);
}

/* Notes an allocation. A freed slot may be used again, but does not end a search. */
static void note(enum shim_call call, const void *base, const void *caller)
{
    uint64_t key = base && board ? key_of(call, caller) : 0;

    if (key == 0)
        return;
    pthread_mutex_lock(&allocations_lock);
    for (uint32_t i = 0, at = slot_of(base); i < ALLOCATIONS; i++, at++) {
        struct allocation *slot = &allocations[at % ALLOCATIONS];

        if (slot->base > 1)
            continue;
        *slot = (struct allocation){(uintptr_t)base, site_of(key)};
        count(slot->site, 1);
        break;
    }
    pthread_mutex_unlock(&allocations_lock);
}

static void forget(const void *base)
{
    if (!base || !board)
        return;
    pthread_mutex_lock(&allocations_lock);
    for (uint32_t i = 0, at = slot_of(base); i < ALLOCATIONS; i++, at++) {
        struct allocation *slot = &allocations[at % ALLOCATIONS];

        if (slot->base == 0)
            break;
        if (slot->base != (uintptr_t)base)
            continue;
        slot->base = 1;
        count(slot->site, -1);
        break;
    }
    pthread_mutex_unlock(&allocations_lock);
}

void *malloc(size_t size)
{
    void *base = fails(SHIM_MALLOC, CALLER) ? NULL : __libc_malloc(size);

    note(SHIM_MALLOC, base, CALLER);
    return base;
}

void *calloc(size_t number, size_t size)
{
    void *base = fails(SHIM_CALLOC, CALLER) ? NULL : __libc_calloc(number, size);

    note(SHIM_CALLOC, base, CALLER);
    return base;
}

void *realloc(void *old, size_t size)
{
    void *base;

    if (fails(SHIM_REALLOC, CALLER))
        return NULL;
    forget(old);
    base = __libc_realloc(old, size);
    note(SHIM_REALLOC, base ? base : old, CALLER);
    return base;
}

void free(void *base)
{
    forget(base);
    __libc_free(base);
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fails(SHIM_STRDUP, CALLER) ? NULL : __libc_malloc(size);

    note(SHIM_STRDUP, copy, CALLER);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* ---- calls with a varying number of arguments --------------------------------------------------
 */

int fcntl64(int fd, int command, ...)
{
    va_list more;
    long argument;

    va_start(more, command);
    argument = va_arg(more, long);
    va_end(more);
    return fails(SHIM_FCNTL, CALLER) ? -1 : NEXT(fcntl64)(fd, command, argument);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode = 0;

    if (flags & (O_CREAT | O_TMPFILE)) {
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return fails(SHIM_OPEN, CALLER) ? -1 : NEXT(open64)(path, flags, mode);
}

void *mremap(void *old, size_t size, size_t new_size, int flags, ...)
{
    va_list more;
    void *to;

    va_start(more, flags);
    to = va_arg(more, void *);
    va_end(more);
    return fails(SHIM_MREMAP, CALLER) ? MAP_FAILED : NEXT(mremap)(old, size, new_size, flags, to);
}

/* The kind of a raw system call; 0: one that is never made to fail. */
static enum shim_call call_of(long number, long second)
{
    switch (number) {
    case SYS_membarrier:
        return SHIM_MEMBARRIER;
    case SYS_pidfd_open:
        return SHIM_PIDFD_OPEN;
    case SYS_futex:
        return second == 0 ? SHIM_FUTEX_WAIT : 0;
    default:
        return 0;
    }
}

long syscall(long number, ...)
{
    enum shim_call call;
    va_list more;
    long a[6];

    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    call = call_of(number, a[1]);
    if (call != 0 && fails(call, CALLER))
        return -1;
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- calls that give their error back ---------------------------------------------------------
 */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *to)
{
    return fails(SHIM_PTHREAD_CREATE, CALLER) ? errno
                                              : NEXT(pthread_create)(thread, attr, start, to);
}

int posix_fallocate64(int fd, off64_t from, off64_t size)
{
    return fails(SHIM_FALLOCATE, CALLER) ? errno : NEXT(posix_fallocate64)(fd, from, size);
}

/* ---- all others -------------------------------------------------------------------------------
 */

int accept4(int fd, struct sockaddr *name, socklen_t *size, int flags)
{
    return fails(SHIM_ACCEPT4, CALLER) ? -1 : NEXT(accept4)(fd, name, size, flags);
}

int bind(int fd, const struct sockaddr *name, socklen_t size)
{
    return fails(SHIM_BIND, CALLER) ? -1 : NEXT(bind)(fd, name, size);
}

int chmod(const char *path, mode_t mode)
{
    return fails(SHIM_CHMOD, CALLER) ? -1 : NEXT(chmod)(path, mode);
}

int connect(int fd, const struct sockaddr *name, socklen_t size)
{
    return fails(SHIM_CONNECT, CALLER) ? -1 : NEXT(connect)(fd, name, size);
}

int epoll_create1(int flags)
{
    return fails(SHIM_EPOLL_CREATE1, CALLER) ? -1 : NEXT(epoll_create1)(flags);
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
    return fails(SHIM_EPOLL_CTL, CALLER) ? -1 : NEXT(epoll_ctl)(set, op, fd, event);
}

int epoll_pwait2(int set, struct epoll_event *events, int room, const struct timespec *limit,
                 const sigset_t *mask)
{
    return fails(SHIM_EPOLL_PWAIT2, CALLER) ? -1
                                            : NEXT(epoll_pwait2)(set, events, room, limit, mask);
}

int eventfd(unsigned count, int flags)
{
    return fails(SHIM_EVENTFD, CALLER) ? -1 : NEXT(eventfd)(count, flags);
}

int fchmod(int fd, mode_t mode)
{
    return fails(SHIM_FCHMOD, CALLER) ? -1 : NEXT(fchmod)(fd, mode);
}

int flock(int fd, int how)
{
    return fails(SHIM_FLOCK, CALLER) ? -1 : NEXT(flock)(fd, how);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fails(SHIM_FOPEN, CALLER) ? NULL : NEXT(fopen64)(path, mode);
}

int fstat64(int fd, struct stat64 *st)
{
    return fails(SHIM_FSTAT, CALLER) ? -1 : NEXT(fstat64)(fd, st);
}

int ftruncate64(int fd, off64_t size)
{
    return fails(SHIM_FTRUNCATE, CALLER) ? -1 : NEXT(ftruncate64)(fd, size);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    return fails(SHIM_GETSOCKOPT, CALLER) ? -1 : NEXT(getsockopt)(fd, level, name, value, size);
}

int listen(int fd, int backlog)
{
    return fails(SHIM_LISTEN, CALLER) ? -1 : NEXT(listen)(fd, backlog);
}

int madvise(void *base, size_t size, int advice)
{
    return fails(SHIM_MADVISE, CALLER) ? -1 : NEXT(madvise)(base, size, advice);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(SHIM_MEMFD_CREATE, CALLER) ? -1 : NEXT(memfd_create)(name, flags);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(SHIM_MKDIR, CALLER) ? -1 : NEXT(mkdir)(path, mode);
}

void *mmap64(void *at, size_t size, int rights, int flags, int fd, off64_t from)
{
    return fails(SHIM_MMAP, CALLER) ? MAP_FAILED : NEXT(mmap64)(at, size, rights, flags, fd, from);
}

int poll(struct pollfd *fds, nfds_t count, int limit)
{
    return fails(SHIM_POLL, CALLER) ? -1 : NEXT(poll)(fds, count, limit);
}

ssize_t read(int fd, void *to, size_t size)
{
    return fails(SHIM_READ, CALLER) ? -1 : NEXT(read)(fd, to, size);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return fails(SHIM_RECVMSG, CALLER) ? -1 : NEXT(recvmsg)(fd, message, flags);
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
    return fails(SHIM_SEND, CALLER) ? -1 : NEXT(send)(fd, from, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails(SHIM_SENDMSG, CALLER) ? -1 : NEXT(sendmsg)(fd, message, flags);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return fails(SHIM_SETSOCKOPT, CALLER) ? -1 : NEXT(setsockopt)(fd, level, name, value, size);
}

int shutdown(int fd, int how)
{
    return fails(SHIM_SHUTDOWN, CALLER) ? -1 : NEXT(shutdown)(fd, how);
}

int socket(int domain, int type, int protocol)
{
    return fails(SHIM_SOCKET, CALLER) ? -1 : NEXT(socket)(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails(SHIM_SOCKETPAIR, CALLER) ? -1 : NEXT(socketpair)(domain, type, protocol, fds);
}

/* Writes of 8 bytes, to event counters, are not made to fail: a counter's write fails only when the
 * counter is full, so that its reader wakes anyway. */
ssize_t write(int fd, const void *from, size_t size)
{
    return size != 8 && fails(SHIM_WRITE, CALLER) ? -1 : NEXT(write)(fd, from, size);
}
