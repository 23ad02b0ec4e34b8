/* The library's tables of memory: free extents, spans of addresses, landings in regions, slots of
 * operations under way. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/memory/extents.h"
#include "clientlib/channel/pending.h"
#include "clientlib/memory/landings.h"
#include "clientlib/memory/spans.h"
#include "tests/suite.h"

/* ---- extents -------------------------------------------------------------------------------- */

static void test_extents_first_fit(void)
{
    struct extents e;
    uint64_t at;

    CU_ASSERT_EQUAL_FATAL(extents_init(&e, 1024), 0);
    CU_ASSERT_EQUAL(extents_take(&e, 0, 64, &at), -ENOMEM);
    CU_ASSERT_EQUAL(extents_take(&e, 1088, 64, &at), -ENOMEM);
    CU_ASSERT_EQUAL(extents_take(&e, 64, 64, &at), 0);
    CU_ASSERT_EQUAL(at, 0);
    CU_ASSERT_EQUAL(extents_take(&e, 256, 256, &at), 0); /* leaves a gap before it */
    CU_ASSERT_EQUAL(at, 256);
    CU_ASSERT_EQUAL(extents_take(&e, 64, 64, &at), 0);
    CU_ASSERT_EQUAL(at, 64);
    CU_ASSERT_EQUAL(extents_take(&e, 512, 64, &at), 0);
    CU_ASSERT_EQUAL(at, 512);
    CU_ASSERT_EQUAL(extents_take(&e, 192, 64, &at), -ENOMEM);
    CU_ASSERT_EQUAL(extents_take(&e, 128, 64, &at), 0);
    CU_ASSERT_EQUAL(at, 128);
    CU_ASSERT_EQUAL(e.count, 0);
    CU_ASSERT_EQUAL(extents_take(&e, 64, 64, &at), -ENOMEM);
    CU_ASSERT_EQUAL(extents_take(&e, UINT64_MAX, 64, &at), -ENOMEM);
    /* Gives extents back in such an order that they join the left one, the right one, and both. */
    extents_give(&e, 64, 64);
    extents_give(&e, 256, 256);
    CU_ASSERT_EQUAL(e.count, 2);
    extents_give(&e, 128, 128);
    CU_ASSERT_EQUAL(e.count, 1);
    extents_give(&e, 512, 512);
    CU_ASSERT_EQUAL(e.count, 1);
    extents_give(&e, 0, 64);
    CU_ASSERT_EQUAL(e.count, 1);
    CU_ASSERT_EQUAL(e.free[0].offset, 0);
    CU_ASSERT_EQUAL(e.free[0].length, 1024);
    CU_ASSERT_EQUAL(e.taken, 0);
    extents_destroy(&e);
}

/* Compares with a map of bytes: no byte is given out twice, and in the end all are free. */
static void test_extents_random(void)
{
    enum { SIZE = 4096, LIVE = 24, STEPS = 20000 };
    static uint8_t used[SIZE];
    struct extent live[LIVE] = {{0}};
    struct extents e;
    unsigned seed = 7, taken = 0;

    CU_ASSERT_EQUAL_FATAL(extents_init(&e, SIZE), 0);
    for (int step = 0; step < STEPS; step++) {
        struct extent *slot = &live[rand_r(&seed) % LIVE];
        uint64_t length = 1 + (uint64_t)rand_r(&seed) % 300;
        uint64_t align = UINT64_C(1) << rand_r(&seed) % 9;

        if (slot->length > 0) {
            memset(used + slot->offset, 0, slot->length);
            extents_give(&e, slot->offset, slot->length);
            slot->length = 0;
        } else if (extents_take(&e, length, align, &slot->offset) == 0) {
            slot->length = length;
            taken++;
            CU_ASSERT_EQUAL_FATAL(slot->offset % align, 0);
            CU_ASSERT_TRUE_FATAL(slot->offset + length <= SIZE);
            CU_ASSERT_PTR_NULL_FATAL(memchr(used + slot->offset, 1, length));
            memset(used + slot->offset, 1, length);
        }
    }
    CU_ASSERT_TRUE(taken > STEPS / 4);
    for (int i = 0; i < LIVE; i++)
        if (live[i].length > 0)
            extents_give(&e, live[i].offset, live[i].length);
    CU_ASSERT_EQUAL(e.count, 1);
    CU_ASSERT_EQUAL(e.free[0].length, SIZE);
    extents_destroy(&e);
}

/* ---- spans ---------------------------------------------------------------------------------- */

