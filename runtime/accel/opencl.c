/* SPDX-License-Identifier: BSD-3-Clause */
/* opencl.c - devices of OpenCL 1.2. libOpenCL is loaded when a user asks for OpenCL.
 *
 * There are four in-order queues, which run side by side: one for each direction of the bus, one for copies
 * within the device, one for kernels. The last command of an operation has an event, whose state tells
 * whether the operation is done. An array is a buffer object; the addresses that stand for it are a range of
 * memory that nothing can touch.
 *
 * The file stays whole: it is one interface, from loading it to closing it.
 */
#include "accel/accel.h"
#include "accel/opencl_api.h"
#include "accel/spec.h"

#include <memext/backend.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- the library */

static struct mx_opencl_api api;
static void *library;

#define LOAD(result, name, arguments)                                                                        \
    if ((*(void **)&api.name = dlsym(library, #name)) == NULL) missing = #name;

static int load_library(mx_why *why) {
    const char *missing = NULL;
    if (library != NULL) return 0;
    library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return mx_fail(why, -ENOTSUP,
                       "libOpenCL.so.1 cannot be loaded: install an ICD loader (ocl-icd-libopencl1)");
    MX_OPENCL_FUNCTIONS(LOAD)
    if (missing == NULL) return 0;
    dlclose(library);
    library = NULL;
    return mx_fail(why, -ENOTSUP,
                   "libOpenCL.so.1 has no %s: it is older than OpenCL 1.2; install a newer one", missing);
}

static const char *error_name(cl_int err) {
    static const struct {
        cl_int err;
        const char *name;
    } names[] = {{-2, "the device is not available"},
                 {-4, "the memory of the device is used up (CL_MEM_OBJECT_ALLOCATION_FAILURE)"},
                 {-5, "out of resources (CL_OUT_OF_RESOURCES)"},
                 {-6, "the host is out of memory (CL_OUT_OF_HOST_MEMORY)"},
                 {-11, "the program cannot be built (CL_BUILD_PROGRAM_FAILURE)"},
                 {-14, "a command before it failed"},
                 {-36, "the device was lost (CL_INVALID_COMMAND_QUEUE)"},
                 {-61, "a buffer of this size is not possible (CL_INVALID_BUFFER_SIZE)"}};
    static char text[40];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].err == err) return names[i].name;
    snprintf(text, sizeof text, "OpenCL error %d", err);
    return text;
}

static int fail(mx_why *why, cl_int err) {
    return mx_fail(why, err == -4 || err == -61 ? -ENOMEM : -EIO, "%s", error_name(err));
}

/* ---- devices */

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

struct found {
    cl_device_id device;
    cl_bitfield type;
    char name[128];
};

static int find_devices(struct found *out, mx_why *why) {
    cl_platform_id platform[MOST_PLATFORMS];
    cl_uint platforms = 0;
    int n = 0, err = load_library(why);
    if (err < 0) return err;
    if (api.clGetPlatformIDs(MOST_PLATFORMS, platform, &platforms) != CL_SUCCESS || platforms == 0)
        return mx_fail(why, -ENOTSUP,
                       "OpenCL has no platform here: install the ICD of your device (/etc/OpenCL/vendors)");
    if (platforms > MOST_PLATFORMS) platforms = MOST_PLATFORMS;
    for (cl_uint i = 0; i < platforms; i++) {
        cl_device_id device[MOST_DEVICES];
        cl_uint devices = 0;
        if (api.clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_ALL, MOST_DEVICES, device, &devices) != CL_SUCCESS)
            continue;
        for (cl_uint k = 0; k < devices && k < MOST_DEVICES && n < MOST_DEVICES; k++) {
            struct found *f = &out[n++];
            *f = (struct found){.device = device[k]};
            api.clGetDeviceInfo(device[k], CL_DEVICE_TYPE, sizeof f->type, &f->type, NULL);
            api.clGetDeviceInfo(device[k], CL_DEVICE_NAME, sizeof f->name - 1, f->name, NULL);
        }
    }
    return n > 0 ? n : mx_fail(why, -ENOTSUP, "OpenCL finds no device here: check it with clinfo");
}

/* The first that is no CPU, else the first. */
static int best(const struct found *f, int n) {
    for (int i = 0; i < n; i++)
        if (!(f[i].type & CL_DEVICE_TYPE_CPU)) return i;
    return 0;
}

