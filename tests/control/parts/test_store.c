/*
 * The state that outlives a process, tested within one process: names and descriptors passed on,
 * the table of requests, the keeper's store; and the file of counters, which does not outlive it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/suite.h"
#include "daemon/control/watch/counters.h"
#include "daemon/keeper/holdings.h"
#include "daemon/control/survive/inflight.h"
#include "daemon/control/survive/membership.h"
#include "daemon/control/survive/store.h"
#include "daemon/control/teams/team_roll.h"

static bool same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

/* Passes all descriptors from one store to another, as between two processes. */
static void pass_on(const struct store *from, struct store *to)
{
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    CU_ASSERT_EQUAL(store_send(from, ends[0]), 0);
    CU_ASSERT_EQUAL(store_send_end(ends[0]), 0);
    CU_ASSERT_EQUAL(store_receive(to, ends[1]), 0);
    close(ends[0]);
    CU_ASSERT_EQUAL(store_receive(to, ends[1]), -EPIPE);
    close(ends[1]);
}

static void test_passed_on(void)
{
    struct store from = {.kept = true}, to = {0};
    int files[2], got;
    uint32_t at = 0;

    CU_ASSERT_EQUAL_FATAL(pipe2(files, O_CLOEXEC), 0);
    (void)store_add(&from, files[0], "%u.session.%u.%u", 0u, 7u, 1u);
    (void)store_add(&from, files[1], "client.%u", 3u);
    (void)store_add(&from, files[1], "pwcd.socket");
    (void)store_add(&from, files[1], "members");
    (void)store_add(&from, files[1], "directory");
    (void)store_add(&from, files[1], "journal"); /* a name that version 0.1 used */
    pass_on(&from, &to);
    CU_ASSERT_EQUAL(store_foreign(&to), 1);
    CU_ASSERT_STRING_EQUAL(store_next_foreign(&to), "pwcd.socket");
    CU_ASSERT_STRING_EQUAL(store_next(&to, &at, "0.session."), "0.session.7.1");
    CU_ASSERT_PTR_NULL(store_next(&to, &at, "0.session."));
    CU_ASSERT_EQUAL(store_take(&to, "0.session.7.0"), -1);
    got = store_take(&to, "0.session.7.1");
    CU_ASSERT(same_file(got, files[0]));
    CU_ASSERT(fcntl(got, F_GETFD) & FD_CLOEXEC);
    CU_ASSERT_EQUAL(store_take(&to, "0.session.7.1"), -1); /* can be taken once */
    CU_ASSERT(store_has(&to, "client.3"));
    store_drop_rest(&to);
    CU_ASSERT_FALSE(store_has(&to, "client.3"));
    CU_ASSERT(is_open(got));
    close(got);
    store_close(&to);
    store_close(&from);
    CU_ASSERT(is_open(files[0])); /* still open: it belongs to the caller */
    close(files[0]);
    close(files[1]);
}

static void test_room(void)
{
    struct store s = {.kept = true, .user_names = STORE_MAX, .user_bytes = STORE_BYTES}, none = {0};
    uint32_t spare = 0, n = 0;

    CU_ASSERT(store_add(&none, 0, "nobody keeps"));
    CU_ASSERT(store_add_spare(&none, 1, 0, "nobody keeps"));
    CU_ASSERT_FALSE(store_has(&none, "nobody keeps"));
    while (store_add_spare(&s, 1, 0, "pair.%u.0.1.0.2", spare))
        CU_ASSERT_FATAL(s.count == ++spare);
    CU_ASSERT(s.bytes <= STORE_BYTES / 2 && s.bytes + STORE_NAME_MAX > STORE_BYTES / 2);
    while (n < STORE_MAX && s.bytes + STORE_NAME_MAX <= STORE_BYTES) {
        (void)store_add(&s, 0, "%u.a-name-that-is-rather-long", n++);
        CU_ASSERT_FATAL(s.count == spare + n);
    }
    CU_ASSERT_FALSE(store_add(&s, 0, "one too many"));
    CU_ASSERT(s.bytes <= STORE_BYTES && s.count <= STORE_MAX);
    store_remove(&s, "0.a-name-that-is-rather-long");
    CU_ASSERT_EQUAL(s.count, spare + n - 1);
    store_close(&s);
}

