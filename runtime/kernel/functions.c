/* SPDX-License-Identifier: BSD-3-Clause */
/* functions.c - lists the functions that a shared object calls in libraries. */
#include "kernel/private.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* Does a function give the same bits on every machine? It does if its result is exact or correctly rounded,
 * or if it does no arithmetic (memory, the linker's own). */
static bool is_exact(const char *name) {
    static const char *const exact[] = {
        "sqrt",   "fabs",   "floor",    "ceil",   "trunc",   "rint",      "nearbyint", "round", "fmin",
        "fmax",   "fma",    "copysign", "lround", "llround", "lrint",     "llrint",    "isnan", "isinf",
        "memcpy", "memset", "memmove",  "memcmp", "abort",   "roundeven", "fdim",      "fmod",  "remainder",
        "ldexp",  "frexp",  "scalbn",   "modf",   "logb",    "ilogb",     "nextafter"};
    if (name[0] == '_') return true; /* __cxa_finalize, _ITM_..., __stack_chk_fail */
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        const size_t m = strlen(exact[i]);
        if (strncmp(name, exact[i], m) == 0 && (n == m || (n == m + 1 && name[m] == 'f'))) return true;
    }
    return false;
}

static bool inside(const struct mx_text *t, uint64_t offset, uint64_t bytes) {
    return offset <= t->bytes && bytes <= t->bytes - offset;
}

static void add(char *out, size_t capacity, const char *name) {
    const size_t n = strlen(out), more = strlen(name) + (n > 0 ? 2 : 0);
    if (n + more + 1 > capacity) return;
    if (n > 0) strcat(out, ", ");
    strcat(out, name);
}

static void symbols(const struct mx_text *t, const ElfW(Shdr) * table, const ElfW(Shdr) * names, char *out,
                    size_t capacity) {
    for (uint64_t i = 0; i + sizeof(ElfW(Sym)) <= table->sh_size; i += sizeof(ElfW(Sym))) {
        ElfW(Sym) s;
        memcpy(&s, t->data + table->sh_offset + i, sizeof s);
        if (s.st_shndx != SHN_UNDEF || s.st_name == 0 || s.st_name >= names->sh_size) continue;
        const char *name = t->data + names->sh_offset + s.st_name;
        if (memchr(name, 0, names->sh_size - s.st_name) == NULL || is_exact(name)) continue;
        add(out, capacity, name);
    }
}

void mx_object_functions(const struct mx_text *t, char *out, size_t capacity) {
    ElfW(Ehdr) e;
    out[0] = 0;
    if (t->bytes < sizeof e) return;
    memcpy(&e, t->data, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_shentsize != sizeof(ElfW(Shdr)) ||
        !inside(t, e.e_shoff, (uint64_t)e.e_shnum * sizeof(ElfW(Shdr))))
        return;
    for (unsigned i = 0; i < e.e_shnum; i++) {
        ElfW(Shdr) table, names;
        memcpy(&table, t->data + e.e_shoff + i * sizeof table, sizeof table);
        if (table.sh_type != SHT_DYNSYM || table.sh_link >= e.e_shnum) continue;
        memcpy(&names, t->data + e.e_shoff + table.sh_link * sizeof names, sizeof names);
        if (inside(t, table.sh_offset, table.sh_size) && inside(t, names.sh_offset, names.sh_size))
            symbols(t, &table, &names, out, capacity);
    }
}
