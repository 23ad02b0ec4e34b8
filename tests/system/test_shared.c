/*
 * A program shares memory that it has already (PWC_SHARE) with a peer, through libpwc and real
 * daemons: its .data, .bss, heap, and unaligned parts of mapped memory.
 *
 *     test_shared PWCD PROVIDER [NODES [--KEY VALUE]...]    1: the ranks are neighbours
 *
 * This process has both ranks, and the library is linked into the program. So the library's own
 * variables, and both clients in the heap, are moved, too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clientlib/memory/maps.h"
#include "pwc/atomic.h"
#include "tests/count.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

#define SOURCE (256u << 10)
#define BYTES  60000u

enum place { DATA, HEAP, MAPPED, PLACES };

/* A shared part of memory, and the bytes in it that a peer puts to. */
struct shared {
    pwc_region *region;
    pwc_remote *remote;
    uint8_t *from, *bytes;
    size_t length;
};

extern char __data_start[], _end[];

static struct cluster cluster;
static uint8_t in_data[BYTES] = {1, 2, 3};
static uint8_t in_bss[BYTES];
static uint64_t word __attribute__((aligned(64)));
static uint64_t round_number = 1;

/* Finds the heap's pages, in one or several mappings; where there are none (another malloc), a
 * block of malloc. */
static void find_heap(struct shared *s)
{
    uintptr_t from = 0, to = 0, bytes = (uintptr_t)s->bytes;
    struct maps_line line;
    struct maps maps;

    CU_ASSERT_EQUAL_FATAL(maps_open(&maps), 0);
    while (maps_next(&maps, &line) > 0)
        if (strcmp(line.name, "[heap]") == 0) {
            from = from ? from : line.start;
            to = line.end;
        }
    maps_close(&maps);
    if (bytes >= from && bytes + BYTES <= to) {
        s->from = (uint8_t *)from;
        s->length = to - from;
    } else {
        s->from = s->bytes;
        s->length = BYTES;
    }
}

static void find(enum place place, struct shared *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *mapped;

    *s = (struct shared){.bytes = in_bss};
    switch (place) {
    case DATA:
        s->from = (uint8_t *)__data_start;
        s->length = (size_t)(_end - __data_start);
        break;
    case HEAP:
        s->bytes = malloc(BYTES);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s->bytes);
        find_heap(s);
        break;
    case MAPPED:
        mapped = mmap(NULL, BYTES + 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
        CU_ASSERT_PTR_NOT_EQUAL_FATAL(mapped, MAP_FAILED);
        s->bytes = s->from = mapped + page + 77;
        s->length = BYTES;
        break;
    default:
        CU_FAIL_FATAL("no such place");
    }
}

static void leave(enum place place, struct shared *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (place == HEAP)
        free(s->bytes);
    if (place == MAPPED)
        munmap(s->bytes - page - 77, BYTES + 3 * page);
}

/* ---- two ranks ------------------------------------------------------------------------------- */

static void open_two(struct rank ranks[2], const char *job)
{
    for (uint32_t i = 0; i < 2; i++) {
        const char *socket = cluster.nodes[i == 0 ? 0 : cluster.options.nodes - 1].socket;

        CU_ASSERT_EQUAL_FATAL(rank_attach(&ranks[i], socket, job, i, 2, SOURCE), 0);
    }
}

static void close_two(struct rank ranks[2])
{
    rank_detach(&ranks[0]);
    rank_detach(&ranks[1]);
}

static int give(struct rank ranks[2], void *at, size_t length, unsigned rights, struct shared *s)
{
    struct pwc_key key;
    char why[256];
    int rc = pwc_register(ranks[1].client, at, length, rights, PWC_SHARE, &s->region);

    if (rc == 0)
        rc = pwc_region_key(s->region, &key);
    if (rc == 0)
        rc = pwc_bind(ranks[0].ctx, pwc_peer_of(1, 0), &key, &s->remote);
    if (rc < 0) {
        pwc_error_text(ranks[1].client, why, sizeof(why));
        fprintf(stderr, "%zu bytes at %p: %s: %s\n", length, at, pwc_strerror(rc), why);
    }
    return rc;
}

static int take_back(struct shared *s)
{
    int rc = pwc_unbind(s->remote);

    return rc < 0 ? rc : pwc_region_free(s->region);
}

static int ended(struct rank *r, enum pwc_kinds kind, uint64_t id)
{
    struct pwc_event event = {0};

    if (pwc_wait(r->ctx, PWC_ANY, kind, &event, RANK_WAIT_MS) != 1 || event.id != id)
        return -ETIMEDOUT;
    return event.status;
}

/* The peer puts new bytes and gets them back; both sides must have them. The program prints
 * something meanwhile, to use its own variables. */
