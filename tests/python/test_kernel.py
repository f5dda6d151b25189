# SPDX-License-Identifier: BSD-3-Clause
"""memext kernel: building, the cache, what the compiler says, and broken kernels: each is refused in its own words."""
import json
import os
import shutil
import subprocess

import pytest
from small_kernels import CELL, GOOD, HEAD, jacobi


def leapfrog(body):
    return jacobi(body, "#define MX_FORM MX_LEAPFROG\n")


def staggered(b, a, more=""):
    return ('#define MX_NAME "broken"\n#define MX_RADIUS 1\n#define MX_FORM MX_STAGGERED\n#define MX_STATE(F) F(e, double)\n#define MX_PARTNER(F) F(h, double)\n'
            + more + f"#include <memext/cell.h>\nMX_CELL_B {b}\nMX_END\nMX_CELL_A {a}\nMX_END\n")


# What is wrong, the kernel, words of the sentence.
BROKEN = {
    "reads_beyond_radius": (jacobi("double s = 0; for (int d = -1; d <= 2; d++) s += AT(u, d, 0, 0); SET(u, s);"),
                            ["reads u at (2, 0, 0)", "MX_RADIUS"]),
    "reads_beyond_radius_hidden_by_max": (jacobi("double s = 1e4; for (int d = -1; d <= 2; d++) s = fmin(s, AT(u, 0, d, 0)); SET(u, s);"),
                                          ["reads u at (0, 2, 0)", "MX_RADIUS"]),
    "reads_planes_beyond_radius": (jacobi("double s = 0; for (int d = -2; d <= 1; d++) s += AT(u, 0, 0, d); SET(u, s);"),
                                   ["reads planes", "z"]),
    "reads_fixed_beyond_radius": (jacobi("double s = 0; for (int d = 0; d < 2; d++) s += AT(k, 0, d, 0); SET(u, s);",
                                         "#define MX_FIXED(F) F(k, uint8_t)\n"), ["reads k at (0, 1, 0)", "MX_FIXED_RADIUS"]),
    "writes_beyond_its_cells": (jacobi("SET(u, AT(u, 0, 0, 0)); if (mx_x == mx_r->x1 - 1) mx_out_u[mx_x + 1] = 7;"),
                                ["writes u at X = 67", "outside"]),
    "writes_what_it_reads": (jacobi("SET(u, AT(u, 0, 0, 0)); *(double *)(uintptr_t)&AT(u, 0, 0, 1) = 7;"),
                             ["writes to u, which is read only"]),
    "depends_on_cuts_of_x": (jacobi("SET(u, AT(u, 0, 0, 0) + (double)(mx_x - mx_r->x0));"), ["how x is cut"]),
    "depends_on_rows_of_a_call": (jacobi("SET(u, AT(u, 0, 0, 0) + (double)mx_row);"), ["how many rows"]),
    "reads_the_old_value": (jacobi("SET(u, AT(u, 0, 0, 0) + ((double *)mx_r->out[0])[mx_x + mx_r->row_pitch / 8]);"), ["reads the value that it replaces"]),
    "reads_old_values_of_others": (leapfrog("SET(u, AT(u, 0, 0, 0) + OLD(u) + mx_out_u[mx_x + mx_r->row_pitch / 8]);"),
                                   ["of another cell, 0 in x and 1 in y away"]),
    "counts_its_calls": (jacobi("static double n; n += 1; SET(u, AT(u, 0, 0, 0) + n);"), ["keeps a state between calls"]),
    "writes_a_static_variable": (jacobi("static double most; if (AT(u, 0, 0, 0) > most) most = AT(u, 0, 0, 0); SET(u, AT(u, 0, 0, 0));"), ["static variables"]),
    "depends_on_addresses": (jacobi("SET(u, AT(u, 0, 0, 0) + (double)((uintptr_t)mx_r->in[1] % 64));"), ["addresses"]),
    "crashes": (jacobi("SET(u, AT(u, 0, 0, 0) + *(volatile double *)(X == NX - 1 ? 8 : (intptr_t)&AT(u, 0, 0, 0)));"),
                ["crashes with SIGSEGV"]),
    "ends_the_process": (jacobi("SET(u, AT(u, 0, 0, 0)); if (X == NX - 1) exit(3);", "#include <stdlib.h>\n"), ["ended its process"]),
    "divides_by_zero": (jacobi("volatile int64_t x = X; SET(u, AT(u, 0, 0, 0) + (double)(7 / x));"), ["crashes with SIGFPE"]),
    "computes_nan_only": (jacobi("SET(u, sqrt(-1 - AT(u, 0, 0, 0) * AT(u, 0, 0, 0)));"), ["computes a u that is NaN"]),
}

