/*
 * The daemon's sleep: arm-and-wake on the submit bells of all sessions, and the fabric.
 *
 * Stands for: shm_ring/doorbell.c (doorbell_arm, doorbell_announce, doorbell_fence_others,
 * doorbell_stands, doorbell_ring, doorbell_ring_unfenced, doorbell_disarm), daemon/engine/engine.c (engine_arm),
 * daemon/control/threads/progress.c (sleep_unless_work) and clientlib/channel/channel_submit.c (publish, then the
 * eventfd). Barriers C and D; with -DMEMBARRIER C for both sides, where D is the program's order.
 * With -DMEMBARRIER -DFENCED clients also begin and end to fence for themselves at any time (S:
 * doorbell_begin_fenced, doorbell_end_fenced, announced_to_fenced).
 *
 * Two clients write records into their rings; with FENCED only the first does. A third waker is the fabric, whose completion queue
 * and descriptor are the provider's and sequentially consistent. Shown: every record and completion
 * is taken, in order, although the daemon sleeps without a limit.
 *
 * Left out: HEALTH and look intervals, which would only hide a lost wake-up; space in the rings.
 *
 * Mutants: NO_FENCE_SLEEPER, NO_FENCE_WAKER (not with MEMBARRIER), BARRIER_SELF (the sleeper fences
 * only itself, where wakers rely on a barrier for all), NO_SECOND_LOOK, LOOK_BEFORE_FENCE,
 * FABRIC_ARMED_FIRST (the fabric is polled again after its arming, which cancels that),
 * RING_BEFORE_PUBLISH, STANDS_THOUGH_RUNG (a bell that was rung is not armed again),
 * TAKE_WITHOUT_NOTICE (a waker disarms the bell and does not write to the eventfd); with FENCED:
 * LOOKS_UNFENCED (the sleeper does not fence between the arm and its look at `fenced`),
 * ENDS_UNFENCED (the client does not fence when it ends its own fences), RINGS_UNFENCED (the client
 * does not fence although it has said so).
 */
#define CLIENTS 2
#define PROCESSES 3 /* the daemon is the last */
#define DAEMON 2
#define REGISTERED CLIENTS
#ifdef FENCED
#define WORDS 6
#else
#define WORDS 4
#endif
#define DEPTH 3
#include "tso.pml"

/* Records of client c. With FENCED the first one has more, so that it may end its own fences, begin
 * them again, and end them once more. */
#ifdef FENCED
#define RECORDS(c) (c == 0 -> 3 : 0)
#else
#define RECORDS(c) 2
#endif
#define COMPLETIONS 1
#define TAIL(c) (c)
#define ARMED(c) (CLIENTS + c)
#define SAYS(c) (2 * CLIENTS + c) /* session_waits.fenced */

bool eventfd;                    /* the eventfd is readable */
byte completions;                /* in the queue of the fabric */
bool fabric_armed, fabric_fd;    /* asked to signal; has signalled */
byte taken[CLIENTS], polled;

proctype client(byte c)
{
    byte me = c, n, mode;
    bool fences = true;

    do
    :: n < RECORDS(c) ->
        n++;
#ifdef FENCED
        if
        :: fences ->
            fences = false;
            store(SAYS(c), 0);   /* S */
#ifndef ENDS_UNFENCED
            fence()              /* S */
#endif
        :: !fences ->
            fences = true;
            store(SAYS(c), 1)    /* S */
        :: true
        fi;
#endif
#ifndef RING_BEFORE_PUBLISH
        store(TAIL(c), n);
#endif
#if !defined(MEMBARRIER) && !defined(NO_FENCE_WAKER)
        fence();                 /* D */
#endif
#if defined(FENCED) && !defined(RINGS_UNFENCED)
        if
        :: fences -> fence()     /* D */
        :: else
        fi;
#endif
        if
        :: LOAD(ARMED(c)) == 0   /* D */
        :: else ->
            exchange_zero(ARMED(c), mode);
#ifndef TAKE_WITHOUT_NOTICE
            if
            :: mode -> eventfd = true
            :: else
            fi;
#endif
            mode = 0
        fi;
#ifdef RING_BEFORE_PUBLISH
        store(TAIL(c), n);
#endif
    :: else -> break
    od
}

