#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds memext, runs every plan and makes the report: results/SCALE/report.html, and the findings as text, results/SCALE/results.md.
#
#     experiments/reproduce.sh --quick      scaled down, few points, as many repeats as fit into 20 minutes (default)
#     experiments/reproduce.sh --thorough   the same sizes with all points and many repeats, to decide what --quick leaves open: hours
#     experiments/reproduce.sh --night      the plans one by one, each within 50 minutes; several nights. Plans of numbers are repeated as often as their scatter asks for, others 9 times. Packs each whole plan's results
#                                           into data/results and writes docs/results.md from what is there (experiments/night.py)
#     experiments/reproduce.sh --full       the papers' sizes: needs their memory and flash, and hours to days
#
# --data DIR: directory on the storage to measure (default: $MEMEXT_DATA or /var/tmp/memext-experiments). Interrupted, or more repeats wanted? The same command goes on where it stopped.
# --no-system: change nothing on the machine (no memory limits, swap files, kernel settings, dropped caches, packages); what needs it is skipped.
# --rivals: measure what is used in place of memext too (experiments/rivals/run.py), for the report: Python packages into build/rivals, and hours with --full.
# Everything else is passed to experiments/run.py (see its --help), e.g. plan names or --retry-failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

scale=quick system=yes rivals= data=${MEMEXT_DATA:-/var/tmp/memext-experiments}
rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) scale=quick ;;
    --full) scale=full ;;
    --thorough) scale=thorough ;;
    --night) scale=night ;;
    --rivals) rivals=yes ;;
    -h | --help)
        sed -n '2,14s/^# \{0,1\}//p' "$0"
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
    mx_consent "changes while it runs and puts back: cgroups with a memory limit, swap files in $data, vm.* settings, read-ahead of the disk; drops the page cache before each run; $files; --no-system leaves out all but the files"
fi
[ -z "$system" ] || mx_need_packages
mx_build release

# --quick repeats the comparisons that the papers begin with, then the tuner's choice against its rivals, then one group after the other as far as its time goes: a few that are decided say more than
# all of them run once. What is only planned takes seconds.
groups=("table2 fig24 divisions fig05" "regret" "fig07" "fig19" "before-after layout")
others=(fig06 fig12 fig22 uring queue advice readahead dirty share)
for plan in enough devices largest hhrt ktable fig4w fig7a fig7b; do
    [ ! -e "$mx_root/experiments/plans/$plan.toml" ] || others+=("$plan")
done
named=
for word in "${rest[@]+"${rest[@]}"}"; do
    [ ! -e "$mx_root/experiments/plans/$word.toml" ] || named=yes
done

out_of_time=75 # the exit status where --minutes left something undone
run_plans() { "$mx_python" "$mx_root/experiments/run.py" --scale "$scale" "$@" "${rest[@]+"${rest[@]}"}"; }

# All of --quick, from a bare machine on, is to end within 20 minutes: what of the plans' repeats does not fit is left out, and what it would
# have decided stays undecided. Installing and building count; the report, and what a run takes longer than was expected of it, have the last two and a half.
minutes_left() { echo $(((17 * 60 + 30 - SECONDS) / 60)); }

# The predicted seconds of a run rest on rates of this machine, in a cache of these results' own. Minutes later a shared machine may be half as fast: run.py measures them again, shortly, before each
# run that predictions are judged by. measure_rates "BACKEND STENCIL"...
export XDG_CACHE_HOME=$mx_root/results/$scale/cache
case $scale in full) rows=(2046 4094) ;; *) rows=(510) ;; esac
measure_rates() {
    local n of backend stencil
    mkdir -p "$data"
    for n in "${rows[@]}"; do
        for of in "$@"; do
            read -r backend stencil <<<"$of"
            "$mx_root/build/release/memext" tune --size "$n" 510 254 --steps 64 --stencil "$stencil" --backend "$backend" --device "$data" --dram 512MiB --calibrate --quiet >/dev/null ||
                mx_say "reproduce.sh: the rates of $stencil on $backend were not measured; predictions take assumed ones"
        done
    done
}
[ -e "$XDG_CACHE_HOME/memext/rates.json" ] || measure_rates "aio star7" "aio edge19" "uring star7"

report() { "$mx_python" "$mx_root/analysis/report.py" "$@"; }

if [ "$scale" = night ]; then
    [ -n "$system" ] || mx_die "--night measures with memory limits and settings of the kernel; it does not go with --no-system"
    [ -z "$rivals" ] || mx_die "--night does not measure rivals; use --thorough --rivals"
    "$mx_python" "$mx_root/experiments/night.py" "${rest[@]+"${rest[@]}"}" || [ $? -eq "$out_of_time" ] || mx_die "the night was broken off; the same command goes on with it"
    report "$mx_root/data/results" -o "$mx_root/results/night/report.html" --markdown "$mx_root/docs/results.md"
    exit
elif [ -n "$named" ]; then
    run_plans
elif [ "$scale" = quick ]; then
    for group in "${groups[@]}" "${others[*]}"; do
        if [ "$(minutes_left)" -lt 1 ]; then
            mx_say "reproduce.sh: no time is left for $group and what follows; the same command goes on with it"
            break
        fi
        # shellcheck disable=SC2086
        run_plans $group --minutes "$(minutes_left)" || [ $? -eq "$out_of_time" ]
    done
else
    # shellcheck disable=SC2086
    run_plans ${groups[*]} "${others[@]}"
fi
if [ -n "$rivals" ]; then
    "$mx_python" "$mx_root/experiments/rivals/run.py" "--${scale/thorough/full}" --output "$mx_root/results/$scale/rivals" --data "$data" $([ -n "$system" ] || echo --no-system)
fi
report "$mx_root/results/$scale" --markdown "$mx_root/results/$scale/results.md"
