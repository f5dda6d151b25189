/* SPDX-License-Identifier: BSD-3-Clause */
/* opencl_api.h - the part of OpenCL 1.2 that opencl.c uses, declared here so that a build needs no OpenCL.
 * Values and signatures are those of the Khronos specification. The program looks for the library when it
 * runs. */
#ifndef MX_OPENCL_API_H
#define MX_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct mx_cl_platform *cl_platform_id;
typedef struct mx_cl_device *cl_device_id;
typedef struct mx_cl_context *cl_context;
typedef struct mx_cl_queue *cl_command_queue;
typedef struct mx_cl_mem *cl_mem;
typedef struct mx_cl_program *cl_program;
typedef struct mx_cl_kernel *cl_kernel;
typedef struct mx_cl_event *cl_event;
typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong, cl_bitfield;

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_FOUND = -1,
    CL_COMPLETE = 0,
    CL_FALSE = 0,
    CL_TRUE = 1,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
    CL_DEVICE_NAME = 0x102b,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3,
};
#define CL_DEVICE_TYPE_ALL ((cl_bitfield)0xffffffff)
#define CL_DEVICE_TYPE_CPU ((cl_bitfield)1 << 1)
#define CL_FP_DENORM ((cl_bitfield)1 << 0)
#define CL_FP_ROUND_TO_NEAREST ((cl_bitfield)1 << 2)
#define CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT ((cl_bitfield)1 << 7)
#define CL_MEM_READ_WRITE ((cl_bitfield)1 << 0)
#define CL_MEM_USE_HOST_PTR ((cl_bitfield)1 << 3)
#define CL_MAP_READ_WRITE ((cl_bitfield)3)

/* F(result, name, arguments) */
#define MX_OPENCL_FUNCTIONS(F)                                                                               \
    F(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                      \
    F(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))                        \
    F(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))             \
    F(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                            \
    F(cl_context, clCreateContext,                                                                           \
      (const intptr_t *, cl_uint, const cl_device_id *,                                                      \
       void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                              \
    F(cl_int, clReleaseContext, (cl_context))                                                                \
    F(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int *))             \
    F(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                     \
    F(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))                           \
    F(cl_int, clReleaseMemObject, (cl_mem))                                                                  \
    F(cl_int, clEnqueueWriteBuffer,                                                                          \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *,           \
       cl_event *))                                                                                          \
    F(cl_int, clEnqueueReadBuffer,                                                                           \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))    \
    F(cl_int, clEnqueueCopyBufferRect,                                                                       \
      (cl_command_queue, cl_mem, cl_mem, const size_t *, const size_t *, const size_t *, size_t, size_t,     \
       size_t, size_t, cl_uint, const cl_event *, cl_event *))                                               \
    F(void *, clEnqueueMapBuffer,                                                                            \
      (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t, cl_uint, const cl_event *,            \
       cl_event *, cl_int *))                                                                                \
    F(cl_int, clEnqueueUnmapMemObject,                                                                       \
      (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))                             \
    F(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *)) \
    F(cl_int, clBuildProgram,                                                                                \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *))       \
    F(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))          \
    F(cl_int, clReleaseProgram, (cl_program))                                                                \
    F(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                       \
    F(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                    \
    F(cl_int, clReleaseKernel, (cl_kernel))                                                                  \
    F(cl_int, clEnqueueNDRangeKernel,                                                                        \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,        \
       const cl_event *, cl_event *))                                                                        \
    F(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                 \
    F(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                                  \
    F(cl_int, clReleaseEvent, (cl_event))                                                                    \
    F(cl_int, clFlush, (cl_command_queue))                                                                   \
    F(cl_int, clFinish, (cl_command_queue))

#define MX_OPENCL_MEMBER(result, name, arguments) result(*name) arguments;
struct mx_opencl_api {
    MX_OPENCL_FUNCTIONS(MX_OPENCL_MEMBER)
};

#endif
