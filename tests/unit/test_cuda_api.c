/* SPDX-License-Identifier: BSD-3-Clause */
/* accel/cuda_api.h, which is written by hand, against the headers of the toolkit that is installed here:
 * every function has the name and the type that they give it, every value is theirs, and the structure has
 * their layout. All of it is checked when this is compiled. */
#include <cuda.h>
#include <nvrtc.h>

#define MX_CUDA_TYPES
#include "accel/cuda_api.h"

#include <criterion/criterion.h>

/* (Types of functions, not of pointers to them: a name that is no function does not compile.) */
#define SAME_TYPE(result, name, there, arguments)                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(there), result arguments),                        \
                   #there " has another type");
MX_CUDA_DRIVER(SAME_TYPE)
MX_CUDA_COMPILER(SAME_TYPE)

#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs);
SAME_VALUE(MX_CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY)
SAME_VALUE(MX_CUDA_STUB, CUDA_ERROR_STUB_LIBRARY)
SAME_VALUE(MX_CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE)
SAME_VALUE(MX_CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE)
SAME_VALUE(MX_CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU)
SAME_VALUE(MX_CUDA_INVALID_PTX, CUDA_ERROR_INVALID_PTX)
SAME_VALUE(MX_CUDA_UNSUPPORTED_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
SAME_VALUE(MX_CUDA_NOT_READY, CUDA_ERROR_NOT_READY)
SAME_VALUE(MX_CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE)
SAME_VALUE(MX_CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING)
SAME_VALUE(MX_CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING)
SAME_VALUE(MX_CUDA_MAX_GROUPS_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)
SAME_VALUE(MX_CUDA_MAX_GROUPS_X + 1, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)
SAME_VALUE(MX_CUDA_MAX_GROUPS_X + 2, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)
SAME_VALUE(MX_CUDA_MAX_PITCH, CU_DEVICE_ATTRIBUTE_MAX_PITCH)
SAME_VALUE(MX_CUDA_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
SAME_VALUE(MX_CUDA_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
SAME_VALUE(0, CUDA_SUCCESS)
SAME_VALUE(0, NVRTC_SUCCESS)

/* What is int here are enumerations and handles there. */
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(nvrtcResult) == sizeof(int) &&
                   sizeof(CUdevice) == sizeof(int) && sizeof(CUdevice_attribute) == sizeof(int),
               "not the size of an int");
_Static_assert(__builtin_types_compatible_p(CUdeviceptr, unsigned long long), "addresses have another type");

#define SAME_PLACE(member)                                                                                   \
    _Static_assert(offsetof(struct mx_cuda_copy, member) == offsetof(CUDA_MEMCPY2D, member) &&               \
                       sizeof((struct mx_cuda_copy){0}.member) == sizeof((CUDA_MEMCPY2D){0}.member),         \
                   #member " is elsewhere");
SAME_PLACE(srcXInBytes)
SAME_PLACE(srcY)
SAME_PLACE(srcMemoryType)
SAME_PLACE(srcHost)
SAME_PLACE(srcDevice)
SAME_PLACE(srcArray)
SAME_PLACE(srcPitch)
SAME_PLACE(dstXInBytes)
SAME_PLACE(dstY)
SAME_PLACE(dstMemoryType)
SAME_PLACE(dstHost)
SAME_PLACE(dstDevice)
SAME_PLACE(dstArray)
SAME_PLACE(dstPitch)
SAME_PLACE(WidthInBytes)
SAME_PLACE(Height)

Test(cuda_api, is_that_of_the_toolkit) { cr_assert_eq(sizeof(struct mx_cuda_copy), sizeof(CUDA_MEMCPY2D)); }
