#!/usr/bin/env bash
# Checks Torpor on the GPU of this machine: runs CUDA programs and the example functions natively
# and through torpord, compares what they answer, and prints both times side by side.
#
#   usage: gpu_check.sh [--rehearse] [BUILD]
#
# BUILD is a build folder; without it, this script's own folder (a bundle) or ../build.
# --rehearse tries the script itself where there is no GPU: the emulator plays both parts.
#
# NVIDIA's libraries are looked for in LD_LIBRARY_PATH, the loader's cache, CUDA toolkits, driver
# folders and the nvidia/*/lib folders of Python environments. Root is not needed; python3 is.
#
# Environment: ROUNDS, runs of each program, of which the best counts (3); DURATION_S, seconds of
# load on the examples, natively and again through torpord (10); LIMIT_S, seconds after which what
# has not run counts as failed (480).
#
# Exit status: 0, everything is the same, or there is no NVIDIA GPU; 1, something differed or
# failed; 2, wrong usage.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
say() { printf '%s\n' "$*"; }
die() { say "gpu_check: $*" >&2; exit 1; }
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }

rehearse=
build=
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit 0 ;;
    --rehearse) rehearse=1 ;;
    -*) usage >&2; exit 2 ;;
    *) build=$argument ;;
  esac
done
if [ -n "$build" ]; then root=$(realpath "$build")
elif [ -x "$here/bin/torpord" ]; then root=$here
else root=$(realpath -m "$here/../build"); fi
programs=$root/e2e
[ -d "$programs" ] || programs=$root/tests/e2e_programs
examples=$root/bin/examples
rounds=${ROUNDS:-3}
duration_s=${DURATION_S:-10}
limit_s=${LIMIT_S:-480}

if [ -z "$rehearse" ] && [ ! -e /dev/nvidiactl ]; then
  say "gpu_check: SKIPPED: this machine has no NVIDIA GPU (no /dev/nvidiactl)"
  exit 0
fi
[ -x "$root/bin/torpord" ] || die "no bin/torpord in $root; build first (make)"
command -v python3 > /dev/null || die "python3 is needed"
work=$(mktemp -d /tmp/torpor-gpu-check-XXXXXX)

