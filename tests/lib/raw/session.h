/*
 * A client that has attached properly and then writes what it likes into its session: one context,
 * one segment with a region over all of it, and a remote that leads to its own region.
 *
 * Thread: one at a time.
 */
#ifndef PWC_TESTS_LIB_RAW_SESSION_H
#define PWC_TESTS_LIB_RAW_SESSION_H

#include <stdint.h>
#include "tests/lib/raw/ask.h"
#include "proto/session_abi.h"

#define RAW_RING    8192u
#define RAW_SEGMENT 65536u

struct raw_session {
    int socket;
    struct session_shared *shared;
    uint64_t shared_bytes;
    uint8_t *submit, *local, *remote_events, *answer; /* data of the rings */
    int session_fd, doorbell, wake, segment_fd;
    uint32_t session, segment, remote;
    uint8_t *memory; /* the segment */
    struct answer key;
    uint64_t tail, answer_tail; /* tails of the two rings that the test fills, as last published */
};

/* Attaches as this rank of a job. Returns 0, or the status of the step that failed. */
int raw_session_open(struct raw_session *s, const struct daemon *d, const char *job, uint32_t rank,
                     uint32_t size);
void raw_session_close(struct raw_session *s);

/* Makes a put of 64 bytes from the segment to its second half, with both ids by value. */
struct submit_record raw_put(const struct raw_session *s);
/* Copies bytes to the tail, moves the tail by `advance`, and rings. */
void raw_submit(struct raw_session *s, const void *bytes, size_t size, uint64_t advance);
/* Stores a tail and rings. */
void raw_set_tail(struct raw_session *s, uint64_t tail);
void raw_ring(struct raw_session *s);
/* Does as raw_submit, for the reply_submit ring. */
void raw_answer(struct raw_session *s, const void *bytes, size_t size, uint64_t advance);
/* Takes the next local event. Returns 1, or 0 when none has arrived within 5 s. */
int raw_local_event(struct raw_session *s, struct event_record *out);
/* Takes the next remote event, and the block if the event is an active message. */
int raw_remote_event(struct raw_session *s, struct event_record *out, struct message *block);

#endif
