/* SPDX-License-Identifier: BSD-3-Clause */
/* after_words.c - sides, points and norms: their words, their files, what is refused. */
#include "after_world.h"

static struct mx_problem plain = {.nx = 20, .ny = 10, .nz = 5, .nt = 7, .h = 2, .dtype = MX_F64};

static void refused(int err, const mx_why *why, int expected, const char *part) {
    cr_assert_eq(err, expected, "%d: %s", err, why->text);
    cr_assert_not_null(strstr(why->text, part), "'%s' does not say '%s'", why->text, part);
}

/* Of one word; of several there are more below. */
static int one(const char *word, const struct mx_problem *p, mx_why *why, struct mx_sides *s) {
    return mx_sides_read(&word, 1, p, why, s);
}

Test(sides, words) {
    struct mx_sides s = {0};
    struct mx_why why;
    char text[MX_SIDES_TEXT];
    cr_assert_str_empty(mx_sides_text(&s, &plain, text));
    static const char *const first[] = {"z=fixed,mirror", "x=mirror", "y=odd-node,fixed"};
    cr_assert_eq(mx_sides_read(first, 3, &plain, &why, &s), 0, "%s", why.text);
    cr_assert_str_eq(mx_sides_text(&s, &plain, text), "x=mirror y=odd-node,fixed z=fixed,mirror");
    cr_assert_eq(one("u:y=edge", &plain, &why, &s), 0, "%s", why.text);
    cr_assert_str_eq(mx_sides_text(&s, &plain, text), "y=edge");
    cr_assert_eq(mx_sides_read(first, 3, &plain, &why, &s), 0);
    const struct mx_sides before = s;
    refused(one("y=periodic,mirror", &plain, &why, &s), &why, -EINVAL, "both ends");
    refused(one("w=fixed", &plain, &why, &s), &why, -EINVAL, "'w=fixed'");
    refused(one("", &plain, &why, &s), &why, -EINVAL, "no axis");
    refused(one("u:", &plain, &why, &s), &why, -EINVAL, "no axis");
    refused(one("v:x=odd", &plain, &why, &s), &why, -EINVAL, "names no state field: the kernel has u");
    refused(one(":x=odd", &plain, &why, &s), &why, -EINVAL, "names no state field");
    refused(one("y=reflect", &plain, &why, &s), &why, -EINVAL, "'reflect'");
    refused(one("y=neighbour", &plain, &why, &s), &why, -EINVAL, "'neighbour'");
    refused(one("y=mirror,", &plain, &why, &s), &why, -EINVAL, "z=fixed,mirror");
    refused(one("y=mirror,fixed,fixed", &plain, &why, &s), &why, -EINVAL, "'fixed,fixed'");
    cr_assert_eq(memcmp(&before, &s, sizeof s), 0);
    /* A side that is named twice is one side, or refused. */
    static const char *const twice[] = {"x=mirror", "z=fixed,mirror", "x=mirror,mirror", "x=fixed"};
    refused(mx_sides_read(twice, 4, &plain, &why, &s), &why, -EINVAL, "'x=mirror,mirror' and as 'x=fixed'");
    cr_assert_eq(memcmp(&before, &s, sizeof s), 0);
    cr_assert_eq(mx_sides_read(twice, 3, &plain, &why, &s), 0, "%s", why.text);
    struct mx_problem small = plain;
    small.nx = 1;
    refused(mx_sides_check(&s, &small, &why), &why, -EINVAL,
            "1 cells in x, and the side mirror copies the 2");
    cr_assert_eq(mx_sides_check(&s, &plain, &why), 0);
    small.nx = 2;
    cr_assert_eq(mx_sides_check(&s, &small, &why), 0);
    cr_assert_eq(one("x=odd-node,edge", &plain, &why, &s), 0);
    refused(mx_sides_check(&s, &small, &why), &why, -EINVAL, "give it 3 cells");
    cr_assert_eq(one("x=edge", &plain, &why, &s), 0);
    small.nx = 1;
    cr_assert_eq(mx_sides_check(&s, &small, &why), 0);
}

