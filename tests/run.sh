#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The one test command: installs what is missing, builds, runs the tests, adds up.
#   tests/run.sh [--quick] [--tsan] [--long] [--paraview]
#     --quick     neither sanitizers nor fuzz targets
#     --tsan      all C tests under the thread sanitizer, not only those with threads
#     --long      everything that the short run leaves out (it names it at its end): all random cases, all tests under the sanitizers, 10 minutes for
#                 each fuzz target; more than an hour
#     --paraview  installs ParaView too (packages-paraview.txt says what that costs); where it is installed its test runs in any case
# Several parts run side by side, each with its output in build/PART.log, which is printed when it ends. The last line is
# `N passed, N failed, N skipped`; the exit status is 0 only when none failed.
set -u
. "$(dirname "$0")/../experiments/lib.sh"

# Cores are shared with whatever else runs here: a thread that waits must not take one from the thread that it waits for.
export OMP_WAIT_POLICY=passive
# What was compiled in another clone of this tree is found again.
export CCACHE_BASEDIR=$mx_root CCACHE_NOHASHDIR=1

# More processes than cores: many tests wait for a disk, a lock or another process. Tests in Python go on beside all that the C tests are.
python_workers=$(($(nproc) + 2)) c_jobs=$(($(nproc) + 1)) sanitizer_jobs=$((($(nproc) + 1) / 2))
tsan_tests=(machine flow engine execute conformance) # threads of the engines and their team, of queues, of the committer
# arithmetic on numbers alone
asan_left_out=(schedule tune tune_choice tune_papers tune_plan tune_rates tune_search cuda_api)
sanitizers=yes
long=
paraview=
fuzz_options=(--jobs 1)
for option in "$@"; do
    case $option in
    --quick) sanitizers= ;;
    --tsan) tsan_tests=() ;;
    --long)
        long=yes tsan_tests=() asan_left_out=()
        export MEMEXT_TEST_LONG=1
        fuzz_options=(--seconds 600 --jobs "$(nproc)")
        ;;
    --paraview) paraview=yes ;;
    *) mx_die "unknown option $option; there are --quick, --tsan, --long and --paraview" ;;
    esac
done

cd "$mx_root" || exit 2
started=$SECONDS
mx_need_packages
(mx_need_packages packages-tests.txt) || mx_say "not all of packages-tests.txt can be had here: the tests take longer, or leave out zsh, xfs and btrfs"
# OpenCL on a CPU: the tests say which they skip without it.
(mx_need_packages packages-opencl.txt) || mx_say "no OpenCL: PoCL (packages-opencl.txt) cannot be had here"
(mx_need_packages packages-hdf5.txt) || mx_say "HDF5 files are not tested: packages-hdf5.txt cannot be had here"
(mx_need_packages packages-mpi.txt) || mx_say "ranks under mpirun are not tested: packages-mpi.txt cannot be had here"
# The Python package needs more packages: without them its tests are skipped, and say so.
(mx_need_packages packages-python.txt) || mx_say "not all of packages-python.txt can be had here"
(mx_need_packages packages-docs.txt) || mx_say "the site of the documents is not built: packages-docs.txt cannot be had here"
if [ -n "$paraview" ]; then
    (mx_need_packages packages-paraview.txt) || mx_say "results are not opened in ParaView: packages-paraview.txt cannot be had here"
elif [ -n "$(mx_missing_packages packages-paraview.txt)" ]; then
    mx_say "results are not opened in ParaView, which is large (packages-paraview.txt): tests/run.sh --paraview installs it"
fi

declare -A parts=() # those under way: their processes
reports=() verdict=()

# begin PART...: functions that run at the same time, each in a process group of its own, so that Ctrl-C ends all that they have started.
begin() {
    local part
    set -m
    for part in "$@"; do
        reports+=("$mx_root/build/$part.xml")
        rm -f "build/$part.xml"
        "$part" >"build/$part.log" 2>&1 </dev/null &
        parts[$part]=$!
    done
    set +m
}

