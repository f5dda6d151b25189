/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts, initial grids, whole-plane streams, .npy files. */
#include "grid/array.h"
#include "grid/grid.h"
#include "random_system.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mx_problem problem(int64_t nx, int64_t ny, int64_t nz, int32_t h, enum mx_dtype dtype) {
    return (struct mx_problem){.nx = nx, .ny = ny, .nz = nz, .h = h, .dtype = dtype, .stencil = "star7"};
}

static void make_dir(char *path, size_t capacity) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(path, capacity, "%s/mx-grid-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(path) != NULL);
}

/* For all extents: row_bytes = (nx+2h)*e <= row_pitch, rows*row_pitch <= plane_pitch, pitches are multiples
 * of what they must be, buffer = planes * plane_pitch; with cuts_y and alignment 1 nothing is padded (the
 * papers' layout). */
Test(grid, layout_is_aligned_and_tight) {
    for (int64_t nx = 1; nx < 700; nx += 13)
        for (int32_t h = 1; h <= 8; h += 7)
            for (int cuts = 0; cuts < 2; cuts++)
                for (uint32_t align = 1; align <= 4096; align *= 512 / (align == 1 ? 1 : 64)) {
                    struct mx_problem p = problem(nx, nx / 2 + 1, 7, h, nx % 2 ? MX_F64 : MX_F32);
                    struct mx_layout l;
                    cr_assert(mx_layout_make(&p, align, cuts, NULL, &l) == 0);
                    cr_assert(l.row_bytes == (nx + 2 * h) * mx_dtype_bytes(p.dtype) &&
                              l.row_pitch_bytes >= l.row_bytes);
                    cr_assert(l.rows == p.ny + 2 * h && l.planes == 7 + 2 * h);
                    cr_assert(l.plane_pitch_bytes >= l.rows * l.row_pitch_bytes &&
                              l.plane_pitch_bytes % align == 0);
                    cr_assert(l.buffer_bytes == l.planes * l.plane_pitch_bytes);
                    if (cuts)
                        cr_assert(l.row_pitch_bytes % align == 0 && l.row_pitch_bytes - l.row_bytes < align);
                    if (!cuts) cr_assert(l.plane_pitch_bytes % 4096 == 0 && l.row_pitch_bytes % 64 == 0);
                }
}

/* In DRAM a large plane (128 KiB or more) starts 1.5 KiB off a page, with less than a page lost; a pitch that
 * suits direct transfers (a multiple of 512) still does. Small planes stay as they are. */
Test(grid, large_planes_start_off_the_page) {
    for (int64_t bytes = 512; bytes < (4 << 20); bytes += 512 * 37) {
        const int64_t pitch = mx_plane_pitch_in_dram(bytes);
        if (bytes < 128 << 10)
            cr_assert(pitch == bytes);
        else
            cr_assert(pitch >= bytes && pitch < bytes + 4096 && pitch % 4096 == 1536, "%lld -> %lld",
                      (long long)bytes, (long long)pitch);
    }
    struct mx_problem p = problem(510, 510, 9, 1, MX_F64);
    struct mx_layout l;
    cr_assert(mx_layout_make(&p, 64, false, NULL, &l) == 0);
    mx_layout_in_dram(&l);
    cr_assert(l.plane_pitch_bytes % 4096 == 1536 && l.buffer_bytes == l.planes * l.plane_pitch_bytes);
}

Test(grid, layout_refuses_what_cannot_be) {
    struct mx_layout l;
    mx_why why = {""};
    struct mx_problem p = problem(0, 1, 1, 1, MX_F64);
    cr_assert(mx_layout_make(&p, 512, true, &why, &l) == -EINVAL && strstr(why.text, "0 x 1 x 1") != NULL,
              "%s", why.text);
    p = problem(INT64_C(1) << 39, INT64_C(1) << 29, INT64_C(1) << 29, 1, MX_F64);
    cr_assert(mx_layout_make(&p, 512, true, &why, &l) == -EOVERFLOW, "%s", why.text);
}

