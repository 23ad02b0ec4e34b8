/* The screen of pwcctl top, without a terminal: rates, restarts, the order of rows, screens of all
 * sizes, and keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcctl/top/layout.h"
#include "tests/suite.h"

/* A few numbers, from which a daemon's answers are built. */
struct state {
    int pid;
    double uptime;
    json_int_t puts[2]; /* puts of two contexts */
    json_int_t records;
    int clients; /* number of clients, from the first one on */
    const char *job;
};

static struct top_look look_of(const struct state *s)
{
    struct top_look look = {
        .status =
            json_pack("{s:s,s:i,s:f,s:i,s:i,s:s,s:s,s:I,s:i,s:i,s:i,s:i}", "progress", "running",
                      "pid", s->pid, "uptime_s", s->uptime, "node", 0, "nodes", 3, "version", "1.2",
                      "provider", "tcp", "progress_cpu_ns", (json_int_t)(s->uptime * 5e8), "work",
                      10, "sleeps", 1, "quarantined", 2, "refused", 3),
        .clients = json_pack("{s:[],s:[{s:i,s:i},{s:i,s:i}]}", "clients", "users", "uid", 0,
                             "clients", 1, "uid", 7, "clients", 1),
        .queues = json_pack("{s:[]}", "queues"),
        .ledgers = json_pack("{s:[{s:i,s:s,s:I,s:i,s:i,s:i}]}", "ledgers", "node", 1, "state", "up",
                             "records_out", s->records, "records_in", 0, "tx_bytes", 1000,
                             "tx_credit", 250),
        .nodes = json_pack("{s:[{s:i,s:s,s:s,s:n},{s:i,s:s,s:s,s:n},{s:i,s:s,s:s,s:s}]}", "nodes",
                           "node", 0, "state", "self", "address", "a:1", "reason", "node", 1,
                           "state", "linked", "address", "b:1", "reason", "node", 2, "state",
                           "dialling", "address", "c:1", "reason", "refused"),
    };
    for (int i = 0; i < s->clients; i++) {
        json_array_append_new(json_object_get(look.clients, "clients"),
                              json_pack("{s:i,s:s,s:i,s:i,s:i,s:i,s:I,s:n}", "client", i, "job",
                                        s->job, "rank", i, "uid", 7 * i, "pid", 100 + i, "sessions",
                                        1, "bytes", (json_int_t)(4096 << i), "quarantine"));
        json_array_append_new(json_object_get(look.queues, "queues"),
                              json_pack("{s:i,s:i,s:i,s:i,s:I,s:I,s:i,s:i,s:i,s:i,s:i}", "session",
                                        i, "client", i, "rank", i, "context", 0, "put_ops",
                                        s->puts[i], "put_bytes", s->puts[i] * 8, "in_flight", 5,
                                        "submit_size", 100, "submit_used", 25, "submit_high", 50,
                                        "errors", 0));
    }
    return look;
}

static int take(struct top_model *model, const struct state *s, double at)
{
    struct top_look look = look_of(s);
    int rc = top_model_take(model, &look, 1, at);

    top_look_free(&look);
    return rc;
}

static const struct top_cell *cell(const struct top_model *model, enum top_table table, size_t row,
                                   const char *key)
{
    static const struct top_cell none;
    size_t count;
    const struct top_column *column = top_columns(table, &count);

    for (size_t c = 0; c < count && row < model->tables[table].count; c++)
        if (strcmp(column[c].key, key) == 0)
            return &model->tables[table].rows[row].cells[c];
    return &none;
}

/* Finds a cell by its column's title. */
static const struct top_cell *titled(const struct top_model *model, enum top_table table,
                                     size_t row, const char *title)
{
    size_t count, c = 0;
    const struct top_column *column = top_columns(table, &count);

    while (strcmp(column[c].title, title) != 0)
        c++;
    return &model->tables[table].rows[row].cells[c];
}

/* ---- the model ------------------------------------------------------------------------------- */

static const struct state first = {7, 10, {100, 200}, 50, 2, "job-a"};

