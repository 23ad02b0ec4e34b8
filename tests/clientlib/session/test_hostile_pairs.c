/*
 * A hostile neighbour writes anything into the rings of its pair, beside an honest neighbour: a
 * record that makes no sense ends only the hostile pair. Guards
 * clientlib/neighbours/channel_direct.c.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/channel/channel.h"
#include "proto/wire_abi.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"

enum { RING = SESSION_RING_MIN, HOSTILE = 2, HONEST = 3, ID = 77 };

struct hall {
    struct fake_session daemon;
    struct mapping mapping, pairs[2];
    struct channel channel;
    struct pair_writer hostile, honest; /* write requests to us */
    struct pair_writer answers;         /* writes the hostile neighbour's replies to us */
    struct direct_pair *ours;           /* our pair to the hostile neighbour */
    unsigned delivered;                 /* number of messages */
};

static int deliver(void *context, const struct event_record *event, int32_t *status)
{
    ((struct hall *)context)->delivered++;
    *status = 0;
    (void)event;
    return 0;
}

static void add_neighbour(struct hall *h, uint64_t peer, struct pair_writer *writer)
{
    const struct pair_note note = {.peer = peer, .slot = BOARD_NONE};
    struct mapping *pair = &h->pairs[peer == HONEST];

    CU_ASSERT_EQUAL_FATAL(mapping_create(pair, "test-pair", PAIR_BYTES), 0);
    pair_format(pair->base);
    CU_ASSERT_EQUAL_FATAL(pair_writer_init(writer, pair->base, pair->size, PAIR_REQUESTS), 0);
    neighbours_add(&h->channel.neighbours, &note, dup(pair->fd), -1);
}

/* Makes a pair of which we are the origin, with a request that waits for its reply. */
static void await_answer(struct hall *h)
{
    struct direct_pair *p = calloc(1, sizeof(*p));

    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    p->peer = HOSTILE;
    p->board.fd = -1;
    CU_ASSERT_EQUAL_FATAL(mapping_create(&p->ring, "test-pair", PAIR_BYTES), 0);
    pair_format(p->ring.base);
    CU_ASSERT_EQUAL_FATAL(pair_writer_init(&p->writer, p->ring.base, p->ring.size, PAIR_REQUESTS),
                          0);
    CU_ASSERT_EQUAL_FATAL(pair_reader_init(&p->answers, p->ring.base, p->ring.size, PAIR_ANSWERS),
                          0);
    CU_ASSERT_EQUAL_FATAL(pair_writer_init(&h->answers, p->ring.base, p->ring.size, PAIR_ANSWERS),
                          0);
    neighbours_add_ours(&h->channel.neighbours, p);
    p->answers.block_max = h->channel.neighbours.block_max;
    p->awaited = h->channel.neighbours.awaited = 1;
    h->ours = p;
}

static struct hall *hall_new(bool messages)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    struct hall *h = calloc(1, sizeof(*h));

    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    fake_channel_open(&h->daemon, &h->mapping, &h->channel, &rings);
    add_neighbour(h, HOSTILE, &h->hostile);
    add_neighbour(h, HONEST, &h->honest);
    if (messages)
        CU_ASSERT_EQUAL_FATAL(channel_set_deliver(&h->channel, deliver, h), 0);
    return h;
}

static void hall_free(struct hall *h)
{
    if (h->ours)
        neighbours_drop(&h->channel.neighbours, h->ours);
    fake_channel_close(&h->daemon, &h->mapping, &h->channel);
    mapping_destroy(&h->pairs[0]);
    mapping_destroy(&h->pairs[1]);
    free(h);
}

/* A record's head, and the bytes of its id, which may be a message's block. */
struct row {
    const char *what;
    uint8_t kind, flags;
    uint16_t id_len;
    struct message block;
};

static void write_row(struct pair_writer *w, const struct row *row)
{
    const struct pair_record record = {
        .kind = row->kind, .flags = row->flags, .id_len = row->id_len, .lines = 1, .id = ID};

    memcpy(w->lines[0].more, &row->block,
           sizeof(row->block) < PAIR_ID_FIRST ? sizeof(row->block) : PAIR_ID_FIRST);
    pair_show(w, &record);
}

static void expect_put_of_the_honest(struct hall *h)
{
    const struct pair_record put = {.kind = PAIR_PUT, .lines = 1, .bytes = 8, .id = ID};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pair_room(&h->honest, 1), 0);
    pair_write(&h->honest, &put, "");
    CU_ASSERT_EQUAL_FATAL(channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event), 1);
    CU_ASSERT_EQUAL(event.peer, HONEST);
    CU_ASSERT_EQUAL(event.id, ID);
    CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event), 0);
}

/* Requests that make no sense, with and without handlers: the pair is dropped, none of its records
 * is reported or delivered, and the honest neighbour works on. */
