/* Owns nothing: units, time and faults of a run (run.h). Thread: the thread that runs the
 * handler. */
#include "daemon/handlers/run.h"

const char *run_fault_text(enum run_fault fault)
{
    static const char *const texts[RUN_FAULTS] = {
        [RUN_NO_FAULT] = "no fault",
        [RUN_BAD_ADDRESS] = "an address outside its window, or in one that is read only",
        [RUN_UNALIGNED] = "an atomic operation on a word that is not aligned",
        [RUN_OUT_OF_UNITS] = "the limit of units is reached",
        [RUN_OUT_OF_TIME] = "the limit of time is reached",
        [RUN_TOO_DEEP] = "more than 8 functions call each other",
        [RUN_BAD_ARGUMENT] = "a helper's argument is out of range",
        [RUN_BUSY_WORD] = "an atomic's word changed 4096 times meanwhile",
        [RUN_BAD_RETURN] = "the handler may not return this value",
        [RUN_BAD_INSTRUCTION] = "an instruction that the check of programs refuses",
    };

    return fault < RUN_FAULTS ? texts[fault] : "an unknown fault";
}

void run_fail(struct run *r, enum run_fault fault, uint64_t address)
{
    r->fault = fault;
    r->fault_place = r->place;
    r->fault_address = address;
}

/* Whether a run that has used up its time gets this time again. */
static bool time_again(struct run *r, uint64_t now)
{
    uint64_t switched;

    if (!r->host->switches)
        return false;
    switched = r->host->switches(r->self);
    if (r->switched == RUN_UNKNOWN || switched == r->switched) {
        if (r->again == 0)
            return false;
        r->again--;
    }
    r->switched = switched;
    r->begun = now;
    return true;
}

bool run_in_time(struct run *r)
{
    uint64_t now;

    if (!r->host->clock)
        return true;
    now = r->host->clock(r->self);
    if (now - r->begun <= r->time || time_again(r, now))
        return true;
    run_fail(r, RUN_OUT_OF_TIME, now - r->begun);
    return false;
}

bool run_next_span(struct run *r)
{
    uint64_t lacking = r->span < 0 ? 0 - (uint64_t)r->span : 0;

    /* The run may have taken more units than this span had: `left` pays for the rest. */
    if (lacking > r->left || (lacking == r->left && r->span == 0)) {
        run_fail(r, RUN_OUT_OF_UNITS, lacking);
        return false;
    }
    r->left -= lacking;
    r->span = (int64_t)(r->left < RUN_SPAN ? r->left : RUN_SPAN);
    r->left -= (uint64_t)r->span;
    return run_in_time(r);
}
