/* The members and engines that team_hall.h describes. */
#include "tests/clientlib/teams/team_hall.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/teams/teams.h"
#include "shm_ring/fold.h"

enum { RING = 16384 };

/* ---- members --------------------------------------------------------------------------------- */

static uint32_t engine_of(uint32_t rank, uint32_t size, uint32_t engines, enum hall_layout layout)
{
    return layout == HALL_ROUND ? rank % engines : rank * engines / size;
}

static void open_context(struct hall_member *m, uint32_t rank, uint32_t size)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};

    CU_ASSERT_EQUAL_FATAL(fork_guard_open(&m->client.guard), 0);
    m->client.rank = rank;
    m->client.size = size;
    m->client.link.timeout_ms = 5000;
    m->ctx = calloc(1, sizeof(*m->ctx));
    CU_ASSERT_PTR_NOT_NULL_FATAL(m->ctx);
    CU_ASSERT_EQUAL_FATAL(fake_session_open(&m->daemon, &rings), 0);
    CU_ASSERT_EQUAL_FATAL(
        mapping_adopt(&m->mapping, dup(m->daemon.mapping.fd), m->daemon.mapping.size), 0);
    m->ctx->client = &m->client;
    m->ctx->wake_fd = m->ctx->doorbell_fd = m->ctx->mapping.fd = -1;
    m->ctx->descriptor = -1;
    patience_init(&m->ctx->patience, PATIENCE_ADAPTIVE, PATIENCE_SLICE_NS);
    CU_ASSERT_EQUAL_FATAL(channel_init(&m->ctx->channel, m->mapping.base, m->mapping.size), 0);
    CU_ASSERT_EQUAL_FATAL(pending_open(&m->ctx->channel.pending, session_local_limit(RING)), 0);
}

/* Opens a member's team, as form.c does after the daemon's frames. */
static void open_team(struct hall *h, uint32_t rank, enum hall_layout layout)
{
    struct hall_member *m = &h->members[rank];
    struct roster_run *runs = calloc(h->size, sizeof(*runs));
    struct pwc_team *t = calloc(1, sizeof(*t));
    uint32_t me = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(runs);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    for (uint32_t r = 0; r < h->size; r++) {
        runs[r] = (struct roster_run){.count = 1,
                                      .rank = r,
                                      .node = engine_of(r, h->size, h->engines, layout) + 100,
                                      .engine = 0};
        me += r < rank && h->members[r].engine == m->engine;
    }
    t->ctx = m->ctx;
    t->mapping.fd = -1;
    t->number = 1;
    t->handle = 7;
    t->rank = rank;
    t->me = me;
    t->window = h->window;
    CU_ASSERT_EQUAL_FATAL(roster_settle(&t->roster, runs, h->size, rank), 0);
    CU_ASSERT_EQUAL_FATAL(t->roster.participants, h->engines);
    CU_ASSERT_EQUAL_FATAL(t->roster.participant, m->engine);
    CU_ASSERT_EQUAL_FATAL(t->roster.here, h->engine[m->engine].members);
    CU_ASSERT_EQUAL_FATAL(team_area_view(&t->area, h->engine[m->engine].mapping.base,
                                         h->engine[m->engine].mapping.size, t->roster.here,
                                         h->window),
                          0);
    t->calls = calloc(h->window, sizeof(*t->calls));
    t->steps = calloc(h->window, sizeof(*t->steps));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->calls);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->steps);
    team_find_slices(t);
    t->next = m->ctx->teams.all;
    m->ctx->teams.all = t;
    m->team = t;
    h->order[roster_place(&t->roster, rank)] = rank;
}

struct hall *hall_new(uint32_t size, uint32_t engines, enum hall_layout layout, uint32_t window)
{
    struct hall *h = calloc(1, sizeof(*h));

    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    *h = (struct hall){.size = size, .window = window, .engines = engines};
    for (uint32_t r = 0; r < size; r++) {
        h->members[r].engine = engine_of(r, size, engines, layout);
        h->engine[h->members[r].engine].members++;
        open_context(&h->members[r], r, size);
    }
    for (uint32_t e = 0; e < engines; e++) {
        struct hall_engine *engine = &h->engine[e];
        uint64_t bytes = team_area_bytes(engine->members, window);

        CU_ASSERT_EQUAL_FATAL(mapping_create(&engine->mapping, "test-area", bytes), 0);
        team_area_format(engine->mapping.base, engine->members, window);
        CU_ASSERT_EQUAL_FATAL(team_area_view(&engine->area, engine->mapping.base,
                                             engine->mapping.size, engine->members, window),
                              0);
    }
    for (uint32_t r = 0; r < size; r++)
        open_team(h, r, layout);
    return h;
}