# What does not even compile, or is no kernel.
REFUSED = {
    "constant_offset": (jacobi("\nSET(u, AT(u, 2, 0, 0));"), ["broken.c:7:", "AT(u, ...) reads farther away"]),
    "old_in_jacobi": (jacobi("SET(u, OLD(u));"), ["broken.c:6:", "OLD needs"]),
    "syntax": (jacobi("SET(u, AT(u, 0, 0, 0)) SET;"), ["broken.c:6:", "error"]),
    "unknown_field": (jacobi("SET(u, AT(w, 0, 0, 0));"), ["broken.c:6:", "no field w; the kernel has u"]),
    "no_cell": (HEAD + "#include <memext/cell.h>\n", ["no part MX_CELL "]),
    "no_level": (HEAD + "#define MX_FORM MX_STAGGERED\n#define MX_PARTNER(F) F(v, double)\n#include <memext/cell.h>\n"
                 "MX_CELL_B\nSET(v, AT(u, 0, 0, 0));\nMX_END\n", ["no part MX_CELL_A "]),
    "no_name": (jacobi("SET(u, 0);").replace('"broken"', '""'), ["MX_NAME"]),
    "name_not_defined": ("#define MX_RADIUS 1\n#include <memext/cell.h>\n", ["MX_NAME is not defined"]),
    "radius": (jacobi("SET(u, AT(u, 0, 0, 0));").replace("RADIUS 1", "RADIUS 9"), ["MX_RADIUS", "9", "1 to 8"]),
    "fixed_radius": (jacobi("SET(u, AT(u, 0, 0, 0));", "#define MX_FIXED_RADIUS 2\n"), ["MX_FIXED_RADIUS", "0 to 1"]),
    "state_type": (jacobi("SET(u, AT(u, 0, 0, 0));").replace("double", "char", 1), ["char", "double, float"]),
    "fixed_type": (jacobi("SET(u, AT(u, 0, 0, 0));", "#define MX_FIXED(F) F(k, long double)\n"), ["long double", "uint8_t"]),
    "too_many_fields": (jacobi("SET(u, 0);").replace("F(u, double)", "F(u, double) " + " ".join(f"F(u{i}, double)" for i in range(32))),
                        ["33", "1 to 32"]),
    "two_fields_of_a_name": (jacobi("SET(u, 0);", "#define MX_FIXED(F) F(u, float)\n"),
                             ["broken.c:4:", "two fields are named u, one in MX_STATE and one in MX_FIXED"]),
    "two_parameters_of_a_name": (jacobi("SET(u, PARAM(a));", "#define MX_PARAMS(P) P(a, 1) \\\n  P(b, 2) P(a, 3)\n"), ["broken.c:5:", "two parameters are named a"]),
    **{f"field_{name}": (jacobi(f"SET({name}, AT({name}, 0, 0, 0));").replace("F(u, double)", f"F({name}, double)"), ["broken.c:3:", *words])
       for name, words in {"T": ["cannot be named T", "the time step"], "X": ["the index of the cell in x"], "Y": ["cannot be named Y"],
                           "NZ": ["the number of cells in z"], "unix": ["a macro of the compiler"], "M_PI": ["belong to <math.h>"],
                           "MX_CELL": ["belong to cell.h"], "F": ["F is the name of a field and of the argument of MX_STATE(F)", "ITEM(F, ...)"]}.items()},
    "field_that_is_a_macro": (jacobi("SET(u, AT(u, 0, 0, 0));", "#define u 3\n"), ["broken.c:3:", "u is the name of a field and of a macro"]),
    "parameter_P": (jacobi("SET(u, PARAM(P));", "#define MX_PARAMS(P) P(P, 1)\n"), ["broken.c:4:", "the argument of MX_PARAMS(P)"]),
    "reduction_T": (jacobi("SET(u, 0);", "#define MX_REDUCES(R) R(T, MX_SUM)\n") + "MX_REDUCE(T)\nRESULT(1);\nMX_END\n", ["reduction cannot be named T"]),
    "reduction_kind": (jacobi("SET(u, 0);", "#define MX_REDUCES(R) R(mean, MX_AVERAGE)\n"), ["broken.c:4:", "mean is MX_AVERAGE: it must be MX_SUM, MX_MAX or MX_MIN"]),
    "unknown_parameter": (jacobi("SET(u, PARAM(k));", "#define MX_PARAMS(P) P(a, 1) P(b, 2)\n"), ["broken.c:7:", "no parameter k; the kernel has a, b"]),
    "at_for_old": (staggered("/* AT(w) */ SET(h, AT(h, 0, 0, 0) + AT(e, 1, 0, 0));", "SET(e, OLD(e) + AT(h, 1, 0, 0));"),
                   ["broken.c:7:", "AT(h, ...) cannot be read in MX_CELL_B", "OLD(h)"]),
    "at_for_old_in_a": (staggered("SET(h, OLD(h));", "\n SET(e, AT(e, 0, 0, 0));"), ["broken.c:10:", "AT(e, ...) cannot be read in MX_CELL_A", "OLD(e)"]),
    "set_of_the_other_array": (staggered("SET(e, 0);", "SET(e, 0);"), ["SET(e) is not possible in MX_CELL_B, which computes the fields of MX_PARTNER: h"]),
    "set_of_fixed": (jacobi("SET(k, 0);", "#define MX_FIXED(F) F(k, float)\n"), ["SET(k) is not possible in MX_CELL: fields of MX_FIXED are read only"]),
    "set_in_a_reduction": (jacobi("SET(u, 0);", "#define MX_REDUCES(R) R(s, MX_SUM)\n") + "MX_REDUCE(s)\nSET(u, 1);\nMX_END\n", ["MX_REDUCE, which only reads", "RESULT"]),
    "reduction_of_the_state_of_staggered": (staggered("SET(h, 0);", "SET(e, 0);", "#define MX_REDUCES(R) R(s, MX_SUM)\n")
                                            + "MX_REDUCE(s)\nRESULT(AT(e, 0, 0, 0));\nMX_END\n", ["MX_REDUCE, which reads only the fields of MX_PARTNER in a staggered kernel: h"]),
    "partner_of_jacobi": (jacobi("SET(u, 0);", "#define MX_PARTNER(F) F(v, float)\n"), ["only MX_STAGGERED has partner fields"]),
    "description_of_another_size": ("struct mx_kernel { unsigned size, version, more[60]; }; const struct mx_kernel mx_kernel = {8, 2, {0}};\n",
                                    ["8, 0, 0, 0 and 0", "build it again"]),
    "what_is_to_come": ("#define mx_kernel mx_other\n" + jacobi("SET(u, 0);") + "#undef mx_kernel\nconst struct mx_other mx_kernel = {sizeof mx_kernel, 2, "
                        "sizeof(struct mx_row), sizeof(struct mx_cell_field), sizeof(struct mx_cell_param), sizeof(struct mx_cell_reduce), .flags = 1};\n",
                        ["newer memext/cell.h"]),
    "version": ("const unsigned mx_kernel[80] = {8, 77};\n", ["version 77"]),
    "no_kernel": ("int nothing;\n", ["describes no kernel"]),
}


