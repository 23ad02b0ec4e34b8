/*
 * Requests for segments and regions that fail at some point: memory, descriptors, a place in a
 * table or the engine is missing, or the client dies. The client gets an error with the reason, all
 * that was taken for the request is given back, and answers that come too late change nothing. The
 * test plays the engine: it keeps the calls that are posted, and decides how each ends.
 *
 * Thread: one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/suite.h"
#include "daemon/control/clients/client.h"
#include "shm_ring/sigbus.h"
#include "daemon/control/requests/request_memory.h"

#define HANDLE   1u /* handle of the segment under test */
#define SEGMENTS 2u
#define BYTES    8192u
#define QUESTION 7u
#define TEXT_MAX 256u

enum step { STEP_NONE, STEP_CALLOC, STEP_MAPPING, STEP_RANGE, STEP_CALL };

/* The client under test, and the outcome of each of its requests. */
static struct {
    struct control control;
    struct config config;
    struct worker worker;
    struct inflight_entry entries[2];
    struct quota_user user;
    struct client client, other;
    struct client *by_handle[1];
    struct client_segment *segments[SEGMENTS];

    enum step fails;
    uint32_t stored, store_room; /* names in the store, and how many it can hold */
    struct call *posted;         /* the last call, whose callback has not run yet */
    uint32_t answers, answered;  /* number of answers; request that the last one answers */
    Pwc__ClientReply__BodyCase kind;
    int status, descriptors;
    char text[TEXT_MAX];
} t;

/* ---- in place of the engine, the socket and what may fail -------------------------------------
 */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_mapping_create_with_reader(struct mapping *m, const char *name, size_t size,
                                      int *reader);
int __wrap_mapping_create_with_reader(struct mapping *m, const char *name, size_t size,
                                      int *reader);
int __wrap_sigbus_add(void *base, size_t size);
void __wrap_sigbus_remove(int range);
struct call *__real_client_call(struct client *c, enum call_kind kind,
                                void (*done)(struct call *call));
struct call *__wrap_client_call(struct client *c, enum call_kind kind,
                                void (*done)(struct call *call));
void __wrap_call_post(struct progress *progress, struct call *call);
void __wrap_client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                         uint32_t count);
void __wrap_client_stream_resume(struct client *c);
bool __wrap_store_add_for(struct store *s, uint32_t uid, int descriptor, const char *format, ...);

void *__wrap_calloc(size_t count, size_t size)
{
    return t.fails == STEP_CALLOC ? NULL : __real_calloc(count, size);
}

int __wrap_mapping_create_with_reader(struct mapping *m, const char *name, size_t size, int *reader)
{
    return t.fails == STEP_MAPPING ? -EMFILE
                                   : __real_mapping_create_with_reader(m, name, size, reader);
}

int __wrap_sigbus_add(void *base, size_t size)
{
    return t.fails == STEP_RANGE ? -ENOSPC : 0;
}

void __wrap_sigbus_remove(int range)
{
}

struct call *__wrap_client_call(struct client *c, enum call_kind kind,
                                void (*done)(struct call *call))
{
    return t.fails == STEP_CALL ? NULL : __real_client_call(c, kind, done);
}

void __wrap_call_post(struct progress *progress, struct call *call)
{
    CU_ASSERT_PTR_NULL(t.posted);
    t.posted = call;
}

void __wrap_client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                         uint32_t count)
{
    t.answers++;
    t.answered = reply->id;
    t.kind = reply->body_case;
    t.descriptors = (int)count;
    t.status = 0;
    t.text[0] = '\0';
    if (t.kind == PWC__CLIENT_REPLY__BODY_ERROR) {
        t.status = reply->error->status;
        strncat(t.text, reply->error->text, sizeof(t.text) - 1);
    }
    for (uint32_t i = 0; i < count; i++)
        close(descriptors[i]);
}

void __wrap_client_stream_resume(struct client *c)
{
}

bool __wrap_store_add_for(struct store *s, uint32_t uid, int descriptor, const char *format, ...)
{
    return t.stored++ < t.store_room;
}

