/*
 * Teams: what this engine knows of each team, its collectives that are under way, and the letters
 * that have arrived for them or wait to leave.
 *
 * A team takes one piece of the arena's team memory when it opens, with all that it may ever need:
 *
 *     +--------------+---------+-----------+----------+---------+---------+----------+
 *     | participants | members | instances | arrivals | letters | rooms of | rooms of |
 *     |              |         |           |          |         | lines    | data     |
 *     +--------------+---------+-----------+----------+---------+---------+----------+
 *       by number      by rank   window      slots      slots     window     8
 *
 * An instance is one call of the team. It stands in the row of its sequence, modulo the window, and
 * has a room for its data, and *slots*, one for each letter that a round of its schedule may await
 * or send. There are slots for `window` instances with rooms of lines, then for 8 with rooms of
 * data.
 *
 *     room:  +---------+---------+---------+---------+
 *            | side 0  | side 1  | in      | out     |
 *            +---------+---------+---------+---------+
 *              work      work      mail      mail
 *
 * The blocks of its schedule (coll/schedule.h) stand on one side, which counts. The other side has
 *
 *     when a round combines others into blocks: copies of these blocks, with which a round
 *     that was cut short begins again,
 *     for the alltoall that passes blocks on: what a round makes of them; then that side counts,
 *     for the alltoall that sends directly: the blocks that have arrived.
 *
 * `in` keeps letters until their round comes, `out` until they are acknowledged. A team of one
 * participant has no arrivals, letters or rooms, and none of its instances ever begins.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Some of
 * their fields are *private in meaning*: the next process does not use the values that it finds
 * there. Private types die with the process. Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_TEAMS_H
#define PWC_ENGINE_TEAMS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/state/chain.h"
#include "daemon/engine/state/heap.h"
#include "shm_ring/team.h"

#define TEAMS_SHIFT      10u
#define TEAMS_MAX        (1u << TEAMS_SHIFT)
#define TEAM_GENERATIONS (1u << (31 - TEAMS_SHIFT))
#define TEAM_UNIT_BYTES  4096u /* of team memory */

/* ---- in the arena ---------------------------------------------------------------------------- */

enum team_state {
    TEAM_FREE = 0,
    TEAM_OPEN = 1,
};

/* The size of the memory that an instance has. */
struct team_room {
    uint32_t work;  /* bytes of one side */
    uint32_t mail;  /* bytes for letters, in `in` and in `out` each */
    uint32_t slots; /* letters, in and out each */
};

struct team {
    uint32_t state;      /* enum team_state */
    uint32_t generation; /* of the entry: a handle of an earlier generation is refused */
    uint32_t window;
    uint32_t uid; /* the user of all its members, who is charged for the team (session/quota.h) */
    uint64_t number;
    uint32_t size;
    uint32_t me; /* our participant number */
    uint32_t participants;
    uint32_t members;
    uint32_t fullest; /* members of the fullest participant */
    uint32_t left;    /* members that have left, or whose session has ended */
    uint32_t flying;  /* its records that are in ledgers */
    uint64_t floor;   /* the first instance that we have not finished with all letters
                       * acknowledged */
    uint64_t place;   /* of its memory, in team memory */
    uint64_t bytes;
    struct team_room lines, data;
    struct coll_choices choices;   /* the engine's choices when the team opened */
    uint64_t last[TEAM_DATA_ROWS]; /* by data row: instance that used it last, + 1; 0: none has */
    struct team_reason reason;     /* its status: 0, or why the team is broken */
};

enum letter_kind {
    LETTER_FREE = 0,
    LETTER_ROUND = 1, /* COLL: data of one round */
    LETTER_NEWS = 2,  /* FLOOR, BREAK, or both: each participant has one such letter */
};

enum letter_news {
    NEWS_FLOOR = 1 << 0,
    NEWS_BREAK = 1 << 1,
};

/* A letter that waits to leave, or is in a ledger. Its number is its place in team memory, in units
 * of 64 bytes. */
#define LETTER_SHIFT 6u
struct letter {
    uint32_t kind; /* enum letter_kind */
    uint32_t team;
    uint32_t to;     /* participant */
    uint32_t next;   /* the next letter of its turn's list; private in meaning */
    uint32_t listed; /* on its turn's list; private in meaning */
    /* of a LETTER_ROUND: */
    uint32_t round;
    uint64_t sequence; /* of the instance */
    uint32_t bytes;
    uint32_t at;      /* place in `out` of the room */
    uint32_t staged;  /* bytes that are staged, or were */
    uint32_t waits;   /* some bytes are not staged */
    uint32_t records; /* its records that are in the ledger */
    /* of LETTER_NEWS: bits of enum letter_news */
    uint32_t owed;   /* to be sent */
    uint32_t flying; /* staged and not acknowledged */
    uint32_t unused;
};
static_assert(sizeof(struct letter) == 1u << LETTER_SHIFT, "letter");

