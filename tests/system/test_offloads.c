/*
 * A daemon runs the handlers of its client while the client is stopped (SIGSTOP): a table of keys
 * and values, a conditional read, puts of many packets that are spread over blocks of a region,
 * messages that are fetched when they match a receive, and Longs that are summed up. The client is
 * a process of its own. Each request under way ends once when the daemon is killed or hands over,
 * or when the client is killed. pwcctl shows the offload.
 *
 *     test_offloads PWCD PWCCTL KEY_VALUE.o CONDITIONAL_READ.o STRIDED.o RENDEZVOUS.o CHECKSUM.o
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "pwc/am.h"
#define PWC_HANDLER_HOST
#include "pwc/handler.h"
#include "pwc/offload.h"
#include "tests/lib/cluster.h"
#include "tests/lib/command.h"
#include "tests/lib/rank.h"
#include "tests/lib/process.h"
#include "tests/system/lib/offload.h"
#include "tests/suite.h"

enum {
    INDEX = 7,
    SLOTS = 64,
    ROWS = 200,
    REGION_BYTES = 1 << 16,
    VALUE = 20,
    BLOCK = 64,
    STRIDE = 128,
    COLUMN = REGION_BYTES / STRIDE * BLOCK,
    BURST = 20,
    LIMIT_S = 60,
};
enum { KV_GET = 0, KV_INSERT = 1, KV_DELETE = 2 }; /* as in examples/handlers/key_value.c */

/* Set by main before the tests run. */
static struct cluster cluster;
static const char *pwcctl, *key_value_file, *conditional_read_file, *strided_file, *placed_file,
    *rendezvous_file, *checksum_file;

struct row { /* as in examples/handlers/conditional_read.c */
    uint64_t id;
    char name[24];
};

struct slot { /* as in examples/handlers/rendezvous.c */
    uint64_t state, place, room, sender, offset, bytes;
};
enum { EMPTY, POSTED, ARRIVED, GETTING, RECEIVED };
enum {
    TAGS = 24,
    POSTS = BURST,
    FETCHED = 1500 /* bytes; tags from POSTS on have no receive */
};

/* ---- the client that is stopped -------------------------------------------------------------- */

/* Fills the client's region: the lower half is the host window, the upper half the state. */
static void fill(struct rank *r, const char *path)
{
    uint64_t *state = (uint64_t *)(void *)(r->memory + REGION_BYTES / 2);
    struct slot *slots = (struct slot *)(void *)(state + 1);

    memset(r->memory, 0, REGION_BYTES);
    if (path == key_value_file)
        state[0] = SLOTS;
    for (uint64_t i = 0; path == conditional_read_file && i < ROWS; i++) {
        struct row row = {.id = i % 10};

        snprintf(row.name, sizeof(row.name), "name %u", (unsigned)i);
        memcpy(r->memory + i * sizeof(row), &row, sizeof(row));
    }
    if (path != rendezvous_file)
        return;
    state[0] = TAGS;
    for (uint64_t tag = 0; tag < POSTS; tag++)
        slots[tag] = (struct slot){.state = POSTED, .place = tag * FETCHED, .room = FETCHED};
}

/* Fills the attributes of an offload: for messages, or for puts to the region, whose state is in
 * another region. */
static int attributes(struct rank *r, const char *path, struct pwc_offload_attr *attr)
{
    const uint64_t blocks[3] = {0, BLOCK, STRIDE};

    *attr = (struct pwc_offload_attr){.flags = PWC_OFFLOAD_QUIET, .cookie = 42};
    if (path == strided_file || path == placed_file) {
        int rc = pwc_alloc(r->client, 4096, PWC_REMOTE_READ, &attr->state);

        if (rc < 0)
            return rc;
        attr->region = r->region;
        attr->flags |= path == placed_file ? PWC_OFFLOAD_PLACED : 0;
        attr->state_length = sizeof(blocks);
        memcpy(pwc_region_addr(attr->state), blocks, sizeof(blocks));
        return 0;
    }
    attr->index = INDEX;
    attr->state = r->region;
    attr->state_offset = attr->state_length = REGION_BYTES / 2;
    attr->host = r->region;
    attr->targets = &r->remote;
    attr->target_count = path == rendezvous_file;
    return 0;
}

