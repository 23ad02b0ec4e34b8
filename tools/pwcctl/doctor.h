/*
 * pwcctl doctor: what is wrong with this machine and its daemon, and how to mend it.
 *
 *     doctor_machine.c, doctor_daemon.c    look, and write facts down
 *     doctor_checks.c                      judge them: each check is a function of the facts alone
 *     doctor.c                             prints
 */
#ifndef PWCCTL_DOCTOR_H
#define PWCCTL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOCTOR_WORD_MAX      64u
#define DOCTOR_TEXT_MAX      768u
#define DOCTOR_PROVIDERS_MAX 16u
#define DOCTOR_UNLIMITED     UINT64_MAX

struct doctor_daemon {
    char socket[108];
    int status; /* 0: it has answered; or why not, a negative errno, and in words */
    char why[DOCTOR_TEXT_MAX];
    bool stuck;
    pid_t pid;
    char version[DOCTOR_WORD_MAX];
    unsigned session_version; /* of rings and records */
    unsigned node, nodes;
    unsigned lost; /* links that were up or tried, and are down */
    unsigned lost_node;
    char lost_why[DOCTOR_TEXT_MAX]; /* of that one */
    unsigned quarantined;           /* clients so far */
    char provider[DOCTOR_WORD_MAX];
    char progress[DOCTOR_WORD_MAX]; /* its mode */
    unsigned threads, clients_max, rails;
    bool serves_others; /* than its own user */
};

struct doctor_programs {
    char version[DOCTOR_WORD_MAX]; /* ours */
    unsigned session_version;
    char pwcd[256];                     /* the daemon's program that would be started */
    char pwcd_version[DOCTOR_WORD_MAX]; /* "": it cannot be asked */
    char providers[DOCTOR_PROVIDERS_MAX][DOCTOR_WORD_MAX]; /* that would do; the first is taken */
    unsigned provider_count;
    char providers_why[DOCTOR_TEXT_MAX]; /* there are none */
};

struct doctor_machine {
    uid_t uid;                           /* that the daemon runs as, or, where none does, ours */
    uint64_t memory_locked, descriptors; /* hard limits of that process */
    bool of_daemon;                  /* the limits are the daemon's; false: those of this shell */
    bool memory_exempt;              /* memory_locked does not bind that process */
    unsigned processors;             /* that it may use */
    int membarrier;                  /* commands, or a negative errno */
    char clock[DOCTOR_WORD_MAX];     /* the kernel's source */
    uint64_t shm_free;               /* bytes of /dev/shm */
    char shm_pages[DOCTOR_WORD_MAX]; /* huge pages of shared memory: never, advise, ... */
    uint64_t tcp_receive_max, tcp_send_max, core_receive_max; /* bytes; 0: not known */
    int ptrace_scope;                                         /* of yama; -1: there is none */
};

struct doctor_facts {
    struct doctor_daemon daemon;
    struct doctor_programs programs;
    struct doctor_machine machine;
};

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_WARN,  /* works, but worse than it could */
    DOCTOR_WRONG, /* does not work, or will fail */
    DOCTOR_UNKNOWN,
    DOCTOR_LEVELS,
};

struct doctor_finding {
    enum doctor_level level;
    char found[DOCTOR_TEXT_MAX];
    char mend[DOCTOR_TEXT_MAX]; /* "" where all is well */
};

struct doctor_check {
    const char *name;
    struct doctor_finding (*judge)(const struct doctor_facts *facts);
};

/* The checks, in the order in which they are shown; the last has no name. */
const struct doctor_check *doctor_checks(void);

/* Learns about the daemon: asks it at `socket`, and runs its program. */
void doctor_look_at_daemon(struct doctor_facts *facts, const char *socket);
/* Looks at the machine as that daemon sees it. */
void doctor_look_at_machine(struct doctor_facts *facts);

/* 0: nothing is wrong; 1: something is; negative: there was no memory to judge. */
int doctor_run(const char *socket, bool json);

#endif
