/* Configuration and layout (layout.h). Any thread may call these functions, which keep no state. */
#include "daemon/engine/layout.h"

#include <errno.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/offload/puts/collect.h"
#include "daemon/engine/session/quota.h"
#include "daemon/handlers/vm.h"

static void default32(uint32_t *field, uint32_t value)
{
    if (*field == 0)
        *field = value;
}

static bool power_of_two(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* The longest block is a Medium's. The block of a Long has no payload and fits where an id does. */
uint32_t message_longest(const struct engine_config *c)
{
    return message_bytes_max(abi_pad8(c->packed_max));
}
static_assert(sizeof(struct message) + 8u * SESSION_ARGUMENTS_MAX + ENGINE_PACKED_MAX <= UINT16_MAX,
              "the length of the longest block has 16 bits");
static_assert(sizeof(struct message) + 8u * SESSION_ARGUMENTS_MAX <= SESSION_ID_MAX,
              "a Medium's block fits where an id and a payload do, a Long's where an id does");

int engine_config_check(struct engine_config *c)
{
    default32(&c->peers, 1);
    default32(&c->stride, c->peers);
    default32(&c->clients_max, 256);
    default32(&c->sessions_max, 512);
    default32(&c->segments_max, 1024);
    default32(&c->regions_max, 16384);
    default32(&c->remotes_max, 65536);
    default32(&c->flows_max, 65536);
    default32(&c->chunks_max, 4096);
    default32(&c->ledger_start, 16384);
    default32(&c->ledger_max, 1u << 20);
    default32(&c->packed_max, 4096);
    default32(&c->spill_max, 1u << 20);
    default32(&c->ops_max, 262144);
    default32(&c->stripe_min, 65536);
    default32(&c->piece_bytes, 256u << 10);
    default32(&c->window_bytes, 1u << 20);
    default32(&c->handler_units, 10000);
    default32(&c->handler_us, 50);
    default32(&c->handler_turn, 2048);
    default32(&c->handler_share, 25);
    if (c->ledger_bytes == 0)
        c->ledger_bytes = 64u << 20;
    if (c->team_bytes == 0)
        c->team_bytes = UINT64_C(16) * c->chunks_max * CHUNK_BYTES;
    if (c->program_bytes == 0)
        c->program_bytes = 8u << 20;
    quota_defaults(c);
    if (c->keepalive_ns == 0)
        c->keepalive_ns = UINT64_C(1000000000);
    if (c->peer_deadline_ns == 0)
        c->peer_deadline_ns = UINT64_C(5000000000);
    if (c->self >= c->peers || c->peers > ENGINE_PEERS_MAX || c->stride > c->peers ||
        c->flows_max > ENGINE_PAIRS_MAX || c->remotes_max > ENGINE_PAIRS_MAX ||
        c->protocol > ENGINE_PROTOCOL_CHAIN || c->chunks_max < 16 ||
        c->packed_max > ENGINE_PACKED_MAX || c->stripe_min < RAILS_MAX * PIECE_LEAST ||
        c->piece_bytes < PIECE_LEAST || !power_of_two(c->piece_bytes) ||
        c->window_bytes / c->piece_bytes > UINT16_MAX / 2 || c->peer_deadline_ns < 1000 ||
        c->team_bytes % TEAM_UNIT_BYTES != 0 || c->team_bytes > UINT64_C(1) << 36 ||
        c->program_bytes % ENGINE_PROGRAM_UNIT != 0 || c->program_bytes > 1u << 30 ||
        !coll_choices_valid(&c->collectives))
        return -EINVAL;
    if (!power_of_two(c->ledger_max) || c->ledger_max > 1u << 28 ||
        !ledger_fits(c, c->ledger_start))
        return -EINVAL;
    if (c->ledger_bytes < 4ull * c->ledger_start || c->ledger_bytes % c->ledger_max != 0 ||
        c->ledger_bytes / c->ledger_start > UINT32_MAX)
        return -EINVAL;
    return 0;
}

/* Room for the longest submission here, and for the block of a vector from a node where packed_max
 * is larger. */
#define RECORD_ROOM                                                                                \
    ((uint32_t)sizeof(struct submit_record) + 2 * SESSION_ID_MAX + ENGINE_PACKED_MAX)

/* ---- layout ---------------------------------------------------------------------------------- */

/* Hands out consecutive, aligned pieces of a block; with base NULL it only measures. */
struct carver {
    uint8_t *base;
    uint64_t used;
};

static void *carve(struct carver *c, uint64_t entry, uint64_t count, uint64_t align)
{
    uint64_t at = (c->used + align - 1) / align * align;

    c->used = at + entry * count;
    return c->base ? c->base + at : NULL;
}

/* Places a chain that can list `members` entries under `homes` homes. */
static void carve_chain(struct carver *carver, struct chain *chain, uint32_t homes,
                        uint32_t members)
{
    chain->first = carve(carver, sizeof(*chain->first), homes, 64);
    chain->links = carve(carver, sizeof(*chain->links), members, 64);
}

/* Carves a chain whose heads are found by a hash of keys. */
static void carve_keys(struct carver *carver, struct chain *chain, uint32_t members)
{
    uint32_t homes = 1;

    while (homes < members)
        homes *= 2;
    chain_keys_init(chain, homes);
    carve_chain(carver, chain, homes, members);
}

uint32_t table_size(const struct engine_config *c, enum table table)
{
    const uint32_t sizes[TABLES] = {
        [TABLE_CLIENTS] = c->clients_max,   [TABLE_SESSIONS] = c->sessions_max,
        [TABLE_SEGMENTS] = c->segments_max, [TABLE_REGIONS] = c->regions_max,
        [TABLE_GRANTS] = c->remotes_max,    [TABLE_REMOTES] = c->remotes_max,
        [TABLE_FLOWS] = c->flows_max,       [TABLE_INFLOWS] = c->flows_max,
        [TABLE_TEAMS] = TEAMS_MAX,          [TABLE_PROGRAMS] = PROGRAMS_MAX,
        [TABLE_OFFLOADS] = OFFLOADS_MAX,    [TABLE_GETS] = gets_size(c),
    };

    return sizes[table];
}

uint64_t arena_layout(struct engine *e, const struct engine_config *c, void *base)
{
    struct carver carver = {.base = base, .used = sizeof(struct arena_header)};

    e->clients = carve(&carver, sizeof(*e->clients), c->clients_max, 64);
    e->sessions = carve(&carver, sizeof(*e->sessions), c->sessions_max, 64);
    e->segments = carve(&carver, sizeof(*e->segments), c->segments_max, 64);
    e->regions = carve(&carver, sizeof(*e->regions), c->regions_max, 64);
    e->grants = carve(&carver, sizeof(*e->grants), c->remotes_max, 64);
    e->remotes = carve(&carver, sizeof(*e->remotes), c->remotes_max, 64);
    e->flows = carve(&carver, sizeof(*e->flows), c->flows_max, 64);
    e->inflows = carve(&carver, sizeof(*e->inflows), c->flows_max, 64);
    e->peers = carve(&carver, sizeof(*e->peers), c->peers, 64);
    e->doubt = carve(&carver, sizeof(*e->doubt), 1, 64);
    for (uint32_t t = 0; t < TABLES; t++) {
        e->unused[t].size = table_size(c, t);
        e->unused[t].count = carve(&carver, sizeof(uint32_t), 1, 64);
        e->unused[t].fresh = carve(&carver, sizeof(uint32_t), 1, 4);
        e->unused[t].stack = carve(&carver, sizeof(uint32_t), table_size(c, t), 4);
    }
    e->own_flows = carve(&carver, sizeof(uint32_t), 1, 64);
    e->pool.state = carve(&carver, sizeof(*e->pool.state), 1, 64);
    e->pool.stack = carve(&carver, sizeof(uint32_t), c->chunks_max, 64);
    e->pool.chunks = carve(&carver, CHUNK_BYTES, c->chunks_max, 4096);
    e->teams.table = carve(&carver, sizeof(*e->teams.table), TEAMS_MAX, 64);
    e->teams.memory = carve(&carver, 1, c->team_bytes, TEAM_UNIT_BYTES);
    e->programs.table = carve(&carver, sizeof(*e->programs.table), PROGRAMS_MAX, 64);
    e->programs.memory = carve(&carver, 1, c->program_bytes, 4096);
    e->offloads.table = carve(&carver, sizeof(*e->offloads.table), OFFLOADS_MAX, 64);
    e->offloads.gets.table = carve(&carver, sizeof(struct handler_get), gets_size(c), 64);
    e->offloads.targets = carve(&carver, sizeof(*e->offloads.targets),
                                (uint64_t)OFFLOADS_MAX * ENGINE_OFFLOAD_TARGETS, 4096);
    return (carver.used + 4095) / 4096 * 4096;
}

uint64_t private_layout(struct engine *e, const struct engine_config *c, void *base)
{
    struct carver carver = {.base = base, .used = sizeof(struct engine)};

    /* One for each thing that can end or be answered, and a few for each peer. */
    e->notices_max = (uint64_t)c->clients_max * 2 + c->sessions_max + 2ull * c->segments_max +
                     c->regions_max + c->remotes_max + 8ull * c->peers + TEAMS_MAX + OFFLOADS_MAX;
    for (uint32_t t = 0; t < TABLES; t++) {
        struct leaving *leaving = &e->leaving[t];

        leaving->size = table_size(c, t);
        leaving->entries = carve(&carver, sizeof(uint32_t), leaving->size, 64);
        leaving->listed = carve(&carver, sizeof(bool), leaving->size, 1);
    }
    carve_chain(&carver, &e->flows_of_peer, c->peers, c->flows_max);
    carve_chain(&carver, &e->inflows_of_peer, c->peers, c->flows_max);
    carve_chain(&carver, &e->inflows_held, c->sessions_max, c->flows_max);
    carve_chain(&carver, &e->flows_due, 2 * c->sessions_max, c->flows_max);
    carve_chain(&carver, &e->inflows_due, 2 * c->sessions_max, c->flows_max);
    carve_chain(&carver, &e->grants_of_peer, c->peers, c->remotes_max);
    carve_keys(&carver, &e->sessions_of_endpoint, c->sessions_max);
    carve_keys(&carver, &e->remotes_of_key, c->remotes_max);
    carve_keys(&carver, &e->flows_of_way, c->flows_max);
    carve_keys(&carver, &e->inflows_of_origin, c->flows_max);
    carve_keys(&carver, &e->inflows_of_flow, c->flows_max);
    e->session_live = carve(&carver, sizeof(*e->session_live), c->sessions_max, 64);
    e->segment_live = carve(&carver, sizeof(*e->segment_live), c->segments_max, 64);
    e->flow_live = carve(&carver, sizeof(*e->flow_live), c->flows_max, 64);
    e->turns_max = 2 * c->flows_max; /* for clients with flows, and for clients with notes only */
    e->turns = carve(&carver, sizeof(*e->turns), e->turns_max + c->peers, 64);
    e->client_notes = carve(&carver, sizeof(uint32_t), c->clients_max, 64);
    e->flow_next = carve(&carver, sizeof(uint32_t), c->flows_max, 64);
    e->turn_next = carve(&carver, sizeof(uint32_t), e->turns_max + c->peers, 64);
    e->turn_next_blocked = carve(&carver, sizeof(uint32_t), e->turns_max + c->peers, 64);
    e->turn_next_paused = carve(&carver, sizeof(uint32_t), e->turns_max + c->peers, 64);
    e->peer_live = carve(&carver, sizeof(*e->peer_live), c->peers, 64);
    e->latencies = carve(&carver, sizeof(*e->latencies), LATENCIES_MAX, 4096);
    e->remote_busy = carve(&carver, sizeof(uint32_t), c->remotes_max, 64);
    e->remote_next = carve(&carver, sizeof(uint32_t), c->remotes_max, 64);
    e->remote_before = carve(&carver, sizeof(uint32_t), c->remotes_max, 64);
    e->flow_before = carve(&carver, sizeof(uint32_t), c->flows_max, 64);
    e->inflow_before = carve(&carver, sizeof(uint32_t), c->flows_max, 64);
    e->grant_before = carve(&carver, sizeof(uint32_t), c->remotes_max, 64);
    e->gone = carve(&carver, sizeof(*e->gone), c->flows_max, 64);
    e->withdrawn = carve(&carver, sizeof(bool), c->clients_max, 64);
    e->open_sessions = carve(&carver, sizeof(uint32_t), c->sessions_max, 64);
    e->active = carve(&carver, sizeof(uint32_t), 2ull * c->peers, 64);
    e->resting.entries = carve(&carver, sizeof(*e->resting.entries), c->peers, 64);
    e->resting.places = carve(&carver, sizeof(*e->resting.places), c->peers, 64);
    e->keepalive.watched = carve(&carver, sizeof(uint32_t), c->peers, 64);
    e->dirty = carve(&carver, sizeof(uint32_t), c->sessions_max, 64);
    e->notices = carve(&carver, sizeof(*e->notices), e->notices_max, 64);
    e->record_max =
        (uint32_t)sizeof(struct submit_record) + 2 * SESSION_ID_MAX + abi_pad8(c->packed_max);
    e->record = carve(&carver, 1, RECORD_ROOM, 64);
    e->next_record = carve(&carver, 1, e->record_max, 64);
    e->heap.unit = c->ledger_start;
    e->heap.units = (uint32_t)(c->ledger_bytes / c->ledger_start);
    e->heap.used = carve(&carver, 1, e->heap.units, 64);
    e->heap.base = carve(&carver, 1, c->ledger_bytes, 4096);
    e->teams.live = carve(&carver, sizeof(*e->teams.live), TEAMS_MAX, 64);
    e->teams.heap = (struct heap){.base = e->teams.memory,
                                  .unit = TEAM_UNIT_BYTES,
                                  .units = (uint32_t)(c->team_bytes / TEAM_UNIT_BYTES)};
    e->teams.heap.used = carve(&carver, 1, e->teams.heap.units, 64);
    carve_keys(&carver, &e->teams.by_number, TEAMS_MAX);
    e->programs.heap = (struct heap){.base = e->programs.memory,
                                     .unit = ENGINE_PROGRAM_UNIT,
                                     .units = c->program_bytes / ENGINE_PROGRAM_UNIT};
    e->programs.heap.used = carve(&carver, 1, e->programs.heap.units, 64);
    carve_keys(&carver, &e->offloads.by_index, OFFLOADS_MAX);
    e->offloads.live = carve(&carver, sizeof(*e->offloads.live), OFFLOADS_MAX, 4096);
    e->offloads.stacks = carve(&carver, HANDLER_STACK_BYTES, c->clients_max, 64);
    e->offloads.turns.of = carve(&carver, sizeof(struct handler_turn), c->clients_max, 64);
    e->offloads.turns.next = carve(&carver, sizeof(uint32_t), c->clients_max, 64);
    e->offloads.turns.users = carve(&carver, sizeof(struct handler_user), c->clients_max, 64);
    e->offloads.turns.user_next = carve(&carver, sizeof(uint32_t), c->clients_max, 64);
    e->offloads.gets.next = carve(&carver, sizeof(uint32_t), gets_size(c), 64);
    e->offloads.gets.of = carve(&carver, sizeof(struct ready_list), c->sessions_max, 64);
    e->offloads.gets.session_next = carve(&carver, sizeof(uint32_t), c->sessions_max, 64);
    e->offloads.gets.listed = carve(&carver, sizeof(bool), c->sessions_max, 64);
    e->offloads.vm = carve(&carver, sizeof(*e->offloads.vm), 1, 64);
    e->offloads.collected = carve(&carver, sizeof(*e->offloads.collected), 1, 64);
    return (carver.used + 4095) / 4096 * 4096;
}

size_t engine_arena_bytes(const struct engine_config *config)
{
    struct engine measure;

    return arena_layout(&measure, config, NULL);
}

size_t engine_private_bytes(const struct engine_config *config)
{
    struct engine measure;

    return private_layout(&measure, config, NULL);
}

/* Memory for ledgers as a whole, segments, and of each peer the ring in use or to come, and those
 * that leave. */
uint32_t engine_memories_max(const struct engine_config *config)
{
    return 1 + config->segments_max + (1 + PARTING_RINGS) * config->peers;
}

uint64_t layout_fingerprint(const struct engine_config *c)
{
    uint64_t numbers[] = {
        c->self,
        c->peers,
        c->stride,
        c->clients_max,
        c->sessions_max,
        c->segments_max,
        c->regions_max,
        c->remotes_max,
        c->flows_max,
        c->chunks_max,
        c->packed_max,
        c->team_bytes,
        c->program_bytes,
        sizeof(struct client),
        sizeof(struct session),
        sizeof(struct segment),
        sizeof(struct region),
        sizeof(struct grant),
        sizeof(struct remote),
        sizeof(struct flow),
        sizeof(struct inflow),
        sizeof(struct peer),
        sizeof(struct op),
        sizeof(struct note),
        sizeof(struct team),
        sizeof(struct participant),
        sizeof(struct instance),
        sizeof(struct program),
        sizeof(struct offload),
        sizeof(struct offload_target) * ENGINE_OFFLOAD_TARGETS,
        sizeof(struct handler_get),
    };
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        hash = (hash ^ numbers[i]) * UINT64_C(0x100000001b3);
    return hash;
}
