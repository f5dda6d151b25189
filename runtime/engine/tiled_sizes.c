/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled_sizes.c - the sizes that the tiled engine chooses, and what others cost. */
#include "engine/tiled.h"

#include <math.h>

/* The defaults were measured (512^2 to 2048^2 cells a plane, 1 MiB of L2, 32 MiB of L3 shared with others).
 *
 * In place: as many rows as the kernel does together, for tiles are read and written from one strip to the
 * next; planes so that one array of the tile takes 0.4 of L2, which leaves room for its sides and for what is
 * asked for ahead. Rows above 12 KiB in spans of COLUMN_BYTES (256 and 1024 cells of f64 are slower than
 * 512). An L2 of 2 MiB (Sapphire Rapids) has room for chunks of twice the levels, over which a tile moves on
 * by twice as many rows: planes that take 0.2 of it then, 1.1 to 1.5 times as fast there as 16 levels and
 * 0.4. An L1 of 32 KiB beside 1 MiB of L2 (Zen 4) does better with no more rows than the kernel does
 * together (star7: AVX2 4, AVX-512 6), 16 planes, and chunks of more levels that make up for them: rows of up
 * to 6 KiB so, of 22 levels, 1.0 to 1.2 times as fast as 6 x 16 x 16. Of longer rows such chunks no longer
 * stay in L3.
 *
 * In two arrays: a tile takes half of L2; few rows and more planes, since the planes beside a tile come from
 * DRAM and the rows from L3. Rows of up to 6 KiB are best left whole: long runs suit the hardware's
 * prefetchers. Of longer ones what a chunk touches from one tile to the next no longer stays in L3; columns
 * of about a page do. An L2 of 2 MiB has room for twice the rows and twice the levels, in planes that take
 * 0.4 of it: 1.04 to 1.4 times as fast (docs/notes/kernels.md, "An L2 of 2 MiB").
 *
 * Systems (runtime/system) are done in two arrays. A cell's row is then the rows of all fields, and half of
 * what it takes in C; columns are wide enough for the rows of each field to be more than a few lines. With
 * h > 1 what a tile reads beside its own cells outweighs L2, which need hold no more than the 2h+1 planes
 * that are read together: tiles lie in L3, and of 16 levels the tiles of two threads would fill it. An L2 of
 * 2 MiB has room for the tiles of h = 2 and 3. Those of h >= 4 lie in L3, and are larger than beside a
 * smaller L2, so that they read less beside themselves. They are not larger where L3 has no room for those of
 * all threads, nor for many threads, for which a line would have too few of them. Beside an L2 of 2
 * MiB they have fewer rows if a pass would otherwise take more than 0.6 of L2. With h = 8 and rows of 510
 * cells they are 1.2 to 1.8 times as fast so (docs/notes/kernels.md, "Wide stencils").
 *
 * Grids of two dimensions have tiles of one row, and planes instead of rows: what a tile reads beside itself
 * are planes alone, so that more of them are better; and a call of the kernel, which is of one row, should
 * have a thousand cells. */
enum {
    PLACE_ROWS = 6,
    PLACE_LEAST_PLANES = 12,
    PLACE_MOST_PLANES = 24,
    PLACE_ROW_BYTES = 12288,
    PLACE_FLAT_MOST_PLANES = 16,
    PLACE_FLAT_CHUNK_LEVELS = 22,
    TILE_ROWS = 4,
    COLUMN_TILE_ROWS = 6,
    LARGE_TILE_ROWS = 8,
    LEAST_PLANES = 8,
    MOST_PLANES = 32,
    CHUNK_LEVELS = 16,
    LARGE_CHUNK_LEVELS = 32,
    WHOLE_ROW_BYTES = 6144,
    COLUMN_BYTES = 4096,
    FLAT_COLUMN_BYTES = 8192,
    FLAT_MOST_PLANES = 64,
    SPAN_SIDE_BYTES = 64,
    COLUMN_FIELD_BYTES = 512,
    LEAST_HIGH = 2, /* h */
    LEAST_HIGH_LARGE = 4,
    HIGH_TILE_ROWS = 4, /* for each h, at most */
    HIGH_LEAST_ROWS = 8,
    HIGH_ROWS_STEP = 4,
    HIGH_PASS_PLANES = 2, /* written together by the fastest form of most kernels */
    HIGH_LEAST_PLANES = 12,
    HIGH_MOST_PLANES = 24,
    HIGH_CHUNK_LEVELS = 8,
    HIGH_LARGE_TILE_ROWS = 8, /* for each h, at most */
    HIGH_LARGE_MOST_PLANES = 64,
    SMALL_L1_BYTES = 32 << 10,
    COMMON_L2_BYTES = 1 << 20,
    FEW_THREADS = 8
};

