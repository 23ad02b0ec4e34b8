/*
 * Sets fields of a control message by name, so that a table can put a bad value into each. A
 * field's name is a path, as "bind.key.slot". Thread: any.
 */
#ifndef PWC_TESTS_CONTROL_FIELD_H
#define PWC_TESTS_CONTROL_FIELD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#define FIELD_BYTES_MAX (1u << 20)

/* The value for a field: `text` for a string, `number` for a number. For a bytes field `number` is
 * its length, and all its bytes are 'x'. */
struct field_value {
    uint64_t number;
    const char *text;
};

/* Finds the field at `path`; all messages on the way must be present. Returns false if there is no
 * such field. */
bool field_set(ProtobufCMessage *message, const char *path, const struct field_value *value);
/* Calls `visit` for each plain field of the message and the messages in it, with the field's
 * path. */
void field_walk(const ProtobufCMessageDescriptor *descriptor,
                void (*visit)(void *context, const char *path), void *context);
/* Prints path and value, for a failed check. */
void field_print(const char *path, const struct field_value *value);

#endif
