#!/usr/bin/env bash
# Simulates the paper's figures, and fills their numbers and pictures into docs/reproduction.md.
#
#   tools/dev/reproduce.sh BUILD_FOLDER RATES_CSV [SEEDS]
#
# RATES_CSV: requests a minute, a row a function, as of the paper's artifact. SEEDS: 5. Text and rows
# are left in BUILD_FOLDER/reproduction.
#
# docs/reproduction.md was made with the invocation trace of the Torpor paper's artifact (203 functions,
# 31 minutes: columns minute_0 to minute_30, 15,795 bytes):
#   SHA-256 dc50000b8a61e20edcb16a12a4a32f68cfec7889b22cb851a1557fae9e35578f
# The script says so if RATES_CSV is another file.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -lt 2 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
simulator=$1/bin/torpor-sim
rates=$2
seeds=${3:-5}
results=$1/reproduction
pictures=docs/reproduction
page_rates=dc50000b8a61e20edcb16a12a4a32f68cfec7889b22cb851a1557fae9e35578f
if [ "$(sha256sum < "$rates" | cut -d' ' -f1)" != "$page_rates" ]; then
  echo "$rates: not the rates that docs/reproduction.md was made with" >&2
fi
mkdir -p "$results" "$pictures"

# simulate NAME ARGUMENTS...: NAME.txt and NAME.csv.
simulate() {
  local name=$1
  shift
  echo "$(date +%T) $name" >&2
  "$simulator" "$@" --seeds "$seeds" --csv "$results/$name.csv" > "$results/$name.txt"
}

# As simulate, and a picture.
draw() {
  local name=$1
  simulate "$@" --plot "$pictures/$name.svg"
  rm -f "$pictures/$name.plot.json"
}

for figure in 8 9 10 11 12 14 16 parts; do
  draw "figure-$figure" figure "$figure" --rates "$rates"
done
# The highest load at which all comply under Torpor.
simulate figure-14-knee figure 14 --rates "$rates" --rate-factors 3.5 --functions 1000 \
  --systems torpor,native,non-swap,simple-swap
simulate table-3 table 3

# Where nothing was tuned: other nodes, and other rates with the mean of the paper's trace.
elsewhere() {
  local name=$1
  shift
  simulate "elsewhere-$name" run --systems torpor,torpor-plus "$@"
}
elsewhere nvswitch-8gpu --rates "$rates" --topology nvswitch-8gpu --functions 960,1120,1280
elsewhere unlinked-2gpu --rates "$rates" --topology unlinked-2gpu --functions 120,160,200
printf 'minute_0\n9.79\n' > "$results/equal.csv"
elsewhere equal --rates "$results/equal.csv" --functions 480,560,640
# Of 200 rows the i-th in proportion to 1/i.
awk 'BEGIN {
  for (i = 1; i <= 200; ++i) sum += 1 / i
  print "minute_0"
  for (i = 1; i <= 200; ++i) printf "%.3f\n", 9.79 * 200 / sum / i
}' > "$results/skewed.csv"
elsewhere skewed --rates "$results/skewed.csv" --functions 480,560,640

python3 tools/dev/reproduction_page.py "$results" docs/reproduction.md
