/*
 * The directory: on which node, and with which of its engines, each rank of a job is; the job's
 * exchanges; and the names that its ranks publish (names.h).
 *
 * A job is identified by user and name. A hash of both gives its home node, which has an entry for
 * the job in this directory. Every node reports to the home when a rank comes or goes, asks the
 * home where a rank is, and sends it what ranks contribute to an exchange.
 *
 * A job of fixed size has all its rank numbers from the start. An open job begins with none: its
 * home gives the next number to each client that joins, and never gives a number twice. A job's
 * instance is a random number that the home draws when the job begins, with its first rank; the
 * instance ends with the last rank.
 *
 * Pure: no clock or socket, and memory comes from the caller's `directory_memory`. No function
 * trusts its arguments, which come from other nodes. Thread: the thread that owns the struct
 * (control).
 */
#ifndef PWC_PEERING_DIRECTORY_H
#define PWC_PEERING_DIRECTORY_H

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
#define DIRECTORY_TOTAL_MAX (64u << 20)         /* bytes of one exchange, over all ranks */
#define DIRECTORY_LAST_MAX  (1u << 20)          /* bytes of a result that is kept */
#define DIRECTORY_OPEN_MAX  8u                  /* exchanges of one job that are under way */
#define DIRECTORY_BYTES_MAX (UINT64_C(1) << 30) /* of all tables and exchanges */
#define DIRECTORY_NO_JOB    UINT16_MAX
#define DIRECTORY_NOWHERE   UINT32_MAX       /* the rank has not come yet */
#define DIRECTORY_LEFT      (UINT32_MAX - 1) /* the rank has come and gone */
#define DIRECTORY_OPEN      UINT32_MAX       /* the size that an open job is named with */
#define DIRECTORY_ANY_RANK  UINT32_MAX       /* the home will give a rank */

#define DIRECTORY_PUBLISHED_NAME 64u   /* terminator included */
#define DIRECTORY_PUBLISHED_DATA 1024u /* bytes under a name */
#define DIRECTORY_PUBLISHED_MAX  1024u /* names of one job */

enum directory_kind {
    DIRECTORY_FIXED = 0,
    DIRECTORY_JOINED,  /* open */
    DIRECTORY_ADOPTED, /* open, and begun before the home lost its table: which ranks the home gave
                        * then is unknown, so it gives no more ranks */
};

/* A job in the table. To add it, `size` is written last; to remove it, `size` is zeroed first. */
struct directory_entry {
    _Atomic uint32_t size; /* ranks; in an open job, ranks given so far; 0: the entry is free */
    uint32_t uid;
    char name[DIRECTORY_NAME_MAX];
    uint32_t kind; /* enum directory_kind */
    uint64_t instance;
    uint32_t published; /* all published names stand in the first so many entries */
    uint32_t unused;
};
static_assert(sizeof(struct directory_entry) == 88, "directory_entry");

/* A published name and its data. To add it, `state` is written last; to remove it, `state` is
 * zeroed first. */
struct directory_published {
    _Atomic uint32_t state; /* 0: free; else the bytes of data + 1 */
    uint32_t rank;          /* the publisher */
    char name[DIRECTORY_PUBLISHED_NAME];
    uint8_t data[DIRECTORY_PUBLISHED_DATA];
};
static_assert(sizeof(struct directory_published) == 1096, "directory_published");

enum directory_result_state {
    DIRECTORY_RESULT_NONE,
    DIRECTORY_RESULT_WHOLE, /* the result's bytes are in the table, by rank */
    DIRECTORY_RESULT_LARGE, /* the result is too large to be kept */
};

/* The last result of a job's exchanges. When the process dies, some ranks may have the result, and
 * the other ranks ask for it again. To note a result, `state` is zeroed first and written last. */
struct directory_result {
    _Atomic uint32_t state;
    uint32_t sequence;
    uint32_t length; /* of each contribution */
    uint32_t unused;
};
static_assert(sizeof(struct directory_result) == 16, "directory_result");

/*
 * Jobs, the places of their ranks, their last results and their published names, in memory that
 * outlives the process; zeroed at first. Only the processes of this daemon, one after the other,
 * read the memory. Parts that no job uses take addresses, but no pages.
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

/* Gives zeroed memory and random numbers. Owned by the caller; outlives the directory. */
struct directory_memory {
    void *context;
    void *(*take)(void *context, size_t size);
    void (*give)(void *context, void *memory);
    struct directory_table *table; /* NULL: there is none */
    /* Zeroes the places of a job, the bytes of its result, and its published names. */
    void (*empty)(struct directory_table *table, uint32_t job, uint32_t ranks);
    uint64_t (*draw)(void *context); /* a random number; NULL: each instance is 1 */
};

