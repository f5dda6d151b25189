# SPDX-License-Identifier: BSD-3-Clause
"""python -m memext view STORE|FILE [-o PNG] [--dataset NAME] | info [PATH]"""
from __future__ import annotations

import argparse
import errno
import json
import os
import pathlib
import sys

import memext
from memext.looking import is_picture_of_view


def _say(text: str) -> None:
    """Prints the text, or fails as the command does: status 3 if it cannot be written."""
    try:
        if sys.stdout is None:  # it was closed
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        print(text, flush=True)
    except OSError as error:
        sys.stdout = None  # Python would flush it once more
        raise memext.MemextError(f"the standard output cannot be written: {error.strerror}", errno.EIO, 3) from error


def _view(words: argparse.Namespace) -> None:
    out = words.output or pathlib.Path(pathlib.Path(words.path).name or "memext").with_suffix(".png")
    if words.output is None and out.exists() and not is_picture_of_view(out):
        raise memext.MemextError(f"{out} exists, and is no picture that this memext view has made: name another with -o, or move that file", errno.EEXIST)
    memext.view(words.path, out, words.dataset)
    _say(str(out))


def _info(words: argparse.Namespace) -> None:
    _say(json.dumps(memext.info(words.path), indent=2))


def view_main() -> int:
    """The command memext-view, which `memext view` starts."""
    return main(["view", *sys.argv[1:]])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m memext", description="shows stores, files of arrays, and the machine")
    commands = parser.add_subparsers(required=True, metavar="view|info")
    view = commands.add_parser("view", help="writes a PNG with three slices and a histogram of each field")
    view.add_argument("path", help="a store (directory, file, block device), a directory of snapshots, or a file that memext.open reads")
    view.add_argument("-o", "--output", type=pathlib.Path, help="the PNG to write (default: NAME.png in the current directory)")
    view.add_argument("--dataset", help="the field of a store, or the dataset of a file, to show")
    view.set_defaults(call=_view)
    info = commands.add_parser("info", help="prints what memext finds on the machine, as JSON")
    info.add_argument("path", nargs="?", help="a directory, file or block device to describe too")
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
