#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds memext, runs every plan and makes the report: results/SCALE/report.html, and results/SCALE/results.md with the findings as text.
#
#     experiments/reproduce.sh --quick      20 minutes (default). On small problems it decides which way is faster, where the difference is more than twofold and the machine is quiet. The rest is undecided in a quick run
#     experiments/reproduce.sh --thorough   small problems with all points and many repeats, to decide what --quick leaves undecided: takes hours
#     experiments/reproduce.sh --night      the plans one by one, each within 50 minutes; takes several nights. Plans that decide numbers are repeated as often as their scatter needs, other plans
#                                           9 times. Packs the results of each complete plan into results/night/packed (experiments/night.py), and makes the report from them
#     experiments/reproduce.sh --full       the papers' sizes: needs their memory and flash, and takes hours to days
#
# --data DIR: directory on the storage to measure (default: $MEMEXT_DATA or /var/tmp/memext-experiments). If you interrupt the script, or want more repeats, start the same command again: it continues.
# --no-system: change nothing on the machine (no memory limits, swap files, Linux settings, dropped caches or packages); runs that need a change are skipped.
# --rivals: also measure other tools (experiments/rivals/run.py) for the report. Installs Python packages into build/rivals, and takes hours with --full.
# All other arguments go to experiments/run.py (see its --help), e.g. plan names or --retry-failed.
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
    mx_say "reproduce.sh: with --no-system this installs nothing, and changes only files on this machine: the build in $mx_root/build; $files"
elif [ "$(id -u)" -ne 0 ]; then
    mx_consent "It makes files: $files. Without root it cannot limit memory, make swap space, change settings of Linux or drop the page cache, and runs that need this are recorded as failed. With --no-system it installs nothing and skips those runs"
else
    mx_consent "While it runs, it makes cgroups with a memory limit and swap files in $data, changes vm.* settings and the read-ahead of the disk, and drops the page cache before each run. All this is undone afterwards, apart from the io controller of cgroup v2, which stays on. It makes files: $files. With --no-system it only makes files"
fi
[ -z "$system" ] || mx_need_packages
mx_build release

# --quick first takes what is counted, then the plans whose differences are so large that a few short runs decide them, with all repeats of one before the next. A few decided comparisons say more than
# one run of each. The other plans follow until its time is over.
groups=("table2 divisions table1w" "fig05" "fig07" "fig12" "fig19" "hhrt" "enough")
others=(fig22 baseline fig24 regret before-after layout fig06 uring queue advice readahead dirty share commits)
for plan in devices largest ssds ktable fig4w fig7a fig7b; do
    [ ! -e "$mx_root/experiments/plans/$plan.toml" ] || others+=("$plan")
done
named=
for word in "${rest[@]+"${rest[@]}"}"; do
    [ ! -e "$mx_root/experiments/plans/$word.toml" ] || named=yes
done

out_of_time=75 # the exit status if --minutes left runs undone
# --quick has no time to measure rates before each run: few of its runs are long enough for a prediction to be judged.
quickly=()
[ "$scale" != quick ] || quickly=(--probe 0)
# The cores of a virtual machine may move while it measures, and runs take 1.6 times as long then: --core-latency.
run_plans() { "$mx_python" "$mx_root/experiments/run.py" --scale "$scale" --core-latency auto "${quickly[@]+"${quickly[@]}"}" "$@" "${rest[@]+"${rest[@]}"}"; }

# From a bare machine on, all of --quick must end within 20 minutes. Repeats that do not fit are left out, and what they would have decided
# stays undecided. Installing and building count. The last two and a half minutes are for the report, and for runs that take longer than expected.
minutes_left() { echo $(((17 * 60 + 30 - SECONDS) / 60)); }

# Predicted seconds rest on rates of this machine, which these results keep in their own cache. A shared machine may be half as fast minutes later. So run.py briefly measures the rates again before
# each run that judges predictions (not with --quick). measure_rates "BACKEND STENCIL"...
export XDG_CACHE_HOME=$mx_root/results/$scale/cache
case $scale in full) rows=(2046 4094) ;; *) rows=(510) ;; esac
measure_rates() {
    local n of backend stencil
    mkdir -p "$data"
    for n in "${rows[@]}"; do
        for of in "$@"; do
            read -r backend stencil <<<"$of"
            "$mx_root/build/release/memext" tune --size "$n" 510 254 --steps 64 --stencil "$stencil" --backend "$backend" --device "$data" --dram 512MiB --calibrate --quiet >/dev/null ||
                mx_say "reproduce.sh: the rates of $stencil on $backend were not measured, so predictions use assumed rates"
        done
    done
}
[ -e "$XDG_CACHE_HOME/memext/rates.json" ] || measure_rates "aio star7" "aio edge19" "uring star7"

report() { "$mx_python" "$mx_root/analysis/report.py" "$@"; }

if [ "$scale" = night ]; then
    [ -n "$system" ] || mx_die "--night needs memory limits and settings of Linux, which --no-system forbids; leave one of the two out"
    [ -z "$rivals" ] || mx_die "--night does not measure rivals; use --thorough --rivals"
    "$mx_python" "$mx_root/experiments/night.py" --core-latency auto "${rest[@]+"${rest[@]}"}" || [ $? -eq "$out_of_time" ] || mx_die "the night was interrupted; start the same command again to continue"
    [ -d "$mx_root/results/night/packed" ] || mx_die "no plan is complete yet; start the same command again to continue"
    report "$mx_root/results/night/packed" -o "$mx_root/results/night/report.html" --markdown "$mx_root/results/night/results.md"
    exit
elif [ -n "$named" ]; then
    run_plans || [ $? -eq "$out_of_time" ]
elif [ "$scale" = quick ]; then
    for group in "${groups[@]}" "${others[*]}"; do
        if [ "$(minutes_left)" -lt 1 ]; then
            mx_say "reproduce.sh: no time is left for $group and later plans; start the same command again to continue with them"
            break
        fi
        # shellcheck disable=SC2086
        run_plans $group --minutes "$(minutes_left)" || [ $? -eq "$out_of_time" ]
    done
else
    # shellcheck disable=SC2086
    run_plans ${groups[*]} "${others[@]}" || [ $? -eq "$out_of_time" ]
fi
if [ -n "$rivals" ]; then
    "$mx_python" "$mx_root/experiments/rivals/run.py" "--${scale/thorough/full}" --output "$mx_root/results/$scale/rivals" --data "$data" $([ -n "$system" ] || echo --no-system)
fi
report "$mx_root/results/$scale" --markdown "$mx_root/results/$scale/results.md"
