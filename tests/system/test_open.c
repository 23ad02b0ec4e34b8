/*
 * An open job over real daemons: processes join in any order, find each other by name, and reach
 * each other by address. Addresses of an ended rank, context or job lead nowhere. Names and ranks
 * survive daemons that are killed, and end with their process.
 *
 *     test_open PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/peering/directory.h"
#include "pwc/notify.h"
#include "pwc/open.h"
#include "pwc/team.h"
#include "tests/lib/cluster.h"
#include "tests/suite.h"

#define MEMBERS 8u
#define WAIT_MS 20000
#define LIMIT_S 30

/* Set by main before the tests run. */
static struct cluster cluster;

/* The data of the name that a member publishes. */
struct card {
    struct pwc_address address;
    struct pwc_key key;
};

struct member {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    uint64_t *words;
    struct card card;
    char error[256];
};

static int join(struct member *m, unsigned node, const char *job)
{
    const struct pwc_attr attr = {.socket = cluster.nodes[node % cluster.options.nodes].socket,
                                  .job = job,
                                  .size = PWC_OPEN,
                                  .timeout_ms = WAIT_MS,
                                  .error = m->error,
                                  .error_size = sizeof(m->error)};

    return pwc_init(&attr, &m->client);
}

/* Makes a member's context, region of words, and card. */
static int equip(struct member *m)
{
    int rc = pwc_ctx_create(m->client, NULL, &m->ctx);

    if (rc == 0)
        rc = pwc_alloc(m->client, MEMBERS * sizeof(*m->words), PWC_REMOTE_RW, &m->region);
    if (rc == 0)
        rc = pwc_region_key(m->region, &m->card.key);
    if (rc == 0)
        rc = pwc_address(m->ctx, &m->card.address);
    if (rc == 0)
        m->words = pwc_region_addr(m->region);
    return rc;
}

static void enter(struct member *m, unsigned node, const char *job)
{
    int rc = join(m, node, job);

    if (rc < 0)
        printf("join: %s\n", m->error);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_EQUAL_FATAL(equip(m), 0);
}

/* Looks up a name, and binds the member that has published it. */
static int bind_name(struct member *m, const char *name, int timeout_ms, pwc_remote **out)
{
    struct card card;
    size_t length = sizeof(card);
    pwc_peer peer;
    int rc = pwc_lookup(m->client, name, &card, &length, timeout_ms);

    if (rc == 0)
        rc = pwc_address_peer(m->client, &card.address, &peer);
    return rc < 0 ? rc : pwc_bind(m->ctx, peer, &card.key, out);
}

static int put_word(struct member *m, pwc_remote *to, uint64_t at, uint64_t value)
{
    struct pwc_event event;
    int rc =
        pwc_put(to, at * sizeof(value), &value, sizeof(value), pwc_cid_u64(1), pwc_cid_u64(at), 0);

    if (rc == 0)
        rc = pwc_wait(m->ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS) == 1 ? event.status : -ETIMEDOUT;
    return rc;
}

/* ---- eight processes ------------------------------------------------------------------------- */

/* A member in a process of its own: puts a word to each member, and waits for a word from each. */
static int be_member(unsigned number)
{
    struct member m = {0};
    struct pwc_event event;
    char name[16];
    int rc;

    if (join(&m, number, "eight") < 0 || equip(&m) < 0)
        return 1;
    snprintf(name, sizeof(name), "member-%u", number);
    if (pwc_publish(m.client, name, &m.card, sizeof(m.card)) < 0)
        return 2;
    for (unsigned i = 0; i < MEMBERS; i++) {
        pwc_remote *remote;

        snprintf(name, sizeof(name), "member-%u", i);
        rc = bind_name(&m, name, WAIT_MS, &remote);
        if (rc == 0)
            rc = put_word(&m, remote, number, number + 1);
        if (rc < 0)
            return 3;
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        if (pwc_wait(m.ctx, PWC_ANY, PWC_REMOTE, &event, WAIT_MS) != 1)
            return 4;
    for (unsigned i = 0; i < MEMBERS; i++)
        if (m.words[i] != i + 1)
            return 5;
    /* Each member has bound this one by now, so this one may leave. */
    return pwc_finalize(m.client) != 0 ? 6 : 0;
}

static void eight_processes(void)
{
    pid_t pids[MEMBERS];

    for (unsigned i = 0; i < MEMBERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(LIMIT_S);
            _exit(be_member(i));
        }
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        int status = -1;

        CU_ASSERT_EQUAL(waitpid(pids[i], &status, 0), pids[i]);
        CU_ASSERT_EQUAL(status, 0);
    }
}

