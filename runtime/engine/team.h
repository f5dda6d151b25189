/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - inside engine/ only: a persistent team of threads with places of their own, and patient waiting.
 */
#ifndef MX_TEAM_H
#define MX_TEAM_H

#include <memext/memext.h>

typedef struct mx_team mx_team;
typedef void mx_team_fn(void *arg, int thread, int threads);

/* threads >= 1, each where mx_machine_place puts its number; the caller is not one of them, so that its
 * affinity stays as it is. -ENOMEM, -EAGAIN. */
int mx_team_create(int threads, mx_why *why, mx_team **out);
void mx_team_free(mx_team *team); /* NULL allowed */
/* Runs fn on every thread and returns when all are done. */
void mx_team_run(mx_team *team, mx_team_fn *fn, void *arg);
/* Has every thread run fn, once at least after this call, and returns at once. A thread that is in fn already
 * is not disturbed: it runs fn again when it returns. Not together with mx_team_run. */
void mx_team_start(mx_team *team, mx_team_fn *fn, void *arg);
/* Inside fn: returns when every thread has come. */
void mx_team_barrier(mx_team *team);

/* One round of waiting for another thread: pauses first, then yields the core, then sleeps in short naps,
 * since the machine may have fewer free cores than the team has threads. *rounds starts at 0. With
 * OMP_WAIT_POLICY=passive in the environment the naps begin soon. */
void mx_wait_round(unsigned *rounds);

#endif
