/*
 * One rank of the campaign against links: makes numbered operations to all other ranks without end,
 * and checks all that arrives, while its driver (campaign) breaks the links.
 *
 *     link_rank SOCKET FOLDER RANK SIZE LIFE strict|lossy
 *
 * The rank prints its progress five times a second. After a first SIGTERM the rank submits nothing
 * new; after a second one it ends.
 *
 * The operations from one rank to another are a stream: small, packed and large puts and gets,
 * whose events are numbered from 0 in each epoch, and active messages with numbers of their own. A
 * put's bytes follow from origin, target, epoch and number. Each number must arrive once and in
 * order; otherwise the target prints the error and ends. The origin checks its local events as
 * strictly, and the bytes of gets.
 *
 * In lossy mode operations may end with -EHOSTDOWN or -ECONNABORTED. When all operations under way
 * have ended, the origin binds again and begins another epoch. Its first operation (BEGIN) says how
 * many operations of the last epoch succeeded (the target must have seen all of these) and which
 * was the first one that was not sent (the target must not have seen it).
 *
 * A slot of the target's memory is free again when the target has checked it and reported that
 * (ACK).
 *
 * Thread: one.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pwc/am.h"
#include "pwc/pwc.h"

#define RANKS_MAX  4u
#define SLOTS      128u /* operations under way in one stream */
#define SLOT_BYTES 65536u
#define LIBRARY    (1u << 20) /* bytes that other ranks get from */
#define ACK_EVERY  32u
#define REPORT_MS  200
#define NONE       UINT64_MAX
#define STRIDE     UINT64_C(0x9e3779b97f4a7c15) /* between words of a filled payload */

/* A completion id holds number, epoch and kind. ACK and BEGIN have two more words. */
enum kind { DATA = 1, ACK, BEGIN };

struct word {
    uint64_t id, first, second;
};

static uint64_t id_of(enum kind kind, uint64_t epoch, uint64_t number)
{
    return (uint64_t)kind << 60 | (epoch & 0xfffff) << 40 | number;
}

/* The stream of operations that this rank sends to another. */
struct outbound {
    pwc_remote *remote; /* NULL: not bound yet */
    uint64_t bind_at;   /* time of the next attempt to bind, ms */
    uint64_t epoch;
    uint64_t next, ended; /* numbers of submitted operations, and of local events */
    uint64_t number;      /* number of the next operation with a remote event */
    uint64_t messages;
    uint64_t checked; /* operations that the target has checked, as it has reported */
    uint64_t well;    /* all operations with lower numbers succeeded */
    uint64_t unsent;  /* number of the first operation that was not sent, or NONE */
    bool failing;     /* an operation has failed: submit nothing new until all have ended */
    bool begun;       /* the target has answered BEGIN */
    uint64_t last_well, last_unsent, last_epoch; /* values of the epoch before */
    bool ack_due;
    uint64_t acked; /* number in the last ACK */
    struct {
        uint64_t number;
        bool message, get;
    } under_way[SLOTS]; /* operations under way, in the order of submission */
};

/* The stream that another rank sends to this one. */
struct inbound {
    uint64_t epoch; /* NONE: nothing has arrived */
    uint64_t next;
    uint64_t message_epoch, messages;
};

static struct {
    uint32_t rank, size;
    bool lossy;
    const char *folder;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region; /* the bytes for gets, then slots by origin */
    pwc_region *own;    /* slots by target */
    uint8_t *memory, *sources;
    struct outbound out[RANKS_MAX];
    struct inbound in[RANKS_MAX];
    uint64_t ops, well, aborted, down, bytes, received;
} self;

static volatile sig_atomic_t ending; /* how many SIGTERMs have come */

static void on_term(int number)
{
    ending++;
}