/* ---- ranks and addresses --------------------------------------------------------------------- */

/* No rank is given twice while the job lives; for members the job has no size. */
static void ranks_count_up(void)
{
    struct member members[4] = {0};
    uint32_t ranks[4];

    for (unsigned i = 0; i < 4; i++) {
        enter(&members[i], i, "count");
        ranks[i] = pwc_rank(members[i].client);
        CU_ASSERT_EQUAL(ranks[i], i);
        CU_ASSERT_EQUAL(pwc_size(members[i].client), PWC_OPEN);
        if (i > 0)
            CU_ASSERT_EQUAL(pwc_finalize(members[i].client), 0);
    }
    CU_ASSERT_EQUAL(pwc_finalize(members[0].client), 0);
}

static bool says(pwc_client *client, const char *word)
{
    char text[256];

    pwc_error_text(client, text, sizeof(text));
    return strstr(text, word) != NULL;
}

/* Calls that need a size, and attaching with another kind of size, are refused with a text. */
static void refusals(void)
{
    struct pwc_attr attr = {.socket = cluster.nodes[0].socket, .job = "refuse", .size = 2};
    struct member m = {0}, other = {0};
    uint64_t word = 0, words[4];
    pwc_window *window;
    pwc_remote *remotes[1];
    pwc_client *client;
    pwc_team *team;

    enter(&m, 1, "refuse");
    CU_ASSERT_EQUAL(pwc_exchange(m.ctx, &word, sizeof(word), words), -ENOTSUP);
    CU_ASSERT_TRUE(says(m.client, "open job"));
    CU_ASSERT_EQUAL(pwc_barrier(m.ctx), -ENOTSUP);
    CU_ASSERT_EQUAL(pwc_bind_all(m.ctx, m.region, remotes), -ENOTSUP);
    CU_ASSERT_EQUAL(pwc_team_world(m.ctx, NULL, &team), -ENOTSUP);
    CU_ASSERT_EQUAL(pwc_window_create(m.ctx, NULL, m.region, &window), -ENOTSUP);
    CU_ASSERT_TRUE(says(m.client, "open job"));
    attr.error = m.error;
    attr.error_size = sizeof(m.error);
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(m.error, "is open"));
    CU_ASSERT_EQUAL(pwc_finalize(m.client), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_init(&attr, &client), 0);
    CU_ASSERT_EQUAL(join(&other, 1, "refuse"), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(other.error, "fixed number of ranks"));
    CU_ASSERT_EQUAL(pwc_finalize(client), 0);
    attr.size = PWC_OPEN;
    attr.rank = 3;
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(m.error, "leave it 0"));
    attr.rank = 0;
    attr.job = NULL;
    unsetenv("PWC_JOB");
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -ENODATA);
}

