/* SPDX-License-Identifier: BSD-3-Clause */
/* compile.c - from a kernel's text to a shared object, compiled or found in the cache. */
#include "kernel/compile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what the compiler says */

/* The first line that tells an error, else the first line. */
static void first_error(const char *messages, char *out, size_t capacity) {
    const char *line = strstr(messages, "error: ");
    if (line == NULL) line = strstr(messages, "undefined reference");
    if (line == NULL) line = messages;
    while (line > messages && line[-1] != '\n') line--;
    snprintf(out, capacity, "%.*s", (int)strcspn(line, "\n"), line);
}

/* A file that the text includes, other than those of the system; "" = none. */
static void own_include(const char *rules, char *out, size_t capacity) {
    const char *word = strchr(rules, ':');
    out[0] = 0;
    for (word = word != NULL ? word + 1 : ""; *word != 0;) {
        word += strspn(word, " \t\n\\");
        const size_t n = strcspn(word, " \t\n");
        if (n > 0 && strncmp(word, "-", n) != 0 && strncmp(word, "<stdin>", n) != 0) {
            snprintf(out, capacity, "%.*s", (int)n, word);
            return;
        }
        word += n;
    }
}

/* "DIRECTORY/memext/cell.h" is "memext/cell.h" to the user. */
static void shorten_names(char *messages, const char *directory) {
    const size_t n = strlen(directory);
    for (char *at = messages; (at = strstr(at, directory)) != NULL;)
        if (at[n] == '/')
            memmove(at, at + n + 1, strlen(at + n + 1) + 1);
        else
            at += n;
}

/* ---- files */

struct names {
    char header[PATH_MAX + 32], directory[PATH_MAX + 32], source[PATH_MAX + 32], includes[PATH_MAX + 32];
    char object[MX_FORMS][PATH_MAX + 32], messages[MX_FORMS][PATH_MAX + 32]; /* by number of the form */
};

static void name_files(const char *directory, struct names *n) {
    snprintf(n->directory, sizeof n->directory, "%s/memext", directory);
    snprintf(n->header, sizeof n->header, "%s/memext/cell.h", directory);
    snprintf(n->source, sizeof n->source, "%s/kernel.c", directory);
    snprintf(n->includes, sizeof n->includes, "%s/includes", directory);
    for (int i = 0; i < MX_FORMS; i++) {
        snprintf(n->object[i], sizeof n->object[i], "%s/kernel-%s.so", directory, mx_forms[i].name);
        snprintf(n->messages[i], sizeof n->messages[i], "%s/messages-%s", directory, mx_forms[i].name);
    }
}

static int write_file(const char *path, const char *first, const void *data, size_t bytes) {
    int fd = mx_retry(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd < 0) return -errno;
    int err = mx_write_all(fd, first, strlen(first), 0);
    if (err == 0) err = mx_write_all(fd, data, bytes, (off_t)strlen(first));
    if (close(fd) < 0 && err == 0) err = -errno;
    return err;
}

/* The text that was read, and hashed, is what is compiled; its lines keep the user's file name. */
static int write_files(const struct names *n, const char *path, const struct mx_text *source) {
    char line[2 * PATH_MAX + 16] = "# 1 \"";
    size_t at = strlen(line);
    for (const char *p = path; *p != 0 && at < sizeof line - 8; p++) {
        if (*p == '"' || *p == '\\') line[at++] = '\\';
        line[at++] = *p == '\n' ? ' ' : *p;
    }
    memcpy(line + at, "\"\n", 3);
    if (mkdir(n->directory, 0700) < 0) return -errno;
    int err = write_file(n->header, "", mx_cell_text, mx_cell_text_bytes);
    return err < 0 ? err : write_file(n->source, line, source->data, source->bytes);
}

/* ---- compiling */

