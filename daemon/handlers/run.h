/*
 * A run: one handler on one packet. The struct contains what the handler may use (windows, units,
 * time), what it has used, and how it has failed. The interpreter (vm.h) and the helpers
 * (helpers.h) share it.
 *
 * Units are granted in spans, so that the run looks at the host's clock every RUN_SPAN units:
 *
 *     limit  |----span----|----span----|--span--|
 *                 used: all units of finished spans, and this span's without `span`
 *
 * Thread: the thread that runs the handler. Owner: the caller of vm_run. No function here allocates
 * or blocks.
 */
#ifndef PWC_HANDLERS_RUN_H
#define PWC_HANDLERS_RUN_H

#include <stdbool.h>
#include "daemon/handlers/window.h"

enum {
    RUN_BEGIN = 16,   /* units that the start of a run costs */
    RUN_HELPER = 8,   /* units that a call of a helper costs, besides the helper's work */
    RUN_SPAN = 256,   /* units between two looks at the clock */
    RUN_CHUNK = 4096, /* bytes between two looks at the clock in a helper */
    RUN_TARGETS = 16, /* targets that a search looks at for one unit */
};

enum run_fault {
    RUN_NO_FAULT = 0,
    RUN_BAD_ADDRESS = 1, /* not in a window, or in one that may not be written */
    RUN_UNALIGNED = 2,   /* an atomic on a word that is not aligned */
    RUN_OUT_OF_UNITS = 3,
    RUN_OUT_OF_TIME = 4,
    RUN_TOO_DEEP = 5,        /* too many nested calls */
    RUN_BAD_ARGUMENT = 6,    /* of a helper */
    RUN_BUSY_WORD = 7,       /* somebody else changed the atomic's word 4096 times in a row */
    RUN_BAD_RETURN = 8,      /* a value that this handler may not return */
    RUN_BAD_INSTRUCTION = 9, /* an instruction that the check of images refuses */
    RUN_FAULTS = 10,
};

/* The fault in words, a constant text: "an address outside its window". */
const char *run_fault_text(enum run_fault fault);

/* A send of a handler: only the fields of its kind of helper are set. The host copies the bytes
 * that it keeps. */
struct run_send {
    enum handler_helper helper;
    uint32_t target;      /* index among the offload's targets */
    uint32_t flags;       /* as the program has given them */
    uint32_t counter;     /* the counter to increment when the send has ended, or HANDLER_NONE */
    uint32_t index;       /* of a message */
    uint8_t code;         /* of an atomic (proto/word_abi.h) */
    uint32_t arguments;   /* how many arguments of 8 bytes a message or a reply has */
    const uint8_t *args;  /* the arguments, aligned or not */
    const uint8_t *from;  /* the payload, in one of the windows, or NULL */
    uint64_t length;      /* bytes of the payload, or of a get, or of a put from the region */
    uint64_t offset;      /* in the target's region */
    uint64_t host_offset; /* in the offload's region */
    uint64_t value;       /* of an atomic or an event */
    uint64_t id;
};

/*
 * The functions of the host that a run calls, from within vm_run. They must not block. `self` is
 * the host's own value. `clock` and `switches` may be NULL; without a clock, time is not bounded.
 */
struct run_host {
    uint64_t (*clock)(void *self); /* ns; to bound the time of a run */
    /* How often the kernel has switched this thread out against its will. Called only where a run
     * has used up its time, because the call may be slow. NULL: all time that passes counts for the
     * run. */
    uint64_t (*switches)(void *self);
    uint64_t (*now)(void *self); /* ns; the time of the step, for the program */
    /* Returns 0, -EAGAIN (no room now) or another negative errno. */
    int (*send)(void *self, const struct run_send *send);
    uint32_t (*target_of)(void *self, uint64_t peer); /* HANDLER_NONE: there is none */
    uint64_t (*counter)(void *self, uint32_t counter);
    void (*counter_set)(void *self, uint32_t counter, uint64_t value);
    void (*trace)(void *self, uint64_t a, uint64_t b);
};

