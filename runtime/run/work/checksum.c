/* SPDX-License-Identifier: BSD-3-Clause */
/* checksum.c - the digest of the interior cells of a result, in the order z, y, field, x. */
#include "run/work/work.h"

#include <stdio.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

struct digest {
    const struct mx_run *run;
    struct mx_nonfinite *found; /* NULL = the state was counted before */
    XXH3_state_t *state;
    int array; /* whose fields: A (0) or B (1) */
};

static int digest_plane(void *context, int64_t z, char *plane) {
    struct digest *d = context;
    const struct mx_problem *p = &d->run->o.problem;
    const struct mx_layout *l = &d->run->report.layout;
    if (z < p->h || z >= p->nz + p->h) return 0;
    for (int64_t y = p->h; y < p->ny + p->h; y++)
        for (int32_t f = 0; f < mx_field_count(p, d->array); f++) {
            const int64_t element = mx_dtype_bytes(mx_field_dtype(p, d->array, f));
            const char *row = plane + y * l->row_pitch_bytes + l->field_offset_bytes[d->array][f];
            XXH3_64bits_update(d->state, row + p->h * element, (size_t)(p->nx * element));
        }
    if (d->found != NULL)
        mx_nonfinite_rows(p, l, d->array, z, 0, l->rows, plane, l->row_pitch_bytes, d->found);
    return 0;
}

/* The array that holds the state, of staggered systems the first of both. */
int mx_run_state_array(const struct mx_run *r) {
    return (int)(mx_levels_of(&r->o.problem, r->report.steps_done) & 1);
}

/* The digest goes from cell to cell: of ranks each goes on where the one below it has ended; for a second
 * array the first rank goes on where the last has. */
static int digest_array(struct mx_run *r, struct digest *d, bool first) {
    mx_link *link = r->ranks.link;
    const unsigned char *secret = d->state->extSecret; /* an address of this process */
    int err = link != NULL && !first ? mx_link_share(link, MX_CHANNEL_RUN, r->ranks.ranks - 1, d->state,
                                                     sizeof *d->state, &r->why)
                                     : 0;
    if (err == 0 && link != NULL) err = mx_link_take_turn(link, d->state, sizeof *d->state, &r->why);
    d->state->extSecret = secret;
    if (err == 0)
        err = mx_run_pass_grid(r, "checksum", mx_run_buffer(r, r->result, d->array), false, digest_plane, d);
    return err == 0 && link != NULL ? mx_link_pass_turn(link, d->state, sizeof *d->state, &r->why) : err;
}

int mx_run_take_checksum(struct mx_run *r) {
    if (r->fuse.checksum && r->fuse.whole) {
        snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx",
                 (unsigned long long)mx_run_fuse_checksum(r));
        return 0;
    }
    struct mx_nonfinite found = {.cells = 0};
    struct digest d = {r, mx_run_is_counted(r) ? NULL : &found, XXH3_createState(), mx_run_state_array(r)};
    if (d.state == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
    XXH3_64bits_reset(d.state);
    const unsigned char *secret = d.state->extSecret;
    int err = digest_array(r, &d, true);
    if (err == 0 && mx_form(&r->o.problem) == MX_STAGGERED) {
        d.array = 1;
        err = digest_array(r, &d, false);
    }
    if (err == 0 && mx_is_rank(&r->ranks)) /* the last rank has seen all */
        err = mx_link_share(r->ranks.link, MX_CHANNEL_RUN, r->ranks.ranks - 1, d.state, sizeof *d.state,
                            &r->why);
    d.state->extSecret = secret;
    if (err == 0)
        snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx",
                 (unsigned long long)XXH3_64bits_digest(d.state));
    XXH3_freeState(d.state);
    if (err == 0 && d.found != NULL)
        err = mx_run_finite_state(r, r->report.steps_done - r->first_time, &found, &r->why);
    return err;
}
