/*
 * A channel over a second mapping of a fake session: client and daemon each have a mapping of the
 * same memory.
 *
 * Thread: the test's. Owner: the test, which closes all three.
 */
#ifndef PWC_TESTS_CLIENTLIB_FAKE_CHANNEL_H
#define PWC_TESTS_CLIENTLIB_FAKE_CHANNEL_H

#include "clientlib/channel/channel.h"
#include "tests/clientlib/session/fake_session.h"

/* Opens a session with rings of these sizes, maps it again, and opens the channel on that. */
void fake_channel_open(struct fake_session *daemon, struct mapping *mapping,
                       struct channel *channel, const struct session_sizes *sizes);
void fake_channel_close(struct fake_session *daemon, struct mapping *mapping,
                        struct channel *channel);

#endif
