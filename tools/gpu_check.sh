#!/usr/bin/env bash
# Checks Torpor on the GPU of this machine; gpu_check.sh --help tells more (docs/bundle.md).
set -euo pipefail
command -v python3 > /dev/null || { echo "gpu_check: python3 is needed" >&2; exit 1; }
exec python3 -B "$(dirname "$(realpath "$0")")/gpu_check/main.py" "$@"
