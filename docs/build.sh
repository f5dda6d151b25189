#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds README.md, docs/ and the manual into a site, build/site, by Sphinx (packages-docs.txt). A warning is an error.
#   docs/build.sh [SITE]
set -u
. "$(dirname "$0")/../experiments/lib.sh"

mx_need_packages packages-docs.txt
exec "$mx_python" "$mx_root/docs/make_site.py" "$@"
