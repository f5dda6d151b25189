/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - reads words FIELD=VALUE. */
#ifndef MX_ASK_WORDS_H
#define MX_ASK_WORDS_H

#include "system/system.h"

/* Splits "NAME=REST": copies NAME to `name` (may be NULL) and returns where REST begins. NULL = the word has
 * no NAME. */
const char *mx_field_word(const char *word, char name[MX_FIELD_NAME + 4]);

#endif
