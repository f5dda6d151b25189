/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - inputs without a frame: reads --frame, and fills planes with the frame that it describes
 * (sides.h, struct mx_frame). */
#ifndef MX_FILES_FRAME_H
#define MX_FILES_FRAME_H

#include "ask/options.h"
#include "files/fields.h"
#include "system/sides.h"

enum { MX_FRAME_TEXT = 512 };

/* Words "[FIELD=]included|edge|mirror|periodic|VALUE" of a built-in stencil, whose field is u. -EINVAL. */
int mx_frame_take(const struct mx_words *words, mx_why *why, struct mx_frame *out);
/* The same for a system. A word without a name holds for every field without a word of its own, in any order.
 * -EINVAL: an unknown name, or a value that the field's cells cannot hold. */
int mx_fields_take_frames(struct mx_run_fields *fields, const struct mx_system *system,
                          const struct mx_words *words, mx_why *why);
/* Writes words as one text, for the store's note; and reads it: `words` then points into `text`. -EINVAL: too
 * long. */
int mx_frame_print(const struct mx_words *words, char text[MX_FRAME_TEXT], mx_why *why);
void mx_frame_words(char text[MX_FRAME_TEXT], struct mx_words *words);

/* Mirror and periodic are kinds of sides and of frames: -EINVAL if the frame is one and a side the other. */
int mx_frame_check_sides(const struct mx_frame *frame, const struct mx_sides *sides,
                         const struct mx_problem *problem, int array, int32_t field, mx_why *why);

/* Fills plane z, frame counted, of one field, whose cell 0 is at `plane`. `ask` fills plane z, 0 to nz-1, of
 * the input without a frame: ny rows of nx cells, the first at `at`, row_pitch_bytes apart. */
typedef int mx_frame_ask(void *context, int64_t z, char *at);
int mx_frame_fill(const struct mx_frame *frame, const struct mx_problem *problem, enum mx_dtype dtype,
                  int64_t row_pitch_bytes, int64_t z, char *plane, mx_frame_ask *ask, void *context);

#endif
