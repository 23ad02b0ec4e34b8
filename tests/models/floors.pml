/*
 * The floors of a team: engines send the letters of an instance only where the others have room for
 * it, ask for a floor that they wait for, and break the team.
 *
 * Stands for: daemon/engine/team/instance.c (instance_room, move_floor, say_floor),
 * daemon/engine/team/progress.c (ask, ask_floors, retry, team_fail), daemon/engine/team/letters.c
 * (stage_part, stage_floor, stage_news, letter_acknowledged), daemon/engine/team/arrivals.c (sender,
 * take_coll, take_floor, take_break).
 *
 * Each instance has one round, whose letters go from all engines to all, from the first to the
 * others, or from the last to the others, as chosen at the start. The members of the engines call
 * in any order. Letters wait for room in the ledger, and are acknowledged at any time. With DATA
 * all instances share one data row. With DEATH an engine breaks the team at any step. Shown: no
 * letter comes for an instance that its receiver has no row for, no row is used again before its
 * letters are acknowledged, and when nothing moves any more, either every instance is over
 * everywhere, or the team is broken everywhere.
 *
 * Left out: parts and rounds of letters, which need no order; cuts and restarts, after which the
 * ledger sends again what was not consumed (ledger.pml); engines that send each other no letters,
 * which a break reaches through others.
 *
 * Mutants: WINDOW_UNCHECKED, NO_ASK, ASK_FORGOTTEN (a request for a floor that is not reached yet
 * is forgotten), NO_RETRY (letters that waited for a floor are not tried again), WANTED_SAID (any
 * floor that is sent counts as the one that was asked for), OWED_WHILE_FLYING (a floor that is to
 * be sent while one is under way is forgotten), FLOOR_BEFORE_ACKS (an instance is over when its
 * result is shown), with DATA: ROW_UNCHECKED, with DEATH: BREAK_SILENT (a break is not sent to the
 * others).
 */
#ifndef P
#define P 2
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef LAST
#define LAST 4
#endif

#define COLL 1
#define FLOOR 2
#define BREAK 4
#define NOBODY 255

/* Which participants send for an instance. */
#define ALL 0
#define FIRST 1
#define FINAL 2

typedef engine {
    byte floor, called, posted, done, over;   /* posted, done, over: a bit for each instance */
    byte said, data_over;
    bool blocked, broken;
    byte least; /* lowest floor that some participant waits for; 0: not known, NOBODY: none */
    byte came[P], waits[P], unacked[P];       /* for each participant, a bit for each instance */
    byte theirs[P], sent[P], wanted[P], asks[P];
    bool heard[P];
    byte owed[P], flying[P]
}

engine at[P];
byte kind[LAST];
chan link[P * P] = [2] of { byte, byte, byte };  /* COLL: instance, floor; FLOOR: floor, wanted */
chan acks[P * P] = [2] of { byte, byte };
bool dying;

#define BIT(s) (1 << (s))
#define E at[me]
#define TO(d) link[me * P + (d)]
#define SENDS(e, s) (kind[s] == ALL || (kind[s] == FIRST && (e) == 0) || (kind[s] == FINAL && (e) == P - 1))
#define UNACKED(s) ((E.unacked[0] | E.unacked[P - 1] | E.unacked[P / 2]) & BIT(s))

/* The floor that a receiver must have reached before it is sent letters of instance s. */
#ifdef DATA
#ifdef ROW_UNCHECKED
#define NEED(s) ((s) < WINDOW -> 0 : (s) - WINDOW + 1)
#else
#define NEED(s) (s)
#endif
#define HAS_ROW(s) (E.floor == (s))
#else
#define NEED(s) ((s) < WINDOW -> 0 : (s) - WINDOW + 1)
#define HAS_ROW(s) ((s) >= E.floor && (s) < E.floor + WINDOW)
#endif

inline owe(d, news)
{
#ifdef OWED_WHILE_FLYING
    if
    :: E.flying[d] & (news) -> skip
    :: else -> E.owed[d] = E.owed[d] | (news)
    fi
#else
    E.owed[d] = E.owed[d] | (news)
#endif
}

inline fail()
{
    if
    :: !E.broken ->
        E.broken = true;
#ifndef BREAK_SILENT
        n = 0;
        do
        :: n < P && n != me -> E.owed[n] = E.owed[n] | BREAK; n++
        :: n == me -> n++
        :: n == P -> break
        od
#endif
    :: else
    fi
}

