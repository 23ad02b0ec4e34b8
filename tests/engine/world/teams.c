/* Teams over the world's nodes (teams.h). Thread: one. */
#include "tests/engine/world/teams.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "proto/word_abi.h"

/* ---- control --------------------------------------------------------------------------------- */

struct open_call {
    struct engine *engine;
    const struct engine_team_info *info;
    void *area;
    int result;
};

/* Returns the handle of the team of this number, or -ENOENT. */
static int find(struct engine *e, uint64_t number)
{
    struct engine_team_found found;

    for (uint32_t i = 0; i < 1024; i++)
        if (engine_team_find(e, i, &found) == 0 && found.number == number)
            return (int)found.handle;
    return -ENOENT;
}

/* Opens a team, unless an earlier call that the node died in has opened it. */
static void call_open(void *argument)
{
    struct open_call *c = argument;

    c->result = find(c->engine, c->info->number);
    if (c->result < 0)
        c->result = engine_team_open(c->engine, c->info, c->area);
}

/* Numbers the places (nodes with members) by their lowest ranks. */
static void find_places(struct teams *t)
{
    for (uint32_t r = 0; r < t->ranks; r++) {
        uint32_t node = t->world->clients[r].node, p = 0;

        while (p < t->places && t->place[p].node != node)
            p++;
        if (p == t->places)
            t->place[t->places++] = (struct teams_place){.node = node};
        t->member[r] =
            (struct teams_member){.client = r, .place = p, .index = t->place[p].members++};
    }
    for (uint32_t p = 1; p < t->places; p++)
        t->place[p].first = t->place[p - 1].first + t->place[p - 1].members;
    for (uint32_t r = 0; r < t->ranks; r++)
        t->order[t->place[t->member[r].place].first + t->member[r].index] = r;
}

static void open_place(struct teams *t, uint32_t p)
{
    struct engine_team_participant list[WORLD_NODES_MAX];
    struct engine_team_member local[TEAM_RANKS_MAX];
    struct teams_place *place = &t->place[p];
    struct engine_team_info info = {.number = t->number,
                                    .size = t->ranks,
                                    .window = t->window,
                                    .me = p,
                                    .participants = t->places,
                                    .members = place->members,
                                    .list = list,
                                    .local = local};
    struct open_call c = {.info = &info, .area = place->base};

    for (uint32_t i = 0; i < t->places; i++)
        list[i] = (struct engine_team_participant){t->place[i].node, t->place[i].members};
    for (uint32_t r = 0; r < t->ranks; r++)
        if (t->member[r].place == p)
            local[t->member[r].index] =
                (struct engine_team_member){r, t->world->clients[r].contexts[0].session};
    for (uint32_t i = 0; i < 100000 && !place->open && !t->world->failed; i++) {
        struct world_node *n = &t->world->nodes[place->node];

        c.engine = n->engine;
        if (n->alive && world_call(t->world, n, call_open, &c)) {
            if (c.result < 0)
                world_fail(t->world, "a team does not open: %s", strerror(-c.result));
            place->open = c.result >= 0;
            place->handle = (uint32_t)c.result;
        } else {
            world_round(t->world);
        }
    }
}

