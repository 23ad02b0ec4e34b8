/* A player attaches, does its part, and checks events and bytes (player.h). */
#include "tests/faults/player.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "tests/faults/player_team.h"
#include "tests/lib/rank.h"
#include "pwc/am.h"

enum {
    LIMIT_S = 10,
    CALL_MS = 8000,
    NAP_MS = 5,
    HANDLER = 1,
    ASLEEP_NS = 400000, /* after this time a neighbour sleeps */
};

#define REPLY_ID UINT64_MAX

const char *player_role(enum role role)
{
    static const char *const names[] = {
        "origin",   "target", "target of large puts", "neighbour", "owner",
        "gatherer", "member", "owner of handlers",    "all in one"};

    return names[role];
}

int player_wrong(struct player *p, int rc, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!p->why[0])
        vsnprintf(p->why, sizeof(p->why), format, arguments);
    va_end(arguments);
    return rc;
}

static time_t limit(void)
{
    return time(NULL) + LIMIT_S;
}

/* Whether the run is over, so that this player need not wait for others. */
static bool is_over(const struct player *p)
{
    return atomic_load(&p->stage->over) != 0 || atomic_load(&p->stage->given_up) != 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t place_bytes(enum role role)
{
    return role == ROLE_LARGE ? 1u << 20 : 32768;
}

static size_t place(const struct player *p, uint32_t of, uint64_t round)
{
    return (of * PLAYER_ROUNDS + round % PLAYER_ROUNDS) * place_bytes(p->role);
}

/* Returns the length of a round's payload: 0, packed lengths, longer ones, and a whole place. */
static size_t length_of(const struct player *p, uint64_t round)
{
    static const size_t lengths[PLAYER_ROUNDS] = {8, 64, 1000, 4097, 20000, 32768, 0, 16};

    return p->role == ROLE_LARGE ? place_bytes(p->role) : lengths[round % PLAYER_ROUNDS];
}

static uint64_t seed_of(uint32_t number, uint64_t round)
{
    return number * 100 + round;
}

static void fill_own(struct player *p)
{
    for (uint64_t i = 0; i < PLAYER_ROUNDS; i++)
        rank_fill(p->memory + place(p, p->number, i), length_of(p, i), seed_of(p->number, i));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Whether the status means that the victim is lost. With handlers its offload may end before its
 * region, with a status of its own. */
static bool is_loss(const struct player *p, int status)
{
    return status == -EHOSTDOWN || status == -EKEYREJECTED || status == -ECONNABORTED ||
           (p->role == ROLE_HANDLERS && status == -ESHUTDOWN);
}

static int see_end(struct player *p, const struct pwc_event *event)
{
    uint32_t to = (uint32_t)(event->id >> 32);

    /* A reply has a local event only for an error, here because the requester is dead. */
    if (event->id == REPLY_ID && p->may_lose && is_loss(p, event->status))
        return 0;
    if (to >= STAGE_RANKS || (uint32_t)event->id != p->ended[to])
        return player_wrong(p, -EPROTO, "operation %u towards %u has ended instead of %u",
                            (unsigned)event->id, to, to < STAGE_RANKS ? (unsigned)p->ended[to] : 0);
    p->ended[to]++;
    if (event->status == 0)
        return 0;
    if (!p->may_lose || to != VICTIM || !is_loss(p, event->status))
        return player_wrong(p, event->status, "operation %u towards %u: %s", (unsigned)event->id,
                            to, pwc_strerror(event->status));
    p->lost = true;
    return 0;
}

static int see_remote(struct player *p, const struct pwc_event *event)
{
    uint32_t from = (uint32_t)event->peer;
    uint64_t round = from < STAGE_RANKS ? p->heard[from]++ : 0;

    if (from >= STAGE_RANKS || event->status != 0 || event->id != round ||
        event->length != length_of(p, round))
        return player_wrong(p, -EPROTO, "event %u of %u, %u bytes, status %d, instead of %u",
                            (unsigned)event->id, from, (unsigned)event->length, event->status,
                            (unsigned)round);
    if (p->role != ROLE_OWNER && rank_check(p->memory + place(p, from, round), length_of(p, round),
                                            seed_of(from, round)) < 0)
        return player_wrong(p, -EIO, "round %u of %u has wrong bytes", (unsigned)round, from);
    return 0;
}

/* Waits for an event for some time. Returns 1 if one came, 0 if none did, or a negative errno. */
static int look(struct player *p, int for_ms)
{
    struct pwc_event event = {0};
    int rc = pwc_wait(p->ctx, PWC_ANY, 0, &event, for_ms);

    if (rc < 0)
        return player_wrong(p, rc, "wait: %s", pwc_strerror(rc));
    if (rc == 1)
        rc = event.kind == PWC_LOCAL ? see_end(p, &event) : see_remote(p, &event);
    return rc < 0 ? rc : event.kind != 0;
}

/* Waits until only `left` operations towards a rank are under way. */
static int drain(struct player *p, uint32_t to, uint64_t left)
{
    int rc = 0;

    for (time_t end = limit(); rc >= 0 && p->begun[to] - p->ended[to] > left;)
        rc = time(NULL) < end ? look(p, NAP_MS)
                              : player_wrong(p, -ETIMEDOUT, "%u operations towards %u do not end",
                                             (unsigned)(p->begun[to] - p->ended[to]), to);
    return rc < 0 ? rc : 0;
}

/* Waits until `count` remote events of a rank have come, or the run is over. */
static int hear(struct player *p, uint32_t from, uint64_t count)
{
    int rc = 0;

    for (time_t end = limit(); rc >= 0 && p->heard[from] < count && !is_over(p);)
        rc = time(NULL) < end ? look(p, NAP_MS)
                              : player_wrong(p, -ETIMEDOUT, "%u events of %u, not %u",
                                             (unsigned)p->heard[from], from, (unsigned)count);
    return rc < 0 ? rc : 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void answer(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    if (!message->is_reply && message->token != 0)
        (void)pwc_am_reply_short(ctx, message->token,
                                 &(struct pwc_am_send){.index = HANDLER,
                                                       .lid = pwc_cid_u64(REPLY_ID),
                                                       .flags = PWC_NO_LCE});
}

enum kind { PUT, GET, OWN_GET, SHORT, MEDIUM, LONG };

static int post(struct player *p, uint32_t to, enum kind kind, uint64_t round)
{
    pwc_remote *remote = p->remotes[to];
    pwc_cid lid = pwc_cid_u64((uint64_t)to << 32 | p->begun[to]), rid = pwc_cid_u64(round);
    uint8_t *own = p->memory + place(p, p->number, round);
    uint8_t *landing = p->memory + place(p, to, round);
    size_t length = length_of(p, round);

    switch (kind) {
    case PUT:
        return pwc_put(remote, place(p, p->number, round), own, length, lid, rid, 0);
    case GET:
        return pwc_get(remote, place(p, to, round), landing, length, lid, rid, PWC_NO_RCE);
    case OWN_GET: /* a get with a remote event for the owner */
        return pwc_get(remote, place(p, to, round), landing, length, lid, rid, 0);
    case SHORT:
        return pwc_am_short(remote, &(struct pwc_am_send){.index = HANDLER, .lid = lid});
    case MEDIUM:
        return pwc_am_medium(
            remote, &(struct pwc_am_send){.index = HANDLER, .src = own, .len = 64, .lid = lid});
    case LONG: /* to the place of a put without bytes */
        return pwc_am_long(
            remote, place(p, p->number, 6),
            &(struct pwc_am_send){.index = HANDLER, .src = own, .len = 16, .lid = lid});
    }
    return -EINVAL;
}

static int begin(struct player *p, uint32_t to, enum kind kind, uint64_t round)
{
    time_t end = limit();
    int rc;

    while ((rc = post(p, to, kind, round)) == -EAGAIN && time(NULL) < end)
        if (look(p, 1) < 0)
            return -EIO;
    if (rc < 0)
        return player_wrong(p, rc, "operation %u towards %u: %s", (unsigned)p->begun[to], to,
                            pwc_strerror(rc));
    p->begun[to]++;
    return drain(p, to, PLAYER_WINDOW);
}

static bool only_puts(const struct player *p)
{
    return p->role == ROLE_LARGE || p->role == ROLE_HANDLERS;
}

static int round_of(struct player *p, uint32_t to, uint64_t round)
{
    int rc;

    if (p->role == ROLE_OWNER)
        return begin(p, to, OWN_GET, round);
    rc = begin(p, to, PUT, round);
    if (rc == 0 && !only_puts(p) && round % 2 == 1)
        rc = begin(p, to, GET, round);
    if (rc == 0 && !only_puts(p) && round % 3 == 1)
        rc = begin(p, to, round == 1 ? SHORT : round == 4 ? MEDIUM : LONG, round);
    return rc;
}

static int give(struct player *p, uint32_t to)
{
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < PLAYER_ROUNDS && !p->lost; i++)
        rc = round_of(p, to, i);
    return rc < 0 ? rc : drain(p, to, 0);
}

/* Two ranks take turns: each waits for the other so long that it falls asleep. */
static int alternate(struct player *p, uint32_t with)
{
    const struct timespec pause = {.tv_nsec = ASLEEP_NS};
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < PLAYER_ROUNDS && !p->lost; i++) {
        if (p->number == VICTIM)
            nanosleep(&pause, NULL);
        if (p->number != VICTIM)
            rc = hear(p, with, i + 1);
        if (rc == 0)
            rc = round_of(p, with, i);
        if (rc == 0 && p->number == VICTIM)
            rc = hear(p, with, i + 1);
    }
    return rc < 0 ? rc : drain(p, with, 0);
}

static int gather(struct player *p)
{
    uint8_t mine[64], all[STAGE_RANKS * sizeof(mine)];
    int rc = 0;

    rank_fill(mine, sizeof(mine), p->number);
    for (unsigned i = 0; rc == 0 && i < 3; i++)
        rc = i < 2 ? pwc_exchange(p->ctx, mine, sizeof(mine), all) : pwc_barrier(p->ctx);
    if (rc < 0 && rc != -ETIMEDOUT && p->may_lose) {
        p->lost = true;
        return 0;
    }
    return rc < 0 ? player_wrong(p, rc, "exchange: %s", pwc_strerror(rc)) : 0;
}

/* ---- a part, from beginning to end ------------------------------------------------------------
 */

static int enter(struct player *p, const char *socket, const char *job)
{
    const struct pwc_attr attr = {
        .socket = socket,
        .job = job,
        .rank = p->number,
        .size = STAGE_RANKS,
        .timeout_ms = p->stage->call_ms > 0 ? (int)p->stage->call_ms : CALL_MS,
        .error = p->why,
        .error_size = sizeof(p->why),
    };
    size_t length = STAGE_RANKS * PLAYER_ROUNDS * place_bytes(p->role);
    int rc = pwc_init(&attr, &p->client);

    if (rc == 0)
        rc = pwc_ctx_create(p->client, NULL, &p->ctx);
    if (rc == 0)
        rc = pwc_am_register(p->ctx, HANDLER, answer, NULL);
    if (rc == 0)
        rc = pwc_alloc(p->client, length, PWC_REMOTE_RW, &p->region);
    if (rc == 0 && p->role == ROLE_HANDLERS && p->number == VICTIM)
        rc = player_offload_open(&p->offload, p->client, p->ctx, p->region);
    if (rc == 0)
        rc = pwc_region_key(p->region, &p->stage->keys[p->number]);
    if (rc < 0) {
        if (p->client && !p->why[0])
            pwc_error_text(p->client, p->why, sizeof(p->why));
        return player_wrong(p, rc, "attach: %s", pwc_strerror(rc));
    }
    p->memory = pwc_region_addr(p->region);
    fill_own(p);
    atomic_store(&p->stage->present[p->number], 1);
    return 0;
}

/* Binds the other ranks as they appear. -ECANCELED: the victim has ended first. */
static int meet(struct player *p)
{
    const struct timespec pause = {.tv_nsec = 200000};
    time_t end = limit();

    for (uint32_t i = 0; i < STAGE_RANKS; i++) {
        int rc;

        while (!atomic_load(&p->stage->present[i])) {
            if (is_over(p))
                return -ECANCELED;
            if (time(NULL) >= end)
                return player_wrong(p, -ETIMEDOUT, "rank %u does not come", i);
            nanosleep(&pause, NULL);
        }
        if (i == p->number)
            continue;
        do /* the outcome is unknown after a daemon's restart: ask again */
            rc = pwc_bind(p->ctx, pwc_peer_of(i, 0), &p->stage->keys[i], &p->remotes[i]);
        while (rc == -ECONNABORTED && time(NULL) < end);
        /* The other survivor may have noticed the death earlier, and have left. */
        if (p->may_lose && (is_loss(p, rc) || rc == -EHOSTUNREACH))
            return -ECANCELED;
        if (rc < 0) {
            pwc_error_text(p->client, p->why, sizeof(p->why));
            return player_wrong(p, rc, "bind of %u: %s", i, pwc_strerror(rc));
        }
    }
    return 0;
}

static int play_victim(struct player *p)
{
    const struct timespec pause = {.tv_nsec = 200000};
    int rc = 0;

    atomic_store(&p->stage->bound, 1);
    while (!atomic_load(&p->stage->may_begin) && !is_over(p))
        nanosleep(&pause, NULL);
    atomic_store(&p->stage->begun, 1);
    switch (p->role) {
    case ROLE_ALL:
        rc = gather(p);
        if (rc < 0)
            return rc;
        /* fall through */
    case ROLE_ORIGIN:
        rc = give(p, FAR);
        return rc < 0 ? rc : give(p, NEAR);
    case ROLE_TARGET:
    case ROLE_OWNER:
    case ROLE_HANDLERS:
        rc = hear(p, FAR, PLAYER_ROUNDS);
        return rc < 0 ? rc : hear(p, NEAR, PLAYER_ROUNDS);
    case ROLE_LARGE:
        return hear(p, FAR, PLAYER_ROUNDS);
    case ROLE_NEIGHBOUR:
        return alternate(p, NEAR);
    case ROLE_GATHER:
        return gather(p);
    case ROLE_MEMBER:
        return player_team_work(p);
    default:
        return -EINVAL;
    }
}

/* Puts to the dead rank until its daemon has noticed the death: from then on each put ends with an
 * error, and all earlier ones have ended. */
static int meet_the_dead(struct player *p)
{
    int rc = 0;

    for (time_t end = limit(); rc == 0 && !p->lost;) {
        rc = begin(p, VICTIM, PUT, p->begun[VICTIM]);
        if (rc == 0)
            rc = drain(p, VICTIM, 0);
        if (time(NULL) >= end)
            return player_wrong(p, -ETIMEDOUT, "puts towards the dead go on");
    }
    return rc;
}

static int play_survivor(struct player *p)
{
    bool gives = p->role == ROLE_TARGET || p->role == ROLE_OWNER || p->role == ROLE_HANDLERS ||
                 (p->role == ROLE_LARGE && p->number == FAR);
    int rc = 0;

    while (!atomic_load(&p->stage->begun) && !is_over(p))
        rc = look(p, 1);
    if (rc >= 0 && (p->role == ROLE_GATHER || p->role == ROLE_ALL))
        rc = gather(p);
    else if (rc >= 0 && p->role == ROLE_MEMBER)
        rc = player_team_work(p);
    else if (rc >= 0 && gives)
        rc = give(p, VICTIM);
    else if (rc >= 0 && p->role == ROLE_NEIGHBOUR && p->number == NEAR)
        rc = alternate(p, VICTIM);
    for (time_t end = limit(); rc >= 0 && !atomic_load(&p->stage->over);)
        rc = time(NULL) < end ? look(p, NAP_MS)
                              : player_wrong(p, -ETIMEDOUT, "the victim does not end");
    if (rc >= 0 && p->role == ROLE_MEMBER)
        rc = player_team_go_on(p);
    if (rc >= 0 && p->role != ROLE_GATHER)
        rc = meet_the_dead(p);
    while (rc >= 0 && (rc = look(p, NAP_MS)) == 1)
        continue;
    return rc;
}

/* Shares variables of the program, and frees that region. Their contents must stay, whatever
 * fails. */
static int share_own(struct player *p)
{
    static uint8_t own[1 << 16] __attribute__((aligned(1 << 16))); /* alone in its pages */
    pwc_region *region;
    int rc;

    memset(own, 0x3c, sizeof(own));
    rc = pwc_register(p->client, own + 50, sizeof(own) - 100, PWC_REMOTE_RW, PWC_SHARE, &region);
    if (rc == 0)
        rc = pwc_region_free(region);
    for (size_t i = 0; i < sizeof(own); i++)
        if (own[i] != 0x3c)
            abort();
    if (rc < 0) /* pages that were not moved back are unmapped */
        munmap(own, sizeof(own));
    return rc;
}

static int leave(struct player *p, int rc)
{
    pwc_client *client = p->client;
    int ended = 0;

    /* The survivors only hang up; the victim gives back one thing after another. */
    if (rc == 0 && p->number == VICTIM) {
        for (uint32_t i = 0; ended == 0 && i < STAGE_RANKS; i++)
            ended = p->remotes[i] ? pwc_unbind(p->remotes[i]) : 0;
        if (ended == 0)
            ended = player_offload_close(&p->offload);
        if (ended == 0 && !p->offload.kept)
            ended = pwc_region_free(p->region);
        if (ended == 0)
            ended = share_own(p);
        if (ended == 0)
            ended = pwc_ctx_destroy(p->ctx);
    }
    if (ended < 0)
        rc = player_wrong(p, ended, "leaving: %s", pwc_strerror(ended));
    if (client)
        pwc_abort(client);
    return rc;
}

int player_run(struct player *p, struct stage *stage, enum role role, uint32_t number,
               const char *socket, const char *job)
{
    int rc;

    *p = (struct player){
        .stage = stage, .role = role, .number = number, .may_lose = number != VICTIM};
    rc = enter(p, socket, job);
    if (rc == 0)
        rc = meet(p);
    if (rc == 0)
        rc = number == VICTIM ? play_victim(p) : play_survivor(p);
    if (rc == -ECANCELED)
        rc = 0;
    if (rc < 0)
        atomic_store(&stage->given_up, 1);
    return leave(p, rc);
}
