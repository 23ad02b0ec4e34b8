/*
 * Fuzzes frames of clients and of other daemons: they are cut out of a stream and unpacked. Frames
 * between daemons are also carried out, on a directory of jobs, on teams that are formed here, and
 * on a call for a team whose home is node 1. The first byte of an input says how the stream is cut.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/control.h"
#include "proto/control.pb-c.h"
#include "daemon/control/nodes/frame.h"
#include "daemon/control/nodes/link.h"
#include "daemon/peering/handshake.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/nodes/names_client.h"
#include "daemon/control/teams/team_client.h"
#include "daemon/control/teams/team_home.h"
#include "daemon/peering/seal.h"

enum { BOUND = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void greet(const Pwc__Greeting *g, const uint8_t *body, size_t size)
{
    const struct handshake_identity self = {.nodes = 2,
                                            .version_min = HANDSHAKE_VERSION_MIN,
                                            .version_max = HANDSHAKE_VERSION_MAX,
                                            .provider = "tcp"};
    const struct handshake_greeting theirs = link_greeting(g);
    struct handshake h;
    uint8_t mac[HANDSHAKE_MAC_BYTES] = {0};

    handshake_begin(&h, &self, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    if (handshake_greeted(&h, &theirs, body, size) == 0 && handshake_greet(&h, body, size) == 0)
        (void)handshake_proved(&h, mac, sizeof(mac));
}

/* Makes the call of a client of ours, which node 1 answers: the first call over team 5 of job
 * "job". */
static void call_for_team(struct control *control)
{
    const struct teams_key key = {.id = {.uid = 1, .job = "job"}, .parent = 5};
    const struct team_join join = {.call = {.size = 2, .window = 64}};

    if (directory_home(&key.id, control->node_count) != 1)
        abort();
    (void)team_client_call(control, &key, &join);
}

/* Gives a frame to both sides, home and client, because a sender may claim to be either. */
static void carry_out(struct control *control, const Pwc__PeerFrame *frame)
{
    if (directory_client_frame(control, 1, frame) == -EPROTO &&
        names_client_frame(control, 1, frame) == -EPROTO &&
        team_home_frame(control, 1, frame) == -EPROTO)
        (void)team_client_frame(control, 1, frame);
}

static void take_frame(struct control *control, const uint8_t *body, size_t size)
{
    struct seal seal = {.role = HANDSHAKE_RESPONDER};
    Pwc__ClientRequest *request = pwc__client_request__unpack(NULL, size, body);
    Pwc__PeerFrame *frame = pwc__peer_frame__unpack(NULL, size, body);

    (void)seal_open(&seal, body, size);
    if (request && request->body_case == PWC__CLIENT_REQUEST__BODY_HELLO)
        (void)directory_name_valid(request->hello->job);
    if (request)
        pwc__client_request__free_unpacked(request, NULL);
    if (frame && frame->body_case == PWC__PEER_FRAME__BODY_GREETING)
        greet(frame->greeting, body, size);
    else if (frame)
        carry_out(control, frame);
    if (frame)
        pwc__peer_frame__free_unpacked(frame, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config config;
    struct control *control = calloc(1, sizeof(*control));
    size_t piece = size > 0 ? 1 + data[0] : 1;
    struct frame_parser frames;
    const uint8_t *body;
    size_t length;
    int rc = 0;

    if (!control)
        abort();
    control->node_count = 2;
    control->config = &config;
    if (directory_client_open(control) < 0 || team_home_open(control) < 0)
        abort();
    pending_init(&control->pending);
    call_for_team(control);
    frame_parser_init(&frames, BOUND);
    for (size_t at = 1; at < size && rc >= 0;) {
        uint8_t *to;
        size_t room;

        if (frame_space(&frames, &to, &room) < 0)
            abort();
        room = room < piece ? room : piece;
        room = room < size - at ? room : size - at;
        memcpy(to, data + at, room);
        frame_fed(&frames, room);
        at += room;
        while ((rc = frame_next(&frames, &body, &length)) == 1)
            take_frame(control, body, length);
    }
    frame_parser_destroy(&frames);
    team_client_close(control);
    node_teams_free(control);
    team_home_close(control);
    directory_client_close(control);
    pending_destroy(&control->pending);
    free(control);
    return 0;
}
