/* SPDX-License-Identifier: BSD-3-Clause */
/* words.c - why a kernel does not compile, in the words of cell.h. It looks only at what the compiler has
 * refused. It does not know the kernel's own macros and their expansions.
 */
#include "kernel/private.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 512, JOINED = '\001' }; /* JOINED: a line that goes on in the next one */
enum list { STATE, PARTNER, FIXED, PARAMS, REDUCES, MACRO, N_LISTS };
static const char *const list_names[] = {"MX_STATE", "MX_PARTNER", "MX_FIXED", "MX_PARAMS", "MX_REDUCES"};

struct word {
    const char *at; /* in the text */
    int length;
};

struct name {
    enum list list;
    struct word name, value, argument; /* argument: of the list that it stands in */
    bool function;                     /* a macro with arguments */
};

struct text {
    const char *path, *begin;
    struct name name[MOST_NAMES];
    int n;
    bool staggered;
    char *out;
    size_t capacity;
};

/* ---- words */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static bool is_space(char c) { return c == JOINED || isspace((unsigned char)c); }

static const char *skip(const char *at) {
    while (*at != 0 && is_space(*at)) at++;
    return at;
}

static struct word word_at(const char *at) {
    struct word w = {at, 0};
    while (is_word(at[w.length])) w.length++;
    return w;
}

static bool is(struct word w, const char *text) {
    return (int)strlen(text) == w.length && memcmp(w.at, text, (size_t)w.length) == 0;
}

static bool same(struct word a, struct word b) {
    return a.length == b.length && memcmp(a.at, b.at, (size_t)a.length) == 0;
}

/* One sentence, with the line that it is about. */
__attribute__((format(printf, 3, 4))) static bool say(struct text *t, struct word about, const char *format,
                                                      ...) {
    va_list args;
    int line = 1;
    for (const char *c = t->begin; c < about.at; c++) line += *c == '\n' || *c == JOINED;
    const int n = snprintf(t->out, t->capacity, "%.120s:%d: ", t->path, line);
    va_start(args, format);
    if (n > 0 && (size_t)n < t->capacity) vsnprintf(t->out + n, t->capacity - (size_t)n, format, args);
    va_end(args);
    return true;
}

/* ---- the text without comments, and without what stands in quotes; lines stay where they are */

static const char *blank_until(char *at, const char *end) {
    const size_t n = strlen(end);
    for (; *at != 0 && strncmp(at, end, n) != 0; at++)
        if (*at != '\n') *at = ' ';
    for (size_t i = 0; i < n && *at != 0; i++, at++)
        if (*at != '\n') *at = ' ';
    return at;
}

static char *blank_quotes(char *at) {
    const char quote = *at++;
    for (; *at != 0 && *at != quote && *at != '\n'; at++) {
        if (*at == '\\' && at[1] != 0 && at[1] != '\n') *at++ = ' ';
        *at = ' ';
    }
    return *at == quote ? at + 1 : at;
}

static void clean(char *text) {
    for (char *at = text; *at != 0;) {
        if (at[0] == '/' && at[1] == '*')
            at += blank_until(at, "*/") - at;
        else if (at[0] == '/' && at[1] == '/')
            while (*at != 0 && *at != '\n') *at++ = ' ';
        else if (at[0] == '\\' && at[1] == '\n')
            at[0] = ' ', at[1] = JOINED, at += 2;
        else if (*at == '"' || *at == '\'')
            at = blank_quotes(at);
        else
            at++;
    }
}

/* ---- what the kernel defines */

static void add_name(struct text *t, struct name name) {
    if (t->n < MOST_NAMES) t->name[t->n++] = name;
}

/* F(u, double) F(v, float) ..., F being the argument of the list. */
static void take_items(struct text *t, enum list list, struct word argument, const char *at) {
    for (at = skip(at); *at != 0 && *at != '\n';) {
        const struct word f = word_at(at);
        at = skip(at + f.length);
        if (!same(f, argument) || *at != '(') return;
        const struct word name = word_at(skip(at + 1));
        at = skip(name.at + name.length);
        if (name.length == 0 || *at != ',') return;
        const struct word value = word_at(skip(at + 1));
        int depth = 1;
        for (at++; *at != 0 && *at != '\n' && depth > 0; at++) depth += (*at == '(') - (*at == ')');
        if (depth > 0) return;
        add_name(t, (struct name){list, name, value, argument, false});
        at = skip(at);
    }
}