static int serve(struct rank *r, const char *path, pwc_offload **offload)
{
    struct pwc_offload_attr attr;
    int rc = attributes(r, path, &attr);

    if (rc == 0)
        rc = offload_load(r, path, &attr.program);
    fill(r, path);
    if (rc == 0)
        rc = pwc_offload_create(r->ctx, &attr, offload);
    if (rc == 0 && pwc_program_unload(attr.program) != -EBUSY)
        rc = -EPROTO;
    if (rc < 0) {
        char text[256] = "";

        pwc_error_text(r->client, text, sizeof(text));
        printf("\n  %s: %s (%s)\n", path, strerror(-rc), text);
        fflush(stdout);
    }
    return rc;
}

/* Whether the offload's counts show the handlers that have run. */
static bool shows_counts(pwc_offload *offload)
{
    struct pwc_offload_view view[3];

    return pwc_offload_view(offload, &view[0]) == 0 && pwc_offload_disable(offload) == 0 &&
           pwc_offload_view(offload, &view[1]) == 0 && pwc_offload_enable(offload) == 0 &&
           pwc_offload_view(offload, &view[2]) == 0 && view[0].messages > 0 && view[0].units > 0 &&
           !view[0].disabled && view[1].disabled == 1 && !view[2].disabled &&
           view[2].messages == view[0].messages;
}

/* The client's process: makes the offload, and does nothing more (it is stopped meanwhile) until
 * its pipe is closed. */
static int client_main(const char *job, const char *path, int ready, int end)
{
    pwc_offload *offload;
    struct pwc_key key;
    struct rank r;
    char byte;

    if (rank_attach(&r, cluster.nodes[1].socket, job, 1, 2, REGION_BYTES) < 0 ||
        read(end, &key, sizeof(key)) != sizeof(key) ||
        (path == rendezvous_file && pwc_bind(r.ctx, pwc_peer_of(0, 0), &key, &r.remote) < 0) ||
        serve(&r, path, &offload) < 0 || pwc_region_key(r.region, &key) < 0 ||
        write(ready, &key, sizeof(key)) != sizeof(key))
        return 1;
    while (read(end, &byte, 1) < 0)
        continue;
    if (!shows_counts(offload) || pwc_offload_destroy(offload) < 0)
        return 1;
    rank_detach(&r);
    return 0;
}

/* ---- the one that asks ----------------------------------------------------------------------- */

struct server {
    pid_t pid;
    int end;
    struct rank asker;
};

struct answer {
    bool here;
    uint64_t arguments[2];
    uint8_t payload[4096];
    size_t length;
};

static void answered(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    struct answer *a = argument;

    a->here = true;
    if (message->count > 0)
        memcpy(a->arguments, message->arguments, 8 * (message->count < 2 ? message->count : 2));
    a->length = message->length;
    if (message->length > 0)
        memcpy(a->payload, message->payload, message->length);
}

static struct answer answer;

/* Starts the client on node 1, waits until it is ready, stops it, and binds it from a rank on this
 * node. */
