/* The use as a transaction log (uses.h). Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <errno.h>
#include <string.h>

enum { ENTRIES = 64, LENGTH_MAX = 30000 };

struct entry {
    uint64_t peer, id, place, length;
    uint64_t kind; /* enum handler_kind */
};

/* The state of the handlers, as in examples/handlers/transaction_log.c. */
struct transaction_log {
    uint64_t written, read, missed;
    struct entry entries[ENTRIES];
};

struct server {
    uint64_t taken[WORLD_NODES_MAX]; /* bytes of each client's slice that are used */
    uint32_t length;                 /* length of the longest puts */
    uint32_t count;                  /* entries that client 0 has read */
    struct entry entries[USES_OPS];
};

static struct server *server_of(struct uses *u)
{
    return (struct server *)u->own;
}

static void open_log(struct uses *u, uint32_t length)
{
    struct uses_pair pairs[WORLD_NODES_MAX];

    server_of(u)->length = length;
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    uses_offload(u, 0, true, sizeof(struct transaction_log));
    for (uint32_t i = 1; i < u->nodes; i++)
        pairs[i - 1] = (struct uses_pair){i, 0};
    uses_bind(u, pairs, u->nodes - 1, true);
}

static void log_open(struct uses *u)
{
    open_log(u, 3000);
}

/* Opens a log for puts that are longer than a ledger's ring. */
static void cut_open(struct uses *u)
{
    open_log(u, LENGTH_MAX);
}

/* Submits a put to a place of its own. */
static bool log_submit(struct uses *u)
{
    struct server *s = server_of(u);
    uint64_t slice = USES_PART / u->nodes & ~UINT64_C(63);
    struct use_op op = {.from = 1 + uses_below(u, u->nodes - 1),
                        .length = 1 + uses_below(u, uses_below(u, 3) ? 100 : s->length)};
    uint8_t *bytes = uses_room(u, op.from, op.length);

    if (!bytes || s->taken[op.from] + op.length > slice)
        return false;
    op.place = slice * op.from + s->taken[op.from];
    uses_fill(bytes, u->count, op.length);
    if (!uses_put(u, &op, bytes, u->count))
        return false;
    s->taken[op.from] += op.length;
    return true;
}

static void read_log(struct uses *u)
{
    struct transaction_log *log = uses_state(u, 0);
    struct server *s = server_of(u);

    for (; log->read < log->written && s->count < USES_OPS; log->read++)
        s->entries[s->count++] = log->entries[log->read % ENTRIES];
}

/* Client 0 reads its log now and then only, so that the log is full at times. */
static void log_turn(struct uses *u)
{
    if (uses_below(u, 100) == 0)
        read_log(u);
}

static void log_arrived(struct uses *u, uint32_t client, const struct message_event *event)
{
    if (event->head.id >= u->count || client != 0)
        world_fail(u->world, "client %u: an event of no put", client);
    else
        u->op[event->head.id].arrivals++;
}

static bool is_logged(struct uses *u, uint32_t number)
{
    const struct server *s = server_of(u);
    const struct use_op *op = &u->op[number];
    uint32_t found = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct entry *e = &s->entries[i];

        if (e->id != number)
            continue;
        found++;
        if (e->kind != HANDLER_PUT || e->place != op->place || e->length != op->length ||
            e->peer != world_peer_of(u->world, op->from, 0))
            world_fail(u->world, "put %u: a wrong entry", number);
    }
    if (found > 1)
        world_fail(u->world, "put %u: %u entries", number, found);
    return found == 1;
}

static bool is_placed(const struct uses *u, uint32_t number, bool expected)
{
    static uint8_t bytes[LENGTH_MAX];
    const struct use_op *op = &u->op[number];

    memset(bytes, 0, sizeof(bytes));
    if (expected)
        uses_fill(bytes, number, op->length);
    return memcmp(uses_region(u, 0) + op->place, bytes, op->length) == 0;
}

/* How many bytes of the put stand at its place; all bytes after them must be 0. */
static uint32_t placed_part(struct uses *u, uint32_t number)
{
    static uint8_t bytes[LENGTH_MAX];
    const struct use_op *op = &u->op[number];
    const uint8_t *there = uses_region(u, 0) + op->place;
    uint32_t part = op->length;

    uses_fill(bytes, number, op->length);
    while (part > 0 && there[part - 1] == 0)
        part--;
    if (memcmp(there, bytes, part) != 0)
        world_fail(u->world, "put %u: other bytes", number);
    return part;
}

