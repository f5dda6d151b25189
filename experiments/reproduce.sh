#!/bin/bash
# Builds memext, runs every plan and makes the report: results/SCALE/report.html.
#
#     experiments/reproduce.sh --quick   scaled down, about 15 minutes on 2 cores of a virtual machine (default)
#     experiments/reproduce.sh --full    the papers' sizes: needs their memory and flash, and hours to days
#
# --data DIR: directory on the storage to measure (default: $MEMEXT_DATA or /var/tmp/memext-experiments). Interrupted? The same command goes on where it stopped.
# --no-system: change nothing on the machine (no memory limits, swap files, kernel settings, dropped caches, packages); what needs it is skipped.
# Everything else is passed to experiments/run.py (see its --help), e.g. plan names or --retry-failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

scale=quick system=yes
rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) scale=quick ;;
    --full) scale=full ;;
    -h | --help)
        sed -n '2,10s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --no-system)
        system=
        rest+=("$1")
        ;;
    *) rest+=("$1") ;;
    esac
    shift
done

[ -z "$system" ] || mx_need_packages
mx_build release
[ -z "$system" ] || [ "$(id -u)" -eq 0 ] || mx_say "not root: memory limits, dropped caches and kernel settings are out of reach; the runs that need them will be recorded as failed"

plans=(table2 fig24 fig05 before-after fig06 fig07 fig12 fig19 fig22 uring queue advice readahead dirty share)
for word in "${rest[@]+"${rest[@]}"}"; do
    [ -e "$mx_root/experiments/plans/$word.toml" ] && plans=()
done
"$mx_python" "$mx_root/experiments/run.py" --scale "$scale" "${plans[@]+"${plans[@]}"}" "${rest[@]+"${rest[@]}"}"
exec "$mx_python" "$mx_root/analysis/report.py" "$mx_root/results/$scale"
