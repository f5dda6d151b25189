/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune/tune.h"

#include "machine/file.h"

#include <memext/backend.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words of a plan line, in order. One row a field: text (name = what the field holds) or a number. */
struct field {
    const char *key;
    enum { WORD, NUMBER64, NUMBER32, FLAG } kind; /* FLAG: the key alone */
    size_t offset, size;
    int64_t most; /* of a number */
};
#define MEMBER(name) offsetof(struct mx_plan, name), sizeof((struct mx_plan *)0)->name

static const struct field fields[] = {
    {"engine", WORD, MEMBER(engine), 0},
    {"by", NUMBER64, MEMBER(by), MX_MOST_EXTENT},
    {"bz", NUMBER64, MEMBER(bz), MX_MOST_EXTENT},
    {"bt", NUMBER64, MEMBER(bt), MX_MOST_EXTENT},
    {"iy", NUMBER64, MEMBER(iy), MX_MOST_EXTENT},
    {"iz", NUMBER64, MEMBER(iz), MX_MOST_EXTENT},
    {"slab", NUMBER64, MEMBER(slab), MX_MOST_SLAB},
    {"tile", NUMBER64, MEMBER(tile), MX_MOST_EXTENT},
    {"ct", NUMBER64, MEMBER(ct), MX_MOST_EXTENT},
    {"column", NUMBER64, MEMBER(column), MX_MOST_COLUMN},
    {"ahead", NUMBER64, MEMBER(ahead), MX_MOST_AHEAD},
    {"faces", WORD, MEMBER(seams), 0},
    {"threads", NUMBER32, MEMBER(threads), MX_MOST_THREADS},
    {"tuner", WORD, MEMBER(tuner), 0},
    {"in-place", FLAG, MEMBER(in_place), 0},
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static int64_t get_number(const struct mx_plan *plan, const struct field *field) {
    const char *at = (const char *)plan + field->offset;
    return field->kind == NUMBER64 ? *(const int64_t *)at : *(const int32_t *)at;
}

const char *mx_plan_print(const struct mx_plan *plan, char *line, size_t capacity) {
    size_t n = (size_t)snprintf(line, capacity, "%s", plan->algorithm);
    for (int i = 0; i < N_FIELDS && n < capacity; i++) {
        const struct field *f = &fields[i];
        const char *word = (const char *)plan + f->offset;
        if (f->kind == WORD && word[0] != 0)
            n += (size_t)snprintf(line + n, capacity - n, " %s=%s", f->key, word);
        if (f->kind == FLAG && *(const bool *)word)
            n += (size_t)snprintf(line + n, capacity - n, " %s", f->key);
        if (f->kind != WORD && f->kind != FLAG && get_number(plan, f) != 0)
            n += (size_t)snprintf(line + n, capacity - n, " %s=%lld", f->key, (long long)get_number(plan, f));
    }
    return line;
}

/* ------------------------------------------------------------------ reading */

static const struct field *find_field(const char *key, size_t length) {
    for (int i = 0; i < N_FIELDS; i++)
        if (strlen(fields[i].key) == length && memcmp(fields[i].key, key, length) == 0) return &fields[i];
    return NULL;
}

static int refuse_number(const char *word, const struct field *f, mx_why *why) {
    char most[24] = "2^40";
    if (f->most != MX_MOST_EXTENT) snprintf(most, sizeof most, "%lld", (long long)f->most);
    return mx_fail(why, -EINVAL, "--plan: '%s': %s must be an integer from 1 to %s", word, f->key, most);
}

static int set_number(struct mx_plan *plan, const struct field *f, const char *word, const char *value,
                      mx_why *why) {
    char *end;
    int saved = errno;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    const long long limit = f->kind == NUMBER64 ? INT64_MAX : INT32_MAX; /* the rest: mx_plan_check */
    int err = errno;
    errno = saved;
    if (end == value || *end != 0 || err != 0 || number < 1 || number > limit)
        return refuse_number(word, f, why);
    if (f->kind == NUMBER64) *(int64_t *)((char *)plan + f->offset) = number;
    if (f->kind == NUMBER32) *(int32_t *)((char *)plan + f->offset) = (int32_t)number;
    return 0;
}

int mx_plan_check(const struct mx_plan *plan, mx_why *why) {
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *f = &fields[i];
        char word[64];
        const int64_t number = f->most > 0 ? get_number(plan, f) : 0;
        if (number >= 0 && number <= f->most) continue;
        snprintf(word, sizeof word, "%s=%lld", f->key, (long long)number);
        return refuse_number(word, f, why);
    }
    return 0;
}

static int set_word(struct mx_plan *plan, const struct field *f, const char *word, const char *value,
                    mx_why *why) {
    if (value[0] == 0 || strlen(value) >= f->size)
        return mx_fail(why, -EINVAL, "--plan: '%s': %s must be a word of 1 to %zu letters", word, f->key,
                       f->size - 1);
    strcpy((char *)plan + f->offset, value);
    return 0;
}

