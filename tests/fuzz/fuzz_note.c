/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes of a run, and of a wavefront: what is read, printed and read again says the same. */
#include "fuzz.h"
#include "note/note.h"
#include "wavefront/note.h"

enum { TEXT_BYTES = 1 << 16 };

static void of_a_wavefront(const char *text, size_t bytes) {
    static char printed[TEXT_BYTES], again[TEXT_BYTES];
    static struct mx_wf_note note, second;
    mx_why why = {0};
    const int err = mx_wf_note_parse(text, bytes, &why, &note);
    if (err != 0) {
        fuzz_check_refusal(err, &why);
        return;
    }
    const int length = mx_wf_note_print(&note, printed, sizeof printed);
    FUZZ_CHECK(length > 0 && (size_t)length == strlen(printed));
    FUZZ_CHECK(note.done <= note.iterations && note.geometry.tile_rows > 0);
    FUZZ_CHECK(mx_wf_note_parse(printed, (size_t)length, &why, &second) == 0);
    FUZZ_CHECK(mx_wf_note_print(&second, again, sizeof again) == length && strcmp(printed, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static char printed[TEXT_BYTES], again[TEXT_BYTES];
    static struct mx_note note, second;
    mx_why why = {0};
    memset(&note, 0, sizeof note);
    memset(&second, 0, sizeof second);
    of_a_wavefront((const char *)data, bytes);
    int err = mx_note_parse((const char *)data, bytes, &why, &note);
    if (err != 0) {
        fuzz_check_refusal(err, &why);
        return 0;
    }
    int length = mx_note_print(&note, printed, sizeof printed);
    FUZZ_CHECK(length > 0 && (size_t)length == strlen(printed));
    FUZZ_CHECK(mx_note_parse(printed, (size_t)length, &why, &second) == 0);
    FUZZ_CHECK(mx_note_print(&second, again, sizeof again) == length);
    FUZZ_CHECK(strcmp(printed, again) == 0);
    return 0;
}
