"""Makes the tables of generated.h from the CUDA toolkit's headers.

usage: PYTHONPATH=proto/cuda_api generate_driver_tables.py CXX INCLUDE_DIRECTORY OUTPUT.cc

Every function that cuda.h declares, in any version, gets a weak definition that answers
CUDA_ERROR_NOT_SUPPORTED; the linker prefers the emulator's own where there is one.
"""

import pathlib
import re
import subprocess
import sys

import driver_headers


def declared_functions(compiler, include, defines):
    command = [compiler, "-E", "-P", "-x", "c++", "-I" + include, "-include", "cuda.h",
               "-include", "cudaProfiler.h", "/dev/null"]
    command += ["-D" + define for define in defines]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\bCUresult\s+(cu\w+)\s*\(", text))


def main():
    compiler, include, output = sys.argv[1:]
    headers = pathlib.Path(include)
    functions = set()
    for defines in ([], ["CUDA_API_PER_THREAD_DEFAULT_STREAM"], ["__CUDA_API_VERSION_INTERNAL"]):
        functions |= declared_functions(compiler, include, defines)
    lines = ['#include "emulator/driver/api/generated.h"', "", 'extern "C" {']
    for name in sorted(functions):
        lines.append(f"__attribute__((weak)) int {name}() "
                     f'{{ return torpor::emulator::NotSupported("{name}"); }}')
    lines += ["}", "", "namespace torpor::emulator {", "namespace {",
              "constexpr ErrorName kErrorNames[] = {"]
    lines += [f'    {{{code}, "{name}"}},' for code, name in driver_headers.error_names(headers)]
    lines += ["};", "const ApiEntry kApiEntries[] = {"]
    for name, version, form, per_thread in driver_headers.forms_by_version(functions, headers):
        variant = f"reinterpret_cast<void (*)()>({per_thread})" if per_thread else "nullptr"
        lines.append(f'    {{"{name}", {version}, reinterpret_cast<void (*)()>({form}), {variant}}},')
    lines += ["};", "}  // namespace",
              "std::span<const ErrorName> ErrorNames() { return kErrorNames; }",
              "std::span<const ApiEntry> ApiEntries() { return kApiEntries; }",
              "}  // namespace torpor::emulator", ""]
    with open(output, "w", encoding="utf-8") as target:
        target.write("\n".join(lines))


if __name__ == "__main__":
    main()