static bool server_open_from(struct server *s, const char *job, const char *path, unsigned node)
{
    int ready[2], end[2];
    struct pwc_key key;

    if (pipe(ready) < 0 || pipe(end) < 0)
        return false;
    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the signal also ends a child that is stopped */
        close(ready[0]);
        close(end[1]);
        _exit(client_main(job, path, ready[1], end[0]));
    }
    close(ready[1]);
    close(end[0]);
    s->end = end[1];
    if (rank_attach(&s->asker, cluster.nodes[node].socket, job, 0, 2, REGION_BYTES) < 0 ||
        pwc_region_key(s->asker.region, &key) < 0 ||
        write(s->end, &key, sizeof(key)) != sizeof(key) ||
        read(ready[0], &key, sizeof(key)) != sizeof(key))
        return false;
    close(ready[0]);
    if (pwc_am_register(s->asker.ctx, INDEX, answered, &answer) < 0 ||
        pwc_bind(s->asker.ctx, pwc_peer_of(1, 0), &key, &s->asker.remote) < 0)
        return false;
    return process_stop(s->pid);
}

static bool server_open(struct server *s, const char *job, const char *path)
{
    return server_open_from(s, job, path, 0);
}

static void server_close(struct server *s)
{
    int status;

    CU_ASSERT_EQUAL(waitpid(s->pid, &status, WNOHANG), 0); /* stopped, not ended */
    kill(s->pid, SIGCONT);
    close(s->end);
    CU_ASSERT_EQUAL(waitpid(s->pid, &status, 0), s->pid);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rank_detach(&s->asker);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

static bool ask(struct server *s, const uint64_t *arguments, unsigned count, const void *payload,
                size_t length)
{
    const struct pwc_am_send send = {.index = INDEX,
                                     .count = count,
                                     .arguments = arguments,
                                     .src = payload,
                                     .len = length,
                                     .flags = PWC_NO_LCE};
    struct pwc_event event;

    answer.here = false;
    if (pwc_am_medium(s->asker.remote, &send) < 0)
        return false;
    return pwc_wait(s->asker.ctx, PWC_ANY, PWC_MESSAGE | PWC_LOCAL, &event, RANK_WAIT_MS) == 1 &&
           event.kind == PWC_MESSAGE && answer.here;
}

static bool key_value(struct server *s, uint64_t op, uint64_t key, const void *value, size_t length)
{
    return ask(s, (uint64_t[]){op, key}, 2, value, length);
}

static void check_key_value(unsigned node)
{
    struct server s;
    char value[VALUE];

    CU_ASSERT_TRUE_FATAL(server_open_from(&s, "keys", key_value_file, node));
    for (uint64_t key = 0; key < 16; key++) {
        memset(value, (int)key + 1, sizeof(value));
        CU_ASSERT_TRUE(key_value(&s, KV_INSERT, key * 77, value, sizeof(value)));
        CU_ASSERT_EQUAL(answer.arguments[0], 1);
    }
    for (uint64_t key = 0; key < 16; key++) {
        memset(value, (int)key + 1, sizeof(value));
        CU_ASSERT_TRUE(key_value(&s, KV_GET, key * 77, NULL, 0));
        CU_ASSERT_EQUAL(answer.arguments[0], 1);
        CU_ASSERT_EQUAL(answer.length, sizeof(value));
        CU_ASSERT_EQUAL(memcmp(answer.payload, value, sizeof(value)), 0);
    }
    CU_ASSERT_TRUE(key_value(&s, KV_DELETE, 77, NULL, 0));
    CU_ASSERT_EQUAL(answer.arguments[0], 1);
    CU_ASSERT_TRUE(key_value(&s, KV_GET, 77, NULL, 0));
    CU_ASSERT_EQUAL(answer.arguments[0], 0);
    server_close(&s);
}

static void test_key_value(void)
{
    check_key_value(0);
}

/* ---- views of pwcctl ------------------------------------------------------------------------- */

/* Whether pwcctl's list of node 1's offloads has these words. */
static bool shown(const char *words)
{
    const char *const argv[] = {pwcctl,   "--socket", cluster.nodes[1].socket,
                                "--json", "offloads", NULL};
    struct command *command = command_start(argv, NULL);
    bool found;

    CU_ASSERT_PTR_NOT_NULL_FATAL(command);
    CU_ASSERT_EQUAL(command_finish(command), 0);
    found = strstr(command->out_text, words) != NULL;
    command_free(command);
    return found;
}

static void test_looks(void)
{
    struct server s;

    CU_ASSERT_TRUE_FATAL(server_open(&s, "looks", key_value_file));
    CU_ASSERT_TRUE(shown("\"messages\":0"));
    for (uint64_t key = 0; key < 7; key++)
        CU_ASSERT_TRUE(key_value(&s, KV_GET, key, NULL, 0));
    CU_ASSERT_TRUE(shown("\"messages\":7"));
    CU_ASSERT_TRUE(shown("\"takes\":\"messages\""));
    CU_ASSERT_TRUE(shown("\"index\":7"));
    CU_ASSERT_TRUE(shown("\"state\":\"open\""));
    CU_ASSERT_TRUE(shown("\"fault\":null"));
    server_close(&s);
    CU_ASSERT_TRUE(shown("\"offloads\":[]"));
}

/* ---- ends under load ------------------------------------------------------------------------- */

/* Sends a burst of gets. */
static void burst(struct server *s)
{
    for (uint64_t i = 0; i < BURST; i++) {
        const uint64_t arguments[] = {KV_GET, i};
        const struct pwc_am_send send = {
            .index = INDEX, .count = 2, .arguments = arguments, .flags = PWC_NO_LCE};

        CU_ASSERT_EQUAL_FATAL(pwc_am_medium(s->asker.remote, &send), 0);
    }
}

/* Waits until each request of the burst has ended. Returns how many have failed, all with this
 * status. */
static unsigned burst_fails(struct server *s, int status)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < BURST; i++) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(
            pwc_wait(s->asker.ctx, PWC_ANY, PWC_MESSAGE | PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        if (event.kind == PWC_LOCAL) {
            CU_ASSERT_EQUAL(event.status, status);
            failed++;
        }
    }
    return failed;
}

