"""What gpu_check makes of what it measures; no GPU, no daemon."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/gpu_check"))

# pylint: disable=wrong-import-position
import libraries
import programs
import results
import topologies
from setting import Ended

PRESET = (ROOT / "deploy/topologies/h200-1gpu.yaml").read_text()


def ended(status, out="PASS\n"):
    return Ended(status, out, "", 1.0)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class JudgeTest(unittest.TestCase):
    def test_only_what_works_natively_can_differ(self):
        self.assertEqual(programs.judge(ended(0), ended(0)), programs.SAME)
        self.assertEqual(programs.judge(ended(1), ended(1)), programs.NATIVE_TOO)
        self.assertEqual(programs.judge(ended(1), ended(-11)), programs.NATIVE_TOO)
        self.assertEqual(programs.judge(ended(1), ended(0)), programs.ONLY_NATIVE)
        self.assertEqual(programs.judge(ended(0), ended(1)), "differs: status 1, natively 0")
        self.assertEqual(programs.judge(ended(0), ended(0, "FAIL\n")), "differs: other output")


@mock.patch("builtins.print")
class ResultsTest(FolderTest):
    def begin(self, reference=None, time_scale=1.0):
        found = results.Results(reference or {}, time_scale)
        found.begin("probe")
        return found

    def test_times_and_rates_are_the_models(self, _):
        found = self.begin(time_scale=20)
        self.assertEqual(found.add("a", [40.0], "us")["values"], [2.0])
        self.assertEqual(found.add("b", [2.75], "GB/s")["values"], [55.0])
        self.assertEqual(found.add("c", [3], "count")["values"], [3.0])
        self.assertEqual(found.add("d", ["honoured"], "text")["values"], ["honoured"])
        self.assertEqual(found.add("e", [40.0], "s", modelled=False)["values"], [40.0])

    def test_a_record_stands_beside_the_emulated_one(self, _):
        reference = {"a": {"values": [29.0], "error": None}, "b": {"values": [], "error": "no"}}
        found = self.begin(reference)
        self.assertEqual(found.add("a", [193.0], "us")["emulated"], [29.0])
        self.assertEqual(found.add("b", [1.0], "us")["emulated"], "no")
        self.assertNotIn("emulated", found.add("c", [1.0], "us"))

    def test_calls_share_a_folder(self, _):
        first = self.begin()
        first.add("a", [1.0], "us")
        first.end()
        first.write(self.folder, False, {})
        second = results.Results({})
        second.begin("swap")
        second.add("b", [2.0], "ms")
        second.fail("nothing was swapped")
        second.end()
        second.write(self.folder, False, {})
        steps = json.loads((self.folder / "results.json").read_text())["steps"]
        self.assertEqual([(step["step"], step["result"]) for step in steps],
                         [("probe", "passed"), ("swap", "failed")])
        self.assertEqual(set(results.read_reference(self.folder / "results.json")), {"a", "b"})

    def test_files_are_few_and_small(self, _):
        log = self.folder / "a.log"
        with open(log, "wb") as file:
            file.truncate(3 * results.MAX_FILE_BYTES)
        output = self.folder / "output"
        found = self.begin()
        for _ in range(6):
            found.write(output, False, {"torpord.log": log})
        sizes = {file.name: file.stat().st_size for file in output.iterdir()}
        self.assertEqual(set(sizes), {"results.json", "report.txt", "torpord.log"})
        self.assertLessEqual(max(sizes.values()), results.MAX_FILE_BYTES)

    def test_a_file_that_is_no_result_is_no_reference(self, _):
        (self.folder / "results.json").write_text("{")
        self.assertEqual(results.read_reference(self.folder / "results.json"), {})
        self.assertEqual(results.read_reference(self.folder / "none.json"), {})


class TopologiesTest(unittest.TestCase):
    def test_changes_are_made_once_and_seen(self):
        self.assertEqual(topologies.changed(PRESET), PRESET)
        self.assertEqual(topologies.time_scale(PRESET), 20)
        broken = topologies.changed(PRESET, gpus=2, capability="7.5", addresses="refused",
                                    faults="exports: refused", links=2)
        for part in ("count: 2", "compute_capability: 7.5", "addresses: refused",
                     "faults: {exports: refused}", "links: 2"):
            self.assertEqual(broken.count(part), 1, part)
        self.assertNotIn("\nstrict: true", broken)

    def test_a_preset_without_what_is_changed_is_an_error(self):
        with self.assertRaises(ValueError):
            topologies.changed("version: v1\n", addresses="refused")


class LibrariesTest(FolderTest):
    def make(self, folder, names, elf_class=2):
        (self.folder / folder).mkdir()
        for name in names:
            (self.folder / folder / name).write_bytes(b"\x7fELF" + bytes([elf_class]))
        return str(self.folder / folder)

    def find(self, *folders):
        environment = {"LD_LIBRARY_PATH": ":".join(folders)}
        with mock.patch.dict(os.environ, environment, clear=True), \
                mock.patch.multiple(libraries, TOOLKITS=(), DRIVERS=(), _output=lambda _: ""):
            return libraries.Libraries(self.folder / "links", self.folder / "own")

    def test_the_first_64_bit_library_that_is_not_ours_counts(self):
        own = self.make("own", libraries.REQUIRED)
        short = self.make("short", libraries.REQUIRED, elf_class=1)
        real = self.make("real", libraries.REQUIRED + ("libcudnn.so.9",))
        found = self.find(own, short, real)
        for name in libraries.REQUIRED + ("libcudnn.so.9",):
            self.assertEqual((found.folder / name).resolve().parent, pathlib.Path(real).resolve())
        self.assertEqual(found.search_path(), f"{found.folder}:{pathlib.Path(real).resolve()}")

    def test_a_missing_library_is_named(self):
        some = self.make("some", libraries.REQUIRED[:1])
        with self.assertRaisesRegex(libraries.NotFound, "libcudart.so.13.*LD_LIBRARY_PATH"):
            self.find(some)


class CommandLineTest(unittest.TestCase):
    def run_check(self, *arguments):
        return subprocess.run([sys.executable, "-B", ROOT / "tools/gpu_check/main.py", *arguments],
                              capture_output=True, text=True, check=False)

    def test_wrong_steps_are_told(self):
        unknown = self.run_check("--steps", "probes")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("there are machine, probe", unknown.stderr)
        self.assertEqual(self.run_check("--steps", "faults").returncode, 2)

    def test_without_a_gpu_everything_is_skipped(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has a GPU")
        skipped = self.run_check()
        self.assertEqual(skipped.returncode, 0)
        self.assertIn("SKIPPED", skipped.stdout)


if __name__ == "__main__":
    unittest.main()
