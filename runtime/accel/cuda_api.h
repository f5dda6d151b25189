/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_api.h - the part of the driver API of CUDA and of NVRTC that cuda.c uses, declared here so that a
 * build needs no CUDA. Values and signatures are those of CUDA 11.2; later versions have kept them. The
 * program looks for the libraries when it runs. If a toolkit is installed, a test compares all of this with
 * its headers (tests/unit/test_cuda_api.c); it defines MX_CUDA_TYPES to use the types of the toolkit.
 */
#ifndef MX_CUDA_API_H
#define MX_CUDA_API_H

#include <stddef.h>

#ifndef MX_CUDA_TYPES
typedef int CUresult, CUdevice, CUdevice_attribute, nvrtcResult;
typedef unsigned long long CUdeviceptr;
typedef struct mx_cu_context *CUcontext;
typedef struct mx_cu_stream *CUstream;
typedef struct mx_cu_event *CUevent;
typedef struct mx_cu_module *CUmodule;
typedef struct mx_cu_function *CUfunction;
typedef struct mx_nvrtc_program *nvrtcProgram;
typedef struct mx_cuda_copy CUDA_MEMCPY2D;
#endif

enum {
    MX_CUDA_OUT_OF_MEMORY = 2,
    MX_CUDA_STUB = 34,
    MX_CUDA_NO_DEVICE = 100,
    MX_CUDA_INVALID_IMAGE = 200,
    MX_CUDA_NO_BINARY_FOR_GPU = 209,
    MX_CUDA_INVALID_PTX = 218,
    MX_CUDA_UNSUPPORTED_PTX = 222,
    MX_CUDA_NOT_READY = 600
};
enum { MX_CUDA_MEMORY_DEVICE = 2, MX_CUDA_EVENT_DISABLE_TIMING = 2, MX_CUDA_STREAM_NON_BLOCKING = 1 };
enum {
    MX_CUDA_MAX_GROUPS_X = 5, /* y and z follow */
    MX_CUDA_MAX_PITCH = 11,
    MX_CUDA_CAPABILITY_MAJOR = 75,
    MX_CUDA_CAPABILITY_MINOR = 76
};

/* CUDA_MEMCPY2D */
struct mx_cuda_copy {
    size_t srcXInBytes, srcY;
    unsigned srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    unsigned dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
};

/* F(result, name here, name there, arguments) */
#define MX_CUDA_DRIVER(F)                                                                                    \
    F(CUresult, version, cuDriverGetVersion, (int *))                                                        \
    F(CUresult, init, cuInit, (unsigned))                                                                    \
    F(CUresult, count, cuDeviceGetCount, (int *))                                                            \
    F(CUresult, device, cuDeviceGet, (CUdevice *, int))                                                      \
    F(CUresult, device_name, cuDeviceGetName, (char *, int, CUdevice))                                       \
    F(CUresult, attribute, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                      \
    F(CUresult, retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                   \
    F(CUresult, give_back, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                         \
    F(CUresult, push, cuCtxPushCurrent_v2, (CUcontext))                                                      \
    F(CUresult, pop, cuCtxPopCurrent_v2, (CUcontext *))                                                      \
    F(CUresult, memory, cuMemGetInfo_v2, (size_t *, size_t *))                                               \
    F(CUresult, alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                               \
    F(CUresult, release, cuMemFree_v2, (CUdeviceptr))                                                        \
    F(CUresult, pin, cuMemHostRegister_v2, (void *, size_t, unsigned))                                       \
    F(CUresult, unpin, cuMemHostUnregister, (void *))                                                        \
    F(CUresult, stream, cuStreamCreate, (CUstream *, unsigned))                                              \
    F(CUresult, stream_wait, cuStreamSynchronize, (CUstream))                                                \
    F(CUresult, stream_end, cuStreamDestroy_v2, (CUstream))                                                  \
    F(CUresult, put, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                    \
    F(CUresult, get, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                          \
    F(CUresult, copy, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                    \
    F(CUresult, copy_rows, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *, CUstream))                            \
    F(CUresult, event, cuEventCreate, (CUevent *, unsigned))                                                 \
    F(CUresult, record, cuEventRecord, (CUevent, CUstream))                                                  \
    F(CUresult, query, cuEventQuery, (CUevent))                                                              \
    F(CUresult, event_wait, cuEventSynchronize, (CUevent))                                                   \
    F(CUresult, event_end, cuEventDestroy_v2, (CUevent))                                                     \
    F(CUresult, load, cuModuleLoadData, (CUmodule *, const void *))                                          \
    F(CUresult, unload, cuModuleUnload, (CUmodule))                                                          \
    F(CUresult, function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                       \
    F(CUresult, launch, cuLaunchKernel,                                                                      \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,  \
       void **))                                                                                             \
    F(CUresult, error_text, cuGetErrorString, (CUresult, const char **))
#define MX_CUDA_COMPILER(F)                                                                                  \
    F(nvrtcResult, create, nvrtcCreateProgram,                                                               \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *))           \
    F(nvrtcResult, compile, nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                   \
    F(nvrtcResult, ptx_bytes, nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                     \
    F(nvrtcResult, ptx, nvrtcGetPTX, (nvrtcProgram, char *))                                                 \
    F(nvrtcResult, cubin_bytes, nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                 \
    F(nvrtcResult, cubin, nvrtcGetCUBIN, (nvrtcProgram, char *))                                             \
    F(nvrtcResult, count_known, nvrtcGetNumSupportedArchs, (int *))                                          \
    F(nvrtcResult, known, nvrtcGetSupportedArchs, (int *))                                                   \
    F(nvrtcResult, log_bytes, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                              \
    F(nvrtcResult, log, nvrtcGetProgramLog, (nvrtcProgram, char *))                                          \
    F(nvrtcResult, destroy, nvrtcDestroyProgram, (nvrtcProgram *))

#endif
