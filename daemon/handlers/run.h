/*
 * A run: one handler on one packet. This struct holds what the handler may use (windows, units,
 * time), what it has used, and how it failed. The interpreter (vm.h) and the helpers (helpers.h)
 * share it.
 *
 * Units are granted in spans, so that the host's clock is looked at every RUN_SPAN units:
 *
 *     limit  |----span----|----span----|--span--|
 *                 used: those of finished spans, and of this one what `span` lacks
 *
 * Thread: the one that runs handlers. Owner: vm_run's caller. Nothing here allocates or blocks.
 */
#ifndef PWC_HANDLERS_RUN_H
#define PWC_HANDLERS_RUN_H

#include <stdbool.h>
#include "daemon/handlers/window.h"

enum {
    RUN_BEGIN = 16,   /* units that a run costs to begin */
    RUN_HELPER = 8,   /* and a helper */
    RUN_SPAN = 256,   /* units between two looks at the clock */
    RUN_CHUNK = 4096, /* bytes between two looks within a helper */
    RUN_TARGETS = 16, /* targets that a search looks at for one unit */
};

enum run_fault {
    RUN_NO_FAULT = 0,
    RUN_BAD_ADDRESS = 1, /* not in a window, or not to be written */
    RUN_UNALIGNED = 2,   /* an atomic over more than its word */
    RUN_OUT_OF_UNITS = 3,
    RUN_OUT_OF_TIME = 4,
    RUN_TOO_DEEP = 5,        /* calls within calls */
    RUN_BAD_ARGUMENT = 6,    /* of a helper */
    RUN_BUSY_WORD = 7,       /* somebody else changed the atomic's word 4096 times in a row */
    RUN_BAD_RETURN = 8,      /* no such return of this handler */
    RUN_BAD_INSTRUCTION = 9, /* an instruction that the check of images refuses */
    RUN_FAULTS = 10,
};

/* A constant text: "an address outside its window". */
const char *run_fault_text(enum run_fault fault);

/* A send of a handler: the fields that its kind of helper has. The host copies the bytes it keeps.
 */
struct run_send {
    enum handler_helper helper;
    uint32_t target;      /* index among the offload's targets */
    uint32_t flags;       /* as the program gave them */
    uint32_t counter;     /* to add 1 to when it has ended, or HANDLER_NONE */
    uint32_t index;       /* of a message */
    uint8_t code;         /* of an atomic (proto/word_abi.h) */
    uint32_t arguments;   /* of a message or a reply, each 8 bytes */
    const uint8_t *args;  /* the arguments, aligned or not */
    const uint8_t *from;  /* the payload, in one of the windows, or NULL */
    uint64_t length;      /* its bytes, or those of a get or a put from the region */
    uint64_t offset;      /* in the target's region */
    uint64_t host_offset; /* in the offload's region */
    uint64_t value;       /* of an atomic or an event */
    uint64_t id;
};

/*
 * Services of the host. Calls come from within vm_run and must not block. `self` is the
 * host's own. All are set but `clock` and `switches`. Without a clock, time is not bounded.
 */
struct run_host {
    uint64_t (*clock)(void *self); /* ns; looked at to bound a run */
    /* How often this thread was switched out against its will. Looked at only where a run has used
     * up its time, for the look may be slow. NULL: all time that passes is the run's. */
    uint64_t (*switches)(void *self);
    uint64_t (*now)(void *self); /* ns; the step's time, for the program */
    /* 0, -EAGAIN (no room now) or another errno. */
    int (*send)(void *self, const struct run_send *send);
    uint32_t (*target_of)(void *self, uint64_t peer); /* or HANDLER_NONE */
    uint64_t (*counter)(void *self, uint32_t counter);
    void (*counter_set)(void *self, uint32_t counter, uint64_t value);
    void (*trace)(void *self, uint64_t a, uint64_t b);
};

/* No count of switches. */
#define RUN_UNKNOWN UINT64_MAX

