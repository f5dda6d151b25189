/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of users: what opening one gives, what the check finds in row functions, what a child process
 * survives. */
#include "kernel/forms.h"
#include "kernel/kernel.h"
#include "kernel/private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[256];

static void make_directory(void) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(directory, sizeof directory, "%s/mx-kernel-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(directory) != NULL);
    char *absolute = realpath(directory, NULL);
    cr_assert(absolute != NULL && strlen(absolute) < sizeof directory);
    strcpy(directory, absolute);
    free(absolute);
    cr_assert(setenv("XDG_CACHE_HOME", directory, 1) == 0);
}

static void remove_directory(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", directory);
    cr_assert(system(command) == 0);
}

TestSuite(kernel, .init = make_directory, .fini = remove_directory);

static const char *write_text(const char *name, const char *text) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

static const char staggered_text[] =
    "#define MX_NAME \"two stages\"\n"
    "#define MX_RADIUS 2\n"
    "#define MX_FIXED_RADIUS 1\n"
    "#define MX_FORM MX_STAGGERED\n"
    "#define MX_STATE(F) F(a, float)\n"
    "#define MX_PARTNER(F) F(b, float) F(c, float)\n"
    "#define MX_FIXED(F) F(k, uint16_t) F(l, double)\n"
    "#define MX_PARAMS(P) P(dt, 0.25) P(r, 1)\n"
    "#include <memext/cell.h>\n"
    "MX_CELL_B\n"
    "SET(b, OLD(b) + (float)PARAM(dt) * AT(a, 2, 0, 0));\n"
    "SET(c, OLD(c) + AT(k, 0, -1, 0) * (float)X);\n"
    "MX_END\n"
    "MX_CELL_A\n"
    "SET(a, OLD(a) + AT(b, 0, -2, 0) - AT(c, 0, 0, 2) * (float)AT(l, 0, 0, 0));\n"
    "MX_END\n";

/* What the text says is what the system holds; the identity is that of the text and no other's; a parameter
 * is set, the other keeps its default. */
Test(kernel, opens_as_it_is_described) {
    const char *const params[] = {"dt=0.5"};
    mx_why why = {0};
    struct mx_system *s = NULL, *again = NULL;
    struct mx_kernel_options o = {
        .path = write_text("two.c", staggered_text), .params = params, .n_params = 1};
    cr_assert(mx_kernel_open(&o, &why, &s) == 0, "%s", why.text);
    cr_assert(strcmp(s->name, "two stages") == 0 && s->form == MX_STAGGERED && s->h == 2 && s->hc == 1);
    cr_assert(s->n_field[0] == 1 && s->n_field[1] == 2 && s->n_fixed == 2 && s->n_param == 2);
    cr_assert(strcmp(s->field[0][0].name, "a") == 0 && s->field[0][0].dtype == MX_F32);
    cr_assert(strcmp(s->field[1][1].name, "c") == 0 && s->field[1][1].dtype == MX_F32);
    cr_assert(strcmp(s->fixed[0].name, "k") == 0 && s->fixed[0].dtype == MX_U16 &&
              s->fixed[1].dtype == MX_F64);
    cr_assert(strcmp(s->param_name[0], "dt") == 0 && s->param[0] == 0.5 && s->param[1] == 1);
    cr_assert(s->row[0] != NULL && s->row[1] != NULL && s->row[0] != s->row[1]);
    cr_assert(mx_kernel_check(s, NULL, &why) == 0, "%s", why.text);
    struct mx_kernel_facts f = mx_kernel_facts(s);
    cr_assert(f.compiled && f.cached && f.functions[0] == 0 && access(f.file, R_OK) == 0);

    char other[sizeof staggered_text + 1];
    snprintf(other, sizeof other, "%s\n", staggered_text);
    o.n_params = 0;
    cr_assert(mx_kernel_open(&o, &why, &again) == 0 && again->identity == s->identity &&
              again->param[0] == 0.25);
    cr_assert(!mx_kernel_facts(again).compiled && mx_kernel_facts(again).cached);
    mx_kernel_close(again);
    o.path = write_text("other.c", other);
    cr_assert(mx_kernel_open(&o, &why, &again) == 0 && again->identity != s->identity);
    mx_kernel_close(again);
    mx_kernel_close(s);
    mx_kernel_close(NULL);
}