/* Two arrays of a staggered system, whose fields have sides of their own. */
Test(sides, words_of_fields) {
    static struct mx_system y = {.form = MX_STAGGERED,
                                 .n_field = {2, 1},
                                 .n_fixed = 1,
                                 .field = {{{"vx", MX_F64}, {"vz", MX_F32}}, {{"s", MX_F64}}},
                                 .fixed = {{"rho", MX_F32}}};
    struct mx_problem p = plain;
    p.system = &y;
    struct mx_sides s, t;
    struct mx_why why;
    char text[MX_SIDES_TEXT];
    static const char *const a[] = {"s:z=odd,fixed", "z=mirror", "vz:x=edge"}, *const b[] = {"vz:x=edge",
                                                                                             "z=mirror",
                                                                                             "s:z=odd,fixed"};
    cr_assert_eq(mx_sides_read(a, 3, &p, &why, &s), 0, "%s", why.text);
    cr_assert_eq(mx_sides_read(b, 3, &p, &why, &t), 0, "%s", why.text);
    cr_assert_eq(memcmp(&s, &t, sizeof s), 0, "the order of words counts");
    cr_assert_str_eq(mx_sides_text(&s, &p, text), "vz:x=edge vx:z=mirror vz:z=mirror s:z=odd,fixed");
    const char *word[8];
    int32_t n = 0;
    char *rest, copy[MX_SIDES_TEXT];
    strcpy(copy, text);
    for (char *k = strtok_r(copy, " ", &rest); k != NULL; k = strtok_r(NULL, " ", &rest)) word[n++] = k;
    cr_assert_eq(mx_sides_read(word, n, &p, &why, &t), 0, "%s", why.text);
    cr_assert_eq(memcmp(&s, &t, sizeof s), 0, "what is written is read as something else");
    static const char *const alike[] = {"s:z=odd", "vx:z=odd", "vz:z=odd"}, *const odd[] = {"z=odd"};
    cr_assert_eq(mx_sides_read(alike, 3, &p, &why, &s), 0);
    cr_assert_eq(mx_sides_read(odd, 1, &p, &why, &t), 0);
    cr_assert_eq(memcmp(&s, &t, sizeof s), 0, "fields that are alike are not those of one word");
    refused(one("rho:z=odd", &p, &why, &s), &why, -EINVAL, "the kernel only reads rho");
    refused(one("v:z=odd", &p, &why, &s), &why, -EINVAL, "vx, vz, s");
    refused(one("s:z=periodic", &p, &why, &s), &why, -EINVAL, "periodic for all fields or none");
    static const char *const not_all[] = {"z=periodic", "s:z=odd"}, *const again[] = {"s:z=odd", "s:z=edge"};
    refused(mx_sides_read(not_all, 2, &p, &why, &s), &why, -EINVAL, "periodic for some fields but not for s");
    refused(mx_sides_read(again, 2, &p, &why, &s), &why, -EINVAL, "'s:z=odd' and as 's:z=edge'");
    cr_assert_eq(memcmp(&s, &t, sizeof s) != 0, 0);
    y.field[1][0].dtype = MX_U8;
    refused(one("s:z=odd", &p, &why, &s), &why, -EINVAL, "u8, which has no negative values");
    char brief[MX_SIDES_BRIEF];
    cr_assert_str_eq(mx_sides_brief(&(struct mx_sides){0}, &p, brief), "fixed");
}

/* numpy.pad(range(n), h, mode): by its definition, a walk to and fro. */
static int64_t padded(enum mx_frame_kind kind, int64_t n, int64_t at) {
    int64_t i = 0, step = 1;
    if (kind == MX_FRAME_EDGE) return at < 0 ? 0 : at >= n ? n - 1 : at;
    for (int64_t k = 0; k < llabs(at < 0 ? at + 1 : at); k++) { /* from cell 0, or before it, outwards */
        if (kind == MX_FRAME_PERIODIC) {
            i = (i + 1) % n;
        } else if (i + step < 0 || i + step >= n) {
            step = -step; /* the edge's own cell again */
        } else {
            i += step;
        }
    }
    return kind == MX_FRAME_PERIODIC && at < 0 ? n - 1 - i : i;
}

