/* Owns the counts of what each client and user holds (quota.h). Thread: control. */
#include "daemon/control/clients/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/clock.h"
#include "shm_ring/sigbus.h"

#define FIELD(member) offsetof(struct config, member)
#define NO_KEY        SIZE_MAX
#define CLIENT_TEAMS  64u /* by default */

static const struct rule {
    const char *what, *key; /* client-`key`, user-`key` */
    size_t client, user;    /* in struct config */
} rules[QUOTA_KINDS] = {
    [QUOTA_CLIENTS] = {"clients", "clients", NO_KEY, FIELD(user_clients)},
    [QUOTA_CONTEXTS] = {"contexts", "contexts", FIELD(client_contexts), FIELD(user_contexts)},
    [QUOTA_SEGMENTS] = {"segments", "segments", FIELD(client_segments), FIELD(user_segments)},
    [QUOTA_REGIONS] = {"regions", "regions", FIELD(client_regions), FIELD(user_regions)},
    [QUOTA_TEAMS] = {"teams", "teams", FIELD(client_teams), FIELD(user_teams)},
    [QUOTA_PROGRAMS] = {"programs", "programs", FIELD(client_programs), FIELD(user_programs)},
    [QUOTA_PROGRAM_BYTES] = {"bytes of programs", "program-bytes", FIELD(client_program_bytes),
                             FIELD(user_program_bytes)},
    [QUOTA_OFFLOADS] = {"offloads", "offloads", FIELD(client_offloads), FIELD(user_offloads)},
    [QUOTA_PAIRS] = {"pairs", NULL, NO_KEY, NO_KEY},
    [QUOTA_MEMORY] = {"bytes", "memory", FIELD(client_memory), FIELD(user_memory)},
};

static uint64_t configured(const struct control *control, size_t field)
{
    return field == NO_KEY ? UINT64_MAX
                           : *(const uint64_t *)((const char *)control->config + field);
}

/* A user's limit. Where 0 is configured, it is seven eighths of everything, so that one user leaves
 * an eighth to the others. */
static uint64_t share(uint64_t given, uint64_t all)
{
    uint64_t eighth = all / 8 > 0 ? all / 8 : 1;

    return given > 0 ? given : all > eighth ? all - eighth : 1;
}

uint64_t quota_pairs_most(uint64_t mappings)
{
    uint64_t most = mappings / 4 * 3;

    return most < SIGBUS_PAIRS_MAX ? most : SIGBUS_PAIRS_MAX;
}

static uint64_t pairs_most(void)
{
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    uint64_t mappings = 65530; /* the kernel's default */

    if (file) {
        (void)!fscanf(file, "%" SCNu64, &mappings);
        fclose(file);
    }
    return quota_pairs_most(mappings);
}

void quota_open(struct control *control, bool others)
{
    const struct engine_config *engine = &control->engine;
    const uint64_t all[QUOTA_KINDS] = {
        [QUOTA_CLIENTS] = engine->clients_max,
        [QUOTA_CONTEXTS] = engine->sessions_max,
        [QUOTA_SEGMENTS] = engine->segments_max,
        [QUOTA_REGIONS] = engine->regions_max,
        [QUOTA_TEAMS] = (uint64_t)engine->clients_max * CLIENT_TEAMS,
        [QUOTA_PROGRAMS] = ENGINE_PROGRAMS_MAX,
        [QUOTA_PROGRAM_BYTES] = engine->program_bytes,
        [QUOTA_OFFLOADS] = ENGINE_OFFLOADS_MAX,
        [QUOTA_PAIRS] = pairs_most(),
        [QUOTA_MEMORY] = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
    };

    for (int i = 0; i < QUOTA_KINDS; i++) {
        uint64_t given = rules[i].user == NO_KEY ? 0 : configured(control, rules[i].user);

        /* Where the daemon serves no other users, 0 means that there is no limit. */
        control->user_limits[i] = given == 0 && !others ? UINT64_MAX : share(given, all[i]);
    }
    control->pairs_most = all[QUOTA_PAIRS];
    control->store.user_names = (uint32_t)(others ? share(0, STORE_MAX) : STORE_MAX);
    control->store.user_bytes = (uint32_t)(others ? share(0, STORE_BYTES) : STORE_BYTES);
    control->user_connections =
        others ? (uint32_t)share(0, 2 * (uint64_t)engine->clients_max) : UINT32_MAX;
}

