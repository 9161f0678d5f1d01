"""Makes a weak definition of every function that some of the toolkit's headers declare.

usage: generate_stubs.py CXX INCLUDE_DIRECTORY OUTPUT.cc PREFIX ANSWER HEADER...

Of functions whose names begin with PREFIX. Each answers what torpor::emulator::ANSWER, given its
name, does; the linker prefers the emulator's own where there is one.
"""

import re
import subprocess
import sys


def declared_functions(compiler, include, prefix, headers):
    names = set()
    for header in headers:
        command = [compiler, "-E", "-P", "-x", "c++", "-I" + include, "-include", header,
                   "/dev/null"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        # A type goes before, so this is no call in a function that the header itself defines.
        names |= set(re.findall(rf"(?!return)\b\w+\b[\s*]+({prefix}\w+)\s*\([^(){{}};]*\)\s*;",
                                text))
    return sorted(names)


def main():
    compiler, include, output, prefix, answer, *headers = sys.argv[1:]
    lines = ["namespace torpor::emulator {", f"int {answer}(const char* function);", "}", "",
             'extern "C" {']
    for name in declared_functions(compiler, include, prefix, headers):
        lines.append(f"__attribute__((weak)) int {name}() "
                     f'{{ return torpor::emulator::{answer}("{name}"); }}')
    lines += ["}", ""]
    with open(output, "w", encoding="utf-8") as target:
        target.write("\n".join(lines))


if __name__ == "__main__":
    main()
