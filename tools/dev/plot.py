#!/usr/bin/env python3
"""Draws what programs and benchmarks write as NAME.plot.json (tools/plot/plot_data.h) with gnuplot.

usage: plot.py FILE.plot.json...      writes FILE.svg beside each that has points
       plot.py --script FILE.plot.json   prints the gnuplot script instead

A file is {"kind": "cdf", "title", "x_label", "log_x", "series": [{"name", "points": [[x, share]]}]}
or {"kind": "bars", "title", "y_label", "log_y", "groups": [...], "series": [{"name", "values"}]}
or {"kind": "lines", "title", "x_label", "y_label", "log_x", "log_y",
    "series": [{"name", "points": [[x, y]], "panel"}]}, where series with a "panel" are drawn apart.
"""

import json
import pathlib
import subprocess
import sys

COLORS = ["#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6f4e7c", "#555555",
          "#2bb3c0", "#e07a2f", "#8c6d46", "#b05fa0"]
THINNEST, THINNER = 1.5, 0.7  # widths of the last line, and of each before it more than that


class NoPoints(ValueError):
    """There is nothing to draw, as in the report of a load none of whose requests was answered."""


def quoted(text):
    """A gnuplot string."""
    return "'" + str(text).replace("'", "''") + "'"


def cell(text):
    """A string in a data block."""
    return '"' + str(text).replace('"', "") + '"'


def data_and_curves(series, style, log_axes=(), colors=None):
    """Data blocks of the series' points, and the command that plots them: `style` of each. A series
    that has no points is left out, and of the others what logarithmic axes (0: x, 1: y) cannot
    show. What is drawn later is thinner, so that lines that lie on each other all show."""
    blocks, curves = [], []
    colors = colors or {one["name"]: COLORS[index % len(COLORS)] for index, one in enumerate(series)}
    for index, one in enumerate(series):
        points = [f"{point[0]} {point[1]}" for point in one["points"]
                  if all(point[axis] > 0 for axis in log_axes)]
        if not points:
            continue
        name = f"$data{len(blocks)}"
        blocks += ["\n".join([f"{name} << EOD", *points, "EOD"])]
        width = THINNEST + THINNER * (len(series) - 1 - index)
        curves.append(f"{name} using 1:2 with {style} lw {width:.1f} "
                      f"lc rgb '{colors[one['name']]}' title {quoted(one['name'])}")
    if not curves:
        raise NoPoints("it has no points")
    return blocks + ["plot " + ", ".join(curves)]


def cdf(plot):
    axes = ["set xlabel " + quoted(plot["x_label"]), "set ylabel 'share'", "set yrange [0:1]",
            "set key bottom right"]
    is_log = plot.get("log_x")
    return (axes + (["set logscale x"] if is_log else []) +
            data_and_curves(plot["series"], "steps", [0] if is_log else []))


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


def panels_of(plot):
    """The series of each panel; one panel where they name none."""
    panels = {}
    for series in plot.get("series", []):
        panels.setdefault(series.get("panel", ""), []).append(series)
    return panels


def lines(plot):
    log_axes = [axis for axis, name in enumerate(("log_x", "log_y")) if plot.get(name)]
    script_lines = ["set xlabel " + quoted(plot["x_label"]), "set ylabel " + quoted(plot["y_label"]),
                    "set key outside right center samplen 2", "set autoscale yfixmax",
                    "set offsets 0,0,graph 0.05,0",
                    "set logscale y" if 1 in log_axes else "set yrange [0:*]"]
    script_lines += ["set logscale x 2"] if 0 in log_axes else []
    panels = panels_of(plot)
    # A name has one colour in all panels.
    names = list(dict.fromkeys(series["name"] for series in plot["series"]))
    colors = {name: COLORS[index % len(COLORS)] for index, name in enumerate(names)}
    if len(panels) > 1:
        rows, columns = layout(len(panels))
        script_lines += [f"set multiplot layout {rows},{columns} title {quoted(plot['title'])}"]
    for panel, series in panels.items():
        if panel:
            script_lines.append("set title " + quoted(panel))
        try:
            script_lines += data_and_curves(series, "linespoints pt 7 ps 0.4",
                                            log_axes, colors)
        except NoPoints as error:
            # The others have some: that is no plot to skip.
            raise ValueError(f"its panel {panel!r} has no points") if panel else error
    return script_lines


def layout(panels):
    """Rows and columns."""
    columns = 1 if panels <= 2 else 2
    return -(-panels // columns), columns


def size(plot):
    """Of the picture, in pixels."""
    rows, columns = layout(len(panels_of(plot)))
    return (720, 440) if rows * columns <= 1 else (840 if columns == 1 else 680 * columns, 380 * rows)


KINDS = {"cdf": cdf, "bars": bars, "lines": lines}


def script(plot, output):
    if plot.get("kind") not in KINDS:
        raise ValueError(f"its kind is {plot.get('kind')!r}, not one of {', '.join(KINDS)}")
    width, height = size(plot)
    # Without the fonts' size in the file's head the same data would give other bytes elsewhere.
    return "\n".join([f"set terminal svg size {width},{height} dynamic font 'sans,13' "
                      "background 'white'",
                      "set output " + quoted(output), "set title " + quoted(plot["title"]),
                      "set grid"] + KINDS[plot["kind"]](plot)) + "\n"


def draw(path, only_print):
    picture = path.with_name(path.name.removesuffix(".json").removesuffix(".plot") + ".svg")
    text = script(json.loads(path.read_text()), picture)
    if only_print:
        print(text, end="")
    else:
        subprocess.run(["gnuplot"], input=text, text=True, check=True)


def main(arguments):
    only_print = arguments[:1] == ["--script"]
    files = [pathlib.Path(name) for name in arguments[1 if only_print else 0:]]
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    for path in files:
        try:
            draw(path, only_print)
        except NoPoints as error:
            print(f"{path}: {error}: no picture", file=sys.stderr)
        except FileNotFoundError as error:
            hint = "; gnuplot comes with `make setup`" if error.filename == "gnuplot" else ""
            print(f"{path}: {error}{hint}", file=sys.stderr)
            return 1
        except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