inline say_floor()
{
#ifdef DATA
    many = E.data_over > 0;
#else
    many = E.floor - E.said >= (WINDOW > 1 -> WINDOW / 2 : 1);
#endif
    if
    :: many || E.least <= E.floor ->
        E.least = NOBODY;
        n = 0;
        do
        :: n < P && n != me ->
            if
            :: (E.wanted[n] > 0 && E.wanted[n] <= E.floor) ||
               (many && E.heard[n] && E.sent[n] < E.floor) -> owe(n, FLOOR)
            :: else
            fi;
            if
            :: E.wanted[n] > E.floor && E.wanted[n] < E.least -> E.least = E.wanted[n]
            :: else
            fi;
            n++
        :: n == me -> n++
        :: n == P -> break
        od;
        if
        :: many -> E.said = E.floor; E.data_over = 0
        :: else
        fi
    :: else
    fi;
    many = false
}

/* instance_over, move_floor */
inline settle(s)
{
    if
#ifdef FLOOR_BEFORE_ACKS
    :: E.done & BIT(s) ->
#else
    :: (E.done & BIT(s)) && !UNACKED(s) ->
#endif
        E.over = E.over | BIT(s);
        if
        :: E.over & BIT(E.floor) ->
            do
            :: E.over & BIT(E.floor) -> E.floor++; E.data_over++
            :: else -> break
            od;
            say_floor()
        :: else
        fi
    :: else
    fi
}

inline post(s)
{
    may = true;
    n = 0;
    do
    :: n < P && n != me ->
        if
#ifndef WINDOW_UNCHECKED
        :: E.theirs[n] < NEED(s) ->
            may = false;
            E.blocked = true;
#ifndef NO_ASK
            if
            :: E.asks[n] < NEED(s) -> E.asks[n] = NEED(s); owe(n, FLOOR)
            :: else
            fi
#endif
#endif
        :: else
        fi;
        n++
    :: n == me -> n++
    :: n == P -> break
    od;
    if
    :: may ->
        /* The letters of the instance that had this row are acknowledged. */
        assert(s < WINDOW || !UNACKED(s - WINDOW));
#ifdef DATA
        assert(s == 0 || !UNACKED(s - 1));
#endif
        E.posted = E.posted | BIT(s);
        n = 0;
        do
        :: n < P && n != me ->
            E.waits[n] = E.waits[n] | BIT(s);
            E.unacked[n] = E.unacked[n] | BIT(s);
            n++
        :: n == me -> n++
        :: n == P -> break
        od
    :: else
    fi;
    may = false
}

inline advance(s)
{
    if
    :: s < E.called && !E.broken && !(E.done & BIT(s)) ->
        if
        :: SENDS(me, s) && !(E.posted & BIT(s)) -> post(s)
        :: else
        fi;
        all = !SENDS(me, s) || (E.posted & BIT(s));
        n = 0;
        do
        :: n < P && n != me ->
            all = all && (!SENDS(n, s) || (E.came[n] & BIT(s)));
            n++
        :: n == me -> n++
        :: n == P -> break
        od;
        if
        :: all -> E.done = E.done | BIT(s); settle(s)
        :: else
        fi;
        all = false
    :: else
    fi
}

inline retry()
{
    i = E.floor;
    if
    :: E.blocked ->
        E.blocked = false;
#ifndef NO_RETRY
        do
        :: i < E.called -> advance(i); i++
        :: else -> break
        od
#endif
    :: else
    fi;
    i = 0
}

/* Takes the floor that came with a letter. */
inline hear(d, value)
{
    assert(value >= E.theirs[d]);
    if
    :: value > E.theirs[d] ->
        E.theirs[d] = value;
        moved = true;
        if
        :: E.asks[d] <= value -> E.asks[d] = 0
        :: else
        fi
    :: else
    fi
}

/* Notes that this engine's floor leaves with a letter. */
inline say(d)
{
    E.sent[d] = E.floor;
    E.heard[d] = false;
    if
#ifdef WANTED_SAID
    :: true
#else
    :: E.wanted[d] <= E.floor
#endif
       -> E.wanted[d] = 0
    :: else
    fi
}

