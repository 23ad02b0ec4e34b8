/*
 * Chooses and opens the fabric to other nodes, by the name in the configuration: a provider of
 * libfabric (ofi.h), or `stream` (stream.h). Where no name is configured: the provider of a network
 * card, if there is one; otherwise, over TCP, `stream`, which costs less than libfabric.
 *
 * Owns nothing. Thread: the thread that opens the fabric.
 */
#ifndef PWC_FABRIC_PROVIDER_H
#define PWC_FABRIC_PROVIDER_H

#include <stddef.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"

#define PROVIDER_NAME_MAX 64u

/* Zero and NULL mean the default. */
struct provider_config {
    const char *name;
    const char *bind;      /* IP address or interface; default 127.0.0.1 */
    uint32_t rails;        /* default 1; or 2 or 4 */
    uint32_t peers_max;    /* 16384 */
    uint32_t memories_max; /* 4096 */
    char *message;         /* where to write why a call failed, or NULL */
    size_t message_size;
};

/* Sets what providers read from the environment, unless the user has set it. Call it before there
 * is a second thread, and before the other calls. */
void provider_prepare(void);
/* Stores the name of the provider that provider_open would choose. */
int provider_choose(const struct provider_config *config, char name[PROVIDER_NAME_MAX]);
/* Opens the provider and stores its name. */
int provider_open(const struct provider_config *config, struct fabric **out,
                  char name[PROVIDER_NAME_MAX]);
/* Stores the names of all providers that can serve this address; returns how many. */
int provider_list(const char *bind, char names[][PROVIDER_NAME_MAX], int room);

#endif
