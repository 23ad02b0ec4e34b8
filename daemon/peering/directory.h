/*
 * The directory: which node each rank of a job is on, with which of its engines, the job's
 * all-gathers, and the names that its ranks publish (names.h).
 *
 * A job is (user, name). Its home node, found by hashing, keeps one entry of this directory for it;
 * every node reports to the home when a rank comes or goes, asks it where a rank is, and sends it
 * what its ranks contribute to an exchange.
 *
 * A job of fixed size has all its ranks from the start. An open job has none: its home gives the
 * next number to each process that joins, and never gives one twice. A job's instance is a random
 * number that the home draws when the job begins, with its first rank, and that goes with the last.
 *
 * Pure: no clock or socket, and memory comes from the caller's `directory_memory`. Nothing here
 * trusts its arguments: they come from other nodes. Thread: that of the struct's owner (control).
 */
#ifndef PWC_ENGINE_DIRECTORY_H
#define PWC_ENGINE_DIRECTORY_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRECTORY_NAME_MAX  60u        /* terminator included */
#define DIRECTORY_RANKS_MAX (1u << 21) /* 16,384 nodes of 128 ranks */
#define DIRECTORY_NODES_MAX 65536u
#define DIRECTORY_ENGINES   16u /* of one node */
#define DIRECTORY_DATA_MAX  4096u
#define DIRECTORY_JOBS_MAX  1024u
#define DIRECTORY_TOTAL_MAX (64u << 20)         /* bytes of one exchange, all ranks */
#define DIRECTORY_LAST_MAX  (1u << 20)          /* bytes of a result that is kept */
#define DIRECTORY_OPEN_MAX  8u                  /* exchanges of one job that are under way */
#define DIRECTORY_BYTES_MAX (UINT64_C(1) << 30) /* of all tables and exchanges */
#define DIRECTORY_NO_JOB    UINT16_MAX
#define DIRECTORY_NOWHERE   UINT32_MAX       /* has not come yet */
#define DIRECTORY_LEFT      (UINT32_MAX - 1) /* has come and gone */
#define DIRECTORY_OPEN      UINT32_MAX       /* the size that an open job is named with */
#define DIRECTORY_ANY_RANK  UINT32_MAX       /* the home is to give one */

#define DIRECTORY_PUBLISHED_NAME 64u   /* terminator included */
#define DIRECTORY_PUBLISHED_DATA 1024u /* bytes under a name */
#define DIRECTORY_PUBLISHED_MAX  1024u /* names of one job */

enum directory_kind {
    DIRECTORY_FIXED = 0,
    DIRECTORY_JOINED,  /* open */
    DIRECTORY_ADOPTED, /* open, and begun before the home lost its table: what the home gave then is
                          unknown, so it gives no rank any more */
};

/* A job in the table. `size` is written last, and zeroed first. */
struct directory_entry {
    _Atomic uint32_t size; /* ranks, of an open job those given so far; 0: the entry is free */
    uint32_t uid;
    char name[DIRECTORY_NAME_MAX];
    uint32_t kind; /* enum directory_kind */
    uint64_t instance;
    uint32_t published; /* no published name stands behind so many entries */
    uint32_t unused;
};
static_assert(sizeof(struct directory_entry) == 88, "directory_entry");

/* A name and what its publisher has put under it. `state` is written last, and zeroed first. */
struct directory_published {
    _Atomic uint32_t state; /* 0: free; else the bytes of data + 1 */
    uint32_t rank;          /* the publisher */
    char name[DIRECTORY_PUBLISHED_NAME];
    uint8_t data[DIRECTORY_PUBLISHED_DATA];
};
static_assert(sizeof(struct directory_published) == 1096, "directory_published");

enum directory_result_state {
    DIRECTORY_RESULT_NONE,
    DIRECTORY_RESULT_WHOLE, /* its bytes are there, by rank */
    DIRECTORY_RESULT_LARGE, /* too large to be kept */
};

