#!/usr/bin/env python3
"""What a function that has imported torch takes: time to its first inference, and memory.

Starts, some times each, a process that does no more than import torch, and the server of
examples/pytorch, on the CPU, as PyTorch does by itself, and through Torpor, and prints medians as
JSON. Run it under a daemon of its own:

    build/bin/torporctl run --standalone -- PYTHON bench/pytorch/first_inference.py --output FILE

`--adopted` names a virtual environment that docker/adopt_torpor.sh has changed; it is then measured
without preloading. Wants a machine that does nothing else.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

SERVER = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch/embedding_server.py"
IMPORT = "import torch, sys; print('imported', flush=True); sys.stdin.read()"
SUMS = {"rss_mib": "Rss:", "pss_mib": "Pss:", "private_mib": "Private_Dirty:"}


def programs(device):
    """Each says a line when it has come to where it is measured, and lives on. The server has
    answered once, itself, when it listens."""
    return {"imported": ["-c", IMPORT], "first_inference": ["-B", SERVER, "--device", device]}


def memory_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    return {name: fields[field] / 1024 for name, field in SUMS.items()}


def run(command, environment):
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if not process.stdout.readline():
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.wait()}")
    measured = {"s": time.monotonic() - begin, **memory_of(process.pid)}
    process.kill()
    process.wait()
    return measured


def measure(python, device, environment, repeats):
    figures = {}
    for point, arguments in programs(device).items():
        command = [python, *arguments]
        run(command, environment)  # files come into memory, kernels are translated
        runs = [run(command, environment) for _ in range(repeats)]
        figures[point] = {name: round(statistics.median(one[name] for one in runs), 2)
                          for name in runs[0]}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--adopted", type=pathlib.Path, metavar="VENV")
    parser.add_argument("--output", type=pathlib.Path, help="default: stdout")
    arguments = parser.parse_args()
    if "TORPOR_SOCKET" not in os.environ:
        parser.error("run it by `torporctl run --standalone -- ...`")
    plain = {name: value for name, value in os.environ.items()
             if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    figures = {"processors": os.cpu_count(), "load": os.getloadavg()[0],
               "cpu": measure(sys.executable, "cpu", plain, arguments.repeats),
               "preloaded": measure(sys.executable, "cuda", os.environ, arguments.repeats)}
    if arguments.adopted:
        figures["adopted"] = measure(arguments.adopted / "bin/python", "cuda", plain,
                                     arguments.repeats)
    text = json.dumps(figures, indent=2) + "\n"
    if arguments.output:
        arguments.output.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
