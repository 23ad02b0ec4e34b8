/* Good values of frames, and how an answer is read (good_frames.h). */
#include "tests/control/lib/good_frames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/peering/directory.h"

static void name_job(char name[16], const char *stem, uint32_t home)
{
    const struct directory_id id = {.uid = getuid(), .job = name};

    for (int i = 0; i == 0 || directory_home(&id, 2) != home; i++)
        snprintf(name, 16, "%s%d", stem, i);
}

void good_frames_init(struct good_frames *f)
{
    *f = (struct good_frames){0};
    name_job(f->job, "job", 1);
    name_job(f->pair_job, "pair", 1);
    name_job(f->our_job, "job", WE);
}

void good_frames_fill(struct good_frames *f, struct raw_peer *p)
{
    static uint8_t data[8];
    static char name[] = "name";

    raw_peer_greeting(p, &f->greeting);
    raw_peer_proof(p, &f->proof);
    pwc__refusal__init(&f->refusal);
    f->refusal.status = -ESHUTDOWN;
    pwc__rank_at__init(&f->rank_at);
    f->rank_at.uid = getuid();
    f->rank_at.job = f->job;
    f->rank_at.size = 1;
    f->rank_at.cookie = COOKIE;
    pwc__where_is__init(&f->where_is);
    f->where_is.cookie = COOKIE;
    f->where_is.uid = getuid();
    f->where_is.job = f->job;
    pwc__rank_is__init(&f->rank_is);
    f->rank_is.cookie = COOKIE;
    pwc__contribution__init(&f->contribution);
    f->contribution.uid = getuid();
    f->contribution.job = f->job;
    f->contribution.size = 1;
    f->contribution.data = (ProtobufCBinaryData){.len = sizeof(data), .data = data};
    pwc__gathered__init(&f->gathered);
    f->gathered.uid = getuid();
    f->gathered.job = f->our_job;
    pwc__offer__init(&f->offer);
    f->offer.incarnation = 1;
    f->offer.state_id = 77;
    f->offer.ring_bytes = 16384;
    f->offer.address = (ProtobufCBinaryData){.len = f->address_size, .data = f->address};
    pwc__ping__init(&f->ping);
    f->ping.answer = true;
    pwc__roll__init(&f->roll);
    pwc__publication__init(&f->publication);
    f->publication.uid = getuid();
    f->publication.job = f->job;
    f->publication.name = name;
    f->publication.data = (ProtobufCBinaryData){.len = sizeof(data), .data = data};
    f->publication.cookie = COOKIE;
    pwc__look_for__init(&f->look_for);
    f->look_for.uid = getuid();
    f->look_for.job = f->job;
    f->look_for.name = name;
    f->look_for.cookie = COOKIE;
    pwc__name_is__init(&f->name_is);
    f->name_is.cookie = COOKIE;
    f->name_is.data = (ProtobufCBinaryData){.len = sizeof(data), .data = data};
}

Pwc__PeerFrame good_frames_of(struct good_frames *f, const char *path)
{
    const struct {
        const char *name;
        void *body;
    } bodies[] = {
        {"greeting", &f->greeting}, {"proof", &f->proof},       {"refusal", &f->refusal},
        {"rank_at", &f->rank_at},   {"where_is", &f->where_is}, {"rank_is", &f->rank_is},
        {"offer", &f->offer},       {"gathered", &f->gathered}, {"contribution", &f->contribution},
        {"ping", &f->ping},         {"roll", &f->roll},         {"publication", &f->publication},
        {"look_for", &f->look_for}, {"name_is", &f->name_is},
    };
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    size_t length = strcspn(path, ".");

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (strlen(bodies[i].name) == length && memcmp(bodies[i].name, path, length) == 0) {
            frame.greeting = bodies[i].body; /* all bodies are one union of pointers */
            frame.body_case =
                (Pwc__PeerFrame__BodyCase)protobuf_c_message_descriptor_get_field_by_name(
                    frame.base.descriptor, bodies[i].name)
                    ->id;
        }
    return frame;
}

int good_frames_status(struct raw_peer *p)
{
    Pwc__PeerFrame *back;
    int status = 1;

    while (status == 1 && (back = raw_peer_next(p)) != NULL) {
        if (back->body_case == PWC__PEER_FRAME__BODY_RANK_IS && back->rank_is->cookie == COOKIE)
            status = back->rank_is->status;
        else if (back->body_case == PWC__PEER_FRAME__BODY_GATHERED)
            status = back->gathered->status;
        else if (back->body_case == PWC__PEER_FRAME__BODY_NAME_IS &&
                 back->name_is->cookie == COOKIE)
            status = back->name_is->status;
        pwc__peer_frame__free_unpacked(back, NULL);
    }
    return status == 1 ? -ECONNRESET : status;
}

bool good_frames_alive(struct good_frames *f, struct raw_peer *p)
{
    Pwc__PeerFrame frame;

    good_frames_fill(f, p);
    frame = good_frames_of(f, "rank_at");
    return raw_peer_send(p, &frame) && good_frames_status(p) == 0;
}