/* The last result of a job's exchanges. Some ranks may have it when the process dies, and the
 * others ask for it again. `state` is written last, and zeroed first. */
struct directory_result {
    _Atomic uint32_t state;
    uint32_t sequence;
    uint32_t length; /* of each contribution */
    uint32_t unused;
};
static_assert(sizeof(struct directory_result) == 16, "directory_result");

/*
 * Jobs, the places of their ranks and their last results, in memory that outlives the process;
 * zeroed at first. The memory is private to the daemons that follow one another. What no job uses
 * takes addresses only.
 *
 *     jobs | results | places of job 0 | of job 1 | ... | bytes of result 0 | of result 1 | ...
 *     | published names of job 0 | of job 1 | ...
 */
struct directory_table {
    struct directory_entry jobs[DIRECTORY_JOBS_MAX];
    struct directory_result results[DIRECTORY_JOBS_MAX];
    uint32_t places[DIRECTORY_JOBS_MAX][DIRECTORY_RANKS_MAX];
    uint8_t bytes[DIRECTORY_JOBS_MAX][DIRECTORY_LAST_MAX];
    struct directory_published published[DIRECTORY_JOBS_MAX][DIRECTORY_PUBLISHED_MAX];
};
static_assert(offsetof(struct directory_table, results) == 90112, "directory_table.results");
static_assert(offsetof(struct directory_table, places) == 106496, "directory_table.places");

/* Where memory comes from, zeroed, and random numbers. Owned by the caller; outlives the directory.
 */
struct directory_memory {
    void *context;
    void *(*take)(void *context, size_t size);
    void (*give)(void *context, void *memory);
    struct directory_table *table; /* NULL: there is none */
    /* Zeroes the places of a job, the bytes of its result, and its published names. */
    void (*empty)(struct directory_table *table, uint32_t job, uint32_t ranks);
    uint64_t (*draw)(void *context); /* a random number; NULL: each instance is 1 */
};

/* The share of one user in the tables of all: entries of jobs, and bytes of their tables and of
 * what their exchanges gather. Beside these bounds a user leaves as much free as it holds, so that
 * any number of users that take what they can leave some to the next one. */
struct directory_shares {
    uint32_t jobs; /* of one user at most; 0: what it leaves free bounds it */
    bool alone;    /* there is one user: nothing is to be left free */
};

/* A user with a job here. */
struct directory_user {
    uint32_t uid;
    uint32_t jobs; /* 0: the entry is free */
    uint64_t bytes;
};

/* One exchange that is being gathered. */
struct directory_gather {
    bool open;
    uint32_t sequence;
    uint32_t length; /* of each contribution */
    uint32_t have;
    uint8_t **parts;   /* by rank; NULL: not given yet */
    uint64_t since_ns; /* when the gather was opened, by the caller's clock; 0: the caller has not
                          set it yet */
    /* The contribution whose length differs; of another length than ours where there is one. Or the
     * rank that has left without having contributed; the job's size where none has. */
    uint32_t odd_rank, odd_length;
};

/* An exchange that has ended with an error: ranks that take part later get it too. */
struct directory_failure {
    uint32_t sequence;
    int status; /* 0: none */
    /* Where lengths differ: the rank that gave another length, and that of those before it. With
     * -EHOSTDOWN: the rank that has left; the job's size where none has. */
    uint32_t odd_rank, odd_length, length;
};

