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
limit_mb=60

# Part of every Linux with a new enough glibc; anything else a program needs goes along.
system='linux-vdso|ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libstdc\+\+\.|libgcc_s\.'

rm -rf "$root"
mkdir -p "$root"/{bin/examples,lib/torpor/{client,bundled},e2e}

cp "$build"/bin/{torpord,torpor-executor,torporctl,torpor-loadgen} "$root/bin/"
strip "$root"/bin/torpor*
cp "$build"/bin/examples/* "$root/bin/examples/"
cp "$build"/tests/e2e_programs/* "$root/e2e/"
cp -L "$build"/lib/torpor/client/*.so* "$root/lib/torpor/client/"
strip --strip-unneeded "$root"/lib/torpor/client/*.so*
cp -r "$build"/lib/torpor/topologies "$root/lib/torpor/"
cp "$sources"/tools/gpu_check.sh "$sources"/LICENSE "$root/"

# Shared libraries that Debian has only as such (spdlog, yaml-cpp, ...), found beside the programs.
for program in "$root"/bin/torpor*; do
  ldd "$program" | awk '$2 == "=>" {print $3}' | grep -vE "/($system)" |
    while read -r library; do cp -Ln "$library" "$root/lib/torpor/bundled/"; done || true
  patchelf --set-rpath '$ORIGIN/../lib/torpor/bundled' "$program"
done
for library in "$root"/lib/torpor/bundled/*; do
  strip --strip-unneeded "$library"
  patchelf --set-rpath '$ORIGIN' "$library"
done

# What the target's loader would say, asked of the loader here.
missing=$(for file in "$root"/bin/torpor*; do ldd "$file"; done | grep 'not found' || true)
[ -z "$missing" ] || { echo "bundle: libraries are missing: $missing" >&2; exit 1; }
newest=$(for file in "$root"/bin/torpor* "$root"/lib/torpor/*/*; do
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
echo "bundle: on the GPU machine: tar xf torpor.tar.xz && torpor/gpu_check.sh"
