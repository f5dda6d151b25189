# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: how docs/make_site.py turns the documents into a site."""
project = "memext"
author = "the memext authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "docs/index"
highlight_language = "none"  # of code that does not say its language
html_theme = "furo"
html_title = "memext"
html_copy_source = False