/* One array of a tile and half of its C take this share of an L2 of 2 MiB and more. Tiles that lie in L3 take
 * at most the second one. */
static const double LARGE_SHARE = 0.2, HIGH_LARGE_SHARE = 4.5;
/* What a pass reads and writes, over all rows of a high tile, takes at most this share of a large L2, unless
 * that leaves fewer than HIGH_LEAST_ROWS. */
static const double HIGH_ROWS_SHARE = 0.6;

/* Of the row of all fields. */
static int64_t column_bytes(const struct mx_problem *p) {
    const int64_t fields = mx_max(mx_field_count(p, 0), mx_field_count(p, 1));
    if (p->flat) return fields * FLAT_COLUMN_BYTES;
    return fields == 1 ? COLUMN_BYTES : mx_max(COLUMN_BYTES, fields * COLUMN_FIELD_BYTES);
}

/* Cells of a span of tiles in place; 0: whole rows, or no tiles in place. */
int64_t mx_tiled_span(const struct mx_engine_options *o) {
    const bool given = o->column > 0 && o->column < o->problem->nx;
    if (!given && (o->column > 0 || o->row_pitch_bytes <= PLACE_ROW_BYTES)) return 0;
    const int64_t span = given ? o->column : column_bytes(o->problem) / mx_dtype_bytes(o->problem->dtype);
    return mx_resident_fits_span(o, span) ? span : 0;
}

bool mx_tiled_in_place(const struct mx_engine_options *o) {
    if (o->problem->system != NULL) return false;
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    if (o->tile != 0 && !mx_resident_fits(o->tile, o->slab)) return false;
    if (mx_tiled_span(o) > 0) return true;
    const bool whole = o->column == 0 || o->column >= o->problem->nx;
    return o->row_pitch_bytes <= PLACE_ROW_BYTES && whole && stencil != NULL &&
           mx_stencil_tile(stencil, o->problem->dtype) != NULL;
}

static bool has_columns(const struct mx_engine_options *o) {
    if (mx_tiled_in_place(o)) return mx_tiled_span(o) > 0;
    return o->row_pitch_bytes > WHOLE_ROW_BYTES + column_bytes(o->problem) - COLUMN_BYTES;
}

static int64_t l2_bytes(const struct mx_engine_options *o) {
    return o->machine != NULL && o->machine->l2_bytes > 0 ? (int64_t)o->machine->l2_bytes : COMMON_L2_BYTES;
}

static bool has_large_l2(const struct mx_engine_options *o) { return l2_bytes(o) >= MX_LARGE_L2_BYTES; }

static bool has_high_tiles(const struct mx_engine_options *o) {
    return o->problem->system != NULL && !o->problem->flat &&
           o->problem->h >= (has_large_l2(o) ? LEAST_HIGH_LARGE : LEAST_HIGH);
}

/* Few threads have larger tiles, if L3 holds those of all: two arrays of what own_planes allows, and C. */
static bool has_larger_high_tiles(const struct mx_engine_options *o) {
    const double tiles = 2 * HIGH_LARGE_SHARE * (double)l2_bytes(o) * o->threads;
    return has_high_tiles(o) && has_large_l2(o) && o->threads <= FEW_THREADS &&
           tiles <= (double)o->machine->l3_bytes;
}

