/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local struct mx_bell mine;
static _Thread_local int opened;

struct mx_bell *mx_bell_open(void) {
    return opened++, &mine;
}
void mx_bell_close(void) { opened--; }
struct mx_bell *mx_bell_mine(void) {
    return opened > 0 ? &mine : NULL;
}

/* Either this sees who waits, or the kernel sees, when that one goes to sleep, that it was rung: both go
 * through one order of all (seq_cst). */
void mx_bell_ring(struct mx_bell *bell) {
    if (bell == NULL) return;
    atomic_fetch_add(&bell->rung, 1);
    if (atomic_load(&bell->waiting)) syscall(SYS_futex, &bell->rung, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void mx_bell_wait(struct mx_bell *bell, uint32_t heard, int64_t nanoseconds) {
    const struct timespec most = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    atomic_store(&bell->waiting, 1);
    if (atomic_load(&bell->rung) == heard)
        syscall(SYS_futex, &bell->rung, FUTEX_WAIT_PRIVATE, heard, &most, NULL, 0);
    atomic_store(&bell->waiting, 0);
}
