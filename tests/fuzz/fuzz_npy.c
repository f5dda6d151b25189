/* SPDX-License-Identifier: BSD-3-Clause */
/* .npy files: what is accepted has three extents, all of its cells are in the file, and they can be read. */
#include "fuzz.h"
#include "grid/grid.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[64];
    int fd = fuzz_file(data, bytes, path);
    struct mx_npy npy;
    mx_why why = {0};
    int err = mx_npy_open(path, &why, &npy);
    if (err != 0) fuzz_check_refusal(err, &why);
    if (err == 0) {
        mx_wide need = npy.data_offset_bytes;
        for (int i = 0; i < 3; i++) FUZZ_CHECK(npy.shape[i] >= 1 && (uint64_t)npy.shape[i] <= bytes);
        need += (mx_wide)npy.shape[0] * npy.shape[1] * npy.shape[2] * mx_dtype_bytes(npy.dtype);
        FUZZ_CHECK(npy.data_offset_bytes >= 10 && need <= (mx_wide)bytes);
        read_last_plane(&npy);
        FUZZ_CHECK(mx_npy_close(&npy, &why) == 0);
    }
    close(fd);
    return 0;
}
