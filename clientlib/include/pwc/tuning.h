/*
 * For measuring, not for programs: what the library and the daemon otherwise choose. Conventions as
 * in pwc.h. Later versions may take these away.
 */
#ifndef PWC_TUNING_H
#define PWC_TUNING_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How payload and record of a put or a Long travel that is too large to be packed, in place of the
 * daemon's choice: one of these among the flags, which have two bits for it. Packed and two-put
 * are terms of the paper that pwc.h names.
 */
enum pwc_protocol {
    PWC_PROTOCOL_ORDERED = 1 << 5, /* back to back; reassembled where the fabric does not order */
    PWC_PROTOCOL_REASSEMBLE = 2 << 5, /* back to back, matched at the target by a nonce */
    PWC_PROTOCOL_CHAIN = 3 << 5,      /* the record leaves when the payload has been placed */
};

#ifdef __cplusplus
}
#endif
#endif
