# SPDX-License-Identifier: BSD-3-Clause
"""What a packager looks for: the licence in the tree and in every file of code, and a version that is said once."""
import pathlib
import re
import subprocess

import pytest
from conftest import ROOT

CODE = {".c", ".h", ".inc", ".py", ".cmake", ".sh", ".in"}
NAMED = {"CMakeLists.txt", "pyproject.toml", ".ci/run", "experiments/limit-memory", "experiments/limit-bandwidth", "experiments/with-settings", "experiments/with-matrix"}
VERSION = re.search(r'^#define MX_VERSION "([0-9.]+)"$', (ROOT / "runtime/include/memext/memext.h").read_text(), re.M).group(1)


def tracked():
    """Paths of the repository, as git lists them; a tree without git is no subject of this test."""
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"git does not list the files: {done.stderr.strip()}")
    return [path for path in done.stdout.split("\0") if path and (ROOT / path).exists()]


def is_code(path):
    parts = pathlib.PurePath(path)
    return (parts.suffix in CODE or parts.name in NAMED or path in NAMED) and "corpus" not in parts.parts


def test_every_file_of_code_names_its_licence():
    """The identifier stands in the first line, or in the second one after `#!`."""
    files = [path for path in tracked() if is_code(path)]
    without = []
    for path in files:
        lines = (ROOT / path).read_text().splitlines()[:2]
        line = lines[1:] if lines and lines[0].startswith("#!") else lines[:1]
        if not line or not re.fullmatch(r"(# |/\* )SPDX-License-Identifier: BSD-3-Clause( \*/)?", line[0]):
            without.append(path)
    assert without == [] and len(files) > 400


def test_the_licence_is_there_and_is_one():
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("BSD 3-Clause License\n") and "the memext authors" in text and len(re.findall(r"^\d\. ", text, re.M)) == 3
    assert "license: BSD-3-Clause" in (ROOT / "CITATION.cff").read_text() and 'license = "BSD-3-Clause"' in (ROOT / "pyproject.toml").read_text()


def test_the_version_is_said_once():
    """In memext.h; the changelog, which tells versions apart, is the one other place. It has a section of this version with its date."""
    told = [path for path in tracked() if is_code(path) or path.endswith((".md", ".1", ".toml", ".cff"))]
    said = {path for path in told if re.search(rf"(?<![\w.]){re.escape(VERSION)}(?![\w.])", (ROOT / path).read_text())}
    assert said == {"runtime/include/memext/memext.h", "CHANGELOG.md"}
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_nothing_of_other_projects():
    """No patch, and no script that fetches other projects' sources: rivals and peers are installed programs or packages."""
    files = tracked()
    assert [path for path in files if path.endswith((".patch", ".diff", ".orig", ".rej"))] == []
    scripts = [path for path in files if is_code(path) and path != "tests/python/test_licence.py"]
    fetching = re.compile(r"git\b.{0,12}\bclone\b|\bwget\b|\bcurl\b|urlretrieve|FetchContent|GIT_REPOSITORY")
    assert [path for path in scripts if fetching.search((ROOT / path).read_text())] == []