# ---- NVIDIA's libraries -------------------------------------------------------------------------

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
  local folder
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-13* /opt/cuda*; do
    [ -n "$folder" ] && printf '%s\n' "$folder"/lib64 "$folder"/lib "$folder"/targets/x86_64-linux/lib
  done
  printf '%s\n' /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu /usr/lib64 \
    /usr/lib/x86_64-linux-gnu/nvidia/current /usr/lib64/nvidia /usr/lib/wsl/lib /run/opengl-driver/lib
  while read -r folder; do printf '%s\n' "$folder"/nvidia/*/lib; done < <(python_folders)
}

# Every place where library $1 may be, the best first.
candidates() {
  local folder
  while read -r folder; do
    [ -z "$folder" ] || printf '%s\n' "$folder/$1"
  done < <(tr ':' '\n' <<< "${LD_LIBRARY_PATH:-}")
  PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2> /dev/null | awk -v name="$1" '$1 == name {print $NF}' || true
  while read -r folder; do printf '%s\n' "$folder/$1"; done <<< "$folders"
}

# The fifth byte of an ELF file tells 64 bits from 32.
is_64_bit() { [ "$(od -An -tu1 -j4 -N1 "$1" 2> /dev/null | tr -d ' ')" = 2 ]; }

# The toolkit's stubs and our own replacements do not count.
find_library() {
  local place
  while read -r place; do
    case $place in */stubs/* | "$root/lib/torpor/"*) continue ;; esac
    if [ -e "$place" ] && is_64_bit "$place"; then realpath "$place"; return 0; fi
  done < <(candidates "$1")
  return 1
}

# Leaves them in the folder $libraries, and in $search what native programs need of the loader.
find_libraries() {
  local library place folder
  libraries=$work/nvidia
  search=$libraries
  folders=$(candidate_folders)
  mkdir "$libraries"
  for library in libcuda.so.1 libcudart.so.13 libcublas.so.13 libcublasLt.so.13; do
    place=$(find_library $library) ||
      die "$library is nowhere to be found; name its folder in LD_LIBRARY_PATH. The CUDA 13" \
          "runtime and cuBLAS come with the toolkit or: pip install nvidia-cuda-runtime nvidia-cublas"
    say "gpu_check: $library is $place"
    ln -s "$place" "$libraries/$library"
    folder=$(dirname "$place")
    case $folder in
      # Searched anyway; named here, other libraries in them would go before the bundle's own.
      /lib | /lib64 | /usr/lib | /usr/lib64 | /lib/x86_64-linux-gnu | /usr/lib/x86_64-linux-gnu) ;;
      *) search=$search:$folder ;;
    esac
  done
}

# ---- both sides ---------------------------------------------------------------------------------

if [ -n "$rehearse" ]; then
  rate_per_s=4
  encoder_a='--layers 4 --hidden 256 --seed 1'
  encoder_b='--layers 6 --hidden 384 --seed 2'
  small_pool_mib=72
  printf 'version: v1\ngpus:\n  - memory: 3GiB\n' > "$work/topology.yaml"
  device_settings="emulator_topology: $work/topology.yaml"
  native=("$root/bin/torporctl" run --standalone --topology "$work/topology.yaml" --)
else
  rate_per_s=10
  encoder_a='--layers 6 --hidden 512 --seed 1'
  encoder_b='--layers 12 --hidden 768 --seed 2'
  small_pool_mib=416
  find_libraries
  device_settings="cuda_library_dir: $libraries"
  # env becomes the program, so that the process we stop is the program's own.
  native=(env "LD_LIBRARY_PATH=$search")
fi

# ---- daemons and functions ----------------------------------------------------------------------

started=()
# Asks them to end, and after ten seconds makes them.
stop_all() {
  local pid i
  for pid in "${started[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${started[@]}"; do
    for ((i = 0; i < 100; i++)); do
      kill -0 "$pid" 2> /dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null || true
  done
  started=()
}
finish() {
  local status=$?
  stop_all
  if [ $status = 0 ]; then
    rm -rf "$work"
  else
    if [ -f "$work/torpord.log" ]; then
      say "gpu_check: torpord's last warnings and errors:"
      grep -v 'Z info ' "$work/torpord.log" | tail -n 20 || true
    fi
    say "gpu_check: configuration, logs and outputs are kept in $work"
  fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failures=0
fail() { failures=$((failures + 1)); say "gpu_check: FAILED: $*"; }
seconds_left() { echo $((limit_s > SECONDS ? limit_s - SECONDS : 0)); }

# node_status EXPRESSION: of the daemon's status, a Python value `node`. Fails without a daemon.
node_status() {
  "$root/bin/torporctl" status --socket "$work/admin.sock" --output json 2> /dev/null |
    python3 -c "import json, sys; node = json.load(sys.stdin); print($1)" 2> /dev/null
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# wait_for WHAT PID COMMAND...: until the command succeeds, at most 60 s and while PID runs.
wait_for() {
  local what=$1 pid=$2 i
  shift 2
  for ((i = 0; i < 600; i++)); do
    ! "$@" || return 0
    kill -0 "$pid" 2> /dev/null || die "$what: its process ended"
    sleep 0.1
  done
  die "$what: waited for 60 s in vain"
}

daemon_is_ready() { [ "$(node_status 'node["state"]')" = ready ]; }
listens() { grep -qs 'listening on' "$1"; }

# start_daemon RESERVE NAME:PORT...
start_daemon() {
  local reserve=$1 function
  shift
  {
    printf 'version: v1\nrun_dir: %s\nstate_dir: %s/state\n%s\n' "$work" "$work" "$device_settings"
    printf 'http_address: 127.0.0.1:0\nmetrics_address: ""\ngpus: [0]\ndriver_reserve: %s\nfunctions:\n' "$reserve"
    for function in "$@"; do
      printf '  - name: %s\n    upstream: 127.0.0.1:%s\n    memory_limit: 4GiB\n' "${function%:*}" "${function#*:}"
      printf '    deadline: 1s\n    upstream_timeout: 60s\n    token_file: %s/%s.token\n' "$work" "${function%:*}"
      (umask 077 && head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/${function%:*}.token")
    done
  } > "$work/torpord.yaml"
  LD_LIBRARY_PATH=${search:-} "$root/bin/torpord" --config-file "$work/torpord.yaml" >> "$work/torpord.log" 2>&1 &
  started+=($!)
  wait_for 'torpord to be ready' $! daemon_is_ready
}

# start_function LOG COMMAND...: returns when it listens.
start_function() {
  local log=$1
  shift
  : > "$log"  # here, not by the process to come: an older function's word would count as its own
  "$@" >> "$log" 2>&1 &
  started+=($!)
  wait_for "$* to listen (its output is in $log)" $! listens "$log"
}

# ---- CUDA programs ------------------------------------------------------------------------------

# best_ms SIDE COMMAND...: the least time of some runs, in ms; what the last one said and its
# status are left in $work/SIDE.out, .err and .status. The first failure ends the runs.
best_ms() {
  local side=$1 best=-1 i begin took seconds
  shift
  for ((i = 0; i < rounds; i++)); do
    seconds=$(seconds_left)
    begin=$(date +%s%N)
    echo 0 > "$work/$side.status"
    timeout -k 5 $((seconds < 60 ? seconds + 1 : 60)) "$@" > "$work/$side.out" 2> "$work/$side.err" ||
      { echo $? > "$work/$side.status"; i=$rounds; }
    took=$((($(date +%s%N) - begin) / 1000000))
    if [ $best -lt 0 ] || [ $took -lt $best ]; then best=$took; fi
  done
  echo $best
}

check_program() {
  local program=$1 name native_ms remoted_ms verdict
  name=$(basename "$program")
  native_ms=$(best_ms native "${native[@]}" "$program")
  remoted_ms=$(best_ms remoted "${remoted[@]}" "$program")
  if ! cmp -s "$work/native.status" "$work/remoted.status"; then verdict='FAILED: other exit status'
  elif [ "$(cat "$work/native.status")" != 0 ]; then verdict='FAILED natively too'
  elif ! cmp -s "$work/native.out" "$work/remoted.out"; then verdict='FAILED: other output'
  else verdict=same; fi
  printf '%-28s %12s %12s  %s\n' "$name" "$native_ms" "$remoted_ms" "$verdict"
  if [ "$verdict" != same ]; then
    fail "$name: exit status $(cat "$work/native.status") natively," \
         "$(cat "$work/remoted.status") through Torpor (124: out of time); what each said last:"
    tail -v -n 3 "$work"/{native,remoted}.{out,err}
  fi
}

check_programs() {
  local program
  start_daemon 2GiB program:0
  remoted=("$root/bin/torporctl" --config-file "$work/torpord.yaml" run --function program --)
  pool_mib=$(node_status 'node["gpus"][0]["pool_bytes"] >> 20')
  say "gpu_check: $(node_status 'node["gpus"][0]["name"]'), a pool of $pool_mib MiB"
  printf '\n%-28s %12s %12s  %s\n' 'CUDA program' 'native ms' 'remoted ms' 'result'
  for program in "$programs"/*; do
    if [ "$(seconds_left)" = 0 ]; then fail "out of time before $program; raise LIMIT_S"; break; fi
    check_program "$program"
  done
  stop_all
}

# ---- example functions --------------------------------------------------------------------------

names=(digits encoder-a encoder-b)
program_of() { echo "$examples/${1%%-*}"; }
flags_of() {
  case $1 in
    encoder-a) echo "$encoder_a" ;;
    encoder-b) echo "$encoder_b" ;;
    *) echo ;;
  esac
}
path_of() { case $1 in digits) echo predict ;; *) echo encode ;; esac; }

write_workload() {  # file, then NAME=URL...
  local file=$1 entry name
  shift
  {
    printf 'version: v1\narrivals: poisson\nduration_s: %s\nwarm_up_s: 2\ntimeout_s: 30\nfunctions:\n' "$duration_s"
    for entry in "$@"; do
      name=${entry%%=*}
      printf '  - {name: %s, url: "%s", rate_per_s: %s, objective_ms: 200, expected: %s/%s.jsonl}\n' \
        "$name" "${entry#*=}" $rate_per_s "$work" "$name"
    done
  } > "$file"
}

# load SIDE NAME=URL...: the report lands in $work/SIDE.json.
load() {
  local side=$1
  shift
  write_workload "$work/$side.yaml" "$@"
  "$root/bin/torpor-loadgen" "$work/$side.yaml" --json "$work/$side.json" --quiet \
    > "$work/$side.txt" 2> "$work/$side.err" ||
    { cat "$work/$side.txt" "$work/$side.err"; fail "the example functions, $side"; }
}

load_native() {
  local name flags port entries=()
  for name in "${names[@]}"; do
    read -ra flags <<< "$(flags_of "$name")"
    "$(program_of "$name")-reference" --write-expected "$work/$name.jsonl" --count 4 "${flags[@]}"
    start_function "$work/$name.log" "${native[@]}" "$(program_of "$name")" "${flags[@]}"
    port=$(sed -n 's/^listening on .*://p' "$work/$name.log")
    entries+=("$name=http://127.0.0.1:$port/$(path_of "$name")")
  done
  load native "${entries[@]}"
  stop_all
}

# The pool holds the largest function, but not both encoders, so that they are swapped.
load_remoted() {
  local name flags entry address functions=() entries=()
  for name in "${names[@]}"; do functions+=("$name:$(free_port)"); done
  start_daemon $((pool_mib + 2048 - small_pool_mib))MiB "${functions[@]}"
  address=$(node_status 'node["http_address"]')
  for entry in "${functions[@]}"; do
    name=${entry%:*}
    read -ra flags <<< "$(flags_of "$name")"
    start_function "$work/$name.log" "$root/bin/torporctl" --config-file "$work/torpord.yaml" run \
      --function "$name" -- "$(program_of "$name")" --port "${entry#*:}" "${flags[@]}"
    entries+=("$name=http://$address/function/$name/$(path_of "$name")")
  done
  load remoted "${entries[@]}"
  stop_all
}

show_loads() {
  python3 - "$work" << 'P'
import json, sys
native, remoted = (json.load(open(f"{sys.argv[1]}/{side}.json")) for side in ("native", "remoted"))
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

check_programs
say ""
say "gpu_check: the example functions: $duration_s s of load natively, then the same through torpord," \
    "from a pool that cannot hold them all"
load_native
load_remoted
show_loads
[ $failures = 0 ] || die "$failures failures"
say "gpu_check: everything is the same natively and through Torpor; took $SECONDS s"
