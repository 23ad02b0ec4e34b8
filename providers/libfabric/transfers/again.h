/*
 * The second submission of an operation that its peer's daemon has refused: the key's owner may
 * have given the key to other memory since the key was looked up. Then the key is looked up again,
 * and the operation is submitted once more, before it ends with an error. Owned by the operation.
 */
#ifndef PWC_PROVIDER_AGAIN_H
#define PWC_PROVIDER_AGAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct endpoint;
struct operation;
struct submission;

/* The call of an operation of one part, kept for the second submission. */
struct again {
    /* Makes libpwc's call again. NULL: the call's memory is the program's again, or the operation
     * had several parts, or this is the second submission; other fields have no meaning then. */
    int (*submit)(struct submission *submission);
    uint64_t address, length, flags;
    void *to;      /* bytes of a read or write; fetched values */
    uint64_t data; /* with FI_REMOTE_CQ_DATA */
    uint64_t key;  /* while the operation waits */
    const void *operands, *compare;
    size_t count; /* elements */
    uint8_t type, op;
};

/* Lets the operation wait for its second submission, if there may be one after this status, which
 * its only part has ended with. */
bool again_wait(struct endpoint *endpoint, struct operation *operation, int status);

/* Submits operations that wait, if their keys have been looked up. */
void again_submit(struct endpoint *endpoint);

#endif