@pytest.fixture
def kernel(memext, tmp_path):
    """Runs memext kernel with a cache of its own; texts become files."""
    class Kernel:
        cache = tmp_path / "cache"
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(tmp_path)}

        def write(self, text, name="broken.c"):
            (tmp_path / name).write_text(text)
            return name

        def __call__(self, *words, **environment):
            return memext("kernel", *words, cwd=tmp_path, timeout=600, env={**self.environment, **environment})

        def refused(self, *words, naming, **environment):
            done = self(*words, **environment)
            assert done.returncode == 2, (done.stdout, done.stderr)
            sentence = done.stderr.strip().splitlines()[-1]
            assert sentence.startswith("memext kernel: "), done.stderr
            for text in naming:
                assert text in sentence, f"'{text}' is not named: {done.stderr}"
            return done

        def entries(self):
            return sorted(self.cache.glob("memext/kernels/*"))

    Kernel.cache.mkdir(mode=0o700)
    return Kernel()


def test_a_good_kernel_is_built_shown_and_found_good(kernel):
    path = kernel.write(GOOD, "good.c")
    for verb, words in {"build": "compiled by", "check": "nothing wrong found", "show": "c = 0.5"}.items():
        done = kernel(verb, path)
        assert done.returncode == 0 and words in done.stdout and done.stderr == "", (done.stdout, done.stderr)
    assert "f = 0.25" in kernel("show", path, "--param", "f=0.25").stdout
    assert "found in the cache" in kernel("build", path).stdout


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_kernels_are_refused_by_check(kernel, fault):
    text, naming = BROKEN[fault]
    kernel.refused("check", kernel.write(text), naming=naming)


