/* Finds fields of messages by the descriptors of protobuf-c (field.h). */
#include "tests/control/lib/field.h"

#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 128 };

static void store(void *at, const ProtobufCFieldDescriptor *field, const struct field_value *value)
{
    static uint8_t bytes[FIELD_BYTES_MAX];
    ProtobufCBinaryData data = {.len = value->number, .data = bytes};
    const char *text = value->text ? value->text : "";

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        memcpy(at, &text, sizeof(text));
        break;
    case PROTOBUF_C_TYPE_BYTES:
        memset(bytes, 'x', sizeof(bytes));
        memcpy(at, &data, sizeof(data));
        break;
    case PROTOBUF_C_TYPE_UINT64:
        memcpy(at, &value->number, sizeof(uint64_t));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = value->number != 0;
        break;
    default:
        memcpy(at, &value->number, sizeof(uint32_t)); /* (u)int32 */
        break;
    }
}

bool field_set(ProtobufCMessage *message, const char *path, const struct field_value *value)
{
    char name[PATH_MAX_BYTES];
    size_t length = strcspn(path, ".");
    const ProtobufCFieldDescriptor *field;
    ProtobufCMessage *below;

    snprintf(name, sizeof(name), "%.*s", (int)length, path);
    field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (!field)
        return false;
    if (path[length] == '\0') {
        store((uint8_t *)message + field->offset, field, value);
        return true;
    }
    memcpy(&below, (uint8_t *)message + field->offset, sizeof(below));
    return below && field_set(below, path + length + 1, value);
}

static void walk(const ProtobufCMessageDescriptor *d, const char *before,
                 void (*visit)(void *context, const char *path), void *context)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        char path[PATH_MAX_BYTES];

        if (snprintf(path, sizeof(path), "%s%s%s", before, *before ? "." : "", d->fields[i].name) >=
            (int)sizeof(path))
            continue;
        if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            walk(d->fields[i].descriptor, path, visit, context);
        else
            visit(context, path);
    }
}

void field_walk(const ProtobufCMessageDescriptor *descriptor,
                void (*visit)(void *context, const char *path), void *context)
{
    walk(descriptor, "", visit, context);
}

void field_print(const char *path, const struct field_value *value)
{
    if (value->text)
        fprintf(stderr, "%s = \"%s\"\n", path, value->text);
    else
        fprintf(stderr, "%s = %llu\n", path, (unsigned long long)value->number);
}
