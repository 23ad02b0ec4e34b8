/*
 * Frames from raw sockets to the stream fabric: a peer that breaks the rules loses its connection,
 * and no other peer is affected.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "tests/fabric/near.h"
#include "tests/suite.h"

#define PIECES 33u
#define FRAME  sizeof(struct stream_frame)

static struct near near;

/* Closes the socket by a reset, which drops unread bytes. */
static void reset(int fd)
{
    struct linger linger = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
}

/* ---- frames that break the rules ------------------------------------------------------------- */

enum key { GOOD, READ_ONLY, WRITE_ONLY, LOCAL, WRONG, ELSEWHERE, NONE };
/* The fabric's own operation of 64 bytes that is under way to this peer. */
enum asked { NOTHING, A_READ, A_WRITE };

#define ASKED_LENGTH 64u
#define COOKIE       7u
#define M            ((uint64_t)NEAR_MEMORY)

static uint64_t key_of(enum key key)
{
    static const enum near_memory memories[] = {NEAR_ALL, NEAR_READ_ONLY, NEAR_WRITE_ONLY,
                                                NEAR_LOCAL};

    switch (key) {
    case WRONG: /* a key that this memory never had */
        return near.registered[NEAR_ALL].key ^ UINT64_C(1) << 40;
    case ELSEWHERE: /* no such index */
        return near.registered[NEAR_ALL].key | 4096;
    case NONE:
        return 0;
    default:
        return near.registered[memories[key]].key;
    }
}

static void ask_for(enum asked what)
{
    struct fabric_read r = {.peer = 1,
                            .memory = near.registered[NEAR_LOCAL].index,
                            .destination = near.memory[NEAR_LOCAL],
                            .length = ASKED_LENGTH,
                            .cookie = COOKIE};
    struct fabric_write w = {.peer = 1,
                             .memory = near.registered[NEAR_LOCAL].index,
                             .source = near.memory[NEAR_LOCAL],
                             .length = ASKED_LENGTH,
                             .cookie = COOKIE,
                             .placed = true};

    if (what == A_READ)
        CU_ASSERT_EQUAL(fabric_post_read(near.fabric, &r), 0);
    if (what == A_WRITE)
        CU_ASSERT_EQUAL(fabric_post_write(near.fabric, &w), 0);
}

/* Reads the fabric's frame at the peer. */
static void hear(int fd, enum asked what)
{
    struct {
        struct stream_frame frame;
        uint8_t payload[ASKED_LENGTH];
    } heard;
    size_t size = what == NOTHING ? 0 : what == A_READ ? FRAME : sizeof(heard);

    CU_ASSERT_EQUAL(raw_take(&near, fd, &heard, size), size);
}

struct row {
    struct stream_frame frame;
    enum key key; /* key of the frame, except in a DONE */
    enum asked asked;
    uint32_t payload; /* bytes sent after the frame */
    int broken;       /* status with which the link breaks, or 0 */
    int answered;     /* errno in the answering DONE; -1: no answer */
    int ended;        /* where the link stays: the operation's result; 1: not ended */
};

