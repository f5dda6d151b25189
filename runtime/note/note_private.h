/* SPDX-License-Identifier: BSD-3-Clause */
/* note_private.h - shared by print.c, parse.c and params.c. */
#ifndef MX_NOTE_PRIVATE_H
#define MX_NOTE_PRIVATE_H

#include "note/note.h"
#include "note/reader.h"

#define MX_NOTE_KIND "memext run"
extern const char *const mx_note_forms[MX_STAGGERED + 1]; /* by enum mx_form */

/* params.c: the parameters of a kernel. settle: sets changed parameters in `system` to their values at the
 * note's step. */
json_t *mx_note_print_params(const struct mx_note *note);
void mx_note_parse_params(struct mx_note_reader *reader, const json_t *object, struct mx_note *note);
void mx_note_settle_edits(struct mx_note *note);

/* former.c */
json_t *mx_note_print_former(const struct mx_note_former *former);
void mx_note_parse_former(struct mx_note_reader *reader, const json_t *object, struct mx_note_former *out);

#endif
