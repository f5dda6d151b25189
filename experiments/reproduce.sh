#!/bin/bash
# Builds memext, runs every plan and makes the report: results/SCALE/report.html.
#
#     experiments/reproduce.sh --quick   scaled down, about 15 minutes on 2 cores of a virtual machine (default)
#     experiments/reproduce.sh --full    the papers' sizes: needs their memory and flash, and hours to days
#
# --data DIR: directory on the storage to measure (default: $MEMEXT_DATA or /var/tmp/memext-experiments). Interrupted? The same command goes on where it stopped.
# Everything else is passed to experiments/run.py (see its --help), e.g. plan names or --retry-failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

scale=quick
rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) scale=quick ;;
    --full) scale=full ;;
    -h | --help)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) rest+=("$1") ;;
    esac
    shift
done

mx_need_packages
mx_build release
[ "$(id -u)" -eq 0 ] || mx_say "not root: memory limits, dropped caches and kernel settings are out of reach; the runs that need them will be recorded as failed"

plans=(table2 fig24 fig05 before-after fig06 fig07 fig12 fig19 fig22 uring queue advice readahead dirty share)
for word in "${rest[@]+"${rest[@]}"}"; do
    [ -e "$mx_root/experiments/plans/$word.toml" ] && plans=()
done
"$mx_python" "$mx_root/experiments/run.py" --scale "$scale" "${plans[@]+"${plans[@]}"}" "${rest[@]+"${rest[@]}"}"
exec "$mx_python" "$mx_root/analysis/report.py" "$mx_root/results/$scale"
