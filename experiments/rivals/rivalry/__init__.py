# SPDX-License-Identifier: BSD-3-Clause
"""The parts of worker.py (one run of one rival, a file each) and of run.py (what is compared, and which runs are made)."""