/* What is asked for ahead is needed a level later, when as many bytes as L1 has were computed several times
 * over. Into an L1 of 32 KiB it would push out rows that the kernel still reads: on Zen 4 prefetches for L2
 * alone are 1.0 to 1.3 times as fast (docs/notes/tiled-engine.md). Of those Zen 5, with 48 KiB, drops a
 * quarter, where of prefetches for L1 it drops few. */
bool mx_tiled_small_l1(const struct mx_engine_options *o) {
    return o->machine != NULL && o->machine->l1_bytes > 0 && o->machine->l1_bytes <= SMALL_L1_BYTES;
}

/* Row functions ask only for rows of their own (cell.h, MX_ASKS_). The engine asks for what it lists in
 * bursts between some rows. Beside an L2 of 2 MiB kernels of users are faster without that. */
bool mx_tiled_asks_ahead(const struct mx_engine_options *o) {
    return o->problem->system == NULL || !has_large_l2(o);
}

/* That a kernel does together, 4 at least; of f32, 4 were found to be better than the 6 of AVX-512
 * (1.11, 1.18). */
static int64_t flat_rows(const struct mx_engine_options *o) {
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    return stencil != NULL && o->problem->dtype == MX_F64 ? mx_max(4, mx_stencil_tile_rows(stencil)) : 4;
}

/* In place, where L1 is small and L2 is not. */
static bool has_flat_tiles(const struct mx_engine_options *o) {
    return mx_tiled_small_l1(o) && l2_bytes(o) >= COMMON_L2_BYTES && !has_large_l2(o) &&
           mx_tiled_in_place(o) && mx_tiled_span(o) == 0 && o->row_pitch_bytes <= WHOLE_ROW_BYTES &&
           (o->tile == 0 || o->tile == flat_rows(o));
}

/* Of the state, in one array: a row, or a column's part of it. */
static double state_row_bytes(const struct mx_engine_options *o) {
    if (mx_tiled_in_place(o) && mx_tiled_span(o) > 0)
        return (double)(mx_tiled_span(o) * mx_dtype_bytes(o->problem->dtype) + SPAN_SIDE_BYTES);
    return has_columns(o) ? (double)column_bytes(o->problem) : (double)o->row_pitch_bytes;
}

/* A row of C, or a column's part of it. */
static double fixed_row_bytes(const struct mx_engine_options *o) {
    const double whole =
        (double)(mx_fixed_cell_bytes(o->problem) * (o->problem->nx + 2 * (int64_t)o->problem->h));
    return whole * state_row_bytes(o) / (double)o->row_pitch_bytes;
}

/* What a tile takes for each of its rows in a plane: in one array, and half of it in C. */
static double row_bytes(const struct mx_engine_options *o) {
    return state_row_bytes(o) + fixed_row_bytes(o) / 2;
}

/* Beside a large L2, high tiles have as many rows as let L2 hold the planes that a pass reads and writes. */
static int64_t high_rows(const struct mx_engine_options *o) {
    const int64_t h = o->problem->h, pass = HIGH_PASS_PLANES;
    const int64_t most = h * (has_larger_high_tiles(o) ? HIGH_LARGE_TILE_ROWS : HIGH_TILE_ROWS);
    if (!has_large_l2(o)) return most;
    const double row = (double)(2 * h + 2 * pass) * state_row_bytes(o) + (double)pass * fixed_row_bytes(o);
    const int64_t rows = (int64_t)(HIGH_ROWS_SHARE * (double)l2_bytes(o) / row);
    return mx_max(HIGH_LEAST_ROWS, mx_min(rows / HIGH_ROWS_STEP * HIGH_ROWS_STEP, most));
}

