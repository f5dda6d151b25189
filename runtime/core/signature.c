/* SPDX-License-Identifier: BSD-3-Clause */
/* signature.c - known signatures on a block device, by libblkid. */
#include "core/safety.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>

static int open_probe(int fd, blkid_probe *out) {
    blkid_probe probe = blkid_new_probe();
    if (probe == NULL) return -ENOMEM;
    if (blkid_probe_set_device(probe, fd, 0, 0) != 0) {
        blkid_free_probe(probe);
        return -EIO;
    }
    blkid_probe_enable_superblocks(probe, 1);
    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_BADCSUM);
    blkid_probe_enable_partitions(probe, 1);
    blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
    *out = probe;
    return 0;
}

int mx_signature_find(int fd, char *name, size_t capacity_bytes) {
    blkid_probe probe;
    int err = open_probe(fd, &probe);
    if (err != 0) return err;
    const char *type = NULL;
    int found = blkid_do_probe(probe);
    if (found == 0 && blkid_probe_lookup_value(probe, "TYPE", &type, NULL) == 0)
        snprintf(name, capacity_bytes, "%s", type);
    else if (found == 0 && blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL) == 0)
        snprintf(name, capacity_bytes, "%s partition table", type);
    else
        snprintf(name, capacity_bytes, "unnamed");
    blkid_free_probe(probe);
    return found == 0 ? 1 : found == 1 ? 0 : -EIO;
}

int mx_signature_wipe(int fd) {
    blkid_probe probe;
    int err = open_probe(fd, &probe);
    if (err != 0) return err;
    int found;
    while ((found = blkid_do_probe(probe)) == 0)
        if (blkid_do_wipe(probe, 0) != 0) break;
    blkid_free_probe(probe);
    return found == 1 ? 0 : -EIO;
}