static void test_spans(void)
{
    static uint8_t shadow[4096];
    static const struct {
        uintptr_t start;
        uint64_t length;
        int result;
        uint32_t segment;
        uint64_t offset;
    } looks[] = {
        {0x10000, 1, 0, 1, 0},
        {0x10000, 0x1000, 0, 1, 0},
        {0x10000, 0x1001, -EFAULT, 0, 0},
        {0xffff, 1, -EFAULT, 0, 0},
        {0xffff, 2, -EFAULT, 0, 0},
        {0x10fff, 1, 0, 1, 0xfff},
        {0x10fff, 2, -EFAULT, 0, 0},
        {0x11000, 1, -EFAULT, 0, 0},
        {0x20000, 0x1000, 0, 2, 0x500},
        {0x20010, 16, 0, 2, 0x510},
        {0x21000, 16, 0, 3, 0}, /* touches the one before it */
        {0x20fff, 2, -EFAULT, 0, 0},
        {0x10010, UINT64_MAX, -EFAULT, 0, 0},
        {0, 1, -EFAULT, 0, 0},
        {UINTPTR_MAX, 1, -EFAULT, 0, 0},
    };
    static const struct span overlaps[] = {
        {.start = 0x10000, .length = 0x1000}, {.start = 0x10fff, .length = 1},
        {.start = 0xf000, .length = 0x1001},  {.start = 0xf000, .length = 0x100000},
        {.start = 0x10800, .length = 8},      {.start = 0x1ffff, .length = 2},
    };
    struct span_table table;
    struct span_view view = {0};
    uint32_t segment;
    uint64_t offset;
    uint8_t *copy;

    span_table_init(&table);
    CU_ASSERT_EQUAL(span_view_find(&view, &table, (void *)0x10000, 1, &segment, &offset, &copy),
                    -EFAULT);
    CU_ASSERT_EQUAL(span_table_add(&table, &(struct span){.start = 0x20000,
                                                          .length = 0x1000,
                                                          .offset = 0x500,
                                                          .segment = 2,
                                                          .shadow = shadow}),
                    0);
    CU_ASSERT_EQUAL(
        span_table_add(&table, &(struct span){.start = 0x21000, .length = 0x1000, .segment = 3}),
        0);
    CU_ASSERT_EQUAL(
        span_table_add(&table, &(struct span){.start = 0x10000, .length = 0x1000, .segment = 1}),
        0);
    for (size_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++)
        CU_ASSERT_EQUAL(span_table_add(&table, &overlaps[i]), -EEXIST);
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        int rc = span_view_find(&view, &table, (void *)looks[i].start, looks[i].length, &segment,
                                &offset, &copy);

        CU_ASSERT_EQUAL(rc, looks[i].result);
        if (rc < 0)
            continue;
        CU_ASSERT_EQUAL(segment, looks[i].segment);
        CU_ASSERT_EQUAL(offset, looks[i].offset);
        CU_ASSERT_PTR_EQUAL(copy, segment == 2 ? shadow + (looks[i].start - 0x20000) : NULL);
    }
    span_table_remove(&table, 0x20000);
    span_table_remove(&table, 0x20000);
    CU_ASSERT_EQUAL(table.table.count, 2);
    CU_ASSERT_EQUAL(span_view_find(&view, &table, (void *)0x20000, 1, &segment, &offset, &copy),
                    -EFAULT);
    CU_ASSERT_EQUAL(span_view_find(&view, &table, (void *)0x21000, 1, &segment, &offset, &copy), 0);
    span_view_destroy(&view);
    span_table_destroy(&table);
}

/* ---- landings ------------------------------------------------------------------------------- */

static void test_landings(void)
{
    static const struct {
        uint32_t slot, generation;
        uint64_t offset, length;
        int result;
    } looks[] = {
        {7, 1, 0, 100, 0},
        {7, 1, 99, 1, 0},
        {7, 1, 100, 0, 0},
        {7, 1, 100, 1, -EKEYREJECTED},
        {7, 1, 101, 0, -EKEYREJECTED},
        {7, 1, 1, UINT64_MAX, -EKEYREJECTED},
        {7, 1, UINT64_MAX, 1, -EKEYREJECTED},
        {7, 2, 0, 8, -EKEYREJECTED},
        {7, 0, 0, 8, -EKEYREJECTED},
        {6, 1, 0, 8, -EKEYREJECTED},
        {8, 1, 0, 8, -EKEYREJECTED},
        {3, 5, 40, 8, 0},
        {UINT32_MAX, UINT32_MAX, 0, 1, 0},
    };
    uint8_t memory[100], *at;
    struct landing_table table;
    struct landing_view view = {0};

    landing_table_init(&table);
    CU_ASSERT_EQUAL(landing_view_find(&view, &table, 0, 0, 0, 0, &at), -EKEYREJECTED);
    CU_ASSERT_EQUAL(landing_table_add(&table, 7, 1, memory, 100), 0);
    CU_ASSERT_EQUAL(landing_table_add(&table, 3, 5, memory, 50), 0);
    CU_ASSERT_EQUAL(landing_table_add(&table, UINT32_MAX, UINT32_MAX, memory, 1), 0);
    CU_ASSERT_EQUAL(landing_table_add(&table, 3, 5, memory, 50), -EEXIST);
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        int rc = landing_view_find(&view, &table, looks[i].slot, looks[i].generation,
                                   looks[i].offset, looks[i].length, &at);

        CU_ASSERT_EQUAL(rc, looks[i].result);
        if (rc == 0)
            CU_ASSERT_PTR_EQUAL(at, memory + looks[i].offset);
    }
    /* A slot is used again: a late removal of its earlier generation has no effect. */
    landing_table_remove(&table, 7, 1);
    CU_ASSERT_EQUAL(landing_table_add(&table, 7, 2, memory, 8), 0);
    landing_table_remove(&table, 7, 1);
    CU_ASSERT_EQUAL(landing_view_find(&view, &table, 7, 1, 0, 8, &at), -EKEYREJECTED);
    CU_ASSERT_EQUAL(landing_view_find(&view, &table, 7, 2, 0, 8, &at), 0);
    landing_view_destroy(&view);
    landing_table_destroy(&table);
}

