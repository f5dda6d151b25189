/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of arrays, NRRD and MetaImage: what is accepted has three extents, all of its cells are in the
 * file, and they can be read; what a header says is within its bounds, whatever file it names. */
#include "fuzz.h"
#include "grid/head.h"

/* The last plane, packed: the end of the file is where a wrong size would show. */
static void read_last_plane(const struct mx_npy *npy) {
    const int64_t row = npy->shape[2] * mx_dtype_bytes(npy->dtype);
    const struct mx_layout layout = {.row_bytes = row,
                                     .row_pitch_bytes = row,
                                     .rows = npy->shape[1],
                                     .plane_pitch_bytes = row * npy->shape[1],
                                     .planes = 1,
                                     .buffer_bytes = row * npy->shape[1]};
    void *plane = malloc((size_t)layout.plane_pitch_bytes);
    FUZZ_CHECK(plane != NULL);
    mx_why why = {0};
    FUZZ_CHECK(mx_npy_read(npy, npy->shape[0] - 1, 1, plane, &layout, &why) == 0);
    free(plane);
}

typedef int parse_fn(const char *path, const char *text, size_t bytes, mx_why *why,
                     struct mx_array_head *out);

/* Of text that is no longer than it says. Whether the head names a file of its own. */
static bool check_head(parse_fn *parse, const uint8_t *data, size_t bytes) {
    static struct mx_array_head head;
    char *text = malloc(bytes > 0 ? bytes : 1);
    mx_why why = {0};
    FUZZ_CHECK(text != NULL);
    if (bytes > 0) memcpy(text, data, bytes);
    const int err = parse("x", text, bytes, &why, &head);
    free(text);
    if (err != 0) return fuzz_check_refusal(err, &why), false;
    FUZZ_CHECK(memchr(head.data, 0, sizeof head.data) != NULL && head.dtype < MX_DTYPES);
    for (int i = 0; i < 3; i++) FUZZ_CHECK(head.size[i] >= 1);
    FUZZ_CHECK(head.begin >= 0 && (size_t)head.begin <= bytes && head.skip_lines >= 0 &&
               head.skip_bytes >= -1);
    return head.data[0] != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[64];
    const bool nrrd = check_head(mx_nrrd_parse, data, bytes),
               meta = check_head(mx_metaimage_parse, data, bytes);
    if (nrrd || meta) return 0; /* whatever file that is, it is not ours to open */
    int fd = fuzz_file(data, bytes, path);
    struct mx_npy npy;
    mx_why why = {0};
    int err = mx_array_open(path, "", true, &why, &npy, NULL);
    if (err != 0) fuzz_check_refusal(err, &why);
    if (err == 0) {
        mx_wide need = npy.data_offset_bytes;
        for (int i = 0; i < 3; i++) FUZZ_CHECK(npy.shape[i] >= 1 && (uint64_t)npy.shape[i] <= bytes);
        need += (mx_wide)npy.shape[0] * npy.shape[1] * npy.shape[2] * mx_dtype_bytes(npy.dtype);
        FUZZ_CHECK(npy.data_offset_bytes >= 0 && need <= (mx_wide)bytes);
        read_last_plane(&npy);
        FUZZ_CHECK(mx_npy_close(&npy, &why) == 0);
    }
    close(fd);
    return 0;
}