struct directory_job {
    bool used;
    uint16_t next; /* job of the same hash, DIRECTORY_NO_JOB at the end */
    uint32_t uid;
    struct directory_user *user; /* whose share it is charged to */
    char name[DIRECTORY_NAME_MAX];
    enum directory_kind kind;
    uint64_t instance;
    uint32_t size;    /* ranks; of an open job those that have been given */
    uint32_t room;    /* ranks that `places` has room for, and that the user is charged for */
    uint32_t live;    /* ranks attached */
    uint32_t left;    /* ranks at DIRECTORY_LEFT */
    uint32_t *places; /* by rank: doubt, engine << 16 | node, DIRECTORY_NOWHERE or _LEFT; in the
                         table, or taken */
    struct directory_names *names; /* names.c; NULL: none yet */
    struct directory_gather gathers[DIRECTORY_OPEN_MAX];
    struct directory_gather last; /* whole, for a node that lost it; open: there is one */
    struct directory_failure failures[DIRECTORY_OPEN_MAX]; /* the last ones */
    uint32_t failed;                                       /* so far */
};

struct directory {
    const struct directory_memory *memory;
    uint32_t node_count;
    uint32_t ranks_max; /* that an open job gives: DIRECTORY_RANKS_MAX, in tests less */
    struct directory_shares shares;
    uint32_t used;                      /* jobs */
    uint64_t bytes;                     /* of all users */
    uint16_t first[DIRECTORY_JOBS_MAX]; /* job by its name's hash */
    struct directory_job jobs[DIRECTORY_JOBS_MAX];
    struct directory_user users[DIRECTORY_JOBS_MAX];
};

struct directory_id {
    uint32_t uid;
    const char *job;
};

void directory_init(struct directory *d, const struct directory_memory *memory, uint32_t node_count,
                    const struct directory_shares *shares);
/* Goes on with the jobs of the memory's table, and their last results. Exchanges that had not ended
 * are gone: ranks contribute again. */
void directory_inherit(struct directory *d);
/* Frees the directory's own memory; the memory's table stays as it is. */
void directory_clear(struct directory *d);

/* Whether a job's name is fit for logs, screens and other nodes' tables. */
bool directory_name_valid(const char *name);
/* The home node of a job: the same on every node. */
uint32_t directory_home(const struct directory_id *id, uint32_t node_count);

/* A rank that its node announces. */
struct directory_claim {
    uint32_t rank;
    uint32_t size; /* of the job; DIRECTORY_OPEN: the rank has been given by a home */
    uint32_t node, engine;
    uint64_t instance; /* of the job, as the node knows it; 0: not at all */
};

/* A rank has come. Once more from the same node, also with another engine: 0. A job that is not
 * known begins, with the claim's instance where it has one. -EADDRINUSE: the rank lives on another
 * node; -EINVAL: rank, size, name, node or engine out of range, or a size that differs from the
 * job's; -ESTALE: the rank of an open job was given in another instance; -EDQUOT: the user has its
 * share; -ENOSPC, -ENOMEM. */
int directory_claim(struct directory *d, const struct directory_id *id,
                    const struct directory_claim *claim);
/* As directory_claim, without an instance. */
int directory_attach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t size, uint32_t node, uint32_t engine);
/* A process joins an open job: *rank is the next one. -EINVAL: the job has a fixed size, or an
 * argument is out of range; -ESTALE: the job was begun before this home lost its table; -ENOSPC:
 * all ranks have been given, or there are too many jobs; -EDQUOT, -ENOMEM. */
int directory_join(struct directory *d, const struct directory_id *id, uint32_t node,
                   uint32_t engine, uint32_t *rank);
/* A rank has gone. -ENOENT: it was not on that node. Exchanges that wait for it can never end:
 * *failed gets a bit for each such gather of *job, for the caller to fail. */
int directory_detach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t node, struct directory_job **job, uint32_t *failed);
/* The node of a rank, and its engine there; or -EHOSTUNREACH. */
int directory_where(const struct directory *d, const struct directory_id *id, uint32_t rank,
                    uint32_t *engine);

/* How many ranks the job has, or has given; 0: there is no such job here. */
uint32_t directory_size(const struct directory *d, const struct directory_id *id);
/* The job's instance; 0: there is no such job here. */
uint64_t directory_instance(const struct directory *d, const struct directory_id *id);
bool directory_is_open(const struct directory *d, const struct directory_id *id);
/* Whether the rank has come and gone. */
bool directory_has_left(const struct directory *d, const struct directory_id *id, uint32_t rank);

