/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/words.h"

#include <string.h>

const char *mx_field_word(const char *word, char name[MX_FIELD_NAME + 4]) {
    const size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    if (n == 0 || n >= MX_FIELD_NAME + 4 || word[n] != '=') return NULL;
    if (name != NULL) {
        memcpy(name, word, n);
        name[n] = 0;
    }
    return word + n + 1;
}

const char *mx_built_in_word(const char *word) {
    char name[MX_FIELD_NAME + 4];
    const char *rest = mx_field_word(word, name);
    return rest != NULL && strcmp(name, MX_BUILT_IN_FIELD) == 0 ? rest : word;
}
