#!/usr/bin/env bash
# usage: truth.sh [BUILD_FOLDER [FLAGS...]]
# The same requests on torpord and in torpor-sim: writes bench/results/simulator_truth.json, the
# measured profile beside it, and the tables of docs/truth.md. FLAGS are simulator_truth's own.
# Wants a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
tables=$(mktemp)
trap 'rm -f "$tables"' EXIT
"$build/truth/simulator_truth" "${@:2}" --json bench/results/simulator_truth.json \
  --profile bench/results/simulator_truth_profile.yaml | tee "$tables"
sed -i -e '/^<!-- begin of tables/,/^<!-- end of tables/{//!d}' \
  -e "/^<!-- begin of tables/r $tables" docs/truth.md
