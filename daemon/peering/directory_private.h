/*
 * Functions that the directory's files share: jobs and the shares of users (directory.c), exchanges
 * (exchanges.c), published names (names.c). Thread: the thread that owns the directory (control).
 */
#ifndef PWC_PEERING_DIRECTORY_PRIVATE_H
#define PWC_PEERING_DIRECTORY_PRIVATE_H

#include "daemon/peering/directory.h"

/* Finds a job; NULL: there is no such job here. */
struct directory_job *directory_job_find(const struct directory *d, const struct directory_id *id);
/* Whether a text is printable, without spaces, not empty, and fits `room` with its terminator. */
bool directory_text_valid(const char *text, size_t room);
/* The node of a rank; DIRECTORY_NOWHERE: it is not attached. */
uint32_t directory_node_of(const struct directory_job *job, uint32_t rank);

bool directory_has_share(const struct directory *d, const struct directory_user *u, uint64_t cost);
void directory_charge(struct directory *d, struct directory_user *u, uint64_t cost);
void directory_discharge(struct directory *d, struct directory_user *u, uint64_t cost);
/* Takes memory, and charges this user `cost` bytes. NULL: *rc is -EDQUOT or -ENOMEM. */
void *directory_take(struct directory *d, struct directory_user *u, size_t size, uint64_t cost,
                     int *rc);
void directory_give(struct directory *d, struct directory_user *u, void *memory, uint64_t cost);

/* Whether no exchange was completed since a new process has this rank, so that every kept result is
 * an earlier process's. */
bool directory_is_fresh(const struct directory_job *job, uint32_t rank);
/* An exchange of all ranks was completed: none of them is fresh any more. */
void directory_all_took_part(struct directory_job *job);
/* A new process has this rank. Drops what an earlier one has contributed to the first exchange. */
void directory_part_drop(struct directory *d, struct directory_job *job, uint32_t rank);

/* Keeps the last result of an inherited job again. */
void directory_result_inherit(struct directory *d, struct directory_job *job);

/* Takes over the published names of an inherited job, if their ranks are attached. */
void directory_names_inherit(struct directory *d, struct directory_job *job);
/* Removes the names of a rank that has left, and its waiters. */
void directory_names_rank_left(struct directory *d, struct directory_job *job, uint32_t rank);
/* Frees what this process has of a job's names. */
void directory_names_free(struct directory *d, struct directory_job *job);

#endif
