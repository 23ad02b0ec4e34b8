/* The public headers alone, before anything else, as C and as C++, pedantic; linked with the
 * library. */
#include <pwc/am.h>

int main(void)
{
    pwc_cid by_value = pwc_cid_u64(7);
    pwc_cid by_name = pwc_cid_bytes("name", 4);
    pwc_peer peer = pwc_peer_of(3, 2);

    return !(by_value.value == 7 && by_value.size == 0 && by_name.size == 4 &&
             pwc_peer_rank(peer) == 3 && pwc_peer_context(peer) == 2 && pwc_strerror(0) != 0 &&
             pwc_peer_of(5, 0) == 5 && PWC_AM_HANDLERS == 256 && PWC_AM_SHORT == 1);
}
