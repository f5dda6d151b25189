#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds memext on a bare Debian 12 and runs one problem on all five backends, in a quarter of the memory that it needs.
#   experiments/demo.sh [--dir DIR] [--size "NX NY NZ"] [--steps NT] [--dram SIZE] [--no-system]
#     --dir         where Buffers and swap go: a directory on a disk (default: build/demo)
#     --no-system   change nothing on the machine: no memory limit, no swap file, no read-ahead, the page cache stays, no packages
# Prints a table and writes reports and a picture into build/demo. Exit status 0 when every run was verified.
set -u
. "$(dirname "$0")/lib.sh"

size="510 510 510" steps=32 dram=512MiB directory= system=yes
while [ $# -gt 0 ]; do
    case $1 in
    --dir) directory=${2:?} ;;
    --size) size=${2:?} ;;
    --steps) steps=${2:?} ;;
    --dram) dram=${2:?} ;;
    --no-system)
        system=
        shift
        continue
        ;;
    *) mx_die "unknown option $1; there are --dir, --size, --steps, --dram and --no-system" ;;
    esac
    shift 2
done

dram_bytes=$(numfmt --from=iec-i "${dram%B}") || mx_die "--dram $dram is no size; write 512MiB"
results=$mx_root/build/demo
memext=$mx_root/build/release/memext
child=0 store=
# What Linux sets for a disk that says nothing else: mmap is compared with it, whatever this disk has.
ahead_kb=128

registry() { "$mx_python" "$mx_root/experiments/runner/registry.py" "$@"; }

# Also on Ctrl-C: the run under way ends cleanly, its cgroup and swap file go, then the store. After kill -9 the next start of anything that
# keeps records does it.
clean_up() {
    if [ "$child" -ne 0 ] && kill -TERM "$child" 2>/dev/null; then wait "$child"; fi
    [ -n "$store" ] && registry clear $$
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -z "$system" ]; then
    mx_say "demo.sh: changes nothing on this machine (--no-system) but files in ${directory:-$results} and $mx_root/build; no run has a memory limit"
else
    if [ "$(id -u)" -eq 0 ]; then
        mx_consent "changes while it runs and puts back: a cgroup of $dram around each run where this machine lets one be made; a swap file for one of them and Buffers in ${directory:-$results}; drops the page cache before each run; a read-ahead of $ahead_kb KiB while mmap runs; --no-system leaves out all but the Buffers"
    else
        mx_consent "changes while it runs: Buffers in ${directory:-$results}; without root no run has a memory limit or swap space, and the page cache stays; --no-system installs nothing"
    fi
    mx_need_packages
fi
mx_build release
mkdir -p "$results"
rm -f "$results"/*.json "$results"/*.jsonl "$results"/*.log "$results"/demo.*
directory=${directory:-$results}
[ -d "$directory" ] || mx_die "$directory is no directory"
if mx_is_memory "$directory"; then
    mx_die "$directory is in memory; name a directory on a disk with --dir"
fi

# Two Buffers, and for the swap backend the same once more as swap space, at another time.
read -r nx ny nz <<<"$size"
buffers_mib=$((2 * (nx + 2) * (ny + 2) * (nz + 2) * 8 / 1048576))
swap_mib=$((buffers_mib + 1024))
needed_mib=$((swap_mib + 512))
free_mib=$(($(mx_free_bytes "$directory") / 1048576))
[ "$free_mib" -ge "$needed_mib" ] ||
    mx_die "$directory has $free_mib MiB free and $needed_mib MiB are needed; name another with --dir"
# The plans are those of a fresh machine, whatever was calibrated before.
export XDG_CACHE_HOME=$results/cache
rm -rf "$XDG_CACHE_HOME"
[ -z "$system" ] || registry sweep || mx_die "cannot look for what a killed start left"
store=$(registry directory $$ memext-demo- "$directory") || mx_die "cannot make a directory in $directory"
# What carries this ends when a later start finds that this one was killed.
MEMEXT_OWNER=${store##*/memext-demo-}
export MEMEXT_OWNER=${MEMEXT_OWNER%-1}
available_mib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))

skip() { # LABEL REASON NAME
    mx_say "  $1: not run: $2"
    "$mx_python" -c 'import json, sys; print(json.dumps({"label": sys.argv[1], "skipped": sys.argv[2]}))' "$1" "$2" \
        >"$results/$3.json"
}

