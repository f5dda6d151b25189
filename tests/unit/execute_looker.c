/* SPDX-License-Identifier: BSD-3-Clause */
/* The looker: what its threads find together in rows of several STOREs is what one thread finds, whatever the
 * boxes are and however many are under way. */
#include "effort.h"
#include "execute/looker.h"
#include "machine/bell.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { NX = 700, NY = 301, NZ = 9, PITCH = 704, SOME = 12, ROUNDS = 20 };

static double grid[NZ + 2][NY + 2][PITCH];

static int same(const struct mx_nonfinite *a, const struct mx_nonfinite *b) {
    return a->cells == b->cells && (a->cells == 0 || (a->x == b->x && a->y == b->y && a->z == b->z));
}

Test(looker, finds_what_one_thread_finds, .timeout = 600) {
    static struct mx_looking looking[SOME];
    static struct mx_finding finding[SOME];
    const struct mx_problem p = {.nx = NX, .ny = NY, .nz = NZ, .h = 1, .dtype = MX_F64, .first_plane = 5};
    const struct mx_layout l = {.row_pitch_bytes = PITCH * 8};
    uint64_t state = 1;
    for (int i = 0; i < SOME; i++) pthread_mutex_init(&finding[i].lock, NULL);
    static const int32_t counts[] = {1, 3, 8, 20};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const int32_t threads = counts[c];
        struct mx_bell *bell = mx_bell_open();
        struct mx_looker *k = mx_looker_start(threads, &p, &l);
        cr_assert(k != NULL);
        for (int round = 0; round < ROUNDS; round += mx_case_step()) {
            memset(grid, 0, sizeof grid);
            for (int i = 0; i < round * round; i++) {
                state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                const uint64_t at = state >> 33;
                grid[at % (NZ + 2)][at / 16 % (NY + 2)][at / 8192 % PITCH] = i % 2 ? NAN : -INFINITY;
            }
            for (int i = 0; i < SOME; i++) {
                finding[i].found.cells = 0;
                looking[i] = (struct mx_looking){
                    .view = {.base = {(char *)grid},
                             .slots = {NZ + 2, 1},
                             .plane_pitch_bytes = sizeof grid[0],
                             .row_pitch_bytes = l.row_pitch_bytes},
                    .region = {.y0 = i * 20, .y1 = NY + 2 - i % 3, .z0 = i % 4, .z1 = NZ + 2 - i % 5},
                    .finding = &finding[i]};
                if (i == SOME - 1) looking[i].region.y1 = looking[i].region.y0;
                mx_looker_post(k, &looking[i]);
            }
            for (int i = SOME - 1; i >= 0; i--) {
                mx_looker_wait(k, &looking[i]);
                cr_assert(mx_looking_done(&looking[i]));
                const struct mx_nonfinite found = finding[i].found;
                finding[i].found.cells = 0;
                mx_look_at(&p, &l, &looking[i]);
                cr_assert(same(&found, &finding[i].found), "%d threads, round %d, box %d: %ld and %ld cells",
                          threads, round, i, (long)found.cells, (long)finding[i].found.cells);
            }
        }
        cr_assert(bell != NULL && mx_bell_heard(bell) > 0);
        mx_looker_stop(k);
        mx_bell_close();
    }
    for (int i = 0; i < SOME; i++) pthread_mutex_destroy(&finding[i].lock);
}