/* A plane is a function of its number alone, and every init fills every cell with a finite value. */
Test(grid, inits_are_pure) {
    struct mx_problem p = problem(9, 7, 5, 1, MX_F64);
    struct mx_layout l;
    cr_assert(mx_layout_make(&p, 512, false, NULL, &l) == 0);
    char *a = malloc((size_t)l.plane_pitch_bytes), *b = malloc((size_t)l.plane_pitch_bytes);
    for (const struct mx_init *i = mx_inits; i->name != NULL; i++) {
        struct mx_fill f = {.problem = &p, .layout = &l, .init = i};
        cr_assert(mx_init_find(i->name) == i);
        for (int64_t z = 0; z < l.planes; z++) {
            memset(a, 0xff, (size_t)l.plane_pitch_bytes);
            memset(b, 0, (size_t)l.plane_pitch_bytes);
            mx_fill_plane(&f, z, a);
            mx_fill_plane(&f, z, b);
            for (int64_t y = 0; y < l.rows; y++) {
                const double *row = (const double *)(a + y * l.row_pitch_bytes);
                cr_assert(memcmp(row, b + y * l.row_pitch_bytes, (size_t)l.row_bytes) == 0);
                for (int64_t x = 0; x < 11; x++)
                    cr_assert(row[x] >= 0 && row[x] <= 6, "%s: %g", i->name, row[x]);
            }
        }
    }
    free(a);
    free(b);
}

struct counter {
    const struct mx_layout *l;
    int64_t next, wrong;
};

static int number_plane(void *context, int64_t z, char *plane) {
    struct counter *c = context;
    memset(plane, (int)(z % 251), (size_t)c->l->plane_pitch_bytes);
    return 0;
}

static int check_plane(void *context, int64_t z, char *plane) {
    struct counter *c = context;
    c->wrong += z != c->next++;
    for (int64_t i = 0; i < c->l->plane_pitch_bytes; i++) c->wrong += (unsigned char)plane[i] != z % 251;
    return 0;
}

/* Whole fields go out and come back plane by plane, whatever the number of planes in a group; a stop flag
 * ends the pass with -EINTR. */
Test(grid, fields_round_trip) {
    char dir[256];
    make_dir(dir, sizeof dir);
    static const int64_t extents[][3] = {{1, 1, 1}, {500, 300, 7}, {1000, 1100, 3}, {30, 20, 101}};
    for (int i = 0; i < 4; i++) {
        struct mx_problem p = problem(extents[i][0], extents[i][1], extents[i][2], 1, MX_F64);
        struct mx_layout l;
        struct mx_device_options o = {.backend = "aio", .path = dir};
        mx_device *device;
        mx_buffer *buffer;
        mx_why why = {""};
        cr_assert(mx_layout_make(&p, 4096, false, &why, &l) == 0);
        cr_assert(mx_device_open(&o, &why, &device) == 0, "%s", why.text);
        cr_assert(mx_buffer_create(device, "f", (uint64_t)l.buffer_bytes, &why, &buffer) == 0, "%s",
                  why.text);
        struct counter c = {.l = &l};
        cr_assert(mx_field_write(buffer, &l, NULL, NULL, number_plane, &c, &why) == 0, "%s", why.text);
        cr_assert(mx_field_read(buffer, &l, NULL, NULL, check_plane, &c, &why) == 0, "%s", why.text);
        cr_expect(c.next == l.planes && c.wrong == 0, "%lld planes, %lld wrong", (long long)c.next,
                  (long long)c.wrong);
        atomic_int stop = 1;
        cr_expect(mx_field_read(buffer, &l, NULL, &stop, check_plane, &c, &why) == -EINTR);
        mx_buffer_close(buffer);
        mx_device_close(device);
    }
    rmdir(dir);
}

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

