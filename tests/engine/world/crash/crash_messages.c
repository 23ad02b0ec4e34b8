/* The scenarios of crash_messages.h. End 0 sends requests to end 1; replies are at random. Thread:
 * one. */
#include "tests/engine/world/crash/crash_messages.h"

#include <errno.h>

static void ask(struct flood *f, uint8_t kind, uint16_t flags, uint32_t length, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        flood_send(f, 0, 1, kind, flags, length);
    flood_finish(f);
}

static void run_short(struct flood *f)
{
    ask(f, SUBMIT_SHORT, 0, 0, 3);
    ask(f, SUBMIT_SHORT, SUBMIT_NO_REPLY, 0, 1);
}

static void run_medium(struct flood *f)
{
    ask(f, SUBMIT_MEDIUM, 0, 200, 3);
}

static void run_long(struct flood *f)
{
    ask(f, SUBMIT_LONG, 0, 900, 2);
    ask(f, SUBMIT_LONG, SUBMIT_NO_REPLY, 100, 2);
}

static void run_long_protocols(struct flood *f)
{
    ask(f, SUBMIT_LONG, SUBMIT_ORDERED, 700, 1);
    ask(f, SUBMIT_LONG, SUBMIT_REASSEMBLE, 700, 1);
    ask(f, SUBMIT_LONG, SUBMIT_CHAIN, 700, 1);
}

/* Both ends send requests, and end 1 takes no events for a while: this leads to spill, STOP,
 * refusal and GO. */
static void run_message_flood(struct flood *f)
{
    f->silent = 1u << 1;
    for (int i = 0; i < 8; i++) {
        flood_send(f, 0, 1, SUBMIT_MEDIUM, SUBMIT_NO_REPLY, 250);
        flood_send(f, 0, 1, SUBMIT_MEDIUM, 0, 250);
        flood_send(f, 1, 0, SUBMIT_SHORT, 0, 0);
        flood_turn(f);
    }
    for (int i = 0; i < 40; i++)
        flood_turn(f);
    flood_finish(f);
}

static void run_no_handler(struct flood *f)
{
    message_handlers(&f->client[1], false);
    for (int i = 0; i < 2; i++) {
        uint32_t number = flood_send(f, 0, 1, SUBMIT_SHORT, 0, 0);

        if (number < FLOOD_MESSAGES)
            f->messages[number].status = -ENOSYS;
    }
    flood_finish(f);
}

static void run_asked_dies(struct flood *f)
{
    f->silent = 1u << 1; /* rank 1 answers no request */
    for (int i = 0; i < 3; i++) {
        flood_send(f, 0, 1, SUBMIT_SHORT, 0, 0);
        flood_send(f, 1, 0, SUBMIT_MEDIUM, 0, 50);
    }
    for (int i = 0; i < 40; i++)
        flood_turn(f);
    flood_dies(f, 1);
    flood_finish(f);
}

const struct crash_scenario crash_message_scenarios[] = {
    {"short messages", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, run_short, 0},
    {"medium messages", NULL, 0, ENGINE_PROTOCOL_AUTO, 1, run_medium, 0},
    {"long messages, ordered", NULL, UINT64_MAX, ENGINE_PROTOCOL_ORDERED, 1, run_long, 0},
    {"long messages, reassembled", NULL, 0, ENGINE_PROTOCOL_REASSEMBLE, 1, run_long, 0},
    {"long messages, chained", NULL, 0, ENGINE_PROTOCOL_CHAIN, 1, run_long, 0},
    {"long messages, striped", NULL, 0, ENGINE_PROTOCOL_AUTO, 2, run_long, 0},
    {"long messages, each its own way", NULL, 4096, ENGINE_PROTOCOL_AUTO, 1, run_long_protocols, 0},
    {"messages both ways, spilled", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, run_message_flood,
     0},
    {"no handler", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, run_no_handler, 0},
    {"who was asked dies", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, run_asked_dies, 0},
};

const size_t crash_message_count =
    sizeof(crash_message_scenarios) / sizeof(crash_message_scenarios[0]);
