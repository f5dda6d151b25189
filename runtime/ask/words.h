/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - FIELD=VALUE. */
#ifndef MX_ASK_WORDS_H
#define MX_ASK_WORDS_H

#include "system/system.h"

/* "NAME=REST" of a field: where REST begins, or NULL where the word has no name. name may be NULL. */
const char *mx_field_word(const char *word, char name[MX_FIELD_NAME + 4]);

#endif
