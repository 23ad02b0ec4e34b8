/*
 * One ledger: what an origin writes into a ring at the target, within its credit and its window of
 * runs, while the ring is exchanged for a larger one (GROWS), or while the link breaks and comes
 * back (BREAKS).
 *
 * Stands for: daemon/engine/ledger/ledger_out.c (ledger_stage, run_window_open, ledger_post,
 * ledger_written, ledger_acknowledge, ledger_rewind), daemon/engine/ledger/ledger_in.c (ledger_arrived,
 * run_begin, ledger_next, ledger_stage_ack), daemon/engine/peer/rings.c (ring_grow,
 * ring_offer_larger, ring_leave, ring_switched), daemon/engine/peer/peer.c (ledger_want,
 * engine_peer_down, peer_drained, engine_offer,
 * engine_peer_up, peer_discard) and what daemon/fabric/fabric.h says of FABRIC_DROPPED.
 *
 * The model has the memory itself: the staging, the ring, and a second ring. A write copies what is
 * in the staging at some time between its post and its completion; writes land in any order;
 * announcements are taken from the fabric's queue later. Every record is one unit long, and a run
 * as long as what was staged. Numbers of runs wrap at 4 (in the code at 2^16), and the target has 2
 * bits for them (RUN_WINDOW). What the C code does in one step and in a fixed order, the model does
 * in several steps, in any order and with any delay.
 *
 * A link breaks at any time, at either side first; writes on their way may land as long as the ring
 * is registered. A daemon that restarts is modelled as a link that breaks, because the positions
 * are in its arena. So is a daemon that has lost its state, or has given the other up, except that
 * both sides then begin at 0, and what was under way is never sent again.
 *
 * Shown: no record is overwritten before it is consumed, or in the staging while the fabric reads
 * it; every operation is consumed once, in order; the number of a run always fits the target's
 * bits; and when nothing moves any more, everything is consumed and all credit is back.
 *
 * Left out: padding at a ring's end, marks of notes, DECLINE, BREAKS together with GROWS. The
 * answers (ACK, OFFER) come by a queue, without credit; acks.pml models the ledger that carries
 * them.
 *
 * Mutants: NO_CREDIT, CREDIT_TWICE, CREDIT_WITHOUT_COMPLETION (staging is used again when it is
 * acknowledged, although the fabric may still read it), NO_WINDOW (runs count only until they are
 * written), ACK_TOO_EARLY (runs are acknowledged that have arrived and are not consumed),
 * RUN_OUT_OF_ORDER (runs are consumed as they arrive). With GROWS: WINDOW_FORGETS_OLD_RING,
 * SWITCH_UNDER_WRITES, STAGE_BEHIND_SWITCH, BASE_FORGOTTEN (the target counts from the old ring's
 * beginning), LEFT_EARLY (the old ring is withdrawn when the new one is offered). With BREAKS:
 * NO_REWIND, RESUME_AT_ACKED (records that are consumed and not acknowledged come again),
 * NOT_WITHDRAWN (the ring stays registered), ARRIVAL_BEHIND_DROP (announcements of a ring arrive
 * after it is dropped), BITS_KEPT (the bits for runs of the old link are kept), CONSUMES_DRAINING
 * (the target consumes while the link ends, more than it has reported), EFFECT_APART (the position
 * moves in a transaction of its own), FIRST_ACK_FORGOTTEN, LOSS_UNNOTICED (an origin does not
 * notice that its target has lost its state).
 */
#define WINDOW 2
#define NUMBERS 4

#ifdef GROWS
#define SMALL 3
#define LARGE 4
#define KEPT 1                      /* room that is kept for notes */
#define WANTS 2
#ifndef OPS
#define OPS 6
#endif
#else
#define SMALL 3
#define LARGE 0
#define KEPT 0
#define WANTS 0
#ifndef OPS
#define OPS 6
#endif
#endif
#define SLOTS (SMALL + LARGE)

/* Records; the first record of a run also has the run's length. */
#define WANT 1
#define SWITCH 2
#define OP 3
#define KIND(record) (record & 15)
#define LENGTH(record) (record >> 4)

#define OFFER 100                   /* an answer; smaller values are ACKs */

byte staging[SLOTS], ring[SLOTS];   /* the small ring, then the large one */

#define POSTED 1
#define LANDED 2
#define LOOSE 3                     /* given back to the origin, and still on its way */
typedef write {
    byte state, from, length, number;
    bit link
}
write w[WINDOW];
chan queue = [3] of { byte };       /* announcements not polled yet */
chan answers = [2] of { byte };

