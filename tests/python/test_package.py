# SPDX-License-Identifier: BSD-3-Clause
"""What `cmake --install` delivers: programs, library, headers, pkg-config and CMake package, man page."""
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

HEADER = ROOT / "runtime" / "include" / "memext" / "memext.h"
VERSION = re.search(r'MX_VERSION "(.*)"', HEADER.read_text()).group(1)


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True, **options).stdout


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory):
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", build, "--prefix", path)
    return path


@pytest.fixture(scope="module")
def pkg_config(prefix):
    folder = next(prefix.rglob("memext.pc")).parent
    return lambda *words: run("pkg-config", *words, "memext", env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).split()


def check_runs(program, prefix, place):
    library = str(next(prefix.rglob("libmemext.so")).parent)
    done = run(program, place, env={**os.environ, "LD_LIBRARY_PATH": library})
    assert "sum of 0 .. 33554431: 562949936644096" in done


def test_programs_their_links_version_and_licence(prefix):
    for name in ("stencil7p", "stencil19p", "stencil27p"):
        assert os.readlink(prefix / "bin" / name) == "memext"
    assert run(prefix / "bin" / "memext", "--version").split()[-1] == VERSION
    assert f'"memext {VERSION}"' in next(prefix.rglob("memext.1")).read_text().splitlines()[0]
    assert next(prefix.rglob("LICENSE")).read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("static", [False, True])
def test_a_consumer_builds_with_pkg_config(prefix, pkg_config, place, tmp_path, static):
    program, words = tmp_path / "consumer", ["--static"] if static else []
    libraries = pkg_config(*words, "--cflags", "--libs")
    if static:
        libraries = [str(next(prefix.rglob("libmemext.a"))) if word == "-lmemext" else word for word in libraries]
    run("gcc", "-std=c17", "-Wall", "-Werror", ROOT / "tests/examples/fill_and_sum.c", *libraries, "-o", program)
    check_runs(program, prefix, place)


def test_a_consumer_builds_with_find_package(prefix, place, tmp_path):
    shutil.copy(ROOT / "tests/examples/fill_and_sum.c", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(memext {VERSION.rpartition(".")[0]} REQUIRED)
add_executable(consumer fill_and_sum.c)
target_link_libraries(consumer PRIVATE memext::memext)
""")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    check_runs(tmp_path / "build" / "consumer", prefix, place)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_headers_stand_alone(prefix, tmp_path, language):
    for header in (prefix / "include" / "memext").iterdir():
        run("gcc", "-x", language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
            "-I", prefix / "include", "-include", header, "/dev/null")


def test_exports_are_the_functions_of_the_header(prefix):
    """{exported symbols} == {functions declared in memext.h}."""
    declared = declarations().keys()
    listing = run("nm", "-D", "--defined-only", next(prefix.rglob("libmemext.so")))
    exported = {line.split()[2].split("@")[0] for line in listing.splitlines() if " T " in line}
    assert exported == declared and len(declared) > 20


def test_no_instruction_beyond_the_baseline_is_assumed(build):
    """Portable: no -march in any compile command but those of dispatched kernels."""
    commands = (build / "compile_commands.json").read_text()
    assert "-march=native" not in commands and "-mtune=native" not in commands


def test_completions_are_installed(prefix):
    """Where bash and zsh look for them."""
    for path, source in ("share/bash-completion/completions/memext", "memext"), ("share/zsh/site-functions/_memext", "_memext"):
        assert (prefix / path).read_text() == (ROOT / "cmake" / "completion" / source).read_text()


def man(page):
    """The text of a page, which is well-formed."""
    if not shutil.which("man"):
        pytest.skip("man-db is not installed")
    done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, cwd=page.parents[1],
                          env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and done.stderr == "", page
    return done.stdout


def test_the_man_page_is_well_formed(prefix):
    assert "memext run" in man(next(prefix.rglob("memext.1")))


def declarations():
    """{function: its declaration in the header, with single blanks}"""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    found = re.findall(r"^(?!static|typedef)[a-z][\w *]*?\b(mx_\w+)(\([^;]*\);)", text, re.M)
    return {name: " ".join((name + rest).split()) for name, rest in found}


def test_every_function_has_a_man_page(prefix):
    """Pages of section 3: those of the header's functions, and of its sections, which hold each declaration as it is."""
    folder = next(prefix.rglob("man3"))
    sections = {page.stem: " ".join(man(page).split()) for page in folder.iterdir() if not page.read_text().startswith(".so ")}
    links = {page.stem: page.read_text().split("/")[-1].removesuffix(".3\n") for page in folder.iterdir() if page.stem not in sections}
    functions = declarations()
    assert len(sections) == 6 and links.keys() | sections.keys() == functions.keys() | sections.keys()
    for name, declaration in functions.items():
        assert declaration in sections[links.get(name, name)], name
    assert "man3" not in " ".join(sections) and not any("*/" in text.split("/*")[0] for text in sections.values())


def test_structs_begin_with_their_size_and_types_are_used(prefix):
    """Programs and libraries of different versions: a struct that may grow says its size first. Plain values never grow."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    structs = dict(re.findall(r"^struct (mx_\w+) \{\s*([^;]*;)", text, re.M))
    values = {"mx_span", "mx_store_extent"}
    assert {name for name, first in structs.items() if first != "uint32_t size;"} == values
    for name in structs:
        assert len(re.findall(rf"\bstruct {name}\b", text)) > 1, f"{name} is declared and not taken"
