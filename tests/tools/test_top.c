/* The screen of pwcctl top, without a terminal: rates, restarts, order, what fits; and keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcctl/top/layout.h"
#include "tests/suite.h"

/* Builds a daemon's answer from a few numbers. */
struct state {
    int pid;
    double uptime;
    json_int_t puts[2]; /* of two contexts */
    json_int_t records;
    int clients; /* of these, from the first */
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
        .clients = json_pack("{s:[]}", "clients"),
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
                              json_pack("{s:i,s:s,s:i,s:i,s:i,s:I,s:n}", "client", i, "job", s->job,
                                        "rank", i, "pid", 100 + i, "sessions", 1, "bytes",
                                        (json_int_t)(4096 << i), "quarantine"));
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
    int rc = top_model_take(model, &look, at);

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
        /* another took the number: its counters are less */
        {{7, 11, {99, 200}, 50, 2, "job-a"}, 1, {false, true}, {0, 0}},
        /* one is gone */
        {{7, 11, {101, 0}, 50, 1, "job-a"}, 1, {true, false}, {1, 0}},
        /* no time has passed */
        {{7, 10, {101, 200}, 50, 2, "job-a"}, 0, {false, false}, {0, 0}},
        /* started again: as another process, or so early that it must have been */
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

    /* JSON cannot hold such bytes, so a daemon would never send them. Other bytes that are not
     * printable may come. */
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
    /* Node 0 is itself; 1 has ledgers; 2 has none, and a reason. */
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

static void notes(void)
{
    struct state again = first;
    struct top_model model = {0};

    CU_ASSERT_EQUAL(take(&model, &first, 100), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    top_model_miss(&model, "Connection refused", 103);
    CU_ASSERT_STRING_EQUAL(model.note,
                           "no answer: Connection refused; what stands here is 3 s old");
    CU_ASSERT_EQUAL(model.tables[TOP_CLIENTS].count, 2); /* it stays */
    again.uptime = 14;
    CU_ASSERT_EQUAL(take(&model, &again, 104), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    again.pid = 8;
    CU_ASSERT_EQUAL(take(&model, &again, 105), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "the daemon was started anew: process 8, was 7");
    CU_ASSERT_EQUAL(take(&model, &again, 106), 0);
    CU_ASSERT_NOT_EQUAL(model.note[0], '\0'); /* long enough to be read */
    CU_ASSERT_EQUAL(take(&model, &again, 116), 0);
    CU_ASSERT_STRING_EQUAL(model.note, "");
    top_model_free(&model);
}

/* An answer that makes no sense changes nothing. */
static void nonsense(void)
{
    static const char *const wrong[] = {"null", "[]", "{\"queues\":3}", "{\"queues\":{}}"};
    struct top_model model = {0};

    CU_ASSERT_EQUAL(take(&model, &first, 0), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct top_look look = look_of(&first);

        json_decref(look.queues);
        look.queues = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        CU_ASSERT_EQUAL(top_model_take(&model, &look, 1), -EBADMSG);
        CU_ASSERT_EQUAL(model.tables[TOP_QUEUES].count, 2);
        top_look_free(&look);
    }
    /* Rows that are not objects count as rows without any field. */
    struct top_look look = look_of(&first);
    json_array_append_new(json_object_get(look.queues, "queues"), json_integer(3));
    json_array_append_new(json_object_get(look.ledgers, "ledgers"), json_null());
    CU_ASSERT_EQUAL(top_model_take(&model, &look, 1), 0);
    top_look_free(&look);
    top_model_free(&model);
}

/* ---- the view -------------------------------------------------------------------------------- */

/* Draws a screen of this size: it has as many lines, and none is longer. */
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
        const char *there, *gone; /* a column, or NULL */
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
        "[1 clients 2]   2 queues 2    3 peers 2   sorted by OPS/S, most first",
        "CLIENT JOB      RANK     PID  OPS/S BYTES/S EVENTS/S DIRECT/S FLIGHT  MEMORY",
        "     1 job-a       1     101    300    2.3K        0        0      5    8.0K",
        "     0 job-a       0     100    100     800        0        0      5    4.0K",
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
    CU_ASSERT_TRUE(shows(&screen, "##---....")); /* a quarter used, a half at its fullest */
    top_screen_free(&screen);
    top_model_free(&model);
}

/* Each key, and the table, column, order and first row that follow from it. */
static void keys(void)
{
    static const struct {
        int key;
        enum top_table table;
        const char *sorted;
        bool ascending;
        json_int_t first; /* rank, or node */
    } rows[] = {
        {0, TOP_CLIENTS, "OPS/S", false, 1},    {'r', TOP_CLIENTS, "OPS/S", true, 0},
        {'>', TOP_CLIENTS, "BYTES/S", true, 0}, {TOP_KEY_LEFT, TOP_CLIENTS, "OPS/S", true, 0},
        {'<', TOP_CLIENTS, "PID", true, 0},     {'<', TOP_CLIENTS, "RANK", true, 0},
        {'r', TOP_CLIENTS, "RANK", false, 1},   {'2', TOP_QUEUES, "BYTES/S", false, 1},
        {'\t', TOP_PEERS, "NODE", true, 1},     {'r', TOP_PEERS, "NODE", false, 2},
        {'>', TOP_PEERS, "STATE", false, 1},    {'r', TOP_PEERS, "STATE", true, 2},
        {'>', TOP_PEERS, "OUT/S", true, 1}, /* what is not known stands below */
        {'r', TOP_PEERS, "OUT/S", false, 1},    {'\t', TOP_CLIENTS, "RANK", false, 1},
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
        while (strcmp(column[key].title, view.table == TOP_PEERS ? "NODE" : "RANK") != 0)
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
    /* Rows that go away leave no gap on the screen. */
    view.scroll[TOP_CLIENTS] = 100;
    screen_of(&screen, &model, &view, 80, 24);
    CU_ASSERT_TRUE(shows(&screen, "job-a"));
    screen_of(&screen, &empty, &view, 80, 24);
    CU_ASSERT_TRUE(top_view_key(&view, &empty, 'j'));
    CU_ASSERT_TRUE(top_view_key(&view, &empty, '>'));
    CU_ASSERT_TRUE(top_view_key(&view, &model, 'h'));
    CU_ASSERT_TRUE(view.help);
    CU_ASSERT_TRUE(top_view_key(&view, &model, '2')); /* any key ends help, and no more */
    CU_ASSERT_FALSE(view.help);
    CU_ASSERT_EQUAL(view.table, TOP_CLIENTS);
    top_screen_free(&screen);
    top_model_free(&model);
}

int main(void)
{
    CU_TestInfo tests[] = {{"rates", rates},       {"joined", joined},       {"notes", notes},
                           {"nonsense", nonsense}, {"sizes", sizes},         {"lines", lines},
                           {"keys", keys},         {"scrolling", scrolling}, CU_TEST_INFO_NULL};

    return suite_run("top", tests);
}
