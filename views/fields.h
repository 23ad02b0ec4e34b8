/*
 * The fields of the views, each described once.
 *
 *     engine, control --rows (rows.h, counters_abi.h)--> JSON (json.h) --> pwcctl, pwcctl top
 *                                                              \--> pwc-exporter --> Prometheus
 *
 * A new counter needs a word in its row, a place that counts it, a line in its table in fields.c,
 * and its key in docs/inspect.md (with its metric in docs/metrics.md); tests compare these.
 *
 * Thread: any; constants.
 */
#ifndef PWC_VIEWS_FIELDS_H
#define PWC_VIEWS_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the row stores the value. */
enum field_kind {
    FIELD_NOW = 0, /* uint64_t that rises and falls */
    FIELD_COUNT,   /* uint64_t that only grows */
    FIELD_FLAG,    /* uint64_t: 0 or not */
    FIELD_WORD,    /* uint64_t: an index into `words` */
    FIELD_TEXT,    /* const char *, NULL for none */
    FIELD_CHARS,   /* char [] */
    FIELD_OTHER,   /* not in the row: other code adds it to the document */
};

/* How people read the value. */
enum field_unit {
    UNIT_NONE = 0,
    UNIT_BYTES,  /* 4.0K, 1.5M: powers of 1024 */
    UNIT_COUNT,  /* 12.3k, 4.5M: powers of 1000; exact below 10,000 */
    UNIT_NS,     /* a duration: 850ns, 12.3us, 4.5s */
    UNIT_SECOND, /* a duration given in seconds */
    UNIT_PERCENT,
    UNIT_RANKS, /* ranks of a job; UINT32_MAX: "open" */
};

/* A metric of pwc-exporter, without its prefix "pwcd_" and its suffix "_total"; the name ends with
 * its unit. Fields of one metric differ by a label, which their names include: "operations
 * kind=put".
 * */
struct field_metric {
    const char *name; /* NULL: none */
    const char *help; /* set in the first field of a metric */
};

struct field {
    const char *key; /* in JSON; NULL: after the last field */
    size_t offset;   /* in the row */
    enum field_kind kind;
    enum field_unit unit;
    const char *title;        /* of pwcctl's column, unique in its table; NULL: not shown */
    const char *const *words; /* for FIELD_WORD: its words, NULL after the last */
    struct field_metric each; /* a sample for each row */
    struct field_metric sum;  /* one sample for all rows */
    bool names; /* the field names the row: its column is first, and is repeated where a table is
                   shown in parts */
};

/* An array of a document, and the fields of its rows. */
struct view_rows {
    const char *key; /* of the array; NULL: after the last array */
    const struct field *fields;
};

#define VIEW_ROWS_MAX 3

struct view {
    const char *name; /* NULL: after the last view */
    struct view_rows rows[VIEW_ROWS_MAX + 1];
};

extern const struct view views[];

extern const struct field fields_daemon[];  /* struct counters_header */
extern const struct field fields_step[];    /* struct counters_header too; shown also in status */
extern const struct field fields_session[]; /* struct counters_session */
extern const struct field fields_peer[];    /* struct counters_peer */
extern const struct field fields_engine[];
extern const struct field fields_node[];
extern const struct field fields_client[];
extern const struct field fields_user[];
extern const struct field fields_quarantined[];
extern const struct field fields_region[];
extern const struct field fields_program[];
extern const struct field fields_offload[];
extern const struct field fields_team[];
extern const struct field fields_collective[];
extern const struct field fields_job[];
extern const struct field fields_exchange[];
extern const struct field fields_op[];
extern const struct field fields_latency[];
extern const struct field fields_config[];

/* Finds a table by its name. NULL: there is none of that name. */
const struct view *view_find(const char *name);

#endif
