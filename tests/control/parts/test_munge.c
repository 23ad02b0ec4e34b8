/*
 * The real MUNGE, where munged runs: a credential can be opened once, only by our own user, and
 * states whose it is. test_peers tests the handshake with a made-up MUNGE.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/control/nodes/credential.h"
#include "daemon/control/nodes/munge_async.h"
#include "tests/suite.h"

enum { SKIPPED = 77, NOBODY = 65534 };

static const uint8_t payload[HANDSHAKE_MAC_BYTES] = {1, 2, 3};

static char *credential(void)
{
    char why[256] = "", *made = NULL;

    CU_ASSERT_EQUAL_FATAL(credential_make(payload, sizeof(payload), &made, why, sizeof(why)), 0);
    return made;
}

static int opened(const char *text, size_t size, uid_t *uid)
{
    uint8_t bytes[HANDSHAKE_MAC_BYTES + 1] = {0};
    char why[256] = "";
    int rc = credential_open(text, bytes, size, uid, why, sizeof(why));

    CU_ASSERT_EQUAL(*why == '\0', rc == 0);
    CU_ASSERT_TRUE(rc < 0 || memcmp(bytes, payload, sizeof(payload)) == 0);
    return rc;
}

static void once(void)
{
    char *text = credential();
    uid_t uid = 0;

    CU_ASSERT_EQUAL(opened(text, sizeof(payload), &uid), 0);
    CU_ASSERT_EQUAL(uid, geteuid());
    CU_ASSERT_EQUAL(opened(text, sizeof(payload), &uid), -EACCES);
    free(text);
}

static void not_as_it_was(void)
{
    char *text = credential();
    uid_t uid;

    CU_ASSERT_EQUAL(opened("", sizeof(payload), &uid), -EACCES);
    CU_ASSERT_EQUAL(opened("MUNGE:AAAA:", sizeof(payload), &uid), -EACCES);
    text[strlen(text) / 2] ^= 1;
    CU_ASSERT_EQUAL(opened(text, sizeof(payload), &uid), -EACCES);
    free(text);
    text = credential();
    CU_ASSERT_EQUAL(opened(text, sizeof(payload) + 1, &uid), -EACCES);
    free(text);
}

static void by_another_user(void)
{
    char *text = credential();
    int status = 0;
    uid_t uid;
    pid_t pid;

    if (geteuid() == 0) {
        pid = fork();
        if (pid == 0) {
            uint8_t bytes[HANDSHAKE_MAC_BYTES];
            char why[256];
            int rc = setresuid(NOBODY, NOBODY, NOBODY) == 0
                         ? credential_open(text, bytes, sizeof(bytes), &uid, why, sizeof(why))
                         : 0;

            _exit(rc == -EACCES ? 0 : 1);
        }
        waitpid(pid, &status, 0);
        CU_ASSERT_EQUAL(status, 0);
        /* We can still open the credential. */
        CU_ASSERT_EQUAL(opened(text, sizeof(payload), &uid), 0);
    }
    free(text);
}

int main(void)
{
    CU_TestInfo tests[] = {{"once", once},
                           {"not as it was", not_as_it_was},
                           {"by another user", by_another_user},
                           CU_TEST_INFO_NULL};
    char why[256] = "";

    if (munge_works(why, sizeof(why)) < 0) {
        printf("left out: %s\n", why);
        return SKIPPED;
    }
    return suite_run("munge", tests);
}
