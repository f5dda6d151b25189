#!/bin/bash
# What an accelerator does, on a machine with one: each step alone, under 8 minutes, one result file each and a summary.
#   experiments/device.sh STEP [ACCEL]        ACCEL as of --accel, default auto
#     bus      bytes per second to the device, from it, both at once; updates per second in its memory (star7 f64; $DEVICE_N^3)
#     fuse     updates per second with one and with two levels in one launch (opencl, cuda)
#     stencils updates per second in its memory, of other stencils and f32
#     inside   a whole run in its memory: --algorithm direct
#     host     Buffers in DRAM, at most 4 GiB of its memory: out of core of the device
#     flash    Buffers in DEVICE_DIR, the same 4 GiB, beside the model's seconds
#     ktable   HHRT's table: Gupdates/s by steps k that planes stay there, for problems of 0.75 to 12 times DEVICE_K_CAP, in DRAM
#     summary  a table of what is there
#   DEVICE_OUT   where results go (default results/device); DEVICE_DIR a directory on flash (default .)
#   DEVICE_N     edge of the grid of bus, fuse, stencils and inside (default 1022); DEVICE_NZ planes of host (default 4094: 64 GiB of DRAM)
#   DEVICE_FLASH_NZ  planes of flash (default 2046: 32 GiB there)
#   DEVICE_NT    steps of host and flash, a fifth of those of inside (default 200); DEVICE_CAP memory of the device for both (default 4GiB)
#   DEVICE_K_N, DEVICE_K_CAP  rows of ktable's planes and its memory of the device (defaults 510, 1GiB)
# With no device: DEVICE_N=126 DEVICE_NZ=254 DEVICE_FLASH_NZ=254 DEVICE_NT=8 DEVICE_CAP=16MiB DEVICE_K_N=62 DEVICE_K_CAP=4MiB tries all of it in a minute, by host or
# by opencl on a CPU: those figures are no device's.
# The aims are in the summary: 160 Gupdates/s in the memory of an H200, 85 % of that from DRAM, flash within 15 % of the model.
set -u
. "$(dirname "$0")/lib.sh"

step=${1:-}
accel=${2:-auto}
out=${DEVICE_OUT:-$mx_root/results/device}
n=${DEVICE_N:-1022}
nz=${DEVICE_NZ:-4094}
nt=${DEVICE_NT:-200}
cap=${DEVICE_CAP:-4GiB}
flash_nz=${DEVICE_FLASH_NZ:-2046}
k_n=${DEVICE_K_N:-510}
k_cap=${DEVICE_K_CAP:-1GiB}
dir=${DEVICE_DIR:-.}
build=${MEMEXT_BUILD:-$mx_root/build/release}
limit="timeout 470"
mkdir -p "$out"

# value FILE KEY: of the JSON object in FILE; 0 where there is none.
value() { "$mx_python" -c 'import json, sys; print(json.load(open(sys.argv[1])).get(sys.argv[2]) or 0)' "$out/$1" "$2" 2>/dev/null || echo 0; }

# planned: the accelerator with the rates that step bus measured, for the model.
planned() {
    local bus updates
    bus=$(value bus.json both_bytes_per_s_each) updates=$(value bus.json updates_per_second)
    if [ "$bus" = 0 ]; then echo "$accel"; else echo "$accel,rate=$bus,updates=$updates"; fi
}

run() { # run FILE WORDS...
    local file=$1
    shift
    # The initial grid is made before, by the CPU, and is none of the device's time.
    $limit "$build/memext" run --no-fuse "$@" --accel "$(planned)" --quiet --json "$out/$file"
}

case $step in
bus) $limit "$build/bench_accel" "$accel" star7 f64 "$n" 32 >"$out/bus.json" && cat "$out/bus.json" ;;
fuse)
    # One and two levels in one launch, of the same cells.
    for levels in 1 2; do
        timeout 220 "$build/bench_accel" "$accel,fuse=$levels" star7 f64 "$n" 32 || { rm "$out/fuse.jsonl"; exit 1; }
    done >"$out/fuse.jsonl" && cat "$out/fuse.jsonl"
    ;;
stencils)
    for one in "star7 f32" "box27 f64" "star13 f64" "star25 f64"; do
        # shellcheck disable=SC2086
        timeout 110 "$build/bench_accel" "$accel" $one "$n" 16 || exit
    done >"$out/stencils.jsonl" && cat "$out/stencils.jsonl"
    ;;
inside) run inside.json -n "$n" "$n" "$n" -t $((nt * 5)) --backend dram --algorithm direct ;;
host) run host.json -n "$n" "$n" "$nz" -t "$nt" --backend dram --algorithm stream --device-memory "$cap" ;;
flash)
    # In a folder of its own, where one that was cut off has left a store of nobody's.
    mkdir -p "$dir/memext-device"
    run flash.json -n "$n" "$n" "$flash_nz" -t "$nt" -d "$dir/memext-device" --force --algorithm stream --device-memory "$cap"
    status=$?
    rm -rf "$dir/memext-device"
    exit $status
    ;;
