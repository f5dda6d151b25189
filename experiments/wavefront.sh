#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The figures of the out-of-core wavefront paper (Clauss, Gustedt, Suter 2008), scaled down: Fig. 4, 7a, 7b, Table 1.
#
#   experiments/wavefront.sh [--quick|--thorough|--night|--full] [options of experiments/run.py]
#
# Runs experiments/plans/wavefront/wavefront.toml into results/SCALE/wavefront, and prints the verdicts on the paper's claims.
set -euo pipefail
cd "$(dirname "$0")/.."
. experiments/lib.sh
scale=quick
rest=()
for word in "$@"; do
    case $word in
    --quick | --thorough | --night | --full) scale=${word#--} ;;
    -h | --help)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) rest+=("$word") ;;
    esac
done
"$mx_python" experiments/run.py --scale "$scale" experiments/plans/wavefront/wavefront.toml "${rest[@]+"${rest[@]}"}"
case " ${rest[*]+"${rest[*]}"} " in *" --list "*) exit 0 ;; esac
exec "$mx_python" -m analysis.wavefront "results/$scale/wavefront/raw.jsonl"
