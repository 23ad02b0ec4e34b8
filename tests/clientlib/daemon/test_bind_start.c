/* pwc_bind_start through the public calls: operations before and after a bind's end, ends, what is
 * given up, and several threads (bind_stage.h). */
#include "tests/clientlib/daemon/bind_stage.h"
#include "tests/suite.h"

/* ---- before the end, and after --------------------------------------------------------------- */

/* Operations over the remote are refused until the bind has ended, and accepted afterwards. */
static void use_each(bool pairs)
{
    for (unsigned v = 0; v < OPERATIONS; v++) {
        struct stage *s = stage_new(pairs);
        struct pwc_event event;
        pwc_remote *to;

        script.shut = true;
        to = start(s, 7);
        CU_ASSERT_EQUAL(operations[v].run(s->w, to, 0, pwc_cid_u64(1)), -EAGAIN);
        CU_ASSERT_EQUAL(pwc_remote_len(to), 0);
        CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, 0, &event), 0);
        CU_ASSERT_EQUAL(pwc_flush(s->a, PWC_ANY, 0), -ETIMEDOUT);
        CU_ASSERT_EQUAL(pwc_flush(s->a, pwc_ctx_peer(s->b), 0), -ETIMEDOUT);
        CU_ASSERT_EQUAL(pwc_flush(s->a, pwc_peer_of(0, 9), 0), 0); /* another peer */
        script.shut = false;
        (void)expect_bind(s, 7, 0);
        CU_ASSERT_EQUAL(pwc_remote_len(to), pwc_region_len(s->w->region));
        if (operations[v].ranged)
            CU_ASSERT_EQUAL(operations[v].run(s->w, to, pwc_remote_len(to) + 8, PWC_CID_NONE),
                            -ERANGE);
        CU_ASSERT_EQUAL(operations[v].run(s->w, to, 0, pwc_cid_u64(1)), 0);
        (void)expect(s->w, PWC_LOCAL, 1, 0);
        CU_ASSERT_EQUAL(pwc_unbind(to), 0);
        CU_ASSERT_EQUAL(script.unbinds, 1);
        stage_free(s);
    }
}

static void test_through_the_daemon(void)
{
    use_each(false);
}

static void test_without_the_daemon(void)
{
    use_each(true);
}

/* A refused bind: operations over its remote return the reason, and no unbind is sent for it. */
static void test_refused(void)
{
    struct stage *s = stage_new(false);
    char text[128];
    pwc_remote *to;

    script.refuse = -EHOSTDOWN;
    to = start(s, 3);
    (void)expect_bind(s, 3, -EHOSTDOWN);
    (void)pwc_error_text(s->w->client, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "the test refuses it");
    for (unsigned v = 0; v < OPERATIONS; v++)
        CU_ASSERT_EQUAL(operations[v].run(s->w, to, 0, pwc_cid_u64(1)), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_put(to, 0, "1", 1, PWC_CID_NONE, PWC_CID_NONE, PWC_WAIT), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_remote_len(to), 0);
    expect_silence(s->w);
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    CU_ASSERT_EQUAL(script.unbinds, 0);
    stage_free(s);
}

