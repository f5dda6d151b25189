/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_kernel.c - memext kernel: builds a kernel's file, tries it out, says what it is. */
#include "cli/options.h"
#include "kernel/kernel.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 2 * MX_MAX_PARAMS };

static void help(FILE *to) {
    fprintf(
        to,
        "usage: memext kernel build|check|show FILE.c|FILE.so [options]\n\n"
        "  build                    compile it (or find it in the cache) and say where the object is\n"
        "  check                    run it on small poisoned rows and say what is wrong with it\n"
        "  show                     its form, fields, parameters, reductions and identity\n\n"
        "  -n NX NY NZ              check: cells of the grid that the kernel is for (default 67 11 9)\n"
        "  -t NT                    check: its time steps (default 7)\n"
        "  --param NAME=VALUE       a parameter's value instead of the kernel's own; may be repeated\n"
        "  --help                   this text\n\n"
        "The compiler is that of the environment variable CC, else cc, gcc or clang; objects are kept in\n"
        "$XDG_CACHE_HOME/memext/kernels (~/.cache/memext/kernels).\n");
}

static void say_fields(const char *what, int32_t n, const struct mx_field_of *fields) {
    if (n > 0) printf("%-10s", what);
    for (int32_t i = 0; i < n; i++)
        printf("%s%s %s", i > 0 ? ", " : "", fields[i].name, mx_dtype_name(fields[i].dtype));
    if (n > 0) printf("\n");
}

static int show(const struct mx_system *s) {
    static const char *const forms[] = {"jacobi", "leapfrog", "staggered"};
    const struct mx_kernel_facts f = mx_kernel_facts(s);
    printf("kernel    %s\nform      %s, radius %d", s->name, forms[s->form], s->h);
    if (s->n_fixed > 0) printf(", of fixed fields %d", s->hc);
    printf("\n");
    say_fields("state", s->n_field[0], s->field[0]);
    if (s->form == MX_STAGGERED) say_fields("partner", s->n_field[1], s->field[1]);
    say_fields("fixed", s->n_fixed, s->fixed);
    for (int32_t i = 0; i < s->n_param; i++)
        printf("%-10s%s = %.17g\n", i == 0 ? "params" : "", s->param_name[i], s->param[i]);
    for (int32_t i = 0; i < s->n_reduce; i++)
        printf("%s%s (%s)", i == 0 ? "reduces   " : ", ", s->reduce[i].name,
               s->reduce[i].kind == MX_SUM   ? "sum"
               : s->reduce[i].kind == MX_MAX ? "maximum"
                                             : "minimum");
    if (s->n_reduce > 0) printf("\n");
    printf("identity  %016" PRIx64 "\n", s->identity);
    if (f.functions[0] != 0)
        printf("calls     %s: bits depend on the machine and its C library\n", f.functions);
    return 0;
}

static int build(const struct mx_system *s) {
    const struct mx_kernel_facts f = mx_kernel_facts(s);
    if (f.compiled && f.cached)
        printf("%s: compiled by %s, kept as %s\n", s->name, f.compiler, f.file);
    else if (f.compiled)
        printf("%s: compiled by %s, kept nowhere: there is no cache that can be written\n", s->name,
               f.compiler);
    else
        printf("%s: %s %s\n", s->name, f.cached ? "found in the cache," : "built already,", f.file);
    return 0;
}

static int work(const char *verb, const struct mx_kernel_options *o, const struct mx_kernel_grid *grid,
                mx_why *why) {
    struct mx_system *s = NULL;
    const bool checking = strcmp(verb, "check") == 0;
    int err = mx_kernel_open(o, why, &s);
    if (o->messages[0] != 0) fputs(o->messages, stderr);
    if (err < 0) return err;
    if (checking && (err = mx_kernel_check(s, grid, why)) == 0)
        printf("%s: nothing wrong found%s%s\n", s->name,
               mx_kernel_facts(s).functions[0] != 0 ? "; its bits depend on the machine, for it calls " : "",
               mx_kernel_facts(s).functions);
    if (strcmp(verb, "build") == 0) err = build(s);
    if (strcmp(verb, "show") == 0) err = show(s);
    mx_kernel_close(s);
    return err;
}

static bool take_number(const char *text, int64_t low, int64_t *out) {
    char *end;
    errno = 0;
    const long long n = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != 0 || errno != 0 || n < low || n > INT64_C(1) << 40)
        return fprintf(stderr, "memext kernel: '%s' is no whole number from %lld to 2^40\n",
                       text != NULL ? text : "", (long long)low),
               false;
    return *out = n, true;
}

/* -n takes three words, of which getopt knows the first. */
static bool take_extents(int argc, char **argv, struct mx_kernel_grid *grid) {
    bool well = take_number(optarg, 1, &grid->n[0]);
    for (int i = 1; i < 3 && well; i++)
        well = take_number(optind < argc ? argv[optind] : NULL, 1, &grid->n[i]), optind++;
    return well;
}

int mx_cmd_kernel(int argc, char **argv) {
    static const struct option options[] = {
        {"param", required_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    static const char *const verbs[] = {"build", "check", "show"};
    static char messages[64 << 10];
    const char *params[MAX_PARAMS];
    struct mx_kernel_grid grid = {{67, 11, 9}, 7};
    struct mx_kernel_options o = {.params = params, .messages = messages, .messages_bytes = sizeof messages};
    mx_why why = {0};
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "hn:t:", options, NULL)) != -1;) {
        if (c == 'h') return help(stdout), MX_EXIT_OK;
        if (c == 'n' && !take_extents(argc, argv, &grid)) return MX_EXIT_REFUSED;
        if (c == 't' && !take_number(optarg, 0, &grid.nt)) return MX_EXIT_REFUSED;
        if (c == 'n' || c == 't') continue;
        if (c != 'p') return MX_EXIT_REFUSED;
        if (o.n_params == MAX_PARAMS)
            return fprintf(stderr, "memext kernel: more than %d times --param\n", MAX_PARAMS),
                   MX_EXIT_REFUSED;
        params[o.n_params++] = optarg;
    }
    if (argc - optind != 2) {
        fprintf(stderr,
                "memext kernel: it takes two words, what to do (build, check or show) and the kernel's "
                "file (memext kernel --help)\n");
        return MX_EXIT_REFUSED;
    }
    o.path = argv[optind + 1];
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[optind], verbs[i]) != 0) continue;
        int err = work(verbs[i], &o, &grid, &why);
        if (err < 0) fprintf(stderr, "memext kernel: %s\n", why.text[0] != 0 ? why.text : strerror(-err));
        return mx_exit_status(err, false);
    }
    fprintf(stderr, "memext kernel: '%s' is not build, check or show (memext kernel --help)\n", argv[optind]);
    return MX_EXIT_REFUSED;
}