ktable)
    # Both arrays take so many quarters of the memory; the pipeline is k planes deep, and what does not fit is reported so. A run that is cut off leaves none.
    memory=$("$mx_python" -c 'import re, sys
m = re.fullmatch(r"(\d+)([KMG])iB", sys.argv[1])
print(int(m[1]) << {"K": 10, "M": 20, "G": 30}[m[2]])' "$k_cap") || exit
    # Slabs of an eighth of the planes that it holds of both arrays.
    slab=$((memory / 16 / (k_n + 2) / (k_n + 2) / 8))
    for quarters in 3 6 12 24 48; do
        planes=$((quarters * memory / 4 / 16 / (k_n + 2) / (k_n + 2) - 2))
        for k in 1 8 16 32 64; do
            line=$(timeout 17 "$build/memext" run --no-fuse -n "$k_n" "$k_n" "$planes" -t $((2 * k)) --backend dram --plan "stream bt=$k slab=$slab" --accel "$accel" \
                --device-memory "$k_cap" --quiet --json - 2>"$out/.ktable" | "$mx_python" -c '
import json, sys
text = sys.stdin.read()
r = json.loads(text) if text else {}
print(json.dumps({"updates_per_second": r.get("updates_per_second"), "status": r.get("status", "none"), "error": r.get("error") or open(sys.argv[1]).read().strip() or None}))' "$out/.ktable")
            echo "{\"times_memory\": $(awk "BEGIN {print $quarters / 4}"), \"k\": $k, \"result\": $line}"
        done
    done >"$out/ktable.jsonl"
    rm -f "$out/.ktable"
    cat "$out/ktable.jsonl"
    ;;
summary)
    "$mx_python" - "$out" <<'PYTHON' | tee "$out/summary.txt"
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])


def load(name):
    path = folder / name
    return json.loads(path.read_text()) if path.exists() and path.stat().st_size else None


bus, inside, host, flash = (load(f"{name}.json") for name in ("bus", "inside", "host", "flash"))
if bus:
    print(f"device     {bus['accelerator']}: {bus['device']}")
    print(f"bus        {bus['put_bytes_per_s'] / 1e9:.1f} GB/s to it, {bus['get_bytes_per_s'] / 1e9:.1f} from it, {bus['both_bytes_per_s_each'] / 1e9:.1f} each at once")
    print(f"kernel     {bus['updates_per_second'] / 1e9:.2f} Gupdates/s, {bus['stencil']} {bus['dtype']} (aim on an H200: 160)")
for one in (json.loads(line) for line in (folder / "stencils.jsonl").read_text().splitlines()) if (folder / "stencils.jsonl").exists() else ():
    print(f"kernel     {one['updates_per_second'] / 1e9:.2f} Gupdates/s, {one['stencil']} {one['dtype']}")
fuse = folder / "fuse.jsonl"
for levels, one in enumerate((json.loads(line) for line in fuse.read_text().splitlines()) if fuse.exists() else (), 1):
    print(f"fuse       {one['updates_per_second'] / 1e9:.2f} Gupdates/s with {levels} level{'s' if levels > 1 else ''} a launch (aim on an H200: 300 with two)")
for name, result in (("inside", inside), ("host", host), ("flash", flash)):
    if not result or result.get("status") != "done":
        print(f"{name:10} {'not run' if not result else result.get('error') or result.get('status')}")
        continue
    plan, rate = result["plan"], result["updates_per_second"] / 1e9
    share = f", {100 * rate * 1e9 / bus['updates_per_second']:.0f} % of the kernel's" if bus else ""
    print(f"{name:10} {rate:.2f} Gupdates/s{share}; bt {plan['bt']}, by {plan['by']}; {result['seconds']:.2f} s, predicted {result['predicted_seconds']:.2f}; "
          f"bus {result['host_to_device_bytes']} + {result['device_to_host_bytes']} bytes, predicted {result['predicted_host_to_device_bytes']} + {result['predicted_device_to_host_bytes']}")
ktable = folder / "ktable.jsonl"
rows = [json.loads(line) for line in ktable.read_text().splitlines()] if ktable.exists() else []
if rows:
    ks = sorted({r["k"] for r in rows})
    print("ktable     Gupdates/s; k =  " + "".join(f"{k:>9}" for k in ks))
for times in sorted({r["times_memory"] for r in rows}):
    of = {r["k"]: r["result"].get("updates_per_second") for r in rows if r["times_memory"] == times}
    print(f"    {times:>5} times the memory    " + "".join(f"{of[k] / 1e9:9.2f}" if of.get(k) else "        -" for k in ks))
PYTHON
    ;;
*)
    sed -n '2,20s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
