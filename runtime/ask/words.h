/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - reads words FIELD=VALUE. */
#ifndef MX_ASK_WORDS_H
#define MX_ASK_WORDS_H

#include "system/system.h"

/* Splits "NAME=REST": copies NAME to `name` (may be NULL) and returns where REST begins. NULL = the word has
 * no NAME. */
const char *mx_field_word(const char *word, char name[MX_FIELD_NAME + 4]);

/* The only field of a built-in stencil. */
#define MX_BUILT_IN_FIELD "u"

/* Returns VALUE of a word "[u=]VALUE", and any other word as it is. */
const char *mx_built_in_word(const char *word);

#endif
