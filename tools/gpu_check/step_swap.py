"""Loads that must swap: with chunks of 2 MiB, of 32 MiB, and with translated addresses."""

import re
import subprocess
import time

from daemon import Daemon, START_PATIENCE_S
from example_load import NAMES, Examples, urls_through
from setting import CheckError

# Pools hold the largest function, but not all three; an arena has more waste than chunks.
REAL = {"rate_per_s": 10, "flags": {"encoder-a": "--layers 6 --hidden 512 --seed 1".split(),
                                    "encoder-b": "--layers 12 --hidden 768 --seed 2".split()},
        "pools": {"2MiB": "416MiB", "32MiB": "416MiB", "translate": "480MiB"}}
REHEARSED = {"rate_per_s": 2, "flags": {"encoder-a": "--layers 4 --hidden 256 --seed 1".split(),
                                        "encoder-b": "--layers 6 --hidden 384 --seed 2".split()},
             "pools": {"2MiB": "72MiB", "32MiB": "96MiB", "translate": "88MiB"}}
VARIANTS = {"2MiB": {"chunk_bytes": "2MiB"}, "32MiB": {"chunk_bytes": "32MiB"},
            "translate": {"address_mode": "translate"}}


def run(setting, results):
    chosen = REHEARSED if setting.rehearse else REAL
    examples = Examples(setting, chosen["rate_per_s"], setting.duration_s, chosen["flags"])
    if not setting.rehearse:
        _load_natively(setting, results, examples)
    for name, settings in VARIANTS.items():
        pool = chosen["pools"][name]
        results.say(f"swapping, {name}: a pool of {pool}, {setting.duration_s} s of load")
        try:
            with Daemon(setting, NAMES, pool_bytes=pool, **settings) as daemon:
                examples.start(daemon)
                load_and_judge(results, f"swap/{name}", examples, daemon, name.replace(" ", "-"))
        except CheckError as error:
            results.fail(f"swapping, {name}: {error}")


def load_and_judge(results, prefix, examples, daemon, label):
    """Records times and swaps; wrong answers, errors and a load without swaps are failures."""
    before = daemon.swaps().get(("in", "pcie"), (0, 0.0))[0]
    report = examples.load(label, urls_through(daemon))
    count, mean_ms = daemon.swaps().get(("in", "pcie"), (0, 0.0))
    _tell_functions(results, prefix, report)
    results.show(results.add(f"{prefix}/swaps", [count - before], "count"))
    results.show(results.add(f"{prefix}/a swap", [mean_ms], "ms"))
    if count == before:
        results.fail(f"{prefix}: nothing was swapped, so the load has tested nothing")
    judge_answers(results, prefix, report)


def judge_answers(results, prefix, report):
    if report["wrong_answers"] or report["errors"]:
        results.fail(f"{prefix}: {report['wrong_answers']} wrong answers, "
                     f"{report['errors']} errors")


def _tell_functions(results, prefix, report):
    for function in report["functions"]:
        latency = function["latency_ms"]
        name = f"{prefix}/{function['name']}"
        results.show(results.add(f"{name}/p50, p98", [latency["p50"], latency["p98"]], "ms"))
        if "swaps_pcie" in function:
            results.add(f"{name}/hits, swaps", [function["resident"], function["swaps_pcie"]],
                        "count")
            results.add(f"{name}/wait for its image", [function["swap_ms"]], "ms")


def _load_natively(setting, results, examples):
    """The same load without Torpor, each function with a GPU context of its own."""
    started, urls = [], {}
    try:
        for name in NAMES:
            log = setting.work / f"{name}-native.log"
            with open(log, "wb") as output:
                started.append(subprocess.Popen([str(part) for part in examples.command(name)],
                                                stdin=subprocess.DEVNULL, stdout=output,
                                                stderr=subprocess.STDOUT,
                                                env=setting.environment()))
            urls[name] = f"http://127.0.0.1:{_port(log, started[-1])}"
        report = examples.load("native", urls)
        _tell_functions(results, "swap/native", report)
        if report["wrong_answers"] or report["errors"]:
            results.note(f"natively too: {report['wrong_answers']} wrong answers, "
                         f"{report['errors']} errors")
    except CheckError as error:
        results.note(f"natively: {error}")
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _port(log, process):
    give_up = time.monotonic() + START_PATIENCE_S
    while time.monotonic() < give_up and process.poll() is None:
        if found := re.search(r"listening on .*:(\d+)", log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise CheckError(f"{log.name}: {log.read_text(errors='replace')[-300:]}")
