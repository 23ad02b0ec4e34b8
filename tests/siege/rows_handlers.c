/*
 * Rows in which the daemon runs handlers (limits.c) that stay just below its limits: rank 0 sends
 * messages without pause, and rank 1 has the offload. In the row "offloads" both ranks create
 * offloads with as many targets as there may be, and destroy them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <pwc/am.h>
#include <pwc/offload.h>
#include "tests/lib/rank.h"
#include "tests/siege/row.h"

enum { COMPUTE, FAIL, REPLY, SEND, AGAIN, PAGES, SCATTER }; /* as in limits.c */

#define INDEX     1u
#define MIB       ((size_t)1 << 20)
#define PAUSE_NS  2000000
#define IN_FLIGHT 1024

/* Loads the object file, which is in this program's folder. */
static int load(pwc_client *client, pwc_program **out)
{
    static uint8_t elf[65536];
    char path[512];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 16);
    char *name;
    size_t size;
    FILE *file;

    path[length > 0 ? length : 0] = 0;
    name = strrchr(path, '/');
    if (!name)
        return -ENOENT;
    strcpy(name, "/limits.o");
    file = fopen(path, "rb");
    if (!file)
        return -errno;
    size = fread(elf, 1, sizeof(elf), file);
    fclose(file);
    return pwc_program_load(client, elf, size, NULL, out);
}

/* Prints why there is no offload. */
static void no_offload(const struct rank *r, int rc)
{
    char text[256] = "";

    pwc_error_text(r->client, text, sizeof(text));
    fprintf(stderr, "attacker: no offload: %s (%s)\n", pwc_strerror(rc), text);
}

/* The target only enables its offload again when a handler took too long, and gives back the pages
 * that its handlers touch. */
static void be_target(struct attack *a, struct rank *r, unsigned way)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct pwc_offload_attr attr = {.index = INDEX,
                                    .flags = PWC_OFFLOAD_QUIET,
                                    .state = r->region,
                                    .state_length = MIB,
                                    .targets = &r->remote,
                                    .target_count = 1};
    pwc_offload *offload;
    int rc = load(r->client, &attr.program);

    if (rc == 0)
        rc = pwc_offload_create(r->ctx, &attr, &offload);
    if (rc < 0) {
        no_offload(r, rc);
        return;
    }
    attack_begins(a);
    while (pwc_offload_enable(offload) == 0)
        for (int i = 0; i < 8; i++) {
            if (way == PAGES)
                madvise(r->memory, MIB, MADV_REMOVE);
            nanosleep(&pause, NULL);
        }
}

/* The origin sends messages, which may end in any way, and takes no remote events. */
static void be_origin(struct attack *a, struct rank *r, unsigned way)
{
    const uint64_t argument = way;
    struct pwc_am_send send = {.index = INDEX,
                               .arguments = &argument,
                               .count = 1,
                               .flags = way == REPLY ? 0 : PWC_AM_NO_REPLY};
    unsigned kinds = PWC_LOCAL | PWC_MESSAGE;
    uint64_t in_flight = 0;
    struct pwc_event event;
    int rc = 0;

    attack_begins(a);
    while (rc != -ESHUTDOWN && rc != -EPROTO) {
        for (rc = 0; rc == 0 && in_flight < IN_FLIGHT; in_flight += rc == 0)
            rc = pwc_am_short(r->remote, &send);
        rc = pwc_wait(r->ctx, PWC_ANY, kinds, &event, 1);
        for (; rc == 1; rc = pwc_probe(r->ctx, PWC_ANY, kinds, &event)) {
            if (event.kind != PWC_LOCAL)
                continue;
            in_flight--;
            attack_counts(a, way == FAIL ? 0 : event.status);
        }
    }
}

static void flood(struct attack *a, unsigned way)
{
    struct rank r;

    if (rank_attach(&r, a->sockets[a->process], a->job, a->process, 2, MIB) == 0 &&
        rank_bind_other(&r) == 0) {
        if (a->process == 1)
            be_target(a, &r, way);
        else
            be_origin(a, &r, way);
    }
}

static void run_offloads(struct attack *a)
{
    static pwc_remote *targets[PWC_OFFLOAD_TARGETS_MAX];
    struct pwc_offload_attr attr = {
        .index = INDEX, .targets = targets, .target_count = PWC_OFFLOAD_TARGETS_MAX};
    pwc_offload *offload;
    struct rank r;
    int rc;

    if (rank_attach(&r, a->sockets[a->process], a->job, a->process, 2, MIB) < 0 ||
        rank_bind_other(&r) < 0)
        return;
    for (unsigned i = 0; i < PWC_OFFLOAD_TARGETS_MAX; i++)
        targets[i] = r.remote;
    rc = load(r.client, &attr.program);
    attack_begins(a);
    while (rc == 0) {
        rc = pwc_offload_create(r.ctx, &attr, &offload);
        attack_counts(a, rc);
        if (rc == 0)
            rc = pwc_offload_destroy(offload);
    }
    no_offload(&r, rc);
}

static void run_compute(struct attack *a)
{
    flood(a, COMPUTE);
}

static void run_fail(struct attack *a)
{
    flood(a, FAIL);
}

static void run_reply(struct attack *a)
{
    flood(a, REPLY);
}

static void run_send(struct attack *a)
{
    flood(a, SEND);
}

static void run_again(struct attack *a)
{
    flood(a, AGAIN);
}

static void run_pages(struct attack *a)
{
    flood(a, PAGES);
}

static void run_scatter(struct attack *a)
{
    flood(a, SCATTER);
}

#define ON "--handlers on"

const struct row rows_handlers[] = {
    {"h-compute", "handlers that compute to the limit", 2, 0, ON, run_compute},
    {"h-fail", "handlers that only fail", 2, 0, ON, run_fail},
    {"h-reply", "handlers that only reply", 2, 0, ON, run_reply},
    {"h-send", "handlers that send eight puts each", 2, 0, ON, run_send},
    {"h-again", "handlers that find no room to send", 2, 0, ON, run_again},
    {"h-pages", "handlers whose state their client tries to give back", 2, 0, ON, run_pages},
    {"h-scatter", "handlers that copy single bytes to pages of their own", 2, 0, ON, run_scatter},
    {"offloads", "creates offloads with 1024 targets, and destroys them", 2, 0, ON, run_offloads},
    {0},
};