static const struct row broken_rules[] = {
    /* unknown kinds */
    {{.kind = 0}, GOOD, A_READ, 0, -EPROTO, -1, 0},
    {{.kind = 5}, GOOD, A_WRITE, 0, -EPROTO, -1, 0},
    {{.kind = 255}, GOOD, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_WRITE, .zero = 1}, GOOD, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_READ, .zero = 0x8000}, GOOD, A_READ, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA, .zero = 1, .length = 64}, GOOD, A_READ, 64, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .zero = 1}, GOOD, A_WRITE, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_WRITE, .flags = 4}, GOOD, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_WRITE, .flags = 0x82}, GOOD, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_READ, .flags = STREAM_ANNOUNCE}, GOOD, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_READ, .flags = STREAM_PLACED}, GOOD, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA, .flags = 1, .length = 64}, GOOD, A_READ, 64, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .flags = 1}, GOOD, A_WRITE, 0, -EPROTO, -1, 0},
    /* writes without an answer, refused by ending the link */
    {{.kind = STREAM_WRITE, .length = 8}, WRONG, A_READ, 8, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .length = 8}, ELSEWHERE, NOTHING, 8, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .length = 8}, NONE, NOTHING, 8, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .length = 8}, READ_ONLY, A_WRITE, 8, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .length = 8}, LOCAL, NOTHING, 8, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .address = M, .length = 1}, GOOD, NOTHING, 1, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .length = M + 1}, GOOD, NOTHING, 64, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .address = 1, .length = M}, GOOD, NOTHING, 64, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .address = M + 1}, GOOD, NOTHING, 0, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .address = UINT64_MAX, .length = 1}, GOOD, A_READ, 1, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .address = UINT64_MAX - 7, .length = 16},
     GOOD,
     NOTHING,
     16,
     -EACCES,
     -1,
     0},
    {{.kind = STREAM_WRITE, .length = UINT64_MAX}, GOOD, NOTHING, 64, -EACCES, -1, 0},
    {{.kind = STREAM_WRITE, .address = 1, .length = UINT64_MAX}, GOOD, NOTHING, 64, -EACCES, -1, 0},
    /* writes with an answer, refused by that answer */
    {{.kind = STREAM_WRITE, .flags = 2, .length = 8}, WRONG, A_READ, 8, 0, EACCES, 1},
    {{.kind = STREAM_WRITE, .flags = 3, .length = 8}, ELSEWHERE, NOTHING, 8, 0, EACCES, 1},
    {{.kind = STREAM_WRITE, .flags = 2, .length = 8}, READ_ONLY, A_WRITE, 8, 0, EACCES, 1},
    {{.kind = STREAM_WRITE, .flags = 3, .length = 8}, LOCAL, NOTHING, 8, 0, EACCES, 1},
    {{.kind = STREAM_WRITE, .flags = 2, .address = M, .length = 1}, GOOD, NOTHING, 1, 0, EACCES, 1},
    {{.kind = STREAM_WRITE, .flags = 2, .length = M + 1},
     GOOD,
     NOTHING,
     NEAR_MEMORY + 1,
     0,
     EACCES,
     1},
    {{.kind = STREAM_WRITE, .flags = 2, .address = M + 1}, GOOD, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_WRITE, .flags = 2, .address = UINT64_MAX - 7, .length = 16},
     GOOD,
     NOTHING,
     16,
     0,
     EACCES,
     1},
    /* the last allowed address */
    {{.kind = STREAM_WRITE, .flags = 2, .address = M}, GOOD, NOTHING, 0, 0, 0, 1},
    /* reads */
    {{.kind = STREAM_READ, .length = 8}, WRONG, A_READ, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .length = 8}, ELSEWHERE, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .length = 8}, WRITE_ONLY, A_WRITE, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .length = 8}, LOCAL, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .length = M + 1}, GOOD, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .address = M, .length = 1}, GOOD, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .address = M + 1}, GOOD, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .length = UINT64_MAX}, GOOD, NOTHING, 0, 0, EACCES, 1},
    {{.kind = STREAM_READ, .address = UINT64_MAX - 7, .length = 16},
     GOOD,
     NOTHING,
     0,
     0,
     EACCES,
     1},
    /* answers */
    {{.kind = STREAM_DATA, .length = 64}, NONE, NOTHING, 64, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA}, NONE, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA, .length = 64}, NONE, A_WRITE, 64, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA, .length = 65}, NONE, A_READ, 65, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA, .length = 0}, NONE, A_READ, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DATA, .length = UINT64_MAX}, NONE, A_READ, 65, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE}, NONE, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .key = 13}, NONE, NOTHING, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .key = 0}, NONE, A_READ, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .key = 4096}, NONE, A_READ, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .key = UINT64_MAX}, NONE, A_WRITE, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .length = 1}, NONE, A_WRITE, 0, -EPROTO, -1, 0},
    {{.kind = STREAM_DONE, .key = 4095}, NONE, A_READ, 0, 0, -1, -4095},
    {{.kind = STREAM_DONE, .key = 13}, NONE, A_READ, 0, 0, -1, -13},
    {{.kind = STREAM_DONE, .key = 13}, NONE, A_WRITE, 0, 0, -1, -13},
    {{.kind = STREAM_DONE, .key = 0}, NONE, A_WRITE, 0, 0, -1, 0},
};

