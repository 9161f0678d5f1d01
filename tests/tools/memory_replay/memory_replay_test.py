"""Runs torpor-memory-replay as an operator would."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
SMALL = ["--functions", "16", "--requests", "60", "--gpu-gib", "3"]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class MemoryReplayTest(unittest.TestCase):
    def test_compares_the_allocators(self):
        result = run(*SMALL)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("FORCED EVICTIONS", lines[0])
        self.assertTrue(lines[1].startswith("two tiers"))
        self.assertTrue(lines[4].startswith("single pool"))

    def test_replays_what_it_has_written(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "models.trace")
            self.assertEqual(run(*SMALL, "--write", str(trace)).returncode, 0)
            self.assertTrue(trace.read_text().startswith("torpor-allocation-trace 1\nload "))
            self.assertEqual(run(str(trace), "--gpu-gib", "3").returncode, 0)

    def test_refuses_what_is_no_size(self):
        for arguments in (["--gpu-gib", "nan"], ["--headroom-percent", "nan"],
                          ["--headroom-percent", "101"], ["--idle-mib", "17592186044416"]):
            result = run(*SMALL, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(arguments[0], result.stderr)

    def test_says_what_is_wrong_with_a_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "bad.trace")
            trace.write_text("torpor-allocation-trace 1\nload 1\nalloc 1 2\n")
            result = run(str(trace))
            self.assertEqual(result.returncode, 2)
            self.assertIn("bad.trace:3: should be \"alloc FUNCTION BLOCK BYTES\"", result.stderr)
            self.assertEqual(run(str(trace) + ".none").returncode, 2)


if __name__ == "__main__":
    unittest.main()
