"""What plot.py makes of benchmarks' plot data."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLOT = pathlib.Path(__file__).resolve().parents[3] / "tools/dev/plot.py"
CDF = {"kind": "cdf", "title": "Ours", "x_label": "ms", "log_x": True,
       "series": [{"name": "it's", "points": [[0, 0], [1, 0.5], [2, 1]]}]}
BARS = {"kind": "bars", "title": "Theirs", "y_label": "ms", "log_y": False,
        "groups": ["ResNet 152", "Bert"],
        "series": [{"name": "a", "values": [1, 2]}, {"name": "b", "values": [3, 4]}]}

LINES = {"kind": "lines", "title": "Over time", "x_label": "minute", "y_label": "ms", "log_y": True,
         "series": [{"name": "p98", "points": [[0, 3], [1, 0], [2, 4.5]]}]}


def run(plot, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "some.plot.json")
        path.write_text(json.dumps(plot))
        result = subprocess.run([sys.executable, str(PLOT), *arguments, str(path)],
                                capture_output=True, text=True, check=False)
        picture = pathlib.Path(folder, "some.svg")
        return result, picture.read_text() if picture.exists() else ""


class PlotTest(unittest.TestCase):
    def test_draws_every_kind(self):
        for plot in CDF, BARS, LINES:
            result, picture = run(plot)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("<svg", picture)
            self.assertIn(plot["title"], picture)

    def test_a_logarithmic_axis_has_no_zero(self):
        script = run(CDF, "--script")[0].stdout
        self.assertIn("set logscale x", script)
        self.assertNotIn("\n0 0\n", script)
        self.assertIn("title 'it''s'", script)
        self.assertIn("<< EOD\n0 3\n2 4.5\nEOD\n", run(LINES, "--script")[0].stdout)
        both = run({**LINES, "log_x": True}, "--script")[0].stdout
        self.assertIn("set logscale x", both)
        self.assertIn("<< EOD\n2 4.5\nEOD\n", both)

    def test_bars_are_a_column_a_series(self):
        self.assertIn('"ResNet 152" 1 3\n"Bert" 2 4\n', run(BARS, "--script")[0].stdout)

    def test_lines_are_drawn_in_their_panels(self):
        points = [[1, 0.5], [2, 1]]
        plot = {**LINES, "log_y": False,
                "series": [{"name": name, "points": points, "panel": panel}
                           for panel in ("artifact", "poisson", "gamma") for name in "ab"]}
        script = run(plot, "--script")[0].stdout
        self.assertIn("set multiplot layout 2,2 title 'Over time'", script)
        for panel in ("artifact", "poisson", "gamma"):
            self.assertIn(f"set title '{panel}'", script)
        self.assertEqual(script.count("title 'b'"), 3)
        colors = {line.split("lc rgb ")[2].split()[0] for line in script.splitlines()
                  if line.startswith("plot ")}
        self.assertEqual(len(colors), 1)
        result, picture = run(plot)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Over time", picture)

    def test_says_what_it_cannot_draw(self):
        result, picture = run({"kind": "pie"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("some.plot.json: its kind is 'pie', not one of cdf, bars, lines", result.stderr)
        self.assertEqual(picture, "")
        empty_panel = {"name": "none", "points": [], "panel": "poisson"}
        result, picture = run({**LINES, "series": [*LINES["series"], empty_panel]})
        self.assertEqual(result.returncode, 1)
        self.assertIn("some.plot.json: its panel 'poisson' has no points", result.stderr)
        self.assertEqual(picture, "")

    def test_a_plot_without_points_does_not_keep_others_from_being_drawn(self):
        empty = {**CDF, "series": [{"name": "none", "points": [[0, 1]]}]}
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, f"{name}.plot.json") for name in ("empty", "full")]
            for path, plot in zip(paths, (empty, CDF)):
                path.write_text(json.dumps(plot))
            result = subprocess.run([sys.executable, str(PLOT), *map(str, paths)],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("empty.plot.json: it has no points: no picture", result.stderr)
            self.assertFalse(pathlib.Path(folder, "empty.svg").exists())
            self.assertTrue(pathlib.Path(folder, "full.svg").exists())

    def test_a_series_without_points_is_left_out(self):
        empty = {"name": "none", "points": []}
        for plot in CDF, LINES:
            result, picture = run({**plot, "series": [empty, *plot["series"]]})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("none<", picture)


if __name__ == "__main__":
    unittest.main()