/* One rank's part of an exchange. */
struct directory_part {
    uint32_t rank;
    uint32_t size; /* of the job, as its client says */
    uint32_t sequence;
    uint32_t node; /* the node that it came from */
    const uint8_t *data;
    uint32_t length;
};

/*
 * 0: waits for more; 1: all are there, *out is the result, to be delivered and closed. Otherwise
 * -ENOTSUP (the job is open), -EPERM (the rank does not live on that node), -EINVAL, -EMSGSIZE
 * (over the bounds), -EALREADY (contributed before), -EINVAL (length differs from the others'),
 * -EHOSTDOWN (a rank has left without having contributed), -EDQUOT (the user has its share),
 * -ENOSPC, -ENOMEM, or what the exchange has failed with. Where *out is set the exchange is open.
 */
int directory_contribute(struct directory *d, const struct directory_id *id,
                         const struct directory_part *part, struct directory_job **job,
                         struct directory_gather **out);
void directory_gather_close(struct directory *d, struct directory_job *job,
                            struct directory_gather *gather);
/* Copies `size` bytes of the result, from `offset` on. All have given, and the bytes are there. */
void directory_gather_copy(const struct directory_gather *gather, uint64_t offset, uint8_t *to,
                           size_t size);
/* Notes a result in the memory's table, before any rank gets it. */
void directory_gather_note(struct directory *d, const struct directory_job *job,
                           const struct directory_gather *gather);
/* Keeps a result that has been delivered, in place of the one before. A result that is too large is
 * dropped: a node that asks for it again gets -EHOSTDOWN. */
void directory_gather_keep(struct directory *d, struct directory_job *job,
                           struct directory_gather *gather);
/* The kept result, if this part belongs to it and comes again; else NULL. */
const struct directory_gather *directory_kept(const struct directory *d,
                                              const struct directory_id *id,
                                              const struct directory_part *part,
                                              struct directory_job **job);
/* Closes a gather, and remembers its error. */
void directory_gather_fail(struct directory *d, struct directory_job *job,
                           struct directory_gather *gather, int status);

/* The open exchange that a rank gives up, and that the caller fails then; NULL: there is none, or
 * the rank does not live on that node. */
struct directory_gather *directory_give_up(const struct directory *d, const struct directory_id *id,
                                           const struct directory_part *part,
                                           struct directory_job **job);
/* Writes the ranks that an exchange lacks, as "1, 3-7 and 12 more", cut to `size` bytes with a
 * terminator. */
void directory_missing(const struct directory_job *job, const struct directory_gather *gather,
                       char *text, size_t size);
/* The error that an exchange has ended with, of the last ones; NULL: none. */
const struct directory_failure *directory_failure_of(const struct directory_job *job,
                                                     uint32_t sequence);

/* The job's nodes one after another, each once: start with *at = 0; DIRECTORY_NOWHERE at the end.
 * Linear in the ranks. `seen` holds node_count bytes, zeroed by the caller at the start. */
uint32_t directory_next_node(const struct directory_job *job, uint32_t *at, uint8_t *seen);

/* Iterates over a node's ranks, to detach those of a lost node: the next (job, rank) from *job_at,
 * *rank_at on. False: there are no more. */
bool directory_next_rank_of(const struct directory *d, uint32_t node, uint32_t *job_at,
                            uint32_t *rank_at);

/* Doubts each rank of this node, for its link is new: a rank that the node does not announce again
 * has left meanwhile, and the caller drops it. */
void directory_doubt(struct directory *d, uint32_t node);
/* As directory_next_rank_of, for doubted ranks only. */
bool directory_next_doubted(const struct directory *d, uint32_t node, uint32_t *job_at,
                            uint32_t *rank_at);

#endif
