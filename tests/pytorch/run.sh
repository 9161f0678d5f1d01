#!/usr/bin/env bash
# run.sh BUILD_FOLDER MODULE...: modules of tests by unittest, under a daemon of their own with the
# emulated GPU that runs the wheels' machine code. Exits with 77 where there is no environment.
set -euo pipefail
build=$(realpath "$1")
shift
cd "$(dirname "$0")"
venv=${TORPOR_PYTORCH_VENV:-$HOME/.cache/torpor/venv}
if ! ../../tools/dev/pytorch_environment.sh --check; then
  echo "skipped: no PyTorch in $venv as tests/pytorch/requirements.txt has it; make test-pytorch" \
       "installs it"
  exit 77
fi
exec "$build/bin/torporctl" run --standalone --topology turing-1gpu -- \
  "$venv/bin/python" -B -m unittest -v "$@"
