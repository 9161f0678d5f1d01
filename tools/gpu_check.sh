#!/usr/bin/env bash
# Checks Torpor on the GPU of this machine: runs CUDA programs and the example functions natively
# and through torpord, compares what they answer, and prints both times side by side.
#
#   usage: gpu_check.sh [BUILD]
#
# BUILD is a build folder; without it, this script's own folder (a bundle) or ../build. Without an
# NVIDIA GPU it says so and ends with status 0. Status 1: something differed or failed.
# NVIDIA's libraries are looked for in LD_LIBRARY_PATH, the loader's cache, CUDA toolkits, driver
# folders and the nvidia/*/lib folders of Python environments.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
case ${1:-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | head -n -1; exit 0 ;; esac

if [ $# -gt 0 ]; then root=$(realpath "$1")
elif [ -x "$here/bin/torpord" ]; then root=$here
else root=$(realpath "$here/../build"); fi
programs=$root/e2e
[ -d "$programs" ] || programs=$root/tests/e2e_programs
examples=$root/bin/examples
rounds=${ROUNDS:-3}

say() { printf '%s\n' "$*"; }
die() { say "gpu_check: $*" >&2; exit 1; }

# ---- the GPU and NVIDIA's libraries -------------------------------------------------------------

python_folders() {
  local python
  for python in python3 python "${VIRTUAL_ENV:-/nonexistent}/bin/python" \
                "${CONDA_PREFIX:-/nonexistent}/bin/python" /opt/conda/bin/python; do
    command -v "$python" > /dev/null || continue
    "$python" -c 'import site, sys
for folder in {*sys.path, *site.getsitepackages(), site.getusersitepackages()}:
    if folder.endswith("-packages"): print(folder)' 2> /dev/null || true
  done | sort -u
}

candidate_folders() {
  tr ':' '\n' <<< "${LD_LIBRARY_PATH:-}"
  ldconfig -p 2> /dev/null | sed -n 's|.*=> \(.*\)/lib[^/]*$|\1|p' | sort -u
  local folder
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-13* /opt/cuda*; do
    [ -n "$folder" ] && printf '%s\n' "$folder"/lib64 "$folder"/lib "$folder"/targets/x86_64-linux/lib
  done
  printf '%s\n' /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu /usr/lib64 \
    /usr/lib/x86_64-linux-gnu/nvidia/current /usr/lib64/nvidia /usr/lib/wsl/lib /run/opengl-driver/lib
  while read -r folder; do printf '%s\n' "$folder"/nvidia/*/lib; done < <(python_folders)
}

# The first place of library $1; the toolkit's stubs and our own replacements do not count.
find_library() {
  local folder found
  while read -r folder; do
    found=$folder/$1
    if [ -n "$folder" ] && [ -e "$found" ] && [ "$folder" != "$root/lib/torpor/client" ] &&
       [[ $folder != */stubs ]]; then
      printf '%s\n' "$found"
      return 0
    fi
  done <<< "$folders"
  return 1
}

if [ ! -e /dev/nvidiactl ]; then
  say "gpu_check: SKIPPED: this machine has no NVIDIA GPU (no /dev/nvidiactl)"
  exit 0
fi
[ -x "$root/bin/torpord" ] || die "no bin/torpord in $root; build first (make)"
folders=$(candidate_folders | awk '!seen[$0]++')

work=$(mktemp -d /tmp/torpor-gpu-check-XXXXXX)
libraries=$work/nvidia
mkdir "$libraries"
for library in libcuda.so.1 libcudart.so.13 libcublas.so.13 libcublasLt.so.13; do
  place=$(find_library $library) || die "$library is nowhere to be found; set LD_LIBRARY_PATH"
  say "gpu_check: $place"
  ln -s "$(realpath "$place")" "$libraries/$library"
  search="${search:-$libraries}:$(dirname "$(realpath "$place")")"
done

# ---- daemons and functions ----------------------------------------------------------------------

