/* Owns the view of the configuration (request_config.h). Thread: control. */
#include "daemon/control/watch/request_config.h"

#include <string.h>

/* Makes a JSON string. A path may not be UTF-8. */
static json_t *string_of(const char *text)
{
    json_t *string = text ? json_string(text) : json_null();

    return string ? string : json_string("(no UTF-8)");
}

/* The bound in use: `limit`, or `all` where there is no limit; JSON's null where both are
 * UINT64_MAX. */
static json_t *limit_of(uint64_t limit, uint64_t all)
{
    return limit < UINT64_MAX ? json_integer((json_int_t)limit)
           : all < UINT64_MAX ? json_integer((json_int_t)all)
                              : json_null();
}

/* The value in use of a key for which the daemon may choose the value. NULL: the key is no such
 * key. */
static json_t *settled(const struct control *control, const struct config_key *key)
{
    const struct engine_config *engine = &control->engine;
    const struct {
        const char *name;
        uint64_t limit, all;
    } numbers[] = {
        {"node", control->node, 0},
        {"client-binds", engine->binds_client, 0},
        {"client-pairs", engine->pairs_client, 0},
        {"client-queue", (uint64_t)engine->chunks_client * ENGINE_CHUNK_BYTES, 0},
        {"user-clients", control->user_limits[QUOTA_CLIENTS], engine->clients_max},
        {"user-memory", control->user_limits[QUOTA_MEMORY], UINT64_MAX},
        {"user-segments", control->user_limits[QUOTA_SEGMENTS], engine->segments_max},
        {"user-contexts", control->user_limits[QUOTA_CONTEXTS], engine->sessions_max},
        {"user-regions", control->user_limits[QUOTA_REGIONS], engine->regions_max},
        {"user-teams", control->user_limits[QUOTA_TEAMS], UINT64_MAX},
        {"user-binds", engine->binds_user, 0},
        {"user-pairs", engine->pairs_user, 0},
        {"user-queue", (uint64_t)engine->chunks_user * ENGINE_CHUNK_BYTES, 0},
    };
    const struct {
        const char *name, *text;
    } texts[] = {
        {"socket", control->socket.path},
        {"provider", control->provider},
        {"address", control->config->address ? control->config->address : key->unset},
    };

    if (strcmp(key->name, "auth") == 0 && control->node_count > 1)
        return string_of(control->identity.auth == HANDSHAKE_AUTH_MUNGE ? "munge" : "secret");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(key->name, texts[i].name) == 0)
            return string_of(texts[i].text);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(key->name, numbers[i].name) == 0)
            return limit_of(numbers[i].limit, numbers[i].all);
    return NULL;
}

static json_t *value_of(const struct control *control, const struct config_key *key)
{
    json_t *value = settled(control, key);
    char text[CONFIG_TEXT_MAX];

    if (value)
        return value;
    if (key->kind == CONFIG_STRING)
        return string_of(config_string(control->config, key));
    if (key->kind != CONFIG_CHOICE)
        return json_integer((json_int_t)config_number(control->config, key));
    config_text(control->config, key, text, sizeof(text));
    return string_of(text);
}

void request_config_put(json_t *document, struct control *control)
{
    json_t *rows = json_array();

    json_object_set_new(document, "config", rows);
    for (const struct config_key *key = config_keys(); key->name; key++) {
        char place[CONFIG_TEXT_MAX];
        json_t *row = json_object();

        config_place(control->config, key, place, sizeof(place));
        json_array_append_new(rows, row);
        json_object_set_new(row, "key", json_string(key->name));
        json_object_set_new(row, "value", value_of(control, key));
        json_object_set_new(row, "source", json_string(config_source(control->config, key)));
        json_object_set_new(row, "place", string_of(*place ? place : NULL));
    }
}
