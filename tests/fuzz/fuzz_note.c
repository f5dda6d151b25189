/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes of a run: what is read, printed and read again says the same. */
#include "fuzz.h"
#include "note/note.h"

enum { TEXT_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static char printed[TEXT_BYTES], again[TEXT_BYTES];
    static struct mx_note note, second;
    mx_why why = {0};
    memset(&note, 0, sizeof note);
    memset(&second, 0, sizeof second);
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
