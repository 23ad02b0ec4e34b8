/*
 * pwcctl doctor: what is wrong with this machine and its daemon, and how to mend it.
 *
 *     machine.c, daemon.c    look, and write facts down
 *     stalls.c                      asks why programs make no progress
 *     take.c, held.c         find the reasons in the answers; top uses them, too
 *     still.c                       finds jobs that stand still, from two looks
 *     checks.c, waits.c      judge them: each check is a function of the facts alone
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
#define DOCTOR_WHY_MAX       600u
#define DOCTOR_PROVIDERS_MAX 16u
#define DOCTOR_UNLIMITED     UINT64_MAX

struct doctor_daemon {
    char socket[108];
    int status; /* 0: the daemon has answered; otherwise why not, as a negative errno and in words
                 */
    char why[DOCTOR_TEXT_MAX];
    bool stuck;
    pid_t pid;
    char version[DOCTOR_WORD_MAX];
    unsigned session_version; /* of rings and records */
    unsigned node, nodes;
    unsigned lost; /* links that were up or tried, and are down */
    unsigned lost_node;
    char lost_why[DOCTOR_TEXT_MAX]; /* why there is no link with lost_node */
    unsigned quarantined;           /* clients so far */
    char provider[DOCTOR_WORD_MAX];
    char progress[DOCTOR_WORD_MAX]; /* mode of the progress threads */
    unsigned threads, clients_max, rails;
    bool serves_others; /* serves also users other than its own */
};

struct doctor_programs {
    char version[DOCTOR_WORD_MAX]; /* ours */
    unsigned session_version;
    char pwcd[256];                     /* the daemon's program that a start would use */
    char pwcd_version[DOCTOR_WORD_MAX]; /* "": it cannot be asked */
    char providers[DOCTOR_PROVIDERS_MAX][DOCTOR_WORD_MAX]; /* usable ones; the first is taken */
    unsigned provider_count;
    char providers_why[DOCTOR_TEXT_MAX]; /* why there are none */
};

struct doctor_machine {
    uid_t uid; /* the user that the daemon runs as; without a daemon, ours */
    uint64_t memory_locked, descriptors; /* hard limits of that process */
    bool of_daemon;                  /* the limits are the daemon's; false: those of this shell */
    bool memory_exempt;              /* memory_locked does not bind that process */
    unsigned processors;             /* how many processors the process may use */
    int membarrier;                  /* the kernel's commands of it, or a negative errno */
    char clock[DOCTOR_WORD_MAX];     /* the kernel's clock source */
    uint64_t shm_free;               /* bytes of /dev/shm */
    char shm_pages[DOCTOR_WORD_MAX]; /* huge pages of shared memory: never, advise, ... */
    uint64_t tcp_receive_max, tcp_send_max, core_receive_max; /* bytes; 0: not known */
    int ptrace_scope;                                         /* of yama; -1: there is none */
};

/* An operation that has not ended for over a second: the oldest one. */
struct doctor_operation {
    unsigned count; /* operations over a second old; 0: the other fields mean nothing */
    char kind[DOCTOR_WORD_MAX];
    int64_t origin;  /* rank; -1: its context has gone meanwhile */
    unsigned target; /* rank */
    unsigned node;   /* the target's */
    uint64_t age_ns;
    char link[DOCTOR_TEXT_MAX]; /* for `cut`: why there is no link with that node */
};

/* A context that for a second has taken no event, or no record of a neighbour. */
struct doctor_full {
    unsigned count;    /* contexts that take nothing; 0: the other fields mean nothing */
    unsigned rank;     /* the first one's */
    uint64_t quiet_ns; /* how long, where earlier looks are known; 0: for a second */
    uint64_t used, size, spilled;
    unsigned writer; /* for a queue of records: the rank of the neighbour that writes them */
    bool known;      /* for a queue of events: its client was still there, with this user and job */
    uid_t uid;
    char job[DOCTOR_WORD_MAX * 2];
    unsigned held;    /* operations of others towards it that have waited for over a second */
    int64_t held_of;  /* rank of the oldest held operation; -1: its context has gone */
    uint64_t held_ns; /* how long the oldest held operation has waited */
};

