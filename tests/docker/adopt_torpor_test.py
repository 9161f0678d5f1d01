"""docker/adopt_torpor.sh on folders like those of Python packages."""

import argparse
import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "docker/adopt_torpor.sh"
ARGUMENTS = None

# So small a library that it says which it is.
FAKE_NVRTC = """extern "C" int nvrtcVersion(int* major, int* minor) {
  *major = 42;
  *minor = 7;
  return 0;
}
"""


class AdoptTorporTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.client = self.root / "client"
        shutil.copytree(ARGUMENTS.client, self.client)
        self.cuda = self.package("with space/nvidia/cu13/lib", "libcudart.so.13", "libcublas.so.13",
                                 "libnvrtc.so.13", "libcufft.so.12")
        self.cudnn = self.package("with space/nvidia/cudnn/lib", "libcudnn.so.9")
        self.other = self.package("with space/nvidia/nccl/lib", "libnccl.so.2")

    def package(self, path, *libraries):
        folder = self.root / path
        folder.mkdir(parents=True)
        for library in libraries:
            (folder / library).write_text("NVIDIA's")
        return folder

    def adopt(self, *folders):
        return subprocess.run([SCRIPT, self.client, *folders], capture_output=True, text=True,
                              check=False)

    def assert_adopted(self, folder):
        for library in self.client.iterdir():
            self.assertTrue((folder / library.name).samefile(library), library)

    def test_libraries_become_links_and_others_stay(self):
        done = self.adopt(self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_adopted(self.cuda)
        self.assert_adopted(self.cudnn)
        self.assertEqual((self.cuda / "libcufft.so.12").read_text(), "NVIDIA's")
        self.assertEqual((self.cuda / "libnvrtc.nvidia.so.13").read_text(), "NVIDIA's")
        self.assertEqual([path.name for path in self.other.iterdir()], ["libnccl.so.2"])
        self.assertFalse((self.client / "libnvrtc.nvidia.so.13").exists())

    def test_run_again_it_changes_nothing(self):
        self.adopt(self.root)
        before = sorted((path, path.lstat().st_size) for path in self.root.rglob("*"))
        self.assertEqual(self.adopt(self.root).returncode, 0)
        after = sorted((path, path.lstat().st_size) for path in self.root.rglob("*"))
        self.assertEqual(before, after)

    def test_nothing_to_replace_is_an_error(self):
        done = self.adopt(self.other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no libraries of NVIDIA's in", done.stderr)

    def test_a_wrong_client_folder_is_an_error(self):
        done = subprocess.run([SCRIPT, self.other, self.root], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("name lib/torpor/client of a build", done.stderr)

    def test_without_folders_it_tells_its_usage(self):
        done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: adopt_torpor.sh", done.stderr)

    def test_libnvrtc_finds_the_one_set_aside(self):
        source = self.root / "nvrtc.cc"
        source.write_text(FAKE_NVRTC)
        subprocess.run([ARGUMENTS.compiler, "-shared", "-fPIC", "-o", self.cuda / "libnvrtc.so.13",
                        source], check=True)
        self.adopt(self.root)
        library = ctypes.CDLL(self.cuda / "libnvrtc.so.13")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.assertEqual(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), 0)
        self.assertEqual((major.value, minor.value), (42, 7))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
