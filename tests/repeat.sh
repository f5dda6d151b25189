#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Repeats tests beside a load of two busy processes, to find those that fail now and then.
#   tests/repeat.sh TIMES TEST...
#     TEST   a C test (flow, link) of build/release, or of build/$MEMEXT_PRESET; or a file of Python tests (tests/python/test_faults.py), as pytest takes it
# What fails leaves its output in build/repeat/. pytest counts the Python tests, the last line counts the runs of C programs. The exit status is 0 only when nothing failed.
set -u
. "$(dirname "$0")/../experiments/lib.sh"
cd "$mx_root" || exit 2
[ $# -ge 2 ] && [ "$1" -gt 0 ] 2>/dev/null || mx_die "usage: tests/repeat.sh TIMES TEST..., such as tests/repeat.sh 50 flow link tests/python/test_faults.py"
times=$1
shift
build=$mx_root/build/${MEMEXT_PRESET:-release}
c_tests=() python_tests=()
for test in "$@"; do
    case $test in
    *.py | *.py::*) python_tests+=("$test") ;;
    *)
        [ -x "$build/test_$test" ] || mx_die "there is no $build/test_$test: build it, or name a file of Python tests"
        c_tests+=("$test")
        ;;
    esac
done
export OMP_WAIT_POLICY=passive
mkdir -p build/repeat

load=()
for _ in 1 2; do
    (while :; do :; done) &
    load+=($!)
done
trap 'kill "${load[@]}" 2>/dev/null' EXIT

passed=0 failed=0
for test in "${c_tests[@]}"; do
    for ((i = 1; i <= times; i++)); do
        if "$build/test_$test" -j1 --short-filename >"build/repeat/$test" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            mv "build/repeat/$test" "build/repeat/$test.$i"
            mx_say "$test failed at repetition $i: build/repeat/$test.$i"
        fi
    done
done
status=0
if [ ${#python_tests[@]} -gt 0 ]; then
    workers=()
    "$mx_python" -c 'import xdist' 2>/dev/null && workers=(-n $(($(nproc) + 2)) --dist loadgroup)
    MEMEXT_TEST_TIMES=$times MEMEXT_BUILD=$build "$mx_python" -m pytest -q -rfE "${workers[@]}" "${python_tests[@]}" || status=1
fi
[ ${#c_tests[@]} -eq 0 ] || echo "C programs: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ $status -eq 0 ]