/* An engine of the team, as the other engines see it. */
struct participant {
    struct letter news; /* the FLOOR and the BREAK to it */
    uint32_t peer;
    uint32_t members;
    uint32_t first;   /* sum of the members of the participants before it */
    uint32_t heard;   /* a COLL has arrived from it since our floor was last sent to it */
    uint64_t floor;   /* its floor, as far as we know */
    uint64_t said;    /* our floor, as last sent to it */
    uint64_t wanted;  /* our floor that it has asked for: FLOOR leaves once ours is at least this;
                       * 0: none */
    uint64_t ask;     /* its floor that we ask for in the next FLOOR to it; 0: none */
    uint32_t met;     /* something has arrived from it, or we have asked it for something */
    uint32_t awaited; /* instances that wait for something from it; private in meaning */
    uint32_t unacked; /* letters of rounds to it that wait or are not acknowledged; private in
                       * meaning */
    uint32_t unused;
};
static_assert(sizeof(struct participant) == 128, "participant");

struct team_member {
    uint32_t rank;
    uint32_t session;
    uint32_t left;
    uint32_t unused;
};

/* The reason why the current round of an instance waits. While some member here has not called, the
 * value is WAITS_NOT, too. */
enum instance_waits {
    WAITS_NOT = 0,
    WAITS_FLOORS = 1,  /* for floors of the participants that the round sends to */
    WAITS_LETTERS = 2, /* for letters from participants */
};

enum instance_state {
    INSTANCE_FREE = 0,
    INSTANCE_OPEN = 1,
    INSTANCE_OVER = 2, /* over, but an earlier instance is not */
};

struct instance {
    uint32_t state;  /* enum instance_state */
    uint32_t called; /* the last member here has called, or the root */
    uint64_t sequence;
    uint64_t signature;
    uint32_t rank; /* the rank that called with `signature`: for the text of a mismatch */
    uint32_t root; /* participant */
    uint32_t length;
    uint32_t kind;   /* enum team_kind */
    uint32_t row;    /* data row, or WIRE_COLL_LINES */
    uint32_t round;  /* the current one; the number of rounds: all are done */
    uint32_t posted; /* rounds whose letters have been written */
    uint32_t copied; /* rounds whose blocks have been copied to the other side, to be combined */
    uint32_t side;   /* the side of its room that counts */
    uint32_t in_used, out_used;
    uint32_t unacked;   /* letters that are not acknowledged */
    uint32_t done;      /* its result is shown to the members here */
    uint32_t schedule;  /* its row in coll/table.c */
    uint16_t waits;     /* enum instance_waits; private in meaning */
    uint16_t lacking;   /* bits of the round's letters that it waits for; private in meaning */
    uint32_t called_ms; /* e->now at its call, in ms; 0: an earlier process noted none */
    uint64_t before;    /* the instance that used its data row before, + 1; 0: none has */
};
static_assert(sizeof(struct instance) == 96, "instance");

/* A letter of one round that an instance awaits. */
struct arrival_slot {
    uint32_t records; /* how many of its records have arrived */
    uint32_t come;    /* bytes that have arrived */
    uint32_t at;      /* place in `in` of the room */
    uint32_t bytes;
};

/* ---- private --------------------------------------------------------------------------------- */

struct team_live {
    struct participant *participants;
    struct team_member *members;
    struct instance *instances;
    struct arrival_slot *arrivals;
    struct letter *letters;
    uint8_t *line_rooms, *data_rooms;
    struct team_area area;
    bool attached;
    uint32_t listed;    /* its letters on lists of turns */
    uint64_t blocked;   /* highest sequence of an instance that has waited for a floor, + 1 */
    uint64_t wanted;    /* no participant waits for a lower floor than this; UINT64_MAX: none
                         * waits for any */
    uint32_t data_over; /* instances with a data row that have ended since the floor was last
                         * sent */
    uint64_t said;      /* the floor when we last looked for participants to send it to */
    uint64_t ended;     /* highest sequence of an instance that ended while the floor was not above
                         * it, + 1 */
    uint64_t hastened;  /* `ended` when ACKs were last hastened */
    uint32_t under_way; /* instances that were called here and are not done */
    uint32_t oldest_ms; /* called_ms of the oldest instance under way */
    uint64_t oldest;    /* sequence of the oldest instance under way */
};

/* The steps that a submission or a letter causes, done after the commit of its transaction. */
struct team_call {
    uint32_t team; /* NONE: nothing follows */
    bool advance;  /* the instance `sequence` may continue */
    bool hasten;   /* a participant waits for our floor */
    uint64_t sequence;
    uint64_t asked; /* the floor of participant `from` has reached what we had asked it
                     * for, and instances that wait for it may continue; 0: it has not */
    uint32_t from;
    struct team_reason reason; /* with a status other than 0: the team breaks */
};

/* Collectives by one row of coll/table.c since this process began. */
struct team_sums {
    uint64_t calls;                 /* calls that have ended here */
    uint64_t bytes;                 /* of one member's operand, summed over these calls */
    uint64_t letters, letter_bytes; /* letters written, and their data */
};

struct teams {
    struct team *table;
    uint8_t *memory;  /* in the arena, as is the table */
    struct heap heap; /* which parts of `memory` are taken */
    struct team_live *live;
    struct chain by_number;
    struct team_call call;
    struct team_sums sums[COLL_ROWS]; /* by row of coll/table.c */
    uint32_t open;                    /* open teams */
    uint32_t under_way;               /* instances under way, of all teams */
    uint64_t broken, failed; /* since this process began: teams that broke; instances under way at
                              * that time */
    uint64_t moved;          /* bytes that instances have copied or combined, since this process
                              * began; a look at an instance that may wait for a floor counts, too */
    bool resume;             /* after a restart every instance may continue */
};

#endif
