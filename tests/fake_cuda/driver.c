/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - libcuda.so.1 of tests: fake_cuda.h. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    LAUNCH_FAILED = 719
};
enum {
    MOST_DEVICES = 4,
    MOST_ALLOCATIONS = 64,
    MOST_PINS = 16,
    MOST_ARGUMENTS = 40,
    STACK_BYTES = 256 << 10,
    PAGE = 4096
};

static const uint64_t there = UINT64_C(1) << 56; /* an address of the device is one of the host and this */

/* ---- what is asked for */

static struct fake_cuda now = {.devices = 1,
                               .bytes = 256 << 20,
                               .error = LAUNCH_FAILED,
                               .max_pitch = INT32_MAX,
                               .max_planes = 65535,
                               .arch = 90,
                               .version = 12020};
static int64_t calls, launches, left;
static const char *failed;
static const char *keep; /* the folder where images go */
static bool initialised, dead;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_defaults(void) {
    if (now.devices == 0) now.devices = 1;
    if (now.devices < 0) now.devices = 0; /* none */
    if (now.bytes == 0) now.bytes = 256 << 20;
    if (now.error == 0) now.error = LAUNCH_FAILED;
    if (now.max_pitch == 0) now.max_pitch = INT32_MAX;
    if (now.max_planes == 0) now.max_planes = 65535;
    if (now.arch == 0) now.arch = 90;
    if (now.version == 0) now.version = 12020;
}

API int64_t fake_cuda_calls(void) { return calls; }
API const char *fake_cuda_failed(void) { return failed; }
API int64_t fake_cuda_launches(void) { return launches; }
API int64_t fake_cuda_left(void) { return left; }

__attribute__((constructor)) static void read_environment(void) {
    static char text[400];
    const char *words = getenv("FAKE_CUDA");
    if (words == NULL) return;
    snprintf(text, sizeof text, "%s", words);
    char *rest = NULL;
    now = (struct fake_cuda){0};
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(word, '=');
        if (value == NULL) continue;
        *value++ = 0;
        const long long n = atoll(value);
        if (strcmp(word, "devices") == 0) now.devices = n == 0 ? -1 : (int)n;
        if (strcmp(word, "bytes") == 0) now.bytes = (uint64_t)n;
        if (strcmp(word, "late") == 0) now.late = n != 0;
        if (strcmp(word, "fail") == 0) now.fail = n;
        if (strcmp(word, "name") == 0) now.name = value;
        if (strcmp(word, "error") == 0) now.error = (int)n;
        if (strcmp(word, "sticky") == 0) now.sticky = n != 0;
        if (strcmp(word, "max_pitch") == 0) now.max_pitch = (int)n;
        if (strcmp(word, "max_planes") == 0) now.max_planes = (int)n;
        if (strcmp(word, "arch") == 0) now.arch = (int)n;
        if (strcmp(word, "version") == 0) now.version = (int)n;
        if (strcmp(word, "keep") == 0) keep = value;
    }
    take_defaults();
}

/* Of the compiler too: is this call the one that fails? */
API int fake_cuda_begin(const char *name) {
    if (now.name == NULL || strcmp(now.name, name) == 0) calls++;
    const bool counted = now.name == NULL || strcmp(now.name, name) == 0;
    if (counted && calls == now.fail) {
        failed = name;
        dead = now.sticky;
        return now.error;
    }
    return dead ? now.error : SUCCESS;
}

#define BEGIN(name)                                                                                          \
    do {                                                                                                     \
        const CUresult asked = fake_cuda_begin(name);                                                        \
        if (asked != SUCCESS) return asked;                                                                  \
        if (!initialised) return NOT_INITIALIZED;                                                            \
    } while (0)

/* ---- contexts */

struct context {
    int retained;
    uint64_t used;
};
struct event;
struct module {
    void *library;
    struct context *context;
};
struct operation {
    struct operation *next;
    enum { COPY, LAUNCH, RECORD } kind;
    char *to;
    const char *from;
    size_t bytes, to_pitch, from_pitch, n;
    struct event *event;
    struct function *function;
    unsigned grid[3], block[3];
    int64_t argument[MOST_ARGUMENTS];
};
struct stream {
    struct context *context;
    struct operation *first, *last;
};
struct event {
    struct context *context;
    struct stream *stream; /* that it was recorded in last and is not reached in */
    int asked;
};
struct function {
    struct module *module;
    void (*code)(void);
    void (*place)(const unsigned *, const unsigned *, const unsigned *, const unsigned *, void (*)(void));
    bool waits; /* its work items wait for one another */
};

