/*
 * The board that a process under the shim (shim.c) shares with its test: the call sites, how often
 * each was passed, and which is to fail. A site is a place in our own code that calls the C
 * library: an offset in a module. Calls from libfabric, libuv and other libraries are counted
 * separately, and are never made to fail.
 *
 * PWC_SHIM_FD has the number of the board's descriptor; PWC_SHIM_OWN has the names of our modules,
 * each followed by a blank.
 */
#ifndef PWC_TESTS_FAULTS_SHIM_H
#define PWC_TESTS_FAULTS_SHIM_H

#include <stdatomic.h>
#include <stdint.h>

#define SHIM_SITES   1024u
#define SHIM_MODULES 8u
#define SHIM_ERRORS  3u

enum shim_call {
    SHIM_ACCEPT4 = 1,
    SHIM_BIND,
    SHIM_CALLOC,
    SHIM_CHMOD,
    SHIM_CONNECT,
    SHIM_EPOLL_CREATE1,
    SHIM_EPOLL_CTL,
    SHIM_EPOLL_PWAIT2,
    SHIM_EVENTFD,
    SHIM_FALLOCATE,
    SHIM_FCHMOD,
    SHIM_FCNTL,
    SHIM_FLOCK,
    SHIM_FOPEN,
    SHIM_FSTAT,
    SHIM_FTRUNCATE,
    SHIM_FUTEX_WAIT,
    SHIM_GETSOCKOPT,
    SHIM_LISTEN,
    SHIM_MADVISE,
    SHIM_MALLOC,
    SHIM_MEMBARRIER,
    SHIM_MEMFD_CREATE,
    SHIM_MKDIR,
    SHIM_MMAP,
    SHIM_MREMAP,
    SHIM_OPEN,
    SHIM_PIDFD_OPEN,
    SHIM_POLL,
    SHIM_PTHREAD_CREATE,
    SHIM_READ,
    SHIM_REALLOC,
    SHIM_RECVMSG,
    SHIM_SEND,
    SHIM_SENDMSG,
    SHIM_SETSOCKOPT,
    SHIM_SHUTDOWN,
    SHIM_SOCKET,
    SHIM_SOCKETPAIR,
    SHIM_STRDUP,
    SHIM_WRITE,
    SHIM_CALLS
};

/* A site is added when it is passed first, and is never removed. */
struct shim_site {
    _Atomic uint64_t key; /* call, module and offset; 0: free */
    _Atomic uint64_t passed;
    _Atomic int64_t live; /* its allocations that are not freed, in all processes of the board */
};

struct shim_board {
    struct shim_site sites[SHIM_SITES];
    _Atomic uint64_t fail_key; /* key of the site that fails; 0: none */
    _Atomic uint64_t fail_at;  /* the passing that fails, from 1 on */
    _Atomic uint32_t for_ever; /* all later passings fail, too */
    _Atomic int32_t error;
    _Atomic uint64_t failed;  /* calls that were made to fail so far */
    _Atomic uint64_t foreign; /* calls of other libraries */
    _Atomic int64_t live;     /* allocations of our own modules, in all processes of the board */
    _Atomic uint32_t pids;    /* number of processes that use the board */
};

static inline uint64_t shim_key(enum shim_call call, uint32_t module, uint64_t offset)
{
    return (uint64_t)call << 56 | (uint64_t)module << 48 | offset;
}

static inline enum shim_call shim_call_of(uint64_t key)
{
    return (enum shim_call)(key >> 56);
}

static inline uint32_t shim_module_of(uint64_t key)
{
    return key >> 48 & 0xff;
}

static inline uint64_t shim_offset_of(uint64_t key)
{
    return key & ((UINT64_C(1) << 48) - 1);
}

#endif
