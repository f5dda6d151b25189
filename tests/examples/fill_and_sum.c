/* SPDX-License-Identifier: BSD-3-Clause */
/* fill_and_sum.c - fills a Buffer of 256 MiB with 0, 1, 2, ... and sums it up again, in 8 MiB of DRAM.
 *     fill_and_sum DIRECTORY|FILE|BLOCK_DEVICE
 */
#include <memext/memext.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20, BLOCK_BYTES = 8 * MIB, CELLS = BLOCK_BYTES / sizeof(uint64_t), BLOCKS = 32 };

int main(int argc, char **argv) {
    mx_why why = {""};
    mx_budget *budget = NULL;
    mx_device *device = NULL;
    mx_buffer *buffer = NULL;
    mx_block *block = NULL;
    mx_ticket *ticket = NULL;
    uint64_t next = 0, sum = 0;

    int err = mx_budget_create(BLOCK_BYTES, 0, &why, &budget);
    struct mx_device_options place = {.path = argc > 1 ? argv[1] : "."};
    struct mx_block_options counted = {.budget = budget};
    if (err == 0) err = mx_device_open(&place, &why, &device);
    if (err == 0) err = mx_buffer_create(device, "numbers", (uint64_t)BLOCKS * BLOCK_BYTES, &why, &buffer);
    if (err == 0) err = mx_block_create(&counted, BLOCK_BYTES, &why, &block);
    uint64_t *cells = err == 0 ? mx_block_data(block) : NULL;

    for (uint64_t b = 0; err == 0 && b < BLOCKS; b++) {
        for (int i = 0; i < CELLS; i++) cells[i] = next++;
        struct mx_span all = {b * BLOCK_BYTES, BLOCK_BYTES, cells};
        if ((err = mx_buffer_write(buffer, &all, 1, &ticket)) == 0) err = mx_wait(ticket);
    }
    for (uint64_t b = 0; err == 0 && b < BLOCKS; b++) {
        struct mx_span all = {b * BLOCK_BYTES, BLOCK_BYTES, cells};
        if ((err = mx_buffer_read(buffer, &all, 1, &ticket)) == 0) err = mx_wait(ticket);
        for (int i = 0; err == 0 && i < CELLS; i++) sum += cells[i];
    }

    if (err != 0)
        fprintf(stderr, "fill_and_sum: %s\n", why.text[0] ? why.text : strerror(-err));
    else
        printf("sum of 0 .. %" PRIu64 ": %" PRIu64 "\n", next - 1, sum);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
    mx_budget_free(budget);
    return err != 0 || sum != next * (next - 1) / 2;
}
