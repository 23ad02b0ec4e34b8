/* Asks for slices (slice.h). */
#include "daemon/control/threads/slice.h"

#include <assert.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first version of the kernel's struct sched_attr; <sched.h> has it since glibc 2.41. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};
static_assert(sizeof(struct attributes) == 48, "SCHED_ATTR_SIZE_VER0");

void slice_choose(struct slice *s, bool is_short)
{
    struct attributes a = {.size = sizeof(a)};

    if (s->is_short == is_short || s->refused)
        return;
    s->refused = syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0;
    if (s->refused || a.policy != SCHED_OTHER)
        return;
    a.runtime_ns = is_short ? SLICE_SHORT_NS : 0;
    s->refused = syscall(SYS_sched_setattr, 0, &a, 0) != 0;
    s->is_short = is_short && !s->refused;
}
