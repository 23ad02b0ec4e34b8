/* The findings of pwcctl doctor for machines that the test makes up: each check at its bounds. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include "tools/pwcctl/doctor/held.h"
#include "tests/suite.h"

#define MIB   (UINT64_C(1) << 20)
#define GIB   (UINT64_C(1) << 30)
#define FENCE (MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)

/* Facts of a healthy machine, with a daemon of two nodes over tcp. */
static struct doctor_facts well(void)
{
    return (struct doctor_facts){.daemon = {.socket = "/run/pwcd/pwcd.sock",
                                            .pid = 7,
                                            .version = "0.1.0",
                                            .session_version = 4,
                                            .nodes = 2,
                                            .provider = "tcp;ofi_rxm",
                                            .progress = "adaptive",
                                            .threads = 1,
                                            .clients_max = 256,
                                            .rails = 1},
                                 .programs = {.version = "0.1.0",
                                              .session_version = 4,
                                              .pwcd = "/usr/bin/pwcd",
                                              .pwcd_version = "0.1.0",
                                              .providers = {"tcp;ofi_rxm", "net"},
                                              .provider_count = 2},
                                 .machine = {.uid = 1000,
                                             .memory_locked = DOCTOR_UNLIMITED,
                                             .descriptors = 20000,
                                             .processors = 2,
                                             .of_daemon = true,
                                             .membarrier = FENCE,
                                             .clock = "tsc",
                                             .shm_free = GIB,
                                             .shm_pages = "advise",
                                             .tcp_receive_max = 6 * MIB,
                                             .tcp_send_max = 4 * MIB,
                                             .core_receive_max = MIB,
                                             .ptrace_scope = 1}};
}

static struct doctor_finding judge(const char *name, const struct doctor_facts *facts)
{
    for (const struct doctor_check *check = doctor_checks(); check->name; check++)
        if (strcmp(check->name, name) == 0)
            return check->judge(facts);
    CU_FAIL_FATAL("no such check");
    return (struct doctor_finding){0};
}

/* Checks one finding for these facts: its level, and a part of its text. */
static void expect(const char *name, const struct doctor_facts *facts, enum doctor_level level,
                   const char *says)
{
    struct doctor_finding f = judge(name, facts);

    CU_ASSERT_EQUAL(f.level, level);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.found, says));
    /* Every finding that needs a remedy names one. */
    CU_ASSERT_EQUAL(f.mend[0] != '\0', level == DOCTOR_WARN || level == DOCTOR_WRONG);
    if (f.level != level || !strstr(f.found, says))
        printf("\n%s: %d, not %d: %s\n", name, f.level, level, f.found);
}

static void all_well(void)
{
    struct doctor_facts facts = well();
    unsigned count = 0;

    for (const struct doctor_check *check = doctor_checks(); check->name; check++, count++)
        expect(check->name, &facts, DOCTOR_OK, "");
    CU_ASSERT_EQUAL(count, 22);
}

/* Without a daemon only its absence is an error, and checks that need the daemon are reported as
 * unknown, not as good. */
static void no_daemon(void)
{
    static const char *const unknown[] = {"progress", "peers",  "clients",    "operations",
                                          "links",    "events", "neighbours", "barriers",
                                          "waits",    "ranks"};
    struct doctor_facts facts = well();

    facts.daemon = (struct doctor_daemon){.socket = "/run/x", .status = -ENOENT};
    for (const struct doctor_check *check = doctor_checks(); check->name; check++) {
        enum doctor_level level = strcmp(check->name, "daemon") ? DOCTOR_OK : DOCTOR_WRONG;

        for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
            level = strcmp(check->name, unknown[i]) ? level : DOCTOR_UNKNOWN;
        expect(check->name, &facts, level, level == DOCTOR_UNKNOWN ? "no daemon answers" : "");
    }
}

/* A daemon serves two jobs named "j" of two users, and a third job. Only operations of a context's
 * own job count as held up by it. */
