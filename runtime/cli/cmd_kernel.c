/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_kernel.c - memext kernel: builds a kernel's file, tries it out, says what it is. */
#include "ask/near.h"
#include "cli/options.h"
#include "kernel/kernel.h"
#include "run/open/request.h"

#include <memext/backend.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_fields(const char *what, int32_t n, const struct mx_field_of *fields) {
    if (n > 0) printf("%-10s", what);
    for (int32_t i = 0; i < n; i++)
        printf("%s%s %s", i > 0 ? ", " : "", fields[i].name, mx_dtype_name(fields[i].dtype));
    if (n > 0) printf("\n");
}

static int show(const struct mx_system *s) {
    static const char *const forms[] = {"jacobi", "leapfrog", "staggered"};
    const struct mx_kernel_facts f = mx_kernel_facts(s);
    printf("kernel    %s\nform      %s, ", s->name, forms[s->form]);
    if (s->stages > 1) printf("%d stages, ", s->stages);
    if (s->flat) printf("two dimensions, ");
    printf("radius %d", s->h);
    if (s->n_fixed > 0) printf(" (of fixed fields %d)", s->hc);
    printf("\n");
    say_fields("state", s->n_field[0], s->field[0]);
    if (s->form == MX_STAGGERED) say_fields("partner", s->n_field[1], s->field[1]);
    say_fields("fixed", s->n_fixed, s->fixed);
    for (int32_t i = 0; i < s->n_param; i++)
        printf("%-10s%s = %.17g%s\n", i == 0 ? "params" : "", s->param_name[i], s->param[i],
               mx_series_of(s, i) != NULL ? " at first, then over time" : "");
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
    if (f.form[0] != 0) printf("%s: chosen here: %s\n", s->name, f.form);
    if (s->cell_ns > 0) printf("%s: a step of a cell takes a core %.3g ns, in tiles\n", s->name, s->cell_ns);
    if (f.compiled && f.cached)
        printf("%s: compiled by %s, kept as %s\n", s->name, f.compiler, f.file);
    else if (f.compiled)
        printf("%s: compiled by %s, kept nowhere: no cache directory can be written\n", s->name, f.compiler);
    else
        printf("%s: %s %s\n", s->name, f.cached ? "found in the cache," : "built already,", f.file);
    return 0;
}

static int work(const char *verb, const struct mx_kernel_options *o, struct mx_options *asked, bool *tried,
                mx_why *why) {
    struct mx_problem *p = &asked->problem;
    struct mx_system *s = NULL;
    const bool checking = strcmp(verb, "check") == 0;
    int err = mx_kernel_open(o, why, &s);
    if (o->messages[0] != 0) fputs(o->messages, stderr);
    if (err < 0) return err;
    *tried = checking;
    if (s->flat && !mx_option_given(asked, "size")) p->nz = 1;
    err = checking ? mx_take_dimensions(asked, s, why) : 0;
    const struct mx_kernel_grid grid = {{p->nx, p->ny, p->nz}, p->nt};
    if (checking && err == 0 && (err = mx_kernel_check(s, &grid, why)) == 0)
        printf("%s: nothing wrong found%s%s\n", s->name,
               mx_kernel_facts(s).functions[0] != 0 ? "; its bits depend on the machine, because it calls "
                                                    : "",
               mx_kernel_facts(s).functions);
    if (strcmp(verb, "build") == 0) err = build(s);
    if (strcmp(verb, "show") == 0) err = show(s);
    mx_kernel_close(s);
    return err;
}

/* memext kernel VERB FILE and its options. 0, 1 = help was asked for, -EINVAL. */
static int take_words(int argc, char **argv, const char **verb, struct mx_options *o, mx_why *why) {
    struct mx_asked asked = {.n = 0};
    int err = mx_options_read(MX_CMD_KERNEL, argc, argv, 2, why, &asked);
    if (err == 0) err = mx_asked_take(&asked, o, why);
    if (err == 0) mx_options_say_twice(&asked, o);
    const int32_t n = asked.n_plain;
    *verb = n > 0 ? asked.plain[0] : NULL;
    if (n > 1) o->kernel = asked.plain[1];
    mx_asked_free(&asked);
    if (err == 0 && n < 2)
        err = mx_fail(
            why, -EINVAL,
            "give two words: build, check or show, and then the kernel's file (memext kernel --help)");
    return err;
}

/* What a check finds may hold for coordinates that no run of the user has. */
static void say_error(const struct mx_options *o, bool tried, int err, const mx_why *why) {
    const struct mx_problem *p = &o->problem;
    fprintf(stderr, "memext kernel: %s", why->text[0] != 0 ? why->text : strerror(-err));
    if (tried && !mx_option_given(o, "size"))
        fprintf(
            stderr,
            ". The check tried X from 0 to %lld, Y to %lld and Z to %lld: if a table or a condition depends "
            "on them, give the size of your grid with -n NX NY%s",
            (long long)p->nx - 1, (long long)(p->flat ? p->nz : p->ny) - 1,
            (long long)(p->flat ? p->ny : p->nz) - 1, p->flat ? "" : " NZ");
    fputc('\n', stderr);
}

int mx_cmd_kernel(int argc, char **argv) {
    static const char *const verbs[] = {"build", "check", "show"};
    static char messages[64 << 10];
    struct mx_options taken = {.problem = {.nx = 67, .ny = 11, .nz = 9, .nt = 7}};
    const char *verb;
    mx_why why = {0};
    int err = take_words(argc, argv, &verb, &taken, &why);
    if (err == 1) return mx_options_help(MX_CMD_KERNEL, taken.topic);
    const struct mx_kernel_options o = {.path = taken.kernel,
                                        .params = taken.params.word,
                                        .n_params = taken.params.n,
                                        .messages = messages,
                                        .messages_bytes = sizeof messages};
    struct mx_near near = mx_near_to(verb != NULL ? verb : "", verb != NULL ? strlen(verb) : 0);
    bool known = false, tried = false;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0] && err == 0; i++) {
        known |= strcmp(verb, verbs[i]) == 0;
        mx_near_offer(&near, verbs[i]);
    }
    if (err == 0 && !known)
        err = mx_fail(&why, -EINVAL, "'%s' is not build, check or show (memext kernel --help)%s", verb,
                      mx_near_say(&near, "").text);
    if (err == 0) err = work(verb, &o, &taken, &tried, &why);
    if (err < 0) say_error(&taken, tried, err, &why);
    return mx_exit_status(err, false);
}
