/* SPDX-License-Identifier: BSD-3-Clause */
/* short_run.c - ten steps of the 7-point stencil, verified, and the report.
 *     short_run DIRECTORY
 */
#include <memext/memext.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    char device[4200], *report = NULL;
    snprintf(device, sizeof device, "device=%s", argc > 1 ? argv[1] : ".");
    const char *const words[] = {"size=62 62 94", "steps=10", "dram=64MiB", "verify", device, NULL};
    struct mx_run_options options = {.size = sizeof options, .options = words};
    mx_why why = {""};
    mx_run *run = NULL;
    int state = mx_run_open(&options, &why, &run);
    if (state == 0) state = mx_run_start(run, &why);
    if (state == 0) state = mx_run_wait(run, -1, &why, NULL);
    if (state == 1 && mx_run_report(run, &why, &report) == 0) puts(report);
    if (state < 0) fprintf(stderr, "short_run: %s\n", why.text);
    free(report);
    mx_run_close(run);
    return state != 1;
}
