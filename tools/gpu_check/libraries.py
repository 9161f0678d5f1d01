"""Finds NVIDIA's libraries on a machine that nobody has prepared."""

import glob
import os
import pathlib
import re
import subprocess

REQUIRED = ("libcuda.so.1", "libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13")
# What comes with PyTorch, and what only some programs need.
OPTIONAL = ("libcudnn.so.9", "libnvidia-ml.so.1")
SYSTEM = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/lib/x86_64-linux-gnu",
          "/usr/lib/x86_64-linux-gnu"}
TOOLKITS = ("/usr/local/cuda", "/usr/local/cuda-13*", "/opt/cuda*")
DRIVERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu",
           "/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia",
           "/usr/lib/wsl/lib", "/run/opengl-driver/lib", "/usr/lib/nvidia", "/opt/nvidia*/lib*")
PYTHONS = ("python3", "python", "{VIRTUAL_ENV}/bin/python", "{CONDA_PREFIX}/bin/python",
           "/opt/conda/bin/python", "/opt/venv/bin/python")
LIST_PACKAGES = """import site, sys
for folder in {*sys.path, *site.getsitepackages(), site.getusersitepackages()}:
    if folder.endswith("-packages"): print(folder)"""


class NotFound(Exception):
    """A library is nowhere, and how to get it."""


def pythons():
    """Interpreters that may have packages, in order of preference."""
    names = [name.format(VIRTUAL_ENV=os.environ.get("VIRTUAL_ENV", "/none"),
                         CONDA_PREFIX=os.environ.get("CONDA_PREFIX", "/none"))
             for name in PYTHONS]
    return [os.environ["TORPOR_PYTHON"], *names] if "TORPOR_PYTHON" in os.environ else names


def _output(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _folders():
    """Folders worth a look where the loader knows no library, the best first."""
    toolkits = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), *TOOLKITS]
    for pattern in filter(None, toolkits):
        for toolkit in glob.glob(pattern):
            yield from (f"{toolkit}/lib64", f"{toolkit}/lib", f"{toolkit}/targets/x86_64-linux/lib")
    for pattern in DRIVERS:
        yield from glob.glob(pattern)
    for python in pythons():
        for packages in _output([python, "-c", LIST_PACKAGES]).split():
            yield from glob.glob(f"{packages}/nvidia/*/lib")


def _cached():
    """Paths of the loader's cache by name."""
    listed = _output(["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin ldconfig -p"])
    paths = {}
    for name, path in re.findall(r"^\s*(\S+) \(.*\) => (\S+)$", listed, re.M):
        paths.setdefault(name, []).append(path)
    return paths


def _is_64_bit(path):
    try:
        with path.open("rb") as file:
            return file.read(5)[4:] == b"\x02"
    except OSError:
        return False


class Libraries:
    """A folder with links to the libraries, and the search path for programs that run natively."""

    def __init__(self, folder, own):
        """`own`: our replacements' folder, which does not count."""
        self.folder = folder
        self.found = {}
        named = list(filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
        folders, cached = list(_folders()), _cached()
        for name in REQUIRED + OPTIONAL:
            path = self._first([*(f"{place}/{name}" for place in named), *cached.get(name, ()),
                                *(f"{place}/{name}" for place in folders)], own)
            if path is not None:
                self.found[name] = path
            elif name in REQUIRED:
                raise NotFound(f"{name} is nowhere to be found; name its folder in "
                               "LD_LIBRARY_PATH. The CUDA 13 runtime and cuBLAS come with the "
                               "toolkit or: pip install nvidia-cuda-runtime nvidia-cublas")
        folder.mkdir()
        for name, path in self.found.items():
            (folder / name).symlink_to(path)

    @staticmethod
    def _first(candidates, own):
        for candidate in map(pathlib.Path, candidates):
            if "/stubs/" in str(candidate) or str(candidate).startswith(str(own)):
                continue
            if candidate.exists() and _is_64_bit(candidate):
                return candidate.resolve()
        return None

    def search_path(self):
        """Folders for LD_LIBRARY_PATH. The system's are searched anyway; named here, other
        libraries in them would go before the bundle's own."""
        folders = [str(self.folder)]
        for path in self.found.values():
            if str(path.parent) not in SYSTEM and str(path.parent) not in folders:
                folders.append(str(path.parent))
        return ":".join(folders)
