#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the link circles of what was built: files of which each calls into the next one, and the last into the first.

    tests/link_circles.py [--build build/release] [FOLDER...]

Prints the calls of runtime/run that go upward, too: each of its rooms calls what stands below it in ROOMS.
Where folders of runtime/ are named, circles that touch none of them are left out. Ends with 1 where it prints anything.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of runtime/run, from the bottom up; what is in none of them stands above all.
ROOMS = ["runtime/run/watch.c", "runtime/run/ranks/", "runtime/run/parts/", "runtime/run/work/", "runtime/run/open/"]


def symbols(objects):
    """{object: (defined, undefined)}, of global symbols."""
    found = {o: (set(), set()) for o in objects}
    lines = subprocess.run(["nm", "-A", "-g", "--format=posix", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    names = {str(o): o for o in objects}
    for line in lines.splitlines():
        path, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        found[names[path]][kind in "Uwv"].add(name)
    return found


def calls(found):
    """{object: objects whose symbols it uses}."""
    home = {name: o for o, (defined, _) in found.items() for name in defined}
    return {o: {home[name] for name in undefined if name in home and home[name] != o} for o, (_, undefined) in found.items()}


def circles(graph):
    """Strongly connected components of more than one node (Tarjan), without recursion."""
    index, low, on, stack, found, count = {}, {}, set(), [], [], 0
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = count
                    count += 1
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter(sorted(graph[to]))))
                    break
                if to in on:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def production(build):
    """{object: its source}, of everything that is delivered: runtime/ and backends/."""
    objects = {}
    for o in sorted(build.glob("CMakeFiles/mx_*.dir/**/*.o")):
        source = pathlib.PurePath(*o.relative_to(build / "CMakeFiles").parts[1:]).with_suffix("")
        if source.parts[0] in ("runtime", "backends") and (ROOT / source).exists():
            objects[o] = str(source)
    return objects


def storey(source):
    return next((i for i, room in enumerate(ROOMS) if source.startswith(room)), len(ROOMS))


def upward(graph, objects):
    """(caller, called) in runtime/run, where the called one stands above."""
    inside = {o: s for o, s in objects.items() if s.startswith("runtime/run/")}
    return sorted((inside[o], inside[to]) for o in inside for to in graph[o] if to in inside and storey(inside[to]) > storey(inside[o]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("folders", nargs="*", help="of runtime/")
    o = parser.parse_args()
    objects = production(o.build)
    if not objects:
        sys.exit(f"{o.build} has no objects: build first")
    shown = 0
    graph = calls(symbols(list(objects)))
    for caller, called in upward(graph, objects):
        print(f"{caller} calls {called}, which stands above it")
        shown += 1
    for part in circles(graph):
        names = [objects[x] for x in part]
        if not o.folders or any(pathlib.PurePath(n).parts[1] in o.folders for n in names):
            print(f"{len(names)} files: " + " ".join(names))
            shown += 1
    by = collections.Counter(pathlib.PurePath(s).parts[1] for s in objects.values())
    print(f"{shown} circles and calls upward among {sum(by.values())} files", file=sys.stderr)
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
