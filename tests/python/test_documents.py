# SPDX-License-Identifier: BSD-3-Clause
"""README.md and docs/: links resolve, numbers of pictures are those of the tables, examples run, and the site is built without a warning.

A block of code that is to be run has a comment before it: `<!-- run -->`, or `<!-- run: long => short; ... -->` with what stands in place of what here.
`<!-- file: NAME -->` before a block writes it to that file. The blocks of a page run in their order, in one directory. A block of `text` behind one
that is run is what it prints: every line must begin with a word with which a line of the real output begins, in the same order.
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from package import cache, environment  # noqa: F401

spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "make_site.py")
make_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_site)

DOCUMENTS = make_site.documents()
BLOCK = re.compile(r"(?:^<!-- (run|file)(?:: (.*?))? -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NO_PAGES = ("results.md", "page-cache.md", "CHANGELOG.md")  # scripts write them; the entries of releases
PAGES = [path for path in DOCUMENTS if path.parts[0] in ("README.md", "docs") and "notes" not in path.parts]


def blocks_of(text):
    """[(what is to be done, its words, language, code)] in order."""
    return [(found[1], found[2] or "", found[3], found[4]) for found in BLOCK.finditer(text)]


def in_small(code, words):
    for pair in filter(None, (word.strip() for word in words.split("; "))):
        long, short = (side.strip() for side in pair.split("=>"))
        assert long in code, f"'{long}' is not in the example:\n{code}"
        code = code.replace(long, short)
    return code


def first_words(text):
    return [line.split()[0] for line in text.splitlines() if line[:1].strip()]


def follows(said, real):
    """Whether these words are among the real ones, in their order."""
    rest = iter(real)
    return all(word in rest for word in said)


def test_examples_are_found():
    text = "a\n<!-- file: x.c -->\n```c\nint x;\n```\n\n<!-- run: -t 100 => -t 1; a => b -->\n```sh\na -t 100\n```\n\n```text\nplan  x\n```\n```c\nno\n```\n"
    blocks = blocks_of(text)
    assert [b[:3] for b in blocks] == [("file", "x.c", "c"), ("run", "-t 100 => -t 1; a => b", "sh"), (None, "", "text"), (None, "", "c")]
    assert in_small(blocks[1][3], blocks[1][1]) == "b -t 1\n" and follows(["a", "c"], ["a", "b", "c"]) and not follows(["c", "a"], ["a", "b", "c"])


@pytest.mark.parametrize("path", [path for path in PAGES if any(block[0] for block in blocks_of((ROOT / path).read_text()))], ids=str)
def test_examples(build, request, place, path):
    """Every command and program of a page ends with status 0, one after the other; what it is said to print it prints."""
    blocks = blocks_of((ROOT / path).read_text())
    tools = place / ".tools"
    tools.mkdir()
    (tools / "memext").symlink_to(build / "memext")
    (tools / "python3").symlink_to("/usr/bin/python3")
    own = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(request.getfixturevalue("cache")), "MEMEXT_SOURCE": str(ROOT), "MEMEXT_LIBRARY": str(build / "libmemext.so")}
    python = request.getfixturevalue("environment") if any(block[0] == "run" and block[2] == "python" for block in blocks) else None
    for i, (what, words, language, code) in enumerate(blocks):
        if what == "file":
            (place / words).write_text(code)
        if what != "run":
            continue
        code = in_small(code, words)
        (place / "program.py").write_text(code)  # the package reads the source of a kernel in its file
        program = [python, "program.py"] if language == "python" else ["bash", "-eu", "-o", "pipefail", "-c", code]
        done = subprocess.run(program, check=False, cwd=place, env=own, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{path}:\n{code}{done.stdout}{done.stderr}"
        if i + 1 < len(blocks) and blocks[i + 1][0] is None and blocks[i + 1][2] == "text":
            said, real = first_words(blocks[i + 1][3]), first_words(done.stdout)
            assert follows(said, real), f"{path}: {code}prints lines that begin with {real}, not with {said}"


def test_pages_share_no_file():
    """Somebody may follow all pages in one directory: what an example of one writes, no example of another writes."""
    pages = {str(path): blocks_of((ROOT / path).read_text()) for path in PAGES}
    files = {page: {name for what, words, _, code in blocks for name in ([words] if what == "file" else re.findall(r"(?<![\w./%-])[\w-]+\.(?:npy|jsonl?|txt|c)\b", code) if what else [])}
             for page, blocks in pages.items()}  # fmt: skip
    manual = re.sub(r"\\f.|\\", "", (ROOT / "docs/memext.1").read_text()).split(".SH EXAMPLES\n")[1].split(".SH")[0]
    files["docs/memext.1"] = set(re.findall(r"(?<![\w./-])[\w-]+\.(?:npy|jsonl?|txt|c)\b", manual))
    assert "u.npy" in files["README.md"] and len(files["docs/memext.1"]) > 6
    shared = {name: [page for page in files if name in files[page]] for name in set().union(*files.values())}
    assert {name: of for name, of in shared.items() if len(of) > 1} == {}


@pytest.mark.parametrize("path", DOCUMENTS, ids=str)
def test_links_resolve(path):
    """To a file of the tree, and to a heading of it where the link names one."""
    text = (ROOT / path).read_text()
    for target in make_site.links(text):
        name, _, heading = target.partition("#")
        file = (ROOT / path).parent / name if name else ROOT / path
        assert file.is_file(), f"{path} links to {target}: there is no such file"
        if heading:
            assert heading in make_site.anchors(file.read_text()), f"{path} links to {target}: there is no such heading"


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def sentences(text):
    """Of paragraphs and lists, with a word for each piece of code; tables, code and headings are none. A colon or a semicolon ends one too."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraphs, new = [[]], True
    for line in text.splitlines():
        item = re.match(r"\s*(?:[-*]|\d+\.) (.*)", line)
        skipped = not line.strip() or line.startswith(("#", "|", "    ")) or line.lstrip().startswith("|")
        if skipped or item or new:
            paragraphs.append([])
        new = skipped
        if not skipped:
            paragraphs[-1].append(item[1] if item else line.strip())
    for paragraph in paragraphs:
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "CODE", " ".join(paragraph)))
        yield from re.split(r"(?<=[.:;?!])\s+|(?<=[.!?]\))\s+", words)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path.name not in NO_PAGES and "notes" not in path.parts], ids=str)
