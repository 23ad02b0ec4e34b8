/* Owns connections between daemons: bytes, frames, the order of the handshake (link.h). Thread:
 * control. */
#include "daemon/control/nodes/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "daemon/control/control.h"
#include "daemon/control/nodes/munge_async.h"

enum { READ_BYTES = 65536 };

/* A frame that is being sent. */
struct link_write {
    uv_write_t request;
    uint8_t bytes[];
};

/* ---- life ------------------------------------------------------------------------------------ */

static void release(struct link *link)
{
    if (--link->references > 0)
        return;
    *link->all_at = link->all_next;
    if (link->all_next)
        link->all_next->all_at = link->all_at;
    frame_parser_destroy(&link->frames);
    sodium_memzero(&link->seal, sizeof(link->seal));
    sodium_memzero(&link->handshake, sizeof(link->handshake));
    free(link);
}

static void handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void close_handles(struct link *link)
{
    if (!uv_is_closing((uv_handle_t *)&link->tcp))
        uv_close((uv_handle_t *)&link->tcp, handle_closed);
    if (!uv_is_closing((uv_handle_t *)&link->deadline))
        uv_close((uv_handle_t *)&link->deadline, handle_closed);
    /* Cancel a lookup or a call of MUNGE that no thread has begun. */
    if (link->resolving)
        (void)uv_cancel((uv_req_t *)&link->resolve);
    if (link->munge)
        (void)uv_cancel((uv_req_t *)&link->munge->work);
}

static void end(struct link *link, int status, const char *text)
{
    if (link->state == LINK_CLOSED)
        return;
    if (link->text[0] == '\0')
        snprintf(link->text, sizeof(link->text), "%s", text);
    link->status = status;
    link->state = LINK_CLOSED;
    link->events->closed(link, status, link->text);
}

void link_close(struct link *link, int status, const char *text)
{
    end(link, status, text);
    close_handles(link);
}

static void deadline_passed(uv_timer_t *timer)
{
    struct link *link = timer->data;

    link_close(link, -ETIMEDOUT, "it did not answer within 3 s");
}

static struct link *link_new(struct control *control, const struct link_events *events, void *owner)
{
    struct link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->control = control;
    link->events = events;
    link->owner = owner;
    link->state = LINK_CONNECTING;
    uv_tcp_init(&control->loop, &link->tcp);
    uv_timer_init(&control->loop, &link->deadline);
    link->tcp.data = link->deadline.data = link;
    link->references = 2;
    link->all_at = &control->links;
    link->all_next = control->links;
    if (link->all_next)
        link->all_next->all_at = &link->all_next;
    control->links = link;
    frame_parser_init(&link->frames, LINK_STRANGER_FRAME);
    uv_timer_start(&link->deadline, deadline_passed, LINK_DEADLINE_MS, 0);
    return link;
}

void links_free(struct control *control)
{
    /* A lookup that has begun cannot be cancelled, and a thread of libuv writes its result to a
     * link. */
    while (control->lookups > 0)
        uv_run(&control->loop, UV_RUN_ONCE);
    while (control->links) {
        control->links->references = 1;
        release(control->links);
    }
}

/* ---- out ------------------------------------------------------------------------------------- */

static void written(uv_write_t *request, int status)
{
    struct link *link = request->data;

    free(request);
    if (status < 0 && status != UV_ECANCELED)
        link_close(link, status, uv_strerror(status));
    release(link);
}

/* Sends one frame: `head` (from the seal, or empty) and the body after it. */
static int send_frame(struct link *link, const uint8_t *head, size_t head_size, const uint8_t *body,
                      size_t body_size)
{
    size_t size = FRAME_HEAD_BYTES + head_size + body_size;
    struct link_write *w = malloc(sizeof(*w) + size);
    uv_buf_t buffer;
    int rc;

    if (!w)
        return -ENOMEM;
    frame_head_write(w->bytes, (uint32_t)(head_size + body_size));
    if (head_size > 0)
        memcpy(w->bytes + FRAME_HEAD_BYTES, head, head_size);
    memcpy(w->bytes + FRAME_HEAD_BYTES + head_size, body, body_size);
    buffer = uv_buf_init((char *)w->bytes, (unsigned)size);
    w->request.data = link;
    link->references++;
    rc = uv_write(&w->request, (uv_stream_t *)&link->tcp, &buffer, 1, written);
    if (rc < 0) {
        free(w);
        link->references--;
    }
    return rc;
}

