/*
 * Named points at which a test makes a process die, kills its client, or makes a call fail.
 *
 *     FAULT(SUBMIT_WRITTEN);                      a step: the chosen process dies here
 *     rc = FAULT(SEGMENT_REGISTER);               a call: 0, or the error to return
 *
 * Only a build with -Dfaults=true has the points; in any other build FAULT is the constant 0 and
 * leaves no code. A test and the process share one page, the board, in a file whose path is in
 * PWC_FAULT_BOARD. The board counts how often each point was passed, and says which action happens
 * at which passing of which point. So a test first runs with counts only, and then goes through
 * points and passings one by one. A daemon that is started again finds the same board.
 *
 * Points of the library come first, in the order of a client's life, then those of the daemon.
 *
 * Thread: any.
 */
#ifndef PWC_SHM_RING_FAULT_H
#define PWC_SHM_RING_FAULT_H

enum fault_point {
    /* ---- library: the connection ---- */
    FAULT_ATTACH_CONNECTED,
    FAULT_REQUEST_SENT,   /* any request is in the socket */
    FAULT_REPLY_RECEIVED, /* a part of a reply, with its descriptors, is out of the socket */
    FAULT_ATTACH_WELCOMED,
    FAULT_CONTEXT_OPENED, /* the context's descriptors are here, but not yet mapped */
    FAULT_CONTEXT_MAPPED,
    FAULT_SEGMENT_OPENED,
    FAULT_SEGMENT_MAPPED,
    FAULT_REGION_OPENED,
    FAULT_EXCHANGE_PIECE, /* a part of the exchange's data is copied */
    FAULT_BIND_ANSWERED,
    FAULT_BIND_MAPPED, /* the descriptors in a bind's answer are mapped: a neighbour's pages and
                          ring */
    FAULT_UNBOUND,
    FAULT_REGION_CLOSED,
    FAULT_CONTEXT_LEFT,
    FAULT_DETACH_SHUT, /* the daemon sees the hang-up; everything is still mapped */
    FAULT_DETACHED,
    /* ---- library: rings ---- */
    FAULT_SUBMIT_WRITTEN, /* the record is in the ring, but not yet published by the tail */
    FAULT_SUBMIT_PUBLISHED,
    FAULT_DOORBELL_RUNG,
    FAULT_WAIT_ARMED,
    FAULT_EVENT_READ, /* the event is copied, but its place is not yet given back */
    FAULT_EVENT_RELEASED,
    FAULT_SLOT_SETTLED,
    FAULT_MESSAGE_FOUND, /* the message's handler has not run yet */
    FAULT_MESSAGE_RUN,   /* the message's handler has run, the record is still in the ring */
    /* ---- library: direct operations ---- */
    FAULT_DIRECT_COPIED, /* an operation's bytes are copied, its target does not know of it yet */
    FAULT_PAIR_HALF,     /* a record's lines are written, but not yet the head that shows it */
    FAULT_PAIR_SHOWN,
    FAULT_PAIR_BELL,  /* the neighbour's bell is taken, but its wake-up is not yet requested */
    FAULT_PAIR_READ,  /* a neighbour's record is read, but not yet given back */
    FAULT_PAIR_NOTED, /* a new neighbour's ring is mapped here */
    /* ---- library: teams ---- */
    FAULT_TEAM_ANSWERED, /* the team's area is here, but not yet mapped */
    FAULT_TEAM_BUILT,
    FAULT_STEP_WRITTEN,   /* the line and the input are written, the member is not yet counted */
    FAULT_STEP_COUNTED,   /* the last to come has not yet looked at the others' lines */
    FAULT_STEP_COMBINED,  /* the result is neither shown nor submitted yet */
    FAULT_STEP_SUBMITTED, /* to the engine */
    FAULT_STEP_ENDED,     /* the result is shown, members that sleep are not yet woken */
    FAULT_STEP_READ,  /* the result is read, the member is not yet counted as one that took it */
    FAULT_STEP_TAKEN, /* the member is counted, members that wait for the row are not yet woken */
    FAULT_TEAM_LEFT,  /* the daemon knows, the area is still mapped */

