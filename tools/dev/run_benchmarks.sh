#!/usr/bin/env bash
# Runs every benchmark of a build folder; JSON results land in <build>/bench/results/.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
out=$build/bench/results
mkdir -p "$out"
for program in "$build"/bench/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=$(basename "$program")
  echo "== $name"
  "$program" --benchmark_out="$out/$name.json" --benchmark_out_format=json
done
echo "results: $out"
