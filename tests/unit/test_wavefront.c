/* SPDX-License-Identifier: BSD-3-Clause */
/* The wavefront: layouts, the skewed kernel, predictions, the note. */
#include "grid/grid.h"
#include "wavefront/calctrans.h"
#include "wavefront/convert.h"
#include "wavefront/kernel.h"
#include "wavefront/note.h"
#include "wavefront_tools.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For 300 geometries: the tiles' transfers cover the Buffer without overlap or gap, in whole units of the
 * alignment; the cells that a tile's rows name are disjoint, within the transfer, and as many as the tile
 * has; Buffer = matrix + copies + padding. */
Test(wavefront, tiles_cover_their_buffer_once) {
    for (int n = 0; n < 300; n++) {
        const struct mx_wf_geometry g = any_geometry();
        const enum mx_wf_matrix m = (enum mx_wf_matrix)pick(0, 5);
        const int64_t all = mx_wf_buffer_bytes(&g, m), unit = g.align_bytes < CELL ? CELL : g.align_bytes;
        char *seen = calloc((size_t)(all / CELL), 1), *dram = malloc((size_t)mx_wf_most_tile_bytes(&g, m));
        struct mx_span *spans = calloc((size_t)mx_wf_most_spans(&g, m), sizeof *spans);
        for (int64_t i = 0; i < g.tile_rows; i++)
            for (int64_t j = 0; j < g.tile_cols; j++) {
                const int64_t k = mx_wf_spans(&g, m, i, j, dram, spans),
                              bytes = mx_wf_tile_bytes(&g, m, i, j);
                int64_t moved = 0;
                cr_assert(k <= mx_wf_most_spans(&g, m) && bytes <= mx_wf_most_tile_bytes(&g, m));
                for (int64_t s = 0; s < k; s++) {
                    cr_assert((char *)spans[s].dram == dram + moved);
                    cr_assert(spans[s].offset_bytes % (uint64_t)unit == 0 &&
                              spans[s].bytes % (uint64_t)unit == 0);
                    for (uint64_t b = 0; b < spans[s].bytes; b += CELL)
                        cr_assert(seen[(spans[s].offset_bytes + b) / CELL]++ == 0);
                    moved += (int64_t)spans[s].bytes;
                }
                cr_assert(moved == bytes);
            }
        for (int64_t b = 0; b < all / CELL; b++) cr_assert(seen[b] == 1);
        const int64_t matrix = (g.rows + 2) * (g.cols + 2) * CELL;
        cr_assert(all == matrix + mx_wf_copy_bytes(&g, m) + mx_wf_padding_bytes(&g, m));
        cr_assert(mx_wf_padding_bytes(&g, m) >= 0);
        if (g.align_bytes <= CELL) cr_assert(mx_wf_padding_bytes(&g, m) == 0);
        free(seen);
        free(dram);
        free(spans);
    }
}

/* The frontier TF (0), LF, RF, BF (3) of a tile of h x w cells: where it begins in the tile, and its cells.
 */
static int64_t frontier(int64_t h, int64_t w, int which, int64_t *cells) {
    const int64_t inner = (h > 2 ? h - 2 : 0) * (w > 2 ? w - 2 : 0);
    const int64_t at[4] = {0, w, w + h + inner, w + 2 * h + inner};
    *cells = which == 0 || which == 3 ? w : h;
    return at[which];
}

/* Layout frontier: each of TF, LF, RF, BF is one contiguous piece of the tile's transfer and holds the cells
 * of the tile's first row, first column, last column, last row, corners included. */
