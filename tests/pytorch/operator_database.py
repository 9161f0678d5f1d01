#!/usr/bin/env python3
"""How many of PyTorch's operators give on the GPU what they give on the CPU.

PyTorch describes its operators for its own device-generic tests, with sample inputs of each
(`op_db`, which the wheel contains). This runs them as its TestCommon.test_compare_cpu does: the same
samples on both devices, equal within 1e-3. An operator passes if all of its samples do. What PyTorch
itself skips or expects to fail there is not counted.

    operator_database.py --build-dir build [--names add,conv2d] [--samples 4] [--json FILE]

starts programs under `torporctl run --standalone` until all operators have been tried: one that ends
a program, or takes too long, is counted as failed, and the next program goes on behind it. Takes
about half an hour. Needs PyTorch's test requirements beside the wheel: pip install expecttest.
"""

import argparse
import collections
import json
import os
import selectors
import subprocess
import sys
import time

VENV = os.environ.get("TORPOR_PYTORCH_VENV", os.path.expanduser("~/.cache/torpor/venv"))
SECONDS_FOR_ONE = 180


# In the program that has the GPU.

def type_of(op):
    """That of test_compare_cpu (any_common_cpu_cuda_one): one that both devices have."""
    import torch
    both = op.supported_dtypes("cpu") & op.supported_dtypes("cuda")
    order = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.int32, torch.bool)
    return next((dtype for dtype in order if dtype in both), None)


def is_skipped(op, dtype):
    for decorator in op.decorators:
        applies = getattr(decorator, "is_active", None)
        if applies is None or not applies("TestCommon", "test_compare_cpu", "cuda", dtype, {}):
            continue
        words = [str(getattr(each, "__qualname__", each)) for each in decorator.decorators]
        if any("skip" in word.lower() or "expectedFailure" in word for word in words):
            return True
    return False


def on_gpu(value):
    import torch
    return value.detach().to("cuda") if isinstance(value, torch.Tensor) else value


def compare(op, dtype, most_samples):
    import itertools
    import torch
    from torch.testing._internal.common_utils import set_rng_seed
    set_rng_seed(42)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype), most_samples):
        moved = sample.transform(on_gpu)
        expected = op(sample.input, *sample.args, **sample.kwargs)
        actual = op(moved.input, *moved.args, **moved.kwargs)
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3, equal_nan=True,
                                   check_device=False)
    torch.cuda.synchronize()


def outcome_of(op, most_samples):
    dtype = type_of(op)
    if dtype is None or is_skipped(op, dtype):
        return "skipped", ""
    try:
        compare(op, dtype, most_samples)
        return "passed", ""
    except Exception as error:  # whatever an operator may raise
        return "failed", f"{type(error).__name__}: {error}"[:500]


def works():
    """Whether the context has outlived an operator's failure."""
    import torch
    try:
        return torch.ones(2, device="cuda").sum().item() == 2
    except RuntimeError:
        return False


def run_operators(names, most_samples):
    """Writes a line when an operator begins and one when it has ended."""
    import warnings
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
    by_name = {full_name(op): op for op in op_db}
    for name in names:
        print(json.dumps(dict(begins=name)), flush=True)
        outcome, why = outcome_of(by_name[name], most_samples)
        print(json.dumps(dict(ends=name, outcome=outcome, why=why)), flush=True)
        if outcome == "failed" and not works():
            return


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def list_operators():
    from torch.testing._internal.common_methods_invocations import op_db
    print(json.dumps([full_name(op) for op in op_db]))


# In the one that looks on.

def python(*arguments):
    return [f"{VENV}/bin/python", "-B", os.path.abspath(__file__), *arguments]


class Lines:
    """A program's lines of JSON; None once it has ended or said nothing for too long."""

    def __init__(self, command, text):
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.program.stdin.write(text.encode())
        self.program.stdin.close()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.program.stdout, selectors.EVENT_READ)
        self.text = b""

    def next(self):
        deadline = time.monotonic() + SECONDS_FOR_ONE
        while b"\n" not in self.text:
            if not self.selector.select(max(0, deadline - time.monotonic())):
                return None
            read = os.read(self.program.stdout.fileno(), 1 << 16)
            if not read:
                return None
            self.text += read
        line, _, self.text = self.text.partition(b"\n")
        return json.loads(line) if line.startswith(b"{") else {}

    def end(self):
        self.program.terminate()
        return self.program.wait()


def run_some(options, names):
    """Outcomes of the first of `names`: at least one."""
    command = [f"{options.build_dir}/bin/torporctl", "run", "--standalone", "--",
               *python("--operators", "--samples", str(options.samples))]
    lines = Lines(command, json.dumps(names))
    outcomes, running = {}, None
    while (line := lines.next()) is not None:
        running = line.get("begins", running)
        if "ends" in line:
            outcomes[line["ends"]] = (line["outcome"], line["why"])
            running = None
            print(f"{len(outcomes):4} {line['outcome']:8}{line['ends']}  {line['why'][:100]!r}",
                  file=sys.stderr, flush=True)
    status = lines.end()
    if running or not outcomes:
        name = running or names[0]
        outcomes[name] = ("failed", f"ended the program, or took {SECONDS_FOR_ONE} s ({status})")
        print(f"{len(outcomes):4} failed  {name}  {outcomes[name][1]}", file=sys.stderr, flush=True)
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--names", help="only these, with commas between them")
    parser.add_argument("--samples", type=int, default=4, help="of an operator at most (4)")
    parser.add_argument("--json", help="file for every operator's outcome")
    parser.add_argument("--operators", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="name the operators, and end")
    options = parser.parse_args()
    if options.operators:
        return run_operators(json.load(sys.stdin), options.samples)
    if options.list:
        return list_operators()
    listed = subprocess.run(python("--list"), check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    names = options.names.split(",") if options.names else json.loads(listed.stdout)
    outcomes = {}
    while remaining := [name for name in names if name not in outcomes]:
        outcomes.update(run_some(options, remaining))
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    tried = counts["passed"] + counts["failed"]
    print(f"{counts['passed']} of {tried} operators agree with the CPU; {counts['skipped']} that"
          " PyTorch skips")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=1)


if __name__ == "__main__":
    main()
