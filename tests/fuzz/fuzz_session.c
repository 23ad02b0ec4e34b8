/*
 * Fuzzes a session that a broken or hostile daemon writes, as the library reads it. An input is a
 * sequence of (control byte, number, words). The words go into an event ring, repaired where the
 * control byte says so, or anywhere into the header; in between the library submits, probes, arms
 * and replies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/channel/channel.h"

#define RING SESSION_RING_MIN

enum {
    RING_MASK = 3,    /* 0: header; 1, 2, 3: local, remote, reply events */
    REPAIR = 1 << 2,  /* the event's size, and its id's length */
    PUBLISH = 1 << 3, /* the ring's tail is set after the words */
    PROBE = 1 << 4,
    SUBMIT = 1 << 5,
    MESSAGES = 1 << 6, /* handlers are registered */
    ARM = 1 << 7,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(4096) uint8_t memory[SESSION_DATA_OFFSET + 5 * RING];

static void format(void)
{
    struct session_shared *shared = (struct session_shared *)(void *)memory;

    memset(memory, 0, sizeof(memory));
    shared->magic = SESSION_MAGIC;
    shared->version = SESSION_VERSION;
    shared->sizes = (struct session_sizes){RING, RING, RING, RING, RING};
    shared->message_max = message_bytes_max(256);
    atomic_store(&shared->state, SESSION_LIVE);
}

/* Reads all that the block names, and replies where a reply is expected. */
static int deliver(void *context, const struct event_record *event, int32_t *status)
{
    struct channel *ch = context;
    const struct message *block = (const struct message *)(event + 1);
    const uint8_t *bytes = (const uint8_t *)(block + 1);
    const struct submit_record reply = {.kind = SUBMIT_SHORT,
                                        .rid = block->token,
                                        .rid_len = sizeof(struct message),
                                        .flags = SUBMIT_NO_LCE};
    volatile uint8_t sum = 0;
    uint8_t *at;

    for (uint32_t i = 0; i < 8u * block->arguments + block->payload_len; i++)
        sum = (uint8_t)(sum + bytes[i]);
    if (event->kind == EVENT_REQUEST && block->token != UINT32_MAX &&
        channel_begin(ch, &ch->reply_submit, &reply, &at) == 0) {
        memset(at, 0, sizeof(struct message));
        (void)channel_commit(ch, &ch->reply_submit);
    }
    *status = 0;
    return 0;
}

/* Writes an event at the place that the reader reads next. */
static void post(struct channel *ch, uint8_t how, const uint8_t *words, uint32_t bytes)
{
    struct inbox *const inboxes[] = {&ch->local, &ch->remote, &ch->reply_event};
    struct inbox *inbox = inboxes[(how & RING_MASK) - 1];
    uint8_t *data = memory + SESSION_DATA_OFFSET + (how & RING_MASK) * RING +
                    ((how & RING_MASK) == 3 ? RING : 0);
    _Alignas(8) uint8_t record[8 * 255];
    struct event_record *event = (struct event_record *)(void *)record;
    uint64_t head = inbox->ring.head;

    memcpy(record, words, bytes);
    if (how & REPAIR && bytes >= sizeof(*event)) {
        event->size = bytes;
        event->id_len = (uint16_t)(bytes - sizeof(*event));
    }
    for (uint32_t i = 0; i < bytes; i++)
        data[(head + i) % RING] = record[i];
    if (how & PUBLISH)
        atomic_store(&inbox->ring.shared->tail, head + bytes);
}

/* Probes, and reads all bytes that an event refers to. */
static void probe(struct channel *ch)
{
    static const unsigned kinds[] = {0, PWC_REMOTE, PWC_REMOTE, PWC_LOCAL, PWC_LOCAL};
    volatile uint8_t sum = 0;

    for (unsigned i = 0; i < 10; i++) {
        struct pwc_event event;
        int rc = channel_probe(ch, PWC_ANY, kinds[i % 5], &event);

        if (rc < 0)
            return;
        for (size_t at = 0; rc == 1 && event.data && at < event.id_size; at++)
            sum = (uint8_t)(sum + ((const uint8_t *)event.data)[at]);
    }
}

static void submit(struct channel *ch, uint8_t number)
{
    const struct submit_record put = {
        .kind = SUBMIT_PUT, .lid = number, .lid_len = number, .length = 8, .flags = SUBMIT_INLINE};
    static const uint8_t bytes[256];
    static uint8_t to[256];
    const pwc_cid id = pwc_cid_bytes(bytes, number);

    (void)channel_submit(ch, &put, bytes, NULL, bytes);
    (void)pending_begin(&ch->pending, &id, number % 2, number % 3 == 0 ? to : NULL, bytes, number);
    (void)pending_begin_vector(&ch->pending, &id, number % 2, SUBMIT_GET, number);
    (void)channel_put(ch, 0, 0, bytes, 8, number, number, 0);
}

static void do_all(struct channel *ch, uint8_t how, uint8_t number)
{
    if (how & MESSAGES && !ch->deliver)
        channel_set_deliver(ch, deliver, ch);
    if (how & SUBMIT)
        submit(ch, number);
    if (how & PROBE)
        probe(ch);
    if (how & ARM) {
        (void)channel_arm(ch, 1, 0);
        channel_disarm(ch);
        (void)channel_collect(ch);
        (void)channel_run(ch);
        (void)channel_idle(ch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct channel *ch = calloc(1, sizeof(*ch));

    format();
    if (!ch || channel_init(ch, memory, sizeof(memory)) < 0)
        abort();
    if (pending_open(&ch->pending, session_local_limit(RING)) < 0)
        abort();
    while (size >= 2) {
        uint8_t how = data[0], number = data[1];
        uint32_t bytes = 8u * (number % 64);

        data += 2;
        size -= 2;
        bytes = bytes < size ? bytes : (uint32_t)size & ~7u;
        if (how & RING_MASK)
            post(ch, how, data, bytes);
        else if (bytes > 0) /* into the header, from a chosen place on */
            memcpy(memory + 64u * (number / 4 % 48), data, bytes);
        do_all(ch, how, number);
        data += bytes;
        size -= bytes;
    }
    channel_destroy(ch);
    /* channel_init refuses a senseless header; after it has accepted one, later changes of the
     * header must do no harm. */
    if (ch && channel_init(ch, memory, sizeof(memory)) == 0) {
        probe(ch);
        channel_destroy(ch);
    }
    free(ch);
    return 0;
}