/* Planes written to a .npy file come back to the bit, and the file has exactly header + data. */
Test(grid, npy_round_trip) {
    char dir[256], path[300];
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/g.npy", dir);
    struct mx_problem p = problem(5, 4, 3, 1, MX_F32);
    struct mx_layout l;
    struct mx_npy npy;
    mx_why why = {""};
    int64_t shape[3] = {5, 6, 7};
    cr_assert(mx_layout_make(&p, 512, true, &why, &l) == 0);
    char *a = malloc((size_t)l.buffer_bytes), *b = calloc(1, (size_t)l.buffer_bytes);
    struct mx_fill f = {.problem = &p, .layout = &l, .init = mx_inits};
    for (int64_t z = 0; z < l.planes; z++) mx_fill_plane(&f, z, a + z * l.plane_pitch_bytes);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    cr_assert(fd >= 0 && mx_npy_begin(fd, MX_F32, shape, &why, &npy) == 0, "%s", why.text);
    cr_assert(mx_npy_write(&npy, 0, 5, a, &l, &why) == 0 && mx_npy_close(&npy, &why) == 0, "%s", why.text);
    cr_assert(mx_npy_open(path, &why, &npy) == 0, "%s", why.text);
    cr_assert(npy.dtype == MX_F32 && memcmp(npy.shape, shape, sizeof shape) == 0 &&
              npy.data_offset_bytes == 128);
    cr_assert(mx_npy_read(&npy, 0, 5, b, &l, &why) == 0, "%s", why.text);
    mx_npy_close(&npy, NULL);
    for (int64_t z = 0; z < 5; z++)
        for (int64_t y = 0; y < 6; y++) {
            int64_t at = z * l.plane_pitch_bytes + y * l.row_pitch_bytes;
            cr_assert(memcmp(a + at, b + at, (size_t)l.row_bytes) == 0);
        }
    free(a);
    free(b);
    unlink(path);
    rmdir(dir);
}

static size_t header(char *out, const char *dictionary) {
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    size_t n = strlen(dictionary);
    out[8] = (char)n, out[9] = 0;
    memcpy(out + 10, dictionary, n);
    return 10 + n;
}

/* Everything that is no little-endian C-order grid of rank 3 is refused, with its fault named. */
Test(grid, npy_refusals_name_the_fault) {
    static const char *const bad[][2] = {
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 3, 3), }\n", "Fortran"},
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (3, 3, 3), }\n", "big endian"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 3, 3), }\n", "element type"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (27,), }\n", "1 dimension"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3, 3, 3), }\n", "4 dimensions"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (300, 3, 3), }\n", "truncated"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807, "
         "9223372036854775807), }\n",
         "truncated"}, /* the product of these is no number of 128 bits */
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 3), }\n", "extent of 0"},
        {"{'descr': '<f8', 'fortran_order': False, }\n", "lacks"},
        {NULL, "not a .npy file"},
    };
    char dir[256], path[300], bytes[1024] = {0};
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/bad.npy", dir);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mx_npy npy;
        mx_why why = {""};
        size_t n = bad[i][0] != NULL ? header(bytes, bad[i][0]) : 12;
        if (bad[i][0] == NULL) memset(bytes, 'x', n);
        write_file(path, bytes, n + 27 * 8);
        cr_expect(mx_npy_open(path, &why, &npy) == -EINVAL && strstr(why.text, bad[i][1]) != NULL,
                  "case %zu: '%s'", i, why.text);
    }
    struct mx_npy npy;
    mx_why why = {""};
    cr_expect(mx_npy_open("/nonexistent/x.npy", &why, &npy) == -ENOENT && why.text[0] != 0);
    unlink(path);
    rmdir(dir);
}

/* A device that fails while a head is read: its error, for all calls that read; what is too short stays the
 * user's. */
static struct mx_sys sick = {NULL};
static int sick_calls;
static ssize_t sick_pread(int fd, void *to, size_t bytes, off_t at) {
    return sick_calls-- == 0 ? -EIO : mx_sys_kernel.pread(fd, to, bytes, at);
}

