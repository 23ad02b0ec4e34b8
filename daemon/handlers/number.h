/*
 * The helpers f64 and f32: one operation on floating-point values, which eBPF does not have. Values
 * go as their bits (enum handler_number_op, proto/handler_abi.h).
 *
 * IEEE 754, to nearest; a NaN that comes out is always the same one. MIN and MAX as those of
 * shm_ring/word.h: a number beats a NaN, and -0.0 is less than 0.0. Conversions to integers cut
 * towards 0 and saturate; a NaN gives 0.
 *
 * Thread: the one that runs handlers.
 */
#ifndef PWC_HANDLERS_NUMBER_H
#define PWC_HANDLERS_NUMBER_H

#include "daemon/handlers/run.h"

/* f64(op, a, b): bits of an F64, an integer, or 0 and 1. */
uint64_t number_f64(struct run *r, const uint64_t *reg);
/* f32(op, a, b): the same of an F32, in the low half. */
uint64_t number_f32(struct run *r, const uint64_t *reg);

#endif
