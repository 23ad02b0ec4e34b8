/* Uses by messages: keys and values, conditional reads (uses.h). Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <errno.h>
#include <string.h>

/* ---- servers --------------------------------------------------------------------------------- */

enum { SERVERS_MAX = 4 };

struct servers {
    uint32_t count;     /* the first clients are servers */
    uint64_t slots;     /* slots of each server's table */
    uint32_t keys;      /* keys of each client, at each server */
    uint32_t done[256]; /* for checks: replies of a pair that have been seen */
};

static struct servers *servers_of(struct uses *u)
{
    return (struct servers *)u->own;
}

/* Opens the offloads of all servers, and binds the other clients to them. */
static void open_servers(struct uses *u, uint32_t state_bytes)
{
    struct servers *s = servers_of(u);
    struct uses_pair pairs[SERVERS_MAX * WORLD_NODES_MAX];
    uint32_t count = 0;

    for (uint32_t to = 0; to < s->count; to++) {
        uses_offload(u, to, false, state_bytes);
        for (uint32_t from = s->count; from < u->nodes; from++)
            pairs[count++] = (struct uses_pair){from, to};
    }
    uses_bind(u, pairs, count, false);
}

static uint32_t draw_servers(struct uses *u)
{
    uint32_t most = u->nodes - 1 < SERVERS_MAX ? u->nodes - 1 : SERVERS_MAX;

    return 1 + uses_below(u, most);
}

static struct use_op draw_request(struct uses *u)
{
    const struct servers *s = servers_of(u);

    return (struct use_op){.from = s->count + uses_below(u, u->nodes - s->count),
                           .to = uses_below(u, s->count)};
}

/* Returns the next of the replies that handlers of this operation's target gave to its origin. */
static const struct use_reply *next_reply(struct uses *u, const struct use_op *op)
{
    struct servers *s = servers_of(u);

    return uses_reply(u, op->from, op->to, s->done[op->from * SERVERS_MAX + op->to]++);
}

/* Marks the operations that their target's own client has had. */
static void mark_deferred(struct uses *u)
{
    for (uint32_t i = 0; i < u->replies && !u->world->failed; i++) {
        const struct use_reply *r = &u->reply[i];

        if (r->argument[0] != UINT64_MAX)
            continue;
        if (r->argument[1] >= u->count || u->op[r->argument[1]].deferred)
            world_fail(u->world, "a reply to no request that was left to the client");
        else
            u->op[r->argument[1]].deferred = true;
    }
}

/* Checks that each server's handlers have run once on each of its requests that has not failed. */
static void check_counts(struct uses *u)
{
    const struct servers *s = servers_of(u);

    for (uint32_t to = 0; to < s->count && !u->world->failed; to++) {
        uint32_t runs = 0, deferred = 0;

        for (uint32_t i = 0; i < u->count; i++) {
            runs += u->op[i].to == to && u->op[i].status == 0;
            deferred += u->op[i].to == to && u->op[i].deferred;
        }
        uses_expect(u, to, runs, 0);
        if (u->client[to].requests != deferred)
            world_fail(u->world, "client %u has had %u requests itself, not %u", to,
                       u->client[to].requests, deferred);
    }
}

/* ---- keys and values ------------------------------------------------------------------------- */

enum { VALUE_MAX = 48, KEYS = 8, KV_GET = 0, KV_INSERT = 1, KV_DELETE = 2, USED = 1 };

/* An entry of a server's table, as in examples/handlers/key_value.c. */
struct slot {
    uint64_t key;
    uint32_t use, length;
    uint8_t value[VALUE_MAX];
};

struct key_value {
    uint64_t slots, used;
};

/* An entry of the test's own table of a server: one key, as the table of the server's handlers must
 * have it. */
struct known {
    bool used;
    uint32_t length, number; /* length of the key's value, and number of its insert */
};

static void key_value_open(struct uses *u)
{
    struct servers *s = servers_of(u);

    s->count = draw_servers(u);
    s->keys = 1 + uses_below(u, KEYS);
    s->slots = 8u << uses_below(u, 6); /* many walks may be too long for handlers */
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    for (uint32_t i = 0; i < s->count; i++) {
        struct key_value state = {.slots = s->slots};

        memcpy(uses_state(u, i), &state, sizeof(state));
    }
    open_servers(u, sizeof(struct key_value));
}

