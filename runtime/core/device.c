/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device.h"

#include "core/size.h"
#include "core/sized.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- options */

struct range {
    const char *name;
    size_t offset; /* of a uint32_t in the options */
    uint32_t least, most, standard;
    const char *unit;
};

static const struct range ranges[] = {
    {"queue depth", offsetof(struct mx_device_options, queue_depth), 1, 4096, 32, "requests"},
    {"largest request", offsetof(struct mx_device_options, max_request_bytes), 4096, 1u << 30, 1u << 20,
     "bytes"},
    {"number of copying threads", offsetof(struct mx_device_options, workers), 1, 64, 0, "threads"},
};

static uint32_t standard_workers(void) {
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return cores < 1 ? 1 : cores > 4 ? 4 : (uint32_t)cores;
}

static int check_ranges(struct mx_device_options *options, mx_why *why) {
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const struct range *r = &ranges[i];
        uint32_t *value = (uint32_t *)((char *)options + r->offset);
        if (*value == 0) *value = r->standard != 0 ? r->standard : standard_workers();
        if (*value < r->least || *value > r->most)
            return mx_fail(why, -EINVAL,
                           "a %s of %u is not possible; choose %u to %u %s, or 0 for the default", r->name,
                           *value, r->least, r->most, r->unit);
    }
    if ((unsigned)options->advice > MX_ADVICE_SCHEDULE)
        return mx_fail(why, -EINVAL, "advice %d is none for a device", (int)options->advice);
    if (options->force && options->resume)
        return mx_fail(why, -EINVAL, "--force starts anew and --resume goes on; choose one");
    if (options->read_only && !options->resume)
        return mx_fail(why, -EINVAL, "a new store cannot be read only");
    return 0;
}

static void list_backends(char *out, size_t capacity) {
    out[0] = 0;
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++) {
        size_t used = strlen(out);
        snprintf(out + used, capacity - used, "%s%s", used ? ", " : "", (*b)->name);
    }
}

static int choose_backend(mx_device *d, const char *name, mx_why *why) {
    static const char wrapper[] = "fault:";
    bool wrapped = strncmp(name, wrapper, sizeof wrapper - 1) == 0;
    const char *inner = wrapped ? name + sizeof wrapper - 1 : name;
    d->inner = mx_backend_find(inner);
    if (d->inner == NULL) {
        char names[128];
        list_backends(names, sizeof names);
        return mx_fail(why, -EINVAL, "there is no backend \"%.40s\"; choose one of %s", inner, names);
    }
    d->backend = wrapped ? mx_backend_fault : d->inner;
    snprintf(d->backend_name, sizeof d->backend_name, "%s", name);
    return 0;
}

static int take_options(mx_device *d, const struct mx_device_options *asked, const char *name, mx_why *why) {
    d->options = *asked;
    int err = check_ranges(&d->options, why);
    if (err == 0) err = choose_backend(d, name, why);
    if (err != 0) return err;
    if (asked->fault != NULL && strlen(asked->fault) >= sizeof d->fault)
        return mx_fail(why, -EINVAL, "the fault options are longer than %zu bytes", sizeof d->fault - 1);
    snprintf(d->fault, sizeof d->fault, "%s", asked->fault ? asked->fault : "");
    d->options.fault = d->fault;
    d->options.backend = d->backend_name;
    return 0;
}

/* ---- space */

/* The value of a line "Name:   123 kB" of /proc/meminfo, in bytes. */
static uint64_t meminfo_bytes(const char *name) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    uint64_t kib = 0;
    size_t n = strlen(name);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, n) == 0 && line[n] == ':') kib = strtoull(line + n + 1, NULL, 10);
    if (file != NULL) fclose(file);
    return kib * 1024;
}

/* What anonymous Buffers may fill: the memory that is available now or the cgroup's limit, whichever is less;
 * plus free swap where the backend lives on it. */
