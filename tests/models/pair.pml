/*
 * A client's sleep in pwc_wait: the session's event bell, which the daemon rings, and the bells of
 * its pairs, which neighbours find armed.
 *
 * Stands for: clientlib/channel/channel.c (channel_arm, channel_disarm), clientlib/neighbours/neighbours.c
 * (neighbours_arm), clientlib/calls/wait.c (sleep_until_rung), clientlib/calls/probe.c (probe_once),
 * clientlib/neighbours/direct.c (show_target), clientlib/attach/wake.c (wake_target, wake_retry), daemon/engine/session/session.c
 * (session_publish, direct_wake), daemon/control/clients/pairs.c (pair_make), shm_ring/doorbell.c
 * (doorbell_sleep, doorbell_wake), clientlib/neighbours/neighbours_quiet.c, shm_ring/pair.c (pair_ring_bell).
 * Barriers C and D of the event bell, G of the pair's, I of the board.
 *
 * The daemon makes the pair at some time, has one event of its own for the target, and rings the
 * target's bell for a process that asks (doorbell.pml models the daemon's own sleep). The origin
 * puts records. Where it finds the bell armed, it asks for a wake-up, or notes that one is due if
 * its submission ring is full; where the target has made it quiet, it sets its bit on the board.
 * The target makes the origin quiet at any time, and does not look at the ring then. Shown: the
 * target gets every record and the daemon's event, although it sleeps without a limit; and when the
 * origin has put all records and rung, the target's next probe gets all of them.
 *
 * Left out: HEALTH_NS, which would hide a lost wake-up for a second; the look at all rings now and
 * then, which would hide it for a moment; room in the rings; sleep on pwc_fd, where the program
 * sleeps on the wake socket itself.
 *
 * Mutants: NO_BARRIER (the sleeper fences only itself), NO_SECOND_LOOK, NO_LOOK_AT_GIVEN (no look
 * at new pairs after arming), EVENT_BELL_LAST (armed after the look), BORN_UNARMED (a new pair's
 * bell), QUIET_WITHOUT_BARRIER, QUIET_WITHOUT_LOOK, CALL_BEFORE_HEAD (the bit is set before the
 * record is shown), CALL_BY_OLD_MODE (the bell is stored to instead of exchanged, so that an older
 * value counts), QUIET_ASLEEP (a sleeper looks at the board alone), TAKE_BEHIND_LOOK (bits are
 * taken after the look at the ring), DISARM_AFTER_ASKING, WAKE_FORGOTTEN (a wake-up that is due is
 * not asked for again), DAEMON_WITHOUT_FENCE, SLEEP_UNCHECKED (the futex does not compare the
 * word).
 */
#define ORIGIN 0
#define TARGET 1
#define DAEMON 2
#define PROCESSES 3
#define REGISTERED 2 /* the daemon fences for itself */
#define WORDS 7
#define DEPTH 4
#include "tso.pml"

#define RECORDS 3

#define HEAD 0       /* records in the pair's ring */
#define PAIR_BELL 1
#define EVENT_BELL 2
#define EVENTS 3     /* the tail of the session's remote ring */
#define GIVEN 4       /* session_shared.neighbours */
#define ASKED 5      /* flushes with SUBMIT_WAKE in the origin's submission ring */
#define BOARD 6      /* the origin's bit */

#define ASLEEP 1
#define QUIET 2

bool pair_given;     /* the origin has got the pair, by its socket */
bool waiting;        /* the target sleeps in the futex */
bool all_put;        /* all records are put, and the bell is rung or a wake-up requested */
byte got, events;    /* records and events that the target has got */

/* Asks for a wake-up, or notes that one is due. */
inline ask()
{
    if
    :: asked++; store(ASKED, asked)
    :: due = true                            /* the ring is full */
    fi
}

/* Sets the bit by a locked addition to the word. */
inline call()
{
    atomic {
        EMPTY(me);
        memory[BOARD] = 1                    /* I */
    }
}

