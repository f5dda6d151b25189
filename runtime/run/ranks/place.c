/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - where the stores of ranks are, and who else is on this machine. */
#include "run/ranks/ranks.h"

#include "run/state.h"

#include "files/folder.h"
#include "machine/machine.h"
#include "machine/minmax.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ directories */

/* "%r" is the rank; in a directory without it each has one of its own. */
int mx_run_check_own_place(struct mx_run *r) {
    struct stat st;
    const char *path = r->o.path;
    if (path == NULL || strstr(path, "%r") != NULL || (stat(path, &st) == 0 && S_ISDIR(st.st_mode))) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "%.300s would be the place of every rank: give a directory, or a name with %%r, which "
                   "stands for the number of the rank",
                   path);
}

int mx_run_take_folder(struct mx_run *r, const char *path) {
    struct mx_run_ranks *q = &r->ranks;
    const int err = mx_folder_take(path, &q->folder_fd);
    if (err < 0) return mx_fail(&r->why, err, "%.300s cannot be created: %s", path, strerror(-err));
    snprintf(q->folder, sizeof q->folder, "%s", path);
    return 0;
}

void mx_run_leave_folders(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    if (q->folder_fd >= 0) close(q->folder_fd);
    q->folder_fd = -1;
    if (q->folder[0] != 0 && !r->o.dry_run) mx_folder_leave(q->folder, false);
    q->folder[0] = 0;
}

int mx_run_own_place(struct mx_run *r, int rank, char *own, size_t capacity, bool *make) {
    const char *path = r->o.path, *at = strstr(path, "%r");
    struct stat st;
    int n;
    if (at != NULL) {
        n = snprintf(own, capacity, "%.*s%d%s", (int)(at - path), path, rank, at + 2);
        /* A directory that is named so is made; a file is its store's own business. */
        *make = n > 0 && at[2] == 0 && (stat(own, &st) != 0 || S_ISDIR(st.st_mode));
    } else {
        n = snprintf(own, capacity, "%s/rank-%d", path, rank);
        *make = !r->o.resume;
    }
    return n < (int)capacity ? 0 : mx_fail(&r->why, -ENAMETOOLONG, "the path of -d is too long");
}

int mx_run_take_own_place(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    bool make;
    if (r->o.path == NULL) return 0;
    const int err = mx_run_own_place(r, q->rank, q->path, sizeof q->path, &make);
    if (err < 0) return err;
    r->o.path = q->path;
    return make && !r->o.dry_run ? mx_run_take_folder(r, q->path) : 0;
}

/* ------------------------------------------------------------------ who else is on this machine */

enum { MACHINE_BYTES = 64 };

/* What tells this machine, as long as it is up, from all others: containers have names of their own. */
static void name_machine(char out[MACHINE_BYTES]) {
    memset(out, 0, MACHINE_BYTES);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = f != NULL && fgets(out, MACHINE_BYTES, f) != NULL;
    if (f != NULL) fclose(f);
    if (!read) gethostname(out, MACHINE_BYTES - 1);
}

/* Who a rank shares a machine and its cores with. */
struct home {
    char machine[MACHINE_BYTES];
    cpu_set_t cores;
};

static int compare_homes(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    struct home mine, *all = calloc((size_t)q->ranks, sizeof *all);
    if (all == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    memset(&mine, 0, sizeof mine);
    name_machine(mine.machine);
    sched_getaffinity(0, sizeof mine.cores, &mine.cores);
    const int err = mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    q->places = q->core_places = 0;
    for (int i = 0; i < q->ranks && err == 0; i++) {
        if (memcmp(all[i].machine, mine.machine, MACHINE_BYTES) != 0) continue;
        q->place += i < q->rank;
        q->places++;
        if (!CPU_EQUAL(&all[i].cores, &mine.cores)) continue;
        q->core_place += i < q->rank;
        q->core_places++;
    }
    free(all);
    return err;
}

void mx_run_home(const struct mx_run *r, int *number, int *ranks) {
    *number = r->ranks.place;
    *ranks = r->ranks.places;
}

bool mx_run_ranks_apart(const struct mx_run *r) {
    const char *name = r->ranks.link_name != NULL ? r->ranks.link_name : r->o.link;
    return name != NULL && strcmp(name, "local") != 0;
}

int mx_run_ranks_here(const struct mx_run *r) { return r->ranks.places < 1 ? 1 : r->ranks.places; }

int mx_run_own_cores(const struct mx_run *r, int cores) {
    return r->ranks.core_places < 2 ? cores : mx_max(1, cores / r->ranks.core_places);
}

int mx_run_find_place(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    const bool local = !mx_run_ranks_apart(r);
    q->place = q->core_place = local ? q->rank : 0;
    q->places = q->core_places = local ? mx_run_ranks_of(r) : 1;
    const int err = local || !mx_is_rank(q) ? 0 : compare_homes(r);
    if (err == 0 && mx_is_rank(q)) mx_machine_share(q->core_place, q->core_places);
    return err;
}
