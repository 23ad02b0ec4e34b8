/*
 * Back-pressure of one flow: a full event ring spills, STOP and GO hold and release the origin, and
 * an operation that finds no room in the spill either is refused and comes again.
 *
 * Stands for: daemon/engine/session/session_event.c (session_deliver, spill_room, session_drain_spill,
 * session_release_spill, session_release_handlers), daemon/engine/offload/turns.c, daemon/engine/ledger/record_op.c (take_by_inflow, refuse), daemon/engine/ledger/notes.c
 * (notes_stage, notes_unanswered), daemon/engine/ops/flow_end.c (flow_refused, flow_hold,
 * flow_acknowledged), daemon/engine/ledger/ledger_in.c (ledger_stage_ack).
 *
 * Ledgers are queues here: their credit is not modelled (acks.pml, verdicts.pml). Verdicts (REFUSE)
 * are staged before other notes that count for the same client, and no acknowledgement passes a
 * verdict on a record that it covers. Shown: each operation is delivered once, in order, and
 * acknowledged only after that; an origin that is held is released.
 *
 * TURNS: records go to handlers, whose client's turn may be over when a record comes. The record is
 * refused then, the client waits in line for a turn, and GO leaves with its turn, whatever becomes
 * of the spill meanwhile. A GO from before the refusal may bring the record back while its client
 * is in line.
 *
 * Mutants: REFUSED_FORGETS_STOP (a record that comes again and is taken into the spill leaves its
 * inflow open, so that no GO follows a STOP), GO_FORGOTTEN, REFUSE_WITHOUT_GO (with an empty
 * spill), ACK_PASSES_VERDICT, EPOCH_UNCHECKED (an acknowledgement from before the refusal counts),
 * TAKE_BEHIND_REFUSED (records after the refused one are taken), NO_REWIND, EVENT_PASSES_SPILL.
 * With TURNS: TURN_FORGOTTEN (no GO leaves with the turn), LINE_FORGOTTEN (a client that had a turn
 * is not put in line again), NO_GO_IN_LINE (the end of the spill sends no GO while the client is in
 * line, although an earlier STOP may arrive after the GO that brought the record back).
 */
#ifndef OPS
#define OPS 5
#endif
#define RING 1
#define SPILL 2

#define STOP 1
#define GO 2
#define REFUSE 3
#define ACK 4

#define OPEN 0
#define STOPPED 1
#define REFUSED 2

chan records = [OPS] of { byte };         /* origin to target: numbers */
chan answers = [8] of { byte, byte };     /* target to origin: kind, number */
chan verdicts = [4] of { byte };          /* not staged yet */
chan others = [4] of { byte };

/* State of the origin. */
byte staged, epoch, rewound;
bool held, placed[OPS];
chan marks = [8] of { byte, byte };       /* sent: operation, epoch */

/* State of the target. */
byte inflow, refused, ring, spill, delivered, consumed, acked_upto, seen;
byte cause;                               /* consumed up to the oldest verdict that is not staged */
bool starved;
byte over;                                /* how often the client's turn may still be over */
bool waits, line, had;                    /* an operation waits for a turn; the client is in line; it has had a turn */
bool returning;                           /* the GO for the refused operation has been queued */
#ifdef ACK_PASSES_VERDICT
#define UPTO consumed
#else
#define UPTO (len(verdicts) > 0 -> cause : consumed)
#endif

proctype origin()
{
    byte kind, what, slot, at_epoch;

end_origin:
    do
    :: atomic { !held && staged < OPS && nfull(records) && nfull(marks) ->
           records ! staged;
           marks ! staged, epoch;
           staged++
       }
    :: atomic { answers ? kind, what ->
           if
           :: kind == STOP -> held = true
           :: kind == GO -> held = false
           :: kind == REFUSE ->
#ifndef NO_REWIND
               staged = what;
#endif
               rewound = what;
               epoch++;
               held = true
           :: kind == ACK ->
               do
               :: what > 0 ->
                   marks ? slot, at_epoch;
#ifndef EPOCH_UNCHECKED
                   if
                   :: at_epoch != epoch && slot >= rewound
                   :: else ->
                       assert(delivered > slot);      /* delivered */
                       placed[slot] = true
                   fi;
#else
                   assert(delivered > slot);
                   placed[slot] = true;
#endif
                   what--
               :: else -> break
               od;
               slot = 0;
               at_epoch = 0
           fi;
           kind = 0;
           what = 0
       }
    od
}

