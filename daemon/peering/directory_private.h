/*
 * The parts that the directory's files share: jobs and the shares of users (directory.c), exchanges
 * (exchanges.c), published names (names.c). Thread: that of the directory's owner (control).
 */
#ifndef PWC_PEERING_DIRECTORY_PRIVATE_H
#define PWC_PEERING_DIRECTORY_PRIVATE_H

#include "daemon/peering/directory.h"

/* NULL: there is no such job here. */
struct directory_job *directory_job_find(const struct directory *d, const struct directory_id *id);
/* Whether a text is printable, without spaces, not empty, and fits `room` with its terminator. */
bool directory_text_valid(const char *text, size_t room);
/* The node of a rank; DIRECTORY_NOWHERE: it is not attached. */
uint32_t directory_node_of(const struct directory_job *job, uint32_t rank);

bool directory_has_share(const struct directory *d, const struct directory_user *u, uint64_t cost);
void directory_charge(struct directory *d, struct directory_user *u, uint64_t cost);
void directory_discharge(struct directory *d, struct directory_user *u, uint64_t cost);
/* Takes memory for this user, charged with `cost`. NULL: -EDQUOT or -ENOMEM in *rc. */
void *directory_take(struct directory *d, struct directory_user *u, size_t size, uint64_t cost,
                     int *rc);
void directory_give(struct directory *d, struct directory_user *u, void *memory, uint64_t cost);

/* The last result of an inherited job, as if it had been kept. */
void directory_result_inherit(struct directory *d, struct directory_job *job);

/* The published names of an inherited job: those of ranks that are attached. */
void directory_names_inherit(struct directory *d, struct directory_job *job);
/* A rank has left: its names go, and what it waits for. */
void directory_names_rank_left(struct directory *d, struct directory_job *job, uint32_t rank);
/* Frees what this process has of a job's names. */
void directory_names_free(struct directory *d, struct directory_job *job);

#endif