static uint8_t *pack(const Pwc__PeerFrame *frame, size_t *size)
{
    uint8_t *bytes;

    *size = pwc__peer_frame__get_packed_size(frame);
    bytes = malloc(*size ? *size : 1);
    if (bytes)
        pwc__peer_frame__pack(frame, bytes);
    return bytes;
}

static int send_plain(struct link *link, const Pwc__PeerFrame *frame)
{
    size_t size;
    uint8_t *body = pack(frame, &size);
    int rc = body ? send_frame(link, NULL, 0, body, size) : -ENOMEM;

    free(body);
    return rc;
}

void link_send(struct link *link, const Pwc__PeerFrame *frame)
{
    uint8_t head[SEAL_HEAD_MAX];
    uint8_t *body;
    size_t size, head_size;
    int rc = -ENOMEM;

    if (link->state != LINK_READY)
        return;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&link->tcp) > LINK_OUTPUT_MAX) {
        link_close(link, -ENOBUFS, "it does not read what we send");
        return;
    }
    body = pack(frame, &size);
    if (body) {
        head_size = seal_close(&link->seal, body, size, head);
        rc = send_frame(link, head, head_size, body, size);
    }
    free(body);
    if (rc < 0)
        link_close(link, rc, strerror(-rc));
}

static void refusal_sent(uv_shutdown_t *request, int status)
{
    struct link *link = request->data;

    free(request);
    close_handles(link);
    release(link);
}

void link_refuse(struct link *link, int status, const char *text)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Refusal refusal = PWC__REFUSAL__INIT;
    uv_shutdown_t *request = calloc(1, sizeof(*request));

    if (link->state == LINK_CLOSED) {
        free(request);
        return;
    }
    refusal.status = status;
    refusal.text = (char *)(uintptr_t)text;
    frame.body_case = PWC__PEER_FRAME__BODY_REFUSAL;
    frame.refusal = &refusal;
    (void)send_plain(link, &frame);
    end(link, status, text);
    /* Do not close at once, which might discard the refusal. The other side closes the connection,
     * or our deadline does. */
    if (request) {
        request->data = link;
        link->references++;
        if (uv_shutdown(request, (uv_stream_t *)&link->tcp, refusal_sent) == 0)
            return;
        link->references--;
        free(request);
    }
    close_handles(link);
}

/* ---- the handshake --------------------------------------------------------------------------- */

static int send_greeting(struct link *link, uint32_t target)
{
    const struct handshake_identity *self = link->handshake.self;
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Greeting greeting = PWC__GREETING__INIT;
    uint8_t nonce[HANDSHAKE_NONCE_BYTES];
    uint8_t *body;
    size_t size;
    int rc;

    randombytes_buf(nonce, sizeof(nonce));
    greeting.version_min = self->version_min;
    greeting.version_max = self->version_max;
    greeting.release = (char *)(uintptr_t)self->release;
    greeting.node = self->node;
    greeting.target = target;
    greeting.nodes = self->nodes;
    greeting.nonce.data = nonce;
    greeting.nonce.len = sizeof(nonce);
    greeting.provider = (char *)(uintptr_t)self->provider;
    greeting.rails = self->rails;
    greeting.engines = self->engines;
    greeting.boot_id.data = (uint8_t *)(uintptr_t)self->boot_id;
    greeting.boot_id.len = sizeof(self->boot_id);
    greeting.auth = self->auth;
    if (self->auth != HANDSHAKE_AUTH_SECRET) {
        greeting.share.data = link->handshake.share;
        greeting.share.len = sizeof(link->handshake.share);
    }
    frame.body_case = PWC__PEER_FRAME__BODY_GREETING;
    frame.greeting = &greeting;
    body = pack(&frame, &size);
    if (!body)
        return -ENOMEM;
    rc = handshake_greet(&link->handshake, body, size);
    if (rc == 0)
        rc = send_frame(link, NULL, 0, body, size);
    free(body);
    return rc;
}