static int explain_status(const struct compiler *c, const struct mx_kernel_options *o, const char *source,
                          int status, const char *messages, mx_why *why) {
    const char *path = o->path;
    if (status == 256 + SIGINT || status == 256 + SIGTERM)
        return mx_fail(why, -EINTR, "interrupted during the compilation of %.200s", path);
    if (status < 0)
        return mx_fail(why, -ENOTSUP,
                       "the C compiler '%.200s' cannot be run (%s): set CC to another compiler, or give a "
                       "kernel that is compiled already (FILE.so)",
                       c->path, strerror(-status));
    if (status > 256)
        return mx_fail(why, -EINVAL, "the C compiler '%.100s' died of signal %d while it compiled %.200s",
                       c->path, status - 256, path);
    char line[500];
    struct mx_text own = {0}; /* without what its headers put in, so that lines are those of the file */
    if (strstr(source, "#line ") != NULL) mx_text_read(path, "", NULL, &own);
    const bool explained = mx_kernel_explain(path, own.data != NULL ? own.data : source, line, sizeof line);
    free(own.data);
    if (explained) {
        if (o->messages != NULL) o->messages[0] = 0; /* of what cell.h makes of it */
    } else {
        first_error(messages, line, 330);
    }
    return mx_fail(why, -EINVAL, "the kernel %.120s does not compile: %s", path, line);
}

/* gcc 12 splits the loop over the cells of a block into several. In one of 100 random kernels it then stored
 * a value that a cell keeps after the one that it sets. */
static const char *const whole_loops[] = {"-fno-tree-loop-distribution",
                                          "-fno-tree-loop-distribute-patterns"};

/* What a compiler is started for. */
enum work {
    FIRST, /* the first form: it also lists the files that the text includes, but for those of the system */
    OTHER, /* another form */
    LIST   /* to list all files that the text includes, and nothing else */
};

static pid_t start(struct compiler *c, const struct names *n, const char *directory, int32_t number,
                   enum work work) {
    const struct mx_form *form = &mx_forms[number];
    const char *const own[] = {"-isystem", directory, "-x", "c", "-", "-o", n->object[number], "-lm"};
    const char *const list[] = {work == LIST ? "-M" : "-MMD", "-MF", n->includes};
    const char *words[MAX_WORDS + N_FLAGS + MX_FORM_FLAGS + 16];
    int k = 0;
    for (; c->words[k] != NULL; k++) words[k] = c->words[k];
    for (int i = 0; i < N_FLAGS; i++) words[k++] = mx_compiler_flags[i];
    for (int i = 0; i < MX_FORM_FLAGS && form->flags[i] != NULL; i++) words[k++] = form->flags[i];
    if (c->wraps) words[k++] = "-fwrapv";
    if (c->gcc) words[k++] = "-ftrack-macro-expansion=0"; /* errors on the kernel's line */
    for (size_t i = 0; c->gcc && form->blocks && i < sizeof whole_loops / sizeof whole_loops[0]; i++)
        words[k++] = whole_loops[i];
    for (size_t i = 0; work != OTHER && i < sizeof list / sizeof list[0]; i++) words[k++] = list[i];
    const size_t n_own = sizeof own / sizeof own[0] - (work == LIST ? 3 : 0); /* without an object */
    for (size_t i = 0; i < n_own; i++) words[k++] = own[i];
    words[k] = NULL;
    return mx_compiler_start(c->path, (char *const *)(uintptr_t)words, n->source, n->messages[number]);
}

/* The first form: what the compiler says of it is what the user hears. */
static int compile_first(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                         const char *directory, const struct names *n, int32_t number, mx_why *why) {
    const pid_t child = start(c, n, directory, number, FIRST);
    const int status = child < 0 ? child : mx_compiler_wait(child, o->stop);
    struct mx_text messages = {0}, includes = {0};
    int err = 0;
    mx_text_read(n->messages[number], "", NULL, &messages);
    if (messages.data != NULL) shorten_names(messages.data, directory);
    if (o->messages != NULL && messages.data != NULL)
        snprintf(o->messages, o->messages_bytes, "%s", messages.data);
    if (status != 0)
        err = explain_status(c, o, source->data, status, messages.data != NULL ? messages.data : "", why);
    else
        err = mx_text_read(n->includes, "the list of included files", why, &includes);
    if (err == 0) {
        char own[200];
        own_include(includes.data, own, sizeof own);
        if (own[0] != 0)
            err = mx_fail(
                why, -EINVAL,
                "the kernel %.150s includes %s. memext recognizes a kernel by its text, so it may include "
                "only memext/cell.h, headers beside it by #include \"NAME\", and headers of the system",
                o->path, own);
    }
    free(messages.data);
    free(includes.data);
    return err;
}