/* Bytes that are no address, and addresses of ended jobs, contexts and ranks, are refused. */
static void stale_addresses(void)
{
    struct pwc_address old_job, old_ctx, old_rank, bad;
    struct member a = {0}, b = {0}, c = {0};
    pwc_remote *remote;
    pwc_peer peer;

    enter(&a, 0, "stale");
    old_job = a.card.address;
    CU_ASSERT_EQUAL(pwc_finalize(a.client), 0); /* the last member: the job ends */
    enter(&a, 0, "stale");
    enter(&b, 1, "stale");
    enter(&c, 1, "stale");
    CU_ASSERT_EQUAL(pwc_rank(a.client), 0);
    CU_ASSERT_EQUAL(pwc_address_peer(b.client, &old_job, &peer), -EHOSTUNREACH);

    CU_ASSERT_EQUAL(pwc_address_peer(b.client, &a.card.address, &peer), 0);
    CU_ASSERT_EQUAL(peer, pwc_ctx_peer(a.ctx));
    for (size_t i = 0; i < 8 * sizeof(bad.bytes); i++) {
        bad = a.card.address;
        bad.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        CU_ASSERT_EQUAL(pwc_address_peer(b.client, &bad, &peer), -EINVAL);
    }

    /* The address of a destroyed context does not lead to its successor. */
    old_ctx = a.card.address;
    CU_ASSERT_EQUAL(pwc_ctx_destroy(a.ctx), 0);
    CU_ASSERT_EQUAL(pwc_ctx_create(a.client, NULL, &a.ctx), 0);
    CU_ASSERT_EQUAL(pwc_address_peer(b.client, &old_ctx, &peer), 0);
    CU_ASSERT_EQUAL(pwc_bind(b.ctx, peer, NULL, &remote), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(pwc_address(a.ctx, &a.card.address), 0);
    CU_ASSERT_EQUAL(pwc_address_peer(b.client, &a.card.address, &peer), 0);
    CU_ASSERT_EQUAL(pwc_bind(b.ctx, peer, NULL, &remote), 0);

    /* The address of a process that has left does not lead to a new one. */
    old_rank = c.card.address;
    CU_ASSERT_EQUAL(pwc_finalize(c.client), 0);
    enter(&c, 1, "stale");
    CU_ASSERT_EQUAL(pwc_address_peer(b.client, &old_rank, &peer), 0);
    CU_ASSERT_EQUAL(pwc_bind(b.ctx, peer, NULL, &remote), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(pwc_finalize(a.client) + pwc_finalize(b.client) + pwc_finalize(c.client), 0);
}

/* Jobs of fixed size have addresses and names, too. */
static void fixed_jobs(void)
{
    struct pwc_attr attr = {.job = "fixed", .size = 2};
    struct member m[2] = {0};
    pwc_remote *remote;

    for (uint32_t i = 0; i < 2; i++) {
        attr.socket = cluster.nodes[i % cluster.options.nodes].socket;
        attr.rank = i;
        CU_ASSERT_EQUAL_FATAL(pwc_init(&attr, &m[i].client), 0);
        CU_ASSERT_EQUAL_FATAL(equip(&m[i]), 0);
    }
    CU_ASSERT_EQUAL(pwc_publish(m[0].client, "zero", &m[0].card, sizeof(m[0].card)), 0);
    CU_ASSERT_EQUAL(bind_name(&m[1], "zero", 0, &remote), 0);
    CU_ASSERT_EQUAL(put_word(&m[1], remote, 3, 9), 0);
    CU_ASSERT_EQUAL(m[0].words[3], 9);
    CU_ASSERT_EQUAL(pwc_finalize(m[0].client) + pwc_finalize(m[1].client), 0);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void names(void)
{
    char longest[65], data[PWC_PUBLISHED_MAX + 1] = "x", name[16];
    struct member a = {0}, b = {0};
    size_t length;

    memset(longest, 'n', sizeof(longest));
    longest[64] = '\0';
    enter(&a, 0, "names");
    enter(&b, 1, "names");
    length = sizeof(data);
    CU_ASSERT_EQUAL(pwc_lookup(b.client, "one", data, &length, 0), -ENOENT);
    CU_ASSERT_EQUAL(pwc_lookup(b.client, "one", data, &length, 30), -ENOENT);
    CU_ASSERT_TRUE(says(b.client, "within 30 ms"));
    CU_ASSERT_EQUAL(pwc_publish(a.client, "one", "first", 5), 0);
    CU_ASSERT_EQUAL(pwc_publish(b.client, "one", "other", 5), -EADDRINUSE);
    CU_ASSERT_EQUAL(pwc_publish(a.client, "one", "second", 6), 0);
    CU_ASSERT_EQUAL(pwc_lookup(b.client, "one", data, &length, 0), 0);
    CU_ASSERT(length == 6 && memcmp(data, "second", 6) == 0);
    length = 5;
    CU_ASSERT_EQUAL(pwc_lookup(b.client, "one", data, &length, 0), -EMSGSIZE);
    CU_ASSERT_EQUAL(length, 5);
    CU_ASSERT_EQUAL(pwc_unpublish(b.client, "one"), -ENOENT);
    CU_ASSERT_EQUAL(pwc_unpublish(a.client, "one"), 0);
    CU_ASSERT_EQUAL(pwc_lookup(b.client, "one", data, &length, 0), -ENOENT);
    CU_ASSERT_EQUAL(pwc_publish(b.client, "one", "other", 5), 0);
    CU_ASSERT_EQUAL(pwc_publish(a.client, longest, "", 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_publish(a.client, "", "", 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_publish(a.client, "a b", "", 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_publish(a.client, "large", data, sizeof(data)), -EINVAL);
    CU_ASSERT_EQUAL(pwc_publish(a.client, "large", data, sizeof(data) - 1), 0);
    longest[63] = '\0';
    CU_ASSERT_EQUAL(pwc_publish(a.client, longest, "", 0), 0);
    for (unsigned i = 2; i < PWC_PUBLISHED_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        CU_ASSERT_EQUAL(pwc_publish(a.client, name, name, sizeof(name)), 0);
    }
    CU_ASSERT_EQUAL(pwc_publish(a.client, "more", "", 0), -EDQUOT);
    CU_ASSERT_EQUAL(pwc_unpublish(a.client, longest), 0);
    CU_ASSERT_EQUAL(pwc_publish(a.client, "more", "", 0), 0);
    CU_ASSERT_EQUAL(pwc_finalize(a.client) + pwc_finalize(b.client), 0);
}

/* A lookup that waits, in a thread of its own. */
struct seeker {
    pwc_client *client;
    int rc;
    char data[8];
    size_t length;
};

static void *seek(void *context)
{
    struct seeker *s = context;

    s->length = sizeof(s->data);
    s->rc = pwc_lookup(s->client, "late", s->data, &s->length, WAIT_MS);
    return NULL;
}

/* Lookups that wait are answered when the name is published, on each node, also two of one
 * process. */
static void lookups_wait(void)
{
    struct seeker seekers[4];
    struct member members[3] = {0};
    pthread_t threads[4];

    for (unsigned i = 0; i < 3; i++)
        enter(&members[i], i, "late");
    for (unsigned i = 0; i < 4; i++) {
        seekers[i] = (struct seeker){.client = members[i % 2].client, .rc = 1};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, seek, &seekers[i]), 0);
    }
    CU_ASSERT_EQUAL(pwc_publish(members[2].client, "late", "now", 3), 0);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT_EQUAL(seekers[i].rc, 0);
        CU_ASSERT(seekers[i].length == 3 && memcmp(seekers[i].data, "now", 3) == 0);
    }
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(pwc_finalize(members[i].client), 0);
}

/* Looks the name up until it is gone. */
static int gone(struct member *m, const char *name)
{
    time_t end = time(NULL) + LIMIT_S;
    struct card card;
    int rc;

    do {
        size_t length = sizeof(card);

        rc = pwc_lookup(m->client, name, &card, &length, 0);
    } while (rc == 0 && time(NULL) < end);
    return rc;
}

/* A member is killed: its peers get PWC_PEER, and its name is free. */
static void killed_member(void)
{
    struct member m = {0};
    struct pwc_event event;
    pwc_remote *remote;
    pid_t pid;

    enter(&m, 0, "killed");
    pid = fork();
    if (pid == 0) {
        struct member victim = {0};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(LIMIT_S);
        if (join(&victim, 1, "killed") == 0 && equip(&victim) == 0 &&
            pwc_publish(victim.client, "victim", &victim.card, sizeof(victim.card)) == 0)
            pause();
        _exit(1);
    }
    CU_ASSERT_EQUAL(bind_name(&m, "victim", WAIT_MS, &remote), 0);
    CU_ASSERT_EQUAL(pwc_publish(m.client, "victim", "", 0), -EADDRINUSE);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CU_ASSERT_EQUAL(pwc_wait(m.ctx, PWC_ANY, PWC_PEER, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.status, -EHOSTDOWN);
    CU_ASSERT_EQUAL(gone(&m, "victim"), -ENOENT);
    CU_ASSERT_EQUAL(pwc_publish(m.client, "victim", "", 0), 0);
    CU_ASSERT_EQUAL(pwc_finalize(m.client), 0);
}

/* ---- daemons that go ------------------------------------------------------------------------- */

/* Replaces a node's daemon: after its death, or by a hand-over. */
static void replace_daemon(unsigned node, bool by_death)
{
    pid_t pid = cluster_kept(&cluster, node);
    time_t end = time(NULL) + LIMIT_S;

    CU_ASSERT_FATAL(pid > 0);
    if (by_death)
        kill(pid, SIGKILL);
    else
        kill(cluster.nodes[node].pid, SIGUSR2);
    /* For a moment the keeper has both as children: wait until the old one has ended. */
    while (!by_death && kill(pid, 0) == 0 && time(NULL) < end)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CU_ASSERT(cluster_next(&cluster, node, pid) > 0);
}

/* Each daemon, among them the job's home, is killed, and later hands over. Names keep their owner,
 * ranks are counted on, addresses stay valid, and lookups that wait succeed. */
static void replaced_daemons(void)
{
    struct member a = {0}, b = {0}, late = {0};
    struct seeker seeker;
    pwc_remote *remote;
    pthread_t thread;
    uint32_t rank;
    size_t length;
    char data[8];

    enter(&a, 0, "restart");
    enter(&b, 1, "restart");
    CU_ASSERT_EQUAL(pwc_publish(a.client, "a", &a.card, sizeof(a.card)), 0);
    CU_ASSERT_EQUAL(pwc_publish(b.client, "b", &b.card, sizeof(b.card)), 0);
    for (unsigned step = 0; step < 2 * cluster.options.nodes; step++) {
        unsigned node = step / 2;

        enter(&late, node, "restart"); /* leaves again: its rank is not given twice */
        rank = pwc_rank(late.client);
        CU_ASSERT_EQUAL(pwc_finalize(late.client), 0);
        seeker = (struct seeker){.client = b.client, .rc = 1};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, seek, &seeker), 0);
        replace_daemon(node, step % 2 == 0);
        enter(&late, node + 1, "restart");
        CU_ASSERT_EQUAL(pwc_rank(late.client), rank + 1);
        CU_ASSERT_EQUAL(pwc_publish(late.client, "a", "", 0), -EADDRINUSE);
        CU_ASSERT_EQUAL(pwc_publish(late.client, "b", "", 0), -EADDRINUSE);
        CU_ASSERT_EQUAL(bind_name(&late, "a", 0, &remote), 0);
        CU_ASSERT_EQUAL(put_word(&late, remote, step, rank), 0);
        CU_ASSERT_EQUAL(a.words[step], rank);
        CU_ASSERT_EQUAL(bind_name(&late, "b", 0, &remote), 0);
        CU_ASSERT_EQUAL(put_word(&late, remote, step, rank), 0);
        CU_ASSERT_EQUAL(b.words[step], rank);
        CU_ASSERT_EQUAL(pwc_publish(late.client, "late", "l", 1), 0);
        pthread_join(thread, NULL);
        CU_ASSERT_EQUAL(seeker.rc, 0);
        CU_ASSERT_EQUAL(pwc_finalize(late.client), 0);
        CU_ASSERT_EQUAL(gone(&a, "late"), -ENOENT);
        /* Numbers of contexts are counted on, too. */
        CU_ASSERT_EQUAL(pwc_ctx_destroy(b.ctx), 0);
        CU_ASSERT_EQUAL(pwc_ctx_create(b.client, NULL, &b.ctx), 0);
        CU_ASSERT_EQUAL(pwc_peer_context(pwc_ctx_peer(b.ctx)), step + 1);
        CU_ASSERT_EQUAL(pwc_address(b.ctx, &b.card.address), 0);
        CU_ASSERT_EQUAL(pwc_publish(b.client, "b", &b.card, sizeof(b.card)), 0);
    }
    CU_ASSERT_EQUAL(pwc_unpublish(a.client, "a"), 0);
    length = sizeof(data);
    CU_ASSERT_EQUAL(pwc_lookup(b.client, "a", data, &length, 0), -ENOENT);
    CU_ASSERT_EQUAL(pwc_finalize(a.client) + pwc_finalize(b.client), 0);
}

/* Finds the name of a job whose home is this node. */
static void name_job(char name[24], uint32_t home)
{
    const struct directory_id id = {.uid = getuid(), .job = name};

    for (int i = 0; i == 0 || directory_home(&id, cluster.options.nodes) != home; i++)
        snprintf(name, 24, "lost-%d", i);
}

/* A home that has lost its state accepts a member of another node again, with its names. It gives
 * no new rank, because it might have given that rank before. When the last member has ended,
 * another instance begins. */
static void home_without_state(void)
{
    struct member m = {0}, late = {0};
    struct pwc_address old;
    size_t length = 8;
    pwc_remote *remote;
    pwc_peer peer;
    char job[24], data[8];

    if (cluster.options.nodes == 1)
        return; /* no member survives the home */
    name_job(job, 1);
    enter(&m, 0, job);
    old = m.card.address;
    CU_ASSERT_EQUAL(pwc_publish(m.client, "mine", &m.card, sizeof(m.card)), 0);
    cluster_kill(&cluster, 1);
    CU_ASSERT_EQUAL_FATAL(cluster_restart(&cluster, 1), 0);
    CU_ASSERT_EQUAL(pwc_lookup(m.client, "nobody's", data, &length, 0), -ENOENT);
    CU_ASSERT_EQUAL(bind_name(&m, "mine", 0, &remote), 0);
    CU_ASSERT_EQUAL(join(&late, 1, job), -ESTALE);
    CU_ASSERT_PTR_NOT_NULL(strstr(late.error, "gives no ranks"));
    CU_ASSERT_EQUAL(pwc_finalize(m.client), 0);
    enter(&late, 0, job);
    CU_ASSERT_EQUAL(pwc_rank(late.client), 0);
    CU_ASSERT_EQUAL(pwc_address_peer(late.client, &old, &peer), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(pwc_finalize(late.client), 0);
}

int main(int argc, char **argv)
{
    static const char *const keep[] = {"--keep", "--peer-deadline-ms", "20000", NULL};
    CU_TestInfo tests[] = {{"eight processes", eight_processes},
                           {"ranks count up", ranks_count_up},
                           {"refusals", refusals},
                           {"stale addresses", stale_addresses},
                           {"fixed jobs", fixed_jobs},
                           {"names", names},
                           {"lookups wait", lookups_wait},
                           {"killed member", killed_member},
                           {"replaced daemons", replaced_daemons},
                           {"a home without its state", home_without_state},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2, .more = keep};
    int rc;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    rc = cluster_open(&cluster, &options);
    if (rc < 0) {
        fprintf(stderr, "%s\n", cluster.failure);
        return 1;
    }
    return cluster_end(&cluster, suite_run("open jobs", tests));
}