static void rates(void)
{
    static const struct {
        struct state now;
        double seconds;
        bool known[2];
        double rate[2]; /* puts of each context */
    } rows[] = {
        {{7, 12, {300, 200}, 50, 2, "job-a"}, 2, {true, true}, {100, 0}},
        {{7, 10.5, {350, 201}, 50, 2, "job-a"}, 0.5, {true, true}, {500, 2}},
        /* a new context has the number: its counters are lower */
        {{7, 11, {99, 200}, 50, 2, "job-a"}, 1, {false, true}, {0, 0}},
        /* one context has ended */
        {{7, 11, {101, 0}, 50, 1, "job-a"}, 1, {true, false}, {1, 0}},
        /* no time has passed */
        {{7, 10, {101, 200}, 50, 2, "job-a"}, 0, {false, false}, {0, 0}},
        /* restarted: another pid, or an uptime so short that it must be another process */
        {{8, 1, {300, 400}, 50, 2, "job-a"}, 1, {false, false}, {0, 0}},
        {{7, 1, {300, 400}, 50, 2, "job-a"}, 1, {false, false}, {0, 0}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct top_model model = {0};

        CU_ASSERT_EQUAL(take(&model, &first, 1000), 0);
        CU_ASSERT_FALSE(cell(&model, TOP_QUEUES, 0, "put_ops")->known);
        CU_ASSERT_FALSE(model.totals.known);
        CU_ASSERT_EQUAL(take(&model, &rows[i].now, 1000 + rows[i].seconds), 0);
        for (size_t c = 0; c < 2; c++) {
            const struct top_cell *puts = cell(&model, TOP_QUEUES, c, "put_ops");

            CU_ASSERT_EQUAL(puts->known, rows[i].known[c]);
            CU_ASSERT(!puts->known || puts->value == rows[i].rate[c]);
        }
        top_model_free(&model);
    }
}

static void joined(void)
{
    struct state now = {7, 12, {300, 200}, 90, 2, "a\nb\xff"};
    struct top_model model = {0};

    /* A daemon never sends a name with such bytes, because JSON cannot hold them; other unprintable
     * bytes may come. */
    now.job = "a\nb";
    CU_ASSERT_EQUAL(take(&model, &first, 0), 0);
    CU_ASSERT_EQUAL(take(&model, &now, 2), 0);
    CU_ASSERT_STRING_EQUAL(cell(&model, TOP_QUEUES, 1, "job")->text, "a?b");
    CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "ops")->value, 100);
    CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "op_bytes")->value, 800);
    CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "in_flight")->value, 5);
    CU_ASSERT_EQUAL(cell(&model, TOP_QUEUES, 0, "submit_used")->value, 0.25);
    CU_ASSERT_EQUAL(cell(&model, TOP_QUEUES, 0, "submit_used")->high, 0.5);
    CU_ASSERT_FALSE(cell(&model, TOP_QUEUES, 0, "local_used")->known);
    /* Node 0 is the daemon itself; node 1 has ledgers; node 2 has none, but a reason. */
    CU_ASSERT_EQUAL(model.tables[TOP_PEERS].count, 2);
    CU_ASSERT_EQUAL(cell(&model, TOP_PEERS, 0, "records_out")->value, 20);
    CU_ASSERT_EQUAL(cell(&model, TOP_PEERS, 0, "tx_used")->value, 0.75);
    CU_ASSERT_STRING_EQUAL(cell(&model, TOP_PEERS, 0, "address")->text, "b:1");
    CU_ASSERT_STRING_EQUAL(cell(&model, TOP_PEERS, 1, "state")->text, "dialling");
    CU_ASSERT_STRING_EQUAL(cell(&model, TOP_PEERS, 1, "reason")->text, "refused");
    CU_ASSERT_FALSE(cell(&model, TOP_PEERS, 1, "records_out")->known);
    CU_ASSERT_TRUE(model.totals.known);
    CU_ASSERT_EQUAL(model.totals.cpu_share, 0.5);
    CU_ASSERT_EQUAL(model.totals.put_ops, 100);
    top_model_free(&model);
}