static void break_rule(const struct row *row)
{
    static uint8_t bytes[FRAME + NEAR_MEMORY + 1];
    struct stream_frame frame = row->frame;
    int fd, other;

    near_begin(&near, NULL);
    fd = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    ask_for(row->asked);
    hear(fd, row->asked);
    if (frame.kind != STREAM_DONE)
        frame.key = key_of(row->key);
    memset(bytes, 0x5b, sizeof(bytes));
    memcpy(bytes, &frame, FRAME);
    CU_ASSERT_TRUE(raw_send(&near, fd, bytes, FRAME + row->payload));
    if (row->broken) {
        CU_ASSERT_TRUE(raw_ends(&near, fd));
        CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
        CU_ASSERT_EQUAL(near.peers[1].status, row->broken);
        if (row->asked != NOTHING) {
            CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
            CU_ASSERT_EQUAL(near.status[COOKIE], row->broken);
        }
    } else {
        if (row->answered >= 0)
            CU_ASSERT_TRUE(raw_done_comes(&near, fd, (uint64_t)row->answered));
        CU_ASSERT_TRUE(raw_alive(&near, fd));
        CU_ASSERT_EQUAL(near.peers[1].broken, 0);
        if (row->ended <= 0 && row->asked != NOTHING) {
            CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
            CU_ASSERT_EQUAL(near.status[COOKIE], row->ended);
        } else {
            CU_ASSERT_EQUAL(near.ended_count, 0);
        }
    }
    CU_ASSERT_TRUE(raw_alive(&near, other));
    CU_ASSERT_EQUAL(near.peers[1].broken, row->broken != 0);
    CU_ASSERT_EQUAL(near.peers[2].broken, 0);
    CU_ASSERT_EQUAL(near.peers[1].arrived, 0);
    CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0); /* ends what is under way, once */
    if (row->asked != NOTHING)
        CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
    CU_ASSERT_EQUAL(near.ended_count, row->asked != NOTHING);
    for (int i = 0; i < NEAR_MEMORIES; i++)
        CU_ASSERT_TRUE(near_untouched(&near, (enum near_memory)i));
    close(fd);
    close(other);
    near_finish(&near);
}

/* An answer comes in parts. After each part the read has ended with `status`, or, where that is 1,
 * is still under way. */
static void parts_of_an_answer(void)
{
    static const struct {
        struct stream_frame frame;
        int status, broken;
    } rows[][3] = {
        {{{.kind = STREAM_DATA, .length = 1}, 1, 0},
         {{.kind = STREAM_DATA, .length = 62}, 1, 0},
         {{.kind = STREAM_DATA, .length = 1}, 0, 0}},
        {{{.kind = STREAM_DATA, .length = 63}, 1, 0},
         {{.kind = STREAM_DATA, .length = 2}, -EPROTO, -EPROTO}},
        {{{.kind = STREAM_DATA, .length = 63}, 1, 0},
         {{.kind = STREAM_DATA, .length = 0}, -EPROTO, -EPROTO}},
        {{{.kind = STREAM_DATA, .length = 63}, 1, 0},
         {{.kind = STREAM_DONE, .key = 13}, -EPROTO, -EPROTO}},
    };
    uint8_t bytes[FRAME + ASKED_LENGTH];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t came = 0;
        int fd, other, descriptor;

        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        other = raw_peer(&near, 2);
        ask_for(A_READ);
        hear(fd, A_READ);
        for (size_t j = 0; j < 3 && rows[i][j].frame.kind != 0; j++) {
            struct stream_frame frame = rows[i][j].frame;

            memset(bytes, (int)(0x50 + j), sizeof(bytes));
            memcpy(bytes, &frame, FRAME);
            CU_ASSERT_TRUE(raw_send(&near, fd, bytes, FRAME + frame.length));
            CU_ASSERT_TRUE(near_rest(&near, &descriptor));
            if (rows[i][j].status <= 0)
                CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
            CU_ASSERT_EQUAL(near.ended_count, rows[i][j].status <= 0);
            CU_ASSERT_EQUAL(near.peers[1].status, rows[i][j].broken);
            for (uint64_t at = 0; at < frame.length && !rows[i][j].broken; at++)
                CU_ASSERT_EQUAL(near.memory[NEAR_LOCAL][came + at], 0x50 + j);
            came += frame.length;
        }
        CU_ASSERT_EQUAL(near.ended[COOKIE], 1);
        CU_ASSERT_TRUE(raw_alive(&near, other));
        close(fd);
        close(other);
        near_finish(&near);
    }
}

