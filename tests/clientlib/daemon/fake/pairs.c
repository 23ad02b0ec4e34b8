/*
 * The fake daemon's pairs: contexts of its one client reach each other without it, where the test
 * allows that. Thread: the daemon's.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "proto/board_abi.h"
#include "tests/clientlib/daemon/fake/daemon.h"
#include "shm_ring/pair.h"
#include "daemon/control/clients/message.h"

static struct fake_pair *find(struct fake_daemon *daemon, const struct fake_context *origin,
                              const struct fake_context *target)
{
    for (uint32_t i = 0; i < daemon->pair_count; i++)
        if (daemon->pair_list[i].origin == origin && daemon->pair_list[i].target == target &&
            daemon->pair_list[i].ring.base)
            return &daemon->pair_list[i];
    return NULL;
}

static void announce(struct fake_context *context)
{
    atomic_fetch_add(&context->session.shared->neighbours, 1);
}

static void send_note(const struct fake_pair *pair)
{
    struct pair_note note = {.peer = pair->origin->peer, .slot = BOARD_NONE};
    _Alignas(struct cmsghdr) uint8_t room[MESSAGE_ROOM(1)] = {0};
    struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    message_attach(&message, room, &pair->ring.fd, 1);
    if (sendmsg(pair->target->wake_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        abort();
}

static struct fake_pair *make(struct fake_daemon *daemon, struct fake_context *origin,
                              struct fake_context *target)
{
    struct fake_pair *pair = &daemon->pair_list[daemon->pair_count++];

    *pair = (struct fake_pair){.origin = origin, .target = target, .ring = {.fd = -1}};
    if (daemon->pair_count > FAKE_PAIRS || mapping_create(&pair->ring, "fake pair", PAIR_BYTES) < 0)
        abort();
    pair_format(pair->ring.base);
    if (!daemon->lose_notes)
        send_note(pair);
    announce(target);
    return pair;
}

int fake_pair_connect(struct fake_daemon *daemon, struct fake_context *origin,
                      const struct fake_remote *remote, Pwc__Pair *out, int *fds)
{
    struct fake_context *target = fake_context_of(daemon, remote->peer);
    struct fake_pair *pair;
    int count = 0;

    if (!daemon->pairs || !target || !origin->direct || !target->direct)
        return -1;
    pair = find(daemon, origin, target);
    out->fresh = !pair;
    if (!pair)
        pair = make(daemon, origin, target);
    out->number = (uint64_t)(pair - daemon->pair_list) + 1;
    if (out->fresh)
        fds[count++] = pair->ring.fd;
    if (remote->region >= 0) {
        const struct fake_region *region = &daemon->regions[remote->region];
        const struct mapping *segment = &daemon->segments[region->segment];

        fds[count++] = segment->fd;
        out->segment_length = segment->size;
        out->offset = region->offset;
    }
    return count;
}

void fake_pairs_end(struct fake_daemon *daemon, struct fake_context *context)
{
    for (uint32_t i = 0; i < daemon->pair_count; i++) {
        struct fake_pair *pair = &daemon->pair_list[i];
        struct pair_shared *shared = pair->ring.base;

        if (!shared || (pair->origin != context && pair->target != context))
            continue;
        atomic_fetch_or(&shared->gone,
                        pair->origin == context ? PAIR_ORIGIN_GONE : PAIR_TARGET_GONE);
        announce(pair->origin == context ? pair->target : pair->origin);
        mapping_destroy(&pair->ring);
    }
}

void fake_pair_end(struct fake_daemon *daemon, uint64_t number)
{
    struct fake_pair *pair;

    if (number == 0 || number > daemon->pair_count)
        return;
    pair = &daemon->pair_list[number - 1];
    if (!pair->ring.base)
        return;
    atomic_fetch_or(&((struct pair_shared *)pair->ring.base)->gone, PAIR_ORIGIN_GONE);
    announce(pair->target);
    mapping_destroy(&pair->ring);
}

void fake_carry_wake(struct fake_daemon *daemon, const struct submit_record *record)
{
    uint64_t peer =
        record->remote == SUBMIT_NO_REMOTE ? record->rid : fake_remote_of(daemon, record)->peer;
    struct fake_context *context = fake_context_of(daemon, peer);

    if (context)
        fake_wake_client(context);
}