Test(grid, errors_of_the_device_are_none_of_the_head) {
    char dir[256], path[300], inside[PATH_MAX], bytes[1024] = {0};
    struct mx_npy npy;
    mx_why why = {""};
    int failed = 0;
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/good.npy", dir);
    write_file(path, bytes,
               header(bytes, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3, 3), }\n") + 27 * 8);
    sick = mx_sys_kernel;
    sick.pread = sick_pread;
    mx_sys = &sick;
    for (int call = 0, err = -EIO; err != 0; call++) {
        sick_calls = call;
        err = mx_array_open(path, "", false, &why, &npy, inside);
        cr_expect(err == 0 || (err == -EIO && strstr(why.text, "good.npy cannot be read: Input/output")),
                  "call %d: %d '%s'", call, err, why.text);
        if (err == 0) close(npy.fd);
        failed += err != 0;
    }
    mx_sys = &mx_sys_kernel;
    cr_expect_eq(failed, 3, "the format, the length of the head, the head: %d", failed);
    write_file(path, bytes, 8);
    cr_expect_eq(mx_array_open(path, "", false, &why, &npy, inside), -EINVAL);
    unlink(path);
    rmdir(dir);
}

/* ---- systems of fields */

static uint64_t state = 99;
static int64_t pick(int64_t low, int64_t high) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

/* Fields follow one another on lines of their own, off each other's page offsets; both arrays have the longer
 * one's row; and one field is laid out as if it were no system. */
Test(grid, rows_of_several_fields) {
    for (int i = 0; i < 2000; i++) {
        struct random_system rs;
        struct mx_layout l, alone;
        random_system(&rs, pick);
        struct mx_problem p = problem_of(&rs, pick(1, 3000), pick(1, 30), pick(1, 30), 0);
        const uint32_t align = pick(0, 1) ? 512 : 4096;
        const bool cuts = pick(0, 1);
        cr_assert_eq(mx_layout_make(&p, align, cuts, NULL, &l), 0);
        int64_t longest = 0;
        for (int array = 0; array < 2; array++) {
            int64_t end = 0;
            for (int32_t f = 0; f < mx_field_count(&p, array); f++) {
                const int64_t at = l.field_offset_bytes[array][f];
                cr_assert(at >= end && at < end + 128 && at % 64 == 0);
                cr_assert(f == 0 || (at - l.field_offset_bytes[array][f - 1]) % 4096 != 0);
                end = at + (p.nx + 2 * p.h) * mx_dtype_bytes(mx_field_dtype(&p, array, f));
            }
            longest = end > longest ? end : longest;
        }
        cr_assert_eq(l.row_bytes, longest);
        cr_assert(l.row_pitch_bytes >= l.row_bytes && l.plane_pitch_bytes % align == 0);
        if (cuts) cr_assert_eq(l.row_pitch_bytes % align, 0);
        for (int32_t c = 0; c < p.system->n_fixed; c++) {
            const struct mx_fixed_layout *f = &l.fixed[c];
            cr_assert_eq(f->row_bytes, (p.nx + 2 * p.h) * mx_dtype_bytes(p.system->fixed[c].dtype));
            cr_assert(f->row_pitch_bytes >= f->row_bytes && f->row_pitch_bytes % 64 == 0);
            cr_assert(f->plane_pitch_bytes >= l.rows * f->row_pitch_bytes &&
                      f->plane_pitch_bytes % align == 0 && f->bytes == l.planes * f->plane_pitch_bytes);
            cr_assert(f->frame == p.h && f->lead_bytes == 0 && f->offset_bytes == 0 && !f->user_file);
        }
        if (l.row_bytes != (p.nx + 2 * p.h) * mx_dtype_bytes(p.dtype)) continue;
        p.system = NULL;
        cr_assert_eq(mx_layout_make(&p, align, cuts, NULL, &alone), 0);
        cr_assert(alone.row_pitch_bytes == l.row_pitch_bytes && alone.buffer_bytes == l.buffer_bytes);
    }
}