failures=0
# run NUMBER LABEL LIMIT... memext OPTIONS...: one run, with the command line LIMIT before it. All are recorded alike (--timeline), for
# what the kernel writes of a mapping is counted nowhere else.
run() {
    local name=$1-${2//[, ]/} label=$2 limit=() report line status begin=$SECONDS
    shift 2
    while [ "$1" != memext ]; do
        limit+=("$1")
        shift
    done
    shift
    report=$results/$name.json line=$results/$name.jsonl
    mx_say "  $label: memext run -n $size -t $steps $*"
    # shellcheck disable=SC2086
    "${limit[@]}" "$memext" run -n $size -t "$steps" "$@" --verify --json "$report" --timeline "$line" >"$results/$name.log" &
    child=$!
    wait "$child"
    status=$?
    child=0
    if [ $status -ne 0 ]; then
        failures=$((failures + 1))
        mx_say "  $label: exit status $status"
        [ -s "$report" ] || skip "$label" "exit status $status" "$name"
        return
    fi
    "$mx_python" - "$report" "$label" "$line" <<'PYTHON'
import json, sys
path, label, line = sys.argv[1:]
report = json.load(open(path))
json.dump({"label": label, "timeline": line, **report}, open(path, "w"), indent=2)
PYTHON
    mx_say "  $label: $((SECONDS - begin)) s in all, with initialisation and verification"
}

limiting=("$mx_root/experiments/limit-memory" "$dram" --quiet)
limit=() limited=
if [ -z "$system" ]; then
    why="limit-memory: no memory limit and no swap file with --no-system"
elif why=$("${limiting[@]}" --keep-cache -- true 2>&1); then
    limited=yes limit=("${limiting[@]}" --)
fi

settings=("$mx_root/experiments/with-settings" "$store")
own_ahead_kb=$("${settings[@]}" read_ahead_kb 2>/dev/null) || own_ahead_kb="an unknown number of"
ahead=() held_kb=$own_ahead_kb
if [ -z "$system" ]; then
    ahead_why="nothing is changed with --no-system"
elif [ -z "$limited" ]; then
    ahead_why="mmap was not run"
elif ahead_why=$("${settings[@]}" "read_ahead_kb=$ahead_kb" --quiet --no-wait -- true 2>&1); then
    ahead=("${settings[@]}" "read_ahead_kb=$ahead_kb" --quiet --)
    held_kb=$("${ahead[@]}" "${settings[@]}" read_ahead_kb)
fi

if [ -n "$limited" ]; then room="$dram of DRAM"; else room="$dram for Blocks, no memory limit"; fi
mx_say "running on five backends in $store: Buffers of $buffers_mib MiB, $room"
if [ "$available_mib" -gt $((buffers_mib + 256)) ]; then
    run 1 dram memext --backend dram --algorithm direct --engine iblock --no-fuse
else
    skip dram "the reference needs $buffers_mib MiB of memory and $available_mib MiB are available" 1-dram
fi
# The sweeps do the same work on each backend. Run 7 alone is fused: beside run 6 it shows what that gains.
blocks=(--dram "$dram" --algorithm redundant --no-fuse)
swap_blocks=$((dram_bytes * 3 / 4 / 1048576))MiB
stream=(-d "$store" --backend uring --dram "$dram" --algorithm stream)
if [ -n "$limited" ]; then
    # Blocks are locked on swap: with a quarter of the DRAM for the pages on their way to and from swap space.
    run 2 swap "${limiting[@]}" --swap "${swap_mib}MiB" --swap-dir "$store" -- \
        memext --backend swap --dram "$swap_blocks" --algorithm redundant --no-fuse
    run 3 mmap "${ahead[@]}" "${limit[@]}" memext -d "$store" --backend mmap "${blocks[@]}"
else
    why=${why##*limit-memory: }
    skip swap "$why" 2-swap
    skip mmap "$why" 3-mmap
fi
run 4 aio "${limit[@]}" memext -d "$store" --backend aio "${blocks[@]}"
run 5 uring "${limit[@]}" memext -d "$store" --backend uring "${blocks[@]}"
run 6 uring "${limit[@]}" memext "${stream[@]}" --no-fuse
run 7 "uring, fused" "${limit[@]}" memext "${stream[@]}"

notes=(--note "dram is the normal execution with everything in memory: engine iblock, one time step after the other.")
if [ -n "$limited" ]; then
    notes+=(--note "The others had $dram, page cache included; of these, swap had $swap_blocks for its Blocks.")
else
    notes+=(--note "The others had $dram for their Blocks, and no memory limit: $why.")
fi
if [ ${#ahead[@]} -gt 0 ]; then
    notes+=(--note "The read-ahead of the disk was $held_kb KiB while mmap ran, which is the default of Linux, and $own_ahead_kb KiB otherwise.")
else
    notes+=(--note "The read-ahead of the disk was $held_kb KiB: ${ahead_why##*with-settings: }.")
fi
echo
"$mx_python" "$mx_root/analysis/compare.py" --picture "$results/demo" "${notes[@]}" "$results"/[1-7]-*.json >"$results/demo.txt" || failures=$((failures + 1))
cat "$results/demo.txt"
echo
echo "picture: $results/demo.png"
[ "$failures" -eq 0 ]
