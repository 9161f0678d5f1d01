#!/usr/bin/env bash
# clang-format over every C++ and CUDA file of the project; --fix rewrites them.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=(--dry-run -Werror)
[ "${1:-}" = --fix ] && mode=(-i)
git ls-files -co --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh' | xargs -r clang-format-14 "${mode[@]}"
