/*
 * A row of bench/scale: something that many nodes do together, and its figures. A row is one
 * function and one line in the table of rows.c.
 *
 * Figures of virtual time, messages, bytes and steps are the same in every run. Figures whose names
 * begin with `real_`, and those of resident memory, depend on the machine.
 *
 * Thread: one.
 */
#ifndef PWC_BENCH_ROW_H
#define PWC_BENCH_ROW_H

#include <stdint.h>
#include "daemon/fabric/sim/loggp.h"
#include "proto/team_abi.h"

#define FIGURES_MAX 16u

struct figure {
    const char *name;
    double value;
};

struct figures {
    struct figure of[FIGURES_MAX];
    uint32_t count;
    char failure[200]; /* the reason, where the row returns an error */
};

struct row;

/* The parameters of a row. */
struct row_run {
    const struct row *row;
    uint32_t nodes;
    struct loggp loggp;
};

typedef int row_function(const struct row_run *run, struct figures *out);

struct row {
    const char *name;
    const char *what; /* in words */
    uint32_t most_nodes;
    row_function *run;
    uint32_t parameter; /* for the function, like `kind` and `bytes` */
    enum team_kind kind;
    uint64_t bytes;
};

const struct row *row_named(const char *name);
/* Returns all rows, in the order of the table. */
const struct row *rows_all(uint32_t *count);

void figure_add(struct figures *figures, const char *name, double value);
/* Returns a figure, or 0 if there is none of that name. */
double figure_of(const struct figures *figures, const char *name);

/* ---- the rows -------------------------------------------------------------------------------- */

row_function row_exchange; /* parameter: peers of each rank; 0: all */
row_function row_hub;      /* no parameter */
row_function row_pairs;    /* parameter: ranks a node */
row_function row_attach;   /* parameter: ranks a node */
row_function row_memory;   /* parameter: peers that the node's tables have room for */
/* Parameter: ranks a node. `kind` is the collective, `bytes` the length of each rank's data, in an
 * alltoall of each block. */
row_function row_collective, row_team;
row_function row_forward; /* `bytes`: of a broadcast */
row_function row_outlive; /* `bytes`: of a broadcast */
row_function row_product; /* `bytes`: of the numbers that each node puts */

#endif
