/* Owns nothing: writes rows as JSON (json.h). Thread: any. */
#include "views/json.h"
#include "proto/clock.h"

#include <errno.h>
#include <string.h>

void json_put(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

void json_put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, text ? json_string(text) : json_null());
}

json_t *json_array_in(json_t *document, const char *key)
{
    json_t *array = json_object_get(document, key);

    if (!array) {
        array = json_array();
        json_object_set_new(document, key, array);
    }
    return array;
}

json_t *json_row_in(json_t *array)
{
    json_t *row = json_object();

    json_array_append_new(array, row);
    return row;
}

static const char *word_of(const char *const *words, uint64_t which)
{
    for (uint64_t i = 0; words[i]; i++)
        if (i == which)
            return words[i];
    return "unknown";
}

static void put_field(json_t *to, const void *row, const struct field *f)
{
    const void *at = (const char *)row + f->offset;

    switch (f->kind) {
    case FIELD_NOW:
    case FIELD_COUNT:
        json_put(to, f->key, counters_word(at));
        break;
    case FIELD_FLAG:
        json_object_set_new(to, f->key, json_boolean(counters_word(at) != 0));
        break;
    case FIELD_WORD:
        json_put_text(to, f->key, word_of(f->words, counters_word(at)));
        break;
    case FIELD_TEXT:
        json_put_text(to, f->key, *(const char *const *)at);
        break;
    case FIELD_CHARS:
        json_put_text(to, f->key, at);
        break;
    case FIELD_OTHER:
        break;
    }
}

void json_put_fields(json_t *to, const void *row, size_t bytes, const struct field *fields)
{
    for (const struct field *f = fields; f->key; f++)
        if (f->offset + sizeof(uint64_t) <= bytes)
            put_field(to, row, f);
}

void json_put_peer(json_t *row, uint32_t number, uint32_t nodes, uint32_t engines)
{
    json_put(row, "node", nodes > 0 ? number % nodes : number);
    if (nodes > 0 && (engines > 1 || number >= nodes))
        json_put(row, "peer_engine", number / nodes);
}

/* ---- the text -------------------------------------------------------------------------------- */

#define SHORT_ARRAY 64u /* rows that are never left out */

/* Leaves out rows so that about `max` of `length` characters stay, all long arrays losing the same
 * part. Returns false where no array is long. */
static bool shorten(json_t *document, size_t length, size_t max)
{
    bool shortened = false;
    const char *key;
    json_t *array;

    json_object_foreach(document, key, array)
    {
        size_t rows = json_array_size(array);
        /* Rows at the end may be shorter than others: a little more goes than the mean demands. */
        size_t kept = (size_t)((double)rows * (double)max / (double)length * 15 / 16);

        kept = kept > SHORT_ARRAY ? kept : SHORT_ARRAY;
        for (; rows > kept; rows--, shortened = true)
            json_array_remove(array, rows - 1);
    }
    return shortened;
}

char *json_text(json_t *document, size_t max)
{
    for (;;) {
        char *text = json_dumps(document, JSON_COMPACT);
        size_t length = text ? strlen(text) : 0;

        if (length <= max)
            return text;
        free(text);
        if (!shorten(document, length, max))
            return NULL;
        json_object_set_new(document, "truncated", json_true());
    }
}

/* ---- the counters ---------------------------------------------------------------------------- */

static bool rows_fit(size_t size, uint32_t offset, uint32_t row_bytes, uint32_t rows)
{
    return offset % 8 == 0 && row_bytes % 8 == 0 && row_bytes >= sizeof(uint64_t) &&
           offset <= size && rows <= (size - offset) / row_bytes;
}

int counters_check(const struct counters_header *h, size_t size)
{
    if (size < sizeof(*h))
        return -EBADMSG;
    if (h->magic != COUNTERS_MAGIC || h->version != COUNTERS_VERSION)
        return -EPROTONOSUPPORT;
    return rows_fit(size, h->session_offset, h->session_row_bytes, h->session_rows) &&
                   rows_fit(size, h->peer_offset, h->peer_row_bytes, h->peer_rows)
               ? 0
               : -EBADMSG;
}

void json_put_daemon(json_t *document, const struct counters_header *h)
{
    uint64_t now = now_ns(), updated = atomic_load_explicit(&h->updated_ns, memory_order_relaxed);

    json_put(document, "pid", h->pid);
    json_put(document, "node", h->node);
    json_put(document, "nodes", h->nodes);
    json_object_set_new(document, "provider",
                        json_stringn(h->provider, strnlen(h->provider, sizeof(h->provider))));
    json_put(document, "uptime_ns", now - h->started_ns);
    json_put(document, "age_ns", now > updated ? now - updated : 0);
    json_put_fields(document, h, h->session_offset, fields_daemon);
    json_put_fields(document, h, h->session_offset, fields_step);
}

bool json_put_sessions(json_t *document, const char *key, const struct counters_header *h,
                       size_t max, counters_shows *shows, void *context)
{
    json_t *array = json_array_in(document, key);

    for (uint32_t i = 0; i < h->session_rows; i++) {
        const struct counters_session *s =
            (const void *)((const char *)h + h->session_offset + (size_t)i * h->session_row_bytes);
        uint64_t name = counters_word(&s->session);
        json_t *row;

        if (name == 0 || (shows && !shows(context, s)))
            continue;
        if (json_array_size(array) == max)
            return true;
        row = json_row_in(array);
        if (h->engines > 1)
            json_put(row, "engine", name >> 32);
        json_put(row, "session", (uint32_t)name - 1);
        json_put_fields(row, s, h->session_row_bytes, fields_session);
    }
    return false;
}

const struct counters_peer *counters_next_peer(const struct counters_header *h, uint32_t *at)
{
    while (*at < h->peer_rows) {
        const struct counters_peer *p =
            (const void *)((const char *)h + h->peer_offset + (size_t)*at * h->peer_row_bytes);

        ++*at;
        if (counters_word(&p->node) != 0)
            return p;
    }
    return NULL;
}

bool json_put_peers(json_t *document, const char *key, const struct counters_header *h, size_t max)
{
    json_t *array = json_array_in(document, key);
    const struct counters_peer *p;

    for (uint32_t at = 0; (p = counters_next_peer(h, &at));) {
        uint64_t name = counters_word(&p->node);
        json_t *row;

        if (json_array_size(array) == max)
            return true;
        row = json_row_in(array);
        if (h->engines > 1)
            json_put(row, "engine", name >> 32);
        json_put_peer(row, (uint32_t)name - 1, h->nodes, h->engines);
        json_put_fields(row, p, h->peer_row_bytes, fields_peer);
    }
    return false;
}