/* Sends our proof: inside `credential`, or, where this is NULL, as it is. */
static int send_proof(struct link *link, char *credential)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Proof proof = PWC__PROOF__INIT;
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    int rc = handshake_proof(&link->handshake, mac);

    if (rc < 0)
        return rc;
    if (credential) {
        proof.credential = credential;
    } else {
        proof.mac.data = mac;
        proof.mac.len = sizeof(mac);
    }
    frame.body_case = PWC__PEER_FRAME__BODY_PROOF;
    frame.proof = &proof;
    return send_plain(link, &frame);
}

static bool is_initiator(const struct link *link)
{
    return link->handshake.role == HANDSHAKE_INITIATOR;
}

static void vouched(struct munge_async *v);

/* Lets munged open the other side's credential, or make ours, or both. Frames that arrive meanwhile
 * wait. */
static int vouch(struct link *link, const char *theirs)
{
    struct munge_async *v = munge_async_new(theirs);
    int rc = v ? handshake_proof(&link->handshake, v->mac) : -ENOMEM;

    if (rc == 0) {
        v->owner = link;
        v->done = vouched;
        v->make = !theirs || !is_initiator(link);
        rc = munge_async_start(v, &link->control->loop);
    }
    if (rc < 0) {
        munge_async_free(v);
        return rc;
    }
    link->munge = v;
    link->references++;
    link->control->lookups++;
    uv_read_stop((uv_stream_t *)&link->tcp);
    return 0;
}

static bool by_secret(const struct link *link)
{
    return link->handshake.self->auth == HANDSHAKE_AUTH_SECRET;
}

static int prove(struct link *link)
{
    return by_secret(link) ? send_proof(link, NULL) : vouch(link, NULL);
}

struct handshake_greeting link_greeting(const Pwc__Greeting *g)
{
    return (struct handshake_greeting){
        .version_min = g->version_min,
        .version_max = g->version_max,
        .release = g->release,
        .node = g->node,
        .target = g->target,
        .nodes = g->nodes,
        .provider = g->provider,
        .rails = g->rails,
        .engines = g->engines,
        .nonce = g->nonce.data,
        .nonce_size = g->nonce.len,
        .boot_id = g->boot_id.data,
        .boot_id_size = g->boot_id.len,
        .auth = g->auth,
        .share = g->share.data,
        .share_size = g->share.len,
    };
}

static int take_greeting(struct link *link, const Pwc__Greeting *g, const uint8_t *body,
                         size_t size)
{
    const struct handshake_greeting theirs = link_greeting(g);
    int rc = handshake_greeted(&link->handshake, &theirs, body, size);

    if (rc < 0)
        return rc;
    rc = is_initiator(link) ? prove(link) : send_greeting(link, link->handshake.node);
    link->state = LINK_PROVING;
    return rc;
}

/* Takes the other side's proof. `credential`: our credential, which contains our proof; NULL: there
 * is none, or we have sent our proof before. */
static int take_mac(struct link *link, const uint8_t *mac, size_t size, char *credential)
{
    int rc = handshake_proved(&link->handshake, mac, size);

    if (rc < 0)
        return rc;
    rc = link->events->proven(link, link->handshake.text, sizeof(link->handshake.text));
    if (rc < 0)
        return rc;
    if (!is_initiator(link))
        rc = send_proof(link, credential);
    if (rc == 0)
        rc = handshake_seal(&link->handshake, &link->seal);
    if (rc < 0)
        return rc;
    uv_timer_stop(&link->deadline);
    link->frames.bound = LINK_FRAME_MAX;
    link->state = LINK_READY;
    link->events->ready(link);
    return 0;
}

