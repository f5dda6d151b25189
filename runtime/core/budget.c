/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/budget.h"

#include "core/size.h"
#include "core/sized.h"
#include "machine/machine.h"

#include <errno.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdlib.h>

struct mx_budget {
    pthread_mutex_t lock;
    struct mx_budget_facts facts;
};

int mx_budget_create(uint64_t limit_bytes, uint64_t reserve_bytes, mx_why *why, mx_budget **out) {
    struct mx_machine machine;
    int err = mx_machine_detect_memory(why, &machine);
    if (err != 0) return err;
    uint64_t most = mx_machine_dram_bytes(&machine);
    if (limit_bytes > most)
        return mx_fail(why, -EINVAL, "%s of DRAM were asked for, but %s has %s: lower --dram",
                       mx_size(limit_bytes).text,
                       most < machine.memory_bytes ? "the memory cgroup of this process" : "this machine",
                       mx_size(most).text);
    if (limit_bytes == 0) limit_bytes = most;
    if (reserve_bytes >= limit_bytes)
        return mx_fail(why, -EINVAL,
                       "a reserve of %s leaves nothing of %s of DRAM: lower --reserve or raise --dram",
                       mx_size(reserve_bytes).text, mx_size(limit_bytes).text);
    mx_budget *budget = calloc(1, sizeof *budget);
    if (budget == NULL) return mx_fail(why, -ENOMEM, "no memory for a budget");
    pthread_mutex_init(&budget->lock, NULL);
    budget->facts = (struct mx_budget_facts){.limit_bytes = limit_bytes, .reserve_bytes = reserve_bytes};
    *out = budget;
    return 0;
}

void mx_budget_free(mx_budget *budget) {
    if (budget == NULL) return;
    pthread_mutex_destroy(&budget->lock);
    free(budget);
}

void mx_budget_facts(const mx_budget *budget, struct mx_budget_facts *out) {
    mx_budget *b = (mx_budget *)budget; /* only the mutex is touched */
    pthread_mutex_lock(&b->lock);
    mx_sized_give(out, &b->facts, sizeof b->facts, MX_END_OF(struct mx_budget_facts, peak_bytes));
    pthread_mutex_unlock(&b->lock);
}

int mx_budget_take(mx_budget *budget, uint64_t bytes, mx_why *why) {
    if (budget == NULL) return 0;
    int err = 0;
    pthread_mutex_lock(&budget->lock);
    struct mx_budget_facts *f = &budget->facts;
    uint64_t room = f->limit_bytes - f->reserve_bytes - f->used_bytes;
    if (bytes > room) {
        err = mx_fail(
            why, -ENOMEM,
            "a Block of %s does not fit: of %s of DRAM, a reserve of %s and %s in use leave %s; choose "
            "smaller Blocks or more DRAM",
            mx_size(bytes).text, mx_size(f->limit_bytes).text, mx_size(f->reserve_bytes).text,
            mx_size(f->used_bytes).text, mx_size(room).text);
    } else {
        f->used_bytes += bytes;
        if (f->used_bytes > f->peak_bytes) f->peak_bytes = f->used_bytes;
    }
    pthread_mutex_unlock(&budget->lock);
    return err;
}

void mx_budget_give(mx_budget *budget, uint64_t bytes) {
    if (budget == NULL) return;
    pthread_mutex_lock(&budget->lock);
    budget->facts.used_bytes -= bytes;
    pthread_mutex_unlock(&budget->lock);
}
