# SPDX-License-Identifier: BSD-3-Clause
"""All questions, in the order of the page."""
from . import advice, compressed, folios, limits, reclaim, rings, writeback

QUESTIONS = [q for subject in (advice, limits, writeback, reclaim, folios, rings, compressed) for q in subject.QUESTIONS]