void teams_open(struct teams *t, struct world *w, uint64_t number, uint32_t ranks, uint32_t window,
                const struct teams_spec *list, uint64_t count, uint64_t seed)
{
    *t = (struct teams){.world = w,
                        .random.state = seed,
                        .number = number,
                        .window = window,
                        .ranks = ranks,
                        .list = list,
                        .count = count};
    find_places(t);
    for (uint32_t p = 0; p < t->places; p++) {
        struct teams_place *place = &t->place[p];

        place->bytes = team_area_bytes(place->members, window);
        place->base =
            mmap(NULL, place->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        team_area_format(place->base, place->members, window);
        team_area_view(&place->area, place->base, place->bytes, place->members, window);
        w->areas[place->node] = (struct world_area){place->base, place->bytes};
    }
    w->teams = t;
    for (uint32_t p = 0; p < t->places; p++)
        open_place(t, p);
}

struct attach_call {
    struct engine *engine;
    uint64_t number;
    void *area;
    int result;
};

static void call_attach(void *argument)
{
    struct attach_call *c = argument;

    c->result = find(c->engine, c->number);
    if (c->result >= 0 && engine_team_inherit(c->engine, (uint32_t)c->result, c->area) < 0)
        c->result = -EINVAL;
}

/* Attaches the areas again. A team that was open, and that the new process does not know, has
 * closed; only its notice was lost. */
void teams_attach(struct teams *t, uint32_t node)
{
    for (uint32_t p = 0; p < t->places; p++) {
        struct world_node *n = &t->world->nodes[node];
        struct attach_call c = {.engine = n->engine, .number = t->number, .area = t->place[p].base};

        if (t->place[p].node != node || t->place[p].closed)
            continue;
        if (!world_call(t->world, n, call_attach, &c))
            return;
        if (c.result == -ENOENT)
            t->place[p].closed = t->place[p].open;
        else if (c.result < 0)
            world_fail(t->world, "node %u: the team is not inherited", node);
    }
}

void teams_closed(struct teams *t, uint32_t node, uint32_t handle)
{
    for (uint32_t p = 0; p < t->places; p++)
        if (t->place[p].node == node && t->place[p].handle == handle)
            t->place[p].closed = true;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Byte `at` of what a rank gives to another rank, or with `to` 0 of its operand. */
static uint8_t byte_of(uint64_t sequence, uint32_t from, uint32_t to, uint32_t at)
{
    uint64_t x = (sequence * 131 + from) * 137 + to * 31 + at;

    x = (x ^ x >> 7) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint8_t)(x >> 40);
}

static bool folds(uint32_t kind)
{
    return kind >= TEAM_REDUCE && kind <= TEAM_REDUCE_SCATTER;
}

static uint32_t rank_of(const struct teams *t, uint32_t place, uint32_t index)
{
    return t->order[t->place[place].first + index];
}

/* The rank whose block is block `i` of a result: in the order of places, then of members. */
static uint32_t rank_at(const struct teams *t, uint32_t i)
{
    return t->order[i];
}

/* Writes a member's gift: its operand, or a block for each rank. Returns its bytes. */
static uint32_t gift(const struct teams *t, const struct teams_spec *spec, uint64_t sequence,
                     uint32_t rank, uint8_t *to)
{
    bool blocks = spec->kind == TEAM_REDUCE_SCATTER || spec->kind == TEAM_SCATTER ||
                  spec->kind == TEAM_ALLTOALL;
    uint32_t count = blocks ? t->ranks : 1;

    for (uint32_t b = 0; b < count; b++)
        for (uint32_t i = 0; i < spec->length; i++)
            to[b * spec->length + i] = byte_of(sequence, rank, blocks ? rank_at(t, b) + 1 : 0, i);
    return count * spec->length;
}

/* The sum (U8 ADD) over the first `end` ranks in the order of places. */
static uint8_t sum(const struct teams *t, uint64_t sequence, uint32_t end, uint32_t to, uint32_t i)
{
    uint8_t total = 0;

    for (uint32_t n = 0; n < end; n++)
        total = (uint8_t)(total + byte_of(sequence, rank_at(t, n), to, i));
    return total;
}

/* How many bytes a place gets as its result; result_byte gives each. */
static uint32_t result_bytes(const struct teams *t, const struct teams_spec *spec, uint32_t place)
{
    const struct teams_place *p = &t->place[place];
    bool root = t->member[spec->root].place == place;

    switch (spec->kind) {
    case TEAM_BARRIER:
        return 0;
    case TEAM_REDUCE:
        return root ? spec->length : 0;
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        return place > 0 ? spec->length : 0;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        return p->members * spec->length;
    case TEAM_GATHER:
        return root ? t->ranks * spec->length : 0;
    case TEAM_ALLGATHER:
        return t->ranks * spec->length;
    case TEAM_ALLTOALL:
        return p->members * t->ranks * spec->length;
    default:
        return spec->length;
    }
}

static uint8_t result_byte(const struct teams *t, const struct teams_spec *spec, uint64_t sequence,
                           uint32_t place, uint32_t at)
{
    const struct teams_place *p = &t->place[place];
    uint32_t block = at / spec->length, i = at % spec->length;

    switch (spec->kind) {
    case TEAM_BCAST:
        return byte_of(sequence, spec->root, 0, i);
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        return sum(t, sequence, p->first, 0, i);
    case TEAM_REDUCE_SCATTER:
        return sum(t, sequence, t->ranks, rank_at(t, p->first + block) + 1, i);
    case TEAM_SCATTER:
        return byte_of(sequence, spec->root, rank_at(t, p->first + block) + 1, i);
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        return byte_of(sequence, rank_at(t, block), 0, i);
    case TEAM_ALLTOALL:
        return byte_of(sequence, rank_at(t, block % t->ranks),
                       rank_at(t, p->first + block / t->ranks) + 1, i);
    default:
        return sum(t, sequence, t->ranks, 0, i);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t fullest(const struct teams *t)
{
    uint32_t most = 0;

    for (uint32_t p = 0; p < t->places; p++)
        most = t->place[p].members > most ? t->place[p].members : most;
    return most;
}

static bool by_lines(const struct teams *t, const struct teams_spec *spec)
{
    return team_way((enum team_kind)spec->kind, spec->length, t->ranks, fullest(t)) ==
           TEAM_BY_LINES;
}

/* How many calls before this one used data rows; *before is the call that used this call's data row
 * last. */
static uint64_t turn_of_call(const struct teams *t, uint64_t sequence, uint64_t *before)
{
    uint64_t used[TEAM_DATA_ROWS] = {0}, turn = 0;

    for (uint64_t s = 0; s < sequence; s++)
        if (!by_lines(t, &t->list[s]))
            used[turn++ % TEAM_DATA_ROWS] = s;
    *before = used[turn % TEAM_DATA_ROWS];
    return turn;
}

static bool is_rooted(uint32_t kind)
{
    return kind == TEAM_BCAST || kind == TEAM_REDUCE || kind == TEAM_GATHER || kind == TEAM_SCATTER;
}

static uint64_t signature_of(const struct teams_spec *spec)
{
    return team_signature((enum team_kind)spec->kind, folds(spec->kind) ? WORD_ADD : 0,
                          folds(spec->kind) ? WORD_U8 : 0, is_rooted(spec->kind) ? spec->root : 0,
                          spec->length);
}

static void submit(struct teams *t, uint32_t rank, uint64_t sequence)
{
    const struct teams_member *m = &t->member[rank];
    const struct teams_spec *spec = &t->list[sequence];
    uint64_t before, turn = turn_of_call(t, sequence, &before);
    struct submit_record r = {.kind = SUBMIT_COLLECTIVE,
                              .code = (uint8_t)spec->kind,
                              .remote = t->place[m->place].handle,
                              .instance = sequence,
                              .length = spec->length,
                              .signature = signature_of(spec),
                              .data_row = by_lines(t, spec) ? TEAM_LINES : turn % TEAM_DATA_ROWS,
                              .root = is_rooted(spec->kind) ? t->member[spec->root].place : 0};

    if (world_submit_at_once(t->world, m->client, &r) < 0)
        world_fail(t->world, "rank %u has no room to submit", rank);
    t->submitted++;
}

void teams_differ(struct teams *t, uint32_t rank)
{
    const struct teams_member *m = &t->member[rank];
    struct submit_record r = {.kind = SUBMIT_COLLECTIVE,
                              .code = TEAM_MISMATCH,
                              .remote = t->place[m->place].handle,
                              .root = rank};

    if (world_submit_at_once(t->world, m->client, &r) < 0)
        world_fail(t->world, "rank %u has no room to submit", rank);
}

/* Writes what the engine gives, combined from the gifts of all members here, as the last member to
 * come does. */
static void combine(struct teams *t, uint32_t rank, uint64_t sequence)
{
    static uint8_t gifts[TEAM_DATA_BYTES], one[TEAM_DATA_BYTES];
    const struct teams_member *me = &t->member[rank];
    const struct teams_place *place = &t->place[me->place];
    const struct teams_spec *spec = &t->list[sequence];
    bool root_gives = spec->kind == TEAM_BCAST || spec->kind == TEAM_SCATTER, lines;
    uint64_t before, turn = turn_of_call(t, sequence, &before);
    uint32_t used = 0;
    uint8_t *to;

    lines = by_lines(t, spec);
    to =
        lines ? team_row(&place->area, sequence)->node.data : team_data(&place->area, turn)->inputs;
    for (uint32_t m = 0; m < place->members; m++) {
        uint32_t from = root_gives ? rank : rank_of(t, me->place, m);
        uint32_t bytes = gift(t, spec, sequence, from, one);

        if (folds(spec->kind) || root_gives) {
            for (uint32_t i = 0; i < bytes; i++)
                gifts[i] = m == 0 || root_gives ? one[i] : (uint8_t)(gifts[i] + one[i]);
            used = bytes;
        } else {
            memcpy(gifts + used, one, bytes);
            used += lines ? bytes : (uint32_t)team_stride(bytes);
        }
    }
    if (!lines && (spec->kind == TEAM_SCAN || spec->kind == TEAM_EXSCAN))
        to += (place->members - 1) * team_stride(used); /* writes the last member's part */
    memcpy(to, gifts, used);
}

/* The member calls, or continues a call whose arrival was counted. */
static bool call(struct teams *t, uint32_t rank)
{
    struct teams_member *m = &t->member[rank];
    const struct teams_place *place = &t->place[m->place];
    const struct teams_spec *spec = &t->list[m->called];
    bool root_gives = spec->kind == TEAM_BCAST || spec->kind == TEAM_SCATTER;
    bool root_here = t->member[spec->root].place == m->place;
    uint64_t before, turn = turn_of_call(t, m->called, &before);
    int r = team_row_room(&place->area, m->called);

    if (r == 0 && !by_lines(t, spec))
        r = team_data_room(&place->area, turn, before);
    if (r == -EPROTO)
        world_fail(t->world, "rank %u: counts of call %llu make no sense", rank,
                   (unsigned long long)m->called);
    if (r < 0 || !world_has_room(t->world, m->client))
        return false;
    team_line_write(&place->area, m->called, m->index, signature_of(spec), NULL, 0);
    if (root_gives && rank == spec->root)
        combine(t, rank, m->called);
    r = team_arrive(&place->area, m->called);
    if (r < 0)
        world_fail(t->world, "rank %u: too many have come", rank);
    if (root_gives && root_here ? rank == spec->root : r == 1) {
        if (!root_gives)
            combine(t, rank, m->called);
        submit(t, rank, m->called);
    }
    m->called++;
    return true;
}

static bool take(struct teams *t, uint32_t rank)
{
    struct teams_member *m = &t->member[rank];
    const struct teams_place *place = &t->place[m->place];
    const struct teams_spec *spec = &t->list[m->taken];
    const struct team_row *row = team_row(&place->area, m->taken);
    uint64_t before, turn = turn_of_call(t, m->taken, &before);
    uint32_t bytes = result_bytes(t, spec, m->place);
    const uint8_t *data;
    int r;

    if (m->taken == m->called)
        return false;
    r = team_ended(&place->area, m->taken);
    if (r < 0)
        world_fail(t->world, "rank %u: call %llu is done already", rank,
                   (unsigned long long)m->taken);
    if (r != 1)
        return false;
    data = by_lines(t, spec) ? row->result.data : team_data(&place->area, turn)->result;
    if (row->result.status != 0 || row->result.length != bytes)
        world_fail(t->world, "rank %u: call %llu: status %d, %u bytes, not %u", rank,
                   (unsigned long long)m->taken, row->result.status, row->result.length, bytes);
    for (uint32_t i = 0; i < bytes && !t->world->failed; i++)
        if (data[i] != result_byte(t, spec, m->taken, m->place, i))
            world_fail(t->world, "rank %u: call %llu of kind %u, length %u: byte %u is wrong", rank,
                       (unsigned long long)m->taken, spec->kind, spec->length, i);
    team_take(&place->area, m->taken);
    if (!by_lines(t, spec))
        team_take_data(&place->area, turn);
    m->taken++;
    return true;
}

static bool member_turn(struct teams *t, uint32_t rank)
{
    struct teams_member *m = &t->member[rank];
    const struct teams_place *place = &t->place[m->place];
    bool done = false;

    if (m->dead || m->left)
        return false;
    if (m->status == 0 && team_is_broken(&place->area)) {
        struct team_reason reason;

        team_reason(&place->area, &reason);
        m->status = reason.status;
    }
    if (m->status != 0)
        return false;
    if (m->taken < t->count && take(t, rank))
        done = true;
    if (m->called < t->count && m->called - m->taken < t->window && call(t, rank))
        done = true;
    return done;
}

bool teams_turn(struct teams *t)
{
    bool done = false;

    for (uint32_t r = 0; r < t->ranks && !t->world->failed; r++)
        if (sim_random_below(&t->random, 4) != 0)
            done |= member_turn(t, r);
    if (done)
        t->world->idle = 0;
    return done;
}

void teams_hurry(struct teams *t)
{
    for (uint32_t waiting = 0, r = 0; waiting < t->ranks && !t->world->failed;
         r = (r + 1) % t->ranks) {
        bool done = member_turn(t, r);

        waiting = done ? 0 : waiting + 1;
        if (done)
            t->world->idle = 0;
    }
}

bool teams_over(const struct teams *t)
{
    for (uint32_t r = 0; r < t->ranks; r++) {
        const struct teams_member *m = &t->member[r];

        if (!m->dead && m->status == 0 && m->taken < t->count)
            return false;
    }
    return true;
}

void teams_run(struct teams *t, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds && !t->world->failed && !teams_over(t); i++) {
        teams_turn(t);
        world_round(t->world);
    }
    for (uint32_t r = 0; r < t->ranks && !t->world->failed; r++) {
        const struct teams_member *m = &t->member[r];

        if (!m->dead && m->status == 0 && m->taken < t->count)
            world_fail(t->world, "rank %u hangs: %llu called, %llu taken of %llu", r,
                       (unsigned long long)m->called, (unsigned long long)m->taken,
                       (unsigned long long)t->count);
    }
}

void teams_kill(struct teams *t, uint32_t rank)
{
    t->member[rank].dead = true;
    world_client_close(t->world, t->member[rank].client);
}

/* ---- the end --------------------------------------------------------------------------------- */

struct leave_call {
    struct engine *engine;
    uint32_t handle, session;
};

static void call_leave(void *argument)
{
    struct leave_call *c = argument;

    engine_team_leave(c->engine, c->handle, c->session);
}

static void leave(struct teams *t, uint32_t rank)
{
    struct teams_member *m = &t->member[rank];
    struct world_node *n = &t->world->nodes[t->place[m->place].node];
    struct leave_call c = {.engine = n->engine,
                           .handle = t->place[m->place].handle,
                           .session = t->world->clients[m->client].contexts[0].session};

    if (m->dead || m->left || !n->alive || t->place[m->place].closed)
        return;
    m->left = world_call(t->world, n, call_leave, &c);
}

void teams_close(struct teams *t)
{
    bool closed = false;

    for (uint32_t i = 0; i < 200000 && !closed && !t->world->failed; i++) {
        closed = true;
        for (uint32_t r = 0; r < t->ranks; r++) {
            leave(t, r);
            closed &= t->member[r].dead || t->member[r].left || t->place[t->member[r].place].closed;
        }
        for (uint32_t p = 0; p < t->places; p++)
            closed &= t->place[p].closed || !t->place[p].open;
        if (!closed)
            world_round(t->world);
    }
    if (!closed)
        world_fail(t->world, "a team never closes");
    for (uint32_t p = 0; p < t->places; p++) {
        if (t->place[p].base)
            munmap(t->place[p].base, t->place[p].bytes);
        t->place[p].base = NULL;
        t->world->areas[t->place[p].node] = (struct world_area){0};
    }
    t->world->teams = NULL;
}

struct teams_spec teams_random_spec(struct sim_random *random, uint32_t ranks, uint32_t fullest)
{
    static const uint32_t lengths[] = {0,    1,    2,    7,     8,     13,    39,
                                       40,   41,   64,   100,   500,   1023,  1024,
                                       1025, 4095, 4096, 40000, 65536, 126976};
    struct teams_spec spec;

    do {
        spec.kind = 1 + (uint32_t)sim_random_below(random, TEAM_ALLTOALL);
        spec.root = (uint32_t)sim_random_below(random, ranks);
        spec.length = lengths[sim_random_below(random, sizeof lengths / sizeof *lengths)];
        if (spec.kind == TEAM_BARRIER)
            spec.length = 0;
    } while (team_way((enum team_kind)spec.kind, spec.length, ranks, fullest) == TEAM_LARGE);
    return spec;
}