static int check_arithmetic(const struct found *f, mx_why *why) {
    const cl_bitfield both = CL_FP_DENORM | CL_FP_ROUND_TO_NEAREST;
    const cl_bitfield of_f32 = both | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    cl_bitfield f64 = 0, f32 = 0;
    api.clGetDeviceInfo(f->device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof f64, &f64, NULL);
    api.clGetDeviceInfo(f->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof f32, &f32, NULL);
    if ((f64 & both) != both)
        return mx_fail(why, -ENOTSUP,
                       "%.100s does not round f64 as a CPU does, so its bits would differ; leave --accel out",
                       f->name);
    if ((f32 & of_f32) != of_f32)
        return mx_fail(why, -ENOTSUP,
                       "%.100s does not round f32 as a CPU does (denormals, division), so its bits would "
                       "differ; leave --accel out",
                       f->name);
    return 0;
}

static int probe(char *device, mx_why *why) {
    struct found f[MOST_DEVICES];
    int n = find_devices(f, why);
    if (n < 0) return n;
    const struct found *chosen = &f[best(f, n)];
    if (device != NULL) snprintf(device, 128, "%s", chosen->name);
    int err = check_arithmetic(chosen, why);
    if (err < 0 || device != NULL || !(chosen->type & CL_DEVICE_TYPE_CPU)) return err;
    return mx_fail(why, -ENOTSUP, "its only device is a CPU, %.100s, which auto does not choose",
                   chosen->name);
}

/* Only devices of the same type: a CPU beside devices with memory of their own does not count. */
static int alike(int32_t *number, int most, mx_why *why) {
    struct found f[MOST_DEVICES];
    const int n = find_devices(f, why);
    int found = 0;
    for (int i = 0; i < n && found < most; i++)
        if (f[i].type == f[best(f, n)].type) number[found++] = i;
    return n < 0 ? n : found;
}

/* ---- a device */

enum { MOST = MX_ACCEL_ALLOCATIONS, MOST_KERNELS = MX_ACCEL_KERNELS };

/* Events of operations under way: number i at i % capacity. */
struct queue {
    cl_command_queue queue;
    cl_event *event;
    int64_t capacity, taken, done;
};

struct opencl {
    struct found found;
    cl_context context;
    struct queue queue[MX_ACCEL_QUEUES];
    cl_program program;
    cl_kernel kernel[MOST_KERNELS];
    struct {
        char *address;
        uint64_t bytes;
        cl_mem mem;
    } allocation[MOST];
    struct {
        void *host;
        cl_mem mem;
    } staged;
};

/* The buffer object that an address is of, and where in it. */
static cl_mem find_mem(const struct opencl *o, const char *address, size_t *offset) {
    for (int i = 0; i < MOST; i++)
        if (o->allocation[i].address != NULL && address >= o->allocation[i].address &&
            address < o->allocation[i].address + o->allocation[i].bytes) {
            *offset = (size_t)(address - o->allocation[i].address);
            return o->allocation[i].mem;
        }
    return NULL;
}

/* ---- queues */

static int grow(struct queue *q, mx_why *why) {
    const int64_t capacity = q->capacity > 0 ? 2 * q->capacity : 64;
    cl_event *event = calloc((size_t)capacity, sizeof(cl_event));
    if (event == NULL) return mx_fail(why, -ENOMEM, "no memory for events");
    for (int64_t i = q->done; i < q->taken; i++) event[i % capacity] = q->event[i % q->capacity];
    free(q->event);
    q->event = event;
    q->capacity = capacity;
    return 0;
}

static int begin(struct queue *q, mx_why *why) {
    return q->taken - q->done == q->capacity ? grow(q, why) : 0;
}

/* Of one that failed some part may be under way, which no event is of. */
static int end(struct queue *q, cl_int err, cl_event event, mx_why *why) {
    if (err != CL_SUCCESS) return api.clFinish(q->queue), fail(why, err);
    q->event[q->taken++ % q->capacity] = event;
    api.clFlush(q->queue);
    return 0;
}