static void take_define(struct text *t, const char *at) {
    const struct word name = word_at(at);
    at = name.at + name.length;
    if (is(name, "MX_FORM")) t->staggered = is(word_at(skip(at)), "MX_STAGGERED");
    if (strncmp(name.at, "MX_", 3) != 0)
        add_name(t, (struct name){.list = MACRO, .name = name, .function = *at == '('});
    for (int list = STATE; list < MACRO; list++) {
        if (!is(name, list_names[list]) || *at != '(') continue;
        const struct word argument = word_at(skip(at + 1));
        at = skip(argument.at + argument.length);
        if (*at == ')') take_items(t, (enum list)list, argument, at + 1);
        return;
    }
}

/* Takes the lines of the preprocessor, and blanks them. */
static void take_directives(struct text *t, char *text) {
    for (char *line = text; *line != 0;) {
        char *end = line + strcspn(line, "\n"), *at = line;
        while (at < end && is_space(*at)) at++;
        if (*at == '#') {
            const struct word word = word_at(skip(at + 1));
            if (is(word, "define")) take_define(t, skip(word.at + word.length));
        }
        line = *end == 0 ? end : end + 1;
    }
}

static void blank_directives(char *text) {
    for (char *line = text; *line != 0;) {
        char *end = line + strcspn(line, "\n"), *at = line;
        while (at < end && is_space(*at)) at++;
        for (; *at == '#' && at < end; at++)
            for (char *c = at; c < end; c++)
                if (*c != JOINED) *c = ' ';
        line = *end == 0 ? end : end + 1;
    }
}

/* ---- names */

static const struct {
    const char *name, *is;
} taken[] = {
    {"X", "the index of the cell in x"}, {"Y", "the index of the cell in y"},
    {"Z", "the index of the cell in z"}, {"T", "the time step"},
    {"NX", "the number of cells in x"},  {"NY", "the number of cells in y"},
    {"NZ", "the number of cells in z"},  {"linux", "a macro of the compiler"},
    {"unix", "a macro of the compiler"}, {"INFINITY", "a constant of <math.h>"},
    {"NAN", "a constant of <math.h>"},
};

static const char *kind_of(enum list list) {
    return list == PARAMS ? "parameter" : list == REDUCES ? "reduction" : "field";
}

static const struct name *find(const struct text *t, struct word name, int from, int to) {
    for (int i = 0; i < t->n; i++)
        if ((int)t->name[i].list >= from && (int)t->name[i].list <= to && same(t->name[i].name, name))
            return &t->name[i];
    return NULL;
}

static bool explain_name(struct text *t, const struct name *n) {
    const char *kind = kind_of(n->list);
    const struct word w = n->name;
    if (same(w, n->argument))
        return say(t, w,
                   "%.*s is the name of a %s and of the argument of %s(%.*s): write %s(ITEM) ITEM(%.*s, ...) "
                   "instead",
                   w.length, w.at, kind, list_names[n->list], w.length, w.at, list_names[n->list], w.length,
                   w.at);
    const struct name *macro = n->list <= FIXED ? find(t, w, MACRO, MACRO) : NULL;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0] && n->list != PARAMS; i++)
        if (is(w, taken[i].name))
            return say(t, w, "a %s cannot be named %s, which is %s in a cell: give it another name", kind,
                       taken[i].name, taken[i].is);
    if (n->list != PARAMS && (strncmp(w.at, "MX_", 3) == 0 || strncmp(w.at, "M_", 2) == 0))
        return say(t, w, "a %s cannot be named %.*s: names that begin with %s belong to %s", kind, w.length,
                   w.at, w.at[1] == '_' ? "M_" : "MX_", w.at[1] == '_' ? "<math.h>" : "cell.h");
    if (macro != NULL && !macro->function)
        return say(t, w, "%.*s is the name of a %s and of a macro in this file: rename one of them", w.length,
                   w.at, kind);
    const struct name *first =
        n->list <= FIXED ? find(t, w, STATE, FIXED) : find(t, w, (int)n->list, (int)n->list);
    if (first != n)
        return say(t, w, "two %ss are named %.*s, one in %s and one in %s: rename one of them", kind,
                   w.length, w.at, list_names[first->list], list_names[n->list]);
    if (n->list == REDUCES && !is(n->value, "MX_SUM") && !is(n->value, "MX_MAX") && !is(n->value, "MX_MIN") &&
        find(t, n->value, MACRO, MACRO) == NULL)
        return say(t, n->value, "the reduction %.*s is %.*s: it must be MX_SUM, MX_MAX or MX_MIN", w.length,
                   w.at, n->value.length, n->value.at);
    return false;
}

/* ---- what cells do with them */

/* The array that a part of a kernel reads, and the one that it computes, -1 = none. */
struct part {
    const char *name; /* as it is written */
    int reads, writes;
};

