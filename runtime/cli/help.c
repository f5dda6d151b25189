/* SPDX-License-Identifier: BSD-3-Clause */
/* help.c - what --help prints, from the table of options. */
#include "ask/near.h"
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 34, WIDTH = 100 };

static const struct {
    enum mx_command command;
    const char *usage, *what;
} pages[] = {
    {MX_CMD_RUN,
     "memext run -n NX NY [NZ] -t NT -d PATH [options]\n"
     "       memext run --resume -d PATH [options]\n"
     "       memext run JOB.json [options]",
     "Computes a stencil or a kernel on a grid that is larger than memory, and reports."},
    {MX_CMD_TUNE, "memext tune -n NX NY [NZ] -t NT [options]",
     "Finds the plan with the least predicted time, here or for another machine, and runs nothing."},
    {MX_CMD_INFO, "memext info [STORE | -d PATH] [options]",
     "Shows processor, memory, backends and accelerators of this machine, the drive of -d,\nor what a store "
     "holds."},
    {MX_CMD_EXPORT, "memext export STORE -o GRID.npy [options]",
     "Writes the state that a store holds to a .npy file. The store stays as it is."},
    {MX_CMD_KERNEL, "memext kernel build|check|show FILE.c|FILE.so [options]",
     "Works on a kernel that you wrote.\n\n"
     "  build  compiles it, or finds it in the cache, and says where the object is\n"
     "  check  tests that it reads within its radius and gives the same bits however rows are divided\n"
     "  show   prints its form, radius, fields, parameters, reductions and identity\n\n"
     "The environment variable CC names the compiler. Default: cc, gcc or clang. Objects are kept in\n"
     "$XDG_CACHE_HOME/memext/kernels (~/.cache/memext/kernels)."},
    {MX_CMD_VIEW, "memext view STORE|FILE [options]",
     "Draws three slices and a histogram of each field as a PNG. It needs the Python package."},
    {MX_CMD_WAVEFRONT, "memext wavefront -n ROWS COLS -k K -d PATH [options]",
     "Runs Livermore loop 23 out of core: a 2D implicit loop over six matrices."},
    {MX_CMD_TUNE_WAVEFRONT, "memext tune --wavefront -n ROWS COLS -k K [options]",
     "Prints the plan of memext wavefront and runs nothing."},
};
enum { N_PAGES = sizeof pages / sizeof pages[0] };

/* A text in lines that begin at the column LEFT. */
static void print_text(const char *text) {
    int column = LEFT;
    for (const char *p = text; *p != 0;) {
        const int n = (int)strcspn(p, " ");
        if (column > LEFT && column + n + 1 > WIDTH) column = LEFT, printf("\n%*s", LEFT, "");
        column += n + (column > LEFT);
        printf("%s%.*s", p == text || column == LEFT + n ? "" : " ", n, p);
        p += n + (p[n] == ' ');
    }
    printf("\n");
}

/* Without the marks of words to be typed. */
static void print_summary(const struct mx_option *row) {
    char text[512];
    size_t n = 0;
    for (const char *p = row->summary; *p != 0 && n + 1 < sizeof text; p++)
        if (*p != '`') text[n++] = *p;
    text[n] = 0;
    if (row->initial != NULL) {
        n += (size_t)snprintf(text + n, sizeof text - n, " Default: ");
        for (const char *p = row->initial; *p != 0 && n + 2 < sizeof text; p++)
            if (*p != '`') text[n++] = *p;
        text[n++] = '.', text[n] = 0;
    }
    print_text(text);
}

/* Values stand before the sentence, where their number is small. */
static void print_values(const struct mx_option *row) {
    char text[512] = "";
    size_t n = 0;
    const char *name;
    for (int i = 0; (name = row->value_at(i)) != NULL && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? " | " : "", name);
    if (n >= sizeof text) return;
    printf("%*s", LEFT, "");
    print_text(text);
}

static void print_row(const struct mx_option *row) {
    char left[64], letter[8] = "    ";
    if (row->letter != 0) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    const int n = snprintf(left, sizeof left, "  %s--%s%s%s", letter, row->name,
                           row->argument != NULL ? " " : "", row->argument != NULL ? row->argument : "");
    if (n < LEFT)
        printf("%-*s", LEFT, left);
    else
        printf("%s\n%*s", left, LEFT, "");
    print_summary(row);
    if (row->value_at != NULL && strchr(row->argument, '|') == NULL) print_values(row);
}

