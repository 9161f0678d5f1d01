"""A rehearsal's faults: what Torpor does where the driver does not do what was hoped for. Each must
end well, which means right answers, and say what it did."""

from daemon import Daemon
from example_load import NAMES, Examples, urls_through
from setting import CheckError
from step_swap import REHEARSED, judge_answers

DURATION_S = 3


def run(setting, results):
    examples = Examples(setting, REHEARSED["rate_per_s"], DURATION_S, REHEARSED["flags"])
    for name, check in (("reservation refused", _reservation_refused),
                        ("export refused", _export_refused),
                        ("peers without links", _peers_without_links),
                        ("pool smaller than asked", _small_pool)):
        results.say(f"fault: {name}")
        try:
            check(setting, results, examples)
        except CheckError as error:
            results.fail(f"{name}: {error}")


def _expect_word(results, fault, daemon, words):
    """The log must have a line with one of the words, which the report shows."""
    for line in daemon.log_text().splitlines():
        if any(word in line for word in words) and "Z info " not in line:
            results.note(f"{fault}: torpord said: {line.split('Z ', 1)[-1]}")
            return
    results.fail(f"{fault}: torpord has not said what it did (looked for: {', '.join(words)})")


def _serve(results, fault, examples, daemon):
    examples.start(daemon)
    report = examples.load(fault.replace(" ", "-"), urls_through(daemon))
    judge_answers(results, fault, report)
    results.note(f"{fault}: {report['requests']} requests were answered right"
                 if not report["errors"] and not report["wrong_answers"] else
                 f"{fault}: {report['errors']} errors of {report['requests']} requests")


def _reservation_refused(setting, results, examples):
    """Addresses cannot be had where functions have theirs: torpord translates them. Translated
    images have chunks of their own, and so need more memory."""
    fault = "reservation refused"
    topology = setting.write_topology("refused", addresses="refused")
    with Daemon(setting, NAMES, topology, pool_bytes="96MiB") as daemon:
        _serve(results, fault, examples, daemon)
        _expect_word(results, fault, daemon, ("translate",))


def _move(results, fault, daemon, expected_path):
    """Moves a function from one GPU to the other and back; the copies take the path."""
    for gpu in (0, 1, 0):
        moved = daemon.torporctl("load", "encoder-a", "--gpu", gpu)
        if moved.status != 0:
            results.fail(f"{fault}: torporctl load --gpu {gpu}: {moved.tail()}")
            return
    swaps = {path: count for (direction, path), (count, _) in daemon.swaps().items()
             if direction == "in"}
    results.note(f"{fault}: moved to the other GPU and back; swaps by path: {swaps}")
    other = "nvlink" if expected_path == "pcie" else "pcie"
    if not swaps.get(expected_path) or (other == "nvlink" and swaps.get(other)):
        results.fail(f"{fault}: images came by {swaps}, expected {expected_path} only")


def _export_refused(setting, results, examples):
    """GPUs with links whose memory cannot be shared: images move by way of the host."""
    fault = "export refused"
    topology = setting.write_topology("unexported", gpus=2, links=2, faults="exports: refused")
    with Daemon(setting, NAMES, topology, gpus=2, pool_bytes="256MiB") as daemon:
        _serve(results, fault, examples, daemon)
        _move(results, fault, daemon, "pcie")
        _expect_word(results, fault, daemon, ("cannot be shared",))


def _peers_without_links(setting, results, examples):
    """Two GPUs without NVLinks: images come from the host."""
    fault = "peers without links"
    topology = setting.write_topology("unlinked", gpus=2)
    with Daemon(setting, NAMES, topology, gpus=2, pool_bytes="256MiB") as daemon:
        _serve(results, fault, examples, daemon)
        _move(results, fault, daemon, "pcie")


def _small_pool(setting, results, examples):
    """The driver gives out less than it reported: functions are swapped in what there is."""
    fault = "pool smaller than asked"
    topology = setting.write_topology("short", faults="memory_ends_at: 2GiB")
    with Daemon(setting, NAMES, topology, pool_bytes="3GiB") as daemon:
        _serve(results, fault, examples, daemon)
        pool = daemon.status()["gpus"][0]["pool_bytes"]
        results.note(f"{fault}: 3072 MiB were asked for; torpord counts on {pool >> 20} MiB")
        _expect_word(results, fault, daemon, ("the driver gives less",))