/* An operation with PWC_WAIT right after the start waits for the end of the bind, good or bad. */
static void test_wait_behind_start(void)
{
    static const unsigned flags = PWC_WAIT | PWC_FENCE | PWC_NO_RCE;

    for (unsigned pairs = 0; pairs < 2; pairs++) {
        struct stage *s = stage_new(pairs);
        uint64_t here = 0;
        pwc_remote *to;

        script.delay_us = 2000;
        to = start(s, 1);
        CU_ASSERT_EQUAL(pwc_put(to, 64, "1234567", 8, pwc_cid_u64(2), PWC_CID_NONE, flags), 0);
        (void)expect_bind(s, 1, 0);
        (void)expect(s->w, PWC_LOCAL, 2, 0);
        CU_ASSERT_STRING_EQUAL(s->w->memory + 64, "1234567");
        to = start(s, 3);
        CU_ASSERT_EQUAL(pwc_get_wait(to, 64, &here, 8, PWC_CID_NONE, 0), 0);
        CU_ASSERT_EQUAL(memcmp(&here, "1234567", 8), 0);
        (void)expect_bind(s, 3, 0);
        to = start(s, 4);
        CU_ASSERT_EQUAL(
            pwc_am_short(to, &(struct pwc_am_send){.index = HANDLER,
                                                   .lid = pwc_cid_u64(5),
                                                   .flags = PWC_WAIT | PWC_AM_NO_REPLY}),
            0);
        (void)expect_bind(s, 4, 0);
        (void)expect(s->w, PWC_LOCAL, 5, 0);
        script.refuse = -EKEYREJECTED;
        to = start(s, 6);
        CU_ASSERT_EQUAL(pwc_put(to, 0, "1", 1, pwc_cid_u64(7), PWC_CID_NONE, flags), -EKEYREJECTED);
        (void)expect_bind(s, 6, -EKEYREJECTED);
        expect_silence(s->w);
        stage_free(s);
    }
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* Events of binds come in the order of the answers, each with its own id. */
static void test_order(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *to[BATCH];

    script.batch = BATCH;
    for (unsigned i = 0; i < BATCH; i++)
        to[i] = start(s, 10 + i);
    for (unsigned i = BATCH; i-- > 0;)
        (void)expect_bind(s, 10 + i, 0);
    for (unsigned i = 0; i < BATCH; i++)
        CU_ASSERT_EQUAL(operation_put(s->w, to[i], 0, PWC_CID_NONE), 0);
    CU_ASSERT_EQUAL(pwc_flush(s->a, PWC_ANY, WAIT_MS), 0);
    stage_free(s);
}

/* A long id is copied at the call: the program may change its bytes afterwards. */
static void test_long_id(void)
{
    struct stage *s = stage_new(false);
    char id[] = "twenty-four bytes long!!";
    struct pwc_event event;
    pwc_remote *to;

    script.shut = true;
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL, pwc_cid_bytes(id, 24), &to), 0);
    memset(id, 'x', 24);
    script.shut = false;
    CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.op, PWC_OP_BIND);
    CU_ASSERT_EQUAL(event.id_size, 24);
    CU_ASSERT_EQUAL(memcmp(event.data, "twenty-four bytes long!!", 24), 0);
    CU_ASSERT_EQUAL(pwc_remote_len(to), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(to, 0, NULL, 0, PWC_CID_NONE, 0), 0);
    stage_free(s);
}

/* A request that was given to binds counts their ends and keeps the first error; no event is
 * posted. */
static void test_requests(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *to[BATCH];
    pwc_request *r;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &r), 0);
    script.shut = true;
    for (unsigned i = 0; i < BATCH; i++)
        CU_ASSERT_EQUAL(
            pwc_bind_start(s->a, pwc_ctx_peer(s->b), &s->key, pwc_cid_request(r), &to[i]), 0);
    CU_ASSERT_EQUAL(pwc_test(r, NULL), 0);
    CU_ASSERT_EQUAL(pwc_cancel(r), -EALREADY);
    CU_ASSERT_EQUAL(pwc_request_free(r), -EBUSY);
    script.refuse = -ENOSPC;
    script.shut = false;
    (void)expect_end(r, -ENOSPC, BATCH);
    expect_silence(s->w);
    CU_ASSERT_EQUAL(operation_put(s->w, to[0], 0, PWC_CID_NONE), -ENOSPC);
    CU_ASSERT_EQUAL(operation_put(s->w, to[1], 0, PWC_CID_NONE), 0);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    stage_free(s);
}

/* A program starts many binds, then waits: all of them end. */
static void test_many(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *to[MANY];
    bool ended[MANY] = {false};

    for (unsigned i = 0; i < MANY; i++)
        to[i] = start(s, i);
    for (unsigned i = 0; i < MANY; i++) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_TRUE_FATAL(event.op == PWC_OP_BIND && event.status == 0 && event.id < MANY);
        CU_ASSERT_FALSE(ended[event.id]);
        ended[event.id] = true;
    }
    CU_ASSERT_EQUAL(script.binds, MANY);
    for (unsigned i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL(pwc_unbind(to[i]), 0);
    CU_ASSERT_EQUAL(script.unbinds, MANY);
    stage_free(s);
}