__attribute__((format(printf, 1, 2), noreturn)) static void wrong(const char *format, ...)
{
    va_list arguments;

    printf("wrong rank %u: ", self.rank);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    exit(1);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t seed_of(uint32_t from, uint32_t to, uint64_t epoch, uint64_t number)
{
    return mix(((uint64_t)from << 8 | to) << 48 ^ epoch << 40 ^ (number + 1));
}

static void fill(uint8_t *to, uint64_t length, uint64_t seed)
{
    for (uint64_t i = 0; i < length; i += 8) {
        uint64_t word = seed + i * STRIDE;

        memcpy(to + i, &word, length - i < 8 ? length - i : 8);
    }
}

static bool is_filled(const uint8_t *at, uint64_t length, uint64_t seed)
{
    for (uint64_t i = 0; i < length; i += 8) {
        uint64_t word = seed + i * STRIDE;

        if (memcmp(at + i, &word, length - i < 8 ? length - i : 8) != 0)
            return false;
    }
    return true;
}

enum what { SMALL, PACKED, LARGE, GET };

/* Draws the operation that belongs to this seed. */
static enum what draw(uint64_t seed, uint64_t *length)
{
    uint64_t r = mix(seed ^ 0x55), size = mix(seed ^ 0xaa);

    switch (r % 64) {
    case 0:
    case 1:
        *length = 4097 + size % (SLOT_BYTES - 4097);
        return LARGE;
    case 2:
    case 3:
        *length = 1 + size % 32768;
        return GET;
    case 4:
    case 5:
    case 6:
    case 7:
        *length = 257 + size % 3800;
        return PACKED;
    default:
        *length = 1 + size % 200;
        return SMALL;
    }
}

static uint8_t *slot_in(uint32_t origin, uint64_t number)
{
    return self.memory + LIBRARY + ((uint64_t)origin * SLOTS + number % SLOTS) * SLOT_BYTES;
}

static uint8_t *slot_out(uint32_t target, uint64_t number)
{
    return self.sources + ((uint64_t)target * SLOTS + number % SLOTS) * SLOT_BYTES;
}

/* ---- binding --------------------------------------------------------------------------------- */

static void publish_key(void)
{
    struct pwc_key key;
    char path[272], name[256];
    FILE *file;

    if (pwc_region_key(self.region, &key) < 0)
        wrong("no key");
    snprintf(name, sizeof(name), "%s/key.%u", self.folder, self.rank);
    snprintf(path, sizeof(path), "%s.new", name);
    file = fopen(path, "we");
    if (!file || fwrite(&key, sizeof(key), 1, file) != 1 || fclose(file) != 0 ||
        rename(path, name) != 0)
        wrong("cannot write %s", path);
}

static bool read_key(uint32_t rank, struct pwc_key *key)
{
    char path[256];
    FILE *file;
    bool there;

    snprintf(path, sizeof(path), "%s/key.%u", self.folder, rank);
    file = fopen(path, "re");
    there = file && fread(key, sizeof(*key), 1, file) == 1;
    if (file)
        fclose(file);
    return there;
}

static void bind_again(uint32_t to)
{
    struct outbound *o = &self.out[to];
    struct pwc_key key;
    int rc;

    if (now_ms() < o->bind_at || !read_key(to, &key))
        return;
    rc = pwc_bind(self.ctx, pwc_peer_of(to, 0), &key, &o->remote);
    if (rc < 0) {
        o->remote = NULL;
        o->bind_at = now_ms() + 50;
        if (rc == -ESHUTDOWN || rc == -EPROTO || (!self.lossy && rc != -EHOSTUNREACH))
            wrong("bind of rank %u: %s", to, pwc_strerror(rc));
        return;
    }
    o->last_epoch = o->epoch;
    o->last_well = o->well;
    o->last_unsent = o->unsent;
    o->epoch++;
    o->next = o->ended = o->number = o->messages = o->checked = o->well = 0;
    o->unsent = NONE;
    o->failing = o->begun = false;
    o->ack_due = true;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Handles the result of a submission. Returns whether the operation was accepted. */
static bool taken(uint32_t to, int rc, bool message, bool get)
{
    struct outbound *o = &self.out[to];

    if (rc == -EAGAIN)
        return false;
    if (rc < 0)
        wrong("submitting to rank %u: %s", to, pwc_strerror(rc));
    o->under_way[o->next % SLOTS].number = o->number;
    o->under_way[o->next % SLOTS].message = message;
    o->under_way[o->next % SLOTS].get = get;
    o->next++;
    o->number += !message;
    o->messages += message;
    self.ops++;
    return true;
}

static bool send_word(uint32_t to, enum kind kind, uint64_t first, uint64_t second)
{
    struct outbound *o = &self.out[to];
    struct word word = {id_of(kind, o->epoch, o->number), first, second};

    return taken(
        to,
        pwc_put(o->remote, 0, NULL, 0, pwc_cid_u64(o->next), pwc_cid_bytes(&word, sizeof(word)), 0),
        false, false);
}

/* The offset from which a get with this seed reads. */
static uint64_t place_of(uint64_t seed)
{
    return seed % (LIBRARY - 32768) & ~UINT64_C(7);
}

static bool send_one(uint32_t to)
{
    struct outbound *o = &self.out[to];
    uint64_t length, seed = seed_of(self.rank, to, o->epoch, o->number);
    pwc_cid lid = pwc_cid_u64(o->next), rid = pwc_cid_u64(id_of(DATA, o->epoch, o->number));
    const uint64_t arguments[2] = {o->epoch, o->messages};
    uint8_t *source = slot_out(to, o->number);

    if (mix(o->next) % 32 == 0)
        return taken(to,
                     pwc_am_short(o->remote, &(struct pwc_am_send){.index = 1,
                                                                   .arguments = arguments,
                                                                   .count = 2,
                                                                   .lid = lid,
                                                                   .flags = PWC_AM_NO_REPLY}),
                     true, false);
    if (draw(seed, &length) == GET)
        return taken(to, pwc_get(o->remote, place_of(seed), source, length, lid, rid, 0), false,
                     true);
    fill(source, length, seed);
    return taken(to,
                 pwc_put(o->remote,
                         LIBRARY + ((uint64_t)self.rank * SLOTS + o->number % SLOTS) * SLOT_BYTES,
                         source, length, lid, rid, 0),
                 false, false);
}

/* Submits what may be submitted now. Returns whether there was anything. */
static bool send_some(uint32_t to)
{
    struct outbound *o = &self.out[to];
    struct inbound *in = &self.in[to];
    bool sent = false;

    if (o->failing && o->ended == o->next) {
        pwc_unbind(o->remote);
        o->remote = NULL;
        o->failing = false;
    }
    if (!o->remote)
        bind_again(to);
    if (!o->remote || o->failing)
        return false;
    if (o->next == 0)
        sent = send_word(to, BEGIN, o->last_epoch << 40 | o->last_well, o->last_unsent);
    if (o->next > 0 && o->next - o->ended < SLOTS && in->epoch != NONE &&
        (o->ack_due || in->next - o->acked >= ACK_EVERY) &&
        send_word(to, ACK, in->epoch, in->next)) {
        o->ack_due = false;
        o->acked = in->next;
        sent = true;
    }
    for (int i = 0; i < 16 && !ending && o->begun; i++) {
        if (o->number - o->checked >= SLOTS - 8 || o->next - o->ended >= SLOTS - 8 || !send_one(to))
            break;
        sent = true;
    }
    return sent;
}

/* ---- in -------------------------------------------------------------------------------------- */

static void take_local(uint32_t to, const struct pwc_event *event)
{
    struct outbound *o = &self.out[to];
    uint64_t number = o->under_way[o->ended % SLOTS].number, length;
    bool message = o->under_way[o->ended % SLOTS].message;
    uint64_t seed = seed_of(self.rank, to, o->epoch, number);

    if (event->id != o->ended)
        wrong("local event %" PRIu64 " of rank %u instead of %" PRIu64, event->id, to, o->ended);
    if (event->status == 0 && o->failing)
        wrong("operation %" PRIu64 " to rank %u ends well behind one that did not", event->id, to);
    if (event->status == 0 && o->under_way[o->ended % SLOTS].get) {
        draw(seed, &length);
        if (!is_filled(slot_out(to, number), length,
                       seed_of(to, to, 0, 0) + place_of(seed) * STRIDE))
            wrong("get %" PRIu64 " from rank %u has wrong bytes", number, to);
        self.bytes += length;
    }
    o->ended++;
    if (event->status == 0) {
        self.well++;
        o->well = number + !message;
        return;
    }
    if (!self.lossy || (event->status != -EHOSTDOWN && event->status != -ECONNABORTED))
        wrong("operation %" PRIu64 " to rank %u ends with %s", event->id, to,
              pwc_strerror(event->status));
    o->failing = true;
    self.aborted += event->status == -ECONNABORTED;
    self.down += event->status == -EHOSTDOWN;
    if (event->status == -EHOSTDOWN && o->unsent == NONE)
        o->unsent = number;
}

/* A sender begins a new epoch of its stream: its numbers for the last epoch must agree with what we
 * have seen. */
static void take_begin(uint32_t from, uint64_t epoch, uint64_t number, const struct word *word)
{
    struct inbound *in = &self.in[from];
    uint64_t last_epoch = word->first >> 40, well = word->first & ((UINT64_C(1) << 40) - 1);

    if (number != 0 || (in->epoch != NONE && epoch <= in->epoch))
        wrong("rank %u begins epoch %" PRIu64 " after %" PRIu64 " with number %" PRIu64, from,
              epoch, in->epoch, number);
    if (in->epoch != NONE && last_epoch == in->epoch && in->next < well)
        wrong("lost: %" PRIu64 " of epoch %" PRIu64 " from rank %u ended well, %" PRIu64 " came",
              well, last_epoch, from, in->next);
    if (in->epoch != NONE && last_epoch == in->epoch && in->next > word->second)
        wrong("number %" PRIu64 " of epoch %" PRIu64 " from rank %u ended as not sent, and came",
              word->second, last_epoch, from);
    in->epoch = epoch;
    in->next = 1;
    self.received++;
    self.out[from].ack_due = true;
}

static void take_number(uint32_t from, uint64_t epoch, uint64_t number)
{
    struct inbound *in = &self.in[from];

    if (epoch != in->epoch || number != in->next)
        wrong("%s: number %" PRIu64 " of epoch %" PRIu64 " from rank %u instead of %" PRIu64
              " of %" PRIu64,
              number < in->next ? "doubled" : "lost or out of order", number, epoch, from, in->next,
              in->epoch);
    in->next++;
    self.received++;
}

static void take_remote(uint32_t from, const struct pwc_event *event)
{
    struct word word = {.id = event->id};
    uint64_t epoch, number, length, seed;
    enum kind kind;

    if (event->id_size == sizeof(word))
        memcpy(&word, event->data, sizeof(word));
    else if (event->id_size != 0)
        wrong("an id of %u bytes from rank %u", event->id_size, from);
    kind = word.id >> 60;
    epoch = word.id >> 40 & 0xfffff;
    number = word.id & ((UINT64_C(1) << 40) - 1);
    if (kind == BEGIN) {
        take_begin(from, epoch, number, &word);
        return;
    }
    take_number(from, epoch, number);
    if (kind == ACK) {
        struct outbound *o = &self.out[from];

        if (word.first != o->epoch)
            return; /* for an earlier epoch */
        if (word.second > o->number)
            wrong("rank %u has checked more than was sent", from);
        o->begun = true;
        o->checked = word.second > o->checked ? word.second : o->checked;
        return;
    }
    seed = seed_of(from, self.rank, epoch, number);
    if (draw(seed, &length) <= LARGE) {
        if (!is_filled(slot_in(from, number), length, seed))
            wrong("put %" PRIu64 " of epoch %" PRIu64 " from rank %u (%" PRIu64
                  " bytes) has wrong bytes",
                  number, epoch, from, length);
        self.bytes += length;
    }
}

static void on_message(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    uint32_t from = pwc_peer_rank(message->from);
    struct inbound *in = &self.in[from];
    uint64_t epoch = message->arguments[0], number = message->arguments[1];

    if (in->message_epoch == NONE || epoch > in->message_epoch)
        in->messages = 0;
    else if (epoch < in->message_epoch)
        wrong("a message of epoch %" PRIu64 " from rank %u in epoch %" PRIu64, epoch, from,
              in->message_epoch);
    if (message->count != 2 || number != in->messages)
        wrong("message %" PRIu64 " of epoch %" PRIu64 " from rank %u instead of %" PRIu64, number,
              epoch, from, in->messages);
    in->message_epoch = epoch;
    in->messages++;
    self.received++;
}

static void take(const struct pwc_event *event)
{
    uint32_t other = pwc_peer_rank(event->peer);

    if (other >= self.size || other == self.rank)
        wrong("an event of rank %u", other);
    if (event->kind == PWC_LOCAL)
        take_local(other, event);
    else if (event->status == 0)
        take_remote(other, event);
    else
        wrong("a remote event from rank %u with %s", other, pwc_strerror(event->status));
}

/* ---- the run --------------------------------------------------------------------------------- */

static bool drained(void)
{
    for (uint32_t i = 0; i < self.size; i++)
        if (i != self.rank && self.out[i].ended != self.out[i].next)
            return false;
    return true;
}

static void report(const char *word)
{
    printf("%s rank %u drained %d ops %" PRIu64 " well %" PRIu64 " aborted %" PRIu64
           " down %" PRIu64 " received %" PRIu64 " bytes %" PRIu64 " checked",
           word, self.rank, ending && drained(), self.ops, self.well, self.aborted, self.down,
           self.received, self.bytes);
    for (uint32_t i = 0; i < self.size; i++)
        printf(" %" PRIu64 ":%" PRIu64, self.out[i].epoch, self.out[i].checked);
    printf("\n");
    fflush(stdout);
}

static void open_all(const char *socket)
{
    char why[200] = "";
    const struct pwc_attr attr = {.socket = socket,
                                  .job = "links",
                                  .rank = self.rank,
                                  .size = self.size,
                                  .error = why,
                                  .error_size = sizeof(why)};
    uint64_t until = now_ms() + 60000;
    int rc;

    /* A rank that has just died may still occupy our number, or a home may be out of reach. */
    while ((rc = pwc_init(&attr, &self.client)) < 0 && now_ms() < until)
        usleep(100000);
    if (rc == 0)
        rc = pwc_ctx_create(self.client, NULL, &self.ctx);
    if (rc == 0)
        rc = pwc_am_register(self.ctx, 1, on_message, NULL);
    if (rc == 0)
        rc = pwc_alloc(self.client, LIBRARY + (size_t)self.size * SLOTS * SLOT_BYTES, PWC_REMOTE_RW,
                       &self.region);
    if (rc == 0)
        rc = pwc_alloc(self.client, (size_t)self.size * SLOTS * SLOT_BYTES, PWC_REMOTE_RW,
                       &self.own);
    if (rc < 0)
        wrong("does not attach: %s. %s", pwc_strerror(rc), why);
    self.memory = pwc_region_addr(self.region);
    self.sources = pwc_region_addr(self.own);
    fill(self.memory, LIBRARY, seed_of(self.rank, self.rank, 0, 0));
    publish_key();
}

static void run(void)
{
    uint64_t ended_at = 0;

    while (ending < 2) {
        struct pwc_event event;
        bool moved = false;
        int rc = 0;

        for (uint32_t i = 0; i < self.size; i++)
            if (i != self.rank)
                moved |= send_some(i);
        for (int i = 0;
             i < 64 && (rc = pwc_probe(self.ctx, PWC_ANY, PWC_LOCAL | PWC_REMOTE, &event)) == 1;
             i++) {
            take(&event);
            moved = true;
        }
        if (rc == 0 && !moved &&
            (rc = pwc_wait(self.ctx, PWC_ANY, PWC_LOCAL | PWC_REMOTE, &event, 20)) == 1)
            take(&event);
        if (rc < 0) {
            printf("daemon rank %u: %s\n", self.rank, pwc_strerror(rc));
            exit(2);
        }
        if (now_ms() - ended_at > REPORT_MS) {
            ended_at = now_ms();
            report("so far");
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t life;

    if (argc != 7)
        return 2;
    self.folder = argv[2];
    self.rank = (uint32_t)strtoul(argv[3], NULL, 10);
    self.size = (uint32_t)strtoul(argv[4], NULL, 10);
    life = strtoull(argv[5], NULL, 10);
    self.lossy = strcmp(argv[6], "lossy") == 0;
    if (self.size > RANKS_MAX || self.rank >= self.size)
        return 2;
    signal(SIGTERM, on_term);
    for (uint32_t i = 0; i < self.size; i++) {
        self.out[i] = (struct outbound){.epoch = life * 10000, .unsent = NONE};
        self.in[i] = (struct inbound){.epoch = NONE, .message_epoch = NONE};
    }
    open_all(argv[1]);
    run();
    report("end");
    return 0;
}