struct run {
    /* Set by the host. */
    const struct handler_image *image; /* checked */
    enum handler_stage stage;          /* the handler that runs; the image has it */
    const struct run_host *host;
    void *self;
    uint64_t client; /* whose windows: between two clients stands a barrier. Each has a stack window
                        of its own, which the host clears when the client attaches. */
    uint64_t units;  /* at most, below 2^32 */
    uint64_t time;   /* ns at most (run_in_time), where the host has a clock */
    uint32_t again;  /* how often it may have this time again; counted down */
    uint32_t targets; /* of the offload */
    struct windows windows;

    /* Set by vm_run; `used` and what follows is the run's result. */
    uint64_t begun;    /* ns; anew where the run got its time again */
    uint64_t switched; /* the host's switches then; RUN_UNKNOWN: not looked at yet */
    uint64_t left;     /* units that no span has got yet */
    int64_t span;      /* units left of this span; below 0: taken too much, so a fault */
    uint32_t place;    /* the instruction that calls a helper */
    uint64_t used;     /* units */
    bool said_again;   /* a helper has returned -EAGAIN */
    int32_t returned;  /* enum handler_return, or-ed with HANDLER_PENDING; FAIL after a fault */
    enum run_fault fault;
    uint32_t fault_place;   /* instruction */
    uint64_t fault_address; /* or what was wrong with an argument */
};

/* Ends the run; once in each. */
void run_fail(struct run *r, enum run_fault fault, uint64_t address);

/* The next span, and a look at the clock. False: out of units or time, and the run has failed. */
bool run_next_span(struct run *r);

/*
 * The clock alone. False: out of time, and the run has failed.
 *
 * The clock runs on while the processor serves others, and no handler is to blame for that. So the
 * host's switches are noted when a run has used up its time, and it gets the time again: as often
 * as the thread was switched out since it last got it, and `again` times besides, for a hypervisor
 * and interrupts stop a thread without a switch. A run that is left alone ends after its time and
 * `again` times more.
 */
bool run_in_time(struct run *r);

/* No helper gets more elements: a unit is for two of them, and units are below 2^32. */
#define RUN_COUNT_MAX (UINT64_C(1) << 34)

/* Takes units, at most 2^63, in front of work. False: there are not so many, and the run has
 * failed.
 */
static inline bool run_take(struct run *r, uint64_t units)
{
    r->span = (int64_t)((uint64_t)r->span - units);
    return r->span >= 0 || run_next_span(r);
}

/* The smaller of two numbers, chosen by data rather than by a branch. */
static inline uint64_t run_least(uint64_t a, uint64_t b)
{
    uint64_t less = 0 - (uint64_t)(a < b);

    __asm__("" : "+r"(less));
    return (a & less) | (b & ~less);
}

/* The next part of n, `most` at once, where `done` of them are done: its length, and where it
 * begins. Both are 0 where none is left, also for a wrong guess that a loop goes on. `n` and
 * `done` are below 2^63. */
static inline uint64_t run_part(uint64_t n, uint64_t done, uint64_t most, uint64_t *begin)
{
    uint64_t more = (uint64_t)((int64_t)(done - n) >> 63);

    __asm__("" : "+r"(more));
    *begin = done & more;
    return run_least((n - done) & more, most);
}

/* Behind a loop over bytes: no instruction behind it begins before it is decided that the loop has
 * ended. So bytes that a wrongly predicted branch has read behind a window reach nobody. */
static inline void run_fence(void)
{
#if defined(__x86_64__)
    __asm__ __volatile__("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ __volatile__("dsb sy; isb" ::: "memory");
#else
    __sync_synchronize();
#endif
}

/* Where a helper's bytes stand; NULL: not in their window, and the run has failed. */
static inline uint8_t *run_at(struct run *r, enum window_access access, uint64_t address,
                              uint64_t bytes)
{
    uint8_t *at = window_at(&r->windows, access, address, bytes);

    if (at == window_nowhere) {
        run_fail(r, RUN_BAD_ADDRESS, address);
        return NULL;
    }
    return at;
}

#endif
