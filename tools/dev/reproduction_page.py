#!/usr/bin/env python3
"""Prints docs/reproduction.md from what tools/dev/reproduce.sh wrote to a folder.

usage: reproduction_page.py FOLDER SEEDS
"""

import pathlib
import sys

PARTS = [
    ("table-3", "Table 3: contention on PCIe"),
    ("figure-8", "Figure 8: functions that are called seldom"),
    ("figure-9", "Figure 9: functions that are called often"),
    ("figure-10", "Figure 10: Torpor, native containers, INFless-KA"),
    ("figure-11", "Figure 11: what each policy brings"),
    ("figure-12", "Figure 12: heavy models"),
    ("figure-14", "Figure 14: a cluster"),
    ("figure-16", "Figure 16: queues"),
    ("run-nvswitch-8gpu", "Another node: 8 GPUs with an NVSwitch"),
    ("run-unlinked-2gpu", "Another node: 2 GPUs without NVLinks"),
]

HEAD = """# The paper's figures, reproduced

What `torpor-sim` gives for the Torpor paper's figures and Table 3, all with one file of parameters
([simulator.md](simulator.md)). Rows are means of {seeds} seeds. Both arrival processes are there:
`artifact`, as the paper's artifact draws requests, and `poisson`, which is harder. Under each table
stands which of the paper's claims come out and which do not.

    tools/dev/reproduce.sh build RATES.csv {seeds}

makes this page. The rates are those of the paper's artifact, whose rows functions are given at
random; without a file of them `torpor-sim` makes up some like them.
"""


def section(folder, name, title):
    text = (folder / f"{name}.txt").read_text().rstrip()
    picture = folder / f"{name}.svg"
    lines = [f"## {title}", ""]
    if picture.exists():
        lines += [f"![{title}]({folder.name}/{picture.name})", ""]
    return "\n".join(lines + ["```text", text, "```", ""])


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    print(HEAD.format(seeds=arguments[1]))
    print("\n".join(section(folder, name, title) for name, title in PARTS), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
