#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_site.py [SITE]: builds the documents into a site (default: build/site), by Sphinx with MyST and furo. A warning is an error.

The documents are copied to SITE-sources with the files that they name, so that links stand as they do in the source tree. docs/memext.1
becomes one more page, the manual.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Files of words that links point to as they are, and folders of documents.
SINGLE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "python/README.md", "examples/README.md", "systems/applications/README.md")
FOLDERS = ("docs", "docs/notes")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FONTS = {"B": "**", "I": "*"}


def documents():
    """All of them, as paths below the root."""
    found = [pathlib.Path(name) for name in SINGLE]
    for folder in FOLDERS:
        found += [path.relative_to(ROOT) for path in sorted((ROOT / folder).glob("*.md"))]
    return found


def links(text):
    """Targets of links and pictures within the tree, in order; code is no text."""
    return [target for target in LINK.findall(CODE.sub("", text)) if not re.match(r"[a-z]+:", target)]


def anchors(text):
    """What a link to a heading may end with: as GitHub and MyST make it of the heading's words."""
    headings = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ------------------------------------------------------------------ the manual

def characters(text):
    for escape, character in (("\\(dq", '"'), ("\\(aq", "'"), ("\\(lq", "“"), ("\\(rq", "”"), ("\\-", "-"), ("\\&", ""), ("\\e", "\\")):
        text = text.replace(escape, character)
    return text


def spans(text):
    """[(font, text)] of a line with \\fB, \\fI and \\fR in it."""
    font, out = "R", []
    for piece in re.split(r"(\\f[BIRP])", text):
        if re.fullmatch(r"\\f[BIRP]", piece):
            font = piece[2].replace("P", "R")
        elif piece:
            out.append((font, piece))
    return out


def words(text):
    return [word.strip('"').replace('""', '"') for word in re.findall(r'"(?:[^"]|"")*"|(?:\\ |\S)+', text)]


def markdown_of(parts):
    """One line: code where it is bold, for that is what one types; italic words as such."""
    out = ""
    for font, text in parts:
        said = characters(text)
        inner = said.strip()
        if font == "R" or not inner:
            out += re.sub(r"([*_<>\[\]`])", r"\\\1", said)
            continue
        mark = "`" if font == "B" else "*"
        left, right = said[:len(said) - len(said.lstrip())], said[len(said.rstrip()):]
        out += left + mark + (inner if font == "B" else inner.replace("_", "\\_")) + mark + right
    return out.replace("``", "").replace("**", "")


def line_of(request, rest):
    """The parts of .B, .I, .BR and their like."""
    if len(request) == 1:
        return [(request, " ".join(words(rest)))]
    return [(request[i % 2], word) for i, word in enumerate(words(rest))]


def manual(text):
    """memext.1 as a page: .SH and .SS are headings, .TP is an entry, .nf is code."""
    out, code, entry, depth = ["# The manual page", ""], False, False, 0
    for line in text.splitlines():
        request, _, rest = line[1:].partition(" ") if line.startswith(".") else ("", "", line)
        if request in ("nf", "fi"):
            code = request == "nf"
            out += ["", "```text"] if code else ["```", ""]
        elif code:
            out.append(characters(re.sub(r"\\f[BIRP]", "", line)))
        elif request in ("SH", "SS"):
            title = characters(rest).strip('"')
            out += ["", ("## " if request == "SH" else "### ") + (title.capitalize() if title.isupper() else title), ""]
            depth = 0
        elif request == "TP":
            entry = True
        elif request in ("PP", "IP", "br"):
            out.append("")
        elif request in ("RS", "RE"):
            depth += 1 if request == "RS" else -1
            out.append("")
        elif request in ("TH", "\\\""):
            continue
        else:
            said = markdown_of(line_of(request, rest) if request else spans(rest))
            if entry:
                out += ["", said + "<br>" if depth <= 0 else "- " + said + ": "]
            elif depth > 0 and out and out[-1].startswith("- "):
                out[-1] += said + " "
            else:
                out.append(said)
            entry = False
    return "\n".join(out) + "\n"


# ------------------------------------------------------------------ the site

def stage(sources):
    """The documents, what they name, and a list of all of them behind the index."""
    shutil.rmtree(sources, ignore_errors=True)
    found = documents()
    for path in found:
        named = [path, *((path.parent / target.split("#")[0]) for target in links((ROOT / path).read_text()) if not target.startswith("#"))]
        for name in named:
            to = sources / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.exists():
                shutil.copyfile(ROOT / name, to)
    (sources / "docs/manual.md").write_text(manual((ROOT / "docs/memext.1").read_text()))
    index = (ROOT / "docs/index.md").read_text()
    (sources / "docs/index.md").write_text("\n".join([index, *(line for title, names in chapters(index) for line in contents(title, names))]))


def chapters(index):
    """[(title, pages)]: the sections of the index with what they link to. The manual is a page of the first."""
    first, *sections = re.split(r"^## +(.*)$", index, flags=re.MULTILINE)
    found = [("", first), *zip(sections[::2], sections[1::2])]
    pages = [(title, [target for target in dict.fromkeys(links(text)) if target.endswith(".md")]) for title, text in found]
    pages[1][1].append("manual.md")
    return [(title, names) for title, names in pages if names]


def contents(title, names):
    """Lines of MyST."""
    return ["```{toctree}", ":hidden:", *([f":caption: {title}"] if title else []), "", *(name.removesuffix(".md") for name in names), "```", ""]


def main():
    site = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
    sources = site.with_name(site.name + "-sources")
    stage(sources)
    shutil.rmtree(site, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-c", ROOT / "docs", sources, site], check=False)
    if done.returncode != 0:
        sys.exit(f"the site was not built: {done.returncode}")
    (site / "index.html").write_text('<!DOCTYPE html><meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">memext</a>\n')
    print(f"{site}/index.html")


if __name__ == "__main__":
    main()
