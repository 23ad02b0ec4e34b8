/* The reference model of the operations' meaning (model.h). Thread: one. */
#include "tests/engine/world/model/model.h"
#include "tests/engine/world/model/model_counters.h"
#include "tests/engine/world/model/model_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/world/pages.h"

bool model_fail(struct model *m, const char *format, ...)
{
    va_list args;

    if (m->failed)
        return false;
    m->failed = true;
    va_start(args, format);
    vsnprintf(m->failure, sizeof m->failure, format, args);
    va_end(args);
    return false;
}

/* Takes memory as it is for what is expected. Words that signals change are compared elsewhere
 * (model_signals.c). */
static void begin_end(struct model_end *e)
{
    memcpy(e->shadow, e->memory, e->length);
    memset(e->vague, 0, e->length);
    memset(e->vague + e->length - PATH_WORDS_BYTES, 1, PATH_WORDS_BYTES);
}

int model_open(struct model *m, const struct path *path)
{
    *m = (struct model){.count = path->ends, .orders_kinds = !(path->lacks & PATH_ORDERS_KINDS)};
    m->pairs = calloc((size_t)m->count * m->count, sizeof *m->pairs);
    for (uint32_t i = 0; m->pairs && i < m->count; i++) {
        struct model_end *e = &m->ends[i];

        e->peer = path->calls->peer(path->context, i);
        e->memory = path->calls->memory(path->context, i, &e->length);
        e->shadow = pages_take(e->length);
        e->vague = pages_take(e->length);
        if (!e->shadow || !e->vague)
            goto no_memory;
        begin_end(e);
    }
    for (uint32_t i = 0; m->pairs && i < m->count * m->count; i++)
        model_signals_begin(m, i / m->count, i % m->count);
    if (m->pairs)
        return 0;
no_memory:
    model_close(m);
    return -ENOMEM;
}

void model_close(struct model *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        pages_give(m->ends[i].shadow, m->ends[i].length);
        pages_give(m->ends[i].vague, m->ends[i].length);
    }
    for (uint32_t i = 0; m->pairs && i < m->count * m->count; i++)
        free(m->pairs[i].ops);
    free(m->pairs);
    free(m->ops);
    *m = (struct model){0};
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* The id is a function of the operation's number and of whether it is the local or the remote id.
 */
static uint64_t id_value(uint32_t number, bool remote)
{
    return (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) + (remote ? 1 : 2);
}

static pwc_cid id_of(uint32_t number, bool remote, uint32_t length, uint8_t *room)
{
    uint64_t value = id_value(number, remote);

    if (length == 0)
        return pwc_cid_u64(value);
    for (uint32_t i = 0; i < length; i++)
        room[i] = (uint8_t)((value >> (i % 8 * 8)) + i);
    return pwc_cid_bytes(room, length);
}

pwc_cid model_lid(const struct model *m, uint32_t number, uint8_t room[MODEL_ID_MAX])
{
    return id_of(number, false, m->ops[number].lid_len, room);
}

pwc_cid model_rid(const struct model *m, uint32_t number, uint8_t room[MODEL_ID_MAX])
{
    return id_of(number, true, m->ops[number].rid_len, room);
}

static bool id_matches(const struct model *m, uint32_t number, bool remote,
                       const struct pwc_event *event)
{
    uint8_t room[MODEL_ID_MAX];
    uint32_t length = remote ? m->ops[number].rid_len : m->ops[number].lid_len;
    pwc_cid id = id_of(number, remote, length, room);

    if (event->id_size != length)
        return false;
    return length ? memcmp(event->data, room, length) == 0 : event->id == id.value;
}

/* ---- submission ------------------------------------------------------------------------------ */

/* The end whose memory the operation writes. */
static uint32_t written_end(const struct model_op *op)
{
    return model_is_put(op) ? op->to : op->from;
}

static uint64_t written_offset(const struct model_op *op)
{
    return model_is_put(op) ? op->remote_offset : op->local_offset;
}

static uint32_t source_end(const struct model_op *op)
{
    return model_is_put(op) ? op->from : op->to;
}

static uint64_t source_offset(const struct model_op *op)
{
    return model_is_put(op) ? op->local_offset : op->remote_offset;
}

static void refresh_vague(struct model_end *e, uint64_t offset, uint64_t length, uint8_t value)
{
    memset(e->vague + offset, value, length);
}