/* Puts the event into the ring, or into the spill. */
inline deliver(number)
{
    assert(number == delivered);                      /* once each, in order */
#ifdef EVENT_PASSES_SPILL
    if
    :: ring < RING -> ring++; assert(spill == 0)
#else
    if
    :: spill == 0 && ring < RING -> ring++
#endif
    :: else ->
        spill++;
        if
        :: inflow == OPEN -> others ! STOP; inflow = STOPPED
        :: else
        fi
    fi;
    delivered++
}

inline refuse(number)
{
    verdicts ! number;
    cause = (len(verdicts) == 1 -> consumed - 1 : cause);
    refused = number;
    returning = false;
    inflow = REFUSED
}

inline go()
{
    if
    :: inflow == REFUSED && waits && returning
    :: else ->
        others ! GO;
        returning = true
    fi
}

/* A record is taken when both queues of notes have room (nfull), otherwise later. */
proctype target()
{
    byte number;

end_target:
    do
    /* take_by_inflow */
    :: atomic { nfull(others) && len(others) < 3 && nfull(verdicts) && nempty(records) ->
           records ? number;
           consumed++;
           if
#ifndef TAKE_BEHIND_REFUSED
           :: inflow == REFUSED && number != refused
#endif
           :: else ->
               if
#ifdef TURNS
               :: over > 0 ->
                   over--;
                   refuse(number);
                   waits = true;
#ifdef LINE_FORGOTTEN
                   line = !had
#else
                   line = true
#endif
#endif
               :: spill == SPILL ->
                   waits = false;
                   refuse(number)
               :: spill == 0 && ring == RING && !starved ->
                   waits = false;
                   starved = true;               /* there is no chunk for the spill, once */
#ifndef REFUSE_WITHOUT_GO
                   others ! GO;
#endif
                   refuse(number)
               :: spill < SPILL ->
                   waits = false;
                   deliver(number);
                   if
                   :: inflow == REFUSED ->
#ifdef REFUSED_FORGETS_STOP
                       inflow = OPEN
#else
                       inflow = (spill > 0 -> STOPPED : OPEN)
#endif
                   :: else
                   fi
               fi
           fi;
           number = 0
       }
    /* session_drain_spill, session_release_spill */
    :: atomic { spill > 0 && ring < RING && len(others) < 3 ->
           spill--;
           ring++;
           if
           :: spill == 0 && inflow != OPEN ->
#ifndef GO_FORGOTTEN
#ifdef NO_GO_IN_LINE
               if
               :: inflow == REFUSED && line
               :: else -> go()
               fi;
#else
               go();
#endif
#endif
               inflow = (inflow == STOPPED -> OPEN : inflow)
           :: else
           fi
       }
#ifdef TURNS
    /* handlers_give_turns, session_release_handlers */
    :: atomic { line && len(others) < 3 ->
           line = false;
           had = true;
           if
#ifndef TURN_FORGOTTEN
           :: inflow == REFUSED && waits -> go()
#endif
           :: else
           fi
       }
#endif
    /* notes_stage: verdicts first. */
    :: atomic { nempty(verdicts) && nfull(answers) -> verdicts ? number; answers ! REFUSE, number;
           number = 0;
           cause = 0
       }
    :: atomic { empty(verdicts) && nempty(others) && nfull(answers) -> others ? number;
           answers ! number, 0;
           number = 0
       }
    /* ledger_stage_ack: up to the oldest verdict. */
    :: atomic { nfull(answers) && UPTO > acked_upto ->
           answers ! ACK, UPTO - acked_upto;
           acked_upto = UPTO
       }
    od
}

proctype program()
{
end_program:
    do
    :: atomic { ring > 0 -> ring--; seen++ }
    od
}

/* When nothing moves any more, everything must be done. */
proctype judge()
{
    timeout;
    assert(seen == OPS && delivered == OPS && spill == 0 && !held);
    assert(placed[0] && placed[1] && placed[2] && placed[OPS - 1])
}

init {
    atomic {
        over = 2;
        run origin();
        run target();
        run program();
        run judge()
    }
}
