/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/take.h"

#include "ask/size.h"
#include "ask/values.h"
#include "ask/words.h"
#include "link/link.h"
#include "machine/size.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field_of(const struct mx_option *row, struct mx_options *o) { return (char *)o + row->offset; }

int mx_ask_flag(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)value, (void)why;
    return *(bool *)field_of(row, o) = true, 0;
}

int mx_ask_help(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row, (void)why;
    return o->topic = value, 1;
}

/* What the command itself has read already. */
int mx_ask_nothing(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row, (void)value, (void)o, (void)why;
    return 0;
}

int mx_ask_text(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)why;
    return *(const char **)field_of(row, o) = value, 0;
}

/* ---- options that may be given several times */

static int take_word(const struct mx_option *row, const char *value, struct mx_words *words, mx_why *why) {
    if (words->n == MX_WORDS_MOST)
        return mx_fail(why, -EINVAL, "--%s is given more than %d times, which is the limit", row->name,
                       MX_WORDS_MOST);
    return words->word[words->n++] = value, 0;
}

int mx_ask_words(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return take_word(row, value, field_of(row, o), why);
}

/* The plain form of the field of a built-in stencil, and the words for the fields of a kernel. */
int mx_ask_input(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return o->input = mx_built_in_word(value), take_word(row, value, &o->inputs, why);
}

static bool is_init(const char *name) {
    return mx_is_value(mx_value_init, name, strlen(name)) || strcmp(name, "program") == 0;
}
int mx_ask_init(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *rest = mx_field_word(value, NULL), *name = rest != NULL ? rest : value;
    if (!is_init(name)) return mx_no_value(row, name, strlen(name), "", why);
    return o->init = mx_built_in_word(value), take_word(row, value, &o->inits, why);
}

/* ---- KIND of [FIELD=]KIND and AXIS=KIND[,KIND]; what else is wrong is said where a value is used */

int mx_ask_frame(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *rest = mx_field_word(value, NULL), *kind = rest != NULL ? rest : value;
    const bool letters = kind[0] != 0 && kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz-")] == 0;
    char *end;
    if (letters && !mx_is_value(mx_value_frame, kind, strlen(kind)) && (strtod(kind, &end), end == kind))
        return mx_no_value(row, kind, strlen(kind), " or a number", why);
    return take_word(row, value, &o->frames, why);
}

int mx_ask_side(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *kind = strchr(value, '=');
    for (kind = kind != NULL ? kind + 1 : ""; *kind != 0;) {
        const size_t n = strcspn(kind, ",");
        if (!mx_is_value(mx_value_side, kind, n)) return mx_no_value(row, kind, n, "", why);
        kind += n + (kind[n] == ',');
    }
    return take_word(row, value, &o->sides, why);
}

/* ---- names of tables */

int mx_ask_backend(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *name = strncmp(value, "fault:", 6) == 0 ? value + 6 : value;
    if (mx_backend_find(name) == NULL) /* it finds more than those that are listed */
        return mx_no_value(row, name, strlen(name), "", why);
    return o->backend = value, 0;
}

int mx_ask_algorithm(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    if (mx_algorithm_find(value) == NULL)
        return mx_no_value(row, value, strlen(value), ", or an alias such as aio3y (man memext)", why);
    return o->algorithm = value, 0;
}

int mx_ask_accel(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const size_t n = strcspn(value, ",");
    if (!mx_is_value(mx_value_accel, value, n)) return mx_no_value(row, value, n, "", why);
    return o->accel = value, 0;
}
int mx_ask_output(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return o->output = mx_built_in_word(value), take_word(row, value, &o->outputs, why);
}

int mx_ask_real(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    double *field = field_of(row, o);
    char *end;
    *field = strtod(value, &end);
    if (end != value && *end == 0 && *field > 0 && isfinite(*field)) return 0;
    return mx_fail(why, -EINVAL, "--%s '%s': give a number above 0 (unit: %s), such as %s", row->name, value,
                   row->unit, strcmp(row->unit, "seconds") == 0 ? "2" : "2e9");
}

