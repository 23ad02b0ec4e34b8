/* Owns the list of the threads' stacks (stacks.h). Thread: any. */
#include "clientlib/memory/stacks.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int add(struct stacks *stacks, uintptr_t head)
{
    uintptr_t *more;

    if (stacks->count % 64 == 0) {
        more = realloc(stacks->heads, (stacks->count + 64) * sizeof(*more));
        if (!more)
            return -ENOMEM;
        stacks->heads = more;
    }
    stacks->heads[stacks->count++] = head;
    return 0;
}

int stacks_open(struct stacks *stacks)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int rc = 0;

    *stacks = (struct stacks){0};
    if (!tasks)
        return errno == ENOMEM ? -ENOMEM : 0;
    while (rc == 0 && (task = readdir(tasks))) {
        long number = strtol(task->d_name, NULL, 10);
        void *head = NULL;
        size_t size;

        if (number > 0 && number != getpid() &&
            syscall(SYS_get_robust_list, number, &head, &size) == 0 && head)
            rc = add(stacks, (uintptr_t)head);
    }
    closedir(tasks);
    if (rc < 0)
        stacks_close(stacks);
    return rc;
}

void stacks_close(struct stacks *stacks)
{
    free(stacks->heads);
    *stacks = (struct stacks){0};
}

/* Whether the C library has made the mapping for one thread's stack: it has no name, or the one
 * that glibc 2.39 gives where it may. */
static bool is_stack_alone(const struct maps_line *line)
{
    static const char named[] = "[anon: glibc: pthread stack";

    return line->name[0] == '\0' || strncmp(line->name, named, sizeof(named) - 1) == 0;
}

bool stacks_touch(const struct stacks *stacks, const struct maps_line *line, uintptr_t start,
                  uintptr_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    for (uint32_t i = 0; i < stacks->count; i++) {
        uintptr_t head = stacks->heads[i];
        uintptr_t top = (head | (page - 1)) + 1;
        /* The C library puts a guard page below each stack that it makes. A stack that the program
         * has cut from its heap has no such lower end. */
        uintptr_t bottom = is_stack_alone(line) ? line->start : top - page;

        if (head >= line->start && head < line->end && start < top && end > bottom)
            return true;
    }
    return false;
}
