# SPDX-License-Identifier: BSD-3-Clause
"""The experiment runner: plan files in, results/<scale>/<plan>/raw.jsonl out.

plan.py      a plan file (TOML) -> a list of runs
knobs.py     Linux settings of a run, restored afterwards, even after a crash
ownership.py owners of records, where records are kept, and their locks
removing.py  how each kind of thing that was made is removed
registry.py  records of what is made on the machine, written before it is made; removal of what killed starts left (of limit-memory too)
host.py      machine, commit and program, as records
loopfs.py    a new file system in a file, for a run that asks for one
counters.py  what Linux counted during a run
execute.py   one run: caches dropped, command in its own session, time limit, report and timeline collected
record.py    raw.jsonl: one JSON object in each line, schema 1
cli.py       order of runs, progress, resuming
"""
