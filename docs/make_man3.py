#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pages of man section 3 from the public header, which is their one source: make_man3.py HEADER FOLDER VERSION

The header's introduction is memext(3). A section of it, which begins with a comment of dashes and a title, is a page: "DRAM
budget" is mx_budget(3). Declarations stand in it as they are, comments as text below what they precede. Every function has a
page of its own name, which includes that of its section.
"""
import pathlib
import re
import sys

TITLE = re.compile(r"^/\* -{10,} *(.*?)(?: *\*/)?$")
FUNCTION = re.compile(r"(?<!\(\*)\b(mx_[a-z0-9_]+)\(")


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def split_sections(text):
    """[(title, lines)]. A title's comment may go on below it: that is the section's introduction."""
    sections = [("", [])]
    for line in text.splitlines():
        if found := TITLE.match(line):
            sections.append((found[1], [] if line.endswith("*/") else ["/*"]))
        else:
            sections[-1][1].append(line)
    return sections


def split_blocks(lines):
    """[(comment lines, code lines)]: comments outside of braces, each with the code that follows it at once."""
    blocks, depth, inside = [([], [])], 0, False
    for line in lines:
        starts = depth == 0 and line.startswith("/*")
        if starts or (not inside and depth == 0 and not line.strip()):
            blocks.append(([], []))
        if starts or inside:
            inside = not line.endswith("*/")
            blocks[-1][0].append(re.sub(r"^(/\*| \*) ?", "", re.sub(r" *\*/$", "", line)))
        else:
            blocks[-1][1].append(line)
            depth += line.count("{") - line.count("}")
    return [(comment, [c for c in code if c.strip()]) for comment, code in blocks if any(comment) or any(c.strip() for c in code)]


def code_of(lines):
    """Without what only a compiler reads."""
    return [line for line in lines if not re.match(r'#(ifndef|ifdef|endif|include|define MEMEXT)|extern "C"|}$', line)]


def paragraphs(lines):
    """Plain text as man source: what is indented by four keeps its lines, "- " begins an item, the rest is filled."""
    out = []
    for line in lines:
        if re.match(r" {4}", line):
            out += [".PP", ".nf", escape(line), ".fi"]
        elif found := re.match(r" ?- (.*)", line):
            out += [".IP \\(bu 3", escape(found[1])]
        elif not line.strip():
            out.append(".PP")
        else:
            out.append(escape(line.strip()))
    text = "\n".join(out).replace(".fi\n.PP\n.nf\n", "")
    return re.sub(r"(\.PP\n)+(?=\.PP|\.IP|$)", "", text)


def functions_in(lines):
    return list(dict.fromkeys(FUNCTION.findall(re.sub(r"/\*.*?\*/", "", "\n".join(lines), flags=re.S))))


def write_page(name, title, lines, others, folder, version):
    text = [f'.TH {name.upper()} 3 "" "memext {version}" "Library Functions"', ".SH NAME"]
    functions = [f for f in functions_in(lines) if f != name]
    text += [escape(", ".join([name, *functions])) + " \\- " + escape(title), ".SH SYNOPSIS", ".B #include <memext/memext.h>", ".PP",
             ".B \\-lmemext", ".SH DESCRIPTION"]
    for comment, code in split_blocks(lines):
        code = code_of(code)
        if code:
            text += [".PP", ".nf", "\\fB" + escape("\n".join(code)) + "\\fR", ".fi"]
        if any(comment):
            text += [".RS 4" if code else ".PP", paragraphs(comment), *([".RE"] if code else [])]
    text += [".SH SEE ALSO", *(f".BR {other} (3)," for other in others if other != name), ".BR memext (1)"]
    (folder / f"{name}.3").write_text("\n".join(line for line in text if line) + "\n")
    for function in functions:
        (folder / f"{function}.3").write_text(f".so man3/{name}.3\n")


def main(header, folder, version):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.3"):
        old.unlink()
    sections = split_sections(pathlib.Path(header).read_text())
    names = ["memext", *("mx_" + title.split()[-1].lower() for title, _ in sections[1:])]
    for name, (title, lines) in zip(names, sections):
        write_page(name, f"{title or 'out-of-core arrays and stencil runs on flash'}{', libmemext' if title else ''}", lines, names, folder, version)


if __name__ == "__main__":
    main(*sys.argv[1:])