int64_t mx_tiled_rows(const struct mx_engine_options *o) {
    if (o->tile > 0) return o->tile;
    if (o->problem->flat) return 1;
    if (has_flat_tiles(o)) return flat_rows(o);
    if (has_high_tiles(o)) return high_rows(o);
    if (mx_tiled_in_place(o)) return PLACE_ROWS;
    const bool large =
        has_large_l2(o) && row_bytes(o) * LARGE_TILE_ROWS * LEAST_PLANES <= LARGE_SHARE * l2_bytes(o);
    return large ? LARGE_TILE_ROWS : has_columns(o) ? COLUMN_TILE_ROWS : TILE_ROWS;
}

/* Of a call with many of them. */
static int64_t common_chunk(const struct mx_engine_options *o) {
    if (o->ct > 0) return o->ct;
    if (has_flat_tiles(o)) return PLACE_FLAT_CHUNK_LEVELS;
    if (has_high_tiles(o)) return HIGH_CHUNK_LEVELS;
    return has_large_l2(o) ? LARGE_CHUNK_LEVELS : CHUNK_LEVELS;
}

/* Four chunks of 16 and 17 levels rather than five of 13: half as many again in a chunk cost little, the
 * first level of one more costs as much as three. */
int64_t mx_tiled_chunk(const struct mx_engine_options *o) {
    const int64_t ct = common_chunk(o);
    if (o->ct > 0 || o->levels <= ct) return ct;
    return mx_ceil_div(o->levels, (o->levels + ct / 2) / ct);
}

static int64_t even(double planes) { return (int64_t)((planes + 1) / 2) * 2; }

/* The engine's own choice. */
static int64_t own_planes(const struct mx_engine_options *o) {
    const double l2 = (double)l2_bytes(o), place = has_large_l2(o) ? LARGE_SHARE : 0.4;
    const double pair = has_large_l2(o) ? LARGE_SHARE : 0.25;
    const int64_t most = has_flat_tiles(o) ? PLACE_FLAT_MOST_PLANES : PLACE_MOST_PLANES;
    const double tile = row_bytes(o) * (double)mx_tiled_rows(o);
    if (mx_tiled_in_place(o)) return mx_max(PLACE_LEAST_PLANES, mx_min(even(place * l2 / tile), most));
    if (has_larger_high_tiles(o))
        return mx_max(HIGH_LEAST_PLANES, mx_min(even(HIGH_LARGE_SHARE * l2 / tile), HIGH_LARGE_MOST_PLANES));
    if (has_high_tiles(o)) return mx_max(HIGH_LEAST_PLANES, mx_min(even(1.6 * l2 / tile), HIGH_MOST_PLANES));
    const int64_t most_planes = o->problem->flat ? FLAT_MOST_PLANES : MOST_PLANES;
    return mx_max(LEAST_PLANES, mx_min(even(pair * l2 / tile), most_planes));
}

/* A call has a line for each thread at least, and where it has one slab its chunks are cut for that: of 32
 * levels 32 threads would have one each, and nothing of a tile would stay in L2. So a call of many threads
 * moves on by several slabs. In simulation (docs/notes/many-cores.md) 2 slabs for 16 threads, 4 for
 * 32 and 64 are 1.2 to 2.2 times as fast as one. */
enum { MOST_SLABS = 4 };

static int64_t slabs_a_call(const struct mx_engine_options *o) {
    return mx_max(1, mx_min(mx_ceil_div(o->threads, FEW_THREADS), MOST_SLABS));
}

int64_t mx_tiled_slab(const struct mx_engine_options *o) {
    return o->slab > 0 ? o->slab : own_planes(o) * slabs_a_call(o);
}

/* With the planes of a tile in the place of those of a call. Few threads take what they are given as one
 * slab. */
struct mx_engine_options mx_tiled_of_tile(const struct mx_engine_options *o) {
    struct mx_engine_options own = *o;
    own.slab = 0;
    const int64_t planes = own_planes(&own);
    own.slab = o->slab > 0 ? o->slab : planes;
    if (o->threads > FEW_THREADS && o->slab > planes)
        own.slab = mx_ceil_div(o->slab, mx_ceil_div(o->slab, planes));
    return own;
}