inline stage(d)
{
    if
    :: (E.owed[d] & ~E.flying[d]) & BREAK ->
        E.owed[d] = E.owed[d] & ~BREAK;
        E.flying[d] = E.flying[d] | BREAK;
        TO(d) ! BREAK, 0, 0
    :: else ->
        if
        :: (E.owed[d] & ~E.flying[d]) & FLOOR ->
            E.owed[d] = E.owed[d] & ~FLOOR;
            E.flying[d] = E.flying[d] | FLOOR;
            say(d);
            TO(d) ! FLOOR, E.floor, E.asks[d]
        :: E.waits[d] != 0 && !E.broken ->
            i = 0;
            do
            :: E.waits[d] & BIT(i) -> break
            :: else -> i++
            od;
            E.waits[d] = E.waits[d] & ~BIT(i);
            say(d);
            TO(d) ! COLL, i, E.floor;
            i = 0
        fi
    fi
}

#define STAGES(d) ((d) != me && nfull(TO(d)) && ((E.owed[d] & ~E.flying[d]) != 0 || (E.waits[d] != 0 && !E.broken)))
#define COMES(d) ((d) != me && nempty(link[(d) * P + me]) && nfull(acks[me * P + (d)]))
#define ACKED(d) ((d) != me && nempty(acks[(d) * P + me]))

inline take(d)
{
    link[d * P + me] ? what, a, b;
    moved = false;
    if
    :: what == COLL ->
        acks[me * P + d] ! COLL, a;
        hear(d, b);
        E.heard[d] = true;
        if
        :: E.broken -> owe(d, BREAK)
        :: else ->
            assert(HAS_ROW(a) && !(E.came[d] & BIT(a)));
            E.came[d] = E.came[d] | BIT(a);
            advance(a)
        fi
    :: what == FLOOR ->
        acks[me * P + d] ! FLOOR, 0;
        hear(d, a);
        if
        :: b == 0
        :: b > 0 && E.broken -> owe(d, BREAK)
        :: b > 0 && !E.broken && b <= E.floor -> owe(d, FLOOR)
        :: b > E.floor && !E.broken ->
#ifndef ASK_FORGOTTEN
            E.wanted[d] = b;
            E.least = (b < E.least -> b : E.least)
#else
            skip
#endif
        fi
    :: what == BREAK ->
        acks[me * P + d] ! BREAK, 0;
        fail()
    fi;
    if
    :: moved && !E.broken -> retry()
    :: else
    fi;
    moved = false;
    what = 0;
    a = 0;
    b = 0
}

inline acknowledged(d)
{
    acks[d * P + me] ? what, a;
    if
    :: what == COLL ->
        E.unacked[d] = E.unacked[d] & ~BIT(a);
        settle(a)
    :: else -> E.flying[d] = E.flying[d] & ~what
    fi;
    what = 0;
    a = 0
}

proctype participant(byte me)
{
    byte n, i, what, a, b;
    bool may, all, many, moved;

end_participant:
    do
    /* The last member here calls when there is a row; before that its submission waits. */
    :: atomic { !E.broken && E.called < LAST && HAS_ROW(E.called) ->
           E.called++;
           advance(E.called - 1)
       }
    :: atomic { STAGES(0) -> stage(0) }
    :: atomic { STAGES(1) -> stage(1) }
    :: atomic { COMES(0) -> take(0) }
    :: atomic { COMES(1) -> take(1) }
    :: atomic { ACKED(0) -> acknowledged(0) }
    :: atomic { ACKED(1) -> acknowledged(1) }
#if P > 2
    :: atomic { STAGES(2) -> stage(2) }
    :: atomic { COMES(2) -> take(2) }
    :: atomic { ACKED(2) -> acknowledged(2) }
#endif
#ifdef DEATH
    :: atomic { !dying -> dying = true; fail() }
#endif
    od
}

proctype judge()
{
    byte e;

    timeout;
    e = 1;
    do
    :: e < P ->
        assert(at[e].broken == at[0].broken);
        assert(at[e].broken || at[e].floor == LAST);
        e++
    :: else -> break
    od;
    assert(at[0].broken || at[0].floor == LAST)
}

init {
    byte s;

    atomic {
        do
        :: s < LAST ->
            if
            :: kind[s] = ALL
            :: kind[s] = FIRST
            :: kind[s] = FINAL
            fi;
            s++
        :: else -> break
        od;
        s = 0;
        do
        :: s < P -> run participant(s); s++
        :: else -> break
        od;
        run judge()
    }
}