static int take_proof(struct link *link, const Pwc__Proof *proof)
{
    return by_secret(link) ? take_mac(link, proof->mac.data, proof->mac.len, NULL)
                           : vouch(link, proof->credential);
}

/* Takes the other side's reason for a refusal. It is only logged, because any stranger can send
 * one. */
static void take_refusal(struct link *link, const Pwc__Refusal *refusal)
{
    link->refused_by_other = true;
    snprintf(link->text, sizeof(link->text), "%.200s", refusal->text);
    log_clean(link->text);
    link_close(link, refusal->status < 0 ? refusal->status : -ECONNREFUSED, link->text);
}

static void refuse_if(struct link *link, int rc)
{
    if (rc < 0)
        link_refuse(link, rc,
                    link->handshake.text[0] ? link->handshake.text
                                            : "a frame out of place in the handshake");
}

static void take_stranger_frame(struct link *link, const Pwc__PeerFrame *frame, const uint8_t *body,
                                size_t size)
{
    int rc = -EPROTO;

    if (frame->body_case == PWC__PEER_FRAME__BODY_REFUSAL) {
        take_refusal(link, frame->refusal);
        return;
    }
    if (frame->body_case == PWC__PEER_FRAME__BODY_GREETING)
        rc = take_greeting(link, frame->greeting, body, size);
    else if (frame->body_case == PWC__PEER_FRAME__BODY_PROOF)
        rc = take_proof(link, frame->proof);
    refuse_if(link, rc);
}

/* ---- in -------------------------------------------------------------------------------------- */

static void take_frame(struct link *link, const uint8_t *body, size_t size)
{
    Pwc__PeerFrame *frame;
    int rc = 0;

    if (link->state == LINK_READY) {
        int at = seal_open(&link->seal, body, size);

        if (at < 0) {
            link_close(link, at, "a frame whose seal does not fit: altered, replayed or lost");
            return;
        }
        body += at;
        size -= (size_t)at;
    }
    frame = pwc__peer_frame__unpack(NULL, size, body);
    if (!frame)
        link_close(link, -EPROTO, "a frame that is none");
    else if (link->state != LINK_READY)
        take_stranger_frame(link, frame, body, size);
    else
        rc = link->events->frame(link, frame);
    if (rc < 0)
        link_close(link, rc, "a frame that makes no sense here");
    if (frame)
        pwc__peer_frame__free_unpacked(frame, NULL);
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct link *link = handle->data;
    uint8_t *to = NULL;
    size_t room = 0;

    if (frame_space(&link->frames, &to, &room) < 0)
        room = 0;
    *buffer = uv_buf_init((char *)to, room < READ_BYTES ? (unsigned)room : READ_BYTES);
}

/* Takes all complete frames, until one has to wait for munged. */
static void take_frames(struct link *link)
{
    const uint8_t *body;
    size_t size;
    int rc = 0;

    link->references++; /* a frame may close the link */
    while (link->state != LINK_CLOSED && !link->munge &&
           (rc = frame_next(&link->frames, &body, &size)) == 1)
        take_frame(link, body, size);
    if (rc < 0)
        link_close(link, rc, "a frame over the bound was announced");
    release(link);
}

static void take_bytes(struct link *link, ssize_t got)
{
    if (link->state == LINK_CLOSED) {
        if (got < 0)
            close_handles(link);
        return;
    }
    if (got < 0) {
        link_close(link, (int)got,
                   got == UV_EOF ? "it closed the connection" : uv_strerror((int)got));
        return;
    }
    frame_fed(&link->frames, (size_t)got);
    take_frames(link);
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct link *link = stream->data;
    struct control *control = link->control;
    bool proven = link->state == LINK_READY;
    struct account *before = account_begin(control, proven ? NULL : &control->strangers);

    take_bytes(link, got);
    account_end(control, before);
}

