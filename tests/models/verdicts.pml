/*
 * Two ledgers, one each way, whose operations are all answered by a verdict (FAIL, REFUSE, or the
 * RESULT of an atomic), where no acknowledgement passes a verdict that is not staged. The next
 * record in turn may be a verdict or an operation; verdicts may pass an operation that finds no
 * room.
 *
 * Stands for: daemon/engine/ops/stage.c (turns_step), daemon/engine/ledger/notes.c (notes_stage,
 * notes_pass, notes_unanswered), daemon/engine/ledger/ledger_out.c (ledger_stage, ledger_may_pass,
 * ledger_acknowledge), daemon/engine/ledger/ledger_in.c (ledger_stage_ack) and proto/wire_abi.h
 * (wire_fetch_pad).
 *
 * Sizes are in units of 8 bytes: a FAIL has 3, the shortest operation 4, a long one 9. A ring has
 * 12 for operations, and 6 more for verdicts that pass. Both nodes always have one more operation
 * to send, long or short in any order; either a verdict or an operation may be next in turn, but a
 * record that finds no room stays next. Records are consumed, and their room comes back, one at a
 * time, at any time.
 *
 * RESULTS: every operation is a long atomic whose values fill the longest RESULT, of 6: three
 * quarters of its record are 6 and a half. A record does not wrap around a ring's end, so its
 * padding is lost; the kept part is as long as two RESULTs. An ACK is a number of records, and is
 * taken after what was staged before it in the other ledger.
 *
 * Shown: the nodes never wait for each other for good; an operation that waits is staged when as
 * much room has come back as docs/protocol.md says, whatever passes it (not with RESULTS); and with
 * RESULTS, no operation ends by an ACK before its values have come.
 *
 * Left out: runs, room for ACKs (acks.pml); clients and their turns (the test engine / verdicts);
 * without RESULTS, padding and the way of an ACK.
 *
 * Mutants: NO_PASS (verdicts wait, too), KEPT_ONCE (verdicts that pass may take only the kept
 * part), PASS_ALWAYS (verdicts pass as long as there is room, so that an operation waits without a
 * bound). With RESULTS: KEPT_UNWRAPPED (the kept part holds one RESULT, which the ring's end may
 * pad), UNPADDED (the record of a READ is shorter than its RESULT), ACK_PASSES_RESULT (an ACK
 * covers all that is consumed).
 */
#define SHORT 4
#ifdef UNPADDED
#define LONG SHORT
#else
#define LONG 9
#endif
#define RECORDS 6                 /* the most records on a ring */

#ifdef RESULTS
#define RING 18
#define VERDICT 6
#ifdef KEPT_UNWRAPPED
#define KEPT VERDICT
#else
#define KEPT (2 * VERDICT)
#endif
#else
#define RING 12
#define VERDICT 3
#define KEPT 6
#endif

/* The most that comes back before an operation that waits has its room. */
#define BOUND (4 * (2 * KEPT + LONG))

typedef ledger {
    byte size[RECORDS];           /* of the records that are not acknowledged, with their padding */
    bool verdict[RECORDS];        /* which of these are verdicts */
    byte count, used;             /* how many records these are, and their units */
    byte consumed;                /* how many of these the peer has consumed */
    byte answered;                /* how many of these come before the first on which the peer owes a verdict */
    byte next;                    /* sender: size of the next record in turn, which found no room; 0: none */
    byte pass;                    /* sender: quarters of units that may pass it */
    byte back;                    /* units that came back while it waits (node 0 counts) */
#ifdef RESULTS
    byte tail;                    /* where the next record begins */
    byte values;                  /* sender: RESULTs that have come, of operations that have not ended */
    byte acked;                   /* how many of these records an ACK covers that is on its way */
    byte before                   /* records of the other ledger that come before that ACK */
#endif
}
ledger l[2];

#ifdef RESULTS
#define PAD(n, units) (l[n].tail + units > RING + KEPT -> RING + KEPT - l[n].tail : 0)
#else
#define PAD(n, units) 0
#endif
#define FITS(n, units) (l[n].used + PAD(n, units) + units <= RING && l[n].count < RECORDS)
#define WAITS(n) (l[n].next > 0 && !FITS(n, l[n].next))
#define READY(n) (l[n].next > 0 && FITS(n, l[n].next))
/* Node n owes a verdict on what came from `from`. */
#define OWES(from) (l[from].answered < l[from].consumed)
#ifdef PASS_ALWAYS
#define MAY_PASS(n) (l[n].used + PAD(n, VERDICT) + VERDICT <= RING + KEPT && l[n].count < RECORDS)
#elif defined(NO_PASS)
#define MAY_PASS(n) (false)
#else
#define MAY_PASS(n) ((PAD(n, VERDICT) + VERDICT) * 4 <= l[n].pass && l[n].count < RECORDS)
#endif

