/* SPDX-License-Identifier: BSD-3-Clause */
/* phases.h - inside run/ only: what phases.c and verify.c share. */
#ifndef MX_RUN_PHASES_H
#define MX_RUN_PHASES_H

#include "machine/clock.h"
#include "run/run.h"

/* What happens at steps and planes besides the computation: sources, traces, norms, sides? */
bool mx_run_asks(const struct mx_run *r);
void mx_run_on_progress(void *run, int64_t updates_done);

/* A pass over all planes of a Buffer with progress in bytes: `use` is called for each of them, and fills it
 * (write), or reads it. */
int mx_run_pass_layout(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                       bool write, mx_source_fn *use, void *context);

/* ---- the initial grid */

/* One plane of it, its frame as the source has it, or as it is made. context: the run. */
int mx_plain_plane(void *run, int64_t z, char *plane);
/* Planes of fields: array A (0), B (1), or MX_FIELD_OF_C and its number. */
struct mx_fields_fill mx_run_fill(struct mx_run *r, int32_t array, int32_t index,
                                  const struct mx_layout *layout);

/* Planes with the frames that the run's sides ask for. z is this rank's, `fill` is asked for planes of the
 * whole grid. */
struct mx_sided {
    struct mx_run *r;
    int array;
    mx_source_fn *fill;
    void *context;
};

int mx_fill_sided(void *sided, int64_t z, char *plane);

/* Planes of a field that a kernel only reads. At periodic sides its frame is what stands at the other end,
 * like the ghost layers that some plans read there; at others it is the file's. */
struct mx_sided_field {
    const struct mx_run *run;
    const struct mx_layout *layout;
    enum mx_dtype dtype;
    struct mx_fields_fill *fill;
    int64_t before; /* planes of the Buffer that stand before the rank's own frame */
};

int mx_fill_sided_field(void *sided_field, int64_t z, char *plane);

/* ---- verify.c */

/* Of all ranks together. 0 also where the result differs: the report says it. */
int mx_run_verify(struct mx_run *r);

#endif