static const char *names_of(const struct text *t, int from, int to, char out[160]) {
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < t->n && n < 120; i++)
        if ((int)t->name[i].list >= from && (int)t->name[i].list <= to)
            n += (size_t)snprintf(out + n, 160 - n, "%s%.*s", n > 0 ? ", " : "",
                                  t->name[i].name.length > 30 ? 30 : t->name[i].name.length,
                                  t->name[i].name.at);
    if (n == 0) strcpy(out, "none");
    return out;
}

static bool explain_use(struct text *t, const struct part *p, struct word what, struct word name) {
    char known[160];
    const bool param = is(what, "PARAM");
    const struct name *n = param ? find(t, name, PARAMS, PARAMS) : find(t, name, STATE, FIXED);
    if (name.length == 0 || find(t, name, MACRO, MACRO) != NULL) return false;
    if (n == NULL)
        return say(t, name, "there is no %s %.*s; the kernel has %s", param ? "parameter" : "field",
                   name.length, name.at,
                   param ? names_of(t, PARAMS, PARAMS, known) : names_of(t, STATE, FIXED, known));
    if (param) return false;
    const bool at = is(what, "AT");
    if (at && n->list != FIXED && (int)n->list != p->reads && p->writes >= 0)
        return say(t, name,
                   "AT(%.*s, ...) cannot be read in %s, which computes %.*s: write OLD(%.*s) for the value "
                   "that it replaces",
                   name.length, name.at, p->name, name.length, name.at, name.length, name.at);
    if (at && n->list != FIXED && (int)n->list != p->reads)
        return say(
            t, name,
            "AT(%.*s, ...) cannot be read in %s, which reads only the fields of %s in a staggered kernel: %s",
            name.length, name.at, p->name, list_names[p->reads], names_of(t, p->reads, p->reads, known));
    if (!at && p->writes < 0)
        return say(t, name,
                   "%.*s(%.*s) is not possible in %s, which only reads: give its number with RESULT(...)",
                   what.length, what.at, name.length, name.at, p->name);
    if (!at && n->list == FIXED)
        return say(t, name, "%.*s(%.*s) is not possible in %s: fields of MX_FIXED are read only", what.length,
                   what.at, name.length, name.at, p->name);
    if (!at && (int)n->list != p->writes)
        return say(t, name, "%.*s(%.*s) is not possible in %s, which computes the fields of %s: %s",
                   what.length, what.at, name.length, name.at, p->name, list_names[p->writes],
                   names_of(t, p->writes, p->writes, known));
    return false;
}

static bool begin_part(const struct text *t, struct word w, struct part *out) {
    const int read = t->staggered ? PARTNER : STATE;
    if (is(w, "MX_CELL")) return *out = (struct part){"MX_CELL", STATE, STATE}, true;
    if (is(w, "MX_CELL_B")) return *out = (struct part){"MX_CELL_B", STATE, PARTNER}, true;
    if (is(w, "MX_CELL_A")) return *out = (struct part){"MX_CELL_A", PARTNER, STATE}, true;
    if (w.length > 8 && strncmp(w.at, "MX_CELL_", 8) == 0 && isdigit((unsigned char)w.at[8]))
        return *out = (struct part){"a stage", STATE, STATE}, true;
    if (is(w, "MX_REDUCE")) return *out = (struct part){"MX_REDUCE", read, -1}, true;
    return false;
}

static bool explain_cells(struct text *t) {
    struct part part = {NULL, 0, 0};
    for (const char *at = t->begin; *at != 0;) {
        if (!is_word(*at)) {
            at++;
            continue;
        }
        const struct word w = word_at(at);
        const char *next = skip(at + w.length);
        at += w.length;
        if (begin_part(t, w, &part)) continue;
        if (is(w, "MX_END")) part.name = NULL;
        if (part.name == NULL || *next != '(') continue;
        if ((is(w, "AT") || is(w, "SET") || is(w, "OLD") || is(w, "PARAM")) &&
            explain_use(t, &part, w, word_at(skip(next + 1))))
            return true;
    }
    return false;
}

bool mx_kernel_explain(const char *path, const char *source, char *out, size_t capacity) {
    struct text *t = calloc(1, sizeof *t);
    char *text = strdup(source);
    bool found = false;
    if (t != NULL && text != NULL) {
        t->path = path, t->begin = text, t->out = out, t->capacity = capacity;
        clean(text);
        take_directives(t, text);
        for (int i = 0; i < t->n && !found; i++)
            if (t->name[i].list != MACRO) found = explain_name(t, &t->name[i]);
        char *body = found ? NULL : strdup(text); /* names point into the first one */
        if (body != NULL) {
            blank_directives(body);
            t->begin = body;
            found = explain_cells(t);
        }
        free(body);
    }
    free(text);
    free(t);
    return found;
}