/* The count of switches is not known. */
#define RUN_UNKNOWN UINT64_MAX

struct run {
    /* Set by the host. */
    const struct handler_image *image; /* image_check has accepted it */
    enum handler_stage stage;          /* the handler that runs; the image has it */
    const struct run_host *host;
    void *self;
    uint64_t client;  /* the client whose windows these are: between runs of two clients there is a
                       * barrier. Each client has a stack window of its own, which the host clears
                       * when the client attaches. */
    uint64_t units;   /* most units, below 2^32 */
    uint64_t time;    /* most ns (run_in_time), where the host has a clock */
    uint32_t again;   /* how often the run may get this time again; counted down */
    uint32_t targets; /* how many targets the offload has */
    struct windows windows;

    /* Set by vm_run; `used` and what follows is the run's result. */
    uint64_t begun;    /* ns; set again when the run gets its time again */
    uint64_t switched; /* the host's switches at that time; RUN_UNKNOWN: not asked yet */
    uint64_t left;     /* units that are not granted to a span yet */
    int64_t span;      /* units left in this span; below 0: too many were taken */
    uint32_t place;    /* the instruction that calls a helper */
    uint64_t used;     /* units in all */
    bool said_again;   /* a helper has returned -EAGAIN */
    int32_t returned;  /* enum handler_return, or-ed with HANDLER_PENDING; FAIL after a fault */
    enum run_fault fault;
    uint32_t fault_place;   /* instruction */
    uint64_t fault_address; /* the wrong address, or the wrong value of an argument */
};

/* Ends the run with a fault. Called once in a run. */
void run_fail(struct run *r, enum run_fault fault, uint64_t address);

/* Grants the next span, and looks at the clock. False: there are no more units or there is no more
 * time, and the run has failed. */
bool run_next_span(struct run *r);

/*
 * Looks at the clock only. False: there is no more time, and the run has failed.
 *
 * The clock continues while the processor runs other threads, which is not the handler's fault. So,
 * when a run has used up its time, it asks the host for the number of switches. If the thread was
 * switched out since the run last got its time, the run gets the time again; otherwise it gets the
 * time again only `again` times, because a hypervisor and interrupts stop a thread without a
 * switch. A run without any interruption ends after its time and `again` times more.
 */
bool run_in_time(struct run *r);

/* No helper can have more elements, because a unit pays for two, and units are below 2^32. */
#define RUN_COUNT_MAX (UINT64_C(1) << 34)

/* Takes units, at most 2^63, before work is done. False: there are fewer left, and the run has
 * failed. */
static inline bool run_take(struct run *r, uint64_t units)
{
    r->span = (int64_t)((uint64_t)r->span - units);
    return r->span >= 0 || run_next_span(r);
}

/* The smaller of two numbers, chosen without a branch. */
static inline uint64_t run_least(uint64_t a, uint64_t b)
{
    uint64_t less = 0 - (uint64_t)(a < b);

    __asm__("" : "+r"(less));
    return (a & less) | (b & ~less);
}

/* The next part of `n` bytes, at most `most` at once, after `done` bytes: returns its length, and
 * writes where it begins. Both are 0 where nothing is left, also where the processor wrongly
 * predicts that a loop continues. `n` and `done` are below 2^63. */
static inline uint64_t run_part(uint64_t n, uint64_t done, uint64_t most, uint64_t *begin)
{
    uint64_t more = (uint64_t)((int64_t)(done - n) >> 63);

    __asm__("" : "+r"(more));
    *begin = done & more;
    return run_least((n - done) & more, most);
}

/* Call this after a loop over bytes: no later instruction begins before the processor has decided
 * that the loop has ended. So nothing can be learned of bytes that a wrongly predicted branch has
 * read beyond a window. */
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

/* Finds the bytes of a helper's argument; NULL: they are not in their window, and the run has
 * failed. */
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
