/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - checks the names of a run's files: no two may be the same file. */
#include "run/open/open.h"

#include "note/sets.h"
#include "note/store.h"
#include "system/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_NAMES = 15 + MX_MAX_SERIES + 6 * MX_WORDS_MOST + 3 * MX_FIELDS_MOST };

struct names {
    size_t n, n_text;
    char text[4 * MX_WORDS_MOST][PATH_MAX];
    struct mx_file_word word[]; /* MOST_NAMES, and those of parts */
};

static void add_name(struct names *s, const char *option, const char *path, enum mx_file_use use) {
    s->word[s->n++] = (struct mx_file_word){option, path, use};
}

/* Files of fields: what stands behind "NAME=", without what is said of raw ones. */
static void add_words(struct names *s, const char *option, const struct mx_words *words, bool raw,
                      enum mx_file_use use) {
    for (int32_t i = 0; i < words->n; i++) {
        const char *rest = mx_field_word(words->word[i], NULL), *path = rest != NULL ? rest : words->word[i];
        char *text = s->text[s->n_text++], behind[MX_RAW_TEXT];
        if (raw)
            mx_raw_split(path, text, behind);
        else
            snprintf(text, PATH_MAX, "%s", path);
        add_name(s, option, text, use);
    }
}

/* Files that stand behind a "=", where a number may stand too. They are known before they are read. */
static void add_behind(struct names *s, const char *option, const struct mx_words *words) {
    double ignored;
    for (int32_t i = 0; i < words->n; i++) {
        const char *path = strchr(words->word[i], '=');
        if (path != NULL && path[1] != 0 && !mx_read_number(path + 1, &ignored))
            add_name(s, option, path + 1, MX_FILE_READ);
    }
}

static uint64_t digest(const struct names *s) {
    uint64_t all = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct mx_file_word *w = &s->word[i];
        const uint64_t of[] = {all, (uint64_t)w->use, XXH3_64bits(w->option, strlen(w->option)),
                               w->path != NULL ? XXH3_64bits(w->path, strlen(w->path)) : 0};
        all = XXH3_64bits(of, sizeof of);
    }
    return all;
}

/* What is read comes first: whatever is written is compared with what was named before it. */
int mx_run_check_names(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    const bool system = o->kernel != NULL || r->note.problem.system != NULL;
    const char *option;
    size_t most = MOST_NAMES, n_parts = 0;
    for (int64_t i = 0; mx_parts_name(r, i, &option) != NULL; i++) most++;
    struct names *s = malloc(sizeof *s + most * sizeof s->word[0]);
    if (s == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the names of files");
    s->n = s->n_text = 0;
    add_name(s, "--input", o->input, MX_FILE_READ);
    add_name(s, "the job", o->job, MX_FILE_READ);
    add_name(s, "--plan", o->plan, MX_FILE_READ);
    add_name(s, "--kernel", o->kernel, MX_FILE_READ);
    add_name(s, "--topology", o->topology, MX_FILE_READ);
    if (system) add_words(s, "--input", &o->inputs, true, MX_FILE_READ);
    if (system) add_words(s, "--field", &o->fields, true, MX_FILE_READ);
    add_words(s, "--edit-input", &o->edit_inputs, true, MX_FILE_READ);
    add_behind(s, "--source", &o->point_sources);
    add_behind(s, "--param", &o->params);
    for (int32_t i = 0; i < r->fields.n; i++) /* once they are known: those of a stored run too */
        add_name(s, r->fields.field[i].array == MX_FIELD_OF_C ? "--field" : "--input",
                 r->fields.field[i].path, MX_FILE_READ);
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->fields.field[i].data[0] != 0)
            add_name(s, "the data of a field", r->fields.field[i].data, MX_FILE_READ);
    if (r->input.data[0] != 0) add_name(s, "the data of --input", r->input.data, MX_FILE_READ);
    for (int32_t i = 0; r->system != NULL && i < r->system->n_series; i++)
        add_name(s, "--param", r->system->series[i].path, MX_FILE_READ);
    add_name(s, "--sources", o->sources, MX_FILE_READ);
    add_name(s, "--probes", o->probes, MX_FILE_READ);
    for (const char *path; (path = mx_parts_name(r, (int64_t)n_parts, &option)) != NULL; n_parts++)
        add_name(s, option, path, MX_FILE_READ);
    add_name(s, "-d", o->path, MX_FILE_PLACE);
    add_name(s, "--output", o->output, MX_FILE_NPY);
    if (system && !r->sinks_known) add_words(s, "--output", &o->outputs, false, MX_FILE_NPY);
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->field_sink[i].path != NULL) add_name(s, "--output", r->field_sink[i].path, MX_FILE_NPY);
    add_name(s, "--json", o->json, MX_FILE_WRITTEN);
    add_name(s, "--timeline", o->timeline, MX_FILE_WRITTEN);
    add_name(s, "--trace", o->trace, MX_FILE_WRITTEN);
    add_name(s, "--probes-out", o->probes_out, MX_FILE_NPY);
    const uint64_t names = digest(s);
    /* No file is looked at twice. The directory of snapshots may have become known without a new name. */
    int err = names == r->checked_names ? 0 : mx_output_check_names(s->word, s->n, &r->why);
    for (size_t i = 0; i < s->n && err == 0; i++)
        err = mx_run_check_snapshot_name(r, s->word[i].option, s->word[i].path,
                                         s->word[i].use == MX_FILE_PLACE, &r->why);
    r->same_names |= err < 0;
    if (err == 0) r->checked_names = names;
    free(s);
    return err;
}

/* --json is no file that the run in this store reads. A place without a note has none. */
static int check_stored(struct mx_run *r, const char *path, struct mx_stored *stored) {
    struct mx_file_word words[MX_NOTE_FILES + 1];
    mx_why none;
    if (mx_stored_look(path, &none, stored) < 0 || !stored->have_note) return 0;
    size_t n = mx_note_files(&stored->note, words);
    words[n++] = (struct mx_file_word){"--json", r->o.json, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, &r->why);
}

/* Also the stores of ranks. */
int mx_run_check_stored_names(struct mx_run *r) {
    struct mx_sight sight;
    mx_why none;
    if (!r->o.resume || r->o.path == NULL || r->o.json == NULL) return 0;
    struct mx_stored *stored = calloc(1, sizeof *stored);
    if (stored == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the note of the store");
    int err = check_stored(r, r->o.path, stored);
    if (err == 0 && mx_is_base(r->o.path) && mx_see_all(r->o.path, &none, &sight) == 0) {
        for (int32_t i = 0; i < sight.n && err == 0; i++) err = check_stored(r, sight.seen[i].path, stored);
        mx_forget(&sight);
    }
    free(stored);
    return err;
}
