"""The example functions under load, natively and from a pool that cannot hold them all."""

import json

from setting import CheckError

NAMES = ("digits", "encoder-a", "encoder-b")


class Examples:
    """The functions' programs and flags; `flags` are of the two encoders."""

    def __init__(self, setting, rate_per_s, duration_s, flags):
        self.setting = setting
        self.rate_per_s, self.duration_s, self.flags = rate_per_s, duration_s, flags
        for name in NAMES:
            program, *rest = self.command(name)
            ended = setting.run([f"{program}-reference", "--write-expected", self.expected(name),
                                 "--count", "4", *rest], 120)
            if ended.status != 0:
                raise CheckError(f"the reference of {name}: {ended.tail()}")

    def command(self, name):
        folder = self.setting.bin / "examples"
        return [folder / name.partition("-")[0], *self.flags.get(name, ())]

    def expected(self, name):
        return self.setting.work / f"{name}.jsonl"

    def start(self, daemon):
        for name in NAMES:
            daemon.start_function(name, self.command(name))

    def load(self, label, urls):
        """The report of torpor-loadgen; raises if the load could not be sent at all."""
        lines = ["version: v1", "arrivals: poisson", f"duration_s: {self.duration_s}",
                 "warm_up_s: 1", "timeout_s: 30", "functions:"]
        for name in NAMES:
            path = "predict" if name == "digits" else "encode"
            lines.append(f"  - {{name: {name}, url: '{urls[name]}/{path}', objective_ms: 200, "
                         f"rate_per_s: {self.rate_per_s}, expected: '{self.expected(name)}'}}")
        workload = self.setting.work / f"{label}-load.yaml"
        workload.write_text("\n".join(lines) + "\n")
        report = self.setting.work / f"{label}-load.json"
        report.unlink(missing_ok=True)
        ended = self.setting.run([self.setting.bin / "torpor-loadgen", workload, "--json", report,
                                  "--quiet"], self.duration_s + 90)
        try:
            return json.loads(report.read_text())
        except (OSError, ValueError):
            raise CheckError(f"torpor-loadgen, {label}: status {ended.status} (124: out of time): "
                             f"{ended.tail()}") from None


def urls_through(daemon):
    """The functions' addresses at the router."""
    address = daemon.status()["http_address"]
    return {name: f"http://{address}/function/{name}" for name in NAMES}
