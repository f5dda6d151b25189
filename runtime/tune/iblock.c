/* SPDX-License-Identifier: BSD-3-Clause */
/* iblock.c - step 1 of the tuners: the iBlock, the part of a Block that is computed in cache. */
#include "tune/job.h"

#include <stdlib.h>

enum { BUFFERS = 2, MAX_IY = 64 }; /* k of the paper; rows of an iBlock that are ever looked at */

struct mx_iblock mx_iblock_blk(int64_t nx, int64_t element, int64_t cores, uint64_t l2, int64_t max_iy,
                               int64_t max_iz) {
    struct mx_iblock best = {0};
    mx_wide least = 0;
    mx_wide cache = (mx_wide)l2 * cores;
    int64_t last_iy = max_iy > 0 ? mx_min(max_iy, MAX_IY) : MAX_IY;
    for (int64_t iy = 1; iy <= last_iy; iy++) {
        mx_wide core_layer = (mx_wide)BUFFERS * nx * iy * element; /* one plane for each core: times cores */
        int64_t q = mx_max(1, (int64_t)((mx_wide)l2 / core_layer));
        if (max_iz > 0) q = mx_max(1, mx_min(q, max_iz / cores));
        for (int64_t m = q; m <= q + 1; m++) {
            if (max_iz > 0 && m > 1 && m * cores > max_iz) continue;
            mx_wide miss = core_layer * m * cores - cache;
            if (miss < 0) miss = -miss;
            if (best.iy != 0 && miss >= least) continue;
            least = miss;
            best = (struct mx_iblock){iy, m * cores};
        }
    }
    return best;
}
