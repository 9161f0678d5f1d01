"""Holds the includes to the tables of docs/architecture.md: which folder may use which."""

import collections
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURE = ROOT / "docs/architecture.md"
# Tests, benchmarks and examples stand above everything; nothing includes them but themselves.
ABOVE_ALL = {"tests", "bench", "examples"}


def table_rows(heading):
    """The cells of the rows under `heading`, without the head of the table."""
    section = ARCHITECTURE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def allowed_folders():
    """Folder -> the folders that its sources may include."""
    allowed = {}
    for names, _, uses in table_rows("Folders"):
        for name in re.findall(r"`(\w+)/`", names):
            allowed[name] = set(re.findall(r"`(\w+)/`", uses)) | {name}
    return allowed


def layers():
    """Folder -> its subfolders, lowest first; `.` stands for the files directly inside."""
    return {re.search(r"`([\w/]+)`", folder)[1]: re.findall(r"`([\w.]+)`", order)
            for folder, order in table_rows("Layers")}


def includes():
    """(source, included file) of every include of a file in the tree."""
    listed = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.cu"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    known = set(listed)
    for source in listed:
        text = (ROOT / source).read_text(errors="replace")
        for target in re.findall(r'^#include "([^"]+)"', text, re.M):
            if target in known:
                yield source, target


def circles(arrows):
    """The sets of folders that reach each other, by Kosaraju's algorithm."""
    nodes = set(arrows) | {target for targets in arrows.values() for target in targets}
    back = collections.defaultdict(set)
    for source, targets in arrows.items():
        for target in targets:
            back[target].add(source)

    def reach(start, edges, seen):
        stack, order = [(start, iter(sorted(edges.get(start, ()))))], []
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((n for n in rest if n not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges.get(following, ())))))
        return order

    seen, finished = set(), []
    for node in sorted(nodes):
        if node not in seen:
            finished += reach(node, arrows, seen)
    seen, found = set(), []
    for node in reversed(finished):
        if node not in seen:
            found.append(reach(node, back, seen))
    return [sorted(circle) for circle in found if len(circle) > 1]


class IncludesTest(unittest.TestCase):
    def test_folders_include_only_what_the_table_allows(self):
        allowed = allowed_folders()
        self.assertIn("base", allowed)
        for source, target in includes():
            folder, used = source.split("/")[0], target.split("/")[0]
            if folder in ABOVE_ALL:
                continue
            self.assertIn(folder, allowed, f"docs/architecture.md has no row for {folder}/")
            self.assertIn(used, allowed[folder],
                          f"{source} includes {target}, but {folder}/ may not use {used}/")

    def test_subfolders_include_only_lower_layers(self):
        for folder, order in layers().items():
            inside = {path.name for path in (ROOT / folder).iterdir()
                      if path.is_dir() and any(path.rglob("*.cc"))}
            self.assertEqual(inside, set(order) - {"."}, f"layers of {folder}")
            rank = {name: number for number, name in enumerate(order)}

            def layer(path, folder=folder):
                head, _, rest = path[len(folder) + 1:].partition("/")
                return head if rest else "."

            for source, target in includes():
                if source.startswith(folder + "/") and target.startswith(folder + "/"):
                    self.assertLessEqual(rank[layer(target)], rank[layer(source)],
                                         f"{source} includes {target}, of a higher layer")

    def test_no_folders_include_each_other_in_a_circle(self):
        arrows = collections.defaultdict(set)
        for source, target in includes():
            folder, used = str(pathlib.PurePath(source).parent), str(pathlib.PurePath(target).parent)
            if folder != used and folder.split("/")[0] not in ABOVE_ALL:
                arrows[folder].add(used)
        self.assertEqual(circles(arrows), [])

    def test_circles_are_found(self):
        self.assertEqual(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}),
                         [["a", "b", "c"]])
        self.assertEqual(circles({"a": {"b", "c"}, "b": {"c"}}), [])


if __name__ == "__main__":
    unittest.main()
