#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The one test command: installs what is missing, builds, runs every test, adds up.
#   tests/run.sh [--quick] [--tsan] [--long] [--paraview]
#     --quick     neither sanitizers nor fuzz targets
#     --tsan      all C tests under the thread sanitizer, not only those with threads
#     --long      10 minutes for each fuzz target instead of seconds
#     --paraview  installs ParaView too (packages-paraview.txt says what that costs); where it is installed its test runs in any case
# The last line is `N passed, N failed, N skipped`; the exit status is 0 only when none failed.
set -u
. "$(dirname "$0")/../experiments/lib.sh"

# Cores are shared with whatever else runs here: a thread that waits must not take one from who it waits for.
export OMP_WAIT_POLICY=passive

presets=(release asan tsan fuzz)
tsan_tests=(machine flow engine execute conformance) # threads of the engines and their team, of queues, of the committer
tsan_all=
paraview=
fuzz_options=()
for option in "$@"; do
    case $option in
    --quick) presets=(release) ;;
    --tsan) tsan_all=yes ;;
    --long) fuzz_options=(--seconds 600 --jobs "$(nproc)") ;;
    --paraview) paraview=yes ;;
    *) mx_die "unknown option $option; there are --quick, --tsan, --long and --paraview" ;;
    esac
done

cd "$mx_root" || exit 2
mx_need_packages
# OpenCL on a CPU: the tests say which they skip without it.
(mx_need_packages packages-opencl.txt) || mx_say "no OpenCL: PoCL (packages-opencl.txt) cannot be had here"
(mx_need_packages packages-hdf5.txt) || mx_say "HDF5 files are not tested: packages-hdf5.txt cannot be had here"
(mx_need_packages packages-mpi.txt) || mx_say "ranks under mpirun are not tested: packages-mpi.txt cannot be had here"
reports=()

# run_ctest PRESET [NAME...]: the C tests, all or these, one at a time, for they use the same disk and cores.
run_ctest() {
    local preset=$1 report=$mx_root/build/$1/ctest.xml chosen=()
    [ $# -gt 1 ] && chosen=(--tests-regex "^($(IFS='|' && echo "${*:2}"))\$")
    rm -f "$report"
    # Level 1: Criterion names the tests that it skips.
    CRITERION_VERBOSITY_LEVEL=1 ctest --test-dir "build/$preset" -j1 --timeout 1200 --output-on-failure --no-tests=error "${chosen[@]}" \
        --output-junit "$report" --test-output-size-passed 1000000 --test-output-size-failed 1000000
    reports+=("$report")
}

# The Python package needs more packages: without them its tests are skipped, and say so.
run_pytest() {
    local report=$mx_root/build/release/pytest.xml
    rm -f "$report"
    (mx_need_packages packages-python.txt) || mx_say "not all of packages-python.txt can be had here"
    if [ -n "$paraview" ]; then
        (mx_need_packages packages-paraview.txt) || mx_say "results are not opened in ParaView: packages-paraview.txt cannot be had here"
    elif [ -n "$(mx_missing_packages packages-paraview.txt)" ]; then
        mx_say "results are not opened in ParaView, which is large (packages-paraview.txt): tests/run.sh --paraview installs it"
    fi
    MEMEXT_BUILD=$mx_root/build/release "$mx_python" -m pytest -q -rs --junit-xml "$report" tests/python
    reports+=("$report")
}

run_tsan() {
    if [ -n "$tsan_all" ]; then
        mx_build tsan
        run_ctest tsan
    else
        mx_build tsan "${tsan_tests[@]/#/test_}"
        run_ctest tsan "${tsan_tests[@]}"
    fi
}

# Fuzz targets need clang, which nothing else does: without it they are one skipped test.
run_fuzz() {
    local report=$mx_root/build/fuzz/fuzz.xml
    mkdir -p "${report%/*}"
    rm -f "$report"
    reports+=("$report")
    if ! (mx_need_packages packages-fuzz.txt); then
        mx_say "no fuzz targets: clang and its runtime (packages-fuzz.txt) cannot be had here"
        printf '<testsuite name="fuzz"><testcase classname="fuzz" name="targets"><skipped message="%s"/></testcase></testsuite>\n' \
            "clang and its runtime (packages-fuzz.txt) cannot be had here" >"$report"
        return
    fi
    mx_build fuzz
    "$mx_python" tests/fuzz.py "${fuzz_options[@]}"
}

for preset in "${presets[@]}"; do
    case $preset in
    tsan) run_tsan ;;
    fuzz) run_fuzz ;;
    *)
        mx_build "$preset"
        run_ctest "$preset"
        ;;
    esac
    [ "$preset" = release ] && run_pytest
done

echo
"$mx_python" tests/summary.py "${reports[@]}"
