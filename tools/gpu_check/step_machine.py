"""What machine this is."""

import os
import pathlib
import platform
import shutil
import sys

COMMANDS = {"nvidia-smi": ["nvidia-smi", "-q"], "memory": ["free", "-m"], "cores": ["nproc"],
            "cpu": ["lscpu"], "devices": ["sh", "-c", "ls -l /dev/nvidia* /dev/shm"],
            "limits": ["sh", "-c", "ulimit -a"]}
FILES = {"huge pages": "/proc/meminfo",
         "huge pages of shared memory": "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
         "transparent huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
         "operating system": "/etc/os-release", "driver": "/proc/driver/nvidia/version"}
VARIABLES = ("CUDA", "NVIDIA", "LD_", "PYTORCH", "TORPOR")


def _read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError as error:
        return str(error)


def run(setting, results):
    """Writes all to machine.txt, and what matters most to the records."""
    texts = {"kernel": " ".join(platform.uname()), "python": sys.version}
    for name, command in COMMANDS.items():
        if shutil.which(command[0]):
            texts[name] = setting.run(command, 30).out
    for name, path in FILES.items():
        texts[name] = _read(path)
    texts["variables"] = "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items())
                                   if name.startswith(VARIABLES) and "TOKEN" not in name)
    if setting.libraries is not None:
        texts["libraries"] = "\n".join(f"{name}: {path}" for name, path
                                       in setting.libraries.found.items())
    with open(setting.work / "machine.txt", "w", encoding="utf-8") as file:
        for name, text in texts.items():
            file.write(f"==== {name}\n{text.rstrip()}\n")
    facts = {"kernel release": platform.release(), "glibc": " ".join(platform.libc_ver()),
             "cores": str(len(os.sched_getaffinity(0))),
             "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 20} MiB",
             "xz": shutil.which("xz") or "none",
             "shared memory's huge pages": texts["huge pages of shared memory"].strip()}
    for name, text in facts.items():
        results.show(results.add(f"machine/{name}", [text], "text"))
    # gVisor calls itself 4.4.0 and lacks some kinds of descriptors and memory files.
    if platform.release().startswith("4.4.0"):
        results.note("this is probably a gVisor sandbox: descriptors of GPU memory may be refused")
