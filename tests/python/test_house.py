# SPDX-License-Identifier: BSD-3-Clause
"""The sources: imports of Python make no circle, files and functions are short, and a run by itself is a group of one."""
import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 500, 60
# Longer files, and why each of them is one file.
LONGER = {"python/memext/translate.py": "one interpreter of Python's syntax tree, a short method for each node; no part of it is used without the rest",
          "runtime/accel/cuda.c": "the vendor's interface, called in one place", "runtime/accel/opencl.c": "the same of another one",
          "runtime/include/memext/cell.h": "all that a kernel includes is one file, which may be copied: its manual and its macros",
          "runtime/include/memext/cell_device.h": "text that is compiled for a device as it is",
          "runtime/include/memext/memext.h": "the manual of the library",
          "runtime/stencil/simd.inc": "one kernel, for the vectors of each processor"}


def modules_of(folder, package):
    """{module: its file}; package: "" where the folder itself is on the path."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        words = [*filter(None, [package]), *path.relative_to(folder).with_suffix("").parts]
        found[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    return found


def imports_of(module, path, modules):
    """The modules of the package that a file imports, at its top and within functions."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[:len(package) - node.level + 1], *filter(None, [node.module])] if node.level else [node.module])
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base for a in node.names}
    return found & modules.keys() - {module}


def circle_in(graph):
    """A list of modules, each of which imports the next and the last the first; [] if there is none."""
    way, done = [], set()

    def visit(module):
        if module in way:
            return [*way[way.index(module):], module]
        if module in done:
            return []
        way.append(module)
        circle = next(filter(None, map(visit, sorted(graph[module]))), [])
        way.pop()
        done.add(module)
        return circle

    return next(filter(None, map(visit, sorted(graph))), [])


@pytest.mark.parametrize("folder, package", [("python/memext", "memext"), ("analysis", "analysis"), ("experiments", ""), ("experiments/rivals", "")])
def test_nothing_imports_what_imports_it(folder, package):
    modules = modules_of(ROOT / folder, package)
    graph = {module: imports_of(module, path, modules) for module, path in modules.items()}
    assert len(modules) > 10 and sum(map(len, graph.values())) > len(modules) / 2, "the files were not found, or their imports were not understood"
    circle = circle_in(graph)
    assert not circle, " imports ".join(circle)


def test_a_circle_is_seen():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == [] and circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_no_name_of_a_module_hides_another_one():
    """Of what a file imports and defines at its top: the second one of a name would be taken for the first."""
    files = [p for folder in ("python", "analysis", "experiments", "tests/python", "docs", "examples") for p in (ROOT / folder).rglob("*.py")]
    twice = []
    for path in files:
        top = ast.parse(path.read_text()).body
        names = [a.asname or a.name for n in top if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names] + [n.name for n in top if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        twice += [(str(path.relative_to(ROOT)), name) for name in set(names) if names.count(name) > 1]
    assert len(files) > 200 and not twice


def test_files_can_be_read_at_once():
    """At most 500 lines, apart from those that are named above with a reason, and these are there and longer."""
    files = [p for folder in ("python", "analysis", "experiments", "systems", "examples", "docs") for p in (ROOT / folder).rglob("*.py")]
    files += [p for folder in ("runtime", "backends") for end in ("c", "h", "inc") for p in (ROOT / folder).rglob(f"*.{end}")]
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in files}
    longer = {name: lines for name, lines in lengths.items() if lines > MOST_LINES}
    assert len(lengths) > 50 and longer.keys() == LONGER.keys(), longer


def functions_in(path):
    """(name, lines) of each function of a file of C, laid out by clang-format, or of Python."""
    if path.suffix == ".py":
        return [(n.name, n.end_lineno - n.lineno + 1) for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    found = re.finditer(r"^[a-z][^;={}#]*?(\w+)\([^;{}]*\) \{$.*?^\}$", path.read_text(), re.MULTILINE | re.DOTALL)
    return [(f[1], f[0].count("\n") + 1) for f in found]


def test_functions_can_be_read_at_once():
    files = [p for folder in ("runtime", "backends") for p in (ROOT / folder).rglob("*.[ch]") if p.name not in ("cell.h", "cell_device.h")]
    files += [p for folder in ("python/memext", "analysis") for p in (ROOT / folder).rglob("*.py")]
    lengths = {(str(p.relative_to(ROOT)), name): lines for p in files for name, lines in functions_in(p)}
    assert len(lengths) > 3000 and lengths["runtime/run/work/compute.c", "mx_run_compute"] > 30, "the functions were not found"
    assert not [(*where, lines) for where, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION]


def test_what_a_rank_is_stands_in_one_room():
    """Other rooms of run/ read no member of struct mx_run_ranks, and call no link: ranks/ has functions that do nothing in a group of one."""
    link = "|".join(re.findall(r"\b(mx_link_\w+)\(", (ROOT / "runtime/link/link.h").read_text()))
    of_ranks = re.compile(rf"\branks\.\w|\bmx_is_rank\b|\b(?:{link})\b")
    files = [p for end in ("c", "h") for p in (ROOT / "runtime/run").rglob(f"*.{end}")]
    lines = {p: [f"{p.relative_to(ROOT)}:{i}: {line}" for i, line in enumerate(p.read_text().splitlines(), 1) if of_ranks.search(line)
                 and not line.startswith("#include") and "request.link.ranks" not in line] for p in files}
    room = {p for p in files if p.is_relative_to(ROOT / "runtime/run/ranks")}
    assert len(room) > 5 and sum(len(lines[p]) for p in room) > 50, "the room was not found, or its lines were not understood"
    assert not [line for p in set(files) - room for line in lines[p]]
