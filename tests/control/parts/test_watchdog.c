/*
 * The watchdog decides by the engines' rounds whether they live: which engine it wakes, and when it
 * reports to the manager. Also the check for an engine that spins in a call that does not return.
 */
#include <stdio.h>
#include "daemon/control/threads/spin_watch.h"
#include "daemon/control/watch/watchdog.h"
#include "tests/suite.h"

enum { LOOKS = 8 };

/* The rounds of one or two engines at each look, and what the watchdog then does. */
static const struct trace {
    const char *what;
    uint32_t engines;
    uint64_t rounds[2][LOOKS];
    const char *woken[2]; /* x: woken at this look */
    const char *notified; /* x: the manager is notified at this look */
    const char *missed;   /* looks that the first engine has missed */
} traces[] = {
    {"busy", 1, {{9, 20, 31, 40, 55, 61, 70, 88}}, {"--------"}, "xxxxxxxx", "00000000"},
    {"one round between looks",
     1,
     {{1, 2, 3, 4, 5, 6, 7, 8}},
     {"--------"},
     "xxxxxxxx",
     "00000000"},
    {"idle, answers", 1, {{1, 1, 2, 2, 3, 3, 4, 4}}, {"-x-x-x-x"}, "x-x-x-x-", "00000000"},
    {"idle, answers late", 1, {{1, 1, 1, 1, 2, 2, 2, 3}}, {"-xxx-xx-"}, "x---x--x", "00120010"},
    {"never went round", 1, {{0, 0, 0, 0, 0, 0, 0, 0}}, {"xxxxxxxx"}, "--------", "01234567"},
    {"stuck after work", 1, {{7, 8, 8, 8, 8, 8, 8, 8}}, {"--xxxxxx"}, "xx------", "00012345"},
    {"stuck for a while", 1, {{7, 8, 8, 8, 8, 9, 9, 10}}, {"--xxx-x-"}, "xx---x-x", "00012000"},
    {"counts over the end",
     1,
     {{UINT64_MAX, 0, 1, 2, 3, 4, 5, 6}},
     {"--------"},
     "xxxxxxxx",
     "00000000"},
    {"busy beside idle",
     2,
     {{5, 6, 7, 8, 9, 10, 11, 12}, {1, 1, 2, 2, 3, 3, 4, 4}},
     {"--------", "-x-x-x-x"},
     "x-x-x-x-",
     "00000000"},
    {"stuck beside busy",
     2,
     {{5, 5, 5, 5, 5, 5, 5, 5}, {1, 2, 3, 4, 5, 6, 7, 8}},
     {"-xxxxxxx", "--------"},
     "x-------",
     "00123456"},
    {"both idle",
     2,
     {{5, 5, 6, 6, 7, 7, 8, 8}, {3, 3, 4, 4, 5, 5, 6, 6}},
     {"-x-x-x-x", "-x-x-x-x"},
     "x-x-x-x-",
     "00000000"},
    {"answer at different looks",
     2,
     {{5, 6, 6, 6, 7, 7, 7, 8}, {3, 3, 3, 4, 4, 4, 5, 5}},
     {"--------", "-xx-xx-x"},
     "x--x--x-",
     "00000000"},
};

static void test_traces(void)
{
    for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
        const struct trace *t = &traces[i];
        char woken[2][LOOKS + 1] = {"", ""}, notified[LOOKS + 1] = "", missed[LOOKS + 1] = "";
        struct watchdog h;

        watchdog_init(&h, t->engines);
        for (int look = 0; look < LOOKS; look++) {
            for (uint32_t e = 0; e < t->engines; e++)
                woken[e][look] = watchdog_look(&h, e, t->rounds[e][look]) ? 'x' : '-';
            missed[look] = (char)('0' + watchdog_missed(&h, 0));
            notified[look] = watchdog_feed(&h) ? 'x' : '-';
        }
        printf("\n    %-28s woken %s %s, notified %s, missed %s ", t->what, woken[0], woken[1],
               notified, missed);
        for (uint32_t e = 0; e < t->engines; e++)
            CU_ASSERT_STRING_EQUAL(woken[e], t->woken[e]);
        CU_ASSERT_STRING_EQUAL(notified, t->notified);
        CU_ASSERT_STRING_EQUAL(missed, t->missed);
    }
}

/* One silent engine is enough to notify no more, however many engines there are. */
static void test_each_counts(void)
{
    for (uint32_t silent = 0; silent < NODES_ENGINES_MAX; silent++) {
        struct watchdog h;

        watchdog_init(&h, NODES_ENGINES_MAX);
        for (uint64_t look = 1; look <= LOOKS; look++) {
            for (uint32_t e = 0; e < NODES_ENGINES_MAX; e++)
                (void)watchdog_look(&h, e, e == silent ? 0 : look);
            CU_ASSERT_FALSE(watchdog_feed(&h));
        }
        CU_ASSERT_FALSE(watchdog_look(&h, silent, 1));
        CU_ASSERT_TRUE(watchdog_feed(&h));
        CU_ASSERT_FALSE(watchdog_feed(&h)); /* engines must go round first */
    }
}

/* A thread's work and processor time at each look, and whether the check finds that it spins. A
 * thread that does any work never spins, however busy it is. */
static const struct spin_trace {
    const char *what;
    uint64_t done[LOOKS], cpu[LOOKS];
    const char *spins; /* x: found at this look */
} spins[] = {
    {"spins at once", {5, 5, 5, 5, 5, 5, 5, 5}, {25, 50, 75, 100, 125, 150, 175, 200}, "---xxxxx"},
    {"spins in the next round",
     {6, 6, 6, 6, 6, 6, 6, 6},
     {25, 50, 75, 100, 125, 150, 175, 200},
     "----xxxx"},
    {"many commands",
     {6, 7, 8, 9, 10, 11, 12, 13},
     {25, 50, 75, 100, 125, 150, 175, 200},
     "--------"},
    {"one now and then",
     {5, 5, 5, 6, 6, 6, 6, 7},
     {25, 50, 75, 100, 125, 150, 175, 200},
     "--------"},
    {"sleeps", {5, 5, 5, 5, 5, 5, 5, 5}, {0, 0, 0, 1, 1, 1, 2, 2}, "--------"},
    {"had no processor", {5, 5, 5, 5, 5, 5, 5, 5}, {0, 0, 0, 0, 10, 20, 25, 50}, "------xx"},
};

static void test_spins(void)
{
    for (size_t i = 0; i < sizeof(spins) / sizeof(spins[0]); i++) {
        char seen[LOOKS + 1] = "";
        struct spin_watch w;

        spin_watch_begin(&w, 5, 0);
        for (int look = 0; look < LOOKS; look++)
            seen[look] =
                spin_watch_look(&w, spins[i].done[look], spins[i].cpu[look], 25) ? 'x' : '-';
        printf("\n    %-28s %s ", spins[i].what, seen);
        CU_ASSERT_STRING_EQUAL(seen, spins[i].spins);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"traces", test_traces},
                           {"each counts", test_each_counts},
                           {"a call that spins", test_spins},
                           CU_TEST_INFO_NULL};

    return suite_run("watchdog", tests);
}