/* ---- shared by all tests --------------------------------------------------------------------- */

static void begin(void)
{
    memset(&t, 0, sizeof(t));
    config_init(&t.config);
    t.config.client_segments = t.config.client_regions = 2;
    t.config.client_memory = 8 * BYTES;
    t.config.direct = CONFIG_DIRECT_OFF;
    for (int i = 0; i < QUOTA_KINDS; i++)
        t.control.user_limits[i] = UINT64_MAX;
    t.control.config = &t.config;
    t.control.workers = &t.worker;
    t.control.inflight.entries = t.entries;
    pending_init(&t.control.pending);
    t.worker = (struct worker){.config.clients_max = 1,
                               .by_handle = t.by_handle,
                               .control = &t.control,
                               .config.segments_max = SEGMENTS,
                               .segments = t.segments};
    t.client = (struct client){
        .control = &t.control, .worker = &t.worker, .user = &t.user, .state = CLIENT_SERVED};
    t.other = t.client;
    t.by_handle[0] = &t.client;
}

/* Ends the posted call with this result, as the engine does. */
static void come_back(int result)
{
    struct call *call = t.posted;

    CU_ASSERT_PTR_NOT_NULL_FATAL(call);
    t.posted = NULL;
    call->result = result;
    call->command.done(&call->command);
}

static void expect_answer(int status, const char *says)
{
    bool fits =
        t.answers == 1 && t.answered == QUESTION && t.status == status && strstr(t.text, says);

    if (!fits)
        printf("%u answers, to %u: %d \"%s\"\n", t.answers, t.answered, t.status, t.text);
    CU_ASSERT_TRUE(fits);
    t.answers = 0;
}

static void expect_silence(void)
{
    CU_ASSERT_EQUAL(t.answers, 0);
}

/* Checks that nothing is held for the client. */
static void end(void)
{
    for (int i = 0; i < QUOTA_KINDS; i++)
        CU_ASSERT_EQUAL(t.client.held[i], 0);
    CU_ASSERT_PTR_NULL(t.client.segments);
    CU_ASSERT_PTR_NULL(t.segments[HANDLE]);
    CU_ASSERT_EQUAL(t.client.calls, 0);
    CU_ASSERT_EQUAL(t.client.waiting, 0);
    CU_ASSERT_EQUAL(t.control.segments_shared, 0);
    pending_destroy(&t.control.pending);
    config_free(&t.config);
}

static void ask_segment(void)
{
    Pwc__SegmentOpen open = PWC__SEGMENT_OPEN__INIT;

    open.length = BYTES;
    request_segment_open(&t.client, QUESTION, &open);
}

static void ask_close(void)
{
    Pwc__SegmentClose close_it = PWC__SEGMENT_CLOSE__INIT;

    close_it.segment = HANDLE;
    request_segment_close(&t.client, QUESTION, &close_it);
}

static void ask_region(uint64_t length)
{
    Pwc__RegionOpen open = PWC__REGION_OPEN__INIT;

    open.segment = HANDLE;
    open.length = length;
    open.rights = ENGINE_REMOTE_READ;
    request_region_open(&t.client, QUESTION, &open);
}

static void ask_region_close(uint32_t request)
{
    Pwc__RegionClose close_it = PWC__REGION_CLOSE__INIT;

    close_it.slot = 3;
    close_it.generation = 5;
    request_region_close(&t.client, request, &close_it);
}

/* Starts with a segment that the engine knows but has not registered yet. */
static void begin_opening(void)
{
    begin();
    ask_segment();
    come_back((int)HANDLE);
    expect_silence();
}

static void begin_open(void)
{
    begin_opening();
    segment_ready(&t.worker, HANDLE, 0);
    expect_answer(0, "");
}

/* Reports that the engine has released the segment. */
static void engine_lets_go(void)
{
    segment_closed(&t.worker, HANDLE);
    come_back(0);
}

/* ---- segments ---------------------------------------------------------------------------------
 */