static struct context contexts[MOST_DEVICES];
enum { MOST_PUSHED = 16 };
static __thread struct context *current, *before[MOST_PUSHED];
static __thread int pushed;

#define CONTEXT(name)                                                                                        \
    BEGIN(name);                                                                                             \
    if (current == NULL || current->retained == 0) return INVALID_CONTEXT

/* ---- devices */

API CUresult cuDriverGetVersion(int *version) { return *version = now.version, SUCCESS; }

API CUresult cuInit(unsigned flags) {
    const CUresult err = fake_cuda_begin("cuInit");
    if (err != SUCCESS) return err;
    if (flags != 0) return INVALID_VALUE;
    if (now.devices == 0) return NO_DEVICE;
    initialised = true;
    return SUCCESS;
}

/* A compiler of NVIDIA's asks the driver for tables that nobody documents, and does without. */
API CUresult cuGetExportTable(const void **table, const void *id) {
    (void)id;
    return *table = NULL, NOT_FOUND;
}

API CUresult cuDeviceGetCount(int *n) {
    BEGIN("cuDeviceGetCount");
    *n = now.devices;
    return SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int number) {
    BEGIN("cuDeviceGet");
    if (number < 0 || number >= now.devices) return INVALID_DEVICE;
    *device = number;
    return SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
    BEGIN("cuDeviceGetName");
    if (device < 0 || device >= now.devices) return INVALID_DEVICE;
    snprintf(name, (size_t)capacity, "fake device %d", device);
    return SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    BEGIN("cuDeviceGetAttribute");
    if (device < 0 || device >= now.devices) return INVALID_DEVICE;
    switch (attribute) {
    case 5:
        return *value = INT32_MAX, SUCCESS;
    case 6:
        return *value = 65535, SUCCESS;
    case 7:
        return *value = now.max_planes, SUCCESS;
    case 11:
        return *value = now.max_pitch, SUCCESS;
    case 75:
        return *value = now.arch / 10, SUCCESS;
    case 76:
        return *value = now.arch % 10, SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

API CUresult cuDevicePrimaryCtxRetain(struct context **out, CUdevice device) {
    BEGIN("cuDevicePrimaryCtxRetain");
    if (device < 0 || device >= now.devices) return INVALID_DEVICE;
    contexts[device].retained++;
    left++;
    *out = &contexts[device];
    return SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    BEGIN("cuDevicePrimaryCtxRelease_v2");
    if (device < 0 || device >= now.devices || contexts[device].retained == 0) return INVALID_CONTEXT;
    contexts[device].retained--;
    left--;
    return SUCCESS;
}

/* A push that no pop follows is left over at the end. */
API CUresult cuCtxPushCurrent_v2(struct context *context) {
    BEGIN("cuCtxPushCurrent_v2");
    if (context == NULL || context->retained == 0) return INVALID_CONTEXT;
    if (pushed == MOST_PUSHED) return INVALID_VALUE;
    before[pushed++] = current;
    current = context;
    left++;
    return SUCCESS;
}

/* (Where it is the one to fail, the context is popped all the same: a thread whose context stays another's is
 * no test of errors.) */
API CUresult cuCtxPopCurrent_v2(struct context **out) {
    const CUresult asked = fake_cuda_begin("cuCtxPopCurrent_v2");
    if (pushed == 0) return INVALID_CONTEXT;
    if (out != NULL) *out = current;
    current = before[--pushed];
    left--;
    return asked;
}

/* ---- memory */

static struct {
    char *base, *range;
    uint64_t bytes, range_bytes;
    struct context *context;
} allocations[MOST_ALLOCATIONS];
static struct {
    char *base;
    size_t bytes;
} pins[MOST_PINS];

/* What the host calls it; NULL where it is not all in one allocation. */
static char *here(CUdeviceptr address, uint64_t bytes) {
    char *p = (char *)(uintptr_t)(address & ~there);
    if (!(address & there)) return NULL;
    for (int i = 0; i < MOST_ALLOCATIONS; i++)
        if (allocations[i].base != NULL && allocations[i].context == current && p >= allocations[i].base &&
            bytes <= allocations[i].bytes && p + bytes <= allocations[i].base + allocations[i].bytes)
            return p;
    return NULL;
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *all) {
    CONTEXT("cuMemGetInfo_v2");
    *all = now.bytes;
    *free_bytes = now.bytes - current->used;
    return SUCCESS;
}

/* Ends where a page does that cannot be touched, up to the alignment of 256. */
API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    int i = 0;
    CONTEXT("cuMemAlloc_v2");
    while (i < MOST_ALLOCATIONS && allocations[i].base != NULL) i++;
    if (bytes == 0) return INVALID_VALUE;
    if (i == MOST_ALLOCATIONS || current->used + bytes > now.bytes) return OUT_OF_MEMORY;
    const uint64_t aligned = (bytes + 255) / 256 * 256, inside = (aligned + PAGE - 1) / PAGE * PAGE;
    char *range = mmap(NULL, inside + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED || mprotect(range + PAGE, inside, PROT_READ | PROT_WRITE) != 0)
        return OUT_OF_MEMORY;
    memset(range + PAGE, 0xff, inside);
    allocations[i].range = range;
    allocations[i].range_bytes = inside + 2 * PAGE;
    allocations[i].base = range + PAGE + inside - aligned;
    allocations[i].bytes = bytes;
    allocations[i].context = current;
    current->used += bytes;
    left++;
    *out = (CUdeviceptr)(uintptr_t)allocations[i].base | there;
    return SUCCESS;
}

API CUresult cuMemHostRegister_v2(void *base, size_t bytes, unsigned flags) {
    CONTEXT("cuMemHostRegister_v2");
    int i = 0;
    if (base == NULL || bytes == 0 || flags > 0xf) return INVALID_VALUE;
    for (int k = 0; k < MOST_PINS; k++)
        if (pins[k].base == base) return ALREADY_REGISTERED;
    while (i < MOST_PINS && pins[i].base != NULL) i++;
    if (i == MOST_PINS) return OUT_OF_MEMORY;
    pins[i].base = base;
    pins[i].bytes = bytes;
    left++;
    return SUCCESS;
}

API CUresult cuMemHostUnregister(void *base) {
    CONTEXT("cuMemHostUnregister");
    for (int i = 0; i < MOST_PINS; i++)
        if (pins[i].base == base && base != NULL) {
            pins[i].base = NULL;
            left--;
            return SUCCESS;
        }
    return NOT_REGISTERED;
}

/* ---- kernels: work items of a group in turns, each on a stack of its own where they wait for one another */

static ucontext_t scheduler, *running;
static struct {
    ucontext_t context;
    char *stack;
    bool over;
} * items;
static const struct operation *launched;

static void call(const struct operation *o) {
    const int64_t *a = o->argument;
    ((void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
               int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
               int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
               int64_t, int64_t))o->function->code)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8],
                                                    a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
                                                    a[17], a[18], a[19], a[20], a[21], a[22], a[23], a[24],
                                                    a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
}

