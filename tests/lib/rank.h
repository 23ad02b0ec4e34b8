/*
 * One rank of a job: a client with one context and one region, and a remote after a bind.
 *
 * Thread: one at a time.
 */
#ifndef PWC_TESTS_LIB_RANK_H
#define PWC_TESTS_LIB_RANK_H

#include <stddef.h>
#include <stdint.h>
#include "pwc/pwc.h"

#define RANK_WAIT_MS 20000

struct rank {
    uint32_t number;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *remote;
    uint8_t *memory;
    size_t length;
};

/* Attaches a rank, and prints what fails. Its region has both rights. */
int rank_attach(struct rank *r, const char *socket, const char *job, uint32_t number, uint32_t size,
                size_t length);
void rank_detach(struct rank *r);

/* Binds another rank of this process. */
int rank_bind(struct rank *r, const struct rank *to);
/* Binds two ranks in different processes to each other. */
int rank_bind_other(struct rank *r);

/* rank_fill writes the bytes of round `seed`; rank_check checks that they are there. */
void rank_fill(uint8_t *to, size_t length, uint64_t seed);
int rank_check(const uint8_t *at, size_t length, uint64_t seed);

#endif
