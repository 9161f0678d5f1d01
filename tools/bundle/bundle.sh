#!/usr/bin/env bash
# Packs OUTPUT/torpor and OUTPUT/torpor.tar.xz from a build folder: programs, client libraries,
# examples and CUDA test programs for another x86-64 Linux with an NVIDIA driver, the CUDA 13
# libraries and glibc 2.36 or newer. NVIDIA's libraries are not packed; gpu_check.sh finds them.
#
#   usage: bundle.sh BUILD OUTPUT
set -euo pipefail
[ $# = 2 ] || { sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$(realpath "$1")
mkdir -p "$2"
output=$(realpath "$2")
sources=$(realpath "$(dirname "$0")/../..")
root=$output/torpor
limit_mb=50  # it travels beside other things

# Part of every Linux with a new enough glibc; anything else a program needs goes along.
system='linux-vdso|ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libstdc\+\+\.|libgcc_s\.'

rm -rf "$root"
mkdir -p "$root"/{bin/examples,lib/torpor/{client,bundled},e2e,driven,bench}

cp "$build"/bin/{torpord,torpor-init,torpor-router,torpor-executor,torporctl,torpor-loadgen,torpor-probe} "$root/bin/"
cp "$build"/bench/{handle_benchmark,link_benchmark} "$root/bench/"
programs=("$root"/bin/torpor* "$root"/bench/*)
strip "${programs[@]}"
cp "$build"/bin/examples/* "$root/bin/examples/"
cp "$build"/tests/e2e_programs/* "$root/e2e/"
cp "$build"/tests/e2e_driven/layers_server "$root/driven/"
cp -L "$build"/lib/torpor/client/*.so* "$root/lib/torpor/client/"
strip --strip-unneeded "$root"/lib/torpor/client/*.so*
cp -r "$build"/lib/torpor/topologies "$root/lib/torpor/"
cp "$sources"/tools/gpu_check.sh "$sources"/LICENSE "$root/"
mkdir "$root/gpu_check"
cp "$sources"/tools/gpu_check/*.py "$root/gpu_check/"
cp "$sources/bench/results/gpu_check_h200.json" "$root/gpu_check/emulated_h200.json"

# Shared libraries that Debian has only as such (spdlog, yaml-cpp, ...), found beside the programs. The
# probe and a benchmark were linked with the emulator's driver, which they no longer find then.
for program in "${programs[@]}"; do
  patchelf --set-rpath '$ORIGIN/../lib/torpor/bundled' "$program"
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -vE "/($system)|/libcuda\.so" |
    while read -r library; do cp -Ln "$library" "$root/lib/torpor/bundled/"; done || true
done
for library in "$root"/lib/torpor/bundled/*; do
  strip --strip-unneeded "$library"
  patchelf --set-rpath '$ORIGIN' "$library"
done

# What the target's loader would say, asked of the loader here.
missing=$(for file in "${programs[@]}"; do ldd "$file"; done | grep 'not found' |
  grep -v 'libcuda\.so\.1 ' || true)
[ -z "$missing" ] || { echo "bundle: libraries are missing: $missing" >&2; exit 1; }
newest=$(for file in "${programs[@]}" "$root"/lib/torpor/*/*.so*; do
           objdump -T "$file" | grep -o 'GLIBC_2\.[0-9]*' || true
         done | sort -Vu | tail -1)
[ "$(printf '%s\n' "$newest" GLIBC_2.36 | sort -V | tail -1)" = GLIBC_2.36 ] ||
  { echo "bundle: needs $newest, newer than GLIBC_2.36" >&2; exit 1; }
# Only our replacements may bear NVIDIA's names.
nvidia=$(find "$root" -name 'libcu*' -o -name 'libnv*' | grep -v '/lib/torpor/client/' || true)
[ -z "$nvidia" ] || { echo "bundle: NVIDIA's libraries do not belong here: $nvidia" >&2; exit 1; }

archive=$output/torpor.tar.xz
tar -C "$output" --owner=0 --group=0 --sort=name -cf - torpor | xz -T0 -6 > "$archive"
size_mb=$(( ($(stat -c %s "$archive") + 999999) / 1000000 ))
[ "$size_mb" -le $limit_mb ] || { echo "bundle: $size_mb MB, over $limit_mb MB" >&2; exit 1; }
echo "bundle: $archive, $size_mb MB packed, $(du -sm "$root" | cut -f1) MB unpacked, glibc ${newest#GLIBC_}"
echo "bundle: on the GPU machine: python3 -m tarfile -e torpor.tar.xz && torpor/gpu_check.sh"
