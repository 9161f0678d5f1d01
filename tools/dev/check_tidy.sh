#!/usr/bin/env bash
# clang-tidy over the .cc files changed since the newest commit that is over four hours old.
# With --all: over every file. Needs a configured build folder (default build/).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${TORPOR_BUILD_DIR:-build}

if [ "${1:-}" = --all ]; then
  files=$(git ls-files '*.cc')
else
  base=$(git rev-list -1 --before='4 hours ago' HEAD)
  if [ -z "$base" ]; then
    echo "clang-tidy: no commit is over four hours old to compare with; --all checks every file"
    exit 0
  fi
  files=$(git diff --name-only --diff-filter=d "$base" -- '*.cc')
fi
# Only what this configuration compiles has flags to be checked with.
compiled=$(python3 - "$build/compile_commands.json" <<'P'
import json, os, sys
print("\n".join(sorted({os.path.relpath(e["file"]) for e in json.load(open(sys.argv[1]))})))
P
)
files=$(comm -12 <(sort <<<"$files") <(sort <<<"$compiled"))
[ -n "$files" ] || { echo "clang-tidy: nothing has changed"; exit 0; }
echo "clang-tidy: $(wc -l <<<"$files") files"
xargs -P "$(nproc)" -n 1 clang-tidy-14 -p "$build" --quiet <<<"$files" 2>/dev/null