static void held(void)
{
    struct doctor_answers a = {
        .clients = json_loads("{\"clients\": ["
                              "{\"engine\": 0, \"client\": 0, \"uid\": 7, \"job\": \"j\"},"
                              "{\"engine\": 0, \"client\": 1, \"uid\": 7, \"job\": \"k\"},"
                              "{\"engine\": 0, \"client\": 2, \"uid\": 8, \"job\": \"j\"},"
                              "{\"engine\": 1, \"client\": 0, \"uid\": 7, \"job\": \"k\"}]}",
                              0, NULL),
        .queues =
            json_loads("{\"queues\": [{\"engine\": 0, \"session\": 4, \"rank\": 3}]}", 0, NULL)};
    json_t *ops = json_array();
    struct doctor_full full = {.count = 1, .rank = 5};

    CU_ASSERT_PTR_NOT_NULL_FATAL(a.clients);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a.queues);
    for (int i = 0; i < 6; i++) /* the oldest are other jobs'; the last has an unknown client */
        json_array_append_new(ops,
                              json_pack("{s:i, s:i, s:i, s:i, s:I}", "engine", i == 3, "client",
                                        i == 5   ? 9
                                        : i == 4 ? 0
                                                 : i % 3,
                                        "session", 4, "rank", 5, "age_ns",
                                        (json_int_t)(i == 0 || i == 4 ? 2 : 3) * DOCTOR_LONG_NS));
    a.ops = json_pack("{s:o}", "ops", ops);
    doctor_take_held(&full, &a, 1);
    CU_ASSERT_EQUAL(full.held, 0); /* the operations' job is not known yet */
    doctor_note_job(&full, json_array_get(json_object_get(a.clients, "clients"), 0));
    doctor_take_held(&full, &a, 1);
    CU_ASSERT_EQUAL(full.held, 2);
    CU_ASSERT_EQUAL(full.held_ns, 2 * DOCTOR_LONG_NS);
    CU_ASSERT_EQUAL(full.held_of, 3);
    json_decref(a.queues);
    a.queues = NULL; /* the context has ended */
    full.held_ns = 0;
    doctor_take_held(&full, &a, 1);
    CU_ASSERT_EQUAL(full.held_of, -1);
    json_decref(a.clients);
    json_decref(a.ops);
}

/* Programs that make no progress: the doctor names each reason, with ranks and times. */
static void stalls(void)
{
    struct doctor_facts facts = well();
    struct doctor_stalls *s = &facts.stalls;

    s->operation = (struct doctor_operation){.count = 3,
                                             .kind = "put",
                                             .origin = 0,
                                             .target = 5,
                                             .node = 1,
                                             .age_ns = UINT64_C(2500000000)};
    expect("operations", &facts, DOCTOR_WARN, "a put of rank 0 to rank 5 on node 1, for 2.5 s");
    s->cut = s->operation;
    snprintf(s->cut.link, sizeof(s->cut.link), "no route");
    expect("links", &facts, DOCTOR_WARN, "for 2.5 s: node 1 cannot be reached: no route");
    s->events =
        (struct doctor_full){.count = 1, .rank = 5, .used = 8000, .size = 8192, .spilled = 640};
    expect("events", &facts, DOCTOR_WARN,
           "rank 5 has taken no events for a second: 8000 of 8192 bytes");
    s->events.held = 3;
    s->events.held_ns = UINT64_C(2500000000);
    expect("events", &facts, DOCTOR_WARN, "holds up 3 operations, the oldest of rank 0 for 2.5 s");
    s->events.held_of = s->operation.origin = -1; /* these contexts have ended */
    expect("events", &facts, DOCTOR_WARN, "holds up 3 operations, the oldest for 2.5 s");
    expect("operations", &facts, DOCTOR_WARN, "a put to rank 5 on node 1, for 2.5 s");
    s->records =
        (struct doctor_full){.count = 1, .rank = 2, .used = 131072, .size = 131072, .writer = 1};
    expect("neighbours", &facts, DOCTOR_WARN,
           "rank 2 has read nothing of its neighbour rank 1 for a second: 131072 of 131072");
    s->barrier = (struct doctor_barrier){.count = 1,
                                         .kind = "barrier",
                                         .job = "j",
                                         .missing = "1, 4-7",
                                         .have = 3,
                                         .size = 8,
                                         .age_ns = UINT64_C(1500000000)};
    expect("barriers", &facts, DOCTOR_WARN,
           "job j: 3 of 8 ranks have waited 1.5 s in a barrier for rank 1, 4-7");
    s->still = (struct doctor_still){
        .count = 1, .job = "j", .waiting = 3, .events = "0-1, 3", .elsewhere = "2"};
    expect("waits", &facts, DOCTOR_WARN,
           "job j: rank 0-1, 3 waits for events, rank 2 waits in no call, and nothing has been");
    s->still.elsewhere[0] = '\0';
    expect("waits", &facts, DOCTOR_WARN, "all other ranks wait, too");
    s->still.unseen = 2;
    expect("waits", &facts, DOCTOR_WARN, "2 ranks are not on the nodes that were asked");
    s->gone = (struct doctor_gone){.count = 1, .job = "j", .ranks = "2", .left = 1, .live = 7};
    expect("ranks", &facts, DOCTOR_WARN, "job j: rank 2 has ended, and 7 of its ranks live on");
}

