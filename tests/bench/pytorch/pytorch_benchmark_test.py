"""What pytorch_benchmark.py makes of what its programs print; these, and torporctl, are fakes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCHMARK = pathlib.Path(__file__).resolve().parents[3] / "bench/pytorch/pytorch_benchmark.py"
# Tells which topology it was given, and runs what is behind "--".
TORPORCTL = """#!/bin/sh
export COMPUTES="$(grep computes "$4")"
shift 5
exec "$@"
"""
# The latency tells the settings.
PYTHON = """#!%s
import json, os, pathlib, sys
if sys.argv[1] == "-c":
    print(json.dumps({name: "1.0" for name in sys.argv[3:] if name != os.environ.get("LACKING")}))
elif sys.argv[2].endswith("inferences.py"):
    ms = 1.0 * int(os.environ.get("TORPOR_BATCH_CALLS", 1000))
    ms = 8000.0 if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" else ms
    ms += 0.5 if os.environ.get("COMPUTES") == "computes: true" else 0
    print("a line of the program's own")
    print(json.dumps({"ResNet-50": {"latency_ms": [ms] * 3, "issue_ms": [ms / 2] * 3}}))
    if "TORPOR_TRACE" in os.environ:
        print("torpor: trace: ResNet-50: 1 synchronous call, 230 asynchronous, 9 local; "
              "640 bytes up, 40 down, 3 batches; waited 1.000 ms", file=sys.stderr)
        print("torpor: trace:   asynchronous: 230 x cudaLaunchKernel", file=sys.stderr)
else:
    points = {"imported": {"s": 1, "rss_mib": 300}, "first_inference": {"s": 2, "rss_mib": 400}}
    pathlib.Path(sys.argv[-1]).write_text(json.dumps({"cpu": points, "preloaded": points}))
"""


class PytorchBenchmarkTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for path, text in (("build/bin/torporctl", TORPORCTL),
                           ("venv/bin/python", PYTHON % sys.executable)):
            program = self.folder / path
            program.parent.mkdir(parents=True)
            program.write_text(text)
            program.chmod(0o755)

    def run_benchmark(self, **environment):
        return subprocess.run(
            [sys.executable, "-B", BENCHMARK, "--build-dir", self.folder / "build",
             f"--benchmark_out={self.folder}/results.json", "--benchmark_out_format=json",
             "--processes", "2", "--inferences", "30", "--batch-sizes", "4", "16"],
            env={**os.environ, "TORPOR_PYTORCH_VENV": str(self.folder / "venv"),
                 "TORPOR_BENCH_PLOT_DIR": str(self.folder), **environment},
            capture_output=True, text=True, check=False)

    def test_rows(self):
        ended = self.run_benchmark()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        results = json.loads((self.folder / "results.json").read_text())
        self.assertEqual(results["context"]["torch"], "1.0")
        rows = {row["name"]: row for row in results["benchmarks"]}
        remoting = "Inference/remoting/ResNet-50/"
        self.assertEqual(rows[remoting + "synchronous"]["real_time"], 8000)
        self.assertEqual(rows[remoting + "asynchronous"]["real_time"], 1)
        batched = rows[remoting + "batched"]
        self.assertEqual((batched["real_time"], batched["issue_ms"]), (1000, 500))
        self.assertEqual(batched["of_synchronous"], 0.125)
        self.assertEqual((batched["iterations"], batched["processes"]), (6, 2))
        self.assertEqual(rows["Inference/emulated/ResNet-50/batched"]["real_time"], 1000.5)
        self.assertEqual(rows["Inference/cpu/ResNet-50"]["real_time"], 1000)
        self.assertEqual(rows["BatchSize/ResNet-50/16"]["real_time"], 16)
        self.assertEqual((batched["synchronous_calls"], batched["asynchronous_calls"],
                          batched["batches"]), (1, 230, 3))
        function = rows["FunctionProcess/preloaded"]
        self.assertEqual((function["real_time"], function["imported_rss_mib"]), (2, 300))

    def test_plots(self):
        self.run_benchmark()
        bars, lines = (json.loads((self.folder / f"{name}.plot.json").read_text())
                       for name in ("remoting_modes", "remoting_batch_size"))
        self.assertEqual(bars["groups"], ["ResNet-50"])
        self.assertEqual([one["values"] for one in bars["series"]], [[8000], [1], [1000]])
        self.assertEqual(lines["series"], [{"name": "ResNet-50", "points": [[4, 4], [16, 16]]}])

    def test_is_skipped_where_a_package_is_missing(self):
        ended = self.run_benchmark(LACKING="torchvision")
        self.assertEqual(ended.returncode, 77)
        self.assertIn("skipped: ", ended.stderr)
        self.assertIn("has no torchvision", ended.stderr)
        self.assertFalse((self.folder / "results.json").exists())


if __name__ == "__main__":
    unittest.main()