def test_sentences_are_short(path):
    long = [sentence for sentence in sentences((ROOT / path).read_text()) if len(sentence.split()) > 25]
    assert not long, long


def test_every_page_is_in_the_index():
    named = {(ROOT / "docs" / target.split("#")[0]).resolve() for target in make_site.links((ROOT / "docs/index.md").read_text())}
    missing = [str(path) for path in DOCUMENTS if (ROOT / path).resolve() not in named and path.name != "index.md" and "notes" not in path.parts]
    assert not missing, missing


@pytest.mark.parametrize("page", ["architecture", "extending"])
def test_the_source_is_as_the_pages_say(page):
    """Files that are named exist; so do functions, in the file that stands behind one, or anywhere in the source."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    said = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    files = [word for word in said if re.fullmatch(r"[\w.-]+(/[\w.-]+)+\.\w+", word) and "NAME" not in word]
    source = "\n".join(path.read_text() for folder in ("runtime", "backends", "tests/unit") for path in sorted((ROOT / folder).rglob("*.[ch]")))
    names = {word for word in said if re.fullmatch(r"mx_[a-z0-9_]+|[a-z]+_[a-z_]+", word)}
    commits = re.findall(r"[cC]ommits? ([0-9a-f]{7})\b", text)
    assert len(files) > 15 and len(names) > 5 and (commits or page == "architecture")
    assert [name for name in files if not (ROOT / name).exists() and name != "build/release/memext"] == []
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", source)] == []


def test_the_house_is_as_the_page_says():
    """What a folder sees in the table of architecture.md is what CMakeLists.txt lets it see."""
    built = re.findall(r"mx_folder\((\w+) runtime/\w+(?: SEES ([^)]*?))?(?: LIBS [^)]*)?\)", (ROOT / "CMakeLists.txt").read_text())
    said = re.findall(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    assert {folder: set(sees.replace("nothing", "").split(", ")) - {""} for folder, sees in said} == {folder: set(sees.split()) for folder, sees in built}


def test_numbers_of_the_picture():
    """data/measured/sizes.json has the numbers of the tables that it names."""
    record = json.loads((ROOT / "data/measured/sizes.json").read_text())
    rows = [*record["sizes"]["memext"], record["sizes"]["normal"]]
    speed, rivals = ((ROOT / record[part]["document"]).read_text() for part in ("sizes", "beside"))
    assert len(rows) == 5 and all(f"| {row['rate']:.2f} | {row['least']:.2f} .. {row['most']:.2f} |" in speed for row in rows)
    for name, rates in record["beside"]["rates"].items():
        assert all(f"| {rate} |" in rivals for rate in rates), name
    assert f"{record['beside']['loop']['rate']} Mupdates/s" in rivals


def test_the_site(tmp_path):
    """docs/build.sh without a warning; every document is a page of it, and the manual has its options."""
    python = ["/usr/bin/python3", "-c"]
    missing = [name for name in ("sphinx", "myst_parser", "furo") if subprocess.run([*python, f"import {name}"], check=False, capture_output=True).returncode]
    if missing:
        pytest.skip(f"no {', '.join(missing)} (packages-docs.txt)")
    done = subprocess.run([ROOT / "docs/build.sh", tmp_path / "site"], check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*.html")}
    assert {str(path.with_suffix(".html")) for path in DOCUMENTS} <= pages and "index.html" in pages
    assert "--commit-every" in (tmp_path / "site/docs/manual.html").read_text()
    assert shutil.which("sphinx-build") is None or not list((ROOT / "docs").glob("*.html"))
