#!/bin/sh
# Puts Torpor's client libraries in the place of NVIDIA's in an image, wherever Python packages
# (nvidia-cuda-runtime, nvidia-cublas, ...) or a toolkit have brought some. Run again it changes
# nothing.
#
#   usage: adopt_torpor.sh CLIENT_FOLDER FOLDER...
#
# FOLDER: where the packages are: /usr/local, a virtual environment. NVIDIA's libraries become links
# to those in CLIENT_FOLDER, so that a node may mount its own there. Only libnvrtc stays, as
# libnvrtc.nvidia.so.13: Torpor's passes calls on to it.
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
client=$(cd "$1" && pwd -P)
shift
[ -e "$client/libtorpor_client.so" ] ||
  { echo "adopt_torpor: $client has no libtorpor_client.so: name lib/torpor/client of a build" >&2; exit 1; }

folders_with_replaced_libraries() {
  for library in "$client"/libcu*.so.* "$client"/libnvrtc.so.*; do
    find "$@" -name "$(basename "$library")" ! -path "$client/*"
  done | sed 's|/[^/]*$||' | sort -u
}

# All of the client's, since each finds the others beside itself.
link_all_into() {
  if [ -e "$1/libnvrtc.so.13" ] && [ ! "$1/libnvrtc.so.13" -ef "$client/libnvrtc.so.13" ]; then
    mv "$1/libnvrtc.so.13" "$1/libnvrtc.nvidia.so.13"
  fi
  for library in "$client"/*.so*; do
    ln -sf "$library" "$1/$(basename "$library")"
  done
}

folders=$(folders_with_replaced_libraries "$@")
[ -n "$folders" ] || { echo "adopt_torpor: no libraries of NVIDIA's in $*" >&2; exit 1; }
printf '%s\n' "$folders" | while IFS= read -r folder; do
  link_all_into "$folder"
  echo "adopt_torpor: $folder"
done