static int set_field(struct mx_plan *plan, const char *word, uint32_t *seen, mx_why *why) {
    const char *equals = strchr(word, '=');
    const struct field *f = find_field(word, equals == NULL ? strlen(word) : (size_t)(equals - word));
    if (f == NULL || (f->kind == FLAG) != (equals == NULL))
        return mx_fail(why, -EINVAL,
                       "--plan: '%s' is not known; choose from engine= by= bz= bt= iy= iz= slab= tile= ct= "
                       "column= ahead= faces= threads= tuner= in-place",
                       word);
    uint32_t bit = UINT32_C(1) << (f - fields);
    if (*seen & bit)
        return mx_fail(why, -EINVAL, "--plan: '%s': %s is given twice; leave one of them out", word, f->key);
    *seen |= bit;
    if (f->kind == FLAG) return *(bool *)((char *)plan + f->offset) = true, 0;
    if (f->kind == WORD) return set_word(plan, f, word, equals + 1, why);
    return set_number(plan, f, word, equals + 1, why);
}

static int set_algorithm(struct mx_plan *plan, const char *word, mx_why *why) {
    const struct mx_algorithm *a = mx_algorithm_find(word);
    if (a == NULL)
        return mx_fail(
            why, -EINVAL,
            "--plan: '%s' is not an algorithm; a plan line begins with an algorithm, such as stream", word);
    snprintf(plan->algorithm, sizeof plan->algorithm, "%s", a->name);
    return 0;
}

int mx_plan_parse(const char *line, mx_why *why, struct mx_plan *out) {
    static const char blanks[] = " \t\r\n";
    struct mx_plan plan = {0};
    uint32_t seen = 0;
    int err = 0;
    char *save = NULL, *copy = strdup(line);
    if (copy == NULL) return mx_fail(why, -ENOMEM, "no memory for a plan line");
    char *word = strtok_r(copy, blanks, &save);
    if (word == NULL) err = mx_fail(why, -EINVAL, "--plan: the line is empty");
    if (err == 0) err = set_algorithm(&plan, word, why);
    while (err == 0 && (word = strtok_r(NULL, blanks, &save)) != NULL)
        err = set_field(&plan, word, &seen, why);
    if (err == 0 && plan.engine[0] != 0 && mx_engine_find(plan.engine) == NULL)
        err = mx_fail(why, -EINVAL, "--plan: 'engine=%s' is not an engine; choose iblock, tiled or device",
                      plan.engine);
    bool known = plan.seams[0] == 0 || strcmp(plan.seams, MX_SEAMS_IN_DRAM) == 0 ||
                 strcmp(plan.seams, MX_SEAMS_IN_FILE) == 0;
    if (err == 0 && !known)
        err = mx_fail(why, -EINVAL,
                      "--plan: 'faces=%s' is not possible; faces are kept in " MX_SEAMS_IN_DRAM
                      " or " MX_SEAMS_IN_FILE,
                      plan.seams);
    if (err == 0) *out = plan;
    free(copy);
    return err;
}

static int read_first_line(FILE *file, const char *path, mx_why *why, struct mx_plan *out) {
    char *line = NULL;
    size_t capacity = 0;
    int err = mx_fail(why, -EINVAL, "the plan file %s has no plan line", path);
    while (getline(&line, &capacity, file) >= 0) {
        const char *text = line + strspn(line, " \t\r\n");
        if (text[0] == 0 || text[0] == '#') continue;
        err = mx_plan_parse(text, why, out);
        break;
    }
    free(line);
    return err;
}

int mx_plan_read(const char *text, mx_why *why, struct mx_plan *out) {
    const int saved = errno;
    const bool named =
        strchr(text, '=') == NULL && mx_algorithm_find(text) == NULL && access(text, F_OK) == 0;
    int err = 0;
    FILE *file = named ? mx_file_stream(text, why, &err) : NULL;
    errno = saved;
    if (!named && text[strcspn(text, " \t=")] == 0 && text[0] != 0 && mx_algorithm_find(text) == NULL)
        return mx_fail(
            why, -EINVAL,
            "--plan '%.300s' is neither a file nor an algorithm: give a file with a plan line, or a "
            "plan line, which begins with an algorithm, such as stream",
            text);
    if (!named) return mx_plan_parse(text, why, out);
    if (file == NULL) return err;
    err = read_first_line(file, text, why, out);
    fclose(file);
    if (err < 0 && why != NULL) {
        const mx_why reason = *why;
        mx_fail(why, err, "%.200s: %.700s", text, reason.text);
    }
    return err;
}

struct mx_engine_options mx_plan_engine(const struct mx_plan *plan, const struct mx_problem *problem,
                                        const struct mx_machine *machine, int64_t row_pitch_bytes) {
    return (struct mx_engine_options){.problem = problem,
                                      .machine = machine,
                                      .row_pitch_bytes = row_pitch_bytes,
                                      .threads = plan->threads,
                                      .iy = plan->iy,
                                      .iz = plan->iz,
                                      .slab = plan->slab,
                                      .tile = plan->tile,
                                      .ct = plan->ct,
                                      .column = plan->column};
}
