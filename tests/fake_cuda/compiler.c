/* SPDX-License-Identifier: BSD-3-Clause */
/* compiler.c - libnvrtc.so of tests: fake_cuda.h. What it compiles is C++ of this machine. */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define API __attribute__((visibility("default")))

extern char **environ;
extern int fake_cuda_begin(const char *name); /* of the driver */

typedef int nvrtcResult;
enum { SUCCESS = 0, INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION = 6 };
enum { NEWEST = 90 }; /* architecture that it knows */

static const char prelude[] =
    "#include <math.h>\n" /* overloaded, as there */
    "struct fake_three { unsigned x, y, z; };\n"
    "static fake_three blockIdx, threadIdx, blockDim, gridDim;\n"
    "static void (*fake_barrier)();\n"
    "static void fake_take(fake_three *to, const unsigned *from) { to->x = "
    "from[0], to->y = from[1], to->z = from[2]; }\n"
    "extern \"C\" void fake_place(const unsigned *group, const unsigned *item, "
    "const unsigned *size, const unsigned *grid, void (*barrier)()) {\n"
    "    fake_take(&blockIdx, group), fake_take(&threadIdx, item), "
    "fake_take(&blockDim, size), fake_take(&gridDim, grid);\n"
    "    fake_barrier = barrier;\n"
    "}\n"
    "#define __global__\n#define __device__\n#define __shared__ static\n#define "
    "__forceinline__ inline __attribute__((always_inline))\n"
    "#define __syncthreads() fake_barrier()\n"
    "static inline double __longlong_as_double(long long v) { double d; "
    "__builtin_memcpy(&d, &v, sizeof d); return d; }\n"
    "static inline float __int_as_float(int v) { float f; __builtin_memcpy(&f, &v, sizeof f); return f; }\n"
    "#line 1 \"kernel.cu\"\n";

struct program {
    char *text, *image, *log;
    bool binary; /* asked for the code of a device, else for PTX alone */
};

static char *cached_text, *cached_image; /* the same text is compiled once */

static char *read_all(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    char *all = NULL;
    *bytes = 0;
    for (size_t capacity = 1 << 16, n; f != NULL; capacity *= 2) {
        all = realloc(all, capacity + 1);
        n = fread(all + *bytes, 1, capacity - *bytes, f);
        *bytes += n;
        if (*bytes < capacity) break;
    }
    if (f != NULL) fclose(f);
    if (all != NULL) all[*bytes] = 0;
    return all;
}

static int run(char *const words[], const char *errors) {
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (err != 0) return -1;
    while (waitpid(pid, &status, 0) < 0) {
    }
    return status;
}

static char *hexadecimal(const char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef", first[] = "// fake PTX\n";
    char *text = malloc(sizeof first + 2 * n), *at = text + sizeof first - 1;
    memcpy(text, first, sizeof first);
    for (size_t i = 0; i < n; i++) {
        *at++ = digits[(unsigned char)bytes[i] >> 4];
        *at++ = digits[(unsigned char)bytes[i] & 15];
    }
    *at = 0;
    return text;
}

/* From the text to a library; false: p->log says why. */
static bool make(struct program *p, const char *folder, const char *out) {
    char in[PATH_MAX + 32], errors[PATH_MAX + 32];
    size_t bytes;
    snprintf(in, sizeof in, "%s/k.cc", folder);
    snprintf(errors, sizeof errors, "%s/log", folder);
    FILE *f = fopen(in, "w");
    fprintf(f, "%s%s", prelude, p->text);
    fclose(f);
    char *words[] = {"c++",
                     "-std=gnu++11",
                     "-O1",
                     "-w",
                     "-ffp-contract=off",
                     "-fno-strict-aliasing",
                     "-fPIC",
                     "-shared",
                     "-o",
                     (char *)(uintptr_t)out,
                     in,
                     NULL};
    const int status = run(words, errors);
    p->log = read_all(errors, &bytes);
    unlink(in), unlink(errors);
    return status == 0;
}

/* Where the library of a text is kept between processes; "" = nowhere. */
static void name_kept(const struct program *p, char out[PATH_MAX + 32]) {
    const char *cache = getenv("FAKE_CUDA_CACHE");
    const XXH128_hash_t h =
        XXH3_128bits_withSeed(p->text, strlen(p->text), XXH3_64bits(prelude, sizeof prelude));
    out[0] = 0;
    if (cache != NULL && strlen(cache) < PATH_MAX - 64)
        snprintf(out, PATH_MAX + 32, "%s/%016llx%016llx.so", cache, (unsigned long long)h.high64,
                 (unsigned long long)h.low64);
}