# finish PART...: waits for them, and shows what they said.
finish() {
    local part
    for part in "$@"; do
        wait "${parts[$part]}"
        verdict+=(--ended "$part=$?") # a part that was cut short has failed, whatever its report says
        unset "parts[$part]"
        cat "build/$part.log"
        mx_say "$part: done after $((SECONDS - started)) s"
    done
}

# The first signal lets the parts clean up, the second one ends them at once. A build that fails ends them too.
end_parts() {
    local part
    trap 'for part in "${parts[@]}"; do kill -KILL -- "-$part" 2>/dev/null; done; exit 130' INT TERM HUP
    for part in "${parts[@]}"; do kill -INT -- "-$part" 2>/dev/null; done
    wait
}
trap end_parts EXIT
trap 'exit 130' INT TERM HUP

# run_ctest PRESET PART JOBS [OPTION...]: C tests with these options of ctest. Level 2: Criterion names each test and how long it took.
run_ctest() {
    CRITERION_VERBOSITY_LEVEL=2 ctest --test-dir "build/$1" -j "$3" --timeout 1800 --output-on-failure --no-tests=error "${@:4}" \
        --output-junit "$mx_root/build/$2.xml" --test-output-size-passed 1000000 --test-output-size-failed 1000000
}

alternatives() { (IFS='|' && echo "^($*)\$"); }

c_tests() { run_ctest release c_tests "$c_jobs"; }

python_tests() {
    local workers=()
    "$mx_python" -c 'import xdist' 2>/dev/null && workers=(-n "$python_workers" --dist loadgroup)
    MEMEXT_BUILD=$mx_root/build/release "$mx_python" -m pytest -q -rs "${workers[@]}" --junit-xml "build/python_tests.xml" tests/python
}

address_sanitizer() {
    local left_out=()
    [ ${#asan_left_out[@]} -eq 0 ] || left_out=(--exclude-regex "$(alternatives "${asan_left_out[@]}")")
    run_ctest asan address_sanitizer "$sanitizer_jobs" "${left_out[@]}"
}

thread_sanitizer() {
    local chosen=()
    [ ${#tsan_tests[@]} -eq 0 ] || chosen=(--tests-regex "$(alternatives "${tsan_tests[@]}")")
    run_ctest tsan thread_sanitizer "$sanitizer_jobs" "${chosen[@]}"
}

# Fuzz targets need clang, which nothing else does: without it they are one skipped test.
fuzz_targets() {
    if [ -n "$(mx_missing_packages packages-fuzz.txt)" ]; then
        printf '<testsuite name="fuzz"><testcase classname="fuzz" name="targets"><skipped message="%s"/></testcase></testsuite>\n' \
            "clang and its runtime (packages-fuzz.txt) cannot be had here" >build/fuzz_targets.xml
        return
    fi
    "$mx_python" tests/fuzz.py "${fuzz_options[@]}" --report build/fuzz_targets.xml
}

mx_build release
begin python_tests c_tests
finish c_tests
if [ -n "$sanitizers" ]; then
    mx_build asan
    mx_build tsan "${tsan_tests[@]/#/test_}"
    if (mx_need_packages packages-fuzz.txt); then mx_build fuzz; fi
    begin address_sanitizer thread_sanitizer fuzz_targets
    finish address_sanitizer thread_sanitizer fuzz_targets
fi
finish python_tests

notes=()
[ -n "$long" ] || notes+=(--note "eight of nine of the calls that test_failing_calls lets fail")
if [ -z "$sanitizers" ]; then
    notes+=(--note "both sanitizers and the fuzz targets (--quick)")
else
    [ ${#asan_left_out[@]} -eq 0 ] || notes+=(--note "under the address sanitizer: ${asan_left_out[*]}")
    [ ${#tsan_tests[@]} -eq 0 ] || notes+=(--note "under the thread sanitizer: all but ${tsan_tests[*]}")
    [ -n "$long" ] || notes+=(--note "under the sanitizers: most of the cases that follow each other and are alike" --note "10 minutes of each fuzz target")
fi
echo
mx_say "all of it took $((SECONDS - started)) s"
"$mx_python" tests/summary.py "${notes[@]}" "${verdict[@]}" "${reports[@]}"