static void vouched(struct munge_async *v)
{
    struct link *link = v->owner;

    link->control->lookups--;
    link->munge = NULL;
    if (link->state != LINK_CLOSED) {
        if (v->status < 0)
            link_refuse(link, v->status, v->why);
        else if (v->theirs)
            refuse_if(link, take_mac(link, v->payload, sizeof(v->payload), v->ours));
        else
            refuse_if(link, send_proof(link, v->ours));
    }
    if (link->state != LINK_CLOSED)
        take_frames(link);
    if (link->state != LINK_CLOSED && !link->munge) {
        int rc = uv_read_start((uv_stream_t *)&link->tcp, give_space, on_bytes);

        if (rc < 0)
            link_close(link, rc, uv_strerror(rc));
    }
    munge_async_free(v);
    release(link);
}

/* ---- dialling and accepting ------------------------------------------------------------------ */

/* Lets the kernel detect a peer that has vanished silently. An idle connection is probed once in a
 * peer deadline, so that ten thousand connections cost nothing. Bytes without acknowledgement end a
 * connection as fast as the engine gives up a silent fabric (keepalive.h). */
static void watch_silence(struct link *link)
{
    uint64_t deadline = link->control->config->peer_deadline_ms;
    int on = 1, one = 1, probes = 3;
    int idle = deadline < 2000 ? 1 : deadline > 3600000 ? 3600 : (int)(deadline / 1000);
    unsigned user_timeout = (unsigned)(3 * config_keepalive_ms(link->control->config));
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&link->tcp, &fd) < 0)
        return;
    uv_tcp_nodelay(&link->tcp, 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof(user_timeout));
}

static void connected(uv_connect_t *request, int status)
{
    struct link *link = request->data;
    int rc = status;

    if (link->state == LINK_CLOSED)
        return;
    if (rc == 0) {
        watch_silence(link);
        link->state = LINK_GREETING;
        rc = uv_read_start((uv_stream_t *)&link->tcp, give_space, on_bytes);
    }
    if (rc == 0)
        rc = send_greeting(link, link->handshake.node);
    if (rc < 0)
        link_close(link, rc, uv_strerror(rc));
}

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct link *link = request->data;
    int rc = status;

    link->control->lookups--;
    link->resolving = false;
    if (link->state != LINK_CLOSED) {
        if (rc == 0)
            rc = uv_tcp_connect(&link->connect, &link->tcp, found->ai_addr, connected);
        if (rc < 0)
            link_close(link, rc, uv_strerror(rc));
    }
    if (found)
        uv_freeaddrinfo(found);
    release(link);
}

static void begin(struct link *link, enum handshake_role role, uint32_t node)
{
    uint8_t random[HANDSHAKE_SHARE_BYTES];

    handshake_begin(&link->handshake, &link->control->identity, role, node);
    if (by_secret(link))
        return;
    randombytes_buf(random, sizeof(random));
    handshake_share(&link->handshake, random);
    sodium_memzero(random, sizeof(random));
}

int link_dial(struct control *control, uint32_t node, const char *host, const char *port,
              const struct link_events *events, void *owner, struct link **out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct link *link = link_new(control, events, owner);
    int rc;

    if (!link)
        return -ENOMEM;
    begin(link, HANDSHAKE_INITIATOR, node);
    link->connect.data = link->resolve.data = link;
    link->references++;
    rc = uv_getaddrinfo(&control->loop, &link->resolve, resolved, host, port, &hints);
    if (rc < 0) {
        link->references--;
        link->state = LINK_CLOSED;
        close_handles(link);
        return rc;
    }
    control->lookups++;
    link->resolving = true;
    *out = link;
    return 0;
}

int link_accept(struct control *control, uv_stream_t *server, const struct link_events *events,
                struct link **out)
{
    struct link *link = link_new(control, events, NULL);
    int rc;

    if (!link)
        return -ENOMEM;
    begin(link, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    rc = uv_accept(server, (uv_stream_t *)&link->tcp);
    if (rc == 0) {
        watch_silence(link);
        link->state = LINK_GREETING;
        rc = uv_read_start((uv_stream_t *)&link->tcp, give_space, on_bytes);
    }
    if (rc < 0) {
        link->state = LINK_CLOSED;
        close_handles(link);
        return rc;
    }
    *out = link;
    return 0;
}