/* The daemon restarts meanwhile: the bind is asked again. */
static void test_started_anew(void)
{
    struct stage *s = stage_new(false);

    script.refuse = -ECONNABORTED;
    (void)start(s, 1);
    (void)expect_bind(s, 1, 0);
    CU_ASSERT_EQUAL(script.binds, 2);
    stage_free(s);
}

/* When the daemon dies, binds under way end. */
static void test_daemon_gone(void)
{
    struct stage *s = stage_new(false);
    struct pwc_event event;
    pwc_remote *to, *other;

    script.batch = BATCH; /* the answer never comes */
    to = start(s, 1);
    wait_for(&script.binds, 1);
    fake_daemon_stop(&s->w->daemon);
    CU_ASSERT_EQUAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_TRUE(event.op == PWC_OP_BIND && event.status == -ESHUTDOWN);
    CU_ASSERT_TRUE(operation_put(s->w, to, 0, PWC_CID_NONE) < 0);
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, 0, NULL, PWC_CID_NONE, &other), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    CU_ASSERT_EQUAL(pwc_abort(s->w->client), 0);
    free(script.kept[0]);
    free(s->w);
    free(s);
}

/* ---- given up ------------------------------------------------------------------------------- */

static void test_unbind_under_way(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *first, *second, *third;
    struct pwc_status status;
    pwc_request *r;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &r), 0);
    script.shut = true;
    first = start(s, 1);
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL, pwc_cid_request(r), &second), 0);
    third = start(s, 3);
    CU_ASSERT_EQUAL(pwc_unbind(first), 0);
    CU_ASSERT_EQUAL(pwc_unbind(second), 0);
    (void)expect_bind(s, 1, -ECANCELED);
    CU_ASSERT_EQUAL(pwc_test(r, &status), 1);
    CU_ASSERT_EQUAL(status.status, -ECANCELED);
    script.shut = false;
    (void)expect_bind(s, 3, 0); /* so the answers to the first two have been read as well */
    wait_for(&script.unbinds, 2);
    CU_ASSERT_EQUAL(pwc_unbind(third), 0);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    stage_free(s);
}

/* A bind that is given up, by the program or by the timeout, takes no direct path away: the next
 * bind of that neighbour has one, whether its caller waits or not. The daemon answers it before it
 * knows that the pair was given up, so the library asks once more. */
static void test_pair_given_up(void)
{
    for (unsigned row = 0; row < 4; row++) {
        bool late = row & 1, started = row & 2;
        struct stage *s = stage_new(true);
        unsigned executed;
        pwc_remote *to;

        script.shut = true;
        if (late)
            world_limit(s->w, 50);
        to = start(s, 1);
        if (!late)
            CU_ASSERT_EQUAL(pwc_unbind(to), 0);
        (void)expect_bind(s, 1, late ? -ETIMEDOUT : -ECANCELED);
        world_limit(s->w, WAIT_MS);
        script.shut = false;
        wait_for(&script.binds, 1);
        if (started) {
            to = start(s, 3);
            (void)expect_bind(s, 3, 0);
        } else {
            CU_ASSERT_EQUAL_FATAL(pwc_bind(s->a, pwc_ctx_peer(s->b), &s->key, &to), 0);
        }
        CU_ASSERT_EQUAL(script.binds, 3);
        CU_ASSERT_EQUAL(script.unbinds, 2);
        CU_ASSERT_EQUAL(pwc_probe(s->b, PWC_ANY, 0, &(struct pwc_event){0}), 0); /* maps the pair */
        executed = fake_executed(&s->w->daemon);
        CU_ASSERT_EQUAL(operation_put(s->w, to, 0, pwc_cid_u64(2)), 0);
        (void)expect(s->w, PWC_LOCAL, 2, 0);
        CU_ASSERT_EQUAL(fake_executed(&s->w->daemon), executed);
        CU_ASSERT_EQUAL(pwc_unbind(to), 0);
        stage_free(s);
    }
}