#define UP 0
#define DRAINING 1
#define OFFERED 2

/* State of the origin. The first line is in the arena. */
byte tail, acked, staged;
byte sent, completed, base, runs, runs_done, run_end[WINDOW];
bool done[WINDOW], switching, wanting, next;
bit out_ring, out_link;
byte out_state;

/* State of the target, likewise. */
byte consumed, expected;
byte acknowledged, in_base, in_run, in_end;
bool arrived[WINDOW], growing, offered;
bit in_ring, in_link;
byte in_state;

byte breaks;
byte wants = WANTS;                 /* bounded: each is acknowledged, and another may follow */
bool lost_out, lost_in;             /* a loss of state, which this side has not noticed yet */
byte at_offer;                      /* the target's acknowledgement when it offered its ring */

#define SIZE(large) (large -> LARGE : SMALL)
#define AT(large, offset) ((large -> SMALL : 0) + (offset) % SIZE(large))
#define LOW(a, b) (a < b -> a : b)
#define HIGH(a, b) (a > b -> a : b)

/* ledger_stage */
#ifdef CREDIT_WITHOUT_COMPLETION
#define FLOOR HIGH(acked, base)
#else
#define FLOOR HIGH(LOW(acked, completed), base)
#endif
#ifdef NO_CREDIT
#define FITS(kept) (!switching && tail - sent < SIZE(out_ring))
#elif defined(STAGE_BEHIND_SWITCH)
#define FITS(kept) (tail + 1 - FLOOR <= SIZE(out_ring) - kept)
#else
#define FITS(kept) (tail + 1 - FLOOR <= SIZE(out_ring) - kept && !switching)
#endif

/* Whether the fabric may still read this slot, because its write is not completed. */
#define READS(i, slot) ((w[i].state == POSTED || w[i].state == LANDED) && slot >= w[i].from && \
                        slot < w[i].from + w[i].length)

inline stage(what)
{
    assert(!READS(0, AT(out_ring, tail - base)) && !READS(1, AT(out_ring, tail - base)));
    staging[AT(out_ring, tail - base)] = what;
    tail++
}

/* run_window_open */
#define OUTSTANDING ((runs + NUMBERS - runs_done) % NUMBERS)
#ifdef NO_WINDOW
#define WINDOW_OPEN (OUTSTANDING < WINDOW)
#elif defined(WINDOW_FORGETS_OLD_RING)
#define WINDOW_OPEN (OUTSTANDING < WINDOW && \
                     (run_end[runs % WINDOW] <= acked || run_end[runs % WINDOW] <= base))
#else
#define WINDOW_OPEN (OUTSTANDING < WINDOW && run_end[runs % WINDOW] <= acked)
#endif

/* ledger_post: all that is staged, up to the ring's end. */
inline post()
{
    k = AT(out_ring, sent - base);
    n = LOW(tail - sent, SIZE(out_ring) - (sent - base) % SIZE(out_ring));
    staging[k] = KIND(staging[k]) | n << 4;
    w[runs % WINDOW].state = POSTED;
    w[runs % WINDOW].from = k;
    w[runs % WINDOW].length = n;
    w[runs % WINDOW].number = runs;
    w[runs % WINDOW].link = out_link;
    sent = sent + n;
    run_end[runs % WINDOW] = sent;
    runs = (runs + 1) % NUMBERS;
    k = 0;
    n = 0
}

inline forget(i)
{
    w[i].state = 0;
    w[i].from = 0;
    w[i].length = 0;
    w[i].number = 0;
    w[i].link = 0
}

/* ledger_written */
inline complete(i)
{
    forget(i);
    done[i] = true;
    do
    :: runs_done != runs && done[runs_done % WINDOW] ->
        done[runs_done % WINDOW] = false;
        completed = run_end[runs_done % WINDOW];
        runs_done = (runs_done + 1) % NUMBERS
    :: else -> break
    od
}

#define BREAK (breaks > 0 && out_state == UP && in_state == UP && out_link == in_link)
inline break_link()
{
    breaks--;
    if
    :: lost_out = true; lost_in = true
    :: true
    fi
}