/* The first and the last cell of a file, with its frame and without. */
Test(grid, files_of_users_are_laid_out_where_they_are) {
    static struct random_system rs;
    mx_why why = {""};
    rs.system = (struct mx_system){.h = 3, .n_fixed = 1, .n_field = {1, 1}};
    rs.system.fixed[0] = (struct mx_field_of){.name = "k", .dtype = MX_U16};
    struct mx_problem p = problem_of(&rs, 10, 7, 5, 1);
    struct mx_fixed_layout l;
    struct mx_fixed_file with = {MX_U16, 352, 352 + 16 * 13 * 11 * 2, true, 512};
    struct mx_fixed_file without = {MX_U16, 350, 350 + 10 * 7 * 5 * 2, false, 0};
    cr_assert_eq(mx_layout_fixed_file(&p, 0, &with, &why, &l), 0, "%s", why.text);
    cr_assert(l.offset_bytes == 352 && l.row_bytes == 32 && l.row_pitch_bytes == 32 && l.frame == 3 &&
              l.plane_pitch_bytes == 13 * 32 && l.align_bytes == 512 && l.lead_bytes == 0 && l.user_file);
    cr_assert_eq(mx_layout_fixed_file(&p, 0, &without, &why, &l), 0, "%s", why.text);
    cr_assert(l.row_bytes == 20 && l.row_pitch_bytes == 20 && l.plane_pitch_bytes == 140 && l.frame == 0 &&
              l.lead_bytes == 6 && l.align_bytes == 1);
    cr_assert_eq(l.offset_bytes + 3 * l.plane_pitch_bytes + 3 * l.row_pitch_bytes + l.lead_bytes, 350);
    cr_assert_eq(l.offset_bytes + 7 * l.plane_pitch_bytes + 9 * l.row_pitch_bytes + l.lead_bytes + 20,
                 without.bytes);
    struct mx_fixed_file bad = with;
    bad.bytes--;
    cr_assert(mx_layout_fixed_file(&p, 0, &bad, &why, &l) == -EINVAL && strstr(why.text, "4576 bytes"), "%s",
              why.text);
    bad = with, bad.offset_bytes = 353;
    cr_assert(mx_layout_fixed_file(&p, 0, &bad, &why, &l) == -EINVAL && strstr(why.text, "353"), "%s",
              why.text);
    bad = with, bad.dtype = MX_I16;
    cr_assert(mx_layout_fixed_file(&p, 0, &bad, &why, &l) == -EINVAL && strstr(why.text, "i16"), "%s",
              why.text);
    rs.system.hc = 1;
    cr_assert(mx_layout_fixed_file(&p, 0, &without, &why, &l) == -EINVAL && strstr(why.text, "frame"), "%s",
              why.text);
}

/* A real is truncated, the nearest that the type has, and 0 for NaN: what SET and point sources store. */
Test(grid, reals_are_stored_in_whole_numbers) {
    static const struct {
        enum mx_dtype dtype;
        double lowest, beyond; /* the last below which all are the lowest; the first that is the highest */
        uint64_t low, high;
    } types[] = {{MX_I8, -128, 127, UINT64_C(0xffffffffffffff80), 127},
                 {MX_U8, 0, 255, 0, 255},
                 {MX_I16, -32768, 32767, UINT64_C(0xffffffffffff8000), 32767},
                 {MX_U16, 0, 65535, 0, 65535},
                 {MX_I32, -0x1p31, 0x1p31 - 1, UINT64_C(0xffffffff80000000), 0x7fffffff},
                 {MX_U32, 0, 0x1p32 - 1, 0, 0xffffffff},
                 {MX_I64, -0x1p63, 0x1p63, UINT64_C(1) << 63, INT64_MAX},
                 {MX_U64, 0, 0x1p64, 0, UINT64_MAX}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const double lowest = types[i].lowest, beyond = types[i].beyond;
        const struct {
            double value;
            uint64_t cell;
        } cases[] = {{NAN, 0},
                     {-NAN, 0},
                     {0.999, 0},
                     {-0.999, 0},
                     {-0.0, 0},
                     {1.999, 1},
                     {100.5, 100},
                     {-1.999, lowest < 0 ? UINT64_MAX : 0},
                     {INFINITY, types[i].high},
                     {-INFINITY, types[i].low},
                     {1e300, types[i].high},
                     {-1e300, types[i].low},
                     {beyond, types[i].high},
                     {beyond * 1.01, types[i].high},
                     {lowest, types[i].low},
                     {lowest - 0.75, types[i].low},
                     {nextafter(lowest, -INFINITY), types[i].low}};
        const int64_t bytes = mx_dtype_bytes(types[i].dtype);
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            unsigned char row[24];
            memset(row, 0xa5, sizeof row);
            mx_cell_store(types[i].dtype, row + 1, 1, cases[k].value); /* at any address */
            cr_expect(memcmp(row + 1 + bytes, &cases[k].cell, (size_t)bytes) == 0, "%s of %g",
                      mx_dtype_name(types[i].dtype), cases[k].value);
            cr_expect(row[bytes] == 0xa5 && row[1 + 2 * bytes] == 0xa5);
            double again = (double)(int64_t)cases[k].cell;
            if (lowest == 0) again = (double)cases[k].cell;
            cr_expect(mx_cell_load(types[i].dtype, row + 1, 1) == again, "%s of %g",
                      mx_dtype_name(types[i].dtype), cases[k].value);
        }
    }
}

