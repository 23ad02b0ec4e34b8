/* A table of keys and values in the region: insert, get and delete by messages (the key-value store
 * of the sPIN paper). A search that takes more than STEPS slots is left to the client. */
#include <pwc/handler.h>

enum { VALUE_MAX = 48, STEPS = 8 };
enum key_value_op { KV_GET = 0, KV_INSERT = 1, KV_DELETE = 2 };
enum slot_use { EMPTY = 0, USED = 1, DELETED = 2 };

struct slot {
    uint64_t key;
    uint32_t use, length;
    unsigned char value[VALUE_MAX];
};

struct key_value {
    uint64_t slots; /* of the table: a power of two */
    uint64_t used;
};

static struct slot *slot_at(const struct key_value *s, uint64_t key, uint64_t step)
{
    uint64_t first = pwc_h_hash(&key, sizeof(key));

    return (struct slot *)pwc_h_host(((first + step) & (s->slots - 1)) * sizeof(struct slot));
}

static int reply(uint64_t found, const void *value, uint64_t length)
{
    return pwc_h_reply(&found, 1, value, length) == PWC_H_EAGAIN ? PWC_H_AGAIN : PWC_H_DROP;
}

/* Returns the key's slot. Where there is none, sets *end, and returns the slot where the key may be
 * put. Returns NULL if the search is too long. */
static struct slot *find_slot(const struct key_value *s, uint64_t key, uint64_t *end)
{
    struct slot *room = 0;

    *end = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        struct slot *slot = slot_at(s, key, step);

        if (slot->use == USED && slot->key == key)
            return slot;
        if (slot->use != USED && !room)
            room = slot;
        if (slot->use == EMPTY) {
            *end = 1;
            return room;
        }
    }
    return 0;
}

static int insert(struct key_value *s, uint64_t key, const struct pwc_h_packet *p)
{
    uint64_t is_new;
    struct slot *slot = find_slot(s, key, &is_new);

    if (p->length > VALUE_MAX)
        return PWC_H_FAIL;
    if (!slot)
        return PWC_H_DEFER;
    pwc_h_copy(slot->value, p->data, p->length);
    slot->length = (uint32_t)p->length;
    slot->key = key;
    slot->use = USED;
    s->used += is_new;
    return reply(1, 0, 0);
}

/* Arguments of a request: operation, key; the payload is the value to insert. The reply's argument
 * says whether there is such a key; its payload is the value. */
PWC_HANDLER int header(const struct pwc_h_packet *p, struct key_value *s)
{
    const uint64_t *args = p->header;
    uint64_t op = args[0], key = args[1], is_end;
    struct slot *slot;
    int r;

    if (op == KV_INSERT)
        return insert(s, key, p);
    slot = find_slot(s, key, &is_end);
    if (!slot)
        return PWC_H_DEFER;
    if (is_end)
        return reply(0, 0, 0);
    if (op == KV_GET)
        return reply(1, slot->value, slot->length);
    r = reply(1, 0, 0);
    if (r == PWC_H_AGAIN) /* this handler runs again, and must find the key again */
        return r;
    slot->use = DELETED;
    s->used--;
    return r;
}