void hall_free(struct hall *h)
{
    for (uint32_t r = 0; r < h->size; r++) {
        struct hall_member *m = &h->members[r];

        teams_drop(m->ctx);
        channel_destroy(&m->ctx->channel);
        mapping_destroy(&m->mapping);
        fake_session_close(&m->daemon);
        fork_guard_close(&m->client.guard);
        free(m->ctx);
    }
    for (uint32_t e = 0; e < h->engines; e++)
        mapping_destroy(&h->engine[e].mapping);
    free(h);
}

int hall_probe(struct hall *h, uint32_t rank, struct pwc_event *event)
{
    return pwc_probe(h->members[rank].ctx, PWC_ANY, PWC_LOCAL, event);
}

/* ---- engines --------------------------------------------------------------------------------- */

void hall_break(struct hall *h, const struct team_reason *reason)
{
    for (uint32_t e = 0; e < h->engines; e++)
        if (!team_is_broken(&h->engine[e].area))
            team_break(&h->engine[e].area, reason);
}

/* The place of a member's input in its engine's area. */
static const uint8_t *gift(const struct hall_engine *e, const struct submit_record *r,
                           uint32_t member, uint64_t each)
{
    const struct team_row *row = team_row(&e->area, r->instance);

    if (r->data_row == TEAM_LINES)
        return row->node.data + member * each;
    return e->area.data[r->data_row].inputs + member * team_stride(each);
}

static uint8_t *result_of(const struct hall_engine *e, const struct submit_record *r)
{
    return r->data_row == TEAM_LINES ? team_row(&e->area, r->instance)->result.data
                                     : e->area.data[r->data_row].result;
}

/* Collects the inputs of all engines for one instance, by place, into `all`: `each` bytes of each
 * member. */
static void gather(struct hall *h, const struct submit_record *like, uint8_t *all, uint64_t each)
{
    for (uint32_t e = 0; e < h->engines; e++)
        for (uint32_t m = 0; m < h->engine[e].members; m++, all += each)
            memcpy(all, gift(&h->engine[e], like, m, each), each);
}

/* Folds the inputs of engines 0 to `last`. */
static void fold_engines(struct hall *h, const struct submit_record *r, uint8_t *into,
                         uint64_t bytes, uint32_t last)
{
    uint8_t code = word_code((enum word_op)team_signature_op(r->signature),
                             (enum word_type)team_signature_type(r->signature));
    uint64_t count = bytes >> fold_shift(code);
    bool scan = r->code == TEAM_SCAN || r->code == TEAM_EXSCAN;

    for (uint32_t e = 0; e <= last; e++) {
        const struct hall_engine *engine = &h->engine[e];
        uint32_t member = scan && r->data_row != TEAM_LINES ? engine->members - 1 : 0;
        const uint8_t *from = gift(engine, r, member, bytes);

        if (e == 0)
            memcpy(into, from, bytes);
        else
            fold(code, into, from, count);
    }
}

static void end_instance(struct hall *h, const struct submit_record *r)
{
    static uint8_t all[4 * HALL_RANKS * TEAM_DATA_BYTES];
    uint64_t length = r->length, whole = h->size * length;
    uint32_t place = 0;

    for (uint32_t e = 0; e < h->engines; e++) {
        const struct hall_engine *engine = &h->engine[e];
        uint8_t *to = result_of(engine, r);
        uint64_t bytes = length;

        switch (r->code) {
        case TEAM_BARRIER:
            bytes = 0;
            break;
        case TEAM_BCAST:
            memcpy(to, gift(&h->engine[r->root], r, 0, length), length);
            break;
        case TEAM_SCATTER:
            bytes = engine->members * length;
            memcpy(to, gift(&h->engine[r->root], r, 0, whole) + place * length, bytes);
            break;
        case TEAM_REDUCE:
        case TEAM_ALLREDUCE:
            fold_engines(h, r, all, length, h->engines - 1);
            memcpy(to, all, length);
            break;
        case TEAM_SCAN:
        case TEAM_EXSCAN:
            if (e > 0) {
                fold_engines(h, r, all, length, e - 1);
                memcpy(to, all, length);
            }
            break;
        case TEAM_REDUCE_SCATTER:
            bytes = engine->members * length;
            fold_engines(h, r, all, whole, h->engines - 1);
            memcpy(to, all + place * length, bytes);
            break;
        case TEAM_GATHER:
        case TEAM_ALLGATHER:
            bytes = whole;
            gather(h, r, all, length);
            memcpy(to, all, whole);
            break;
        case TEAM_ALLTOALL:
            bytes = engine->members * whole;
            gather(h, r, all, whole);
            for (uint32_t m = 0; m < engine->members; m++)
                for (uint32_t s = 0; s < h->size; s++)
                    memcpy(to + m * whole + s * length, all + s * whole + (place + m) * length,
                           length);
            break;
        default:
            CU_FAIL("an unknown kind was submitted");
        }
        team_end(&engine->area, r->instance, 0, (uint32_t)bytes);
        place += engine->members;
    }
}