static void senseless_requests(void)
{
    static const struct row rows[] = {
        {"no kind", 0, 0, 0, {0}},
        {"an answer's kind", PAIR_UNANSWERED, 0, 0, {0}},
        {"a line behind the first", PAIR_MORE, 0, 0, {0}},
        {"an unknown kind", 255, 0, 0, {0}},
        {"an unknown flag", PAIR_PUT, 1 << 7, 0, {0}},
        {"an id that is too long", PAIR_PUT, 0, SESSION_ID_MAX + 1, {0}},
        {"the longest id", PAIR_PUT, 0, UINT16_MAX, {0}},
        {"a notification with bytes", PAIR_PUT, PAIR_NOTIFY, 8, {0}},
        {"a message as a notification", PAIR_MESSAGE, PAIR_NOTIFY, 0, {0}},
        {"a message without a block", PAIR_MESSAGE, 0, 0, {0}},
        {"half a block", PAIR_MESSAGE, 0, sizeof(struct message) - 8, {.kind = SUBMIT_SHORT}},
        {"a block of no message", PAIR_MESSAGE, 0, sizeof(struct message), {.kind = SUBMIT_PUT}},
        {"more arguments than bytes",
         PAIR_MESSAGE,
         0,
         sizeof(struct message),
         {.kind = SUBMIT_SHORT, .arguments = 1, .token = WIRE_NONE}},
        {"a block over the bound", PAIR_MESSAGE, 0, UINT16_MAX, {.kind = SUBMIT_SHORT}},
        {"a token of the daemon's",
         PAIR_MESSAGE,
         0,
         sizeof(struct message),
         {.kind = SUBMIT_SHORT, .token = 5}},
    };

    for (int messages = 0; messages < 2; messages++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct hall *h = hall_new(messages);
            struct pwc_event event;

            write_row(&h->hostile, &rows[i]);
            CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_REMOTE | PWC_MESSAGE, &event),
                            0);
            CU_ASSERT_EQUAL(h->channel.neighbours.count, 1);
            if (h->channel.neighbours.count != 1 || h->delivered > 0)
                printf("%s: ", rows[i].what);
            CU_ASSERT_EQUAL(h->delivered, 0);
            expect_put_of_the_honest(h);
            hall_free(h);
        }
}

/* Replies that make no sense: the pair is broken, and waits for no further reply. */
static void senseless_answers(void)
{
    static const struct row rows[] = {
        {"no kind", 0, 0, 0, {0}},
        {"a put", PAIR_PUT, 0, 0, {0}},
        {"a get", PAIR_GET, 0, 0, {0}},
        {"an atomic", PAIR_ATOMIC, 0, 0, {0}},
        {"a put that holds a message",
         PAIR_PUT,
         0,
         sizeof(struct message),
         {.kind = SUBMIT_SHORT, .token = WIRE_NONE}},
        {"an unknown flag", PAIR_UNANSWERED, 1 << 7, 0, {0}},
        {"half a block", PAIR_MESSAGE, 0, sizeof(struct message) - 8, {.kind = SUBMIT_SHORT}},
        {"a block of no message", PAIR_MESSAGE, 0, sizeof(struct message), {.kind = SUBMIT_PUT}},
        {"a block over the bound", PAIR_MESSAGE, 0, UINT16_MAX, {.kind = SUBMIT_SHORT}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hall *h = hall_new(true);
        struct pwc_event event;

        await_answer(h);
        write_row(&h->answers, &rows[i]);
        CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_MESSAGE, &event), 0);
        if (!h->ours->broken)
            printf("%s: ", rows[i].what);
        CU_ASSERT_TRUE(h->ours->broken);
        CU_ASSERT_EQUAL(h->ours->awaited, 0);
        CU_ASSERT_EQUAL(h->channel.neighbours.awaited, 0);
        CU_ASSERT_EQUAL(h->delivered, 0);
        expect_put_of_the_honest(h);
        hall_free(h);
    }
}

/* One reply for one request: a second reply stays in the ring unread. */
static void one_answer(void)
{
    const struct row none = {"unanswered", PAIR_UNANSWERED, 0, 0, {0}};
    struct hall *h = hall_new(true);
    struct pwc_event event;

    await_answer(h);
    write_row(&h->answers, &none);
    write_row(&h->answers, &none);
    CU_ASSERT_EQUAL(channel_probe(&h->channel, PWC_ANY, PWC_MESSAGE, &event), 0);
    CU_ASSERT_FALSE(h->ours->broken);
    CU_ASSERT_EQUAL(h->ours->awaited, 0);
    CU_ASSERT_EQUAL(h->channel.neighbours.awaited, 0);
    CU_ASSERT_EQUAL(h->ours->answers.head, 1);
    hall_free(h);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"senseless requests", senseless_requests},
        {"senseless answers", senseless_answers},
        {"one answer for one request", one_answer},
        CU_TEST_INFO_NULL,
    };

    return suite_run("hostile pairs", tests);
}
