/* The connection of a daemon that the test plays (raw_peer.h). */
#include "tests/control/lib/raw_peer.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "daemon/control/nodes/link.h"
#include "daemon/control/start/secret.h"

enum { FRAME_MAX = 1 << 20, WAIT_S = 20 };

static uint8_t nonce[HANDSHAKE_NONCE_BYTES];
static uint8_t mac[HANDSHAKE_MAC_BYTES];

bool raw_peer_dial(struct raw_peer *p, const struct plan *plan, uint32_t node)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(plan->ports[1 - node])};
    struct timeval limit = {.tv_sec = WAIT_S};
    char why[256];

    *p = (struct raw_peer){.self = {.node = node,
                                    .nodes = 2,
                                    .version_min = HANDSHAKE_VERSION_MIN,
                                    .version_max = HANDSHAKE_VERSION_MAX,
                                    .provider = PLAN_PROVIDER}};
    randombytes_buf(p->self.boot_id, sizeof(p->self.boot_id));
    handshake_begin(&p->handshake, &p->self, HANDSHAKE_INITIATOR, 1 - node);
    inet_pton(AF_INET, plan->host, &name.sin_addr);
    p->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(p->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return secret_load(plan->secrets[0], p->self.secret, why, sizeof(why)) == 0 &&
           connect(p->socket, (struct sockaddr *)&name, sizeof(name)) == 0;
}

void raw_peer_close(struct raw_peer *p)
{
    close(p->socket);
    p->socket = -1;
}

void raw_peer_greeting(struct raw_peer *p, Pwc__Greeting *out)
{
    pwc__greeting__init(out);
    randombytes_buf(nonce, sizeof(nonce));
    out->version_min = p->self.version_min;
    out->version_max = p->self.version_max;
    out->node = p->self.node;
    out->target = 1 - p->self.node;
    out->nodes = p->self.nodes;
    out->nonce = (ProtobufCBinaryData){.len = sizeof(nonce), .data = nonce};
    out->provider = p->self.provider;
    out->boot_id = (ProtobufCBinaryData){.len = sizeof(p->self.boot_id), .data = p->self.boot_id};
}

void raw_peer_proof(struct raw_peer *p, Pwc__Proof *out)
{
    pwc__proof__init(out);
    (void)handshake_proof(&p->handshake, mac);
    out->mac = (ProtobufCBinaryData){.len = sizeof(mac), .data = mac};
}

static bool send_all(int s, const uint8_t *bytes, size_t size)
{
    return send(s, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

bool raw_peer_send(struct raw_peer *p, const Pwc__PeerFrame *frame)
{
    size_t size = pwc__peer_frame__get_packed_size(frame), head = 0;
    uint8_t *bytes = malloc(4 + SEAL_HEAD_MAX + size), *body;
    uint8_t seal[SEAL_HEAD_MAX];
    bool sent = false;

    if (!bytes)
        return false;
    body = bytes + 4 + SEAL_HEAD_MAX;
    pwc__peer_frame__pack(frame, body);
    if (p->linked)
        head = seal_close(&p->seal, body, size, seal);
    else if (frame->body_case == PWC__PEER_FRAME__BODY_GREETING)
        (void)handshake_greet(&p->handshake, body, size);
    memmove(bytes + 4, seal, head);
    memmove(bytes + 4 + head, body, size);
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)((head + size) >> (8 * i));
    sent = send_all(p->socket, bytes, 4 + head + size);
    free(bytes);
    return sent;
}

/* Reads the bytes of the next frame. Returns their number, or -1. */
static ssize_t receive(struct raw_peer *p, uint8_t *to)
{
    uint8_t head[4];
    size_t size;

    if (recv(p->socket, head, sizeof(head), MSG_WAITALL) != sizeof(head))
        return -1;
    size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (size > FRAME_MAX || recv(p->socket, to, size, MSG_WAITALL) != (ssize_t)size)
        return -1;
    return (ssize_t)size;
}

static void greeted(struct raw_peer *p, const Pwc__Greeting *g, const uint8_t *bytes, size_t size)
{
    const struct handshake_greeting theirs = link_greeting(g);

    (void)handshake_greeted(&p->handshake, &theirs, bytes, size);
}

Pwc__PeerFrame *raw_peer_next(struct raw_peer *p)
{
    static uint8_t bytes[FRAME_MAX];
    ssize_t size = receive(p, bytes);
    int at = 0;
    Pwc__PeerFrame *frame;

    if (size >= 0 && p->linked)
        at = seal_open(&p->seal, bytes, (size_t)size);
    if (size < 0 || at < 0)
        return NULL;
    frame = pwc__peer_frame__unpack(NULL, (size_t)(size - at), bytes + at);
    if (frame && frame->body_case == PWC__PEER_FRAME__BODY_GREETING)
        greeted(p, frame->greeting, bytes, (size_t)size);
    if (frame && frame->body_case == PWC__PEER_FRAME__BODY_PROOF &&
        handshake_proved(&p->handshake, frame->proof->mac.data, frame->proof->mac.len) == 0)
        p->linked = handshake_seal(&p->handshake, &p->seal) == 0;
    return frame;
}

/* Sends a frame and reads the answer that must follow. */
static bool trade(struct raw_peer *p, const Pwc__PeerFrame *frame)
{
    Pwc__PeerFrame *back = raw_peer_send(p, frame) ? raw_peer_next(p) : NULL;
    bool same = back && back->body_case == frame->body_case;

    if (back)
        pwc__peer_frame__free_unpacked(back, NULL);
    return same;
}

bool raw_peer_link(struct raw_peer *p, const struct plan *plan, uint32_t node)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Greeting greeting;
    Pwc__Proof proof;

    if (!raw_peer_dial(p, plan, node))
        return false;
    raw_peer_greeting(p, &greeting);
    frame.body_case = PWC__PEER_FRAME__BODY_GREETING;
    frame.greeting = &greeting;
    if (!trade(p, &frame))
        return false;
    raw_peer_proof(p, &proof);
    frame.body_case = PWC__PEER_FRAME__BODY_PROOF;
    frame.proof = &proof;
    return trade(p, &frame) && p->linked;
}