static void yield(void) { swapcontext(running, &scheduler); }
static void no_yield(void) {}

static void item(int i) {
    call(launched);
    items[i].over = true;
}

/* By itself, for getcontext may return twice, as the compiler sees it. */
static void make_item(unsigned i) {
    items[i].stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    getcontext(&items[i].context);
    items[i].context.uc_stack.ss_sp = items[i].stack;
    items[i].context.uc_stack.ss_size = STACK_BYTES;
    items[i].context.uc_link = &scheduler;
    makecontext(&items[i].context, (void (*)(void))item, 1, (int)i);
}

static void run_waiting_group(const struct operation *o, const unsigned at[3]) {
    const unsigned n = o->block[0] * o->block[1] * o->block[2];
    unsigned over = 0;
    launched = o;
    items = calloc(n, sizeof *items);
    for (unsigned i = 0; i < n; i++) make_item(i);
    while (over < n)
        for (unsigned i = 0; i < n; i++) {
            const unsigned me[3] = {i % o->block[0], i / o->block[0] % o->block[1],
                                    i / o->block[0] / o->block[1]};
            if (items[i].over) continue;
            o->function->place(at, me, o->block, o->grid, yield);
            running = &items[i].context;
            swapcontext(&scheduler, running);
            over += items[i].over;
        }
    for (unsigned i = 0; i < n; i++) munmap(items[i].stack, STACK_BYTES);
    free(items);
}

static void run_group(const struct operation *o, const unsigned at[3]) {
    unsigned me[3];
    for (me[2] = 0; me[2] < o->block[2]; me[2]++)
        for (me[1] = 0; me[1] < o->block[1]; me[1]++)
            for (me[0] = 0; me[0] < o->block[0]; me[0]++) {
                o->function->place(at, me, o->block, o->grid, no_yield);
                call(o);
            }
}