static bool is_within(const char *path, const char *directory) {
    const size_t n = strlen(directory);
    return n > 0 && strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* All headers that the text includes, as mx_cache_seal takes them: those of the system may change too.
 * names.data is NULL if the compiler does not list them. -EINTR: interrupted. */
static int list_headers(const struct mx_kernel_options *o, struct compiler *c, const char *directory,
                        const struct names *n, int32_t number, mx_why *why, struct mx_headers *headers) {
    struct mx_text rules = {0}, *const list = &headers->names;
    char real[PATH_MAX]; /* as compilers name it, if it is a link */
    if (realpath(directory, real) == NULL) real[0] = 0;
    const pid_t child = start(c, n, directory, number, LIST);
    const int status = child < 0 ? child : mx_compiler_wait(child, o->stop);
    *headers = (struct mx_headers){0};
    if (status == 256 + SIGINT || status == 256 + SIGTERM) return explain_status(c, o, "", status, "", why);
    if (status != 0 || mx_text_read(n->includes, "", NULL, &rules) < 0) return 0;
    char *to = rules.data;
    FILE *names = open_memstream(&list->data, &list->bytes);
    const char *word = strchr(rules.data, ':');
    for (word = word != NULL ? word + 1 : ""; names != NULL && *word != 0;) {
        word += strspn(word, " \t\n");
        if (word[0] == '\\' && word[1] == '\n') word += 2;
        char *const begin = to = rules.data;
        while (*word != 0 && strchr(" \t\n", *word) == NULL) {
            const bool quoted = (word[0] == '\\' && word[1] != 0 && strchr(" #:", word[1]) != NULL) ||
                                (word[0] == '$' && word[1] == '$'); /* as make has it */
            if (quoted) word++;
            *to++ = *word++;
        }
        if (*word != 0) word++; /* before what is written now */
        *to = 0;
        char file[PATH_MAX]; /* another run may work in another directory */
        const bool named = to > begin && (begin[0] == '/' || realpath(begin, file) != NULL);
        if (named && !is_within(begin, directory) && !is_within(begin, real)) /* else the text, and cell.h */
            fwrite(begin[0] == '/' ? begin : file, 1, strlen(begin[0] == '/' ? begin : file) + 1, names);
    }
    if (names != NULL && fclose(names) != 0) {
        free(list->data);
        *list = (struct mx_text){0};
    }
    free(rules.data);
    mx_cache_hash_headers(headers);
    return 0;
}

/* Compiles the other forms, one after the other: compilers take more memory than a small run has. Says which
 * of all is the fastest, and how fast. One that does not compile is left out. */
static int fastest(const struct mx_kernel_options *o, struct compiler *c, const char *directory,
                   const struct names *n, const struct wanted *forms, mx_why *why, struct mx_built *built) {
    bool in_blocks = false; /* if one row is in blocks, all forms of several are too */
    const struct mx_worth worth = mx_forms_worth(n->object[forms->number[0]]);
    const char *path[MX_FORMS] = {n->object[forms->number[0]]};
    int32_t compiled[MX_FORMS] = {forms->number[0]}, k = 1;
    for (int32_t i = 1; i < forms->n; i++) {
        const int32_t form = forms->number[i];
        if (!mx_form_is_worth(&mx_forms[form], &worth, in_blocks)) continue;
        const pid_t child = start(c, n, directory, form, OTHER);
        const int status = child < 0 ? child : mx_compiler_wait(child, o->stop);
        if (status == 256 + SIGINT || status == 256 + SIGTERM)
            return explain_status(c, o, "", status, "", why);
        if (status != 0 && mx_cache_is_full(directory))
            return mx_fail(why, -ENOSPC, "the kernel %.200s cannot be compiled in %.200s: the disk is full",
                           o->path, directory);
        if (status != 0) continue;
        if (mx_forms[form].blocks) in_blocks = true;
        compiled[k] = form;
        path[k++] = n->object[form];
    }
    const int32_t best = mx_forms_fastest(path, compiled, k, &built->cell_ns);
    if (best < 0) return mx_fail(why, best, "interrupted while the kernel %.200s was timed", o->path);
    built->form = compiled[best];
    return 0;
}

/* -EINVAL with a sentence: headers are others now than before the compilation. Then nobody knows which text
 * is in the object. If the compiler no longer lists them, those that it listed are looked at. */
static int check_headers(const struct mx_kernel_options *o, struct compiler *c, const char *directory,
                         const struct names *n, int32_t number, mx_why *why, struct mx_headers *headers) {
    struct mx_headers now, again = {.names = headers->names};
    int err = list_headers(o, c, directory, n, number, why, &now);
    if (!now.known) mx_cache_hash_headers(&again);
    const bool same = !headers->known || mx_cache_same_headers(headers, now.known ? &now : &again);
    if (err == 0 && !same)
        err =
            mx_fail(why, -EINVAL,
                    "a header that the kernel %.200s includes has changed while it was compiled: start again",
                    o->path);
    headers->known &= now.known;
    free(now.names.data);
    return err;
}

/* *built: of the object that is sealed. */
static int compile(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                   const char *directory, const struct wanted *forms, mx_why *why, struct mx_built *built) {
    struct names *n = malloc(sizeof *n);
    if (n == NULL) return mx_fail(why, -ENOMEM, "no memory for the names of files");
    name_files(directory, n);
    int err = write_files(n, o->path, source);
    if (err < 0) mx_fail(why, err, "the kernel cannot be compiled in %.300s: %s", directory, strerror(-err));
    *built = (struct mx_built){.form = forms->number[0]};
    struct mx_headers headers = {0}; /* as they are before a compiler reads them */
    if (err == 0) err = list_headers(o, c, directory, n, built->form, why, &headers);
    if (err == 0) err = compile_first(o, c, source, directory, n, built->form, why);
    if (err == 0 && forms->n > 1) err = fastest(o, c, directory, n, forms, why, built);
    if (err == 0) err = check_headers(o, c, directory, n, forms->number[0], why, &headers);
    if (err == 0 && (err = mx_cache_seal(n->object[built->form], built, &headers)) < 0)
        mx_fail(why, err, "the compiled kernel cannot be stored in %.300s: %s", directory, strerror(-err));
    free(headers.names.data);
    free(n);
    return err;
}

/* Others that are at the same kernel make the same object, or one of another form and the same bits; who
 * renames last, wins, and nobody sees half of one. */
static int publish(struct mx_object *object, int32_t number, const char *name) {
    char from[PATH_MAX + 32];
    snprintf(from, sizeof from, "%s/kernel-%s.so", object->directory, mx_forms[number].name);
    if (name[0] == 0 || rename(from, name) < 0)
        return snprintf(object->path, sizeof object->path, "%s", from) < (int)sizeof object->path
                   ? 0
                   : -ENAMETOOLONG;
    snprintf(object->path, sizeof object->path, "%s", name);
    object->cached = true;
    mx_object_drop(object);
    return 0;
}

/* Does a word of a line, which may continue on the next line, name an integer type? */
static bool names_whole(const char *at) {
    static const char *const types[] = {"int8_t",   "uint8_t", "int16_t",  "uint16_t", "int32_t",
                                        "uint32_t", "int64_t", "uint64_t", "int",      "unsigned",
                                        "signed",   "char",    "short",    "long"};
    while (*at != 0 && (*at != '\n' || at[-1] == '\\' || (at[-1] == '\r' && at[-2] == '\\'))) {
        const size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            if (strlen(types[i]) == n && memcmp(at, types[i], n) == 0) return true;
        at += n > 0 ? n : 1;
    }
    return false;
}

/* Kernels without integer state are compiled without -fwrapv, since gcc makes slower loops with it. */
static bool has_whole_state(const char *source) {
    static const char *const macros[] = {"MX_STATE(", "MX_PARTNER("};
    for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++)
        for (const char *at = source; (at = strstr(at, macros[i])) != NULL; at++)
            if (names_whole(at)) return true;
    return false;
}

