/* An offload in the simulated world (scene.h). Thread: one. */
#include "tests/engine/offload/scene.h"

#include <errno.h>
#include <string.h>
#include "daemon/handlers/image.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene_image.h"

#define ROUNDS_MAX 200000u
#define COOKIE     UINT64_C(0xc00c1e)
/* ---- calls into the owner's engine ----------------------------------------------------------- */

struct owner_call {
    struct scene *scene;
    uint32_t flags, handlers;
    uint32_t targets[ENGINE_OFFLOAD_TARGETS], target_count;
    bool enable;
    int result;
};

static struct engine *owner_engine(const struct scene *s)
{
    return s->world->nodes[s->world->clients[s->first + 1].node].engine;
}

static void call_create(void *argument)
{
    struct owner_call *c = argument;
    struct scene *s = c->scene;
    const struct world_client *owner = &s->world->clients[s->first + 1];
    const struct engine_key *key = &owner->contexts[0].key;
    _Alignas(64) uint64_t words[256] = {0};
    struct image_error wrong;
    uint32_t bytes = scene_image(words, c->handlers, c->target_count - 1);
    const struct engine_offload_info info = {
        .index = SCENE_INDEX,
        .flags = c->flags,
        .target_count = c->target_count,
        .targets = c->targets,
        .cookie = COOKIE,
        .takes = s->puts ? OFFLOAD_PUTS : OFFLOAD_MESSAGES,
        .host = {key->slot, key->generation, 0, owner->contexts[0].length}};
    struct engine_offload_info with_program = info;

    c->result = image_check(words, bytes, &wrong);
    if (c->result < 0) {
        world_fail(s->world, "instruction %u: %s (%lld)", wrong.place, wrong.reason,
                   (long long)wrong.value);
        return;
    }
    if (peek_offload_of(owner_engine(s), owner->contexts[0].session, SCENE_INDEX) >= 0)
        return; /* the offload was made before the last death */
    s->program = engine_program_load(owner_engine(s), owner->handle, (const void *)words, bytes);
    with_program.program = (uint32_t)s->program;
    c->result =
        engine_offload_create(owner_engine(s), owner->contexts[0].session, &with_program, 1);
}

uint32_t scene_program(struct world *w, uint32_t client)
{
    const struct world_client *owner = &w->clients[client];
    _Alignas(64) uint64_t words[256] = {0};
    uint32_t bytes = scene_image(words, 1 << HANDLER_COMPLETION, 0);
    int program = engine_program_load(w->nodes[owner->node].engine, owner->handle,
                                      (const void *)words, bytes);

    if (program < 0)
        world_fail(w, "client %u: no program: %s", client, strerror(-program));
    return (uint32_t)program;
}

int scene_offload(struct world *w, uint32_t client)
{
    const struct world_client *owner = &w->clients[client];
    const struct engine_offload_info info = {.program = scene_program(w, client),
                                             .index = SCENE_INDEX};

    return engine_offload_create(w->nodes[owner->node].engine, owner->contexts[0].session, &info,
                                 0);
}

static void call_enable(void *argument)
{
    struct owner_call *c = argument;
    uint32_t session = c->scene->world->clients[c->scene->first + 1].contexts[0].session;

    c->result =
        c->enable
            ? engine_offload_enable(owner_engine(c->scene), session, (uint32_t)c->scene->offload)
            : engine_offload_disable(owner_engine(c->scene), session, (uint32_t)c->scene->offload);
}

static void call_destroy(void *argument)
{
    struct owner_call *c = argument;

    c->result = engine_offload_destroy(
        owner_engine(c->scene), c->scene->world->clients[c->scene->first + 1].contexts[0].session,
        (uint32_t)c->scene->offload);
}

/* Makes rounds until the call has been made while the owner's node lives. */
static int insist(struct scene *s, void (*what)(void *), struct owner_call *c)
{
    struct world_node *n = &s->world->nodes[s->world->clients[s->first + 1].node];

    c->scene = s;
    for (uint32_t i = 0; !world_call(s->world, n, what, c); i++) {
        world_round(s->world);
        if (s->world->failed || i > ROUNDS_MAX)
            return -ETIMEDOUT;
    }
    return c->result;
}

int scene_enable(struct scene *s, bool enable)
{
    return insist(s, call_enable, &(struct owner_call){.enable = enable});
}

int scene_destroy(struct scene *s)
{
    return insist(s, call_destroy, &(struct owner_call){0});
}

