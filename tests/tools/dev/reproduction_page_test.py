"""What reproduction_page.py fills into a page, and what it leaves alone."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "tools/dev/reproduction_page.py"
TEXT = """# A page

Prose.

<!-- generated: seeds -->
Rows are means of 99 seeds.
<!-- end of generated: seeds -->

More prose.

<!-- generated: table-3 -->
<!-- end of generated: table-3 -->

<!-- generated: elsewhere -->
<!-- end of generated: elsewhere -->

The end.
"""
LOADS = ["nvswitch-8gpu", "unlinked-2gpu", "equal", "skewed"]


class ReproductionPageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name, "results")
        self.results.mkdir()
        self.page = pathlib.Path(folder.name, "page.md")
        self.page.write_text(TEXT)
        self.write_rows(1)

    def write_rows(self, seeds):
        (self.results / "figure-11.csv").write_text(f"system,seeds\ntorpor,{seeds}\n")
        (self.results / "table-3.txt").write_text("a table\n")
        for load in LOADS:
            rows = [f"{system},480,{arrivals},0.{len(system)}"
                    for arrivals in ("artifact", "poisson") for system in ("torpor", "torpor-plus")]
            (self.results / f"elsewhere-{load}.csv").write_text(
                "\n".join(["system,functions,arrivals,ratio", *rows, ""]))

    def run_page(self):
        result = subprocess.run([sys.executable, "-B", str(PAGE), str(self.results), str(self.page)],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.page.read_text()

    def test_fills_its_blocks_and_leaves_the_prose(self):
        text = self.run_page()
        self.assertIn("\nRows are means of 1 seed.\n", text)
        self.assertNotIn("99", text)
        self.assertIn("\n```text\na table\n```\n", text)
        self.assertIn("| 8 GPUs with an NVSwitch | 480 | 0.600 | 0.110 | 0.600 | 0.110 |\n", text)
        for prose in ("# A page\n\nProse.\n", "More prose.", "The end.\n"):
            self.assertIn(prose, text)

    def test_a_second_run_changes_what_has_changed(self):
        first = self.run_page()
        self.assertEqual(self.run_page(), first)
        self.write_rows(5)
        self.assertEqual(self.run_page(), first.replace("of 1 seed.", "of 5 seeds."))


if __name__ == "__main__":
    unittest.main()
