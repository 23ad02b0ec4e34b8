/*
 * Accounts: the processor time that the control thread spends for each user, and for connections
 * from elsewhere that have not proven to be a node.
 *
 *     account_begin(account) --> a request, a connection, a notice --> account_end
 *                                 the thread's time in between is charged
 *
 *     spent   ^      . . requests of the account wait
 *             |    /\  /\
 *     ahead --|---/--\/--\--------
 *             |  /        \           falls by an eighth of the time that passes
 *             +------------------> time
 *
 * Each account may use an eighth of the thread's time, and may be ACCOUNT_AHEAD ahead of that, for
 * starts of jobs. The caller decides when a debt matters: turns.h lets a user who is alone
 * continue. No debt grows beyond ACCOUNT_MOST, so no wait takes much more than a second.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_ACCOUNT_H
#define PWC_CONTROL_ACCOUNT_H

#include <stdint.h>

struct control;

#define ACCOUNT_SHARE 8u                  /* a debt falls by 1/8 of the time that passes */
#define ACCOUNT_AHEAD UINT64_C(200000000) /* ns */
#define ACCOUNT_MOST  UINT64_C(325000000) /* ns */

struct account {
    uint64_t spent;   /* ns that were charged, less what was paid up to paid_at */
    uint64_t paid_at; /* of the monotonic clock, ns */
};

/* Charges the thread's time to this account from now on, until account_end with the returned
 * account. Such pairs of calls may nest. */
struct account *account_begin(struct control *control, struct account *a);
void account_end(struct control *control, struct account *before);
/* Ends charges to this account, which is about to be freed. */
void account_forget(struct control *control, const struct account *a);

/* The debt that is left at this time of the monotonic clock, in ns. */
uint64_t account_spent(struct account *a, uint64_t now_ns);
/* Forgives the debt so far. */
void account_forgive(struct account *a);
/* In how many milliseconds the account may spend more; 0: now. */
uint64_t account_wait_ms(struct account *a);

#endif
