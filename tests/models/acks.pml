/*
 * Two ledgers, one each way, that carry operations and each other's acknowledgements: the room and
 * the runs that are kept for acknowledgements.
 *
 * Stands for: daemon/engine/ledger/ledger_out.c (ledger_stage, waits_for_runs, run_window_open, run_cut,
 * ledger_post, ledger_acknowledge) and daemon/engine/ledger/ledger_in.c (ledger_next,
 * ledger_stage_ack).
 *
 * Both nodes have operations without end. Shown: they never wait for each other for good, both out
 * of credit or out of runs; and no ACK covers more than was sent. All positions count from what
 * the sender knows to be acknowledged, and an ACK says how many more: so the states are few. Every
 * record is one unit long. With CUT a run has so many records at most (ordered_max), else as many
 * as are staged. A target consumes one record at a time, so an ACK may cover a part of a run.
 *
 * Left out: what ledger.pml has. Writes are placed and complete at once, in order. Verdicts, which
 * an ACK waits for (flow.pml); beats and nudges; a single ledger that stands still beside one that
 * does not.
 *
 * Mutants: ALL_FOR_OPERATIONS (no room is kept), ALL_RUNS_WITHOUT_ACK (no runs are), ACK_RIDES_ONLY
 * (it never leaves alone), NEVER_URGENT (runs are kept and not used), KEPT_RUNS_FOR_LITTLE (they go
 * to ACKs that cover a part of a run, and the one that would free it finds none); with CUT
 * STAGED_BEYOND_WINDOW (an ACK stands behind operations for more runs than may leave, and the runs
 * kept for it go to them).
 */
#define RING 4
#define WINDOW 3          /* RUN_WINDOW */
#define DUE_RUNS 2        /* runs consumed that make an ACK due */
#define DUE 3             /* records, the same: size / 4 */

#ifdef ALL_RUNS_WITHOUT_ACK
#define WITHOUT_ACK WINDOW
#else
#define WITHOUT_ACK (WINDOW - 1)
#endif
#ifdef ALL_FOR_OPERATIONS
#define KEPT 0
#else
#define KEPT 1
#endif

/* Records: 0 an operation, else an ACK of so many more. */
#define LAST 16           /* and the last of its run */
#define MORE(record) (record & 15)

typedef ledger {
    byte tail, sent, runs; /* sender: behind what is acknowledged */
    bool urgent;
    byte consumed, reported;   /* receiver */
    byte runs_unacked;
    bool due;
    byte record[RING]
}
ledger l[2];

#if defined(CUT) && !defined(STAGED_BEYOND_WINDOW)
/* A record is half a run; with CUT=1 it is one, beside which no ACK fits. */
#define WAITS(n) (l[n].tail - l[n].sent >= \
                  (l[n].runs < WITHOUT_ACK -> WITHOUT_ACK - l[n].runs : CUT - 1))
#else
#define WAITS(n) (false)
#endif
#define UNACKED(from) (l[from].consumed - l[from].reported)

/* ledger_stage_ack: the runs that are kept go to what frees many. */
#define MUCH(from) (UNACKED(from) >= DUE || l[from].runs_unacked >= DUE_RUNS)
#define SOME(n, from) (l[from].due || l[n].sent < l[n].tail)
#ifdef KEPT_RUNS_FOR_LITTLE
#define MAY(n) (true)
#else
#define MAY(n) (l[n].runs < WITHOUT_ACK)
#endif

#ifdef NEVER_URGENT
#define WINDOW_OPEN(n) (l[n].runs < WITHOUT_ACK)
#else
#define WINDOW_OPEN(n) (l[n].runs < (l[n].urgent -> WINDOW : WITHOUT_ACK))
#endif

/* ledger_post */
inline post(n)
{
    do
    :: l[n].sent < l[n].tail && WINDOW_OPEN(n) ->
#ifdef CUT
        l[n].sent = (l[n].tail - l[n].sent > CUT -> l[n].sent + CUT : l[n].tail);
#else
        l[n].sent = l[n].tail;
#endif
        l[n].record[l[n].sent - 1] = l[n].record[l[n].sent - 1] + LAST;
        l[n].runs++
    :: else -> break
    od;
    if
    :: l[n].sent == l[n].tail -> l[n].urgent = false
    :: else
    fi
}

/* ledger_acknowledge: what has been forgotten moves up. */
inline acknowledge(n, more)
{
    assert(more <= l[n].sent && more <= l[n].reported);
    i = 0;
    do
    :: i < RING ->
        if
        :: i < more && l[n].record[i] >= LAST -> l[n].runs--
        :: else
        fi;
        l[n].record[i] = (i + more < RING -> l[n].record[(i + more) % RING] : 0);
        i++
    :: else -> break
    od;
    i = 0;
    l[n].tail = l[n].tail - more;
    l[n].sent = l[n].sent - more;
    l[n].consumed = l[n].consumed - more;
    l[n].reported = l[n].reported - more
}

proctype node(byte n)
{
    byte from = 1 - n, i, more;

    do
    :: atomic { l[n].tail + 1 <= RING - KEPT && !WAITS(n) -> l[n].tail++ }
    :: atomic { l[n].sent < l[n].tail && WINDOW_OPEN(n) -> post(n) }
    /* ledger_next */
    :: atomic { l[from].consumed < l[from].sent ->
           more = l[from].record[l[from].consumed];
           l[from].consumed++;
           if
           :: more >= LAST && l[from].runs_unacked < DUE_RUNS -> l[from].runs_unacked++
           :: else
           fi;
           if
           :: MORE(more) > 0 -> more = MORE(more); acknowledge(n, more)
           :: else -> l[from].due = true
           fi;
           more = 0
       }
    /* ledger_stage_ack: alone, or with something that leaves anyway. */
    :: atomic { UNACKED(from) > 0 && l[n].tail < RING &&
#ifdef ACK_RIDES_ONLY
                l[n].sent < l[n].tail ->
#else
                (MUCH(from) || MAY(n) && SOME(n, from)) ->
#endif
           l[n].record[l[n].tail] = UNACKED(from);
           l[n].tail++;
           l[n].urgent = true;
           l[from].reported = l[from].consumed;
           l[from].due = false;
           l[from].runs_unacked = 0
       }
    od
}

init {
    atomic {
        run node(0);
        run node(1)
    }
}