static void run_kernel(const struct operation *o) {
    unsigned at[3];
    for (at[2] = 0; at[2] < o->grid[2]; at[2]++)
        for (at[1] = 0; at[1] < o->grid[1]; at[1]++)
            for (at[0] = 0; at[0] < o->grid[0]; at[0]++)
                (o->function->waits ? run_waiting_group : run_group)(o, at);
}

static int nibble(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An image of a real compiler, ELF or PTX: nothing says how long it is but itself. */
static size_t image_bytes(const char *image) {
    Elf64_Ehdr head;
    if (memcmp(image, ELFMAG, SELFMAG) != 0) return strlen(image);
    memcpy(&head, image, sizeof head);
    size_t end = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
    for (int i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + head.e_shoff + (size_t)i * head.e_shentsize, sizeof section);
        const size_t there_end = section.sh_offset + section.sh_size;
        if (section.sh_type != SHT_NOBITS && there_end > end) end = there_end;
    }
    const size_t segments = head.e_phoff + (size_t)head.e_phnum * head.e_phentsize;
    return segments > end ? segments : end;
}

static CUresult keep_image(const char *image) {
    char path[500];
    snprintf(path, sizeof path, "%s/%s", keep, memcmp(image, ELFMAG, SELFMAG) == 0 ? "cubin" : "ptx");
    FILE *f = fopen(path, "wb");
    if (f == NULL) return OUT_OF_MEMORY;
    fwrite(image, 1, image_bytes(image), f);
    fclose(f);
    return INVALID_IMAGE;
}

/* The image is text of the fake compiler: a line, and a library of this machine in hexadecimal digits. */
API CUresult cuModuleLoadData(struct module **out, const void *image) {
    CONTEXT("cuModuleLoadData");
    const char *text = strchr(image, '\n');
    char path[64];
    if (keep != NULL) return keep_image(image);
    if (strncmp(image, "// fake ", 8) != 0 || text == NULL) return INVALID_IMAGE;
    const int file = memfd_create("kernel", MFD_CLOEXEC);
    FILE *f = file >= 0 ? fdopen(file, "wb") : NULL;
    if (f == NULL) return OUT_OF_MEMORY;
    for (text++; nibble(text[0]) >= 0 && nibble(text[1]) >= 0; text += 2)
        fputc(nibble(text[0]) << 4 | nibble(text[1]), f);
    fflush(f);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "fake cuda: %s\n", dlerror());
    fclose(f);
    if (library == NULL) return INVALID_IMAGE;
    struct module *m = malloc(sizeof *m);
    *m = (struct module){library, current};
    left++;
    *out = m;
    return SUCCESS;
}

API CUresult cuModuleUnload(struct module *m) {
    CONTEXT("cuModuleUnload");
    if (m == NULL || m->context != current) return INVALID_HANDLE;
    dlclose(m->library); /* functions of it are forgotten, not freed: few */
    free(m);
    left--;
    return SUCCESS;
}

API CUresult cuModuleGetFunction(struct function **out, struct module *m, const char *name) {
    CONTEXT("cuModuleGetFunction");
    static struct function functions[4096];
    static int n;
    if (m == NULL || m->context != current) return INVALID_HANDLE;
    struct function *f = &functions[n++ % 4096];
    *f = (struct function){.module = m, .waits = strcmp(name, "mx_fused") == 0};
    *(void **)&f->code = dlsym(m->library, name);
    *(void **)&f->place = dlsym(m->library, "fake_place");
    if (f->code == NULL || f->place == NULL) return NOT_FOUND;
    *out = f;
    return SUCCESS;
}

/* ---- streams and events */

static void do_operation(struct operation *o) {
    if (o->kind == COPY)
        for (size_t i = 0; i < o->n; i++)
            memcpy(o->to + i * o->to_pitch, o->from + i * o->from_pitch, o->bytes);
    if (o->kind == LAUNCH) run_kernel(o);
    if (o->kind == RECORD && o->event != NULL) o->event->stream = NULL;
    free(o);
}

/* Up to where the event is reached; NULL: all. */
static void run_stream(struct stream *s, const struct event *until) {
    pthread_mutex_lock(&lock);
    while (s->first != NULL && (until == NULL || until->stream != NULL)) {
        struct operation *o = s->first;
        s->first = o->next;
        do_operation(o);
    }
    pthread_mutex_unlock(&lock);
}

