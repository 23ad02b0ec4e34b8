/*
 * The rows of the siege: each is what one attacker does, within the rights of an ordinary user,
 * until it is ended. attacker.c starts a row's processes and ends them; each file rows_*.c has some
 * rows.
 *
 * Thread: one in each process.
 */
#ifndef PWC_TESTS_SIEGE_ROW_H
#define PWC_TESTS_SIEGE_ROW_H

#include <stdatomic.h>
#include <stdint.h>

#define ATTACK_NODES 2u
#define ATTACK_PORTS 8u

/* The processes of a row share this memory. */
struct tally {
    _Atomic uint64_t taken;    /* acts that the daemons accepted: shows that the row attacks */
    _Atomic uint64_t refused;  /* acts that ended with an error */
    _Atomic uint32_t ready;    /* processes that are prepared and begin */
    _Atomic uint64_t pause_ns; /* the longest round of a burner (attacker.c) */
};

struct attack {
    const char *sockets[ATTACK_NODES];
    const char *data[ATTACK_PORTS];    /* listeners of the fabrics, as "host:port", up to NULL */
    const char *control[ATTACK_PORTS]; /* listeners for other daemons */
    struct tally *tally;
    unsigned process; /* number among the row's processes, from 0 */
    char job[32];     /* name of a job that no other attacker has */
};

enum row_flags {
    ROW_USERS = 1 << 0,  /* about shares of users, so only in system mode */
    ROW_ALONE = 1 << 1,  /* uses up what other rows need: not run together with others */
    ROW_STREAM = 1 << 2, /* attacks the ports of `stream`; for libfabric's see docs/security.md */
};

struct row {
    const char *name;
    const char *does;
    unsigned processes;
    unsigned flags;     /* enum row_flags */
    const char *daemon; /* an argument that the daemons need, with its value; NULL: none */
    void (*run)(struct attack *a); /* returns only where it cannot continue */
};

/* Tables of rows, each up to a row without a name. */
extern const struct row rows_requests[], rows_transfers[], rows_teams[], rows_handlers[],
    rows_strangers[];

static inline void attack_begins(struct attack *a)
{
    atomic_fetch_add(&a->tally->ready, 1);
}

static inline void attack_counts(struct attack *a, int rc)
{
    atomic_fetch_add_explicit(rc < 0 ? &a->tally->refused : &a->tally->taken, 1,
                              memory_order_relaxed);
}

#endif
