"""Where a check runs: its programs, its libraries, and how to run a program natively."""

import os
import pathlib
import subprocess
import tempfile
import time

import libraries
import topologies


MAX_LOGGED = 20_000  # characters of a program's output


class CheckError(Exception):
    """What ended a step early, for people."""


class Setting:
    """The folders of a build or a bundle, and the machine's driver or the emulator's."""

    def __init__(self, root, rehearse, limit_s):
        self.root = pathlib.Path(root)
        self.bin = self.root / "bin"
        self.rehearse = rehearse
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="torpor-gpu-check-"))
        self.time_scale = 1
        self.give_up = time.monotonic() + limit_s
        bundled = self.root / "e2e"
        self.programs = bundled if bundled.is_dir() else self.root / "tests/e2e_programs"
        driven = self.root / "driven"
        self.driven = driven if driven.is_dir() else self.root / "tests/e2e_driven"
        benchmarks = self.root / "bench"
        self.benchmarks = benchmarks if benchmarks.is_dir() else self.bin
        self.duration_s = 8  # of a load
        if rehearse:
            self.libraries = None
            self.preset = (self.root / "lib/torpor/topologies/h200-1gpu.yaml").read_text()
            self.time_scale = topologies.time_scale(self.preset)
            self.topology = self.write_topology("h200")
        else:
            self.libraries = libraries.Libraries(self.work / "nvidia", self.root / "lib/torpor")

    def write_topology(self, name, **changes):
        """A file of the emulated H200, changed as topologies.changed says."""
        file = self.work / f"{name}.yaml"
        file.write_text(topologies.changed(self.preset, **changes))
        return file

    def seconds_left(self):
        return max(0, self.give_up - time.monotonic())

    def patience(self, most):
        """Seconds that a program may take: `most`, or what is left if that is less."""
        left = self.seconds_left()
        if left <= 0:
            raise CheckError("out of time; --limit raises it, --steps chooses")
        return min(most, left)

    def daemon_lines(self, topology=None):
        """Lines of torpord's configuration that name the driver."""
        if self.rehearse:
            return [f"emulator_topology: {topology or self.topology}"]
        return [f"cuda_library_dir: {self.libraries.folder}"]

    def environment(self, **more):
        """Of programs that load the driver themselves, and of torpord."""
        environment = {**os.environ, **more}
        if self.libraries is not None:
            environment["LD_LIBRARY_PATH"] = self.libraries.search_path()
        return environment

    def driver_environment(self, **more):
        """Of programs of the driver API, which the emulator's driver serves too."""
        if not self.rehearse:
            return self.environment(**more)
        return {**os.environ, "LD_LIBRARY_PATH": str(self.driver_folder()),
                "TORPOR_EMULATOR_TOPOLOGY": str(self.topology),
                "TORPOR_EMULATOR_NODE": str(self.work / "emulator-node"), **more}

    def driver_folder(self):
        """Where libcuda.so.1 is."""
        return self.root / "lib/torpor/emulator" if self.rehearse else self.libraries.folder

    def native(self, command, topology=None):
        """The command without Torpor; in a rehearsal, under a daemon of its own."""
        if not self.rehearse:
            return list(command)
        # A pool for a whole H200 would take the rehearsal's time.
        return ["env", "TORPOR_POOL_BYTES=1GiB", self.bin / "torporctl", "run", "--standalone",
                "--topology", topology or self.topology, "--", *command]

    def run(self, command, patience, environment=None, **options):
        """Runs to the end; status 124 if it took too long."""
        begun = time.monotonic()
        try:
            ended = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                   errors="replace", check=False, timeout=self.patience(patience),
                                   env=environment or self.environment(),
                                   stdin=subprocess.DEVNULL, **options)
            status, out, err = ended.returncode, ended.stdout, ended.stderr
        except subprocess.TimeoutExpired as late:
            status, out, err = 124, _decoded(late.stdout), _decoded(late.stderr)
        self.log(command, status, out, err)
        return Ended(status, out, err, 1e3 * (time.monotonic() - begun))

    def log(self, command, status, out, err):
        with open(self.work / "programs.log", "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(map(str, command))}\nstatus {status}\n"
                      f"{out[-MAX_LOGGED:]}{err[-MAX_LOGGED:]}\n")


class Ended:
    """A program that has run."""

    def __init__(self, status, out, err, milliseconds):
        self.status, self.out, self.err, self.ms = status, out, err, milliseconds

    def tail(self, lines=3):
        return "; ".join((self.out + self.err).strip().splitlines()[-lines:])[-600:]


def _decoded(output):
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
