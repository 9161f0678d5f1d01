#!/usr/bin/env bash
# Installs the Debian packages of packages.txt that are missing, and says which.
set -euo pipefail
cd "$(dirname "$0")/../.."

mapfile -t wanted < <(sed -e 's/#.*//' packages.txt | grep -E '[^[:space:]]')
missing=()
for package in "${wanted[@]}"; do
  package=${package// /}
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