/* ---- opening and closing --------------------------------------------------------------------- */

static uint32_t bind(struct scene *s, uint32_t from, uint32_t to, const struct engine_key *key)
{
    int request = world_bind(s->world, from, 0, to, 0, key);
    uint32_t remote;

    if (world_await(s->world, request) < 0)
        world_fail(s->world, "client %u is not bound to client %u", from, to);
    remote = s->world->requests[request].handle;
    world_request_free(s->world, request);
    return remote;
}

/* Whether the offload exists with its targets bound. An offload that was not ready when its node
 * died has gone. */
static bool is_ready(struct scene *s)
{
    const struct world_client *owner = &s->world->clients[s->first + 1];

    if (!s->world->nodes[owner->node].alive)
        return false;
    s->offload = peek_offload_of(owner_engine(s), owner->contexts[0].session, SCENE_INDEX);
    return s->offload >= 0 &&
           peek_offload(owner_engine(s), (uint32_t)s->offload).state == OFFLOAD_OPEN;
}

/* The word that a get for message `number` brings. */
static uint64_t source_word(uint32_t number)
{
    return UINT64_C(0x9e3779b97f4a7c15) * (number + 1);
}

/* The kind of operations that go to the offload. */
enum what { MESSAGES, LONGS, PUTS };

static bool begin(struct scene *s, struct world *w, uint32_t first, enum what what, uint32_t flags,
                  uint32_t handlers, uint32_t targets)
{
    bool puts = what == PUTS;
    struct owner_call c = {.flags = flags, .handlers = handlers, .target_count = targets};
    struct engine_key key;
    uint32_t target;

    memset(s, 0, sizeof(*s));
    s->world = w;
    s->first = first;
    s->puts = puts;
    memset(w->clients[first + 1].contexts[0].memory, 0, w->clients[first + 1].contexts[0].length);
    for (uint32_t i = 0; i < SCENE_MESSAGES; i++) {
        uint64_t word = source_word(i);

        memcpy(w->clients[first + 2].contexts[0].memory + SCENE_SOURCE + 8 * i, &word, 8);
    }
    if (!puts)
        s->remote = bind(s, first, first + 1, NULL);
    else if (world_region_open(w, first + 1, 0, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, &key) ==
             0)
        w->clients[first + 1].contexts[0].key = key; /* no client has bound this key */
    else
        world_fail(w, "no region");
    if (what == LONGS)
        s->long_remote = bind(s, first, first + 1, &w->clients[first + 1].contexts[0].key);
    target = bind(s, first + 1, first + 2, &w->clients[first + 2].contexts[0].key);
    for (uint32_t i = 0; i < targets; i++)
        c.targets[i] = target;
    for (uint32_t i = 0; i < SCENE_CLIENTS; i++)
        message_client_open(&s->client[i], w, first + i);
    for (uint32_t i = 0; i < ROUNDS_MAX && !w->failed && !is_ready(s); i++) {
        int rc = insist(s, call_create, &c);

        if (rc < 0 && rc != -EBUSY) /* contexts of its node may be about to let go of the region */
            world_fail(w, "no offload: %s", strerror(-c.result));
        world_round(w);
    }
    if (puts && !w->failed)
        s->remote = bind(s, first, first + 1, &key);
    return !w->failed;
}

bool scene_begin(struct scene *s, struct world *w, uint32_t first, uint32_t flags,
                 uint32_t handlers)
{
    return begin(s, w, first, MESSAGES, flags, handlers, 1);
}

bool scene_begin_many(struct scene *s, struct world *w, uint32_t first, uint32_t flags,
                      uint32_t handlers, uint32_t targets)
{
    return begin(s, w, first, MESSAGES, flags, handlers, targets);
}

bool scene_begin_puts(struct scene *s, struct world *w, uint32_t flags, uint32_t handlers)
{
    return begin(s, w, 0, PUTS, flags, handlers, 1);
}

bool scene_begin_longs(struct scene *s, struct world *w, uint32_t flags, uint32_t handlers)
{
    return begin(s, w, 0, LONGS, flags, handlers, 1);
}

static struct world *open_world(const struct world_options *options)
{
    struct world_options o = *options;
    struct world *w;

    o.nodes = 2;
    if (world_open(&o, &w) != 0)
        return NULL;
    for (uint32_t i = 0; i < SCENE_CLIENTS; i++)
        world_client_open(w, i % 2, i, 1);
    world_settle(w, 10000);
    return w;
}

