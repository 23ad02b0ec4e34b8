/*
 * The key `collective` of the configuration: which algorithms take the place of the daemon's own
 * choice (daemon/engine/coll/table.h). Owns nothing. Thread: any.
 *
 *     collective = allreduce ring, bcast tree
 */
#ifndef PWC_CONTROL_COLLECTIVES_H
#define PWC_CONTROL_COLLECTIVES_H

#include <stddef.h>
#include "daemon/engine/coll/table.h"

#define COLLECTIVES_TEXT_MAX 512u /* room for the longest text, with its terminator */

/* Reads pairs of a kind and one of its algorithms; each kind may be given once. -EINVAL: `why` says
 * what is wrong, and which words there are. */
int collectives_parse(const char *text, struct coll_choices *out, char *why, size_t why_size);
/* As above, for a key of the configuration. */
int collectives_check(const char *text, char *why, size_t why_size);
/* Writes the text that collectives_parse reads, in order of kinds; "" for the daemon's own choice.
 */
void collectives_print(const struct coll_choices *choices, char text[COLLECTIVES_TEXT_MAX]);
/* Whether a peer whose key has the text `theirs` uses the same algorithms as we do; if not, `why`
 * names the difference, and calls the peer's node "there" and ours "the job's home". */
bool collectives_agree(const struct coll_choices *ours, const char *theirs, char *why,
                       size_t why_size);

#endif
