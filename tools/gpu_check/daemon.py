"""A torpord of the check's own, and the functions beside it."""

import json
import pathlib
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from setting import CheckError

START_PATIENCE_S = 60
STOP_PATIENCE_S = 30
SWAP_LINE = re.compile(r'^torpor_swap_duration_seconds_(count|sum)\{([^}]*)\} (\S+)$', re.M)


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


class Daemon:
    """Started on entering; it and its functions are stopped on leaving."""

    def __init__(self, setting, functions=("program",), topology=None, gpus=1, **settings):
        """`settings` are lines of the configuration. `functions` are names."""
        self.setting = setting
        self.ports = {name: free_port() for name in functions}
        self.started = []
        self.stop_s = 0
        # Paths of Unix sockets are short.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="torpor-check-"))
        self.config = self.folder / "torpord.yaml"
        lines = ["version: v1", f"run_dir: {self.folder}", f"state_dir: {self.folder}/state",
                 "http_address: 127.0.0.1:0", "metrics_address: 127.0.0.1:0",
                 f"gpus: {list(range(gpus))}", *setting.daemon_lines(topology)]
        lines += [f"{key}: {value}" for key, value in settings.items()]
        lines.append("functions:")
        for name, port in self.ports.items():
            token = self.folder / f"{name}.token"
            token.touch(0o600)
            token.write_text(secrets.token_hex(16) + "\n")
            lines += [f"  - {{name: {name}, upstream: '127.0.0.1:{port}', memory_limit: 8GiB,",
                      f"     deadline: 1s, upstream_timeout: 60s, token_file: {token}}}"]
        self.config.write_text("\n".join(lines) + "\n")

    def __enter__(self):
        begun = time.monotonic()
        self.log_begin = self._log().stat().st_size if self._log().exists() else 0
        self.process = self._start([self.setting.bin / "torpord", "--config-file", self.config],
                                   self._log())
        try:
            self.wait(lambda: (self.status() or {}).get("state") == "ready", "torpord to be ready")
        except CheckError:
            self.__exit__()
            raise
        self.start_s = time.monotonic() - begun
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            begun = time.monotonic()
            process.terminate()
            try:
                process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process is self.process:
                self.stop_s = time.monotonic() - begun
        self.started = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self):
        return self.setting.work / "torpord.log"

    def _start(self, command, log):
        with open(log, "ab") as output:
            process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT,
                                       env=self.setting.environment())
        self.started.append(process)
        return process

    def wait(self, condition, what, process=None):
        """Until the condition holds, while the process (torpord) runs."""
        process = process or self.process
        give_up = time.monotonic() + self.setting.patience(START_PATIENCE_S)
        while not (result := condition()):
            if process.poll() is not None:
                raise CheckError(f"{what}: its process ended with status {process.returncode}; "
                                 f"torpord said last: {self.last_words()}")
            if time.monotonic() > give_up:
                raise CheckError(f"{what}: waited in vain; torpord said last: {self.last_words()}")
            time.sleep(0.05)
        return result

    def log_text(self):
        """What this torpord and its executors have said."""
        with open(self._log(), "rb") as log:
            log.seek(self.log_begin)
            return log.read().decode(errors="replace")

    def last_words(self, lines=3):
        loud = [line for line in self.log_text().splitlines() if "Z info " not in line]
        return " | ".join(loud[-lines:])

    def torporctl(self, *arguments, patience=60):
        return self.setting.run([self.setting.bin / "torporctl", *arguments, "--socket",
                                 self.folder / "admin" / "admin.sock"], patience)

    def status(self):
        """The node as torporctl shows it; None if no daemon answers."""
        ended = subprocess.run([self.setting.bin / "torporctl", "status", "--output", "json",
                                "--socket", self.folder / "admin" / "admin.sock"], capture_output=True,
                               text=True, check=False, timeout=30)
        return json.loads(ended.stdout) if ended.returncode == 0 else None

    def remoted(self, command, function="program"):
        return [self.setting.bin / "torporctl", "--config-file", self.config, "run", "--function",
                function, "--", *command]

    def start_function(self, name, command):
        """Starts a server and returns when it listens."""
        log = self.setting.work / f"{name}.log"
        log.unlink(missing_ok=True)
        process = self._start(self.remoted([*command, "--port", self.ports[name]], name), log)
        self.wait(lambda: "listening on" in log.read_text(errors="replace"),
                  f"{name} to listen", process)

    def swaps(self):
        """(count, mean ms) of swaps by direction and path, from the metrics."""
        address = self.status()["metrics_address"]
        text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
        sums = {}
        for kind, labels, value in SWAP_LINE.findall(text):
            names = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            entry = sums.setdefault((names["direction"], names["path"]), {"count": 0, "sum": 0.0})
            entry[kind] += float(value)
        return {key: (int(entry["count"]), 1e3 * entry["sum"] / max(1, entry["count"]))
                for key, entry in sums.items()}