def test_sentences_of_broken_kernels_differ():
    said = [tuple(naming) for _, naming in BROKEN.values()]
    assert len(set(said)) == len(said) >= 10


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_no_kernel_is_refused(kernel, fault):
    text, naming = REFUSED[fault]
    (kernel.cache.parent / "other.h").write_text("int other;\n")
    done = kernel.refused("build", kernel.write(text), naming=naming)
    assert kernel.entries() == [] or "kernel.so" not in str(kernel.entries())
    assert "mx_" not in done.stderr or fault in ("syntax", "description_of_another_size", "version", "no_kernel", "constant_offset", "old_in_jacobi"), done.stderr


def test_names_that_look_taken_and_are_not(kernel):
    """Parameters have a space of their own, macros with arguments are no names of fields, and what stands in comments and strings is not looked at."""
    text = HEAD.replace("broken", "AT(w, SET(k").replace("F(u, double)", "F(u, double) /* F(T, double) */ F(P, double) F(R, double)")
    more = "#define MX_PARAMS(P) P(T, 1) P(X, 2) P(u, 3)\n#define MX_REDUCES(R) R(u, MX_MIN)\n#define u(a) AT(a, 0, 0, 0)\n"
    cell = CELL % "SET(u, u(P) * PARAM(T) + PARAM(X) + PARAM(u)); SET(P, AT(u, 1, 0, 0)); /* AT(w) */ SET(R, u(R));" + "MX_REDUCE(u)\nRESULT(u(u));\nMX_END\n"
    done = kernel("check", kernel.write(text + more + cell))
    assert done.returncode == 0 and "nothing wrong" in done.stdout, done.stderr
    broken = kernel.refused("check", kernel.write(text + more + cell.replace("u(R)", "nobody")), naming=["nobody"])
    assert "cannot be named" not in broken.stderr


def test_what_killed_compilations_leave_in_the_cache(kernel):
    """A directory of more than a day ago goes; a younger one, in which a compiler may be at work, and what is no such directory stay."""
    kernels = kernel.cache / "memext" / "kernels"
    kernels.mkdir(parents=True, mode=0o700)
    for name in ".build-old", ".build-young", ".build-other", "old":
        (kernels / name / "memext").mkdir(parents=True)
        (kernels / name / "kernel.c").write_text("left")
    (kernels / ".build-other" / "mine").touch()
    for name in ".build-old", ".build-other", "old":
        os.utime(kernels / name, (1, 1))
    assert kernel("build", kernel.write(GOOD)).returncode == 0
    assert sorted(p.name for p in kernels.iterdir() if p.is_dir()) == [".build-other", ".build-young", "old"] and (kernels / ".build-other" / "mine").exists()


