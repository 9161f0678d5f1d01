#!/usr/bin/env python3
"""How many of PyTorch's operators and modules give on the GPU what they give on the CPU.

PyTorch describes them for its own device-generic tests, with sample inputs of each (`op_db` and
`module_db`, which the wheel contains). This runs them as its TestCommon.test_compare_cpu and
TestModule.test_cpu_gpu_parity do: the same samples on both devices, forward, equal within 1e-3. One
passes if all of its samples do. What PyTorch itself skips or expects to fail there, and what it has for
GPUs only, is left out.

    device_generic.py --build-dir build [--names add,module:nn.Conv2d] [--samples 4] [--json FILE]

starts programs under `torporctl run --standalone` until all have been tried: one that ends a program,
or takes too long, has failed, and the next program goes on behind it. Takes about half an hour. Needs PyTorch's test requirements beside the wheel: pip install expecttest.
"""

import argparse
import collections
import copy
import itertools
import json
import os
import selectors
import subprocess
import sys
import time
import warnings

VENV = os.environ.get("TORPOR_PYTORCH_VENV", os.path.expanduser("~/.cache/torpor/venv"))
SECONDS_FOR_ONE = 180


# In the program that has the GPU.

def type_of(op):
    """That of test_compare_cpu (any_common_cpu_cuda_one): one that both devices have."""
    import torch
    both = op.supported_dtypes("cpu") & op.supported_dtypes("cuda")
    order = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.int32, torch.bool)
    return next((dtype for dtype in order if dtype in both), None)


def is_skipped(described, test_class, test, dtype):
    for decorator in described.decorators:
        applies = getattr(decorator, "is_active", None)
        if applies is None or not applies(test_class, test, "cuda", dtype, {}):
            continue
        words = [str(getattr(each, "__qualname__", each)) for each in decorator.decorators]
        if any("skip" in word.lower() or "expectedFailure" in word for word in words):
            return True
    return False


def on(device, value):
    import torch
    return value.detach().to(device) if isinstance(value, torch.Tensor) else value


def on_cpu(value):
    return on("cpu", value)


def expect_equal(actual, expected):
    import torch
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3, equal_nan=True,
                               check_device=False)


class Operator:
    """An OpInfo of PyTorch's."""

    def __init__(self, described):
        self.described = described
        self.dtype = type_of(described)
        variant = described.variant_test_name
        self.name = described.name + ("." + variant if variant else "")

    def is_skipped(self):
        is_for_gpus_only = self.name.startswith("jiterator")
        return self.dtype is None or is_for_gpus_only or is_skipped(
            self.described, "TestCommon", "test_compare_cpu", self.dtype)

    def compare(self, max_samples):
        op = self.described
        for sample in itertools.islice(op.sample_inputs("cuda", self.dtype), max_samples):
            moved = sample.transform(on_cpu)
            expected = op(moved.input, *moved.args, **moved.kwargs)
            expect_equal(op(sample.input, *sample.args, **sample.kwargs), expected)


class Module:
    """A ModuleInfo of PyTorch's."""

    def __init__(self, described):
        import torch
        self.described = described
        self.dtype = torch.float32
        self.name = "module:" + described.name

    def is_skipped(self):
        return self.dtype not in self.described.dtypes or is_skipped(
            self.described, "TestModule", "test_cpu_gpu_parity", self.dtype)

    def compare(self, max_samples):
        info = self.described
        inputs = info.module_inputs_func(info, device="cpu", dtype=self.dtype, requires_grad=False,
                                         training=False)
        with_forward = (each for each in inputs if each.forward_input is not None)
        for sample in itertools.islice(with_forward, max_samples):
            made, given = sample.constructor_input, sample.forward_input
            module = info.module_cls(*made.args, **made.kwargs).eval()
            expected = module(*given.args, **given.kwargs)
            moved = copy.deepcopy(module).to("cuda")
            args, kwargs = tree_map(lambda value: on("cuda", value), (given.args, given.kwargs))
            expect_equal(moved(*args, **kwargs), expected)


def tree_map(function, values):
    from torch.utils import _pytree
    return _pytree.tree_map(function, values)


def outcome_of(case, max_samples):
    import torch
    from torch.testing._internal.common_utils import set_rng_seed
    if case.is_skipped():
        return "skipped", ""
    set_rng_seed(42)
    try:
        with torch.no_grad():
            case.compare(max_samples)
        torch.cuda.synchronize()
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


def cases():
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db
    return [Operator(each) for each in op_db] + [Module(each) for each in module_db]


def run_cases(names, max_samples):
    """Writes a line when a case begins and one when it has ended."""
    warnings.simplefilter("ignore")
    by_name = {case.name: case for case in cases()}
    for name in names:
        print(json.dumps(dict(begins=name)), flush=True)
        outcome, why = outcome_of(by_name[name], max_samples)
        print(json.dumps(dict(ends=name, outcome=outcome, why=why)), flush=True)
        if outcome == "failed" and not works():
            return


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
               *python("--run", "--samples", str(options.samples))]
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
    parser.add_argument("--samples", type=int, default=4, help="of each at most (4)")
    parser.add_argument("--json", help="file for all outcomes")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="name them, and end")
    options = parser.parse_args()
    if options.run:
        return run_cases(json.load(sys.stdin), options.samples)
    if options.list:
        return print(json.dumps([case.name for case in cases()]))
    listed = subprocess.run(python("--list"), check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    names = options.names.split(",") if options.names else json.loads(listed.stdout)
    outcomes = {}
    while remaining := [name for name in names if name not in outcomes]:
        outcomes.update(run_some(options, remaining))
    for kind, is_one in (("operators", lambda name: not name.startswith("module:")),
                         ("modules", lambda name: name.startswith("module:"))):
        counts = collections.Counter(outcomes[name][0] for name in outcomes if is_one(name))
        tried = counts["passed"] + counts["failed"]
        print(f"{counts['passed']} of {tried} {kind} agree with the CPU; {counts['skipped']} left"
              " out")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=1)


if __name__ == "__main__":
    main()
