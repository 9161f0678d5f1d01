#!/usr/bin/env python3
"""Checks Torpor on the GPU of this machine, in steps, and writes down what it finds.

Without an NVIDIA GPU it says that it skipped everything. NVIDIA's libraries are looked for in
LD_LIBRARY_PATH, the loader's cache, CUDA toolkits, driver folders and the nvidia/*/lib folders of
Python environments. Root is not needed; python3 is.

Three calls of ten minutes: --steps machine,probe,executor,programs; then --steps
swap,arrival,benchmarks,pytorch; then --steps conformance. OUTPUT (or --output) names a folder for the
results, which the calls share.

Exit status: 0, nothing differs from what programs do natively, or there is no NVIDIA GPU; 1,
something differed or failed; 2, wrong usage.
"""

import argparse
import os
import pathlib
import shutil
import signal
import sys
import time

import results as records
import step_arrival
import step_benchmarks
import step_conformance
import step_executor
import step_faults
import step_machine
import step_probe
import step_programs
import step_pytorch
import step_swap
from libraries import NotFound
from setting import CheckError, Setting

HERE = pathlib.Path(__file__).resolve().parent
# In the order in which a machine is to be got to know.
STEPS = {"machine": step_machine.run, "probe": step_probe.run, "executor": step_executor.run,
         "programs": step_programs.run, "swap": step_swap.run,
         "arrival": step_arrival.run, "benchmarks": step_benchmarks.run, "pytorch": step_pytorch.run,
         "faults": step_faults.run, "conformance": step_conformance.run}
REHEARSAL_ONLY = ("faults",)
# The conformance programs run on the emulator in other tests, too.
NOT_REHEARSED = ("conformance",)
LOGS = ("machine.txt", "torpord.log", "programs.log")


def parse():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path,
                        help="a build folder; default: the bundle, or ../build")
    parser.add_argument("--rehearse", action="store_true",
                        help="on the emulated H200, strict and with the costs of its calls, with "
                        "faults injected; needs no GPU")
    parser.add_argument("--steps", default=None, help=f"of {','.join(STEPS)}; default: all")
    parser.add_argument("--limit", type=float, default=540, metavar="SECONDS",
                        help="after which steps end and what has not run has failed (540)")
    parser.add_argument("--duration", type=int, default=int(os.environ.get("DURATION_S", "8")),
                        metavar="SECONDS", help="of each load (8)")
    parser.add_argument("--output", type=pathlib.Path, default=os.environ.get("OUTPUT") or
                        os.environ.get("OUT"), help="folder for results and logs")
    arguments = parser.parse_args()
    arguments.steps = choose(parser, arguments)
    return arguments


def choose(parser, arguments):
    if arguments.steps is None:
        left_out = NOT_REHEARSED if arguments.rehearse else REHEARSAL_ONLY
        return [step for step in STEPS if step not in left_out]
    chosen = arguments.steps.split(",")
    for step in chosen:
        if step not in STEPS:
            parser.error(f"no step {step}; there are {', '.join(STEPS)}")
        if step in REHEARSAL_ONLY and not arguments.rehearse:
            parser.error(f"step {step} is for --rehearse only")
    return [step for step in STEPS if step in chosen]


def root_of(arguments):
    """The build or the bundle; ends where there is none."""
    root = arguments.build or (HERE.parent if (HERE.parent / "bin/torpord").exists()
                               else HERE.parents[1] / "build")
    if not (root / "bin/torpord").exists():
        sys.exit(f"gpu_check: no bin/torpord in {root}; build first (make)")
    return root.resolve()


def reference(rehearse):
    """What the emulated H200 has given for the same; a rehearsal is itself that."""
    if rehearse:
        return {}
    for file in (HERE / "emulated_h200.json",
                 HERE.parents[1] / "bench/results/gpu_check_h200.json"):
        if file.exists():
            return records.read_reference(file)
    return {}


def run_steps(arguments, setting, results):
    for name in arguments.steps:
        results.begin(name)
        try:
            STEPS[name](setting, results)
        except CheckError as error:
            results.fail(str(error))
        except Exception as error:  # pylint: disable=broad-except
            # What a step did not expect must not keep the others from running.
            results.fail(f"{type(error).__name__}: {error}")
        results.end()
        if arguments.output:  # whatever happens later
            results.write(arguments.output, arguments.rehearse, {})


def summarize(results, setting, begun):
    results.say("\n== summary")
    for step in results.steps:
        results.say(f"{step['step']:<12} {step['result']:<8} {step['seconds']:>6} s")
    failures = results.failures()
    for failure in failures:
        results.say(f"FAILED: {failure}")
    what = f"{len(failures)} failures" if failures else "everything is well"
    results.say(f"gpu_check: {what}; took {time.monotonic() - begun:.0f} s")
    if failures:
        results.say(f"gpu_check: logs are kept in {setting.work}")
    return bool(failures)


def main():
    begun = time.monotonic()
    arguments = parse()
    if not arguments.rehearse and not os.path.exists("/dev/nvidiactl"):
        print("gpu_check: SKIPPED: this machine has no NVIDIA GPU (no /dev/nvidiactl)")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that daemons are stopped
    try:
        setting = Setting(root_of(arguments), arguments.rehearse, arguments.limit)
    except NotFound as error:
        print(f"gpu_check: {error}")
        return 1
    setting.duration_s = arguments.duration
    results = records.Results(reference(arguments.rehearse), setting.time_scale)
    failed = True
    try:
        run_steps(arguments, setting, results)
        failed = summarize(results, setting, begun)
    finally:
        if arguments.output:
            results.write(arguments.output, arguments.rehearse,
                          {name: setting.work / name for name in LOGS})
        if not failed:
            shutil.rmtree(setting.work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
