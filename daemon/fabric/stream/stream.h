/*
 * The stream fabric: writes and reads between daemons over TCP, with plain sockets.
 *
 * This is the fabric for nodes without an RDMA card. A TCP provider of libfabric serves programs of
 * every kind; stream serves only fabric.h, with one system call for a send and one for a receive.
 * The target checks accesses to memory as a card would.
 *
 * One connection joins two fabrics; the fabric with the lower token connects. A token is 16 random
 * bytes, drawn when the fabric is opened. The token is part of our address, which daemons exchange
 * only after they have authenticated each other. The side that connects sends both tokens, so that
 * no other process can get a connection:
 *
 *     address   +----------+---------------------------+-----------+
 *               | magic, 8 | socket address, 16 or 28  | token, 16 |
 *               +----------+---------------------------+-----------+
 *     greeting  +----------+-----------+-----------+
 *               | magic, 8 | target 16 | origin 16 |   then frames, from either side
 *               +----------+-----------+-----------+
 *
 * A frame is 32 bytes, and the payload where one follows (host byte order):
 *
 *     0      1       2          4               8         16         24        32
 *     +------+-------+----------+---------------+---------+----------+---------+--------------+
 *     | kind | flags | 0        | immediate     | length  | address  | key     | payload ...  |
 *     +------+-------+----------+---------------+---------+----------+---------+--------------+
 *     WRITE    announce, placed   of the announce  of payload  of the target, and its key   yes
 *     READ                                         asked for   of the source, and its key
 *     DATA                                         of payload                               yes
 *     DONE                                                                errno, or 0
 *
 * DATA answers a READ; the answer to a long READ is several frames. DONE answers a write posted
 * with `placed`, with its errno, and a READ that is refused. Answers come in the order of the
 * frames that they answer, so they need no name. Writes come in the order of their posts. There is
 * no order between writes and answers: while both wait, they share the connection by bytes
 * (stream_connection.c). Writes without flags, each of which continues where the last one ends, may
 * come in one frame. At most STREAM_ANSWERS answers may be due on a connection. A frame that breaks
 * these rules, or writes to memory that may not be written, ends the connection.
 *
 * Writes of one peer are placed in the order of their posts, whatever their length, and before any
 * later frame is handled. So when a peer says that it is done with some memory, all its writes
 * there have been placed. That is why there is only one connection. A payload that is not sent yet
 * stays in its source memory, which the caller may reuse at FABRIC_WRITTEN.
 *
 * After the greeting nothing is authenticated, and nothing is encrypted (docs/security.md).
 *
 * Thread: the progress thread, as fabric.h says; the fabric has no other thread.
 */
#ifndef PWC_FABRIC_STREAM_H
#define PWC_FABRIC_STREAM_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"

#define STREAM_MAGIC   "pwcflow2"
#define STREAM_TOKEN   16u
#define STREAM_ANSWERS 1024u

enum stream_kind {
    STREAM_WRITE = 1,
    STREAM_READ = 2,
    STREAM_DATA = 3,
    STREAM_DONE = 4,
};

enum stream_flags {
    STREAM_ANNOUNCE = 1 << 0,
    STREAM_PLACED = 1 << 1,
};

struct stream_frame {
    uint8_t kind;
    uint8_t flags;
    uint16_t zero;
    uint32_t immediate;
    uint64_t length;
    uint64_t address;
    uint64_t key;
};

static_assert(sizeof(struct stream_frame) == 32, "");
static_assert(offsetof(struct stream_frame, length) == 8, "");
static_assert(offsetof(struct stream_frame, key) == 24, "");

struct stream_greeting {
    uint8_t magic[8];
    uint8_t target[STREAM_TOKEN];
    uint8_t origin[STREAM_TOKEN];
};

static_assert(sizeof(struct stream_greeting) == 40, "");

/* Zero and NULL mean the default. */
struct stream_config {
    const char *bind;        /* IP address or interface; default 127.0.0.1 */
    uint32_t peers_max;      /* 16384 */
    uint32_t operations_max; /* 4096: most writes and reads under way */
    uint32_t memories_max;   /* 4096 */
    char *message;           /* where to write why stream_open failed, or NULL */
    size_t message_size;
};

int stream_open(const struct stream_config *config, struct fabric **out);

#endif
