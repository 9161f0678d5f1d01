#!/usr/bin/env bash
# clang-tidy over the .cc files changed since the newest commit that is over four hours old; over
# every file if there is no such commit, or with --all. Needs a configured build folder (default build/).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${TORPOR_BUILD_DIR:-build}
command -v clang-tidy-14 > /dev/null || { echo 'clang-tidy-14 is missing: make setup' >&2; exit 1; }

base=
[ "${1:-}" = --all ] || base=$(git rev-list -1 --before='4 hours ago' HEAD)
if [ -n "$base" ]; then
  files=$(git diff --name-only --diff-filter=d "$base" -- '*.cc')
else
  files=$(git ls-files '*.cc')
fi
# Only what this configuration compiles has flags to be checked with; what several programs compile
# is checked once.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
compiled=$(python3 - "$build/compile_commands.json" "$database/compile_commands.json" <<'P'
import json, os, sys
commands = {os.path.relpath(entry["file"]): entry for entry in json.load(open(sys.argv[1]))}
json.dump(list(commands.values()), open(sys.argv[2], "w"))
print("\n".join(sorted(commands)))
P
)
files=$(comm -12 <(sort <<<"$files") <(sort <<<"$compiled"))
[ -n "$files" ] || { echo "clang-tidy: nothing has changed"; exit 0; }
echo "clang-tidy: $(wc -l <<<"$files") files"
xargs -P "$(nproc)" -n 1 clang-tidy-14 -p "$database" --quiet <<<"$files" 2>/dev/null
