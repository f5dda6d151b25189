# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C source of the extension module _memext: memext.h as cffi sees it, and the functions that the library calls back.

build_ffi.py MEMEXT.H OUT.C"""
import re
import sys

import cffi

CALLBACKS = """
static const char *const MX_VERSION;
extern "Python" int mxp_source_open(void *, struct mx_grid *, mx_why *);
extern "Python" int mxp_source_region(void *, const struct mx_grid_box *, mx_why *);
extern "Python" void mxp_source_close(void *);
extern "Python" int mxp_source_identity(void *, const char *, uint64_t *, mx_why *);
extern "Python" int mxp_sink_open(void *, const struct mx_grid *, mx_why *);
extern "Python" int mxp_sink_region(void *, const struct mx_grid_box *, mx_why *);
extern "Python" int mxp_sink_close(void *, bool, mx_why *);
extern "Python" int mxp_edit_planes(void *, const struct mx_grid_box *, int32_t, mx_why *);
extern "Python" void mxp_remark(void *, const char *);
void free(void *);
"""


def declarations(header: str) -> str:
    """The header without comments and preprocessor; macros that are numbers put in place."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    macros = dict(re.findall(r"^#define (\w+) (\d+)\s*$", text, re.M))
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    text = re.sub(r'extern "C" \{(.*)\}', r"\1", text, flags=re.S)
    for name, value in macros.items():
        text = re.sub(rf"\b{name}\b(?: \+ 1)?", lambda m, n=int(value): str(n + m.group().endswith("+ 1")), text)
    return text


def main(header: str, out: str) -> None:
    ffi = cffi.FFI()
    with open(header) as file:
        ffi.cdef(declarations(file.read()) + CALLBACKS)
    ffi.set_source("memext._memext", "#include <memext/memext.h>\n#include <stdlib.h>\n")
    ffi.emit_c_code(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
