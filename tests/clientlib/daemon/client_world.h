/*
 * The start of tests of the library through its public calls: a daemon on a thread, a client
 * attached to it, and the shorthand that all of them use. Thread: the test's.
 */
#ifndef PWC_TESTS_CLIENTLIB_CLIENT_WORLD_H
#define PWC_TESTS_CLIENTLIB_CLIENT_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include "tests/clientlib/daemon/fake/daemon.h"
#include "pwc/pwc.h"

enum {
    BIG = 100000, /* more bytes than a packed payload may have */
    WAIT_MS = 20000,
};

/* A daemon, a client attached to it as rank 0 of 2, one context, one region, bound to itself. */
struct world {
    struct fake_daemon daemon;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *remote;
    uint8_t *memory;
};

struct world *world_new(void);
/* A world with rings of another size (0: the default); `hook` sees each request first. */
struct world *world_new_sized(uint32_t ring_bytes, fake_hook *hook);
/* From now on the library's calls give up after this time. Until then the default holds, because a
 * busy machine may take long to open a world. */
void world_limit(struct world *w, int timeout_ms);
void world_free(struct world *w);

/* Waits for the next event of a kind and checks it. */
struct pwc_event expect(struct world *w, int kind, uint64_t id, int status);
/* Everything has ended, and no event is left. */
void expect_silence(struct world *w);

/* Put and get through the world's remote, with `id` as local id and ~id as remote id. */
int put(struct world *w, uint64_t off, const void *src, size_t len, uint64_t id, unsigned flags);
int get(struct world *w, uint64_t off, void *dst, size_t len, uint64_t id, unsigned flags);

/* Bytes that depend on their place and the seed. */
void fill(uint8_t *bytes, size_t size, unsigned seed);

#endif
