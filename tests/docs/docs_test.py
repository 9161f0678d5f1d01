"""Holds the documentation to the tree: links, paths, settings, metrics and flags exist."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
FOLDERS = ("base|bench|client_shim|deploy|docker|docs|emulator|examples|memory|nvidia|proto|scheduler|"
           "server|tests|tools")


def text(path):
    return (ROOT / path).read_text()


def sources(folder, *endings):
    return "\n".join(path.read_text() for path in sorted((ROOT / folder).rglob("*"))
                     if path.suffix in endings)


class DocsTest(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page}: {link}")

    def test_paths_exist(self):
        pattern = rf"`((?:{FOLDERS})/[\w./-]*)`"
        for page in PAGES:
            for path in re.findall(pattern, page.read_text()):
                self.assertTrue((ROOT / path).exists(), f"{page}: {path}")

    def test_every_setting_is_documented_and_no_other(self):
        tables = ["server/config/settings.cc", "server/settings/device_settings.cc",
                  "server/settings/log_settings.cc"]
        settings = set(re.findall(r'MakeSetting\(\s*"(\w+)"', "\n".join(map(text, tables))))
        documented = set(re.findall(r"^\| `(\w+)` \|", text("docs/configuration.md"), re.M))
        self.assertEqual(settings, documented - {"version", "instances"})

    def test_every_metric_is_documented_and_no_other(self):
        counting = sources("server/metrics", ".cc") + sources("server/router", ".cc")
        metrics = set(re.findall(r'"(torpor_[a-z_]+)"', counting))
        documented = set(re.findall(r"`(torpor_[a-z_]+)`", text("docs/metrics.md")))
        self.assertEqual(metrics, documented)

    def test_the_flags_in_examples_exist(self):
        # torporctl takes every setting of a function.
        flags = {"torporctl": sources("tools/torporctl", ".cc") + text("server/config/settings.cc"),
                 "torpor-loadgen": sources("tools/loadgen", ".cc"),
                 "torpord": sources("server", ".cc")}
        for page in PAGES:
            for tool, rest in re.findall(r"\b(torporctl|torpor-loadgen|torpord) ([^`\n]*)",
                                         page.read_text()):
                for flag in re.findall(r"(?<!\S)--([a-z][a-z-]+)", rest.split(" -- ")[0]):
                    known = flags[tool]
                    self.assertTrue(f"--{flag}" in known or f'"{flag.replace("-", "_")}"' in known
                                    or flag == "help", f"{page}: {tool} --{flag}")


if __name__ == "__main__":
    unittest.main()
