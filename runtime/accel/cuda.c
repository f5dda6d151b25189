/* cuda.c - devices of CUDA: the driver (libcuda) and its run-time compiler (libnvrtc) are loaded when they
 * are asked for, declared here so that nothing is needed to build. Written from their documentation and not
 * yet run on a device.
 *
 * Four streams, as the four queues of opencl.c; an event after each operation says whether it is done.
 * Addresses are the device's own, which no memory of the host has. Calls come from several threads, one at a
 * time, so the context is made current by each.
 */
#include "accel/accel.h"

#include <memext/backend.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the libraries */

typedef int CUresult, CUdevice, nvrtcResult;
typedef unsigned long long CUdeviceptr;
typedef struct mx_cu_context *CUcontext;
typedef struct mx_cu_stream *CUstream;
typedef struct mx_cu_event *CUevent;
typedef struct mx_cu_module *CUmodule;
typedef struct mx_cu_function *CUfunction;
typedef struct mx_cu_array *CUarray;
typedef struct mx_nvrtc_program *nvrtcProgram;

enum { NOT_READY = 600, NO_DEVICE = 100, OUT_OF_MEMORY = 2 };
enum { MEMORY_DEVICE = 2, EVENT_DISABLE_TIMING = 2, STREAM_NON_BLOCKING = 1 };
enum { COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76 };

struct memcpy_2d {
    size_t src_x_bytes, src_y;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    size_t src_pitch;
    size_t dst_x_bytes, dst_y;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    size_t dst_pitch;
    size_t width_bytes, height;
};