def test_an_error_shows_the_compilers_text_and_the_kernels_line(kernel):
    done = kernel.refused("build", kernel.write(jacobi("SET(u, AT(u, 0, 0, 0) * nobody);")), naming=["broken.c:6:", "nobody"])
    assert "SET(u, AT(u, 0, 0, 0) * nobody);" in done.stderr and len(done.stderr.splitlines()) > 2


@pytest.mark.parametrize("words, naming", [(["--param", "g=1"], ["no parameter 'g'", "c, f"]), (["--param", "c=x"], ["'x'", "finite"]),
                                           (["--param", "c=inf"], ["finite"]), (["--param", "c"], ["NAME=VALUE"]),
                                           (["--param", "c=1", "--param", "c=2"], ["twice"])])
def test_parameters_are_checked(kernel, words, naming):
    kernel.refused("check", kernel.write(GOOD), *words, naming=naming)


def test_files_that_are_no_kernels(kernel, tmp_path):
    kernel.refused("build", "nothing.c", naming=["nothing.c", "No such file"])
    kernel.refused("build", kernel.write(GOOD, "kernel.f90"), naming=["neither FILE.c nor FILE.so", "--stencil"])
    kernel.refused("build", kernel.write("no object\n", "kernel.so"), naming=["kernel.so", "cannot be loaded"])
    kernel.refused("check", kernel.write(jacobi("SET(u, 0);", "__attribute__((constructor)) static void f(void) { __builtin_trap(); }\n")),
                   naming=["loading", "crashes with SIG"])
    (tmp_path / "directory.c").mkdir()
    kernel.refused("build", "directory.c", naming=["not a regular file"])
    for nothing in ("", "\n", '#include "empty.h"\n'):
        (tmp_path / "empty.h").write_text("")
        kernel.refused("check", kernel.write(nothing, "empty.c"), naming=["empty"])