/* Small numbers of C, which are widened a piece of a row at a time, are those that stand there: at every
 * offset within the radius, constant or not, on both sides of where pieces end. */
static const char small_text[] =
    "#define MX_NAME \"small\"\n"
    "#define MX_RADIUS 1\n"
    "#define MX_FIXED_RADIUS 1\n"
    "#define MX_STATE(F) F(u, double)\n"
    "#define MX_FIXED(F) F(a, uint8_t) F(b, int16_t) F(c, uint16_t)\n"
    "#include <memext/cell.h>\n"
    "MX_CELL\n"
    "const int one = NX > 0;\n"
    "SET(u, AT(a, -1, 1, 0) + 3.0 * AT(b, 1, 0, -1) + 5.0 * AT(c, 0, -1, 1)\n"
    "       + 7.0 * AT(b, one, -one, 0) + 11.0 * (AT(c, 1, 1, 1) * AT(a, 0, 0, -1)));\n"
    "MX_END\n";

enum { SMALL_X = 300, SMALL_ROWS = 4 }; /* rows of C: two and one on either side */

Test(kernel, small_numbers_are_widened) {
    static uint8_t a[3][SMALL_ROWS][SMALL_X + 2];
    static int16_t b[3][SMALL_ROWS][SMALL_X + 2];
    static uint16_t c[3][SMALL_ROWS][SMALL_X + 2];
    static double u[3][SMALL_ROWS][SMALL_X + 2], out[2][SMALL_X + 2];
    mx_why why = {0};
    struct mx_system *s = NULL;
    const struct mx_kernel_options o = {.path = write_text("small.c", small_text)};
    cr_assert(mx_kernel_open(&o, &why, &s) == 0, "%s", why.text);
    uint32_t random = 1;
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < SMALL_ROWS; y++)
            for (int x = 0; x < SMALL_X + 2; x++) {
                random = random * 1664525u + 1013904223u;
                a[z][y][x] = (uint8_t)(random >> 24);
                b[z][y][x] = (int16_t)(random >> 16);
                c[z][y][x] = (uint16_t)(random >> 13);
            }
    const void *in[3], *fixed[9];
    void *to[1] = {out[0]};
    const int64_t pitch[3] = {sizeof a[0][0], sizeof b[0][0], sizeof c[0][0]};
    for (int z = 0; z < 3; z++)
        in[z] = u[z][1], fixed[z] = a[z][1], fixed[3 + z] = b[z][1], fixed[6 + z] = c[z][1];
    for (int64_t x0 = 1; x0 < 12; x0++) {
        const struct mx_row r = {.out = to,
                                 .in = in,
                                 .fixed = fixed,
                                 .row_pitch = sizeof out[0],
                                 .fixed_pitch = pitch,
                                 .rows = 2,
                                 .x0 = x0,
                                 .x1 = SMALL_X + 1 - x0 / 2,
                                 .nx = SMALL_X,
                                 .ny = 2,
                                 .nz = 1};
        memset(out, 0, sizeof out);
        s->row[0](&r);
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < SMALL_X + 2; x++) {
                const double value = a[1][y + 2][x - (x > 0)] + 3.0 * b[0][y + 1][x + 1 - (x > SMALL_X)] +
                                     5.0 * c[2][y][x] + 7.0 * b[1][y][x + 1 - (x > SMALL_X)] +
                                     11.0 * (c[2][y + 2][x + 1 - (x > SMALL_X)] * a[0][y + 1][x]);
                cr_assert(out[y][x] == (x >= r.x0 && x < r.x1 ? value : 0), "x0 %d, row %d, cell %d", (int)x0,
                          y, x);
            }
    }
    mx_kernel_close(s);
}

