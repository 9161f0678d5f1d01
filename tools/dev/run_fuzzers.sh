#!/usr/bin/env bash
# Runs every fuzz target of preset `fuzz` for the given number of seconds each (default 10).
# Corpora grow in build-fuzz/corpus/<target>; they begin with tests/**/<target>_seeds, if there is such
# a folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-10}
count=0
for target in build-fuzz/fuzz/*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=$(basename "$target")
  corpus=build-fuzz/corpus/$name
  mkdir -p "$corpus"
  mapfile -t seeds < <(find tests -type d -name "${name}_seeds")
  echo "fuzz $name for $seconds s"
  log=build-fuzz/corpus/$name.log
  if ! "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=1 \
      -artifact_prefix="$corpus/../$name-" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz target $name failed; the input lies beside $log" >&2
    exit 1
  fi
  grep -h 'stat::number_of_executed_units' "$log" || true
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no fuzz targets in build-fuzz/fuzz" >&2; exit 1; }
echo "$count fuzz targets passed"