Test(sides, frames_of_inputs_without_one) {
    static const char *const words[] = {"included", "edge", "mirror", "periodic"};
    struct mx_frame f;
    struct mx_why why;
    for (int kind = 1; kind < 4; kind++)
        for (int32_t h = 1; h <= 8; h++)
            for (int64_t n = 1; n < 12; n++) {
                double file[12], row[12 + 16];
                cr_assert_eq(mx_frame_parse(words[kind], &why, &f), 0);
                for (int64_t x = 0; x < n; x++) file[x] = (double)x;
                mx_frame_row(&f, n, h, MX_F64, (const char *)file, (char *)row);
                for (int64_t i = 0; i < n + 2 * h; i++) {
                    cr_assert_eq(mx_frame_source(&f, n, h, i), padded(f.kind, n, i - h), "%s n %d h %d at %d",
                                 words[kind], (int)n, h, (int)i);
                    cr_assert_eq(row[i], (double)padded(f.kind, n, i - h));
                }
            }
    cr_assert_eq(mx_frame_parse("-2.5", &why, &f), 0);
    float row[9], file[5] = {1, 2, 3, 4, 5};
    mx_frame_row(&f, 5, 2, MX_F32, (const char *)file, (char *)row);
    cr_assert(row[0] == -2.5f && row[1] == -2.5f && row[2] == 1 && row[6] == 5 && row[7] == -2.5f &&
              row[8] == -2.5f);
    mx_frame_row(&f, 5, 2, MX_F32, NULL, (char *)row);
    cr_assert(row[0] == -2.5f && row[4] == -2.5f && row[8] == -2.5f);
    cr_assert(mx_frame_source(&f, 5, 2, 1) == -1 && mx_frame_source(&f, 5, 2, 7) == -1 &&
              mx_frame_source(&f, 5, 2, 6) == 4);
    refused(mx_frame_check(&f, "image", MX_U8, &why), &why, -EINVAL,
            "image, which are u8: give an integer from 0 to 255");
    cr_assert_eq(mx_frame_check(&f, "image", MX_F32, &why), 0);
    f.value = 300;
    refused(mx_frame_check(&f, "image", MX_U8, &why), &why, -EINVAL, "300");
    cr_assert_eq(mx_frame_check(&f, "image", MX_U16, &why), 0);
    f.value = 1e300;
    refused(mx_frame_check(&f, "v", MX_F32, &why), &why, -EINVAL, "f32 (up to 3.4e38)");
    refused(mx_frame_parse("reflect", &why, &f), &why, -EINVAL, "'reflect'");
    refused(mx_frame_parse("1.5x", &why, &f), &why, -EINVAL, "'1.5x'");
    refused(mx_frame_parse("", &why, &f), &why, -EINVAL, "included");
}

/* A directory of this test's own. */
static char folder[64];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/test_after_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

