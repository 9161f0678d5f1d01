"""Every self-checking program, natively and through Torpor, once; PTX instructions at the end."""

from daemon import Daemon
from programs import Comparison

LAST = "ptx_conformance"
LAST_PATIENCE_S = 180


def run(setting, results):
    programs = sorted(path for path in setting.programs.iterdir() if path.name != LAST)
    results.say(f"{'program':<28} {'native':>8} {'remoted':>8}")
    with Daemon(setting, pool_bytes="2GiB") as daemon:
        comparison = Comparison(setting, results, daemon)
        for program in programs:
            if setting.seconds_left() <= 0:
                break
            comparison.compare(program)
        if setting.seconds_left() > 0:
            comparison.compare(setting.programs / LAST, LAST_PATIENCE_S)
    left = len(programs) + 1 - sum(comparison.counts.values())
    if left:
        results.fail(f"{left} programs did not run for want of time; --limit raises it")
    results.say(", ".join(f"{count} {kind}" for kind, count in sorted(comparison.counts.items())))