/* One user's share of what all users have: entries of jobs, and bytes of jobs' tables and of
 * exchanges. In addition a user must leave as much free as the user holds, so that any number of
 * users who take all they can leave something to the next one. */
struct directory_shares {
    uint32_t jobs; /* most jobs of one user; 0: only bounded by what must be left free */
    bool alone;    /* there is only one user, who need not leave anything free */
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
    uint8_t **parts;   /* contributions, by rank; NULL: not given yet */
    uint64_t since_ns; /* when the gather was opened, by the caller's clock; 0: the caller has not
                          set it yet */
    /* A rank whose contribution has another length than `length`, if there is one, and that length.
     * Or the rank that has left without a contribution; the job's size where none has. */
    uint32_t odd_rank, odd_length;
};

/* An exchange that has ended with an error. Ranks that contribute later get this error, too. */
struct directory_failure {
    uint32_t sequence;
    int status; /* 0: none */
    /* Where lengths differ: the rank that gave another length, its length, and the length of
     * earlier contributions. With -EHOSTDOWN, odd_rank is the rank that has left; the job's size
     * where none has. */
    uint32_t odd_rank, odd_length, length;
};

struct directory_job {
    bool used;
    uint16_t next; /* job of the same hash, DIRECTORY_NO_JOB at the end */
    uint32_t uid;
    struct directory_user *user; /* the user who is charged for the job */
    char name[DIRECTORY_NAME_MAX];
    enum directory_kind kind;
    uint64_t instance;
    uint32_t size;    /* ranks; in an open job, ranks given so far */
    uint32_t room;    /* ranks that `places` has room for, and that the user is charged for */
    uint32_t live;    /* ranks attached */
    uint32_t left;    /* ranks at DIRECTORY_LEFT */
    uint32_t *places; /* by rank: bits of directory.c and engine << 16 | node; or DIRECTORY_NOWHERE,
                       * _LEFT. In the table, or from `take` */
    struct directory_names *names; /* names.c; NULL: none yet */
    struct directory_gather gathers[DIRECTORY_OPEN_MAX];
    struct directory_gather last; /* the last result, for a node that has lost it; `open`: there is
                                   * one */
    struct directory_failure failures[DIRECTORY_OPEN_MAX]; /* the last failures */
    uint32_t failed;                                       /* how many failures so far */
};

struct directory {
    const struct directory_memory *memory;
    uint32_t node_count;
    uint32_t ranks_max; /* most ranks that an open job gives: DIRECTORY_RANKS_MAX, less in tests */
    struct directory_shares shares;
    uint32_t used;                      /* jobs in use */
    uint64_t bytes;                     /* bytes charged to all users */
    uint16_t first[DIRECTORY_JOBS_MAX]; /* the first job with each hash of its name */
    struct directory_job jobs[DIRECTORY_JOBS_MAX];
    struct directory_user users[DIRECTORY_JOBS_MAX];
};

struct directory_id {
    uint32_t uid;
    const char *job;
};

void directory_init(struct directory *d, const struct directory_memory *memory, uint32_t node_count,
                    const struct directory_shares *shares);
/* Continues with the jobs in the memory's table, and their last results. Exchanges that had not
 * ended are lost: ranks contribute again. */
void directory_inherit(struct directory *d);
/* Frees the directory's own memory; the memory's table stays as it is. */
void directory_clear(struct directory *d);

/* Whether a job's name is valid, so that it can be logged, shown and kept in tables. */
bool directory_name_valid(const char *name);
/* The home node of a job, which is the same on every node. */
uint32_t directory_home(const struct directory_id *id, uint32_t node_count);

/* A rank that its node announces. */
struct directory_claim {
    uint32_t rank;
    uint32_t size; /* of the job; DIRECTORY_OPEN: the job is open, and a home has given the rank */
    uint32_t node, engine;
    uint64_t instance; /* the job's instance as the node knows it; 0: the node does not know it */
    bool again; /* a process that had the rank before still has it: the node announces it again */
};

/* Notes a rank that has come. Returns 0 also where the same node announces it again, with any
 * engine. A job that the directory does not have is opened, with the claim's instance if it has
 * one. -EADDRINUSE: the rank lives on another node; -EINVAL: rank, size, name, node or engine out
 * of range, or a size that differs from the job's; -ESTALE: the rank of an open job was given in
 * another instance; -EDQUOT: the user has its share; -ENOSPC, -ENOMEM. */
int directory_claim(struct directory *d, const struct directory_id *id,
                    const struct directory_claim *claim);
