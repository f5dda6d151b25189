/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the command: memext run | tune | info | export | kernel | view | wavefront, and the papers'
 * program names. */
#include "ask/near.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *summary;
    int (*main)(int argc, char **argv);
} commands[] = {
    {"run", "run a stencil computation out of core and report", mx_cmd_run},
    {"tune", "find the plan with the least predicted time, here or for another machine", mx_cmd_tune},
    {"info", "show this machine (cores, caches, NUMA, memory, backends, a device), or what a store holds",
     mx_cmd_info},
    {"export", "write the state that a store holds to a .npy file", mx_cmd_export},
    {"kernel", "build, check or show a kernel that you wrote", mx_cmd_kernel},
    {"view", "draw slices and a histogram of a store or a file as PNG (by the Python package)", mx_cmd_view},
    {"wavefront", "run the Livermore loop 23, a 2D implicit loop, out of core and report", mx_cmd_wavefront},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* The papers' programs: `stencil7p -n 4094 4096 2048 -t 1000 -d /dev/sdc` is `memext run --stencil star7
 * ...`. */
static const struct {
    const char *name, *stencil;
} programs[] = {{"stencil7p", "star7"}, {"stencil19p", "edge19"}, {"stencil27p", "box27"}};

static int run_program(const char *stencil, int argc, char **argv) {
    char **words = calloc((size_t)argc + 3, sizeof *words);
    if (words == NULL) return MX_EXIT_REFUSED;
    char option[] = "--stencil", value[16];
    snprintf(value, sizeof value, "%s", stencil);
    words[0] = argv[0];
    words[1] = option;
    words[2] = value;
    memcpy(words + 3, argv + 1, (size_t)(argc - 1) * sizeof *words);
    int status = mx_cmd_run(argc + 2, words);
    free(words);
    return status;
}

static void help(FILE *to) {
    fprintf(to,
            "memext %s: stencil computations on grids larger than DRAM\n\nusage: memext COMMAND [options]; "
            "memext COMMAND --help\n\n",
            MX_VERSION);
    for (int i = 0; i < N_COMMANDS; i++) fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\nexample: memext run -n 510 510 1022 -t 64 -d DIR --dram 512MiB --verify\n"
                "         DIR is a directory on a disk with 5 GiB free.\n");
}

static int run_command(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/'), *self = slash != NULL ? slash + 1 : argv[0];
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (strcmp(self, programs[i].name) == 0) return run_program(programs[i].stencil, argc, argv);
    if (argc < 2) return help(stderr), MX_EXIT_REFUSED;
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].main(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        if (argc == 2) return help(stdout), 0;
        char *of_command[] = {argv[2], "--help", NULL};
        for (int i = 0; i < N_COMMANDS; i++)
            if (strcmp(argv[2], commands[i].name) == 0) return commands[i].main(2, of_command);
        fprintf(stderr,
                "memext: '%.60s' is not a command; for a group of options try memext run --help %.60s\n",
                argv[2], argv[2]);
        return MX_EXIT_REFUSED;
    }
    if (strcmp(argv[1], "--version") == 0) return printf("memext %s\n", MX_VERSION), 0;
    if (strcmp(argv[1], "--options") == 0) return mx_options_dump();
    struct mx_near near = mx_near_to(argv[1], strlen(argv[1]));
    for (int i = 0; i < N_COMMANDS; i++) mx_near_offer(&near, commands[i].name);
    fprintf(stderr,
            "memext: '%s' is not a command; use run, tune, info, export, kernel, view or wavefront (memext "
            "--help)%s\n",
            argv[1], mx_near_say(&near, "").text);
    return MX_EXIT_REFUSED;
}

int main(int argc, char **argv) {
    mx_streams_open();
    mx_signals_catch();
    return mx_streams_end("memext", run_command(argc, argv));
}
