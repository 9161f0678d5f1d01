"""How soon an evicted function's first kernel runs, and how long its image travels."""

import http.client
import statistics
import time

from daemon import Daemon
from setting import CheckError

NAME = "layers"
# (layers, MiB of each): an image like ResNet-152's, and a large one.
REAL = {"252MB": (60, 4), "4GiB": (128, 32)}
REHEARSED = {"34MB": (8, 4)}
# Until the order of first use is known: twice the same, and once swapped in to look through it.
LEARNING_RUNS = 4
RUNS = 7


class Function:
    """One function under a daemon of its own, asked over one connection."""

    def __init__(self, setting, daemon, shape):
        self.daemon = daemon
        layers, mebibytes = shape
        daemon.start_function(NAME, [setting.driven / "layers_server", "--layers", layers,
                                     "--mebibytes", mebibytes])
        self.connection = http.client.HTTPConnection(daemon.status()["http_address"], timeout=60)
        self.answer = self._ask()[1]

    def _ask(self):
        begun = time.perf_counter()
        self.connection.request("POST", f"/function/{NAME}/first", "{}")
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise CheckError(f"{NAME}: status {response.status}: {body[:200]}")
        return 1e3 * (time.perf_counter() - begun), body

    def warm(self):
        """Milliseconds of a request to the resident function."""
        ms, body = self._ask()
        if body != self.answer:
            raise CheckError(f"{NAME}: a wrong answer: {body[:200]}")
        return ms

    def cold(self):
        """Milliseconds of a request to the evicted function, and of the image's way."""
        self.daemon.wait(lambda: self.daemon.torporctl("evict", NAME).status == 0,
                         f"{NAME} to be evicted")
        count, total = self._swaps()
        ms = self.warm()
        self.daemon.wait(lambda: self._swaps()[0] > count, "the image to be there")
        return ms, self._swaps()[1] - total

    def _swaps(self):
        count, mean_ms = self.daemon.swaps().get(("in", "pcie"), (0, 0.0))
        return count, count * mean_ms


def run(setting, results):
    for name, shape in (REHEARSED if setting.rehearse else REAL).items():
        settings = {"pool_bytes": "72MiB" if setting.rehearse else "6GiB",
                    "idle_write_back": "off", "log_level": "debug"}
        with Daemon(setting, (NAME,), **settings) as daemon:
            _measure(results, f"arrival/{name}", Function(setting, daemon, shape), shape)


def _measure(results, prefix, function, shape):
    for _ in range(LEARNING_RUNS):
        function.warm()
    for _ in range(LEARNING_RUNS):
        function.cold()
    warm = [function.warm() for _ in range(RUNS)]
    runs = [function.cold() for _ in range(RUNS)]
    later = [ms - statistics.median(warm) for ms, _ in runs]
    ways = [way for _, way in runs]
    gigabytes = shape[0] * shape[1] * (1 << 20) / 1e9
    for name, values in (("resident", warm), ("first kernel later", later), ("image there", ways)):
        ordered = sorted(values)
        results.show(results.add(f"{prefix}/{name} (median, least, most)",
                                 [statistics.median(values), ordered[0], ordered[-1]], "ms"))
    results.show(results.add(f"{prefix}/rate", [gigabytes / statistics.median(ways) * 1e3],
                             "GB/s"))