/* Where the daemon dies while a handler runs, the handler may have done its work, so that request
 * fails; no other does. At a hand-over no handler runs. */
static void test_daemon_goes(void)
{
    struct server s;

    CU_ASSERT_TRUE_FATAL(server_open(&s, "deaths", key_value_file));
    for (int i = 0; i < 4; i++) {
        burst(&s);
        offload_daemon_goes(&cluster, i % 2 == 0);
        CU_ASSERT(burst_fails(&s, -ECONNABORTED) <= (i % 2 == 0));
    }
    server_close(&s);
}

/* When the client dies, unanswered requests fail, and its offload ends. */
static void test_client_dies(void)
{
    struct server s;
    int status;

    CU_ASSERT_TRUE_FATAL(server_open(&s, "killed", key_value_file));
    burst(&s);
    kill(s.pid, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(s.pid, &status, 0), s.pid);
    (void)burst_fails(&s, -EHOSTDOWN);
    for (time_t end = time(NULL) + LIMIT_S; !shown("\"offloads\":[]") && time(NULL) < end;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CU_ASSERT_TRUE(shown("\"offloads\":[]"));
    close(s.end);
    rank_detach(&s.asker);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

/* Only the matching rows are returned. */
static void test_conditional_read(void)
{
    uint64_t from = 0, found = 0;
    struct server s;

    CU_ASSERT_TRUE_FATAL(server_open(&s, "rows", conditional_read_file));
    while (from < ROWS) {
        CU_ASSERT_TRUE_FATAL(ask(&s, (uint64_t[]){3, from, ROWS - from}, 3, NULL, 0));
        CU_ASSERT_EQUAL(answer.length, answer.arguments[0] * 24);
        for (uint64_t i = 0; i < answer.arguments[0]; i++, found++) {
            char name[24];

            snprintf(name, sizeof(name), "name %u", (unsigned)(found * 10 + 3));
            CU_ASSERT_STRING_EQUAL((char *)answer.payload + i * 24, name);
        }
        CU_ASSERT_FATAL(answer.arguments[1] > from);
        from = answer.arguments[1];
    }
    CU_ASSERT_EQUAL(found, ROWS / 10);
    server_close(&s);
}

/* The sum of a block, as examples/handlers/checksum.c computes it from packets. */
static uint64_t sum_of(const uint8_t *block, size_t length, size_t packet)
{
    uint64_t sum = 0;

    for (size_t at = 0; at == 0 || at < length; at += packet)
        sum += pwc_h_hash(block + at, length - at < packet ? length - at : packet) * (2 * at + 1);
    return sum;
}

static void check_checksum(struct server *s, const uint8_t *block, size_t length)
{
    const struct pwc_am_send send = {.index = INDEX,
                                     .count = 1,
                                     .arguments = (uint64_t[]){5},
                                     .src = block,
                                     .len = length,
                                     .flags = PWC_NO_LCE};
    struct pwc_handler_limits limits;
    struct pwc_event event;

    answer = (struct answer){.here = false};
    CU_ASSERT_EQUAL_FATAL(pwc_handler_limits(s->asker.client, &limits), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_long(s->asker.remote, 64, &send), 0);
    CU_ASSERT_EQUAL_FATAL(
        pwc_wait(s->asker.ctx, PWC_ANY, PWC_MESSAGE | PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.kind, PWC_MESSAGE);
    CU_ASSERT(answer.here);
    CU_ASSERT_EQUAL(answer.arguments[0], sum_of(block, length, limits.packet));
}

/* Longs of several packets and of less than one, from regions and from loose memory: the daemon of
 * a stopped client replies to each. */
static void check_checksums(unsigned node)
{
    static const size_t lengths[] = {0, 8, 1000, 4095, 4096, 4097, 8192, 30001};
    static uint8_t loose[32768];
    struct server s;

    CU_ASSERT_TRUE_FATAL(server_open_from(&s, "sums", checksum_file, node));
    rank_fill(loose, sizeof(loose), 3);
    rank_fill(s.asker.memory, sizeof(loose), 4);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        check_checksum(&s, s.asker.memory, lengths[i]);
        check_checksum(&s, loose, lengths[i]);
    }
    server_close(&s);
}

static void test_checksum(void)
{
    check_checksums(0);
    check_checksums(1);
}

static int moved(struct server *s, int rc)
{
    struct pwc_event event;

    if (rc < 0)
        return rc;
    rc = pwc_wait(s->asker.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS);
    return rc == 1 ? event.status : -ETIMEDOUT;
}

/* A column is put to a matrix of a stopped client, and the matrix is read. */
static void check_strided(unsigned node)
{
    static const uint8_t none[STRIDE - BLOCK];
    static uint8_t column[COLUMN];
    uint32_t wrong = 0;
    struct server s;
    uint8_t *all;

    CU_ASSERT_TRUE_FATAL(server_open_from(&s, "column", strided_file, node));
    CU_ASSERT_TRUE(shown("\"takes\":\"puts\""));
    CU_ASSERT_TRUE(shown("\"index\":0"));
    all = s.asker.memory;
    rank_fill(column, COLUMN, 3);
    memcpy(all, column, COLUMN);
    CU_ASSERT_EQUAL(
        moved(&s, pwc_put(s.asker.remote, 0, all, COLUMN, PWC_CID_NONE, PWC_CID_NONE, 0)), 0);
    CU_ASSERT_EQUAL(
        moved(&s, pwc_get(s.asker.remote, 0, all, REGION_BYTES, PWC_CID_NONE, PWC_CID_NONE, 0)), 0);
    for (size_t i = 0; i < REGION_BYTES / STRIDE; i++)
        wrong += memcmp(all + i * STRIDE, column + i * BLOCK, BLOCK) != 0 ||
                 memcmp(all + i * STRIDE + BLOCK, none, sizeof(none)) != 0;
    CU_ASSERT_EQUAL(wrong, 0);
    server_close(&s);
}

static void test_strided(void)
{
    check_strided(0);
}

/* A region that stores puts: half a column is placed after the matrix of a stopped client, and the
 * client's handlers spread it from there. With `goes`, the client's daemon hands over meanwhile. */
static void check_placed(unsigned node, bool goes)
{
    static uint8_t column[COLUMN / 2];
    uint32_t wrong = 0;
    struct server s;
    uint8_t *all;

    CU_ASSERT_TRUE_FATAL(server_open_from(&s, "placed", placed_file, node));
    CU_ASSERT_TRUE(shown("\"takes\":\"placed\""));
    all = s.asker.memory;
    rank_fill(column, sizeof(column), 4);
    memcpy(all, column, sizeof(column));
    for (int i = 0; i < (goes ? 20 : 1); i++) {
        CU_ASSERT_EQUAL(pwc_put(s.asker.remote, REGION_BYTES / 2, all, sizeof(column), PWC_CID_NONE,
                                PWC_CID_NONE, 0),
                        0);
        if (i == 3)
            offload_daemon_goes(&cluster, false);
        CU_ASSERT_EQUAL(moved(&s, 0), 0);
    }
    CU_ASSERT_EQUAL(
        moved(&s, pwc_get(s.asker.remote, 0, all, REGION_BYTES, PWC_CID_NONE, PWC_CID_NONE, 0)), 0);
    CU_ASSERT_EQUAL(memcmp(all + REGION_BYTES / 2, column, sizeof(column)), 0);
    for (size_t i = 0; i < REGION_BYTES / STRIDE / 2; i++)
        wrong += memcmp(all + i * STRIDE, column + i * BLOCK, BLOCK) != 0;
    CU_ASSERT_EQUAL(wrong, 0);
    server_close(&s);
}

static void test_placed(void)
{
    check_placed(0, false);
    check_placed(1, false);
    check_placed(0, true);
}

/* ---- rendezvous ------------------------------------------------------------------------------ */

/* Sends a request to fetch the bytes of a tag, from their place in the sender's region. */
static int request(struct server *s, uint64_t tag)
{
    const uint64_t arguments[3] = {tag, tag * FETCHED, FETCHED};
    const struct pwc_am_send send = {
        .index = INDEX, .count = 3, .arguments = arguments, .flags = PWC_AM_NO_REPLY};

    return pwc_am_short(s->asker.remote, &send);
}

/* Waits for the ends of `count` requests, and for the puts that report their bytes as fetched.
 * Returns the number of tags for which such a put came. */
static uint32_t fetched(struct server *s, uint32_t count, uint32_t *failed)
{
    uint32_t came = 0, tags = 0, ended = 0;

    for (*failed = 0; ended < count || came + *failed < count;) {
        struct pwc_event event;

        if (pwc_wait(s->asker.ctx, PWC_ANY, PWC_REMOTE | PWC_LOCAL, &event, RANK_WAIT_MS) != 1)
            return 0;
        if (event.kind == PWC_LOCAL) {
            *failed += event.status < 0;
            ended++;
        } else if (event.id < POSTS && !(tags >> event.id & 1)) {
            tags |= 1u << event.id;
            came++;
        } else {
            return 0;
        }
    }
    return came;
}

/* Gets from the receiver's region, into the upper half of the sender's own. */
static const struct slot *look(struct server *s, uint64_t offset)
{
    uint8_t *to = s->asker.memory + REGION_BYTES / 2;

    CU_ASSERT_EQUAL(moved(s, pwc_get(s->asker.remote, offset, to, REGION_BYTES / 2, PWC_CID_NONE,
                                     PWC_CID_NONE, 0)),
                    0);
    return (const struct slot *)(const void *)(to + sizeof(uint64_t));
}

static void check_rendezvous(unsigned node)
{
    const struct slot *slot;
    struct server s;
    uint32_t failed;

    CU_ASSERT_TRUE_FATAL(server_open_from(&s, "rendezvous", rendezvous_file, node));
    rank_fill(s.asker.memory, POSTS * FETCHED, node);
    for (uint64_t tag = 0; tag < POSTS; tag++)
        CU_ASSERT_EQUAL(request(&s, tag), 0);
    CU_ASSERT_EQUAL(fetched(&s, POSTS, &failed), POSTS);
    CU_ASSERT_EQUAL(failed, 0);
    look(&s, 0);
    CU_ASSERT_EQUAL(memcmp(s.asker.memory + REGION_BYTES / 2, s.asker.memory, POSTS * FETCHED), 0);
    /* No receive is posted: the request waits for the receiver. A second one fails. */
    CU_ASSERT_EQUAL(moved(&s, request(&s, POSTS)), 0);
    CU_ASSERT_EQUAL(moved(&s, request(&s, POSTS)), -EREMOTEIO);
    CU_ASSERT_EQUAL(moved(&s, request(&s, TAGS)), -EREMOTEIO);
    slot = look(&s, REGION_BYTES / 2);
    for (uint64_t tag = 0; tag < TAGS; tag++)
        CU_ASSERT_EQUAL(slot[tag].state, tag < POSTS ? RECEIVED : tag == POSTS ? ARRIVED : EMPTY);
    CU_ASSERT_EQUAL(slot[POSTS].offset, POSTS * FETCHED);
    server_close(&s);
}

static void test_rendezvous(void)
{
    check_rendezvous(0);
    check_rendezvous(1);
}

/* The receiver's daemon hands over while gets are under way: each completes once. */
static void test_rendezvous_daemon_goes(void)
{
    struct server s;
    uint32_t failed;

    for (int i = 0; i < 3; i++) {
        CU_ASSERT_TRUE_FATAL(server_open(&s, "fetched", rendezvous_file));
        rank_fill(s.asker.memory, POSTS * FETCHED, (uint64_t)i);
        for (uint64_t tag = 0; tag < POSTS; tag++)
            CU_ASSERT_EQUAL(request(&s, tag), 0);
        offload_daemon_goes(&cluster, false);
        CU_ASSERT_EQUAL(fetched(&s, POSTS, &failed), POSTS);
        CU_ASSERT_EQUAL(failed, 0);
        look(&s, 0);
        CU_ASSERT_EQUAL(memcmp(s.asker.memory + REGION_BYTES / 2, s.asker.memory, POSTS * FETCHED),
                        0);
        server_close(&s);
    }
}

/* The asking rank is on the same node as the client: all its operations still go through the
 * daemon. */
static void test_same_node(void)
{
    check_key_value(1);
    check_strided(1);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"keys and values of a stopped client", test_key_value},
                           {"a conditional read of a stopped client", test_conditional_read},
                           {"Longs to a stopped client", test_checksum},
                           {"pwcctl shows offloads", test_looks},
                           {"daemons are killed and hand over", test_daemon_goes},
                           {"a client is killed", test_client_dies},
                           {"a column put to a stopped client", test_strided},
                           {"a column that is placed", test_placed},
                           {"messages fetched by a stopped client's daemon", test_rendezvous},
                           {"which hands over meanwhile", test_rendezvous_daemon_goes},
                           {"asked on the same node", test_same_node},
                           CU_TEST_INFO_NULL};
    static const char *const more[] = {"--keep", "--peer-deadline-ms", "20000", "--handler-us",
                                       "1000", /* sanitizers are slow */
                                       NULL};
    struct cluster_options options = {.nodes = 2, .provider = "stream", .more = more};
    int status = 1;

    if (argc != 8)
        return 2;
    options.pwcd = argv[1];
    pwcctl = argv[2];
    key_value_file = argv[3];
    conditional_read_file = argv[4];
    strided_file = argv[5];
    placed_file = strdup(argv[5]);
    rendezvous_file = argv[6];
    checksum_file = argv[7];
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("offloads", tests);
    return cluster_end(&cluster, status);
}
