/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/job.h"

#include "ask/words.h"
#include "files/output.h"
#include "files/raw.h"
#include "machine/file.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 };

/* Adds the options of a job file to those of a line. */
static int read_job(const char *path, mx_why *why, struct mx_asked *line) {
    struct mx_asked job = {.n = 0};
    mx_why reason = {""};
    int err = 0;
    FILE *file = mx_file_stream(path, why, &err);
    if (file == NULL) {
        reason = *why;
        return mx_fail(why, err, "'%.300s' belongs to no option, and as a job file it cannot be read: %.300s",
                       path, reason.text);
    }
    char *text = malloc(MOST_BYTES + 1);
    const size_t n = text != NULL ? fread(text, 1, MOST_BYTES + 1, file) : 0;
    if (text == NULL)
        err = mx_fail(why, -ENOMEM, "no memory for the job");
    else if (ferror(file))
        err = mx_fail(why, -EIO, "job %.300s cannot be read", path);
    else if (n > MOST_BYTES)
        err = mx_fail(why, -EINVAL, "job %.300s is longer than 1 MiB: it is not a job file", path);
    else if ((err = mx_job_parse(text, n, &reason, &job)) < 0)
        mx_fail(why, err, "job %.300s: %s", path, reason.text);
    fclose(file);
    free(text);
    return err == 0 ? mx_asked_before(line, &job, why) : err;
}

int mx_job_options(int argc, char **argv, mx_why *why, struct mx_asked *asked, struct mx_options *out) {
    memset(out, 0, sizeof *out);
    int err = mx_options_read(MX_CMD_RUN, argc, argv, 1, why, asked);
    if (err == 0) err = mx_asked_take(asked, out, why); /* a wrong option may be why a word is left over */
    if (err == 0 && asked->n_plain > 0) {
        memset(out, 0, sizeof *out);
        err = read_job(asked->plain[0], why, asked);
        if (err == 0) err = mx_asked_take(asked, out, why);
        out->job = asked->plain[0];
    }
    if (err == 0) err = mx_options_complete(MX_CMD_RUN, out, why);
    if (err == 0) mx_options_say_twice(asked, out);
    return err;
}

/* Is the file that is to be written one that the run would read? */
static int check_read(const struct mx_options *o, const char *option, const char *path, mx_why *why) {
    char file[PATH_MAX], behind[MX_RAW_TEXT];
    if (path == NULL) return 0;
    mx_raw_split(path, file, behind);
    const struct mx_file_word words[] = {{option, file, MX_FILE_READ},
                                         {"--write-job", o->write_job, MX_FILE_WRITTEN}};
    return mx_output_check_names(words, 2, why);
}

static int check_words(const struct mx_options *o, const char *option, const struct mx_words *words,
                       mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) {
        const char *rest = mx_field_word(words->word[i], NULL);
        err = check_read(o, option, rest != NULL ? rest : words->word[i], why);
    }
    return err;
}

/* What stands behind a "=": a file, or a number, which is none. */
static int check_behind(const struct mx_options *o, const char *option, const struct mx_words *words,
                        mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) {
        const char *path = strchr(words->word[i], '=');
        if (path != NULL && path[1] != 0) err = check_read(o, option, path + 1, why);
    }
    return err;
}

static int check_inputs(const struct mx_options *o, mx_why *why) {
    const struct mx_file_word place[] = {{"-d", o->path, MX_FILE_PLACE},
                                         {"--write-job", o->write_job, MX_FILE_WRITTEN}};
    int err = mx_output_check_names(place, 2, why);
    if (err == 0) err = check_read(o, "--kernel", o->kernel, why);
    if (err == 0) err = check_read(o, "--plan", o->plan, why);
    if (err == 0) err = check_read(o, "--sources", o->sources, why);
    if (err == 0) err = check_read(o, "--probes", o->probes, why);
    if (err == 0) err = check_read(o, "--topology", o->topology, why);
    if (err == 0) err = check_read(o, "--input", o->input, why);
    if (err == 0) err = check_words(o, "--edit-input", &o->edit_inputs, why);
    if (err == 0) err = check_behind(o, "--source", &o->point_sources, why);
    if (err == 0) err = check_behind(o, "--param", &o->params, why);
    if (err == 0) err = check_words(o, "--input", &o->inputs, why);
    return err < 0 ? err : check_words(o, "--field", &o->fields, why);
}

int mx_job_write(const struct mx_asked *asked, const struct mx_options *o, mx_why *why) {
    struct mx_output output;
    const bool standard = strcmp(o->write_job, "-") == 0;
    const unsigned flags = o->overwrite ? MX_OUTPUT_REPLACE : 0;
    json_t *job = mx_job_json(asked);
    char *text = json_dumps(job, JSON_INDENT(2));
    json_decref(job);
    int err = text == NULL ? mx_fail(why, -ENOMEM, "no memory for the job") : 0;
    if (err == 0 && !standard) err = check_inputs(o, why);
    if (err == 0 && !standard) err = mx_output_open(o->write_job, "the job", flags, why, &output);
    if (err == 0) err = mx_output_text(standard ? NULL : &output, "the job", text, why);
    free(text);
    return err;
}
