#!/usr/bin/env bash
# usage: run_benchmarks.sh [BUILD_FOLDER [NAME...]]
# Runs the benchmarks of a build folder (default build/), all or those named, and writes
# bench/results/NAME.json, so that git shows what has changed since the recorded run; and, for those
# with a picture, the plot's data and NAME.svg. Wants a machine that does nothing else. A benchmark
# that exits with 77 lacks what it needs: it is skipped, and its recorded results stay. NAME@PRESET
# measures on another emulated node (deploy/topologies/), slow enough for two cores, without plots, and
# writes NAME.PRESET.json; all benchmarks include those of `on_presets`.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
names=("${@:2}")
results=bench/results
mkdir -p "$results"
on_presets=(swap_in_benchmark@h200-8gpu swap_contention_benchmark@h200-8gpu)
preset_time_scale=200
if [ "${#names[@]}" -eq 0 ]; then
  for program in "$build"/bench/*; do
    [ -f "$program" ] && [ -x "$program" ] && names+=("$(basename "$program")")
  done
  names+=("${on_presets[@]}")
fi
measured=()
skipped=()
for name in "${names[@]}"; do
  program=$build/bench/${name%@*}
  surroundings=("TORPOR_BENCH_PLOT_DIR=$results")
  if [ "$name" != "${name%@*}" ]; then
    surroundings=("TORPOR_BENCH_PRESET=${name#*@}" "TORPOR_BENCH_TIME_SCALE=$preset_time_scale")
  fi
  if [ ! -x "$program" ]; then
    echo "$0: there is no benchmark ${name%@*} in $build/bench" >&2
    exit 2
  fi
  echo "== $name"
  status=0
  name=${name/@/.}
  env "${surroundings[@]}" "$program" --benchmark_out="$results/$name.json" --benchmark_out_format=json || status=$?
  case $status in
    0) measured+=("$name") ;;
    77) skipped+=("$name"); continue ;;
    *) exit "$status" ;;
  esac
  sed -i '/"host_name":/d' "$results/$name.json"
done
echo "results: $results"
# What an emulated node measured that fell behind its model is of no use.
for name in "${measured[@]}"; do
  invalid=$(grep -c '"label": "INVALID' "$results/$name.json" || true)
  [ "$invalid" -eq 0 ] || echo "$name: $invalid of its measurements are INVALID (docs/emulator.md)" >&2
done
shopt -s nullglob
plots=("$results"/*.plot.json)
[ "${#plots[@]}" -eq 0 ] || tools/dev/plot.py "${plots[@]}"
if [ "${#skipped[@]}" -ne 0 ]; then echo "SKIPPED: ${skipped[*]}" >&2; fi