/* ledger_rewind, out_begin; or, after a loss, peer_discard. */
inline resume()
{
    if
    :: lost_out ->
        lost_out = false;
#ifndef LOSS_UNNOTICED
        assert(expected <= staged);
        expected = staged;          /* records that were under way are never sent again */
        tail = 0;
        acked = 0
#else
        staged = staged - (tail - at_offer);
        tail = at_offer
#endif
    :: else ->
#if defined(RESUME_AT_ACKED)
        staged = staged - (tail - acked);
        tail = acked
#elif !defined(NO_REWIND)
        assert(at_offer >= acked && at_offer <= tail);
        staged = staged - (tail - at_offer);
        tail = at_offer
#endif
    fi;
    sent = tail;
    completed = tail;
    base = tail;
    runs = 0;
    runs_done = 0;
    run_end[0] = 0;
    run_end[1] = 0;
    done[0] = false;
    done[1] = false;
    out_state = UP
}

proctype origin()
{
    byte k, n;

end_origin:
    do
    :: atomic { out_state == UP && staged < OPS && FITS(KEPT) -> stage(OP + staged); staged++ }
    :: atomic { out_state == UP && sent < tail && WINDOW_OPEN -> post() }
    :: atomic { w[0].state == LANDED && out_state == UP -> complete(0) }
    :: atomic { w[1].state == LANDED && out_state == UP -> complete(1) }
    :: atomic { out_state == UP && nempty(answers) -> answers ? k;
           if
           :: k == OFFER -> next = true
           :: else ->
               assert(k >= acked && k <= sent && k <= consumed);
               if
               :: k > acked -> wanting = false
               :: else
               fi;
#ifdef CREDIT_TWICE
               acked = k + (k - acked)
#else
               acked = k
#endif
           fi;
           k = 0
       }
#ifdef GROWS
    :: atomic { staged < OPS && !FITS(KEPT) && !wanting && wants > 0 && FITS(0) -> /* ledger_want */
           stage(WANT);
           wants--;
           wanting = true
       }
    :: atomic { next && !switching && FITS(0) -> stage(SWITCH); switching = true } /* switch_ring */
#ifdef SWITCH_UNDER_WRITES
    :: atomic { switching && sent == tail ->
#else
    :: atomic { switching && sent == tail && completed == sent ->
#endif
           staging[0] = 0;                      /* the small ring's staging is given back */
           staging[1] = 0;
           staging[2] = 0;
           out_ring = 1;
           base = tail;
           next = false;
           switching = false;
           wanting = false
       }
#endif
#ifdef BREAKS
    /* engine_peer_down: the link breaks here first, or the other side has left it. */
    :: atomic { out_state == UP && (BREAK || in_state == DRAINING || in_link != out_link) ->
           if
           :: BREAK -> break_link()
           :: else
           fi;
           do
           :: answers ? _
           :: empty(answers) -> break
           od;
           k = 0;
           do
           :: k < WINDOW && w[k].state == POSTED && w[k].link == in_link -> w[k].state = LOOSE; k++
           :: k < WINDOW && (w[k].state != POSTED || w[k].link != in_link) -> forget(k); k++
           :: k == WINDOW -> break
           od;
           k = 0;
           out_link = !out_link;
           out_state = OFFERED
       }
    :: atomic { out_state == OFFERED && in_link == out_link && in_state != DRAINING -> resume() }
#endif
    od
}

/* The fabric: a write lands, and is announced. */
inline land(i)
{
    k = w[i].from;
    do
    :: k < w[i].from + w[i].length -> ring[k] = staging[k]; k++
    :: else -> break
    od;
#ifdef LEFT_EARLY
    assert(w[i].from >= SMALL || !offered);
#endif
    assert(w[i].from >= SMALL || !in_ring);      /* not into a ring that has been withdrawn */
    queue ! w[i].number;
    if
    :: w[i].state == LOOSE -> forget(i)
    :: else -> w[i].state = LANDED
    fi;
    k = 0
}
#ifdef NOT_WITHDRAWN
#define REACHES(i) ((w[i].state == POSTED || w[i].state == LOOSE) && nfull(queue))
#else
#define REACHES(i) ((w[i].state == POSTED || w[i].state == LOOSE) && w[i].link == in_link && \
                    nfull(queue))
#endif

proctype fabric()
{
    byte k;

end_fabric:
    do
    :: atomic { REACHES(0) -> land(0) }
    :: atomic { REACHES(1) -> land(1) }
    od
}