bool scene_open(struct scene *s, const struct world_options *options, uint32_t flags,
                uint32_t handlers)
{
    struct world *w = open_world(options);

    return w && scene_begin(s, w, 0, flags, handlers);
}

bool scene_open_many(struct scene *s, const struct world_options *options, uint32_t handlers,
                     uint32_t targets)
{
    struct world *w = open_world(options);

    return w && scene_begin_many(s, w, 0, 0, handlers, targets);
}

bool scene_open_puts(struct scene *s, const struct world_options *options, uint32_t flags,
                     uint32_t handlers)
{
    struct world *w = open_world(options);

    return w && scene_begin_puts(s, w, flags, handlers);
}

bool scene_open_longs(struct scene *s, const struct world_options *options, uint32_t flags,
                      uint32_t handlers)
{
    struct world *w = open_world(options);

    return w && scene_begin_longs(s, w, flags, handlers);
}

const char *scene_close(struct scene *s)
{
    bool failed;

    if (!s->world->failed)
        world_leave(s->world);
    failed = s->world->failed;
    memcpy(s->failure, s->world->failure, sizeof(s->failure));
    world_close(s->world);
    return failed ? s->failure : NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

uint32_t scene_send(struct scene *s, uint64_t plan, bool wants_reply, uint32_t payload)
{
    static const uint8_t bytes[4096];
    struct message_send send = {.kind = payload > 0 ? SUBMIT_MEDIUM : SUBMIT_SHORT,
                                .flags = wants_reply ? 0 : SUBMIT_NO_REPLY,
                                .index = SCENE_INDEX,
                                .remote = s->remote,
                                .lid = s->count,
                                .count = 3,
                                .arguments = {s->count, plan, s->loops},
                                .payload = bytes,
                                .length = payload};

    if (s->count == SCENE_MESSAGES || message_request(&s->client[0], &send) < 0)
        return SCENE_MESSAGES;
    s->messages[s->count] =
        (struct scene_message){.plan = plan, .sent = true, .wants_reply = wants_reply};
    return s->count++;
}

uint32_t scene_send_long(struct scene *s, uint64_t plan, bool wants_reply, uint32_t length,
                         uint16_t flags)
{
    struct message_send send = {.kind = SUBMIT_LONG,
                                .flags = (uint16_t)(flags | (wants_reply ? 0 : SUBMIT_NO_REPLY)),
                                .index = SCENE_INDEX,
                                .remote = s->long_remote,
                                .lid = s->count,
                                .count = 3,
                                .arguments = {s->count, plan, s->loops},
                                .payload = s->world->clients[0].contexts[0].memory,
                                .length = length,
                                .offset = SCENE_PLACE};

    if (s->count == SCENE_MESSAGES || message_request(&s->client[0], &send) < 0)
        return SCENE_MESSAGES;
    s->messages[s->count] = (struct scene_message){
        .plan = plan, .length = length, .sent = true, .wants_reply = wants_reply};
    return s->count++;
}

/* Submits the record of a message with the next number. Returns that number, or SCENE_MESSAGES
 * without room. */
static uint32_t submit(struct scene *s, const void *record, uint32_t size, uint64_t plan,
                       uint32_t length)
{
    if (s->count == SCENE_MESSAGES || !message_room(&s->client[0]) ||
        message_raw(&s->client[0], false, record, size) < 0)
        return SCENE_MESSAGES;
    message_submitted(&s->client[0]);
    s->messages[s->count] = (struct scene_message){.plan = plan, .length = length, .sent = true};
    return s->count++;
}

uint32_t scene_put(struct scene *s, uint64_t plan, uint32_t length, uint16_t flags,
                   uint32_t segment)
{
    const struct world_client *c = &s->world->clients[0];
    struct {
        struct submit_record record;
        uint8_t bytes[4096];
    } put = {.record = {.size = sizeof(put.record),
                        .kind = SUBMIT_PUT,
                        .flags = flags,
                        .remote = s->remote,
                        .reserve = event_bytes(0),
                        .offset = SCENE_PLACE,
                        .length = length,
                        .lid = s->count,
                        .rid = (uint64_t)s->count << 48 | plan,
                        .segment = c->segments[segment].handle,
                        .local_offset = segment == WORLD_MAIN ? c->contexts[0].offset : 0}};

    if (flags & SUBMIT_INLINE) {
        memcpy(put.bytes, c->contexts[0].memory, length);
        put.record.size += abi_pad8(length);
    }
    return submit(s, &put, put.record.size, plan, length);
}

uint32_t scene_get(struct scene *s, uint64_t plan, uint32_t length, uint16_t flags)
{
    const struct world_client *c = &s->world->clients[0];
    const struct submit_record get = {.size = sizeof(get),
                                      .kind = SUBMIT_GET,
                                      .flags = flags,
                                      .remote = s->remote,
                                      .reserve = event_bytes(0),
                                      .offset = SCENE_PLACE,
                                      .length = length,
                                      .lid = s->count,
                                      .rid = (uint64_t)s->count << 48 | plan,
                                      .segment = c->segments[WORLD_MAIN].handle,
                                      .local_offset = c->contexts[0].offset};

    return submit(s, &get, get.size, plan, length);
}

static struct scene_message *message_of(struct scene *s, uint64_t number)
{
    if (number < s->count)
        return &s->messages[number];
    world_fail(s->world, "an event of message %llu, which is none", (unsigned long long)number);
    return &s->messages[0];
}

static uint64_t argument_of(const struct message_event *event)
{
    uint64_t number;

    memcpy(&number, event->rest, sizeof(number));
    return number;
}

/* The client's own handler, which replies where it may. */
static void run_handler(struct scene *s, uint32_t client, const struct message_event *event)
{
    struct message_send send = {.kind = SUBMIT_SHORT,
                                .flags = SUBMIT_NO_LCE,
                                .token = event->message.token,
                                .count = 1,
                                .arguments = {argument_of(event)}};

    if (event->message.token != UINT32_MAX && message_reply(&s->client[client], &send) < 0)
        world_fail(s->world, "no room for a reply");
}

static void owner_event(struct scene *s, const struct message_event *event)
{
    const struct offload_word *word = (const void *)&event->message;

    if (event->head.kind == EVENT_OFFLOAD && event->head.op != OFFLOAD_OWN && !s->puts &&
        word->id & GOT) {
        struct scene_message *m = message_of(s, word->id >> 32);

        m->got_events[event->head.op & 15]++;
        m->got_status = event->head.status;
        return;
    }
    if (event->head.kind == EVENT_REMOTE && s->puts) {
        message_of(s, event->head.id >> 48)->events[0]++;
        return;
    }
    if (event->head.kind == EVENT_REQUEST) {
        struct scene_message *m = message_of(s, argument_of(event));

        m->events[0]++;
        m->deferred += event->message.deferred;
        run_handler(s, 1, event);
        return;
    }
    if (event->head.kind != EVENT_OFFLOAD || word->cookie != COOKIE)
        world_fail(s->world, "an event of kind %u at the owner", event->head.kind);
    else if (event->head.op == OFFLOAD_OWN)
        message_of(s, word->id)->own[word->value & 3]++;
    else
        message_of(s, s->puts ? word->id >> 48 : word->id)->events[event->head.op & 15]++;
}

static void target_event(struct scene *s, const struct message_event *event)
{
    if (event->head.kind == EVENT_REQUEST)
        message_of(s, argument_of(event))->messages++;
    else if (event->head.id & HOST_PUT)
        message_of(s, (event->head.id & ~(uint64_t)HOST_PUT) >> 2)->host_puts[event->head.id & 3]++;
    else
        message_of(s, event->head.id >> 2)->puts[event->head.id & 3]++;
}

static void asker_event(struct scene *s, enum message_ring ring, const struct message_event *event)
{
    struct scene_message *m;

    if (ring == MESSAGE_REPLY) {
        message_of(s, argument_of(event))->replies++;
        return;
    }
    m = message_of(s, event->head.id);
    m->ends++;
    m->status = event->head.status;
}

static bool probe(struct scene *s, uint32_t client)
{
    bool found = false;

    for (int ring = 0; ring < MESSAGE_RINGS; ring++) {
        struct message_event event;
        int rc;

        while ((client != 1 || message_reply_room(&s->client[1])) &&
               (rc = message_probe(&s->client[client], (enum message_ring)ring, &event)) != 0) {
            found = true;
            if (rc < 0) {
                world_fail(s->world, "client %u: ring %d: %s", client, ring, strerror(-rc));
                return true;
            }
            if (ring != MESSAGE_REMOTE && client == 0)
                asker_event(s, (enum message_ring)ring, &event);
            else if (client == 1 && ring == MESSAGE_REMOTE)
                owner_event(s, &event);
            else if (client == 2)
                target_event(s, &event);
        }
    }
    return found;
}

bool scene_look(struct scene *s)
{
    bool found = false;

    for (uint32_t i = 0; i < SCENE_CLIENTS && !s->world->failed; i++)
        if (!(s->silent >> i & 1))
            found |= probe(s, i);
    return found;
}

bool scene_turn(struct scene *s)
{
    bool moves = world_round(s->world);

    return (scene_look(s) || moves) && !s->world->failed;
}

void scene_finish(struct scene *s)
{
    uint32_t rounds = 0;

    s->silent = 0;
    while (scene_turn(s) && rounds < ROUNDS_MAX)
        rounds++;
    if (rounds == ROUNDS_MAX)
        world_fail(s->world, "it never ends");
    for (uint32_t i = 0; i < s->count && !s->world->failed; i++)
        if (s->messages[i].ends != 1)
            world_fail(s->world, "message %u has ended %u times", i, s->messages[i].ends);
    if (!s->world->failed && !message_at_rest(&s->client[0]))
        world_fail(s->world, "the asker's event space is not back");
}

/* ---- random runs ----------------------------------------------------------------------------- */

void scene_trouble(struct scene *s, const struct scene_troubles *t, struct sim_random *random)
{
    struct world *w = s->world;

    if (sim_random_below(random, 100) < t->breaks)
        world_link_break(w, 0, 1);
    if (sim_random_below(random, 100) < t->deaths) {
        uint32_t node = (uint32_t)sim_random_below(random, 2);

        if (w->nodes[node].alive) {
            world_node_crash(w, node);
            w->nodes[node].reopen_at = w->rounds + 1 + sim_random_below(random, 50);
        }
    }
    if (sim_random_below(random, 100) < t->sleeps)
        s->silent ^= 1u << (1 + sim_random_below(random, 2));
}

const char *scene_conclude(struct scene *s, const char *(*check)(uint32_t number))
{
    const char *wrong = NULL, *failure;

    for (uint32_t node = 0; node < 2; node++)
        if (!s->world->nodes[node].alive)
            world_node_reopen(s->world, node, false);
    scene_finish(s);
    for (uint32_t i = 0; i < s->count && !wrong && !s->world->failed; i++)
        wrong = check(i);
    failure = scene_close(s);
    return wrong ? wrong : failure;
}

/* ---- results of handlers --------------------------------------------------------------------- */

static uint64_t word_at(const struct scene *s, uint32_t word)
{
    uint64_t value;

    memcpy(&value, s->world->clients[s->first + 1].contexts[0].memory + 8 * word, sizeof(value));
    return value;
}

uint64_t scene_runs(const struct scene *s, uint32_t number, uint32_t stage)
{
    return word_at(s, number * HANDLER_STAGES + stage);
}

uint64_t scene_reruns(const struct scene *s, uint32_t number, uint32_t stage)
{
    return word_at(s, RERUNS_AT + number * HANDLER_STAGES + stage);
}

uint64_t scene_target_word(const struct scene *s, uint64_t offset)
{
    uint64_t value;

    memcpy(&value, s->world->clients[2].contexts[0].memory + offset, sizeof(value));
    return value;
}

uint32_t scene_gots(const struct scene *s, uint32_t number)
{
    return word_at(s, GOTS_AT + number) & 0xffff;
}

uint32_t scene_got_reruns(const struct scene *s, uint32_t number)
{
    return word_at(s, GOTS_AT + number) >> 16 & 0xffff;
}

uint32_t scene_gots_failed(const struct scene *s, uint32_t number)
{
    return (uint32_t)(word_at(s, GOTS_AT + number) >> 32);
}

bool scene_got_word(const struct scene *s, uint32_t number)
{
    return word_at(s, SCENE_GOT_PLACE / 8 + number) == source_word(number);
}

bool scene_got_all(const struct scene *s, uint32_t number, uint32_t size)
{
    uint64_t sum = s->messages[number].length, packets = 0;

    for (uint64_t at = 0; at == 0 || at < s->messages[number].length; at += size, packets++)
        sum += at << 32;
    return word_at(s, BYTES_AT + number) == sum &&
           scene_runs(s, number, HANDLER_PAYLOAD) == packets;
}
