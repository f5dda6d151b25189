/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/open/request.h"

#include "core/place.h"
#include "files/frame.h"
#include "files/grid_file.h"
#include "kernel/kernel.h"
#include "machine/machine.h"
#include "machine/minmax.h"
#include "note/note.h"
#include "observe/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 64, PAGE_BYTES = 4096, LARGEST_BLOCK_BYTES = 65536 };
/* A run keeps to --dram, but for 64 MiB in all, of which the program itself may take 24. memext tune runs
 * nothing, and the rates that it measures are those of the machine, whatever DRAM it plans for. */
enum { CALIBRATION_BESIDE = 40 << 20 };

struct mx_grid mx_grid_of(const struct mx_problem *p, int32_t frame) {
    struct mx_grid g = {.size = sizeof g, .frame = frame, .flat = p->flat};
    const int64_t h2 = 2 * (int64_t)frame;
    if (p->nx > 0 && p->flat) g.nx = p->nx + h2, g.ny = p->nz + h2, g.nz = 1;
    if (p->nx > 0 && !p->flat) g.nx = p->nx + h2, g.ny = p->ny + h2, g.nz = p->nz + h2;
    snprintf(g.dtype, sizeof g.dtype, "%s", mx_dtype_name(p->dtype));
    return g;
}

int mx_take_grid(struct mx_options *o, const char *name, const struct mx_grid *grid, mx_why *why) {
    struct mx_problem *p = &o->problem;
    const int64_t h2 = 2 * (int64_t)grid->frame, nx = grid->nx - h2, ny = grid->ny - h2, nz = grid->nz - h2;
    enum mx_dtype dtype = p->dtype;
    if (!mx_dtype_find(grid->dtype, &dtype) || !mx_dtype_is_real(dtype))
        return mx_fail(why, -EINVAL,
                       "%.200s has elements of type %.8s; built-in stencils compute f64 or f32, and a kernel "
                       "(--kernel) may have any type",
                       name, grid->dtype);
    if (nx < 1 || ny < 1 || nz < 1)
        return mx_fail(why, -EINVAL,
                       "%.200s of shape (%lld, %lld, %lld) has no interior: no cell is left inside the frame "
                       "that %s needs, %d cells on every side. If the file has no frame, let memext make "
                       "one: --frame edge, mirror, periodic or a number",
                       name, (long long)grid->nz, (long long)grid->ny, (long long)grid->nx, p->stencil, p->h);
    if (mx_option_given(o, "size") && (p->nx != nx || p->ny != ny || p->nz != nz))
        return mx_fail(
            why, -EINVAL,
            "-n %lld %lld %lld does not match %.200s, which has %lld %lld %lld cells within its frame%s: "
            "leave -n "
            "out%s",
            (long long)p->nx, (long long)p->ny, (long long)p->nz, name, (long long)nx, (long long)ny,
            (long long)nz,
            grid->frame == 0 && p->nx == nx - 2 * p->h ? " (the file has no frame, --frame makes it)" : "",
            p->nx == grid->nx && p->ny == grid->ny && p->nz == grid->nz
                ? ", or give --frame edge, mirror, periodic or a number if the file has no frame"
                : "");
    if (mx_option_given(o, "dtype") && p->dtype != dtype)
        return mx_fail(why, -EINVAL, "--dtype %s does not match %s, which is %s; leave --dtype out",
                       mx_dtype_name(p->dtype), name, mx_dtype_name(dtype));
    p->nx = nx, p->ny = ny, p->nz = nz;
    p->dtype = dtype;
    return 0;
}

/* Parameters of a stored run stand behind those that are given: the same name twice is refused where it is
 * opened, so only those that are not given are added. */
enum { PARAM_TEXT = MX_FIELD_NAME + PATH_MAX + 2 };

static int32_t list_params(const struct mx_options *o, const struct mx_note *stored, const char **list,
                           char (*text)[PARAM_TEXT]) {
    int32_t n = 0;
    for (; n < o->params.n; n++) list[n] = o->params.word[n];
    for (int32_t i = 0; stored != NULL && i < stored->system.n_param; i++) {
        bool given = false;
        const char *name = stored->system.param_name[i];
        const struct mx_note_series *series = mx_note_series(stored, name);
        const size_t length = strlen(name);
        for (int32_t k = 0; k < o->params.n; k++)
            given |= strncmp(o->params.word[k], name, length) == 0 && o->params.word[k][length] == '=';
        if (given) continue;
        if (series != NULL)
            snprintf(text[i], sizeof text[i], "%s=%s", name, series->path);
        else
            snprintf(text[i], sizeof text[i], "%s=%.17g", name, stored->system.param[i]);
        list[n++] = text[i];
    }
    return n;
}

