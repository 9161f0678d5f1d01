"""PyTorch, where it is installed: a product, and ResNet-152 before and after it was evicted."""

import json
import os
import pathlib
import queue
import subprocess
import threading

from daemon import Daemon
from libraries import pythons
from setting import CheckError

SCRIPT = pathlib.Path(__file__).resolve().parent / "pytorch_function.py"
IMAGE_EDGE, REHEARSED_EDGE = "224", "32"
ANSWER_PATIENCE_S = 180
LOGIT_TOLERANCE = 1e-3  # of the largest; two runs of cuDNN may choose different algorithms
PRODUCT_TOLERANCE = 0.1  # TF32


def find_python(rehearse):
    """An interpreter with PyTorch for CUDA 13, or None."""
    names = pythons()
    if rehearse:
        names = [os.path.expanduser("~/.cache/torpor/venv/bin/python"), *names]
    for name in names:
        look = [name, "-c", "import torch; print(torch.version.cuda)"]
        try:
            found = subprocess.run(look, capture_output=True, text=True, check=False, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0 and found.stdout.startswith("13."):
            return name
    return None


class Program:
    """pytorch_function.py, asked line by line."""

    def __init__(self, setting, command):
        self.setting = setting
        self.errors = open(setting.work / "pytorch.log", "ab")
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=setting.environment())
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self):
        try:
            line = self.lines.get(timeout=self.setting.patience(ANSWER_PATIENCE_S))
        except queue.Empty:
            raise CheckError("PyTorch did not answer in time") from None
        if line is None:
            log = (self.setting.work / "pytorch.log").read_text(errors="replace")
            raise CheckError(f"PyTorch ended: {log.strip()[-400:]}")
        return json.loads(line)

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.answer()


def _difference(logits, expected):
    largest = max(abs(value) for value in expected)
    return max(abs(a - b) for a, b in zip(logits, expected)) / largest


def run(setting, results):
    python = find_python(setting.rehearse)
    if python is None:
        results.skip("no Python here has PyTorch for CUDA 13; TORPOR_PYTHON names one")
        return
    # PyTorch's wheels have machine code that the emulator runs only for 7.5.
    topology = (setting.write_topology("h200-pytorch", capability="7.5")
                if setting.rehearse else None)
    command = [python, "-B", SCRIPT, REHEARSED_EDGE if setting.rehearse else IMAGE_EDGE]
    expected = None
    try:
        with Program(setting, setting.native(command, topology)) as program:
            results.note(f"natively: {program.answer()}")
            expected = _ask_both(results, "pytorch/native", program)
    except CheckError as error:
        results.note(f"fails natively too: {error}")
    try:
        with Daemon(setting, ("torch",), topology, pool_bytes="2GiB") as daemon:
            with Program(setting, daemon.remoted(command, "torch")) as program:
                results.note(f"through Torpor: {program.answer()}")
                _judge(results, program, daemon, expected)
    except CheckError as error:
        if expected is None:
            results.note(f"and through Torpor: {error}")
        else:
            results.fail(str(error))


def _ask_both(results, prefix, program):
    """A product and two inferences; the logits."""
    error = program.ask("product")["error"]
    results.show(results.add(f"{prefix}/product, error", [error], "absolute"))
    program.ask("infer")
    answer = program.ask("infer")
    results.show(results.add(f"{prefix}/ResNet-152", [answer["ms"]], "ms"))
    return answer["logits"]


def _judge(results, program, daemon, expected):
    logits = _ask_both(results, "pytorch/remoted", program)
    if expected is not None:
        difference = _difference(logits, expected)
        results.show(results.add("pytorch/logits against native", [difference], "relative"))
        if difference > LOGIT_TOLERANCE:
            results.fail(f"ResNet-152's logits differ from the native ones by {difference:.2g}")
    before, _ = daemon.swaps().get(("in", "pcie"), (0, 0.0))
    for round_number in (1, 2):
        # The lease of the last call ends a moment after its result is there.
        daemon.wait(lambda: daemon.torporctl("evict", "torch").status == 0, "torch to be evicted")
        delay = program.ask("first")["ms"]
        results.show(results.add(f"pytorch/first kernel after eviction {round_number}", [delay],
                                 "ms"))
        answer = program.ask("infer")
        results.show(results.add(f"pytorch/ResNet-152 after eviction {round_number}",
                                 [answer["ms"]], "ms"))
        difference = _difference(answer["logits"], logits)
        if difference > LOGIT_TOLERANCE:
            results.fail(f"after eviction {round_number} the logits differ by {difference:.2g}")
    count, mean_ms = daemon.swaps().get(("in", "pcie"), (0, 0.0))
    results.show(results.add("pytorch/swaps", [count - before], "count"))
    results.show(results.add("pytorch/a swap", [mean_ms], "ms"))
    if count == before:
        results.fail("PyTorch's function was evicted, but nothing was swapped in")