/* Submits a request. Each client has keys of its own, so what a request finds depends on its own
 * requests alone. */
static bool key_value_submit(struct uses *u)
{
    struct use_op op = draw_request(u);
    uint8_t *bytes = uses_room(u, op.from, VALUE_MAX + 8);

    if (!bytes)
        return false;
    /* Handlers that may run again get no deletes: a second run would not find the key. */
    op.word[0] = uses_below(u, u->more_flags & ENGINE_OFFLOAD_REPEATABLE ? 2 : 3);
    op.word[1] = 1 + op.from * KEYS + uses_below(u, servers_of(u)->keys);
    op.word[2] = u->count;
    if (op.word[0] == KV_INSERT)
        op.length = uses_below(u, VALUE_MAX + 4);
    uses_fill(bytes, u->count, op.length);
    return uses_message(u, &op, 3, bytes, true);
}

static int key_value_status(const struct uses *u, const struct use_op *op)
{
    return op->length > VALUE_MAX ? -EREMOTEIO : 0;
}

/* Carries out the request in the plain table. */
static void key_value_do(struct uses *u, uint32_t number, struct known *k)
{
    const struct use_op *op = &u->op[number];

    if (op->word[0] == KV_INSERT)
        *k = (struct known){true, op->length, number};
    else if (op->word[0] == KV_DELETE)
        k->used = false;
}

/* Takes a request that handlers have answered, and checks that the answer is that of the plain
 * table. Returns NULL, or what is wrong. */
static const char *key_value_step(struct uses *u, uint32_t number, struct known *k)
{
    const struct use_op *op = &u->op[number];
    const struct use_reply *r = next_reply(u, op);
    uint8_t value[VALUE_MAX];

    if (!r)
        return "no reply";
    uses_fill(value, k->number, k->length);
    if (r->count != 1 || r->argument[0] != (op->word[0] == KV_INSERT || k->used))
        return "found, or not, against the table";
    if (op->word[0] == KV_GET && k->used &&
        (r->length != k->length || memcmp(r->bytes, value, k->length) != 0))
        return "another value";
    key_value_do(u, number, k);
    return NULL;
}

/* Checks that the server's table has just these keys, each with its value. Returns NULL, or what is
 * wrong. */
static const char *check_table(struct uses *u, uint32_t server, const struct known *known)
{
    const struct slot *slots = (const void *)uses_region(u, server);
    uint64_t found = 0, used = 0;
    struct key_value state;

    memcpy(&state, uses_state(u, server), sizeof(state));
    for (uint64_t i = 0; i < state.slots; i++) {
        const struct known *k;
        uint8_t value[VALUE_MAX];

        if (slots[i].use != USED)
            continue;
        found++;
        if (slots[i].key - 1 >= KEYS * WORLD_NODES_MAX)
            return "a key of nobody's";
        k = &known[slots[i].key - 1];
        uses_fill(value, k->number, k->length);
        if (!k->used || slots[i].length != k->length ||
            memcmp(slots[i].value, value, k->length) != 0)
            return "a key has another value in the table";
    }
    for (uint32_t i = 0; i < KEYS * WORLD_NODES_MAX; i++)
        used += known[i].used;
    return found == used ? NULL : "another number of keys in the table";
}

/* Checks all replies and tables, if bit n of `way` says whether request n of those in doubt was
 * carried out. Returns NULL, or what is wrong; *number is then the wrong request, or the count of
 * all requests if a table is wrong. */
static const char *check_way(struct uses *u, uint32_t way, uint32_t *number)
{
    static struct known known[SERVERS_MAX][KEYS * WORLD_NODES_MAX];
    struct servers *s = servers_of(u);
    const char *wrong = NULL;

    memset(known, 0, sizeof(known));
    memset(s->done, 0, sizeof(s->done));
    for (uint32_t i = 0; i < u->count && !wrong; i++) {
        const struct use_op *op = &u->op[i];
        struct known *k = &known[op->to][op->word[1] - 1];

        *number = i;
        if (uses_in_doubt(u, op)) {
            if (way & 1 && op->length <= VALUE_MAX)
                key_value_do(u, i, k);
            way >>= 1;
        } else if (!op->deferred && op->status == 0) {
            wrong = key_value_step(u, i, k);
        }
    }
    if (wrong)
        return wrong;
    *number = u->count;
    for (uint32_t to = 0; to < s->count && !wrong; to++)
        wrong = check_table(u, to, known[to]);
    return wrong;
}