def test_an_object_of_the_users_own(kernel, tmp_path):
    """A .so is checked as text is, and one that is linked with fast-math is refused: it would change all arithmetic of the process."""
    source = kernel.write(GOOD, "good.c")
    include = kernel.cache.parent / "include" / "memext"
    include.mkdir(parents=True)
    shutil.copy(os.path.join(os.path.dirname(__file__), "../../runtime/include/memext/cell.h"), include)
    build = ["cc", "-O2", "-shared", "-fPIC", "-ffp-contract=off", "-fopenmp-simd", "-I", include.parent, source]
    subprocess.run([*build, "-o", "good.so"], cwd=tmp_path, check=True)
    assert "nothing wrong" in kernel("check", "good.so").stdout
    assert "built already" in kernel("build", "good.so").stdout and kernel.entries() == []
    (tmp_path / "fast.c").write_text("#include <xmmintrin.h>\n__attribute__((constructor)) static void fast(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }\n" + GOOD)
    if os.uname().machine == "x86_64":
        subprocess.run([*build[:-1], "fast.c", "-o", "fast.so"], cwd=tmp_path, check=True)
        kernel.refused("build", "fast.so", naming=["-ffast-math"])
    whole = (tmp_path / "good.so").read_bytes()
    (tmp_path / "cut.so").write_bytes(whole[: len(whole) // 3])
    kernel.refused("build", "cut.so", naming=["cut.so"])


def test_functions_of_the_machine_are_named(kernel, memext, tmp_path):
    path = kernel.write(jacobi("SET(u, sqrt(fabs(AT(u, 0, 0, 0))) * exp(-AT(u, 1, 0, 0)) + sin(AT(u, 0, 0, 0)));"))
    done = kernel("check", path)
    assert done.returncode == 0 and "exp" in done.stdout and "sin" in done.stdout and "sqrt" not in done.stdout, done.stdout
    assert "depend on the machine" in kernel("show", path).stdout
    done = memext("run", "--kernel", tmp_path / path, "-n", 9, 9, 9, "-t", 1, "--init", "random", "--backend", "dram", "--dry-run", "--json", "-")
    assert "sin" in json.loads(done.stdout)["kernel_calls"] and "depend on the machine" in done.stderr


WITH_HEADERS = HEAD + """#define MX_PARAMS(P) P(dt, 1)
#include <memext/cell.h>
/* #include "none.h"
   #include "parts/rate.h" */
  #  include "parts/rate.h"
MX_CELL
    SET(u, PARAM(dt) * rate() * AT(u, 0, 0, 0));
MX_END
"""


def test_headers_of_the_user(kernel, memext, tmp_path, place):
    """They stand beside what includes them, are compiled for every engine, and are part of what a kernel is: a store of a run with other ones is not gone on
    with, and a kernel in another directory is the same."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "rate.h").write_text('#ifndef RATE\n#define RATE\n#include "deep.h"\nstatic inline double rate(void) { return DEEP; }\n#endif\n')
    deep = tmp_path / "parts" / "deep.h"
    deep.write_text("#define DEEP 0.25\n")
    path = tmp_path / kernel.write(WITH_HEADERS)
    plain = tmp_path / "plain.c"
    plain.write_text(HEAD + "#define MX_PARAMS(P) P(dt, 1)\n" + CELL % "SET(u, PARAM(dt) * 0.25 * AT(u, 0, 0, 0));")
    words = ["-n", 9, 8, 7, "-t", 2, "--init", "random"]

    def run(kernel, *more, **options):
        return memext.run("--kernel", kernel, *words, *more, **options)["checksum"]

    wanted = run(plain, "--backend", "dram")
    assert run(path, "--backend", "dram") == run(path.name, "--backend", "dram", "--accel", "host", cwd=tmp_path) == run(path, "-d", place, "--keep") == wanted
    assert run(path, "--backend", "dram", "--param", "dt=4/8") == run(plain, "--backend", "dram", "--param", "dt=0.5")
    shutil.copytree(tmp_path / "parts", tmp_path / "elsewhere" / "parts")
    shutil.copy(path, tmp_path / "elsewhere")
    go_on = ["run", "--resume", "-d", place, "-t", 4, "--keep"]
    deep.write_text("#define DEEP 0.5\n")
    assert run(path, "--backend", "dram") == run(plain, "--backend", "dram", "--param", "dt=2")
    memext.refused(*go_on, naming="its text has changed")
    assert memext(*go_on, "--kernel", tmp_path / "elsewhere" / path.name).returncode == 0
    for value in "1/0", "1/", "/2", "1/2/3", "nan":
        memext.refused("run", "--kernel", path, *words, "--backend", "dram", "--param", f"dt={value}", naming=["dt", value])
    deep.write_text("#define DEEP deeper\n")
    kernel.refused("check", path, naming=["rate.h:4", "deeper"])
    deep.write_text('#include "deep.h"\n')
    kernel.refused("check", path, naming=["deep.h", "includes itself"])


def test_headers_that_are_taken_once(kernel, tmp_path):
    """#pragma once: two headers take a third one, which one of them reaches by another name; and a header takes itself."""
    (tmp_path / "one.h").write_text("  #  pragma once // of all\nstatic inline double one(void) { return 0.25; }\n#include \"one.h\"\n")
    (tmp_path / "same.h").symlink_to("one.h")
    (tmp_path / "left.h").write_text('#pragma once\n#include "one.h"\n')
    (tmp_path / "right.h").write_text('#pragma once\n#include "same.h"\nstatic inline double rate(void) { return one(); }\n')
    path = tmp_path / kernel.write('#include "left.h"\n' + WITH_HEADERS.replace("parts/rate.h", "right.h"))
    done = kernel("check", path)
    assert done.returncode == 0 and "nothing wrong" in done.stdout and not done.stderr, done.stderr
    (tmp_path / "one.h").write_text("/*\n#pragma once\n*/\n#ifndef ONE\n#define ONE\nstatic inline double one(void) { return 0.5; }\n#endif\n")
    done = kernel("check", path)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_an_unknown_function_is_named_with_its_line(kernel):
    kernel.refused("check", kernel.write(HEAD + CELL % "SETT(u, AT(u, 0, 0, 0));"), naming=[":6:", "SETT"])


def test_the_cache_is_hit_and_its_key_counts(kernel):
    path = kernel.write(GOOD)
    assert "compiled by" in kernel("build", path).stdout
    for same in (path, kernel.write(GOOD, "copy.c")):
        assert "found in the cache" in kernel("build", same).stdout
    assert len(kernel.entries()) == 1
    assert "compiled by" in kernel("build", kernel.write(GOOD + "/* */\n")).stdout
    assert "compiled by" in kernel("build", path, CC="cc -O1").stdout
    assert len(kernel.entries()) == 3


def test_a_new_version_of_the_compiler_counts(kernel, tmp_path):
    """A compiler that is replaced under the same name and words: what the old one made is not taken."""
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "made up $VERSION"\nexec cc "$@"\n')
    compiler.chmod(0o755)
    path = kernel.write(GOOD)
    for version, said in (("1.0", "compiled by"), ("1.0", "found in the cache"), ("1.1", "compiled by"), ("1.0", "found in the cache")):
        assert said in kernel("build", path, CC=str(compiler), VERSION=version).stdout, version
    assert len(kernel.entries()) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "grown", "time", "older"])
