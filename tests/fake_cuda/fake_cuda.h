/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_cuda.h - a driver and a run-time compiler of CUDA that need no device, for tests of accel/cuda.c. They
 * stand in the place of libcuda.so.1 and libnvrtc.so, are written from NVIDIA's documentation alone, and
 * refuse what that forbids: calls without a context, handles of another one, copies beyond an allocation,
 * grids that are too large. Memory of the device cannot be touched by the host.
 *
 * What is handed over is done either at once or as late as allowed: when somebody waits for it, or asks
 * twice. Kernels are compiled by the C++ compiler of this machine and executed one work item after the other.
 *
 * Of processes that cannot call these functions the environment says the same:
 *     FAKE_CUDA="devices=2,bytes=1048576,late=1,fail=17,name=cuMemAlloc_v2,error=2,sticky=1,arch=90,max_pitch=4096,version=13000"
 * and, with keep=FOLDER, no image is taken: it becomes the file cubin or ptx there, for tests of what a real
 * compiler makes. FAKE_CUDA_CACHE names a folder that keeps what was compiled, by its text.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

struct fake_cuda {
    int devices;      /* default 1 */
    uint64_t bytes;   /* of each; default 256 MiB */
    bool late;        /* operations are done as late as allowed */
    int64_t fail;     /* the call that fails, from 1, of those of `name`; 0 = none */
    const char *name; /* of the functions that are counted for that; NULL = of all */
    int error;        /* that it returns; default 719, a launch failure */
    bool sticky;      /* and everything after it */
    int max_pitch;    /* default 2147483647 */
    int max_planes;   /* groups of a launch in z, default 65535 */
    int arch;         /* compute capability, default 90 */
    int version;      /* of the driver, default 12020 */
};

/* From now on; calls are counted from 0 again. */
void fake_cuda_set(const struct fake_cuda *now);
int64_t fake_cuda_calls(void);      /* that were counted */
const char *fake_cuda_failed(void); /* the function that failed, NULL = none did */
int64_t fake_cuda_launches(void);
/* Allocations, pinned memory, streams, events, modules and contexts that nobody gave back; 0 = none. */
int64_t fake_cuda_left(void);

#endif