static void take_built(struct mx_object *object, const struct mx_built *built) {
    object->form = mx_forms[built->form].text;
    object->cell_ns = built->cell_ns;
}

static bool find(struct mx_object *object, const char *name) {
    struct mx_built built;
    if (name[0] == 0 || !mx_cache_is_whole(name, &built)) return false;
    take_built(object, &built);
    snprintf(object->path, sizeof object->path, "%s", name);
    object->cached = true;
    mx_object_drop(object);
    return true;
}

/* Makes the object, and puts it into the cache under this name unless it is "". */
static int make(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                const struct wanted *forms, const char *name, mx_why *why, struct mx_object *object) {
    struct mx_built built = {0};
    snprintf(object->compiler, sizeof object->compiler, "%.*s", (int)strcspn(c->version.data, "\n"),
             c->version.data);
    object->compiled = true;
    c->wraps = has_whole_state(source->data);
    int err = compile(o, c, source, object->directory, forms, why, &built);
    take_built(object, &built);
    if (err == 0 && (err = publish(object, built.form, name)) < 0)
        mx_fail(why, err, "the path of the compiled kernel in %.200s is too long", object->directory);
    return err;
}

/* Compilers say many things of a full disk. */
static bool lacks_space(int err, const struct mx_object *object) {
    return err == -ENOSPC || err == -EDQUOT ||
           (err < 0 && err != -EINTR && mx_cache_is_full(object->directory));
}

