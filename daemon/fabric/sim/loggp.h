/*
 * The LogGP model of a network (Alexandrov, Ionescu, Schauser and Scheiman 1995): how long messages
 * take, and which parts of a node they keep busy.
 *
 *     sender's processor    |--o--|
 *     its card                    |first byte ... last byte|--g--|next message
 *     network                     |-------L-------|
 *     receiver's card                             |first byte ... last byte|--g--|next message
 *     its processor                                                        |--o--|
 *
 * Each byte after the first takes G. A card sends one message at a time, and at the same time
 * receives one message at a time. A processor does not wait for its card, as with a queue of work.
 *
 * Pure. Each struct loggp_end belongs to the struct that embeds it. Thread: the thread that owns
 * that struct.
 */
#ifndef PWC_FABRIC_LOGGP_H
#define PWC_FABRIC_LOGGP_H

#include <stdint.h>

/* The parameters of the model. All zero: the LogGP clock is not used. */
struct loggp {
    uint64_t latency_ps;  /* L */
    uint64_t overhead_ps; /* o */
    uint64_t gap_ps;      /* g */
    uint64_t byte_fs;     /* G */
};

/* The times when the parts of a node are free again, ps. */
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
/* The card answers a read, without the processor. */
struct loggp_flight loggp_answer(const struct loggp *model, struct loggp_end *from, uint64_t at_ps,
                                 uint64_t bytes);
/* When the last byte of a message has arrived, if its first byte arrives at `at_ps`. */
uint64_t loggp_receive(const struct loggp *model, struct loggp_end *to, uint64_t at_ps,
                       uint64_t bytes);
/* When the processor has handled what arrived at `at_ps`. */
uint64_t loggp_notice(const struct loggp *model, struct loggp_end *to, uint64_t at_ps);

static inline uint64_t loggp_ns(uint64_t ps)
{
    return (ps + 999) / 1000;
}

#endif
