/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options.h"

#include "files/output.h"
#include "observe/report.h"

#include <memext/backend.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A letter is itself to getopt, a row without one its number and this. */
enum { CODE = 256 };
static const struct mx_option *const rows = mx_option_rows;

int mx_exit_status(int err, bool moving) {
    switch (err) {
    case 0:
        return MX_EXIT_OK;
    case -EIO:
    case -EREMOTEIO:
    case -ENODATA:
    case -EBADMSG:
        return MX_EXIT_IO;
    case -EINTR:
    case -ECANCELED:
        return MX_EXIT_INTERRUPTED;
    case -EDOM:
        return MX_EXIT_NONFINITE;
    case -EINVAL:
    case -ENOMEM:
    case -ENOTSUP:
        return MX_EXIT_REFUSED;
    default:
        return moving ? MX_EXIT_IO : MX_EXIT_REFUSED;
    }
}

/* getopt says no more than that it does not understand: unknown, or a beginning of several. */
static int explain_unknown(enum mx_command command, const char *word, mx_why *why) {
    char names[256] = "";
    size_t n = 0, length = strcspn(word, "=");
    int matches = 0;
    bool is_long = length > 2 && word[0] == '-' && word[1] == '-';
    for (int i = 0; is_long && rows[i].name != NULL; i++) {
        if (!(rows[i].commands & command) || strncmp(rows[i].name, word + 2, length - 2) != 0) continue;
        int put = snprintf(names + n, sizeof names - n, "%s--%s", matches++ > 0 ? ", " : "", rows[i].name);
        n = n + (size_t)put < sizeof names ? n + (size_t)put : sizeof names - 1;
    }
    if (matches > 1)
        return mx_fail(why, -EINVAL, "option '%.*s' can be %s: write more of it", (int)length, word, names);
    if (matches == 1)
        return mx_fail(why, -EINVAL, "option '%.*s' (%s) takes no value", (int)length, word, names);
    for (int i = 0; is_long && rows[i].name != NULL; i++)
        if (strlen(rows[i].name) == length - 2 && strncmp(rows[i].name, word + 2, length - 2) == 0)
            return mx_fail(why, -EINVAL,
                           "option '%.*s' has no effect on this command; --help lists those that have",
                           (int)length, word);
    return mx_fail(why, -EINVAL, "option '%.60s' is not known; --help lists the options", word);
}

/* A letter is told by optopt; of a long option the word before optind is meant. */
static int explain_error(enum mx_command command, int code, const char *word, mx_why *why) {
    const char letter[] = {'-', (char)optopt, 0};
    if (optopt > 0 && optopt < CODE) word = letter;
    if (code == ':')
        return mx_fail(why, -EINVAL, "option '%.60s' needs a value; --help shows its form", word);
    return explain_unknown(command, word, why);
}

static const struct mx_option *row_of(int code) {
    for (int i = 0; rows[i].name != NULL; i++)
        if (code == CODE + i || (rows[i].letter != 0 && code == rows[i].letter)) return &rows[i];
    return NULL;
}

static void list_options(enum mx_command command, struct option *longs, char *shorts) {
    int n = 0;
    for (int i = 0; rows[i].name != NULL; i++) {
        if (!(rows[i].commands & command)) continue;
        longs[n++] =
            (struct option){rows[i].name, rows[i].argument ? required_argument : no_argument, NULL, CODE + i};
        if (rows[i].letter) {
            char letter[3] = {(char)rows[i].letter, rows[i].argument ? ':' : 0, 0};
            strcat(shorts, letter);
        }
    }
    longs[n] = (struct option){0};
}

/* Takes all words of a value: optarg and those that follow it, joined by blanks; a text is passed as it is.
 */
static int take_words(const struct mx_option *row, int argc, char **argv, struct mx_options *o, mx_why *why) {
    char joined[512];
    if (row->words < 2) return mx_option_take(row, optarg, o, why);
    size_t n = (size_t)snprintf(joined, sizeof joined, "%s", optarg);
    for (int i = 1; i < row->words && optind < argc && n < sizeof joined; i++)
        n += (size_t)snprintf(joined + n, sizeof joined - n, " %s", argv[optind++]);
    if (n >= sizeof joined) return mx_fail(why, -EINVAL, "--%s: '%.60s...' is too long", row->name, optarg);
    return mx_option_take(row, joined, o, why);
}

/* info and export take one word, the place. */
static int take_place(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out) {
    if (optind < argc && (command & (MX_CMD_INFO | MX_CMD_EXPORT))) out->place = argv[optind++];
    if (optind < argc)
        return mx_fail(why, -EINVAL, "'%s' is no option; --help lists the options", argv[optind]);
    return 0;
}

int mx_options_parse(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out) {
    struct option longs[MX_OPTIONS_MOST + 1];
    char shorts[2 * MX_OPTIONS_MOST + 4] = ":";
    memset(out, 0, sizeof *out);
    list_options(command, longs, shorts);
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1) break;
        const struct mx_option *row = row_of(code);
        if (row == NULL) return explain_error(command, code, argv[optind - 1], why);
        int err = take_words(row, argc, argv, out, why);
        if (err != 0) return err;
    }
    int err = take_place(command, argc, argv, why, out);
    return err < 0 ? err : mx_options_complete(command, out, why);
}

void mx_options_help(enum mx_command command, const char *program) {
    printf("usage: %s [options]\n\n", program);
    for (int i = 0; rows[i].name != NULL; i++) {
        char left[64];
        if (!(rows[i].commands & command)) continue;
        if (rows[i].letter && strlen(rows[i].name) > 0)
            snprintf(left, sizeof left, "-%c, --%s %s", rows[i].letter, rows[i].name,
                     rows[i].argument ? rows[i].argument : "");
        else
            snprintf(left, sizeof left, "    --%s %s", rows[i].name,
                     rows[i].argument ? rows[i].argument : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
    printf("\nSizes take KiB, MiB, GiB, TiB. Exit status: 0 done, 2 usage or a request that cannot be met, 3 "
           "I/O error,\n"
           "4 verification failed, 5 interrupted (resumable with redundant and stream), 6 cells are not "
           "finite.\n"
           "skewed, skewed-y, skewed-min and direct-skewed rewrite both Buffers in place: they cannot be "
           "resumed.\n");
}

int mx_write_json(json_t *object, const char *path, mx_why *why) {
    struct mx_output output;
    const bool standard = strcmp(path, "-") == 0;
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    int err = text == NULL ? mx_fail(why, -ENOMEM, "no memory for the report") : 0;
    if (err == 0 && !standard) err = mx_output_open(path, "the report", MX_OUTPUT_REPLACE, why, &output);
    if (err == 0) err = mx_output_report(standard ? NULL : &output, text, why);
    free(text);
    return err;
}
