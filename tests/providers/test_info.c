/*
 * fi_getinfo of the provider: without a daemon it returns nothing, and soon; it returns what hints
 * ask for, or nothing; and libfabric puts no layer of its own over the provider.
 *
 *     test_info PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "tests/count.h"
#include "tests/providers/both.h"

#define VERSION     FI_VERSION(1, 14)
#define MESSAGE_MAX 4096

static int ask(struct fi_info *hints, struct fi_info **info)
{
    *info = NULL;
    return fi_getinfo(VERSION, NULL, NULL, 0, hints, info);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The hints that SOS (Sandia OpenSHMEM) gives by default. */
static void test_openshmem(void)
{
    const struct side_options options = {.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
                                         .mr_mode = both_basic.mr_mode,
                                         .threading = FI_THREAD_DOMAIN};
    struct fi_info *hints = side_hints(&options), *info;

    side_choose(both_socket(0), NULL);
    hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->mr_key_size = 1;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    hints->tx_attr->inject_size = 16;
    CU_ASSERT_EQUAL_FATAL(ask(hints, &info), 0);
    CU_ASSERT_STRING_EQUAL(info->fabric_attr->prov_name, "pwc");
    CU_ASSERT_EQUAL(info->domain_attr->mr_mode, both_basic.mr_mode);
    CU_ASSERT_EQUAL(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
    CU_ASSERT_EQUAL(info->domain_attr->threading, FI_THREAD_DOMAIN);
    CU_ASSERT_EQUAL(info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
    CU_ASSERT(info->tx_attr->inject_size >= 16);
    CU_ASSERT(info->caps & FI_REMOTE_WRITE);
    /* Each further info is of this provider, and not of a layer over it. */
    for (struct fi_info *i = info; i; i = i->next)
        CU_ASSERT_STRING_EQUAL(i->fabric_attr->prov_name, "pwc");
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

/* Hints that the provider cannot meet: it returns no info. */
enum wrong {
    TAGGED,
    CONNECTED,
    DATAGRAMS,
    PROGRESS,
    PROGRESS_OF_ALL,
    ORDER,
    INJECT,
    LENGTH,
    MESSAGE_LENGTH,
    SHARED,
    OTHER,
    WRONGS,
};

static void make_wrong(struct fi_info *hints, enum wrong wrong)
{
    switch (wrong) {
    case TAGGED:
        hints->caps = FI_TAGGED;
        break;
    case CONNECTED:
        hints->ep_attr->type = FI_EP_MSG;
        break;
    case DATAGRAMS:
        hints->ep_attr->type = FI_EP_DGRAM;
        break;
    case PROGRESS:
        hints->caps = FI_MSG;
        hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
        break;
    case PROGRESS_OF_ALL: /* no capabilities ask for all, also for messages */
        hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
        break;
    case ORDER:
        hints->tx_attr->msg_order = FI_ORDER_WAW;
        break;
    case INJECT:
        hints->tx_attr->inject_size = 1 << 20;
        break;
    case LENGTH:
        hints->ep_attr->max_msg_size = ((size_t)1 << 30) + 1;
        break;
    case MESSAGE_LENGTH:
        hints->caps = FI_MSG;
        hints->ep_attr->max_msg_size = MESSAGE_MAX + 1;
        break;
    case SHARED:
        hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
        break;
    default:
        hints->domain_attr->name = strdup("another");
        break;
    }
}

static void test_wrong_hints(void)
{
    const struct side_options options = {.mr_mode = both_basic.mr_mode};

    side_choose(both_socket(0), NULL);
    for (int wrong = 0; wrong < WRONGS; wrong++) {
        struct fi_info *hints = side_hints(&options), *info;

        make_wrong(hints, wrong);
        CU_ASSERT_EQUAL(ask(hints, &info), -FI_ENODATA);
        fi_freeinfo(info);
        fi_freeinfo(hints);
    }
}

/* The longest transfer: of a program that only sends, its longest message. */
static void test_lengths(void)
{
    static const struct {
        uint64_t caps;
        size_t longest;
    } rows[] = {
        {FI_MSG, MESSAGE_MAX},
        {FI_MSG | FI_SEND, MESSAGE_MAX},
        {FI_MSG | FI_RMA, (size_t)1 << 30},
        {FI_RMA, (size_t)1 << 30},
        {FI_ATOMIC, (size_t)1 << 30},
        {0, (size_t)1 << 30},
    };

    side_choose(both_socket(0), NULL);
    for (unsigned i = 0; i < COUNT(rows); i++) {
        const struct side_options options = {.caps = rows[i].caps, .mr_mode = both_basic.mr_mode};
        struct fi_info *hints = side_hints(&options), *info;

        hints->ep_attr->max_msg_size = rows[i].longest;
        CU_ASSERT_EQUAL_FATAL(ask(hints, &info), 0);
        CU_ASSERT_EQUAL(info->ep_attr->max_msg_size, rows[i].longest);
        fi_freeinfo(info);
        fi_freeinfo(hints);
    }
}

/* Leaves the file of a socket whose listener has ended, in a new folder. */
static void leave_socket(char *folder, struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    at->sun_family = AF_UNIX;
    snprintf(at->sun_path, sizeof(at->sun_path), "%s/pwcd.sock", folder);
    CU_ASSERT_EQUAL(bind(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
    CU_ASSERT_EQUAL(listen(fd, 1), 0);
    close(fd);
}

/* fi_getinfo does not wait for a daemon: neither where the socket's file is missing, nor where its
 * listener has ended, nor where nobody listens at an abstract name. The fastest of many calls
 * counts, because the machine does other work, too. */
static void test_no_daemon(void)
{
    char folder[] = "/tmp/pwc-info.XXXXXX";
    struct sockaddr_un left = {0};
    const char *const sockets[] = {"/nonexistent/pwcd.sock", left.sun_path, "@pwc-test-nobody"};
    const struct side_options options = {.mr_mode = both_basic.mr_mode};

    leave_socket(folder, &left);
    for (unsigned s = 0; s < COUNT(sockets); s++) {
        struct fi_info *hints = side_hints(&options), *info;
        int64_t best = INT64_MAX;

        side_choose(sockets[s], NULL);
        for (unsigned i = 0; i < 200; i++) {
            int64_t begin = now_ns(), took;

            CU_ASSERT_EQUAL(ask(hints, &info), -FI_ENODATA);
            took = now_ns() - begin;
            best = took < best ? took : best;
        }
        /* The bound includes libfabric itself and its other providers. */
        CU_ASSERT(best < 1000000);
        fi_freeinfo(hints);
    }
    unlink(left.sun_path);
    rmdir(folder);
}

/* Without hints there is an info with all capabilities. */
static void test_all(void)
{
    struct fi_info *info, *ours = NULL;

    side_choose(both_socket(0), NULL);
    CU_ASSERT_EQUAL_FATAL(ask(NULL, &info), 0);
    for (struct fi_info *i = info; i; i = i->next)
        if (strcmp(i->fabric_attr->prov_name, "pwc") == 0)
            ours = i;
    CU_ASSERT_PTR_NOT_NULL_FATAL(ours);
    CU_ASSERT_EQUAL(ours->caps & (FI_MSG | FI_RMA | FI_ATOMIC), FI_MSG | FI_RMA | FI_ATOMIC);
    fi_freeinfo(info);
}

/* A peer cannot be named by node and service: there is no info for it, and a vector takes no
 * address that is missing. A program may name its own side, which changes nothing. */
static void test_node(void)
{
    const struct side_options options = {.mr_mode = both_basic.mr_mode};
    struct fi_info *hints = side_hints(&options), *info = NULL;
    struct side side;
    fi_addr_t number;

    side_choose(both_socket(0), NULL);
    CU_ASSERT_EQUAL(fi_getinfo(VERSION, "127.0.0.1", "7", 0, hints, &info), -FI_ENODATA);
    CU_ASSERT_EQUAL(fi_getinfo(VERSION, "127.0.0.1", NULL, 0, hints, &info), -FI_ENODATA);
    CU_ASSERT_EQUAL_FATAL(fi_getinfo(VERSION, "127.0.0.1", "7", FI_SOURCE, hints, &info), 0);
    fi_freeinfo(info);
    CU_ASSERT_EQUAL_FATAL(fi_getinfo(VERSION, NULL, "7", FI_SOURCE, hints, &info), 0);
    fi_freeinfo(info);
    fi_freeinfo(hints);
    CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &both_basic), 0);
    CU_ASSERT_EQUAL(fi_av_insert(side.av, NULL, 1, &number, 0, NULL), -FI_EINVAL);
    CU_ASSERT_EQUAL(fi_av_insert(side.av, NULL, 0, &number, 0, NULL), 0);
    side_close(&side);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"OpenSHMEM", test_openshmem},
        {"wrong hints", test_wrong_hints},
        {"lengths", test_lengths},
        {"no daemon", test_no_daemon},
        {"without hints", test_all},
        {"node and service", test_node},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, info", tests);
}
