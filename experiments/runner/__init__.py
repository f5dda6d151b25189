# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner: plan files in, results/<scale>/<plan>/raw.jsonl out.

plan.py      a plan file (TOML) -> a list of runs
knobs.py     kernel settings of a run, put back afterwards also after a crash
ownership.py who owns a record, where records are kept, their locks
removing.py  how each kind of what is made is removed
registry.py  what is made on the machine, written down before; the sweep of what killed starts left (also of limit-memory)
host.py      machine, commit and program, as records
loopfs.py    a new file system in a file, for a run that asks for one
counters.py  what the kernel counted while a run lasted
execute.py   one run: caches dropped, command in its own session, time limit, report and timeline collected
record.py    raw.jsonl: one JSON object a line, schema 1
cli.py       order of runs, progress, resuming
"""