/* The queues of a daemon: for each rank from 0 on the call that it waits in, and the number of
 * submitted operations. */
static json_t *queues_of(const char *const waits[4], int submitted)
{
    json_t *rows = json_array();

    for (int i = 0; i < 4; i++)
        json_array_append_new(rows, json_pack("{s:i, s:i, s:i, s:i, s:s, s:i}", "engine", 0,
                                              "session", i, "client", i, "rank", i, "waits",
                                              waits[i], "submitted", submitted));
    return json_pack("{s:o}", "queues", rows);
}

/* A job stands still if a rank waits for events in both looks, and no count of the job's contexts
 * has changed between them. */
static void still(void)
{
    static const struct {
        const char *before[4], *now[4];
        int submitted; /* operations submitted between the looks */
        unsigned count;
        const char *events, *elsewhere;
    } rows[] = {
        {{"event", "flush", "-", "event"}, {"event", "flush", "-", "event"}, 0, 1, "0-1, 3", "2"},
        {{"event", "flush", "-", "event"}, {"event", "flush", "-", "event"}, 1, 0, "", ""},
        {{"event", "event", "-", "event"}, {"event", "-", "-", "event"}, 0, 0, "", ""},
        {{"event", "barrier", "-", "exchange"},
         {"event", "barrier", "-", "exchange"},
         0,
         1,
         "0",
         "2"},
        {{"event", "event", "event", "flush"},
         {"event", "event", "event", "flush"},
         0,
         1,
         "0-3",
         ""},
        {{"barrier", "barrier", "-", "-"}, {"barrier", "barrier", "-", "-"}, 0, 0, "", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_still found = {0};
        json_t *clients = json_array(), *later = queues_of(rows[i].now, rows[i].submitted);
        struct doctor_answers a = {.queues = queues_of(rows[i].before, 0)};

        for (int c = 0; c < 4; c++)
            json_array_append_new(clients, json_pack("{s:i, s:i, s:i, s:s, s:i}", "engine", 0,
                                                     "client", c, "uid", 7, "job", "j", "size", 5));
        a.clients = json_pack("{s:o}", "clients", clients);
        CU_ASSERT_EQUAL(doctor_has_waiter(a.queues), i < 5);
        doctor_take_still(&found, &a, &later, 1);
        CU_ASSERT_EQUAL(found.count, rows[i].count);
        CU_ASSERT_STRING_EQUAL(found.events, rows[i].events);
        CU_ASSERT_STRING_EQUAL(found.elsewhere, rows[i].elsewhere);
        CU_ASSERT_EQUAL(found.unseen, rows[i].count); /* one of the job's five ranks is not seen */
        json_decref(a.queues);
        json_decref(a.clients);
        json_decref(later);
    }
}

/* A daemon among several that gives a view not at all, or not whole: each check that needs the view
 * is not known, and a daemon that does not answer is an error. */
static void unheard(void)
{
    static const struct {
        enum doctor_view view;
        const char *checks[3];
    } rows[] = {{DOCTOR_QUEUES, {"events", "neighbours", "waits"}},
                {DOCTOR_OPS, {"operations", "links"}},
                {DOCTOR_JOBS, {"barriers", "ranks"}},
                {DOCTOR_NODES, {"links"}},
                {DOCTOR_CLIENTS, {"waits"}}};
    json_t *whole = json_pack("{s:[]}", "ops"), *part = json_pack("{s:b}", "truncated", 1);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int status = 0; status >= -ENOENT; status -= ENOENT) {
            struct doctor_facts facts = well();
            struct doctor_stalls *s = &facts.stalls;

            doctor_take_answer(s, rows[i].view, "/one", 0, status ? part : whole, "");
            doctor_take_answer(s, rows[i].view, "/two", status, status ? NULL : part, "/two: gone");
            doctor_take_answer(s, rows[i].view, "/three", status ? -EACCES : 0, part, "/three");
            for (const struct doctor_check *check = doctor_checks(); check->name; check++) {
                bool needs = false, daemon = strcmp(check->name, "daemon") == 0;

                for (size_t c = 0; c < 3 && rows[i].checks[c]; c++)
                    needs |= strcmp(rows[i].checks[c], check->name) == 0;
                expect(check->name, &facts,
                       needs                  ? DOCTOR_UNKNOWN
                       : daemon && status < 0 ? DOCTOR_WRONG
                                              : DOCTOR_OK,
                       needs                  ? "not known: /two: "
                       : daemon && status < 0 ? "no daemon serves at /two"
                                              : "");
            }
            /* The finding about another daemon is reported all the same. */
            s->gone = (struct doctor_gone){.count = 1, .job = "j", .ranks = "2", .live = 7};
            expect("ranks", &facts, DOCTOR_WARN, "job j: rank 2 has ended");
        }
    }
    json_decref(whole);
    json_decref(part);
}

