/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - job files of memext run: options as JSON. */
#ifndef MX_CLI_JOB_H
#define MX_CLI_JOB_H

#include "cli/options.h"

/* Fills options from argv, and from the job file that argv names. Options of argv replace those of the file.
 * `asked` holds the texts: free it after the options. 0; 1 = help was asked for; -EINVAL or another error. */
int mx_job_options(int argc, char **argv, mx_why *why, struct mx_asked *asked, struct mx_options *out);
/* Does --write-job: writes the options as a job file. */
int mx_job_write(const struct mx_asked *asked, const struct mx_options *options, mx_why *why);

#endif