static void rules(void)
{
    for (size_t i = 0; i < sizeof(broken_rules) / sizeof(broken_rules[0]); i++) {
        unsigned before = CU_get_number_of_failures();

        break_rule(&broken_rules[i]);
        if (CU_get_number_of_failures() > before)
            (void)fprintf(stderr, "row %zu\n", i);
    }
}

/* A payload without end: the fabric reads and drops it until the peer hangs up. */
static void endless(void)
{
    static uint8_t bytes[1u << 20];
    struct stream_frame frame = {
        .kind = STREAM_WRITE, .flags = STREAM_PLACED, .length = UINT64_MAX};
    int fd, other;

    near_begin(&near, NULL);
    fd = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    frame.key = near.registered[NEAR_ALL].key;
    CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    for (int i = 0; i < 8; i++)
        CU_ASSERT_TRUE(raw_send(&near, fd, bytes, sizeof(bytes)));
    CU_ASSERT_TRUE(raw_alive(&near, other));
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    CU_ASSERT_TRUE(near_untouched(&near, NEAR_ALL));
    close(fd);
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
    CU_ASSERT_EQUAL(near.peers[1].status, -ECONNRESET);
    close(other);
    near_finish(&near);
}

/* A peer reads no answers: the fabric holds at most 1024 of them for it, of reads and writes
 * together. */