static nvrtcResult compile(struct program *p) {
    char folder[PATH_MAX] = "/tmp/fake-nvrtc-XXXXXX", out[PATH_MAX + 32], kept[PATH_MAX + 32];
    size_t bytes = 0;
    name_kept(p, kept);
    char *library = kept[0] != 0 ? read_all(kept, &bytes) : NULL;
    if (library == NULL) {
        if (kept[0] != 0) snprintf(folder, sizeof folder, "%s/XXXXXX", getenv("FAKE_CUDA_CACHE"));
        if (mkdtemp(folder) == NULL) return COMPILATION;
        snprintf(out, sizeof out, "%s/k.so", folder);
        if (make(p, folder, out)) library = read_all(out, &bytes);
        if (library == NULL || kept[0] == 0 || rename(out, kept) < 0) unlink(out);
        rmdir(folder);
    }
    if (library != NULL) p->image = hexadecimal(library, bytes);
    free(library);
    return p->image != NULL ? SUCCESS : COMPILATION;
}

#define BEGIN(name)                                                                                          \
    do {                                                                                                     \
        const int asked = fake_cuda_begin(name);                                                             \
        if (asked != 0) return COMPILATION;                                                                  \
    } while (0)

API nvrtcResult nvrtcCreateProgram(struct program **out, const char *text, const char *name, int headers,
                                   const char *const *texts, const char *const *names) {
    BEGIN("nvrtcCreateProgram");
    (void)name, (void)texts, (void)names;
    if (text == NULL || headers != 0) return INVALID_INPUT;
    *out = calloc(1, sizeof **out);
    (*out)->text = strdup(text);
    return SUCCESS;
}

/* Options that change no bits are asked for, and an architecture that it knows. */
API nvrtcResult nvrtcCompileProgram(struct program *p, int n, const char *const *options) {
    static const char *const must[] = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false",
                                       "--device-as-default-execution-space"};
    int found = 0, arch = 0;
    BEGIN("nvrtcCompileProgram");
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof must / sizeof must[0]; k++) found += strcmp(options[i], must[k]) == 0;
        sscanf(options[i], "--gpu-architecture=%*[a-z]_%d", &arch);
        p->binary |= strncmp(options[i], "--gpu-architecture=sm_", 22) == 0;
    }
    if (found != sizeof must / sizeof must[0] || arch < 50 || arch > NEWEST) {
        p->log = strdup("nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
        return INVALID_OPTION;
    }
    if (cached_text != NULL && strcmp(cached_text, p->text) == 0)
        return p->image = strdup(cached_image), SUCCESS;
    const nvrtcResult err = compile(p);
    if (err != SUCCESS) return err;
    free(cached_text);
    free(cached_image);
    cached_text = strdup(p->text);
    cached_image = strdup(p->image);
    return SUCCESS;
}

API nvrtcResult nvrtcGetPTXSize(const struct program *p, size_t *bytes) {
    BEGIN("nvrtcGetPTXSize");
    if (p->image == NULL) return INVALID_INPUT;
    *bytes = strlen(p->image) + 1;
    return SUCCESS;
}

API nvrtcResult nvrtcGetPTX(const struct program *p, char *out) {
    BEGIN("nvrtcGetPTX");
    if (p->image == NULL) return INVALID_INPUT;
    memcpy(out, p->image, strlen(p->image) + 1);
    return SUCCESS;
}

API nvrtcResult nvrtcGetCUBINSize(const struct program *p, size_t *bytes) {
    BEGIN("nvrtcGetCUBINSize");
    if (p->image == NULL || !p->binary) return INVALID_INPUT;
    *bytes = strlen(p->image) + 1;
    return SUCCESS;
}

API nvrtcResult nvrtcGetCUBIN(const struct program *p, char *out) {
    BEGIN("nvrtcGetCUBIN");
    if (p->image == NULL || !p->binary) return INVALID_INPUT;
    memcpy(out, p->image, strlen(p->image) + 1);
    return SUCCESS;
}

static const int known[] = {52, 70, 75, 80, 90};

API nvrtcResult nvrtcGetNumSupportedArchs(int *n) {
    BEGIN("nvrtcGetNumSupportedArchs");
    *n = sizeof known / sizeof known[0];
    return SUCCESS;
}

API nvrtcResult nvrtcGetSupportedArchs(int *out) {
    BEGIN("nvrtcGetSupportedArchs");
    memcpy(out, known, sizeof known);
    return SUCCESS;
}

API nvrtcResult nvrtcGetProgramLogSize(const struct program *p, size_t *bytes) {
    BEGIN("nvrtcGetProgramLogSize");
    *bytes = (p->log != NULL ? strlen(p->log) : 0) + 1;
    return SUCCESS;
}

API nvrtcResult nvrtcGetProgramLog(const struct program *p, char *out) {
    BEGIN("nvrtcGetProgramLog");
    strcpy(out, p->log != NULL ? p->log : "");
    return SUCCESS;
}

API nvrtcResult nvrtcDestroyProgram(struct program **p) {
    BEGIN("nvrtcDestroyProgram");
    free((*p)->text);
    free((*p)->image);
    free((*p)->log);
    free(*p);
    *p = NULL;
    return SUCCESS;
}
