#!/usr/bin/env bash
# Runs every fuzz target of preset `fuzz` for the given number of seconds each (default 10), as many
# at a time as there are processors.
# Corpora grow in build-fuzz/corpus/<target>; they begin with tests/**/<target>_seeds, if there is such
# a folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Arguments: the target and its seconds.
run_target() {
  local target=$1 seconds=$2
  local name corpus log
  name=$(basename "$target")
  corpus=build-fuzz/corpus/$name
  log=$corpus.log
  mkdir -p "$corpus"
  local seeds=()
  mapfile -t seeds < <(find tests -type d -name "${name}_seeds")
  if ! "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=1 \
      -artifact_prefix="$corpus/../$name-" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz target $name failed; the input lies beside $log" >&2
    return 1
  fi
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "fuzz $name for $seconds s: ${runs:-?} runs"
}
export -f run_target

targets=()
for target in build-fuzz/fuzz/*; do
  if [ -f "$target" ] && [ -x "$target" ]; then targets+=("$target"); fi
done
[ "${#targets[@]}" -gt 0 ] || { echo "no fuzz targets in build-fuzz/fuzz" >&2; exit 1; }
printf '%s\n' "${targets[@]}" |
  xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'run_target "$1" "$2"' _ {} "${1:-10}"
echo "${#targets[@]} fuzz targets passed"
