"""Runs torpor-sim as a user does: what it prints, and what it says of mistakes."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


EVENTS = """\
torpor-events 6 policy=fifo seed=0 implicit_quantum_for_request=5000000 \
implicit_quantum=100000000 idle_write_back=0 evicts=1 swaps_from_peers=1 \
too_late=serve max_waiting=0 alpha_start=0.5 alpha_period=40000000000 heavy_ratio=1.3 \
outcome_window=3600000000000
5 < time_passed
6 < time_passed
7 < time_passed
"""


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class TorporSim(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rates = self.folder / "rates.csv"
        self.rates.write_text("minute_0,minute_1\n6,12\n10,3\n")

    def figure(self, *arguments):
        return run("figure", *arguments, "--rates", str(self.rates))

    def test_json_is_one_object_with_a_row_a_case(self):
        done = self.figure("11", "--functions", "16,24", "--systems", "torpor,lru", "--json",
                           "--seeds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        figure = json.loads(done.stdout)
        self.assertEqual(figure["figure"], 11)
        self.assertEqual([(row["system"], row["functions"], row["arrivals"])
                          for row in figure["rows"][:3]],
                         [("torpor", 16, "artifact"), ("lru", 16, "artifact"),
                          ("torpor", 24, "artifact")])
        self.assertEqual(len(figure["rows"]), 8)
        for row in figure["rows"]:
            self.assertEqual(row["ratio"], 1)
            self.assertEqual(row["seeds"], 2)
            self.assertGreater(row["p98_ms"], 0)

    def test_the_number_of_threads_changes_nothing(self):
        one = self.figure("10", "--functions", "40", "--json", "--threads", "1")
        many = self.figure("10", "--functions", "40", "--json", "--threads", "4")
        self.assertEqual(one.stdout, many.stdout)

    def test_the_policies_constants_are_flags(self):
        def rows(*flags):
            done = run("run", "--functions", "400", "--systems", "torpor", "--minutes", "2",
                       "--json", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["rows"]
        as_usual = rows()
        self.assertEqual(rows("--alpha-start", "0.5", "--heavy-ratio", "1.3"), as_usual)
        self.assertNotEqual(rows("--alpha-start", "0", "--heavy-ratio", "1000"), as_usual)
        wrong = run("run", "--alpha-start", "2")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn('"2" is not a number from 0 to 1', wrong.stdout + wrong.stderr)

    def test_parts(self):
        done = self.figure("parts", "--functions", "16", "--arrivals", "poisson", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        figure = json.loads(done.stdout)
        self.assertEqual(figure["figure"], "parts")
        self.assertEqual([row["system"] for row in figure["rows"]],
                         ["torpor-plus", *(f"torpor-plus without {part}" for part in
                                           ("queue", "late-aside", "beyond-rescue", "placement",
                                            "eviction")), "torpor"])

    def test_table_3(self):
        done = run("table", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("NOT AS IN THE PAPER", done.stdout)

    def test_a_free_run_on_another_node(self):
        csv = self.folder / "rows.csv"
        done = run("run", "--topology", "nvswitch-8gpu", "--functions", "50", "--minutes", "1",
                   "--nodes", "2", "--routing", "least", "--systems", "torpor-plus", "--json",
                   "--models", "bert-qa,resnet-50", "--arrivals", "poisson", "--csv", str(csv))
        self.assertEqual(done.returncode, 0, done.stderr)
        row, = json.loads(done.stdout)["rows"]
        self.assertEqual(list(row["models"]), ["resnet-50", "bert-qa"])
        self.assertEqual(len(row["hash"]), 16)
        self.assertEqual(len(csv.read_text().splitlines()), 2)

    def test_profiles_and_topologies_of_ones_own(self):
        profiles = self.folder / "profiles.yaml"
        profiles.write_text(
            "version: v1\nreference: {pcie_gbps: 12, nvlink_gbps: 50}\npercentile: 0.9\n"
            "driver_call_ms: 0\nmodels:\n"
            "  - {name: mine, native_ms: 5, resident_ms: 5, host_ms: 7, peer_ms: 6, blocks: 1,\n"
            "     parameters_mb: 10, footprint_gb: 0.1, native_gb: 0.2, cold_start_s: 1,\n"
            "     deadline_ms: 20}\n")
        topology = self.folder / "node.yaml"
        topology.write_text("version: v1\ngpus:\n  - {memory: 1GB, pcie_gbps: 12, count: 3}\n")
        done = run("run", "--profiles", str(profiles), "--topology", str(topology), "--json",
                   "--functions", "60", "--minutes", "1", "--systems", "torpor")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(done.stdout)["rows"]:
            self.assertGreater(row["host_share"], 0)
            self.assertEqual(row["peer_share"], 0)
        done = run("figure", "10", "--profiles", str(profiles))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no model 'resnet-152'", done.stderr)

    def test_what_profiles_say_nothing_of_is_refused(self):
        profiles = self.folder / "profiles.yaml"
        profiles.write_text(
            "version: v1\nreference: {pcie_gbps: 12, nvlink_gbps: 50}\npercentile: 0.9\nmodels:\n"
            "  - {name: mine, resident_ms: 5, host_ms: 7, peer_ms: 6, parameters_mb: 10,\n"
            "     footprint_gb: 0.1, deadline_ms: 20}\n")
        with_profiles = ("run", "--profiles", str(profiles), "--functions", "8", "--minutes", "1")
        self.assertEqual(run(*with_profiles).returncode, 0)
        done = run(*with_profiles, "--systems", "torpor,native")
        self.assertEqual(done.returncode, 2)
        self.assertIn("native needs native_ms, native_gb and cold_start_s of model mine",
                      done.stderr)

    def test_replay(self):
        log = self.folder / "events.log"
        log.write_text(EVENTS)
        self.assertEqual(run("replay", str(log)).stdout, "3 events, 0 decisions as logged\n")
        log.write_text(EVENTS + "7 > revoke instance=1\n")
        done = run("replay", str(log))
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 5 differs\n  logged:  7 > revoke instance=1\n  decided: nothing",
                      done.stdout)
        log.write_text("nonsense\n")
        self.assertEqual(run("replay", str(log)).returncode, 1)
        self.assertEqual(run("replay", "/nowhere.log").returncode, 2)

    def test_mistakes_are_told(self):
        for arguments, message in [
                (("figure", "13"), "there are figures 8, 9, 10, 11, 12, 14, 16 and parts"),
                (("table", "4"), "there is table 3 only"),
                (("figure", "11", "--systems", "torpedo"), "torpedo"),
                (("figure", "11", "--rates", "/nowhere.csv"), "/nowhere.csv"),
                (("figure", "11", "--profiles", "/nowhere.yaml"), "/nowhere.yaml"),
                (("figure", "11", "--topology", "/nowhere.yaml"), "neither a topology file"),
                (("figure", "11", "--seeds", "0"), "seeds"),
                (("figure", "10", "--systems", "bound"), "figure 11 only"),
                (("run", "--models", "gpt"), "no model 'gpt'"),
                ((), "subcommand")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_help(self):
        self.assertIn("EXAMPLES", run("--help").stdout)
        self.assertIn("--rates", run("figure", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
