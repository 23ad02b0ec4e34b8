/*
 * The contents of pwcctl top: the daemon's documents of two looks, joined into tables, with rates.
 *
 *     status, clients, queues, ledgers, nodes, ops --join--> rows
 *     rows --difference to the last look--> cells
 *
 * Pure: no clock, no terminal, no socket.
 */
#ifndef PWCCTL_TOP_MODEL_H
#define PWCCTL_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "tools/pwcctl/format.h"
#include "tools/pwcctl/table.h"
#include "tools/pwcctl/top/hints.h"

enum { TOP_COLUMNS_MAX = 26, TOP_TEXT_MAX = 96, TOP_DAEMONS_MAX = 256 };

enum top_table {
    TOP_CLIENTS = 0,
    TOP_QUEUES,
    TOP_PEERS,
    TOP_USERS,
    TOP_TABLES,
};

enum top_kind {
    TOP_TEXT = 1,
    TOP_NUMBER, /* the value as it is now */
    TOP_RATE,   /* how much a counter grows in a second */
    TOP_BAR,    /* how much of a size is used, and was at most */
    TOP_SHARE,  /* by how much a counter of ns has grown, as a share of the time since the last look
                 */
    TOP_REST,   /* the rest of the time, beside the shares */
    TOP_PART,   /* a rate, of which the column shows the share of the sum of all rows */
};

struct top_column {
    const char *title;
    const char *key; /* of a row */
    enum top_kind kind;
    enum field_unit format;
    size_t width;  /* at least */
    unsigned need; /* 1: always shown; a narrow screen leaves the highest numbers out first */
    const char *size_key, *high_key; /* for a bar; high NULL: no maximum is kept */
    bool only_if_any;                /* the column is left out if no row has a value */
};

struct top_cell {
    bool known; /* false for a rate at the first look, and when its counter began again, or is
                   a mean of other contexts */
    double value, high; /* for a bar: shares from 0 to 1 */
    double counter;     /* for a rate or a share: the counter itself */
    double contexts;    /* for a share of a client: the contexts whose mean the counter is */
    char text[TOP_TEXT_MAX];
};

struct top_row {
    char name[TOP_TEXT_MAX]; /* the same from look to look, and no other row's */
    struct top_cell cells[TOP_COLUMNS_MAX];
};

struct top_rows {
    struct top_row *rows;
    size_t count;
    bool has[TOP_COLUMNS_MAX]; /* columns that some row has */
};

/* Sums over the daemon, and rates. */
struct top_totals {
    bool known;
    double cpu_share, work, sleeps;
    double put_ops, get_ops, am_ops, op_bytes, direct_ops;
    double delivered, in_flight, errors;
};

/* The report of one daemon about itself. */
struct top_daemon {
    long pid, node, nodes, quarantined, refused;
    double uptime_s;
    char version[TOP_TEXT_MAX], provider[TOP_TEXT_MAX];
    bool stuck;                  /* a progress thread did not answer */
    double cpu_ns, work, sleeps; /* counters */
};

struct top_model {
    bool seen;                                  /* there was a look */
    double at;                                  /* time of the last look, in seconds */
    struct top_daemon daemons[TOP_DAEMONS_MAX]; /* daemons that answered the last look */
    size_t daemon_count;
    struct top_totals totals;
    struct top_rows tables[TOP_TABLES];
    struct top_hints hints;
    char note[2 * TOP_TEXT_MAX]; /* the last incident: "" or a line */
    double note_until;           /* 0: until the next look */
};

/* The documents of one look at one daemon. */
struct top_look {
    json_t *status, *clients, *queues, *ledgers, *nodes;
    json_t *ops, *jobs; /* NULL: an older daemon */
};

/* Returns the columns of a table; there are `count`. */
const struct top_column *top_columns(enum top_table table, size_t *count);
const char *top_table_name(enum top_table table);

/* Takes a look's documents, of TOP_DAEMONS_MAX daemons at most. 0; -EBADMSG: documents are
 * malformed; -ENOMEM. `at` is in seconds of any clock. */
int top_model_take(struct top_model *model, const struct top_look *looks, size_t count, double at);
/* Notes that one of several daemons has not answered this look; the note lasts until the next
 * look. */
void top_model_note(struct top_model *model, const char *text);
/* Notes that a look failed, and why. The rows of the last look stay. */
void top_model_miss(struct top_model *model, const char *why, double at);
void top_model_free(struct top_model *model);
void top_look_free(struct top_look *look);

#endif
