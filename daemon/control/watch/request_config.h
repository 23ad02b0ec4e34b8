/* Makes the view "config" of Inspect: the values in use, and the source of each. Thread:
 * control. */
#ifndef PWC_CONTROL_REQUEST_CONFIG_H
#define PWC_CONTROL_REQUEST_CONFIG_H

#include <jansson.h>
#include "daemon/control/control.h"

/* Adds the rows `config` to a document. A secret is shown only by its path. */
void request_config_put(json_t *document, struct control *control);

#endif