static const char *in_folder(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static const char *in_folder(const char *name, const char *format, ...) {
    static char path[4][128];
    static int next;
    char *to = path[next++ % 4];
    va_list args;
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    if (format == NULL) return to;
    FILE *file = fopen(to, "w");
    cr_assert_not_null(file);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
    return to;
}

static const char *wavelet(const char *name, const char *descr, const char *shape, const void *data,
                           size_t bytes) {
    const char *path = in_folder(name, NULL);
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01", 7);
    head[7] = 0, head[8] = 118, head[9] = 0;
    const int n =
        snprintf(head + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    head[10 + n] = ' ', head[127] = '\n';
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fwrite(head, 1, sizeof head, file);
    fwrite(data, 1, bytes, file);
    fclose(file);
    return path;
}

Test(points, words, .init = make_folder, .fini = remove_folder) {
    const double wave[3] = {1.5, -2, 0.25};
    const float narrow[2] = {0.1f, 3};
    struct mx_sources s = {0};
    struct mx_points probes = {0};
    struct mx_why why;
    char a[128], b[128], text[256];
    double v;
    strcpy(a, wavelet("a.npy", "<f8", "(3,)", wave, sizeof wave));
    strcpy(b, wavelet("b.npy", "<f4", "(2,)", narrow, sizeof narrow));
    const char *list =
        in_folder("list", "# all of them\n\n u@19,9,4=%s  # a corner\nu@0,0,0=%s\nu@0,0,0=%s\n", a, b, a);
    cr_assert_eq(mx_sources_identity(&s), 0);
    cr_assert_eq(mx_sources_read(&s, &plain, list, &why), 0, "%s", why.text);
    cr_assert_eq(mx_sources_index(&s, &plain, &why), 0);
    cr_assert(s.points.n == 3 && s.n_wavelets == 2 && s.points.point[0].number == 1 &&
              s.points.point[1].number == 2 && s.points.point[2].number == 0);
    cr_assert(mx_source_amplitude(&s, 0, 0, &v) && v == (double)0.1f);
    cr_assert(!mx_source_amplitude(&s, 0, 2, &v), "a wavelet of two values ends after step 1");
    cr_assert(mx_source_amplitude(&s, 2, 2, &v) && v == 0.25);
    const uint64_t identity = mx_sources_identity(&s);
    s.wavelet[0].amplitude[0] = 1.25;
    cr_assert(identity != 0 && identity != mx_sources_identity(&s));
    struct {
        const char *point, *file, *says;
        int err;
    } bad[] = {{"u@20,0,0", a, "x = 20 is outside the grid, whose cells are 0 to 19", -EINVAL},
               {"u@0,-1,0", a, "y = -1", -EINVAL},
               {"v@0,0,0", a, "there is no field v; the fields are u", -EINVAL},
               {"u@0,0", a, "FIELD@X,Y,Z=wavelet.npy", -EINVAL},
               {"u@0,0,0.5", a, "FIELD@X,Y,Z", -EINVAL},
               {"u@0, 1,0", a, "FIELD@X,Y,Z", -EINVAL},
               {"u@0,0,0", "/nowhere.npy", "/nowhere.npy", -ENOENT},
               {"u@0,0,0", list, "not a .npy file", -EINVAL},
               {"u@0,0,0", wavelet("c.npy", "<f8", "(4,)", wave, sizeof wave),
                "promises 4 values, and it has 3", -EINVAL},
               {"u@0,0,0", wavelet("d.npy", "<i4", "(3,)", wave, sizeof wave), "<i4", -EINVAL},
               {"u@0,0,0", wavelet("e.npy", "<f8", "(3, 1)", wave, sizeof wave), "2 dimensions", -EINVAL}};
    const int64_t n = s.points.n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "%s=%s", bad[i].point, bad[i].file);
        refused(mx_sources_add(&s, &plain, text, &why), &why, bad[i].err, bad[i].says);
        cr_assert_eq(s.points.n, n);
    }
    refused(mx_sources_read(&s, &plain, in_folder("bad", "\nu@1,1,1=%s\nu@1,1\n", a), &why), &why, -EINVAL,
            "line 3");
    refused(mx_probes_read(&probes, &plain, in_folder("q", "u 1 2 3\nu 1 2 5\n"), &why), &why, -EINVAL,
            "line 2: probe u 1 2 5: z = 5");
    refused(mx_probes_read(&probes, &plain, in_folder("q", "u 1 2\n"), &why), &why, -EINVAL, "FIELD X Y Z");
    refused(mx_probes_read(&probes, &plain, in_folder("q", "u 1 2 3 4\n"), &why), &why, -EINVAL,
            "FIELD X Y Z");
    refused(mx_probes_read(&probes, &plain, in_folder("none", NULL), &why), &why, -ENOENT, "none");
    mx_points_free(&probes);
    mx_sources_free(&s);
}

/* Every range of rows of every plane of some thousands of points, against a plain scan. */
Test(points, thousands_are_found_by_row) {
    struct mx_points points = {0};
    enum { MANY = 3000 };
    for (int i = 0; i < MANY; i++) {
        const int64_t xyz[3] = {pick(0, 19), pick(0, 9), pick(0, 4)};
        cr_assert_eq(mx_points_add(&points, &plain, "probe", "u", xyz, NULL), 0);
    }
    cr_assert_eq(mx_points_index(&points, &plain, NULL), 0);
    for (int64_t z = 0; z < 5; z++)
        for (int64_t y0 = 0; y0 < 10; y0++)
            for (int64_t y1 = y0; y1 <= 10; y1++) {
                int64_t from, end, first = 0, n = 0;
                mx_points_of_rows(&points, z, y0, y1, &from, &end);
                for (int i = 0; i < MANY; i++) {
                    const struct mx_point *p = &points.point[i];
                    first += p->z < z || (p->z == z && p->y < y0);
                    n += p->z == z && p->y >= y0 && p->y < y1;
                }
                cr_assert(from == first && end - from == n);
            }
    for (int i = 1; i < MANY; i++) {
        const struct mx_point *p = &points.point[i - 1], *q = &points.point[i];
        const bool same = p->z == q->z && p->y == q->y && p->x == q->x;
        cr_assert(!same || p->number < q->number);
    }
    mx_points_free(&points);
}