static int open_kernel(const struct mx_options *o, const struct mx_note *stored, const atomic_int *stop,
                       mx_why *why, struct mx_system **out) {
    const char *list[MX_WORDS_MOST + MX_MAX_PARAMS];
    char(*text)[PARAM_TEXT] = malloc(MX_MAX_PARAMS * sizeof *text);
    if (text == NULL) return mx_fail(why, -ENOMEM, "no memory for the parameters of a kernel");
    const struct mx_kernel_options k = {
        .path = o->kernel, .params = list, .n_params = list_params(o, stored, list, text), .stop = stop};
    const int err = mx_kernel_open(&k, why, out);
    free(text);
    return err;
}

int mx_check_series(const struct mx_options *o, const struct mx_system *s, mx_why *why) {
    const int64_t nt = o->problem.nt;
    for (int32_t i = 0; s != NULL && i < s->n_series; i++) {
        const struct mx_series *q = &s->series[i];
        if (q->n < nt)
            return mx_fail(why, -EINVAL,
                           "--param %s=%.300s has %lld values, and the run has %lld steps: give a value for "
                           "each step, or -t %lld",
                           s->param_name[q->param], q->path, (long long)q->n, (long long)nt, (long long)q->n);
    }
    return 0;
}

void mx_take_rows(struct mx_problem *p, bool flat) {
    if (!flat || p->flat || p->nx == 0 || p->nz != 1) return;
    p->nz = p->ny, p->ny = 1;
    p->flat = true;
}

/* Of the kernel, which -n has to agree with. */
int mx_take_dimensions(struct mx_options *o, const struct mx_system *s, mx_why *why) {
    struct mx_problem *p = &o->problem;
    if (p->flat && !s->flat)
        return mx_fail(why, -EINVAL,
                       "-n %lld %lld gives two dimensions, and the kernel \"%s\" reads cells in x, y and z: "
                       "give -n NX NY NZ, or a kernel with #define MX_RADII %d, %d, 0",
                       (long long)p->nx, (long long)p->nz, s->name, s->h, s->h);
    mx_take_rows(p, s->flat);
    if (s->flat && !p->flat && p->nx > 0)
        return mx_fail(why, -EINVAL,
                       "-n %lld %lld %lld gives three dimensions, and the kernel \"%s\" computes grids of "
                       "two (its radius in z is 0): give -n NX NY, or a kernel with #define MX_RADIUS %d",
                       (long long)p->nx, (long long)p->ny, (long long)p->nz, s->name, s->h);
    p->flat = s->flat;
    return 0;
}

int mx_take_kernel(struct mx_options *o, const struct mx_note *stored, const atomic_int *stop, mx_why *why,
                   struct mx_system **out) {
    struct mx_system *s;
    int err = open_kernel(o, stored, stop, why, &s);
    if (err < 0) return err;
    if (stored == NULL) o->problem.h = s->h;
    if ((err = mx_take_dimensions(o, s, why)) < 0) return mx_kernel_close(s), err;
    o->problem.dtype = s->field[0][0].dtype;
    o->problem.stencil[0] = 0;
    o->problem.system = s;
    if (o->in_place && s->form == MX_JACOBI) {
        mx_kernel_close(s);
        o->problem.system = NULL;
        return mx_fail(why, -EINVAL,
                       "--in-place needs a kernel that reads the old value (MX_LEAPFROG, MX_STAGGERED); this "
                       "kernel has the form MX_JACOBI: leave --in-place out");
    }
    return *out = s, 0;
}

int mx_try_kernel(const struct mx_options *o, const struct mx_system *s, mx_why *why) {
    const struct mx_problem *p = &o->problem;
    const struct mx_kernel_grid grid = {{p->nx, p->ny, p->nz}, p->nt};
    const bool known = p->nx > 0 && p->ny > 0 && p->nz > 0;
    return s != NULL ? mx_kernel_check(s, known ? &grid : NULL, why) : 0;
}

static bool has_own_cores(const struct mx_options *o) {
    return o->cores > 0 || o->sockets > 0 || o->l2_bytes > 0 || o->l3_bytes > 0;
}

bool mx_machine_is_described(const struct mx_options *o) { return has_own_cores(o) || o->topology != NULL; }

