/*
 * Requests of a client without a library, and their answers. Thread: one at a time for each socket.
 */
#ifndef PWC_TESTS_LIB_RAW_ASK_H
#define PWC_TESTS_LIB_RAW_ASK_H

#include <stdint.h>
#include "tests/lib/daemon.h"

struct answer {
    int status;      /* 0, the status of an Error, or -ECONNRESET without an answer */
    char text[512];  /* text of the Error */
    uint32_t handle; /* session, segment, remote, program, or slot of a region's key */
    uint64_t length; /* length of a segment, or of what was bound */
    uint64_t pair;   /* number of the pair that a bind has made; 0: none */
    struct {
        uint32_t node, slot, generation;
        uint8_t secret[16];
    } key;
    uint32_t sizes[5]; /* sizes of a context's rings, as in struct session_sizes */
    int fds[3];        /* the caller closes them */
    int fd_count;
};

/* Sends one request and reads its answer. Returns the status. */
int ask(int socket, Pwc__ClientRequest *request, struct answer *out);
void answer_close(struct answer *answer);
/* Reads what the daemon sends without a request. Returns the status of an Error with id 0, or
 * -ECONNRESET. */
int ask_nothing(int socket, struct answer *out);

int ask_context(int socket, uint32_t ring_bytes, struct answer *out);
/* A context that takes part in pairs while the descriptors in the answer are open: the daemon
 * announces pairs by one of them. */
int ask_direct_context(int socket, uint32_t ring_bytes, struct answer *out);
int ask_segment(int socket, uint64_t length, struct answer *out);
int ask_region(int socket, uint32_t segment, uint64_t offset, uint64_t length, uint32_t rights,
               struct answer *out);
/* `key` is an answer to ask_region, or NULL. */
int ask_bind(int socket, uint32_t session, uint64_t peer, const struct answer *key,
             struct answer *out);
int ask_unbind(int socket, uint32_t session, uint32_t remote);
int ask_context_close(int socket, uint32_t session);
int ask_segment_close(int socket, uint32_t segment);

#endif