/* How long two contexts of a client wait, as shares of the time between two looks. */
static void shares(void)
{
    static const struct {
        const char *waits[2];
        json_int_t waited_ms[2], asleep_ms[2]; /* in the 2 s between the looks */
        const char *shown;                     /* call that is shown for the client */
        double asleep, inside, computes;       /* shares of the client, in percent */
        double first;                          /* share `computes` of the first context */
    } rows[] = {
        {{"-", "-"}, {0, 0}, {0, 0}, "-", 0, 0, 100, 100},
        {{"event", "event"}, {2000, 2000}, {2000, 2000}, "event", 100, 0, 0, 0},
        {{"flush", "-"}, {1000, 0}, {500, 0}, "several", 12.5, 12.5, 75, 50},
        {{"barrier", "barrier"}, {2000, 2000}, {1900, 1500}, "barrier", 85, 15, 0, 0},
        /* a sleep that began before the first look may be counted whole */
        {{"event", "event"}, {2100, 2100}, {2100, 2100}, "event", 100, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct top_model model = {0};

        for (int at = 0; at <= 2; at += 2) {
            struct top_look look = look_of(&first);
            json_t *row;
            size_t c;

            json_array_foreach(json_object_get(look.queues, "queues"), c, row)
            {
                json_object_set_new(row, "client", json_integer(0));
                json_object_set_new(row, "waits", json_string(rows[i].waits[c]));
                json_object_set_new(row, "waited_ns",
                                    json_integer(7 + at / 2 * rows[i].waited_ms[c] * 1000000));
                json_object_set_new(row, "asleep_ns",
                                    json_integer(7 + at / 2 * rows[i].asleep_ms[c] * 1000000));
            }
            CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, at), 0);
            top_look_free(&look);
            CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "waited_ns")->known, at == 2);
        }
        CU_ASSERT_STRING_EQUAL(cell(&model, TOP_CLIENTS, 0, "waits")->text, rows[i].shown);
        CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "asleep_ns")->value, rows[i].asleep);
        CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "inside_ns")->value, rows[i].inside);
        CU_ASSERT_EQUAL(cell(&model, TOP_CLIENTS, 0, "waited_ns")->value, rows[i].computes);
        CU_ASSERT_EQUAL(cell(&model, TOP_QUEUES, 0, "waited_ns")->value, rows[i].first);
        /* This client has no contexts. */
        CU_ASSERT_FALSE(cell(&model, TOP_CLIENTS, 1, "waited_ns")->known);
        top_model_free(&model);
    }
}

/* A client whose contexts are others than before: the mean over its contexts is no mean of the same
 * ones, so its growth is not known for one look. */
static void contexts_change(void)
{
    static const struct {
        int contexts[3]; /* at each look; the first has waited long, the second not at all */
        bool known[3];
    } rows[] = {{{2, 2, 2}, {false, true, true}},
                {{2, 1, 1}, {false, false, true}},
                {{1, 2, 2}, {false, false, true}}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct top_model model = {0};

        for (int at = 0; at < 3; at++) {
            struct state now = first;
            struct top_look look;
            json_t *row;
            size_t c;

            now.clients = rows[i].contexts[at];
            look = look_of(&now);
            json_array_foreach(json_object_get(look.queues, "queues"), c, row)
            {
                json_object_set_new(row, "client", json_integer(0));
                json_object_set_new(row, "waited_ns", json_integer(c == 0 ? 900000000000 : 0));
                json_object_set_new(row, "asleep_ns", json_integer(c == 0 ? 900000000000 : 0));
            }
            CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, 2 * at), 0);
            top_look_free(&look);
            for (int t = 0; t < 2; t++) {
                const struct top_cell *share =
                    titled(&model, TOP_CLIENTS, 0, t == 0 ? "ASLEEP" : "COMPUTES");

                CU_ASSERT_EQUAL(share->known, rows[i].known[at]);
                CU_ASSERT(!share->known || share->value == 100 * t);
            }
            CU_ASSERT_EQUAL(cell(&model, TOP_QUEUES, 0, "waited_ns")->known, at > 0);
        }
        top_model_free(&model);
    }
}