/* A barrier or an exchange that has waited for ranks for over a second: the oldest one. */
struct doctor_barrier {
    unsigned count; /* barriers and exchanges that wait so; 0: the other fields mean nothing */
    char kind[DOCTOR_WORD_MAX], job[DOCTOR_WORD_MAX], missing[DOCTOR_WORD_MAX * 2];
    unsigned have, size;
    uint64_t age_ns;
};

/* A job that has lost ranks while others live: the first one. */
struct doctor_gone {
    unsigned count; /* jobs that have lost ranks; 0: the other fields mean nothing */
    char job[DOCTOR_WORD_MAX], ranks[DOCTOR_WORD_MAX * 2];
    unsigned left, live;
};

/* A job in which nothing has been submitted or has arrived for a second, though ranks wait for it:
 * the first one. */
struct doctor_still {
    unsigned count; /* jobs that stand still; 0: the other fields mean nothing */
    char job[DOCTOR_WORD_MAX];
    unsigned waiting;                    /* ranks that wait for events, a flush or room */
    char events[DOCTOR_WORD_MAX * 2];    /* the ranks counted by `waiting`, as a list */
    char elsewhere[DOCTOR_WORD_MAX * 2]; /* ranks that wait in no call; "": there are none */
    unsigned unseen;                     /* ranks that are clients of no daemon that was asked */
    uint64_t quiet_ns;                   /* how long nothing moved; 0: for a second */
};

/* Views that all daemons are asked for. */
enum doctor_view {
    DOCTOR_QUEUES,
    DOCTOR_OPS,
    DOCTOR_JOBS,
    DOCTOR_NODES,
    DOCTOR_CLIENTS,
    DOCTOR_VIEWS,
};

/* The first daemon that has not given a view, or, where all have, not all of its rows. */
struct doctor_unheard {
    char socket[108];         /* "": all daemons have given all rows */
    int status;               /* a negative errno, or 0: some rows did not fit into the answer */
    char why[DOCTOR_WHY_MAX]; /* begins with the socket */
};

/* The reasons why programs make no progress, as all daemons that were asked give them. */
struct doctor_stalls {
    struct doctor_unheard unheard[DOCTOR_VIEWS];
    struct doctor_operation operation, cut; /* towards nodes with a link; without a link */
    struct doctor_full events, records;
    struct doctor_barrier barrier;
    struct doctor_still still;
    struct doctor_gone gone;
};

struct doctor_facts {
    struct doctor_daemon daemon;
    struct doctor_stalls stalls;
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

/* waits.c: the checks of `stalls`. */
struct doctor_finding doctor_judge_operations(const struct doctor_facts *facts);
struct doctor_finding doctor_judge_links(const struct doctor_facts *facts);
struct doctor_finding doctor_judge_events(const struct doctor_facts *facts);
struct doctor_finding doctor_judge_neighbours(const struct doctor_facts *facts);
struct doctor_finding doctor_judge_barriers(const struct doctor_facts *facts);
struct doctor_finding doctor_judge_waits(const struct doctor_facts *facts);
struct doctor_finding doctor_judge_ranks(const struct doctor_facts *facts);

/* Learns about the daemon: asks it at `socket`, and runs its program. */
void doctor_look_at_daemon(struct doctor_facts *facts, const char *socket);
/* Asks all daemons what programs wait for. If a context may take nothing, or waits for events, asks
 * again after a second. */
void doctor_look_at_stalls(struct doctor_stalls *stalls, const char *const *sockets, size_t count);
/* Looks at the machine as that daemon sees it. */
void doctor_look_at_machine(struct doctor_facts *facts);

/* Judges the daemon of the first socket, and what programs of all daemons wait for. 0: nothing is
 * wrong; 1: something is; negative: there was no memory to judge. */
int doctor_run(const char *const *sockets, size_t count, bool json);

#endif
