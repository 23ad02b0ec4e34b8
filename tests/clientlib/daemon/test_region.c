/* Memory through the public calls, against a daemon on a thread. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/clientlib/daemon/client_world.h"
#include "tests/count.h"
#include "tests/suite.h"

/* The error that the kernel gives where the library has pages put into memory; 0: none. */
static int populate_error;

/* In place of the C library's, for the library's calls too. */
int madvise(void *at, size_t length, int advice)
{
    if (advice == MADV_POPULATE_WRITE && populate_error) {
        errno = populate_error;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, length, advice);
}

static void test_alloc(void)
{
    static const struct {
        size_t len;
        unsigned rights;
        int result;
        size_t align;
    } rows[] = {
        {0, 0, -EINVAL, 0},           {1, PWC_REMOTE_RW, 0, 64},
        {65, PWC_REMOTE_READ, 0, 64}, {4095, PWC_REMOTE_WRITE, 0, 64},
        {4096, 0, 0, 4096},           {5000, PWC_REMOTE_RW, 0, 4096},
        {200000, 0, 0, 4096}, /* partly in pages that were given out before */
        {9u << 20, 0, 0, 64},         {8, PWC_MOVE, -EINVAL, 0},
        {SIZE_MAX, 0, -EINVAL, 0},
    };
    struct world *w = world_new();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pwc_region *region;
        uint8_t *at;

        CU_ASSERT_EQUAL(pwc_alloc(w->client, rows[i].len, rows[i].rights, &region), rows[i].result);
        if (rows[i].result < 0)
            continue;
        at = pwc_region_addr(region);
        CU_ASSERT_EQUAL((uintptr_t)at % rows[i].align, 0);
        CU_ASSERT_EQUAL(pwc_region_len(region), rows[i].len);
        for (size_t b = 0; b < rows[i].len; b += 61)
            CU_ASSERT_EQUAL_FATAL(at[b], 0);
        memset(at, 0xee, rows[i].len); /* the next owner of this range must not see these bytes */
        CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    }
    /* The large region had a segment of its own, which was closed with it. */
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    CU_ASSERT_EQUAL(w->daemon.regions_open, 1);
    world_free(w);
}

/* Guards that a region's pages are in memory before it is used: no put waits for one, and the
 * control group of the caller pays. */
static void test_pages_are_there(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (9u << 20) / page;
    static unsigned char there[(9u << 20) / 4096];
    static const int errors[] = {0, EINVAL};
    struct world *w = world_new();

    for (size_t i = 0; i < COUNT(errors); i++) { /* EINVAL: as Linux before 5.14 */
        pwc_region *region;
        size_t count = 0;

        populate_error = errors[i];
        CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 9u << 20, 0, &region), 0);
        populate_error = 0;
        CU_ASSERT_EQUAL(mincore(pwc_region_addr(region), 9u << 20, there), 0);
        for (size_t n = 0; n < pages; n++)
            count += there[n] & 1;
        CU_ASSERT_EQUAL(count, pages);
        CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    }
    world_free(w);
}

/* Guards that a region for which there is no memory is refused, and leaves nothing. */
static void test_no_memory(void)
{
    static const int errors[] = {ENOMEM, EFAULT, EHWPOISON};
    struct world *w = world_new();
    pwc_region *region;

    for (size_t i = 0; i < COUNT(errors); i++) {
        populate_error = errors[i];
        CU_ASSERT_EQUAL(pwc_alloc(w->client, 9u << 20, 0, &region), -ENOMEM);
        populate_error = 0;
        CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
        CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 1u << 20, 0, &region), 0);
        CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    }
    world_free(w);
}