void model_fill(struct model *m, uint32_t end, uint64_t offset, uint64_t length, uint64_t seed)
{
    struct model_end *e = &m->ends[end];

    for (uint64_t i = 0; i < length; i++)
        e->memory[offset + i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
    memcpy(e->shadow + offset, e->memory + offset, length);
    refresh_vague(e, offset, length, 0);
}

void model_accepted(struct model *m, uint32_t number)
{
    struct model_op *op = &m->ops[number];
    struct model_end *to = &m->ends[written_end(op)];
    const struct model_end *from = &m->ends[source_end(op)];

    op->accepted = true;
    if (op->status != 0 || op->length == 0 || to->dead || op->kind == PATH_ATOMIC)
        return;
    if (from->dead) {
        refresh_vague(to, written_offset(op), op->length, 1);
        return;
    }
    memcpy(to->shadow + written_offset(op), from->memory + source_offset(op), op->length);
    refresh_vague(to, written_offset(op), op->length, 0);
}

uint32_t model_submit(struct model *m, const struct model_op *op)
{
    struct model_pair *p = model_pair_of(m, op->from, op->to);

    if (m->op_count == m->op_room) {
        m->op_room = m->op_room ? 2 * m->op_room : 256;
        m->ops = realloc(m->ops, m->op_room * sizeof *m->ops);
        if (!m->ops)
            abort();
    }
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->ops = realloc(p->ops, p->room * sizeof *p->ops);
        if (!p->ops)
            abort();
    }
    p->ops[p->count++] = m->op_count;
    m->ops[m->op_count] = *op;
    m->ops[m->op_count].life = m->ends[op->to].life;
    m->ops[m->op_count].from_life = m->ends[op->from].life;
    if (op->kind == PATH_SIGNAL)
        m->ops[m->op_count].flags |= PWC_NO_RCE;
    /* Where no rank is asked, or no event is posted, such an operation may succeed until the
     * owner's death is known here. */
    if (op->shaken && op->flags & PWC_NO_RCE)
        m->ops[m->op_count].status = 0;
    return m->op_count++;
}

