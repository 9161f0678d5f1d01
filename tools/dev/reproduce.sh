#!/usr/bin/env bash
# Makes docs/reproduction.md and docs/reproduction/: the paper's figures as torpor-sim gives them.
#
#   tools/dev/reproduce.sh BUILD_FOLDER RATES_CSV [SEEDS]
#
# RATES_CSV: requests a minute, a row a function, as of the paper's artifact. SEEDS: 5.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -lt 2 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
simulator=$1/bin/torpor-sim
rates=$2
seeds=${3:-5}
folder=docs/reproduction
mkdir -p "$folder"

# draw NAME ARGUMENTS...: NAME.txt, and NAME.svg where there is a plot.
draw() {
  local name=$1
  shift
  echo "$name" >&2
  "$simulator" "$@" > "$folder/$name.txt"
  rm -f "$folder/$name.plot.json"
}
for figure in 8 9 10 11 12 14 16; do
  draw "figure-$figure" figure "$figure" --rates "$rates" --seeds "$seeds" \
    --plot "$folder/figure-$figure.svg"
done
draw table-3 table 3
for topology in nvswitch-8gpu unlinked-2gpu; do
  functions=960,1120,1280
  if [ "$topology" = unlinked-2gpu ]; then functions=240,280,320; fi
  draw "run-$topology" run --topology "$topology" --rates "$rates" --seeds "$seeds" \
    --functions "$functions" --systems torpor,torpor-plus,fifo,lru --plot "$folder/run-$topology.svg"
done

python3 tools/dev/reproduction_page.py "$folder" "$seeds" > docs/reproduction.md
