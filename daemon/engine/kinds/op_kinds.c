/* The table of operation kinds. A new kind adds its row here, and its number to session_abi.h.
 * Thread: any, nothing changes. */
#include "daemon/engine/ops/op.h"

const struct op_kind *const op_kinds[SUBMIT_KINDS] = {
    [OP_BATCH] = &op_batch,
    [SUBMIT_PUT] = &op_put,
    [SUBMIT_GET] = &op_get,
    [SUBMIT_FLUSH] = &op_flush,
    [SUBMIT_SHORT] = &op_short,
    [SUBMIT_MEDIUM] = &op_medium,
    [SUBMIT_LONG] = &op_long,
    [SUBMIT_WAKE] = &op_wake,
    [SUBMIT_VECTOR] = &op_vector,
    [SUBMIT_STRIDED] = &op_strided,
    [SUBMIT_ATOMIC] = &op_atomic,
    [SUBMIT_SIGNAL] = &op_signal,
    [SUBMIT_COLLECTIVE] = &op_collective,
    [SUBMIT_TEAM_WAKE] = &op_team_wake,
};