/* A region without rights is for the caller alone: the daemon gives it no key. */
static void test_local_only(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct world *w = world_new();
    uint8_t *mine = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pwc_region *regions[2];
    struct pwc_key key = {.slot = 77};
    char why[128];

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, BIG, 0, &regions[0]), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, page, 0, PWC_MOVE, &regions[1]), 0);
    CU_ASSERT_EQUAL(w->daemon.regions_open, 1); /* the world's region */
    for (int i = 0; i < 2; i++) {
        uint8_t *at = pwc_region_addr(regions[i]);

        CU_ASSERT_EQUAL(pwc_region_key(regions[i], &key), -ENOTSUP);
        CU_ASSERT_EQUAL(key.slot, 77);
        CU_ASSERT_TRUE(pwc_error_text(w->client, why, sizeof(why)) > 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, "PWC_REMOTE_WRITE"));
        fill(at, page, 5 + i);
        CU_ASSERT_EQUAL(put(w, 0, at, page, 1, PWC_NO_RCE), 0);
        (void)expect(w, PWC_LOCAL, 1, 0);
        CU_ASSERT_EQUAL(memcmp(w->memory, at, page), 0);
        fill(w->memory, page, 9 + i);
        CU_ASSERT_EQUAL(get(w, 0, at, page, 2, PWC_NO_RCE), 0);
        (void)expect(w, PWC_LOCAL, 2, 0);
        CU_ASSERT_EQUAL(memcmp(w->memory, at, page), 0);
        CU_ASSERT_EQUAL(pwc_region_free(regions[i]), 0);
    }
    munmap(mine, page);
    world_free(w);
}

static bool small_quota(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN ||
        request->segment_open->length <= 2u << 20)
        return false;
    fake_daemon_error(daemon, request->id, -EDQUOT, "2 MiB left of 64 MiB: ask for less");
    return true;
}

static void test_quota(void)
{
    struct world *w = world_new_sized(0, small_quota); /* its 1 MiB fits where 4 MiB do not */
    pwc_region *region;

    CU_ASSERT_EQUAL(pwc_alloc(w->client, 3u << 20, PWC_REMOTE_RW, &region), -EDQUOT);
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 2u << 20, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 2);
    world_free(w);
}

static void test_copied_region(void)
{
    struct world *w = world_new();
    uint8_t *mine = malloc(2 * BIG);
    pwc_region *region, *again, *other;
    struct pwc_key key;
    char why[128];

    CU_ASSERT_EQUAL(pwc_register(w->client, mine, FAKE_BOUNCE_MAX + 1, 0, 0, &region), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, NULL, 8, 0, 0, &region), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, 0, 0, 0, &region), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, SIZE_MAX, 0, 0, &region), -EINVAL);
    CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, BIG, 0, 0, &region), 0);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, BIG, 0, 0, &again), 0);
    CU_ASSERT_PTR_EQUAL(again, region);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine + 8, BIG, 0, 0, &other), -EEXIST);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, BIG, PWC_REMOTE_READ, 0, &other), -ENOTSUP);
    CU_ASSERT_TRUE(pwc_error_text(w->client, why, sizeof(why)) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "PWC_MOVE"));
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, BIG, 4, PWC_MOVE, &other), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, BIG, PWC_MOVE, 0, &other), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, BIG, 0, PWC_REMOTE_READ, &other), -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, w->memory, 64, 0, 0, &other), -EEXIST);
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), -ENOTSUP);
    CU_ASSERT_PTR_EQUAL(pwc_region_addr(region), mine);

    /* The source is copied at submission. */
    fill(mine, BIG, 1);
    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(put(w, 16, mine + 100, BIG - 100, 1, PWC_NO_RCE), 0);
    fake_hold(&w->daemon, false);
    (void)expect(w, PWC_LOCAL, 1, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory + 16, mine + 100, BIG - 100), 0);

    /* The destination is filled when the event is taken, or, without an event, after the flush. */
    fill(w->memory, BIG, 2);
    CU_ASSERT_EQUAL(get(w, 5, mine + 50, 1000, 2, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(memcmp(mine + 50, w->memory + 5, 1000), 0);
    CU_ASSERT_EQUAL(get(w, 0, mine, BIG, 3, PWC_NO_LCE | PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(memcmp(mine, w->memory, BIG), 0);
    fill(w->memory, BIG, 4);
    CU_ASSERT_EQUAL(get(w, 0, mine, BIG, 3, PWC_NO_LCE | PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, pwc_ctx_peer(w->ctx), -1), 0);
    CU_ASSERT_EQUAL(memcmp(mine, w->memory, BIG), 0);
    expect_silence(w);

    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(get(w, 0, mine, 8, 5, PWC_NO_RCE), 0); /* the region was registered twice */
    (void)expect(w, PWC_LOCAL, 5, 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    /* The memory is in no region now: the get uses staging. */
    fill(w->memory, BIG, 6);
    CU_ASSERT_EQUAL(get(w, 0, mine, BIG, 6, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 6, 0);
    CU_ASSERT_EQUAL(memcmp(mine, w->memory, BIG), 0);
    CU_ASSERT_EQUAL(w->daemon.regions_open, 1);
    free(mine);
    world_free(w);
}

static void test_moved_region(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 40 * page;
    struct world *w = world_new();
    uint8_t *mine = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *expected = malloc(size);
    pwc_region *region, *again, *other;
    struct pwc_key key;
    pwc_remote *remote;

    fill(mine, size, 3);
    fill(expected, size, 3);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine + 8, page, PWC_REMOTE_RW, PWC_MOVE, &region),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_register(w->client, w->memory, page, PWC_REMOTE_RW, PWC_MOVE, &region),
                    -EINVAL);
    CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, size, PWC_REMOTE_RW, PWC_MOVE, &region), 0);
    CU_ASSERT_PTR_EQUAL(pwc_region_addr(region), mine);
    CU_ASSERT_EQUAL(memcmp(mine, expected, size), 0);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, size, PWC_REMOTE_RW, PWC_MOVE, &again), 0);
    CU_ASSERT_PTR_EQUAL(again, region);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, size, 0, 0, &other), -EEXIST);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, page, 0, 0, &other), -EEXIST);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, page, PWC_REMOTE_RW, PWC_MOVE, &other), -EINVAL);

    /* The region has a key, and is a source without a copy. */
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &remote), 0);
    CU_ASSERT_EQUAL(pwc_put(remote, page, "written", 8, pwc_cid_u64(1), pwc_cid_u64(2), PWC_NO_RCE),
                    0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    memcpy(expected + page, "written", 8);
    CU_ASSERT_EQUAL(memcmp(mine, expected, size), 0);
    CU_ASSERT_EQUAL(put(w, 0, mine, size, 2, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, expected, size), 0);

    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 2);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    CU_ASSERT_EQUAL(memcmp(mine, expected, size), 0);

    /* Moved memory stays when the client ends. */
    CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, size, PWC_REMOTE_RW, PWC_MOVE, &region), 0);
    world_free(w);
    CU_ASSERT_EQUAL(memcmp(mine, expected, size), 0);
    munmap(mine, size);
    free(expected);
}

