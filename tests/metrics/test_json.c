/* The text of documents whose rows do not fit into a reply. One thread. */
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "views/json.h"

enum { ROWS = 1024, REPLY_MAX = 1 << 20 /* of control.proto */ };
#define FIFTEEN_DIGITS UINT64_C(999999999999999)

/* A counters file in memory, whose rows are all in use, with long values. */
struct counters {
    struct counters_header header;
    struct counters_session sessions[ROWS];
    struct counters_peer peers[ROWS];
};

static struct counters *full_counters(void)
{
    struct counters *c = malloc(sizeof(*c));
    uint64_t *words = (uint64_t *)(void *)c;

    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    for (size_t i = 0; i < sizeof(*c) / sizeof(*words); i++)
        words[i] = FIFTEEN_DIGITS;
    c->header.engines = 2;
    c->header.nodes = ROWS;
    c->header.session_offset = offsetof(struct counters, sessions);
    c->header.session_row_bytes = sizeof(c->sessions[0]);
    c->header.peer_offset = offsetof(struct counters, peers);
    c->header.peer_row_bytes = sizeof(c->peers[0]);
    c->header.session_rows = c->header.peer_rows = ROWS;
    for (unsigned i = 0; i < ROWS; i++) {
        c->sessions[i].session = c->peers[i].node = i + 1;
        c->sessions[i].waits = c->peers[i].state = 1;
    }
    return c;
}

/* Guards that a reply has as many rows as fit, from the first one on, and says that there are more.
 */
static void long_documents(void)
{
    static const struct {
        uint32_t rows; /* of sessions, and of peers */
        bool truncated;
    } rows[] = {{0, false}, {64, false}, {256, false}, {512, true}, {ROWS, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct counters *c = full_counters();
        json_t *document = json_object(), *back;
        size_t sessions, peers;
        char *text;

        json_put_sessions(document, "sessions", &c->header, rows[i].rows, NULL, NULL);
        json_put_peers(document, "peers", &c->header, rows[i].rows);
        text = json_text(document, REPLY_MAX);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        CU_ASSERT(strlen(text) <= REPLY_MAX);
        CU_ASSERT(!rows[i].truncated || strlen(text) > REPLY_MAX / 4 * 3);
        back = json_loads(text, 0, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(back);
        CU_ASSERT_EQUAL(json_is_true(json_object_get(back, "truncated")), rows[i].truncated);
        sessions = json_array_size(json_object_get(back, "sessions"));
        peers = json_array_size(json_object_get(back, "peers"));
        CU_ASSERT_EQUAL(sessions, peers);
        CU_ASSERT(rows[i].truncated ? sessions < rows[i].rows : sessions == rows[i].rows);
        for (size_t r = 0; r < sessions; r++) {
            const json_t *row = json_array_get(json_object_get(back, "sessions"), r);

            CU_ASSERT_EQUAL(json_integer_value(json_object_get(row, "session")), (json_int_t)r);
        }
        json_decref(back);
        json_decref(document);
        free(text);
        free(c);
    }
}

/* Guards that a document which is too long without its rows has no text. */
static void no_text(void)
{
    json_t *document = json_pack("{s:s, s:[i, i]}", "name", "longer than that", "rows", 1, 2);

    CU_ASSERT_PTR_NULL(json_text(document, 16));
    CU_ASSERT_EQUAL(json_array_size(json_object_get(document, "rows")), 2);
    json_decref(document);
}

int main(void)
{
    CU_TestInfo tests[] = {{"documents that are too long", long_documents},
                           {"a document without text", no_text},
                           CU_TEST_INFO_NULL};

    return suite_run("json", tests);
}
