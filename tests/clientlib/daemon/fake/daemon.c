/* The daemon of daemon.h. */
#include "tests/clientlib/daemon/fake/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "proto/word_abi.h"
#include "shm_ring/doorbell.h"
#include "daemon/control/clients/message.h"

enum { FRAME_MAX = 65536 };

/* ---- frames --------------------------------------------------------------------------------- */

static bool read_all(int fd, void *to, size_t size)
{
    uint8_t *at = to;

    while (size > 0) {
        ssize_t got = recv(fd, at, size, 0);

        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

void fake_daemon_reply(struct fake_daemon *daemon, Pwc__ClientReply *reply, const int *fds,
                       int fd_count)
{
    uint32_t length = (uint32_t)pwc__client_reply__get_packed_size(reply);
    uint8_t *frame = malloc(4 + length);
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = frame, .iov_len = 4 + length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    for (int i = 0; i < 4; i++)
        frame[i] = (uint8_t)(length >> 8 * i);
    pwc__client_reply__pack(reply, frame + 4);
    if (fd_count > 0 && !daemon->lose_descriptors)
        message_attach(&message, control, fds, (uint32_t)fd_count);
    (void)!sendmsg(daemon->client_fd, &message, MSG_NOSIGNAL);
    free(frame);
}

void fake_lose_descriptors(struct fake_daemon *daemon, bool lose)
{
    daemon->lose_descriptors = lose;
}

void fake_daemon_error(struct fake_daemon *daemon, uint32_t id, int status, const char *text)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Error error = PWC__ERROR__INIT;

    error.status = status;
    error.text = (char *)(uintptr_t)text;
    reply.id = id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    reply.error = &error;
    fake_daemon_reply(daemon, &reply, NULL, 0);
}

static void reply_done(struct fake_daemon *daemon, uint32_t id)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Done done = PWC__DONE__INIT;

    reply.id = id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_DONE;
    reply.done = &done;
    fake_daemon_reply(daemon, &reply, NULL, 0);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void on_hello(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Welcome welcome = PWC__WELCOME__INIT;

    daemon->rank = request->hello->rank;
    welcome.version = 1;
    welcome.rings = SESSION_VERSION;
    welcome.packed_max = FAKE_PACKED_MAX;
    welcome.bounce_max = FAKE_BOUNCE_MAX;
    welcome.message_max = FAKE_MESSAGE_MAX;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_WELCOME;
    reply.welcome = &welcome;
    fake_daemon_reply(daemon, &reply, NULL, 0);
}

static void on_context_open(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    const Pwc__ContextOpen *open = request->context_open;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__ContextOpened opened = PWC__CONTEXT_OPENED__INIT;
    const struct session_sizes sizes = {open->rings->submit, open->rings->local,
                                        open->rings->remote, open->rings->reply_submit,
                                        open->rings->reply_event};
    uint32_t number = 0;
    int pair[2];

    while (number < FAKE_SESSIONS && daemon->contexts[number].open)
        number++;
    if (number == FAKE_SESSIONS) {
        fake_daemon_error(daemon, request->id, -ENOSPC, "4 contexts are open: close one");
        return;
    }

    struct fake_context *context = &daemon->contexts[number];

    if (fake_session_open(&context->session, &sizes) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    context->session.shared->rank = daemon->rank;
    context->session.shared->context = number;
    context->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    context->wake_fd = pair[0];
    context->peer = (uint64_t)number << 32 | daemon->rank;
    context->direct = open->direct;
    context->open = true;
    daemon->sessions_open++;
    opened.session = number;
    opened.context = number;
    opened.rings = open->rings;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_CONTEXT_OPENED;
    reply.context_opened = &opened;
    fake_daemon_reply(daemon, &reply,
                      (int[]){context->session.mapping.fd, context->doorbell_fd, pair[1]}, 3);
    close(pair[1]);
}

static void close_context(struct fake_daemon *daemon, struct fake_context *context)
{
    if (!context->open)
        return;
    fake_pairs_end(daemon, context);
    fake_session_close(&context->session);
    close(context->doorbell_fd);
    close(context->wake_fd);
    context->open = false;
    daemon->sessions_open--;
}

static void on_segment_open(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__SegmentOpened opened = PWC__SEGMENT_OPENED__INIT;
    uint32_t number = 0;

    while (number < FAKE_SEGMENTS && daemon->segments[number].base)
        number++;
    if (number == FAKE_SEGMENTS || mapping_create(&daemon->segments[number], "fake segment",
                                                  request->segment_open->length) < 0) {
        fake_daemon_error(daemon, request->id, -EDQUOT, "no segment to be had");
        return;
    }
    daemon->segments_open++;
    opened.segment = number;
    opened.length = request->segment_open->length;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_SEGMENT_OPENED;
    reply.segment_opened = &opened;
    fake_daemon_reply(daemon, &reply, &daemon->segments[number].fd, 1);
}

static void close_segment(struct fake_daemon *daemon, uint32_t number)
{
    if (!daemon->segments[number].base)
        return;
    mapping_destroy(&daemon->segments[number]);
    daemon->segments_open--;
}

static void fill_key(Pwc__Key *key, uint32_t slot, uint8_t *secret)
{
    memset(secret, 0xa0 + (int)slot, 16);
    key->node = 5;
    key->slot = slot;
    key->generation = 9;
    key->secret.len = 16;
    key->secret.data = secret;
}

static void on_region_open(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    const Pwc__RegionOpen *open = request->region_open;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__RegionOpened opened = PWC__REGION_OPENED__INIT;
    Pwc__Key key = PWC__KEY__INIT;
    uint8_t secret[16];
    uint32_t slot = 0;

    while (slot < FAKE_REGIONS && daemon->regions[slot].open)
        slot++;
    if (slot == FAKE_REGIONS || open->segment >= FAKE_SEGMENTS ||
        open->offset + open->length > daemon->segments[open->segment].size) {
        fake_daemon_error(daemon, request->id, -EINVAL, "no such range of a segment");
        return;
    }
    daemon->regions[slot] = (struct fake_region){
        .segment = open->segment,
        .offset = open->offset,
        .length = open->length,
        .rights = open->rights,
        .open = true,
    };
    daemon->regions_open++;
    fill_key(&key, slot, secret);
    opened.key = &key;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_REGION_OPENED;
    reply.region_opened = &opened;
    fake_daemon_reply(daemon, &reply, NULL, 0);
}

static void on_bind(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    const Pwc__Key *key = request->bind->key;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Bound bound = PWC__BOUND__INIT;
    struct fake_remote *remote = &daemon->remotes[daemon->remote_count];
    Pwc__Pair pair = PWC__PAIR__INIT;
    int fds[2], fd_count;

    *remote = (struct fake_remote){.peer = request->bind->peer, .region = -1};
    if (key) {
        uint8_t secret[16];
        Pwc__Key right = PWC__KEY__INIT;

        if (key->slot < FAKE_REGIONS)
            fill_key(&right, key->slot, secret);
        if (key->slot >= FAKE_REGIONS || !daemon->regions[key->slot].open || key->node != 5 ||
            key->generation != 9 || key->secret.len != 16 ||
            memcmp(key->secret.data, secret, 16) != 0) {
            fake_daemon_error(daemon, request->id, -EKEYREJECTED, "no such key");
            return;
        }
        remote->region = (int)key->slot;
        bound.length = daemon->regions[key->slot].length;
        bound.rights = daemon->regions[key->slot].rights;
    }
    fd_count =
        fake_pair_connect(daemon, &daemon->contexts[request->bind->session], remote, &pair, fds);
    if (fd_count >= 0)
        bound.pair = &pair;
    bound.remote = daemon->handles + daemon->remote_count++;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_BOUND;
    reply.bound = &bound;
    fake_daemon_reply(daemon, &reply, fds, fd_count);
}

/* The job has one more rank than ours; its data is the complement of our rank's. The answer has two
 * pieces. */
static void on_exchange(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    ProtobufCBinaryData data = request->exchange->data;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Exchanged piece = PWC__EXCHANGED__INIT;
    uint8_t other[4096];

    for (size_t i = 0; i < data.len; i++)
        other[i] = (uint8_t)~data.data[i];
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_EXCHANGED;
    reply.exchanged = &piece;
    piece.data = data;
    piece.offset = daemon->rank == 0 ? 0 : data.len;
    fake_daemon_reply(daemon, &reply, NULL, 0);
    piece.data.data = other;
    piece.offset = daemon->rank == 0 ? data.len : 0;
    piece.last = true;
    fake_daemon_reply(daemon, &reply, NULL, 0);
}

void fake_daemon_handle(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    switch (request->body_case) {
    case PWC__CLIENT_REQUEST__BODY_HELLO:
        on_hello(daemon, request);
        break;
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN:
        on_context_open(daemon, request);
        break;
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE:
        close_context(daemon, &daemon->contexts[request->context_close->session]);
        reply_done(daemon, request->id);
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN:
        on_segment_open(daemon, request);
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE:
        close_segment(daemon, request->segment_close->segment);
        reply_done(daemon, request->id);
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_OPEN:
        on_region_open(daemon, request);
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_CLOSE:
        daemon->regions[request->region_close->slot].open = false;
        daemon->regions_open--;
        reply_done(daemon, request->id);
        break;
    case PWC__CLIENT_REQUEST__BODY_BIND:
        on_bind(daemon, request);
        break;
    case PWC__CLIENT_REQUEST__BODY_UNBIND:
        fake_pair_end(daemon, request->unbind->pair);
        reply_done(daemon, request->id);
        break;
    case PWC__CLIENT_REQUEST__BODY_EXCHANGE:
        on_exchange(daemon, request);
        break;
    default:
        fake_daemon_error(daemon, request->id, -EPROTO, "unknown request");
        break;
    }
}

/* Serves one request. False: the client has hung up. */
static bool serve_control(struct fake_daemon *daemon)
{
    uint8_t head[4];
    uint8_t body[FRAME_MAX];
    uint32_t length;
    Pwc__ClientRequest *request;

    if (!read_all(daemon->client_fd, head, sizeof(head)))
        return false;
    length = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
             (uint32_t)head[3] << 24;
    if (length > sizeof(body) || !read_all(daemon->client_fd, body, length))
        return false;
    request = pwc__client_request__unpack(NULL, length, body);
    if (!request)
        return false;
    if (!daemon->hook || !daemon->hook(daemon, request))
        fake_daemon_handle(daemon, request);
    pwc__client_request__free_unpacked(request, NULL);
    return daemon->client_fd >= 0;
}

/* ---- the data path -------------------------------------------------------------------------- */

void fake_wake_client(struct fake_context *context)
{
    struct doorbell_word *bell = &context->session.shared->event_bell;
    uint32_t mode = doorbell_ring(bell);

    if (mode == DOORBELL_FUTEX)
        doorbell_wake(bell);
    else if (mode == DOORBELL_FD)
        (void)!send(context->wake_fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

const struct fake_remote *fake_remote_of(struct fake_daemon *daemon,
                                         const struct submit_record *record)
{
    return &daemon->remotes[record->remote % FAKE_REMOTES];
}

uint8_t *fake_remote_memory(struct fake_daemon *daemon, const struct submit_record *record,
                            int *status)
{
    const struct fake_remote *remote = fake_remote_of(daemon, record);
    const struct fake_region *region;

    *status = -ERANGE;
    if (remote->region < 0)
        return NULL;
    region = &daemon->regions[remote->region];
    *status = region->open ? 0 : -EKEYREJECTED;
    if (!region->open)
        return NULL;
    return (uint8_t *)daemon->segments[region->segment].base + region->offset + record->offset;
}

int fake_move_bytes(struct fake_daemon *daemon, const struct submit_record *record)
{
    uint8_t *there, *here;
    int status;

    if (record->length == 0)
        return 0;
    there = fake_remote_memory(daemon, record, &status);
    if (!there)
        return status;
    if (record->flags & SUBMIT_INLINE) {
        memcpy(there, fake_record_payload(record), record->length);
        return 0;
    }
    here = (uint8_t *)daemon->segments[record->segment].base + record->local_offset;
    if (record->kind != SUBMIT_GET)
        memmove(there, here, record->length);
    else
        memmove(here, there, record->length);
    return 0;
}

int fake_fail_together(struct fake_context *context, const struct submit_record *record, int status)
{
    if (status == 0)
        status = context->failing;
    context->failing = record->flags & SUBMIT_MORE ? status : 0;
    return status;
}

struct fake_context *fake_context_of(struct fake_daemon *daemon, uint64_t peer)
{
    for (int i = 0; i < FAKE_SESSIONS; i++)
        if (daemon->contexts[i].open && daemon->contexts[i].peer == peer)
            return &daemon->contexts[i];
    return NULL;
}

void fake_end(struct fake_daemon *daemon, struct fake_context *context,
              const struct submit_record *record, uint64_t peer, int status, uint64_t bytes)
{
    daemon->fences += (record->flags & SUBMIT_FENCE) != 0;
    if (status == 0 && (record->flags & SUBMIT_NO_LCE))
        fake_session_end_silent(&context->session, record);
    else
        (void)fake_session_end_with(&context->session, record, peer, status, bytes);
    daemon->executed++;
    fake_wake_client(context);
}

/* Bytes of the remote region that an operation concerns. */
static uint64_t reach_of(const struct submit_record *record)
{
    return record->kind == SUBMIT_ATOMIC ? word_reach(record->code, record->length)
           : record->kind == SUBMIT_VECTOR || record->kind == SUBMIT_STRIDED ? record->total
                                                                             : record->length;
}

static void execute(struct fake_daemon *daemon, struct fake_context *context,
                    const struct submit_record *record)
{
    const struct fake_remote *remote = fake_remote_of(daemon, record);
    struct fake_context *target = fake_context_of(daemon, remote->peer);
    uint64_t bytes = record->length;
    int status = context->failing;

    if (daemon->fail_at > 0 && daemon->executed + 1 == daemon->fail_at)
        status = -EKEYREJECTED;
    if (status < 0)
        bytes = 0;
    else if (record->kind == SUBMIT_ATOMIC)
        status = fake_carry_atomic(daemon, record, &bytes);
    else if (record->kind == SUBMIT_VECTOR)
        status = fake_carry_vector(daemon, record);
    else if (record->kind == SUBMIT_STRIDED)
        status = fake_carry_strided(daemon, record);
    else if (record->kind != SUBMIT_FLUSH)
        status = fake_move_bytes(daemon, record);
    status = fake_fail_together(context, record, status);
    if (status == 0 && record->kind == SUBMIT_SIGNAL) {
        status = fake_carry_signal(daemon, record);
        if (target)
            fake_wake_client(target);
    } else if (status == 0 && record->kind != SUBMIT_FLUSH && !(record->flags & SUBMIT_NO_RCE) &&
               target) {
        (void)fake_session_post(
            &target->session, record->flags & SUBMIT_NOTIFY ? EVENT_NOTIFY : EVENT_REMOTE,
            record->kind == SUBMIT_VECTOR || record->kind == SUBMIT_STRIDED ? record->code
                                                                            : record->kind,
            context->peer, 0, reach_of(record), record->rid, fake_record_rid(record),
            record->rid_len);
        fake_wake_client(target);
    }
    if (status < 0 && record->kind != SUBMIT_ATOMIC)
        bytes = 0;
    fake_end(daemon, context, record, remote->peer, status, bytes);
}

static void serve_data(struct fake_daemon *daemon)
{
    const struct submit_record *record;

    pthread_mutex_lock(&daemon->data);
    for (int i = 0; i < FAKE_SESSIONS; i++) {
        struct fake_context *context = &daemon->contexts[i];

        while (context->open && !daemon->hold && (record = fake_session_read(&context->session))) {
            if (record->kind == SUBMIT_WAKE)
                fake_carry_wake(daemon, record);
            else if (submit_is_message(record->kind))
                fake_carry_request(daemon, context, record);
            else
                execute(daemon, context, record);
        }
        while (context->open && !daemon->hold_answers &&
               (record = fake_session_read_answer(&context->session)))
            fake_carry_reply(daemon, context, record);
    }
    pthread_mutex_unlock(&daemon->data);
}

/* Arms the doorbells before a sleep. True: there is work, so the daemon must not sleep. */
static bool arm_all(struct fake_daemon *daemon)
{
    bool work = false;

    for (int i = 0; i < FAKE_SESSIONS; i++) {
        struct fake_context *context = &daemon->contexts[i];

        if (!context->open || (daemon->hold && daemon->hold_answers))
            continue;
        doorbell_arm(&context->session.shared->submit_bell, DOORBELL_FD);
        work = work || (!daemon->hold && ring_pending(&context->session.submit)) ||
               (!daemon->hold_answers && ring_pending(&context->session.reply_submit));
    }
    return work;
}

static void drain(int fd)
{
    uint64_t count;

    (void)!read(fd, &count, sizeof(count));
}

static void forget_client(struct fake_daemon *daemon)
{
    for (int i = 0; i < FAKE_SESSIONS; i++)
        close_context(daemon, &daemon->contexts[i]);
    for (uint32_t i = 0; i < FAKE_SEGMENTS; i++)
        close_segment(daemon, i);
    memset(daemon->regions, 0, sizeof(daemon->regions));
    daemon->regions_open = 0;
    daemon->remote_count = daemon->pair_count = 0;
    if (daemon->client_fd >= 0)
        close(daemon->client_fd);
    daemon->client_fd = -1;
}

static void *run(void *argument)
{
    struct fake_daemon *daemon = argument;
    struct pollfd fds[3 + FAKE_SESSIONS];

    for (;;) {
        bool work = arm_all(daemon);

        fds[0] = (struct pollfd){.fd = daemon->stop_fd, .events = POLLIN};
        fds[1] = (struct pollfd){
            .fd = daemon->client_fd < 0 ? daemon->listen_fd : -1,
            .events = POLLIN,
        };
        fds[2] = (struct pollfd){.fd = daemon->client_fd, .events = POLLIN};
        for (int i = 0; i < FAKE_SESSIONS; i++)
            fds[3 + i] = (struct pollfd){
                .fd = daemon->contexts[i].open ? daemon->contexts[i].doorbell_fd : -1,
                .events = POLLIN,
            };
        if (poll(fds, 3 + FAKE_SESSIONS, work ? 0 : -1) < 0)
            abort();
        if (fds[0].revents) {
            uint64_t value = 0;

            if (read(daemon->stop_fd, &value, sizeof(value)) > 0 && value >= 1u << 16)
                break;
        }
        if (fds[1].revents)
            daemon->client_fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        for (int i = 0; i < FAKE_SESSIONS; i++)
            if (fds[3 + i].revents)
                drain(fds[3 + i].fd);
        serve_data(daemon);
        if (fds[2].revents && !serve_control(daemon))
            forget_client(daemon);
    }
    forget_client(daemon);
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------- */

int fake_daemon_start(struct fake_daemon *daemon, fake_hook *hook)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(daemon, 0, sizeof(*daemon));
    pthread_mutex_init(&daemon->data, NULL);
    daemon->hook = hook;
    daemon->client_fd = -1;
    for (int i = 0; i < FAKE_SEGMENTS; i++)
        daemon->segments[i].fd = -1;
    snprintf(daemon->directory, sizeof(daemon->directory), "/tmp/pwc-test-XXXXXX");
    if (!mkdtemp(daemon->directory))
        return -errno;
    snprintf(daemon->path, sizeof(daemon->path), "%s/sock", daemon->directory);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon->path);
    daemon->stop_fd = eventfd(0, EFD_CLOEXEC);
    daemon->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (daemon->stop_fd < 0 || daemon->listen_fd < 0 ||
        bind(daemon->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(daemon->listen_fd, 4) < 0)
        return -errno;
    return -pthread_create(&daemon->thread, NULL, run, daemon);
}

static void signal_thread(struct fake_daemon *daemon, uint64_t value)
{
    (void)!write(daemon->stop_fd, &value, sizeof(value));
}

static void set_hold(struct fake_daemon *daemon, _Atomic bool *which, bool hold)
{
    pthread_mutex_lock(&daemon->data);
    *which = hold;
    pthread_mutex_unlock(&daemon->data);
    if (!hold)
        signal_thread(daemon, 1);
}

void fake_hold(struct fake_daemon *daemon, bool hold)
{
    set_hold(daemon, &daemon->hold, hold);
}

void fake_hold_answers(struct fake_daemon *daemon, bool hold)
{
    set_hold(daemon, &daemon->hold_answers, hold);
}

unsigned fake_executed(struct fake_daemon *daemon)
{
    unsigned executed;

    pthread_mutex_lock(&daemon->data);
    executed = daemon->executed;
    pthread_mutex_unlock(&daemon->data);
    return executed;
}

void fake_daemon_stop(struct fake_daemon *daemon)
{
    signal_thread(daemon, 1u << 16);
    pthread_join(daemon->thread, NULL);
    close(daemon->listen_fd);
    close(daemon->stop_fd);
    unlink(daemon->path);
    rmdir(daemon->directory);
}
