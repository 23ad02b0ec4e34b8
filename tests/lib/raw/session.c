/* Owns the mappings and descriptors of a raw session (session.h). Thread: one at a time. */
#include "tests/lib/raw/session.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { EVENT_TRIES = 20000 };

static void *map(int fd, uint64_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return base == MAP_FAILED ? NULL : base;
}

static int open_context(struct raw_session *s)
{
    struct answer a;
    struct session_sizes sizes;
    int rc = ask_context(s->socket, RAW_RING, &a);

    if (rc < 0)
        return rc;
    if (a.fd_count != 3)
        return -EPROTO;
    memcpy(&sizes, a.sizes, sizeof(sizes));
    s->session = a.handle;
    s->session_fd = a.fds[0];
    s->doorbell = a.fds[1];
    s->wake = a.fds[2];
    s->shared_bytes = session_bytes(&sizes);
    s->shared = map(s->session_fd, s->shared_bytes);
    if (!s->shared)
        return -ENOMEM;
    s->submit = (uint8_t *)s->shared + SESSION_DATA_OFFSET;
    s->local = s->submit + sizes.submit;
    s->remote_events = s->local + sizes.local;
    s->answer = s->remote_events + sizes.remote;
    return 0;
}

static int open_memory(struct raw_session *s)
{
    struct answer a;
    int rc = ask_segment(s->socket, RAW_SEGMENT, &a);

    if (rc < 0)
        return rc;
    s->segment = a.handle;
    s->segment_fd = a.fds[0];
    s->memory = map(s->segment_fd, RAW_SEGMENT);
    return s->memory ? ask_region(s->socket, s->segment, 0, RAW_SEGMENT, 3, &s->key) : -ENOMEM;
}

int raw_session_open(struct raw_session *s, const struct daemon *d, const char *job, uint32_t rank,
                     uint32_t size)
{
    struct answer bound;
    int rc;

    *s = (struct raw_session){.session_fd = -1, .doorbell = -1, .wake = -1, .segment_fd = -1};
    s->socket = raw_connect(d);
    rc = s->socket < 0 ? s->socket : raw_hello(s->socket, job, rank, size);
    if (rc == 0)
        rc = open_context(s);
    if (rc == 0)
        rc = open_memory(s);
    if (rc == 0)
        rc = ask_bind(s->socket, s->session, rank, &s->key, &bound);
    s->remote = rc == 0 ? bound.handle : 0;
    return rc;
}

void raw_session_close(struct raw_session *s)
{
    const int fds[] = {s->socket, s->session_fd, s->doorbell, s->wake, s->segment_fd};

    if (s->shared)
        munmap(s->shared, s->shared_bytes);
    if (s->memory)
        munmap(s->memory, RAW_SEGMENT);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *s = (struct raw_session){
        .socket = -1, .session_fd = -1, .doorbell = -1, .wake = -1, .segment_fd = -1};
}

struct submit_record raw_put(const struct raw_session *s)
{
    return (struct submit_record){
        .size = sizeof(struct submit_record),
        .kind = SUBMIT_PUT,
        .remote = s->remote,
        .reserve = event_bytes(0),
        .offset = RAW_SEGMENT / 2,
        .length = 64,
        .lid = 1,
        .rid = 2,
        .segment = s->segment,
    };
}

void raw_ring(struct raw_session *s)
{
    (void)eventfd_write(s->doorbell, 1);
}

void raw_set_tail(struct raw_session *s, uint64_t tail)
{
    s->tail = tail;
    atomic_store_explicit(&s->shared->submit.tail, tail, memory_order_release);
    raw_ring(s);
}

static void copy_in(uint8_t *ring, uint64_t tail, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ring[(tail + i) & (RAW_RING - 1)] = ((const uint8_t *)bytes)[i];
}

void raw_submit(struct raw_session *s, const void *bytes, size_t size, uint64_t advance)
{
    copy_in(s->submit, s->tail, bytes, size);
    raw_set_tail(s, s->tail + advance);
}

void raw_answer(struct raw_session *s, const void *bytes, size_t size, uint64_t advance)
{
    copy_in(s->answer, s->answer_tail, bytes, size);
    s->answer_tail += advance;
    atomic_store_explicit(&s->shared->reply_submit.tail, s->answer_tail, memory_order_release);
    raw_ring(s);
}

static int next_event(struct ring_control *ring, const uint8_t *data, struct event_record *out,
                      struct message *block)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < EVENT_TRIES; i++) {
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

        if (atomic_load_explicit(&ring->tail, memory_order_acquire) != head) {
            const uint8_t *at = data + (head & (RAW_RING - 1));

            memcpy(out, at, sizeof(*out));
            if (block && out->kind == EVENT_REQUEST)
                memcpy(block, at + sizeof(*out), sizeof(*block));
            atomic_store_explicit(&ring->head, head + out->size, memory_order_release);
            if (out->kind != EVENT_PAD)
                return 1;
            continue;
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}

int raw_local_event(struct raw_session *s, struct event_record *out)
{
    return next_event(&s->shared->local, s->local, out, NULL);
}

int raw_remote_event(struct raw_session *s, struct event_record *out, struct message *block)
{
    return next_event(&s->shared->remote, s->remote_events, out, block);
}
