#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_options.py [--check] MEMEXT: what is made from the table of options (runtime/ask), which `memext --options` prints: the section OPTIONS of
docs/memext.1, completion for bash and zsh, and the keywords of Python's Run. --check writes nothing and fails where a file is not as it would be made."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = '.\\" BEGIN: made by docs/make_options.py', '.\\" END: made by docs/make_options.py'
PROGRAMS = ("stencil7p", "stencil19p", "stencil27p")
COMMANDS = {"run": "computes and reports", "tune": "finds the plan with the least predicted time", "info": "shows this machine, or what a store holds",
            "export": "writes the state of a store to a file", "kernel": "builds, checks or shows a kernel", "view": "draws a store or a file",
            "wavefront": "runs Livermore loop 23"}
# What Run has a parameter, or a way, of its own for.
IN_PYTHON = {"size": "shape", "steps": "advance(steps)", "kernel": "the first argument", "param": "params", "edit-param": "run.params[NAME] = VALUE, between steps", "edit-input": "run[NAME][...] = VALUES, between steps", "field": "the name of the field",
             "input": "the name of the field", "init": "the name of the field", "same": "resume", "supersede": "the name of the field", "reduce-stored": "reductions"}


def table(program):
    return json.loads(subprocess.run([program, "--options"], capture_output=True, text=True, check=True).stdout)


# ------------------------------------------------------------------ the manual

def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def marked(text, argument=""):
    """Typed words and options bold, the words of the argument italic."""
    words = set(re.findall(r"[A-Z][A-Z0-9]*", argument or ""))
    out = []
    for i, part in enumerate(text.split("`")):
        if i % 2:
            out.append(f"\\fB{roff(part)}\\fR")
            continue
        for piece in re.split(r"((?<![\w-])--?[a-z][a-z0-9-]*|\b[A-Z][A-Z0-9]*\b)", part):
            option = re.fullmatch(r"--[a-z][a-z0-9-]*|-[a-z]", piece)
            out.append(f"\\fB{roff(piece)}\\fR" if option else f"\\fI{roff(piece)}\\fR" if piece in words else roff(piece))
    line = "".join(out)
    return "\\&" + line if line[:1] in ".'" else line


def size(text):
    value = int(text)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or value % 1024:
            return "1 byte" if text == "1" else f"{value} {unit}"
        value //= 1024
    return f"{value} PiB"


def power(text):
    value = int(text)
    exponent = value.bit_length() - 1
    return f"2^{exponent}" if value > 1 << 20 and value == 1 << exponent else f"2^{exponent + 1} - 1" if value == (2 << exponent) - 1 > 1 << 20 else str(value)


def limits(row):
    unit = row["unit"]
    if row["low"] is None:
        return [f"Range: {row['range']}."] if row["range"] and not row["values"] else []
    if unit == "bytes":
        return [f"At least {size(row['low'])}." if int(row["high"]) == 2 ** 64 - 1 else f"Range: {size(row['low'])} to {size(row['high'])}."]
    return [f"Range: {row['low']} to {power(row['high'])}."]


def needs(row, rows):
    """Some of an option's commands may lack the option that it needs in others."""
    others = [r for r in rows if r["name"] in row["needs"].split()]
    of_these = [c for c in row["commands"] if c != "library" and any(c in r["commands"] for r in others)]
    some = set(of_these) != {c for c in row["commands"] if c != "library"}
    return (f"With memext {' and '.join(of_these)} it needs " if some else "Needs ") + " or ".join(f"--{name}" for name in row["needs"].split()) + "."


def facts(row, rows):
    """What is said of each option in the same words."""
    out = []
    if row["values"] and f"* `{row['values'][0]}`" not in (row["more"] or ""):
        out.append("Values: " + ", ".join(f"`{v}`" for v in row["values"]) + (f", {row['range']}" if row["range"] else "") + ".")
    if row["unit"]:
        out.append(f"Unit: {row['unit']}.")
    out += limits(row)
    if row["zero"]:
        out.append(f"0: {row['zero']}.")
    if row["default"]:
        out.append(f"Default: {row['default']}.")
    if row["needs"]:
        out.append(needs(row, rows))
    if row["excludes"]:
        out.append("Not with " + " or ".join(f"--{name}" for name in row["excludes"].split()) + f": {row['because']}.")
    if row["fixed_on_resume"]:
        out.append("Fixed on --resume.")
    commands = [c for c in row["commands"] if c not in ("tune --wavefront", "library")]
    out.append(f"Commands: {', '.join(commands) or 'none, the library alone'}.")
    return " ".join(out)