/* Operations come oldest first: where the last one that fits is young, no old one is missing. */
static void young_rest(void)
{
    static const struct {
        json_int_t age;
        enum doctor_level level;
    } rows[] = {{DOCTOR_LONG_NS - 1, DOCTOR_OK}, {DOCTOR_LONG_NS, DOCTOR_UNKNOWN}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();
        json_t *ops = json_pack("{s:b, s:[{s:I}, {s:I}]}", "truncated", 1, "ops", "age_ns",
                                2 * DOCTOR_LONG_NS, "age_ns", rows[i].age);

        doctor_take_answer(&facts.stalls, DOCTOR_OPS, "/one", 0, ops, "");
        expect("links", &facts, rows[i].level, "");
        json_decref(ops);
    }
}

static void daemons(void)
{
    static const struct {
        int status;
        enum doctor_level level;
        const char *says;
    } rows[] = {{0, DOCTOR_OK, "node 0 of 2 serves at /run/pwcd/pwcd.sock"},
                {-ENOENT, DOCTOR_WRONG, "no daemon serves at /run/pwcd/pwcd.sock"},
                {-ECONNREFUSED, DOCTOR_WRONG, "no daemon serves"},
                {-EACCES, DOCTOR_WRONG, "the reason"},
                {-EPERM, DOCTOR_WRONG, "the reason"},
                {-ETIMEDOUT, DOCTOR_WRONG, "the reason"},
                {-EBADMSG, DOCTOR_WRONG, "the reason"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        facts.daemon.status = rows[i].status;
        strcpy(facts.daemon.why, "the reason");
        expect("daemon", &facts, rows[i].level, rows[i].says);
    }
    struct doctor_facts facts = well();

    facts.daemon.stuck = true;
    expect("progress", &facts, DOCTOR_WRONG, "has not answered within a second");
    facts = well();
    facts.daemon.quarantined = 1;
    expect("clients", &facts, DOCTOR_WARN, "1 client broke");
}

static void versions(void)
{
    static const struct {
        const char *daemon, *pwcd, *ours;
        unsigned rings; /* version of the daemon's rings */
        int status;
        enum doctor_level level;
        const char *says;
    } rows[] = {
        {"0.1.0", "0.1.0", "0.1.0", 4, 0, DOCTOR_OK, "0.1.0 everywhere"},
        {"0.1.0", "0.1.0", "0.1.0", 3, 0, DOCTOR_WRONG, "rings of version 3"},
        {"0.1.0", "0.1.0", "0.1.0", 0, 0, DOCTOR_WRONG, "rings of version 0"},
        {"0.1.0", "0.1.0", "0.1.0", 0, -ENOENT, DOCTOR_OK, "pwcctl and pwcd"},
        {"0.1.0", "0.2.0", "0.2.0", 4, 0, DOCTOR_WARN,
         "that runs is 0.1.0, /usr/bin/pwcd is 0.2.0"},
        {"0.1.0", "0.1.0", "0.2.0", 4, 0, DOCTOR_WARN, "pwcctl is 0.2.0, the daemon 0.1.0"},
        {"0.1.0", "", "0.1.0", 4, 0, DOCTOR_WARN, "the daemon's program is not found"},
        {"", "0.1.0", "0.2.0", 0, -ENOENT, DOCTOR_WARN, "pwcctl is 0.2.0, /usr/bin/pwcd 0.1.0"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        facts.daemon.status = rows[i].status;
        facts.daemon.session_version = rows[i].rings;
        strcpy(facts.daemon.version, rows[i].daemon);
        strcpy(facts.programs.pwcd_version, rows[i].pwcd);
        strcpy(facts.programs.version, rows[i].ours);
        expect("versions", &facts, rows[i].level, rows[i].says);
    }
}

static void peers(void)
{
    static const struct {
        unsigned nodes, lost;
        const char *why;
        enum doctor_level level;
        const char *says;
    } rows[] = {{1, 0, "", DOCTOR_OK, "alone"},
                {2, 0, "", DOCTOR_OK, "no link to 1 other node is down"},
                {4, 0, "", DOCTOR_OK, "no link to 3 other nodes is down"},
                {4, 1, "refused", DOCTOR_WRONG, "1 of 3 other nodes not linked; node 2: refused"},
                {4, 3, "", DOCTOR_WRONG, "3 of 3 other nodes not linked; node 2: not reached"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        facts.daemon.nodes = rows[i].nodes;
        facts.daemon.lost = rows[i].lost;
        facts.daemon.lost_node = 2;
        strcpy(facts.daemon.lost_why, rows[i].why);
        expect("peers", &facts, rows[i].level, rows[i].says);
    }
}

static void providers(void)
{
    struct doctor_facts facts = well();

    expect("provider", &facts, DOCTOR_OK, "tcp;ofi_rxm; also: net");
    strcpy(facts.daemon.provider, "loop"); /* a single node */
    expect("provider", &facts, DOCTOR_OK, "tcp;ofi_rxm; also: net");
    facts.programs.provider_count = 0;
    strcpy(facts.programs.providers_why, "none at 10.0.0.9");
    expect("provider", &facts, DOCTOR_WRONG, "no provider will do: none at 10.0.0.9");
    facts.programs.pwcd_version[0] = '\0';
    expect("provider", &facts, DOCTOR_WARN, "cannot be asked");
    strcpy(facts.daemon.provider, "verbs;ofi_rxm");
    expect("provider", &facts, DOCTOR_OK, "verbs;ofi_rxm");
}

static void limits(void)
{
    static const struct {
        const char *provider;
        uint64_t locked;
        bool exempt;
        enum doctor_level level;
        const char *says;
    } rows[] = {{"tcp;ofi_rxm", 8 * MIB, false, DOCTOR_OK,
                 "the daemon may pin 8 MiB; tcp;ofi_rxm pins none"},
                {"net", 0, false, DOCTOR_OK, "0 KiB"},
                {"shm", 0, false, DOCTOR_OK, "pins none"},
                {"verbs;ofi_rxm", 8 * MIB, false, DOCTOR_WRONG, "only 8 MiB"},
                {"verbs;ofi_rxm", GIB - 1, false, DOCTOR_WRONG, "only 1023 MiB"},
                {"verbs;ofi_rxm", GIB, false, DOCTOR_WARN, "only 1024 MiB"},
                {"verbs;ofi_rxm", DOCTOR_UNLIMITED, false, DOCTOR_OK, "without a limit"},
                {"efa", 65536, true, DOCTOR_OK, "without a limit"}};
    static const struct {
        uint64_t most;
        unsigned clients;
        enum doctor_level level;
    } files[] = {{255, 1, DOCTOR_WRONG},
                 {256, 24, DOCTOR_OK},
                 {256, 25, DOCTOR_WARN},
                 {2111, 256, DOCTOR_WARN},
                 {2112, 256, DOCTOR_OK},
                 {20000, 4096, DOCTOR_WARN},
                 {DOCTOR_UNLIMITED, 4096, DOCTOR_OK}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        strcpy(facts.daemon.provider, rows[i].provider);
        facts.machine.memory_locked = rows[i].locked;
        facts.machine.memory_exempt = rows[i].exempt;
        expect("memory-locked", &facts, rows[i].level, rows[i].says);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct doctor_facts facts = well();

        facts.machine.descriptors = files[i].most;
        facts.daemon.clients_max = files[i].clients;
        expect("descriptors", &facts, files[i].level, "");
    }
}

static void processors(void)
{
    static const struct {
        const char *progress;
        unsigned threads, have;
        int status;
        enum doctor_level level;
    } rows[] = {{"adaptive", 1, 1, 0, DOCTOR_WARN},     {"adaptive", 1, 2, 0, DOCTOR_OK},
                {"adaptive", 2, 2, 0, DOCTOR_OK},       {"adaptive", 3, 2, 0, DOCTOR_WARN},
                {"dedicated", 1, 1, 0, DOCTOR_WRONG},   {"dedicated", 1, 2, 0, DOCTOR_OK},
                {"dedicated", 2, 2, 0, DOCTOR_WRONG},   {"dedicated", 2, 3, 0, DOCTOR_OK},
                {"dedicated", 9, 2, -ENOENT, DOCTOR_OK}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        facts.daemon.status = rows[i].status;
        strcpy(facts.daemon.progress, rows[i].progress);
        facts.daemon.threads = rows[i].threads;
        facts.machine.processors = rows[i].have;
        expect("processors", &facts, rows[i].level, "processor");
    }
}

static void kernels(void)
{
    static const struct {
        int commands;
        enum doctor_level level;
    } barriers[] = {{FENCE, DOCTOR_OK},
                    {FENCE | 1, DOCTOR_OK},
                    {MEMBARRIER_CMD_GLOBAL_EXPEDITED, DOCTOR_WARN},
                    {MEMBARRIER_CMD_GLOBAL, DOCTOR_WARN},
                    {0, DOCTOR_WARN},
                    {-ENOSYS, DOCTOR_WARN},
                    {-EPERM, DOCTOR_WARN}};
    static const struct {
        const char *clock;
        enum doctor_level level;
    } clocks[] = {{"tsc", DOCTOR_OK},    {"kvm-clock", DOCTOR_OK}, {"", DOCTOR_UNKNOWN},
                  {"hpet", DOCTOR_WARN}, {"acpi_pm", DOCTOR_WARN}, {"tscx", DOCTOR_WARN}};
    static const struct {
        const char *provider, *pages;
        enum doctor_level level;
    } pages[] = {{"tcp", "never", DOCTOR_OK},    {"verbs", "never", DOCTOR_WARN},
                 {"verbs", "deny", DOCTOR_WARN}, {"verbs", "advise", DOCTOR_OK},
                 {"verbs", "", DOCTOR_UNKNOWN},  {"verbs", "within_size", DOCTOR_OK}};

    for (size_t i = 0; i < sizeof(barriers) / sizeof(barriers[0]); i++) {
        struct doctor_facts facts = well();

        facts.machine.membarrier = barriers[i].commands;
        expect("membarrier", &facts, barriers[i].level, "membarrier");
    }
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        struct doctor_facts facts = well();

        strcpy(facts.machine.clock, clocks[i].clock);
        expect("clock", &facts, clocks[i].level, clocks[i].clock);
    }
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        struct doctor_facts facts = well();

        strcpy(facts.daemon.provider, pages[i].provider);
        strcpy(facts.machine.shm_pages, pages[i].pages);
        expect("huge-pages", &facts, pages[i].level, pages[i].pages);
    }
}

static void memories(void)
{
    static const struct {
        const char *provider;
        unsigned nodes, rails;
        int status;
        uint64_t free;
        enum doctor_level level;
    } rows[] = {{"tcp", 2, 1, 0, 0, DOCTOR_OK},
                {"shm", 2, 1, 0, 32 * MIB, DOCTOR_OK},
                {"shm", 2, 1, 0, 32 * MIB - 1, DOCTOR_WRONG},
                {"shm", 4, 2, 0, 128 * MIB, DOCTOR_OK},
                {"shm", 4, 2, 0, 128 * MIB - 1, DOCTOR_WRONG}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        strcpy(facts.daemon.provider, rows[i].provider);
        facts.daemon.nodes = rows[i].nodes;
        facts.daemon.rails = rows[i].rails;
        facts.machine.shm_free = rows[i].free;
        expect("shared-memory", &facts, rows[i].level, "free in /dev/shm");
    }
}

static void networks(void)
{
    static const struct {
        const char *provider;
        uint64_t in, out;
        enum doctor_level level;
    } rows[] = {{"tcp;ofi_rxm", MIB, MIB, DOCTOR_OK},
                {"tcp;ofi_rxm", MIB - 1, MIB, DOCTOR_WARN},
                {"net", MIB, MIB - 1, DOCTOR_WARN},
                {"net", 0, MIB, DOCTOR_UNKNOWN},
                {"shm", 1, 1, DOCTOR_OK},
                {"verbs", 1, 1, DOCTOR_OK}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        strcpy(facts.daemon.provider, rows[i].provider);
        facts.machine.tcp_receive_max = rows[i].in;
        facts.machine.tcp_send_max = rows[i].out;
        expect("tcp", &facts, rows[i].level, "");
    }
}

static void tracing(void)
{
    static const struct {
        uid_t uid;
        bool serves_others;
        int status, scope;
        enum doctor_level level;
    } rows[] = {{1000, false, 0, 0, DOCTOR_WARN}, {1000, false, 0, -1, DOCTOR_WARN},
                {1000, false, 0, 1, DOCTOR_OK},   {1000, true, 0, 0, DOCTOR_OK},
                {0, false, 0, 0, DOCTOR_OK},      {1000, true, -ENOENT, 0, DOCTOR_WARN}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct doctor_facts facts = well();

        facts.machine.uid = rows[i].uid;
        facts.machine.ptrace_scope = rows[i].scope;
        facts.daemon.serves_others = rows[i].serves_others;
        facts.daemon.status = rows[i].status;
        expect("tracing", &facts, rows[i].level, "");
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"all well", all_well},
                           {"no daemon", no_daemon},
                           {"programs that do not move", stalls},
                           {"of one job", held},
                           {"daemons", daemons},
                           {"versions", versions},
                           {"peers", peers},
                           {"providers", providers},
                           {"limits", limits},
                           {"processors", processors},
                           {"kernels", kernels},
                           {"memories", memories},
                           {"networks", networks},
                           {"tracing", tracing},
                           {"a job stands still", still},
                           {"daemons unheard", unheard},
                           {"the rest is young", young_rest},
                           CU_TEST_INFO_NULL};

    return suite_run("doctor", tests);
}
