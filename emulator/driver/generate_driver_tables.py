"""Makes the tables of generated.h from the CUDA toolkit's headers.

usage: generate_driver_tables.py CXX INCLUDE_DIRECTORY OUTPUT.cc

Every function that cuda.h declares, in any version, gets a weak definition that answers
CUDA_ERROR_NOT_SUPPORTED; the linker prefers the emulator's own where there is one.
"""

import collections
import re
import subprocess
import sys


def declared_functions(compiler, include, defines):
    command = [compiler, "-E", "-P", "-x", "c++", "-I" + include, "-include", "cuda.h",
               "-include", "cudaProfiler.h", "/dev/null"]
    command += ["-D" + define for define in defines]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\bCUresult\s+(cu\w+)\s*\(", text))


def error_names(include):
    with open(include + "/cuda.h", encoding="utf-8") as header:
        text = header.read()
    body = re.search(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [(int(code), name) for name, code in re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", body)]


def introduced_versions(include):
    """Base name -> the CUDA versions that brought a new form of it, ascending."""
    with open(include + "/cudaTypedefs.h", encoding="utf-8") as header:
        found = re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)\s*\(", header.read())
    versions = collections.defaultdict(set)
    for name, version in found:
        versions[name].add(int(version))
    return {name: sorted(found) for name, found in versions.items()}


def api_entries(functions, include):
    for name, versions in sorted(introduced_versions(include).items()):
        forms = [form for form in [name] + [f"{name}_v{i}" for i in range(2, 9)]
                 if form in functions]
        # The n-th form came with the n-th version, counted from the latest.
        pairs = list(zip(reversed(versions), reversed(forms)))
        for version, form in reversed(pairs):
            per_thread = next((form + suffix for suffix in ("_ptsz", "_ptds")
                               if form + suffix in functions), None)
            yield name, version, form, per_thread


def main():
    compiler, include, output = sys.argv[1:]
    functions = set()
    for defines in ([], ["CUDA_API_PER_THREAD_DEFAULT_STREAM"], ["__CUDA_API_VERSION_INTERNAL"]):
        functions |= declared_functions(compiler, include, defines)
    lines = ['#include "emulator/driver/generated.h"', "", 'extern "C" {']
    for name in sorted(functions):
        lines.append(f"__attribute__((weak)) int {name}() "
                     f'{{ return torpor::emulator::NotSupported("{name}"); }}')
    lines += ["}", "", "namespace torpor::emulator {", "namespace {",
              "constexpr ErrorName kErrorNames[] = {"]
    lines += [f'    {{{code}, "{name}"}},' for code, name in error_names(include)]
    lines += ["};", "const ApiEntry kApiEntries[] = {"]
    for name, version, form, per_thread in api_entries(functions, include):
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
