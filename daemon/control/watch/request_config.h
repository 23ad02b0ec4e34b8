/* Inspect "config": what holds in this daemon, and where each value came from. Thread: control. */
#ifndef PWC_CONTROL_REQUEST_CONFIG_H
#define PWC_CONTROL_REQUEST_CONFIG_H

#include <jansson.h>
#include "daemon/control/control.h"

/* The rows `config` of a document. A secret is shown by its path alone. */
void request_config_put(json_t *document, struct control *control);

#endif