static int64_t done(void *state, enum mx_accel_queue queue, mx_why *why) {
    struct queue *q = &((struct opencl *)state)->queue[queue];
    while (q->done < q->taken) {
        cl_event event = q->event[q->done % q->capacity];
        cl_int status = CL_COMPLETE;
        const cl_int err =
            api.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        if (err != CL_SUCCESS || status < 0) return fail(why, err != CL_SUCCESS ? err : status);
        if (status != CL_COMPLETE) break;
        /* To ask is no synchronization point (OpenCL 1.2, 5.9). To wait is one, and returns at once. */
        api.clWaitForEvents(1, &event);
        api.clReleaseEvent(event);
        q->done++;
    }
    return q->done;
}

static int wait(void *state, enum mx_accel_queue queue, int64_t number, mx_why *why) {
    struct opencl *o = state;
    struct queue *q = &o->queue[queue];
    if (number > q->done && number <= q->taken) {
        const cl_event event = q->event[(number - 1) % q->capacity];
        const cl_int err = api.clWaitForEvents(1, &event);
        if (err != CL_SUCCESS) return api.clFinish(q->queue), fail(why, err);
    }
    const int64_t now = done(state, queue, why);
    return now < 0 ? (int)now : 0;
}

/* ---- operations */

static int put(void *state, const struct mx_accel_span *span, size_t n, mx_why *why) {
    struct opencl *o = state;
    struct queue *q = &o->queue[MX_ACCEL_PUT];
    cl_event event = NULL;
    int err = begin(q, why);
    cl_int e = CL_SUCCESS;
    if (err < 0) return err;
    for (size_t i = 0; i < n && e == CL_SUCCESS; i++) {
        size_t offset = 0;
        cl_mem mem = find_mem(o, span[i].device, &offset);
        e = api.clEnqueueWriteBuffer(q->queue, mem, CL_FALSE, offset, span[i].bytes, span[i].host, 0, NULL,
                                     i + 1 == n ? &event : NULL);
    }
    return end(q, e, event, why);
}

static int get(void *state, const struct mx_accel_span *span, size_t n, mx_why *why) {
    struct opencl *o = state;
    struct queue *q = &o->queue[MX_ACCEL_GET];
    cl_event event = NULL;
    int err = begin(q, why);
    cl_int e = CL_SUCCESS;
    if (err < 0) return err;
    for (size_t i = 0; i < n && e == CL_SUCCESS; i++) {
        size_t offset = 0;
        cl_mem mem = find_mem(o, span[i].device, &offset);
        e = api.clEnqueueReadBuffer(q->queue, mem, CL_FALSE, offset, span[i].bytes, span[i].host, 0, NULL,
                                    i + 1 == n ? &event : NULL);
    }
    return end(q, e, event, why);
}

/* Rows of a rectangle: offsets in bytes are origins in x, where no row begins at 0. */
static int copy(void *state, enum mx_accel_queue queue, const struct mx_accel_copy *c, mx_why *why) {
    struct opencl *o = state;
    struct queue *q = &o->queue[queue];
    cl_event event = NULL;
    size_t from = 0, to = 0;
    const cl_mem source = find_mem(o, c->from, &from), target = find_mem(o, c->to, &to);
    const size_t from_origin[3] = {from % (size_t)c->from_pitch, from / (size_t)c->from_pitch, 0},
                 to_origin[3] = {to % (size_t)c->to_pitch, to / (size_t)c->to_pitch, 0},
                 region[3] = {(size_t)c->bytes, (size_t)c->n, 1};
    int err = begin(q, why);
    if (err < 0) return err;
    const cl_int e =
        api.clEnqueueCopyBufferRect(q->queue, source, target, from_origin, to_origin, region,
                                    (size_t)c->from_pitch, 0, (size_t)c->to_pitch, 0, 0, NULL, &event);
    return end(q, e, event, why);
}

static size_t round_up(int64_t n, size_t unit) { return ((size_t)n + unit - 1) / unit * unit; }

