/* SPDX-License-Identifier: BSD-3-Clause */
/* note_private.h - what print.c and parse.c share. */
#ifndef MX_NOTE_PRIVATE_H
#define MX_NOTE_PRIVATE_H

#include "note/note.h"

#define MX_NOTE_KIND "memext run"
extern const char *const mx_note_forms[MX_STAGGERED + 1]; /* by enum mx_form */

#endif
