/* SPDX-License-Identifier: BSD-3-Clause */
/* budget.h - how block.c uses a budget. */
#ifndef MX_BUDGET_H
#define MX_BUDGET_H

#include <memext/memext.h>

/* Counts bytes as used, and no longer. -ENOMEM with the figures if limit - reserve would be exceeded. NULL
 * budget: 0. */
int mx_budget_take(mx_budget *budget, uint64_t bytes, mx_why *why);
void mx_budget_give(mx_budget *budget, uint64_t bytes);

#endif
