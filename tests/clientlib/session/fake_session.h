/*
 * The daemon's side of one session, as small as can be: a memfd with a sound header, mapped, and
 * rings to read submissions from and post events to. The test decides what this daemon does.
 */
#ifndef PWC_TESTS_CLIENTLIB_FAKE_SESSION_H
#define PWC_TESTS_CLIENTLIB_FAKE_SESSION_H

#include <stdint.h>
#include "shm_ring/mapping.h"
#include "shm_ring/ring.h"
#include "proto/session_abi.h"

/* The longest submission: a quarter of the largest ring that tests use. */
#define FAKE_RECORD_MAX 65536u

struct fake_session {
    struct mapping mapping;
    struct session_shared *shared;
    struct ring_consumer submit;
    struct ring_producer local;
    struct ring_producer remote;
    struct ring_consumer reply_submit;
    struct ring_producer reply_event;
    _Alignas(8) uint8_t record[FAKE_RECORD_MAX]; /* the last submission read */
};

int fake_session_open(struct fake_session *s, const struct session_sizes *sizes);
void fake_session_close(struct fake_session *s);

/* Reads the next submission, or the next submitted reply; NULL: there is none. Ids and payload
 * follow the record. */
const struct submit_record *fake_session_read(struct fake_session *s);
const struct submit_record *fake_session_read_answer(struct fake_session *s);
const void *fake_record_lid(const struct submit_record *record);
const void *fake_record_rid(const struct submit_record *record);
const void *fake_record_payload(const struct submit_record *record);

/* Ends an operation: posts its local event and counts `ended` up. Returns 0, or the ring's
 * error. */
int fake_session_end(struct fake_session *s, const struct submit_record *record, uint64_t peer,
                     int status);
/* As fake_session_end, with `bytes` as the event's length. */
int fake_session_end_with(struct fake_session *s, const struct submit_record *record, uint64_t peer,
                          int status, uint64_t bytes);
/* Ends an operation without an event: gives back the space that the event would need. */
void fake_session_end_silent(struct fake_session *s, const struct submit_record *record);

/* Gives back the space for a reply's event, for a request that gets no such event. */
void fake_session_release_reply(struct fake_session *s);

/* Posts an event with `id_len` bytes at `id`, or the value `id_value` when it is 0. */
int fake_session_post(struct fake_session *s, uint8_t kind, uint8_t op, uint64_t peer, int status,
                      uint64_t bytes, uint64_t id_value, const void *id, uint16_t id_len);

#endif