/* As directory_claim, without an instance. */
int directory_attach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t size, uint32_t node, uint32_t engine);
/* Gives the next rank of an open job to a client that joins. -EINVAL: the job has a fixed size, or
 * an argument is out of range; -ESTALE: the job was begun before this home lost its table; -ENOSPC:
 * all ranks have been given, or there are too many jobs; -EDQUOT, -ENOMEM. */
int directory_join(struct directory *d, const struct directory_id *id, uint32_t node,
                   uint32_t engine, uint32_t *rank);
/* Notes that a rank has left. -ENOENT: the rank was not on that node. Exchanges that wait for this
 * rank can never be completed: *failed gets a bit for each such gather of *job, which the caller
 * fails. */
int directory_detach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t node, struct directory_job **job, uint32_t *failed);
/* Returns a rank's node, and writes its engine there; or -EHOSTUNREACH. */
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
    uint32_t size; /* the job's size, as its client says */
    uint32_t sequence;
    uint32_t node; /* the node that sent it */
    const uint8_t *data;
    uint32_t length;
};

/*
 * Takes a contribution. 0: others are missing; 1: all have contributed, and *out is the result,
 * which the caller delivers and closes. Otherwise -ENOTSUP (the job is open), -EPERM (the rank does
 * not live on that node), -EINVAL, -EMSGSIZE (over the bounds), -EALREADY (contributed before),
 * -EINVAL (length differs from the others'), -EHOSTDOWN (a rank has left without having
 * contributed), -EDQUOT (the user has its share), -ENOSPC, -ENOMEM, or the error that the exchange
 * has ended with. Where *out is set, the exchange is open.
 */
int directory_contribute(struct directory *d, const struct directory_id *id,
                         const struct directory_part *part, struct directory_job **job,
                         struct directory_gather **out);
void directory_gather_close(struct directory *d, struct directory_job *job,
                            struct directory_gather *gather);
/* Copies `size` bytes of the result, from `offset` on. All ranks have contributed, or the result is
 * kept with its bytes. */
void directory_gather_copy(const struct directory_gather *gather, uint64_t offset, uint8_t *to,
                           size_t size);
/* Notes that an exchange is completed, and its result in the memory's table. Call this before any
 * rank gets the result. */
void directory_gather_note(struct directory *d, struct directory_job *job,
                           const struct directory_gather *gather);
/* Keeps a result that was delivered, in place of the earlier one. A result that is too large is
 * dropped, and a node that asks for it again gets -EHOSTDOWN. */
void directory_gather_keep(struct directory *d, struct directory_job *job,
                           struct directory_gather *gather);
/* The kept result, if this part is a repeated contribution to it; else NULL. No contribution of a
 * process is a repeated one before an exchange has ended with success since the process has its
 * rank. */
const struct directory_gather *directory_kept(const struct directory *d,
                                              const struct directory_id *id,
                                              const struct directory_part *part,
                                              struct directory_job **job);
/* Closes a gather, and remembers its error. */
void directory_gather_fail(struct directory *d, struct directory_job *job,
                           struct directory_gather *gather, int status);

/* Finds the open exchange that a rank gives up, and that the caller then fails; NULL: there is
 * none, or the rank does not live on that node. */
struct directory_gather *directory_give_up(const struct directory *d, const struct directory_id *id,
                                           const struct directory_part *part,
                                           struct directory_job **job);
/* Writes the ranks that have not contributed to an exchange, as "1, 3-7 and 12 more", in at most
 * `size` bytes with a terminator. */
void directory_missing(const struct directory_job *job, const struct directory_gather *gather,
                       char *text, size_t size);
/* Finds the error that an exchange has ended with, among the last ones; NULL: there is none. */
const struct directory_failure *directory_failure_of(const struct directory_job *job,
                                                     uint32_t sequence);

/* Iterates over the job's nodes, each once: start with *at = 0; DIRECTORY_NOWHERE at the end. The
 * time is linear in the ranks. `seen` has node_count bytes, which the caller zeroes at the
 * start. */
uint32_t directory_next_node(const struct directory_job *job, uint32_t *at, uint8_t *seen);

/* Iterates over a node's ranks, for example to detach the ranks of a lost node: finds the next job
 * and rank from *job_at and *rank_at on. False: there are no more. */
bool directory_next_rank_of(const struct directory *d, uint32_t node, uint32_t *job_at,
                            uint32_t *rank_at);

/* Marks each rank of this node as doubted, after a reconnect: a rank that the node does not
 * announce again has left meanwhile, and the caller drops it. */
void directory_doubt(struct directory *d, uint32_t node);
/* As directory_next_rank_of, for doubted ranks only. */
bool directory_next_doubted(const struct directory *d, uint32_t node, uint32_t *job_at,
                            uint32_t *rank_at);

#endif