int mx_take_machine(const struct mx_options *o, mx_why *why, struct mx_machine *m) {
    const int err =
        o->topology != NULL ? mx_machine_from_topology(o->topology, why, m) : mx_machine_detect(why, m);
    if (err < 0) return err;
    if (has_own_cores(o)) m->cpu[0] = 0;
    if (has_own_cores(o) && o->topology == NULL) m->sockets = m->numa_nodes = 1;
    if (o->cores > 0) m->cores = (int32_t)o->cores;
    if (o->sockets > 0) m->sockets = m->numa_nodes = (int32_t)o->sockets;
    if (o->l2_bytes > 0) m->l2_bytes = o->l2_bytes;
    if (o->l3_bytes > 0) m->l3_bytes = o->l3_bytes;
    if (m->sockets > m->cores)
        return mx_fail(why, -EINVAL,
                       "the machine has %d sockets and %d cores: every socket needs at least one core",
                       m->sockets, m->cores);
    if (o->dram_bytes == 0 && mx_machine_dram_bytes(m) == 0)
        return mx_fail(why, -EINVAL,
                       "the topology file does not give the amount of DRAM: give it with --dram");
    return 0;
}

int mx_take_backend(const struct mx_options *o, mx_why *why, const struct mx_backend **out) {
    const char *name = o->backend;
    const struct mx_backend *fallback = NULL;
    if (name == NULL) {
        /* The last transfer backend of the table that works here, as mx_device_open chooses. Those before it
         * are not tried: a context of aio takes some 40 ms to be given back. */
        size_t n = 0;
        while (mx_backends[n] != NULL) n++;
        while (n-- > 0 && fallback == NULL)
            if (mx_backends[n]->face == MX_FACE_TRANSFER && !mx_backends[n]->by_name &&
                (mx_backends[n]->probe == NULL || mx_backends[n]->probe(NULL, NULL) == 0))
                fallback = mx_backends[n];
        if (fallback == NULL)
            return mx_fail(why, -ENOTSUP,
                           "neither aio nor uring works here (memext info says why): choose --backend mmap");
        return *out = fallback, 0;
    }
    if (strncmp(name, "fault:", 6) == 0) name += 6;
    *out = mx_backend_find(name);
    if (*out == NULL) return mx_fail(why, -EINVAL, "there is no backend '%s': memext info lists them", name);
    return 0;
}

int mx_take_place(const struct mx_options *o, const struct mx_backend *backend, mx_why *why) {
    const bool of_ranks = o->path != NULL && strstr(o->path, "%r") != NULL;
    return o->path == NULL || of_ranks || o->resume || backend->anonymous ? 0 : mx_place_check(o->path, why);
}

enum mx_tune_style mx_style_of(const struct mx_backend *b) {
    if (b->face == MX_FACE_TRANSFER) return MX_TUNE_TRANSFER;
    return b->anonymous && !b->locks_blocks ? MX_TUNE_RESIDENT : MX_TUNE_MAPPED;
}

/* What direct transfers need is a property of files: in a directory, that of a file to be as well, a nameless
 * one is asked. */
static int open_place(const char *path) {
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 || errno != ENOENT) return fd;
    int n = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    snprintf(directory, sizeof directory, "%.*s", n, slash == NULL ? "." : path);
    return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* As core aligns: what O_DIRECT demands, and whole blocks of the file system or device. */
static uint32_t transfer_align(const struct mx_storage *s) {
    uint32_t block = s != NULL ? s->physical_block_bytes : 0,
             direct = s != NULL ? s->direct_offset_align_bytes : 0;
    if (block < 512 || block > LARGEST_BLOCK_BYTES || (block & (block - 1)) != 0) block = PAGE_BYTES;
    return direct > block ? direct : block;
}

uint32_t mx_place_align(const struct mx_options *o, const struct mx_backend *backend,
                        uint64_t *capacity_bytes) {
    struct mx_storage s;
    if (o->path == NULL || backend->anonymous) return 0;
    int fd = open_place(o->path);
    int err = fd >= 0 ? mx_storage_facts(fd, NULL, &s) : -ENOENT;
    if (fd >= 0) close(fd);
    if (err == 0 && capacity_bytes != NULL) *capacity_bytes = s.bytes;
    return backend->face == MX_FACE_MAPPED ? LINE_BYTES : transfer_align(err == 0 ? &s : NULL);
}

static void take_given_rates(const struct mx_options *o, struct mx_rates *r) {
    if (o->read_bw > 0) r->read_bytes_per_s = o->read_bw;
    if (o->write_bw > 0) r->write_bytes_per_s = o->write_bw;
    if (o->read_bw > 0 || o->write_bw > 0 || o->mixed_bw > 0)
        r->mixed_bytes_per_s = o->mixed_bw, r->request_s = 0, r->device_source = MX_RATES_GIVEN;
    if (o->rate > 0)
        r->iblock_updates_per_s = r->slab_updates_per_s = r->tiled_updates_per_s = o->rate,
        r->compute_source = MX_RATES_GIVEN;
}