static int parse_count(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != 0 || errno != 0) return -EINVAL;
    *out = value;
    return 0;
}

/* A limit as people read it. */
static const char *limit_text(uint64_t n, char text[24]) {
    if (n > 1 << 20 && (n & (n - 1)) == 0)
        snprintf(text, 24, "2^%d", __builtin_ctzll(n));
    else
        snprintf(text, 24, "%llu", (unsigned long long)n);
    return text;
}

/* One whole number within the row's limits. */
int mx_ask_count(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    int64_t count;
    char least[24], most[24];
    if (parse_count(value, &count) < 0 || count < (int64_t)row->low || count > (int64_t)row->high)
        return mx_fail(why, -EINVAL, "--%s '%s' is not an integer from %s to %s", row->name, value,
                       limit_text(row->low, least), limit_text(row->high, most));
    return *(int64_t *)field_of(row, o) = count, 0;
}

/* Reads as many integers as the row has words, into consecutive fields. */
enum { MOST_WORDS = 4, LONGEST_NUMBER = 64 };

static int read_counts(const struct mx_option *row, const char *value, int64_t counts[MOST_WORDS], int *count,
                       mx_why *why) {
    char name[32], word[LONGEST_NUMBER];
    const char letter[] = {(char)row->letter, 0};
    snprintf(name, sizeof name, row->letter != 0 ? "--%s (-%s)" : "--%s", row->name, letter);
    const int fewest = row->fewest > 0 ? row->fewest : row->words;
    char needed[48], limit[24];
    bool option = false; /* that follows where a number is missing */
    int n = 0;
    if (fewest < row->words)
        snprintf(needed, sizeof needed, "%d or %d numbers", fewest, row->words);
    else
        snprintf(needed, sizeof needed, "%d number%s", row->words, row->words == 1 ? "" : "s");
    for (const char *p = value + strspn(value, " "); *p != 0 && !option; p += strspn(p, " ")) {
        const size_t length = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), p);
        if (n == row->words)
            return mx_fail(why, -EINVAL, "%s '%.100s' has too many words: give %s, each as a word of its own",
                           name, value, needed);
        option = word[0] == '-' && word[1] != 0 && strchr("0123456789", word[1]) == NULL;
        if (option) break;
        if (length >= sizeof word || parse_count(word, &counts[n]) < 0)
            return mx_fail(why, -EINVAL, "%s: '%s' is not an integer: give %s%s", name, word,
                           row->words == 1 ? "one integer" : needed,
                           row->words == 1 ? "" : ", integers with blanks between them");
        if (counts[n] < (int64_t)row->low)
            return mx_fail(why, -EINVAL, "%s: %lld is below the smallest value allowed, %lld", name,
                           (long long)counts[n], (long long)row->low);
        if (row->high > 0 && counts[n] > (int64_t)row->high)
            return mx_fail(why, -EINVAL, "%s: %lld is above the largest value allowed, %s", name,
                           (long long)counts[n], limit_text(row->high, limit));
        p += length, n++;
    }
    if (n < fewest) return mx_fail(why, -EINVAL, "%s needs %s, %d given", name, needed, n);
    return *count = n, 0;
}

int mx_ask_counts(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    int64_t counts[MOST_WORDS];
    int n = 0;
    const int err = read_counts(row, value, counts, &n, why);
    if (err == 0) memcpy(field_of(row, o), counts, (size_t)n * sizeof *counts);
    return err;
}

/* Two numbers are a grid of two dimensions. */
int mx_ask_extents(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    struct mx_problem *p = &o->problem;
    int64_t n[MOST_WORDS];
    int count = 0;
    const int err = read_counts(row, value, n, &count, why);
    if (err < 0) return err;
    p->flat = count == 2;
    p->nx = n[0], p->ny = p->flat ? 1 : n[1], p->nz = p->flat ? n[1] : n[2];
    return 0;
}