static void user_free(struct control *control, struct quota_user **at)
{
    struct quota_user *u = *at;

    account_forget(control, &u->account);
    *at = u->next;
    free(u);
}

/* A user with a debt is kept, so that a user who hangs up and connects again still has it. */
static bool may_be_forgotten(struct quota_user *u, uint64_t now)
{
    return u->connections == 0 && u->views == 0 && account_spent(&u->account, now) == 0;
}

static void forget_users(struct control *control)
{
    uint64_t now = clock_ns();

    for (struct quota_user **at = &control->users; *at;) {
        if (may_be_forgotten(*at, now))
            user_free(control, at);
        else
            at = &(*at)->next;
    }
}

void quota_close(struct control *control)
{
    while (control->users)
        user_free(control, &control->users);
}

static struct quota_user *user_of(struct control *control, uid_t uid)
{
    struct quota_user *u = control->users;

    while (u && u->uid != uid)
        u = u->next;
    if (!u) {
        u = calloc(1, sizeof(*u));
        if (!u)
            return NULL;
        u->uid = uid;
        u->account.paid_at = clock_ns();
        u->next = control->users;
        control->users = u;
    }
    return u;
}

/* Whether a user has too many connections without Hello. Those that wait in line do not count: the
 * daemon has not read their Hello yet (turns.h). */
static bool has_many_strangers(const struct quota_user *u)
{
    uint32_t waiting = 0;

    if (u->strangers < CLIENT_STRANGERS_MAX)
        return false;
    for (const struct client *c = u->line; c; c = c->behind)
        waiting += c->state == CLIENT_STRANGER;
    return u->strangers - waiting >= CLIENT_STRANGERS_MAX;
}

struct quota_user *quota_enter(struct control *control, uid_t uid)
{
    struct quota_user *u = user_of(control, uid);

    if (!u)
        return NULL;
    if (u->connections < control->user_connections && !has_many_strangers(u)) {
        u->connections++;
        return u;
    }
    forget_users(control);
    return NULL;
}

struct quota_user *quota_inherit(struct control *control, uid_t uid)
{
    struct quota_user *u = user_of(control, uid);

    if (u)
        u->connections++;
    return u;
}

void quota_leave(struct client *c)
{
    struct quota_user *u = c->user;

    for (int i = 0; i < QUOTA_KINDS; i++)
        u->held[i] -= c->held[i];
    u->connections--;
    forget_users(c->control);
}

void quota_release(struct control *control, struct quota_user *u)
{
    u->views--;
    forget_users(control);
}

/* Whether `amount` more is within the limit; no sum can overflow here. */
static bool fits(uint64_t held, uint64_t amount, uint64_t limit)
{
    return amount <= limit && held <= limit - amount;
}

void quota_charge(struct client *c, enum quota_kind kind, uint64_t amount)
{
    c->held[kind] += amount;
    c->user->held[kind] += amount;
}

int quota_take(struct client *c, enum quota_kind kind, uint64_t amount, char *why, size_t why_size)
{
    const struct rule *rule = &rules[kind];
    uint64_t limit = configured(c->control, rule->client);
    uint64_t user_limit = c->control->user_limits[kind];
    bool own = !fits(c->held[kind], amount, limit);

    if (!own && fits(c->user->held[kind], amount, user_limit)) {
        quota_charge(c, kind, amount);
        return 0;
    }
    quota_count_refused(c);
    if (why)
        snprintf(why, why_size,
                 "%" PRIu64 " beside the %" PRIu64 " %s of this %s: the quota (%s-%s) is %" PRIu64,
                 amount, own ? c->held[kind] : c->user->held[kind], rule->what,
                 own ? "client" : "user", own ? "client" : "user", rule->key,
                 own ? limit : user_limit);
    return -EDQUOT;
}

int quota_take_one(struct client *c, enum quota_kind kind, uint64_t bytes, char *why,
                   size_t why_size)
{
    int rc = quota_take(c, kind, 1, why, why_size);

    if (rc < 0)
        return rc;
    rc = quota_take(c, QUOTA_MEMORY, bytes, why, why_size);
    if (rc < 0)
        quota_give(c, kind, 1);
    return rc;
}

void quota_give(struct client *c, enum quota_kind kind, uint64_t amount)
{
    c->held[kind] -= amount;
    c->user->held[kind] -= amount;
}

void quota_count_refused(struct client *c)
{
    c->user->refused++;
    atomic_fetch_add_explicit(&(c->worker ? c->worker : c->control->workers)->counters.refused, 1,
                              memory_order_relaxed);
}