/* ---- slots ---------------------------------------------------------------------------------- */

struct event_room {
    struct event_record event;
    uint8_t id[SESSION_ID_MAX];
};

static struct event_room end_of(int64_t slot, int status)
{
    return (struct event_room){
        .event = {.size = event_bytes(0),
                  .op = SUBMIT_GET | EVENT_SLOT,
                  .status = status,
                  .id = (uint64_t)slot},
    };
}

static void test_slots(void)
{
    enum { CAPACITY = 5 };
    uint8_t shadow[64], destination[64] = {0}, name[SESSION_ID_MAX];
    pwc_cid by_value = pwc_cid_u64(99), by_name = pwc_cid_bytes(name, sizeof(name));
    int64_t slots[CAPACITY];
    struct event_room end;
    struct pending_slots p;
    bool ended;

    memset(shadow, 0x11, sizeof(shadow));
    memset(name, 0x22, sizeof(name));
    CU_ASSERT_EQUAL_FATAL(pending_open(&p, CAPACITY * event_bytes(0)), 0);
    for (int i = 0; i < CAPACITY; i++) {
        slots[i] = pending_begin(&p, i == 1 ? &by_name : &by_value, i == 2 ? SUBMIT_NO_LCE : 0,
                                 destination, shadow, i == 4 ? 0 : 8);
        CU_ASSERT_EQUAL(slots[i], i);
    }
    CU_ASSERT_EQUAL(pending_begin(&p, &by_value, 0, NULL, NULL, 0), -EAGAIN);
    CU_ASSERT_EQUAL(p.busy, CAPACITY);

    end = end_of(slots[3], -EHOSTDOWN); /* a failed get moves no bytes */
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), 1);
    CU_ASSERT_EQUAL(end.event.id, 99);
    CU_ASSERT_EQUAL(end.event.op, SUBMIT_GET);
    CU_ASSERT_EQUAL(destination[0], 0);

    end = end_of(slots[2], 0); /* without an event, but its data arrives */
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), 0);
    CU_ASSERT_EQUAL(destination[7], 0x11);
    CU_ASSERT_EQUAL(destination[8], 0);

    end = end_of(slots[1], 0);
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), 1);
    CU_ASSERT_EQUAL(end.event.id_len, sizeof(name));
    CU_ASSERT_EQUAL(end.event.size, event_bytes(sizeof(name)));
    CU_ASSERT_EQUAL(memcmp(&end.event + 1, name, sizeof(name)), 0);

    /* A failed get is reported, also without a local event. */
    slots[2] = pending_begin(&p, &by_value, SUBMIT_NO_LCE, NULL, NULL, 0);
    CU_ASSERT_TRUE(slots[2] >= 1 && slots[2] <= 3);
    end = end_of(slots[2], -ERANGE);
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), 1);

    /* Ends of gets that are not under way. */
    end = end_of(slots[2], 0);
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), -EPROTO);
    end = end_of(CAPACITY, 0);
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), -EPROTO);
    end = end_of(-1, 0);
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), -EPROTO);
    end = end_of(slots[0], 0);
    end.event.id_len = 8;
    CU_ASSERT_EQUAL(pending_settle(&p, &end.event, &ended), -EPROTO);

    pending_cancel(&p, (uint32_t)slots[0]);
    CU_ASSERT_EQUAL(p.busy, 1);
    CU_ASSERT_EQUAL(pending_begin(&p, &by_value, 0, NULL, NULL, 0), slots[0]);
    pending_close(&p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"extents: first fit, joined again", test_extents_first_fit},
        {"extents: against a map of bytes", test_extents_random},
        {"spans: from address to segment", test_spans},
        {"landings: from region to address", test_landings},
        {"slots of operations in flight", test_slots},
        CU_TEST_INFO_NULL,
    };

    return suite_run("memory", tests);
}