/* Makes the object elsewhere, if the cache is full: then nothing is kept of it. */
static int make_anyway(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                       const struct wanted *forms, const char *name, mx_why *why, struct mx_object *object) {
    const int err = make(o, c, source, forms, name, why, object);
    if (name[0] == 0 || !lacks_space(err, object)) return err;
    mx_object_drop(object);
    const int none = mx_cache_work_in("", why, object->directory, sizeof object->directory);
    return none < 0 ? none : make(o, c, source, forms, "", why, object);
}

static int find_or_make(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                        const char *cache, mx_why *why, struct mx_object *object) {
    char name[PATH_MAX] = "";
    struct wanted forms;
    struct mx_cache_claim claim = {.fd = -1};
    int err = mx_forms_wanted(why, forms.number, &forms.n);
    if (err < 0) return err;
    err = mx_cache_work_in(cache, why, object->directory, sizeof object->directory);
    if (err == 0) err = mx_compiler_ask(c, object->directory, why);
    if (err < 0) return err;
    if (cache[0] != 0 && mx_cache_name(c, source, &forms, cache, name, sizeof name) < 0) name[0] = 0;
    if (find(object, name)) return 0;
    if (name[0] != 0) err = mx_cache_claim(name, o->stop, why, &claim);
    if (err == 0 && !find(object, name)) err = make_anyway(o, c, source, &forms, name, why, object);
    mx_cache_release(&claim, err < 0);
    return err;
}

int mx_object_make(const struct mx_kernel_options *o, const struct mx_text *source, mx_why *why,
                   struct mx_object *out) {
    mx_why own = {0};
    char cache[PATH_MAX];
    struct mx_object *object = calloc(1, sizeof *object);
    struct compiler *c = calloc(1, sizeof *c);
    int err = object == NULL || c == NULL ? mx_fail(&own, -ENOMEM, "no memory for the compiler's names") : 0;
    if (err == 0) err = mx_cache_find(&own, cache, sizeof cache);
    if (err == 0) err = mx_compiler_find(&own, c);
    if (err == 0) err = find_or_make(o, c, source, cache, &own, object);
    if (err == 0)
        *out = *object;
    else if (object != NULL)
        mx_object_drop(object);
    if (err < 0 && why != NULL) *why = own;
    if (c != NULL) free(c->version.data);
    free(c);
    free(object);
    return err;
}
