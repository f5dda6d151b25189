# SPDX-License-Identifier: BSD-3-Clause
"""docs/page-cache.md: what Linux does with the papers' access patterns, from the runs of experiments/plans/kernel.toml.

study.py       the runs, what is measured of each, how two are compared, what a question is
table.py       all questions, in the order of the page
advice.py, limits.py, writeback.py, reclaim.py, folios.py, rings.py, compressed.py    the questions, by subject
pictures.py    a figure of a question: a dot a run, a line at the median
page.py        the page

A new question: its runs go into the plan, a function that writes its finding and a Question stand in one of the files of questions,
and table.py names it.
"""
