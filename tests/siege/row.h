/*
 * The rows of the siege: what one attacker does, within the rights of an ordinary user, for as long
 * as it is let. attacker.c starts a row's processes and ends them; each file rows_*.c holds some.
 *
 * Thread: one a process.
 */
#ifndef PWC_TESTS_SIEGE_ROW_H
#define PWC_TESTS_SIEGE_ROW_H

#include <stdatomic.h>
#include <stdint.h>

#define ATTACK_NODES 2u
#define ATTACK_PORTS 8u

/* The processes of a row share this memory. */
struct tally {
    _Atomic uint64_t taken;    /* acts that the daemons took: the row does attack */
    _Atomic uint64_t refused;  /* acts that ended with an error */
    _Atomic uint32_t ready;    /* processes that have all that they need, and begin */
    _Atomic uint64_t pause_ns; /* the longest of a burner's (attacker.c) */
};

struct attack {
    const char *sockets[ATTACK_NODES];
    const char *data[ATTACK_PORTS];    /* "host:port" of the fabrics' listeners, up to NULL */
    const char *control[ATTACK_PORTS]; /* and of those for daemons */
    struct tally *tally;
    unsigned process; /* number among the row's processes, from 0 */
    char job[32];     /* no other attacker's */
};

enum row_flags {
    ROW_USERS = 1 << 0, /* shows shares of users: in system mode only */
    ROW_ALONE = 1 << 1, /* takes what other rows need, so it is not among all together */
    ROW_STREAM =
        1 << 2, /* attacks the ports of `stream`; libfabric's are its own (docs/security.md) */
};

struct row {
    const char *name;
    const char *does;
    unsigned processes;
    unsigned flags;     /* enum row_flags */
    const char *daemon; /* an argument that the daemons need, with its value; NULL: none */
    void (*run)(struct attack *a); /* returns only where it cannot continue */
};

/* The rows, up to one without a name. */
extern const struct row rows_requests[], rows_transfers[], rows_handlers[], rows_strangers[];

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
