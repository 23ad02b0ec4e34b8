/*
 * The room and the runs that are kept for acknowledgements, in two ledgers, one in each direction,
 * which carry operations and each other's acknowledgements.
 *
 * Stands for: daemon/engine/ledger/ledger_out.c (ledger_stage, waits_for_runs, run_window_open, run_cut,
 * ledger_post, ledger_acknowledge) and daemon/engine/ledger/ledger_in.c (ledger_next,
 * ledger_stage_ack).
 *
 * Both nodes always have one more operation to send. Shown: the nodes never wait for each other for
 * good, both out of credit or out of runs; and no ACK covers more than was sent. All positions
 * count from what the sender knows to be acknowledged, and an ACK says how many more records it
 * covers, so that there are few states. Every record is one unit long. With CUT a run has at most
 * CUT records (ordered_max), otherwise as many as are staged. A target consumes one record at a
 * time, so an ACK may cover a part of a run.
 *
 * Left out: what ledger.pml models, so that writes are placed and complete at once, in order;
 * verdicts, which an ACK waits for (flow.pml); pings and nudges; one ledger that stands still while
 * the other does not.
 *
 * Mutants: ALL_FOR_OPERATIONS (no room is kept), ALL_RUNS_WITHOUT_ACK (no run is kept),
 * ACK_RIDES_ONLY (an ACK never leaves alone), NEVER_URGENT (runs are kept and not used),
 * KEPT_RUNS_FOR_LITTLE (kept runs are spent on ACKs that cover a part of a run, and the ACK that
 * would free the run finds none); with CUT: STAGED_BEYOND_WINDOW (an ACK is staged after operations
 * for more runs than may leave, which then spend the runs kept for the ACK).
 */
#define RING 4
#define WINDOW 3          /* RUN_WINDOW */
#define DUE_RUNS 2        /* runs consumed that make an ACK due */
#define DUE 3             /* records consumed that make one due: size / 4 */

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

/* A record: 0 is an operation, another value an ACK of so many more records. */
#define LAST 16           /* added to the last record of a run */
#define MORE(record) (record & 15)

typedef ledger {
    byte tail, sent, runs; /* of the sender; counted from what is acknowledged */
    bool urgent;
    byte consumed, reported;   /* of the receiver */
    byte runs_unacked;
    bool due;
    byte record[RING]
}
ledger l[2];

#if defined(CUT) && !defined(STAGED_BEYOND_WINDOW)
/* A record is half a run (CUT=2), or a whole run (CUT=1), in which no ACK fits beside it. */
#define WAITS(n) (l[n].tail - l[n].sent >= \
                  (l[n].runs < WITHOUT_ACK -> WITHOUT_ACK - l[n].runs : CUT - 1))
#else
#define WAITS(n) (false)
#endif
#define UNACKED(from) (l[from].consumed - l[from].reported)

/* ledger_stage_ack: the runs that are kept are spent on an ACK that frees many. */
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

/* ledger_acknowledge: acknowledged records are dropped, and the others move to the front. */
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
    /* ledger_stage_ack: the ACK leaves alone, or with records that leave anyway. */
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
