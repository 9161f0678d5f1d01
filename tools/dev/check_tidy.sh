#!/usr/bin/env bash
# usage: check_tidy.sh [--all] [--seconds N]
# Runs clang-tidy over the .cc files changed since the newest commit that is over four hours old; over
# every file if there is no such commit, or with --all. Files that passed before, with the same text
# after preprocessing, are not checked again (~/.cache/torpor/tidy remembers them). With --seconds no
# file is begun after N seconds; the last line tells how many were left out. Needs a configured build
# folder (default build/).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${TORPOR_BUILD_DIR:-build}
command -v clang-tidy-14 > /dev/null || { echo 'clang-tidy-14 is missing: make setup' >&2; exit 1; }

all= seconds=
while [ $# -gt 0 ]; do
  case $1 in
    --all) all=1 ;;
    --seconds) seconds=$2; shift ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
base=
[ -n "$all" ] || base=$(git rev-list -1 --before='4 hours ago' HEAD)
if [ -n "$base" ]; then
  files=$(git diff --name-only --diff-filter=d "$base" -- '*.cc')
else
  files=$(git ls-files '*.cc')
fi
[ -n "$files" ] || { echo "clang-tidy: nothing has changed"; exit 0; }
exec python3 -B tools/dev/check_tidy.py --build "$build" ${seconds:+--seconds "$seconds"} <<<"$files"