static CUresult hand_over(struct stream *s, const struct operation *operation) {
    if (s == NULL || s->context != current) return INVALID_HANDLE;
    struct operation *o = malloc(sizeof *o);
    *o = *operation;
    o->next = NULL;
    if (s->first == NULL)
        s->first = o;
    else
        s->last->next = o;
    s->last = o;
    if (!now.late) run_stream(s, NULL);
    return SUCCESS;
}

static struct stream *streams[64];

/* What somebody who failed has left is not the next one's. */
static void forget(void) {
    for (int i = 0; i < MOST_ALLOCATIONS; i++)
        if (allocations[i].base != NULL) munmap(allocations[i].range, allocations[i].range_bytes);
    memset(allocations, 0, sizeof allocations);
    memset(pins, 0, sizeof pins);
    memset(streams, 0, sizeof streams);
    memset(contexts, 0, sizeof contexts);
    current = NULL;
    pushed = 0;
    left = 0;
}

API void fake_cuda_set(const struct fake_cuda *to) {
    now = *to;
    take_defaults();
    calls = launches = 0;
    failed = NULL;
    dead = initialised = false;
    forget();
}

API CUresult cuStreamCreate(struct stream **out, unsigned flags) {
    CONTEXT("cuStreamCreate");
    if (flags > 1) return INVALID_VALUE;
    struct stream *s = calloc(1, sizeof *s);
    s->context = current;
    for (int i = 0; i < 64; i++)
        if (streams[i] == NULL) {
            streams[i] = s;
            break;
        }
    left++;
    *out = s;
    return SUCCESS;
}

API CUresult cuStreamSynchronize(struct stream *s) {
    CONTEXT("cuStreamSynchronize");
    if (s == NULL || s->context != current) return INVALID_HANDLE;
    run_stream(s, NULL);
    return SUCCESS;
}

API CUresult cuStreamDestroy_v2(struct stream *s) {
    CONTEXT("cuStreamDestroy_v2");
    if (s == NULL || s->context != current) return INVALID_HANDLE;
    run_stream(s, NULL);
    for (int i = 0; i < 64; i++)
        if (streams[i] == s) streams[i] = NULL;
    free(s);
    left--;
    return SUCCESS;
}

API CUresult cuEventCreate(struct event **out, unsigned flags) {
    CONTEXT("cuEventCreate");
    if (flags > 7) return INVALID_VALUE;
    struct event *e = calloc(1, sizeof *e);
    e->context = current;
    left++;
    *out = e;
    return SUCCESS;
}

API CUresult cuEventRecord(struct event *e, struct stream *s) {
    CONTEXT("cuEventRecord");
    if (e == NULL || e->context != current) return INVALID_HANDLE;
    e->stream = s;
    e->asked = 0;
    return hand_over(s, &(struct operation){.kind = RECORD, .event = e});
}

API CUresult cuEventQuery(struct event *e) {
    CONTEXT("cuEventQuery");
    if (e == NULL || e->context != current) return INVALID_HANDLE;
    if (e->stream == NULL) return SUCCESS;
    if (e->asked++ == 0) return NOT_READY;
    run_stream(e->stream, e);
    return SUCCESS;
}

API CUresult cuEventSynchronize(struct event *e) {
    CONTEXT("cuEventSynchronize");
    if (e == NULL || e->context != current) return INVALID_HANDLE;
    if (e->stream != NULL) run_stream(e->stream, e);
    return SUCCESS;
}

API CUresult cuEventDestroy_v2(struct event *e) {
    CONTEXT("cuEventDestroy_v2");
    if (e == NULL || e->context != current) return INVALID_HANDLE;
    for (struct operation *o = e->stream != NULL ? e->stream->first : NULL; o != NULL; o = o->next)
        if (o->event == e) o->event = NULL;
    free(e);
    left--;
    return SUCCESS;
}