/* Stages a record; `more` becomes the units that the record takes. */
inline stage(n, units, is_verdict)
{
    more = PAD(n, units) + units;
    assert(l[n].used + more <= RING + KEPT);
    l[n].size[l[n].count] = more;
    l[n].verdict[l[n].count] = is_verdict;
    l[n].count++;
    l[n].used = l[n].used + more;
#ifdef RESULTS
    l[n].tail = (l[n].tail + more) % (RING + KEPT)
#endif
}

/* Skips verdicts, which are not answered. */
inline skip_verdicts(from)
{
    do
    :: l[from].answered < l[from].consumed && l[from].verdict[l[from].answered] ->
        l[from].answered++
    :: else -> break
    od
}

inline answer(n, from)
{
    stage(n, VERDICT, true);
    l[from].answered++;
    skip_verdicts(from)
}

/* ledger_next */
inline consume(n, from)
{
#ifdef RESULTS
    l[n].values = l[n].values + l[from].verdict[l[from].consumed];
    l[n].before = (l[n].before > 0 -> l[n].before - 1 : 0);
#endif
    l[from].consumed++;
    skip_verdicts(from)
}

/* Gives the room of one record back: ledger_acknowledge, and the first half of ledger_may_pass. */
inline give_back(n)
{
    more = l[n].size[0];
    l[n].used = l[n].used - more;
#ifdef RESULTS
    assert(l[n].verdict[0] || l[n].values > 0);
    l[n].values = (l[n].verdict[0] -> l[n].values : l[n].values - 1);
    l[n].acked--;
#endif
#ifndef KEPT_ONCE
    l[n].pass = (l[n].pass + 3 * more < 4 * KEPT -> l[n].pass + 3 * more : 4 * KEPT);
#endif
#ifndef RESULTS
    if
    :: n == 0 && l[n].next > 0 -> l[n].back = l[n].back + more
    :: else
    fi;
    assert(l[n].back <= BOUND);
#endif
    i = 0;
    do
    :: i < RECORDS - 1 ->
        l[n].size[i] = l[n].size[i + 1];
        l[n].verdict[i] = l[n].verdict[i + 1];
        i++
    :: else -> break
    od;
    l[n].size[RECORDS - 1] = 0;
    l[n].verdict[RECORDS - 1] = false;
    i = 0;
    l[n].count--;
    l[n].consumed--;
    l[n].answered--;
    more = 0
}

/* Whether node n may take an ACK: not of records that are still to be answered, and not while a
 * record can be staged, because a step stages what has room before it looks again. */
#ifdef RESULTS
#define ACKED(n) (l[n].acked > 0 && l[n].before == 0 && !READY(n))
#else
#define ACKED(n) (l[n].answered > 0 && !READY(n))
#endif

proctype node(byte n)
{
    byte from = 1 - n, i, more;

    do
    /* The next record in turn: a verdict, or an operation. */
    :: atomic { l[n].next == 0 && OWES(from) && FITS(n, VERDICT) -> answer(n, from); more = 0 }
    :: atomic { l[n].next == 0 ->
#ifdef RESULTS
           more = LONG;
#else
           if
           :: more = SHORT
           :: more = LONG
           fi;
#endif
           if
           :: FITS(n, more) -> i = more; stage(n, i, false); i = 0
           :: else -> l[n].next = more
           fi;
           more = 0
       }
    :: atomic { READY(n) -> stage(n, l[n].next, false); l[n].next = 0; l[n].back = 0; more = 0 }
    :: atomic { WAITS(n) && OWES(from) && MAY_PASS(n) ->
           answer(n, from);
#if !defined(PASS_ALWAYS)
           l[n].pass = l[n].pass - more * 4;
#endif
           more = 0
       }
    :: atomic { l[from].consumed < l[from].count -> consume(n, from) }
#ifdef RESULTS
    /* ledger_stage_ack */
#ifdef ACK_PASSES_RESULT
    :: atomic { l[from].acked == 0 && l[from].consumed > 0 ->
           l[from].acked = l[from].consumed;
#else
    :: atomic { l[from].acked == 0 && l[from].answered > 0 ->
           l[from].acked = l[from].answered;
#endif
           l[from].before = l[n].count - l[n].consumed
       }
#endif
    :: atomic { ACKED(n) -> give_back(n) }
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
