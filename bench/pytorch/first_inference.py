#!/usr/bin/env python3
"""What a function that has imported torch takes: time to its first inference, and memory.

Starts examples/pytorch's server some times on the CPU, as PyTorch does by itself, and through Torpor,
and prints medians as JSON. Run it under a daemon of its own:

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
SUMS = {"rss_mib": "Rss:", "pss_mib": "Pss:", "private_mib": "Private_Dirty:"}


def start(python, device, environment):
    """The server has answered once, itself, when it listens."""
    begin = time.monotonic()
    process = subprocess.Popen([python, "-B", SERVER, "--device", device], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if "listening on" not in process.stdout.readline():
        raise RuntimeError(f"{python} {SERVER} --device {device} ended with {process.wait()}")
    return process, time.monotonic() - begin


def memory_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    return {name: round(fields[field] / 1024, 1) for name, field in SUMS.items()}


def measure(python, device, environment, repeats):
    runs = []
    start(python, device, environment)[0].kill()  # files come into memory, kernels are translated
    for _ in range(repeats):
        process, seconds = start(python, device, environment)
        runs.append({"first_inference_s": seconds, **memory_of(process.pid)})
        process.kill()
        process.wait()
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


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
