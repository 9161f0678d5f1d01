#!/usr/bin/env bash
# Runs every benchmark of a build folder (default build/) and writes bench/results/NAME.json, so
# that git shows what has changed since the recorded run; and, for those with a picture, the plot's
# data and NAME.svg. Wants a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
results=bench/results
mkdir -p "$results"
export TORPOR_BENCH_PLOT_DIR=$results
for program in "$build"/bench/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=$(basename "$program")
  echo "== $name"
  "$program" --benchmark_out="$results/$name.json" --benchmark_out_format=json
  sed -i '/"host_name":/d' "$results/$name.json"
done
echo "results: $results"
shopt -s nullglob
plots=("$results"/*.plot.json)
[ "${#plots[@]}" -eq 0 ] || tools/dev/plot.py "${plots[@]}"
