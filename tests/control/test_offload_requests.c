/*
 * Requests for offloads, of a client without a library: each field with bad values, the answer to a
 * good request, and changes that take the engine more than one step.
 *
 *     test_offload_requests PWCD ODD-PWCD
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/lib/daemon.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/program.h"
#include "tests/suite.h"

#define RING  65536u
#define QUOTA 2 /* client-offloads */

#define GENERATION 1024u /* difference between handles of two offloads that follow in one place */

static struct daemon d;
static const char *odd_program;
static struct raw_image image;
static struct answer context, region, program;

/* A good request; a row changes it. */
struct wish {
    Pwc__OffloadCreate create;
    Pwc__OffloadRange state, host, scratch;
    uint32_t targets[1025];
};

static void good(struct wish *w)
{
    *w = (struct wish){.create = PWC__OFFLOAD_CREATE__INIT,
                       .state = PWC__OFFLOAD_RANGE__INIT,
                       .host = PWC__OFFLOAD_RANGE__INIT,
                       .scratch = PWC__OFFLOAD_RANGE__INIT};
    w->create.session = context.handle;
    w->create.program = program.handle;
    w->create.index = 3;
    w->create.targets = w->targets;
    w->create.state = &w->state;
    w->create.host = &w->host;
    w->create.scratch = &w->scratch;
    w->state.slot = w->host.slot = w->scratch.slot = region.key.slot;
    w->state.generation = w->host.generation = w->scratch.generation = region.key.generation;
    w->state.length = w->host.length = w->scratch.length = 64;
}

static int ask_create(int s, struct wish *w, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;

    r.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE;
    r.offload_create = &w->create;
    return ask(s, &r, out);
}

static int ask_enable(int s, uint32_t session, uint32_t offload)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadEnable enable = PWC__OFFLOAD_ENABLE__INIT;
    struct answer a;

    enable.session = session;
    enable.offload = offload;
    r.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_ENABLE;
    r.offload_enable = &enable;
    return ask(s, &r, &a);
}

static int ask_view(int s, uint32_t session, uint32_t offload)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadView view = PWC__OFFLOAD_VIEW__INIT;
    struct answer a;

    view.session = session;
    view.offload = offload;
    r.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_VIEW;
    r.offload_view = &view;
    return ask(s, &r, &a);
}

static int ask_region_close(int s, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__RegionClose close_it = PWC__REGION_CLOSE__INIT;

    close_it.slot = region.key.slot;
    close_it.generation = region.key.generation;
    r.body_case = PWC__CLIENT_REQUEST__BODY_REGION_CLOSE;
    r.region_close = &close_it;
    return ask(s, &r, out);
}

/* Puts one bad value into a field, and checks the answer. */
#define BAD(field, value, status)                                                                  \
    do {                                                                                           \
        struct answer bad;                                                                         \
        struct wish w;                                                                             \
        good(&w);                                                                                  \
        w.field = (value);                                                                         \
        CU_ASSERT_EQUAL(ask_create(s, &w, &bad), status);                                          \
    } while (0)

static void bad_values(int s)
{
    BAD(create.session, 1000, -EINVAL);
    BAD(create.session, UINT32_MAX, -EINVAL);
    BAD(create.program, program.handle + 1, -EINVAL);
    BAD(create.program, UINT32_MAX, -EINVAL);
    BAD(create.index, 256, -EINVAL);
    BAD(create.index, UINT32_MAX, -EINVAL);
    BAD(create.flags, 8, -EINVAL);
    BAD(create.n_targets, 1, -EINVAL); /* remote 0 is not bound */
    BAD(create.n_targets, 64, -EINVAL);
    BAD(create.n_targets, 65, -EINVAL);
    BAD(create.n_targets, 1024, -EINVAL);
    BAD(create.n_targets, 1025, -E2BIG);
    BAD(state.slot, 1000, -ERANGE);
    BAD(state.slot, UINT32_MAX, -ERANGE);
    BAD(state.generation, region.key.generation + 1, -ERANGE);
    BAD(state.offset, 32, -EINVAL);
    BAD(state.offset, UINT64_MAX - 63, -ERANGE);
    BAD(state.length, UINT64_MAX, -ERANGE);
    BAD(host.slot, UINT32_MAX, -ERANGE);
    BAD(host.generation, UINT32_MAX, -ERANGE);
    BAD(host.offset, UINT64_MAX, -ERANGE);
    BAD(host.length, RING + 1, -ERANGE);
    BAD(scratch.slot, UINT32_MAX, -ERANGE);
    BAD(scratch.generation, UINT32_MAX, -ERANGE);
    BAD(scratch.offset, UINT64_MAX, -ERANGE);
    BAD(scratch.length, UINT64_MAX, -ERANGE);
}