def heading(row):
    names = ([f"\\fB\\-{row['letter']}\\fR"] if row["letter"] else []) + [f"\\fB\\-\\-{roff(row['name'])}\\fR"]
    pieces = re.split(r"([A-Z][A-Za-z0-9/.]*)", row["argument"] or "")
    argument = "".join(f"\\fI{roff(p)}\\fR" if i % 2 else roff(p) for i, p in enumerate(pieces))
    return ", ".join(names) + (" " + argument if argument else "")


def entry(row, rows):
    lines = [".TP", heading(row), marked(row["summary"], row["argument"])]
    inside = False
    for paragraph in (row["more"] or "").split("\n") if row["more"] else []:
        item = re.fullmatch(r"\* (.*?): (.*)", paragraph)
        if bool(item) != inside:
            lines.append(".RS" if item else ".RE")
            inside = bool(item)
            if not item:
                lines.append(".IP")
        elif not item:
            lines.append(".IP")
        lines += [".TP", marked(item[1]), marked(item[2][0].upper() + item[2][1:] + ("" if item[2][-1] == "." else "."), row["argument"])] if item else \
            [marked(paragraph, row["argument"])]
    if inside:
        lines.append(".RE")
    return [*lines, ".IP", marked(facts(row, rows))]


def section(all_options):
    lines = [BEGIN, ".SH OPTIONS",
             "You may shorten a long option as long as no other option begins with the same letters. Options that are marked \\(lqFixed on \\-\\-resume\\(rq may be left out with",
             "\\fB\\-\\-resume\\fR. If you give them, they must agree with the store. Others may change, unless their text says otherwise. On standard error memext names the options that have no effect.",
             "It refuses options that contradict each other."]
    for group in all_options["groups"]:
        rows = [row for row in all_options["options"] if row["group"] == group["name"]]
        lines += [f".SS {group['title']}", *(line for row in rows for line in entry(row, all_options["options"]))]
    return "\n".join([*lines, END]) + "\n"


def manual(all_options):
    text = (ROOT / "docs" / "memext.1").read_text()
    before, rest = text.split(BEGIN)
    return before + section(all_options) + rest.split(END + "\n")[1]


# ------------------------------------------------------------------ completion

def takes_file(row):
    return bool(re.search(r"FILE|PATH|DIR|XML|PNG|\.npy", row["argument"] or ""))


def values_of(row):
    if row["name"] == "help":
        return ["all", *GROUPS[0]]
    literal = re.fullmatch(r"[a-z]+(\|[a-z]+)+", row["argument"] or "")
    return row["values"] or (literal[0].split("|") if literal else [])


GROUPS = [[]]


def of_command(all_options, command):
    return [row for row in all_options["options"] if command in row["commands"]]


def bash(all_options):
    lines = ["# SPDX-License-Identifier: BSD-3-Clause", "# Completion of memext for bash; made by docs/make_options.py.", "",
             "_memext_files() {", "    compopt -o filenames 2>/dev/null", "    mapfile -t COMPREPLY < <(compgen -f -- \"$1\")", "}", "",
             "_memext() {", "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} first=2 options=",
             "    COMPREPLY=()",
             "    # --name=value is three words where = breaks words.",
             "    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi",
             "    if [[ ${COMP_WORDS[0]##*/} == stencil* ]]; then command=run first=1; fi",
             "    if ((COMP_CWORD < first)); then",
             f"        mapfile -t COMPREPLY < <(compgen -W '{' '.join(COMMANDS)} --help --version' -- \"$cur\")", "        return", "    fi",
             "    [[ $command == tune && \" ${COMP_WORDS[*]} \" == *' --wavefront '* ]] && command=loop",
             "    case $command$prev in"]
    names = {"tune --wavefront": "loop"}
    for command in (*COMMANDS, "tune --wavefront"):
        by_values, files = {}, []
        for row in of_command(all_options, command):
            forms = [f"{names.get(command, command)}--{row['name']}"] + ([f"{names.get(command, command)}-{row['letter']}"] if row["letter"] else [])
            values = values_of(row)
            if values:
                by_values.setdefault(" ".join(values), []).extend(forms)
            elif takes_file(row):
                files += forms
        for values, forms in by_values.items():
            lines.append(f"    {' | '.join(forms)}) mapfile -t COMPREPLY < <(compgen -W '{values}' -- \"$cur\"); return ;;")
        if files:
            lines.append(f"    {' | '.join(files)}) _memext_files \"$cur\"; return ;;")
    lines += ["    esac", "    case $command in"]
    for command in (*COMMANDS, "tune --wavefront"):
        lines.append(f"    {names.get(command, command)}) options='{' '.join('--' + row['name'] for row in of_command(all_options, command))}' ;;")
    lines += ["    esac", "    if [[ $command == kernel ]] && ((COMP_CWORD == 2)); then options+=' build check show'; fi",
              "    if [[ $cur == -* || ($command == kernel && COMP_CWORD -eq 2) ]]; then",
              "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")", "    else", "        _memext_files \"$cur\"", "    fi", "}", "",
              f"complete -F _memext memext {' '.join(PROGRAMS)}"]
    return "\n".join(lines) + "\n"


