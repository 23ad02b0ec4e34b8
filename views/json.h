/*
 * Writes rows as JSON, by their tables of fields (fields.h).
 *
 * Thread: any; a document belongs to its owner's thread.
 */
#ifndef PWC_VIEWS_JSON_H
#define PWC_VIEWS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/counters_abi.h"
#include "views/fields.h"

void json_put(json_t *object, const char *key, uint64_t value);
/* Makes a JSON string; NULL becomes null. */
void json_put_text(json_t *object, const char *key, const char *text);
/* Returns the document's array of that name, which is made if it is missing. */
json_t *json_array_in(json_t *document, const char *key);
/* Appends a new object to the array and returns it. */
json_t *json_row_in(json_t *array);

/* Writes the document as text of at most `max` characters, to be freed. Where it would be longer,
 * the long arrays lose rows at their ends, and the document gets "truncated". NULL: there is no
 * memory, or the rest alone is too long. */
char *json_text(json_t *document, size_t max);

/* Adds the fields that lie within the row's `bytes`: an older daemon's rows have fewer fields. */
void json_put_fields(json_t *to, const void *row, size_t bytes, const struct field *fields);

/* Adds a peer's node by its number, and its engine where the node has several. */
void json_put_peer(json_t *row, uint32_t number, uint32_t nodes, uint32_t engines);

/* Checks a counters file of `size` bytes before its use. -EPROTONOSUPPORT: another version;
 * -EBADMSG: its rows do not fit into it. */
int counters_check(const struct counters_header *counters, size_t size);
void json_put_daemon(json_t *document, const struct counters_header *counters);
/* Add up to `max` peers, or sessions that `shows` accepts (NULL: all), as an array named `key`.
 * True: there are more. */
typedef bool counters_shows(void *context, const struct counters_session *session);
bool json_put_sessions(json_t *document, const char *key, const struct counters_header *counters,
                       size_t max, counters_shows *shows, void *context);
bool json_put_peers(json_t *document, const char *key, const struct counters_header *counters,
                    size_t max);

/* Goes through the rows of peers; `*at` counts them. NULL after the last one. */
const struct counters_peer *counters_next_peer(const struct counters_header *counters,
                                               uint32_t *at);

#endif
