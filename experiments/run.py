#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the plans of experiments/plans and keeps what they measured. See experiments/runner/."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from runner.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