/* Everything before it is done then. */
API CUresult cuMemFree_v2(CUdeviceptr address) {
    CONTEXT("cuMemFree_v2");
    char *p = here(address, 0);
    for (int i = 0; i < 64; i++)
        if (streams[i] != NULL && streams[i]->context == current) run_stream(streams[i], NULL);
    for (int i = 0; i < MOST_ALLOCATIONS; i++)
        if (p != NULL && allocations[i].base == p) {
            munmap(allocations[i].range, allocations[i].range_bytes);
            allocations[i].base = NULL;
            current->used -= allocations[i].bytes;
            left--;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

/* ---- operations */

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, struct stream *s) {
    CONTEXT("cuMemcpyHtoDAsync_v2");
    char *p = here(to, bytes);
    if (p == NULL || from == NULL) return INVALID_VALUE;
    return hand_over(s, &(struct operation){.kind = COPY, .to = p, .from = from, .bytes = bytes, .n = 1});
}

API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, struct stream *s) {
    CONTEXT("cuMemcpyDtoHAsync_v2");
    const char *p = here(from, bytes);
    if (p == NULL || to == NULL) return INVALID_VALUE;
    return hand_over(s, &(struct operation){.kind = COPY, .to = to, .from = p, .bytes = bytes, .n = 1});
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, struct stream *s) {
    CONTEXT("cuMemcpyDtoDAsync_v2");
    char *p = here(to, bytes);
    const char *q = here(from, bytes);
    if (p == NULL || q == NULL) return INVALID_VALUE;
    return hand_over(s, &(struct operation){.kind = COPY, .to = p, .from = q, .bytes = bytes, .n = 1});
}

struct copy_2d {
    size_t src_x, src_y;
    unsigned src_type;
    const void *src_host;
    CUdeviceptr src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    unsigned dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};

API CUresult cuMemcpy2DAsync_v2(const struct copy_2d *c, struct stream *s) {
    CONTEXT("cuMemcpy2DAsync_v2");
    if (c->src_type != 2 || c->dst_type != 2 || c->height == 0 || c->width == 0) return INVALID_VALUE;
    if (c->src_pitch < c->src_x + c->width || c->dst_pitch < c->dst_x + c->width) return INVALID_VALUE;
    if (c->src_pitch > (size_t)now.max_pitch || c->dst_pitch > (size_t)now.max_pitch) return INVALID_VALUE;
    const char *q =
        here(c->src_device + c->src_y * c->src_pitch + c->src_x, (c->height - 1) * c->src_pitch + c->width);
    char *p =
        here(c->dst_device + c->dst_y * c->dst_pitch + c->dst_x, (c->height - 1) * c->dst_pitch + c->width);
    if (p == NULL || q == NULL) return INVALID_VALUE;
    return hand_over(s, &(struct operation){.kind = COPY,
                                            .to = p,
                                            .from = q,
                                            .bytes = c->width,
                                            .to_pitch = c->dst_pitch,
                                            .from_pitch = c->src_pitch,
                                            .n = c->height});
}

/* The arguments of this project's kernels are all of 8 bytes, and its list of them ends with NULL. */
API CUresult cuLaunchKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, struct stream *s, void **arguments,
                            void **extra) {
    CONTEXT("cuLaunchKernel");
    struct operation o = {.kind = LAUNCH, .function = f, .grid = {gx, gy, gz}, .block = {bx, by, bz}};
    if (f == NULL || f->module->context != current) return INVALID_HANDLE;
    if (gx == 0 || gy == 0 || gz == 0 || bx == 0 || by == 0 || bz == 0 || extra != NULL || shared > 48 << 10)
        return INVALID_VALUE;
    if (gx > INT32_MAX || gy > 65535 || gz > (unsigned)now.max_planes || bx > 1024 || by > 1024 || bz > 64 ||
        bx * by * bz > 1024)
        return INVALID_VALUE;
    for (int i = 0; arguments[i] != NULL; i++) {
        if (i == 32) return INVALID_VALUE;
        memcpy(&o.argument[i], arguments[i], sizeof o.argument[i]);
        if ((uint64_t)o.argument[i] >> 56 != 1) continue; /* a number */
        o.argument[i] = (int64_t)(uintptr_t)here((CUdeviceptr)o.argument[i], 1);
        if (o.argument[i] == 0) return ILLEGAL_ADDRESS;
    }
    launches++;
    return hand_over(s, &o);
}

API CUresult cuGetErrorString(CUresult err, const char **text) {
    static const struct {
        CUresult err;
        const char *text;
    } texts[] = {{INVALID_VALUE, "invalid argument"},
                 {OUT_OF_MEMORY, "out of memory"},
                 {NOT_INITIALIZED, "initialization error"},
                 {NO_DEVICE, "no CUDA-capable device is detected"},
                 {INVALID_CONTEXT, "invalid device context"},
                 {INVALID_HANDLE, "invalid resource handle"},
                 {ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
                 {LAUNCH_FAILED, "unspecified launch failure"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].err == err) return *text = texts[i].text, SUCCESS;
    return *text = NULL, INVALID_VALUE;
}