/* A bind that is asked once more can be given up, too: it ends, and leaves nothing at the
 * daemon. */
static void test_given_up_twice(void)
{
    struct stage *s = stage_new(true);
    pwc_remote *to;
    pwc_ctx *c;

    script.shut = true;
    CU_ASSERT_EQUAL(pwc_unbind(start(s, 1)), 0);
    (void)expect_bind(s, 1, -ECANCELED);
    to = start(s, 2);
    script.shut = false;
    CU_ASSERT_EQUAL(pwc_ctx_create(s->w->client, NULL, &c), 0); /* reads both answers */
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    (void)expect_bind(s, 2, -ECANCELED);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(s->a, pwc_ctx_peer(s->b), &s->key, &to), 0);
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    CU_ASSERT_EQUAL(script.binds, script.unbinds);
    stage_free(s);
}

/* A context is destroyed with binds under way, answered or not. The client works on. */
static void test_context_destroyed(void)
{
    for (unsigned answered = 0; answered < 2; answered++) {
        struct stage *s = stage_new(true);
        pwc_remote *to;
        pwc_ctx *c;

        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(s->w->client, NULL, &c), 0);
        CU_ASSERT_TRUE(pwc_fd(c) >= 0);
        script.delay_us = answered ? 0 : 1000;
        for (unsigned i = 0; i < 300; i++)
            CU_ASSERT_EQUAL(pwc_bind_start(c, pwc_ctx_peer(s->b), &s->key, PWC_CID_NONE, &to), 0);
        if (answered) /* this call reads all answers */
            CU_ASSERT_EQUAL(pwc_bind(s->a, pwc_ctx_peer(s->b), NULL, &to), 0);
        CU_ASSERT_EQUAL(pwc_ctx_destroy(c), 0);
        script.delay_us = 0;
        (void)start(s, 1);
        (void)expect_bind(s, 1, 0);
        stage_free(s);
    }
}

/* pwc_finalize waits for binds, pwc_abort does not. */
static void test_client_ends(void)
{
    struct stage *s = stage_new(false);

    script.refuse = -EHOSTUNREACH;
    script.delay_us = 2000;
    (void)start(s, 1);
    (void)start(s, 2);
    CU_ASSERT_EQUAL(pwc_finalize(s->w->client), 1); /* one bind has failed */
    CU_ASSERT_EQUAL(script.binds, 2);
    fake_daemon_stop(&s->w->daemon);
    free(s->w);
    free(s);

    s = stage_new(false);
    script.batch = BATCH;
    for (unsigned i = 0; i < BATCH - 1; i++)
        (void)start(s, 1);
    CU_ASSERT_EQUAL(pwc_abort(s->w->client), 0);
    fake_daemon_stop(&s->w->daemon);
    while (script.kept_count > 0)
        free(script.kept[--script.kept_count]);
    free(s->w);
    free(s);
}

/* ---- others -----------------------------------------------------------------------------------
 */

static void test_refusals(void)
{
    struct stage *s = stage_new(false);
    struct pwc_key odd = s->key;
    pwc_remote *to = NULL;
    char id[PWC_CID_MAX + 1];

    odd.reserved = 1;
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, 0, &odd, PWC_CID_NONE, &to), -EINVAL);
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, 0, NULL, pwc_cid_bytes(id, sizeof(id)), &to), -EINVAL);
    CU_ASSERT_EQUAL(script.binds, 0);
    CU_ASSERT_PTR_NULL(to);
    stage_free(s);
}