/* Each client's and user's share of all bytes, and the age of their oldest operation. */
static void parts(void)
{
    static const struct {
        json_int_t puts[2]; /* puts at the second look */
        bool known;
        double part[2]; /* share in percent */
    } rows[] = {
        {{200, 500}, true, {25, 75}},
        {{100, 500}, true, {0, 100}},
        {{100, 200}, false, {0, 0}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct state now = {7, 12, {rows[i].puts[0], rows[i].puts[1]}, 50, 2, "job-a"};
        struct top_model model = {0};
        struct top_look look = look_of(&now);

        look.ops = json_pack("{s:[{s:i,s:i},{s:i,s:i},{s:i,s:i}]}", "ops", "client", 1, "age_ns", 5,
                             "client", 1, "age_ns", 900, "client", 9, "age_ns", 1000);
        CU_ASSERT_EQUAL(take(&model, &first, 0), 0);
        CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, 2), 0);
        top_look_free(&look);
        for (size_t row = 0; row < 2; row++)
            for (int t = 0; t < 2; t++) {
                const struct top_cell *c =
                    titled(&model, t == 0 ? TOP_CLIENTS : TOP_USERS, row, "SHARE");

                CU_ASSERT_EQUAL(c->known, rows[i].known);
                CU_ASSERT(!c->known || c->value == rows[i].part[row]);
            }
        CU_ASSERT_FALSE(titled(&model, TOP_CLIENTS, 0, "OLDEST")->known);
        CU_ASSERT_EQUAL(titled(&model, TOP_CLIENTS, 1, "OLDEST")->value, 900);
        CU_ASSERT_FALSE(titled(&model, TOP_USERS, 0, "OLDEST")->known);
        CU_ASSERT_EQUAL(titled(&model, TOP_USERS, 1, "OLDEST")->value, 900);
        CU_ASSERT_EQUAL(titled(&model, TOP_USERS, 1, "FLIGHT")->value, 5);
        top_model_free(&model);
    }
}

/* Sets the bytes used and the events delivered of rank 1's remote ring in a look at the queues. */
static void fill(struct top_look *look, int used, int delivered)
{
    json_t *row = json_array_get(json_object_get(look->queues, "queues"), 1);

    json_object_set_new(row, "remote_size", json_integer(100));
    json_object_set_new(row, "remote_used", json_integer(used));
    json_object_set_new(row, "delivered", json_integer(delivered));
}

/* A context that takes no events is named after two looks that are far enough apart, with the time
 * since the first one. A context that takes an event is not named, and its time starts again. */
static void quiet(void)
{
    static const struct {
        double at;
        int used, delivered;
        const char *said; /* text that is shown; NULL: none */
    } rows[] = {
        {0, 100, 7, NULL},
        {0.2, 100, 7, NULL},
        {1, 100, 7, "rank 1 has taken no events for 1.0 s"},
        {1.5, 100, 7, "rank 1 has taken no events for 1.5 s"},
        {2, 100, 7, "rank 1 has taken no events for 2.0 s"},
        {3, 100, 8, NULL},
        {4, 100, 8, "rank 1 has taken no events for 1.0 s"},
        {5, 10, 8, NULL},
        {6, 10, 8, NULL},
    };
    struct top_model model = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct top_look look = look_of(&first);

        fill(&look, rows[i].used, rows[i].delivered);
        CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, rows[i].at), 0);
        CU_ASSERT_EQUAL_FATAL(model.hints.count, rows[i].said ? 1 : 0);
        CU_ASSERT(!rows[i].said ||
                  strncmp(model.hints.lines[0], rows[i].said, strlen(rows[i].said)) == 0);
        top_look_free(&look);
    }
    top_model_free(&model);
}

