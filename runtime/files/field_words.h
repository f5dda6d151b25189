/* SPDX-License-Identifier: BSD-3-Clause */
/* field_words.h - what options say of the fields of a system (fields.h): --input, --init, --field, --output.
 */
#ifndef MX_FILES_FIELD_WORDS_H
#define MX_FILES_FIELD_WORDS_H

#include "ask/options.h"
#include "files/fields.h"

/* Takes --input, --init and --field. Every field has initial values then, or -EINVAL says which has not. */
/* program: a source gives what these do not. */
int mx_fields_take(struct mx_run_fields *fields, const struct mx_options *options, bool program,
                   const struct mx_system *system, mx_why *why);
/* As mx_fields_take, but of what is given alone: fields may be left without values. */
int mx_fields_take_some(struct mx_run_fields *fields, const struct mx_options *options, bool program,
                        const struct mx_system *system, mx_why *why);
/* Takes the files of --edit-input. -EINVAL: no field of the state, or one twice. */
int mx_fields_take_edits(struct mx_run_fields *fields, const struct mx_words *words, mx_why *why);
/* Names the file of a field, and what follows its name where it has raw cells ("": it has not). */
int mx_field_take_path(struct mx_run_field *field, const char *path, const char *raw, mx_why *why);
/* Takes --output: the file of each field, NULL = none. */
int mx_fields_take_outputs(struct mx_run_fields *fields, const struct mx_options *options, mx_why *why,
                           const char *path[MX_FIELDS_MOST]);
/* And --field, which says where such files are now. -EINVAL. */
int mx_fields_take_moved(struct mx_run_fields *fields, const struct mx_options *options, mx_why *why);

#endif