/* A descriptor that could not be sent to its keeper is not in the store: its owner closes it. */
static void test_not_kept(void)
{
    struct store s = {.kept = true, .user_names = STORE_MAX, .user_bytes = STORE_BYTES};

    setenv("NOTIFY_SOCKET", "/no such folder/notify", 1);
    CU_ASSERT_FALSE(store_add(&s, 0, "0.session.1"));
    CU_ASSERT_FALSE(store_add_for(&s, 1, 0, "0.session.1"));
    CU_ASSERT_FALSE(store_add_spare(&s, 1, 0, "0.board.1"));
    unsetenv("NOTIFY_SOCKET");
    CU_ASSERT_EQUAL(s.count, 0);
    CU_ASSERT_EQUAL(s.bytes, 0);
    CU_ASSERT_EQUAL(s.user_count, 0);
    store_close(&s);
}

/* Names are found whichever others have gone, in the lists of equal hashes, too. */
static void test_found_again(void)
{
    struct store s = {.kept = true};
    bool is_there[STORE_HASHES] = {false};
    uint32_t state = 1, there = 0;

    for (uint32_t round = 0; round < 4 * STORE_HASHES; round++) {
        uint32_t name = (state = state * 1664525u + 1013904223u) >> 16 & (STORE_HASHES - 1);

        CU_ASSERT_EQUAL(store_has(&s, "pair.%u", name), is_there[name]);
        if (is_there[name])
            store_remove(&s, "pair.%u", name);
        else
            CU_ASSERT(store_add(&s, 0, "pair.%u", name));
        is_there[name] = !is_there[name];
    }
    for (uint32_t name = 0; name < STORE_HASHES; name++) {
        CU_ASSERT_EQUAL(store_has(&s, "pair.%u", name), is_there[name]);
        there += is_there[name];
        store_remove(&s, "pair.%u", name);
    }
    CU_ASSERT(there > STORE_HASHES / 4);
    CU_ASSERT_EQUAL(s.count, 0);
    CU_ASSERT_EQUAL(s.bytes, 0);
    store_close(&s);
}

/* A user who has its share of names, by their number or by their bytes, gets no more until one of
 * its names is gone; others, and the daemon itself, do. Spare names end at half of the share. The
 * next process charges each user for what it takes over. */
static void test_shares(void)
{
    enum { NAMES = 20, BYTES = 480 };
    static const struct {
        const char *name;
        uint32_t fit, spare_fit;
    } rows[] = {
        {"%u.a", NAMES, NAMES}, /* of 4 or 5 bytes */
        {"%02u.a-name-of-twenty-four", (BYTES - STORE_NAME_MAX) / 25 + 1,
         (BYTES / 2 - STORE_NAME_MAX) / 25 + 1},
    };

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct store s = {.kept = true, .user_names = NAMES, .user_bytes = BYTES}, next = s;
        char name[STORE_NAME_MAX];
        uint32_t n = 0;

        while (n <= NAMES && store_add_spare(&s, 1, 0, rows[row].name, n))
            n++;
        CU_ASSERT_EQUAL(n, rows[row].spare_fit);
        while (n <= NAMES && store_add_for(&s, 1, 0, rows[row].name, n))
            n++;
        CU_ASSERT_EQUAL(n, rows[row].fit);
        CU_ASSERT_FALSE(store_add_spare(&s, 1, 0, "spare"));
        CU_ASSERT(store_add_for(&s, 2, 0, "others"));
        CU_ASSERT(store_add_spare(&s, 2, 0, "pair.others"));
        CU_ASSERT(store_add(&s, 0, "inflight"));

        pass_on(&s, &next);
        for (uint32_t i = 0; i < n; i++) {
            snprintf(name, sizeof(name), rows[row].name, i);
            if (i % 2 == 0) {
                close(store_take_for(&next, 1, "%s", name));
            } else {
                close(store_take(&next, "%s", name));
                store_charge(&next, 1, "%s", name);
                store_charge(&next, 1, "%s", name); /* is charged already */
            }
        }
        CU_ASSERT_FALSE(store_add_for(&next, 1, 0, "more"));
        CU_ASSERT(store_add_for(&next, 3, 0, "more"));
        store_remove(&next, "%s", name);
        CU_ASSERT(store_add_for(&next, 1, 0, "%s", name));
        CU_ASSERT_FALSE(store_add_for(&next, 1, 0, "one too many"));
        store_remove(&next, "more");
        CU_ASSERT_EQUAL(next.user_count, 1);
        store_close(&next);
        store_close(&s);
    }
}

