#!/bin/bash
# The one test command: installs what is missing, builds, runs every test, adds up.
#   tests/run.sh [--quick] [--tsan]
#     --quick  no sanitizers
#     --tsan   the C tests once more under the thread sanitizer
# The last line is `N passed, N failed, N skipped`; the exit status is 0 only when none failed.
set -u
. "$(dirname "$0")/../experiments/lib.sh"

presets=(release asan)
for option in "$@"; do
    case $option in
    --quick) presets=(release) ;;
    --tsan) presets+=(tsan) ;;
    *) mx_die "unknown option $option; there are --quick and --tsan" ;;
    esac
done

cd "$mx_root" || exit 2
mx_need_packages
reports=()

# run_ctest PRESET: the C tests, one at a time, for they use the same disk and cores.
run_ctest() {
    local preset=$1 report=$mx_root/build/$1/ctest.xml
    rm -f "$report"
    # Level 1: Criterion names the tests that it skips.
    CRITERION_VERBOSITY_LEVEL=1 ctest --test-dir "build/$preset" -j1 --timeout 600 --output-on-failure --no-tests=error \
        --output-junit "$report" --test-output-size-passed 1000000 --test-output-size-failed 1000000
    reports+=("$report")
}

run_pytest() {
    local report=$mx_root/build/release/pytest.xml
    rm -f "$report"
    MEMEXT_BUILD=$mx_root/build/release "$mx_python" -m pytest -q -rs --junit-xml "$report" tests/python
    reports+=("$report")
}

for preset in "${presets[@]}"; do
    mx_build "$preset"
    run_ctest "$preset"
    [ "$preset" = release ] && run_pytest
done

echo
"$mx_python" tests/summary.py "${reports[@]}"
