#!/usr/bin/env python3
"""Runs clang-tidy over the source files named on standard input, as check_tidy.sh says."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

CLANG_TIDY = "clang-tidy-14"
PASSED = pathlib.Path.home() / ".cache/torpor/tidy"
# Option of unity builds that clang does not know.
GCC_ONLY = " -Wno-subobject-linkage"


def batch(entry):
    """An entry for each source of a unity build's batch; the entry itself for any other source."""
    path = entry["file"]
    if not re.search(r"/Unity/unity_\d+_\w+\.\w+$", path):
        return [entry]
    sources = re.findall(r'^#include "(.*)"$', pathlib.Path(path).read_text(), re.MULTILINE)
    return [{**entry, "file": source, "command": entry["command"].replace(path, source)}
            for source in sources]


def commands(build):
    """Source -> its entry of the compilation database; a file of several programs counts once."""
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        entry["command"] = entry["command"].replace(GCC_ONLY, "")
    return {os.path.relpath(each["file"]): each for entry in entries for each in batch(entry)}


def fingerprint(entry, configuration):
    """Hash of what clang-tidy judges: the preprocessed text with comments, and the checks."""
    words = shlex.split(entry["command"])
    words = words[words.index(next(w for w in words if re.search(r"(\+\+|cc|clang[\w+-]*)$", w))):]
    output = words.index("-o")
    del words[output:output + 2]
    done = subprocess.run(words + ["-E", "-P", "-C"], cwd=entry["directory"], capture_output=True)
    if done.returncode != 0:
        return None
    source = pathlib.Path(entry["file"]).read_bytes()
    return hashlib.sha256(configuration + source + done.stdout).hexdigest()


class Checker:
    """Checks files, several at a time, until a deadline."""

    def __init__(self, database, configuration, deadline):
        self.database = database
        self.configuration = configuration
        self.deadline = deadline

    def check(self, entry):
        """"passed", "known", "left out", or what clang-tidy says."""
        if time.monotonic() >= self.deadline:
            return "left out"
        key = fingerprint(entry, self.configuration)
        if key and (PASSED / key).exists():
            return "known"
        done = subprocess.run([CLANG_TIDY, "-p", self.database, "--quiet", entry["file"]],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return done.stdout or done.stderr
        if key:
            (PASSED / key).touch()
        return "passed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="configured build folder")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="begin no file after so many seconds")
    arguments = parser.parse_args()

    known = commands(arguments.build)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    # Where time runs out, another commit checks other files.
    names = sorted(set(sys.stdin.read().split()) & set(known),
                   key=lambda name: hashlib.sha256((head + name).encode()).digest())
    PASSED.mkdir(parents=True, exist_ok=True)
    configuration = pathlib.Path(".clang-tidy").read_bytes()
    counts = {"passed": 0, "known": 0, "left out": 0}
    findings = 0
    with tempfile.TemporaryDirectory() as database:
        (pathlib.Path(database) / "compile_commands.json").write_text(json.dumps(list(known.values())))
        checker = Checker(database, configuration, time.monotonic() + arguments.seconds)
        print(f"clang-tidy: {len(names)} files", flush=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for outcome in pool.map(lambda name: checker.check(known[name]), names):
                if outcome in counts:
                    counts[outcome] += 1
                else:
                    findings += 1
                    print(outcome, flush=True)
    left = f", {counts['left out']} NOT CHECKED for want of time (tools/dev/check_tidy.sh)" \
        if counts["left out"] else ""
    print(f"clang-tidy: {counts['passed']} files clean, {counts['known']} unchanged since they were, "
          f"{findings} with findings{left}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