int mx_ask_size(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    uint64_t size;
    if (mx_parse_size(value, &size) < 0)
        return mx_fail(why, -EINVAL,
                       "--%s '%s' is not a size; give bytes or a number with KiB, MiB, GiB or TiB", row->name,
                       value);
    if (row->high == UINT64_MAX && size < row->low)
        return mx_fail(why, -EINVAL, "--%s %s is too small: give at least %s", row->name, value,
                       mx_size(row->low).text);
    if (size < row->low || size > row->high)
        return mx_fail(why, -EINVAL, "--%s %s is not possible: give %s to %s", row->name, value,
                       mx_size(row->low).text, mx_size(row->high).text);
    return *(uint64_t *)field_of(row, o) = size, 0;
}

/* A number and its unit, which is one of a table; -1 = it is none. */
struct unit {
    const char *name;
    double value;
};

static double with_unit(const char *text, size_t length, const struct unit *units, size_t n) {
    char *end;
    const double value = strtod(text, &end);
    const size_t left = (size_t)(text + length - end);
    if (end == text || end > text + length || !(value >= 0) || !isfinite(value)) return -1;
    for (size_t i = 0; i < n; i++)
        if (strlen(units[i].name) == left && strncmp(end, units[i].name, left) == 0)
            return value * units[i].value;
    return -1;
}

