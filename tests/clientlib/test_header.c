/* The public headers, included before any other header, compile as C and as C++ with pedantic
 * warnings, and the program links with the library. */
#include <pwc/am.h>
#include <pwc/atomic.h>
#include <pwc/collective.h>
#include <pwc/counter.h>
#define PWC_HANDLER_HOST
#include <pwc/handler.h>
#include <pwc/notify.h>
#include <pwc/open.h>
#include <pwc/request.h>
#include <pwc/signal.h>
#include <pwc/team.h>
#include <pwc/tuning.h>
#include <pwc/vector.h>

/* Values that compiled programs contain, so they must never change. */
static const uint64_t kept[][2] = {
    {PWC_NO_LCE, 0x1},
    {PWC_NO_RCE, 0x2},
    {PWC_LCE_SOURCE, 0x4},
    {PWC_FENCE, 0x8},
    {PWC_UNORDERED, 0x10},
    {PWC_PROTOCOL_ORDERED, 0x20},
    {PWC_PROTOCOL_REASSEMBLE, 0x40},
    {PWC_PROTOCOL_CHAIN, 0x60},
    {PWC_AM_NO_REPLY, 0x80},
    {PWC_REMOTE_WRITE, 0x1},
    {PWC_REMOTE_READ, 0x2},
    {PWC_REMOTE_RW, 0x3},
    {PWC_MOVE, 0x100},
    {PWC_SHARE, 0x200},
    {PWC_OWN_KEY, 0x400},
    {PWC_OPEN, UINT32_MAX},
    {PWC_NAME_MAX, 63},
    {PWC_PUBLISHED_MAX, 1024},
    {sizeof(struct pwc_address), 32},
    {PWC_LOCAL, 0x1},
    {PWC_REMOTE, 0x2},
    {PWC_MESSAGE, 0x4},
    {PWC_OP_PUT, 1},
    {PWC_OP_GET, 2},
    {PWC_OP_SHORT, 4},
    {PWC_OP_MEDIUM, 5},
    {PWC_OP_LONG, 6},
    {PWC_OP_ATOMIC, 8},
    {PWC_OP_SIGNAL, 9},
    {PWC_OP_COLLECTIVE, 11},
    {PWC_OP_REQUEST, 64},
    {PWC_I8, 0},
    {PWC_U64, 7},
    {PWC_F32, 8},
    {PWC_F64, 9},
    {PWC_SET, 0},
    {PWC_ADD, 1},
    {PWC_PROD, 2},
    {PWC_MIN, 3},
    {PWC_MAX, 4},
    {PWC_AND, 5},
    {PWC_OR, 6},
    {PWC_XOR, 7},
    {PWC_READ, 8},
    {PWC_FETCH_MAX, 16},
    {PWC_EQ, 0},
    {PWC_NE, 1},
    {PWC_GT, 2},
    {PWC_GE, 3},
    {PWC_LT, 4},
    {PWC_LE, 5},
    {PWC_AM_SHORT, 1},
    {PWC_AM_MEDIUM, 2},
    {PWC_AM_LONG, 3},
    {PWC_AM_HANDLERS, 256},
    {PWC_AM_ARGUMENTS_MAX, 16},
    {PWC_CID_MAX, 1024},
    {PWC_ANY, 0xffffffffffffffff},
    {PWC_VERSION_NUMBER, PROJECT_VERSION},
    /* The sizes of structs, in which there is room for later words. */
    {sizeof(struct pwc_attr), 80},
    {sizeof(struct pwc_ctx_attr), 64},
    {sizeof(struct pwc_event), 64},
    {sizeof(struct pwc_status), 32},
    {sizeof(struct pwc_key), 32},
    {sizeof(struct pwc_piece), 24},
    {sizeof(struct pwc_shape), 112},
    {PWC_PIECES_MAX, 1024},
    {sizeof(struct pwc_am), 88},
    {sizeof(struct pwc_am_send), 64},
};

int main(void)
{
    pwc_cid by_value = pwc_cid_u64(7);
    pwc_cid by_name = pwc_cid_bytes("name", 4);
    pwc_peer peer = pwc_peer_of(3, 2);

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (kept[i][0] != kept[i][1])
            return 1;
    return !(pwc_version() == PWC_VERSION_NUMBER && PWC_CID_NONE.size == 0 && by_value.value == 7 &&
             by_value.size == 0 && by_name.size == 4 && pwc_peer_rank(peer) == 3 &&
             pwc_peer_context(peer) == 2 && pwc_strerror(0) != 0 && pwc_peer_of(5, 0) == 5);
}
