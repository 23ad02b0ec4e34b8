/* Makes and removes a plan's folder and the files in it (plan.h). */
#include "tests/control/lib/plan.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool plan_ports(struct plan *plan)
{
    struct sockaddr_in names[2];
    int sockets[2];

    for (int i = 0; i < 2; i++) {
        socklen_t size = sizeof(names[i]);

        names[i] = (struct sockaddr_in){
            .sin_family = AF_INET,
            .sin_addr.s_addr = htonl(0x7f4d0000u | ((uint32_t)getpid() & 0xffff)),
        };
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(sockets[i], (struct sockaddr *)&names[i], sizeof(names[i])) != 0 ||
            getsockname(sockets[i], (struct sockaddr *)&names[i], &size) != 0)
            return false;
        plan->ports[i] = ntohs(names[i].sin_port);
    }
    inet_ntop(AF_INET, &names[0].sin_addr, plan->host, sizeof(plan->host));
    snprintf(plan->nodes, sizeof(plan->nodes), "%s:%u,%s:%u", plan->host, plan->ports[0],
             plan->host, plan->ports[1]);
    close(sockets[0]);
    close(sockets[1]);
    return true;
}

static bool write_secrets(struct plan *plan)
{
    for (int i = 0; i < 2; i++) {
        char bytes[32];
        int fd;

        snprintf(plan->secrets[i], sizeof(plan->secrets[i]), "%s/secret%d", plan->place, i);
        memset(bytes, 'a' + i, sizeof(bytes));
        fd = open(plan->secrets[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
            return false;
        close(fd);
    }
    return true;
}

bool plan_open(struct plan *plan)
{
    *plan = (struct plan){.place = "/tmp/pwc-peers-XXXXXX"};
    return mkdtemp(plan->place) && plan_ports(plan) && write_secrets(plan);
}

void plan_close(struct plan *plan)
{
    (void)unlink(plan->secrets[0]);
    (void)unlink(plan->secrets[1]);
    (void)rmdir(plan->place);
}

bool plan_start(struct daemon *d, const char *program, const char *node, const char *secret,
                const char *list)
{
    const char *arguments[] = {"--node",
                               node,
                               "--nodes",
                               list,
                               "--secret",
                               secret,
                               "--peer-deadline-ms",
                               PLAN_DEADLINE_MS,
                               "--provider",
                               PLAN_PROVIDER,
                               NULL};

    return daemon_start(d, program, arguments) == 0;
}

int plan_run(struct plan *plan, struct daemon *d, const char *program, const char *suite,
             CU_TestInfo *tests)
{
    int failed = 1, rc = 1;

    if (plan_open(plan) && plan_start(d, program, "1", plan->secrets[0], plan->nodes)) {
        failed = suite_run(suite, tests);
        rc = daemon_stop(d);
    }
    plan_close(plan);
    if (rc != 0)
        fprintf(stderr, "the daemon ended with %d\n", rc);
    return failed || rc != 0;
}