/* A tile of s planes and c levels reads, beside what it computes, 2h planes below each level and, from DRAM,
 * its first level; r rows make few tiles, and the threads share them badly; rows of whole pages compete for
 * L1. Measured with star7 in f64 on 512^2 cells a plane (s = 2 to 16; 4 to 64 levels a call; 64 to 510 rows):
 * time per update goes as (1 + 2.7/s) (1 + 2.4/c) (1 + 8/r), and 1.15 for such rows (1.00 to 1.04 beside an
 * L2 of 2 MiB: docs/notes/kernels.md, "Cubes"). What a tile reads beside its cells takes a time of its own.
 * So it costs a kernel that computes longer for each byte a smaller share; star7 computes 32 bytes in a
 * nanosecond. And it costs more the more planes there are, by h^0.7 in rings of 8 kernels with h = 1, 4, 8
 * (docs/notes/kernels.md, "Slabs of few planes"). */
static double share_of_bytes(const struct mx_engine_options *o) {
    static const double star7_bytes_per_s = 32e9;
    if (!(o->updates_per_s > 0)) return 1;
    const double share =
        (double)mx_step_bytes(o->problem) * o->updates_per_s / o->threads / star7_bytes_per_s;
    /* Many threads have less bandwidth each, so that a low rate does not tell that computing takes long. */
    return o->threads > FEW_THREADS && share < 1 ? 1 : share;
}

/* Time of an update, in that of one in many planes, levels and rows. */
static double of_planes(double slab) { return 1 + 2.7 / slab; }
static double of_levels(double levels) { return 1 + 2.4 / levels; }
static double of_rows(double rows) { return 1 + 8 / rows; }

/* Levels of a chunk, of as many chunks as the threads of a call need lines (plan_job). */
static int64_t levels_of_chunk(const struct mx_engine_options *o, int64_t slab) {
    const int64_t all = mx_max(1, o->levels);
    const int64_t levels = mx_min(all / mx_ceil_div(all, mx_tiled_chunk(o)), common_chunk(o));
    if (o->threads <= FEW_THREADS) return levels;
    const int64_t lines = mx_ceil_div(o->threads, mx_max(1, mx_ceil_div(mx_tiled_slab(o), slab)));
    return mx_max(1, mx_min(levels, o->levels / lines));
}

double mx_tiled_efficiency(const struct mx_engine_options *o) {
    struct mx_engine_options own = *o;
    own.slab = 0;
    const int64_t ct = common_chunk(o), most = own_planes(&own);
    const int64_t slab = mx_min(mx_tiled_of_tile(o).slab, most), levels = levels_of_chunk(o, slab);
    const int64_t ny = o->problem->ny, rows = mx_max(1, mx_min(o->rows, ny));
    const double bytes = share_of_bytes(o), whole_pages = has_large_l2(o) ? 1.03 : 1.15;
    const double thin = of_planes((double)slab) / of_planes((double)most) - 1;
    const double shallow = of_levels((double)levels) / of_levels((double)ct) - 1;
    /* One sum, so that the time of an update falls as the rate grows. */
    const double more = (1 + pow(o->problem->h, 0.7) * thin) * (1 + shallow) - 1;
    const double seconds = (1 + bytes * more) * (of_rows((double)rows) / of_rows((double)ny));
    return 1 / seconds / (o->row_pitch_bytes % 4096 == 0 ? whole_pages : 1);
}

int64_t mx_tiled_column(const struct mx_engine_options *o) {
    const int64_t nx = o->problem->nx;
    if (!has_columns(o)) return INT32_MAX;
    if (mx_tiled_in_place(o)) return mx_tiled_span(o);
    const int64_t bytes = column_bytes(o->problem);
    return mx_ceil_div(nx, mx_max(1, (o->row_pitch_bytes + bytes / 2) / bytes));
}