/* ledger_next: takes one record; at the first of a run, run_begin comes before. */
#ifdef RUN_OUT_OF_ORDER
#define READY (arrived[0] || arrived[1])
#else
#define READY arrived[in_run % WINDOW]
#endif
#ifdef CONSUMES_DRAINING
#define CONSUMES (in_state != DRAINING || out_state == UP)
#else
#define CONSUMES (in_state == UP)
#endif
#define HERE ring[AT(in_ring, consumed - in_base)]

inline consume()
{
    if
    :: in_end == 0 ->
        k = in_run % WINDOW;
#ifdef RUN_OUT_OF_ORDER
        k = (arrived[k] -> k : 1 - k);
#endif
        arrived[k] = false;
        in_run = (in_run + 1) % NUMBERS;
        assert(LENGTH(HERE) > 0);
        in_end = consumed + LENGTH(HERE)
    :: else -> assert(LENGTH(HERE) == 0)
    fi;
    k = KIND(HERE);
    if
    :: k >= OP -> assert(k - OP == expected); expected++
    :: k == WANT -> growing = growing || !in_ring && !offered
    :: k == SWITCH ->
        assert(offered);
        offered = false;
        in_ring = 1
    :: else -> assert(false)                     /* not a record of this link */
    fi;
#ifdef EFFECT_APART
    half = true
#else
    move()
#endif
}

inline move()
{
    consumed++;
#ifndef BASE_FORGOTTEN
    if
    :: k == SWITCH -> in_base = consumed
    :: else
    fi;
#endif
    if
    :: consumed == in_end -> in_end = 0
    :: else
    fi;
    k = 0
}

#ifdef ACK_TOO_EARLY
#define UPTO (in_end > 0 -> in_end : consumed)
#else
#define UPTO consumed
#endif

proctype target()
{
    byte k;
    bool half;

end_target:
    do
    /* ledger_arrived */
    :: atomic { queue ? k ->
           if
           :: in_state == DRAINING
           :: else ->
               assert((k + NUMBERS - in_run) % NUMBERS < WINDOW);
               arrived[k % WINDOW] = true
           fi;
           k = 0
       }
#ifdef EFFECT_APART
    :: atomic { half && in_state == UP -> move(); half = false }
    :: atomic { !half && CONSUMES && (in_end > 0 || READY) -> consume() }
#else
    :: atomic { CONSUMES && (in_end > 0 || READY) -> consume() }
#endif
    /* ledger_stage_ack; an origin that has left this link gets no ACK. */
    :: atomic { in_state == UP && acknowledged < UPTO && nfull(answers) ->
           acknowledged = UPTO;
           if
           :: out_link == in_link -> answers ! acknowledged
           :: else
           fi
       }
#ifdef GROWS
    :: atomic { growing && nfull(answers) -> growing = false; offered = true; answers ! OFFER }
#endif
#ifdef BREAKS
    :: atomic { in_state == UP && (BREAK || out_link != in_link) ->
           if
           :: BREAK -> break_link()
           :: else
           fi;
           in_state = DRAINING
       }
    /* The ring is withdrawn, and the next one is offered. */
#ifdef ARRIVAL_BEHIND_DROP
    :: atomic { in_state == DRAINING ->
#else
    :: atomic { in_state == DRAINING && empty(queue) ->
#endif
           in_link = !in_link;
           at_offer = consumed;
#ifndef BITS_KEPT
           arrived[0] = false;
           arrived[1] = false;
#endif
           in_run = 0;
           in_end = 0;
           acknowledged = 0;
           half = false;
#ifndef NOT_WITHDRAWN
           k = 0;
           do
           :: k < WINDOW && w[k].state == LOOSE -> forget(k); k++
           :: k < WINDOW && w[k].state != LOOSE -> k++
           :: k == WINDOW -> break
           od;
#endif
           k = 0;
           in_state = OFFERED
       }
    :: atomic { in_state == OFFERED && out_link == in_link ->
           if
           :: lost_in -> lost_in = false; consumed = 0
           :: else
           fi;
           in_base = consumed;
#ifdef FIRST_ACK_FORGOTTEN
           acknowledged = consumed;
#endif
           in_state = UP
       }
#endif
    od
}

/* When nothing moves any more, everything must be done. */
proctype judge()
{
    timeout;
    assert(staged == OPS && expected == OPS);
    assert(acked == tail && completed == tail && consumed == tail && !switching);
#ifdef GROWS
    assert(in_ring == out_ring)
#endif
}

init {
    atomic {
#ifdef BREAKS
        breaks = 1;
#endif
        run fabric();
        run origin();
        run target();
        run judge()
    }
}