/* Where no descriptor can be opened, the start is refused; later binds work. */
static void test_no_descriptor(void)
{
    struct stage *s = stage_new(false);
    struct rlimit limit, none;
    pwc_remote *to;
    int free_number;

    /* The daemon closes its descriptor for the last context only after its answer. After one more
     * answer no number becomes free any more. */
    CU_ASSERT_EQUAL_FATAL(pwc_bind(s->a, pwc_ctx_peer(s->b), NULL, &to), 0);
    script.binds = 0;
    free_number = dup(s->w->daemon.listen_fd);
    CU_ASSERT_EQUAL_FATAL(close(free_number), 0);
    CU_ASSERT_FATAL(free_number >= 16);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)free_number; /* not 0: the daemon's poll needs a limit, too */
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL, PWC_CID_NONE, &to), -EMFILE);
    CU_ASSERT_EQUAL(pwc_fd(s->a), -EMFILE);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CU_ASSERT_EQUAL(script.binds, 0);
    (void)start(s, 1);
    (void)expect_bind(s, 1, 0);
    stage_free(s);
}

/* A bind reserves the room for its event at its start. */
static void test_room(void)
{
    struct stage *s = stage_new(false);
    struct pwc_event event;
    unsigned count = 0;
    pwc_remote *to;
    pwc_ctx *c;
    int rc;

    CU_ASSERT_EQUAL_FATAL(
        pwc_ctx_create(s->w->client, &(struct pwc_ctx_attr){.local_bytes = 16384}, &c), 0);
    while ((rc = pwc_bind_start(c, pwc_ctx_peer(s->b), NULL, PWC_CID_NONE, &to)) == 0 &&
           count < MANY)
        count++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT_EQUAL(pwc_wait(c, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_bind_start(c, pwc_ctx_peer(s->b), NULL, PWC_CID_NONE, &to), 0);
    stage_free(s);
}

/* Only the first answer for a peer carries the pair. pwc_bind's answer comes second, but its caller
 * takes it first: the remote must use the pair nevertheless. */
static void test_pair_comes_first(void)
{
    struct stage *s;
    struct pwc_event event;
    pwc_remote *to;
    unsigned executed;

    if (doorbell_register() < 0) /* there are no pairs without it */
        return;
    s = stage_new(true);
    (void)start(s, 1);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(s->a, pwc_ctx_peer(s->b), &s->key, &to), 0);
    (void)expect_bind(s, 1, 0);
    CU_ASSERT_EQUAL(pwc_probe(s->b, PWC_ANY, PWC_LOCAL, &event), 0); /* b maps the pair */
    executed = fake_executed(&s->w->daemon);
    CU_ASSERT_EQUAL(pwc_put(to, 0, "1", 1, pwc_cid_u64(2), PWC_CID_NONE, 0), 0);
    (void)expect(s->w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(fake_executed(&s->w->daemon), executed);
    stage_free(s);
}

struct in_handler {
    struct stage *s;
    pwc_remote *to;
    int started, put;
};

static void start_in_handler(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct in_handler *h = argument;

    (void)am;
    h->started = pwc_bind_start(ctx, pwc_ctx_peer(h->s->b), &h->s->key, pwc_cid_u64(9), &h->to);
    h->put = operation_put(h->s->w, h->to, 0, PWC_CID_NONE);
}

static void test_inside_a_handler(void)
{
    struct stage *s = stage_new(false);
    struct in_handler h = {.s = s};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_am_register(s->a, HANDLER, start_in_handler, &h), 0);
    CU_ASSERT_EQUAL(
        pwc_am_short(s->w->remote, &(struct pwc_am_send){.index = HANDLER, .flags = PWC_NO_LCE}),
        0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(h.started, 0);
    CU_ASSERT_EQUAL(h.put, -EAGAIN);
    (void)expect_bind(s, 9, 0);
    CU_ASSERT_EQUAL(operation_put(s->w, h.to, 0, PWC_CID_NONE), 0);
    stage_free(s);
}

struct replying {
    struct stage *s;
    int replied_long, replied;
};

static void reply_over_unbound(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    const struct pwc_am_send send = {.index = HANDLER, .flags = PWC_NO_LCE};
    struct replying *r = argument;
    pwc_remote *to = NULL;

    CU_ASSERT_EQUAL_FATAL(pwc_bind_start(ctx, pwc_ctx_peer(ctx), &r->s->key, pwc_cid_u64(9), &to),
                          0);
    r->replied_long = pwc_am_reply_long(ctx, am->token, to, 0, &send);
    r->replied = pwc_am_reply_short(ctx, am->token, &send);
}

/* Guards that a reply over a remote whose bind is under way is refused as one over a wrong remote,
 * because a reply never gives -EAGAIN. The handler may then reply otherwise. */
static void test_reply_over_unbound(void)
{
    struct stage *s = stage_new(false);
    struct replying r = {.s = s};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_am_register(s->a, HANDLER, reply_over_unbound, &r), 0);
    CU_ASSERT_EQUAL(
        pwc_am_short(s->w->remote, &(struct pwc_am_send){.index = HANDLER, .flags = PWC_NO_LCE}),
        0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(r.replied_long, -EINVAL);
    CU_ASSERT_EQUAL(r.replied, 0);
    CU_ASSERT_EQUAL(pwc_am_register(s->a, HANDLER, count_message, &s->handled), 0);
    event = expect(s->w, PWC_LOCAL, 9, 0);
    CU_ASSERT_EQUAL(event.op, PWC_OP_BIND);
    stage_free(s);
}

/* ---- several threads --------------------------------------------------------------------------
 */

enum { THREADS = 3, EACH = 200 };

static void *start_and_wait(void *context)
{
    struct stage *s = context;
    struct pwc_event event;
    unsigned ended = 0;
    pwc_remote *to;
    pwc_ctx *c;

    if (pwc_ctx_create(s->w->client, NULL, &c) < 0)
        return NULL;
    for (unsigned i = 0; i < EACH; i++) {
        if (pwc_bind_start(c, pwc_ctx_peer(s->b), NULL, pwc_cid_u64(i), &to) < 0)
            return NULL;
        /* A call that waits reads the answers to binds, too, of this and other threads. */
        if (i % 50 == 0 && pwc_bind(c, pwc_ctx_peer(s->b), NULL, &to) < 0)
            return NULL;
    }
    while (ended < EACH && pwc_wait(c, PWC_ANY, PWC_LOCAL, &event, WAIT_MS) == 1)
        ended += event.op == PWC_OP_BIND && event.status == 0;
    return ended == EACH ? s : NULL;
}

static void test_threads(void)
{
    struct stage *s = stage_new(false);
    pthread_t threads[THREADS - 1];
    void *result;

    CU_ASSERT_EQUAL(pwc_ctx_destroy(s->a), 0);
    for (unsigned i = 0; i < THREADS - 1; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, start_and_wait, s), 0);
    CU_ASSERT_PTR_EQUAL(start_and_wait(s), s);
    for (unsigned i = 0; i < THREADS - 1; i++) {
        pthread_join(threads[i], &result);
        CU_ASSERT_PTR_EQUAL(result, s);
    }
    stage_free(s);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every operation, through the daemon", test_through_the_daemon},
        {"every operation, without the daemon", test_without_the_daemon},
        {"a bind that is refused", test_refused},
        {"a wait right behind the start", test_wait_behind_start},
        {"order", test_order},
        {"a long id", test_long_id},
        {"requests", test_requests},
        {"many", test_many},
        {"a daemon that was started anew", test_started_anew},
        {"a daemon that is gone", test_daemon_gone},
        {"unbound under way", test_unbind_under_way},
        {"a pair that is given up", test_pair_given_up},
        {"a bind that is given up twice", test_given_up_twice},
        {"a context that is destroyed", test_context_destroyed},
        {"the client's end", test_client_ends},
        {"what is refused", test_refusals},
        {"no descriptor", test_no_descriptor},
        {"room for events", test_room},
        {"the pair comes with the first answer", test_pair_comes_first},
        {"inside a handler", test_inside_a_handler},
        {"a reply over an unbound remote", test_reply_over_unbound},
        {"several threads", test_threads},
        CU_TEST_INFO_NULL,
    };

    return suite_run("bind start", tests);
}
