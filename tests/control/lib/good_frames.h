/*
 * Frames between daemons with good values. A test changes one field of such a frame, sends it and
 * reads the answer. The sender is node WE of 2, which the test plays; the daemon is node 1.
 *
 * Thread: one, the owner's.
 */
#ifndef PWC_TESTS_CONTROL_GOOD_FRAMES_H
#define PWC_TESTS_CONTROL_GOOD_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"
#include "tests/control/lib/raw_peer.h"

#define WE     0u /* our number, which is lower: our dial takes precedence over the other node's */
#define COOKIE UINT64_C(77)

/* Owned by the test. The bodies point at the names and the address. */
struct good_frames {
    char job[16]; /* a job whose home is the daemon */
    char our_job[16];
    char pair_job[16];                   /* a job of two ranks of ours, whose home is the daemon */
    uint8_t address[FABRIC_ADDRESS_MAX]; /* a fabric address; empty until the test fills it */
    size_t address_size;
    Pwc__Greeting greeting;
    Pwc__Proof proof;
    Pwc__Refusal refusal;
    Pwc__RankAt rank_at;
    Pwc__WhereIs where_is;
    Pwc__RankIs rank_is;
    Pwc__Contribution contribution;
    Pwc__Gathered gathered;
    Pwc__Offer offer;
    Pwc__Ping ping;
    Pwc__Roll roll;
    Pwc__Publication publication;
    Pwc__LookFor look_for;
    Pwc__NameIs name_is;
};

/* Chooses the names of the jobs. */
void good_frames_init(struct good_frames *f);
/* Fills all bodies with their good values for this connection. */
void good_frames_fill(struct good_frames *f, struct raw_peer *p);
/* The frame that a path as "rank_at.job" belongs to. */
Pwc__PeerFrame good_frames_of(struct good_frames *f, const char *path);
/* Reads the status of the next answer, and passes over frames that the daemon sends on its own. */
int good_frames_status(struct raw_peer *p);
/* Whether the daemon still answers: announces a rank of ours to it, as the home of its job. Fills
 * the frames. */
bool good_frames_alive(struct good_frames *f, struct raw_peer *p);

#endif
