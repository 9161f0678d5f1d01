#!/usr/bin/env bash
# usage: install_cuda_toolkit.sh [--all]
# Where no CUDA toolkit is installed, puts the parts of one that Torpor is built with into
# ~/.cache/torpor/cuda-13.0 (or $TORPOR_CUDA_HOME), from NVIDIA's packages on PyPI: nvcc, the headers,
# cuBLAS and cuDNN; with --all NVRTC, too, without which its replacement and tests are left out. Needs
# no driver and no GPU. The packages' licence is NVIDIA's, not Torpor's.
set -euo pipefail
cd "$(dirname "$0")/../.."
home=${TORPOR_CUDA_HOME:-$HOME/.cache/torpor/cuda-13.0}

if [ -z "${TORPOR_CUDA_HOME:-}" ]; then
  if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then exit 0; fi
fi

packages=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
          nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-culibos==13.0.85
          nvidia-cuda-profiler-api==13.0.85 nvidia-cublas==13.1.0.3
          nvidia-cudnn-cu13==9.19.0.56)
if [ "${1:-}" = --all ]; then
  packages+=(nvidia-cuda-nvrtc==13.0.88)
fi

mkdir -p "$home/packages"
missing=()
for package in "${packages[@]}"; do
  [ -e "$home/packages/$package" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "installing the CUDA toolkit's parts in $home: ${missing[*]}"
work=$(mktemp -d "$home/install.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile \
  --target "$work/site" "${missing[@]}"
for folder in "$work"/site/nvidia/*/; do cp -rlf "$folder". "$home/"; done

# As the toolkit's own installer lays them out.
ln -sfn lib "$home/lib64"
mkdir -p "$home/targets/x86_64-linux" "$home/lib/stubs"
ln -sfn ../../include "$home/targets/x86_64-linux/include"
ln -sfn ../../lib "$home/targets/x86_64-linux/lib"
for library in "$home"/lib/lib*.so.*; do
  name=$(basename "$library")
  ln -sf "$name" "$home/lib/${name%%.so.*}.so"
done

# The driver belongs to the machine with the GPU. Programs link against a stub that exports every
# function which the headers declare.
symbols() {
  printf '#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n' |
    g++ -E -P -x c++ -I"$home/include" - | grep -oE '\bcu[A-Z][A-Za-z0-9_]*[[:space:]]*\(' |
    tr -d ' (' | sort -u
}
symbols | sed 's/.*/int &(void) { return 100; }  \/\/ CUDA_ERROR_NO_DEVICE/' |
  gcc -shared -fPIC -x c -Wl,-soname,libcuda.so.1 -o "$home/lib/stubs/libcuda.so" -

touch "${missing[@]/#/$home/packages/}"
echo "installed: $("$home/bin/nvcc" --version | sed -n 's/.*release //p')"