static int level(void *state, const struct mx_accel_level *l, mx_why *why) {
    struct opencl *o = state;
    struct queue *q = &o->queue[MX_ACCEL_WORK];
    /* Always the same, for PoCL compiles for each size anew. Of a GPU rows of 64 cells, 4 of them, so that a
     * line is read by few groups. */
    const bool cpu = (o->found.type & CL_DEVICE_TYPE_CPU) != 0;
    const bool given = l->group[0] > 0;
    const size_t local[3] = {given ? (size_t)l->group[0] : 64, given ? (size_t)l->group[1] : cpu ? 1 : 4, 1};
    const size_t global[3] = {round_up(l->size[0], local[0]), round_up(l->size[1], local[1]),
                              (size_t)l->size[2]};
    const cl_kernel kernel = o->kernel[l->kernel];
    cl_event event = NULL;
    cl_uint a = 0;
    cl_int e = CL_SUCCESS;
    int err = begin(q, why);
    if (err < 0) return err;
    for (int32_t i = 0; i < l->arrays && e == CL_SUCCESS; i++) {
        size_t offset;
        const cl_mem mem = find_mem(o, l->array[i], &offset);
        e = api.clSetKernelArg(kernel, a++, sizeof mem, &mem);
    }
    for (int i = 0; i < MX_ACCEL_NUMBERS && e == CL_SUCCESS; i++)
        e = api.clSetKernelArg(kernel, a++, sizeof l->number[i], &l->number[i]);
    if (e == CL_SUCCESS)
        e = api.clEnqueueNDRangeKernel(q->queue, kernel, 3, NULL, global, local, 0, NULL, &event);
    return end(q, e, event, why);
}

/* ---- kernels */

static void drop_program(struct opencl *o) {
    for (int i = 0; i < MOST_KERNELS; i++) {
        if (o->kernel[i] != NULL) api.clReleaseKernel(o->kernel[i]);
        o->kernel[i] = NULL;
    }
    if (o->program != NULL) api.clReleaseProgram(o->program);
    o->program = NULL;
}

/* The first error of what the compiler said, on one line. */
static int say_log(const struct opencl *o, mx_why *why) {
    enum { LOG_BYTES = 1 << 16 };
    char *log = calloc(1, LOG_BYTES);
    const char *at = "";
    if (log != NULL) {
        api.clGetProgramBuildInfo(o->program, o->found.device, CL_PROGRAM_BUILD_LOG, LOG_BYTES - 1, log,
                                  NULL);
        at = strstr(log, "error");
        if (at == NULL) at = log;
    }
    const int err =
        mx_fail(why, -ENOTSUP, "the OpenCL compiler of %.80s refuses the kernel: %.*s; leave --accel out",
                o->found.name, (int)(strcspn(at, "\n") < 280 ? strcspn(at, "\n") : 280), at);
    free(log);
    return err;
}

static int build(void *state, const struct mx_accel_program *p, mx_why *why) {
    struct opencl *o = state;
    cl_int e;
    drop_program(o);
    const char *text = p->text;
    o->program = api.clCreateProgramWithSource(o->context, 1, &text, NULL, &e);
    if (o->program == NULL) return fail(why, e);
    e = api.clBuildProgram(o->program, 1, &o->found.device,
                           "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", NULL, NULL);
    if (e != CL_SUCCESS) return say_log(o, why);
    for (int32_t i = 0; i < p->n_names; i++)
        if ((o->kernel[i] = api.clCreateKernel(o->program, p->names[i], &e)) == NULL) return fail(why, e);
    return 0;
}

/* ---- memory */

static int allocate(void *state, uint64_t bytes, mx_why *why, char **address) {
    struct opencl *o = state;
    cl_int e;
    int i = 0;
    while (i < MOST && o->allocation[i].address != NULL) i++;
    char *range = i == MOST
                      ? MAP_FAILED
                      : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return mx_fail(why, -ENOMEM, "the address space has no room: %s", strerror(errno));
    cl_mem mem = api.clCreateBuffer(o->context, CL_MEM_READ_WRITE, bytes, NULL, &e);
    if (mem == NULL) {
        munmap(range, bytes);
        return fail(why, e);
    }
    o->allocation[i].address = range;
    o->allocation[i].bytes = bytes;
    o->allocation[i].mem = mem;
    return *address = range, 0;
}

static void release(void *state, char *address) {
    struct opencl *o = state;
    for (int i = 0; i < MOST; i++)
        if (o->allocation[i].address == address && address != NULL) {
            api.clReleaseMemObject(o->allocation[i].mem);
            munmap(address, o->allocation[i].bytes);
            o->allocation[i].address = NULL;
        }
}

/* Memory that a buffer object uses is pinned by devices with a bus; where that is not possible copies are as
 * right, and slower. */
