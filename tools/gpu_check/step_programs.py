"""Five small programs, and what comes after a sticky error."""

import time

from daemon import Daemon
from programs import Comparison

SMALL = ("vector_add", "tiled_matmul", "streams_events", "print", "blas")
POOL = "1GiB"


def run(setting, results):
    with Daemon(setting, pool_bytes=POOL) as daemon:
        comparison = Comparison(setting, results, daemon)
        for name in SMALL:
            comparison.compare(setting.programs / name)
        _restart(setting, results, daemon, comparison)


def _restart(setting, results, daemon, comparison):
    """A program loses the context; the next finds a new executor."""
    executors = {gpu["executor_pid"] for gpu in daemon.status()["gpus"]}
    comparison.compare(setting.programs / "sticky_error")
    begun = time.monotonic()
    ended = setting.run(daemon.remoted([setting.programs / "vector_add"]), 60)
    results.show(results.add("programs/vector_add after a sticky error",
                             [1e3 * (time.monotonic() - begun)], "ms"))
    if ended.status != 0:
        results.fail(f"vector_add after a sticky error: status {ended.status}: {ended.tail()}")
    if executors == {gpu["executor_pid"] for gpu in daemon.status()["gpus"]}:
        results.note("the executor is the same after the sticky error: its context was not lost")