static bool refuse_region(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_REGION_OPEN ||
        request->region_open->length != 8192)
        return false;
    fake_daemon_error(daemon, request->id, -ENOSPC, "16384 regions are open: withdraw some");
    return true;
}

/* A call that fails half way leaves nothing behind. */
static void test_region_unwinding(void)
{
    struct world *w = world_new_sized(0, refuse_region);
    uint8_t *mine = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pwc_region *region;

    memset(mine, 0x42, 8192);
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 8192, PWC_REMOTE_RW, &region), -ENOSPC);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, 8192, PWC_REMOTE_RW, PWC_MOVE, &region), -ENOSPC);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    CU_ASSERT_EQUAL(mine[8191], 0x42);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, 8192, 0, 0, &region), 0);
    world_free(w);
    munmap(mine, 8192);
}

/* The daemon's answer to the next requests of one kind; then it serves them. */
static struct {
    Pwc__ClientRequest__BodyCase body;
    int status;
    _Atomic unsigned left;
    _Atomic unsigned seen;
} refusal;

static bool refuse_some(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (refusal.body == 0 || request->body_case != refusal.body)
        return false;
    refusal.seen++;
    if (refusal.left == 0)
        return false;
    refusal.left--;
    if (refusal.status != -ETIMEDOUT)
        fake_daemon_error(daemon, request->id, refusal.status, "not now");
    return true;
}

static void refuse(Pwc__ClientRequest__BodyCase body, int status, unsigned count)
{
    refusal.body = body;
    refusal.status = status;
    refusal.left = count;
    refusal.seen = 0;
}

/* Memory of a freed region is used again only when no peer can reach it any more: where the daemon
 * did not confirm that, it stays in use. */