/* Refused: nothing is given out, the compiler's words are, cut to the room there is. */
Test(kernel, says_what_the_compiler_said) {
    char messages[40];
    mx_why why = {0};
    struct mx_system *s = NULL;
    struct mx_kernel_options o = {.path =
                                      write_text("bad.c", "#error this one does not compile at all, ever\n"),
                                  .messages = messages,
                                  .messages_bytes = sizeof messages};
    cr_assert(mx_kernel_open(&o, &why, &s) == -EINVAL && s == NULL);
    cr_assert(strstr(why.text, "bad.c:1:") != NULL && strstr(why.text, "does not compile") != NULL, "%s",
              why.text);
    cr_assert(strlen(messages) == sizeof messages - 1);
}

/* ---- the check, on row functions of this program: what cell.h would not let through */

static double cell(const void *plane, int64_t pitch, int64_t row, int64_t x) {
    return ((const double *)((const char *)plane + row * pitch))[x];
}

#define ROWS(expression)                                                                                     \
    for (int64_t row = 0; row < r->rows; row++)                                                              \
        for (int64_t x = r->x0; x < r->x1; x++)                                                              \
            ((double *)((char *)r->out[0] + row * r->row_pitch))[x] = (expression);

static void good(const struct mx_row *r) {
    ROWS(cell(r->in[0], r->row_pitch, row, x) + cell(r->in[2], r->row_pitch, row - 1, x + 1))
}
static void corner(const struct mx_row *r) { ROWS(cell(r->in[1], r->row_pitch, row - 1, x + 2)) }
static void plane(const struct mx_row *r) { ROWS(cell(r->in[3], r->row_pitch, row, x)) }
static void fixed(const struct mx_row *r) {
    ROWS(((const uint8_t *)r->fixed[0] + row * r->fixed_pitch[0])[x - 1])
}
static void one_more(const struct mx_row *r) {
    struct mx_row more = *r;
    more.x1++;
    good(&more);
}
static void row_above(const struct mx_row *r) {
    good(r);
    ((double *)((char *)r->out[0] - r->row_pitch))[r->x0] = 1;
}
static void first_of_call(const struct mx_row *r) {
    ROWS(x == r->x0 ? 1 : cell(r->in[1], r->row_pitch, row, x))
}
static void last_row(const struct mx_row *r) {
    ROWS(row == r->rows - 1 ? 1 : cell(r->in[1], r->row_pitch, row, x))
}
static void stops(const struct mx_row *r) {
    good(r);
    abort();
}
static void never_ends(const struct mx_row *r) {
    for (volatile int64_t i = 0; r->rows > 0; i++) continue;
}
static void nan_some(const struct mx_row *r) {
    ROWS(cell(r->in[1], r->row_pitch, row, x) > 0 ? cell(r->in[1], r->row_pitch, row, x) : __builtin_nan(""))
}

static struct mx_system system_of(void (*row)(const struct mx_row *)) {
    struct mx_system s = {.name = "tried", .h = 1, .n_field = {1, 1}, .n_fixed = 1, .row = {row, row}};
    strcpy(s.field[0][0].name, "u"), strcpy(s.field[1][0].name, "u"), strcpy(s.fixed[0].name, "k");
    s.fixed[0].dtype = MX_U8;
    return s;
}