/* Whole numbers to which reals are added: as doubles where these have all, else they stay exact. */
Test(grid, reals_are_added_to_whole_numbers) {
    static const double reals[] = {0,       1,      -1,     0.5,     -2.75,   -1e-20, 3e9,   0x1p53,
                                   -0x1p53, 0x1p62, 0x1p63, -0x1p63, -0x1p64, 1e30,   -1e30, 1e308};
    for (int step = 0; step < 2 * 64 * 3; step++) {
        const bool is_signed = step % 2 == 0;
        const enum mx_dtype dtype = is_signed ? MX_I64 : MX_U64;
        const uint64_t cell = (UINT64_C(1) << step / 2 % 64) + (uint64_t)(step / 128) - 1;
        const mx_wide lowest = is_signed ? INT64_MIN : 0,
                      highest = is_signed ? INT64_MAX : (mx_wide)UINT64_MAX;
        const mx_wide before = is_signed ? (mx_wide)(int64_t)cell : (mx_wide)cell;
        for (size_t k = 0; k < sizeof reals / sizeof reals[0]; k++) {
            const double sum = (double)before + reals[k];
            const bool small = before > -(1ll << 53) && before < 1ll << 53 && fabs(sum) < 0x1p53;
            mx_wide wanted = small                      ? (mx_wide)sum
                             : fabs(reals[k]) < 0x1p100 ? before + (mx_wide)reals[k]
                             : reals[k] < 0             ? lowest
                                                        : highest;
            wanted = wanted < lowest ? lowest : wanted > highest ? highest : wanted;
            char row[24] = {0};
            memcpy(row + 9, &cell, sizeof cell); /* at any address */
            uint64_t got;
            mx_cell_add(dtype, row + 1, 1, reals[k]);
            memcpy(&got, row + 9, sizeof got);
            cr_assert(got == (uint64_t)wanted, "%s %llu + %g: %llu, not %llu", mx_dtype_name(dtype),
                      (unsigned long long)cell, reals[k], (unsigned long long)got,
                      (unsigned long long)(uint64_t)wanted);
        }
        uint64_t nothing = cell;
        mx_cell_add(dtype, &nothing, 0, NAN);
        cr_assert_eq(nothing, 0);
    }
}