static int memory_room(const struct mx_backend *backend, mx_why *why, uint64_t *bytes) {
    struct mx_machine machine;
    int err = mx_machine_detect_memory(why, &machine);
    if (err != 0) return err;
    uint64_t dram = mx_machine_dram_bytes(&machine), available = meminfo_bytes("MemAvailable");
    if (available != 0 && available < dram) dram = available;
    *bytes = dram + (backend->locks_blocks ? meminfo_bytes("SwapFree") : 0);
    return 0;
}

static int memory_for_buffers(mx_device *d, mx_why *why) {
    d->found.place = (struct mx_place){.fd = -1, .path = "", .options = &d->options};
    return memory_room(d->inner, why, &d->found.place.bytes);
}

static uint64_t end_of_extents(const mx_device *d) {
    uint64_t end = 0;
    const struct mx_superblock *s = &d->found.super;
    for (uint32_t i = 0; i < s->n_extents; i++)
        if (s->extents[i].offset_bytes + s->extents[i].bytes > end)
            end = s->extents[i].offset_bytes + s->extents[i].bytes;
    return end;
}

static uint64_t anonymous_bytes(const mx_device *d) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < d->found.super.n_extents; i++) sum += d->found.super.extents[i].bytes;
    return sum;
}

uint64_t mx_device_room(const mx_device *d) {
    uint64_t bytes = d->found.place.bytes, used;
    if (!d->inner->anonymous && !d->found.place.block_device)
        return mx_place_capacity(&d->found, end_of_extents(d));
    used = d->inner->anonymous ? anonymous_bytes(d) : mx_round_up(end_of_extents(d), MX_EXTENT_ALIGN_BYTES);
    if (!d->inner->anonymous && used < MX_DATA_OFFSET_BYTES) used = MX_DATA_OFFSET_BYTES;
    return bytes > used ? bytes - used : 0;
}

static int refuse_for_space(const struct mx_backend *b, const char *path, uint64_t need, uint64_t room,
                            mx_why *why) {
    if (need <= room) return 0;
    return mx_fail(why, -ENOSPC, "the Buffers need %s, but %.300s has %s for them; %s", mx_size(need).text,
                   !b->anonymous     ? path
                   : b->locks_blocks ? "memory and swap together"
                                     : "memory",
                   mx_size(room).text,
                   b->anonymous ? "choose a smaller problem or another backend"
                                : "free space or name another place");
}

static int check_space(mx_device *d, mx_why *why) {
    const uint64_t need = d->options.expect_bytes;
    if (need == 0 || d->options.resume) return 0;
    const uint64_t room = d->inner->anonymous ? d->found.place.bytes : mx_place_capacity(&d->found, 0);
    return refuse_for_space(d->inner, d->found.path, need, room, why);
}

int mx_device_check_room(const struct mx_device_options *options, mx_why *why) {
    const struct mx_backend *b = mx_backend_find(options->backend);
    char path[4096] = "";
    bool directory;
    struct stat st;
    uint64_t room = 0;
    if (b == NULL) return 0;
    int err = b->anonymous ? memory_room(b, NULL, &room)
                           : mx_place_name(options->path, NULL, path, &directory, &st);
    if (err == 0 && !b->anonymous) err = mx_place_room(path, &st, &room);
    if (err < 0) return 0;
    return refuse_for_space(b, path, options->expect_bytes, room, why);
}

/* ---- open and close */

static int open_place(mx_device *d, mx_why *why) {
    if (d->inner->anonymous) {
        if (d->options.resume)
            return mx_fail(why, -ENOTSUP,
                           "the Buffers of the backend %s end with the process: nothing to resume",
                           d->inner->name);
        return memory_for_buffers(d, why);
    }
    int err = mx_place_find(&d->options, why, &d->found);
    if (err != 0) return err;
    if (d->found.storage.is_memory && d->inner->face == MX_FACE_TRANSFER)
        return mx_fail(why, -ENOTSUP,
                       "%.300s is on %s, which is memory and no storage; name a directory on a disk",
                       d->found.path, d->found.storage.filesystem);
    if (d->found.storage.is_memory)
        mx_note_add(d->facts.note, sizeof d->facts.note, "%s is memory, not storage",
                    d->found.storage.filesystem);
    return 0;
}

