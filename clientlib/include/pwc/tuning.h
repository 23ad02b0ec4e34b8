/*
 * For measuring, not for programs: flags for choices that the library and the daemon otherwise
 * make. Conventions as in pwc.h. Later versions may remove these flags.
 */
#ifndef PWC_TUNING_H
#define PWC_TUNING_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How payload and record travel, for a put or a Long that is too large to be packed; overrides the
 * daemon's choice. Give at most one of these values among the flags. Packed and two-put are terms
 * of the paper that pwc.h names.
 */
enum pwc_protocol {
    PWC_PROTOCOL_ORDERED = 1 << 5,    /* back to back; where the fabric does not order writes, as
                                         REASSEMBLE */
    PWC_PROTOCOL_REASSEMBLE = 2 << 5, /* back to back, matched at the target by a nonce */
    PWC_PROTOCOL_CHAIN = 3 << 5,      /* the record leaves when the payload has been placed */
};

#ifdef __cplusplus
}
#endif
#endif
