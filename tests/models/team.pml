/*
 * A team area with one row and two members of one engine: arrivals, the last to come, results and
 * how they are taken, later instances in the same row, sleepers, and a member that dies.
 *
 * Stands for: shm_ring/team.c, clientlib/teams/step.c (begin, finish, end_here), clientlib/teams/progress.c
 * (end_step, team_wake, teams_arm, find_broken), daemon/engine/team/exchange.c (exchange_wake,
 * exchange_break). Barriers J, K, L, M, N of shm_ring/team.h.
 *
 * A member writes its line, counts itself, and waits for `done`; the last to come reads both lines,
 * writes the result and ends the instance. Each member takes the result, and calls again as soon as
 * all have taken the result before. A member that waits, for the end or for room, sleeps: it arms
 * its bell, sets its bit, and looks again. The member that ends an instance, or is the last to take
 * it, asks the daemon to wake sleepers. Member 1 may die at any step; the daemon then breaks the
 * team. Shown: every instance is combined from lines of its own, every result that is taken is that
 * of its instance, and no member sleeps for ever: members make all their calls, or find the team
 * broken. With ROOT, only member 0 gives data: it ends the instance before the other member has
 * come, and waits for room only.
 *
 * Left out: several rows and data rows, which only repeat this; how a record reaches the daemon
 * (doorbell.pml) and how a bell wakes (pair.pml): a request to the daemon is a flag here, and a
 * bell is one word.
 *
 * Mutants: NO_SECOND_LOOK, BIT_BEHIND_LOOK, DONE_UNFENCED (the bits are loaded while `done` may
 * still stand in the store buffer), with ROOT: ROOM_UNCHECKED, TAKEN_FIRST (a member counts as
 * having taken before it reads the result), DONE_BEFORE_RESULT, TAKER_SILENT (the last member to
 * take wakes nobody), BREAK_SILENT (the daemon breaks the team and wakes nobody), BREAK_UNSEEN (a
 * sleeper's second look finds an end, but no break).
 */
#define MEMBERS 2
#define DAEMON 2
#define PROCESSES 3
#define REGISTERED 0
#define WORDS 8
#define DEPTH 4
#include "tso.pml"

#define LAPS 3

#define ARRIVED 0
#define TAKEN 1
#define DONE 2
#define RESULT 3
#define BROKEN 4
#define SLEEPERS 5
#define LINE 6       /* lines of the members: 6 and 7 */

bool asked;          /* SUBMIT_TEAM_WAKE stands in a ring */
bool bell[MEMBERS];  /* the bell is armed */
bool dead;

/* Locked instructions. */
inline add(word)
{
    atomic {
        EMPTY(me);
        memory[word]++;
        old = memory[word]
    }
}

inline set_bit(word, bits)
{
    atomic {
        EMPTY(me);
        memory[word] = memory[word] | (bits)
    }
}

inline clear_bit(word, bits)
{
    atomic {
        EMPTY(me);
        memory[word] = memory[word] & ~(bits)
    }
}

/* What a member waits for: room, or the end. */
#define MET ((for_end && LOAD(DONE) == s + 1) || (!for_end && LOAD(TAKEN) >= MEMBERS * s))

inline wake_others()
{
    if
    :: LOAD(SLEEPERS) & (3 - (1 << me)) -> asked = true         /* M */
    :: else
    fi
}

/* Member 1 may die here, or go on. */
#define MAY_DIE          \
    if                   \
    :: me == 1 -> goto dies \
    :: true              \
    fi

inline wait_for(what)
{
    for_end = what;
    do
    :: MET -> break
    :: LOAD(BROKEN) -> goto broken                               /* N */
    :: else ->
        bell[me] = true;
#ifdef BIT_BEHIND_LOOK
        if
        :: MET -> bell[me] = false; break
        :: LOAD(BROKEN) -> goto broken
        :: else
        fi;
#endif
        set_bit(SLEEPERS, 1 << me);                              /* M */
#if !defined(NO_SECOND_LOOK) && !defined(BIT_BEHIND_LOOK)
        if
        :: MET -> bell[me] = false
#ifndef BREAK_UNSEEN
        :: LOAD(BROKEN) -> bell[me] = false
#endif
        :: else
        fi;
#endif
        !bell[me];                                               /* sleeps in the futex */
        clear_bit(SLEEPERS, 1 << me)
    od
}

proctype member(byte me)
{
    byte s, old;
    bool for_end;

    do
    :: s == LAPS -> break
    :: else ->
#ifndef ROOM_UNCHECKED
        wait_for(false);                                         /* L */
#endif
        MAY_DIE;
#ifdef ROOT
        if
        :: me == 0 ->
            store(RESULT, s + 1);
            store(DONE, s + 1);                                  /* K M */
            fence();
            wake_others()
        :: else
        fi;
#endif
        store(LINE + me, s + 1);
        MAY_DIE;
        add(ARRIVED);                                            /* J */
        MAY_DIE;
        if
        :: old == MEMBERS * (s + 1) ->
            assert(LOAD(LINE) == s + 1 && LOAD(LINE + 1) == s + 1);
#ifndef ROOT
#ifdef DONE_BEFORE_RESULT
            store(DONE, s + 1);
            fence();
            store(RESULT, s + 1);
#else
            store(RESULT, s + 1);
            store(DONE, s + 1);                                  /* K M */
#ifndef DONE_UNFENCED
            fence();
#endif
#endif
            wake_others()
#endif
        :: else
        fi;
        MAY_DIE;
#ifdef ROOT
        if
        :: me == 0 -> goto taken                                 /* rank 0 only gives */
        :: else
        fi;
#endif
        wait_for(true);                                          /* K */
#ifndef TAKEN_FIRST
        assert(LOAD(RESULT) == s + 1);
#endif
taken:
        add(TAKEN);                                              /* L M */
#ifdef TAKEN_FIRST
        assert(me == 0 || LOAD(RESULT) == s + 1);
#endif
#ifndef TAKER_SILENT
        if
        :: old == MEMBERS * (s + 1) -> wake_others()
        :: else
        fi;
#endif
        s++
    od;
    goto end_member;

dies:
    dead = true;
    goto end_member;

broken:
    bell[me] = false;

end_member:
    skip
}

proctype daemon()
{
    byte me = DAEMON, bits;

end_daemon:
    do
    :: atomic { asked -> asked = false };
take:
        exchange_zero(SLEEPERS, bits);                           /* M */
        if
        :: bits & 1 -> bell[0] = false
        :: else
        fi;
        if
        :: bits & 2 -> bell[1] = false
        :: else
        fi;
        bits = 0
    :: dead && !LOAD(BROKEN) ->
        store(BROKEN, 1);                                        /* N M */
        fence();
#ifndef BREAK_SILENT
        goto take
#endif
    od
}

init {
    atomic {
        run drain(0);
        run drain(1);
        run drain(2);
        run member(0);
        run member(1);
        run daemon()
    }
}