static int open_backend(mx_device *d, mx_why *why) {
    char note[sizeof d->facts.note];
    memcpy(note, d->facts.note, sizeof note);
    int err = d->backend->probe != NULL ? d->backend->probe(&d->found.place, why) : 0;
    if (err == 0) err = d->backend->open(&d->found.place, why, &d->facts, &d->state);
    if (err != 0) return err;
    if (note[0] != 0) mx_note_add(d->facts.note, sizeof d->facts.note, "%s", note);
    uint32_t align = d->facts.offset_align_bytes, most = d->options.max_request_bytes / align * align;
    if (most == 0)
        return mx_fail(why, -EINVAL, "a largest request of %u bytes is below the alignment of %u bytes here",
                       d->options.max_request_bytes, align);
    d->options.max_request_bytes = most;
    return 0;
}

static int start_queue(mx_device *d, mx_why *why) {
    struct mx_queue_setup setup = {.backend = d->backend,
                                   .state = d->state,
                                   .depth = d->options.queue_depth,
                                   .max_request_bytes = d->options.max_request_bytes,
                                   .align_bytes = d->facts.offset_align_bytes,
                                   .workers = d->options.workers,
                                   .end_bytes = d->found.place.user_file ? d->found.place.bytes : 0,
                                   .schedule = d->options.advice == MX_ADVICE_SCHEDULE};
    return mx_queue_create(&setup, why, &d->queue);
}

/* A note of a run that is not done, or that was kept, must survive, and whatever a resumed run found until it
 * is done itself; anything else in a directory is a temporary file. */
static bool worth_keeping(const mx_device *d) {
    const struct mx_superblock *s = &d->found.super;
    if (d->waiting) return !d->found.created;
    const bool wanted = s->finished != MX_RUN_DONE || (d->options.resume && !d->done);
    return !d->found.directory || d->options.keep || (s->note_bytes > 0 && wanted);
}