/* Fields from an init or from a file of their own type, in a row of several; out again. */
Test(grid, every_field_comes_and_goes_by_itself) {
    static const char *const descr[MX_DTYPES] = {"'<f8'", "'<f4'", "'|u1'", "'<u2'", "'<i2'",
                                                 "'|i1'", "'<i4'", "'<u4'", "'<i8'", "'<u8'"};
    enum { PITCH = 2048 };
    const int64_t cells = 9 * 8 * 7;
    char dir[256], path[300], text[200];
    mx_why why = {""};
    struct mx_plane_field field[MX_DTYPES];
    struct mx_npy in[MX_DTYPES], out[MX_DTYPES];
    int fd[MX_DTYPES];
    struct mx_problem p = problem(7, 6, 5, 1, MX_F64);
    struct mx_layout l;
    cr_assert_eq(mx_layout_make(&p, 512, true, &why, &l), 0);
    l.row_pitch_bytes = PITCH, l.plane_pitch_bytes = 8 * PITCH;
    make_dir(dir, sizeof dir);
    char *plane = malloc((size_t)l.plane_pitch_bytes), *values = malloc((size_t)cells * 8);
    for (int i = 0; i < MX_DTYPES; i++) {
        const int64_t shape[3] = {7, 8, 9}, bytes = mx_dtype_bytes((enum mx_dtype)i);
        field[i] = (struct mx_plane_field){.dtype = (enum mx_dtype)i, .offset_bytes = 128 * i, .npy = &in[i]};
        snprintf(path, sizeof path, "%s/%d.npy", dir, i);
        fd[i] = open(path, O_RDWR | O_CREAT, 0600);
        cr_assert_eq(mx_npy_begin(fd[i], (enum mx_dtype)i, shape, &why, &out[i]), 0, "%s", why.text);
        for (int64_t c = 0; c < cells * bytes; c++) values[c] = (char)(c * 7 + i);
        cr_assert_eq(pwrite(fd[i], values, (size_t)(cells * bytes), out[i].data_offset_bytes), cells * bytes);
        cr_assert(pread(fd[i], text, 60, 10) == 60 && (text[60] = 0, strstr(text, descr[i]) != NULL), "%s",
                  text);
        cr_assert_eq(mx_npy_open_field(path, &why, &in[i]), 0, "%s", why.text);
        cr_assert_eq(in[i].dtype, (enum mx_dtype)i);
        struct mx_npy plain;
        cr_assert_eq(mx_npy_open(path, &why, &plain), i <= MX_F32 ? 0 : -EINVAL);
        if (i <= MX_F32) cr_assert_eq(mx_npy_close(&plain, &why), 0);
    }
    field[2].init = mx_init_find("corner"), field[2].npy = NULL;
    struct mx_fill fill = {.problem = &p, .layout = &l, .why = &why, .field = field, .n_fields = MX_DTYPES};
    for (int64_t z = 0; z < 7; z++) {
        memset(plane, 0xff, (size_t)l.plane_pitch_bytes);
        cr_assert_eq(mx_fill_plane(&fill, z, plane), 0, "%s", why.text);
        for (int64_t y = 0; y < 8; y++)
            for (int i = 0; i < MX_DTYPES; i++) {
                const int64_t bytes = mx_dtype_bytes((enum mx_dtype)i), first = ((z * 8 + y) * 9) * bytes;
                const char *row = plane + y * PITCH + 128 * i;
                for (int64_t b = 0; b < 9 * bytes; b++)
                    cr_assert_eq(row[b],
                                 i == 2 ? (char)(b == 0 || y == 0 || z == 0) : (char)((first + b) * 7 + i));
                for (int64_t b = 9 * bytes; b < (i == MX_DTYPES - 1 ? PITCH - 128 * i : 128); b++)
                    cr_assert_eq(row[b], 0);
            }
        for (int64_t b = 0; b < l.plane_pitch_bytes; b++) plane[b] = (char)~plane[b];
        for (int i = 0; i < MX_DTYPES; i++)
            cr_assert_eq(mx_npy_write(&out[i], z, 1, plane + 128 * i, &l, &why), 0, "%s", why.text);
    }
    for (int i = 0; i < MX_DTYPES; i++) {
        const int64_t bytes = mx_dtype_bytes((enum mx_dtype)i);
        cr_assert_eq(pread(fd[i], values, (size_t)(cells * bytes), out[i].data_offset_bytes), cells * bytes);
        for (int64_t c = 0; c < cells * bytes && i != 2; c++) cr_assert_eq(values[c], (char)~(c * 7 + i));
        cr_assert_eq(mx_npy_close(&in[i], &why), 0);
        close(fd[i]);
        snprintf(path, sizeof path, "%s/%d.npy", dir, i);
        unlink(path);
    }
    free(plane);
    free(values);
    rmdir(dir);
}