Test(wavefront, every_frontier_is_contiguous) {
    for (int n = 0; n < 200; n++) {
        const struct mx_wf_geometry g =
            geometry(pick(1, 30), pick(1, 60), MX_WF_FRONTIER, pick(1, 12), pick(1, 20), 8);
        const int64_t i = pick(0, g.tile_rows - 1), j = pick(0, g.tile_cols - 1);
        const struct mx_wf_tile t = mx_wf_tile(&g, i, j);
        struct mx_span span;
        double *tile = calloc(1, (size_t)mx_wf_tile_bytes(&g, MX_WF_ZA, i, j));
        mx_wf_spans(&g, MX_WF_ZA, i, j, (char *)tile, &span);
        for (int64_t r = t.r0; r < t.r1; r++) {
            struct mx_wf_piece p[3];
            const int k = mx_wf_row(&g, MX_WF_ZA, i, j, r - t.r0, (char *)tile, p);
            int64_t c = t.c0;
            for (int q = 0; q < k; q++)
                for (int64_t x = 0; x < p[q].cells; x++) p[q].at[x] = (double)(r * 1000 + c++);
            cr_assert(c == t.c1);
        }
        mx_wf_seal(&g, MX_WF_ZA, i, j, (char *)tile);
        for (int which = 0; which < 4; which++) {
            int64_t cells;
            const int64_t at = frontier(t.r1 - t.r0, t.c1 - t.c0, which, &cells);
            for (int64_t x = 0; x < cells; x++) {
                const int64_t r = which == 0 ? t.r0 : which == 3 ? t.r1 - 1 : t.r0 + x;
                const int64_t c = which == 1 ? t.c0 : which == 2 ? t.c1 - 1 : t.c0 + x;
                cr_assert(tile[at + x] == (double)(r * 1000 + c), "frontier %d of %lld x %lld", which,
                          (long long)(t.r1 - t.r0), (long long)(t.c1 - t.c0));
            }
        }
        free(tile);
    }
}

/* Table 1 of the paper: space for the copies in a 16384 x 16384 matrix. */
Test(wavefront, table_1) {
    static const struct {
        int64_t tile, bytes;
    } table[] = {{4096, 512}, {512, 32 << 10}, {64, 2 << 20}, {8, 128 << 20}};
    for (size_t i = 0; i < 4; i++) {
        const struct mx_wf_geometry g =
            geometry(16384, 16384, MX_WF_FRONTIER, table[i].tile, table[i].tile, 1);
        cr_assert(mx_wf_copy_bytes(&g, MX_WF_ZA) == table[i].bytes);
        cr_assert(mx_wf_copy_bytes(&g, MX_WF_ZR) == 0);
    }
}

/* ------------------------------------------------------------------ kernel */

/* Rows in lanes, advanced in any pieces, have the bits of the loop; every instruction set. */
Test(wavefront, lanes_have_the_bits_of_the_loop) {
    for (int n = 0; n < 120; n++) {
        struct matrices a = make_matrices(pick(1, 40), n % 3 == 0 ? pick(1, 12) : pick(1, 300));
        const int64_t groups = (a.rows - 1) / MX_WF_LANES + 1, records = mx_wf_records(a.cols);
        const size_t bytes = (size_t)(groups * mx_wf_group_bytes(a.cols));
        struct mx_wf_record *r = aligned_alloc(64, bytes);
        struct mx_wf_group *g = calloc((size_t)groups, sizeof *g);
        memset(r, 0, bytes);
        for (int64_t i = 1; i <= a.rows; i++)
            for (int64_t c = 0; c < a.width; c++)
                for (int m = 0; m < MX_WF_MATRICES; m++) {
                    const int64_t k = (i - 1) % MX_WF_LANES;
                    (&r[(i - 1) / MX_WF_LANES * records + c + k].za[0])[m * MX_WF_LANES + k] =
                        a.z[m][i * a.width + c];
                }
        for (int64_t q = 0; q < groups; q++) {
            const bool first = q == 0, end = q + 1 == groups;
            g[q] = (struct mx_wf_group){
                .at = r + q * records,
                .cols = a.cols,
                .last = end ? (a.rows - 1) % MX_WF_LANES : MX_WF_LANES - 1,
                .north = first ? a.z[MX_WF_ZA] : mx_wf_lane(r + (q - 1) * records, MX_WF_LANES - 1),
                .south = end ? a.z[MX_WF_ZA] + (a.rows + 1) * a.width : mx_wf_lane(r + (q + 1) * records, 0),
                .north_step = first ? 1 : MX_WF_LANE_STEP,
                .south_step = end ? 1 : MX_WF_LANE_STEP};
        }
        const int64_t end = mx_wf_end(a.cols, groups);
        for (int wave = 0; wave < 3; wave++)
            for (int64_t t = 0, t1; t < end; t = t1) {
                t1 = t + pick(1, 90) < end ? t + pick(1, 90) : end;
                if (t1 <= t) t1 = t + 1;
                mx_wf_advance(g, groups, t, t1);
            }
        iterate(&a, 3);
        for (int64_t i = 1; i <= a.rows; i++)
            for (int64_t c = 0; c < a.width; c++) {
                const int64_t k = (i - 1) % MX_WF_LANES;
                cr_assert(memcmp(&r[(i - 1) / MX_WF_LANES * records + c + k].za[k],
                                 &a.z[MX_WF_ZA][i * a.width + c], CELL) == 0,
                          "row %lld of %lld, column %lld of %lld", (long long)i, (long long)a.rows,
                          (long long)c, (long long)a.cols);
            }
        free(r);
        free(g);
        free_matrices(&a);
    }
}