static void test_withdrawal_refused(void)
{
    static const struct {
        int status;
        unsigned times;
        int result;
        unsigned asked;
        bool gone;
    } rows[] = {
        {-ECONNABORTED, 2, 0, 3, true}, /* a daemon that was restarted is asked again */
        {-ENOBUFS, 1, -ENOBUFS, 1, false},
        {-ENOMEM, 1, -ENOMEM, 1, false},
        {-EBUSY, 1, -EBUSY, 1, false},
        {-EINVAL, 1, 0, 1, true}, /* the daemon knows no such region */
        {-ETIMEDOUT, 1, -ETIMEDOUT, 1, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world *w = world_new_sized(0, refuse_some);
        pwc_region *region, *next;
        pwc_client *client = w->client;

        CU_ASSERT_EQUAL_FATAL(pwc_alloc(client, 8192, PWC_REMOTE_RW, &region), 0);
        refuse(PWC__CLIENT_REQUEST__BODY_REGION_CLOSE, rows[i].status, rows[i].times);
        world_limit(w, rows[i].status == -ETIMEDOUT ? 100 : WAIT_MS);
        CU_ASSERT_EQUAL(pwc_region_free(region), rows[i].result);
        world_limit(w, WAIT_MS);
        CU_ASSERT_EQUAL(refusal.seen, rows[i].asked);
        if (!rows[i].gone) {
            CU_ASSERT_EQUAL_FATAL(pwc_alloc(client, 8192, PWC_REMOTE_RW, &next), 0);
            CU_ASSERT_PTR_NOT_EQUAL(pwc_region_addr(next), pwc_region_addr(region));
            CU_ASSERT_EQUAL(pwc_region_free(region), 0);
        }
        refuse(0, 0, 0);
        world_free(w);
    }
}

/* After pwc_region_free has failed, the key may be revoked: the memory gets no key by that region
 * any more, until it has been freed. Only PWC_SHARE may make another region of it. */
static void test_withdrawn_region(void)
{
    static const unsigned flags[] = {PWC_MOVE, PWC_SHARE};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < COUNT(flags); i++) {
        struct world *w = world_new_sized(0, refuse_some);
        void *mine = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pwc_region *region, *next = NULL;
        struct pwc_key key;

        CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, page, PWC_REMOTE_RW, flags[i], &region),
                              0);
        refuse(PWC__CLIENT_REQUEST__BODY_REGION_CLOSE, -ENOBUFS, 1);
        CU_ASSERT_EQUAL(pwc_region_free(region), -ENOBUFS);
        CU_ASSERT_EQUAL(pwc_register(w->client, mine, page, PWC_REMOTE_RW, flags[i], &next),
                        flags[i] == PWC_MOVE ? -EEXIST : 0);
        CU_ASSERT_PTR_NOT_EQUAL(next, region);
        if (next) {
            CU_ASSERT_EQUAL(pwc_region_key(next, &key), 0);
            CU_ASSERT_EQUAL(pwc_region_free(next), 0);
        }
        CU_ASSERT_EQUAL(pwc_region_free(region), 0);
        CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
        CU_ASSERT_EQUAL(pwc_register(w->client, mine, page, PWC_REMOTE_RW, flags[i], &next), 0);
        refuse(0, 0, 0);
        world_free(w);
        munmap(mine, page);
    }
}

/* The library repeats a request that ends a context, a bind or a segment until the daemon has
 * carried it out. -ECONNABORTED means that the daemon was restarted. */
static void test_ends_are_asked_for_again(void)
{
    struct world *w = world_new_sized(0, refuse_some);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *mine = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pwc_region *region;
    pwc_ctx *ctx;

    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &ctx), 0);
    refuse(PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE, -ECONNABORTED, 2);
    CU_ASSERT_EQUAL(pwc_ctx_destroy(ctx), 0);
    CU_ASSERT_EQUAL(refusal.seen, 3);
    CU_ASSERT_EQUAL(w->daemon.sessions_open, 1);
    refuse(PWC__CLIENT_REQUEST__BODY_UNBIND, -ECONNABORTED, 2);
    CU_ASSERT_EQUAL(pwc_unbind(w->remote), 0);
    CU_ASSERT_EQUAL(refusal.seen, 3);
    CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, page, PWC_REMOTE_RW, PWC_MOVE, &region), 0);
    refuse(PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE, -ECONNABORTED, 2);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL(refusal.seen, 3);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    refuse(0, 0, 0);
    munmap(mine, page);
    world_free(w);
}

#define ALONE (65u << 20) /* bytes of a region that gets a segment of its own */

/* Makes what the request is for: a bind, or a region in a segment of its own. */
static int make(struct world *w, Pwc__ClientRequest__BodyCase body)
{
    pwc_region *region;
    pwc_remote *remote;

    return body == PWC__CLIENT_REQUEST__BODY_BIND
               ? pwc_bind(w->ctx, pwc_ctx_peer(w->ctx), NULL, &remote)
               : pwc_alloc(w->client, ALONE, PWC_REMOTE_RW, &region);
}

