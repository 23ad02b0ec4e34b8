/*
 * Two ledgers, one each way, whose operations all fail: each is answered by a verdict, and no
 * acknowledgement passes a verdict that is not staged. What is next in turn may be a verdict or an
 * operation; verdicts may pass an operation that finds no room.
 *
 * Stands for: daemon/engine/ops/stage.c (turns_step), daemon/engine/ledger/notes.c (notes_stage,
 * notes_pass, notes_unanswered), daemon/engine/ledger/ledger_out.c (ledger_stage, ledger_may_pass,
 * ledger_acknowledge) and daemon/engine/ledger/ledger_in.c (ledger_stage_ack).
 *
 * Sizes are in units of 8 bytes: a verdict has 3, the shortest operation 4, a long one 9. A ring has 12
 * for operations, and 6 more for verdicts that pass. Both nodes have operations without end, long and
 * short in any order; what is next in turn is left open, but what finds no room stays next. Records
 * are consumed and come back one at a time, at any time.
 *
 * Shown: the nodes never wait for each other for good; and an operation that waits is staged when so
 * much room has come back as docs/protocol.md says, whatever passes it.
 *
 * Left out: padding, runs, room for ACKs (acks.pml); clients and their turns (engine/verdicts).
 *
 * Mutants: NO_PASS (verdicts wait, too), KEPT_ONCE (only what is kept may be taken), PASS_ALWAYS
 * (as long as there is room; then an operation waits without a bound).
 */
#define VERDICT 3
#define SHORT 4
#define LONG 9
#define RING 12
#define KEPT 6
#define RECORDS 6                 /* on a ring, at most */

/* What comes back before an operation that waits has its room, at most. */
#define BOUND (4 * (2 * KEPT + LONG))

typedef ledger {
    byte size[RECORDS];           /* of the records that are not acknowledged */
    byte count, used;             /* how many, and their units */
    byte consumed;                /* of these: by the peer */
    byte answered;                /* of these, before the first that the peer owes a verdict on */
    byte next;                    /* sender: next in turn, and found no room; 0: none */
    byte pass;                    /* sender: quarters of units that may pass it */
    byte back                     /* units that came back while it waits (node 0 counts) */
}
ledger l[2];

#define FITS(n, units) (l[n].used + units <= RING && l[n].count < RECORDS)
#define WAITS(n) (l[n].next > 0 && !FITS(n, l[n].next))
#define READY(n) (l[n].next > 0 && FITS(n, l[n].next))
/* Node n owes a verdict on what came from `from`. */
#define OWES(from) (l[from].answered < l[from].consumed)
#ifdef PASS_ALWAYS
#define MAY_PASS(n) (l[n].used + VERDICT <= RING + KEPT && l[n].count < RECORDS)
#elif defined(NO_PASS)
#define MAY_PASS(n) (false)
#else
#define MAY_PASS(n) (VERDICT * 4 <= l[n].pass && l[n].count < RECORDS)
#endif

inline stage(n, units)
{
    assert(l[n].used + units <= RING + KEPT);
    l[n].size[l[n].count] = units;
    l[n].count++;
    l[n].used = l[n].used + units
}

/* Verdicts are not answered. */
inline skip_verdicts(from)
{
    do
    :: l[from].answered < l[from].consumed && l[from].size[l[from].answered] == VERDICT ->
        l[from].answered++
    :: else -> break
    od
}

inline answer(n, from)
{
    stage(n, VERDICT);
    l[from].answered++;
    skip_verdicts(from)
}

/* One record comes back: ledger_acknowledge, and the first half of ledger_may_pass. */
inline give_back(n)
{
    more = l[n].size[0];
    l[n].used = l[n].used - more;
#ifndef KEPT_ONCE
    l[n].pass = (l[n].pass + 3 * more < 4 * KEPT -> l[n].pass + 3 * more : 4 * KEPT);
#endif
    if
    :: n == 0 && l[n].next > 0 -> l[n].back = l[n].back + more
    :: else
    fi;
    assert(l[n].back <= BOUND);
    i = 0;
    do
    :: i < RECORDS - 1 -> l[n].size[i] = l[n].size[i + 1]; i++
    :: else -> break
    od;
    l[n].size[RECORDS - 1] = 0;
    i = 0;
    l[n].count--;
    l[n].consumed--;
    l[n].answered--;
    more = 0
}

proctype node(byte n)
{
    byte from = 1 - n, i, more;

    do
    /* In turn: a verdict, or an operation. */
    :: atomic { l[n].next == 0 && OWES(from) && FITS(n, VERDICT) -> answer(n, from) }
    :: atomic { l[n].next == 0 ->
           if
           :: more = SHORT
           :: more = LONG
           fi;
           if
           :: FITS(n, more) -> stage(n, more)
           :: else -> l[n].next = more
           fi;
           more = 0
       }
    :: atomic { READY(n) -> stage(n, l[n].next); l[n].next = 0; l[n].back = 0 }
    :: atomic { WAITS(n) && OWES(from) && MAY_PASS(n) ->
           answer(n, from);
#if !defined(PASS_ALWAYS)
           l[n].pass = l[n].pass - VERDICT * 4
#endif
       }
    /* ledger_next */
    :: atomic { l[from].consumed < l[from].count -> l[from].consumed++; skip_verdicts(from) }
    /* An ACK: not of what is to be answered. A step stages what has room before it looks again. */
    :: atomic { l[n].answered > 0 && !READY(n) -> give_back(n) }
    od
}

init {
    atomic {
        l[0].pass = 4 * KEPT;
        l[1].pass = 4 * KEPT;
        run node(0);
        run node(1)
    }
}