/* The function for any machine gives what the one for this machine gives. */
Test(wavefront, instruction_sets_agree) {
    enum { COLS = 100 };
    const int64_t records = mx_wf_records(COLS);
    const size_t bytes = (size_t)(2 * mx_wf_group_bytes(COLS));
    double border[COLS + 2];
    struct mx_wf_record *r[2];
    if (strcmp(mx_wf_isa(), "plain") == 0) cr_skip_test("this machine has no AVX2");
    for (int i = 0; i < COLS + 2; i++) border[i] = (double)pick(0, 1000) / 7;
    for (int x = 0; x < 2; x++) r[x] = aligned_alloc(64, bytes);
    for (size_t i = 0; i < bytes / CELL; i++) ((double *)r[0])[i] = (double)pick(0, 1000) / 3000;
    memcpy(r[1], r[0], bytes);
    for (int x = 0; x < 2; x++) {
        const struct mx_wf_group g[2] = {
            {r[x], COLS, 7, border, mx_wf_lane(r[x] + records, 0), 1, MX_WF_LANE_STEP},
            {r[x] + records, COLS, 4, mx_wf_lane(r[x], 7), border, MX_WF_LANE_STEP, 1}};
        (x == 0 ? mx_wf_steps_plain : mx_wf_steps_avx2)(g, 2, MX_WF_LANES + MX_WF_LAG, COLS);
    }
    cr_assert(memcmp(r[0], r[1], bytes) == 0);
    for (int x = 0; x < 2; x++) free(r[x]);
}

/* ------------------------------------------------------------------ predictions and plans */

/* Bytes of a pass = the sum over its tiles' transfers. */
Test(wavefront, predicted_bytes_are_the_sum_of_transfers) {
    for (int n = 0; n < 200; n++) {
        const struct mx_wf_plan p = {.geometry = any_geometry(), .waves = pick(1, 9), .threads = 1};
        const int64_t iterations = pick(0, 30), passes = (iterations + p.waves - 1) / p.waves;
        struct mx_wf_traffic t;
        int64_t read = 0, write = 0;
        for (int64_t i = 0; i < p.geometry.tile_rows; i++)
            for (int64_t j = 0; j < p.geometry.tile_cols; j++) {
                for (int m = 0; m < MX_WF_MATRICES; m++)
                    read += mx_wf_tile_bytes(&p.geometry, (enum mx_wf_matrix)m, i, j);
                write += mx_wf_tile_bytes(&p.geometry, MX_WF_ZA, i, j);
            }
        mx_wf_predict(&p, iterations, &t);
        cr_assert(t.passes == passes && t.read_bytes == passes * read && t.write_bytes == passes * write);
        cr_assert(t.load_bytes == read);
    }
}

/* A tuned plan fits; more DRAM is never slower; what is given stays; what cannot fit is -ENOMEM and says what
 * would. */
