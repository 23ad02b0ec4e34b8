/*
 * The word that says how a member's last call over a parent has ended. The word is in memory that
 * outlives the process (team_answers.h). For the world as parent it is in the client's session,
 * where the client may write.
 *
 *     63            32           0
 *     +-------------+------------+
 *     | status      | calls      |     calls: how many have ended; 0: none
 *     +-------------+------------+
 *
 * Thread: control; the next process reads what this one has stored.
 */
#ifndef PWC_CONTROL_ANSWER_WORD_H
#define PWC_CONTROL_ANSWER_WORD_H

#include <errno.h>
#include <stdatomic.h>
#include "daemon/peering/teams/teams.h"

enum { ANSWER_ERRNO_MAX = 4095, ANSWER_STATUS_SHIFT = 32 };

/* Loads the word. NULL: no call has ended. */
static inline struct teams_answer answer_load(const _Atomic uint64_t *word)
{
    uint64_t answer = word ? atomic_load_explicit(word, memory_order_acquire) : 0;
    int32_t status = (int32_t)(answer >> ANSWER_STATUS_SHIFT);

    return (struct teams_answer){.calls = (uint32_t)answer,
                                 .status =
                                     status > 0 || status < -ANSWER_ERRNO_MAX ? -EPROTO : status};
}

static inline void answer_store(_Atomic uint64_t *word, struct teams_answer answer)
{
    atomic_store_explicit(word,
                          (uint64_t)(uint32_t)answer.status << ANSWER_STATUS_SHIFT | answer.calls,
                          memory_order_release);
}

#endif
