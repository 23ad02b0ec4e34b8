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
    uint32_t data; /* clients 1 to this one keep data */
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
 */
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
    op.place = (uint64_t)slice * op.from + 8 * uses_below(u, (slice - op.length) / 8);
    uses_fill(bytes, u->count, op.length);
    return uses_put(u, &op, bytes, u->count);
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

/* Checks that each packet at a data server has sent its difference to the parity once. */
static void raid5_check(struct uses *u)
{
    static uint8_t parity[USES_PART];
    uint64_t packets = 0;

    memset(parity, 0, sizeof(parity));
    uses_expect_ends(u, raid5_status);
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
