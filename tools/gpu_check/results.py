"""What the steps found out: records, failures, and the files that they become."""

import json
import pathlib
import time

MAX_FILE_BYTES = 16 << 20
# Modelled times stretch with the emulated node's time scale, and rates shrink by it.
TIME_UNITS = ("us", "ms", "s")
RATE_UNITS = ("GB/s",)


class Results:
    """Records {name, values, units, error} by steps, beside what was recorded elsewhere."""

    def __init__(self, reference, time_scale=1.0):
        """`reference`: records of the emulated GPU by name; `time_scale`: of the node measured."""
        self.reference = reference
        self.time_scale = time_scale
        self.steps = []
        self.lines = []

    def say(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def begin(self, step):
        self.steps.append({"step": step, "result": "passed", "seconds": 0, "failures": [],
                           "notes": [], "results": []})
        self.begun = time.monotonic()
        self.say(f"\n== {step}")

    def end(self):
        step = self.steps[-1]
        step["seconds"] = round(time.monotonic() - self.begun, 1)
        if step["failures"]:
            step["result"] = "failed"
        self.say(f"== {step['step']}: {step['result']} after {step['seconds']} s")

    def skip(self, why):
        self.steps[-1]["result"] = "skipped"
        self.note(f"skipped: {why}")

    def fail(self, text):
        self.steps[-1]["failures"].append(text)
        self.say(f"FAILED: {text}")

    def note(self, text):
        self.steps[-1]["notes"].append(text)
        self.say(text)

    def add(self, name, values, units, error=None, modelled=True):
        """Adds a record. Times and rates are given as measured and kept as the model has them,
        unless what took the time is not modelled, such as the start of a process."""
        kept = [self._modelled(value, units) if modelled else value for value in values]
        record = {"name": name, "values": kept,
                  "units": units, "error": error}
        known = self.reference.get(name)
        if known is not None:
            record["emulated"] = known["values"] if known["error"] is None else known["error"]
        self.steps[-1]["results"].append(record)
        return record

    def _modelled(self, value, units):
        if not isinstance(value, (int, float)):
            return value
        if units in TIME_UNITS:
            value = value / self.time_scale
        elif units in RATE_UNITS:
            value = value * self.time_scale
        return float(f"{value:.5g}")

    def show(self, record):
        """Prints a record beside the emulated GPU's."""
        if record["error"]:
            text = f"error: {record['error']}"
        else:
            text = f"{_text(record['values'])} {record['units'].replace('text', '')}".rstrip()
        beside = f"   (emulated H200: {_text(record['emulated'])})" if "emulated" in record else ""
        self.say(f"{record['name']:<58} {text}{beside}")

    def failures(self):
        return [f"{step['step']}: {text}" for step in self.steps for text in step["failures"]]

    def write(self, folder, rehearsed, logs):
        """Writes results.json, report.txt and the logs; earlier steps of the same folder stay."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "results.json"
        steps = {step["step"]: step for step in _steps_of(file)}
        steps.update({step["step"]: step for step in self.steps})
        document = {"rehearsed": rehearsed, "time_scale": self.time_scale,
                    "steps": list(steps.values())}
        file.write_text(json.dumps(document, indent=1) + "\n")
        with open(folder / "report.txt", "a", encoding="utf-8") as report:
            report.write("\n".join(self.lines) + "\n")
        for name, log in logs.items():
            if log.exists():
                with open(folder / name, "ab") as copy:
                    copy.write(log.read_bytes()[-MAX_FILE_BYTES // 4:])
        for written in folder.iterdir():
            if written.is_file() and written.stat().st_size > MAX_FILE_BYTES:
                written.write_bytes(written.read_bytes()[-MAX_FILE_BYTES:])


def _text(values):
    if isinstance(values, str):
        return values
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _steps_of(file):
    try:
        return json.loads(file.read_text())["steps"]
    except (OSError, ValueError, KeyError):
        return []


def read_reference(file):
    """Records by name of a results.json, of the emulated GPU; none if there is no such file."""
    return {record["name"]: record for step in _steps_of(pathlib.Path(file))
            for record in step["results"]}
