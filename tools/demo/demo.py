#!/usr/bin/env python3
"""Serves a dozen inference functions on two emulated GPUs that cannot hold them all.

Starts torpord, one process for each function (by `torporctl run`, as a container would run it),
and torpor-loadgen, which checks every answer against a CPU reference. Ends with a table and
OUTPUT/report.json; status 0 if there was no error and no wrong answer. Whatever was started is
stopped again, also after a failure or Ctrl-C.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Two GPUs with an NVLink, which together hold about a third of the models.
TOPOLOGY = "demo-2gpu"

START_PATIENCE_S = 40
STOP_PATIENCE_S = 8
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoError(Exception):
    """What went wrong, for people."""


@dataclasses.dataclass
class Function:
    name: str
    program: str
    flags: list[str]
    path: str
    rate_per_s: float
    objective_ms: int
    memory_limit: str
    port: int = 0


def encoder(name, layers, hidden, seed, rate_per_s):
    flags = [f"--layers={layers}", f"--hidden={hidden}", f"--seed={seed}"]
    flags = [part for flag in flags for part in flag.split("=")]
    return Function(name, "encoder", flags, "encode", rate_per_s, 1000, "128MiB")


def digits(name, rate_per_s):
    return Function(name, "digits", [], "predict", rate_per_s, 500, "32MiB")


FUNCTIONS = (
    [encoder(f"encoder-small-{i}", 4, 256, i, 1.5) for i in range(1, 4)]
    + [encoder(f"encoder-large-{i}", 6, 384, 10 + i, 1.0) for i in range(1, 5)]
    + [digits(f"digits-{i}", 1.5) for i in range(1, 6)]
)


def free_ports(count):
    """Ports that are free now; the functions' upstreams must be known before they start."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Processes:
    """What the demo has started; stopped in the reverse order."""

    def __init__(self, log_folder):
        self.log_folder = log_folder
        self.started = []

    def start(self, name, command):
        with open(self.log(name), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        self.started.append((name, process))
        return process

    def log(self, name):
        return self.log_folder / f"{name}.log"

    def require_running(self):
        for name, process in self.started:
            if process.poll() is not None:
                raise DemoError(f"{name} ended with status {process.returncode}; "
                                f"the end of {self.log(name)}:\n{tail(self.log(name))}")

    def stop(self):
        for _, process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def tail(path, lines=25):
    text = path.read_text(errors="replace").splitlines() if path.exists() else []
    return "\n".join("  " + line for line in text[-lines:])


class Demo:
    def __init__(self, build, output, duration_s, seed):
        self.bin = build / "bin"
        self.output = output
        self.duration_s = duration_s
        self.seed = seed
        # Paths of Unix sockets are short, and the build folder's need not be.
        self.run_folder = pathlib.Path(tempfile.mkdtemp(prefix="torpor-demo-"))
        self.processes = Processes(output / "logs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # stopping takes its time, and all of it
        self.processes.stop()
        shutil.rmtree(self.run_folder, ignore_errors=True)

    def run(self):
        self.say(f"starting torpord on the emulated node {TOPOLOGY}, and {len(FUNCTIONS)} functions; "
                 f"logs in {self.output}/logs")
        for function, port in zip(FUNCTIONS, free_ports(len(FUNCTIONS))):
            function.port = port
        self.write_configuration()
        self.processes.start("torpord", [self.bin / "torpord", "--config-file",
                                         self.output / "torpord.yaml"])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [pool.submit(self.write_expected, function) for function in FUNCTIONS]
            status = self.wait_for_daemon()
            self.start_functions()
            for answer in answers:
                answer.result()
        self.say(f"all are up, with {self.torporctl('status')['host_image_bytes'] >> 20} MiB of "
                 f"models: they take turns on {len(status['gpus'])} GPUs of "
                 f"{status['gpus'][0]['pool_bytes'] >> 20} MiB")
        self.say(f"{self.duration_s:g} s of requests through http://{status['http_address']}; "
                 "every answer is checked")
        return self.load(status["http_address"])

    def say(self, text):
        print(f"demo: {text}", flush=True)

    def write_configuration(self):
        lines = ["version: v1", f"run_dir: {self.run_folder}", f"state_dir: {self.run_folder}/state",
                 "http_address: 127.0.0.1:0", "metrics_address: 127.0.0.1:0",
                 f"emulator_topology: {TOPOLOGY}", "driver_reserve: 8MiB", "pool_bytes: 104MiB",
                 "functions:"]
        for function in FUNCTIONS:
            token = self.run_folder / f"{function.name}.token"
            token.touch(0o600)
            token.write_text(secrets.token_hex(16) + "\n")
            lines += [f"  - name: {function.name}", f"    upstream: 127.0.0.1:{function.port}",
                      f"    memory_limit: {function.memory_limit}",
                      f"    deadline: {function.objective_ms}ms", "    upstream_timeout: 30s",
                      f"    token_file: {token}"]
        (self.output / "torpord.yaml").write_text("\n".join(lines) + "\n")

    def wait_for_daemon(self):
        def ready():
            status = self.torporctl("status")
            return status if status and status["state"] == "ready" else None
        return self.wait_until(ready, "torpord to be ready")

    def torporctl(self, command):
        result = subprocess.run(
            [self.bin / "torporctl", command, "--output", "json", "--socket",
             self.run_folder / "admin" / "admin.sock"], capture_output=True, text=True, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def start_functions(self):
        for function in FUNCTIONS:
            self.processes.start(function.name, [
                self.bin / "torporctl", "--config-file", self.output / "torpord.yaml", "run",
                "--function", function.name, "--", self.bin / "examples" / function.program,
                "--port", str(function.port), *function.flags])
        waiting = list(FUNCTIONS)

        def all_listen():
            waiting[:] = [function for function in waiting if "listening on" not in
                          self.processes.log(function.name).read_text(errors="replace")]
            return not waiting
        self.wait_until(all_listen, "the functions to listen")

    def wait_until(self, condition, what):
        give_up = time.monotonic() + START_PATIENCE_S
        while not (result := condition()):
            self.processes.require_running()
            if time.monotonic() > give_up:
                raise DemoError(f"waited {START_PATIENCE_S} s in vain for {what}; the end of "
                                f"torpord's log:\n{tail(self.processes.log('torpord'))}")
            time.sleep(0.05)
        return result

    def write_expected(self, function):
        program = self.bin / "examples" / f"{function.program}-reference"
        subprocess.run([program, "--write-expected", self.output / f"{function.name}.jsonl",
                        *function.flags], check=True)

    def load(self, http_address):
        lines = ["version: v1", f"target: {http_address}", "arrivals: poisson",
                 f"seed: {self.seed}", f"duration_s: {self.duration_s:g}", "warm_up_s: 2",
                 "timeout_s: 30", "functions:"]
        for function in FUNCTIONS:
            lines += [f"  - name: {function.name}",
                      f"    path: /function/{function.name}/{function.path}",
                      f"    rate_per_s: {function.rate_per_s:g}",
                      f"    objective_ms: {function.objective_ms}",
                      f"    expected: {function.name}.jsonl"]
        workload = self.output / "workload.yaml"
        workload.write_text("\n".join(lines) + "\n")
        report = self.output / "report.json"
        result = subprocess.run([self.bin / "torpor-loadgen", workload, "--json", report],
                                check=False)
        self.processes.require_running()
        self.show_memory()
        if result.returncode == 0:
            self.say("every request was answered, and every answer was right")
        else:
            self.say(f"torpor-loadgen ended with status {result.returncode}; the end of torpord's "
                     f"log:\n{tail(self.processes.log('torpord'))}")
        return result.returncode

    def show_memory(self):
        status = self.torporctl("status")
        if status is None:
            return
        used, pool = (sum(gpu[key] for gpu in status["gpus"]) >> 20
                      for key in ("used_bytes", "pool_bytes"))
        self.say(f"start-up included, models were swapped in {status['swaps_in']} times and out "
                 f"{status['swaps_out']} times; {used} of {pool} MiB of GPU memory are in use now")


def interrupted(number, _):
    raise DemoError(f"stopped by {signal.Signals(number).name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="default: BUILD_DIR/demo")
    parser.add_argument("--duration", type=float, default=20, help="seconds of load (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the arrivals (default 1)")
    arguments = parser.parse_args()
    build = arguments.build_dir.resolve()
    output = (arguments.output or build / "demo").resolve()
    shutil.rmtree(output / "logs", ignore_errors=True)
    (output / "logs").mkdir(parents=True)
    for number in SIGNALS:
        signal.signal(number, interrupted)
    try:
        with Demo(build, output, arguments.duration, arguments.seed) as demo:
            status = demo.run()
    except (DemoError, OSError, subprocess.SubprocessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"demo: the report is {output}/report.json; torpord.yaml and workload.yaml beside it tell "
          "how it was set up\ndemo: what to read next: README.md, docs/architecture.md")
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
