/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/frame.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

int mx_frame_take(const struct mx_words *words, mx_why *why, struct mx_frame *out) {
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) {
        char name[MX_FIELD_NAME + 4] = "";
        const char *rest = mx_field_word(words->word[i], name);
        if (rest != NULL && strcmp(name, MX_BUILT_IN_FIELD) != 0)
            return mx_fail(why, -EINVAL, "--frame %s: a built-in stencil has one field, u", words->word[i]);
        err = mx_frame_parse(rest != NULL ? rest : words->word[i], why, out);
    }
    return err;
}

static int take_word(struct mx_run_fields *f, const struct mx_system *s, const char *word, bool named,
                     bool *found, mx_why *why) {
    char name[MX_FIELD_NAME + 4] = "";
    const char *rest = mx_field_word(word, name);
    struct mx_frame frame;
    *found = rest == NULL;
    if ((rest != NULL) != named) return *found = true, 0;
    int err = mx_frame_parse(named ? rest : word, why, &frame);
    for (int32_t i = 0; i < f->n && err == 0; i++) {
        struct mx_run_field *x = &f->field[i];
        const bool read = x->array != MX_FIELD_OF_C || s->hc > 0; /* a frame of C that nobody reads is any */
        if (named && strcmp(name, x->name) != 0) continue;
        *found = true;
        if (named && !read)
            return mx_fail(why, -EINVAL,
                           "--frame %s: the kernel reads %s only at the cell itself, so that field needs no "
                           "frame; leave this option out",
                           word, name);
        x->made = frame;
        const bool file = x->path[0] != 0 || (x->init == NULL && x->same_as < 0);
        if (read && file) err = mx_frame_check(&frame, x->name, x->dtype, why);
    }
    return err;
}

int mx_fields_take_frames(struct mx_run_fields *fields, const struct mx_system *s,
                          const struct mx_words *words, mx_why *why) {
    for (int named = 0; named < 2; named++) /* names say more than what is said of all */
        for (int32_t i = 0; i < words->n; i++) {
            bool found;
            const int err = take_word(fields, s, words->word[i], named, &found, why);
            if (err < 0) return err;
            if (!found)
                return mx_fail(why, -EINVAL, "--frame '%.120s': the kernel has no such field",
                               words->word[i]);
        }
    return 0;
}

int mx_frame_print(const struct mx_words *words, char text[MX_FRAME_TEXT], mx_why *why) {
    size_t n = 0;
    text[0] = 0;
    for (int32_t i = 0; i < words->n; i++) {
        n += (size_t)snprintf(text + n, MX_FRAME_TEXT - n, "%s%s", i > 0 ? " " : "", words->word[i]);
        if (n >= MX_FRAME_TEXT)
            return mx_fail(why, -EINVAL, "the values of --frame have more than %d bytes together: give fewer",
                           MX_FRAME_TEXT - 1);
    }
    return 0;
}

void mx_frame_words(char text[MX_FRAME_TEXT], struct mx_words *words) {
    char *rest;
    words->n = 0;
    for (char *w = strtok_r(text, " ", &rest); w != NULL && words->n < MX_WORDS_MOST;
         w = strtok_r(NULL, " ", &rest))
        words->word[words->n++] = w;
}

int mx_frame_check_sides(const struct mx_frame *frame, const struct mx_sides *sides,
                         const struct mx_problem *problem, int array, int32_t field, mx_why *why) {
    if (frame->kind != MX_FRAME_MIRROR && frame->kind != MX_FRAME_PERIODIC) return 0;
    const bool mirror = frame->kind == MX_FRAME_MIRROR;
    for (int d = 0; d < 3; d++)
        for (int end = 0; end < 2; end++) {
            const uint8_t side = mx_ends_of(sides, array, field, d).side[end];
            if (mx_side_is_copy(side) && side != (mirror ? MX_SIDE_MIRROR : MX_SIDE_PERIODIC))
                return mx_fail(why, -EINVAL,
                               "--frame %s contradicts the side %c=%s, which decides the frame there: for "
                               "the fixed sides give --frame edge or a number",
                               mirror ? "mirror" : "periodic", mx_axis_name(problem, d), mx_side_name(side));
        }
    return 0;
}

int mx_frame_fill(const struct mx_frame *frame, const struct mx_problem *p, enum mx_dtype dtype,
                  int64_t pitch, int64_t z, char *plane, mx_frame_ask *ask, void *context) {
    const int64_t h = p->h, hy = mx_halo_y(p), rows = p->ny + 2 * hy, e = mx_dtype_bytes(dtype);
    const int64_t from = mx_frame_source(frame, p->nz, p->h, z);
    const int err = from < 0 ? 0 : ask(context, from, plane + hy * pitch + h * e);
    if (err != 0) return err;
    for (int64_t y = hy; y < p->ny + hy && from >= 0; y++)
        mx_frame_row(frame, p->nx, p->h, dtype, plane + y * pitch + h * e, plane + y * pitch);
    for (int64_t y = 0; y < rows; y++) {
        const int64_t copied = from < 0 ? -1 : mx_frame_source(frame, p->ny, mx_halo_y(p), y);
        if (copied < 0)
            mx_frame_row(frame, p->nx, p->h, dtype, NULL, plane + y * pitch);
        else if (copied + hy != y)
            memcpy(plane + y * pitch, plane + (copied + hy) * pitch, (size_t)((p->nx + 2 * h) * e));
    }
    return 0;
}
