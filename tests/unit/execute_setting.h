/* SPDX-License-Identifier: BSD-3-Clause */
/* execute_setting.h - a random problem and plan on a device, run, and compared with the plain loop. */
#ifndef MX_TEST_EXECUTE_SETTING_H
#define MX_TEST_EXECUTE_SETTING_H

#include "effort.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "random_points.h"
#include "random_sides.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What is seen of a run from outside, see below. */
struct watch;

struct setting {
    struct mx_problem problem;
    struct mx_plan plan;
    const struct mx_algorithm *algorithm;
    const char *backend;
    enum mx_advice advice;
    const char *fault;
    int32_t n_buffers; /* 0 = 2 */
    int32_t source;    /* Buffer of the initial grid */
    int32_t committed; /* 1 = as if it was committed already */
    double commit_every_s;
    bool integrity;
    struct watch *watch;          /* NULL = nobody watches */
    struct random_points *points; /* NULL = none; then `commit` has no context */
};

struct expectation {
    const struct mx_layout *layout;
    const char *grid;
    int64_t wrong_rows;
};

struct outcome {
    int err;
    bool ran;
    mx_why why;
    struct mx_executed done;
};

struct watch {
    const struct setting *setting;
    const struct mx_layout *layout;
    int fd;
    uint64_t offset[3];
    char *now; /* a Buffer as it is in the file */
    pthread_mutex_t lock;
    pthread_cond_t stored;
    int32_t durable;    /* Buffer of the last commit, -1 = none */
    char *durable_copy; /* what it held then */
    int64_t times[64];  /* of commits */
    int n, fail_at;
    int32_t hold_stores; /* a commit lasts until so many STOREs have ended, or for 20 ms; */
    uint64_t hold_bytes; /* or until so many bytes of the next sweep were stored, or for minutes; each sweep
                            stores a Buffer and is committed */
    int64_t stores;      /* events so far */
    uint64_t bytes;      /* of these */
    int64_t last_sweep;  /* time of the last that was reported complete */
    int stop_at;         /* after so many ADVANCEs; 0 = never */
    int advances;
    atomic_int stop;
    int64_t spoil_time; /* spoil_commit: the byte spoil_at of the Buffer committed then */
    uint64_t spoil_at;
    int wrong, changed,
        held_out; /* the findings: what a commit saw, what a STORE did, commits held in vain */
};

extern uint64_t state; /* of pick */
int64_t pick(int64_t low, int64_t high);
void make_dir(char *path, size_t capacity);
void random_problem(struct mx_problem *p);
void random_plan(struct setting *s);
/* nt plain triple loops over whole arrays: the definition of the result. */
char *plain(const struct mx_problem *p, const struct mx_layout *l, struct random_points *points);
const char *describe(const struct setting *s, char *text, size_t capacity);
/* Opens, initialises, executes, compares. Returns what mx_execute returned. */
struct outcome run(const struct setting *s, const char *dir, int (*commit)(void *, int64_t, int32_t),
                   void *context);
struct setting stream_setting(const char *backend);
struct setting side_file_setting(size_t i, const char *backend, const char *engine);
const atomic_int *watch_stop(const struct watch *w);
int64_t wrong_rows(const struct mx_layout *l, const char *a, const char *b);
void watch_open(struct watch *w, const struct setting *s, const struct mx_layout *layout, const char *place,
                mx_buffer *const *buffers);
void watch_close(struct watch *w);
void watch_event(void *context, const struct mx_event *e);
int watch_commit(void *context, int64_t time, int32_t buffer);
/* redundant, and stream whole, in strips, and in strips with a side file; sizes that divide nothing, and
 * small ones, where several sweeps are in the window at once. */
struct setting watched_setting(int kind, bool tiny);
void random_watch(struct setting *s, int i, char *spec, size_t capacity);

#endif