static double link_rate(const char *text, size_t length) {
    static const struct unit units[] = {{"bit", 0.125},  {"Kbit", 125},      {"Mbit", 125e3},
                                        {"Gbit", 125e6}, {"Tbit", 125e9},    {"B", 1},
                                        {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},
                                        {"KiB", 1024},   {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    return with_unit(text, length, units, sizeof units / sizeof units[0]);
}

static double link_latency(const char *text, size_t length) {
    static const struct unit units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    return with_unit(text, length, units, sizeof units / sizeof units[0]);
}

/* [NAME,]RATE[,LATENCY], or NAME. */
int mx_ask_link(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *word = value;
    size_t length = strcspn(word, ",");
    (void)row;
    o->link_latency_s = -1;
    for (const struct mx_link_ops *const *l = mx_links; *l != NULL; l++)
        if (strlen((*l)->name) == length && strncmp((*l)->name, word, length) == 0) o->link = (*l)->name;
    if (o->link != NULL && word[length] == 0) return 0;
    if (o->link != NULL) word += length + 1, length = strcspn(word, ",");
    o->link_bytes_per_s = link_rate(word, length);
    if (word[length] == ',') o->link_latency_s = link_latency(word + length + 1, strlen(word + length + 1));
    if (o->link_bytes_per_s > 0 && (word[length] == 0 || o->link_latency_s >= 0)) return 0;
    return mx_fail(why, -EINVAL,
                   "--link '%.60s' is not a link: give local, mpi, or [NAME,]RATE[,LATENCY] like 10Gbit,20us "
                   "or mpi,100Mbit",
                   value);
}

int mx_ask_coef(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *p = value;
    (void)row;
    for (int n = 0; n < 4; n++) {
        char *end;
        o->problem.coef[n] = strtod(p, &end);
        if (end == p || !isfinite(o->problem.coef[n]) || (*end != 0 && *end != ',')) break;
        p = end + (*end == ',');
        if (*end == 0) {
            for (n++; n < 4; n++) o->problem.coef[n] = 0;
            return 0;
        }
    }
    return mx_fail(why, -EINVAL,
                   "--coef '%s': give 1 to 4 numbers separated by commas: centre,face,edge,corner", value);
}

int mx_ask_commit_every(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const double most = 30.0 * 24 * 3600;
    char *end;
    (void)row;
    o->commit_every = strtod(value, &end);
    if (end != value && *end == 0 && o->commit_every >= 0 && o->commit_every <= most) return 0;
    return mx_fail(why, -EINVAL, "--commit-every '%s' is not a number of seconds from 0 to %.0f", value,
                   most);
}

int mx_ask_stencil(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const struct mx_stencil *s = mx_stencil_find(value);
    if (s == NULL && (strchr(value, '/') != NULL || strchr(value, '.') != NULL))
        return mx_fail(why, -EINVAL,
                       "--stencil '%.300s' is not a built-in stencil; if it is a file with a kernel, give it "
                       "with --kernel",
                       value);
    if (s == NULL) return mx_no_value(row, value, strlen(value), "", why);
    snprintf(o->problem.stencil, sizeof o->problem.stencil, "%s", s->name);
    return 0;
}

int mx_ask_dtype(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    enum mx_dtype dtype;
    if (!mx_dtype_find(value, &dtype)) return mx_no_value(row, value, strlen(value), "", why);
    if (mx_dtype_is_real(dtype)) return o->problem.dtype = dtype, 0;
    return mx_fail(why, -EINVAL,
                   "--%s %s: built-in stencils compute f64 or f32. For other types, integers too, write a "
                   "kernel, which declares them (--kernel), and leave --dtype out",
                   row->name, value);
}

int mx_ask_reserve(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    if (strcmp(value, "paper") == 0) return o->reserve_paper = true, 0;
    if (strcmp(value, "auto") == 0) return o->reserve_auto = true, 0;
    if (mx_parse_size(value, &o->reserve_bytes) == 0) return 0;
    return mx_no_value(row, value, strlen(value), " or a size like 512MiB", why);
}

/* EVERY:DIR[:STRIDE]. What stands behind a second colon is STRIDE, and nothing else: else a word too many
 * would become the name of a directory. */
int mx_ask_snapshot(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const int64_t most = INT64_C(1) << 40;
    char number[LONGEST_NUMBER], limit[24];
    if (o->snapshot_directory != NULL)
        return mx_fail(why, -EINVAL,
                       "--%s is given twice, as '%.200s' and as '%.200s': leave one of them out", row->name,
                       o->snapshot_directory, value);
    const char *colon = strchr(value, ':'), *last = strrchr(value, ':');
    snprintf(number, sizeof number, "%.*s", colon != NULL ? (int)(colon - value) : 0, value);
    if (colon == NULL || parse_count(number, &o->snapshot_every) < 0 || o->snapshot_every < 1 ||
        o->snapshot_every > most)
        return mx_fail(
            why, -EINVAL,
            "--%s '%.200s' does not begin with a number of steps, from 1 to %s, and a colon: give %s",
            row->name, value, limit_text((uint64_t)most, limit), row->argument);
    o->snapshot_stride = 1;
    if (last != colon && (parse_count(last + 1, &o->snapshot_stride) < 0 || o->snapshot_stride < 1 ||
                          o->snapshot_stride > most))
        return mx_fail(why, -EINVAL,
                       "--%s '%.200s': STRIDE after the last colon is not a number from 1 to %s; if the "
                       "directory has a colon in its name, give EVERY:DIR:1",
                       row->name, value, limit_text((uint64_t)most, limit));
    o->snapshot_directory = colon + 1;
    o->snapshot_length = last != colon ? (size_t)(last - colon - 1) : strlen(colon + 1);
    if (o->snapshot_length > 0) return 0;
    return mx_fail(why, -EINVAL, "--%s '%.200s' names no directory: give %s", row->name, value,
                   row->argument);
}

int mx_ask_output_frame(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row, (void)why;
    return o->bare_output = strcmp(value, "none") == 0, 0;
}

int mx_ask_nonfinite(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row, (void)why;
    return o->nonfinite = value, 0;
}

/* The values are in the order of the enumeration. */
int mx_ask_advice(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row, (void)why;
    for (int i = 0; mx_value_advice(i) != NULL; i++)
        if (strcmp(value, mx_value_advice(i)) == 0) o->advice = (enum mx_advice)i;
    return 0;
}
