# SPDX-License-Identifier: BSD-3-Clause
"""python -m memext view STORE|FILE [-o PNG] [--dataset NAME] | info [PATH]"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys

import memext


def _view(words: argparse.Namespace) -> None:
    out = words.output or pathlib.Path(pathlib.Path(words.path).name or "memext").with_suffix(".png")
    memext.view(words.path, out, words.dataset)
    print(out)


def _info(words: argparse.Namespace) -> None:
    print(json.dumps(memext.info(words.path), indent=2))


def view_main() -> int:
    """The command memext-view, which `memext view` starts."""
    return main(["view", *sys.argv[1:]])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m memext", description="looks at stores, files of arrays, and the machine")
    commands = parser.add_subparsers(required=True, metavar="view|info")
    view = commands.add_parser("view", help="a PNG with three slices and a histogram of each field")
    view.add_argument("path", help="a store (directory, file, block device), a directory of snapshots, or a file that memext.open reads")
    view.add_argument("-o", "--output", type=pathlib.Path, help="the picture (default: beside, NAME.png)")
    view.add_argument("--dataset", help="one field of a store, or dataset of a file")
    view.set_defaults(call=_view)
    info = commands.add_parser("info", help="what memext sees of the machine, as JSON")
    info.add_argument("path", nargs="?", help="a directory, file or block device to look at besides")
    info.set_defaults(call=_info)
    words = parser.parse_args(arguments)
    try:
        words.call(words)
    except memext.MemextError as error:
        print(f"memext: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