static void use(struct rank ranks[2], struct shared *s, uint8_t *bytes, size_t length)
{
    uint64_t off = (uint64_t)(bytes - s->from), id = ++round_number;
    uint8_t *back = ranks[0].memory + SOURCE / 2;

    rank_fill(ranks[0].memory, length, id);
    CU_ASSERT_EQUAL_FATAL(pwc_put(s->remote, off, ranks[0].memory, length, pwc_cid_u64(id),
                                  pwc_cid_u64(id + 1000), 0),
                          0);
    CU_ASSERT_EQUAL(ended(&ranks[0], PWC_LOCAL, id), 0);
    CU_ASSERT_EQUAL(ended(&ranks[1], PWC_REMOTE, id + 1000), 0);
    CU_ASSERT_EQUAL(rank_check(bytes, length, id), 0);
    bytes[length / 2] ^= 0x5a;
    memset(back, 0, length);
    CU_ASSERT_EQUAL_FATAL(
        pwc_get(s->remote, off, back, length, pwc_cid_u64(id + 1), PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(ended(&ranks[0], PWC_LOCAL, id + 1), 0);
    CU_ASSERT_EQUAL(memcmp(back, bytes, length), 0);
    /* The other direction: moved memory is a source and a destination without a copy. */
    CU_ASSERT_EQUAL(ranks[1].remote == NULL ? rank_bind(&ranks[1], &ranks[0]) : 0, 0);
    CU_ASSERT_EQUAL(
        pwc_put(ranks[1].remote, 0, bytes, length, pwc_cid_u64(id + 2), PWC_CID_NONE, PWC_NO_RCE),
        0);
    CU_ASSERT_EQUAL(ended(&ranks[1], PWC_LOCAL, id + 2), 0);
    CU_ASSERT_EQUAL(memcmp(ranks[0].memory, bytes, length), 0);
    round_number += 2;
    printf(".");
    free(malloc(300000));
}

static void use_place(struct rank ranks[2], enum place place, struct shared *s)
{
    static const size_t lengths[] = {1, 8, 77, 4096, 4097, BYTES};

    for (size_t i = 0; i < COUNT(lengths); i++)
        use(ranks, s, s->bytes, lengths[i]);
    if (place == DATA)
        use(ranks, s, in_data, BYTES);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* All places are shared at once, and freed in each order: the shares that are left still work, and
 * so does the program. */
static void places_in_any_order(void)
{
    static const enum place orders[][PLACES] = {{DATA, HEAP, MAPPED}, {DATA, MAPPED, HEAP},
                                                {HEAP, DATA, MAPPED}, {HEAP, MAPPED, DATA},
                                                {MAPPED, DATA, HEAP}, {MAPPED, HEAP, DATA}};
    struct rank ranks[2];
    struct shared places[PLACES];

    open_two(ranks, "places");
    for (size_t i = 0; i < COUNT(orders); i++) {
        uint8_t expected[PLACES][64];

        for (enum place p = DATA; p < PLACES; p++)
            find(p, &places[p]);
        for (int k = 0; k < PLACES; k++) {
            struct shared *s = &places[orders[COUNT(orders) - 1 - i][k]];

            CU_ASSERT_EQUAL_FATAL(give(ranks, s->from, s->length, PWC_REMOTE_RW, s), 0);
        }
        for (int k = 0; k < PLACES; k++) {
            enum place place = orders[i][k];

            for (int left = k; left < PLACES; left++)
                use_place(ranks, orders[i][left], &places[orders[i][left]]);
            memcpy(expected[place], places[place].bytes, 64);
            CU_ASSERT_EQUAL_FATAL(take_back(&places[place]), 0);
            CU_ASSERT_EQUAL(memcmp(expected[place], places[place].bytes, 64), 0);
        }
        for (enum place p = DATA; p < PLACES; p++)
            leave(p, &places[p]);
    }
    close_two(ranks);
}

/* A peer reaches only the bytes of a region, and only with the region's rights, although whole
 * pages were moved. */
static void rights_of_bytes(void)
{
    struct rank ranks[2];
    struct shared writer, reader;
    uint8_t *at = in_bss + 5000;

    open_two(ranks, "rights");
    memset(in_bss, 0x11, sizeof(in_bss));
    CU_ASSERT_EQUAL_FATAL(give(ranks, at + 3, 9, PWC_REMOTE_WRITE, &writer), 0);
    CU_ASSERT_EQUAL_FATAL(give(ranks, at + 3, 9, PWC_REMOTE_READ, &reader), 0);
    memset(ranks[0].memory, 0x22, 64);
    CU_ASSERT_EQUAL(
        pwc_put(writer.remote, 0, ranks[0].memory, 10, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE),
        -ERANGE);
    CU_ASSERT_EQUAL(
        pwc_get(reader.remote, 9, ranks[0].memory, 1, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE),
        -ERANGE);
    CU_ASSERT_EQUAL(
        pwc_get(writer.remote, 0, ranks[0].memory, 9, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE),
        -EKEYREJECTED);
    CU_ASSERT_EQUAL(
        pwc_put(reader.remote, 0, ranks[0].memory, 9, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE),
        -EKEYREJECTED);
    CU_ASSERT_EQUAL(
        pwc_put(writer.remote, 0, ranks[0].memory, 9, pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(ended(&ranks[0], PWC_LOCAL, 1), 0);
    for (int i = 0; i < 16; i++)
        CU_ASSERT_EQUAL(at[i], i >= 3 && i < 12 ? 0x22 : 0x11);
    /* One region is freed, the other one stays. */
    CU_ASSERT_EQUAL(take_back(&writer), 0);
    at[5] = 0x33;
    CU_ASSERT_EQUAL(
        pwc_get(reader.remote, 2, ranks[0].memory, 1, pwc_cid_u64(2), PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(ended(&ranks[0], PWC_LOCAL, 2), 0);
    CU_ASSERT_EQUAL(ranks[0].memory[0], 0x33);
    CU_ASSERT_EQUAL(take_back(&reader), 0);
    close_two(ranks);
}

/* Atomics on a variable; in a region that does not begin at a multiple of the word's size they are
 * refused. */
static void atomics_on_a_variable(void)
{
    const uint64_t five = 5;
    struct rank ranks[2];
    struct shared s, crooked;

    open_two(ranks, "atomics");
    word = 100;
    CU_ASSERT_EQUAL_FATAL(give(ranks, &word, sizeof(word), PWC_REMOTE_RW, &s), 0);
    CU_ASSERT_EQUAL_FATAL(give(ranks, (uint8_t *)&word + 1, 24, PWC_REMOTE_RW, &crooked), 0);
    CU_ASSERT_EQUAL(pwc_atomic(s.remote, 0, PWC_ADD, PWC_U64, &five, 1, pwc_cid_u64(1),
                               PWC_CID_NONE, PWC_NO_RCE),
                    0);
    CU_ASSERT_EQUAL(ended(&ranks[0], PWC_LOCAL, 1), 0);
    CU_ASSERT_EQUAL(__atomic_load_n(&word, __ATOMIC_ACQUIRE), 105);

    int rc = pwc_atomic(crooked.remote, 0, PWC_ADD, PWC_U64, &five, 1, pwc_cid_u64(2), PWC_CID_NONE,
                        PWC_NO_RCE);

    CU_ASSERT_EQUAL(rc == 0 ? ended(&ranks[0], PWC_LOCAL, 2) : rc, -EINVAL);
    CU_ASSERT_EQUAL(word, 105);
    CU_ASSERT_EQUAL(take_back(&s), 0);
    CU_ASSERT_EQUAL(take_back(&crooked), 0);
    close_two(ranks);
}

/* A child that is forked while memory is moved shares that memory, may exec, and changes nothing by
 * its end. */
static void fork_after_a_move(void)
{
    struct rank ranks[2];
    struct shared s;
    int status;
    pid_t child;

    open_two(ranks, "fork");
    find(DATA, &s);
    CU_ASSERT_EQUAL_FATAL(give(ranks, s.from, s.length, PWC_REMOTE_RW, &s), 0);
    word = 1;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        word++;
        _exit(pwc_region_free(s.region) == -EOWNERDEAD ? 0 : 1);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(word, 2);
    child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    use_place(ranks, DATA, &s);
    CU_ASSERT_EQUAL(take_back(&s), 0);
    word = 7;
    child = fork();
    if (child == 0) {
        word++;
        _exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(word, 7); /* the child's writes are private again */
    close_two(ranks);
}

/* Both clients end while all places are shared: the program keeps its memory. */
static void clients_that_end(void)
{
    struct rank ranks[2];
    struct shared places[PLACES];

    open_two(ranks, "ends");
    for (enum place p = DATA; p < PLACES; p++) {
        find(p, &places[p]);
        CU_ASSERT_EQUAL_FATAL(
            give(ranks, places[p].from, places[p].length, PWC_REMOTE_RW, &places[p]), 0);
        use_place(ranks, p, &places[p]);
    }
    word = 9;
    close_two(ranks);
    CU_ASSERT_EQUAL(word, 9);
    for (enum place p = DATA; p < PLACES; p++) {
        memset(places[p].bytes, 0x44, BYTES);
        leave(p, &places[p]);
    }
    /* Sharing works again with new clients. */
    open_two(ranks, "again");
    find(DATA, &places[DATA]);
    CU_ASSERT_EQUAL_FATAL(
        give(ranks, places[DATA].from, places[DATA].length, PWC_REMOTE_RW, &places[DATA]), 0);
    use_place(ranks, DATA, &places[DATA]);
    CU_ASSERT_EQUAL(take_back(&places[DATA]), 0);
    close_two(ranks);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"places, freed in any order", places_in_any_order},
                           {"rights of bytes", rights_of_bytes},
                           {"atomics on a variable", atomics_on_a_variable},
                           {"a fork after a move", fork_after_a_move},
                           {"clients that end", clients_that_end},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("shared", tests);
    return cluster_end(&cluster, status);
}
