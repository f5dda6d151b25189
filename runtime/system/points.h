/* SPDX-License-Identifier: BSD-3-Clause */
/* points.h - sources and probes: single cells to which something is added, or whose values are recorded.
 *
 * A list of points is sorted by (z, y, x), with points of one cell in the order given, and indexed by plane.
 * So the points of a few rows are found quickly among thousands. Coordinates are those of the interior, from
 * 0.
 *
 * A field is named as the kernel names it; that of a built-in stencil is "u". A field of a staggered system
 * is in array A or in B, and a point of it acts when that array is written; the fields of other systems are
 * in both, and their points act after the last level of every step.
 *
 * One thread makes and sorts a list; then any number of threads may look up points.
 */
#ifndef MX_POINTS_H
#define MX_POINTS_H

#include "system/system.h"

#include <stdatomic.h>

struct mx_point {
    int32_t field;
    int32_t array; /* 0 = A, 1 = B, -1 = both (every form except staggered) */
    int64_t x, y, z;
    int64_t number; /* in the order given, from 0 */
};

struct mx_points {
    struct mx_point *point; /* [n], sorted once mx_points_index has been called */
    int64_t n, capacity;
    int64_t *first; /* [nz + 1]: points of plane z are first[z] .. first[z+1]-1 */
    uint64_t *near; /* [nz]: which of 64 parts of its rows have some (mx_points_parts) */
    int64_t rows;   /* ny */
};

/* Adds a point. xyz: in the user's axes; in two dimensions z is 0. -EINVAL, with a sentence that begins with
 * `what` ("probe u 3 4 5"): there is no such field, or the cell is outside the grid. -ENOMEM. */
int mx_points_add(struct mx_points *points, const struct mx_problem *problem, const char *what,
                  const char *field, const int64_t xyz[3], mx_why *why);
/* Sorts and indexes a list, after the last point was added. -ENOMEM. */
int mx_points_index(struct mx_points *points, const struct mx_problem *problem, mx_why *why);
void mx_points_free(struct mx_points *points);
/* Finds the points of rows [y0,y1) of plane z: [*from, *end) of points->point. Rows and planes of the
 * interior, from 0.
 */
void mx_points_of_rows(const struct mx_points *points, int64_t z, int64_t y0, int64_t y1, int64_t *from,
                       int64_t *end);
static inline bool mx_points_in_plane(const struct mx_points *points, int64_t z) {
    return points->first[z] != points->first[z + 1];
}
/* Returns a bit for each part of a plane that rows [y0,y1) lie in. Compare it with `near` to skip rows
 * without points at once. Rows beyond the interior give all bits, since they may be any rows of a periodic y.
 */
static inline uint64_t mx_points_parts(const struct mx_points *points, int64_t y0, int64_t y1) {
    if (y0 < 0 || y1 > points->rows || y0 >= y1) return UINT64_MAX;
    const int64_t first = y0 * 64 / points->rows, last = (y1 - 1) * 64 / points->rows;
    return (UINT64_MAX << first) & (UINT64_MAX >> (63 - last));
}

/* Do points act after this level? With several stages they act only after the last one. */
static inline bool mx_points_act(const struct mx_problem *p, int64_t level) {
    return !mx_has_stages(p) || (level + 1) % mx_levels_a_step(p) == 0;
}

/* ---- sources */

/* A wavelet: what is added at each step, from step 0 on. */
struct mx_wavelet {
    char *path;
    int64_t n;
    double *amplitude; /* [n] */
};

/* All zero: no sources. */
struct mx_sources {
    struct mx_points points;
    struct mx_wavelet *wavelet; /* each file once */
    int64_t n_wavelets;
    int64_t *of; /* [points]: wavelet of point number i */
    int64_t of_capacity;
};

/* Adds "FIELD@X,Y,Z=wavelet.npy": a .npy file of one dimension, '<f8' or '<f4', whose value s is added to the
 * cell when step s + 1 has been computed from step s. If the file is shorter than the run, nothing is added
 * after its end; if it is longer, the rest is ignored. -EINVAL, or -errno of the file, with a sentence. */
int mx_sources_add(struct mx_sources *sources, const struct mx_problem *problem, const char *text,
                   mx_why *why);
/* Adds the lines of a text file, each like the text above. Empty lines, and text after a #, are ignored.
 * Sentences name the file and the line. */
int mx_sources_read(struct mx_sources *sources, const struct mx_problem *problem, const char *path,
                    mx_why *why);