static void notes(void)
{
    struct state again = first;
    struct top_model model = {0};

    CU_ASSERT_EQUAL(take(&model, &first, 100), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    top_model_miss(&model, "Connection refused", 103);
    CU_ASSERT_STRING_EQUAL(model.note,
                           "no answer: Connection refused; what stands here is 3 s old");
    CU_ASSERT_EQUAL(model.tables[TOP_CLIENTS].count, 2); /* the old table stays */
    again.uptime = 14;
    CU_ASSERT_EQUAL(take(&model, &again, 104), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    again.pid = 8;
    CU_ASSERT_EQUAL(take(&model, &again, 105), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "the daemon was started anew: process 8, was 7");
    CU_ASSERT_EQUAL(take(&model, &again, 106), 0);
    CU_ASSERT_NOT_EQUAL(model.note[0], '\0'); /* still shown, to be read */
    CU_ASSERT_EQUAL(take(&model, &again, 116), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    top_model_free(&model);
}

/* A senseless answer changes nothing. */
static void nonsense(void)
{
    static const char *const wrong[] = {"null", "[]", "{\"queues\":3}", "{\"queues\":{}}"};
    struct top_model model = {0};

    CU_ASSERT_EQUAL(take(&model, &first, 0), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct top_look look = look_of(&first);

        json_decref(look.queues);
        look.queues = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, 1), -EBADMSG);
        CU_ASSERT_EQUAL(model.tables[TOP_QUEUES].count, 2);
        top_look_free(&look);
    }
    /* Rows that are not objects count as rows without fields. */
    struct top_look look = look_of(&first);
    json_array_append_new(json_object_get(look.queues, "queues"), json_integer(3));
    json_array_append_new(json_object_get(look.ledgers, "ledgers"), json_null());
    CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, 1), 0);
    top_look_free(&look);
    top_model_free(&model);
}

/* A job whose ranks wait for events while no count changes is named after ten seconds. When a count
 * changes, its time starts again. */
static void still(void)
{
    static const struct {
        double at;
        int submitted;
        const char *said; /* text that is shown; NULL: none */
    } rows[] = {
        {0, 7, NULL},  {5, 7, NULL},  {10, 7, "nothing has been submitted for 10.0 s"},
        {11, 8, NULL}, {20, 8, NULL}, {21, 8, "nothing has been submitted for 10.0 s"},
    };
    struct top_model model = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct top_look look = look_of(&first);
        size_t at;
        json_t *row;

        json_array_foreach(json_object_get(look.queues, "queues"), at, row)
        {
            json_object_set_new(row, "waits", json_string("event"));
            json_object_set_new(row, "submitted", json_integer(rows[i].submitted));
        }
        CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, rows[i].at), 0);
        CU_ASSERT_EQUAL_FATAL(model.hints.count, rows[i].said ? 1 : 0);
        CU_ASSERT(!rows[i].said || strstr(model.hints.lines[0], rows[i].said));
        top_look_free(&look);
    }
    top_model_free(&model);
}

/* ---- the view -------------------------------------------------------------------------------- */

/* Draws a screen of this size, and checks that it has so many lines, none too long. */
static void screen_of(struct top_screen *screen, const struct top_model *model,
                      struct top_view *view, int width, int height)
{
    view->width = width;
    view->height = height;
    top_layout(screen, model, view, "12:34:56");
    CU_ASSERT_FALSE_FATAL(screen->failed);
    CU_ASSERT(height == 0 || screen->count == (size_t)height);
    for (size_t i = 0; i < screen->count; i++) {
        CU_ASSERT(strlen(screen->lines[i].text) <= (size_t)width);
        CU_ASSERT(screen->lines[i].mark + screen->lines[i].marked <= (size_t)width ||
                  screen->lines[i].marked == 0);
    }
}

static bool shows(const struct top_screen *screen, const char *text)
{
    for (size_t i = 0; i < screen->count; i++)
        if (strstr(screen->lines[i].text, text))
            return true;
    return false;
}

/* The doctor's findings about operations, links and barriers are shown above the tables, in full
 * where there is room. */
static void hints(void)
{
    static const char *const said[] = {
        "! 1 operations wait for a link; the oldest, a put of rank 1 to rank 5, for 3.0 s:",
        "  node 2 cannot be reached: refused",
        "! job job-a: 1 of 2 ranks have waited 12.1 s in a barrier for rank 1",
        "! 1 operations have waited for over a second; the oldest, a get of rank 0 to rank",
        "  4 on node 1, for 2.0 s",
    };
    struct top_screen screen = {0};
    struct top_model model = {0};
    struct top_look look = look_of(&first);
    struct top_view view;

    look.ops = json_pack("{s:[{s:s,s:i,s:i,s:i,s:i,s:I},{s:s,s:i,s:i,s:i,s:i,s:I}]}", "ops", "kind",
                         "put", "client", 1, "session", 1, "rank", 5, "node", 2, "age_ns",
                         (json_int_t)3000000000, "kind", "get", "client", 0, "session", 0, "rank",
                         4, "node", 1, "age_ns", (json_int_t)2000000000);
    look.jobs = json_pack("{s:[{s:s,s:s,s:i,s:i,s:s,s:I}],s:[]}", "exchanges", "kind", "barrier",
                          "job", "job-a", "have", 1, "size", 2, "missing", "1", "age_ns",
                          (json_int_t)12100000000, "jobs");
    CU_ASSERT_EQUAL(top_model_take(&model, &look, 1, 0), 0);
    top_look_free(&look);
    top_view_init(&view);
    for (int height = 0; height <= 30; height += 10) {
        screen_of(&screen, &model, &view, 82, height);
        for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
            bool room = height == 0 || i < (size_t)height / 5;

            if (shows(&screen, said[i]) != room)
                printf("\n%d lines: %s\n", height, said[i]);
            CU_ASSERT_EQUAL(shows(&screen, said[i]), room);
        }
    }
    top_screen_free(&screen);
    top_model_free(&model);
}

