/* SPDX-License-Identifier: BSD-3-Clause */
/* note.c - names of Buffers, and paths as text. */
#include "note/note_private.h"

#include <stdio.h>

const char *const mx_note_buffers[MX_NOTE_MOST_BUFFERS] = {"source", "target", "spare"};

const char *const mx_note_partners[MX_NOTE_MOST_BUFFERS] = {"source-b", "target-b", "spare-b"};

const char *const mx_note_forms[MX_STAGGERED + 1] = {
    [MX_JACOBI] = "jacobi", [MX_LEAPFROG] = "leapfrog", [MX_STAGGERED] = "staggered"};

const char *mx_note_fixed(uint32_t second, int32_t field, char name[16]) {
    snprintf(name, 16, "field-%d%s", field, (second >> field & 1) != 0 ? "-b" : "");
    return name;
}

/* ------------------------------------------------------------------ paths are bytes, JSON is UTF-8: what is
 * not plain ASCII is written as %XX */

void mx_note_escape(const char *path, char *out) {
    for (const unsigned char *c = (const unsigned char *)path; *c != 0; c++) {
        if (*c >= 0x20 && *c < 0x7f && *c != '%')
            *out++ = (char)*c;
        else
            out += sprintf(out, "%%%02X", *c);
    }
    *out = 0;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool mx_note_unescape(const char *text, char *out, size_t capacity) {
    size_t n = 0;
    for (; *text != 0; text++) {
        int c = (unsigned char)*text;
        if (c == '%') {
            int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);
            if (low < 0 || (c = high * 16 + low) == 0) return false;
            text += 2;
        }
        if (n + 1 >= capacity) return false;
        out[n++] = (char)c;
    }
    out[n] = 0;
    return true;
}
