/* Owns this process's view of its board (fault.h). Built with -Dfaults=true only. Thread: any. */
#include "shm_ring/fault.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEATH_MS = 2000 };

#define NAME(point) [FAULT_##point] = #point

static const char *const names[FAULT_POINTS] = {
    NAME(ATTACH_CONNECTED), NAME(REQUEST_SENT),
    NAME(REPLY_RECEIVED),   NAME(ATTACH_WELCOMED),
    NAME(CONTEXT_OPENED),   NAME(CONTEXT_MAPPED),
    NAME(SEGMENT_OPENED),   NAME(SEGMENT_MAPPED),
    NAME(REGION_OPENED),    NAME(EXCHANGE_PIECE),
    NAME(BIND_ANSWERED),    NAME(BIND_MAPPED),
    NAME(UNBOUND),          NAME(REGION_CLOSED),
    NAME(CONTEXT_LEFT),     NAME(DETACH_SHUT),
    NAME(DETACHED),         NAME(SUBMIT_WRITTEN),
    NAME(SUBMIT_PUBLISHED), NAME(DOORBELL_RUNG),
    NAME(WAIT_ARMED),       NAME(EVENT_READ),
    NAME(EVENT_RELEASED),   NAME(SLOT_SETTLED),
    NAME(MESSAGE_FOUND),    NAME(MESSAGE_RUN),
    NAME(DIRECT_COPIED),    NAME(PAIR_HALF),
    NAME(PAIR_SHOWN),       NAME(PAIR_BELL),
    NAME(PAIR_READ),        NAME(PAIR_NOTED),
    NAME(TEAM_ANSWERED),    NAME(TEAM_BUILT),
    NAME(STEP_WRITTEN),     NAME(STEP_COUNTED),
    NAME(STEP_COMBINED),    NAME(STEP_SUBMITTED),
    NAME(STEP_ENDED),       NAME(STEP_READ),
    NAME(STEP_TAKEN),       NAME(TEAM_LEFT),
    NAME(TEAM_CALLED),      NAME(TEAM_GROUPED),
    NAME(TEAM_PREPARED),    NAME(TEAM_OPENED),
    NAME(TEAM_ENDS),        NAME(TEAM_STARTED),
    NAME(TEAM_NOTED),       NAME(TEAM_LEAVES),
    NAME(INSTANCE_CALLED),  NAME(LETTER_POSTED),
    NAME(PROGRAM_TAKEN),    NAME(PROGRAM_LOADED),
    NAME(OFFLOAD_MADE),     NAME(OFFLOAD_OPENED),
    NAME(OFFLOAD_GONE),     NAME(PROGRAM_UNLOADED),
    NAME(LETTER_KEPT),      NAME(INSTANCE_SHOWN),
    NAME(CLIENT_ACCEPTED),  NAME(CLIENT_GREETED),
    NAME(CLIENT_SERVED),    NAME(SESSION_MADE),
    NAME(SESSION_OPENED),   NAME(SEGMENT_MADE),
    NAME(SEGMENT_READY),    NAME(REGION_MADE),
    NAME(BIND_ASKED),       NAME(BOUND),
    NAME(PAIR_MADE),        NAME(PAIR_ANNOUNCED),
    NAME(REPLY_QUEUED),     NAME(CLIENT_ENDS),
    NAME(SESSION_DETACHED), NAME(SEGMENT_DETACHED),
    NAME(CLIENT_SETTLED),   NAME(RECORD_READ),
    NAME(OPERATION_QUEUED), NAME(FABRIC_BEGUN),
    NAME(FABRIC_ENDED),     NAME(LOCAL_EVENT),
    NAME(REMOTE_EVENT),     NAME(REPLY_EVENT),
    NAME(EVENTS_SHOWN),     NAME(BIND_RESOLVED),
    NAME(REVOKE_BEGUN),     NAME(REVOKE_TAKEN),
    NAME(REGION_FREED),     NAME(SEGMENT_DROPPED),
    NAME(SESSION_LEFT),     NAME(CLIENT_LEFT),
    NAME(SEGMENT_REGISTER), NAME(PUT_POST),
    NAME(GET_POST),         NAME(RUN_POST),
    NAME(NOTE_ROOM),        NAME(QUEUE_ROOM),
    NAME(MEMORY_MAP),
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fault_board *board; /* shared with the test; NULL: there is no test */

static void find_board(void)
{
    const char *path = getenv("PWC_FAULT_BOARD");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *base = MAP_FAILED;

    if (fd >= 0) {
        base = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    board = base == MAP_FAILED ? NULL : base;
}

/* Returns when the victim is dead, so that everything the caller does next happens after its
 * death. */
static void kill_victim(pid_t victim)
{
    struct pollfd exited = {.fd = (int)syscall(SYS_pidfd_open, victim, 0), .events = POLLIN};

    if (exited.fd < 0)
        return;
    kill(victim, SIGKILL);
    (void)poll(&exited, 1, DEATH_MS);
    close(exited.fd);
}

static int act(uint64_t passing)
{
    uint64_t at = atomic_load(&board->at);

    switch (atomic_load(&board->action)) {
    case FAULT_DIE:
        if (passing == at)
            raise(SIGKILL);
        break;
    case FAULT_KILL:
        if (passing == at) {
            kill_victim(atomic_load(&board->victim));
            atomic_store(&board->done, 1);
        }
        break;
    case FAULT_FAIL:
    case FAULT_FAIL_ON:
        if (passing == at || (passing > at && atomic_load(&board->action) == FAULT_FAIL_ON)) {
            atomic_store(&board->done, 1);
            return atomic_load(&board->error);
        }
        break;
    }
    return 0;
}

int fault_pass(enum fault_point point)
{
    uint64_t passing;

    pthread_once(&once, find_board);
    if (!board)
        return 0;
    passing = atomic_fetch_add(&board->passed[point], 1) + 1;
    return atomic_load(&board->point) == (uint32_t)point ? act(passing) : 0;
}

const char *fault_name(enum fault_point point)
{
    return point < FAULT_POINTS ? names[point] : "none";
}