proctype origin()
{
    byte me = ORIGIN, n, asked, mode;
    bool due;

    pair_given;
    do
    :: n < RECORDS ->
        n++;
#ifdef CALL_BEFORE_HEAD
        if
        :: LOAD(PAIR_BELL) == QUIET ->
            exchange_zero(PAIR_BELL, mode);
            if
            :: mode == QUIET -> call()
            :: else
            fi;
            mode = 0
        :: else
        fi;
#endif
        store(HEAD, n);                      /* E */
        if
        :: LOAD(PAIR_BELL) == 0              /* G */
        :: else ->
            mode = LOAD(PAIR_BELL);
#if defined(CALL_BY_OLD_MODE)
            store(PAIR_BELL, 0);
#elif !defined(DISARM_AFTER_ASKING)
            exchange_zero(PAIR_BELL, mode);
#endif
            if
            :: mode == QUIET -> call()
            :: mode == ASLEEP -> ask()
            :: else
            fi;
#ifdef DISARM_AFTER_ASKING
            store(PAIR_BELL, 0);
#endif
            mode = 0
        fi;
        all_put = (n == RECORDS)
#ifndef WAKE_FORGOTTEN
    :: due -> due = false; asked++; store(ASKED, asked)
#endif
    :: n == RECORDS && !due -> break
#ifdef WAKE_FORGOTTEN
    :: n == RECORDS && due -> break
#endif
    od
}

/* session_publish: rings the event bell, and wakes the sleeper. */
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
    bool sent_event;

end_daemon:
    do
    :: !pair_given ->
#ifndef BORN_UNARMED
        store(PAIR_BELL, 1);
#endif
        store(GIVEN, 1);
        fence();                             /* a locked addition, then the message on a socket */
        pair_given = true
    :: !sent_event ->
        sent_event = true;
        store(EVENTS, 1);                    /* A */
        ring_target()
    :: LOAD(ASKED) != answered ->
        answered = LOAD(ASKED);
        ring_target()
    od
}

proctype target()
{
    byte me = TARGET, i, bits;
    bool known;                              /* the pair is mapped */
    bool quiet;                              /* the target does not look at the pair's ring */
    bool all;                                /* everything is there for this probe to get */

awake:
    /* context_probe: what the daemon has announced, then the board, then the rings. */
    all = all_put && EMPTY(ORIGIN);          /* which the target knows by other means */
    known = known || LOAD(GIVEN);
#ifndef TAKE_BEHIND_LOOK
    if
    :: quiet && LOAD(BOARD) -> exchange_zero(BOARD, bits); quiet = false; bits = 0; store(PAIR_BELL, 0) /* I */
    :: else
    fi;
#endif
    atomic {
        if
        :: known && !quiet -> assert(LOAD(HEAD) >= got); got = LOAD(HEAD)
        :: else
        fi
    };
#ifdef TAKE_BEHIND_LOOK
    if
    :: quiet && LOAD(BOARD) -> exchange_zero(BOARD, bits); quiet = false; bits = 0; store(PAIR_BELL, 0)
    :: else
    fi;
#endif
    assert(!all || !known || got == RECORDS);
    all = false;
    events = LOAD(EVENTS);
    if
    :: got == RECORDS && events -> goto over
    :: else
    fi;
    /* neighbours_quiet.c: rest */
    if
    :: known && !quiet ->
        store(PAIR_BELL, QUIET);             /* G */
#ifndef QUIET_WITHOUT_BARRIER
        membarrier(i);                       /* G */
        i = 0;
#endif
        if
#ifndef QUIET_WITHOUT_LOOK
        :: LOAD(HEAD) != got -> store(PAIR_BELL, 0)
#endif
        :: else -> quiet = true
        fi;
        goto awake
    :: true
    fi;
    /* channel_arm */
#ifndef EVENT_BELL_LAST
    store(EVENT_BELL, 1);                    /* C */
    fence();                                 /* C */
#endif
    if
    :: known ->
#ifdef QUIET_ASLEEP
        if
        :: quiet
        :: else -> store(PAIR_BELL, 1)
        fi;
#else
        quiet = false;
        store(PAIR_BELL, 1);                 /* G */
#endif
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
    :: known && !quiet && LOAD(HEAD) != got -> goto disarm
    :: known && quiet && LOAD(BOARD) -> goto disarm
    :: else
    fi;
#ifndef NO_LOOK_AT_GIVEN
    if
    :: !known && LOAD(GIVEN) -> goto disarm
    :: else
    fi;
#endif
#endif
#ifdef EVENT_BELL_LAST
    store(EVENT_BELL, 1);
    fence();
#endif
    /* doorbell_sleep: the kernel compares the word and queues the sleeper in one step. */
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
