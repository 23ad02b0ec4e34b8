/*
 * The model relies on the driver for one thing: ranges of operations in flight do not overlap
 * (model_busy says whether an operation is in flight). Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MODEL_H
#define PWC_TESTS_ENGINE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/engine/world/paths/path.h"

#define MODEL_ENDS_MAX 16u
#define MODEL_ID_MAX   1024u
#define MODEL_COUNTERS 4u /* words of 8 bytes */

/* One operation, with how it was submitted and what has been seen of it so far. */
struct model_op {
    uint32_t from, to;
    enum path_kind kind;
    unsigned flags;
    uint64_t remote_offset, local_offset, length;
    uint32_t pieces;  /* 2 or more: submitted as a vector */
    bool fetch;       /* for an atomic of the model's counters (model_counters.h): it fetches */
    uint64_t fetched; /* value that its local event brought */
    uint32_t life;    /* life of its target */
    uint32_t from_life;
    uint32_t lid_len, rid_len;
    int status;       /* how it must end; with `shaken` other ends are allowed */
    bool overlapping; /* others write there too: its data is compared only at the end */
    bool accepted;    /* its submission has succeeded */
    bool shaken;      /* its peer or link was lost while it was in flight */
    bool local_seen, remote_seen;
    bool ended; /* the operation is known to have ended, by its local event or otherwise */
    bool past;  /* the operation's context has ended and come back since */
    int local_status;
};

/* A flush that has not ended. */
struct model_flush {
    uint64_t number;
    uint32_t from, to;
    uint32_t count; /* how many operations of the pair are before it */
};
#define MODEL_FLUSHES_MAX 64u

/* Operations of one end towards another, in order of submission. */
struct model_pair {
    uint32_t *ops;
    uint32_t count, room;
    uint32_t local_first, remote_first; /* events before these have all been seen */
    uint32_t ended_first;               /* operations before this one are all known to have ended */
    uint64_t word; /* value before the first signal of the word that they signal */
    uint64_t word_seen;
};

struct model_end {
    pwc_peer peer;
    uint8_t *memory; /* the real memory */
    uint8_t *shadow; /* the expected bytes */
    uint8_t *vague;  /* not 0: an operation of unknown outcome may have written this byte */
    uint64_t length;
    bool dead;
    uint64_t local_events, remote_events;
    uint32_t life;                     /* how often its context has come back */
    struct path_counts counted;        /* counts when that life began (model_counts.h) */
    uint64_t counters[MODEL_COUNTERS]; /* values of its counters when that life began */
};

struct model {
    struct model_end ends[MODEL_ENDS_MAX];
    uint32_t count;
    struct model_op *ops;
    uint32_t op_count, op_room;
    struct model_pair *pairs; /* a matrix of count x count */
    struct model_flush flushes[MODEL_FLUSHES_MAX];
    uint32_t flush_count;
    uint64_t flush_numbers;
    uint64_t counters_at; /* offset of the counters at each end; 0: there are no counters */
    bool orders_kinds;    /* the path has PATH_ORDERS_KINDS */
    bool failed;
    char failure[300];
};

int model_open(struct model *m, const struct path *path);
void model_close(struct model *m);

/* Fills a range with bytes of this seed, in memory and in its shadow. */
void model_fill(struct model *m, uint32_t end, uint64_t offset, uint64_t length, uint64_t seed);
/* Registers an operation before it is submitted. Returns its number. */
uint32_t model_submit(struct model *m, const struct model_op *op);
/* model_accepted: the operation was accepted, so its effect is expected. model_refused: it was
 * refused, so the model forgets it (only the operation registered last). */
void model_accepted(struct model *m, uint32_t number);
void model_refused(struct model *m, uint32_t number);

/* The ids of operation `number`: by value where the length is 0, otherwise bytes that are written
 * to `room`. */
pwc_cid model_lid(const struct model *m, uint32_t number, uint8_t room[MODEL_ID_MAX]);
pwc_cid model_rid(const struct model *m, uint32_t number, uint8_t room[MODEL_ID_MAX]);

/* The signal of operation `number`, on the word of its pair at the target. Setting the word makes
 * it name the operation; each addition counts 1 from there on. */
struct path_signal model_signal(const struct model *m, uint32_t number);
/* Looks at all words (model_signals.c). Returns false if one was changed too often, out of order or
 * before its payload was placed. */
bool model_signals_look(struct model *m);

/* Takes an event at an end. Returns false if the event is wrong. */
bool model_event(struct model *m, uint32_t end, const struct pwc_event *event);
/* Registers a flush after all that was submitted so far from one end to another. Returns its
 * number, from 1 on. */
uint64_t model_flush(struct model *m, uint32_t from, uint32_t to);
/* All of the end's flushes up to this one have ended, and its events up to here have been taken.
 * Returns false if something before one of these flushes has not ended. */
bool model_flushed(struct model *m, uint32_t from, uint64_t number);
bool model_flushing(const struct model *m, uint32_t from);
/* The end's context is back, and nothing from before is under way. */
void model_again(struct model *m, uint32_t end);
/* Everything that the end has submitted has ended, and its events have been seen: checks that its
 * data is there. */
bool model_idle(struct model *m, uint32_t end);
/* Whether any event of the operation may still come, or its ranges may still be touched. */
bool model_busy(const struct model *m, uint32_t number);

/* From now on, operations in flight between the two may end in error, or well. */
void model_shake(struct model *m, uint32_t a, uint32_t b);
void model_dead(struct model *m, uint32_t end);
/* The key to the end's memory is withdrawn: what is in flight over it may fail. */
void model_withdrawn(struct model *m, uint32_t end);

/* Call this when nothing moves: checks that nothing is missing, and that memory is as it must be.
 */
bool model_check(struct model *m);

#endif