proctype fabric()
{
    byte n;

    do
    :: n < COMPLETIONS -> atomic {
           n++;
           completions++;
           if
           :: fabric_armed -> fabric_fd = true
           :: else
           fi
       }
    :: else -> break
    od
}

/* engine_step: polls the fabric, which cancels its arming, then looks into each ring. */
inline step()
{
    atomic {
        work = completions > 0;
        polled = polled + completions;
        completions = 0;
        fabric_armed = false;
        fabric_fd = false
    };
    i = 0;
    do
    :: i < CLIENTS ->
        atomic {
            assert(LOAD(TAIL(i)) >= taken[i]);
            work = work || LOAD(TAIL(i)) != taken[i];
            taken[i] = LOAD(TAIL(i))
        };
        i++
    :: else -> break
    od;
    i = 0
}

inline fence_all()
{
#ifdef MEMBARRIER
#ifdef BARRIER_SELF
    fence();
#else
    membarrier(i);               /* C */
    i = 0;
#endif
#elif !defined(NO_FENCE_SLEEPER)
    fence();                     /* C */
#else
    skip
#endif
}

#define DONE (polled == COMPLETIONS && taken[0] == RECORDS(0) && taken[1] == RECORDS(1))

proctype daemon()
{
    byte me = DAEMON, i;
    bool work, ready, announced, kept;
    bool asks[CLIENTS];

awake:
    step();
    if
    :: DONE -> goto over
    :: !DONE && work -> goto awake
    :: else
    fi;
    /* engine_arm; where each client fences for itself, C is after each store. */
#ifdef LOOK_BEFORE_FENCE
    step();
    if
    :: work -> goto awake
    :: else
    fi;
#endif
    announced = false;
    do
    :: i < CLIENTS ->
        if
#ifdef STANDS_THOUGH_RUNG
        :: kept -> skip
        :: else
#else
        :: LOAD(ARMED(i)) == 1 -> skip /* doorbell_stands */
        :: else
#endif
            -> store(ARMED(i), 1); announced = true; asks[i] = true /* C */
        fi;
        i++
    :: else -> break
    od;
    i = 0;
#ifdef FENCED
    if
    :: announced ->
        announced = false;
#ifndef LOOKS_UNFENCED
        fence();                 /* S */
#endif
        do
        :: i < CLIENTS ->
            announced = announced || (asks[i] && LOAD(SAYS(i)) == 0); /* S */
            asks[i] = false;
            i++
        :: else -> break
        od;
        i = 0
    :: else
    fi;
#endif
    if
    :: announced -> fence_all()
    :: else
    fi;
#if !defined(NO_SECOND_LOOK) && !defined(LOOK_BEFORE_FENCE)
#ifdef FABRIC_ARMED_FIRST
    fabric_armed = (completions == 0);
    ready = !fabric_armed;
#endif
    /* The look that engine_arm makes itself is left out, because this step looks in the same way.
     */
    step();
    if
    :: work || DONE -> goto disarm
    :: else
    fi;
#endif
    /* fabric_arm: gives -EAGAIN (`ready`) where a completion is there already. */
#ifndef FABRIC_ARMED_FIRST
    atomic {
        fabric_armed = (completions == 0);
        ready = !fabric_armed
    };
#endif
    if
    :: ready
    :: else -> atomic { (eventfd || fabric_fd) -> eventfd = false } /* asleep */
    fi;
disarm:
    ready = false;
    /* The thread disarms the bells when it is going to yield; it leaves them armed when it will
     * sleep again soon. */
    if
    :: kept = true; goto awake
    :: kept = false
    fi;
    do
    :: i < CLIENTS -> store(ARMED(i), 0); i++
    :: else -> break
    od;
    i = 0;
    goto awake;
over:
    skip
}

init {
    atomic {
#ifdef FENCED
        memory[SAYS(0)] = 1;
        memory[SAYS(1)] = 1;
#endif
        run drain(0);
        run drain(1);
        run drain(DAEMON);
        run client(0);
        run client(1);
        run fabric();
        run daemon()
    }
}
