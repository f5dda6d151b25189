/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_view.c - memext view: pictures are drawn by the Python package, which installs a command for it. */
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char drawer[] = "memext-view";

int mx_cmd_view(int argc, char **argv) {
    char name[sizeof drawer];
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return mx_options_help(MX_CMD_VIEW, argv[i + 1]);
    memcpy(name, drawer, sizeof name);
    argv[0] = name;
    execvp(drawer, argv);
    fprintf(
        stderr,
        "memext view: %s cannot be started: %s. It comes with the Python package: run pip install . in the "
        "folder of the sources. If the package is installed and memext-view is not on PATH, use python -m "
        "memext view\n",
        drawer, strerror(errno));
    return MX_EXIT_REFUSED;
}