started=()
stop_all() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2> /dev/null || true; done
  started=()
}
finish() {
  local status=$?
  stop_all
  if [ $status -ne 0 ] && [ -f "$work/torpord.log" ]; then
    say "gpu_check: the end of torpord's log:"
    tail -40 "$work/torpord.log"
  fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

run_native() { LD_LIBRARY_PATH=$search "$@"; }
run_remoted() { "$root/bin/torporctl" --config-file "$work/torpord.yaml" run --function "$@"; }
control() { "$root/bin/torporctl" "$1" --socket "$work/admin.sock" --output json 2> /dev/null; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_daemon RESERVE NAME:PORT...
start_daemon() {
  local reserve=$1 function
  shift
  {
    printf 'version: v1\nrun_dir: %s\nstate_dir: %s/state\ncuda_library_dir: %s\n' "$work" "$work" "$libraries"
    printf 'http_address: 127.0.0.1:0\nmetrics_address: ""\ngpus: [0]\ndriver_reserve: %s\nfunctions:\n' "$reserve"
    for function in "$@"; do
      printf '  - name: %s\n    upstream: 127.0.0.1:%s\n    memory_limit: 4GiB\n' "${function%:*}" "${function#*:}"
      printf '    deadline: 1s\n    upstream_timeout: 60s\n    token_file: %s/%s.token\n' "$work" "${function%:*}"
      head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/${function%:*}.token"
    done
  } > "$work/torpord.yaml"
  LD_LIBRARY_PATH=$search "$root/bin/torpord" --config-file "$work/torpord.yaml" >> "$work/torpord.log" 2>&1 &
  started+=($!)
  local i
  for ((i = 0; i < 600; i++)); do
    control status | grep -q '"state": "ready",$' && return
    kill -0 "${started[-1]}" 2> /dev/null || die "torpord did not start"
    sleep 0.1
  done
  die "torpord was not ready after 60 s"
}

# start_function LOG COMMAND...: waits until it listens
start_function() {
  local log=$1 i
  shift
  : > "$log"
  "$@" >> "$log" 2>&1 &
  started+=($!)
  for ((i = 0; i < 600; i++)); do
    grep -q 'listening on' "$log" && return
    kill -0 "${started[-1]}" 2> /dev/null || break
    sleep 0.1
  done
  tail -20 "$log"
  die "$* does not listen"
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }
failures=0
fail() { failures=$((failures + 1)); say "gpu_check: FAILED: $*"; }

# ---- CUDA programs ------------------------------------------------------------------------------

# The least time of some runs, in ms; its output and status are left in $work/$1.out and .status.
best_ms() {
  local tag=$1 best=-1 i begin took
  shift
  for ((i = 0; i < rounds; i++)); do
    begin=$(now_ms)
    echo 0 > "$work/$tag.status"
    timeout 120 bash -c '"$@"' -- "$@" > "$work/$tag.out" 2> "$work/$tag.err" || echo $? > "$work/$tag.status"
    took=$(($(now_ms) - begin))
    if [ $best -lt 0 ] || [ $took -lt $best ]; then best=$took; fi
  done
  echo $best
}
export -f run_native run_remoted
export search root work

check_programs() {
  local program name native remoted verdict
  start_daemon 2GiB program:0
  pool_mib=$(($(control status | sed -n 's/.*"pool_bytes": \([0-9]*\).*/\1/p' | head -1) >> 20))
  printf '\n%-28s %12s %12s  %s\n' 'CUDA program' 'native ms' 'remoted ms' 'result'
  for program in "$programs"/*; do
    name=$(basename "$program")
    [ "$name" != state_server ] || continue
    native=$(best_ms native run_native "$program")
    remoted=$(best_ms remoted run_remoted program -- "$program")
    if ! cmp -s "$work/native.out" "$work/remoted.out"; then verdict='FAILED: other output'
    elif ! cmp -s "$work/native.status" "$work/remoted.status"; then verdict='FAILED: other status'
    elif [ "$(cat "$work/native.status")" != 0 ]; then verdict='FAILED natively too'
    else verdict=same; fi
    printf '%-28s %12s %12s  %s\n' "$name" "$native" "$remoted" "$verdict"
    if [ "$verdict" != same ]; then
      fail "$name: $(tail -2 "$work/remoted.out") $(tail -3 "$work/remoted.err")"
    fi
  done
  stop_all
}

# ---- example functions --------------------------------------------------------------------------

names=(digits encoder-a encoder-b)
program_of() { echo "$examples/${1%%-*}"; }
flags_of() {
  case $1 in
    encoder-a) echo --layers 6 --hidden 512 --seed 1 ;;
    encoder-b) echo --layers 12 --hidden 768 --seed 2 ;;
    *) echo ;;
  esac
}
path_of() { case $1 in digits) echo predict ;; *) echo encode ;; esac; }

write_workload() {  # file, then NAME=URL...
  local file=$1 entry name
  shift
  {
    printf 'version: v1\narrivals: poisson\nduration_s: 10\nwarm_up_s: 2\ntimeout_s: 30\nfunctions:\n'
    for entry in "$@"; do
      name=${entry%%=*}
      printf '  - {name: %s, url: "%s", rate_per_s: 10, objective_ms: 200, expected: %s/%s.jsonl}\n' \
        "$name" "${entry#*=}" "$work" "$name"
    done
  } > "$file"
}

# load TAG NAME=URL...: the report lands in $work/TAG.json
load() {
  local tag=$1
  shift
  write_workload "$work/$tag.yaml" "$@"
  "$root/bin/torpor-loadgen" "$work/$tag.yaml" --json "$work/$tag.json" --quiet > "$work/$tag.txt" ||
    { cat "$work/$tag.txt"; fail "the examples, $tag"; }
}

check_examples() {
  local name port reserve entry flags entries=() functions=() address
  for name in "${names[@]}"; do
    read -ra flags <<< "$(flags_of "$name")"
    "$(program_of "$name")-reference" --write-expected "$work/$name.jsonl" --count 4 "${flags[@]}"
    # env becomes the program, so that the process we stop is the program's own.
    start_function "$work/$name.log" env LD_LIBRARY_PATH="$search" "$(program_of "$name")" "${flags[@]}"
    port=$(sed -n 's/^listening on .*://p' "$work/$name.log")
    entries+=("$name=http://127.0.0.1:$port/$(path_of "$name")")
  done
  load native "${entries[@]}"
  stop_all

  # A pool that holds the largest function, but no other beside it, so that they are swapped.
  reserve=$((pool_mib + 2048 - 416))
  for name in "${names[@]}"; do functions+=("$name:$(free_port)"); done
  start_daemon "${reserve}MiB" "${functions[@]}"
  entries=()
  address=$(control status | sed -n 's/.*"http_address": "\(.*\)".*/\1/p')
  for entry in "${functions[@]}"; do
    name=${entry%:*}
    read -ra flags <<< "$(flags_of "$name")"
    start_function "$work/$name.log" "$root/bin/torporctl" --config-file "$work/torpord.yaml" run \
      --function "$name" -- "$(program_of "$name")" --port "${entry#*:}" "${flags[@]}"
    entries+=("$name=http://$address/function/$name/$(path_of "$name")")
  done
  load remoted "${entries[@]}"
  stop_all
  python3 - "$work" <<'P'
import json, sys
native, remoted = (json.load(open(f"{sys.argv[1]}/{kind}.json")) for kind in ("native", "remoted"))
print(f"\n{'example':<16} {'requests':>9} {'native p50':>11} {'remoted p50':>12} {'native p98':>11} "
      f"{'remoted p98':>12} {'hits':>6} {'swaps':>6} {'swap ms':>8}")
for a, b in zip(native["functions"], remoted["functions"]):
    print(f"{a['name']:<16} {b['requests']:>9} {a['latency_ms']['p50']:>11.2f} {b['latency_ms']['p50']:>12.2f} "
          f"{a['latency_ms']['p98']:>11.2f} {b['latency_ms']['p98']:>12.2f} {b['resident']:>6} "
          f"{b['swaps_pcie']:>6} {b['swap_ms']:>8.2f}")
print(f"wrong answers: {native['wrong_answers']} natively, {remoted['wrong_answers']} remoted; "
      f"errors: {native['errors']} and {remoted['errors']}")
P
}

say "gpu_check: $(nvidia-smi -L 2> /dev/null | head -1 || true)"
check_programs
check_examples
[ $failures = 0 ] || die "$failures failures"
say "gpu_check: everything is the same natively and through Torpor"