def zsh_text(text):
    return re.sub(r"([\\\[\]:'])", lambda m: {"'": "’"}.get(m[1], "\\" + m[1]), text.replace("`", ""))


def zsh_spec(row):
    values = values_of(row)
    action = f"({' '.join(values)})" if values else "_files" if takes_file(row) else " "
    words = [w for w in (row["argument"] or "").split() if w] if row["words"] > 1 else [row["argument"]] if row["argument"] else []
    optional = ":" if row["optional"] else ""
    arguments = "".join(f":{optional}{zsh_text(word)}:{action}" for word in words)
    name, summary = f"--{row['name']}", zsh_text(row["summary"])
    star = "*" if row["repeats"] else ""
    if not row["letter"]:
        return [f"'{star}{name}[{summary}]{arguments}'"]
    short = f"-{row['letter']}"
    if row["repeats"]:
        return [f"'*{form}[{summary}]{arguments}'" for form in (short, name)]
    return [f"'({short} {name}){form}[{summary}]{arguments}'" for form in (short, name)]


def zsh(all_options):
    lines = [f"#compdef memext {' '.join(PROGRAMS)}", "# SPDX-License-Identifier: BSD-3-Clause", "# Completion of memext for zsh; made by docs/make_options.py.", "",
             "_memext() {", "    local command=$words[2]", "    local -a options", "    if [[ $service == stencil* ]]; then", "        command=run",
             "    elif (( CURRENT == 2 )); then", "        local -a commands", "        commands=("]
    lines += [f"            '{name}:{zsh_text(what)}'" for name, what in COMMANDS.items()]
    lines += ["        )", "        _describe command commands", "        return", "    else", "        shift words", "        (( CURRENT-- ))", "    fi",
              "    [[ $command == tune && -n ${words[(r)--wavefront]} ]] && command=loop", "    case $command in"]
    for command in (*COMMANDS, "tune --wavefront"):
        rows = of_command(all_options, command)
        specs = [f"            {spec}" for row in rows for spec in zsh_spec(row)]
        lines += [f"    {'loop' if ' ' in command else command})", "        options=(", *specs, "        )", "        ;;"]
    lines += ["    esac", "    [[ $command == kernel ]] && options+=('1:what to do:(build check show)')",
              "    _arguments -s $options '*:file:_files'", "}", "", '_memext "$@"']
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------ Python

def plain(text):
    return text.replace("`", "")


def python(all_options):
    lines = ["# SPDX-License-Identifier: BSD-3-Clause", '"""Options of a run, from the table of the library; made by docs/make_options.py."""', "",
             "# What Run has a parameter, or a way, of its own for.", "OWN = {"]
    rows = of_command(all_options, "library")
    assert IN_PYTHON.keys() <= {row["name"] for row in rows}
    lines += [f'    "{name.replace("-", "_")}": "{how}",' for name, how in IN_PYTHON.items()]
    lines += ["}", "", "# {keyword: (its value, what it says)}", "OPTIONS = {"]
    for row in rows:
        if row["name"] in IN_PYTHON:
            continue
        default = f" Default: {row['default']}." if row["default"] else ""
        sentence = re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda m: m[1].replace("-", "_"), plain(row["summary"] + default))
        lines.append(f'    "{row["name"].replace("-", "_")}": ({json.dumps(row["argument"] or "True")}, {json.dumps(sentence)}),')
    lines += ["}", "", "", "def documented() -> str:", '    """The keywords, one a line, as the documentation of Run has them."""',
              '    return "\\n".join(f"        {name}={argument}: {sentence}" for name, (argument, sentence) in OPTIONS.items())']
    return "\n".join(lines) + "\n"


def main():
    words = sys.argv[1:]
    check = "--check" in words
    program = [word for word in words if word != "--check"][0]
    all_options = table(program)
    GROUPS[0] = [group["name"] for group in all_options["groups"]]
    made = {"docs/memext.1": manual, "cmake/completion/memext": bash, "cmake/completion/_memext": zsh, "python/memext/options.py": python}
    different = []
    for name, make in made.items():
        text, path = make(all_options), ROOT / name
        if not path.exists() or path.read_text() != text:
            different.append(name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    if check and different:
        sys.exit(f"not as the table of options says: {', '.join(different)}; run docs/make_options.py MEMEXT")


if __name__ == "__main__":
    main()
