/* Asks for slices (slice.h). */
#include "daemon/control/threads/slice.h"

#include <assert.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first version of the kernel's struct sched_attr, which <sched.h> has only since glibc 2.41.
 */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};
static_assert(sizeof(struct attributes) == 48, "SCHED_ATTR_SIZE_VER0");

/* Whether the thread has the slice now. */
static bool ask(uint64_t slice_ns)
{
    struct attributes a = {.size = sizeof(a)};

    if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0 || a.policy != SCHED_OTHER)
        return false;
    a.runtime_ns = slice_ns;
    return syscall(SYS_sched_setattr, 0, &a, 0) == 0;
}

void slice_choose(struct slice *s, bool is_short)
{
    if (s->is_short == is_short || s->refused)
        return;
    s->is_short = is_short;
    s->refused = !ask(is_short ? SLICE_SHORT_NS : 0);
}
