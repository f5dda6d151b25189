/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.c - devices of CUDA: the driver (libcuda) and its run-time compiler (libnvrtc) are loaded when a user
 * asks for CUDA; cuda_api.h declares them, so a build needs no CUDA. On machines without a device, tests use
 * tests/fake_cuda instead.
 *
 * There are four streams, like the four queues of opencl.c. An event after each operation tells whether it is
 * done. Addresses are the device's own; no memory of the host has them. Calls come from several threads, one
 * at a time. Each call makes the context current and then restores the one that the thread had, since the
 * program around this library may use CUDA itself.
 *
 * The file stays whole: it is one vendor's interface, from loading it to closing it.
 */
#include "accel/accel.h"
#include "accel/cuda_api.h"
#include "accel/spec.h"

#include <memext/backend.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the libraries */

#define MEMBER(result, name, there, arguments) result(*name) arguments;
static struct { MX_CUDA_DRIVER(MEMBER) } cu;
static struct { MX_CUDA_COMPILER(MEMBER) } nvrtc;
static void *driver, *compiler;

#define LOAD_DRIVER(result, name, there, arguments)                                                          \
    if ((*(void **)&cu.name = dlsym(driver, #there)) == NULL) missing = #there;
#define LOAD_COMPILER(result, name, there, arguments)                                                        \
    if ((*(void **)&nvrtc.name = dlsym(compiler, #there)) == NULL) missing = #there;

/* That of the driver's own generation first: what a newer one makes an older driver does not load. */
static void *open_compiler(int driver_version) {
    static const char *const others[] = {
        "libnvrtc.so.11.2", "libnvrtc.so",    "/usr/local/cuda/lib64/libnvrtc.so",
        "libnvrtc.so.12",   "libnvrtc.so.13", NULL};
    void *library = NULL;
    for (int major = driver_version / 1000; major >= 12 && library == NULL; major--) {
        char name[40];
        snprintf(name, sizeof name, "libnvrtc.so.%d", major);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    for (int i = 0; others[i] != NULL && library == NULL; i++)
        library = dlopen(others[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int load_libraries(mx_why *why) {
    const char *missing = NULL;
    int version = 0;
    if (driver == NULL && (driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
        return mx_fail(why, -ENOTSUP, "libcuda.so.1 cannot be loaded: install the driver of NVIDIA");
    MX_CUDA_DRIVER(LOAD_DRIVER)
    if (missing != NULL)
        return mx_fail(why, -EIO,
                       "libcuda.so.1 has no %s: the driver is older than CUDA 11.2; install a newer driver",
                       missing);
    cu.version(&version);
    if (compiler == NULL && (compiler = open_compiler(version)) == NULL)
        return mx_fail(
            why, -ENOTSUP,
            "libnvrtc.so, which compiles the kernels, cannot be loaded: install NVRTC of the CUDA toolkit");
    MX_CUDA_COMPILER(LOAD_COMPILER)
    if (missing != NULL)
        return mx_fail(why, -EIO, "libnvrtc.so has no %s: it is older than CUDA 11.2; install a newer NVRTC",
                       missing);
    return 0;
}

static int fail(mx_why *why, CUresult err) {
    const char *text = NULL;
    if (cu.error_text(err, &text) != 0 || text == NULL)
        text = err == MX_CUDA_STUB ? "the library loaded is only the toolkit's stub for linking" : "unknown";
    return mx_fail(why, err == MX_CUDA_OUT_OF_MEMORY ? -ENOMEM : -EIO, "CUDA error %d, %s", err, text);
}

/* ---- a device */

enum { MOST_KERNELS = MX_ACCEL_KERNELS, MOST_PINS = 8 };

struct queue {
    CUstream stream;
    CUevent *event; /* of operation i at i % capacity; used again */
    int64_t capacity, taken, done;
};

struct cuda {
    CUdevice device;
    CUcontext context;
    char name[128];
    struct queue queue[MX_ACCEL_QUEUES];
    CUmodule module;
    CUfunction kernel[MOST_KERNELS];
    void *pinned[MOST_PINS];
    int64_t max_pitch, most_groups[3]; /* of a launch in x, y and z */
    uint64_t free_bytes;               /* when it was opened */
};

static CUresult enter(const struct cuda *c) { return cu.push(c->context); }
static void leave(void) {
    CUcontext context;
    cu.pop(&context);
}

static int find_device(int number, CUdevice *out, mx_why *why) {
    int n = 0, err = load_libraries(why);
    if (err < 0) return err;
    CUresult e = cu.init(0);
    if (e == 0) e = cu.count(&n);
    if (e != 0 && e != MX_CUDA_NO_DEVICE) {
        mx_why reason = {""};
        fail(&reason, e);
        return mx_fail(why, -EIO, "the driver of NVIDIA does not work: %.250s; check it with nvidia-smi",
                       reason.text);
    }
    if (n == 0) return mx_fail(why, -ENOTSUP, "CUDA finds no device here: check it with nvidia-smi");
    if (number >= n)
        return mx_fail(why, -EINVAL, "--accel cuda: there is no device=%d: the devices are 0 to %d", number,
                       n - 1);
    e = cu.device(out, number);
    return e != 0 ? (fail(why, e), -EIO) : 0;
}

static int probe(char *device, mx_why *why) {
    CUdevice d;
    int n = 0, err = find_device(0, &d, why);
    if (err < 0 || device == NULL) return err;
    if (cu.device_name(device, 90, d) != 0) snprintf(device, 128, "a device without a name");
    const size_t used = strlen(device);
    if (cu.count(&n) == 0 && n > 1) snprintf(device + used, 128 - used, " (device=0 of 0 to %d)", n - 1);
    return 0;
}

static int alike(int32_t *number, int most, mx_why *why) {
    CUdevice d;
    int n = 0, err = find_device(0, &d, why);
    if (err < 0) return err;
    if (cu.count(&n) != 0 || n < 1) n = 1;
    for (int i = 0; i < n && i < most; i++) number[i] = i;
    return n < most ? n : most;
}

/* ---- queues */

/* All its events are in use. */
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

/* Every operation is between these two. If begin fails, end is not called. */
static int begin(struct cuda *c, struct queue *q, mx_why *why) {
    if (q->taken - q->done == q->capacity && grow(q, why) < 0) return -ENOMEM;
    const CUresult e = enter(c);
    return e != 0 ? fail(why, e) : 0;
}

/* Of one that failed some part may be under way, which no event is of. */
static int end(struct queue *q, CUresult e, mx_why *why) {
    CUevent *event = &q->event[q->taken % q->capacity];
    if (e == 0 && *event == NULL) e = cu.event(event, MX_CUDA_EVENT_DISABLE_TIMING);
    if (e == 0) e = cu.record(*event, q->stream);
    if (e != 0) cu.stream_wait(q->stream);
    leave();
    if (e != 0) return fail(why, e);
    q->taken++;
    return 0;
}

static int64_t count_done(struct queue *q, mx_why *why) {
    while (q->done < q->taken) {
        const CUresult e = cu.query(q->event[q->done % q->capacity]);
        if (e == MX_CUDA_NOT_READY) break;
        if (e != 0) return fail(why, e);
        q->done++;
    }
    return q->done;
}

static int64_t done(void *state, enum mx_accel_queue queue, mx_why *why) {
    struct cuda *c = state;
    const CUresult e = enter(c);
    if (e != 0) return fail(why, e);
    const int64_t n = count_done(&c->queue[queue], why);
    leave();
    return n;
}

static int wait(void *state, enum mx_accel_queue queue, int64_t number, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[queue];
    if (number <= q->done || number > q->taken) return 0;
    CUresult e = enter(c);
    if (e != 0) return fail(why, e);
    e = cu.event_wait(q->event[(number - 1) % q->capacity]);
    if (e != 0)
        cu.stream_wait(q->stream);
    else
        q->done = number; /* what is before it in the stream is done as well */
    leave();
    return e != 0 ? fail(why, e) : 0;
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

/* A pitch may be longer than those of copies of rows. */
static CUresult copy_pieces(const struct cuda *c, const struct mx_accel_copy *p, CUstream stream) {
    CUresult e = 0;
    if (p->n > 1 && p->from_pitch <= c->max_pitch && p->to_pitch <= c->max_pitch) {
        const CUDA_MEMCPY2D m = {.srcMemoryType = MX_CUDA_MEMORY_DEVICE,
                                 .srcDevice = there(p->from),
                                 .srcPitch = (size_t)p->from_pitch,
                                 .dstMemoryType = MX_CUDA_MEMORY_DEVICE,
                                 .dstDevice = there(p->to),
                                 .dstPitch = (size_t)p->to_pitch,
                                 .WidthInBytes = (size_t)p->bytes,
                                 .Height = (size_t)p->n};
        return cu.copy_rows(&m, stream);
    }
    for (int64_t i = 0; i < p->n && e == 0; i++)
        e = cu.copy(there(p->to + i * p->to_pitch), there(p->from + i * p->from_pitch), (size_t)p->bytes,
                    stream);
    return e;
}

static int copy(void *state, enum mx_accel_queue queue, const struct mx_accel_copy *p, mx_why *why) {
    struct cuda *c = state;
    struct queue *q = &c->queue[queue];
    const int err = begin(c, q, why);
    return err < 0 ? err : end(q, copy_pieces(c, p, q->stream), why);
}

static int64_t groups(int64_t n, int64_t of) { return (n + of - 1) / of; }

static int level(void *state, const struct mx_accel_level *l, mx_why *why) {
    /* Rows of 64 cells, 4 of them, so that a line is read by few groups. */
    const int64_t x = l->group[0] > 0 ? l->group[0] : 64, y = l->group[0] > 0 ? l->group[1] : 4;
    const int64_t grid[3] = {groups(l->size[0], x), groups(l->size[1], y), l->size[2]};
    struct cuda *c = state;
    struct queue *q = &c->queue[MX_ACCEL_WORK];
    CUdeviceptr array[MX_ACCEL_ARRAYS];
    int64_t number[MX_ACCEL_NUMBERS];
    void *argument[MX_ACCEL_ARRAYS + MX_ACCEL_NUMBERS + 1] = {
        NULL}; /* ends with NULL, though the driver counts */
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (grid[i] > c->most_groups[i])
            return mx_fail(
                why, -ENOTSUP,
                "%lld work groups in %c are more than the %lld that a launch of this device allows",
                (long long)grid[i], "xyz"[i], (long long)c -> most_groups[i]);
    const int err = begin(c, q, why);
    if (err < 0) return err;
    for (int32_t i = 0; i < l->arrays; i++) array[i] = there(l->array[i]), argument[n++] = &array[i];
    for (int i = 0; i < MX_ACCEL_NUMBERS; i++) number[i] = l->number[i], argument[n++] = &number[i];
    return end(q,
               cu.launch(c->kernel[l->kernel], (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2],
                         (unsigned)x, (unsigned)y, 1, 0, q->stream, argument, NULL),
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

/* The architecture that the compiler knows and the device has, or the newest one below it: code for the
 * first, which drivers of the same generation load whatever their age; PTX for the second, which the driver
 * compiles on. 0: none. */
static int find_architecture(const struct cuda *c, int *of_device) {
    int major = 0, minor = 0, n = 0, known[256], best = 0;
    if (cu.attribute(&major, MX_CUDA_CAPABILITY_MAJOR, c->device) != 0) return 0;
    if (cu.attribute(&minor, MX_CUDA_CAPABILITY_MINOR, c->device) != 0) return 0;
    *of_device = 10 * major + minor;
    if (nvrtc.count_known(&n) != 0 || n > (int)(sizeof known / sizeof known[0]) || nvrtc.known(known) != 0)
        return 0;
    for (int i = 0; i < n; i++)
        if (known[i] <= *of_device && known[i] > best) best = known[i];
    return best;
}

static int take_code(nvrtcProgram program, bool binary, mx_why *why, char **code) {
    size_t bytes = 0;
    nvrtcResult e = (binary ? nvrtc.cubin_bytes : nvrtc.ptx_bytes)(program, &bytes);
    *code = e == 0 ? calloc(1, bytes + 1) : NULL;
    if (*code != NULL) e = (binary ? nvrtc.cubin : nvrtc.ptx)(program, *code);
    return e != 0 || *code == NULL ? mx_fail(why, -EIO,
                                             "NVRTC compiled the kernel but returned no code for it: install "
                                             "another NVRTC, or leave --accel out")
                                   : 0;
}

static int compile(const struct cuda *c, const char *text, mx_why *why, char **code) {
    int err = 0, of_device = 0;
    const int arch = find_architecture(c, &of_device);
    const bool binary = arch == of_device;
    char architecture[40];
    nvrtcProgram program = NULL;
    if (arch == 0)
        return mx_fail(why, -ENOTSUP,
                       "this NVRTC cannot compile for %.80s, compute capability %d.%d: install one that can, "
                       "or leave --accel out",
                       c->name, of_device / 10, of_device % 10);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s_%d", binary ? "sm" : "compute", arch);
    /* The last: functions and tables of a cell's file, which is C, say nothing of where they are for. */
    const char *const options[] = {architecture,       "--fmad=false", "--prec-div=true",
                                   "--prec-sqrt=true", "--ftz=false",  "--device-as-default-execution-space"};
    if (nvrtc.create(&program, text, "kernel.cu", 0, NULL, NULL) != 0)
        return mx_fail(
            why, -ENOMEM,
            "NVRTC refused the kernel's text without a reason: install another NVRTC, or leave --accel out");
    if (nvrtc.compile(program, (int)(sizeof options / sizeof options[0]), options) != 0)
        err = say_log(c, program, why);
    else
        err = take_code(program, binary, why, code);
    nvrtc.destroy(&program);
    return err;
}

static int load(struct cuda *c, const char *code, const struct mx_accel_program *p, mx_why *why) {
    CUresult e = enter(c);
    if (e != 0) return fail(why, e);
    if (c->module != NULL) cu.unload(c->module);
    c->module = NULL;
    e = cu.load(&c->module, code);
    if (e != 0) c->module = NULL;
    for (int32_t i = 0; i < p->n_names && e == 0; i++) e = cu.function(&c->kernel[i], c->module, p->names[i]);
    leave();
    if (e == MX_CUDA_UNSUPPORTED_PTX || e == MX_CUDA_NO_BINARY_FOR_GPU || e == MX_CUDA_INVALID_IMAGE ||
        e == MX_CUDA_INVALID_PTX)
        return mx_fail(why, -EIO,
                       "the driver of %.80s does not load code of the NVRTC here (CUDA error %d): install a "
                       "newer driver, or the NVRTC of the driver's version",
                       c->name, e);
    if (e == 0) return 0;
    mx_why reason = {""};
    const int err = fail(&reason, e);
    return mx_fail(why, err, "%.100s does not load the kernel: %.200s", c->name, reason.text);
}

static int build(void *state, const struct mx_accel_program *p, mx_why *why) {
    struct cuda *c = state;
    char *code = NULL;
    int err = compile(c, p->text, why, &code);
    if (err == 0) err = load(c, code, p, why);
    free(code);
    return err;
}

/* ---- memory */

static int allocate(void *state, uint64_t bytes, mx_why *why, char **address) {
    const struct cuda *c = state;
    CUdeviceptr p = 0;
    CUresult e = enter(c);
    if (e != 0) return fail(why, e);
    e = cu.alloc(&p, bytes);
    leave();
    if (e != 0) return fail(why, e);
    return *address = (char *)(uintptr_t)p, 0;
}

static void release(void *state, char *address) {
    const struct cuda *c = state;
    if (enter(c) != 0) return;
    cu.release(there(address));
    leave();
}

static int stage(void *state, void *host, uint64_t bytes, mx_why *why) {
    struct cuda *c = state;
    int i = 0;
    (void)why;
    while (i < MOST_PINS && c->pinned[i] != NULL) i++;
    if (i == MOST_PINS || enter(c) != 0) return 0;
    if (cu.pin(host, bytes, 0) == 0) c->pinned[i] = host;
    leave();
    return c->pinned[i] != NULL;
}

static void unstage(void *state, void *host) {
    struct cuda *c = state;
    for (int i = 0; i < MOST_PINS; i++)
        if (c->pinned[i] == host && enter(c) == 0) {
            cu.unpin(host);
            leave();
            c->pinned[i] = NULL;
        }
}

/* ---- open and close */

static void close_queue(struct queue *q) {
    if (q->stream != NULL) {
        cu.stream_wait(q->stream);
        for (int64_t i = 0; i < q->capacity; i++)
            if (q->event[i] != NULL) cu.event_end(q->event[i]);
        cu.stream_end(q->stream);
    }
    free(q->event);
}

static void cuda_close(void *state) {
    struct cuda *c = state;
    if (c->context != NULL) {
        const bool entered = enter(c) == 0;
        for (int i = 0; i < MX_ACCEL_QUEUES; i++) close_queue(&c->queue[i]);
        if (c->module != NULL) cu.unload(c->module);
        if (entered) leave();
        cu.give_back(c->device);
    }
    free(c);
}

static CUresult take_limits(struct cuda *c) {
    int value = 0;
    CUresult e = cu.attribute(&value, MX_CUDA_MAX_PITCH, c->device);
    c->max_pitch = value;
    for (int i = 0; i < 3 && e == 0; i++) {
        e = cu.attribute(&value, MX_CUDA_MAX_GROUPS_X + i, c->device);
        c->most_groups[i] = value;
    }
    return e;
}

static CUresult open_queues(struct cuda *c) {
    size_t all, left = 0;
    CUresult e = take_limits(c);
    if (e == 0) e = cu.retain(&c->context, c->device);
    if (e != 0) return c->context = NULL, e;
    if ((e = enter(c)) != 0) return e;
    e = cu.memory(&left, &all);
    c->free_bytes = left;
    for (int i = 0; i < MX_ACCEL_QUEUES && e == 0; i++) {
        e = cu.stream(&c->queue[i].stream, MX_CUDA_STREAM_NON_BLOCKING);
        if (e != 0) c->queue[i].stream = NULL;
    }
    leave();
    return e;
}

static int cuda_open(const char *keys, uint64_t memory_bytes, mx_why *why, void **state) {
    char text[32] = "0", *rest;
    CUdevice device;
    (void)memory_bytes;
    mx_accel_key(keys, "device", text, sizeof text);
    const long number = strtol(text, &rest, 10);
    if (rest == text || *rest != 0 || number < 0 || number > 1000)
        return mx_fail(why, -EINVAL, "--accel cuda: device=%.20s is not the number of a device, from 0",
                       text);
    int err = find_device((int)number, &device, why);
    if (err < 0) return err;
    struct cuda *c = calloc(1, sizeof *c);
    if (c == NULL) return mx_fail(why, -ENOMEM, "no memory for an accelerator");
    c->device = device;
    if (cu.device_name(c->name, sizeof c->name, device) != 0)
        snprintf(c->name, sizeof c->name, "CUDA device %ld", number);
    const CUresult e = open_queues(c);
    if (e != 0) {
        mx_why reason = {""};
        fail(&reason, e);
        mx_fail(why, -EIO, "%.100s cannot be opened: %.200s", c->name, reason.text);
        cuda_close(c);
        return -EIO;
    }
    return *state = c, 0;
}

/* Of what is free the driver needs some itself, for code and stacks of kernels, and each allocation is
 * rounded up to 2 MiB. */
static uint64_t usable(uint64_t free_bytes) {
    const uint64_t most = UINT64_C(512) << 20, share = free_bytes / 16;
    return free_bytes - (share < most ? share : most);
}

static void facts(const void *state, struct mx_accel_facts *out) {
    const struct cuda *c = state;
    const uint64_t bytes = usable(c->free_bytes);
    *out = (struct mx_accel_facts){.memory_bytes = bytes,
                                   .most_bytes = bytes,
                                   .most_planes = c->most_groups[2],
                                   .most_group = 1024}; /* of every device that NVRTC compiles for */
    snprintf(out->device, sizeof out->device, "%s", c->name);
}

const struct mx_accel_ops mx_accel_cuda = {
    .name = "cuda",
    .summary = "devices of CUDA (driver and NVRTC)",
    .automatic = true,
    .probe = probe,
    .alike = alike,
    .open = cuda_open,
    .facts = facts,
    .alloc = allocate,
    .release = release,
    .stage = stage,
    .unstage = unstage,
    .pins_several = true,
    .build = build,
    .put = put,
    .get = get,
    .copy = copy,
    .level = level,
    .done = done,
    .wait = wait,
    .close = cuda_close,
};
