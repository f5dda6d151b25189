#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds memext on a bare Debian 12 and runs one problem on all five backends, in a quarter of the memory that it needs.
#   experiments/demo.sh [--dir DIR] [--size "NX NY NZ"] [--steps NT] [--dram SIZE] [--no-system]
#     --dir         directory on a disk for Buffers and swap (default: build/demo)
#     --size        cells of the grid (default: "510 510 510")
#     --steps       time steps (default: 32)
#     --dram        DRAM of each run, and its memory limit (default: 512MiB)
#     --no-system   change nothing on the machine: set no memory limit or read-ahead, make no swap file, keep the page cache, install no packages
# Prints a table, and writes reports and a picture into build/demo. The exit status is 0 if every run was verified.
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
    *) mx_die "unknown option $1; the options are --dir, --size, --steps, --dram and --no-system" ;;
    esac
    shift 2
done

dram_bytes=$(numfmt --from=iec-i "${dram%B}") || mx_die "--dram $dram is not a size; write for instance 512MiB"
results=$mx_root/build/demo
memext=$mx_root/build/release/memext
child=0 store=
# The default of Linux for a disk. The run on mmap always has it, whatever read-ahead this disk has.
ahead_kb=128

registry() { "$mx_python" "$mx_root/experiments/runner/registry.py" "$@"; }

# This also runs on Ctrl-C: the current run ends cleanly, then its cgroup and swap file are removed, and then the store. After kill -9, the next
# start of any program that keeps records removes them.
clean_up() {
    if [ "$child" -ne 0 ] && kill -TERM "$child" 2>/dev/null; then wait "$child"; fi
    [ -n "$store" ] && registry clear $$
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -z "$system" ]; then
    mx_say "demo.sh: with --no-system this changes only files on this machine, in ${directory:-$results} and $mx_root/build; no run has a memory limit"
else
    if [ "$(id -u)" -eq 0 ]; then
        mx_consent "While it runs, it limits each run to $dram with a cgroup if this machine allows that, drops the page cache before each run, and sets a read-ahead of $ahead_kb KiB for mmap. It makes Buffers, and a swap file for one run, in ${directory:-$results}. All this is undone afterwards. With --no-system it only makes Buffers"
    else
        mx_consent "It makes Buffers in ${directory:-$results} while it runs. Without root, no run has a memory limit or swap space, and the page cache is not dropped. With --no-system it installs nothing"
    fi
    mx_need_packages
fi
mx_build release
mkdir -p "$results"
rm -f "$results"/*.json "$results"/*.jsonl "$results"/*.log "$results"/demo.*
directory=${directory:-$results}
[ -d "$directory" ] || mx_die "--dir $directory is not a directory"
if mx_is_memory "$directory"; then
    mx_die "--dir $directory is in memory; name a directory on a disk"
fi

# Two Buffers need this space. The swap backend needs as much swap space, at another time.
read -r nx ny nz <<<"$size"
buffers_mib=$((2 * (nx + 2) * (ny + 2) * (nz + 2) * 8 / 1048576))
swap_mib=$((buffers_mib + 1024))
needed_mib=$((swap_mib + 512))
free_mib=$(($(mx_free_bytes "$directory") / 1048576))
[ "$free_mib" -ge "$needed_mib" ] ||
    mx_die "$directory has $free_mib MiB free, and this needs $needed_mib MiB; name another directory with --dir, or a smaller grid with --size"
# The tuner plans as on a fresh machine, even if rates were calibrated before.
export XDG_CACHE_HOME=$results/cache
rm -rf "$XDG_CACHE_HOME"
[ -z "$system" ] || registry sweep || mx_die "cannot remove what a killed start left"
store=$(registry directory $$ memext-demo- "$directory") || mx_die "cannot make a directory in $directory"
# If this start is killed, the next start ends processes that carry this variable.
MEMEXT_OWNER=${store##*/memext-demo-}
export MEMEXT_OWNER=${MEMEXT_OWNER%-1}
available_mib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))

skip() { # LABEL REASON NAME
    mx_say "  $1: not run: $2"
    "$mx_python" -c 'import json, sys; print(json.dumps({"label": sys.argv[1], "skipped": sys.argv[2]}))' "$1" "$2" \
        >"$results/$3.json"
}

failures=0
# run NUMBER LABEL LIMIT... memext OPTIONS...: one run, with the command LIMIT around it. All runs have --timeline, because only the timeline
# counts what Linux writes of a mapping.
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
    mx_say "  $label: $((SECONDS - begin)) s in all, initialisation and verification included"
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
    ahead_why="--no-system changes nothing"
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
    skip dram "the reference needs $buffers_mib MiB of memory, and $available_mib MiB are available" 1-dram
fi
# The sweeps do the same work on each backend. Only run 7 is fused: compared with run 6, it shows the gain.
blocks=(--dram "$dram" --algorithm redundant --no-fuse)
swap_blocks=$((dram_bytes * 3 / 4 / 1048576))MiB
stream=(-d "$store" --backend uring --dram "$dram" --algorithm stream)
if [ -n "$limited" ]; then
    # The Blocks are locked in memory on swap. A quarter of the DRAM is left for pages on their way to and from swap space.
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

notes=(--note "dram is the normal execution: everything in memory, engine iblock, one time step after the other.")
if [ -n "$limited" ]; then
    notes+=(--note "All other runs had $dram of memory, page cache included. Of these, swap had $swap_blocks for its Blocks.")
else
    notes+=(--note "All other runs had $dram for their Blocks, and no memory limit: $why.")
fi
if [ ${#ahead[@]} -gt 0 ]; then
    notes+=(--note "The read-ahead of the disk was $held_kb KiB while mmap ran, which is the usual default of Linux. Otherwise it was $own_ahead_kb KiB.")
else
    notes+=(--note "The read-ahead of the disk was $held_kb KiB: ${ahead_why##*with-settings: }.")
fi
echo
"$mx_python" "$mx_root/analysis/compare.py" --picture "$results/demo" "${notes[@]}" "$results"/[1-7]-*.json >"$results/demo.txt" || failures=$((failures + 1))
cat "$results/demo.txt"
echo
echo "picture: $results/demo.png"
[ "$failures" -eq 0 ]