def test_a_damaged_entry_is_made_again(kernel, damage):
    path = kernel.write(GOOD)
    kernel("build", path)
    entry, = kernel.entries()
    data = entry.read_bytes()
    entry.write_bytes({"cut": data[:-200], "changed": data[:3000] + b"?" + data[3001:], "empty": b"", "grown": data + b"x",
                       "time": data[:-16] + b"?" + data[-15:], "older": data[:-16] + data[-8:]}[damage])  # the end: magic, form, time of a step, hash
    assert "compiled by" in kernel("build", path).stdout
    assert kernel.entries() == [entry] and entry.read_bytes() == data
    assert "nothing wrong" in kernel("check", path).stdout


def test_several_compile_the_same_kernel_at_once(kernel, memext, tmp_path):
    path = kernel.write(GOOD)
    running = [subprocess.Popen([str(memext.program), "kernel", "check", path], cwd=tmp_path, env=kernel.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
    for process in running:
        out, _ = process.communicate(timeout=600)
        assert process.returncode == 0 and "nothing wrong" in out, out
    assert len(kernel.entries()) == 1


def test_without_a_compiler(kernel):
    path = kernel.write(GOOD)
    kernel.refused("build", path, CC="/nonexistent", naming=["/nonexistent", "CC", "FILE.so"])
    kernel.refused("build", path, CC="", PATH="/nonexistent", naming=["no C compiler", "FILE.so"])
    kernel.refused("build", path, CC="false", naming=["version"])


def test_a_cache_that_cannot_be_written_is_done_without(kernel, tmp_path):
    (tmp_path / "file").write_text("")
    done = kernel("build", kernel.write(GOOD), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 0 and "kept nowhere" in done.stdout, (done.stdout, done.stderr)
    assert not list(tmp_path.glob("memext-kernel-*"))
    kernel.refused("build", kernel.write(GOOD), XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path / "nowhere"),
                   naming=["no directory can be made", "TMPDIR"])


def test_a_cache_of_others_is_refused(kernel):
    path = kernel.write(GOOD)
    kernel("build", path)
    directory = kernel.cache / "memext" / "kernels"
    directory.chmod(0o777)
    kernel.refused("build", path, naming=["can be written by others", "XDG_CACHE_HOME"])
    directory.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(directory, 65534, 65534)
        kernel.refused("build", path, naming=["belongs to user 65534", "XDG_CACHE_HOME"])


@pytest.mark.parametrize("words", [[], ["build"], ["mend", "x.c"], ["build", "x.c", "y.c"], ["build", "x.c", "--nothing"]])
def test_the_command_line(kernel, words):
    assert kernel(*words).returncode == 2
    assert kernel("--help").returncode == 0
