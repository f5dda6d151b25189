/* SPDX-License-Identifier: BSD-3-Clause */
/* observed.c - one timeline and one trace of all ranks. */
#include "run/ranks/ranks.h"

#include "run/state.h"

#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_nameless(struct mx_run *r, int *fd, FILE **out) {
    *out = tmpfile();
    *fd = *out != NULL ? fcntl(fileno(*out), F_DUPFD_CLOEXEC, 3) : -1;
    if (*fd >= 0) return 0;
    const int err =
        mx_fail(&r->why, -errno, "no temporary file can be made for the timeline or trace of rank %d: %s",
                r->ranks.rank, strerror(errno));
    if (*out != NULL) fclose(*out);
    return *out = NULL, err;
}

int mx_run_begin_observed(struct mx_run *r, FILE *out[2]) {
    struct mx_run_ranks *q = &r->ranks;
    int err = 0;
    out[0] = out[1] = NULL;
    if (!mx_is_rank(q)) return 0;
    q->observed[0] |= r->o.timeline != NULL;
    q->observed[1] |= r->o.trace != NULL;
    for (int i = 0; i < 2 && err == 0; i++) err = mx_run_agree_any(r, &q->observed[i]);
    if (err < 0 || (!q->observed[0] && !q->observed[1])) return err;
    for (int i = 0; i < 2 && err == 0; i++)
        if (q->rank > 0 && q->observed[i]) err = open_nameless(r, &q->observed_fd[i], &out[i]);
    if (err == 0) err = mx_run_meet(r);
    for (int i = 0; i < 2 && err < 0; i++) {
        if (out[i] != NULL) fclose(out[i]);
        out[i] = NULL;
    }
    return err;
}

static int join_observed(struct mx_run *r, int which, const char *option, mx_why *why) {
    struct mx_run_ranks *q = &r->ranks;
    const int own = which == 0 ? r->outputs.timeline.fd : r->outputs.trace.fd;
    if (q->rank == 0 && own < 0)
        return mx_fail(why, -EINVAL,
                       "another rank has --%s and rank 0 has not: give it to all ranks, or to rank 0 alone",
                       option);
    int err = q->rank > 0 && lseek(q->observed_fd[which], 0, SEEK_SET) < 0 ? -errno : 0;
    for (int i = 1; i < q->ranks && err == 0; i++)
        if (q->rank == 0 || q->rank == i)
            err = mx_link_pour(q->link, i, q->rank == 0 ? own : q->observed_fd[which], why);
    return err;
}

int mx_run_join_observed(struct mx_run *r, mx_why *why) {
    struct mx_run_ranks *q = &r->ranks;
    if (!mx_is_rank(q)) return 0;
    int err = q->observed[0] ? join_observed(r, 0, "--timeline", why) : 0;
    if (err < 0 || !q->observed[1]) return err;
    err = join_observed(r, 1, "--trace", why);
    if (err < 0 || q->rank > 0) return err;
    const off_t end = lseek(r->outputs.trace.fd, 0, SEEK_CUR);
    err = end < 0
              ? -errno
              : mx_write_all(r->outputs.trace.fd, mx_timeline_trace_end, strlen(mx_timeline_trace_end), end);
    return err < 0 ? mx_fail(why, err, "the trace cannot be written: %s", strerror(-err)) : 0;
}
