/* The use as a RAID-5 array (uses.h): client 0 keeps the parity, some clients keep data, and the
 * others write. Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <errno.h>
#include <string.h>

enum { DATA_MAX = 8, WRITE_MAX = 3000 };

/* The state of the handlers, as in examples/handlers/raid5.c. */
struct raid5 {
    uint64_t parity;
    uint8_t difference[4096];
};

struct array {
    uint32_t data;  /* clients 1 to this one keep data */
    uint64_t taken; /* bytes of each region that puts have used, where each put has its own place */
};

static struct array *array_of(struct uses *u)
{
    return (struct array *)u->own;
}

/* Gives the server of the parity its offload before the data servers bind it. */
static void raid5_open(struct uses *u)
{
    struct uses_pair pairs[WORLD_NODES_MAX * DATA_MAX];
    uint32_t most = u->nodes - 2 < DATA_MAX ? u->nodes - 2 : DATA_MAX, count = 0;
    struct array *a = array_of(u);
    uint64_t parity = HANDLER_NONE;

    a->data = 1 + uses_below(u, most);
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    memcpy(uses_state(u, 0), &parity, sizeof(parity));
    uses_offload(u, 0, true, sizeof(struct raid5));
    for (uint32_t i = 1; i <= a->data; i++)
        pairs[i - 1] = (struct uses_pair){i, 0};
    uses_bind(u, pairs, a->data, true);
    for (uint32_t to = 1; to <= a->data; to++) {
        u->client[to].targets = 1; /* the only target is client 0 */
        uses_offload(u, to, true, sizeof(struct raid5));
        for (uint32_t from = a->data + 1; from < u->nodes; from++)
            pairs[count++] = (struct uses_pair){from, to};
    }
    uses_bind(u, pairs, count, true);
}

/* Each client writes to a slice of its own at each data server, to the same places again and again.
 * Where a daemon may die in the middle of a step, each put has a place of its own instead. */
static bool raid5_submit(struct uses *u)
{
    uint32_t data = array_of(u)->data, slice = USES_PART / u->nodes & ~63u;
    struct use_op op = {.from = data + 1 + uses_below(u, u->nodes - data - 1),
                        .to = 1 + uses_below(u, data),
                        .length = 8 * uses_below(u, (uses_below(u, 3) ? 300 : WRITE_MAX) / 8)};
    uint8_t *bytes;

    op.length += uses_below(u, 10) == 0 ? 4 : 0; /* a put of such a length is refused */
    bytes = uses_room(u, op.from, op.length);
    if (!bytes)
        return false;
    op.place = u->dies ? array_of(u)->taken
                       : (uint64_t)slice * op.from + 8 * uses_below(u, (slice - op.length) / 8);
    uses_fill(bytes, u->count, op.length);
    if (!uses_put(u, &op, bytes, u->count))
        return false;
    array_of(u)->taken += (op.length + 7u) & ~7u;
    return true;
}

static int raid5_status(const struct uses *u, const struct use_op *op)
{
    (void)u;
    return op->length % 8 == 0 ? 0 : -EREMOTEIO;
}

/* Checks that a server's data are what was written last. Returns how many packets have arrived
 * there. */
static uint64_t check_data(struct uses *u, uint32_t server, uint8_t *parity)
{
    static uint8_t expected[USES_PART];
    uint64_t puts = 0, failed = 0, packets = 0;

    memset(expected, 0, sizeof(expected));
    for (uint32_t i = 0; i < u->count; i++) {
        const struct use_op *op = &u->op[i];

        if (op->to != server)
            continue;
        failed += op->status < 0;
        if (op->status < 0)
            continue;
        puts++;
        packets += uses_packets(u, op->length);
        uses_fill(expected + op->place, i, op->length);
    }
    if (memcmp(uses_region(u, server), expected, sizeof(expected)) != 0)
        world_fail(u->world, "client %u has other data", server);
    for (uint32_t i = 0; i < USES_PART; i++)
        parity[i] ^= expected[i];
    uses_expect(u, server, puts, packets);
    if (!(u->flags & ENGINE_OFFLOAD_QUIET))
        uses_expect_events(u, server, OFFLOAD_FAILED, (uint32_t)failed);
    return packets;
}