static void segments_not_made(void)
{
    static const struct {
        enum step fails;
        int status;
        const char *says;
    } rows[] = {
        {STEP_CALLOC, -ENOMEM, "a segment of 8192 bytes: Cannot allocate memory"},
        {STEP_MAPPING, -EMFILE, "a segment of 8192 bytes: Too many open files"},
        {STEP_RANGE, -ENOSPC, "a segment of 8192 bytes: No space left on device"},
        {STEP_CALL, -ENOMEM, "a segment of 8192 bytes: Cannot allocate memory"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        t.fails = rows[i].fails;
        ask_segment();
        t.fails = STEP_NONE;
        expect_answer(rows[i].status, rows[i].says);
        CU_ASSERT_PTR_NULL(t.posted);
        end();
    }
}

/* The engine has no place for the segment: a client that is ending gets no answer. */
static void segments_refused(void)
{
    for (enum client_state state = CLIENT_SERVED; state <= CLIENT_ENDING; state++) {
        begin();
        ask_segment();
        t.client.state = state;
        come_back(-ENOSPC);
        if (state == CLIENT_SERVED)
            expect_answer(-ENOSPC, "a segment of 8192 bytes: No space left on device");
        else
            expect_silence();
        end();
    }
}

static void segments_not_registered(void)
{
    begin_opening();
    segment_ready(&t.worker, HANDLE, -ENOMEM);
    expect_answer(-ENOMEM, "a segment of 8192 bytes cannot be registered: Cannot allocate memory");
    come_back(0);
    engine_lets_go();
    expect_silence();
    end();
    /* The client ends meanwhile: no answer is sent, and the engine lets go of the segment with the
     * client. */
    begin_opening();
    t.client.state = CLIENT_ENDING;
    segment_ready(&t.worker, HANDLE, -ENOMEM);
    CU_ASSERT_PTR_NULL(t.posted);
    engine_lets_go();
    expect_silence();
    end();
}

/* Nobody can use a segment before it is registered, nor while it closes. */
static void segments_in_between(void)
{
    begin_opening();
    ask_region(BYTES);
    expect_answer(-EINVAL, "segment 1 is not yours, or not open");
    ask_close();
    expect_answer(-EINVAL, "segment 1 is not yours, or not open");
    segment_ready(&t.worker, HANDLE, 0);
    expect_answer(0, "");
    ask_close();
    come_back(0);
    ask_region(BYTES);
    expect_answer(-EINVAL, "segment 1 is not yours, or not open");
    ask_close();
    expect_answer(-EINVAL, "segment 1 is not yours, or not open");
    engine_lets_go();
    expect_answer(0, "");
    end();
}

static void notices_of_others(void)
{
    begin_open();
    segment_ready(&t.worker, HANDLE, 0); /* a second report has no effect */
    segment_ready(&t.worker, 0, 0);
    segment_ready(&t.worker, SEGMENTS, 0);
    segment_closed(&t.worker, 0);
    segment_closed(&t.worker, SEGMENTS);
    expect_silence();
    engine_lets_go();
    expect_silence();
    end();
}

static void closes_not_made(void)
{
    static const struct {
        int result;
        const char *says;
    } rows[] = {{-EBUSY, "segment 1: regions of it are open: close them first"},
                {-EINVAL, "segment 1: Invalid argument"}};

    begin_open();
    t.fails = STEP_CALL;
    ask_close();
    t.fails = STEP_NONE;
    expect_answer(-ENOMEM, "this daemon is out of memory");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ask_close();
        come_back(rows[i].result);
        expect_answer(rows[i].result, rows[i].says);
    }
    /* The other segment is still open. */
    ask_close();
    t.client.state = CLIENT_ENDING;
    come_back(-EBUSY);
    expect_silence();
    engine_lets_go();
    end();
    /* The engine reports a failed registration that was not asked for. */
    begin_opening();
    segment_ready(&t.worker, HANDLE, -EIO);
    expect_answer(-EIO, "cannot be registered");
    come_back(-EBUSY);
    expect_silence();
    engine_lets_go();
    end();
}

/* The engine answers a close after the segment is gone, when its handle may already name another
 * segment. */