/* Two daemons: rows with their nodes, sums, and looks that one daemon has missed. */
static void daemons(void)
{
    const struct state now = {7, 12, {300, 200}, 50, 2, "job-a"};
    struct top_screen screen = {0};
    struct top_model model = {0};
    struct top_view view;

    for (int look = 0; look < 3; look++) {
        struct top_look looks[2] = {look_of(look == 0 ? &first : &now),
                                    look_of(look == 0 ? &first : &now)};
        size_t count = look < 2 ? 2 : 1;

        json_object_set_new(looks[1].status, "node", json_integer(1));
        CU_ASSERT_EQUAL(top_model_take(&model, looks, count, 2 * look), 0);
        CU_ASSERT_EQUAL(model.tables[TOP_CLIENTS].count, 2 * count);
        CU_ASSERT_EQUAL(model.totals.known, look == 1);
        CU_ASSERT_EQUAL(titled(&model, TOP_QUEUES, 0, "PUT/S")->known, look == 1);
        if (look == 1) {
            CU_ASSERT_EQUAL(model.totals.put_ops, 200);
            CU_ASSERT_EQUAL(model.totals.cpu_share, 1);
            CU_ASSERT_EQUAL(titled(&model, TOP_CLIENTS, 1, "ON")->value, 0);
            CU_ASSERT_EQUAL(titled(&model, TOP_CLIENTS, 2, "ON")->value, 1);
            CU_ASSERT_EQUAL(titled(&model, TOP_CLIENTS, 2, "SHARE")->value, 50);
        }
        top_view_init(&view);
        if (look == 2)
            top_model_note(&model, "1.sock: it has gone");
        screen_of(&screen, &model, &view, 80, 24);
        CU_ASSERT_EQUAL(shows(&screen, "pwcd 1.2  nodes 0, 1 of 3  tcp  up"), look < 2);
        CU_ASSERT_EQUAL(shows(&screen, "ON CLIENT JOB"), look < 2);
        CU_ASSERT_EQUAL(shows(&screen, "no answer: 1.sock: it has gone"), look == 2);
        top_look_free(&looks[0]);
        top_look_free(&looks[1]);
    }
    CU_ASSERT_EQUAL(take(&model, &now, 8), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    top_screen_free(&screen);
    top_model_free(&model);
}

/* As many daemons as there may be are counted in the title, which has no room for their numbers. */
static void as_many_daemons_as_there_may_be(void)
{
    struct top_look looks[TOP_DAEMONS_MAX];
    struct top_screen screen = {0};
    struct top_model model = {0};
    struct top_view view;

    for (int i = 0; i < TOP_DAEMONS_MAX; i++) {
        looks[i] = look_of(&first);
        json_object_set_new(looks[i].status, "node", json_integer(i));
    }
    CU_ASSERT_EQUAL(top_model_take(&model, looks, TOP_DAEMONS_MAX, 0), 0);
    CU_ASSERT_EQUAL(model.tables[TOP_CLIENTS].count, 2 * TOP_DAEMONS_MAX);
    top_view_init(&view);
    screen_of(&screen, &model, &view, 80, 24);
    CU_ASSERT(shows(&screen, "pwcd 1.2  256 of 3 nodes  tcp  up"));
    for (int i = 0; i < TOP_DAEMONS_MAX; i++)
        top_look_free(&looks[i]);
    top_screen_free(&screen);
    top_model_free(&model);
}

static void two_looks(struct top_model *model)
{
    const struct state now = {7, 12, {300, 800}, 90, 2, "job-a"};

    *model = (struct top_model){0};
    CU_ASSERT_EQUAL_FATAL(take(model, &first, 0), 0);
    CU_ASSERT_EQUAL_FATAL(take(model, &now, 2), 0);
}

static void sizes(void)
{
    static const struct {
        int width, height;
        const char *there, *gone; /* a column that is shown, and one that is not; or NULL */
    } rows[] = {
        {80, 24, "BYTES/S", "QUARANTINE"},
        {60, 15, "OPS/S", "MEMORY"},
        {200, 50, "SUBMIT", NULL},
        {200, 24, "ERRORS", "SUBMIT"},
        {40, 10, "OPS/S", "PID"},
        {20, 8, "JOB", "PID"},
        {80, 0, "SUBMIT", NULL},
        {80, 7, NULL, NULL},
        {80, 2, NULL, "JOB"},
        {80, 1, NULL, "JOB"},
        {10, 3, NULL, NULL},
        {500, 100, "AWAITS", NULL},
    };
    struct top_screen screen = {0};
    struct top_model model;
    struct top_view view;

    two_looks(&model);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        top_view_init(&view);
        for (int help = 0; help < 2; help++)
            for (int table = 0; table < TOP_TABLES; table++) {
                view.help = help == 1;
                view.table = (enum top_table)table;
                screen_of(&screen, &model, &view, rows[i].width, rows[i].height);
            }
        view.help = false;
        view.table = TOP_CLIENTS;
        screen_of(&screen, &model, &view, rows[i].width, rows[i].height);
        CU_ASSERT(!rows[i].there || shows(&screen, rows[i].there));
        CU_ASSERT(!rows[i].gone || !shows(&screen, rows[i].gone));
    }
    top_screen_free(&screen);
    top_model_free(&model);
}