    /* ---- daemon: control ---- */
    FAULT_CLIENT_ACCEPTED,
    FAULT_CLIENT_GREETED, /* the engine has the client, the job's home not yet */
    FAULT_CLIENT_SERVED,
    FAULT_SESSION_MADE, /* the session's memory is there, the engine does not have it yet */
    FAULT_SESSION_OPENED,
    FAULT_SEGMENT_MADE,
    FAULT_SEGMENT_READY, /* registered, not yet given to the client */
    FAULT_REGION_MADE,
    FAULT_BIND_ASKED,
    FAULT_BOUND,
    FAULT_PAIR_MADE, /* the target has not seen the pair yet */
    FAULT_PAIR_ANNOUNCED,
    FAULT_REPLY_QUEUED,
    FAULT_CLIENT_ENDS,
    FAULT_SESSION_DETACHED,
    FAULT_SEGMENT_DETACHED,
    FAULT_CLIENT_SETTLED, /* nothing is left of the client but its socket */
    /* ---- daemon: teams ---- */
    FAULT_TEAM_CALLED,   /* a member's call is on its way to the home */
    FAULT_TEAM_GROUPED,  /* at the home: all have called, no node knows of the teams yet */
    FAULT_TEAM_PREPARED, /* the area is made, the engine does not have it yet */
    FAULT_TEAM_OPENED,   /* the engines have the area, the home does not know yet */
    FAULT_TEAM_ENDS,     /* at the home: this node does not know of the end yet, others may */
    FAULT_TEAM_STARTED,  /* the node's teams have started, no answer is noted yet */
    FAULT_TEAM_NOTED,    /* all answers are noted, none is sent yet */
    FAULT_TEAM_LEAVES,   /* a member leaves by a call, the job's home does not know yet */
    /* ---- daemon: handlers ---- */
    FAULT_PROGRAM_TAKEN,    /* the program is copied and checked, the engine does not have it yet */
    FAULT_PROGRAM_LOADED,   /* the engine has the program, its client does not know yet */
    FAULT_OFFLOAD_MADE,     /* the offload is not open yet */
    FAULT_OFFLOAD_OPENED,   /* the offload is open, its client does not know yet */
    FAULT_OFFLOAD_GONE,     /* the offload's program and regions are free, its client does not
                               know yet */
    FAULT_PROGRAM_UNLOADED, /* the program is gone, its client does not know yet */
    /* ---- daemon: engine ---- */
    FAULT_RECORD_READ,      /* the record is copied, but not yet checked */
    FAULT_OPERATION_QUEUED, /* the operation is in its flow */
    FAULT_FABRIC_BEGUN,
    FAULT_FABRIC_ENDED,
    FAULT_LOCAL_EVENT, /* the event is written, but not yet shown */
    FAULT_REMOTE_EVENT,
    FAULT_REPLY_EVENT,
    FAULT_EVENTS_SHOWN,
    FAULT_BIND_RESOLVED,   /* at the node of the key's owner */
    FAULT_INSTANCE_CALLED, /* the members here have arrived, the arena does not say so yet */
    FAULT_LETTER_POSTED,   /* a round's letter is written, but not yet in a ledger */
    FAULT_LETTER_KEPT,     /* the letter's part has arrived, its round has not yet continued */
    FAULT_INSTANCE_SHOWN,  /* the result is in the area, members that sleep are not yet woken */
    FAULT_REVOKE_BEGUN,
    FAULT_REVOKE_TAKEN, /* at the node of a peer that had resolved the key */
    FAULT_REGION_FREED,
    FAULT_SEGMENT_DROPPED,
    FAULT_SESSION_LEFT,
    FAULT_CLIENT_LEFT,
    /* ---- daemon: calls that can fail ---- */
    FAULT_SEGMENT_REGISTER,
    FAULT_PUT_POST,
    FAULT_GET_POST,
    FAULT_RUN_POST, /* a run of records to a peer */
    FAULT_NOTE_ROOM,
    FAULT_QUEUE_ROOM,
    FAULT_MEMORY_MAP, /* of a session or a segment, at a takeover */
    FAULT_POINTS
};

#define FAULT(point) fault_pass(FAULT_##point)

#ifdef PWC_FAULTS

#include <stdatomic.h>
#include <stdint.h>

enum fault_action {
    FAULT_DIE = 1, /* this process dies, by SIGKILL */
    FAULT_KILL,    /* the process `victim` dies; this one continues once the victim is dead */
    FAULT_FAIL,    /* the call gives `error` */
    FAULT_FAIL_ON, /* the call gives `error` from here on */
};

/* The page that a test and one process share. The test writes all of the page except the counts. */
struct fault_board {
    _Atomic uint64_t passed[FAULT_POINTS];
    _Atomic uint64_t at;     /* the passing at which the action happens, from 1 */
    _Atomic uint32_t point;  /* enum fault_point */
    _Atomic uint32_t action; /* 0: only count */
    _Atomic int32_t victim;
    _Atomic int32_t error;
    _Atomic uint32_t done; /* the action has happened */
};

int fault_pass(enum fault_point point);
/* "SUBMIT_WRITTEN". */
const char *fault_name(enum fault_point point);

#else

static inline int fault_pass(enum fault_point point)
{
    return 0;
}

#endif

#endif
