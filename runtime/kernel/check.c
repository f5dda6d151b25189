/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - a kernel is run, in a child process, over a few short rows whose surroundings are poisoned. */
#include "kernel/check.h"

#include "machine/minmax.h"

#include <errno.h>
#include <link.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPU_SECONDS = 20 };

/* ---- variables of the object */

struct segments {
    const void *inside; /* an address in the object */
    char *copy;
    size_t bytes;
    bool take, same;
};

static bool holds(const struct dl_phdr_info *info, const void *address) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t from = (uintptr_t)info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (uintptr_t)address >= from && (uintptr_t)address < from + p->p_memsz)
            return true;
    }
    return false;
}

/* Finds what can be written after loading: segments, without the parts that the linker protects. The program
 * itself is not an object of the user. */
static int look_at_segments(struct dl_phdr_info *info, size_t size, void *context) {
    struct segments *s = context;
    (void)size;
    if (!holds(info, s->inside)) return 0;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == 0) return 1;
    uintptr_t from_relro = 0, end_relro = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            from_relro = (uintptr_t)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            end_relro = from_relro + info->dlpi_phdr[i].p_memsz;
        }
    size_t at = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || (p->p_flags & PF_W) == 0) continue;
        uintptr_t from = (uintptr_t)info->dlpi_addr + p->p_vaddr;
        const uintptr_t end = from + p->p_memsz;
        if (from_relro <= from && end_relro > from) from = end_relro < end ? end_relro : end;
        const size_t n = end - from;
        if (s->take) {
            char *more = realloc(s->copy, at + n + 1);
            if (more == NULL) return 1;
            s->copy = more;
            memcpy(s->copy + at, (const void *)from, n);
            s->bytes = at + n;
        } else if (at + n <= s->bytes && memcmp(s->copy + at, (const void *)from, n) != 0) {
            s->same = false;
        }
        at += n;
    }
    return 1;
}

/* ---- all of it */

static int check_round(struct check *c) {
    struct image *m = &c->image;
    mx_check_fill(c, m);
    check_work_from(m, m->clean);
    const struct mx_problem p = {
        .nx = c->grid.n[0], .ny = c->grid.n[1], .nz = c->grid.n[2], .flat = c->system->flat};
    char extents[MX_EXTENTS_TEXT];
    snprintf(c->report->crash, sizeof c->report->crash,
             ": it reads or writes far outside of them, or divides an integer by 0");
    snprintf(c->report->stage, sizeof c->report->stage,
             " when it computes %lld rows of %lld cells of a grid of %s", (long long)c->rows,
             (long long)c->cells, mx_extents_text(&p, extents));
    mx_check_call_all(c, m);
    mx_check_keep(c);
    return mx_check_findings(c);
}

static int check_level(struct check *c) {
    const int64_t last[4] = {c->grid.n[0] - c->cells, c->grid.n[1] - c->rows, c->grid.n[2] - 1,
                             c->grid.nt > 0 ? c->grid.nt - 1 : 0};
    const struct place places[ROUNDS] = {
        {0, 0, 0, 0},
        {last[0] / 2, mx_min(4, last[1]), mx_min(3, last[2]), mx_min(1, last[3])},
        {last[0], last[1], last[2], last[3]}};
    int err = mx_check_image_make(c, 0, &c->image);
    if (err < 0) return err;
    memset(c->finite, 0, sizeof c->finite);
    c->expected = calloc((size_t)c->image.n_out * (size_t)(c->rows * c->cells), 8);
    if (c->expected == NULL)
        err = mx_fail(&c->report->why, -ENOMEM, "no memory to try out the kernel \"%s\"", c->system->name);
    for (c->round = 0; c->round < ROUNDS && err == 0; c->round++) {
        c->place = places[c->round];
        err = check_round(c);
    }
    for (int32_t f = 0; f < c->image.n_out && err == 0; f++)
        if (!c->finite[check_read(c)][f])
            err = mx_fail(
                &c->report->why, -EINVAL,
                "the kernel \"%s\" computes a %s that is NaN or infinite in every cell, in each of three "
                "tries: with values from %g to %g, from %g to %g, and from %g to %g. Check its parameters",
                c->system->name, mx_check_name(c, check_written_block(&c->image, f)), mx_check_ranges[0][0],
                mx_check_ranges[0][1], mx_check_ranges[1][0], mx_check_ranges[1][1], mx_check_ranges[2][0],
                mx_check_ranges[2][1]);
    free(c->expected);
    mx_check_image_free(&c->image);
    return err;
}

struct asked {
    const struct mx_system *system;
    struct mx_kernel_grid grid;
};

static int check_in_child(void *context, struct mx_isolated *report) {
    const struct asked *asked = context;
    const struct mx_system *s = asked->system;
    struct segments segments = {.take = true, .same = true};
    memcpy(&segments.inside, &s->row[0], sizeof segments.inside);
    dl_iterate_phdr(look_at_segments, &segments);
    struct check *c = calloc(1, sizeof *c);
    if (c == NULL) return mx_fail(&report->why, -ENOMEM, "no memory to try out the kernel \"%s\"", s->name);
    c->system = s, c->report = report;
    c->grid = asked->grid;
    c->cells = mx_min(MOST_CELLS, c->grid.n[0]);
    c->rows = mx_min(MOST_ROWS, c->grid.n[1]);
    int err = 0;
    for (c->level = 0; c->level < mx_system_levels(s) && err == 0; c->level++) err = check_level(c);
    if (err == 0) err = mx_check_planes(s, &asked->grid, report);
    c->level = (int)mx_reduced_level(s);
    for (int32_t i = 0; i < s->n_reduce && err == 0; i++) {
        c->reduce = &s->reduce[i];
        err = check_level(c);
    }
    segments.take = false;
    dl_iterate_phdr(look_at_segments, &segments);
    if (err == 0 && !segments.same)
        err = mx_fail(&report->why, -EINVAL,
                      "the kernel \"%s\" writes static variables, and several threads call it at once: use "
                      "local variables",
                      s->name);
    free(segments.copy);
    free(c);
    return err;
}

int mx_kernel_check(const struct mx_system *system, const struct mx_kernel_grid *grid, mx_why *why) {
    static const struct mx_kernel_grid any = {{MOST_CELLS, 11, 9}, 7}, flat = {{MOST_CELLS, 1, 11}, 7};
    struct asked asked = {system, grid != NULL ? *grid : system->flat ? flat : any};
    char subject[96];
    snprintf(subject, sizeof subject, "the kernel \"%s\"", system->name);
    return mx_isolate(check_in_child, &asked, subject, CPU_SECONDS, why);
}
