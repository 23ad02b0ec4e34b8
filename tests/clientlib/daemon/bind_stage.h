/*
 * A stage for pwc_bind_start: a client with two contexts, and a daemon on a thread. The test says
 * when and in which order this daemon answers binds, and which of them it refuses.
 */
#ifndef PWC_TESTS_CLIENTLIB_BIND_STAGE_H
#define PWC_TESTS_CLIENTLIB_BIND_STAGE_H

#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "pwc/am.h"
#include "pwc/counter.h"
#include "shm_ring/counts.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/daemon/operations.h"
#include "tests/clientlib/daemon/two_contexts.h"

enum { BATCH = 8, MANY = 900 };

/* ---- the daemon's part ---------------------------------------------------------------------- */

/* Orders to the hook below, and its counts. */
static struct {
    _Atomic unsigned binds, unbinds;
    _Atomic bool shut;       /* the daemon waits in the next bind until this is false */
    _Atomic int delay_us;    /* delay of each bind */
    _Atomic int refuse;      /* the next bind: a negative errno; 0: nothing */
    _Atomic unsigned batch;  /* answers so many binds at once, last one first */
    uint8_t *kept[BATCH];    /* packed requests of these binds */
    size_t kept_size[BATCH]; /* lengths of these requests */
    unsigned kept_count;
} script;

static inline void answer_batch(struct fake_daemon *daemon)
{
    while (script.kept_count > 0) {
        unsigned i = --script.kept_count;
        Pwc__ClientRequest *request =
            pwc__client_request__unpack(NULL, script.kept_size[i], script.kept[i]);

        fake_daemon_handle(daemon, request);
        pwc__client_request__free_unpacked(request, NULL);
        free(script.kept[i]);
    }
}

static inline bool keep(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    unsigned i = script.kept_count;

    script.kept_size[i] = pwc__client_request__get_packed_size(request);
    script.kept[i] = malloc(script.kept_size[i]);
    pwc__client_request__pack(request, script.kept[i]);
    if (++script.kept_count == script.batch)
        answer_batch(daemon);
    return true;
}

static inline bool hook(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    int refuse;

    if (request->body_case == PWC__CLIENT_REQUEST__BODY_UNBIND)
        script.unbinds++;
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_BIND)
        return false;
    script.binds++;
    while (script.shut)
        usleep(100);
    usleep((useconds_t)script.delay_us);
    refuse = atomic_exchange(&script.refuse, 0);
    if (refuse < 0)
        fake_daemon_error(daemon, request->id, refuse, "the test refuses it");
    return refuse < 0 || (script.batch > 0 && keep(daemon, request));
}

/* ---- a world with a second context, which is bound ------------------------------------------- */

struct stage {
    struct world *w;
    pwc_ctx *a, *b;
    struct pwc_key key; /* key of the world's region */
    unsigned handled;
};

static inline void count_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    ++*(unsigned *)argument;
    (void)ctx;
    (void)am;
}

static inline struct stage *stage_new(bool pairs)
{
    struct stage *s = calloc(1, sizeof(*s));

    memset(&script, 0, sizeof(script));
    s->w = world_new_sized(0, hook);
    s->w->daemon.pairs = pairs;
    s->a = s->w->ctx;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(s->w->client, NULL, &s->b), 0);
    CU_ASSERT_EQUAL(pwc_am_register(s->b, HANDLER, count_message, &s->handled), 0);
    CU_ASSERT_EQUAL(pwc_region_key(s->w->region, &s->key), 0);
    script.binds = 0;
    return s;
}

static inline void stage_free(struct stage *s)
{
    script.shut = false;
    world_free(s->w);
    free(s);
}

static inline pwc_remote *start(struct stage *s, uint64_t lid)
{
    pwc_remote *remote = NULL;

    CU_ASSERT_EQUAL_FATAL(
        pwc_bind_start(s->a, pwc_ctx_peer(s->b), &s->key, pwc_cid_u64(lid), &remote), 0);
    return remote;
}

static inline struct pwc_event expect_bind(struct stage *s, uint64_t lid, int status)
{
    struct pwc_event event = expect(s->w, PWC_LOCAL, lid, status);

    CU_ASSERT_EQUAL(event.op, PWC_OP_BIND);
    CU_ASSERT_EQUAL(event.peer, pwc_ctx_peer(s->b));
    CU_ASSERT_EQUAL(event.length, status == 0 ? pwc_region_len(s->w->region) : 0);
    return event;
}

static inline void wait_for(const _Atomic unsigned *count, unsigned wanted)
{
    for (unsigned i = 0; i < WAIT_MS && *count < wanted; i++)
        usleep(1000);
    CU_ASSERT_EQUAL(*count, wanted);
}

#endif