static void dismantle(mx_device *d, bool remove) {
    mx_queue_free(d->queue);
    if (d->state != NULL) d->backend->close(d->state);
    if (d->inner != NULL && !d->inner->anonymous) mx_place_leave(&d->found, remove);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* In memory alone: what a new store begins with. What was found there stays as it is, and so does the
 * generation, on top of which mx_place_take makes the new one. */
static void begin_waiting(mx_device *d) {
    const uint64_t generation = d->found.kind == MX_STORE_INTACT ? d->found.super.generation : 0;
    d->found.super = (struct mx_superblock){.generation = generation};
    d->waiting = true;
}

static int open_with(const struct mx_device_options *options, const char *name, bool waiting, mx_why *why,
                     mx_device **out) {
    mx_device *d = calloc(1, sizeof *d);
    if (d == NULL) return mx_fail(why, -ENOMEM, "no memory for a device");
    d->found.place.fd = d->found.sync_fd = -1;
    pthread_mutex_init(&d->lock, NULL);
    int err = take_options(d, options, name, why);
    if (err == 0) err = open_place(d, why);
    if (err == 0) err = check_space(d, why);
    if (err == 0) err = open_backend(d, why);
    if (err == 0) err = start_queue(d, why);
    /* All checks are passed: now, and not before, something is written. */
    if (err == 0 && !d->inner->anonymous)
        err = d->options.read_only ? 0
              : d->options.resume  ? mx_place_adopt(&d->found, why)
              : waiting            ? (begin_waiting(d), 0)
                                   : mx_place_take(&d->found, why);
    if (err != 0) {
        dismantle(d, d->found.created);
        return err;
    }
    if (d->found.finished_lost)
        mx_note_add(d->facts.note, sizeof d->facts.note,
                    "a finished run that was stored here is overwritten");
    *out = d;
    return 0;
}

int mx_device_open_file(int fd, const struct mx_device_options *options, mx_why *why, mx_device **out) {
    struct mx_device_options o;
    mx_device *d = calloc(1, sizeof *d);
    if (d == NULL) return mx_fail(why, -ENOMEM, "no memory for a device");
    d->found.place.fd = d->found.sync_fd = -1;
    pthread_mutex_init(&d->lock, NULL);
    mx_sized_take(&o, options, sizeof o, MX_END_OF(struct mx_device_options, fault));
    o.resume = o.read_only = o.keep = true;
    o.force = false;
    int err = take_options(d, &o, o.backend, why);
    if (err == 0 && d->inner->anonymous)
        err = mx_fail(why, -ENOTSUP, "the backend %s keeps everything in memory", d->inner->name);
    if (err == 0) err = mx_place_take_file(fd, &d->options, why, &d->found);
    if (err == 0) err = open_backend(d, why);
    if (err == 0) err = start_queue(d, why);
    if (err != 0) {
        dismantle(d, false);
        return err;
    }
    *out = d;
    return 0;
}

/* The last of the table with a transfer style comes first: the table goes from the simple to the fast. */
static int open_best(const struct mx_device_options *options, bool waiting, mx_why *why, mx_device **out) {
    size_t n = 0;
    while (mx_backends[n] != NULL) n++;
    int err = mx_fail(why, -ENOTSUP, "no backend with asynchronous I/O was built");
    while (n-- > 0) {
        const struct mx_backend *b = mx_backends[n];
        if (b->face != MX_FACE_TRANSFER || b->anonymous) continue;
        err = open_with(options, b->name, waiting, why, out);
        if (err != -ENOTSUP) break;
    }
    return err;
}

static int open_any(const struct mx_device_options *options, bool waiting, mx_why *why, mx_device **out) {
    struct mx_device_options o;
    mx_sized_take(&o, options, sizeof o, MX_END_OF(struct mx_device_options, fault));
    if (o.backend == NULL) return open_best(&o, waiting, why, out);
    return open_with(&o, o.backend, waiting, why, out);
}

int mx_device_open(const struct mx_device_options *options, mx_why *why, mx_device **out) {
    return open_any(options, false, why, out);
}

int mx_device_open_waiting(const struct mx_device_options *options, mx_why *why, mx_device **out) {
    return open_any(options, true, why, out);
}

int mx_device_take(mx_device *d, mx_why *why) {
    pthread_mutex_lock(&d->lock);
    struct mx_superblock *s = &d->found.super;
    const uint32_t n = s->n_extents;
    struct mx_extent made[MX_EXTENTS];
    memcpy(made, s->extents, sizeof made);
    const int err = d->waiting ? mx_place_take(&d->found, why) : 0;
    if (err == 0 && d->waiting) {
        s->n_extents = n;
        memcpy(s->extents, made, sizeof made);
        d->waiting = false;
    }
    pthread_mutex_unlock(&d->lock);
    return err;
}

uint64_t mx_device_generation(const mx_device *device) {
    mx_device *d = (mx_device *)device; /* only the mutex is touched */
    pthread_mutex_lock(&d->lock);
    const uint64_t generation = d->found.super.generation;
    pthread_mutex_unlock(&d->lock);
    return generation;
}

bool mx_device_is(const mx_device *d, const struct stat *file) {
    if (d->inner->anonymous) return false;
    if (!d->found.place.block_device)
        return file->st_dev == d->found.device && file->st_ino == d->found.inode;
    struct stat st;
    return S_ISBLK(file->st_mode) && fstat(d->found.place.fd, &st) == 0 && st.st_rdev == file->st_rdev;
}

void mx_device_close(mx_device *device) {
    if (device == NULL) return;
    const bool keep = worth_keeping(device);
    if (device->waiting) { /* Buffers may have made the file longer */
        mx_place_trim(&device->found, device->found.place.bytes);
        dismantle(device, !keep);
        return;
    }
    const uint64_t end = mx_round_up(end_of_extents(device), MX_EXTENT_ALIGN_BYTES);
    if (keep && device->unsaved)
        mx_device_flush(device); /* of what was never committed nothing is promised */
    if (keep && !device->inner->anonymous && !device->options.resume)
        mx_place_trim(&device->found, end > MX_DATA_OFFSET_BYTES ? end : MX_DATA_OFFSET_BYTES);
    dismantle(device, !keep);
}

void mx_device_abandon(mx_device *device) {
    if (device != NULL && !device->inner->anonymous && !worth_keeping(device))
        mx_place_remove(&device->found);
}

/* ---- what it is and did */

void mx_device_facts(const mx_device *device, struct mx_device_facts *out) {
    mx_device *d = (mx_device *)device; /* only the mutex is touched */
    struct mx_device_facts f = {.size = sizeof f};
    snprintf(f.backend, sizeof f.backend, "%.23s", d->backend_name);
    snprintf(f.place, sizeof f.place, "%.511s", d->inner->anonymous ? "anonymous memory" : d->found.path);
    f.mapped = d->backend->face == MX_FACE_MAPPED;
    f.bypasses_page_cache = d->facts.bypasses_page_cache;
    f.durable = !d->inner->anonymous;
    f.offset_align_bytes = d->facts.offset_align_bytes;
    f.memory_align_bytes = d->facts.memory_align_bytes;
    pthread_mutex_lock(&d->lock);
    memcpy(f.note, d->facts.note, sizeof f.note);
    f.capacity_bytes = mx_device_room(d);
    pthread_mutex_unlock(&d->lock);
    mx_sized_give(out, &f, sizeof f, MX_END_OF(struct mx_device_facts, capacity_bytes));
}

void mx_device_counters(const mx_device *device, struct mx_counters *out) {
    struct mx_counters c;
    mx_queue_counters(device->queue, &c);
    mx_sized_give(out, &c, sizeof c, MX_END_OF(struct mx_counters, peak_in_flight));
}

/* ---- durability */

int mx_device_fail(mx_device *d, int err, const char *what) {
    if (err == 0 || d->failed != 0) return err;
    d->failed = err;
    return mx_fail(&d->failure, err, "%s %.300s failed: %s; nothing is committed from here on", what,
                   d->inner->anonymous ? "memory" : d->found.path, strerror(-err));
}

/* Lock held. */
static int first_failure(mx_device *d, mx_why *why) {
    if (d->failed == 0) mx_device_fail(d, mx_queue_write_error(d->queue), "writing to");
    if (d->failed != 0 && why != NULL) *why = d->failure;
    return d->failed;
}

int mx_device_error(const mx_device *device, mx_why *why) {
    mx_device *d = (mx_device *)device; /* only what the mutex guards is touched */
    pthread_mutex_lock(&d->lock);
    int err = first_failure(d, why);
    pthread_mutex_unlock(&d->lock);
    return err;
}

static int flush_backend(mx_device *d) {
    int err = d->backend->flush != NULL ? mx_retry(d->backend->flush(d->state)) : -ENOSYS;
    return err != -ENOSYS ? err : mx_retry(mx_sys->fdatasync(d->found.place.fd));
}

/* With the size of the file, which is durable before a superblock relies on it. */
static int flush_data(mx_device *d) {
    int err = mx_device_error(d, NULL);
    if (err != 0) return err;
    pthread_mutex_lock(&d->lock);
    const bool longer = d->unsaved && !d->found.place.block_device;
    const uint64_t extended = d->extended;
    pthread_mutex_unlock(&d->lock);
    if (longer) err = mx_retry(mx_sys->fsync(d->found.place.fd)); /* without the lock: it takes long */
    if (err == 0 && (!longer || d->backend->flush != NULL)) err = flush_backend(d);
    pthread_mutex_lock(&d->lock);
    mx_device_fail(d, err, "flushing what was written to");
    err = first_failure(d, NULL);
    if (err == 0 && extended > d->flushed) d->flushed = extended;
    pthread_mutex_unlock(&d->lock);
    return err;
}

/* flush_data, again where another thread has made a Buffer meanwhile, which the superblock is about to tell
 * of. Returns with the lock held. */
static int flush_and_lock(mx_device *d) {
    for (;;) {
        const int err = flush_data(d);
        pthread_mutex_lock(&d->lock);
        if (err != 0 || d->flushed == d->extended) return err;
        pthread_mutex_unlock(&d->lock);
    }
}

/* Writes next as the newest superblock, unless something failed before. fd: one with O_DSYNC, or one that
 * only what this process leaves behind is written by. Lock held. */
static int store_by(mx_device *d, int fd, const struct mx_superblock *next) {
    if (d->options.read_only) return -EROFS;
    int err = first_failure(d, NULL);
    if (err != 0) return err;
    err = mx_store_commit(fd, next, &d->found.super, &d->found.slot);
    if (err == 0) d->unsaved = false;
    return mx_device_fail(d, err, "writing the superblock of");
}

static int store(mx_device *d, const struct mx_superblock *next) {
    return store_by(d, d->found.sync_fd, next);
}

int mx_device_extend(mx_device *d, const struct mx_superblock *next) {
    int err = d->options.read_only ? -EROFS : first_failure(d, NULL);
    if (err != 0) return err;
    d->found.super = *next;
    d->unsaved = !d->inner->anonymous;
    d->extended++;
    return 0;
}

int mx_device_flush(mx_device *device) {
    if (device->inner->anonymous) return 0;
    int err = flush_and_lock(device);
    struct mx_superblock next = device->found.super;
    if (err == 0 && device->unsaved) err = store(device, &next);
    pthread_mutex_unlock(&device->lock);
    return err;
}

int mx_device_commit(mx_device *device, const void *note, size_t note_bytes) {
    if (device->inner->anonymous) return -ENOTSUP;
    if (note_bytes > MX_NOTE_BYTES || note_bytes == 0) return -EINVAL;
    if (device->options.read_only) return -EROFS;
    int err = flush_and_lock(device);
    struct mx_superblock next = device->found.super;
    memset(next.note, 0, sizeof next.note);
    memcpy(next.note, note, note_bytes);
    next.note_bytes = (uint32_t)note_bytes;
    next.finished = MX_RUN_UNDER_WAY;
    if (err == 0) err = store(device, &next);
    pthread_mutex_unlock(&device->lock);
    return err;
}

/* A file that is removed when the device is closed says that its run is done to whoever finds it after the
 * end of this process, but does not wait for stable storage: should the power be lost, the last commit is
 * there. */
int mx_device_finish(mx_device *device) {
    const bool removed = device->found.directory && !device->options.keep;
    if (device->inner->anonymous) return -ENOTSUP;
    int err = removed ? mx_device_error(device, NULL) : flush_data(device);
    if (err != 0) return err;
    pthread_mutex_lock(&device->lock);
    struct mx_superblock next = device->found.super;
    next.finished = device->options.keep ? MX_RUN_KEPT : MX_RUN_DONE;
    err = store_by(device, removed ? device->found.place.fd : device->found.sync_fd, &next);
    device->done = err == 0;
    pthread_mutex_unlock(&device->lock);
    return err;
}

int64_t mx_device_note(const mx_device *device, void *note, size_t capacity_bytes) {
    mx_device *d = (mx_device *)device; /* only the mutex is touched */
    pthread_mutex_lock(&d->lock);
    const struct mx_superblock *s = &d->found.super;
    int64_t n = s->note_bytes <= capacity_bytes ? (int64_t)s->note_bytes : -ENOSPC;
    if (n > 0) memcpy(note, s->note, (size_t)n);
    pthread_mutex_unlock(&d->lock);
    return n;
}

/* ---- registered memory */

static void tell_registration(mx_device *d, int err) {
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    pthread_mutex_lock(&d->lock);
    if (!d->told_registration)
        mx_note_add(d->facts.note, sizeof d->facts.note,
                    "Blocks are not registered with the kernel: %s "
                    "(RLIMIT_MEMLOCK is %s)",
                    strerror(-err),
                    limit.rlim_cur == RLIM_INFINITY ? "unlimited" : mx_size(limit.rlim_cur).text);
    d->told_registration = true;
    pthread_mutex_unlock(&d->lock);
}

void mx_device_register(mx_device *device, void *base, uint64_t bytes) {
    if (device->backend->register_memory == NULL || device->options.no_register) return;
    int err = device->backend->register_memory(device->state, base, bytes);
    if (err != 0 && err != -ENOTSUP) tell_registration(device, err);
}

void mx_device_unregister(mx_device *device, void *base) {
    if (device->backend->unregister_memory != NULL) device->backend->unregister_memory(device->state, base);
}