/* Checks a put of a client that has died, perhaps in the middle of the put, so that it was cut: the
 * log has the put before its first byte is placed, and the event comes after the last one. */
static void check_cut(struct uses *u, uint32_t number)
{
    const struct use_op *op = &u->op[number];
    uint32_t part = placed_part(u, number);

    if (part > 0 && !op->deferred)
        world_fail(u->world, "put %u, not logged, has placed %u bytes", number, part);
    else if (op->arrivals > op->deferred)
        world_fail(u->world, "put %u has %u events", number, op->arrivals);
    else if (op->arrivals == 1 && !is_placed(u, number, true))
        world_fail(u->world, "put %u has an event, and not all of its bytes", number);
    u->counters->cut += op->deferred && op->arrivals == 0;
}

/* Checks that a put in doubt was cut: the log may have the put, but the bytes are not placed. */
static void check_doubt(struct uses *u, uint32_t number)
{
    if (u->op[number].ends != 1 || u->op[number].arrivals > 0 || !is_placed(u, number, false))
        world_fail(u->world, "put %u, in doubt, has gone on", number);
}

/* Checks that the log has just the puts that arrived, and that all others have failed at their
 * origins. */
static void log_check(struct uses *u)
{
    uint32_t logged = 0, doubts = 0, unknown = 0;

    read_log(u);
    for (uint32_t i = 0; i < u->count && !u->world->failed; i++) {
        struct use_op *op = &u->op[i];

        op->deferred = is_logged(u, i);
        logged += op->deferred;
        if (u->client[op->from].dead)
            check_cut(u, i);
        else if (uses_in_doubt(u, op)) {
            doubts++;
            unknown += op->deferred; /* logged by a run that is not counted */
            check_doubt(u, i);
        } else if (op->ends != 1 || op->status != (op->deferred ? 0 : -EREMOTEIO))
            world_fail(u->world, "put %u, %s, has ended %u times, with %s", i,
                       op->deferred ? "logged" : "not logged", op->ends, strerror(-op->status));
        else if (op->arrivals != op->deferred)
            world_fail(u->world, "put %u has %u events", i, op->arrivals);
        else if (!is_placed(u, i, op->deferred))
            world_fail(u->world, "put %u: wrong bytes", i);
        op->deferred = false;
    }
    if (server_of(u)->count != logged)
        world_fail(u->world, "%u entries of %u puts", server_of(u)->count, logged);
    if (doubts > u->doubts)
        world_fail(u->world, "%u puts in doubt, and %u deaths", doubts, u->doubts);
    uses_expect(u, 0, logged - unknown, 0);
}

/* Whether the log has the put among its last entries, while its origin does not know how it ends.
 */
static bool is_under_way(const struct uses *u, uint32_t number)
{
    const struct transaction_log *log = uses_state(u, 0);
    bool logged = false;

    for (uint64_t i = 0; i < log->written && i < ENTRIES; i++)
        logged |= log->entries[i].id == number;
    return logged && u->op[number].ends == 0 && u->op[number].length > u->packet;
}

/* Lets a client die in the middle of a put now and then. */
static void cut_turn(struct uses *u)
{
    log_turn(u);
    for (uint32_t i = u->count > 64 ? u->count - 64 : 0; i < u->count; i++)
        if (!u->client[u->op[i].from].dead && is_under_way(u, i) && uses_below(u, 30) == 0)
            uses_kill(u, u->op[i].from);
}

const struct use use_transaction_log = {.name = "transaction log",
                                        .object = "transaction_log",
                                        .flows = 1,
                                        .least = 2,
                                        .open = log_open,
                                        .submit = log_submit,
                                        .turn = log_turn,
                                        .arrived = log_arrived,
                                        .check = log_check};

const struct use use_transaction_log_cut = {.name = "transaction log of clients that die",
                                            .object = "transaction_log",
                                            .flows = 1,
                                            .least = 2,
                                            .open = cut_open,
                                            .submit = log_submit,
                                            .turn = cut_turn,
                                            .arrived = log_arrived,
                                            .check = log_check};
