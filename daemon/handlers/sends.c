/* Owns nothing: the helpers that the host carries out (sends.h). Thread: the thread that runs the
 * handler. */
#include "daemon/handlers/sends.h"

#include <errno.h>

static uint64_t wrong_argument(struct run *r, uint64_t value)
{
    run_fail(r, RUN_BAD_ARGUMENT, value);
    return 0;
}

static uint64_t carry_out(struct run *r, const struct run_send *send)
{
    int rc = r->host->send(r->self, send);

    r->said_again |= rc == -EAGAIN;
    return (uint64_t)(int64_t)rc;
}

/* ---- parts of arguments -----------------------------------------------------------------------
 */

/* Checks a target's number. False: there is no such target, and the run has failed. */
static bool take_target(struct run *r, uint64_t target, struct run_send *send)
{
    target = (uint32_t)target;
    send->target = (uint32_t)window_index(target, r->targets);
    if (target < r->targets)
        return true;
    run_fail(r, RUN_BAD_ARGUMENT, target);
    return false;
}

static bool take_flags(struct run *r, uint64_t flags, struct run_send *send)
{
    uint32_t counter = flags & SEND_COUNTER;

    send->flags = (uint32_t)flags & SEND_QUIET;
    send->counter = HANDLER_NONE;
    if (counter > 0)
        send->counter = (uint32_t)window_index(counter - 1, HANDLER_COUNTERS);
    if ((flags & ~(uint64_t)SEND_FLAGS) == 0 && counter <= HANDLER_COUNTERS)
        return true;
    run_fail(r, RUN_BAD_ARGUMENT, flags);
    return false;
}

/* Finds a payload: n bytes in any window, which the host copies. */
static bool take_payload(struct run *r, uint64_t address, uint64_t n, struct run_send *send)
{
    if (n > SEND_BYTES_MAX) {
        run_fail(r, RUN_BAD_ARGUMENT, n);
        return false;
    }
    if (n == 0)
        return true;
    if (!run_take(r, (n + 31) / 32))
        return false;
    send->from = run_at(r, WINDOW_READ, address, n);
    send->length = n & ~window_wrong(&r->windows, WINDOW_READ, address, n);
    return send->from != NULL;
}

static bool take_arguments(struct run *r, uint64_t address, uint64_t count, struct run_send *send)
{
    uint64_t known = window_index(count, HANDLER_ARGUMENTS_MAX + 1);

    if (known != count) {
        run_fail(r, RUN_BAD_ARGUMENT, count);
        return false;
    }
    if (known == 0)
        return true;
    send->args = run_at(r, WINDOW_READ, address, 8 * known);
    send->arguments =
        (uint32_t)(known & ~window_wrong(&r->windows, WINDOW_READ, address, 8 * known));
    return send->args != NULL;
}

/* Checks a range of the offload's region, which the host reads or writes later. */
static bool take_host_range(struct run *r, enum window_access access, uint64_t offset, uint64_t n,
                            struct run_send *send)
{
    uint64_t address = handler_address(HANDLER_HOST, offset & HANDLER_OFFSET_MASK);

    if (offset > HANDLER_OFFSET_MASK) {
        run_fail(r, RUN_BAD_ADDRESS, offset);
        return false;
    }
    run_at(r, access, address, n); /* NULL is no fault where there is no window, and n is 0 */
    if (r->fault != RUN_NO_FAULT)
        return false;
    send->host_offset = offset & ~window_wrong(&r->windows, access, address, n);
    send->length = n & ~window_wrong(&r->windows, access, address, n);
    return true;
}

/* ---- sends ------------------------------------------------------------------------------------
 */

uint64_t send_put(struct run *r, const uint64_t *reg)
{
    struct run_send send = {.helper = HELPER_PUT, .offset = reg[2], .id = reg[5]};

    if (!take_target(r, reg[1], &send) || !take_flags(r, reg[1] >> 32, &send) ||
        !take_payload(r, reg[3], reg[4], &send))
        return 0;
    return carry_out(r, &send);
}

uint64_t send_put_host(struct run *r, const uint64_t *reg)
{
    struct run_send send = {.helper = HELPER_PUT_HOST, .offset = reg[2], .id = reg[5]};

    if (!take_target(r, reg[1], &send) || !take_flags(r, reg[1] >> 32, &send) ||
        !take_host_range(r, WINDOW_READ, reg[3], reg[4], &send))
        return 0;
    return carry_out(r, &send);
}