Test(wavefront, tuned_plans_fit) {
    struct mx_wf_request q = {.rows = 4720,
                              .cols = 4720,
                              .iterations = 64,
                              .layout = MX_WF_FRONTIER,
                              .align_bytes = 4096,
                              .threads = 2};
    struct mx_wf_choice c = {.seconds = 1e300};
    mx_why why;
    double before = 1e300;
    for (uint64_t mib = 24; mib <= 2048; mib *= 2) {
        q.dram_bytes = mib << 20;
        cr_assert(mx_wf_tune(&q, &why, &c) == 0, "%s", why.text);
        cr_assert(c.dram_bytes <= (int64_t)q.dram_bytes && c.dram_bytes == mx_wf_dram_bytes(&c.plan));
        cr_assert(c.seconds <= before * 1.002 && c.plan.waves >= 1 && c.plan.waves <= 64);
        before = c.seconds;
    }
    q.waves = 5, q.mb = 24, q.nb = 100;
    cr_assert(mx_wf_tune(&q, &why, &c) == 0);
    cr_assert(c.plan.waves == 5 && c.plan.geometry.mb == 24 && c.plan.geometry.nb == 100);
    q.dram_bytes = 1 << 20;
    cr_assert(mx_wf_tune(&q, &why, &c) == -ENOMEM && strstr(why.text, "--dram") != NULL);
}

/* ------------------------------------------------------------------ note */

Test(wavefront, a_note_is_read_as_it_was_written) {
    static struct mx_wf_note a, b;
    char text[MX_NOTE_BYTES];
    mx_why why;
    memset(&a, 0, sizeof a);
    a.geometry = geometry(100, 200, MX_WF_BLOCK, 16, 50, 512);
    a.iterations = 9, a.done = 4, a.buffer = 1, a.started_s = 5, a.committed_s = 6;
    strcpy(a.init, "random");
    strcpy(a.backend, "uring");
    strcpy(a.checksum, "0123456789abcdef");
    strcpy(a.inputs[2].path, "/data/100 %/z\xff.npy");
    a.inputs[2].identity.bytes = 7, a.inputs[2].identity.modified_ns = -8;
    const int n = mx_wf_note_print(&a, text, sizeof text);
    cr_assert(n > 0 && mx_wf_note_parse(text, (size_t)n, &why, &b) == 0, "%s", why.text);
    cr_assert(memcmp(&a, &b, sizeof a) == 0);
    for (int k = 0; k < n; k++) /* cut short, it is none */
        cr_assert(mx_wf_note_parse(text, (size_t)k, &why, &b) == -EINVAL && why.text[0] != 0);
}

Test(wavefront, contradictory_notes_are_refused) {
    static const char *const changes[][2] = {{"\"done\":4", "\"done\":10"},
                                             {"\"buffer\":1", "\"buffer\":2"},
                                             {"\"mb\":16", "\"mb\":1600"},
                                             {"\"layout\":\"block\"", "\"layout\":\"heap\""},
                                             {"\"align_bytes\":512", "\"align_bytes\":48"},
                                             {"\"note\":1", "\"note\":2"},
                                             {"memext wavefront", "memext run"}};
    static struct mx_wf_note a, b;
    char text[MX_NOTE_BYTES], other[MX_NOTE_BYTES];
    memset(&a, 0, sizeof a);
    a.geometry = geometry(100, 200, MX_WF_BLOCK, 16, 50, 512);
    a.iterations = 9, a.done = 4, a.buffer = 1;
    strcpy(a.init, "random");
    cr_assert(mx_wf_note_print(&a, text, sizeof text) > 0);
    cr_assert(mx_wf_note_parse(text, strlen(text), NULL, &b) == 0);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const char *at = strstr(text, changes[i][0]);
        cr_assert(at != NULL, "%s", changes[i][0]);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, changes[i][1],
                 at + strlen(changes[i][0]));
        cr_assert(mx_wf_note_parse(other, strlen(other), NULL, &b) == -EINVAL, "%s", changes[i][1]);
    }
}
