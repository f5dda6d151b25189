#!/bin/bash
# Builds memext, runs every plan and makes the report: results/SCALE/report.html.
#
#     experiments/reproduce.sh --quick      scaled down, few points, within 20 minutes on 2 cores of a virtual machine (default)
#     experiments/reproduce.sh --thorough   the same sizes with all points and many repeats, to decide what --quick leaves open: hours
#     experiments/reproduce.sh --full       the papers' sizes: needs their memory and flash, and hours to days
#
# --data DIR: directory on the storage to measure (default: $MEMEXT_DATA or /var/tmp/memext-experiments). Interrupted? The same command goes on where it stopped.
# --no-system: change nothing on the machine (no memory limits, swap files, kernel settings, dropped caches, packages); what needs it is skipped.
# Everything else is passed to experiments/run.py (see its --help), e.g. plan names or --retry-failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

scale=quick system=yes data=${MEMEXT_DATA:-/var/tmp/memext-experiments}
rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) scale=quick ;;
    --full) scale=full ;;
    --thorough) scale=thorough ;;
    -h | --help)
        sed -n '2,11s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --no-system)
        system=
        rest+=("$1")
        ;;
    --data)
        data=${2:?}
        rest+=("$1" "$2")
        shift
        ;;
    *) rest+=("$1") ;;
    esac
    shift
done

files="Buffers in $data, removed after each run; results in $mx_root/results/$scale"
if [ -z "$system" ]; then
    mx_say "reproduce.sh: installs nothing and changes nothing on this machine (--no-system) but files: the build in $mx_root/build; $files"
elif [ "$(id -u)" -ne 0 ]; then
    mx_consent "changes while it runs: $files; without root no memory limit, no swap space, no kernel setting and no dropped page cache: runs that need them are recorded as failed; --no-system installs nothing and skips them"
else
    mx_consent "changes while it runs and puts back: cgroups with a memory limit, swap files in $data, swap space in compressed memory, vm.* settings, read-ahead of the disk, zswap; drops the page cache before each run; $files; --no-system leaves out all but the files"
fi
[ -z "$system" ] || mx_need_packages
mx_build release

plans=(table2 fig24 fig05 before-after fig06 fig07 fig12 fig19 fig22 uring queue advice readahead dirty share)
for word in "${rest[@]+"${rest[@]}"}"; do
    [ -e "$mx_root/experiments/plans/$word.toml" ] && plans=()
done
"$mx_python" "$mx_root/experiments/run.py" --scale "$scale" "${plans[@]+"${plans[@]}"}" "${rest[@]+"${rest[@]}"}"
exec "$mx_python" "$mx_root/analysis/report.py" "$mx_root/results/$scale"