/* Whether the client's region has the bytes of the packet that begins at byte `at` of a put. Only
 * this put writes to their place. */
static bool has_bytes(const struct uses *u, uint32_t client, uint32_t number, uint32_t at)
{
    static uint8_t bytes[WRITE_MAX];
    const struct use_op *op = &u->op[number];
    uint32_t length = op->length - at < u->packet ? op->length - at : u->packet;

    uses_fill(bytes, number, op->length);
    return memcmp(uses_region(u, client) + op->place + at, bytes + at, length) == 0;
}

/* Whether the client's region has only zeros in the place of that packet. */
static bool is_empty(const struct uses *u, uint32_t client, uint32_t number, uint32_t at)
{
    const struct use_op *op = &u->op[number];
    const uint8_t *there = uses_region(u, client) + op->place + at;
    uint32_t length = op->length - at < u->packet ? op->length - at : u->packet;

    for (uint32_t i = 0; i < length; i++)
        if (there[i] != 0)
            return false;
    return true;
}

/* Checks one put. Where a handler was in doubt, its packet may be at the data server without its
 * parity; only an array with a log could close such a hole. All packets before this one are whole,
 * and no packet of a put in doubt follows it. Returns how many packets of the put have no parity.
 */
static uint32_t check_put(struct uses *u, uint32_t number)
{
    const struct use_op *op = &u->op[number];
    bool written = true;
    uint32_t holes = 0;

    for (uint32_t at = 0; at < op->length; at += u->packet) {
        bool data = has_bytes(u, op->to, number, at), parity = has_bytes(u, 0, number, at);

        if (!written || (op->status < 0 && !data)) {
            written = false;
            if (!is_empty(u, op->to, number, at) || !is_empty(u, 0, number, at))
                world_fail(u->world, "put %u: bytes at %u that were not to come", number, at);
            continue;
        }
        holes += !parity;
        if (!data || (!parity && !is_empty(u, 0, number, at)))
            world_fail(u->world, "put %u: other bytes at %u", number, at);
    }
    return holes;
}

/* Checks that an error was reported for each hole: to the put's origin, or at the data server,
 * whose send has failed. */
static void check_doubts(struct uses *u)
{
    uint64_t holes = 0, known = 0;

    for (uint32_t i = 0; i < u->count && !u->world->failed; i++) {
        holes += check_put(u, i);
        known += uses_in_doubt(u, &u->op[i]);
    }
    for (uint32_t i = 1; i <= array_of(u)->data; i++)
        known += uses_sends_failed(u, i);
    if (holes > known || known > u->doubts)
        world_fail(u->world, "%llu packets without parity, %llu errors, %u deaths",
                   (unsigned long long)holes, (unsigned long long)known, u->doubts);
}

/* Checks that each packet at a data server has sent its difference to the parity once. */
static void raid5_check(struct uses *u)
{
    static uint8_t parity[USES_PART];
    uint64_t packets = 0;

    memset(parity, 0, sizeof(parity));
    uses_expect_ends(u, raid5_status);
    if (u->dies) {
        check_doubts(u);
        return;
    }
    for (uint32_t i = 1; i <= array_of(u)->data && !u->world->failed; i++)
        packets += check_data(u, i, parity);
    if (memcmp(uses_region(u, 0), parity, sizeof(parity)) != 0)
        world_fail(u->world, "the parity is not that of the data");
    uses_expect(u, 0, packets, packets);
}

const struct use use_raid5 = {.name = "RAID-5",
                              .object = "raid5",
                              .flows = 1,
                              .least = 3,
                              .open = raid5_open,
                              .submit = raid5_submit,
                              .check = raid5_check};
