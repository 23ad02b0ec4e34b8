/*
 * Fields of a control message by name, so that a table can put a bad value into each: a path is
 * "bind.key.slot". Thread: any.
 */
#ifndef PWC_TESTS_CONTROL_FIELD_H
#define PWC_TESTS_CONTROL_FIELD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#define FIELD_BYTES_MAX (1u << 20)

/* A string where `text` is given; for bytes `number` is the length of a row of 'x'. */
struct field_value {
    uint64_t number;
    const char *text;
};

/* All messages on the way must be there. False: no such field. */
bool field_set(ProtobufCMessage *message, const char *path, const struct field_value *value);
/* Each plain field below, with its path. */
void field_walk(const ProtobufCMessageDescriptor *descriptor,
                void (*visit)(void *context, const char *path), void *context);
/* A value as a failure prints it. */
void field_print(const char *path, const struct field_value *value);

#endif