/* Each fault in its own words; what is right passes; NaN in some cells is no fault. */
Test(kernel, check_finds_faults_of_row_functions) {
    static const struct {
        void (*row)(const struct mx_row *);
        const char *words; /* NULL: nothing is wrong */
    } cases[] = {{good, NULL},
                 {nan_some, NULL},
                 {corner, "reads u at (2, -1, 0)"},
                 {plane, "reads planes"},
                 {fixed, "reads k at (-1, 0, 0)"},
                 {one_more, "writes u at X = 67"},
                 {row_above, "writes u at X = 0, Y = -1"},
                 {first_of_call, "how x is cut"},
                 {last_row, "how many rows"},
                 {stops, "SIGABRT"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct mx_system s = system_of(cases[i].row);
        mx_why why = {0};
        int err = mx_kernel_check(&s, NULL, &why);
        cr_assert(err == (cases[i].words == NULL ? 0 : -EINVAL), "case %zu: %d %s", i, err, why.text);
        cr_assert(cases[i].words == NULL || strstr(why.text, cases[i].words) != NULL, "case %zu: %s", i,
                  why.text);
    }
}

/* The largest system that there may be fits. */
Test(kernel, check_of_the_largest_system) {
    struct mx_system s = {
        .name = "large", .h = 1, .n_field = {MX_MAX_FIELDS, MX_MAX_FIELDS}, .row = {good, good}};
    s.n_fixed = MX_MAX_FIXED, s.hc = 1;
    mx_why why = {0};
    cr_assert(mx_kernel_check(&s, NULL, &why) == -EINVAL); /* 31 fields are left as they were */
    cr_assert(strstr(why.text, "leaves a cell unset") != NULL, "%s", why.text);
    s = system_of(good);
    s.h = s.hc = MX_MAX_HALO;
    cr_assert(mx_kernel_check(&s, NULL, &why) == 0, "%s", why.text);
}

static int spin(void *context, struct mx_isolated *report) {
    strcpy(report->stage, " while it spins");
    const struct mx_row r = {.rows = 1};
    void (*volatile row)(const struct mx_row *) = never_ends; /* what it cannot see through, it calls */
    row(&r);
    return context == NULL;
}
static int touch_nothing(void *context, struct mx_isolated *report) {
    (void)report;
    return *(volatile char *)context;
}
/* As a child does that was forked while another thread had a lock: but for the last time that it is tried. */
static int sleep_at_first(void *context, struct mx_isolated *report) {
    atomic_int *tries = context;
    strcpy(report->stage, " while it sleeps");
    if (atomic_fetch_add(tries, 1) < 2 || atomic_load(tries) > 3)
        for (;;) pause();
    return -ENOANO;
}
static int answer(void *context, struct mx_isolated *report) {
    ++*(int *)context;
    strcpy(report->why.text, "the answer");
    return -ENOANO;
}

/* A child that never ends, one that crashes, one that sleeps, one that answers: a sentence each, and the
 * parent's memory is its own. */
Test(kernel, children_end_in_sentences) {
    mx_why why = {0};
    int count = 0;
    cr_assert(mx_isolate(spin, NULL, "the thing", 1, &why) == -EINVAL);
    cr_assert(strcmp(why.text, "the thing did not end within 1 seconds while it spins") == 0, "%s", why.text);
    void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(nowhere != MAP_FAILED);
    cr_assert(mx_isolate(touch_nothing, nowhere, "the thing", 10, &why) == -EINVAL);
    cr_assert(strstr(why.text, "the thing crashes with SIGSEGV") != NULL, "%s", why.text);
    atomic_int *tries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(tries != MAP_FAILED);
    cr_assert(mx_isolate(sleep_at_first, tries, "the thing", 10, &why) == -ENOANO && *tries == 3);
    cr_assert(mx_isolate(sleep_at_first, tries, "the thing", 10, &why) == -EINVAL && *tries == 6);
    cr_assert(strcmp(why.text, "the thing waits for something instead of computing while it sleeps") == 0,
              "%s", why.text);
    cr_assert(mx_isolate(answer, &count, "the thing", 10, &why) == -ENOANO && count == 0);
    cr_assert(strcmp(why.text, "the answer") == 0);
}

/* An object file's functions: those whose bits differ are named, exact ones are not; damage names none. */
Test(kernel, functions_of_an_object) {
    mx_why why = {0};
    struct mx_system *s = NULL;
    const struct mx_kernel_options o = {
        .path = write_text(
            "functions.c",
            "#define MX_NAME \"f\"\n#define MX_RADIUS 1\n#define MX_STATE(F) F(u, double)\n"
            "#include <memext/cell.h>\nMX_CELL\n"
            "SET(u, exp(AT(u, 0, 0, 0)) + sqrt(fabs(AT(u, 1, 0, 0))) + fmod(AT(u, 0, 1, 0), 3));\nMX_END\n")};
    cr_assert(mx_kernel_open(&o, &why, &s) == 0, "%s", why.text);
    cr_assert(strcmp(mx_kernel_facts(s).functions, "exp") == 0, "%s", mx_kernel_facts(s).functions);
    struct mx_text object;
    char found[64];
    cr_assert(mx_text_read(mx_kernel_facts(s).file, "it", &why, &object) == 0);
    for (size_t cut = object.bytes; cut > 0; cut = cut * 9 / 10) {
        struct mx_text part = {malloc(cut), cut};
        memcpy(part.data, object.data, cut);
        mx_object_functions(&part, found, sizeof found);
        cr_assert(cut == object.bytes ? strcmp(found, "exp") == 0 : strlen(found) < sizeof found);
        free(part.data);
    }
    free(object.data);
    mx_kernel_close(s);
}

static int32_t form(const char *name) {
    int32_t i = 0;
    while (i < MX_FORMS && strcmp(mx_forms[i].name, name) != 0) i++;
    cr_assert(i < MX_FORMS, "no form %s", name);
    return i;
}

/* The least time; another form than the first only if it is clearly less; four rows that are nearly as fast
 * as two, where they are preferred. */
Test(kernel, the_form_that_is_kept) {
    const int32_t number[] = {form("1"), form("1b"), form("2b"), form("4b")};
    const struct {
        double time[4];
        bool prefers_rows;
        int32_t kept;
    } cases[] = {
        {{2, 1.5, 1, 1.02}, true, 3},  {{2, 1.5, 1, 1.02}, false, 2}, {{2, 1.5, 1, 1.04}, true, 2},
        {{2, 1, 1.02, 1.02}, true, 1}, {{1, 0.97, 1, 1}, true, 0},    {{1, 0.94, 1, 0.95}, true, 1},
        {{2, 1.5, 1.1, 1}, false, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert(mx_forms_choose(number, 4, cases[i].time, cases[i].prefers_rows) == cases[i].kept,
                  "case %zu", i);
    const int32_t rows[] = {form("1"), form("2w"), form("4")};
    cr_assert(mx_forms_choose(rows, 3, (const double[]){2, 1, 1.01}, true) == 1, "these are not in blocks");
    const int32_t planes[] = {form("1"), form("1x2b"), form("2x2b"), form("4b")};
    cr_assert(mx_forms_choose(planes, 4, (const double[]){2, 1.01, 1, 1.02}, true) == 2,
              "these share planes");
    cr_assert(mx_forms_choose(planes, 4, (const double[]){2, 1, 1.01, 1.02}, true) == 1,
              "these share planes");
}

/* By radius, code and fields; several cells in blocks only where one row is in blocks. */
Test(kernel, the_forms_that_are_worth_compiling) {
    const struct mx_worth all = {true, true, true}, high = {false, true, true}, fields = {true, true, false};
    const struct {
        const char *name;
        struct mx_worth worth;
        bool in_blocks, is_worth;
    } cases[] = {
        {"1b", all, false, true},     {"2b", all, true, true},       {"2b", all, false, false},
        {"2w", all, false, true},     {"2w", all, true, false},      {"1x2b", all, true, true},
        {"1x2b", all, false, false},  {"1x2b", high, true, true},    {"2x2b", high, true, false},
        {"1x4b", high, true, true},   {"1x4b", fields, true, false}, {"4b", fields, true, false},
        {"1x2b", fields, true, true}, {"1w", high, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert(mx_form_is_worth(&mx_forms[form(cases[i].name)], &cases[i].worth, cases[i].in_blocks) ==
                      cases[i].is_worth,
                  "case %zu, %s", i, cases[i].name);
}
