/* Divides the processors among the nodes of a run. Owns nothing. Thread: main's. */
#include "tools/pwcrun/processors.h"

bool processors_of(unsigned number, unsigned nodes, enum bind bind, cpu_set_t *out)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0) /* more than a set can hold */
        return false;
    unsigned count = (unsigned)CPU_COUNT(&allowed), from, to, seen = 0;
    if (count == 0 || bind == BIND_NONE || (bind == BIND_SHARE && (count < nodes || nodes == 1)))
        return false;
    if (bind == BIND_ONE) {
        from = number % count;
        to = from + 1;
    } else {
        from = number * count / nodes;
        to = (number + 1) * count / nodes;
    }
    CPU_ZERO(out);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ >= from && seen <= to)
            CPU_SET(cpu, out);
    return true;
}
