/* report.h - the report of a run: JSON for programs, a summary for people. */
#ifndef MX_REPORT_H
#define MX_REPORT_H

#include <memext/memext.h>

#include "machine/machine.h"
#include "observe/usage.h"

#include <jansson.h>
#include <stdio.h>

struct mx_report {
    struct mx_problem problem;
    struct mx_machine machine;
    struct mx_plan plan;
    struct mx_layout layout;
    struct mx_device_facts device;
    struct mx_counters counters; /* of the stencil phase */
    struct mx_usage usage;       /* of the stencil phase */
    const char *status;          /* "planned" "done" "interrupted" "failed" "different" */
    double seconds, init_seconds, verify_seconds;
    double update_s, blk2blk_s, wait_s;
    int64_t updates; /* cells computed, redundant ones included */
    int64_t steps_done, resumed_from;
    int64_t predicted_read_bytes, predicted_write_bytes, predicted_init_bytes, predicted_updates;
    int64_t side_file_bytes; /* of faces, beside the Buffers; 0 = none */
    double predicted_seconds;
    uint64_t dram_budget_bytes, dram_limit_bytes, block_bytes, peak_rss_bytes;
    bool moves;        /* data moved by core (else by the kernel, on a mapping) */
    int verified;      /* 1 yes, 0 no, -1 not asked */
    char checksum[17]; /* "" if there is no result */
    const char *input, *init;
};

json_t *mx_json_problem(const struct mx_problem *problem);
json_t *mx_json_machine(const struct mx_machine *machine);
json_t *mx_json_plan(const struct mx_plan *plan);
json_t *mx_report_json(const struct mx_report *report);
/* Writes one object to `path` ("-" = stdout) and drops the reference. 0 or -errno. */
int mx_json_write(json_t *object, const char *path, mx_why *why);
void mx_report_print(const struct mx_report *report, FILE *to);

#endif
