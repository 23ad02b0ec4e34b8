/*
 * The helpers f64 and f32: each does one operation on floating-point values (enum
 * handler_number_op, proto/handler_abi.h). eBPF has no such values, so arguments and results are
 * their bits.
 *
 * Operations follow IEEE 754, rounded to nearest; a result that is a NaN always has the same bits.
 * MIN and MAX work as those of shm_ring/word.h: of a number and a NaN the number is taken, and -0.0
 * is less than 0.0. Conversions to integers round towards 0 and saturate; a NaN gives 0.
 *
 * Thread: the thread that runs the handler.
 */
#ifndef PWC_HANDLERS_NUMBER_H
#define PWC_HANDLERS_NUMBER_H

#include "daemon/handlers/run.h"

/* f64(op, a, b): returns the bits of an F64, an integer, or 0 or 1. */
uint64_t number_f64(struct run *r, const uint64_t *reg);
/* f32(op, a, b): works as f64, with the bits of an F32 in the low half. */
uint64_t number_f32(struct run *r, const uint64_t *reg);

#endif
