# SPDX-License-Identifier: BSD-3-Clause
"""Reads what experiments/run.py recorded and makes of it: tables, figures, verdicts, one report."""
