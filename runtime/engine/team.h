/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - inside engine/ only: a persistent team of threads, each bound to its place, and waiting that gives
 * up the core.
 */
#ifndef MX_TEAM_H
#define MX_TEAM_H

#include <memext/memext.h>

typedef struct mx_team mx_team;
typedef void mx_team_fn(void *arg, int thread, int threads);

/* Starts threads >= 1 threads; mx_machine_place binds each by its number. The caller is not one of them, and
 * keeps its affinity. -ENOMEM, -EAGAIN. */
int mx_team_create(int threads, mx_why *why, mx_team **out);
void mx_team_free(mx_team *team); /* NULL allowed */
/* Runs fn on every thread and returns when all are done. */
void mx_team_run(mx_team *team, mx_team_fn *fn, void *arg);
/* Makes every thread run fn at least once after this call, and returns at once. A thread that is in fn
 * already runs it again when it returns. Not together with mx_team_run. */
void mx_team_start(mx_team *team, mx_team_fn *fn, void *arg);
/* Call it inside fn: returns when every thread has called it. */
void mx_team_barrier(mx_team *team);

/* Does one round of waiting for another thread. First rounds pause, later ones yield the core, and then they
 * sleep for a short time, since the machine may have fewer free cores than the team has threads. *rounds
 * starts at 0. With OMP_WAIT_POLICY=passive in the environment the sleeps begin soon. */
void mx_wait_round(unsigned *rounds);

#endif
