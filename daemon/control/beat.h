/*
 * Signs of life between two daemons, over their control connection: questions, answers, and what
 * they tell of a node whose fabric is silent (engine/keepalive.h).
 *
 * A question is answered at once by the control thread, and by the progress thread through the
 * fabric. The answer counts what the progress thread has done so far, so two answers with one count
 * between them tell that it is stuck.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_BEAT_H
#define PWC_CONTROL_BEAT_H

#include <stdbool.h>
#include <stdint.h>
#include "control.pb-c.h"

struct control;
struct link;

struct beat {
    struct control *control;
    uint32_t node;        /* the other */
    uint64_t generation;  /* of the link; answers of earlier ones are void */
    bool asking;          /* our progress thread has not come back from their last question */
    uint64_t count;       /* signs that it has given */
    uint64_t bytes;       /* that the last may stand behind */
    uint32_t asked;       /* questions of ours without an answer since */
    uint64_t their_count; /* as their last answer says; UINT64_MAX: none yet */
    uint64_t answered_ns; /* when it came */
    bool stuck;           /* and the one before it said the same */
};

void beat_init(struct beat *b, struct control *control, uint32_t node);
/* The link has ended. */
void beat_forget(struct beat *b);
/* Asks the other side, over this link. */
void beat_ask(struct beat *b, struct link *link);
/* A frame of the other side's. */
void beat_take(struct beat *b, struct link *link, const Pwc__Beat *frame);
/* In words, why its fabric may be silent. */
const char *beat_why(const struct beat *b);

#endif
