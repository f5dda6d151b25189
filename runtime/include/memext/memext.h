/* SPDX-License-Identifier: BSD-3-Clause */
/* memext.h - out-of-core arrays and stencil runs on flash: the public interface of libmemext.
 *
 * Words: a Buffer is the whole array, on a device. A Block is a piece of DRAM that holds a region of
 * a Buffer. A device is an opened place (a file, a directory, a block device, anonymous memory) driven by
 * one backend: dram, swap, mmap, aio or uring. The backend is chosen at run time; the program that
 * moves data between Buffers and Blocks does not change.
 *
 *     mx_device_open -> mx_buffer_create -> mx_block_create -> mx_buffer_read / mx_buffer_write -> mx_wait
 *
 * Conventions, true for every function here:
 *  - A function that can fail returns 0 (or a count) on success and a negative errno on failure.
 *  - `mx_why *why` may be NULL. On failure it holds one sentence for the user: the value, the limit, the way
 * out.
 *  - Out-pointers come last and are written only on success.
 *  - Nothing here prints, exits, aborts or sets errno.
 *  - Sizes and offsets are in bytes, times in nanoseconds, extents of a grid in cells; names say which.
 *  - A zeroed options struct asks for all defaults; every field says what 0 means.
 *  - Structs that may grow begin with their size, which the program sets to sizeof: {.size = sizeof s, ...}.
 * A library that knows more fields takes those that are not there as 0, and writes no more than there is room
 * for. Size 0 stands for the fields of version 0.1. mx_why, mx_span and mx_store_extent never grow.
 */
#ifndef MEMEXT_MEMEXT_H
#define MEMEXT_MEMEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of memext. CMake and the Python package read it here. */
#define MX_VERSION "0.9.0"

/* One sentence for the user; text[0] == 0 when there is nothing to say. */
typedef struct mx_why {
    char text[512];
} mx_why;

/* ------------------------------------------------------------------ DRAM budget
 * How much DRAM a run may use. Blocks are counted against it when it is given to mx_block_create. */

typedef struct mx_budget mx_budget;

struct mx_budget_facts {
    uint32_t size;          /* set by the caller */
    uint64_t limit_bytes;   /* DRAM visible to the run: min(physical, cgroup limit, asked for) */
    uint64_t reserve_bytes; /* left to the system (Km) */
    uint64_t used_bytes;    /* by Blocks now */
    uint64_t peak_bytes;    /* largest used_bytes so far */
};

/* limit_bytes: 0 = the smaller of the machine's memory and the cgroup's limit (v1 or v2). A limit_bytes above
 * that is -EINVAL. reserve_bytes must be smaller than the limit. */
int mx_budget_create(uint64_t limit_bytes, uint64_t reserve_bytes, mx_why *why, mx_budget **out);
void mx_budget_free(mx_budget *budget); /* NULL allowed */
void mx_budget_facts(const mx_budget *budget, struct mx_budget_facts *out);

/* ------------------------------------------------------------------ device */

typedef struct mx_device mx_device;

/* How the kernel is told about accesses to mapped Buffers. SCHEDULE: the executor advises each region just
 * before it is needed and drops it when it is done. */
enum mx_advice {
    MX_ADVICE_NONE,
    MX_ADVICE_SEQUENTIAL,
    MX_ADVICE_RANDOM,
    MX_ADVICE_WILLNEED,
    MX_ADVICE_HUGEPAGE,
    MX_ADVICE_SCHEDULE,
    /* the two verbs that SCHEDULE is made of; for mx_buffer_advise only */
    MX_ADVICE_POPULATE, /* bring the range in now */
    MX_ADVICE_DROP,     /* write the range back and give its memory up */
};

