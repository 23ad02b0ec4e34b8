/*
 * Regions: ranges of segments that peers may reach by a key, and their two-phase withdrawal.
 *
 * A key names slot and generation and carries 128 random bits. Each peer that has resolved it is
 * noted in a grant. Withdrawal asks each of them (REVOKE) and frees the region when all have
 * answered (REVOKED) that no fabric operation of theirs names it any more, or are lost. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_REGION_H
#define PWC_ENGINE_REGION_H

#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/state/state.h"

/* The index of the region that a key names, which must be of this client; or -EKEYREJECTED. The
 * time that the search takes does not depend on the secret. */
int region_resolve(const struct engine *e, uint32_t client, uint32_t slot, uint32_t generation,
                   const uint8_t secret[16]);
/* Within a transaction: notes that `peer` has resolved the region's key. -ENOSPC. */
int region_grant(struct engine *e, uint32_t region, uint32_t peer);
int region_revoke_asked(struct engine *e, uint32_t peer, const struct ledger_record *record);
int region_revoke_answered(struct engine *e, uint32_t peer, const struct ledger_record *record);
/* The last fabric operation of a revoked remote has ended: answers the REVOKE. */
void region_answer_revoke(struct engine *e, uint32_t remote);
/* After a restart: lists the grants again. */
void grants_inherit(struct engine *e);
/* Drops all grants of a lost peer. */
void region_forget_node(struct engine *e, uint32_t peer);
/* Begins the withdrawal of all regions of a client. */
void region_withdraw_client(struct engine *e, uint32_t client);

/* The memory of the region that a record names, which must be of this session's client and have all
 * of these rights. Returns 0 with *base and *length, or the status that the origin gets;
 * -EOPNOTSUPP: only packets may write to an offload's region. */
int region_memory(const struct engine *e, uint32_t session, uint32_t slot, uint32_t generation,
                  unsigned rights, uint8_t **base, uint64_t *length);
static inline int region_to_write(const struct engine *e, uint32_t session, uint32_t slot,
                                  uint32_t generation, uint8_t **base, uint64_t *length)
{
    return region_memory(e, session, slot, generation, ENGINE_REMOTE_WRITE, base, length);
}

#endif
