/*
 * A client's sleep in pwc_wait: the session's event bell, which the daemon rings, and the bells of
 * its pairs, which neighbours find armed.
 *
 * Stands for: clientlib/channel.c (channel_arm, channel_disarm), clientlib/neighbours.c
 * (neighbours_arm), clientlib/probe.c (sleep_until_rung), clientlib/context.h (context_probe),
 * clientlib/direct.c (tell_target, wake, direct_retry_wakes), daemon/engine/session.c
 * (session_publish, direct_wake), daemon/control/pairs.c (pair_make), shm_ring/doorbell.c
 * (doorbell_sleep, doorbell_wake). Barriers C and D of the event bell, G of the pair's.
 *
 * The daemon makes the pair at some time, has an event of its own for the target, and rings for
 * whoever asks (its own sleep: doorbell.pml). The origin puts; where it finds the bell armed it asks
 * for a wake-up, or notes that one is due where its submission ring is full. Shown: the target gets
 * every record and the daemon's event, though it sleeps without a limit.
 *
 * Left out: HEALTH_NS, which would hide a lost wake-up for a second; room in the rings;
 * sleeping in pwc_fd, where the wake socket itself is what one sleeps on.
 *
 * Mutants: NO_BARRIER (a fence of the sleeper's own), NO_SECOND_LOOK, NO_LOOK_AT_TOLD (at new pairs,
 * once armed), EVENT_BELL_LAST (armed behind the look), BORN_UNARMED (a new pair's bell),
 * DISARM_AFTER_ASKING, WAKE_FORGOTTEN (a wake-up that is due is not asked for again),
 * DAEMON_WITHOUT_FENCE, SLEEP_UNCHECKED (futex without the word's value).
 */
#define ORIGIN 0
#define TARGET 1
#define DAEMON 2
#define PROCESSES 3
#define REGISTERED 2 /* the daemon fences for itself */
#define WORDS 6
#define DEPTH 4
#include "tso.pml"

#define RECORDS 3

#define HEAD 0       /* records in the pair's ring */
#define PAIR_BELL 1
#define EVENT_BELL 2
#define EVENTS 3     /* the tail of the session's remote ring */
#define TOLD 4       /* session_shared.neighbours */
#define ASKED 5      /* flushes with SUBMIT_WAKE in the origin's submission ring */

bool pair_given;     /* to the origin, by its socket */
bool waiting;        /* in the futex */
byte got, events;    /* by the target */

proctype origin()
{
    byte me = ORIGIN, n, asked;
    bool due;

    pair_given;
    do
    :: n < RECORDS ->
        n++;
        store(HEAD, n);                      /* E */
        if
        :: LOAD(PAIR_BELL) == 0              /* G */
        :: else ->
#ifndef DISARM_AFTER_ASKING
            store(PAIR_BELL, 0);
#endif
            if
            :: asked++; store(ASKED, asked)
            :: due = true                    /* the ring is full */
            fi;
#ifdef DISARM_AFTER_ASKING
            store(PAIR_BELL, 0)
#endif
        fi
#ifndef WAKE_FORGOTTEN
    :: due -> due = false; asked++; store(ASKED, asked)
#endif
    :: n == RECORDS && !due -> break
#ifdef WAKE_FORGOTTEN
    :: n == RECORDS && due -> break
#endif
    od
}

/* session_publish: the bell, and the sleeper behind it. */
inline ring_target()
{
#ifndef DAEMON_WITHOUT_FENCE
    fence();                                 /* D */
#endif
    if
    :: LOAD(EVENT_BELL) == 0                 /* D */
    :: else ->
        exchange_zero(EVENT_BELL, mode);
        if
        :: mode -> waiting = false           /* FUTEX_WAKE */
        :: else
        fi;
        mode = 0
    fi
}

proctype daemon()
{
    byte me = DAEMON, answered, mode;
    bool told_event;

end_daemon:
    do
    :: !pair_given ->
#ifndef BORN_UNARMED
        store(PAIR_BELL, 1);
#endif
        store(TOLD, 1);
        fence();                             /* a locked addition, and a socket behind it */
        pair_given = true
    :: !told_event ->
        told_event = true;
        store(EVENTS, 1);                    /* A */
        ring_target()
    :: LOAD(ASKED) != answered ->
        answered = LOAD(ASKED);
        ring_target()
    od
}

proctype target()
{
    byte me = TARGET, i;
    bool known;                              /* the pair is mapped */

awake:
    /* context_probe: what the daemon has told, then the rings. */
    known = known || LOAD(TOLD);
    atomic {
        if
        :: known -> assert(LOAD(HEAD) >= got); got = LOAD(HEAD)
        :: else
        fi
    };
    events = LOAD(EVENTS);
    if
    :: got == RECORDS && events -> goto over
    :: else
    fi;
    /* channel_arm */
#ifndef EVENT_BELL_LAST
    store(EVENT_BELL, 1);                    /* C */
    fence();                                 /* C */
#endif
    if
    :: known ->
        store(PAIR_BELL, 1);                 /* G */
#ifdef NO_BARRIER
        fence()
#else
        membarrier(i);                       /* G */
        i = 0
#endif
    :: else
    fi;
#ifndef NO_SECOND_LOOK
    if
    :: LOAD(EVENTS) != events -> goto disarm
    :: else
    fi;
    if
    :: known && LOAD(HEAD) != got -> goto disarm
    :: else
    fi;
#ifndef NO_LOOK_AT_TOLD
    if
    :: !known && LOAD(TOLD) -> goto disarm
    :: else
    fi;
#endif
#endif
#ifdef EVENT_BELL_LAST
    store(EVENT_BELL, 1);
    fence();
#endif
    /* doorbell_sleep: the kernel compares the word and queues the sleeper in one. */
    atomic {
#ifdef SLEEP_UNCHECKED
        waiting = true
#else
        waiting = (memory[EVENT_BELL] == 1)
#endif
    };
    !waiting;
disarm:
    store(EVENT_BELL, 0);
    if
    :: known -> store(PAIR_BELL, 0)
    :: else
    fi;
    goto awake;
over:
    skip
}

init {
    atomic {
        run drain(ORIGIN);
        run drain(TARGET);
        run drain(DAEMON);
        run origin();
        run daemon();
        run target()
    }
}