struct mx_device_options {
    uint32_t size;
    const char *backend; /* "dram" "swap" "mmap" "aio" "uring"; NULL = the first of uring, aio that works
                            here.   "fault:NAME" wraps backend NAME for tests, see `fault`. */
    const char *path;    /* directory, file or block device; where nothing is yet, a name that ends in .memext
                            or .store is that of a new file; ignored by dram and swap */
    uint64_t expect_bytes;      /* total of the Buffers to come, for the space check; 0 = no check at open */
    uint32_t queue_depth;       /* requests in flight, 1..4096; 0 = 32 */
    uint32_t max_request_bytes; /* longest single request, rounded down to the alignment; 0 = 1 MiB */
    uint32_t workers;           /* copying threads of mapped backends, 1..64; 0 = min(cores, 4) */
    enum mx_advice advice;      /* mapped backends: applied to every Buffer when it is mapped */
    bool sqpoll;                /* uring: kernel submission thread */
    bool iopoll;                /* uring: busy completion; needs a device with poll queues */
    bool uncached;              /* uring: buffered I/O with RWF_DONTCACHE instead of O_DIRECT */
    bool no_register;           /* uring: neither registered memory nor registered files */
    bool force;     /* overwrite a foreign file, a device with a known signature, a run not done */
    bool resume;    /* open the store that is there instead of making a new one */
    bool read_only; /* with resume: nothing is written, not even what an interrupted commit left to be mended;
                       commits and new Buffers are -EROFS. Works on read-only file systems and on stores of
                       other users */
    bool keep;      /* leave the file of a directory store behind when the device is closed */
    const char *fault; /* fault backend: "seed=7,eio=0.01,enospc=0,short=0.1,delay_us=50,reorder=1" */
    bool no_lock; /* work on a file system without locks too; without this option that is -ENOLCK. The caller
                     must then make sure that nobody else works in the place. */
};

struct mx_device_facts {
    uint32_t size; /* set by the caller */
    char backend[24];
    char place[512];             /* the file or device that is used; "anonymous memory" for dram and swap */
    char note[512];              /* what was asked for and could not be had, "" if nothing (fallbacks) */
    bool mapped;                 /* mx_buffer_map works */
    bool bypasses_page_cache;    /* as checked on the opened file, not as asked for */
    bool durable;                /* Buffers outlive the process: commits are possible */
    uint32_t offset_align_bytes; /* offsets and lengths of transfers are multiples of this (1 on mapped
                                    backends) */
    uint32_t memory_align_bytes; /* addresses of transfers are multiples of this */
    uint64_t capacity_bytes;     /* space for Buffers, now */
};

/* -ENOENT, -EACCES, -EROFS, -ENOSPC, -EBUSY (mounted, held, locked by another memext), -EEXIST (foreign data,
 * a run that is not done or was kept; force), -EPERM (the store of another user; force), -ELOOP (a symbolic
 * link), -EMLINK (a file with several names), -EIO (damaged), -ENOTBLK (no storage), -EINVAL (options),
 * -ENOTSUP (the backend cannot work here, a store of another format). A place is a regular file or a block
 * device; symbolic links to files are not followed, those to directories and block devices are. A new store's
 * file and its name are on stable storage when this returns. */
