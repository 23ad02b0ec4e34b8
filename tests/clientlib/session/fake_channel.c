/* Opens and closes a channel over a fake session (fake_channel.h). Thread: the test's. */
#include "tests/clientlib/session/fake_channel.h"

#include <CUnit/CUnit.h>

void fake_channel_open(struct fake_session *daemon, struct mapping *mapping,
                       struct channel *channel, const struct session_sizes *sizes)
{
    CU_ASSERT_EQUAL_FATAL(fake_session_open(daemon, sizes), 0);
    CU_ASSERT_EQUAL_FATAL(mapping_adopt(mapping, daemon->mapping.fd, daemon->mapping.size), 0);
    daemon->mapping.fd = -1; /* the second mapping owns it */
    CU_ASSERT_EQUAL_FATAL(channel_init(channel, mapping->base, mapping->size), 0);
    CU_ASSERT_EQUAL_FATAL(pending_open(&channel->pending, session_local_limit(sizes->local)), 0);
}

void fake_channel_close(struct fake_session *daemon, struct mapping *mapping,
                        struct channel *channel)
{
    channel_destroy(channel);
    mapping_destroy(mapping);
    fake_session_close(daemon);
}