static void unread_answers(void)
{
    enum { LENGTH = 8192, MORE = 600 };
    enum { NO_MORE, READS, WRITES, ROWS };
    struct stream_frame frames[STREAM_ANSWERS + MORE];

    for (int row = NO_MORE; row < ROWS; row++) {
        static uint8_t answer[FRAME + LENGTH];
        uint32_t count = STREAM_ANSWERS + (row == READS ? MORE : 0);
        int fd, other, descriptor;

        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        other = raw_peer(&near, 2);
        for (uint32_t i = 0; i < count; i++)
            frames[i] = (struct stream_frame){
                .kind = STREAM_READ, .length = LENGTH, .key = near.registered[NEAR_READ_ONLY].key};
        CU_ASSERT_TRUE(raw_send(&near, fd, frames, count * FRAME));
        if (row == WRITES) {
            const struct stream_frame write = {.kind = STREAM_WRITE,
                                               .flags = STREAM_PLACED,
                                               .length = LENGTH,
                                               .key = near.registered[NEAR_WRITE_ONLY].key};

            CU_ASSERT_TRUE(near_rest(&near, &descriptor));
            for (int i = 0; i < MORE && near.peers[1].broken == 0; i++) {
                CU_ASSERT_TRUE(raw_send(&near, fd, &write, FRAME));
                CU_ASSERT_TRUE(near_rest(&near, &descriptor));
                CU_ASSERT_EQUAL(near.peers[1].broken, 0); /* its answer is due at its end */
                CU_ASSERT_TRUE(raw_send(&near, fd, answer, LENGTH));
                CU_ASSERT_TRUE(near_rest(&near, &descriptor));
            }
        }
        if (row != NO_MORE) {
            CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
            CU_ASSERT_EQUAL(near.peers[1].status, -EPROTO);
        } else {
            CU_ASSERT_TRUE(near_rest(&near, &descriptor));
            for (uint32_t i = 0; i < count; i++) {
                CU_ASSERT_EQUAL(raw_take(&near, fd, answer, sizeof(answer)), sizeof(answer));
                CU_ASSERT_EQUAL(answer[0], STREAM_DATA);
                CU_ASSERT_EQUAL(answer[FRAME], 0xa0 + NEAR_READ_ONLY);
                CU_ASSERT_EQUAL(answer[FRAME + LENGTH - 1], 0xa0 + NEAR_READ_ONLY);
            }
            CU_ASSERT_TRUE(raw_alive(&near, fd));
        }
        CU_ASSERT_TRUE(raw_alive(&near, other));
        close(fd);
        close(other);
        near_finish(&near);
    }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Two writes, a read and an empty write are carried out, however the stream is cut. */
static void pieces(void)
{
    for (uint32_t piece = 1; piece <= PIECES; piece++) {
        struct {
            struct stream_frame first;
            uint8_t one[40];
            struct stream_frame second;
            uint8_t two[8];
            struct stream_frame read, empty;
        } words;
        uint8_t answers[2 * FRAME + 40 + FRAME];
        const struct stream_frame *data = (const struct stream_frame *)(void *)(answers + FRAME);
        uint64_t key;
        int fd;

        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        key = near.registered[NEAR_ALL].key;
        words.first = (struct stream_frame){.kind = STREAM_WRITE,
                                            .flags = 3,
                                            .immediate = 1,
                                            .length = 40,
                                            .address = 100,
                                            .key = key};
        words.second = (struct stream_frame){.kind = STREAM_WRITE,
                                             .flags = 1,
                                             .immediate = 2,
                                             .length = 8,
                                             .address = 108,
                                             .key = key};
        words.read =
            (struct stream_frame){.kind = STREAM_READ, .length = 40, .address = 100, .key = key};
        words.empty =
            (struct stream_frame){.kind = STREAM_WRITE, .flags = 3, .immediate = 3, .key = key};
        memset(words.one, 1, sizeof(words.one));
        memset(words.two, 2, sizeof(words.two));
        for (uint32_t at = 0; at < sizeof(words); at += piece) {
            uint32_t left = (uint32_t)sizeof(words) - at;

            CU_ASSERT_TRUE(
                raw_send(&near, fd, (uint8_t *)&words + at, left < piece ? left : piece));
            (void)near_poll(&near);
        }
        CU_ASSERT_EQUAL(raw_take(&near, fd, answers, sizeof(answers)), sizeof(answers));
        memset(words.one + 8, 2, 8);
        CU_ASSERT_EQUAL(answers[0], STREAM_DONE);
        CU_ASSERT_TRUE(data->kind == STREAM_DATA && data->length == 40);
        CU_ASSERT_EQUAL(memcmp(answers + 2 * FRAME, words.one, 40), 0);
        CU_ASSERT_EQUAL(answers[2 * FRAME + 40], STREAM_DONE);
        CU_ASSERT_EQUAL(near.peers[1].arrived, 3);
        CU_ASSERT_EQUAL(near.peers[1].disorder, 0);
        CU_ASSERT(near.fabric->received > 0);
        close(fd);
        near_finish(&near);
    }
}

/* Many writes come at once, and then the peer hangs up: all writes arrive, in order, before the
 * loss is reported, with large and with small polls. */
static void many_then_gone(void)
{
    enum { MANY = 3000 };
    static struct stream_frame frames[MANY];
    static const int rooms[] = {1, 2, 16, 64};

    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        int fd;

        near_begin(&near, NULL);
        near.room = rooms[i];
        fd = raw_peer(&near, 1);
        raw_announcements(&near, frames, MANY);
        CU_ASSERT_TRUE(raw_send(&near, fd, frames, sizeof(frames)));
        close(fd);
        CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
        CU_ASSERT_EQUAL(near.peers[1].arrived_when_broken, MANY);
        CU_ASSERT_EQUAL(near.peers[1].disorder, 0);
        CU_ASSERT_EQUAL(near.peers[1].status, -ECONNRESET);
        near_finish(&near);
    }
}

/* ---- hanging up ------------------------------------------------------------------------------ */