static void lines(void)
{
    static const char *const expected[] = {
        "pwcd 1.2  node 0 of 3  tcp  pid 7  up 12.0s                             12:34:56",
        "cpu  50.0% [##########..........]  work 0/s  sleeps 0/s",
        "put 400/s  get 0/s  am 0/s  3.1K/s  direct 0/s",
        "in flight 10",
        "[1 clients 2]  2 queues 2   3 peers 2   4 users 2  sorted by OPS/S, most first",
        "CLIENT JOB      RANK  OPS/S BYTES/S EVENTS/S DIRECT/S FLIGHT WAITS    COMPUTES",
        "     1 job-a       1    300    2.3K        0        0      5 -               -",
        "     0 job-a       0    100     800        0        0      5 -               -",
    };
    struct top_screen screen = {0};
    struct top_model model;
    struct top_view view;

    two_looks(&model);
    top_view_init(&view);
    screen_of(&screen, &model, &view, 80, 24);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (!shows(&screen, expected[i]))
            printf("\nnot there: %s\n", expected[i]);
        CU_ASSERT_TRUE(shows(&screen, expected[i]));
    }
    view.table = TOP_QUEUES;
    screen_of(&screen, &model, &view, 80, 24);
    CU_ASSERT_TRUE(shows(&screen, "##--....")); /* a quarter is used, a half was at most */
    top_screen_free(&screen);
    top_model_free(&model);
}