uint64_t send_get(struct run *r, const uint64_t *reg)
{
    struct run_send send = {.helper = HELPER_GET, .offset = reg[2], .id = reg[5]};

    if (!take_target(r, reg[1], &send) || !take_flags(r, reg[1] >> 32, &send) ||
        !take_host_range(r, WINDOW_WRITE, reg[3], reg[4], &send))
        return 0;
    return carry_out(r, &send);
}

uint64_t send_atomic(struct run *r, const uint64_t *reg)
{
    struct run_send send = {
        .helper = HELPER_ATOMIC, .offset = reg[2], .value = reg[4], .id = reg[5]};
    uint64_t op = window_index(reg[3] & 255, WORD_OPS);
    uint64_t type = window_index(reg[3] >> 8, WORD_TYPES);
    uint8_t code = word_code((enum word_op)op, (enum word_type)type);

    if ((type << 8 | op) != reg[3] || !word_code_valid(code) || word_is_swap_if(code) ||
        op == WORD_READ)
        return wrong_argument(r, reg[3]);
    send.code = code;
    if (!take_target(r, reg[1], &send) || !take_flags(r, reg[1] >> 32, &send))
        return 0;
    return carry_out(r, &send);
}

uint64_t send_message(struct run *r, const uint64_t *reg)
{
    struct run_send send = {.helper = HELPER_MESSAGE, .counter = HANDLER_NONE};
    uint64_t index = window_index(reg[1] >> 32, HANDLER_INDICES);

    if (index != reg[1] >> 32)
        return wrong_argument(r, reg[1] >> 32);
    send.index = (uint32_t)index;
    if (!take_target(r, reg[1], &send) || !take_arguments(r, reg[2], reg[3], &send) ||
        !take_payload(r, reg[4], reg[5], &send))
        return 0;
    return carry_out(r, &send);
}

uint64_t send_reply(struct run *r, const uint64_t *reg)
{
    struct run_send send = {.helper = HELPER_REPLY, .counter = HANDLER_NONE};

    if (!take_arguments(r, reg[1], reg[2], &send) || !take_payload(r, reg[3], reg[4], &send))
        return 0;
    return carry_out(r, &send);
}

uint64_t send_event(struct run *r, const uint64_t *reg)
{
    struct run_send send = {
        .helper = HELPER_EVENT, .counter = HANDLER_NONE, .id = reg[1], .value = reg[2]};

    return carry_out(r, &send);
}

/* ---- counters and questions -------------------------------------------------------------------
 */

/* Checks a counter's number. False: there is no such counter, and the run has failed. */
static bool take_counter(struct run *r, uint64_t value, uint32_t *counter)
{
    *counter = (uint32_t)window_index(value, HANDLER_COUNTERS);
    if (*counter == value)
        return true;
    run_fail(r, RUN_BAD_ARGUMENT, value);
    return false;
}

uint64_t ask_target_of(struct run *r, const uint64_t *reg)
{
    if (!run_take(r, r->targets / RUN_TARGETS))
        return HANDLER_NONE;
    return r->host->target_of(r->self, reg[1]);
}

uint64_t ask_counter(struct run *r, const uint64_t *reg)
{
    uint32_t counter;

    return take_counter(r, reg[1], &counter) ? r->host->counter(r->self, counter) : 0;
}

uint64_t do_counter_add(struct run *r, const uint64_t *reg)
{
    uint32_t counter;

    if (take_counter(r, reg[1], &counter))
        r->host->counter_set(r->self, counter, r->host->counter(r->self, counter) + reg[2]);
    return 0;
}

uint64_t do_counter_set(struct run *r, const uint64_t *reg)
{
    uint32_t counter;

    if (take_counter(r, reg[1], &counter))
        r->host->counter_set(r->self, counter, reg[2]);
    return 0;
}

uint64_t ask_now(struct run *r, const uint64_t *reg)
{
    (void)reg;
    return r->host->now(r->self);
}

uint64_t do_trace(struct run *r, const uint64_t *reg)
{
    r->host->trace(r->self, reg[1], reg[2]);
    return 0;
}