/* Checks that there is a way to carry out the requests in doubt, or not, that explains all replies
 * and tables. */
static void key_value_check(struct uses *u)
{
    uint32_t ways = 1, number = 0;
    const char *wrong = "";

    uses_expect_ends(u, key_value_status);
    mark_deferred(u);
    for (uint32_t i = 0; i < u->count; i++)
        ways <<= uses_in_doubt(u, &u->op[i]);
    for (uint32_t way = 0; way < ways && wrong && !u->world->failed; way++)
        wrong = check_way(u, way, &number);
    if (wrong)
        world_fail(u->world, "request %u of %u: %s", number, u->count, wrong);
    check_counts(u);
}

const struct use use_key_value = {.name = "keys and values",
                                  .object = "key_value",
                                  .flows = 1,
                                  .least = 2,
                                  .replies = true,
                                  .open = key_value_open,
                                  .submit = key_value_submit,
                                  .check = key_value_check};

/* ---- conditional reads ----------------------------------------------------------------------- */

enum { ROWS = 1024, ROWS_READ = 200, REPLY_ROWS = 16, NAME = 24 };

/* As in examples/handlers/conditional_read.c. */
struct row {
    uint64_t id;
    uint8_t name[NAME];
};

static void conditional_read_open(struct uses *u)
{
    struct servers *s = servers_of(u);

    s->count = draw_servers(u);
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    for (uint32_t to = 0; to < s->count; to++)
        for (uint32_t i = 0; i < ROWS; i++) {
            struct row row = {.id = uses_below(u, 20)};

            uses_fill(row.name, to * ROWS + i, NAME);
            memcpy(uses_region(u, to) + i * sizeof(row), &row, sizeof(row));
        }
    open_servers(u, REPLY_ROWS * NAME);
}

static bool conditional_read_submit(struct uses *u)
{
    struct use_op op = draw_request(u);

    if (!uses_room(u, op.from, 0))
        return false;
    op.word[0] = uses_below(u, 20);
    op.word[1] = uses_below(u, ROWS);
    op.word[2] = uses_below(u, ROWS_READ);
    if (op.word[1] + op.word[2] > ROWS)
        op.word[2] = ROWS - op.word[1];
    return uses_message(u, &op, 3, NULL, true);
}

static void check_read(struct uses *u, uint32_t number)
{
    const struct use_op *op = &u->op[number];
    const struct row *rows = (const void *)uses_region(u, op->to);
    const struct use_reply *r = next_reply(u, op);
    uint64_t i = op->word[1], end = op->word[1] + op->word[2], found = 0;
    uint8_t names[REPLY_ROWS][NAME];

    for (; i < end && found < REPLY_ROWS; i++)
        if (rows[i].id == op->word[0])
            memcpy(names[found++], rows[i].name, NAME);
    if (!r)
        world_fail(u->world, "request %u has no reply", number);
    else if (r->count != 2 || r->argument[0] != found || r->argument[1] != i ||
             r->length != found * NAME || memcmp(r->bytes, names, r->length) != 0)
        world_fail(u->world, "request %u: other rows", number);
}

static void conditional_read_check(struct uses *u)
{
    uses_expect_ends(u, NULL);
    for (uint32_t i = 0; i < u->count && !u->world->failed; i++)
        check_read(u, i);
    if (u->replies != u->count)
        world_fail(u->world, "%u replies to %u requests", u->replies, u->count);
    check_counts(u);
}

const struct use use_conditional_read = {.name = "conditional read",
                                         .object = "conditional_read",
                                         .flows = 1,
                                         .least = 2,
                                         .open = conditional_read_open,
                                         .submit = conditional_read_submit,
                                         .check = conditional_read_check};
