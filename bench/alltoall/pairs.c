/*
 * The ranks of bench/alltoall_pairs: each attaches, binds all others, puts eight bytes to each of
 * them, waits for as many events, and ends. Rank 0 prints a line for each phase: the longest time
 * that any rank took, and the memory of all processes of this launcher after the phase.
 */
#include <pwc/pwc.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS 240000

struct pairs {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote **remotes; /* by rank */
    uint32_t rank, size;
    uint64_t *came;  /* bytes that other ranks have put; in the region, by rank */
    uint64_t *times; /* of a phase, by rank */
};

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void die(const struct pairs *p, const char *what, int rc)
{
    char text[512] = "";

    if (p->client != NULL)
        (void)pwc_error_text(p->client, text, sizeof(text));
    fprintf(stderr, "alltoall: rank %u: %s: %s (%s)\n", p->rank, what, pwc_strerror(rc), text);
    exit(1);
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct usage {
    uint64_t daemons_kib, ranks_kib; /* Pss: memory that several map counts once */
};

/* Returns the number of a process's parent, and whether the process is a daemon. */
static long parent_of(const char *pid, int *daemon)
{
    char path[300], line[512] = "", *end;
    FILE *file;
    long parent = -1;

    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    if (fgets(line, sizeof(line), file) != NULL && (end = strrchr(line, ')')) != NULL) {
        parent = strtol(end + 4, NULL, 10);
        *daemon = strstr(line, "(pwcd)") != NULL;
    }
    fclose(file);
    return parent;
}

static uint64_t pss_kib(const char *pid)
{
    char path[300], line[256];
    unsigned long kib = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", pid);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Pss: %lu", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib;
}

/* Adds up the memory of all children of our parent, the launcher. */
static struct usage look_around(void)
{
    struct usage sum = {0};
    DIR *all = opendir("/proc");

    for (struct dirent *d; all != NULL && (d = readdir(all)) != NULL;) {
        int daemon = 0;

        if (!isdigit((unsigned char)d->d_name[0]) || parent_of(d->d_name, &daemon) != getppid())
            continue;
        *(daemon ? &sum.daemons_kib : &sum.ranks_kib) += pss_kib(d->d_name);
    }
    if (all != NULL)
        closedir(all);
    return sum;
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* Prints the longest time of any rank, and the mean over all. All ranks wait meanwhile. */
static void report(const struct pairs *p, const char *phase, uint64_t us)
{
    uint64_t most = 0, sum = 0;
    int rc = pwc_exchange(p->ctx, &us, sizeof(us), p->times);

    for (uint32_t i = 0; rc == 0 && i < p->size; i++) {
        most = p->times[i] > most ? p->times[i] : most;
        sum += p->times[i];
    }
    if (rc == 0 && p->rank == 0) {
        struct usage u = look_around();

        printf("%-10s longest %9.3f ms  mean %9.3f ms  daemons %8lu KiB  ranks %8lu KiB\n", phase,
               (double)most / 1000, (double)sum / p->size / 1000, (unsigned long)u.daemons_kib,
               (unsigned long)u.ranks_kib);
        fflush(stdout);
    }
    if (rc == 0)
        rc = pwc_barrier(p->ctx);
    if (rc < 0)
        die(p, phase, rc);
}

static void attach(struct pairs *p)
{
    struct pwc_attr attr = {.timeout_ms = TIMEOUT_MS};
    int rc = pwc_init(&attr, &p->client);

    if (rc < 0)
        die(p, "attaching", rc);
    p->rank = pwc_rank(p->client);
    p->size = pwc_size(p->client);
    p->remotes = calloc(p->size, sizeof(pwc_remote *));
    p->times = calloc(p->size, sizeof(*p->times));
    if (p->remotes == NULL || p->times == NULL)
        die(p, "memory", -ENOMEM);
    rc = pwc_ctx_create(p->client, NULL, &p->ctx);
    if (rc == 0)
        rc = pwc_alloc(p->client, p->size * sizeof(*p->came), PWC_REMOTE_WRITE, &p->region);
    if (rc < 0)
        die(p, "memory", rc);
    p->came = pwc_region_addr(p->region);
}

static void bind_all(struct pairs *p, const struct pwc_key *keys)
{
    for (uint32_t i = 1; i < p->size; i++) {
        uint32_t to = (p->rank + i) % p->size;
        int rc = pwc_bind(p->ctx, pwc_peer_of(to, 0), &keys[to], &p->remotes[to]);

        if (rc < 0)
            die(p, "binding", rc);
    }
}

static void await(struct pairs *p, uint32_t *got)
{
    struct pwc_event event;
    int rc = pwc_wait(p->ctx, PWC_ANY, PWC_REMOTE, &event, TIMEOUT_MS);

    if (rc <= 0 || event.status < 0)
        die(p, "waiting for a message", rc < 0 ? rc : rc == 0 ? -ETIMEDOUT : event.status);
    if (p->came[event.id] != event.id + 1)
        die(p, "a message without its data", -EBADMSG);
    (*got)++;
}

/* Puts to each other rank, and waits for a put of each. */
static void talk(struct pairs *p)
{
    uint64_t mine = (uint64_t)p->rank + 1;
    uint32_t got = 0;
    int rc;

    for (uint32_t i = 0; i < p->size; i++)
        p->came[i] = 0;
    rc = pwc_barrier(p->ctx);
    for (uint32_t i = 1; rc == 0 && i < p->size; i++) {
        uint32_t to = (p->rank + i) % p->size;

        while ((rc = pwc_put(p->remotes[to], p->rank * sizeof(mine), &mine, sizeof(mine),
                             pwc_cid_u64(0), pwc_cid_u64(p->rank), PWC_NO_LCE)) == -EAGAIN)
            await(p, &got);
    }
    if (rc < 0)
        die(p, "putting", rc);
    while (got < p->size - 1)
        await(p, &got);
    rc = pwc_flush(p->ctx, PWC_ANY, TIMEOUT_MS);
    if (rc < 0)
        die(p, "flushing", rc);
}

int main(void)
{
    struct pairs p = {0};
    struct pwc_key mine, *keys;
    uint64_t began = now_us(), ended;
    int rc;

    attach(&p);
    ended = now_us();
    keys = calloc(p.size, sizeof(*keys));
    rc = keys ? pwc_region_key(p.region, &mine) : -ENOMEM;
    if (rc == 0)
        rc = pwc_exchange(p.ctx, &mine, sizeof(mine), keys);
    if (rc < 0)
        die(&p, "exchanging keys", rc);
    report(&p, "attach", ended - began);
    began = now_us();
    bind_all(&p, keys);
    report(&p, "bind", now_us() - began);
    for (int round = 0; round < 3; round++) {
        began = now_us();
        talk(&p);
        report(&p, round == 0 ? "first" : round == 1 ? "second" : "third", now_us() - began);
    }
    rc = pwc_finalize(p.client);
    if (rc != 0)
        die(&p, "the end", rc < 0 ? rc : -EIO);
    free(p.remotes);
    free(p.times);
    free(keys);
    return 0;
}
