/*
 * A row of bench/scale: what many nodes do together, and its figures. A row is one function and one
 * line in the table of rows.c.
 *
 * Figures in virtual time, messages, bytes and steps are the same in every run; those whose names
 * begin with `real_` or are resident memory are the machine's.
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
    uint32_t parameter; /* the function's own, as are those that follow */
    enum team_kind kind;
    uint64_t bytes;
};

const struct row *row_named(const char *name);
/* All of them, in the order of the table. */
const struct row *rows_all(uint32_t *count);

void figure_add(struct figures *figures, const char *name, double value);
/* 0 where there is none of that name. */
double figure_of(const struct figures *figures, const char *name);

/* ---- the rows -------------------------------------------------------------------------------- */

row_function row_exchange; /* parameter: peers of each rank; 0: all */
row_function row_hub;      /* none */
row_function row_pairs;    /* ranks a node */
row_function row_attach;   /* ranks a node */
row_function row_memory;   /* peers that the node's tables have room for */
/* Ranks a node; the collective, and the bytes of each rank, in an alltoall to each other rank. */
row_function row_collective, row_team;
row_function row_forward; /* the bytes of a broadcast */
row_function row_outlive; /* the same */
row_function row_product; /* bytes of what each puts */

#endif