static void test_requests(void)
{
    struct answer segment, offload, closed;
    struct wish w;
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "offloads", 0, 1), 0);
    CU_ASSERT_EQUAL_FATAL(ask_context(s, RING, &context), 0);
    CU_ASSERT_EQUAL_FATAL(ask_segment(s, RING, &segment), 0);
    CU_ASSERT_EQUAL_FATAL(ask_region(s, segment.handle, 0, RING, 3, &region), 0);
    raw_image_plain(&image, 0);
    CU_ASSERT_EQUAL_FATAL(ask_program_load(s, image.words, image.size, &program), 0);
    bad_values(s);
    good(&w);
    CU_ASSERT_EQUAL(ask_create(s, &w, &offload), 0);
    good(&w);
    CU_ASSERT_EQUAL(ask_create(s, &w, &segment), -EADDRINUSE);
    CU_ASSERT_EQUAL(ask_enable(s, 1000, offload.handle), -EINVAL);
    CU_ASSERT_EQUAL(ask_enable(s, context.handle, UINT32_MAX), -EINVAL);
    CU_ASSERT_EQUAL(ask_view(s, 1000, offload.handle), -EINVAL);
    CU_ASSERT_EQUAL(ask_view(s, context.handle, UINT32_MAX), -EINVAL);
    CU_ASSERT_EQUAL(ask_view(s, context.handle, offload.handle), 0);
    CU_ASSERT_EQUAL(ask_enable(s, context.handle, offload.handle), 0);
    CU_ASSERT_EQUAL(ask_region_close(s, &closed), -EBUSY);
    CU_ASSERT_PTR_NOT_NULL(strstr(closed.text, ": an offload uses it: destroy that first"));
    CU_ASSERT_EQUAL(ask_offload_destroy(s, 1000, offload.handle), -EINVAL);
    CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, UINT32_MAX), -EINVAL);
    CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, offload.handle), 0);
    CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, offload.handle), -EINVAL);
    CU_ASSERT_EQUAL(ask_region_close(s, &closed), 0);
    CU_ASSERT_EQUAL(ask_region_close(s, &closed), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(closed.text, "is not yours, or not open"));
    close(s);
}

/* An offload counts in the quota from its request until it has ended, or could not be made. A
 * closed context gives back all its offloads. */
static void test_quota(void)
{
    struct answer a, b, c;
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "quotas", 0, 1), 0);
    CU_ASSERT_EQUAL_FATAL(ask_program_load(s, image.words, image.size, &program), 0);
    for (int round = 0; round < 3; round++) {
        CU_ASSERT_EQUAL_FATAL(ask_context(s, RING, &context), 0);
        for (int i = 0; i < 2 * QUOTA; i++)
            CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 256, &a), -EINVAL);
        CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 1, &a), 0);
        CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 2, &b), 0);
        CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 3, &c), -EDQUOT);
        CU_ASSERT_PTR_NOT_NULL(strstr(c.text, "an offload: 1 beside the 2 offloads of this client: "
                                              "the quota (client-offloads) is 2"));
        CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, a.handle), 0);
        CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, a.handle), -EINVAL);
        CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 3, &c), 0);
        CU_ASSERT_EQUAL(ask_context_close(s, context.handle), 0);
        answer_close(&context);
    }
    close(s);
}

/* Sends both requests at once; then reads both answers, in any order. Returns whether the offload
 * exists. */
static bool create_and_destroy(int s, uint32_t session, uint32_t guess, uint32_t target,
                               struct answer *created)
{
    Pwc__ClientRequest r[2] = {PWC__CLIENT_REQUEST__INIT, PWC__CLIENT_REQUEST__INIT};
    Pwc__OffloadDestroy destroy = PWC__OFFLOAD_DESTROY__INIT;
    Pwc__OffloadCreate create = PWC__OFFLOAD_CREATE__INIT;
    struct answer a;
    bool there = false;
    uint32_t ended = 0;

    create.session = destroy.session = session;
    create.program = program.handle;
    create.index = 2;
    create.targets = &target;
    create.n_targets = 1;
    destroy.offload = guess;
    r[0].body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE;
    r[0].offload_create = &create;
    r[1].body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY;
    r[1].offload_destroy = &destroy;
    CU_ASSERT_FATAL(raw_request(s, 9, &r[0]) && raw_request(s, 9, &r[1]));
    for (int i = 0; i < 2; i++) {
        (void)ask_nothing(s, &a);
        CU_ASSERT_NOT_EQUAL_FATAL(a.status, -ECONNRESET);
        if (a.handle != 0) {
            *created = a;
            there = true;
        } else if (a.status == 0) {
            ended++;
        }
    }
    return there && ended == 0;
}

/* The quota counts each offload exactly once: a destroy that is sent together with its create must
 * not give back twice, whether the daemon takes it before or after the create was answered. */
