#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures an accelerator. Each step runs alone, takes less than 8 minutes and writes a result file. `summary` prints a table of all results.
#   experiments/device.sh STEP[,STEP...] [ACCEL]        ACCEL as of --accel, default auto
#     bus      bytes per second to the device, from it and both at once; updates per second in its memory (star7 f64; $DEVICE_N^3)
#     fuse     updates per second with one and with two levels in one launch (opencl, cuda)
#     stencils updates per second in its memory, with other stencils and with f32
#     inside   a whole run in its memory: --algorithm direct
#     host     a run with Buffers in DRAM, larger than the memory that it may use on the device (4 GiB)
#     flash    a run with Buffers in DEVICE_DIR and the same 4 GiB, compared with the seconds that the model predicts
#     ktable   HHRT's table: Gupdates/s by k, the number of steps that planes stay on the device, for problems of 0.75 to 12 times DEVICE_K_CAP, in DRAM
#     summary  a table of all results so far, with the aim of each; every step also prints its own lines of this table
#     pack     run it where memext is built: makes build/device ($DEVICE_OUT/device), and a tar of it, with the command, its shared libraries and this script. The other machine needs Linux on
#              the same processor, glibc as new as here, bash, python3, and for CUDA the driver and libnvrtc. Run there: device/device.sh bus cuda
#   DEVICE_NVRTC compilers of CUDA that pack adds: libnvrtc.so of one or several generations, for machines that have only a driver. A driver loads code from a compiler
#                of its own generation. pack also adds the libnvrtc-builtins that lie beside them
#   DEVICE_OUT   folder for results (default results/device; in a pack, a folder in it). If $OUT is set, they are copied to $OUT too
#   DEVICE_DIR   a directory on flash (default .)
#   DEVICE_N     edge of the grid of bus, fuse, stencils and inside (default 1022); DEVICE_NZ: planes of host (default: as many as DRAM holds, up to 4094, which is 64 GiB)
#   DEVICE_FLASH_NZ  planes of flash (default 2046, which is 32 GiB)
#   DEVICE_NT    steps of host and flash; inside makes five times as many (default 200); DEVICE_CAP: memory of the device for host and flash (default 4GiB)
#   DEVICE_K_N, DEVICE_K_CAP  edge of the planes of ktable, and its memory of the device (defaults 510, 1GiB)
# Without a device: DEVICE_N=126 DEVICE_NZ=254 DEVICE_FLASH_NZ=254 DEVICE_NT=8 DEVICE_CAP=16MiB DEVICE_K_N=62 DEVICE_K_CAP=4MiB tries all steps in a minute, with ACCEL
# host, or opencl on a CPU. Those figures say nothing about a device.
# Aims on an H200: 160 Gupdates/s in its memory (star7 f64), 300 with two levels a launch, 85 % of the run inside for Buffers in DRAM, and within 15 % of the model for flash.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ -x "$here/bin/memext" ]; then # a pack
    root=$here
    python=$(command -v python3) || { echo "device.sh: python3 is not installed; install it, or put it on PATH" >&2; exit 2; }
    build=$here/bin
    own="env LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
else
    . "$here/lib.sh"
    root=$mx_root python=$mx_python
    build=${MEMEXT_BUILD:-$mx_root/build/release}
    own=
fi

steps=${1:-}
accel=${2:-auto}
out=${DEVICE_OUT:-$root/results/device}
n=${DEVICE_N:-1022}
nt=${DEVICE_NT:-200}
cap=${DEVICE_CAP:-4GiB}
flash_nz=${DEVICE_FLASH_NZ:-2046}
k_n=${DEVICE_K_N:-510}
k_cap=${DEVICE_K_CAP:-1GiB}
dir=${DEVICE_DIR:-.}
step_end=0

# value FILE KEY: the value of KEY in the JSON object in FILE; 0 if there is none.
value() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1])).get(sys.argv[2]) or 0)' "$out/$1" "$2" 2>/dev/null || echo 0; }

# planned: the accelerator, with the rates that step bus measured for the model.
planned() {
    local bus updates
    bus=$(value bus.json both_bytes_per_s_each) updates=$(value bus.json updates_per_second)
    if [ "$bus" = 0 ]; then echo "$accel"; else echo "$accel,rate=$bus,updates=$updates"; fi
}

