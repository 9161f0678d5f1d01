#!/usr/bin/env bash
# Makes the virtual environment of the tests with PyTorch: what tests/pytorch/requirements.txt pins,
# in ~/.cache/torpor/venv or the folder that TORPOR_PYTORCH_VENV names. Does nothing where that is
# there already. --check only says by its exit status whether it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
requirements=(tests/pytorch/requirements.txt examples/pytorch/requirements.txt)
venv=${TORPOR_PYTORCH_VENV:-$HOME/.cache/torpor/venv}
installed=$venv/torpor-requirements.txt  # written last

if cmp -s <(cat "${requirements[@]}") "$installed"; then exit 0; fi
if [ "${1:-}" = --check ]; then exit 1; fi

echo "PyTorch for its tests: 5.2 GB in $venv; about six minutes"
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar on \
  -r "${requirements[0]}"
cat "${requirements[@]}" > "$installed"
echo "PyTorch for its tests is in $venv: $(du -sh "$venv" | cut -f1)"
