"""Makes a weak definition of every function that cuBLAS's headers declare.

usage: generate_blas_stubs.py CXX INCLUDE_DIRECTORY OUTPUT.cc

Each answers CUBLAS_STATUS_NOT_SUPPORTED; the linker prefers the emulator's own where there is one.
"""

import re
import subprocess
import sys


def declared_functions(compiler, include):
    names = set()
    for header in ("cublas_v2.h", "cublas.h", "cublasXt.h"):
        command = [compiler, "-E", "-P", "-x", "c++", "-I" + include, "-include", header,
                   "/dev/null"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        names |= set(re.findall(r"\b(cublas\w+)\s*\(", text))
    names.discard("cublasMigrateComputeType")  # the header's own inline function
    return sorted(names)


def main():
    compiler, include, output = sys.argv[1:]
    lines = ["namespace torpor::emulator {", "int BlasNotSupported(const char* function);", "}", "",
             'extern "C" {']
    for name in declared_functions(compiler, include):
        lines.append(f"__attribute__((weak)) int {name}() "
                     f'{{ return torpor::emulator::BlasNotSupported("{name}"); }}')
    lines += ["}", ""]
    with open(output, "w", encoding="utf-8") as target:
        target.write("\n".join(lines))


if __name__ == "__main__":
    main()
