/* SPDX-License-Identifier: BSD-3-Clause */
/* field_words.h - reads the options about fields of a system (fields.h): --input, --init, --field, --output.
 */
#ifndef MX_FILES_FIELD_WORDS_H
#define MX_FILES_FIELD_WORDS_H

#include "ask/options.h"
#include "files/fields.h"

/* Takes --input, --init and --field. Every field then has initial values; otherwise -EINVAL names the field
 * without. program: the source of a program gives what these options do not. */
int mx_fields_take(struct mx_run_fields *fields, const struct mx_options *options, bool program,
                   const struct mx_system *system, mx_why *why);
/* Like mx_fields_take, but fields may be left without values. */
int mx_fields_take_some(struct mx_run_fields *fields, const struct mx_options *options, bool program,
                        const struct mx_system *system, mx_why *why);
/* Takes the files of --edit-input. -EINVAL: a name that is not a field of the state, or one field twice. */
int mx_fields_take_edits(struct mx_run_fields *fields, const struct mx_words *words, mx_why *why);
/* Sets the file of a field. raw: what follows the name of a file of raw cells; "" = it is not one. */
int mx_field_take_path(struct mx_run_field *field, const char *path, const char *raw, mx_why *why);
/* Takes --output: the file of each field, NULL = none. */
int mx_fields_take_outputs(struct mx_run_fields *fields, const struct mx_options *options, mx_why *why,
                           const char *path[MX_FIELDS_MOST]);
/* Takes --field for files that have moved since the run began. -EINVAL. */
int mx_fields_take_moved(struct mx_run_fields *fields, const struct mx_options *options, mx_why *why);

#endif