static void test_inflight(void)
{
    struct store s = {.kept = true}, next = {0};
    struct inflight_entry *e;
    struct inflight j, again;
    uint32_t slot;

    CU_ASSERT_EQUAL_FATAL(inflight_open(&j, &s, 4), 1);
    slot = inflight_take(&j);
    e = &j.entries[slot];
    CU_ASSERT_EQUAL(e->state, INFLIGHT_GUEST);
    for (uint32_t i = 1; i <= INFLIGHT_REQUESTS_MAX; i++) {
        CU_ASSERT_FALSE(inflight_full(e));
        inflight_begin(e, i);
        CU_ASSERT_EQUAL(e->taking, i);
        inflight_taken(e);
    }
    CU_ASSERT(inflight_full(e));
    inflight_done(e, 5);
    inflight_done(e, 5); /* no such entry is left */
    CU_ASSERT_EQUAL(e->count, INFLIGHT_REQUESTS_MAX - 1);
    pass_on(&s, &next);
    CU_ASSERT_EQUAL_FATAL(inflight_open(&again, &next, 4), 0);
    CU_ASSERT_EQUAL(again.entries[slot].count, INFLIGHT_REQUESTS_MAX - 1);
    CU_ASSERT_EQUAL(inflight_take(&again), 1 - slot);
    inflight_close(&again);
    store_close(&next);
    pass_on(&s, &next);
    CU_ASSERT_EQUAL(inflight_open(&again, &next, 5), 1); /* another size: not ours */
    CU_ASSERT_EQUAL(again.entries[slot].state, INFLIGHT_FREE);
    inflight_close(&again);
    store_close(&next);
    j.header->version++;
    pass_on(&s, &next);
    CU_ASSERT_EQUAL(inflight_open(&again, &next, 4), 1);
    inflight_close(&again);
    store_close(&next);
    inflight_close(&j);
    store_close(&s);
}

static void test_holdings(void)
{
    static const char *const bad[] = {"", "a:b",
                                      "a-name-of-forty-eight-characters-is-one-too-long"};
    struct holdings h = {0};
    int first = dup(0), second = dup(0);
    char *names;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CU_ASSERT_EQUAL(holdings_add(&h, bad[i], first), -EINVAL);
    CU_ASSERT_EQUAL(holdings_add(&h, "lock", first), 0);
    CU_ASSERT_EQUAL(holdings_add(&h, "0.arena", dup(0)), 0);
    CU_ASSERT_EQUAL(holdings_add(&h, "lock", second), 0); /* replaces the first one */
    CU_ASSERT_FALSE(is_open(first));
    names = holdings_names(&h);
    CU_ASSERT_STRING_EQUAL(names, "lock:0.arena");
    free(names);
    holdings_remove(&h, "lock");
    holdings_remove(&h, "lock");
    CU_ASSERT_FALSE(is_open(second));
    CU_ASSERT_EQUAL(h.count, 1);
    holdings_clear(&h);
    CU_ASSERT_EQUAL(h.count, 0);
}

/* Memory that is no roll of a team is refused, and its descriptor stays the caller's. */
static void test_no_roll(void)
{
    struct mapping made = {.fd = -1}, m = {.fd = -1};

    CU_ASSERT_EQUAL_FATAL(mapping_create(&made, "no roll", 4096), 0);
    CU_ASSERT_EQUAL(team_roll_inherit(&m, made.fd), -EPROTO);
    CU_ASSERT_TRUE(is_open(made.fd));
    CU_ASSERT_EQUAL(m.fd, -1);
    mapping_destroy(&made);
}

