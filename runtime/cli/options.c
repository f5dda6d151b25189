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
    size_t n = 0;
    const size_t length = strcspn(word, "=");
    const bool is_long = length > 2 && word[0] == '-' && word[1] == '-';
    const struct mx_option *row;
    int matches = 0;
    bool others = false;
    for (int i = 0; is_long && (row = mx_option_at(i)) != NULL; i++) {
        const bool begins = strncmp(row->name, word + 2, length - 2) == 0;
        others |= begins && strlen(row->name) == length - 2 && !(row->commands & command);
        if (!(row->commands & command)) continue;
        if (!begins) continue;
        const int put = snprintf(names + n, sizeof names - n, "%s--%s", matches++ > 0 ? ", " : "", row->name);
        n = n + (size_t)put < sizeof names ? n + (size_t)put : sizeof names - 1;
    }
    if (matches > 1)
        return mx_fail(why, -EINVAL, "option '%.*s' is ambiguous, it can be %s: write more of it",
                       (int)length, word, names);
    if (matches == 1)
        return mx_fail(why, -EINVAL, "option '%.*s' (%s) takes no value", (int)length, word, names);
    if (others)
        return mx_fail(why, -EINVAL,
                       "option '%.*s' belongs to other commands; --help all lists the options of this one",
                       (int)length, word);
    return mx_no_option(command, is_long ? word + 2 : word, is_long ? length - 2 : strlen(word),
                        is_long ? "--" : "", "--help all lists the options", why);
}

/* A letter is told by optopt; of a long option the word before optind is meant. */
static int explain_error(enum mx_command command, int code, const char *word, mx_why *why) {
    const char letter[] = {'-', (char)optopt, 0};
    if (optopt > 0 && optopt < CODE) word = letter;
    if (code == ':')
        return mx_fail(why, -EINVAL, "option '%.60s' needs a value; --help all shows its form", word);
    return explain_unknown(command, word, why);
}

static const struct mx_option *row_of(enum mx_command command, int code) {
    const struct mx_option *row;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++)
        if ((row->commands & command) && (code == CODE + i || (row->letter != 0 && code == row->letter)))
            return row;
    return NULL;
}

static int takes_argument(const struct mx_option *row) {
    return row->argument == NULL ? no_argument : row->optional ? optional_argument : required_argument;
}

static void list_options(enum mx_command command, struct option *longs, char *shorts) {
    const struct mx_option *row;
    int n = 0;
    for (int i = 0; (row = mx_option_at(i)) != NULL && n < MX_OPTIONS_MOST; i++) {
        if (!(row->commands & command)) continue;
        longs[n++] = (struct option){row->name, takes_argument(row), NULL, CODE + i};
        if (row->letter == 0) continue;
        const char letter[3] = {(char)row->letter, takes_argument(row) == required_argument ? ':' : 0, 0};
        strcat(shorts, letter);
    }
    longs[n] = (struct option){0};
}

/* All words of a value: optarg and those that follow it, joined by blanks. For an option whose value may be
 * left out, the next word is the value unless it is an option. */
static int add_option(const struct mx_option *row, int argc, char **argv, struct mx_asked *out, mx_why *why) {
    char joined[512], *own;
    if (row->optional && optarg == NULL && optind < argc && argv[optind][0] != '-') optarg = argv[optind++];
    if (row->words < 2) return mx_asked_add(out, row, optarg, NULL, why);
    size_t n = (size_t)snprintf(joined, sizeof joined, "%s", optarg);
    for (int i = 1; i < row->words && optind < argc && n < sizeof joined; i++) {
        if (row->fewest > 0 && i >= row->fewest && argv[optind][strspn(argv[optind], "0123456789")] != 0)
            break;
        n += (size_t)snprintf(joined + n, sizeof joined - n, " %s", argv[optind++]);
    }
    if (n >= sizeof joined) return mx_fail(why, -EINVAL, "--%s: '%.60s...' is too long", row->name, optarg);
    if ((own = strdup(joined)) == NULL) return mx_fail(why, -ENOMEM, "no memory for the options");
    return mx_asked_add(out, row, own, own, why);
}

int mx_options_read(enum mx_command command, int argc, char **argv, int plain, mx_why *why,
                    struct mx_asked *out) {
    struct option longs[MX_OPTIONS_MOST + 1];
    char shorts[2 * MX_OPTIONS_MOST + 4] = ":";
    bool ended = false;
    list_options(command, longs, shorts);
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    while (!ended) {
        const int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1) break;
        const struct mx_option *row = row_of(command, code);
        if (row == NULL) return explain_error(command, code, argv[optind - 1], why);
        const int err = add_option(row, argc, argv, out, why);
        if (err < 0) return err;
        ended = row->optional;
    }
    while (!ended && optind < argc && out->n_plain < plain) out->plain[out->n_plain++] = argv[optind++];
    if (!ended && optind < argc) out->extra = argv[optind];
    return 0;
}

static void say(void *none, const char *sentence) {
    (void)none;
    fprintf(stderr, "memext: %s\n", sentence);
}

void mx_options_say_twice(const struct mx_asked *asked, const struct mx_options *o) {
    if (!o->quiet) mx_asked_say_twice(asked, say, NULL);
}

int mx_options_parse(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out) {
    struct mx_asked asked = {.n = 0};
    memset(out, 0, sizeof *out);
    int err =
        mx_options_read(command, argc, argv, command & (MX_CMD_INFO | MX_CMD_EXPORT) ? 1 : 0, why, &asked);
    if (err == 0) err = mx_asked_take(&asked, out, why);
    if (asked.n_plain > 0) out->place = asked.plain[0];
    if (err == 0) err = mx_options_complete(command, out, why);
    if (err == 0) mx_options_say_twice(&asked, out);
    mx_asked_free(&asked); /* texts are those of argv */
    return err;
}

int mx_write_json(json_t *object, const char *path, mx_why *why) {
    struct mx_output output;
    const bool standard = strcmp(path, "-") == 0;
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    int err = text == NULL ? mx_fail(why, -ENOMEM, "no memory for the report") : 0;
    if (err == 0 && !standard) err = mx_output_open(path, "the report", MX_OUTPUT_REPLACE, why, &output);
    if (err == 0) err = mx_output_text(standard ? NULL : &output, "the report", text, why);
    free(text);
    return err;
}
