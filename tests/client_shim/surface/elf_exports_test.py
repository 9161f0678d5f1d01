"""What the replacement libraries show to and want from the process that loads them.

    elf_exports_test.py --client FOLDER ORIGINAL...

FOLDER holds our libraries; each ORIGINAL is NVIDIA's library that one of ours replaces.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import unittest

NEWEST_GLIBC = (2, 34)
# libtorpor_nghttp2 is opened at the first CUDA call, by its path.
NGHTTP2 = "libtorpor_nghttp2.so.14"
MAY_NEED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
            "libtorpor_client.so"}
# libcuda is thin over libcudart, which shows it one function more.
MAY_NEED_TOO = {"libcuda.so.1": {"libcudart.so.13"}}
PRIVATE = {"libcudart.so.13": {"torpor_driver_seam": "TORPOR_CUDART_1"}}
# The driver's own, which no toolkit has: its table lists the exports.
NVML = "libnvidia-ml.so.1"
# Of what the loader keeps for the thread-locals of libraries that are opened late (1664 bytes), to
# leave room for others'.
MOST_STATIC_TLS = 512
# What NVIDIA's library exports, but no header declares.
UNDECLARED = {"__nvrtcCPEx"}


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def dynamic(path, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", readelf("-d", path))


def symbols(path, defined):
    """name -> version of the dynamic symbols that are defined, or wanted."""
    found = {}
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0][:-1].isdigit():
            continue
        binding, section, name = fields[4], fields[6], fields[7]
        if (section != "UND") != defined or section == "ABS":
            continue
        if binding == "WEAK" and not defined:
            continue
        name, _, version = name.partition("@")
        found[name] = version.lstrip("@")
    return found


def name_of(original):
    """The name by which programs load it: the toolkit's stub has another one."""
    return dynamic(original, "SONAME")[0]


class Surface(unittest.TestCase):
    def each(self):
        for original in arguments.originals:
            with self.subTest(original.name):
                yield original, arguments.client / name_of(original)

    def test_exports_are_the_originals_with_its_version_node(self):
        for original, ours in self.each():
            expected = symbols(original, defined=True)
            self.assertGreater(len(expected), 20)
            # The driver's library has no versions.
            version = "" if ours.name == "libcuda.so.1" else ours.name
            self.assertEqual(set(expected.values()), {version})
            expected = {name: v for name, v in expected.items() if name not in UNDECLARED}
            self.assertEqual(symbols(ours, defined=True), expected | PRIVATE.get(ours.name, {}))

    def test_soname_is_the_originals(self):
        for original, ours in self.each():
            self.assertEqual(dynamic(ours, "SONAME"), dynamic(original, "SONAME"))

    def test_nvml_exports_its_functions_without_versions(self):
        ours = arguments.client / NVML
        exports = symbols(ours, defined=True)
        self.assertGreater(len(exports), 400)
        self.assertEqual(set(exports.values()), {""})
        self.assertEqual([name for name in exports if not name.startswith("nvml")], [])
        self.assertEqual(dynamic(ours, "SONAME"), [NVML])

    def test_the_core_exports_itself_and_the_tracer(self):
        self.assertEqual(symbols(arguments.client / "libtorpor_client.so", defined=True),
                         {name: "TORPOR_CLIENT_1" for name in
                          ("torpor_client_core", "torpor_call_tracer", "torporTraceMark")})


class Needs(unittest.TestCase):
    def ours(self):
        yield from sorted(arguments.client.iterdir())

    def test_nothing_else_is_shipped(self):
        self.assertEqual({library.name for library in self.ours()},
                         {name_of(original) for original in arguments.originals}
                         | {"libtorpor_client.so", NGHTTP2, NVML})

    def test_libraries(self):
        for library in self.ours():
            with self.subTest(library.name):
                self.assertLessEqual(set(dynamic(library, "NEEDED")),
                                     MAY_NEED | MAY_NEED_TOO.get(library.name, set()))
                if library.name == NGHTTP2:
                    self.assertEqual(dynamic(library, "SONAME"), [NGHTTP2])
                else:
                    self.assertEqual(dynamic(library, "RUNPATH"), ["$ORIGIN"])
                self.assertNotIn("(TEXTREL)", readelf("-d", library))

    def test_wanted_symbols_have_the_versions_of_glibc_and_libgcc(self):
        for library in self.ours():
            for name, version in symbols(library, defined=False).items():
                with self.subTest(library=library.name, symbol=name):
                    self.assertRegex(version, r"^(GLIBC|GCC)_\d|^TORPOR_(CLIENT|CUDART)_1")

    def test_no_symbol_is_newer_than_the_oldest_glibc_that_we_run_on(self):
        for library in self.ours():
            for name, version in symbols(library, defined=False).items():
                match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version.split()[0]
                                     if version else "")
                if match:
                    with self.subTest(library=library.name, symbol=name):
                        self.assertLessEqual((int(match[1]), int(match[2])), NEWEST_GLIBC)

    def test_thread_locals_leave_room_for_others(self):
        used = 0
        for library in self.ours():
            if "STATIC_TLS" not in readelf("-d", library):
                continue
            segment = re.search(r"^ +TLS +(?:0x\w+ +){4}(0x\w+)", readelf("-l", library), re.M)
            used += int(segment[1], 16)
        self.assertLess(used, MOST_STATIC_TLS)

    def test_the_programs_libstdcxx_is_left_alone(self):
        for library in self.ours():
            with self.subTest(library.name):
                shared = [name for name in symbols(library, defined=True)
                          if name.startswith(("_Z", "__cxa", "__gxx"))]
                self.assertEqual(shared, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", type=pathlib.Path, required=True)
    parser.add_argument("originals", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    unittest.main(argv=sys.argv[:1])