int mx_take_rates(const struct mx_options *o, const struct mx_backend *backend,
                  const struct mx_machine *machine, uint64_t dram_bytes, mx_why *why,
                  struct mx_rates *rates) {
    char cache[1024], device[512], compute[512];
    int32_t threads = o->threads > 0 ? (int32_t)o->threads : machine->cores;
    bool known = o->path != NULL && !backend->anonymous &&
                 mx_rates_device_key(backend->name, o->path, device, sizeof device, NULL) == 0;
    mx_rates_compute_key(machine, &o->problem, threads, compute, sizeof compute);
    if (mx_rates_path(cache, sizeof cache, NULL) == 0)
        mx_rates_load(cache, known ? device : NULL, compute, rates);
    if (o->calibrate && !o->resume) {
        struct mx_device_options d = {
            .size = sizeof d, .backend = backend->name, .path = o->path, .no_lock = o->no_lock};
        const uint64_t most = o->plan_only ? UINT64_MAX : dram_bytes + CALIBRATION_BESIDE;
        int err = mx_rates_renew(o->path != NULL && !backend->anonymous ? &d : NULL, &o->problem, machine,
                                 threads, most, o->calibrate_s, why, rates);
        if (err < 0) return err;
    }
    take_given_rates(o, rates);
    return 0;
}

void mx_take_request(const struct mx_options *o, const struct mx_machine *machine,
                     struct mx_tune_request *q) {
    q->problem = &o->problem;
    q->machine = machine;
    q->elsewhere = mx_machine_is_described(o);
    q->algorithm = o->algorithm;
    q->tuner = o->tuner;
    q->engine = o->engine;
    q->exhaustive = o->exhaustive;
    q->threads = (int32_t)mx_min(o->threads > 0 ? o->threads : machine->cores, MX_MOST_THREADS);
    /* A Block beyond the grid is the grid, and no sweep has more steps than there are. */
    const struct mx_problem *p = &o->problem;
    const int64_t levels = mx_levels_of(p, p->nt > 1 ? p->nt : 1);
    q->manual = (struct mx_plan){.by = mx_min(o->by, p->ny),
                                 .bz = mx_min(o->bz, p->nz),
                                 .bt = mx_min(o->bt, levels),
                                 .iy = o->iy,
                                 .iz = o->iz,
                                 .slab = o->slab,
                                 .tile = o->tile,
                                 .ct = o->ct,
                                 .column = o->column,
                                 .ahead = o->ahead,
                                 .in_place = o->in_place};
}

int mx_take_accel(const struct mx_options *o, int32_t place, int32_t places, mx_why *why, mx_accel **out,
                  struct mx_tune_accel *there, struct mx_tune_request *q) {
    const struct mx_accel_options a = {
        .spec = o->accel, .memory_bytes = o->device_memory, .place = place, .places = places};
    if (o->accel == NULL) return 0;
    int err = *out == NULL ? mx_accel_open(&a, why, out) : 0;
    if (err < 0) return err;
    const struct mx_accel_facts *f = mx_accel_facts(*out);
    struct mx_accel_rates known;
    err = mx_accel_rates_take(q->problem, q->machine, q->threads, *out, o->calibrate && !o->resume, why,
                              &known);
    if (err < 0) return err;
    const bool bus = f->put_bytes_per_s > 0, kernel = f->updates_per_s > 0;
    *there = (struct mx_tune_accel){.memory_bytes = f->memory_bytes,
                                    .here = f->here,
                                    .put_bytes_per_s = bus ? f->put_bytes_per_s : known.put_bytes_per_s,
                                    .get_bytes_per_s = bus ? f->get_bytes_per_s : known.get_bytes_per_s,
                                    .updates_per_s = kernel ? f->updates_per_s : known.updates_per_s,
                                    .bus_source = bus                         ? MX_RATES_GIVEN
                                                  : known.put_bytes_per_s > 0 ? known.source
                                                                              : MX_RATES_DEFAULT,
                                    .kernel_source = kernel                    ? MX_RATES_GIVEN
                                                     : known.updates_per_s > 0 ? known.source
                                                                               : MX_RATES_DEFAULT};
    snprintf(there->device, sizeof there->device, "%s", f->device);
    q->accel = there;
    q->algorithm = mx_tune_there(q->algorithm);
    return 0;
}
