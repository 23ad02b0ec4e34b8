/* The descriptors that the keeper holds, each with its name. Thread: the keeper's. */
#ifndef PWC_KEEPER_HOLDINGS_H
#define PWC_KEEPER_HOLDINGS_H

#include <stdint.h>

#define HOLDINGS_MAX       8192u
#define HOLDINGS_NAME_MAX  48u
#define HOLDINGS_A_MESSAGE 16u

struct holding {
    char name[HOLDINGS_NAME_MAX];
    int descriptor;
};

struct holdings {
    struct holding *list;
    uint32_t count, room;
};

/* Takes a descriptor over, and closes an earlier one with this name. -EINVAL: the name cannot be
 * passed to the daemon; -ENOSPC, -ENOMEM. */
int holdings_add(struct holdings *h, const char *name, int descriptor);
void holdings_remove(struct holdings *h, const char *name);
void holdings_clear(struct holdings *h);
/* All names, for LISTEN_FDNAMES. The caller frees them; NULL without memory. */
char *holdings_names(const struct holdings *h);

#endif