/* The library repeats a request that makes a segment, a region or a bind, where the daemon was
 * restarted, but not for ever. */
static void test_makes_are_asked_for_again(void)
{
    static const Pwc__ClientRequest__BodyCase bodies[] = {PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN,
                                                          PWC__CLIENT_REQUEST__BODY_REGION_OPEN,
                                                          PWC__CLIENT_REQUEST__BODY_BIND};

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct world *w = world_new_sized(0, refuse_some);

        refuse(bodies[i], -ECONNABORTED, 2);
        CU_ASSERT_EQUAL(make(w, bodies[i]), 0);
        CU_ASSERT_EQUAL(refusal.seen, 3);
        refuse(bodies[i], -ECONNABORTED, 1000);
        CU_ASSERT_EQUAL(make(w, bodies[i]), -ECONNABORTED);
        CU_ASSERT_EQUAL(refusal.seen, 16);
        refuse(0, 0, 0);
        world_free(w);
    }
}

/* ---- answers that come too late -------------------------------------------------------------- */

/* Requests of the kind `begin` wait until `held` is false; requests of the kind `end`, which undo
 * them, are counted. */
static struct {
    Pwc__ClientRequest__BodyCase begin, end;
    _Atomic bool held;
    _Atomic unsigned ended;
} slow;

static bool answer_late(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    while (slow.held && request->body_case == slow.begin)
        usleep(100);
    slow.ended += request->body_case == slow.end;
    (void)daemon;
    return false;
}

static int create_context(struct world *w)
{
    pwc_ctx *ctx;

    return pwc_ctx_create(w->client, NULL, &ctx);
}

static int alloc_segment(struct world *w)
{
    pwc_region *region;

    return pwc_alloc(w->client, 9u << 20, 0, &region);
}

static int alloc_region(struct world *w)
{
    pwc_region *region;

    return pwc_alloc(w->client, 64, PWC_REMOTE_RW, &region);
}

/* A context or memory that the daemon makes after the caller's timeout is given back to the
 * daemon. */
static void test_late_answers(void)
{
    static const struct {
        Pwc__ClientRequest__BodyCase begin, end;
        int (*call)(struct world *w);
    } rows[] = {
        {PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN, PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE,
         create_context},
        {PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN, PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE,
         alloc_segment},
        {PWC__CLIENT_REQUEST__BODY_REGION_OPEN, PWC__CLIENT_REQUEST__BODY_REGION_CLOSE,
         alloc_region},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world *w;

        slow.begin = slow.end = 0;
        w = world_new_sized(0, answer_late);
        world_limit(w, 50);
        slow.begin = rows[i].begin;
        slow.end = rows[i].end;
        slow.ended = 0;
        slow.held = true;
        CU_ASSERT_EQUAL(rows[i].call(w), -ETIMEDOUT);
        CU_ASSERT_EQUAL(slow.ended, 0);
        slow.held = false;
        /* Each call reads the answers that have arrived. The request to close is counted before the
         * daemon has carried it out, so wait for both. */
        for (int call = 0; call < 1000 && !(slow.ended == 1 && w->daemon.sessions_open == 1 &&
                                            w->daemon.segments_open == 1);
             call++)
            (void)pwc_barrier(w->ctx);
        CU_ASSERT_EQUAL(slow.ended, 1);
        CU_ASSERT_EQUAL(w->daemon.sessions_open, 1);
        CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
        world_free(w);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"alloc", test_alloc},
        {"a region's pages are there", test_pages_are_there},
        {"a region without memory", test_no_memory},
        {"a region without rights is local only", test_local_only},
        {"a segment that the quota refuses", test_quota},
        {"memory that goes through a copy", test_copied_region},
        {"memory that is moved", test_moved_region},
        {"regions that fail half way", test_region_unwinding},
        {"a withdrawal that is refused", test_withdrawal_refused},
        {"a region that is withdrawn", test_withdrawn_region},
        {"ends that are asked for again", test_ends_are_asked_for_again},
        {"makes that are asked for again", test_makes_are_asked_for_again},
        {"answers that come too late", test_late_answers},
        CU_TEST_INFO_NULL,
    };

    return suite_run("region", tests);
}