/* Each key, and the table, column, order and first row after it. */
static void keys(void)
{
    static const struct {
        int key;
        enum top_table table;
        const char *sorted;
        bool ascending;
        json_int_t first; /* rank, node or user in the first row */
    } rows[] = {
        {0, TOP_CLIENTS, "OPS/S", false, 1},
        {'r', TOP_CLIENTS, "OPS/S", true, 0},
        {'>', TOP_CLIENTS, "BYTES/S", true, 0},
        {TOP_KEY_LEFT, TOP_CLIENTS, "OPS/S", true, 0},
        {'<', TOP_CLIENTS, "RANK", true, 0},
        {'r', TOP_CLIENTS, "RANK", false, 1},
        {'2', TOP_QUEUES, "BYTES/S", false, 1},
        {'\t', TOP_PEERS, "NODE", true, 1},
        {'r', TOP_PEERS, "NODE", false, 2},
        {'>', TOP_PEERS, "STATE", false, 1},
        {'r', TOP_PEERS, "STATE", true, 2},
        {'>', TOP_PEERS, "OUT/S", true, 1}, /* unknown values come last */
        {'r', TOP_PEERS, "OUT/S", false, 1},
        {'\t', TOP_USERS, "BYTES/S", false, 7},
        {'r', TOP_USERS, "BYTES/S", true, 0},
        {'\t', TOP_CLIENTS, "RANK", false, 1},
        {'x', TOP_CLIENTS, "RANK", false, 1},
    };
    struct top_model model;
    struct top_view view;

    two_looks(&model);
    top_view_init(&view);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct top_row **order;
        size_t count, key = 0;
        const struct top_column *column;

        CU_ASSERT_TRUE(rows[i].key == 0 || top_view_key(&view, &model, rows[i].key));
        CU_ASSERT_EQUAL(view.table, rows[i].table);
        column = top_columns(view.table, &count);
        CU_ASSERT_STRING_EQUAL(column[view.sort[view.table]].title, rows[i].sorted);
        CU_ASSERT_EQUAL(view.ascending[view.table], rows[i].ascending);
        order = top_view_order(&view, &model, view.table);
        CU_ASSERT_PTR_NOT_NULL_FATAL(order);
        while (strcmp(column[key].title, view.table == TOP_PEERS   ? "NODE"
                                         : view.table == TOP_USERS ? "UID"
                                                                   : "RANK") != 0)
            key++;
        if ((json_int_t)order[0]->cells[key].value != rows[i].first)
            printf("\nkey %zu: %g first\n", i, order[0]->cells[key].value);
        CU_ASSERT_EQUAL((json_int_t)order[0]->cells[key].value, rows[i].first);
        free(order);
    }
    CU_ASSERT_FALSE(top_view_key(&view, &model, 'q'));
    top_model_free(&model);
}

static void scrolling(void)
{
    static const struct {
        int key;
        size_t scroll;
    } rows[] = {{'k', 0},
                {'j', 1},
                {'j', 1},
                {TOP_KEY_UP, 0},
                {' ', 1},
                {TOP_KEY_HOME, 0},
                {TOP_KEY_PAGE_DOWN, 1},
                {TOP_KEY_PAGE_UP, 0}};
    struct top_screen screen = {0};
    struct top_model model, empty = {0};
    struct top_view view;

    two_looks(&model);
    top_view_init(&view);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CU_ASSERT_TRUE(top_view_key(&view, &model, rows[i].key));
        CU_ASSERT_EQUAL(view.scroll[TOP_CLIENTS], rows[i].scroll);
    }
    /* Rows that vanish leave no gap on the screen. */
    view.scroll[TOP_CLIENTS] = 100;
    screen_of(&screen, &model, &view, 80, 24);
    CU_ASSERT_TRUE(shows(&screen, "job-a"));
    screen_of(&screen, &empty, &view, 80, 24);
    CU_ASSERT_TRUE(top_view_key(&view, &empty, 'j'));
    CU_ASSERT_TRUE(top_view_key(&view, &empty, '>'));
    CU_ASSERT_TRUE(top_view_key(&view, &model, 'h'));
    CU_ASSERT_TRUE(view.help);
    CU_ASSERT_TRUE(top_view_key(&view, &model, '2')); /* any key ends help, and does no more */
    CU_ASSERT_FALSE(view.help);
    CU_ASSERT_EQUAL(view.table, TOP_CLIENTS);
    top_screen_free(&screen);
    top_model_free(&model);
}

int main(void)
{
    CU_TestInfo tests[] = {{"rates", rates},     {"joined", joined},
                           {"shares", shares},   {"contexts change", contexts_change},
                           {"parts", parts},     {"quiet", quiet},
                           {"still", still},     {"hints", hints},
                           {"daemons", daemons}, {"most daemons", as_many_daemons_as_there_may_be},
                           {"notes", notes},     {"nonsense", nonsense},
                           {"sizes", sizes},     {"lines", lines},
                           {"keys", keys},       {"scrolling", scrolling},
                           CU_TEST_INFO_NULL};

    return suite_run("top", tests);
}
