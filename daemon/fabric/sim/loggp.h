/*
 * The LogGP model of a network (Alexandrov, Ionescu, Schauser and Scheiman 1995): how long messages
 * take, and what they keep busy.
 *
 *     sender's processor    |--o--|
 *     its card                    |first byte ... last byte|--g--|next message
 *     network                     |-------L-------|
 *     receiver's card                             |first byte ... last byte|--g--|next message
 *     its processor                                                        |--o--|
 *
 * The bytes behind the first take G each. A card sends one message at a time, and receives one at a
 * time, beside the other. A processor posts ahead of its card, as into a queue of work.
 *
 * Pure: each end belongs to the struct that embeds it. Thread: the owner's.
 */
#ifndef PWC_FABRIC_LOGGP_H
#define PWC_FABRIC_LOGGP_H

#include <stdint.h>

/* All zero: there is no such clock. */
struct loggp {
    uint64_t latency_ps;  /* L */
    uint64_t overhead_ps; /* o */
    uint64_t gap_ps;      /* g */
    uint64_t byte_fs;     /* G */
};

/* From when on each part of a node is free, ps. */
struct loggp_end {
    uint64_t processor, sender, receiver;
};

struct loggp_flight {
    uint64_t left;    /* the last byte has left the sender, ps */
    uint64_t arrives; /* the first byte is at the receiver, ps */
};

/* Posts a message of this many bytes. */
struct loggp_flight loggp_send(const struct loggp *model, struct loggp_end *from, uint64_t at_ps,
                               uint64_t bytes);
/* The card sends on its own, in answer to a read. */
struct loggp_flight loggp_answer(const struct loggp *model, struct loggp_end *from, uint64_t at_ps,
                                 uint64_t bytes);
/* When the last byte of a message has arrived whose first one arrives at `at_ps`. */
uint64_t loggp_receive(const struct loggp *model, struct loggp_end *to, uint64_t at_ps,
                       uint64_t bytes);
/* When the processor has seen what arrived at `at_ps`. */
uint64_t loggp_notice(const struct loggp *model, struct loggp_end *to, uint64_t at_ps);

static inline uint64_t loggp_ns(uint64_t ps)
{
    return (ps + 999) / 1000;
}

#endif
