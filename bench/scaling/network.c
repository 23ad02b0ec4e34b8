/* Sets of LogGP parameters (network.h). Thread: any. */
#include "bench/scaling/network.h"

#include <stddef.h>
#include <string.h>

static const struct network networks[] = {
    /*
     * InfiniBand HDR. NVIDIA's manual of ConnectX-6 (docs.nvidia.com, ConnectX6EN, Introduction)
     * has 200 Gbit/s, hence G = 40 ps a byte; 215 million messages a second, hence g = 4.65 ns; and
     * less than 600 ns from program to program without a switch. The time that a
     * processor spends on a message, and the delay of switches and wires, are those of the sPIN
     * paper: o = 65 ns, and for 1,024 nodes five switches of 50 ns and six wires of 33.4 ns, 450
     * ns. So L = 600 - 2 * 65 + 450 = 920 ns.
     */
    {"hdr", {.latency_ps = 920000, .overhead_ps = 65000, .gap_ps = 4650, .byte_fs = 40000}},
    /*
     * The sPIN paper (2017, sections 4.2 and 4.3): o = 65 ns, g = 6.7 ns, 400 Gbit/s; a fat
     * tree of 36-port switches, which for 1,024 nodes has five switches of 50 ns and six wires of
     * 33.4 ns on the way, 450 ns; and 250 ns for the discrete card's DMA to place what has arrived.
     * The paper prints G = 2.5 ps, which must be for a bit: its g/G = 335 bytes (section 4.4.2)
     * gives 20 ps a byte.
     */
    {"spin", {.latency_ps = 700000, .overhead_ps = 65000, .gap_ps = 6700, .byte_fs = 20000}},
};

const struct network *network_named(const char *name)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (strcmp(networks[i].name, name) == 0)
            return &networks[i];
    return NULL;
}