/* Sorts and indexes the sources, after the last one was added. */
int mx_sources_index(struct mx_sources *sources, const struct mx_problem *problem, mx_why *why);
void mx_sources_free(struct mx_sources *sources);
/* DRAM of it, for the budget. */
int64_t mx_sources_bytes(const struct mx_sources *sources);
/* Returns a hash of points and amplitudes. Two hashes are equal only if the same is added in the same order
 * (chance apart). 0 = no sources. The note of a run keeps it, so that a resumed run has the same sources. */
uint64_t mx_sources_identity(const struct mx_sources *sources);

/* Gives the amplitude of sorted point i at a step; false = nothing is added. Cell and amplitude are added as
 * f64, and the sum is rounded to the cell's type, as NumPy does it. */
static inline bool mx_source_amplitude(const struct mx_sources *sources, int64_t i, int64_t step,
                                       double *out) {
    const struct mx_wavelet *w = &sources->wavelet[sources->of[sources->points.point[i].number]];
    if (step >= w->n) return false;
    *out = w->amplitude[step];
    return true;
}

/* ---- probes */

/* Adds the lines "FIELD X Y Z" of a text file. Empty lines, and text after a #, are ignored. */
int mx_probes_read(struct mx_points *probes, const struct mx_problem *problem, const char *path, mx_why *why);
uint64_t mx_points_identity(const struct mx_points *points);

/* Traces: the value of every probe after every step, as f64 (exact), [step][probe in the order given]. It is
 * a ring of `capacity` steps, which holds those that were not taken yet. A bit says that a value is there. To
 * record is to store a value and set a bit, by any thread, once or several times: a cell that is computed
 * twice has the same bits. */
struct mx_traces {
    const struct mx_points *probes;
    int64_t n, words;        /* probes, words of bits of a step */
    int64_t capacity;        /* steps */
    _Atomic int64_t taken;   /* steps before this one have been taken */
    _Atomic uint64_t *value; /* [capacity * n]: bits of the f64 */
    _Atomic uint64_t *bit;   /* [capacity * words] */
    _Atomic int64_t lost;    /* a step that found no room in the ring; -1 = none */
};

/* Makes traces. capacity: steps that can be under way before they are taken, at most nt: those of every sweep
 * that may have begun when the first of them is complete, and of the sweep before it. first_step: steps that
 * were taken before a run was resumed, else 0. -ENOMEM. */
int mx_traces_make(const struct mx_points *probes, int64_t capacity, int64_t first_step, mx_why *why,
                   struct mx_traces *out);
void mx_traces_free(struct mx_traces *traces);
int64_t mx_traces_bytes(const struct mx_points *probes, int64_t capacity);

/* Sorted probe i after the level that step `step` is computed by. */
static inline void mx_traces_record(struct mx_traces *t, int64_t step, int64_t i, double value) {
    const int64_t number = t->probes->point[i].number;
    const int64_t before = atomic_load_explicit(&t->taken, memory_order_relaxed);
    if (step < before) return; /* computed again, and known */
    if (step - before >= t->capacity) {
        atomic_store_explicit(&t->lost, step, memory_order_relaxed);
        return;
    }
    const int64_t slot = step % t->capacity;
    union {
        double f;
        uint64_t u;
    } bits = {value};
    atomic_store_explicit(&t->value[slot * t->n + number], bits.u, memory_order_relaxed);
    atomic_fetch_or_explicit(&t->bit[slot * t->words + number / 64], UINT64_C(1) << (number % 64),
                             memory_order_release);
}

/* Copies steps [taken, end) to rows of n values each, and frees their room. One thread calls it, when these
 * steps have been computed. -EIO, with a sentence: a value is missing, or had no room. */
int mx_traces_take(struct mx_traces *traces, int64_t end, double *rows, mx_why *why);

/* The file: .npy, '<f8', shape (nt, probes); a row a step. It is written during the run: rows [0, committed)
 * are durable before a commit says so, and later rows do not count. */

enum { MX_TRACES_HEAD_BYTES = 128 };
/* Writes the head, and the length that nt rows have; rows that are there stay. */
int mx_traces_file_begin(int fd, int64_t nt, int64_t probes, mx_why *why);
/* Takes steps [taken, end) and writes them to their rows. Before the commit of `end`: fdatasync. */
int mx_traces_file_write(int fd, struct mx_traces *traces, int64_t end, mx_why *why);
/* For a resumed run: checks that this is a file of so many probes, with at least `steps` rows. -EINVAL with a
 * sentence. `path` is for the sentence. */
int mx_traces_file_check(int fd, const char *path, int64_t nt, int64_t probes, int64_t steps, mx_why *why);

#endif