static bool all_have(const struct hall *h, uint32_t row)
{
    for (uint32_t e = 0; e < h->engines; e++)
        if (!h->engine[e].has[row])
            return false;
    return true;
}

/* The daemon accepts a root only for instances that have one. */
static bool root_is_right(const struct hall *h, const struct submit_record *r)
{
    bool rooted = r->code == TEAM_BCAST || r->code == TEAM_REDUCE || r->code == TEAM_GATHER ||
                  r->code == TEAM_SCATTER;

    return r->root < (rooted ? h->engines : 1);
}

static void take(struct hall *h, struct hall_engine *engine, const struct submit_record *r)
{
    uint32_t row = (uint32_t)r->instance % h->window;

    CU_ASSERT_EQUAL(r->remote, 7);
    CU_ASSERT_EQUAL(r->size, sizeof(*r));
    CU_ASSERT_EQUAL(r->flags, 0);
    CU_ASSERT_EQUAL(r->reserve, 0);
    if (r->kind == SUBMIT_TEAM_WAKE) {
        h->wakes++;
        return;
    }
    CU_ASSERT_EQUAL_FATAL(r->kind, SUBMIT_COLLECTIVE);
    if (r->code == TEAM_MISMATCH) {
        const struct team_reason reason = {.status = -EBADMSG,
                                           .rank = {r->segment, (uint32_t)r->local_offset},
                                           .sequence = r->instance,
                                           .signature = {r->lid, r->rid}};

        h->mismatches++;
        hall_break(h, &reason);
        return;
    }
    CU_ASSERT_TRUE(root_is_right(h, r));
    CU_ASSERT_TRUE(h->held || !engine->has[row]);
    engine->has[row] = true;
    engine->records[row] = *r;
}

void hall_run(struct hall *h)
{
    for (uint32_t rank = 0; rank < h->size; rank++) {
        const struct submit_record *r;

        while ((r = fake_session_read(&h->members[rank].daemon)) != NULL)
            take(h, &h->engine[h->members[rank].engine], r);
    }
    for (uint32_t row = 0; row < h->window && !h->held; row++) {
        if (h->engines == 1 || !all_have(h, row))
            continue;
        for (uint32_t e = 0; e < h->engines; e++) {
            h->engine[e].has[row] = false;
            CU_ASSERT_EQUAL(h->engine[e].records[row].instance, h->engine[0].records[row].instance);
            CU_ASSERT_EQUAL(h->engine[e].records[row].signature,
                            h->engine[0].records[row].signature);
            CU_ASSERT_EQUAL(h->engine[e].records[row].data_row, h->engine[0].records[row].data_row);
        }
        end_instance(h, &h->engine[0].records[row]);
    }
}

int hall_sum(struct hall *h, uint32_t rank, const uint64_t *in, uint64_t *out, size_t n,
             pwc_cid lid)
{
    return pwc_team_allreduce(hall_team(h, rank), in, out, n, PWC_U64, PWC_ADD, lid, 0);
}

bool hall_text_has(struct hall *h, uint32_t rank, const char *words)
{
    char text[300];

    CU_ASSERT_TRUE(pwc_team_error_text(hall_team(h, rank), text, sizeof(text)) < sizeof(text));
    return strstr(text, words) != NULL;
}

void hall_expect_broken(struct hall *h, uint32_t rank, unsigned under_way, int status)
{
    struct pwc_event event;
    uint64_t word = 0;

    for (unsigned i = 0; i < under_way; i++) {
        CU_ASSERT_EQUAL_FATAL(hall_probe(h, rank, &event), 1);
        CU_ASSERT_EQUAL(event.status, status);
        CU_ASSERT_EQUAL(event.length, 0);
    }
    CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 0);
    CU_ASSERT_EQUAL(hall_sum(h, rank, &word, &word, 1, PWC_CID_NONE), status);
    CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 0);
}