static void test_destroyed_early(void)
{
    enum { ROUNDS = 20 };
    struct answer held, before, made = {0}, more, neighbour, target;
    int s = raw_connect(&d), other = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0 && other >= 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "early", 0, 2), 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(other, "early", 1, 2), 0);
    CU_ASSERT_EQUAL_FATAL(ask_context(other, RING, &neighbour), 0);
    CU_ASSERT_EQUAL_FATAL(ask_program_load(s, image.words, image.size, &program), 0);
    CU_ASSERT_EQUAL_FATAL(ask_context(s, RING, &context), 0);
    CU_ASSERT_EQUAL_FATAL(ask_bind(s, context.handle, 1, NULL, &target), 0);
    CU_ASSERT_EQUAL_FATAL(ask_offload(s, context.handle, program.handle, 1, &held), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 2, &before), 0);
        CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, before.handle), 0);
        if (create_and_destroy(s, context.handle, before.handle + GENERATION, target.handle, &made))
            CU_ASSERT_EQUAL(ask_offload_destroy(s, context.handle, made.handle), 0);
    }
    CU_ASSERT_EQUAL(made.handle, before.handle + GENERATION); /* the guessed handle was right */
    CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 2, &more), 0);
    CU_ASSERT_EQUAL(ask_offload(s, context.handle, program.handle, 3, &more), -EDQUOT);
    CU_ASSERT_EQUAL(ask_context_close(s, context.handle), 0);
    answer_close(&context);
    answer_close(&neighbour);
    close(s);
    close(other);
}

/* ---- changes that pause ---------------------------------------------------------------------- */

/* Requests an offload's end from an engine that has not ended it yet. Returns the client's socket,
 * when the daemon has answered a later request. */
static int destroy_with_pauses(const struct daemon *daemon, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadDestroy destroy = PWC__OFFLOAD_DESTROY__INIT;
    int s = raw_connect(daemon);

    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "pauses", 0, 1), 0);
    CU_ASSERT_EQUAL_FATAL(ask_context(s, RING, out), 0);
    answer_close(out);
    destroy.session = out->handle;
    CU_ASSERT_EQUAL_FATAL(ask_program_load(s, image.words, image.size, &program), 0);
    for (uint32_t i = 0; i < QUOTA; i++)
        CU_ASSERT_EQUAL_FATAL(ask_offload(s, destroy.session, program.handle, i, out), 0);
    destroy.offload = out->handle;
    r.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY;
    r.offload_destroy = &destroy;
    CU_ASSERT_FATAL(raw_request(s, 9, &r));
    CU_ASSERT_EQUAL(ask_view(s, destroy.session, destroy.offload), 0);
    CU_ASSERT_EQUAL(ask_offload(s, destroy.session, program.handle, QUOTA, out), -EDQUOT);
    out->handle = destroy.session;
    return s;
}

/* Guards that a client gets one answer to a change that takes several steps, when it is done, and
 * then has its quota back; that other requests are answered meanwhile; and that nothing is left of
 * a client that hangs up meanwhile. */
static void test_pauses(void)
{
    static const char *const on[] = {"--handlers", "on", "--client-offloads", "2", NULL};
    struct holdings quiet;
    struct daemon second;
    struct answer a, more;
    bool ready = true;
    char file[96];
    int s;

    snprintf(file, sizeof(file), "%s/pauses", d.directory);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    setenv("PWCD_ODD", "pausing", 1);
    setenv("PWCD_ODD_FILE", file, 1);
    CU_ASSERT_EQUAL_FATAL(daemon_start_beside(&second, &d, "second.sock", odd_program, on, &ready),
                          0);
    CU_ASSERT_TRUE_FATAL(look_holdings(&second, &quiet));
    close(destroy_with_pauses(&second, &a));
    CU_ASSERT_TRUE(look_returns_to(&second, &quiet));
    s = destroy_with_pauses(&second, &a);
    CU_ASSERT_EQUAL(unlink(file), 0);
    (void)ask_nothing(s, &more);
    CU_ASSERT_EQUAL(more.status, 0);
    CU_ASSERT_EQUAL(ask_offload(s, a.handle, program.handle, QUOTA, &more), 0);
    CU_ASSERT_EQUAL(ask_offload(s, a.handle, program.handle, QUOTA + 1, &more), -EDQUOT);
    close(s);
    CU_ASSERT_TRUE(look_returns_to(&second, &quiet));
    CU_ASSERT_EQUAL(daemon_stop(&second), 0);
}

int main(int argc, char **argv)
{
    static CU_TestInfo tests[] = {{"each field, and a good one", test_requests},
                                  {"the quota", test_quota},
                                  {"destroyed with its create", test_destroyed_early},
                                  {"destroyed in several steps", test_pauses},
                                  CU_TEST_INFO_NULL};
    static const char *const on[] = {"--handlers", "on", "--client-offloads", "2", NULL};
    int status;

    if (argc != 3)
        return 2;
    odd_program = argv[2];
    if (daemon_start(&d, argv[1], (const char **)(uintptr_t)on) < 0)
        return 2;
    status = suite_run("offload requests", tests);
    return daemon_stop(&d) == 0 ? status : 1;
}