void model_refused(struct model *m, uint32_t number)
{
    const struct model_op *op = &m->ops[number];

    model_pair_of(m, op->from, op->to)->count--;
    m->op_count--;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Whether the operation may end without this event, so that events of later operations may come
 * first. */
static bool may_lack(const struct model_op *op, bool remote)
{
    if (remote)
        return (op->flags & (PWC_NO_RCE | PWC_UNORDERED)) || op->status != 0 || op->shaken;
    return (op->flags & PWC_UNORDERED) || ((op->flags & PWC_NO_LCE) && op->status == 0);
}

/* Whether the operation may bring this event at all. */
static bool may_have(const struct model_op *op, bool remote)
{
    if (remote)
        return !(op->flags & PWC_NO_RCE) && op->status == 0 && !op->remote_seen &&
               (!op->local_seen || op->local_status == 0 || op->local_status == -ECONNABORTED);
    if (op->local_seen)
        return false;
    return !(op->flags & PWC_NO_LCE) || (!op->ended && (op->status != 0 || op->shaken));
}

/* Whether the path keeps the events of this operation and of `kind` in order. */
static bool in_order(const struct model *m, const struct model_op *op, unsigned kind)
{
    return m->orders_kinds || !(op->flags & PWC_NOTIFY) == (kind != PWC_NOTIFICATION);
}

/* Returns the operation of this pair that the event belongs to, or UINT32_MAX, and keeps the
 * failure. */
static uint32_t match(struct model *m, uint32_t from, uint32_t to, bool remote,
                      const struct pwc_event *event)
{
    struct model_pair *p = model_pair_of(m, from, to);
    uint32_t *first = remote ? &p->remote_first : &p->local_first;
    uint32_t held = UINT32_MAX;

    while (*first < p->count) {
        const struct model_op *op = &m->ops[p->ops[*first]];

        if (!(remote ? op->remote_seen : op->local_seen))
            break;
        (*first)++;
    }
    for (uint32_t i = *first; i < p->count; i++) {
        uint32_t number = p->ops[i];
        const struct model_op *op = &m->ops[number];

        if (may_have(op, remote) && id_matches(m, number, remote, event)) {
            if (held == UINT32_MAX || (op->flags & PWC_UNORDERED))
                return number;
            model_fail(m, "%s event of operation %u (%u->%u) comes before that of %u",
                       remote ? "remote" : "local", number, from, to, held);
            return UINT32_MAX;
        }
        if (held == UINT32_MAX && !(remote ? op->remote_seen : op->local_seen) &&
            !may_lack(op, remote) && (!remote || in_order(m, op, event->kind)))
            held = number;
    }
    model_fail(
        m, "%s event at the end %u of %u->%u belongs to no operation: id %llx size %u status %d",
        remote ? "remote" : "local", remote ? to : from, from, to, (unsigned long long)event->id,
        event->id_size, event->status);
    return UINT32_MAX;
}

bool model_data_is_there(struct model *m, uint32_t number)
{
    const struct model_op *op = &m->ops[number];
    const struct model_end *to = &m->ends[written_end(op)];
    uint64_t offset = written_offset(op);

    if (op->overlapping || op->kind == PATH_ATOMIC ||
        memcmp(to->memory + offset, to->shadow + offset, op->length) == 0)
        return true;
    for (uint64_t i = 0; i < op->length; i++)
        if (!to->vague[offset + i] && to->memory[offset + i] != to->shadow[offset + i])
            return model_fail(
                m,
                "operation %u (%u->%u, %llu bytes at %llu): event before its data, first "
                "at byte %llu",
                number, op->from, op->to, (unsigned long long)op->length,
                (unsigned long long)offset, (unsigned long long)i);
    return true;
}

static bool status_allowed(const struct model_op *op, int status)
{
    if (status == op->status)
        return true;
    if (op->shaken && status == 0 && op->flags & PWC_LCE_SOURCE)
        return true; /* the source could be used again before the loss was seen */
    return op->shaken &&
           (status == -ECONNABORTED || status == -EHOSTDOWN || status == -EKEYREJECTED);
}

static bool local_event(struct model *m, uint32_t number, const struct pwc_event *event)
{
    struct model_op *op = &m->ops[number];
    struct model_end *to = &m->ends[written_end(op)];

    op->local_seen = true;
    op->local_status = event->status;
    if (!(op->flags & PWC_LCE_SOURCE) || event->status != 0)
        op->ended = true;
    if (!status_allowed(op, event->status))
        return model_fail(m, "operation %u (%u->%u flags %x length %llu) ends with %d, not %d",
                          number, op->from, op->to, op->flags, (unsigned long long)op->length,
                          event->status, op->status);
    if (event->status == 0 && (op->flags & PWC_NO_LCE))
        return model_fail(m, "operation %u has a local event in spite of PWC_NO_LCE", number);
    op->fetched = event->length;
    if (!(op->fetch && event->status == 0) &&
        event->length != (event->status == 0 ? op->length : 0))
        return model_fail(m, "operation %u: local event reports %llu bytes, not %llu", number,
                          (unsigned long long)event->length, (unsigned long long)op->length);
    if (event->status != 0) {
        if ((op->status == 0 || op->shaken) && op->length && op->kind != PATH_ATOMIC)
            refresh_vague(to, written_offset(op), op->length, 1);
        return true;
    }
    if ((op->flags & PWC_LCE_SOURCE) && model_is_put(op)) {
        if (op->shaken && !op->remote_seen && op->status == 0 && !to->dead)
            refresh_vague(to, written_offset(op), op->length, 1);
        return true;
    }
    if (to->dead)
        return true;
    return model_data_is_there(m, number) &&
           (op->kind != PATH_SIGNAL || model_signal_is_there(m, number));
}

static bool remote_event(struct model *m, uint32_t number, const struct pwc_event *event)
{
    struct model_op *op = &m->ops[number];

    op->remote_seen = true;
    if (event->kind != (op->flags & PWC_NOTIFY ? PWC_NOTIFICATION : PWC_REMOTE))
        return model_fail(m, "the remote event of operation %u has kind %d", number,
                          (int)event->kind);
    if (event->status != 0)
        return model_fail(m, "remote event of operation %u with status %d", number, event->status);
    if (event->length != op->length)
        return model_fail(m, "operation %u: remote event reports %llu bytes, not %llu", number,
                          (unsigned long long)event->length, (unsigned long long)op->length);
    return op->kind == PATH_GET || model_data_is_there(m, number);
}

bool model_event(struct model *m, uint32_t end, const struct pwc_event *event)
{
    bool remote = event->kind != PWC_LOCAL;
    uint32_t other = 0, number;

    while (other < m->count && m->ends[other].peer != event->peer)
        other++;
    if (other == m->count)
        return model_fail(m, "event at end %u from unknown peer %llx", end,
                          (unsigned long long)event->peer);
    number = remote ? match(m, other, end, true, event) : match(m, end, other, false, event);
    if (number == UINT32_MAX)
        return false;
    if (event->op != path_event_op(m->ops[number].kind))
        return model_fail(m, "the event of operation %u names the operation %d", number,
                          (int)event->op);
    if (remote)
        m->ends[end].remote_events++;
    else
        m->ends[end].local_events++;
    return remote ? remote_event(m, number, event) : local_event(m, number, event);
}

/* ---- flushes --------------------------------------------------------------------------------- */

uint64_t model_flush(struct model *m, uint32_t from, uint32_t to)
{
    if (m->flush_count == MODEL_FLUSHES_MAX) {
        model_fail(m, "more than %u flushes", MODEL_FLUSHES_MAX);
        return 0;
    }
    m->flushes[m->flush_count++] = (struct model_flush){.number = ++m->flush_numbers,
                                                        .from = from,
                                                        .to = to,
                                                        .count = model_pair_of(m, from, to)->count};
    return m->flush_numbers;
}

bool model_flushing(const struct model *m, uint32_t from)
{
    for (uint32_t i = 0; i < m->flush_count; i++)
        if (m->flushes[i].from == from)
            return true;
    return false;
}

/* Checks an operation before a flush that has ended, or of an end that is idle: its local event has
 * been seen, and its data is there. */
static bool is_flushed(struct model *m, uint32_t number)
{
    struct model_op *op = &m->ops[number];
    bool silent = op->flags & PWC_NO_LCE;

    if (op->shaken && !op->local_seen)
        return true; /* the flow is dead, and another flow has taken its place since */
    if (!silent && !op->local_seen)
        return model_fail(
            m, "operation %u (%u->%u flags %x) has had no event before its origin was flushed",
            number, op->from, op->to, op->flags);
    /* Data that was seen at the target was compared then; others may have written there since. */
    if (op->ended && (!(op->flags & PWC_LCE_SOURCE) || op->remote_seen))
        return true;
    op->ended = true;
    if (op->status != 0 || op->shaken || op->local_status != 0 || op->length == 0 ||
        m->ends[written_end(op)].dead)
        return true;
    return model_data_is_there(m, number);
}

bool model_flushed(struct model *m, uint32_t from, uint64_t number)
{
    for (uint32_t i = 0; i < m->flush_count;) {
        struct model_flush flush = m->flushes[i];
        struct model_pair *p = model_pair_of(m, flush.from, flush.to);

        if (flush.from != from || flush.number > number) {
            i++;
            continue;
        }
        m->flushes[i] = m->flushes[--m->flush_count];
        for (uint32_t k = p->ended_first; k < flush.count; k++)
            if (!is_flushed(m, p->ops[k]))
                return false;
    }
    return true;
}

void model_again(struct model *m, uint32_t end)
{
    struct model_end *e = &m->ends[end];

    for (uint32_t other = 0; other < m->count; other++) {
        *model_pair_of(m, end, other) = (struct model_pair){
            .ops = model_pair_of(m, end, other)->ops, .room = model_pair_of(m, end, other)->room};
        *model_pair_of(m, other, end) = (struct model_pair){
            .ops = model_pair_of(m, other, end)->ops, .room = model_pair_of(m, other, end)->room};
    }
    for (uint32_t i = 0; i < m->op_count; i++)
        m->ops[i].past |= m->ops[i].from == end || m->ops[i].to == end;
    e->dead = false;
    e->counted = (struct path_counts){0};
    begin_end(e);
    for (uint32_t other = 0; other < m->count; other++) {
        if (!m->ends[other].dead) /* the memory of a dead end may be gone */
            model_signals_begin(m, end, other);
        model_signals_begin(m, other, end);
    }
    model_counters_again(m, end);
}

bool model_idle(struct model *m, uint32_t end)
{
    for (uint32_t to = 0; to < m->count; to++) {
        struct model_pair *p = model_pair_of(m, end, to);

        for (; p->ended_first < p->count; p->ended_first++) {
            uint32_t number = p->ops[p->ended_first];

            if (!m->ops[number].accepted)
                break;
            if (!is_flushed(m, number))
                return false;
            m->ops[number].ended = true;
        }
    }
    return true;
}

bool model_busy(const struct model *m, uint32_t number)
{
    const struct model_op *op = &m->ops[number];
    bool wants_local = !(op->flags & PWC_NO_LCE) && !op->local_seen;
    bool wants_remote = !(op->flags & PWC_NO_RCE) && !op->remote_seen && !m->ends[op->to].dead &&
                        (!op->local_seen || op->local_status == 0);

    if (op->shaken && op->flags & PWC_LCE_SOURCE && op->ended)
        wants_remote = false; /* the remote event may have been lost after the local event came */
    if (m->ends[op->from].dead || op->past)
        return false;
    return !op->ended || wants_local || wants_remote;
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void shake_pair(struct model *m, uint32_t from, uint32_t to)
{
    struct model_pair *p = model_pair_of(m, from, to);

    for (uint32_t i = 0; i < p->count; i++) {
        struct model_op *op = &m->ops[p->ops[i]];

        if (!op->ended || !op->local_seen || !op->remote_seen)
            op->shaken = true;
        /* The local event was of the source alone; the rest may be lost. */
        if (op->shaken && op->local_seen && !op->remote_seen && model_is_put(op) &&
            op->status == 0 && op->flags & PWC_LCE_SOURCE && !m->ends[to].dead)
            refresh_vague(&m->ends[to], op->remote_offset, op->length, 1);
    }
}

void model_shake(struct model *m, uint32_t a, uint32_t b)
{
    shake_pair(m, a, b);
    shake_pair(m, b, a);
}

void model_withdrawn(struct model *m, uint32_t end)
{
    for (uint32_t other = 0; other < m->count; other++)
        shake_pair(m, other, end);
}

void model_dead(struct model *m, uint32_t end)
{
    m->ends[end].dead = true;
    for (uint32_t i = 0; i < m->flush_count;)
        if (m->flushes[i].from == end)
            m->flushes[i] = m->flushes[--m->flush_count];
        else
            i++;
    for (uint32_t other = 0; other < m->count; other++) {
        struct model_pair *p = model_pair_of(m, end, other);

        model_shake(m, end, other);
        /* The operations that the dead client had under way may land or not, at ends that live. */
        for (uint32_t i = 0; i < p->count; i++) {
            const struct model_op *op = &m->ops[p->ops[i]];

            if (model_is_put(op) && !op->remote_seen && op->status == 0)
                refresh_vague(&m->ends[op->to], op->remote_offset, op->length, 1);
        }
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool check_op(struct model *m, uint32_t number)
{
    const struct model_op *op = &m->ops[number];
    bool wants_local = !(op->flags & PWC_NO_LCE) || op->status != 0;
    bool failed = op->local_seen && op->local_status != 0;

    if (op->past)
        return true;

    if (!m->ends[op->from].dead && wants_local && !op->local_seen)
        return model_fail(m, "operation %u (%u->%u flags %x length %llu) has had no local event",
                          number, op->from, op->to, op->flags, (unsigned long long)op->length);
    if (!m->ends[op->from].dead && !op->ended)
        return model_fail(m, "operation %u (%u->%u flags %x) has not ended", number, op->from,
                          op->to, op->flags);
    if (m->ends[op->to].dead || m->ends[op->from].dead || (op->flags & PWC_NO_RCE) || failed ||
        op->status != 0 || op->remote_seen || (op->shaken && (op->flags & PWC_NO_LCE)) ||
        (op->shaken && (op->flags & PWC_LCE_SOURCE)))
        return true;
    return model_fail(m, "operation %u (%u->%u flags %x length %llu) has had no remote event",
                      number, op->from, op->to, op->flags, (unsigned long long)op->length);
}

bool model_check(struct model *m)
{
    char wrong[300];

    if (model_counters_check(m, wrong))
        return model_fail(m, "%s", wrong);
    for (uint32_t i = 0; i < m->op_count && !m->failed; i++)
        check_op(m, i);
    if (!m->failed)
        model_signals_check(m);
    for (uint32_t i = 0; i < m->count && !m->failed; i++) {
        const struct model_end *e = &m->ends[i];

        if (e->dead || memcmp(e->memory, e->shadow, e->length) == 0)
            continue;
        for (uint64_t at = 0; at < e->length && !m->failed; at++)
            if (!e->vague[at] && e->memory[at] != e->shadow[at])
                model_fail(m, "memory of end %u differs at byte %llu: %02x, not %02x", i,
                           (unsigned long long)at, e->memory[at], e->shadow[at]);
    }
    return !m->failed;
}
