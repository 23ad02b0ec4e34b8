/*
 * Messages that arrive in parts, because they are longer than a Medium of libpwc. The parts of a
 * message come in order, and no other message of their source comes between them. Owned by the
 * endpoint, whose lock guards them.
 */
#ifndef PWC_PROVIDER_ASSEMBLY_H
#define PWC_PROVIDER_ASSEMBLY_H

#include <pwc/am.h>

/* The arguments of a part that follow those of every message. */
enum assembly_argument {
    ASSEMBLY_OFFSET = 2, /* of the part, in the message */
    ASSEMBLY_LENGTH,     /* of the message */
    ASSEMBLY_ARGUMENTS,
};

/* A message of which some parts have come. */
struct assembly {
    struct assembly *next;
    pwc_peer source;
    size_t length, done;
    unsigned char bytes[];
};

/* Takes a part. Returns the message if this was its last part, and the caller frees it; else NULL.
 */
struct assembly *assembly_take(struct assembly **list, const struct pwc_am *part);

void assemblies_free(struct assembly **list);

#endif