int mx_device_open(const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Waits for transfers under way, then closes; Buffers must be closed before. NULL allowed. */
void mx_device_close(mx_device *device);
void mx_device_facts(const mx_device *device, struct mx_device_facts *out);

/* What core measured since the device was opened. Bytes are those that backends reported as moved, plus, on
 * mapped backends, those that were copied. */
struct mx_counters {
    uint32_t size; /* set by the caller */
    uint64_t read_bytes, write_bytes;
    uint64_t read_requests, write_requests; /* after splitting and coalescing */
    uint64_t retries;                       /* EAGAIN, EINTR */
    uint64_t short_transfers;               /* finished by a further request */
    uint64_t read_ns, write_ns;             /* time with at least one read (write) under way */
    uint32_t peak_in_flight;
};
void mx_device_counters(const mx_device *device, struct mx_counters *out);

/* The first write or flush that failed, with a sentence; 0 = none did. From then on nothing is known of what
 * is on stable storage, so mx_device_flush, mx_device_commit and mx_device_finish return this error: what was
 * committed before stays the newest state. Any thread may call. */
int mx_device_error(const mx_device *device, mx_why *why);
/* Every finished write is on stable storage when this returns 0. */
int mx_device_flush(mx_device *device);

/* A commit: flushes, then stores `note` (at most MX_NOTE_BYTES) with a generation number and a checksum,
 * twice, in the older of two slots. After a crash at any moment the newest intact note is what mx_device_note
 * returns. -ENOTSUP where facts.durable is false. */
#define MX_NOTE_BYTES 14336
int mx_device_commit(mx_device *device, const void *note, size_t note_bytes);
/* Marks the run of the newest note as done: no resume needs the store any more. A named file or block device
 * may then be overwritten without `force`, and mx_device_close removes the file of a directory store. Before
 * the mark, a store with a note stays, and overwriting it needs `force`. The same holds after the mark if the
 * device was opened with `keep`. A store with a note that was left behind in a directory always needs
 * `force`. When the function returns, the mark is on stable storage, unless mx_device_close will remove the
 * file. -ENOTSUP where facts.durable is false. */
int mx_device_finish(mx_device *device);
/* Copies the newest note; returns its length (0 = none was committed) or -ENOSPC where capacity is too small.
 */
int64_t mx_device_note(const mx_device *device, void *note, size_t capacity_bytes);

/* A look at a store, without a device: what it holds, who uses it. */
#define MX_STORE_EXTENTS 62
struct mx_store_extent {
    char name[16]; /* of the Buffer, terminated */
    uint64_t offset_bytes, bytes;
};
struct mx_store_facts {
    uint32_t size;    /* set by the caller */
    char place[4096]; /* the file or device */
    bool block_device;
    bool in_use;         /* by a memext that works on it now: the rest may change any moment */
    uint64_t file_bytes; /* size of the file or device */
    uint64_t generation; /* counts the commits */
    uint32_t finished; /* 0 = the note tells of a run under way, 1 = of one that is done, 2 = done and kept */
    uint32_t note_bytes;          /* 0 = nothing was committed */
    char note[MX_NOTE_BYTES + 1]; /* a zero follows */
    uint32_t n_extents; /* no more than `size` has room for: 32 in programs built for the first release */
    struct mx_store_extent extents[MX_STORE_EXTENTS];
};
/* path: directory, file or block device. Reads only, and does not lock anybody out. -ENOENT (nothing there,
 * or no store), -EACCES, -ENOTBLK, -ELOOP (a symbolic link), -ENOTSUP (a store of another format), -EIO
 * (damaged, or shorter than its Buffers). */
int mx_store_look(const char *path, mx_why *why, struct mx_store_facts *out);
/* Looks at a store as mx_store_look does, and returns one JSON object: what `memext info PATH --json` prints
 * under `store`. With a note it has, among others, state, problem, plan, step and `arrays`. `arrays` has an
 * entry for each field whose cells are in the file: name, dtype, buffer, offset_bytes, row_pitch_bytes,
 * plane_pitch_bytes, planes, frame_low, frame_high. `buffer` names the Buffer of the field. offset_bytes is
 * where the first cell lies in the file, frame included. Rows and planes include the frame, which is
 * problem.h cells wide in x and y. planes = frame_low + nz + frame_high. frame_low and frame_high are
 * problem.h. In the store of a rank they are 0 for a field of the state at an end where another rank's planes
 * follow. The arrays hold step `step` until a run goes on with the store: look at its generation again after
 * a read. *out is to be given to free(). Errors as above; -ENOMEM. */
int mx_store_report(const char *path, mx_why *why, char **out);

/* The hashes of --integrity, for programs that read a store's file themselves: those of the Buffer `buffer`
 * of `arrays` as the last commit saved them. Reads only. Errors as above; -ENODATA (none are kept of this
 * Buffer), -EBADMSG (they have changed themselves), -ENOMEM. */
typedef struct mx_hashes mx_hashes;
int mx_hashes_open(const char *path, const char *buffer, mx_why *why, mx_hashes **out);
void mx_hashes_free(mx_hashes *hashes); /* NULL allowed */
/* What one hash is of; the last unit may be shorter. */
uint64_t mx_hashes_unit_bytes(const mx_hashes *hashes);
/* Where the last unit of the Buffer ends. */
uint64_t mx_hashes_bytes(const mx_hashes *hashes);
/* Compares data, read from byte offset_bytes of the Buffer, with the hashes. offset_bytes and bytes are whole
 * units; only the Buffer's last unit may be shorter. 0 = equal. -EBADMSG = a unit differs: *damage is the
 * offset of the first one in the Buffer. A unit without a known hash passes. -EINVAL: not whole units, or
 * beyond the Buffer. Any thread may call. */
int mx_hashes_check(const mx_hashes *hashes, uint64_t offset_bytes, uint64_t bytes, const void *data,
                    uint64_t *damage);

/* Gives up a store: its file in a directory goes, a file or block device may be overwritten from then on.
 * generation and run name the state that is meant: give the values of mx_store_report, with its `run`, 16
 * hexadecimal digits, as a number (0 = the store has none). -ESTALE with a sentence if a run has gone on with
 * the store, or another store lies there. generation 0 = give up whatever is there. no_lock: as in
 * mx_device_options. Errors of mx_device_open otherwise. */
int mx_store_discard(const char *path, uint64_t generation, uint64_t run, bool no_lock, mx_why *why);

/* ------------------------------------------------------------------ Buffer */

typedef struct mx_buffer mx_buffer;
typedef struct mx_ticket mx_ticket; /* one asynchronous transfer; given up by mx_wait */

/* A new extent of the device, content undefined; names are unique on a device, at most 15 bytes. The store
 * records the new extent at the next mx_device_flush or mx_device_commit, or at the latest in
 * mx_device_close. -ENOSPC, -EEXIST. */
int mx_buffer_create(mx_device *device, const char *name, uint64_t bytes, mx_why *why, mx_buffer **out);
/* An extent of a store opened with `resume`. -ENOENT. */
int mx_buffer_open(mx_device *device, const char *name, mx_why *why, mx_buffer **out);
void mx_buffer_close(mx_buffer *buffer); /* NULL allowed */
uint64_t mx_buffer_bytes(const mx_buffer *buffer);
/* Where the Buffer begins in its file or block device. */
uint64_t mx_buffer_offset(const mx_buffer *buffer);

/* One contiguous piece of a transfer. offset and bytes are multiples of offset_align_bytes, dram of
 * memory_align_bytes. */
struct mx_span {
    uint64_t offset_bytes; /* in the Buffer */
    uint64_t bytes;
    void *dram;
};

/* Starts a transfer of all spans and returns at once; spans is copied. Spans that adjoin in the Buffer and in
 * DRAM are coalesced, long ones split. Transfers run in no particular order. -EINVAL (alignment, outside the
 * Buffer), -ENOMEM. Any thread may call. */
int mx_buffer_read(mx_buffer *buffer, const struct mx_span *spans, size_t n, mx_ticket **out);
int mx_buffer_write(mx_buffer *buffer, const struct mx_span *spans, size_t n, mx_ticket **out);
/* Waits, frees the ticket (NULL: returns 0), returns 0 or the first error of the transfer (-EIO, -ENOSPC,
 * ...; -EBADMSG see mx_buffer_integrity). */
int mx_wait(mx_ticket *ticket);
/* 1 = done (mx_wait will not block), 0 = under way. */
int mx_test(const mx_ticket *ticket);

/* Integrity: from now on every write to the Buffer records a 32-bit checksum of each unit of unit_bytes, and
 * mx_wait compares every read with it: -EBADMSG, and mx_buffer_damage says where. The first read of
 * a unit that nothing is known of records its checksum. What goes through mx_buffer_map is not checked.
 * Transfers are of whole units from then on (the last one may be shorter), others -EINVAL. A unit must not be
 * written while it is read or written by another transfer; different units may be. The DRAM of a write must
 * not change, nor that of a read be used, before mx_wait has returned.
 *
 * The checksums take 4 bytes a unit, in a Block that is counted against `budget` (NULL = not counted). On a
 * durable device they take as much in an extent "NAME.sum", which is made now unless the store has it. NAME
 * then has at most 11 bytes. -EINVAL (units that are no multiple or part of offset_align_bytes, or larger
 * than the Buffer; the name), -EEXIST (is checked already), -ENOMEM, -ENOSPC. Called before transfers of this
 * Buffer; ends with mx_buffer_close. */
int mx_buffer_integrity(mx_buffer *buffer, uint64_t unit_bytes, mx_budget *budget, mx_why *why);
/* The first byte in the Buffer of the first unit whose read was -EBADMSG; -1 = none was. */
int64_t mx_buffer_damage(const mx_buffer *buffer);
/* Stores the checksums as they are now in the extent; a commit after it (mx_device_commit) makes them durable
 * with the data. Every Buffer has an extent of its own, so the saved checksums of one stay while another's
 * are saved. No transfer may write the Buffer meanwhile. -ENOTSUP where facts.durable is false, -EINVAL
 * without mx_buffer_integrity, errors of writing. */
int mx_buffer_integrity_save(mx_buffer *buffer);
/* What one save writes; mx_device_counters counts it like any other transfer. 0 without mx_buffer_integrity,
 * and where facts.durable is false. */
uint64_t mx_buffer_integrity_bytes(const mx_buffer *buffer);
/* Takes the saved checksums of a Buffer that was opened with `resume`. Call it only if the Buffer still has
 * the content that it had at the save. That holds for the Buffer of the last commit, if
 * mx_buffer_integrity_save preceded that commit. -ENODATA (nothing was saved, or with units of another size;
 * nothing is known then), -EBADMSG (what was saved is damaged itself), -ENOTSUP, -EINVAL, errors of reading.
 */
int mx_buffer_integrity_load(mx_buffer *buffer);

/* Mapped backends: the address of byte 0; valid until mx_buffer_close. -ENOTSUP on transfer backends. */
int mx_buffer_map(mx_buffer *buffer, mx_why *why, void **out);
/* Mapped backends: advice for a range; a hint, errors of the kernel are returned and may be ignored. */
int mx_buffer_advise(mx_buffer *buffer, uint64_t offset_bytes, uint64_t bytes, enum mx_advice advice);

/* ------------------------------------------------------------------ Block */

typedef struct mx_block mx_block;

struct mx_block_options {
    uint32_t size;
    mx_budget *budget;         /* counted against; NULL = not counted */
    bool lock;                 /* mlock; -ENOMEM / -EPERM with the RLIMIT_MEMLOCK figures in why */
    bool no_huge;              /* do not ask for huge pages */
    uint64_t node_split_bytes; /* several NUMA nodes: bind equal shares, each a multiple of this, to the nodes
                            in turn (the z ranges of Fig. 5, Midorikawa & Tan); 0 = first touch. No effect on
                            one node. */
    mx_device
        *device; /* register the memory with this device's backend (uring fixed buffers); NULL = do not */
};

/* Zeroed, page-aligned DRAM, touched by all threads in parallel. -ENOMEM with the budget's figures in why. */
int mx_block_create(const struct mx_block_options *options, uint64_t bytes, mx_why *why, mx_block **out);
void mx_block_free(mx_block *block); /* NULL allowed */
void *mx_block_data(const mx_block *block);
uint64_t mx_block_bytes(const mx_block *block);

/* ------------------------------------------------------------------ runs
 * A run computes time steps of a stencil on a grid that may be larger than DRAM, as the command `memext run`
 * does: it plans, keeps the grid in Buffers on a device, commits states that it can go on from, and hands
 * over the result.
 *
 *     mx_run_open -> [mx_run_prepare] -> mx_run_start -> mx_run_wait or mx_run_poll ... -> mx_run_close
 *
 * The grid has nz planes of ny rows of nx cells (x is fastest in memory) and around them a frame of h cells
 * on every side, h being the radius of the stencil; the frame keeps its initial value. A kernel with #define
 * MX_RADII h, h, 0 computes grids of two dimensions, ny rows of nx cells: nz is 1, and z has no frame. Where
 * whole planes are handed over one by one, of such a grid whole rows are. */

typedef struct mx_run mx_run;

/* Extents of a grid as sources and sinks see it. */
struct mx_grid {
    uint32_t size; /* sizeof(struct mx_grid), set by the library */
    int32_t frame; /* width of the frame in cells: h or 0. For a source it is 0 if the option frame is edge,
                      mirror, periodic or a number: the library makes the frame then. For a sink it is 0 with
                      output-frame=none. */
    int64_t nx, ny, nz; /* cells, the frame included, if there is one */
    char dtype[8];  /* element: "f64" or "f32"; of fields of kernels also "u8", "i8" and so on to "u64", "i64"
                     */
    char field[32]; /* with a kernel the field that is meant, since open is called for each; "" without */
    bool flat;      /* the kernel computes grids of two dimensions: nz is 1, and z has no frame */
};

/* A box of cells of a grid, and memory for it: cell (x, y, z), counted from the first cell of struct mx_grid
 * (of the frame, if it has one), lies at
 * data + (z - z0) * plane_pitch_bytes + (y - y0) * row_pitch_bytes + (x - x0) * element. */
struct mx_grid_box {
    uint32_t size;                  /* sizeof(struct mx_grid_box), set by the library */
    int64_t x0, x1, y0, y1, z0, z1; /* x0 <= x < x1, and so on */
    int64_t row_pitch_bytes, plane_pitch_bytes;
    void *data;
    const char *field; /* with a kernel: its name; "" without */
};

/* Where an initial grid comes from. A run asks for whole planes, in order of z and each once. If it verifies,
 * it asks for all of them once more. It also asks once more for the planes that planes of the frame copy: of
 * frames that the library makes, and at sides in z that are not fixed. With a kernel a source gives all
 * fields that no option gives: those that are only read, and those of the state at step 0 (the step before of
 * leapfrog kernels, NAME.old, is the same as NAME then); open is called for each of them, and planes come
 * field after field. All functions are called one at a time, on a thread of the library, and return 0 or a
 * negative errno that ends the run, with a sentence in *why (or none). */
struct mx_source {
    uint32_t size;    /* sizeof(struct mx_source) */
    void *context;    /* first argument of the functions */
    const char *name; /* what the store's note and reports call it: 1 to 63 printable ASCII characters. A
                         resumed run must name the same */
    /* *grid holds what the options ask for (extents 0 = not asked for); a source that knows its own writes
     * them over that, and what contradicts the options is refused. NULL = any grid. */
    int (*open)(void *context, struct mx_grid *grid, mx_why *why);
    int (*region)(void *context, const struct mx_grid_box *box, mx_why *why); /* fills box->data */
    void (*close)(void *context); /* once, if open returned 0; NULL = nothing to do */
    /* Instead of region, which is NULL then: the same row by row. row->y0 and row->z0 say which one, cell x
     * lies at row->data + x * element, x from 0 to row->x1 - 1. */
    int (*row)(void *context, const struct mx_grid_box *row, mx_why *why);
    /* Gives a hash of the values of this field ("" without a kernel). Other values must give another hash.
     * The store keeps it, and a run is resumed only if the hash is the same. NULL = the source's name alone
     * identifies the values. */
    int (*identity)(void *context, const char *field, uint64_t *out, mx_why *why);
};

/* Where the result goes: whole planes, each once and in order of z, frame included. As for sources: with a
 * kernel all fields of the state, plane by plane, those of the other array (NAME.old, the partner)
 * afterwards. */
struct mx_sink {
    uint32_t size; /* sizeof(struct mx_sink) */
    void *context;
    /* Before anything is computed, so that a place that cannot be written is refused at once. NULL = nothing
     * to do. */
    int (*open)(void *context, const struct mx_grid *grid, mx_why *why);
    int (*region)(void *context, const struct mx_grid_box *box,
                  mx_why *why); /* takes box->data, changes nothing */
    /* Called once, if open returned 0. whole: the sink has received the whole result. Otherwise there is no
     * result, because the run failed, was stopped, or verification found a difference: the sink must discard
     * what it has received. NULL = nothing to do. */
    int (*close)(void *context, bool whole, mx_why *why);
    int (*row)(void *context, const struct mx_grid_box *row,
               mx_why *why); /* instead of region, as in a source */
};

struct mx_run_options {
    uint32_t size; /* sizeof(struct mx_run_options) */
    /* What is asked for: "NAME=VALUE", or "NAME" where there is no value, with the names and values of the
     * long options in memext(1); NULL ends the list. Numbers that are several words there are separated by
     * blanks: {"size=510 510 1022", "steps=64", "device=/mnt/nvme", "dram=512MiB", "verify", NULL}. Also
     * "snapshot=100:DIR:4", which writes every fourth cell of the state every 100 steps to DIR while the run
     * goes on. "same", together with "resume": the options describe the whole problem. An option that is not
     * given has its default, not the store's value. A store of another problem is refused (-EEXIST). Not
     * taken: json, quiet, explain, help. Copied. */
    const char *const *options;
    const struct mx_source *source; /* instead of the options init and input; NULL = none. Copied */
    const struct mx_sink *sink;     /* instead of the option output; NULL = none. Copied */
    /* A remark for the user, while the run prepares, on a thread of the library; NULL = not wanted. */
    void (*remark)(void *context, const char *sentence);
    void *context; /* of remark */
};

/* Reads the options. Nothing is touched, no thread is started. -EINVAL (an option; names it), -ENOMEM. */
int mx_run_open(const struct mx_run_options *options, mx_why *why, mx_run **out);

/* Makes the plan and opens source, sink, device and Buffers, so that whatever can be refused is refused now:
 * the errors of mx_device_open, -EINVAL (a request that contradicts itself, or what the store holds with
 * `resume`), -ENOMEM (no plan fits into the DRAM; why names the smallest that would do), -ENOSPC, -ENOTSUP,
 * errors of source and sink, -EINTR (mx_run_stop). With the option `dry-run` nothing is opened and the run
 * cannot be started. May be left out: mx_run_start does it then. Waits for a thread of its own. Not to be
 * called again after an error. */
int mx_run_prepare(mx_run *run, mx_why *why);

/* Compares the problem of the options with that of the store in the place; the step of the store does not
 * matter. Needs the options `resume` and `same`. 0 = the same problem. -EEXIST = another one, with a sentence
 * that names the difference and the way out. -ENOENT (no store), -EINVAL (it holds no state), errors of files
 * that are compared. Opens and changes nothing; the run cannot be started afterwards. Waits for a thread of
 * its own. */
int mx_run_compare(mx_run *run, mx_why *why);

/* What a program does to the state that a run goes on from, with the option `resume`. The run reads all
 * planes of the state in order of z and calls `planes` for each. It writes what comes back to another Buffer
 * and commits that before the next step, with the new values of the option edit-param. If the process is
 * killed before the commit, the store has the old state; after it, the new one. */
struct mx_edit {
    uint32_t size; /* sizeof(struct mx_edit) */
    void *context; /* first argument of the function */
    /* box[0] to box[n - 1] are the same plane of each field of the state, of a rank its own planes: change
     * box->data. Cells count the frame if `frame` says so, else they begin with the interior. Calls come one
     * at a time, on a thread of the library. 0, or a negative errno that ends the run, with a sentence in
     * *why (or none); nothing is changed in the store then. */
    int (*planes)(void *context, const struct mx_grid_box *box, int32_t n, mx_why *why);
    /* The planes come with their frame, and the frame may be changed where the sides are fixed. Otherwise
     * they are those of the interior. */
    bool frame;
    /* Read-only fields that get other values from here on: names, NULL at the end. `source` has their planes,
     * frame included: its functions region (or row) and nothing else are called, as in struct mx_source. A
     * field whose file is read in place keeps its values (-ENOTSUP; the option field-copy at the beginning
     * prevents that). NULL = none. `planes` may be NULL then. */
    const char *const *fields;
    const struct mx_source *source;
};

/* Asks the run to make these changes. Call it before mx_run_prepare or mx_run_start. *edit is copied, *source
 * and the names too. Also for a run without steps left: it changes the state and ends. -EINVAL (`resume` is
 * not set, or `size` is wrong), -EALREADY (it was prepared or started).
 */
int mx_run_edit(mx_run *run, const struct mx_edit *edit, mx_why *why);

/* Starts the run on threads of its own, which block all signals, and returns. -EALREADY (it was started, or
 * mx_run_prepare failed), -EINVAL (dry-run), -EAGAIN (no thread can be had). */
int mx_run_start(mx_run *run, mx_why *why);

struct mx_run_progress {
    uint32_t size;     /* sizeof(struct mx_run_progress), set by the caller; no more is written */
    uint32_t n_phases; /* phases begun so far: another number is another phase */
    char
        phase[12]; /* "prepare" "initial" "edit" "frames" "updates" "checksum" "verify" "output"; "" before */
    char unit[12]; /* of done and total: "B" or "updates" (of cells); "" where they are 0 */
    int64_t done, total;    /* of this phase; done may pass total where cells are computed twice */
    double seconds;         /* since the phase began, or that it took */
    double rate;            /* done in a second */
    int64_t committed_step; /* time step that a resumed run would go on from; -1 = none is committed */
    /* The newest check, with the options check or until. check_step: the state after this step was checked;
     * -1 = none yet. max_change: the greatest change of a cell in that step. rms_change: the root mean square
     * of the changes; both are NaN for a kernel of several stages. check: the norms that the criteria use, as
     * text: "step 400: max-change 1.3e-05". */
    int64_t check_step;
    double max_change, rms_change;
    char check[104];
};

/* How far the run is. 0 = under way (or not started yet), 1 = it has ended well; or the error that ended it:
 * -EINTR (mx_run_stop), -EUCLEAN (verified, and the result differs from the plain computation: a fault of the
 * machine), -EDOM (cells of the state are NaN or infinite, and the option nonfinite=ignore was not given: the
 * last commit is finite), errors of devices, sources and sinks, and those of mx_run_prepare. progress may be
 * NULL. Any thread may call. */
int mx_run_poll(mx_run *run, mx_why *why, struct mx_run_progress *progress);
/* The same when the run ends or after so many seconds, whatever comes first; negative = when it ends. */
int mx_run_wait(mx_run *run, double seconds, mx_why *why, struct mx_run_progress *progress);

/* Asks the run to end: what is under way is finished, and the newest complete sweep is committed where the
 * algorithm allows, for a run with the option `resume` to go on from. Returns at once. Any thread and any
 * signal handler may call. NULL allowed. */
void mx_run_stop(mx_run *run);

/* The report as one JSON object, the text that `memext run --json` writes: problem, machine, plan,
 * predictions and, once the run has ended, what was measured. *out is to be given to free(). -EBUSY (the run
 * is under way), -ENOMEM. */
int mx_run_report(mx_run *run, mx_why *why, char **out);

/* How the plan of a prepared run was chosen, for people: what bounds it, what was tried, who won and why, as
 * `memext run --explain` prints it. *out is to be given to free(). -EINVAL (it is not prepared), -ENOMEM. */
int mx_run_explain(mx_run *run, mx_why *why, char **out);

/* What memext sees of the machine as one JSON object, the text that `memext info --json` writes: machine,
 * dram_limit_bytes, reserve_bytes, backends and whether they work here, algorithms, stencils; with a path (a
 * directory, file or block device; NULL = none) `device`. *out is to be given to free(). -ENOENT, -EACCES
 * (the path), -ENOMEM. */
int mx_machine_report(const char *path, mx_why *why, char **out);

/* Stops the run if it is under way, waits for its end, closes and frees everything. NULL allowed. */
void mx_run_close(mx_run *run);

#ifdef __cplusplus
}
#endif
#endif