static void closes_answered_late(void)
{
    struct client_segment another = {.client = &t.other};

    for (int row = 0; row < 3; row++) {
        struct call *close_call;

        begin_open();
        ask_close();
        close_call = t.posted;
        t.posted = NULL;
        t.client.state = CLIENT_ENDING;
        engine_lets_go();
        another.client = row == 2 ? &t.client : &t.other;
        t.segments[HANDLE] = row > 0 ? &another : NULL;
        t.posted = close_call;
        come_back(-EINVAL);
        expect_silence();
        t.segments[HANDLE] = NULL;
        end();
    }
}

static void a_client_that_ends_gets_no_answer(void)
{
    begin_open();
    ask_close();
    come_back(0);
    t.client.state = CLIENT_ENDING;
    engine_lets_go();
    expect_silence();
    end();
}

/* The control thread stores what the next daemon needs of a segment. Without room for that, the
 * client cannot survive a restart. */
static void segments_kept(void)
{
    static const struct {
        uint32_t room;
        bool direct, lost;
    } rows[] = {
        {0, false, true}, {1, false, false}, {0, true, true}, {1, true, true}, {2, true, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        t.control.store.kept = true;
        t.store_room = rows[i].room;
        t.config.direct = rows[i].direct ? CONFIG_DIRECT_AUTO : CONFIG_DIRECT_OFF;
        ask_segment();
        come_back((int)HANDLE);
        segment_ready(&t.worker, HANDLE, 0);
        expect_answer(0, "");
        CU_ASSERT_EQUAL(t.descriptors, 1);
        CU_ASSERT_EQUAL((t.entries[0].lost & INFLIGHT_UNKEPT) != 0, rows[i].lost);
        CU_ASSERT_TRUE(t.segments[HANDLE]->mapping.fd >= 0);
        engine_lets_go();
        end();
    }
}

/* Neighbours need descriptors of the segment: few are left, and then none. */
static void segments_shared(void)
{
    for (uint32_t shared = 0; shared < 2; shared++) {
        begin();
        t.config.direct = CONFIG_DIRECT_AUTO;
        t.control.segments_shared = shared > 0 ? UINT32_MAX - 1 : 0;
        ask_segment();
        come_back((int)HANDLE);
        segment_ready(&t.worker, HANDLE, 0);
        expect_answer(0, "");
        CU_ASSERT_EQUAL(t.segments[HANDLE]->reader >= 0, shared == 0);
        CU_ASSERT_EQUAL(t.segments[HANDLE]->mapping.fd >= 0, shared == 0);
        engine_lets_go();
        t.control.segments_shared -= shared > 0 ? UINT32_MAX - 1 : 0;
        end();
    }
}

/* ---- regions ----------------------------------------------------------------------------------
 */

static void regions_not_opened(void)
{
    begin_open();
    t.fails = STEP_CALL;
    ask_region(BYTES);
    t.fails = STEP_NONE;
    expect_answer(-ENOMEM, "this daemon is out of memory");
    ask_region(BYTES);
    come_back(-ENOSPC);
    expect_answer(-ENOSPC, "a region of 8192 bytes at 0 of segment 1: No space left on device");
    t.client.held[QUOTA_REGIONS] = t.user.held[QUOTA_REGIONS] = t.config.client_regions;
    ask_region(BYTES);
    expect_answer(-EDQUOT, "a region: 1 beside the 2 regions of this client: the quota "
                           "(client-regions) is 2");
    t.client.held[QUOTA_REGIONS] = t.user.held[QUOTA_REGIONS] = 0;
    ask_region(BYTES);
    t.client.state = CLIENT_ENDING;
    come_back(-EINVAL);
    expect_silence();
    t.client.state = CLIENT_SERVED;
    ask_region(BYTES);
    t.client.state = CLIENT_ENDING;
    come_back(0);
    expect_silence();
    CU_ASSERT_EQUAL(t.client.held[QUOTA_REGIONS],
                    1); /* the engine holds the region until it leaves */
    quota_give(&t.client, QUOTA_REGIONS, 1);
    engine_lets_go();
    end();
}

static void withdrawals_not_begun(void)
{
    uint64_t cookie;

    begin();
    t.fails = STEP_CALL;
    ask_region_close(QUESTION);
    t.fails = STEP_NONE;
    expect_answer(-ENOBUFS, "too many requests wait in this daemon: try again later");
    while (pending_add(&t.control.pending, PENDING_BIND, &t.other, 1, &cookie))
        continue;
    ask_region_close(QUESTION);
    expect_answer(-ENOBUFS, "too many requests wait in this daemon: try again later");
    end();
}

static void withdrawals_refused(void)
{
    uint64_t cookie;

    begin();
    ask_region_close(QUESTION);
    come_back(-EINVAL);
    expect_answer(-EINVAL, "region 3 is not yours, or not open");
    /* The client has ended meanwhile, and with it the request that waited for the answer. */
    for (int result = -1; result <= 1; result++) {
        ask_region_close(QUESTION);
        cookie = t.posted->region.cookie;
        pending_remove(&t.control.pending,
                       pending_find(&t.control.pending, cookie, PENDING_REGION_CLOSE));
        come_back(result);
        region_closed(&t.control, cookie);
        expect_silence();
    }
    end();
}

/* When a region is withdrawn twice, the later request gets the end and the first one an error.
 * Withdrawals of other regions and other clients continue. */
static void withdrawals_asked_twice(void)
{
    uint64_t others[3], first, last;
    struct pending *p;

    begin();
    quota_charge(&t.client, QUOTA_REGIONS, 1);
    p = pending_add(&t.control.pending, PENDING_BIND, &t.client, 1, &others[0]);
    p->region = UINT64_C(5) << 32 | 3;
    p = pending_add(&t.control.pending, PENDING_REGION_CLOSE, &t.other, 2, &others[1]);
    p->region = UINT64_C(5) << 32 | 3;
    p = pending_add(&t.control.pending, PENDING_REGION_CLOSE, &t.client, 3, &others[2]);
    p->region = UINT64_C(6) << 32 | 3;
    ask_region_close(QUESTION);
    first = t.posted->region.cookie;
    come_back(0);
    expect_silence();
    ask_region_close(QUESTION + 1);
    last = t.posted->region.cookie;
    come_back(1);
    expect_answer(-EALREADY, "region 3: request 8 asks for the same");
    for (int i = 0; i < 3; i++) {
        p = pending_find(&t.control.pending, others[i], 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        pending_remove(&t.control.pending, p);
    }
    region_closed(&t.control, first); /* the end of the earlier request comes too late */
    expect_silence();
    region_closed(&t.control, last);
    CU_ASSERT_EQUAL(t.answered, QUESTION + 1);
    CU_ASSERT_EQUAL(t.kind, PWC__CLIENT_REPLY__BODY_DONE);
    t.answers = 0;
    /* The withdrawal began in an earlier process: nobody waits for it here, and it was not counted
     * here. */
    ask_region_close(QUESTION);
    last = t.posted->region.cookie;
    come_back(1);
    expect_silence();
    CU_ASSERT_EQUAL(t.client.held[QUOTA_REGIONS], 1);
    region_closed(&t.control, last);
    expect_answer(0, "");
    end();
}

int main(void)
{
    CU_TestInfo tests[] = {{"segments not made", segments_not_made},
                           {"segments refused", segments_refused},
                           {"segments not registered", segments_not_registered},
                           {"segments in between", segments_in_between},
                           {"notices of others", notices_of_others},
                           {"closes not made", closes_not_made},
                           {"closes answered late", closes_answered_late},
                           {"a client that ends gets no answer", a_client_that_ends_gets_no_answer},
                           {"segments kept", segments_kept},
                           {"segments shared", segments_shared},
                           {"regions not opened", regions_not_opened},
                           {"withdrawals not begun", withdrawals_not_begun},
                           {"withdrawals refused", withdrawals_refused},
                           {"withdrawals asked twice", withdrawals_asked_twice},
                           CU_TEST_INFO_NULL};

    return suite_run("memory", tests);
}