/* A counters file that has no room is refused, and leaves no file behind. */
static void test_counters(void)
{
    char path[] = "/tmp/pwc-counters-XXXXXX";
    const struct counters_config config = {
        .path = path, .nodes = 1, .engines = 1, .sessions_max = 512, .provider = "none"};
    struct rlimit before, small = {.rlim_cur = 4096};
    struct counters counters;
    int file = mkstemp(path);

    CU_ASSERT_FATAL(file >= 0);
    close(file);
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &small), 0);
    CU_ASSERT_EQUAL(counters_open(&counters, &config), -EFBIG);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    CU_ASSERT_EQUAL(counters_open(&counters, &config), 0);
    counters_close(&counters);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
}

/* Memberships of clients in their jobs: the number of names is bounded, names end with their
 * client, and the next process knows them, but only if it has also taken over the state of the
 * connections. */
static void test_memberships(void)
{
    const uint8_t data[DIRECTORY_PUBLISHED_DATA] = "data";
    struct store s = {.kept = true}, next = {0};
    struct memberships m, again;
    char name[8];

    CU_ASSERT_EQUAL_FATAL(memberships_open(&m, &s, 4, false), 0);
    membership_begin(&m, 3, 77);
    membership_of(&m, 3)->contexts = 5;
    for (uint32_t i = 0; i < MEMBERSHIP_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        CU_ASSERT_EQUAL(membership_put(&m, 3, name, data, sizeof(data)), (int)i);
    }
    CU_ASSERT_EQUAL(membership_put(&m, 3, "more", data, 1), -EDQUOT);
    CU_ASSERT_EQUAL(membership_put(&m, 3, "n7", data, 4), 7); /* replaces the data */
    CU_ASSERT_EQUAL(membership_find(&m, 2, "n7"), -ENOENT);
    membership_drop(&m, 3, 2);
    CU_ASSERT_EQUAL(membership_find(&m, 3, "n2"), -ENOENT);
    CU_ASSERT_PTR_NULL(membership_name(&m, 3, 2));
    pass_on(&s, &next);
    CU_ASSERT_EQUAL_FATAL(memberships_open(&again, &next, 4, true), 0);
    CU_ASSERT_EQUAL(membership_of(&again, 3)->instance, 77);
    CU_ASSERT_EQUAL(membership_of(&again, 3)->contexts, 5);
    CU_ASSERT_EQUAL(membership_find(&again, 3, "n7"), 7);
    CU_ASSERT_EQUAL(membership_name(&again, 3, 7)->length, 4);
    CU_ASSERT_EQUAL(membership_name(&again, 3, 15)->length, sizeof(data));
    membership_end(&again, 3);
    CU_ASSERT_EQUAL(membership_find(&again, 3, "n7"), -ENOENT);
    membership_begin(&again, 3, 78);
    CU_ASSERT_EQUAL(membership_of(&again, 3)->contexts, 0);
    memberships_close(&again);
    store_close(&next);
    for (int round = 0; round < 2; round++) { /* no state is taken over, or the size differs */
        pass_on(&s, &next);
        CU_ASSERT_EQUAL(memberships_open(&again, &next, 4 + (uint32_t)round, round == 1), 0);
        CU_ASSERT_EQUAL(membership_of(&again, 3)->instance, 0);
        memberships_close(&again);
        store_close(&next);
    }
    memberships_close(&m);
    store_close(&s);
}

int main(void)
{
    CU_TestInfo tests[] = {{"passed on", test_passed_on},
                           {"room", test_room},
                           {"not kept", test_not_kept},
                           {"found again", test_found_again},
                           {"shares", test_shares},
                           {"inflight", test_inflight},
                           {"memberships", test_memberships},
                           {"holdings", test_holdings},
                           {"no roll", test_no_roll},
                           {"counters", test_counters},
                           CU_TEST_INFO_NULL};

    return suite_run("store", tests);
}