/* Traces go to a file step by step; a run that ends after some of them goes on with the rest, and the file is
 * that of a run that never ended. Recording twice, ahead, and of steps that are known does no harm. */
Test(points, traces_go_on_where_they_were_committed, .init = make_folder, .fini = remove_folder) {
    enum { STEPS = 9, PROBES = 70, FIRST = 4 };
    struct mx_points probes = {0};
    struct mx_traces t;
    struct mx_why why;
    double value[STEPS][PROBES], row[STEPS * PROBES];
    struct mx_problem p = plain;
    p.nt = STEPS;
    for (int i = 0; i < PROBES; i++) {
        const int64_t xyz[3] = {pick(0, 19), pick(0, 9), pick(0, 4)};
        cr_assert_eq(mx_points_add(&probes, &p, "probe", "u", xyz, NULL), 0);
    }
    cr_assert_eq(mx_points_index(&probes, &p, NULL), 0);
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < PROBES; i++) value[s][i] = real();
    const char *path = in_folder("traces.npy", NULL);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert_eq(mx_traces_file_begin(fd, STEPS, PROBES, &why), 0);
    for (int session = 0; session < 2; session++) {
        const int from = session == 0 ? 0 : FIRST, end = session == 0 ? FIRST : STEPS;
        cr_assert_eq(mx_traces_make(&probes, 6, from, &why, &t), 0);
        for (int s = session == 0 ? 0 : FIRST - 1; s < end; s++)
            for (int i = 0; i < PROBES; i++) {
                const double v = s < from ? -1 : value[s][probes.point[i].number];
                mx_traces_record(&t, s, i, v);
                if (i % 3 == 0) mx_traces_record(&t, s, i, v);
            }
        if (session == 0) { /* a step that was begun when the run was killed */
            for (int i = 0; i < PROBES / 2; i++)
                mx_traces_record(&t, FIRST, i, value[FIRST][probes.point[i].number]);
            refused(mx_traces_take(&t, FIRST + 1, row, &why), &why, -EIO, "no value at step 4");
        }
        cr_assert_eq(mx_traces_file_write(fd, &t, end, &why), 0, "%s", why.text);
        mx_traces_free(&t);
        if (session == 0)
            cr_assert_eq(mx_traces_file_check(fd, path, STEPS, PROBES, FIRST, &why), 0, "%s", why.text);
    }
    cr_assert_eq(pread(fd, row, sizeof row, 128), (ssize_t)sizeof row);
    cr_assert_eq(memcmp(row, value, sizeof value), 0);
    refused(mx_traces_file_check(fd, path, STEPS, PROBES + 1, FIRST, &why), &why, -EINVAL, "71 probes");
    refused(mx_traces_file_check(fd, path, STEPS + 1, PROBES, FIRST, &why), &why, -EINVAL,
            "not the file of traces");
    cr_assert_eq(ftruncate(fd, 128 + (off_t)sizeof value + 1), 0);
    refused(mx_traces_file_check(fd, path, STEPS, PROBES, FIRST, &why), &why, -EINVAL, "longer");
    cr_assert_eq(ftruncate(fd, 500), 0);
    refused(mx_traces_file_check(fd, path, STEPS, PROBES, FIRST, &why), &why, -EINVAL, "truncated");
    close(fd);
    /* no room: said, not overwritten */
    cr_assert_eq(mx_traces_make(&probes, 2, 0, &why, &t), 0);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < PROBES; i++) mx_traces_record(&t, s, i, value[s][i]);
    refused(mx_traces_take(&t, 1, row, &why), &why, -EIO, "no room for the probes of step 2");
    mx_traces_free(&t);
    mx_points_free(&probes);
}

/* ------------------------------------------------------------------ norms */