# limited WORDS...: runs a command for at most the rest of the 460 s of its step.
limited() {
    local left=$((step_end - SECONDS))
    $own timeout $((left > 1 ? left : 1)) "$@"
}

run() { # run FILE WORDS...
    local file=$1
    shift
    # The CPU makes the initial grid first, so that this does not count as time of the device.
    limited "$build/memext" run --no-fuse "$@" --accel "$(planned)" --quiet --json "$out/$file"
}

# room GIB: touches this much memory, because some virtual machines get their memory only then. Prints how many GiB of it there are.
room() {
    "$python" - "$1" <<'PYTHON'
import mmap, sys, time

GIB = 1 << 30


def known(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/meminfo") if line.startswith(name + ":"))


want, kept, tries = int(sys.argv[1]), [], 0
while len(kept) < 4 * want and known("MemTotal") * 0.9 < want * GIB and tries < 50:
    if known("MemAvailable") < 2 * GIB:
        tries += 1
        time.sleep(0.2)
        continue
    kept.append(mmap.mmap(-1, GIB // 4))
    for at in range(0, GIB // 4, 4096):
        kept[-1][at] = 1
print(min(want, int(known("MemTotal") * 0.9 / GIB)))
PYTHON
}

bus() { limited "$build/bench_accel" "$accel" star7 f64 "$n" 32 >"$out/bus.json"; }

fuse() { # one and two levels in one launch, of the same cells
    for levels in 1 2; do
        $own timeout 220 "$build/bench_accel" "$accel,fuse=$levels" star7 f64 "$n" 32 || { rm "$out/fuse.jsonl"; return 1; }
    done >"$out/fuse.jsonl"
}

stencils() {
    for one in "star7 f32" "box27 f64" "star13 f64" "star25 f64"; do
        # shellcheck disable=SC2086
        $own timeout 110 "$build/bench_accel" "$accel" $one "$n" 16 || return
    done >"$out/stencils.jsonl"
}

inside() {
    room $((n * n * n / 60000000 + 4)) >/dev/null
    run inside.json -n "$n" "$n" "$n" -t $((nt * 5)) --backend dram --algorithm direct
}

host() { # DEVICE_NZ planes, or as many as DRAM holds
    local nz=${DEVICE_NZ:-} gib
    if [ -z "$nz" ]; then
        gib=$(room 72)
        nz=$(((gib - 8) * 1073741824 / 16 / (n + 2) / (n + 2) - 2))
        [ "$nz" -le 4094 ] || nz=4094
    fi
    run host.json -n "$n" "$n" "$nz" -t "$nt" --backend dram --algorithm stream --device-memory "$cap"
}

flash() { # in its own folder; a store that an interrupted step left there may be overwritten
    mkdir -p "$dir/memext-device" && rates_of "$dir/memext-device" &&
        run flash.json -n "$n" "$n" "$flash_nz" -t "$nt" -d "$dir/memext-device" --force --algorithm stream --device-memory "$cap"
    local status=$?
    rm -rf "$dir/memext-device"
    return $status
}

# rates_of FOLDER: measures the flash there for the model. --calibrate keeps the rates, so all runs of a machine use the same ones.
rates_of() { $own timeout 120 "$build/memext" tune --calibrate -n "$n" "$n" "$flash_nz" -t "$nt" -d "$1" --quiet >/dev/null; }

# One line of the table: k, quarters of the memory that both arrays take, planes, slab.
ktable_line() {
    local line
    line=$($own timeout 17 "$build/memext" run --no-fuse -n "$k_n" "$k_n" "$3" -t $((2 * $1)) --backend dram --plan "stream bt=$1 slab=$4" --accel "$accel" \
        --device-memory "$k_cap" --quiet --json - 2>"$out/.ktable" | "$python" -c '
import json, sys
text = sys.stdin.read()
r = json.loads(text) if text else {}
print(json.dumps({"updates_per_second": r.get("updates_per_second"), "status": r.get("status", "none"), "error": r.get("error") or open(sys.argv[1]).read().strip() or None}))' "$out/.ktable")
    echo "{\"times_memory\": $(awk "BEGIN {print $2 / 4}"), \"k\": $1, \"result\": $line}"
}

# The pipeline is k planes deep. A problem that does not fit is reported as such, and a run beyond its time limit has no result.
ktable() {
    local memory slab quarters k
    memory=$("$python" -c 'import re, sys
m = re.fullmatch(r"(\d+)([KMG])iB", sys.argv[1])
print(int(m[1]) << {"K": 10, "M": 20, "G": 30}[m[2]])' "$k_cap") || return
    # A slab has an eighth of the planes of both arrays that fit into this memory.
    slab=$((memory / 16 / (k_n + 2) / (k_n + 2) / 8))
    for quarters in 3 6 12 24 48; do
        for k in 1 8 16 32 64; do
            ktable_line $k $quarters $((quarters * memory / 4 / 16 / (k_n + 2) / (k_n + 2) - 2)) $slab
        done
    done >"$out/ktable.jsonl"
    rm -f "$out/.ktable"
}

summary() { # summary [STEP]: the table, or the lines of one step
    "$python" - "$out" "$@" <<'PYTHON'
import json, pathlib, sys

folder, only = pathlib.Path(sys.argv[1]), sys.argv[2:]


def load(name):
    path = folder / name
    return json.loads(path.read_text()) if path.exists() and path.stat().st_size else None


def lines(name):
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def say(step, text):
    if not only or step in only:
        print(f"{step:10} {text}")


def aim(value, least, text, most=None):
    return f" (aim {text}: {'met' if value >= least and (most is None or value <= most) else 'not met'})"


def whole_run(step, result):
    """Prints a line for a run of the command. Returns its rate, 0 if there is none."""
    if not result or result.get("status") != "done":
        say(step, "not run" if not result else result.get("error") or result.get("status"))
        return 0
    plan, rate = result["plan"], result["updates_per_second"] / 1e9
    moved = [(result[f"{way}_bytes"], result[f"predicted_{way}_bytes"]) for way in ("host_to_device", "device_to_host")]
    exact = "as predicted" if all(a == b for a, b in moved) else f"NOT as predicted: {moved[0][1]} + {moved[1][1]}"
    model = result["accelerator"]["model"] if "model" in result.get("accelerator", {}) else {}
    if result.get("accelerator", {}).get("pinned") is False and result["accelerator"]["name"] == "cuda":
        say(step, "the staging memory of copies could not be pinned, so they are slower")
    say(step, f"{rate:.2f} Gupdates/s; bt {plan['bt']}, by {plan['by']}, slab {plan['slab']}; by the model, {model.get('decides', '?')} takes longest; {moved[0][0]} + {moved[1][0]} bytes over the bus, {exact}")
    return rate


bus, inside, host, flash = (load(f"{name}.json") for name in ("bus", "inside", "host", "flash"))
if bus:
    rate = bus["updates_per_second"] / 1e9
    say("bus", f"{bus['accelerator']}: {bus['device']}")
    say("bus", f"{bus['put_bytes_per_s'] / 1e9:.1f} GB/s to the device, {bus['get_bytes_per_s'] / 1e9:.1f} GB/s from it, {bus['both_bytes_per_s_each'] / 1e9:.1f} GB/s each way at once")
    say("bus", f"{rate:.2f} Gupdates/s in its memory, {bus['stencil']} {bus['dtype']}{aim(rate, 160, 'at least 160')}")
else:
    say("bus", "not run")
for levels, one in enumerate(lines("fuse.jsonl"), 1):
    rate = one["updates_per_second"] / 1e9
    say("fuse", f"{rate:.2f} Gupdates/s with {levels} level{'s' if levels > 1 else ''} a launch{aim(rate, 300, 'at least 300') if levels == 2 else ''}")
if not lines("fuse.jsonl"):
    say("fuse", "not run")
for one in lines("stencils.jsonl"):
    say("stencils", f"{one['updates_per_second'] / 1e9:.2f} Gupdates/s, {one['stencil']} {one['dtype']}")
if not lines("stencils.jsonl"):
    say("stencils", "not run")
within = whole_run("inside", inside)
if within and bus:
    say("inside", f"{1e11 * within / bus['updates_per_second']:.0f} % of the speed of the kernel alone (step bus)")
from_dram = whole_run("host", host)
base = within or (bus["updates_per_second"] / 1e9 if bus else 0)
if from_dram and base:
    say("host", f"{100 * from_dram / base:.0f} % of {'the run inside' if within else 'the kernel alone'}{aim(from_dram / base, 0.85, 'at least 85 %')}")
for step, result in (("inside", inside), ("host", host), ("flash", flash)):
    if step == "flash":
        whole_run(step, result)
    if result and result.get("status") == "done":
        off = result["seconds"] / result["predicted_seconds"] if result["predicted_seconds"] else 0
        say(step, f"{result['seconds']:.2f} s, {off:.2f} times the predicted {result['predicted_seconds']:.2f} s" + (aim(off, 0.85, "0.85 to 1.15", 1.15) if step == "flash" else ""))
rows = lines("ktable.jsonl")
say("ktable", "Gupdates/s by problem size and by k, the steps that planes stay on the device" if rows else "not run")
if rows:
    say("ktable", "             k =  " + "".join(f"{k:>9}" for k in sorted({r["k"] for r in rows})))
for times in sorted({r["times_memory"] for r in rows}):
    of = {r["k"]: r["result"].get("updates_per_second") for r in rows if r["times_memory"] == times}
    say("ktable", f"{times:>5} times the memory" + "".join(f"{of[k] / 1e9:9.2f}" if of.get(k) else "        -" for k in sorted(of)))
PYTHON
}

pack() {
    local at=${DEVICE_OUT:-$root/build} folder name
    folder=$at/device
    [ -x "$build/memext" ] && [ -x "$build/bench_accel" ] || { echo "device.sh: $build lacks memext or bench_accel; build them with cmake --preset release && cmake --build --preset release" >&2; return 2; }
    rm -rf "$folder" && mkdir -p "$folder/bin" "$folder/lib" || return
    for name in memext bench_accel; do cp "$build/$name" "$folder/bin/" && strip "$folder/bin/$name" || return; done
    cp "$here/device.sh" "$folder/" || return
    # The other machine has its own C library.
    ldd "$build/memext" "$build/bench_accel" | awk '$3 ~ /^\// {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I {} cp -L {} "$folder/lib/" || return
    for name in ${DEVICE_NVRTC:-}; do # under its SONAME, by which it is loaded
        cp -L "$name" "$folder/lib/$(readelf -d "$name" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" || return
        name=$(find "$(dirname "$(realpath "$name")")" -maxdepth 1 -name 'libnvrtc-builtins.so.*' ! -type l)
        [ -z "$name" ] || cp $name "$folder/lib/" || return
    done
    env LD_LIBRARY_PATH="$folder/lib" "$folder/bin/memext" --version || return
    tar -C "$at" -czf "$at/device.tar.gz" device || return
    echo "$folder and $at/device.tar.gz, $(du -sh "$at/device.tar.gz" | cut -f1); the other machine needs glibc $(cat "$folder"/bin/* "$folder"/lib/* | grep -aoE 'GLIBC_2\.[0-9]+' | sort -uV | tail -1 | cut -c7-)"
}

case ,$steps, in
,pack,) pack; exit ;;
*)
    for step in ${steps//,/ }; do
        case $step in bus | fuse | stencils | inside | host | flash | ktable | summary) ;; *) steps= ;; esac
    done
    ;;
esac
[ -n "$steps" ] || { sed -n '2,24s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$out" || exit
status=0
for step in ${steps//,/ }; do
    step_end=$((SECONDS + 460))
    if [ "$step" = summary ]; then
        summary | tee "$out/summary.txt"
    elif "$step"; then
        summary "$step"
    else
        status=1
        echo "device.sh: step $step failed" >&2
    fi
done
if [ -n "${OUT:-}" ] && [ "$(realpath "$OUT")" != "$(realpath "$out")" ]; then cp "$out"/*.json* "$out"/*.txt "$OUT/" 2>/dev/null; fi
exit $status
