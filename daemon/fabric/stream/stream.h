/*
 * The stream fabric: writes and reads between daemons over TCP, by sockets alone.
 *
 * The fabric for nodes without an RDMA card. A TCP provider of libfabric serves programs of every
 * kind; this one serves fabric.h alone, with one system call for a send, one for a receive, and
 * memory that the target checks as a card would.
 *
 * One connection joins two fabrics. The one whose token is less connects. A token is 16
 * random bytes, drawn when the fabric is opened; it is part of our address, which daemons send each
 * other only when they have authenticated each other. The side that connects sends both tokens, so
 * that no other process is given a connection:
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
 * DATA answers a READ, a long one in several frames, which add up to it. DONE answers a write
 * posted with `placed`, with its errno, and a READ that is refused. Answers come in the order of
 * what they answer, so they name nothing. Writes come in the order posted, with no order between
 * them and answers: while both wait they share the connection by bytes (stream_connection.c).
 * Writes without flags that continue where the one before ends may come in one frame. At most
 * STREAM_ANSWERS may be due on a connection. A frame that breaks these rules, or writes to memory
 * that may not be written, ends the connection.
 *
 * Writes of one peer are placed in the order posted, whatever their length, and before any later
 * frame is looked at: a peer's word that it is done with some memory comes after all that it wrote
 * there. That is why there is one connection. A payload that is not sent yet stays in its source
 * memory, which is free when FABRIC_WRITTEN comes.
 *
 * Neither authenticated beyond the greeting nor encrypted (docs/security.md).
 *
 * Thread: as fabric.h says; there is no other.
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
    uint32_t operations_max; /* 4096: outstanding writes and reads */
    uint32_t memories_max;   /* 4096 */
    char *message;           /* where to say why opening failed, or NULL */
    size_t message_size;
};

int stream_open(const struct stream_config *config, struct fabric **out);

#endif