Test(norms, words) {
    const struct mx_reduce reduce[2] = {{.name = "flux"}, {.name = "peak"}};
    struct mx_until u, again;
    char text[MX_UNTIL_TEXT];
    struct mx_why why;
    struct mx_norms_result r = {.max_change = 1,
                                .rms_change = 2,
                                .reduce = {3, -4},
                                .spread = {5, 6},
                                .range = {2.5, 12},
                                .mean = {0.5, 2}};
    const struct {
        const char *text;
        double value;
    } good[] = {{"max-change=1e-6", 1},
                {"rms-change=2", 2},
                {"flux=0", 3},
                {"peak=-5", -4},
                {"peak-spread=6", 6},
                {"max-change=1,above", 1},
                {"flux=2.5,above", 3},
                {"peak=-3.5,above", -4},
                {"peak=-3.5,below", -4},
                {"flux-spread=5,floor=0.25", 5},
                {"flux-spread=1,floor=10", 0.25},
                {"flux-spread=0.25,floor=10,above", 0.25}};
    static const bool met[] = {false, true, false, false, true, true, true, false, true, true, true, true};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert_eq(mx_until_parse(good[i].text, 2, reduce, &why, &u), 0, "%s", why.text);
        cr_assert_eq(mx_until_value(&u, &r), good[i].value);
        cr_assert_eq(mx_until_parse(mx_until_text(&u, reduce, text), 2, reduce, &why, &again), 0);
        cr_assert(again.kind == u.kind && again.reduce == u.reduce && again.limit == u.limit &&
                  again.floor == u.floor && again.above == u.above);
        cr_assert_eq(mx_until_met(&u, &r), met[i], "%s", good[i].text);
    }
    r.max_change = NAN;
    cr_assert_eq(mx_until_parse("max-change=1e300", 0, NULL, &why, &u), 0);
    cr_assert(!mx_until_met(&u, &r));
    refused(mx_until_parse("max-change", 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    refused(mx_until_parse("max-change=", 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    refused(mx_until_parse("max-change=1x", 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    refused(mx_until_parse("max-change=-1", 2, reduce, &why, &u), &why, -EINVAL, "never met");
    refused(mx_until_parse("max-change=-1,above", 2, reduce, &why, &u), &why, -EINVAL, "always met");
    refused(mx_until_parse("flux=1,floor=1", 2, reduce, &why, &u), &why, -EINVAL, "can have a floor");
    static const char *const words[] = {"flux-spread=1,floor=0", "flux-spread=1,floor=-1",
                                        "flux-spread=1,floor=",  "flux-spread=1,floor=inf",
                                        "flux=1,over",           "flux=1,",
                                        "flux=1,,above",         "flux=1,above,",
                                        "flux=1;above"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        refused(mx_until_parse(words[i], 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    /* The longest there is keeps all its digits. */
    const struct mx_reduce longest = {.name = "abcdefghijklmnopqrstuvw"};
    static const char all[] =
        "abcdefghijklmnopqrstuvw-spread=1.2345678901234567e-100,above,floor=1.2345678901234568e-300";
    cr_assert_eq(mx_until_parse(all, 1, &longest, &why, &u), 0, "%s", why.text);
    cr_assert_str_eq(mx_until_text(&u, &longest, text), all);
    refused(mx_until_parse("flow=1", 2, reduce, &why, &u), &why, -EINVAL, "flux");
    refused(mx_until_parse("flux=1", 0, reduce, &why, &u), &why, -EINVAL, "no reductions (MX_REDUCE");
    refused(mx_until_parse("flux=1", 0, NULL, &why, &u), &why, -EINVAL, "names no norm");
    struct mx_norms_options o = {.problem = &plain};
    struct mx_norms *n;
    refused(mx_norms_make(&o, &why, &n), &why, -EINVAL, "every 0 steps");
}

/* NaN and infinity are seen wherever they stand; rows that are missing, and checks that meet, are said. */
Test(norms, what_is_wrong_is_seen) {
    struct mx_why why;
    struct mx_norms *n;
    struct mx_norms_result r;
    struct mx_problem p = {.nx = 11, .ny = 3, .nz = 2, .nt = 9, .h = 1, .dtype = MX_F64};
    const int64_t offset[1] = {0};
    const struct mx_norms_options o = {.problem = &p, .every = 2, .max_change = true, .rms_change = true};
    for (int bad = 0; bad < 3; bad++) {
        cr_assert_eq(mx_norms_make(&o, &why, &n), 0);
        cr_assert(!mx_norms_due(n, 0) && mx_norms_due(n, 1) && mx_norms_due(n, 7) && mx_norms_due(n, 8));
        for (int64_t z = 0; z < 2; z++)
            for (int64_t y = 0; y < 3; y++) {
                double now[13] = {0}, old[13] = {0};
                for (int x = 1; x < 12; x++) now[x] = x == 4 ? -3 : 1;
                now[0] = now[12] = 1e9; /* the frame does not count */
                if (bad == 1 && y == 1 && z == 1) now[7] = NAN;
                if (bad == 2 && y == 0 && z == 1) now[11] = -INFINITY;
                const struct mx_norm_row row = {.level = 1,
                                                .y = y,
                                                .z = z,
                                                .x0 = 1,
                                                .x1 = 12,
                                                .now = (char *)now,
                                                .old = (char *)old,
                                                .field_offset_bytes = offset};
                if (y + z == 0) refused(mx_norms_take(n, 2, &why, &r), &why, -EIO, "0 of 6 rows");
                mx_norms_row(n, &row);
                if (y + z == 0) refused(mx_norms_take(n, 2, &why, &r), &why, -EIO, "1 of 6 rows");
            }
        cr_assert_eq(mx_norms_take(n, 2, &why, &r), 0, "%s", why.text);
        if (bad == 0)
            cr_assert(r.max_change == 3 && r.rms_change == sqrt(19.0 / 11));
        else if (bad == 1)
            cr_assert(isnan(r.max_change) && isnan(r.rms_change));
        else
            cr_assert(isinf(r.max_change) && isinf(r.rms_change));
        const double zero[13] = {0};
        struct mx_norm_row row = {.x0 = 1,
                                  .x1 = 12,
                                  .now = (char *)(uintptr_t)zero,
                                  .old = (char *)(uintptr_t)zero,
                                  .field_offset_bytes = offset};
        for (row.level = 1; row.level <= 7; row.level += 2) mx_norms_row(n, &row);
        refused(mx_norms_take(n, 2, &why, &r), &why, -EIO, "another check");
        mx_norms_free(n);
    }
}

/* However many checks there are: at most so many are kept, evenly spaced, and always the newest; what was
 * kept up to a step is what it was then, and can be made shorter in the same way. */
Test(norms, history_is_bounded) {
    static struct mx_norms_history all, part;
    memset(&all, 0, sizeof all);
    for (int64_t number = 1; number <= 5000; number++) {
        const struct mx_norms_result r = {.step = 10 * number, .max_change = 1.0 / (double)number};
        mx_history_add(&all, number, &r);
        cr_assert(all.n >= 1 && all.n <= MX_HISTORY_MOST);
        cr_assert(number < MX_HISTORY_MOST ? all.n == number : all.n >= MX_HISTORY_MOST / 2 - 1);
        for (int32_t i = 0; i < all.n; i++) {
            const struct mx_norms_kept *k = &all.kept[i];
            cr_assert(k->number % all.stride == 0 || (i == all.n - 1 && k->number == number));
            cr_assert(k->result.step == 10 * k->number && k->result.max_change == 1.0 / (double)k->number);
            cr_assert(i == 0 || k->number > all.kept[i - 1].number);
        }
        cr_assert_eq(all.kept[all.n - 1].number, number);
        if (number % 7 != 0) continue;
        const int32_t most = (int32_t)pick(1, MX_HISTORY_MOST);
        mx_history_up_to(&all, 10 * number, most, &part);
        cr_assert(part.n >= 1 && part.n <= most && part.kept[part.n - 1].number == number);
        for (int32_t i = 0; i + 1 < part.n; i++) cr_assert_eq(part.kept[i].number % part.stride, 0);
        mx_history_up_to(&all, 5 * number, most, &part);
        cr_assert(part.n <= most && (part.n == 0 || part.kept[part.n - 1].result.step <= 5 * number));
        mx_history_up_to(&all, 9, most, &part);
        cr_assert_eq(part.n, 0);
    }
}