/* The peer hangs up in the middle of a frame, a payload or an answer, in order or by a reset. */
static void hang_up(void)
{
    static const struct {
        uint32_t sent;
        struct stream_frame frame;
        enum asked asked;
    } rows[] = {
        {0, {.kind = 0}, A_READ},
        {1, {.kind = STREAM_WRITE, .length = 8}, A_WRITE},
        {31, {.kind = STREAM_WRITE, .length = 8}, NOTHING},
        {32, {.kind = STREAM_WRITE, .length = 8}, A_READ},
        {39, {.kind = STREAM_WRITE, .length = 8}, NOTHING},
        {FRAME + 5000, {.kind = STREAM_WRITE, .length = 10000}, A_WRITE},
        {FRAME + 5000, {.kind = STREAM_WRITE, .length = 9096}, NOTHING},
        {31, {.kind = STREAM_DATA, .length = ASKED_LENGTH}, A_READ},
        {FRAME, {.kind = STREAM_DATA, .length = ASKED_LENGTH}, A_READ},
        {FRAME + ASKED_LENGTH - 1, {.kind = STREAM_DATA, .length = ASKED_LENGTH}, A_READ},
        {31, {.kind = STREAM_DONE}, A_WRITE},
    };
    uint8_t bytes[FRAME + 5000];

    for (size_t i = 0; i < 4 * sizeof(rows) / sizeof(rows[0]); i++) {
        enum asked asked = rows[i / 4].asked;
        struct stream_frame frame = rows[i / 4].frame;
        int fd, other;

        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        other = raw_peer(&near, 2);
        ask_for(asked);
        hear(fd, asked);
        frame.key = frame.kind == STREAM_WRITE ? near.registered[NEAR_ALL].key : 0;
        memset(bytes, 0xa0, sizeof(bytes));
        memcpy(bytes, &frame, FRAME);
        CU_ASSERT_TRUE(raw_send(&near, fd, bytes, rows[i / 4].sent));
        if (i % 2)
            (void)near_poll(&near);
        if (i % 4 < 2)
            close(fd);
        else
            reset(fd);
        CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
        CU_ASSERT_EQUAL(near.peers[1].status, -ECONNRESET);
        if (asked != NOTHING) {
            CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
            CU_ASSERT_EQUAL(near.status[COOKIE], -ECONNRESET);
        }
        CU_ASSERT_TRUE(raw_alive(&near, other));
        CU_ASSERT_EQUAL(near.peers[1].broken, 1);
        CU_ASSERT_EQUAL(near.peers[1].arrived, 0);
        CU_ASSERT_EQUAL(near.ended_count, asked != NOTHING);
        close(other);
        near_finish(&near);
    }
}

/* The peer hangs up while answers and our writes wait to be sent to it. */
static void gone_with_a_queue(void)
{
    enum { READS = 1000, WRITES = 100 };
    static struct stream_frame frames[READS];

    for (int how = 0; how < 2; how++) {
        int fd, other;

        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        other = raw_peer(&near, 2);
        for (uint32_t i = 0; i < READS; i++)
            frames[i] = (struct stream_frame){
                .kind = STREAM_READ, .length = NEAR_MEMORY, .key = near.registered[NEAR_ALL].key};
        CU_ASSERT_TRUE(raw_send(&near, fd, frames, sizeof(frames)));
        CU_ASSERT_TRUE(raw_alive(&near, other)); /* answers fill the socket */
        for (uint32_t i = 0; i < WRITES; i++)
            CU_ASSERT_EQUAL(
                fabric_post_write(
                    near.fabric, &(struct fabric_write){.peer = 1,
                                                        .memory = near.registered[NEAR_LOCAL].index,
                                                        .source = near.memory[NEAR_LOCAL],
                                                        .length = 100,
                                                        .cookie = i}),
                0);
        if (how == 0)
            reset(fd);
        else
            CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0);
        CU_ASSERT_TRUE(near_until(&near, &near.ended_count, WRITES));
        for (uint32_t i = 0; i < WRITES; i++)
            CU_ASSERT_EQUAL(near.status[i], how == 0 ? -ECONNRESET : -ECANCELED);
        CU_ASSERT_TRUE(raw_alive(&near, other));
        CU_ASSERT_EQUAL(near.ended_count, WRITES);
        CU_ASSERT_EQUAL(near.peers[1].broken, how == 0);
        if (how == 1)
            close(fd);
        close(other);
        near_finish(&near);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"broken rules", rules},
        {"an answer in parts", parts_of_an_answer},
        {"a payload without end", endless},
        {"answers that are not read", unread_answers},
        {"frames in pieces", pieces},
        {"many frames, then the end", many_then_gone},
        {"hanging up", hang_up},
        {"gone with a queue", gone_with_a_queue},
        CU_TEST_INFO_NULL,
    };

    return suite_run("stream", tests);
}