static int stage(void *state, void *host, uint64_t bytes, mx_why *why) {
    struct opencl *o = state;
    cl_int e;
    (void)why;
    if (o->staged.mem != NULL || (o->found.type & CL_DEVICE_TYPE_CPU)) return 0;
    o->staged.mem = api.clCreateBuffer(o->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, host, &e);
    o->staged.host = host;
    if (o->staged.mem == NULL) return 0;
    api.clEnqueueMapBuffer(o->queue[MX_ACCEL_PUT].queue, o->staged.mem, CL_TRUE, CL_MAP_READ_WRITE, 0, bytes,
                           0, NULL, NULL, &e);
    return e == CL_SUCCESS;
}

static void unstage(void *state, void *host) {
    struct opencl *o = state;
    if (o->staged.mem == NULL || o->staged.host != host) return;
    const cl_command_queue q = o->queue[MX_ACCEL_PUT].queue;
    api.clEnqueueUnmapMemObject(q, o->staged.mem, host, 0, NULL, NULL);
    api.clFinish(q);
    api.clReleaseMemObject(o->staged.mem);
    o->staged.mem = NULL;
}

/* ---- open and close */

static void opencl_close(void *state) {
    struct opencl *o = state;
    for (int i = 0; i < MX_ACCEL_QUEUES; i++) {
        struct queue *q = &o->queue[i];
        if (q->queue == NULL) continue;
        api.clFinish(q->queue);
        for (int64_t k = q->done; k < q->taken; k++) api.clReleaseEvent(q->event[k % q->capacity]);
        free(q->event);
        api.clReleaseCommandQueue(q->queue);
        q->queue = NULL;
    }
    drop_program(o);
    for (int i = 0; i < MOST; i++)
        if (o->allocation[i].address != NULL) release(o, o->allocation[i].address);
    if (o->staged.mem != NULL) api.clReleaseMemObject(o->staged.mem);
    if (o->context != NULL) api.clReleaseContext(o->context);
    free(o);
}

static int choose(const char *keys, mx_why *why, struct found *out) {
    struct found f[MOST_DEVICES];
    char text[32], *rest;
    int n = find_devices(f, why);
    if (n < 0) return n;
    long i = best(f, n);
    if (mx_accel_key(keys, "device", text, sizeof text)) {
        i = strtol(text, &rest, 10);
        if (rest == text || *rest != 0 || i < 0 || i >= n)
            return mx_fail(why, -EINVAL, "--accel opencl: there is no device=%.20s: the devices are 0 to %d",
                           text, n - 1);
    }
    *out = f[i];
    return check_arithmetic(out, why);
}

static int opencl_open(const char *keys, uint64_t memory_bytes, mx_why *why, void **state) {
    struct found found;
    cl_int e = CL_SUCCESS;
    (void)memory_bytes;
    int err = choose(keys, why, &found);
    if (err < 0) return err;
    struct opencl *o = calloc(1, sizeof *o);
    if (o == NULL) return mx_fail(why, -ENOMEM, "no memory for an accelerator");
    o->found = found;
    o->context = api.clCreateContext(NULL, 1, &found.device, NULL, NULL, &e);
    for (int i = 0; i < MX_ACCEL_QUEUES && e == CL_SUCCESS; i++)
        o->queue[i].queue = api.clCreateCommandQueue(o->context, found.device, 0, &e);
    if (e != CL_SUCCESS) {
        opencl_close(o);
        return mx_fail(why, -EIO, "%.100s cannot be opened: %s", found.name, error_name(e));
    }
    return *state = o, 0;
}

static void facts(const void *state, struct mx_accel_facts *out) {
    const struct opencl *o = state;
    cl_ulong all = 0, one = 0;
    size_t group = 0;
    api.clGetDeviceInfo(o->found.device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof all, &all, NULL);
    api.clGetDeviceInfo(o->found.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof one, &one, NULL);
    api.clGetDeviceInfo(o->found.device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    *out = (struct mx_accel_facts){.memory_bytes = all, .most_bytes = one, .most_group = (int64_t)group};
    snprintf(out->device, sizeof out->device, "%s", o->found.name);
}

const struct mx_accel_ops mx_accel_opencl = {
    .name = "opencl",
    .summary = "devices of OpenCL 1.2",
    .automatic = true,
    .probe = probe,
    .alike = alike,
    .open = opencl_open,
    .facts = facts,
    .alloc = allocate,
    .release = release,
    .stage = stage,
    .unstage = unstage,
    .build = build,
    .put = put,
    .get = get,
    .copy = copy,
    .level = level,
    .done = done,
    .wait = wait,
    .close = opencl_close,
};