static bool is_shown(const struct mx_option *row, enum mx_command command, int group, bool all) {
    return (int)row->group == group && ((all ? row->commands : row->first) & command);
}

static bool print_group(enum mx_command command, int group, bool all) {
    const struct mx_option *row;
    bool any = false;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++) {
        if (!is_shown(row, command, group, all)) continue;
        if (!any) printf("\n%s (%s)\n", mx_group_names[group].title, mx_group_names[group].name);
        any = true;
        print_row(row);
    }
    return any;
}

static bool has_group(enum mx_command command, int group, bool all) {
    const struct mx_option *row;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++)
        if (is_shown(row, command, group, all)) return true;
    return false;
}

static void print_groups(enum mx_command command, FILE *to) {
    int column = 0;
    for (int g = 0; g < MX_GROUPS; g++) {
        if (!has_group(command, g, true)) continue;
        if (column > 80) column = fprintf(to, ",\n") - 2;
        column += fprintf(to, "%s%s", column > 0 ? ", " : "", mx_group_names[g].name);
    }
}

/* Are there options that the first page does not have? */
static bool has_more(enum mx_command command) {
    const struct mx_option *row;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++)
        if ((row->commands & command) && !(row->first & command)) return true;
    return false;
}

static void print_end(enum mx_command command, bool all) {
    if (!all && has_more(command)) {
        printf("\nFor more options use --help all, or --help GROUP, where GROUP is one of\n");
        print_groups(command, stdout);
        printf(".\n");
    }
    if (command & (MX_CMD_KERNEL | MX_CMD_VIEW)) return;
    printf("\n");
    if (command & (MX_CMD_RUN | MX_CMD_TUNE))
        printf("The store is the file or device where memext keeps its Buffers. A Buffer is one copy of the "
               "grid.\n"
               "A sweep goes over the grid once, and computes many steps in Blocks (pieces of the grid in "
               "DRAM).\n"
               "The plan of a run is its algorithm, engine and size of Blocks. The tuner chooses it. A "
               "commit makes\n"
               "a state durable; the plan's line commits says whether a run can be resumed. man memext has "
               "more.\n\n");
    printf("A SIZE is a number of bytes, or a number with KiB, MiB, GiB or TiB.\n"
           "Exit status: 0: done; 2: wrong usage, or a request that memext cannot meet; 3: I/O error;\n"
           "%s5: interrupted%s.\n",
           command & (MX_CMD_RUN | MX_CMD_WAVEFRONT) ? "4: --verify found a difference; " : "",
           command & MX_CMD_RUN ? "; 6: NaN or infinite cells" : "");
}

static int no_group(enum mx_command command, const char *topic) {
    struct mx_near near = mx_near_to(topic, strlen(topic));
    for (int g = 0; g < MX_GROUPS; g++)
        if (has_group(command, g, true)) mx_near_offer(&near, mx_group_names[g].name);
    fprintf(stderr, "memext: --help '%.60s' is not a group of options; the groups are all, ", topic);
    print_groups(command, stderr);
    fprintf(stderr, "%s\n", mx_near_say(&near, "").text);
    return MX_EXIT_REFUSED;
}

int mx_options_help(enum mx_command command, const char *topic) {
    const unsigned loops = MX_CMD_WAVEFRONT | MX_CMD_TUNE_WAVEFRONT;
    const bool every = topic != NULL && strcmp(topic, "all") == 0;
    for (int g = 0; topic != NULL && !every && g < MX_GROUPS; g++)
        if (strcmp(mx_group_names[g].name, topic) == 0 && print_group(command, g, true)) return MX_EXIT_OK;
    if (topic != NULL && !every) return no_group(command, topic);
    for (int i = 0; i < N_PAGES; i++)
        if (pages[i].command == command) printf("usage: %s\n\n%s\n", pages[i].usage, pages[i].what);
    if (command & loops) print_group(command, MX_GROUP_WAVEFRONT, every);
    for (int g = 0; g < MX_GROUPS; g++)
        if (g != MX_GROUP_WAVEFRONT || !(command & loops)) print_group(command, g, every);
    print_end(command, every);
    if (command == MX_CMD_TUNE)
        printf("memext tune --wavefront --help lists the options of plans for memext wavefront.\n");
    return MX_EXIT_OK;
}
