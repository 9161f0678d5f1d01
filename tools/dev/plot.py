#!/usr/bin/env python3
"""Draws what programs and benchmarks write as NAME.plot.json (tools/plot/plot_data.h) with gnuplot.

usage: plot.py FILE.plot.json...      writes FILE.svg beside each
       plot.py --script FILE.plot.json   prints the gnuplot script instead

A file is {"kind": "cdf", "title", "x_label", "log_x", "series": [{"name", "points": [[x, share]]}]}
or {"kind": "bars", "title", "y_label", "log_y", "groups": [...], "series": [{"name", "values"}]}
or {"kind": "lines", "title", "x_label", "y_label", "log_y", "series": [{"name", "points": [[x, y]]}]}.
"""

import json
import pathlib
import subprocess
import sys

COLORS = ["#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6f4e7c", "#555555",
          "#2bb3c0", "#e07a2f", "#8c6d46", "#b05fa0"]


def quoted(text):
    """A gnuplot string."""
    return "'" + str(text).replace("'", "''") + "'"


def cell(text):
    """A string in a data block."""
    return '"' + str(text).replace('"', "") + '"'


def plotted(curves):
    if not curves:
        raise ValueError("it has no points")
    return "plot " + ", ".join(curves)


def cdf(plot):
    lines = ["set xlabel " + quoted(plot["x_label"]), "set ylabel 'share'", "set yrange [0:1]",
             "set key bottom right"]
    if plot.get("log_x"):
        lines.append("set logscale x")
    curves = []
    for index, series in enumerate(plot["series"]):
        points = [f"{x} {share}" for x, share in series["points"]
                  if x > 0 or not plot.get("log_x")]
        if not points:
            continue
        lines += [f"$data{index} << EOD", *points, "EOD"]
        curves.append(f"$data{index} using 1:2 with steps lw 2 lc rgb "
                      f"'{COLORS[index % len(COLORS)]}' title {quoted(series['name'])}")
    return lines + [plotted(curves)]


def bars(plot):
    lines = ["set ylabel " + quoted(plot["y_label"]), "set style data histograms",
             "set style histogram clustered gap 1", "set style fill solid 0.9 noborder",
             "set xtics rotate by -20", "set key above",
             "set logscale y" if plot.get("log_y") else "set yrange [0:*]", "$data << EOD"]
    for row, group in enumerate(plot["groups"]):
        values = " ".join(str(series["values"][row]) for series in plot["series"])
        lines.append(f"{cell(group)} {values}")
    lines.append("EOD")
    curves = [f"$data using {index + 2}:xtic(1) lc rgb '{COLORS[index % len(COLORS)]}' "
              f"title {quoted(series['name'])}" for index, series in enumerate(plot["series"])]
    return lines + ["plot " + ", ".join(curves)]


def lines(plot):
    script_lines = ["set xlabel " + quoted(plot["x_label"]), "set ylabel " + quoted(plot["y_label"]),
                    "set key above",
                    "set logscale y" if plot.get("log_y") else "set yrange [0:*]"]
    curves = []
    for index, series in enumerate(plot["series"]):
        points = [f"{x} {y}" for x, y in series["points"] if y > 0 or not plot.get("log_y")]
        if not points:
            continue
        script_lines += [f"$data{index} << EOD", *points, "EOD"]
        curves.append(f"$data{index} using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb "
                      f"'{COLORS[index % len(COLORS)]}' title {quoted(series['name'])}")
    return script_lines + [plotted(curves)]


KINDS = {"cdf": cdf, "bars": bars, "lines": lines}


def script(plot, output):
    if plot.get("kind") not in KINDS:
        raise ValueError(f"its kind is {plot.get('kind')!r}, not one of {', '.join(KINDS)}")
    # Without the fonts' size in the file's head the same data would give other bytes elsewhere.
    return "\n".join(["set terminal svg size 720,440 dynamic font 'sans,13' background 'white'",
                      "set output " + quoted(output), "set title " + quoted(plot["title"]),
                      "set grid"] + KINDS[plot["kind"]](plot)) + "\n"


def main(arguments):
    only_print = arguments[:1] == ["--script"]
    files = [pathlib.Path(name) for name in arguments[1 if only_print else 0:]]
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    for path in files:
        picture = path.with_name(path.name.removesuffix(".json").removesuffix(".plot") + ".svg")
        try:
            data = path.read_text()
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)
            return 1
        try:
            text = script(json.loads(data), picture)
            if only_print:
                print(text, end="")
            else:
                subprocess.run(["gnuplot"], input=text, text=True, check=True)
        except FileNotFoundError as error:
            print(f"{path}: {error}; gnuplot comes with `make setup`", file=sys.stderr)
            return 1
        except (ValueError, KeyError, subprocess.CalledProcessError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