/* F(result, name here, name there, arguments) */
#define DRIVER(F)                                                                                            \
    F(CUresult, init, "cuInit", (unsigned))                                                                  \
    F(CUresult, count, "cuDeviceGetCount", (int *))                                                          \
    F(CUresult, device, "cuDeviceGet", (CUdevice *, int))                                                    \
    F(CUresult, device_name, "cuDeviceGetName", (char *, int, CUdevice))                                     \
    F(CUresult, attribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                   \
    F(CUresult, retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                                 \
    F(CUresult, give_back, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                       \
    F(CUresult, set_current, "cuCtxSetCurrent", (CUcontext))                                                 \
    F(CUresult, memory, "cuMemGetInfo_v2", (size_t *, size_t *))                                             \
    F(CUresult, alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                             \
    F(CUresult, release, "cuMemFree_v2", (CUdeviceptr))                                                      \
    F(CUresult, pin, "cuMemHostRegister_v2", (void *, size_t, unsigned))                                     \
    F(CUresult, unpin, "cuMemHostUnregister", (void *))                                                      \
    F(CUresult, stream, "cuStreamCreate", (CUstream *, unsigned))                                            \
    F(CUresult, stream_wait, "cuStreamSynchronize", (CUstream))                                              \
    F(CUresult, stream_end, "cuStreamDestroy_v2", (CUstream))                                                \
    F(CUresult, put, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))                  \
    F(CUresult, get, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))                        \
    F(CUresult, copy, "cuMemcpy2DAsync_v2", (const struct memcpy_2d *, CUstream))                            \
    F(CUresult, event, "cuEventCreate", (CUevent *, unsigned))                                               \
    F(CUresult, record, "cuEventRecord", (CUevent, CUstream))                                                \
    F(CUresult, query, "cuEventQuery", (CUevent))                                                            \
    F(CUresult, event_wait, "cuEventSynchronize", (CUevent))                                                 \
    F(CUresult, event_end, "cuEventDestroy_v2", (CUevent))                                                   \
    F(CUresult, load, "cuModuleLoadData", (CUmodule *, const void *))                                        \
    F(CUresult, unload, "cuModuleUnload", (CUmodule))                                                        \
    F(CUresult, function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                     \
    F(CUresult, launch, "cuLaunchKernel",                                                                    \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,  \
       void **))                                                                                             \
    F(CUresult, error_text, "cuGetErrorString", (CUresult, const char **))
#define COMPILER(F)                                                                                          \
    F(nvrtcResult, create, "nvrtcCreateProgram",                                                             \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *))           \
    F(nvrtcResult, compile, "nvrtcCompileProgram", (nvrtcProgram, int, const char *const *))                 \
    F(nvrtcResult, ptx_bytes, "nvrtcGetPTXSize", (nvrtcProgram, size_t *))                                   \
    F(nvrtcResult, ptx, "nvrtcGetPTX", (nvrtcProgram, char *))                                               \
    F(nvrtcResult, log_bytes, "nvrtcGetProgramLogSize", (nvrtcProgram, size_t *))                            \
    F(nvrtcResult, log, "nvrtcGetProgramLog", (nvrtcProgram, char *))                                        \
    F(nvrtcResult, destroy, "nvrtcDestroyProgram", (nvrtcProgram *))

#define MEMBER(result, name, there, arguments) result(*name) arguments;
static struct { DRIVER(MEMBER) } cu;
static struct { COMPILER(MEMBER) } nvrtc;
static void *driver, *compiler;

#define LOAD_DRIVER(result, name, there, arguments)                                                          \
    if ((*(void **)&cu.name = dlsym(driver, there)) == NULL) missing = there;
#define LOAD_COMPILER(result, name, there, arguments)                                                        \
    if ((*(void **)&nvrtc.name = dlsym(compiler, there)) == NULL) missing = there;

static void *open_first(const char *const *names) {
    void *library = NULL;
    for (; *names != NULL && library == NULL; names++) library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int load_libraries(mx_why *why) {
    static const char *const of_driver[] = {"libcuda.so.1", NULL}, *const of_compiler[] = {
                                                                       "libnvrtc.so", "libnvrtc.so.13",
                                                                       "libnvrtc.so.12", "libnvrtc.so.11.2",
                                                                       NULL};
    const char *missing = NULL;
    if (driver == NULL && (driver = open_first(of_driver)) == NULL)
        return mx_fail(why, -ENOTSUP, "libcuda.so.1 cannot be loaded: there is no driver of NVIDIA here");
    if (compiler == NULL && (compiler = open_first(of_compiler)) == NULL)
        return mx_fail(
            why, -ENOTSUP,
            "libnvrtc.so cannot be loaded, which compiles kernels: install NVRTC of the CUDA toolkit");
    DRIVER(LOAD_DRIVER)
    COMPILER(LOAD_COMPILER)
    if (missing != NULL)
        return mx_fail(why, -ENOTSUP, "the libraries of CUDA here have no %s: too old", missing);
    return 0;
}

static int fail(mx_why *why, CUresult err) {
    const char *text = NULL;
    if (cu.error_text(err, &text) != 0 || text == NULL) text = "unknown";
    return mx_fail(why, err == OUT_OF_MEMORY ? -ENOMEM : -EIO, "CUDA error %d, %s", err, text);
}

/* ---- a device */

enum { MOST_KERNELS = MX_ACCEL_KERNELS };

struct queue {
    CUstream stream;
    CUevent *event; /* of operation i at i % capacity */
    int64_t capacity, taken, done;
};

struct cuda {
    CUdevice device;
    CUcontext context;
    char name[128];
    struct queue queue[MX_ACCEL_QUEUES];
    CUmodule module;
    CUfunction kernel[MOST_KERNELS];
};

static int find_device(int number, CUdevice *out, mx_why *why) {
    int n = 0, err = load_libraries(why);
    if (err < 0) return err;
    CUresult e = cu.init(0);
    if (e == 0) e = cu.count(&n);
    if (e != 0 && e != NO_DEVICE) return fail(why, e), -ENOTSUP;
    if (n == 0) return mx_fail(why, -ENOTSUP, "CUDA has no device here");
    if (number >= n)
        return mx_fail(why, -EINVAL, "--accel cuda: device=%d is none of the devices 0 to %d", number, n - 1);
    e = cu.device(out, number);
    return e != 0 ? (fail(why, e), -ENOTSUP) : 0;
}

static int probe(char *device, mx_why *why) {
    CUdevice d;
    int err = find_device(0, &d, why);
    if (err == 0 && device != NULL) cu.device_name(device, 128, d);
    return err;
}

/* ---- queues */

static int grow(struct queue *q, mx_why *why) {
    const int64_t capacity = q->capacity > 0 ? 2 * q->capacity : 64;
    CUevent *event = calloc((size_t)capacity, sizeof(CUevent));
    if (event == NULL) return mx_fail(why, -ENOMEM, "no memory for events");
    for (int64_t i = q->done; i < q->taken; i++) event[i % capacity] = q->event[i % q->capacity];
    free(q->event);
    q->event = event;
    q->capacity = capacity;
    return 0;
}

static int begin(struct cuda *c, struct queue *q, mx_why *why) {
    const CUresult e = cu.set_current(c->context);
    if (e != 0) return fail(why, e);
    return q->taken - q->done == q->capacity ? grow(q, why) : 0;
}

static int end(struct queue *q, CUresult e, mx_why *why) {
    CUevent event = NULL;
    if (e == 0) e = cu.event(&event, EVENT_DISABLE_TIMING);
    if (e == 0) e = cu.record(event, q->stream);
    if (e != 0) return fail(why, e);
    q->event[q->taken++ % q->capacity] = event;
    return 0;
}

static int64_t done(void *state, enum mx_accel_queue queue, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[queue];
    cu.set_current(c->context);
    while (q->done < q->taken) {
        const CUresult e = cu.query(q->event[q->done % q->capacity]);
        if (e == NOT_READY) break;
        if (e != 0) return fail(why, e);
        cu.event_end(q->event[q->done++ % q->capacity]);
    }
    return q->done;
}

static int wait(void *state, enum mx_accel_queue queue, int64_t number, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[queue];
    cu.set_current(c->context);
    if (number > q->done && number <= q->taken) {
        const CUresult e = cu.event_wait(q->event[(number - 1) % q->capacity]);
        if (e != 0) return cu.stream_wait(q->stream), fail(why, e);
    }
    const int64_t now = done(state, queue, why);
    return now < 0 ? (int)now : 0;
}

/* ---- operations */

static CUdeviceptr there(const char *address) { return (CUdeviceptr)(uintptr_t)address; }

static int put(void *state, const struct mx_accel_span *span, size_t n, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[MX_ACCEL_PUT];
    CUresult e = 0;
    int err = begin(c, q, why);
    if (err < 0) return err;
    for (size_t i = 0; i < n && e == 0; i++)
        e = cu.put(there(span[i].device), span[i].host, span[i].bytes, q->stream);
    return end(q, e, why);
}

static int get(void *state, const struct mx_accel_span *span, size_t n, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[MX_ACCEL_GET];
    CUresult e = 0;
    int err = begin(c, q, why);
    if (err < 0) return err;
    for (size_t i = 0; i < n && e == 0; i++)
        e = cu.get(span[i].host, there(span[i].device), span[i].bytes, q->stream);
    return end(q, e, why);
}

static int copy(void *state, enum mx_accel_queue queue, const struct mx_accel_copy *p, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[queue];
    const struct memcpy_2d m = {.src_type = MEMORY_DEVICE,
                                .src_device = there(p->from),
                                .src_pitch = (size_t)p->from_pitch,
                                .dst_type = MEMORY_DEVICE,
                                .dst_device = there(p->to),
                                .dst_pitch = (size_t)p->to_pitch,
                                .width_bytes = (size_t)p->bytes,
                                .height = (size_t)p->n};
    int err = begin(c, q, why);
    if (err < 0) return err;
    return end(q, cu.copy(&m, q->stream), why);
}

static unsigned groups(int64_t n, unsigned of) { return (unsigned)((n + of - 1) / of); }

static int level(void *state, const struct mx_accel_level *l, mx_why *why) {
    /* Rows of 64 cells, 4 of them, so that a line is read by few groups. */
    const int64_t x = l->group[0] > 0 ? l->group[0] : 64, y = l->group[0] > 0 ? l->group[1] : 4;
    struct cuda *c = state;
    struct queue *q = &c->queue[MX_ACCEL_WORK];
    CUdeviceptr array[MX_ACCEL_ARRAYS];
    int64_t number[MX_ACCEL_NUMBERS];
    void *argument[MX_ACCEL_ARRAYS + MX_ACCEL_NUMBERS];
    int n = 0, err = begin(c, q, why);
    if (err < 0) return err;
    for (int32_t i = 0; i < l->arrays; i++) array[i] = there(l->array[i]), argument[n++] = &array[i];
    for (int i = 0; i < MX_ACCEL_NUMBERS; i++) number[i] = l->number[i], argument[n++] = &number[i];
    return end(q,
               cu.launch(c->kernel[l->kernel], groups(l->size[0], x), groups(l->size[1], y),
                         (unsigned)l->size[2], (unsigned)x, (unsigned)y, 1, 0, q->stream, argument, NULL),
               why);
}

/* ---- kernels */

/* The first error of what the compiler said, on one line. */
static int say_log(const struct cuda *c, nvrtcProgram program, mx_why *why) {
    size_t bytes = 0;
    nvrtc.log_bytes(program, &bytes);
    char *log = calloc(1, bytes + 1);
    const char *at = "";
    if (log != NULL && bytes > 0) nvrtc.log(program, log);
    if (log != NULL) at = strstr(log, "error") != NULL ? strstr(log, "error") : log;
    const int length = (int)(strcspn(at, "\n") < 280 ? strcspn(at, "\n") : 280);
    const int err =
        mx_fail(why, -ENOTSUP, "the CUDA compiler for %.80s refuses the kernel: %.*s; leave --accel out",
                c->name, length, at);
    free(log);
    return err;
}

static int compile(struct cuda *c, const char *text, mx_why *why, char **ptx) {
    int major = 0, minor = 0, err = 0;
    char architecture[40];
    nvrtcProgram program = NULL;
    size_t bytes = 0;
    cu.attribute(&major, COMPUTE_CAPABILITY_MAJOR, c->device);
    cu.attribute(&minor, COMPUTE_CAPABILITY_MINOR, c->device);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=compute_%d%d", major, minor);
    const char *const options[] = {architecture, "--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                   "--ftz=false"};
    if (nvrtc.create(&program, text, "kernel.cu", 0, NULL, NULL) != 0)
        return mx_fail(why, -ENOMEM, "NVRTC takes no program");
    if (nvrtc.compile(program, (int)(sizeof options / sizeof options[0]), options) != 0)
        err = say_log(c, program, why);
    else if (nvrtc.ptx_bytes(program, &bytes) != 0 || (*ptx = malloc(bytes + 1)) == NULL ||
             nvrtc.ptx(program, *ptx) != 0)
        err = mx_fail(why, -EIO, "NVRTC gives no PTX");
    nvrtc.destroy(&program);
    return err;
}

static int build(void *state, const struct mx_accel_program *p, mx_why *why) {
    struct cuda *c = state;
    char *ptx = NULL;
    cu.set_current(c->context);
    if (c->module != NULL) cu.unload(c->module);
    c->module = NULL;
    int err = compile(c, p->text, why, &ptx);
    CUresult e = err == 0 ? cu.load(&c->module, ptx) : 0;
    for (int32_t i = 0; i < p->n_names && err == 0 && e == 0; i++)
        e = cu.function(&c->kernel[i], c->module, p->names[i]);
    free(ptx);
    return err < 0 ? err : e != 0 ? fail(why, e) : 0;
}

/* ---- memory */

static int allocate(void *state, uint64_t bytes, mx_why *why, char **address) {
    struct cuda *c = state;
    CUdeviceptr p = 0;
    CUresult e = cu.set_current(c->context);
    if (e == 0) e = cu.alloc(&p, bytes);
    if (e != 0) return fail(why, e);
    return *address = (char *)(uintptr_t)p, 0;
}

static void release(void *state, char *address) {
    const struct cuda *c = state;
    cu.set_current(c->context);
    cu.release(there(address));
}

/* Not pinned, copies are as right, and slower. */
static int stage(void *state, void *host, uint64_t bytes, mx_why *why) {
    const struct cuda *c = state;
    (void)why;
    cu.set_current(c->context);
    cu.pin(host, bytes, 0);
    return 0;
}

static void unstage(void *state, void *host) {
    const struct cuda *c = state;
    cu.set_current(c->context);
    cu.unpin(host);
}

/* ---- open and close */

static void cuda_close(void *state) {
    struct cuda *c = state;
    if (c->context != NULL) cu.set_current(c->context);
    for (int i = 0; i < MX_ACCEL_QUEUES; i++) {
        struct queue *q = &c->queue[i];
        if (q->stream == NULL) continue;
        cu.stream_wait(q->stream);
        for (int64_t k = q->done; k < q->taken; k++) cu.event_end(q->event[k % q->capacity]);
        free(q->event);
        cu.stream_end(q->stream);
    }
    if (c->module != NULL) cu.unload(c->module);
    if (c->context != NULL) cu.give_back(c->device);
    free(c);
}

static int cuda_open(const char *keys, uint64_t memory_bytes, mx_why *why, void **state) {
    char text[32] = "0", *rest;
    CUdevice device;
    (void)memory_bytes;
    mx_accel_key(keys, "device", text, sizeof text);
    const long number = strtol(text, &rest, 10);
    if (rest == text || *rest != 0 || number < 0 || number > 1000)
        return mx_fail(why, -EINVAL, "--accel cuda: device=%.20s is no number of a device", text);
    int err = find_device((int)number, &device, why);
    if (err < 0) return err;
    struct cuda *c = calloc(1, sizeof *c);
    if (c == NULL) return mx_fail(why, -ENOMEM, "no memory for an accelerator");
    c->device = device;
    cu.device_name(c->name, sizeof c->name, device);
    CUresult e = cu.retain(&c->context, device);
    if (e == 0) e = cu.set_current(c->context);
    for (int i = 0; i < MX_ACCEL_QUEUES && e == 0; i++)
        e = cu.stream(&c->queue[i].stream, STREAM_NON_BLOCKING);
    if (e != 0) {
        fail(why, e);
        cuda_close(c);
        return -ENOTSUP;
    }
    return *state = c, 0;
}

static void facts(const void *state, struct mx_accel_facts *out) {
    const struct cuda *c = state;
    size_t free_bytes = 0, all = 0;
    cu.set_current(c->context);
    cu.memory(&free_bytes, &all);
    *out = (struct mx_accel_facts){.memory_bytes = free_bytes, .most_bytes = free_bytes};
    snprintf(out->device, sizeof out->device, "%s", c->name);
}

const struct mx_accel_ops mx_accel_cuda = {
    .name = "cuda",
    .summary = "devices of CUDA (driver and NVRTC; not yet tried on one)",
    .automatic = true,
    .probe = probe,
    .open = cuda_open,
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
    .close = cuda_close,
};
