/* SPDX-License-Identifier: BSD-3-Clause */
/* point_lists.c - sources and probes as text: a word of an option, or the lines of a file. */
#include "system/points_private.h"

#include "machine/file.h"

#include <ctype.h>
#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 8192 };

/* ---- words and lines */

/* A number that ends where *text stands then. */
static bool number(const char **text, int64_t *out) {
    char *end;
    errno = 0;
    const long long v = strtoll(*text, &end, 10);
    if (end == *text || errno != 0 || isspace((unsigned char)**text)) return false;
    *text = end;
    *out = v;
    return true;
}

/* A name up to one of `ends`; what was there instead of a name: false. */
static bool name_up_to(const char **text, const char *ends, char name[MX_FIELD_NAME]) {
    const size_t n = strcspn(*text, ends);
    if (n == 0 || n >= MX_FIELD_NAME || (*text)[n] == 0) return false;
    memcpy(name, *text, n);
    name[n] = 0;
    *text += n;
    return true;
}

typedef int line_fn(void *list, const struct mx_problem *problem, const char *line, mx_why *why);

static char *trimmed(char *line) {
    line[strcspn(line, "#\r\n")] = 0;
    size_t n = strlen(line);
    while (n > 0 && isspace((unsigned char)line[n - 1])) line[--n] = 0;
    while (isspace((unsigned char)*line)) line++;
    return line;
}

static int read_lines(const char *path, line_fn *each, void *list, const struct mx_problem *p, mx_why *why) {
    char line[LINE_BYTES];
    int err;
    FILE *file = mx_file_stream(path, why, &err);
    if (file == NULL) return err;
    for (int64_t n = 1; err == 0 && fgets(line, sizeof line, file) != NULL; n++) {
        mx_why of_line = {0};
        if (strchr(line, '\n') == NULL && !feof(file)) {
            err = mx_fail(why, -EINVAL, "%s, line %lld is longer than %d bytes; is this a list of points?",
                          path, (long long)n, LINE_BYTES - 2);
            break;
        }
        const char *text = trimmed(line);
        err = *text == 0 ? 0 : each(list, p, text, &of_line);
        if (err < 0) mx_fail(why, err, "%s, line %lld: %s", path, (long long)n, of_line.text);
    }
    if (err == 0 && ferror(file)) err = mx_fail(why, -EIO, "%s could not be read: %s", path, strerror(EIO));
    fclose(file);
    return err;
}

/* ---- sources */

int mx_sources_add(struct mx_sources *s, const struct mx_problem *p, const char *text, mx_why *why) {
    const char *at = text;
    char name[MX_FIELD_NAME], what[200];
    int64_t xyz[3], wavelet = 0;
    bool good = name_up_to(&at, "@", name);
    xyz[2] = 0;
    for (int d = 0; d < (p->flat ? 2 : 3) && good; d++) {
        good = *at == (d == 0 ? '@' : ',');
        at += good;
        good = good && number(&at, &xyz[d]);
    }
    if (!good || *at != '=' || at[1] == 0)
        return mx_fail(
            why, -EINVAL,
            "source '%s' is not of the form FIELD@X,Y%s=wavelet.npy, for example u@64,64%s=ricker.npy", text,
            p->flat ? "" : ",Z", p->flat ? "" : ",0");
    snprintf(what, sizeof what, "source %.*s", (int)(at - text), text);
    int err = mx_points_grow((void **)&s->of, s->points.n, &s->of_capacity, sizeof *s->of, why);
    if (err == 0) err = mx_sources_wavelet(s, at + 1, &wavelet, why);
    if (err == 0) err = mx_points_add(&s->points, p, what, name, xyz, why);
    if (err == 0) s->of[s->points.n - 1] = wavelet;
    return err;
}

static int add_source(void *list, const struct mx_problem *p, const char *line, mx_why *why) {
    return mx_sources_add(list, p, line, why);
}

int mx_sources_read(struct mx_sources *sources, const struct mx_problem *p, const char *path, mx_why *why) {
    return read_lines(path, add_source, sources, p, why);
}

/* ---- probes */

static int add_probe(void *list, const struct mx_problem *p, const char *line, mx_why *why) {
    const char *at = line;
    char name[MX_FIELD_NAME], what[200];
    int64_t xyz[3];
    bool good = name_up_to(&at, " \t,", name);
    xyz[2] = 0;
    for (int d = 0; d < (p->flat ? 2 : 3) && good; d++) {
        const size_t gap = strspn(at, " \t,");
        at += gap;
        good = gap > 0 && number(&at, &xyz[d]);
    }
    if (!good || *at != 0)
        return mx_fail(why, -EINVAL, "probe '%s' is not of the form FIELD X Y%s, for example u 64 64%s", line,
                       p->flat ? "" : " Z", p->flat ? "" : " 0");
    snprintf(what, sizeof what, "probe %s", line);
    return mx_points_add(list, p, what, name, xyz, why);
}

int mx_probes_read(struct mx_points *probes, const struct mx_problem *p, const char *path, mx_why *why) {
    return read_lines(path, add_probe, probes, p, why);
}
