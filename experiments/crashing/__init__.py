# SPDX-License-Identifier: BSD-3-Clause
"""The parts of experiments/crash.py.

cases.py      what is drawn at random: problems, plans, places, troubles
processes.py  processes that end with the campaign
places.py     places for a store
moments.py    moments in the life of a run, and what is done to it then
kinds.py      kinds of trouble other than signals, and their table
campaign.py   one campaign, and the checks on each of its runs
bench.py      what all campaigns share
"""
